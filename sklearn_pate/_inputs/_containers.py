"""Containers that numpy or scikit-learn would misread."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Table", "as_objects", "check_container", "column_names"]

# Methods of dataframe libraries that bring rows into memory.
_FETCHES_ROWS = ("toPandas", "compute", "collect")


class Table(Protocol):
    """Rows of features: an array, a sparse matrix or a dataframe."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""


def check_container(name: str, values: Any) -> None:
    """Raise for a container that numpy or scikit-learn would misread, by its type.

    These are masked arrays, lazy or wrapped dataframes, tensors that require a
    gradient, and complex numbers. `name` stands for the values in the message.
    """
    # Attributes of the type: those of a pandas dataframe may be columns.
    kind = type(values)
    problem = None
    if isinstance(values, np.ma.MaskedArray):
        problem = "a masked array, whose mask would be ignored; pass a plain array"
    elif hasattr(kind, "to_native"):
        problem = f"a narwhals {kind.__name__}; pass {name}.to_native()"
    elif hasattr(kind, "columns") and not _has_shape(values):
        fetch = next((one for one in _FETCHES_ROWS if hasattr(kind, one)), None)
        if fetch is not None:
            problem = (
                f"a {kind.__module__.partition('.')[0]} {kind.__name__}, whose rows "
                f"are not in memory; pass {name}.{fetch}()"
            )
    elif hasattr(kind, "requires_grad") and values.requires_grad:
        problem = f"a tensor that requires a gradient; pass {name}.detach()"
    elif getattr(getattr(values, "dtype", None), "kind", "") == "c":
        problem = (  # scikit-learn's error would show the values
            "an array of complex numbers. Complex data not supported: pass real and "
            "imaginary parts as columns"
        )
    if problem is not None:
        raise ValueError(f"{name} is {problem}.")


def column_names(X: Any) -> list[Any] | None:
    """List the names of columns, strings or not; None for a container without names."""
    kind = type(X)
    if hasattr(kind, "column_names"):  # pyarrow, whose `columns` are the values
        return list(X.column_names)
    return list(X.columns) if hasattr(kind, "columns") else None


def _has_shape(values: Any) -> bool:
    """Check whether the numbers of rows and columns are known."""
    shape = getattr(values, "shape", None)
    return isinstance(shape, tuple) and all(isinstance(size, int) for size in shape)


def as_objects(values: Any) -> NDArray[np.object_]:
    """Return an array of the objects in a list, or in a list of rows."""
    try:
        return np.asarray(values, dtype=object)
    except Exception:  # numpy asks each object of a private row whether it is an array
        rows = [*values]
    sizes = {len(row) if type(row) in (list, tuple) else None for row in rows}
    n_columns = sizes.pop() if len(sizes) == 1 else None
    shape = (len(rows),) if n_columns is None else (len(rows), n_columns)
    array = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        array[place] = rows[place[0]] if n_columns is None else rows[place[0]][place[1]]
    return array

"""Containers that numpy or scikit-learn would misread."""

from typing import Any, Protocol

import numpy as np

__all__ = ["Table", "check_container", "column_names"]

# How libraries call it to bring rows into memory.
_FETCHES_ROWS = ("toPandas", "compute", "collect")


class Table(Protocol):
    """Rows of features: an array, a sparse matrix or a dataframe."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""


def check_container(name: str, values: Any) -> None:
    """Raise for a container that numpy or scikit-learn would misread.

    It looks at the type of the container, and at no value.

    Parameters
    ----------
    name : str
        What the message calls the values.

    values : object
        As received.

    Raises
    ------
    ValueError
        If it is a masked array, a lazy or wrapped dataframe, or a tensor that requires
        a gradient.
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
    if problem is not None:
        raise ValueError(f"{name} is {problem}.")


def column_names(X: Any) -> list[Any] | None:
    """List the names of columns, strings or not.

    Parameters
    ----------
    X : object
        Features.

    Returns
    -------
    names : list or None
        None for what has none.
    """
    kind = type(X)
    if hasattr(kind, "column_names"):  # of pyarrow, whose `columns` are the values
        return list(X.column_names)
    return list(X.columns) if hasattr(kind, "columns") else None


def _has_shape(values):
    """Tell whether the number of rows is known."""
    shape = getattr(values, "shape", None)
    return isinstance(shape, tuple) and all(isinstance(size, int) for size in shape)

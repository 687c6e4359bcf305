"""Containers of rows, the types of their columns, and images."""

from collections import Counter
from math import prod
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import validate_data

from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.exceptions import PublicDataWarning, warn_user

# Methods of dataframe libraries that bring rows into memory.
_FETCHES_ROWS = ("toPandas", "compute", "collect")
# Numbers of channels of grey, coloured and transparent images.
_CHANNELS = (1, 3, 4)


#: Kinds of types of numbers, and of dates and durations, in numpy.
NUMBERS, DATES = "biuf", "mM"


class Table(Protocol):
    """Rows of features: an array, a sparse matrix or a dataframe."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""


def check_container(name: str, values: Any) -> None:
    """Raise for a container that numpy or scikit-learn would misread, by its type.

    These are masked arrays, lazy or wrapped dataframes, tensors that require a
    gradient, complex numbers, and single values. `name` stands for the values in the
    message.
    """
    # Attributes of the type: those of a pandas dataframe may be columns.
    kind, shape, problem = type(values), getattr(values, "shape", None), None
    is_known = isinstance(shape, tuple) and all(isinstance(one, int) for one in shape)
    if isinstance(values, np.ma.MaskedArray):
        problem = "a masked array, whose mask would be ignored; pass a plain array"
    elif hasattr(kind, "to_native"):
        problem = f"a narwhals {kind.__name__}; pass {name}.to_native()"
    elif hasattr(kind, "columns") and not is_known:
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
    elif shape == ():  # as above
        problem = "a single value; pass an array with one entry per row"
    if problem is not None:
        raise ValueError(f"{name} is {problem}.")
    names = Counter(column_names(values) or ())
    twice = next((one for one, n in names.items() if n > 1), None)
    if twice is not None:
        raise ValueError(
            f"{name} has several columns named {twice!r}; give each its own name."
        )


def column_names(X: Any) -> list[Any] | None:
    """List the names of columns, strings or not; None for a container without names."""
    kind = type(X)
    if hasattr(kind, "column_names"):  # pyarrow, whose `columns` are the values
        return list(X.column_names)
    return list(X.columns) if hasattr(kind, "columns") else None


def column_of(X: Any, column: int) -> NDArray[Any]:
    """Return a column of a table as an array."""
    return np.asarray(_safe_indexing(X, column, axis=1))


def is_frame(X: Any) -> bool:
    """Check whether features are in a dataframe, of any library."""
    return hasattr(X, "columns") or hasattr(X, "__dataframe__")


def column_kinds(X: Any) -> list[str]:
    """List numpy's kind of the type of each column, without reading its values."""
    if not is_frame(X):
        return [X.dtype.kind] * X.shape[1]
    # Without rows, the arrays that libraries make of their types lack no value.
    no_rows = _safe_indexing(X, slice(0, 0))
    return [column_of(no_rows, column).dtype.kind for column in range(X.shape[1])]


def holds_text(X: NDArray[Any]) -> bool:
    """Check whether any value is text, which a teacher has to encode."""
    return X.dtype.kind in "US" or (
        X.dtype.kind == "O" and any(isinstance(value, str) for value in X.ravel())
    )


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


def as_table(X: Any, name: str = "X", *, private: bool = True) -> Any:
    """Return an array, a CSR matrix or the same dataframe.

    No value of `private` rows decides about a type or an error. `name` stands for the
    rows in messages.
    """
    check_container(name, X)
    if is_frame(X):
        _check_arrow(name, X)
        return X
    if sp.issparse(X):
        return X.tocsr()
    X = as_array(X) if private else as_public_array(X)
    if X.ndim < 2:  # scikit-learn's error would show values
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array: {name} has shape {X.shape}. "
            "Reshape your data to (n_rows, n_features): texts to a dataframe with one "
            "column. Check that X and y are not swapped. Read a file first, such as by "
            "pandas.read_csv."
        )
    return X


def _check_arrow(name: str, X: Any) -> None:
    """Raise if X is an Arrow table, and this version of scikit-learn takes none."""
    if not hasattr(type(X), "column_names"):
        return
    try:
        _safe_indexing(X, slice(0, 0))
    except TypeError as error:
        raise ValueError(
            f"{name} is an Arrow table, which scikit-learn {sklearn.__version__} does "
            "not take; use scikit-learn 1.7 or later, or pass a dataframe of pandas or "
            "polars."
        ) from error


def as_array(X: Any) -> NDArray[Any]:
    """Return an array, of dtype object unless X has a dtype: no value may set it."""
    if hasattr(X, "dtype"):
        array = np.asarray(X)
        # scikit-learn does not know numpy's StringDType.
        return array.astype(object) if array.dtype.kind == "T" else array
    array = as_objects(X)
    if array.ndim == 1 and any(isinstance(one, (list, tuple)) for one in array):
        raise ValueError("The rows of X differ in length; pass rows of one length.")
    return array


def as_public_array(X: Any) -> NDArray[Any]:
    """Return an array, with dtype object for a list that holds text."""
    array = np.asarray(X)
    is_list = not hasattr(X, "dtype")
    if array.dtype.kind == "T" or (is_list and array.dtype.kind in "US"):
        return np.asarray(X, dtype=object)
    return array


def check_columns(estimator: Any, X: Any, *, reset: bool, name: str = "X") -> None:
    """Store or compare the number and the names of columns.

    scikit-learn compares names that are strings, and not numbers or the tuples of a
    pandas MultiIndex.
    """
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    names = column_names(X)
    if reset:
        vars(estimator).pop("_column_names", None)
        if names and not any(isinstance(one, str) for one in names):
            estimator._column_names = [str(one) for one in names]
        return
    known = getattr(estimator, "_column_names", None)
    if names is None or known is None:
        return
    for place, (one, other) in enumerate(zip(map(str, names), known, strict=True)):
        if one != other:
            raise ValueError(
                f"Column {place} of {name} is named {one} instead of {other}; pass the "
                "columns of fit in the same order."
            )


def check_device(name: str, device: Any) -> None:
    """Raise ValueError unless torch can compute on a device."""
    import torch  # here, as the other checks do without it

    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"{name}={device!r} is unknown to torch; use 'cpu' or 'cuda'."
        ) from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"{name}={device!r} needs a GPU and torch finds none; use 'cpu'."
        )


def read_input_shape(image_shape: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return (n_features,), or (channels, height, width), for an array's shape.

    The last axis has the channels if there are 1, 3 or 4 and the first is larger than
    that. A layout that the sizes leave open is taken for channels first, with a warning
    unless `image_shape` is the shape of an image in an array of images.
    """
    n_features = prod(shape[1:])
    is_given = image_shape is not None and len(shape) > 2
    if image_shape is None:
        image_shape = shape[1:]
        if len(image_shape) == 1:
            return (n_features,)
    given = tuple(image_shape) if np.iterable(image_shape) else ()
    input_shape = (1, *given) if len(given) == 2 else given
    whole = all(
        isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0
        for size in given
    )
    if not whole or len(input_shape) != 3 or prod(input_shape) != n_features:
        raise ValueError(
            f"image_shape={image_shape!r} must be (height, width) or (channels, "
            f"height, width), and contain the {counted(n_features, 'value')} of one "
            "row of X."
        )
    first, height, width = input_shape
    if width in _CHANNELS and first > max(_CHANNELS):
        return width, first, height
    is_open = first in _CHANNELS and width in _CHANNELS
    if not is_given and (is_open or (first >= width and not first > width == height)):
        warn_user(
            f"Images of shape {input_shape} are read as {counted(first, 'channel')} of "
            f"{height} x {width} pixels. If channels come last, use np.moveaxis(X, -1, "
            "1), also for X_public and new images.",
            PublicDataWarning,
        )
    return input_shape


def channels_first(
    X: NDArray[Any], layout: Any, input_shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return rows as images of `input_shape`, which `layout` holds in either order.

    Without a layout, as for flat rows after a fit on images, the channels are first.
    """
    channels, *size = input_shape
    if layout is not None and tuple(layout) == (*size, channels) != input_shape:
        images = X.reshape(len(X), *layout)
        return np.ascontiguousarray(np.moveaxis(images, -1, 1))
    return X.reshape(len(X), *input_shape)

"""Rows with values that an estimator may refuse: missing, infinite, not a number.

One private row must not decide whether a fit raises an error or how other rows are
read. So each value is read on its own, and rows are dropped inside a single teacher's
task.
"""

import math
import warnings
from collections.abc import Sequence
from decimal import Decimal
from numbers import Number, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import InputTags, _safe_indexing, get_tags

from sklearn_pate._inputs._containers import column_names

__all__ = [
    "HUGE",
    "INFINITE",
    "MISSING",
    "as_words",
    "columns_with_missing",
    "finite_or_default",
    "input_tags",
    "is_a",
    "is_frame",
    "is_missing",
    "is_missing_or_nan",
    "odd_rows",
    "read_numbers",
    "takes_missing",
    "to_number",
    "to_text",
    "without_words",
]

#: Kinds of odd values; `odd_rows` adds those of a row.
MISSING, INFINITE, HUGE = 1, 2, 4

# The square of a larger number is infinite as float32.
_LARGEST = 1e18
# Packages whose tags are right about missing values.
_RELIABLE_TAGS = {"sklearn", "skorch", "sklearn_pate"}
# They accept missing values and pass them on.
_SCALERS = (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)


def is_frame(X: Any) -> bool:
    """Check whether features are in a dataframe, of any library."""
    return hasattr(X, "columns") or hasattr(X, "__dataframe__")


def _fills_missing(step: Any) -> bool:
    is_imputer = type(step).__module__.startswith("sklearn.impute")
    return is_imputer or getattr(step, "_fills_missing", False)


def takes_missing(estimator: Any) -> bool | None:
    """Check whether an estimator accepts missing values in arrays of numbers.

    The tag ``allow_nan`` decides; for an estimator that wraps others, the tags of all
    of them. A Pipeline accepts them if all steps do, or those up to an imputer of
    scikit-learn or a TableRepresentation. None if that is unknown, as behind a
    ColumnTransformer, or for a `fit` that is neither scikit-learn's nor skorch's and
    has the default tag. An estimator of None stands for the comparison of rows, which
    does not accept them.
    """
    if estimator is None:
        return False
    if isinstance(estimator, Pipeline):
        steps = [
            step for _, step in estimator.steps if step not in (None, "passthrough")
        ]
        for step in steps:
            taken = takes_missing(step)
            if not taken:
                return taken
            if _fills_missing(step):
                return True
            if step is not steps[-1] and not isinstance(step, _SCALERS):
                return None
        return True
    tags = get_tags(estimator)
    if tags.input_tags.allow_nan:
        return True
    inner = _wrapped(estimator)
    if inner:
        all_taken = {takes_missing(one) for one in inner}
        return None if None in all_taken else False not in all_taken
    if _package_of_fit(estimator) not in _RELIABLE_TAGS:
        return None
    parts = getattr(
        estimator, "transformers", getattr(estimator, "transformer_list", 0)
    )
    return None if tags.no_validation or parts else False


def input_tags(estimator: Any) -> InputTags:
    """Return input tags, with ``allow_nan`` decided by `takes_missing`."""
    tags = get_tags(estimator).input_tags
    tags.allow_nan = takes_missing(estimator) is True
    return tags


def odd_rows(X: Any) -> NDArray[np.uint8]:
    """Find rows that hold values which an estimator may refuse, each row by itself.

    Each row has 0, or the sum of `MISSING`, `INFINITE` and `HUGE` (the square of the
    value is not finite as float32).
    """
    if sp.issparse(X):
        X = X.tocsr()
        of_value = _odd_values(X.data)
        row_of_value = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        odd = np.zeros(X.shape[0], dtype=np.uint8)
        np.bitwise_or.at(odd, row_of_value, of_value)
        return odd
    if is_frame(X):
        columns = (_column(X, index) for index in range(X.shape[1]))
        odd = np.zeros(X.shape[0], dtype=np.uint8)
        for column in columns:
            odd |= _odd_values(column)
        return odd
    X = np.asarray(X)
    values = _odd_values(X.reshape(len(X), math.prod(X.shape[1:])))
    return np.bitwise_or.reduce(values, axis=1)


def columns_with_missing(X: Any) -> list[Any]:
    """List the columns that hold a missing value, by name or position."""
    if sp.issparse(X):
        X = X.tocoo()
        return np.unique(X.col[_odd_values(X.data) == MISSING]).tolist()
    names = column_names(X) or range(X.shape[1])
    return [
        name
        for index, name in enumerate(names)
        if np.any(_odd_values(_column(X, index)) & MISSING)
    ]


def read_numbers(
    X: Any, names: Sequence[Any] | None = None, *, refuse: bool = True
) -> NDArray[np.float64]:
    """Read each value of an array or dataframe as a number, whatever the others are.

    NaN stands for what is missing, and for text or dates among numbers. `names` are
    those of the columns in messages. With `refuse`, raises ValueError for a column of
    text without any number, TypeError for a value that is a container, such as a dict.
    """
    if is_frame(X):
        names = names or column_names(X) or range(X.shape[1])
        columns = [
            _read_column(_column(X, index), name, refuse)
            for index, name in enumerate(names)
        ]
        return np.column_stack(columns)
    if X.dtype.kind in "biuf":
        return X.astype(np.float64)
    columns = X.reshape(len(X), -1).T
    names = names or range(len(columns))
    read = [_read_column(*one, refuse) for one in zip(columns, names, strict=True)]
    return np.column_stack(read).reshape(X.shape)


def without_words(values: list[Any]) -> NDArray[np.object_]:
    """Replace text in a column of numbers by the number it holds, or by NaN."""
    kept = np.empty(len(values), dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would reveal a value
        for row, value in enumerate(values):
            is_kept = is_a(value, Number) or is_missing(value)
            kept[row] = value if is_kept else to_number(value)
    return kept


def to_number(value: Any) -> float:
    """Convert a value to a number, to NaN if it is none; this may warn."""
    try:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    except Exception:  # an object of a private row may raise any
        return math.nan


def finite_or_default(
    features: NDArray[np.float64], default: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Replace each row that is not finite by a default row made of public facts alone.

    Each row of the result depends on that row alone, bit by bit.
    """
    is_finite = np.isfinite(features).all(axis=1, keepdims=True)
    return np.where(is_finite, features, default)


def as_words(values: list[Any]) -> NDArray[np.object_]:
    """Convert values of a column of text that are neither text nor missing to text."""
    text = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        is_kept = is_a(value, str) or is_missing_or_nan(value)
        text[row] = value if is_kept else to_text(value)
    return text


def to_text(value: Any) -> str:
    """Convert a value to text, the same one for all numbers without a short form."""
    try:
        return str(value)
    except Exception:  # a number of thousands of digits, or any object
        return ""


def _wrapped(estimator: Any) -> list[Any]:
    """List the estimators that an estimator wraps."""
    parts = [getattr(estimator, "estimator", None)]
    parts += [part for _, part in getattr(estimator, "estimators", None) or []]
    return [
        part
        for part in parts
        if hasattr(part, "get_params") and not isinstance(part, type)
    ]


def _package_of_fit(estimator: Any) -> str | None:
    """Return the name of the package that defines the `fit` of an estimator."""
    for kind in type(estimator).__mro__:
        if "fit" in vars(kind):
            return kind.__module__.partition(".")[0]
    return None


def _column(X: Any, index: int) -> NDArray[Any]:
    return np.asarray(_safe_indexing(X, index, axis=1))


def _odd_values(values: NDArray[Any] | np.float64) -> NDArray[np.uint8]:
    """Return MISSING, INFINITE, HUGE or 0 for each value."""
    kind = values.dtype.kind
    if kind == "O":
        flat = [_odd_object(value) for value in values.ravel().tolist()]
        return np.array(flat, dtype=np.uint8).reshape(values.shape)
    if kind in "mM":
        return np.isnat(values) * np.uint8(MISSING)
    if kind not in "fc":
        return np.zeros(values.shape, dtype=np.uint8)
    odd = np.isnan(values) * np.uint8(MISSING)
    odd |= np.isinf(values) * np.uint8(INFINITE)
    is_huge = np.isfinite(values) & (np.abs(values) > _LARGEST)
    odd |= is_huge * np.uint8(HUGE)
    return odd


def _odd_object(value: Any) -> int:
    if is_a(value, (str, bytes)):
        return 0
    if is_missing(value):
        return MISSING
    if not is_a(value, (Real, Decimal)):
        return 0
    try:
        return int(_odd_values(np.float64(value)))
    except OverflowError:
        return HUGE
    except Exception:  # an object of a private row may raise any
        return MISSING


def _read_column(values: NDArray[Any], name: Any, refuse: bool) -> NDArray[np.float64]:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind in "cmM":
        raise TypeError(
            f"Column {name!r} is of type {values.dtype}; convert it to numbers."
        )
    values = values.astype(object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would reveal a value
        try:
            return values.astype(np.float64)
        except Exception:
            read = _read_value if refuse else to_number
            numbers = np.array([read(value) for value in values.tolist()])
    if refuse and np.all(np.isnan(numbers)) and any(is_a(one, str) for one in values):
        raise ValueError(
            f"could not convert string to float: column {name!r} is text, and holds no "
            "number; encode it, or leave it out."
        )
    return numbers


def _read_value(value: Any) -> float:
    """Read one value as a number, or as NaN if it is none; refuse containers."""
    number = to_number(value)
    if np.isnan(number) and type(value) in (dict, list, set, tuple, np.ndarray):
        raise TypeError(
            f"The argument must be a string or a number, not {type(value).__name__!r}."
        )
    return number


def is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """Check the type of a private object, without any attribute that may raise."""
    return issubclass(type(value), kinds)


def is_missing(value: Any) -> bool:
    """Check whether an object stands for a missing value, NaN aside."""
    # pandas.NA cannot be compared.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_missing_or_nan(value: Any) -> bool:
    """Check whether an object stands for a missing value, or is NaN."""
    if is_missing(value) or not is_a(value, Real):
        return is_missing(value)
    try:
        return bool(value != value)
    except Exception:  # an object of a private row may raise any
        return True

"""Column types, and rows with values that an estimator does not accept."""

import math
import warnings
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
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

from sklearn_pate._inputs._containers import column_names, column_of

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
_MISSING_TYPES = ("NoneType", "NAType", "NaTType")
# What the type of an object stands for, the first that fits.
_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "duration": (timedelta, np.timedelta64),  # which is a number to numpy
    "date": (date, np.datetime64),
    "time": (time,),
    "number": (Real, Decimal, np.bool_),
}
_EPOCH = date(1970, 1, 1).toordinal()


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
        odd = np.zeros(X.shape[0], dtype=np.uint8)
        for index in range(X.shape[1]):
            odd |= _odd_values(column_of(X, index))
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
        if np.any(_odd_values(column_of(X, index)) & MISSING)
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
            _read_column(column_of(X, index), name, refuse)
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
    """Convert a value to a number, to NaN if it is none; this may warn.

    Dates become days since 1970, as the start of a period does, durations become days,
    and times of a day become seconds.
    """
    try:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
        except TypeError:
            return _days_or_seconds(value)
    except Exception:  # an object of a private row may raise any
        return math.nan


def _days_or_seconds(value: Any) -> float:
    kind = kind_of(type(value))
    if kind == "duration":
        return float(value / timedelta(days=1))
    if kind == "time":
        minutes = value.hour * 60 + value.minute
        return minutes * 60 + value.second + value.microsecond / 1e6
    if kind != "date":
        return math.nan
    if is_a(value, np.datetime64):
        value = value.astype("M8[s]").item()
    elif not is_a(value, date):
        value = value.start_time
    days = value.toordinal() - _EPOCH
    if not is_a(value, datetime):
        return float(days)
    minutes = (days * 24 + value.hour) * 60 + value.minute
    return (minutes * 60 + value.second) / 86400


def kind_of(kind: type) -> str:
    """Return the kind of objects of a type: of `_KINDS`, "missing" or "other"."""
    if kind.__name__ in _MISSING_TYPES:
        return "missing"
    if kind.__name__ == "Period":
        return "date"
    found = (name for name, kinds in _KINDS.items() if issubclass(kind, kinds))
    return next(found, "other")


def kinds_of(values: list[Any]) -> set[str]:
    """Return the kinds of the values of a column, without missing ones."""
    return {kind_of(one) for one in set(map(type, values))} - {"missing"}


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
    return type(value).__name__ in _MISSING_TYPES


def is_missing_or_nan(value: Any) -> bool:
    """Check whether an object stands for a missing value, or is NaN."""
    if is_missing(value) or not is_a(value, Real):
        return is_missing(value)
    try:
        return bool(value != value)
    except Exception:  # an object of a private row may raise any
        return True


def read_like_public(X: Any, X_public: Any, *, refuse: bool = True) -> Any:
    """Read private columns as the type of the public columns, each value on its own.

    One odd value in a private row must not decide how the others are read. Where a
    public column holds numbers, values of a private column of text or objects become
    numbers, and NaN where no number can be read. Where it holds numbers as objects,
    only text becomes NaN. Where it holds text, other objects become text. Both come
    from `check_features`. For `refuse`, see `read_numbers`.
    """
    if sp.issparse(X) or (not is_frame(X) and X.dtype.kind not in "OUST"):
        return X
    if not is_frame(X) and X_public.dtype.kind in "biuf":
        numbers = read_numbers(X, refuse=refuse)
        # Networks take one dtype. Integers cannot hold NaN.
        with np.errstate(over="ignore"):
            return (
                numbers.astype(X_public.dtype)
                if X_public.dtype.kind == "f"
                else numbers
            )
    if len(X.shape) != 2:
        return X
    is_typed, is_date = numeric_columns(X_public), columns_of(X_public, "mM")
    for column in np.flatnonzero(~numeric_columns(X) & ~is_date).tolist():
        public = _values(X_public, column)
        read: NDArray[Any]
        if is_typed[column] and _holds_numbers(public):
            read = _read_public_column(X, column, refuse=refuse)
        elif _holds_numbers(public):
            read = without_words(_values(X, column))
        elif holds_text(np.array(public, dtype=object)) and _is_of_objects(X, column):
            read = as_words(_values(X, column))
        else:
            continue
        X = _with_column(X, column, read)
    return X


def check_column_types(X: Any, X_public: Any) -> None:
    """Raise if a column holds numbers in X and text in X_public, or vice versa.

    Also if it has a type of dates in one of them, and holds text or numbers in the
    other. Everything else may work: integers and floats, categories and text, numbers
    written as text, or a column without values. No single private value decides, unless
    all others show that the column is text.
    """
    is_numeric, is_dated = numeric_columns(X), columns_of(X, "mM")
    names = column_names(X) or range(X.shape[1])
    for column in np.flatnonzero(is_dated != columns_of(X_public, "mM")).tolist():
        tables = {"X": X, "X_public": X_public}
        dated, other = tables if is_dated[column] else reversed(tables)
        values = _values(tables[other], column)
        kinds = kinds_of(values)
        if kinds in ({"text"}, {"number"}):
            raise ValueError(
                f"Column {names[column]!r} has dates or durations in {dated}, but "
                f"values of type {kinds.pop()} in {other}; give it the same type in "
                "both."
            )
    for column in np.flatnonzero(is_numeric != numeric_columns(X_public)).tolist():
        public = _values(X_public, column)
        if is_numeric[column]:
            differs, numeric, text = any(map(_is_word, public)), "X", "X_public"
        else:
            differs = any(map(_is_number, public)) and _is_text(X, column)
            numeric, text = "X_public", "X"
        if differs:
            raise ValueError(
                f"Column {names[column]!r} is numeric in {numeric}, but in {text} it "
                "is text that cannot be read as a number, or codes with leading zeros; "
                "give it the same type in both."
            )


def holds_text(X: NDArray[Any]) -> bool:
    """Check whether any value is text, which a teacher has to encode."""
    return X.dtype.kind in "US" or (
        X.dtype.kind == "O" and any(isinstance(value, str) for value in X.ravel())
    )


def text_columns(X: Any) -> list[Any]:
    """List the columns of a table that hold text, by name or position."""
    if sp.issparse(X) or len(X.shape) != 2:
        return []
    names = column_names(X) or range(X.shape[1])
    return [
        names[column]
        for column in np.flatnonzero(~numeric_columns(X)).tolist()
        if holds_text(np.array(_values(X, column), dtype=object))
    ]


def _is_of_objects(X: Any, column: int) -> bool:
    of_column = _safe_indexing(X, column, axis=1)
    return getattr(of_column, "dtype", None) == np.dtype(object)  # none in pyarrow


def _with_column(X: Any, column: int, values: NDArray[Any]) -> Any:
    if hasattr(X, "with_columns"):  # polars
        return X.with_columns(type(X[:, 0])(X.columns[column], values))
    if hasattr(X, "isetitem"):  # pandas
        X = X.copy(deep=False)
        X.isetitem(column, values)
    elif isinstance(X, np.ndarray):
        X = X.astype(object)
        X[:, column] = values
    return X


def _read_public_column(
    X: Any, column: int, *, refuse: bool = True
) -> NDArray[np.float64]:
    name = (column_names(X) or range(X.shape[1]))[column]
    values = np.asarray(_safe_indexing(X, [column], axis=1))
    return read_numbers(values, [name], refuse=refuse)[:, 0]


def _is_text(X: Any, column: int) -> bool:
    """Check whether a column holds text and no value that can be read as a number."""
    try:
        _read_public_column(X, column)
    except ValueError:
        return True
    return False


def _holds_numbers(values: list[Any]) -> bool:
    """Check whether the objects are numbers or missing."""
    return any(map(_is_number, values)) and not any(
        isinstance(value, str) for value in values
    )


def numeric_columns(X: Any) -> NDArray[np.bool_]:
    """Find the columns of a numeric type, without reading their values."""
    return columns_of(X, "biuf")


def columns_of(X: Any, kinds: str) -> NDArray[np.bool_]:
    """Find the columns of some kinds of types, without reading their values."""
    if not is_frame(X):
        return np.full(X.shape[1], X.dtype.kind in kinds)
    # Without rows, the arrays that libraries make of their types lack no value.
    no_rows = _safe_indexing(X, slice(0, 0))
    found = [column_of(no_rows, index).dtype.kind for index in range(X.shape[1])]
    return np.isin(found, list(kinds))


def _values(X: Any, column: int) -> list[Any]:
    return column_of(X, column).tolist()


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and bool(value == value)


def _is_word(value: Any) -> bool:
    """Check whether a value is text but no number, or a code with a leading zero."""
    if not isinstance(value, str):
        return False
    if value[:1] == "0" and value[1:2].isdigit():  # never equal to a number as text
        return True
    try:
        float(value)
    except ValueError:
        return True
    return False

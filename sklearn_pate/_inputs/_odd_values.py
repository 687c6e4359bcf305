"""Values of rows: kinds, missing and odd ones, and their reading as numbers."""

import math
import warnings
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import prod
from numbers import Number, Real
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._containers import (
    DATES,
    NUMBERS,
    column_kinds,
    column_names,
    column_of,
    holds_text,
    is_frame,
)

#: Kinds of odd values; `odd_rows` adds those of a row.
MISSING, INFINITE, HUGE = 1, 2, 4

# The square of a larger number is infinite as float32.
_LARGEST = 1e18
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
Result = TypeVar("Result")


def of_each(function: Callable[[Any], Result], values: list[Any]) -> list[Result]:
    """Apply a function to each value, and once to equal text, of which columns repeat.

    Other values may be equal and of different types, or raise an error if compared.
    """
    if {*map(type, values)} == {str}:
        of_text = {text: function(text) for text in set(values)}
        return [*map(of_text.__getitem__, values)]
    of_text = {one: function(one) for one in {*filter(_is_text, values)}}
    return [of_text[one] if _is_text(one) else function(one) for one in values]


def _is_text(value: Any) -> bool:
    """Check for text itself: objects of other types may raise if compared."""
    return type(value) is str


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
        # numpy 2.0 does not divide its durations by those of Python.
        day = timedelta(days=1)
        return float(
            value / (np.timedelta64(day) if is_a(value, np.timedelta64) else day)
        )
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
        return str.__str__(str(value))  # not of a type that may raise later
    except Exception:  # a number of thousands of digits, or any object
        return ""


def _odd_values(values: NDArray[Any] | np.float64) -> NDArray[np.uint8]:
    """Return MISSING, INFINITE, HUGE or 0 for each value."""
    kind = values.dtype.kind
    if kind == "O":
        flat = of_each(_odd_object, values.ravel().tolist())
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
            numbers = np.array(of_each(read, values.tolist()))
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
    from `check_features`.

    With `refuse`, raises ValueError if a column holds numbers in one of them and text
    in the other, or dates in one of them and text or numbers in the other, and
    TypeError for a value that is a container. All else may work: integers and floats,
    categories and text, numbers written as text, or a column without values. No single
    private value decides, unless all others show that the column is text.
    """
    if sp.issparse(X):
        return X
    names = column_names(X) or range(prod(X.shape[1:]))
    if not is_frame(X) and X_public.dtype.kind in NUMBERS:
        if X.dtype.kind in NUMBERS:
            return X
        if X.dtype.kind not in DATES:
            columns = zip(X.reshape(len(X), -1).T, names, strict=True)
            numbers = np.column_stack(
                [_numbers_like_public(*one, refuse) for one in columns]
            ).reshape(X.shape)
            # Networks take one dtype. Integers cannot hold NaN.
            if X_public.dtype.kind != "f":
                return numbers
            with np.errstate(over="ignore"):
                return numbers.astype(X_public.dtype)
    if len(X.shape) != 2:
        return X
    kinds = zip(column_kinds(X), column_kinds(X_public), strict=True)
    for column, (kind, of_public) in enumerate(kinds):
        name = names[column]
        if kind in NUMBERS and of_public in NUMBERS:
            continue
        public = column_of(X_public, column).tolist()
        if refuse and (kind in DATES) != (of_public in DATES):
            dated, other = ("X", "X_public") if kind in DATES else ("X_public", "X")
            values = public if kind in DATES else column_of(X, column).tolist()
            if (found := kinds_of(values)) in ({"text"}, {"number"}):
                raise ValueError(
                    f"Column {name!r} has dates or durations in {dated}, but values of "
                    f"type {found.pop()} in {other}; give it the same type in both."
                )
        if kind in NUMBERS:
            if refuse and any(map(_is_word, public)):
                raise _differs(name, "X", "X_public")
        elif of_public in DATES:
            continue
        elif _holds_numbers(public):
            own = column_of(X, column)
            X = _with_column(
                X,
                column,
                _numbers_like_public(own, name, refuse)
                if of_public in NUMBERS
                else without_words(own.tolist()),
            )
        elif any(isinstance(one, str) for one in public):
            given = _safe_indexing(X, column, axis=1)
            if getattr(given, "dtype", None) == np.dtype(object):  # none in pyarrow
                X = _with_column(X, column, as_words(given.tolist()))
    return X


def _numbers_like_public(
    values: NDArray[Any], name: Any, refuse: bool
) -> NDArray[np.float64]:
    """Read a private column as numbers, as the public one holds numbers."""
    try:
        return _read_column(values, name, refuse)
    except ValueError:
        raise _differs(name, "X_public", "X") from None


def _differs(name: Any, numeric: str, text: str) -> ValueError:
    """Return the error of a column of numbers in one table, and text in the other."""
    return ValueError(
        f"Column {name!r} is numeric in {numeric}, but in {text} it is text that "
        "cannot be read as a number, or codes with leading zeros; give it the same "
        "type in both."
    )


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


def text_columns(X: Any) -> list[Any]:
    """List the columns of a table that hold text, by name or position."""
    if sp.issparse(X) or len(X.shape) != 2:
        return []
    names = column_names(X) or range(X.shape[1])
    return [
        names[column]
        for column, kind in enumerate(column_kinds(X))
        if kind not in NUMBERS and holds_text(column_of(X, column).astype(object))
    ]


def _holds_numbers(values: list[Any]) -> bool:
    """Check whether the objects are numbers or missing."""
    return any(map(_is_number, values)) and not any(
        isinstance(value, str) for value in values
    )


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

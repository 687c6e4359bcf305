"""Columns of numbers, text and objects, in private and public rows."""

import re
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._containers import column_names
from sklearn_pate._inputs._odd_rows import (
    as_words,
    is_frame,
    read_numbers,
    without_words,
)
from sklearn_pate.exceptions import PublicDataWarning, warn_user

__all__ = [
    "check_column_types",
    "holds_text",
    "numeric_columns",
    "read_like_public",
    "text_columns",
    "warn_of_text",
]

# Fewer values of a column are categories, and fewer whole numbers codes.
_MANY = 20
# A number: signs or a currency, digits in groups of three or not, an exponent, a unit.
_NUMBER = re.compile(
    r"[^\w.,]*(?P<digits>(?P<whole>\d{1,3}(?:[.,'\u2019 \xa0\u202f]\d{3})+|\d*)"
    r"(?:[.,]\d*)?(?:[eE][-+]?\d+)?)(?P<unit>\D*)"
)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*")
_OF_KIND = {
    "numbers": "has numbers as text, or beside text, in the columns {}, which are read "
    "as categories. Convert them in X and X_public, for example by pandas.to_numeric, "
    "with a point for each decimal comma.",
    "dates": "has dates as text in the columns {}, which are read as categories. "
    "Convert them in X and X_public, for example by pandas.to_datetime.",
    "texts": "has ids or text that differ in most rows in the columns {}, which teach "
    "nothing about new rows. Leave them out of X and X_public, or make categories or "
    "numbers of them.",
}
_UNLESS = "Ignore this for codes, and where your own steps read these columns."


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
    is_typed, is_date = numeric_columns(X_public), _columns_of(X_public, "mM")
    for column in np.flatnonzero(~numeric_columns(X) & ~is_date).tolist():
        public = _values(X_public, column)
        read: NDArray[Any]
        if is_typed[column] and _holds_numbers(public):
            read = _read_column(X, column, refuse=refuse)
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

    Everything else may work: integers and floats, categories and text, numbers written
    as text, or a column without values. No single private value decides, unless all
    others show that the column is text.
    """
    is_numeric = numeric_columns(X)
    for column in np.flatnonzero(is_numeric != numeric_columns(X_public)).tolist():
        public = _values(X_public, column)
        if is_numeric[column]:
            differs, numeric, text = any(map(_is_word, public)), "X", "X_public"
        else:
            differs = any(map(_is_number, public)) and _is_text(X, column)
            numeric, text = "X_public", "X"
        if differs:
            name = (column_names(X) or range(X.shape[1]))[column]
            raise ValueError(
                f"Column {name!r} is numeric in {numeric} and text in {text}, which "
                "no number can be read from; give it the same type in both."
            )


def holds_text(X: NDArray[Any]) -> bool:
    """Check whether any value is text, which a teacher has to encode."""
    return X.dtype.kind in "US" or (
        X.dtype.kind == "O" and any(isinstance(value, str) for value in X.ravel())
    )


def text_columns(X: Any) -> list[Any]:
    """List the columns of a table that hold text, by name or position."""
    return [name for name, _ in _texts(X)]


def warn_of_text(X_public: Any) -> None:
    """Warn of text in public rows that is of little use as categories.

    These are numbers and dates as text, and columns of mostly different values. The
    message names columns and shows no value.
    """
    found: dict[str, list[Any]] = {}
    for name, values in _texts(X_public):
        kind = _kind_of_text(
            [
                str(one).strip()
                for one in values
                if isinstance(one, str) or _is_number(one)
            ]
        )
        if kind is not None:
            found.setdefault(kind, []).append(name)
    for kind, names in found.items():
        message = _OF_KIND[kind].format(names)
        warn_user(f"X_public {message} {_UNLESS}", PublicDataWarning)


def _texts(X: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield name or position, and values, of each column of a table with text."""
    if sp.issparse(X) or len(X.shape) != 2:
        return
    names = column_names(X) or range(X.shape[1])
    for column in np.flatnonzero(~numeric_columns(X)).tolist():
        values = _values(X, column)
        if holds_text(np.array(values, dtype=object)):
            yield names[column], values


def _kind_of_text(texts: list[str]) -> str | None:
    """Return why the values of a column are no categories, None if they may be."""
    distinct = set(texts)
    coded = [one for one in distinct if re.search(r"\d", one)]
    # Few words without a digit may stand for missing values; more are categories.
    if 2 * (len(distinct) - len(coded)) <= len(coded):
        if len(coded) > _MANY and all(map(_DATE.fullmatch, coded)):
            return "dates"
        if _are_amounts(coded, len(texts)):
            return "numbers"
    return "texts" if len(distinct) > max(_MANY, len(texts) / 2) else None


def _are_amounts(coded: list[str], n_values: int) -> bool:
    """Check whether distinct texts are numbers of one unit, and not codes."""
    found = [match for match in map(_NUMBER.fullmatch, coded) if match]
    if len(found) < len(coded) or len({one["unit"].strip() for one in found}) > 1:
        return False
    if any(re.match(r"0\d", one["whole"]) for one in found):  # as in a postcode
        return False
    is_whole = all(one["digits"].isdecimal() for one in found)
    return len(coded) > (_MANY if is_whole else min(_MANY, n_values / 2))


def _is_of_objects(X: Any, column: int) -> bool:
    if isinstance(X, np.ndarray):
        return X.dtype.kind == "O"
    return hasattr(X, "dtypes") and list(X.dtypes)[column] == np.dtype(object)


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


def _read_column(X: Any, column: int, *, refuse: bool = True) -> NDArray[np.float64]:
    name = (column_names(X) or range(X.shape[1]))[column]
    values = np.asarray(_safe_indexing(X, [column], axis=1))
    return read_numbers(values, [name], refuse=refuse)[:, 0]


def _is_text(X: Any, column: int) -> bool:
    """Check whether a column holds text and no value that can be read as a number."""
    try:
        _read_column(X, column)
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
    return _columns_of(X, "biuf")


def _columns_of(X: Any, kinds: str) -> NDArray[np.bool_]:
    """Find the columns of some kinds of types, without reading their values."""
    if not is_frame(X):
        return np.full(X.shape[1], X.dtype.kind in kinds)
    # Without rows, the arrays that libraries make of their types lack no value.
    no_rows = _safe_indexing(X, slice(0, 0))
    found = [
        np.asarray(_safe_indexing(no_rows, column, axis=1)).dtype.kind
        for column in range(X.shape[1])
    ]
    return np.isin(found, list(kinds))


def _values(X: Any, column: int) -> list[Any]:
    return np.asarray(_safe_indexing(X, column, axis=1)).tolist()


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and bool(value == value)


def _is_word(value: Any) -> bool:
    """Check whether a value is text that no number can be read from."""
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False

"""Columns of numbers, of text and of objects: private ones beside public ones."""

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

__all__ = ["check_column_types", "holds_text", "read_like_public"]


def read_like_public(X, X_public):
    """Read private columns as numbers where public rows hold numbers.

    One odd value in a private row must not decide how the others are read.

    Parameters
    ----------
    X : {ndarray, csr matrix, dataframe} of shape (n_rows, n_features)
        Private features, from `check_features`.

    X_public : {ndarray, csr matrix, dataframe} of shape (n_public, n_features)
        Public features, from `check_features`.

    Returns
    -------
    X : {ndarray, csr matrix, dataframe} of shape (n_rows, n_features)
        Where a column of `X_public` is of numbers, one of text or objects is read as
        numbers, with NaN for what says none; where it is of objects that are numbers,
        NaN takes the place of words only; where it is of text, what is no text in one
        of objects is spelled. Others are as they were.
    """
    if sp.issparse(X) or (not is_frame(X) and X.dtype.kind not in "OUST"):
        return X
    if not is_frame(X) and X_public.dtype.kind in "biuf":
        numbers = read_numbers(X)
        # Networks take one type of numbers. (Integers have no room for missing ones.)
        with np.errstate(over="ignore"):
            return (
                numbers.astype(X_public.dtype)
                if X_public.dtype.kind == "f"
                else numbers
            )
    if len(X.shape) != 2:
        return X
    is_typed = _numeric_columns(X_public)
    for column in np.flatnonzero(~_numeric_columns(X)):
        public = _values(X_public, column)
        if is_typed[column] and _holds_numbers(public):
            read = _read_column(X, column)
        elif _holds_numbers(public):
            read = without_words(_values(X, column))
        elif holds_text(np.array(public, dtype=object)) and _is_of_objects(X, column):
            read = as_words(_values(X, column))
        else:
            continue
        X = _with_column(X, column, read)
    return X


def check_column_types(X: Any, X_public: Any) -> None:
    """Raise if a column is numbers on one side, and words on the other.

    All else may work: integers beside floats, categories beside text, numbers that are
    written as text, or a column without a value. One private value decides nothing,
    unless all others say that the column is text.
    """
    is_numeric = _numeric_columns(X)
    for column in np.flatnonzero(is_numeric != _numeric_columns(X_public)):
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
    """Tell whether any value is text, which is for the teachers to encode."""
    return X.dtype.kind in "US" or (
        X.dtype.kind == "O" and any(isinstance(value, str) for value in X.ravel())
    )


def _is_of_objects(X, column):
    if isinstance(X, np.ndarray):
        return X.dtype.kind == "O"
    return hasattr(X, "dtypes") and list(X.dtypes)[column] == np.dtype(object)


def _with_column(X, column, values):
    if hasattr(X, "with_columns"):  # polars
        return X.with_columns(type(X[:, 0])(X.columns[column], values))
    if hasattr(X, "isetitem"):  # pandas
        X = X.copy(deep=False)
        X.isetitem(column, values)
    elif isinstance(X, np.ndarray):
        X = X.astype(object)
        X[:, column] = values
    return X


def _read_column(X, column):
    name = (column_names(X) or range(X.shape[1]))[column]
    values = np.asarray(_safe_indexing(X, [int(column)], axis=1))
    return read_numbers(values, [name])[:, 0]


def _is_text(X, column):
    """Tell whether a column has words, and nothing that a number can be read from."""
    try:
        _read_column(X, column)
    except ValueError:
        return True
    return False


def _holds_numbers(values):
    """Tell whether all objects are numbers, but for gaps."""
    return any(map(_is_number, values)) and not any(
        isinstance(value, str) for value in values
    )


def _numeric_columns(X):
    """Tell which columns are declared to be numeric, without a look at their values."""
    if not is_frame(X):
        return np.full(X.shape[1], X.dtype.kind in "biuf")
    # Every library makes an array of its own types; that of no rows has no gaps.
    no_rows = _safe_indexing(X, slice(0, 0))
    kinds = [
        np.asarray(_safe_indexing(no_rows, column, axis=1)).dtype.kind
        for column in range(X.shape[1])
    ]
    return np.isin(kinds, list("biuf"))


def _values(X, column):
    return np.asarray(_safe_indexing(X, int(column), axis=1)).tolist()


def _is_number(value):
    return isinstance(value, Real) and bool(value == value)


def _is_word(value):
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False

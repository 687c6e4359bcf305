"""Features as teachers and student can take them, private and public ones alike."""

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, validate_data

from sklearn_pate._inputs._column_types import check_column_types, holds_text
from sklearn_pate._inputs._containers import check_container, column_names
from sklearn_pate._inputs._odd_rows import (
    INFINITE,
    MISSING,
    is_frame,
    odd_rows,
    read_numbers,
)

__all__ = [
    "check_features",
    "check_held_out",
    "check_numbers",
    "check_public_features",
]


def check_features(estimator, X, *, reset, name="X", private=False):
    """Check features as teachers and student can take them.

    Frames are handed on as they are, so that a ColumnTransformer inside a teacher still
    finds its columns by name.

    Parameters
    ----------
    estimator : estimator
        Holds ``n_features_in_`` and ``feature_names_in_``.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Features.

    reset : bool
        Set the two attributes, or compare with them.

    name : str, default="X"
        What messages call the features.

    private : bool, default=False
        Whether no value of them may raise, as that would tell about its row. Values are
        then read by `read_like_public`, or left to the teachers.

    Returns
    -------
    X : {ndarray, csr matrix, dataframe} of shape (n_rows, n_features)
        The same features.

    Raises
    ------
    ValueError
        If they are of another shape, type or container than expected, or named in
        another way or order than those before.
    """
    check_container(name, X)
    if not is_frame(X):
        tags = get_tags(estimator).input_tags
        if not sp.issparse(X):
            X = _as_array(X) if private else _as_public_array(X)
        finite = "allow-nan" if tags.allow_nan else True
        X = check_array(
            X,
            accept_sparse="csr" if tags.sparse else False,
            ensure_all_finite=False if private else finite,
            dtype=None if private or holds_text(X) else "numeric",
            allow_nd=True,
            estimator=estimator,
            input_name=name,
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    check_column_names(estimator, X, reset=reset, name=name)
    if X.shape[0] == 0:
        raise ValueError("Found array with 0 sample(s); pass at least one row.")
    return X


def check_numbers(estimator, X, *, reset, dtype, allow_nd=False):
    """Check private features of which numbers are needed, each read on its own.

    Parameters
    ----------
    estimator : estimator
        Holds ``n_features_in_`` and ``feature_names_in_``.

    X : {array-like, dataframe} of shape (n_rows, ...)
        Features.

    reset : bool
        Set the two attributes, or compare with them.

    dtype : dtype
        A type of floating-point numbers.

    allow_nd : bool, default=False
        Whether rows may have any shape.

    Returns
    -------
    X : ndarray of dtype of shape (n_rows, ...)
        Numbers, perhaps infinite; NaN for what is missing, and for text among numbers.
    """
    check_container("X", X)
    received = X
    if not sp.issparse(X):
        X = X if is_frame(X) else _as_array(X)
        # Integers too: from objects, they are rounded to float64 first.
        if is_frame(X) or (X.ndim > 1 and X.size and X.dtype.kind in "biuOUST"):
            X = read_numbers(X)
    # Of a number that is too large for float32, numpy would warn.
    with np.errstate(over="ignore"):
        X = check_array(
            X,
            dtype=dtype,
            ensure_all_finite=False,
            allow_nd=allow_nd,
            estimator=estimator,
            input_name="X",
        )
    names = received if is_frame(received) else X
    validate_data(estimator, names, reset=reset, skip_check_array=True)
    check_column_names(estimator, names, reset=reset)
    return X


def check_public_features(estimator, X_public, X=None):
    """Check public features, and that what teachers learn from `X` applies to them.

    Parameters
    ----------
    estimator : estimator
        Holds ``n_features_in_`` and ``feature_names_in_``, which are set if there is no
        `X`.

    X_public : {array-like, sparse matrix, dataframe} of shape (n_public, n_features)
        Public features, as received.

    X : {ndarray, csr matrix, dataframe} of shape (n_rows, n_features), default=None
        Private features, checked.

    Returns
    -------
    X_public : {ndarray, csr matrix, dataframe} of shape (n_public, n_features)
        The same public features.

    Raises
    ------
    ValueError
        If no teacher could be asked about them, or the student could not learn from
        them. It says no more of `X` than its shape and the names and types of its
        columns.
    """
    check_container("X_public", X_public)
    received = type(X_public).__name__
    if not (is_frame(X_public) or sp.issparse(X_public)):
        try:
            X_public = _as_public_array(X_public)
        except ValueError as error:
            raise ValueError(
                f"X_public is a {received} that is no array; pass rows of one length."
            ) from error
    shape = tuple(X_public.shape)
    if len(shape) < 2 or 0 in shape[:2]:
        raise ValueError(
            f"X_public is a {received} of shape {shape}; pass the public rows "
            "themselves, of shape (n_public, n_features)."
        )
    # Of frames with names, we can tell which columns are wrong.
    if (
        X is not None
        and not hasattr(estimator, "feature_names_in_")
        and shape[1:] != X.shape[1:]
    ):
        raise ValueError(
            f"X_public has shape {shape} and X {X.shape}; pass rows with the same "
            "features in both."
        )
    try:
        X_public = check_features(estimator, X_public, reset=X is None, name="X_public")
        _check_values_of_frame(estimator, X_public, "X_public")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X_public has shape {shape} and cannot be used: {str(error).rstrip()} "
            "Prepare it like the private rows, in columns, types and missing values."
        ) from error
    if X is not None and len(shape) == 2 and not sp.issparse(X):
        check_column_types(X, X_public)
    return X_public


def check_column_names(estimator, X, *, reset, name="X"):
    """Check the order of columns whose names are no strings.

    scikit-learn compares names that are strings, and passes over all others: numbers,
    or the tuples of a pandas MultiIndex.

    Parameters
    ----------
    estimator : estimator
        Remembers such names, as strings, in a private attribute.

    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
        Features.

    reset : bool
        Remember the names, or compare with them.

    name : str, default="X"
        What messages call the features.

    Raises
    ------
    ValueError
        If the columns of two dataframes have other names, or another order.
    """
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


def check_held_out(estimator, X):
    """Check rows that were set apart to be public.

    Parameters
    ----------
    estimator : estimator
        Holds ``n_features_in_`` and ``feature_names_in_``.

    X : {ndarray, csr matrix, dataframe} of shape (n_public, n_features)
        Rows of the private features, from `check_features`.

    Returns
    -------
    X_public : {ndarray, csr matrix, dataframe} of shape (n_public, n_features)
        The same rows, checked like public ones.
    """
    name = "X (a row that public_size makes public)"
    X = check_features(estimator, X, reset=False, name=name)
    _check_values_of_frame(estimator, X, name)
    return X


def _as_public_array(X):
    """Return an array, of objects where a list holds text."""
    array = np.asarray(X)
    if array.dtype.kind in "US" and not hasattr(X, "dtype"):
        return np.asarray(X, dtype=object)
    return array


def _as_array(X):
    """Return an array, of objects where no type is declared and values would set it."""
    if hasattr(X, "dtype"):
        return np.asarray(X)
    array = np.asarray(X, dtype=object)
    if array.ndim == 1 and any(isinstance(one, (list, tuple)) for one in array):
        raise ValueError("The rows of X differ in length; pass rows of one length.")
    return array


def _check_values_of_frame(estimator, X, name):
    """Raise if a frame has values that an estimator behind it is known to refuse."""
    if is_frame(X) and estimator._takes_missing() is False:
        odd = np.bitwise_or.reduce(odd_rows(X))
        if odd & (MISSING | INFINITE):
            what = "NaN" if odd & MISSING else "infinity"
            raise ValueError(f"Input {name} contains {what}.")

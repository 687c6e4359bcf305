"""Features as teachers and student can take them, private and public ones alike."""

from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_array, validate_data

from sklearn_pate._containers import check_container, column_names

__all__ = [
    "check_column_names",
    "check_features",
    "check_public_features",
    "is_frame",
]


def check_features(estimator, X, *, reset, name="X"):
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
            X = np.asarray(X)
        X = check_array(
            X,
            accept_sparse="csr" if tags.sparse else False,
            ensure_all_finite="allow-nan" if tags.allow_nan else True,
            dtype=None if _holds_text(X) else "numeric",
            allow_nd=True,
            estimator=estimator,
            input_name=name,
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    check_column_names(estimator, X, reset=reset, name=name)
    if X.shape[0] == 0:
        raise ValueError("Found array with 0 sample(s); pass at least one row.")
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
        If no teacher could be asked about them. It says no more of `X` than its shape
        and the names and types of its columns.
    """
    check_container("X_public", X_public)
    received = type(X_public).__name__
    if not (is_frame(X_public) or sp.issparse(X_public)):
        try:
            X_public = np.asarray(X_public)
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
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X_public has shape {shape} and cannot be used: {str(error).rstrip()} "
            "Prepare it like the private rows, in columns, types and missing values."
        ) from error
    if X is not None and len(shape) == 2 and not sp.issparse(X):
        _check_column_types(X, X_public)
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


def is_frame(X):
    """Tell whether features are in a dataframe, of any library.

    Parameters
    ----------
    X : object
        Features.

    Returns
    -------
    is_frame : bool
        True for a table with named columns.
    """
    return hasattr(X, "columns") or hasattr(X, "__dataframe__")


def _holds_text(X):
    # Text is for the teachers to encode; other objects should be numbers.
    return X.dtype.kind in "US" or (
        X.dtype.kind == "O" and any(isinstance(value, str) for value in X.ravel())
    )


def _check_column_types(X, X_public):
    """Raise if a column is numbers on one side, and words on the other.

    All else may work: integers beside floats, categories beside text, numbers that are
    written as text, or a column without a value.
    """
    is_numeric = _numeric_columns(X)
    for column in np.flatnonzero(is_numeric != _numeric_columns(X_public)):
        sides = [("X", X), ("X_public", X_public)]
        (numeric, numbers), (other, words) = (
            sides if is_numeric[column] else sides[::-1]
        )
        if any(map(_is_number, _values(numbers, column))) and any(
            map(_is_word, _values(words, column))
        ):
            name = (column_names(X) or range(X.shape[1]))[column]
            raise ValueError(
                f"Column {name!r} is numeric in {numeric} and text in {other}, which "
                "no number can be read from; give it the same type in both."
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

"""Features as teachers and student can take them, private and public ones alike."""

from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_array, validate_data

from sklearn_pate._inputs._containers import check_container, column_names
from sklearn_pate._inputs._odd_rows import (
    INFINITE,
    MISSING,
    as_words,
    is_frame,
    odd_rows,
    read_numbers,
    without_words,
)

__all__ = [
    "check_features",
    "check_held_out",
    "check_numbers",
    "check_public_features",
    "is_frame",
    "read_like_public",
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
            dtype=None if private or _holds_text(X) else "numeric",
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
        elif _holds_text(np.array(public, dtype=object)) and _is_of_objects(X, column):
            read = as_words(_values(X, column))
        else:
            continue
        X = _with_column(X, column, read)
    return X


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


def _holds_text(X):
    # Text is for the teachers to encode; other objects should be numbers.
    return X.dtype.kind in "US" or (
        X.dtype.kind == "O" and any(isinstance(value, str) for value in X.ravel())
    )


def _check_column_types(X, X_public):
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

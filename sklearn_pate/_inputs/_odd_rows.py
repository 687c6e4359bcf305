"""Rows with values that an estimator may refuse: missing, infinite, no number.

Whether a fit raises, and how other rows are read, must not depend on one private row.
So each value is read on its own, and rows are dropped where one teacher sees them.
"""

import math
import warnings
from decimal import Decimal
from numbers import Number, Real

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import _safe_indexing, get_tags

from sklearn_pate._inputs._containers import column_names

__all__ = [
    "HUGE",
    "INFINITE",
    "MISSING",
    "as_words",
    "finite_or_default",
    "input_tags",
    "is_frame",
    "odd_rows",
    "read_numbers",
    "takes_missing",
    "without_words",
]

#: What a row may hold; `odd_rows` adds them up.
MISSING, INFINITE, HUGE = 1, 2, 4

# The square of a larger number is infinite as float32.
_LARGEST = 1e18
# What their classifiers do with missing values is in their tags.
_HONEST_TAGS = {"sklearn", "skorch", "sklearn_pate"}
# They take missing values, and hand them on.
_SCALERS = (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
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


def takes_missing(estimator):
    """Tell whether an estimator takes missing values in arrays of numbers.

    Parameters
    ----------
    estimator : estimator or None
        Fitted or not. None stands for the comparison of rows, which takes none.

    Returns
    -------
    takes : bool or None
        As its tag ``allow_nan`` says; what wraps estimators takes them if all of these
        do. A Pipeline does if all steps do, or those up to an imputer of scikit-learn.
        None if that cannot be told, as behind a ColumnTransformer, or for a `fit` that
        is neither scikit-learn's nor skorch's and has the default tag.
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
            if type(step).__module__.startswith("sklearn.impute"):
                return True
            if step is not steps[-1] and not isinstance(step, _SCALERS):
                return None
        return True
    tags = get_tags(estimator)
    if tags.input_tags.allow_nan:
        return True
    inner = _wrapped(estimator)
    if inner:
        taken = {takes_missing(one) for one in inner}
        return None if None in taken else False not in taken
    if _package_of_fit(estimator) not in _HONEST_TAGS:
        return None
    parts = getattr(
        estimator, "transformers", getattr(estimator, "transformer_list", 0)
    )
    return None if tags.no_validation or parts else False


def input_tags(estimator):
    """Return input tags, with missing values as `takes_missing` has it.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.

    Returns
    -------
    tags : InputTags
        ``allow_nan`` is True where a Pipeline holds an imputer, too.
    """
    tags = get_tags(estimator).input_tags
    tags.allow_nan = takes_missing(estimator) is True
    return tags


def odd_rows(X):
    """Find rows that hold values which an estimator may refuse.

    Parameters
    ----------
    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, ...)
        Rows.

    Returns
    -------
    odd : ndarray of uint8 of shape (n_rows,)
        0, or a sum of `MISSING`, `INFINITE` and `HUGE` (its square is not finite as
        float32), for each row by that row alone.
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


def read_numbers(X, names=None):
    """Read each value as a number, whatever the others are.

    Parameters
    ----------
    X : {ndarray, dataframe} of shape (n_rows, ...)
        Rows. Text is read where it says a number.

    names : list, default=None
        What an error calls the columns.

    Returns
    -------
    numbers : ndarray of float64 of shape (n_rows, ...)
        NaN for what is missing, and for text or dates among numbers.

    Raises
    ------
    TypeError
        If a value is a container, such as a dict.

    ValueError
        If there is text in a column and no number, so that the column is text.
    """
    if is_frame(X):
        names = names or column_names(X) or range(X.shape[1])
        columns = [
            _read_column(_column(X, index), name) for index, name in enumerate(names)
        ]
        return np.column_stack(columns)
    if X.dtype.kind in "biuf":
        return X.astype(np.float64)
    columns = X.reshape(len(X), -1).T
    names = names or range(len(columns))
    read = [_read_column(*one) for one in zip(columns, names, strict=True)]
    return np.column_stack(read).reshape(X.shape)


def without_words(values):
    """Replace what is neither a number nor missing.

    Parameters
    ----------
    values : list
        Of one column of numbers.

    Returns
    -------
    values : ndarray of object of shape (n_rows,)
        With NaN in its place, or the number that a text says.
    """
    kept = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        is_kept = isinstance(value, Number) or _is_missing(value)
        kept[row] = value if is_kept else _read_value(value)
    return kept


def finite_or_default(features, default):
    """Put a public row in the place of each row that is not finite.

    Parameters
    ----------
    features : ndarray of float64 of shape (n_rows, n_features)
        Private rows, as `read_numbers` or a representation made them.

    default : ndarray of shape (n_features,)
        Finite, and made of public facts alone.

    Returns
    -------
    features : ndarray of float64 of shape (n_rows, n_features)
        Finite. Each row depends on that row alone, bit by bit: it is as it was, or the
        default.
    """
    is_finite = np.isfinite(features).all(axis=1, keepdims=True)
    return np.where(is_finite, features, default)


def as_words(values):
    """Spell what is neither text nor missing.

    Parameters
    ----------
    values : list
        Of one column of text.

    Returns
    -------
    values : ndarray of object of shape (n_rows,)
        Text, and what is missing.
    """
    spelled = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        is_nan = isinstance(value, Real) and value != value
        is_kept = isinstance(value, str) or _is_missing(value) or is_nan
        spelled[row] = value if is_kept else _spelled(value)
    return spelled


def _spelled(value):
    try:
        return str(value)
    except ValueError:  # a number of thousands of digits
        return ""


def _wrapped(estimator):
    """List the estimators that another one is made of."""
    parts = [getattr(estimator, "estimator", None)]
    parts += [part for _, part in getattr(estimator, "estimators", None) or []]
    return [
        part
        for part in parts
        if hasattr(part, "get_params") and not isinstance(part, type)
    ]


def _package_of_fit(estimator):
    """Name the package that an estimator has its `fit` from."""
    for kind in type(estimator).__mro__:
        if "fit" in vars(kind):
            return kind.__module__.partition(".")[0]
    return None


def _column(X, index):
    return np.asarray(_safe_indexing(X, index, axis=1))


def _odd_values(values):
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


def _odd_object(value):
    if isinstance(value, (str, bytes)):
        return 0
    if _is_missing(value):
        return MISSING
    if not isinstance(value, (Real, Decimal)):
        return 0
    try:
        return int(_odd_values(np.float64(value)))
    except OverflowError:
        return HUGE


def _read_column(values, name):
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind in "cmM":
        raise TypeError(
            f"Column {name!r} is of type {values.dtype}; make numbers of it."
        )
    values = values.astype(object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would tell of a value
        try:
            return values.astype(np.float64)
        except (ArithmeticError, TypeError, ValueError):
            numbers = np.array([_read_value(value) for value in values.tolist()])
    if np.all(np.isnan(numbers)) and any(isinstance(one, str) for one in values):
        raise ValueError(
            f"could not convert string to float: column {name!r} is text, and holds no "
            "number; encode it, or leave it out."
        )
    return numbers


def _read_value(value):
    """Read a number from one value, NaN if it is none."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
    except (TypeError, ValueError):
        if hasattr(value, "__len__") and not isinstance(value, (str, bytes)):
            raise
        return np.nan


def _is_missing(value):
    # That of pandas refuses to be compared.
    return value is None or type(value).__name__ in ("NAType", "NaTType")

"""Representation of the rows of a table, fitted on public rows."""

from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import skew
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._odd_rows import is_frame, is_missing, to_text
from sklearn_pate.accounting._value_checks import check_count

__all__ = ["TableRepresentation"]

# More public rows change neither ranges nor principal components noticeably.
_MAX_ROWS = 20_000
# A rarer category, and those beyond the most frequent ones, share one column.
_MIN_FREQUENCY = 0.002
_MAX_CATEGORIES = 50
# A number whose skewness exceeds this is replaced by its logarithm.
_SKEWNESS = 2.0
# A number between 0 and 1 with a smaller standard deviation is divided by this.
_SMALLEST_DEVIATION = 0.1
_MAX_COMPONENTS = 30
# Numbers beyond count as this one, so that differences of two are finite.
_LARGEST = 1e150
# A column with a smaller standard deviation is constant.
_NEGLIGIBLE = 1e-6
_EPOCH = date(1970, 1, 1).toordinal()
# Rows of a product that are computed at once, so that they stay in the cache.
_ROWS_AT_ONCE = 512


class TableRepresentation(TransformerMixin, BaseEstimator):
    """Principal components of the columns of a table, fitted on public rows.

    Pass it as ``representation=`` to :class:`~sklearn_pate.PATEClassifier`: teachers
    with few rows learn more from a few numbers per row than from many columns. It is
    fitted on public rows only, so it has no privacy cost, and then transforms private,
    public and new rows, each on its own. Columns may be numbers, text, categories,
    booleans and dates, with missing values. Values that no public row has, such as
    infinity or a new category, neither raise an error nor warn.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        Largest number of components. "auto" means 30. There are never more than public
        rows or encoded columns. None returns the encoded columns themselves, as a
        sparse matrix for sparse X.

    random_state : int, RandomState instance or None, default=None
        Seed of the choice of 20,000 rows if more are given, and of randomised principal
        components, which wide tables have. Pass an int for the same components in every
        fit.

    Attributes
    ----------
    n_components_ : int
        Number of columns of the result.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if X is a dataframe with string column names.

    Notes
    -----
    All statistics are those of public rows. In order:

    1. A column of a dataframe or of an array of objects holds categories if it is
       categorical or one of its public values is text, numbers otherwise. Dates are
       numbers of days. Text in a column of numbers is read as a number if it is one,
       and is missing otherwise.
    2. Numbers are clipped to the public range and scaled to [0, 1]. Missing ones become
       the median, with an additional column of zeros and ones if a public row lacks the
       number.
    3. Where the skewness exceeds 2 in size, the distance z from the end of the range
       with most of the rows becomes log(1 + z / u) / log(1 + 1 / u), where u is the
       median of the distances above 0. Counts and amounts keep both their many zeros
       and their largest values apart.
    4. Categories become columns of zeros and ones; missing is a category. The
       49 most frequent ones have a column each, if they have 0.2 % of the rows, and the
       others share one, to which new ones belong if it exists.
    5. Numbers with more than two public values are divided by their standard deviation,
       or by 0.1 if it is smaller. Without, informative columns of small variance would
       be lost; zeros and ones stay as they are, as rare values would get too much
       weight.
    6. Principal components (:class:`~sklearn.decomposition.PCA`).

    In a sparse matrix, zeros stay zeros: a missing value is 0, columns are divided by
    their largest absolute value instead of steps 2 to 5, and
    :class:`~sklearn.decomposition.TruncatedSVD` takes the place of step 6.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_pate.students import TableRepresentation
    >>> X_public = pd.DataFrame(
    ...     {"age": [31, 45, None, 62], "work": ["public", "private", "private", None]}
    ... )
    >>> representation = TableRepresentation(random_state=0).fit(X_public)
    >>> X = pd.DataFrame({"age": [float("inf")], "work": ["unknown"]})
    >>> representation.transform(X).shape
    (1, 4)
    """

    #: No missing value is left in the result.
    _fills_missing = True
    #: A row that is transformed leaves nothing behind.
    _keeps_no_row = True

    def __init__(
        self, n_components: int | str | None = "auto", random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn ranges, categories and components of public rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Public rows.

        y : None
            Ignored.

        Returns
        -------
        self : TableRepresentation
            Fitted.

        Raises
        ------
        ValueError
            If `n_components` is invalid.
        """
        check_count("n_components", self.n_components, also=("auto", None))
        X = check_features(self, X, reset=True, private=True)
        random_state = check_random_state(self.random_state)
        if X.shape[0] > _MAX_ROWS:
            rows = random_state.choice(X.shape[0], _MAX_ROWS, replace=False)
            X = _safe_indexing(X, np.sort(rows))
        encoder = _SparseColumns if sp.issparse(X) else _TableColumns
        self._columns = encoder().fit(X)
        encoded = self._columns.transform(X)
        deviation = StandardScaler(with_mean=False).fit(encoded).var_ ** 0.5
        self._kept = np.flatnonzero(deviation > _NEGLIGIBLE)
        self._components = None
        self.n_components_ = max(1, len(self._kept))
        # TruncatedSVD refuses a single column, which is its own component.
        fewest = 2 if sp.issparse(X) else 1
        if self.n_components is not None and len(self._kept) >= fewest:
            from sklearn.decomposition import PCA, TruncatedSVD  # slow to import

            wanted = (
                _MAX_COMPONENTS if self.n_components == "auto" else self.n_components
            )
            method = TruncatedSVD if sp.issparse(X) else PCA
            self._components = method(
                min(wanted, len(self._kept), X.shape[0]), random_state=random_state
            ).fit(encoded[:, self._kept])
            self.n_components_ = len(self._components.components_)
        return self

    def transform(self, X: Any) -> Any:
        """Compute the components of rows, each row on its own, to the last bit.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private, public or new rows.

        Returns
        -------
        components : ndarray of shape (n_rows, `n_components_`)
            Finite numbers. Sparse for sparse X if `n_components` is None.
        """
        check_is_fitted(self)
        X = check_features(self, X, reset=False, private=True)
        if not len(self._kept):
            return np.zeros((X.shape[0], 1))
        columns: Any = self._columns.transform(X)[:, self._kept]
        if self._components is None:
            if self.n_components is not None and sp.issparse(columns):
                return columns.toarray()
            return columns
        if sp.issparse(columns):  # scipy adds up each row on its own
            return self._components.transform(columns)
        return _row_products(
            columns - self._components.mean_, self._components.components_.T
        )

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the result's columns.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of str
            ``"table0"``, ``"table1"`` and so on.
        """
        check_is_fitted(self)
        names = [f"table{place}" for place in range(self.n_components_)]
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


class _TableColumns:
    """Columns of scaled numbers, and of zeros and ones for categories."""

    def fit(self, X: Any) -> Self:
        self._is_category = _holds_categories(X)
        numbers, words = self._read(X)
        self._numbers = _Numbers().fit(numbers)
        self._encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=_MIN_FREQUENCY,
            max_categories=_MAX_CATEGORIES,
            sparse_output=False,
        )
        if self._is_category.any():
            self._encoder.fit(words)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        numbers, words = self._read(X)
        columns = [self._numbers.transform(numbers)]
        if self._is_category.any():
            columns.append(self._encoder.transform(words))
        return np.hstack(columns)

    def _read(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
        """Split rows into numbers, NaN if missing, and categories as text."""
        if not is_frame(X):
            X = X.toarray() if sp.issparse(X) else X.reshape(len(X), -1)
        if not is_frame(X) and X.dtype.kind in "biuf" and not self._is_category.any():
            return X.astype(np.float64), np.empty((len(X), 0), dtype=object)
        numbers, words = [], []
        for column, is_category in enumerate(self._is_category):
            values = np.asarray(_safe_indexing(X, column, axis=1))
            if is_category:
                words.append([_word(value) for value in values.tolist()])
            else:
                numbers.append(_to_numbers(values))
        n_rows = X.shape[0]
        return (
            np.array(numbers, dtype=np.float64).reshape(-1, n_rows).T,
            np.array(words, dtype=object).reshape(-1, n_rows).T,
        )


class _Numbers:
    """Scaled numbers, and columns that tell which are missing."""

    def fit(self, X: NDArray[np.float64]) -> Self:
        finite = np.where(np.isfinite(X), np.clip(X, -_LARGEST, _LARGEST), np.nan)
        self._kept = np.flatnonzero(~np.isnan(finite).all(axis=0))
        finite = finite[:, self._kept]
        self._low, self._high = np.nanmin(finite, axis=0), np.nanmax(finite, axis=0)
        self._median = np.nanmedian(finite, axis=0)
        self._missing = np.flatnonzero(np.isnan(X).any(axis=0))
        z = self._in_range(X)
        skewness = skew(z, axis=0)
        self._falls = skewness < -_SKEWNESS
        self._skewed = np.flatnonzero(np.abs(skewness) > _SKEWNESS)
        z[:, self._falls] = 1 - z[:, self._falls]
        self._unit = np.array([np.median(one[one > 0]) for one in z[:, self._skewed].T])
        z = self._tamed(X)
        is_binary = ((z == 0) | (z == 1)).all(axis=0)
        deviation = np.maximum(z.std(axis=0), _SMALLEST_DEVIATION)
        self._scale = np.where(is_binary, 1.0, deviation)
        return self

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.hstack([self._tamed(X) / self._scale, np.isnan(X[:, self._missing])])

    def _tamed(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers in [0, 1] without strong skewness."""
        z = self._in_range(X)
        z[:, self._falls] = 1 - z[:, self._falls]
        u = self._unit
        z[:, self._skewed] = np.log1p(z[:, self._skewed] / u) / np.log1p(1 / u)
        return z

    def _in_range(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        X = X[:, self._kept]
        X = np.clip(np.where(np.isnan(X), self._median, X), self._low, self._high)
        width = self._high - self._low
        return (X - self._low) / np.where(width > 0, width, 1)


class _SparseColumns:
    """Numbers of a sparse matrix in [-1, 1]."""

    def fit(self, X: sp.csr_matrix) -> Self:
        X = self._finite(X)
        self._low = X.min(axis=0).toarray().ravel()
        self._high = X.max(axis=0).toarray().ravel()
        return self

    def transform(self, X: sp.csr_matrix) -> sp.csr_matrix:
        X = self._finite(X)
        clipped = np.clip(X.data, self._low[X.indices], self._high[X.indices])
        largest = np.maximum(np.abs(self._low), np.abs(self._high))[X.indices]
        X.data = clipped / np.where(largest > 0, largest, 1)
        return X

    @staticmethod
    def _finite(X: sp.csr_matrix) -> sp.csr_matrix:
        X = sp.csr_array(X, dtype=np.float64, copy=True)
        X.data = np.clip(np.where(np.isnan(X.data), 0.0, X.data), -_LARGEST, _LARGEST)
        return X


def _row_products(
    rows: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute rows @ weights by the same operations for a row in any position.

    Those of a matrix product depend on the position of a row and on the number of rows.
    Here each product is rounded, and added in the order of the columns.
    """
    products = np.zeros((len(rows), weights.shape[1]))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        for column, weight in zip(rows[part].T, weights, strict=True):
            products[part] += column[:, np.newaxis] * weight
    return products


def _holds_categories(X: Any) -> NDArray[np.bool_]:
    """Find the columns of categories, by types and public values."""
    if not is_frame(X):
        X = X.reshape(len(X), -1)
        if X.dtype.kind in "biuf":
            return np.zeros(X.shape[1], dtype=bool)
    columns = (_safe_indexing(X, place, axis=1) for place in range(X.shape[1]))
    return np.array([_is_category(column) for column in columns])


def _is_category(column: Any) -> bool:
    """Check whether a column of public values is categorical or holds text."""
    values = np.asarray(column)
    if values.dtype.kind in "biufmM":
        return str(getattr(column, "dtype", None)) == "category"
    return any(
        not (isinstance(value, (Real, Decimal, date)) or is_missing(value))
        for value in values.tolist()
    )


def _word(value: Any) -> str:
    """Convert a category to text, the same for a whole number of any type."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return to_text(value)


def _to_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Read values as numbers, dates as days, each on its own; NaN if that fails."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind in "mM":
        seconds = values.astype(f"{values.dtype.kind}8[s]").astype(np.float64)
        return np.where(np.isnat(values), np.nan, seconds / 86400)
    return np.array([_number(value) for value in values.tolist()], dtype=np.float64)


def _number(value: Any) -> float:
    """Read one object as a number, or as NaN if it is none."""
    try:
        if isinstance(value, datetime):
            days = value.toordinal() - _EPOCH
            minutes = (days * 24 + value.hour) * 60 + value.minute
            return (minutes * 60 + value.second) / 86400
        if isinstance(value, date):
            return float(value.toordinal() - _EPOCH)
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
    except (TypeError, ValueError):
        return np.nan

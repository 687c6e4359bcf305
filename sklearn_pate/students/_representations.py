"""Representations of tables and images that are fitted on public rows."""

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.stats import skew
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.preprocessing import OneHotEncoder, StandardScaler, normalize
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._inputs._containers import (
    channels_first,
    column_of,
    is_frame,
    read_input_shape,
)
from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._known_columns import (
    CATEGORIES,
    kind_of_column,
    to_numbers,
    to_word,
)
from sklearn_pate._inputs._odd_values import of_each
from sklearn_pate.accounting._value_checks import check_count, check_option
from sklearn_pate.students._basis import ScoreBasis, kept_variance, row_products

# More public rows change neither ranges nor principal components noticeably.
_MAX_ROWS = 20_000
# A rarer category, and those beyond the most frequent ones, share one column.
_MIN_FREQUENCY = 0.002
_MAX_CATEGORIES = 50
# A number whose skewness exceeds this is replaced by its logarithm.
_SKEWNESS = 2.0
# A number between 0 and 1 with a smaller standard deviation is divided by this.
_SMALLEST_DEVIATION = 0.1
# Most components, and with functions of distances; public rows for each of these.
_MAX_COMPONENTS, _MAX_FUNCTIONS, _ROWS_PER_FUNCTION = 30, 500, 10
# Numbers beyond count as this one, so that differences of two are finite.
_LARGEST = 1e150
# A column with a smaller standard deviation is constant.
_NEGLIGIBLE = 1e-6
# More public images change neither filters nor components noticeably.
_MAX_IMAGES = 10_000
# Side of a patch in pixels, and patches that filters are learned from.
_SIDE, _N_PATCHES = 6, 200_000
# Variance that is added: to that of a patch, relative to the mean, and to that of a
# direction of normalised patches.
_FLAT, _WHITEN = 0.01, 0.1
# Response of a filter below which it is 0, of either sign.
_THRESHOLD = 0.5
# Regions along each side over which responses are averaged.
_N_REGIONS = 2
# Principal components that the final ones are made of.
_N_PRINCIPAL = 1200
# Changed copies of an image: their number, smallest area, largest logarithms of the
# ratio of the sides and of the contrast of a channel.
_N_COPIES, _AREA, _RATIO, _CONTRAST = 4, 0.4, 0.15, 0.5
# Variance within images that is added, relative to its mean.
_RIDGE = 0.01
_IMAGES_AT_ONCE = 4


class TableRepresentation(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Principal components of the columns of a table, fitted on public rows.

    As ``representation=`` of a private classifier, the transformer lets teachers with
    few rows learn from few numbers per row. The transformer has no privacy cost, as it
    is fitted on public rows only and transforms each row independently. Columns may be
    numbers, text, categories, booleans, dates and times, with missing values. New
    values, such as infinity or a new category, cause no error and no warning.

    Parameters
    ----------
    n_components : int, "auto" or None, default="auto"
        Largest number of components. "auto" is 30, or for ``basis="rbf"`` 500, but at
        most a tenth of the number of public rows. With None, the encoded columns are
        returned, as a sparse matrix if X is sparse.

    basis : {"linear", "rbf"}, default="linear"
        "linear" returns principal components. "rbf" adds functions of the distances to
        cluster means of public rows, for curved decision boundaries. Distances of
        sparse rows are those of 30 components.

    random_state : int, RandomState instance or None, default=None
        Seed of a sample of 20,000 rows, of the clusters of "rbf", and of randomised
        principal components of wide tables. Pass an int for equal components in every
        fit.

    codes : CodeLogOdds, default=None
        Log-odds of codes, which are added to the encoded columns. Private classifiers
        with the parameter `codes` set it by their noisy counts, whose privacy cost is
        part of theirs.

    Attributes
    ----------
    n_components_ : int
        Number of columns of the result.

    kept_variance_ : float
        Share of the variance of the encoded columns that the components keep. 1 for
        sparse rows, where the share is not computed.

    rare_shares_ : dict
        Share of public rows by column number, whose category has no column of its own.

    n_features_in_ : int
        Number of columns.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the columns, if X is a dataframe with string column names.

    Notes
    -----
    All statistics are computed from public rows, in these steps:

    1. A column of a dataframe, or of an array of objects, has categories if its type is
       categorical or a public value is text. All other columns have numbers. Dates, the
       starts of periods, and durations become numbers of days, and times of a day
       become seconds. Text in a column of numbers is parsed as a number, or counts as
       missing.
    2. Numbers are clipped to the public range and scaled to [0, 1]. Missing numbers
       become the median. If any public row has no number in a column, a further column
       of zeros and ones marks missing numbers.
    3. If the absolute skewness exceeds 2, let z be the distance of a number from the
       end of the range with most rows. The distance z becomes log(1 + z / u) / log(1 +
       1 / u), where u is the median of the positive distances. This step suits counts
       and amounts with many zeros and few large values.
    4. Categories become columns of zeros and ones; a missing value is a category. Each
       of the 49 most frequent categories has a column, if at least 0.2 % of the public
       rows have the category. Rarer categories and new categories share one column, if
       public rows have rarer categories.
    5. Columns of numbers with more than two public values are divided by the standard
       deviation, or by 0.1 if the standard deviation is smaller. Columns of zeros and
       ones are not scaled, as rare values would get too much weight.
    6. Principal components are computed (:class:`~sklearn.decomposition.PCA`). "rbf"
       adds functions of distances d, in order of decreasing smoothness, by Nystroem's
       method for the kernel exp(-gamma d^2). Here, gamma is three times the inverse of
       the median squared distance. On public rows, components are uncorrelated with
       mean 0, and the k-th component has variance 1 / k.

    In a sparse matrix, zeros stay zeros, and a missing value counts as 0. Instead of
    steps 2 to 5, each column is divided by its largest absolute value. Instead of step
    6, :class:`~sklearn.decomposition.TruncatedSVD` is used.

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

    __module__ = "sklearn_pate.students"  # its name in files

    #: Missing and infinite values are replaced, not refused.
    _reads_any_value = True
    #: No missing value is left in the result.
    _fills_missing = True
    #: A row that is transformed leaves nothing behind.
    _keeps_no_row = True
    #: No bit of the result of a row depends on others.
    _keeps_rows_apart = ()
    #: Numbers may be text, and categories of any type.
    _reads_any_type = True
    #: Of stored representations without codes.
    codes: Any = None

    def __init__(
        self,
        n_components: int | str | None = "auto",
        basis: Literal["linear", "rbf"] = "linear",
        random_state: Any = None,
        codes: Any = None,
    ) -> None:
        self.n_components = n_components
        self.basis = basis
        self.random_state = random_state
        self.codes = codes

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
            If a parameter is invalid, or inconsistent with X.
        """
        check_count("n_components", self.n_components, also=("auto", None))
        check_option("basis", self.basis, ("linear", "rbf"))
        if self.basis == "rbf" and self.n_components is None:
            raise ValueError(
                "n_components=None adds no functions of basis='rbf'; set a number or "
                "'auto', or use basis='linear'."
            )
        if not (self.codes is None or type(self.codes) is CodeLogOdds):
            raise ValueError(
                f"codes={type(self.codes).__name__} cannot be used; private "
                "classifiers set the log-odds of codes, so leave codes=None."
            )
        X = check_features(self, X, reset=True, private=True)
        random_state = check_random_state(self.random_state)
        if X.shape[0] > _MAX_ROWS:
            rows = random_state.choice(X.shape[0], _MAX_ROWS, replace=False)
            X = _safe_indexing(X, np.sort(rows))
        encoder = SparseColumns if sp.issparse(X) else TableColumns
        self._columns = encoder().fit(X)
        self.rare_shares_ = self._columns.rare_shares
        self.kept_variance_ = 1.0
        encoded = self._encoded(X)
        deviation = StandardScaler(with_mean=False).fit(encoded).var_ ** 0.5
        self._kept = np.flatnonzero(deviation > _NEGLIGIBLE)
        self._components = self._basis = None
        self.n_components_ = max(1, len(self._kept))
        is_sparse, encoded = sp.issparse(X), encoded[:, self._kept]
        # TruncatedSVD refuses a single column, which is its own component.
        fewest = 2 if is_sparse else 1
        # Distances of sparse rows are those of their components.
        if (
            self.n_components is not None
            and len(self._kept) >= fewest
            and (self.basis == "linear" or is_sparse)
        ):
            from sklearn.decomposition import PCA, TruncatedSVD  # slow to import

            wanted = (
                self._most(_MAX_COMPONENTS)
                if self.basis == "linear"
                else _MAX_COMPONENTS
            )
            method = TruncatedSVD if is_sparse else PCA
            self._components = method(
                min(wanted, len(self._kept), X.shape[0]), random_state=random_state
            ).fit(encoded)
            self.n_components_ = len(self._components.components_)
            if is_sparse:
                encoded = self._components.transform(encoded)
            else:
                kept = self._components.explained_variance_ratio_.sum()
                self.kept_variance_ = float(kept)
        if self.basis == "rbf" and len(self._kept):
            self._basis = ScoreBasis(
                1 + self._most(_MAX_FUNCTIONS),
                True,
                random_state,
                # At least one function.
                rows_per_coordinate=min(_ROWS_PER_FUNCTION, X.shape[0]),
            ).fit(encoded)
            self.n_components_ = self._basis.n_coordinates_ - 1
            if not is_sparse:
                values = self._basis.transform(encoded)
                self.kept_variance_ = kept_variance(encoded, values)
        return self

    def transform(self, X: Any) -> Any:
        """Compute the components of each row alone, to the last bit.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private, public or new rows.

        Returns
        -------
        components : ndarray of shape (n_rows, `n_components_`)
            Components, which are finite. A sparse matrix if X is sparse and
            `n_components` is None.
        """
        check_is_fitted(self)
        X = check_features(self, X, reset=False, private=True)
        if not len(self._kept):
            return np.zeros((X.shape[0], 1))
        columns: Any = self._encoded(X)[:, self._kept]
        if self._basis is not None:
            if self._components is not None:
                columns = self._components.transform(columns)
            values = self._basis.transform(columns)[:, 1:]
            return values / np.sqrt(1 + np.arange(values.shape[1]))
        if self._components is None:
            if self.n_components is not None and sp.issparse(columns):
                return columns.toarray()
            return columns
        if sp.issparse(columns):  # scipy adds up each row on its own
            return self._components.transform(columns)
        return row_products(
            columns - self._components.mean_, self._components.components_.T
        )

    def _encoded(self, X: Any) -> Any:
        """Return all columns as numbers."""
        encoded = self._columns.transform(X)
        if self.codes is None:
            return encoded
        return np.hstack([encoded, self.codes.transform(X)])

    def _most(self, by_default: int) -> int:
        """Return the largest number of components."""
        if self.n_components == "auto":
            return by_default
        return cast(int, self.n_components)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


class TableColumns:
    """Columns of scaled numbers, and of zeros and ones for categories."""

    __module__ = "sklearn_pate.stored_types"  # its name in files

    def fit(self, X: Any) -> Self:
        self._is_category = _holds_categories(X)
        numbers, words = self._read(X)
        self._numbers = NumberColumns().fit(numbers)
        self._encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=_MIN_FREQUENCY,
            max_categories=_MAX_CATEGORIES,
            sparse_output=False,
        )
        self.rare_shares: dict[int, float] = {}
        if self._is_category.any():
            self._encoder.fit(words)
            for place, rare in enumerate(self._encoder.infrequent_categories_):
                if rare is not None:
                    column = int(np.flatnonzero(self._is_category)[place])
                    is_rare = np.isin(words[:, place].astype(str), rare.astype(str))
                    self.rare_shares[column] = float(is_rare.mean())
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
            if is_category:
                words.append(words_of(X, column))
            else:
                numbers.append(to_numbers(column_of(X, column)))
        n_rows = X.shape[0]
        return (
            np.array(numbers, dtype=np.float64).reshape(-1, n_rows).T,
            np.array(words, dtype=object).reshape(-1, n_rows).T,
        )


class CodeLogOdds(TransformerMixin, BaseEstimator):
    """Log-odds of the classes by the code in each column.

    By released counts of private rows alone, so that it may be published as they are.

    Attributes
    ----------
    columns_ : list of int
        Places of the columns.

    codes_ : list of dict
        Place of each code of a column, as text.

    log_odds_ : list of ndarray of shape (n_codes + 1, n_classes - 1)
        Log-odds by code, in the basis of Helmert; at the end those of all other values.
    """

    __module__ = "sklearn_pate.stored_types"  # its name in files

    #: No bit of the result of a row depends on others.
    _keeps_rows_apart = ()

    def fit(self, X: Any, y: None = None) -> Self:
        """Do nothing: released counts determine the transformer.

        Parameters
        ----------
        X : object
            Not used.

        y : None
            Not used.

        Returns
        -------
        self : CodeLogOdds
            Unchanged.
        """
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Look up the log-odds of rows.

        A row is the same to the last bit in any position.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features)
            Rows with any values.

        Returns
        -------
        log_odds : ndarray of shape (n_rows, n_columns * (n_classes - 1))
            Those of each column.
        """
        return np.hstack(
            [
                log_odds[places_of_codes(X, column, codes)]
                for column, codes, log_odds in zip(
                    self.columns_, self.codes_, self.log_odds_, strict=True
                )
            ]
        )

    def __sklearn_clone__(self) -> Self:
        return self


def places_of_codes(X: Any, column: int, codes: dict[str, int]) -> NDArray[np.intp]:
    """Return the place of each value among the codes, and the last one for others."""
    words = words_of(X, column)
    return np.array([codes.get(word, len(codes)) for word in words], dtype=np.intp)


def words_of(X: Any, column: int) -> list[str]:
    """Return the values of a column as text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would reveal a value
        return of_each(to_word, column_of(X, column).tolist())


class NumberColumns:
    """Scaled numbers, and columns that tell which are missing."""

    __module__ = "sklearn_pate.stored_types"  # its name in files

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


class SparseColumns:
    """Numbers of a sparse matrix in [-1, 1]."""

    __module__ = "sklearn_pate.stored_types"  # its name in files

    rare_shares: ClassVar[dict[int, float]] = {}

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


def _holds_categories(X: Any) -> NDArray[np.bool_]:
    """Find the columns of categories, by types and public values."""
    if not is_frame(X):
        X = X.reshape(len(X), -1)
        if X.dtype.kind in "biuf":
            return np.zeros(X.shape[1], dtype=bool)
    columns = (_safe_indexing(X, place, axis=1) for place in range(X.shape[1]))
    return np.array([kind_of_column(one) in CATEGORIES for one in columns])


class ImageRepresentation(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Components of images that small changes of an image preserve.

    A ``representation=`` for :class:`~sklearn_pate.PATEClassifier` that does not need
    torch. Filters of small patches are learned from public images without labels. The
    outputs of filters are averaged over regions, and the components are linear
    functions of the averages. The transformer has no privacy cost, as it is fitted on
    public images only and transforms each image independently.

    Parameters
    ----------
    image_shape : tuple of int, default=None
        Shape (height, width), (channels, height, width) or (height, width, channels) of
        images in flat rows. With None, each image in X must have such a shape. The last
        axis is the channels if its length is 1, 3 or 4 and the length of the first axis
        exceeds 4.

    n_filters : int, default=400
        Number of filters. More filters give more accurate classifiers of photographs,
        and take proportionally longer to compute.

    n_components : int, default=500
        Largest number of components, at most the number of public images.

    random_state : int, RandomState instance or None, default=None
        Seed of patches, filters and changes of images. Pass an int for equal components
        in every fit.

    Attributes
    ----------
    filters_ : ndarray of shape (n_values, n_filters)
        Filters of normalised patches.

    offsets_ : ndarray of shape (n_filters,)
        Outputs of the filters for the mean patch, which are subtracted.

    flat_ : float
        Variance of a patch that counts as flat, which is added to each variance.

    mean_ : ndarray of shape (n_averages,)
        Mean of the averages over the public images.

    components_ : ndarray of shape (n_averages, n_components)
        Components, in order of increasing sensitivity to changes of an image.

    range_ : tuple of float
        Smallest and largest value in the public images.

    input_shape_ : tuple of int
        Shape of an image.

    n_features_in_ : int
        Number of values in a flat row, or length of the second axis of images: rows of
        pixels, or channels if these come first.

    Notes
    -----
    All statistics are computed from public images, in these steps:

    1. Each patch of 6 x 6 pixels is centred, divided by its standard deviation and
       whitened. The filters are cluster centres of patches, scaled to length 1. An
       output x of a filter gives two values, max(x - 0.5, 0) and max(-x - 0.5, 0),
       which are averaged over each quarter of the image (Coates, Ng, Lee 2011, "An
       analysis of single-layer networks in unsupervised feature learning"; Coates, Ng
       2011, "The importance of encoding versus training with sparse coding and vector
       quantization").
    2. The first 1200 principal components of the square roots of the averages are
       computed.
    3. Four copies of each public image are cropped, stretched and changed in contrast.
       The components maximise the ratio of the variance between images to the variance
       between copies of an image (Fisher's discriminant with each image as a class).
       The variance of a component is this ratio, and components are in order of
       decreasing variance.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_pate.students import ImageRepresentation
    >>> images = load_digits().images
    >>> representation = ImageRepresentation(n_filters=20, random_state=0)
    >>> representation.fit(images[:500]).transform(images[500:]).shape
    (1297, 160)
    """

    __module__ = "sklearn_pate.students"  # its name in files

    #: No missing value is left in the result.
    _fills_missing = True
    #: A row that is transformed leaves nothing behind.
    _keeps_no_row = True

    def __init__(
        self,
        image_shape: Any = None,
        n_filters: int = 400,
        n_components: int = 500,
        random_state: Any = None,
    ) -> None:
        self.image_shape = image_shape
        self.n_filters = n_filters
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn filters and components of public images.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width), \
                (n_rows, channels, height, width) or (n_rows, height, width, channels)
            Public images. A missing value counts as the smallest value.

        y : None
            Ignored.

        Returns
        -------
        self : ImageRepresentation
            Fitted.

        Raises
        ------
        ValueError
            If a parameter is invalid, or inconsistent with X.
        """
        for name in ("n_filters", "n_components"):
            check_count(name, getattr(self, name))
        X = check_features(self, X, reset=True)
        self.input_shape_ = read_input_shape(self.image_shape, X.shape)
        if len(self.input_shape_) == 1:
            raise ValueError(
                "image_shape=None, but X does not hold images with rows of pixels; "
                "pass image_shape=(height, width) or (channels, height, width)."
            )
        height, width = self.input_shape_[-2:]
        if min(height, width) < 2:
            raise ValueError(
                f"X has images of {height} x {width} pixels; pass images of at least "
                "2 x 2 pixels."
            )
        if len(X) < 2:
            raise ValueError(f"X has {len(X)} image; pass at least two public images.")
        self.range_ = float(np.nanmin(X)), float(np.nanmax(X))
        if self.range_[0] == self.range_[1]:
            raise ValueError("All pixels of X are equal; pass other public images.")
        random_state = check_random_state(self.random_state)
        if len(X) > _MAX_IMAGES:
            X = X[np.sort(random_state.choice(len(X), _MAX_IMAGES, replace=False))]
        images = self._images(X)
        self._learn_filters(images, random_state)
        self._learn_components(images, random_state)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Compute the components of each image.

        The last bits of an image's components depend on its position in X.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width), \
                (n_rows, channels, height, width) or (n_rows, height, width, channels)
            Private, public or new images. Values are clipped to the public range. A
            missing value counts as the smallest value.

        Returns
        -------
        components : ndarray of float32 of shape (n_rows, n_components)
            Components, which are finite.
        """
        check_is_fitted(self)
        X = check_features(self, X, reset=False, private=True)
        return self._projected(self._images(X), self.mean_, self.components_)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _images(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Return images of shape (n_rows, channels, height, width), from 0 to 1."""
        low, high = self.range_
        clipped = np.where(np.isnan(X), low, np.clip(X, low, high))
        images = (clipped - low) / (high - low)
        layout = X.shape[1:] if X.ndim > 2 else self.image_shape
        return channels_first(images.astype(np.float32), layout, self.input_shape_)

    def _learn_filters(
        self, images: NDArray[np.float32], random_state: np.random.RandomState
    ) -> None:
        """Whiten patches, and find the centres of their clusters."""
        from sklearn.cluster import MiniBatchKMeans  # slow to import

        windows = _windows(images)
        n_of_image = -(-_N_PATCHES // len(images))
        of_image = np.repeat(np.arange(len(images)), n_of_image)
        down = random_state.randint(windows.shape[1], size=len(of_image))
        across = random_state.randint(windows.shape[2], size=len(of_image))
        patches = windows[of_image, down, across].reshape(len(of_image), -1)
        variances = patches.var(axis=1)
        self.flat_ = np.float32(_FLAT * variances.mean())
        patches = _normalised(patches[variances > self.flat_], self.flat_)
        mean = patches.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(patches, rowvar=False))
        whiten = (vectors / np.sqrt(np.maximum(values, 0) + _WHITEN)) @ vectors.T
        whitened = normalize((patches - mean) @ whiten).astype(np.float32)
        clusters = MiniBatchKMeans(
            min(self.n_filters, len(whitened)),
            batch_size=4096,
            n_init=1,
            random_state=random_state,
        ).fit(whitened)
        centres = normalize(clusters.cluster_centers_)
        self.filters_ = (whiten @ centres.T).astype(np.float32)
        self.offsets_ = (mean @ self.filters_).astype(np.float32)

    def _learn_components(
        self, images: NDArray[np.float32], random_state: np.random.RandomState
    ) -> None:
        """Find functions that differ between images more than between their copies."""
        from sklearn.decomposition import PCA  # slow to import

        averages = np.concatenate([*self._averages(images)])
        n_principal = min(_N_PRINCIPAL, len(images) - 1, averages.shape[1])
        principal = PCA(n_principal, random_state=random_state).fit(averages)
        self.mean_ = principal.mean_.astype(np.float32)
        directions = principal.components_.T.astype(np.float32)
        copies = np.array(
            [
                self._projected(_changed(images, random_state), self.mean_, directions)
                for _ in range(_N_COPIES)
            ],
            dtype=np.float64,
        )
        centres = copies.mean(axis=0)
        apart = (copies - centres).reshape(-1, n_principal)
        within = apart.T @ apart / ((_N_COPIES - 1) * len(centres))
        between = np.atleast_2d(np.cov(centres, rowvar=False)) - within / _N_COPIES
        ridge = _RIDGE * np.trace(within) / n_principal
        n_components = min(self.n_components, n_principal)
        ratios, functions = eigh(
            between,
            within + max(ridge, np.finfo(float).tiny) * np.eye(n_principal),
            subset_by_index=[n_principal - n_components, n_principal - 1],
        )
        functions = functions[:, ::-1]
        deviations = np.std((averages - self.mean_) @ directions @ functions, axis=0)
        scales = np.sqrt(np.maximum(ratios[::-1], 0)) / np.where(
            deviations > 0, deviations, 1
        )
        self.components_ = directions @ (functions * scales).astype(np.float32)

    def _projected(
        self,
        images: NDArray[np.float32],
        mean: NDArray[np.float32],
        directions: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """Compute linear functions of the averages of images."""
        parts = [(one - mean) @ directions for one in self._averages(images)]
        return np.concatenate(parts)

    def _averages(self, images: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
        """Yield square roots of averaged responses, of some images at a time."""
        height, width = (size - _side(images) + 1 for size in images.shape[-2:])
        average = np.kron(_regions(height), _regions(width))
        for start in range(0, len(images), _IMAGES_AT_ONCE):
            windows = _windows(images[start : start + _IMAGES_AT_ONCE])
            patches = windows.reshape(-1, windows[0, 0, 0].size)
            responses = _normalised(patches, self.flat_) @ self.filters_ - self.offsets_
            responses = responses.reshape(len(windows), height * width, -1)
            positive = average @ np.maximum(responses - _THRESHOLD, 0)
            negative = average @ np.maximum(-responses - _THRESHOLD, 0)
            both = np.concatenate([positive, negative], axis=2)
            yield np.sqrt(both).reshape(len(windows), -1)


def _side(images: NDArray[np.float32]) -> int:
    """Compute the side of a patch, which fits into the image."""
    return min(_SIDE, *images.shape[-2:])


def _windows(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """View all patches, shape (n_images, height, width, channels, side, side)."""
    side = _side(images)
    windows = sliding_window_view(images, (side, side), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5)


def _normalised(patches: NDArray[np.float32], flat: np.float32) -> NDArray[np.float32]:
    """Centre each patch, and divide it by its standard deviation."""
    patches = patches - patches.mean(axis=1, keepdims=True)
    variances = np.einsum("ij,ij->i", patches, patches) / patches.shape[1]
    return patches / np.sqrt(variances + flat)[:, np.newaxis]


def _regions(size: int) -> NDArray[np.float32]:
    """Return the weights of positions in the average of each region."""
    parts = np.array_split(np.arange(size), min(_N_REGIONS, size))
    weights = np.zeros((len(parts), size), dtype=np.float32)
    for region, places in enumerate(parts):
        weights[region, places] = 1 / len(places)
    return weights


def _changed(
    images: NDArray[np.float32], random_state: np.random.RandomState
) -> NDArray[np.float32]:
    """Crop, stretch and change the contrast of each image."""
    n_images, n_channels, height, width = images.shape
    area = random_state.uniform(_AREA, 1, size=n_images)
    ratio = np.exp(random_state.uniform(-_RATIO, _RATIO, size=n_images))
    down = _interpolation(height, np.sqrt(area) * ratio, random_state)
    across = _interpolation(width, np.sqrt(area) / ratio, random_state)
    cropped = np.einsum("nij,ncjk,nlk->ncil", down, images, across, optimize=True)
    contrast = random_state.uniform(
        -_CONTRAST, _CONTRAST, size=(n_images, n_channels, 1, 1)
    )
    mean = cropped.mean(axis=(1, 2, 3), keepdims=True)
    return (mean + (cropped - mean) * np.exp(contrast)).astype(np.float32)


def _interpolation(
    size: int, shares: NDArray[np.float64], random_state: np.random.RandomState
) -> NDArray[np.float32]:
    """Return weights that stretch a random part of each line over the whole line."""
    shares = np.minimum(shares, 1)[:, np.newaxis]
    starts = random_state.uniform(size=shares.shape) * (1 - shares)
    places = (starts + shares * np.linspace(0, 1, size)) * (size - 1)
    distances = np.abs(places[:, :, np.newaxis] - np.arange(size))
    return np.maximum(1 - distances, 0).astype(np.float32)

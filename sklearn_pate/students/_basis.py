"""Public basis of score models, and the model that a release gives."""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import helmert, solve_triangular
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist, pdist
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state, get_tags

from sklearn_pate._estimators._isolation import quiet
from sklearn_pate._estimators._predictions import (
    ProbabilityScoresMixin,
    in_all_classes,
    log_odds,
)

# Singular values below this share of the largest one are round-off.
_NEGLIGIBLE = 1e-6
# Landmarks; public rows for each; rows of a cluster whose mean may be one.
_MOST_LANDMARKS, _ROWS_PER_LANDMARK, _FEWEST_ROWS = 1000, 5, 3
# Rows that the median distance is computed from.
_ROWS_FOR_DISTANCE = 1000
# Rows whose values are computed at once: few stay in the cache.
_ROWS_AT_ONCE = 512
# Bits of the precision of float64, and smallest number that is not rounded to 0.
_PRECISION, _SMALLEST_UNIT = 53, 2.0**-900
# Squares of larger scores may be infinite.
_LARGEST_SCORE = 1e150
# Probabilities of equal rows differ by less.
_ROUND_OFF = 1e-9
# Least probability that a slope and weights are computed from, and the range of slopes.
_LEAST_WEIGHTED, _SLOPES = 1e-12, (0.02, 1.0)
# Smallest mean probability, in units of equal shares; and difference from it that is
# round-off.
_LEAST_MEAN, _NEGLIGIBLE_SHARE = 1e-3, 1e-9
# Newton steps towards mean probabilities: their number, relative and least ridge (where
# all probabilities are 0 or 1), and largest length.
_MOST_ITERATIONS, _RELATIVE_RIDGE, _LEAST_RIDGE, _LONGEST_STEP = 200, 1e-9, 1e-15, 2.0


class ScoreBasis(TransformerMixin, BaseEstimator):
    """Basis of score models: functions orthonormal over public rows, in order.

    The constant, the principal components of the rows, and with `rbf` functions of the
    distances to landmarks, from smooth to rough; each without what earlier ones hold.
    Fitted on public rows only, so that it has no privacy cost.

    Parameters
    ----------
    max_coordinates : int
        Largest number of functions, the constant included.

    rbf : bool
        Whether functions of distances follow the principal components.

    random_state : int, default=None
        Seed of the clusters.

    rows_per_coordinate : int, default=1
        Smallest number of rows for each function.

    in_order : bool, default=False
        Whether columns are taken in their order, in place of principal components.

    Attributes
    ----------
    n_coordinates_ : int
        Number of functions.

    landmarks_ : ndarray of shape (n_landmarks, n_features) or None
        Points that distances are computed to: means of clusters of public rows, each of
        three rows or more.

    Notes
    -----
    With B the matrix of the functions at m public rows, B'B / m = I. Functions of
    distances are those of Nystroem's method (Williams, Seeger 2001) for the kernel
    exp(-gamma d^2), with gamma three times the inverse of the median squared distance.
    Means of clusters as landmarks are those of Zhang, Tsang, Kwok (2008), "Improved
    Nystrom low-rank approximation and error analysis".
    """

    __module__ = "sklearn_pate.stored_types"  # its name in files

    def __init__(
        self,
        max_coordinates: int,
        rbf: bool,
        random_state: Any = None,
        rows_per_coordinate: int = 1,
        in_order: bool = False,
    ) -> None:
        self.max_coordinates = max_coordinates
        self.rbf = rbf
        self.random_state = random_state
        self.rows_per_coordinate = rows_per_coordinate
        self.in_order = in_order

    def fit(self, X: Any, y: None = None) -> Self:
        """Compute the functions from public rows.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_public, n_features)
            Public rows as finite numbers.

        y : None
            Not used.

        Returns
        -------
        self : ScoreBasis
            Fitted.
        """
        X = _dense(X)
        self._most = min(self.max_coordinates, 1 + len(X) // self.rows_per_coordinate)
        self.mean_ = X.mean(axis=0)
        directions = self._directions(X - self.mean_)
        self.landmarks_: NDArray[np.float64] | None = None
        kernel_weights = np.zeros((0, 0))
        if self.rbf and 0 < directions.shape[1] < self._most - 1:
            kernel_weights = self._choose_landmarks(X)
        directions = directions[:, : self._most - 1]
        self._orthogonalise(X, directions, kernel_weights)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Compute the values of the functions at rows.

        Each row on its own, to the last bit.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_features)
            Rows as finite numbers.

        Returns
        -------
        values : ndarray of shape (n_rows, n_coordinates_)
            The first column is 1.
        """
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        parts = [
            self._values(
                _dense(X[start : start + _ROWS_AT_ONCE]), row_products, _each_distance
            )
            for start in range(0, X.shape[0], _ROWS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.ones((0, self.n_coordinates_))

    def near(self, X: NDArray[np.float64]) -> NDArray[np.float32]:
        """Compute the values roughly; their round-off may depend on a row's position.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows as finite numbers.

        Returns
        -------
        values : ndarray of shape (n_rows, n_coordinates_)
            The same bits for equal numbers at the same position of as many rows.
        """
        return self._values(X, _single_products, _squared_distances)

    def in_single_precision(self) -> Self:
        """Return the functions with weights that `near` need not convert.

        Returns
        -------
        basis : ScoreBasis
            Functions of which only rough values are needed.
        """
        basis = copy(self)
        for name in ("linear_weights_", "landmark_weights_", "landmarks_"):
            weights = getattr(self, name)
            if weights is not None:
                setattr(basis, name, weights.astype(np.float32))
        return basis

    @property
    def n_linear(self) -> int:
        """Number of functions of no landmark, which are the first ones."""
        return int(np.sum(~self.landmark_weights_.any(axis=0)))

    def chosen(self, functions: slice | NDArray[np.intp]) -> Self:
        """Return the basis of some functions, as one that was fitted for these.

        Parameters
        ----------
        functions : slice or ndarray of int
            Places of the functions.

        Returns
        -------
        basis : ScoreBasis
            Without landmarks where none of the functions depends on them.
        """
        basis = copy(self)
        basis.intercept_ = self.intercept_[functions]
        basis.linear_weights_ = self.linear_weights_[:, functions]
        basis.landmark_weights_ = self.landmark_weights_[:, functions]
        basis.n_coordinates_ = len(basis.intercept_)
        if not basis.landmark_weights_.any():
            basis.landmarks_ = None
            basis.landmark_weights_ = np.zeros((0, basis.n_coordinates_))
        return basis

    def _values(
        self,
        X: NDArray[np.float64],
        product: Callable[..., NDArray[Any]],
        distances: Callable[..., NDArray[Any]],
    ) -> NDArray[Any]:
        values = product(X - self.mean_, self.linear_weights_)
        values += self.intercept_
        if self.landmarks_ is not None:
            kernel = self._kernel(X, self.landmarks_, distances)
            values += product(kernel, self.landmark_weights_)
        return values

    def _directions(self, centred: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the directions of the linear functions, one a column."""
        if self.in_order:
            return np.eye(centred.shape[1])
        _, singular, directions = np.linalg.svd(centred, full_matrices=False)
        kept = singular > _NEGLIGIBLE * max(singular.max(initial=0), 1e-300)
        return directions[kept].T

    def _choose_landmarks(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute landmarks, and return the weights of their kernel's eigenvectors."""
        from sklearn.cluster import KMeans  # slow to import

        random_state = check_random_state(self.random_state)
        order = random_state.permutation(len(X))
        squared = pdist(X[order[:_ROWS_FOR_DISTANCE]], "sqeuclidean")
        median = float(np.median(squared[squared > 0])) if squared.any() else 1.0
        self.gamma_ = 3 / median
        X = X[order[: _MOST_LANDMARKS * _ROWS_PER_LANDMARK]]
        with quiet():  # of equal rows
            clusters = KMeans(
                max(1, len(X) // _ROWS_PER_LANDMARK),
                init="random",
                n_init=1,
                max_iter=5,
                random_state=random_state,
            ).fit(X)
        sizes = np.bincount(clusters.labels_, minlength=clusters.n_clusters)
        landmarks = clusters.cluster_centers_[sizes >= min(_FEWEST_ROWS, sizes.max())]
        kernel = self._kernel(landmarks, landmarks, _each_distance)
        values, vectors = np.linalg.eigh(kernel)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > _NEGLIGIBLE * values[0]
        kept[self._most :] = False
        self.landmarks_ = landmarks
        return vectors[:, kept] / np.sqrt(values[kept])

    def _kernel(
        self,
        X: NDArray[np.float64],
        landmarks: NDArray[np.float64],
        distances: Callable[..., NDArray[Any]],
    ) -> NDArray[Any]:
        kernel = distances(X, landmarks)
        kernel *= -self.gamma_
        return np.exp(kernel, out=kernel)

    def _orthogonalise(
        self,
        X: NDArray[np.float64],
        directions: NDArray[np.float64],
        kernel_weights: NDArray[np.float64],
    ) -> None:
        """Make the functions orthonormal, each by those before it."""
        parts = [np.ones((len(X), 1)), (X - self.mean_) @ directions]
        if self.landmarks_ is not None:
            parts.append(
                self._kernel(X, self.landmarks_, _each_distance) @ kernel_weights
            )
        features = np.hstack(parts)
        scales = np.sqrt(np.mean(features**2, axis=0))
        scales[scales == 0] = 1
        # A function that earlier ones hold almost wholly would be mostly round-off.
        triangle = np.linalg.qr(features / scales, mode="r") / np.sqrt(len(X))
        own = np.abs(np.diag(triangle)) > np.sqrt(_NEGLIGIBLE)
        kept = np.flatnonzero(own)[: self._most]
        triangle = np.linalg.qr(features[:, kept] / scales[kept], mode="r")
        inverse = solve_triangular(triangle / np.sqrt(len(X)), np.eye(len(kept)))
        inverse *= np.sign(np.diag(triangle))
        weights = np.zeros((features.shape[1], len(kept)))
        weights[kept] = inverse / scales[kept, np.newaxis]
        n_linear = 1 + directions.shape[1]
        self.intercept_ = weights[0]
        self.linear_weights_ = directions @ weights[1:n_linear]
        self.landmark_weights_ = kernel_weights @ weights[n_linear:]
        self.n_coordinates_ = len(kept)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


_each_distance = partial(cdist, metric="sqeuclidean")


def _squared_distances(
    rows: NDArray[np.float64], points: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Compute squared distances in single precision, by a product of matrices."""
    rows, points = rows.astype(np.float32), points.astype(np.float32, copy=False)
    squared = rows @ (-2 * points.T)
    squared += np.einsum("ij,ij->i", rows, rows)[:, np.newaxis]
    squared += np.einsum("ij,ij->i", points, points)
    return np.maximum(squared, 0, out=squared)


def _single_products(
    rows: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float32]:
    return rows.astype(np.float32, copy=False) @ weights.astype(np.float32, copy=False)


def kept_variance(X: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Compute the share of the variance of rows that functions explain.

    `values` are those of a basis that was fitted on these rows.
    """
    centred = X - X.mean(axis=0)
    total = np.sum(centred**2)
    explained = np.sum((centred.T @ values) ** 2) / len(X)
    return float(explained / total) if total > 0 else 1.0


def _dense(X: Any) -> NDArray[np.float64]:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def row_products(
    rows: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute rows @ weights, with the same bits for a row in any position.

    A matrix product is rounded in an order that depends on the position of a row and on
    the number of rows. Here each factor becomes two parts of whole numbers, so small
    that all their products and sums are exact, in any order (Ozaki, Ogita, Oishi, Rump
    2012, "Error-free transformations of matrix multiplication by using fast routines of
    matrix multiplication and its applications").
    """
    n_bits = (_PRECISION - len(weights).bit_length()) // 2
    products = np.empty((len(rows), weights.shape[1]))
    high, low, unit = _whole_parts(weights, 0, n_bits)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        row_high, row_low, row_unit = _whole_parts(rows[part], 1, n_bits)
        small = row_high @ low + row_low @ high
        whole = row_high @ high + 2.0**-n_bits * small
        products[part] = whole * row_unit * unit
    return products


def _whole_parts(
    X: NDArray[np.float64], axis: int, n_bits: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Write X as (high + low / 2^n_bits) unit, with whole numbers of n_bits bits.

    There is one unit along `axis`, a power of two.
    """
    largest = np.abs(X).max(axis=axis, keepdims=True, initial=_SMALLEST_UNIT)
    unit = np.ldexp(1.0, np.frexp(largest)[1] - n_bits)
    scaled = X / unit
    high = np.rint(scaled)
    return high, np.rint(2.0**n_bits * (scaled - high)), unit


class ThresholdedClassifier(ProbabilityScoresMixin, ClassifierMixin, BaseEstimator):
    """Base class of classifiers that predict class indices from probabilities."""

    threshold: float | None
    classes_: NDArray[np.intp]

    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Score classes by their probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
            Logarithms of the probabilities, one column per class. With two classes, the
            log-odds of the second class minus the log-odds of `threshold`.
        """
        scores = super().decision_function(X)
        if self.threshold is None:
            return scores
        return scores - log_odds(np.array([[1 - self.threshold, self.threshold]]))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict class indices.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        y : ndarray of int of shape (n_rows,)
            Class indices.
        """
        return self.decide(self.predict_proba(X))

    def decide(self, probabilities: NDArray[np.floating]) -> NDArray[np.intp]:
        """Choose classes by their probabilities.

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, n_classes)
            Class probabilities, from `predict_proba`.

        Returns
        -------
        y : ndarray of int of shape (n_rows,)
            Class indices.
        """
        if self.threshold is None:
            return probabilities.argmax(axis=1)
        return (probabilities[:, 1] > self.threshold).astype(np.intp)


class ScoreFunction(ThresholdedClassifier):
    """Classifier that computes class probabilities from released coefficients.

    The default student of :class:`~sklearn_pate.mechanisms.MeanScores` on tables, and
    the model of :class:`~sklearn_pate.DPNewtonClassifier` have this class.
    Prediction is post-processing of released coefficients.

    Parameters
    ----------
    threshold : float or None, default=None
        With two classes, the probability above which the second class is predicted.
        With None, the most probable class is predicted.

    bound : float or None, default=None
        Length that scores stay below, apart from those of the constant function; None
        for no bound. Models of :class:`~sklearn_pate.mechanisms.MeanScores` have one.

    Attributes
    ----------
    representation_ : transformer
        Transformer fitted on public rows.

    basis_ : transformer
        Transformer that computes the values of the basis functions, fitted on the
        public rows after `representation_`.

    coef_ : ndarray of shape (n_coordinates, n_classes - 1)
        Coefficients of the basis functions.

    classes_ : ndarray of int of shape (n_classes,)
        Class indices.

    Notes
    -----
    Let b(x) be the values of the basis at a row x, C the coefficients, and H the
    Helmert matrix, whose columns are orthonormal and orthogonal to 1. The class
    probabilities are the softmax of H C'b(x). With a bound B, let s be the part of
    C'b(x) without the constant function, and r its Euclidean norm: s is replaced by
    s B tanh(r / B) / r.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> clf = PATEClassifier(n_teachers=200, random_state=0)
    >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> type(clf.student_).__name__
    'ScoreFunction'
    """

    __module__ = "sklearn_pate.students"  # its name in files

    #: Its basis keeps rows apart in any case.
    _keeps_rows_apart = ("representation_",)

    def __init__(
        self, threshold: float | None = None, bound: float | None = None
    ) -> None:
        self.threshold = threshold
        self.bound = bound

    @classmethod
    def of_release(
        cls,
        coef: NDArray[np.float64],
        representation: Any,
        basis: ScoreBasis,
        bound: float | None = None,
    ) -> Self:
        """Create a fitted classifier from released coefficients.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, n_classes - 1)
            Coefficients, as in `coef_`.

        representation, basis : transformer
            Fitted transformers, as in `representation_` and `basis_`.

        bound : float or None, default=None
            As in `bound`.

        Returns
        -------
        function : ScoreFunction
            Fitted.
        """
        function = cls(bound=bound)
        function.representation_, function.basis_ = representation, basis
        function.coef_ = coef
        function.classes_ = np.arange(coef.shape[1] + 1)
        return function

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class.
        """
        return self.probabilities(
            self.basis_.transform(self.representation_.transform(X))
        )

    def probabilities(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute class probabilities from values of the basis functions.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_coordinates)
            Values of the basis functions.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class.
        """
        if self.bound is None:
            scores = row_products(values, self.coef_)
        else:
            scores = row_products(values[:, 1:], self.coef_[1:])
            scores = self.coef_[0] + bounded(scores, self.bound)
        return softmax(row_products(scores, helmert(len(self.classes_))), axis=1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The representation takes what it took in `fit`.
        tags.no_validation = True
        if hasattr(self, "representation_"):
            of_rows = get_tags(self.representation_).input_tags
            tags.input_tags.sparse = of_rows.sparse
        return tags


class ReweightedClassifier(ThresholdedClassifier):
    """Classifier whose class probabilities have given shares over public rows.

    The student of balanced votes is of this class, and that of mean scores of images.
    The probabilities of a fitted classifier are raised to the power `slope_`, and
    multiplied by a weight of each class. They are then scaled to sum to 1. Weights
    follow from public rows and released shares alone, so that they have no privacy
    cost.

    Parameters
    ----------
    threshold : float or None, default=None
        With two classes, the probability above which the second class is predicted.
        With None, the most probable class is predicted.

    Attributes
    ----------
    estimator_ : classifier
        Fitted classifier of class indices, with `predict_proba`.

    slope_ : float
        Factor of the classifier's log-odds.

    weights_ : ndarray of shape (n_classes,)
        Weight of each class; 0 for a class that the classifier does not know.

    unknown_ : ndarray of shape (n_classes,)
        Share of each class that the classifier does not know, which is the probability
        of this class in every row; 0 for other classes.

    classes_ : ndarray of int of shape (n_classes,)
        Class indices.

    Notes
    -----
    If the probabilities of features, given the class, are equal in two populations,
    class probabilities of one become those of the other by such weights (Saerens,
    Latinne, Decaestecker 2002, "Adjusting the outputs of a classifier to new a priori
    probabilities").

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> X, y = make_blobs(6000, centers=[[0], [2]], random_state=0)
    >>> clf = PATEClassifier(n_teachers=200, mechanism="gnmax", random_state=0)
    >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> mean = clf.student_.predict_proba(X[5000:5500]).mean(axis=0)
    >>> bool(abs(mean - clf.class_shares_).max() < 1e-6)
    True
    """

    __module__ = "sklearn_pate.students"  # its name in files

    _keeps_rows_apart = ("estimator_",)

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = threshold

    @classmethod
    def with_shares(
        cls,
        classifier: Any,
        probabilities: NDArray[np.float64],
        shares: NDArray[np.float64],
        *,
        slope: float,
        threshold: Any,
        share_noise: float = 0.0,
    ) -> Self:
        """Create a fitted classifier from a fitted one.

        Parameters
        ----------
        classifier : classifier
            Fitted on class indices, of which it may lack some.

        probabilities : ndarray of shape (n_public, n_classes)
            Class probabilities of public rows by the classifier.

        shares : ndarray of shape (n_classes,)
            Mean probability of each class over the public rows, larger than 0.

        slope : float
            As in `slope_`.

        threshold : {"auto", "balanced", "accuracy"} or float
            As `threshold` of :class:`~sklearn_pate.PATEClassifier`.

        share_noise : float, default=0.0
            Standard deviation of the noise on `shares`.

        Returns
        -------
        classifier : ReweightedClassifier
            Fitted.
        """
        reweighted = cls()
        reweighted.estimator_ = classifier
        reweighted.classes_ = np.arange(len(shares))
        reweighted.slope_, reweighted.weights_ = slope, np.zeros(len(shares))
        known = np.flatnonzero(probabilities.max(axis=0) > 0)
        scores = _log(probabilities[:, known])
        shift = shift_to_shares(slope * scores, shares[known])
        reweighted.weights_[known] = np.exp(shift - shift.max())
        reweighted.unknown_ = shares.copy()
        reweighted.unknown_[known] = 0
        reweighted.threshold = resolve_threshold(
            threshold, reweighted._weighted(probabilities), share_noise
        )
        return reweighted

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class.
        """
        n_classes = len(self.classes_)
        return self._weighted(class_probabilities(self.estimator_, X, n_classes))

    def _weighted(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        weighted = self.weights_ * np.exp(self.slope_ * _log(probabilities))
        weighted *= (1 - self.unknown_.sum()) / weighted.sum(axis=1, keepdims=True)
        return self.unknown_ + weighted

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The classifier takes what it took in `fit`.
        tags.no_validation = True
        if hasattr(self, "estimator_"):
            tags.input_tags = get_tags(self.estimator_).input_tags
        return tags


def class_probabilities(classifier: Any, X: Any, n_classes: int) -> NDArray[np.float64]:
    """Return probabilities of all classes, 0 for one that a classifier lacks.

    A row far from all labelled ones may have none, as in label propagation: NaN is 0.
    """
    predicted = in_all_classes(
        classifier.predict_proba(X), classifier, n_classes, absent=0.0
    )
    return np.nan_to_num(predicted.astype(np.float64), nan=0.0)


def slope_for(
    probabilities: NDArray[np.floating], targets: NDArray[np.float64]
) -> float:
    """Return the factor of log-odds with the least log-loss of targets."""
    scores = _log(probabilities)

    def loss(slope: float) -> float:
        return -float(np.sum(targets * log_softmax(slope * scores, axis=1)))

    return float(minimize_scalar(loss, bounds=_SLOPES, method="bounded").x)


def _log(probabilities: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.log(np.maximum(probabilities, _LEAST_WEIGHTED))


def bounded(scores: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    """Shorten scores of shape (n_rows, n_classes - 1) to less than a length."""
    scores = np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)
    lengths = np.linalg.norm(scores, axis=1, keepdims=True)
    lengths = np.maximum(lengths, _SMALLEST_UNIT)
    return scores * (bound * np.tanh(lengths / bound) / lengths)


def shift_to_shares(
    scores: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute what must be added to scores for given mean probabilities.

    By Newton's method, with steps of bounded length.
    """
    n_classes = scores.shape[1]
    target = np.maximum(shares, _LEAST_MEAN / n_classes)
    target = target / target.sum()
    shift = np.log(target)
    for _ in range(_MOST_ITERATIONS):
        found = softmax(scores + shift, axis=1)
        excess = found.mean(axis=0) - target
        if np.abs(excess).max() < _NEGLIGIBLE_SHARE:
            break
        # Singular along equal shifts, which change nothing.
        hessian = np.diag(found.mean(axis=0)) - found.T @ found / len(found)
        ridge = max(_RELATIVE_RIDGE * np.trace(hessian), _LEAST_RIDGE)
        ridge = ridge * np.eye(n_classes) + 1 / n_classes
        step = np.linalg.solve(ridge + hessian, excess)
        shift -= np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
    return shift - shift.mean()


def resolve_threshold(
    threshold: Any, probabilities: NDArray[np.float64], share_noise: float = 0.0
) -> float | None:
    """Return the threshold of two classes, None for the most probable class.

    `probabilities` are the released ones of public rows, and `share_noise` is the
    standard deviation of the noise on their mean.
    """
    if not isinstance(threshold, str):
        return float(threshold)
    if threshold == "accuracy" or probabilities.shape[1] != 2:
        return None
    of_second = np.sort(probabilities[:, 1])
    mean = float(of_second.mean())
    if threshold == "balanced":
        return mean
    return _matched_threshold(of_second, mean, share_noise)


def _matched_threshold(
    probabilities: NDArray[np.float64], share: float, noise: float
) -> float:
    """Return the threshold that a share of sorted probabilities exceeds, or nearly.

    Of those within the standard error of the share over these rows, and within two
    standard deviations of the noise of the share, the nearest to one half. It lies
    between two probabilities that differ by more than round-off, so that equal rows are
    predicted alike.
    """
    n_rows = len(probabilities)
    low, high = np.r_[0.0, probabilities], np.r_[probabilities, 1.0]
    cut = np.flatnonzero(high - low > _ROUND_OFF)
    error = np.abs(1 - cut / n_rows - share)
    sampling = np.sqrt(share * (1 - share) / n_rows)
    cut = cut[error <= max(np.hypot(sampling, 2 * noise), error.min())]
    between = (low[cut] + high[cut]) / 2
    between[(low[cut] < 0.5 - _ROUND_OFF) & (high[cut] > 0.5 + _ROUND_OFF)] = 0.5
    return float(between[np.argmin(np.abs(between - 0.5))])

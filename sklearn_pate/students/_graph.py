"""A student for few answers, fast without a GPU: a graph spreads them to all rows."""

import inspect
import math
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.linalg import cg
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._estimators._delegation import WrappingClassifier
from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._labels import UNLABELED
from sklearn_pate.exceptions import warn_user
from sklearn_pate.students._train_student import (
    accepts_unlabeled,
    encode_semi_supervised,
)

__all__ = ["GraphSelfTrainingClassifier"]

# Of the spread, relative to what each label spreads.
_TOLERANCE = 1e-12
_MAX_ITER = 5000
# What cannot be told from no spread at all, as a share of the mass of its class.
_NOTHING = 100 * _TOLERANCE
# The same argument, before and after scipy 1.12.
_RELATIVE = "rtol" if "rtol" in inspect.signature(cg).parameters else "tol"


class GraphSelfTrainingClassifier(WrappingClassifier):
    """Spread few labels over a nearest-neighbour graph, then train on the surest rows.

    A student for :class:`~sklearn_pate.PATEClassifier` that takes a few, well-chosen
    answers and every public row. It sees public rows and released answers only, so that
    none of its parameters costs any privacy.

    Parameters
    ----------
    estimator : classifier, default=None
        Trained on the rows as they are and the labels that were spread to them. None
        means ``RandomForestClassifier()``. It is fitted on class indices.

    representation : transformer, default=None
        Cloned, fitted on all rows given to `fit`, and used for distances only: such as
        ``make_pipeline(StandardScaler(), PCA(50))``. What is near in it should be alike
        in class: the spread is as good as that. None compares the rows as they are.

    n_neighbors : int, default=10
        Each row is joined to so many nearest rows.

    alpha : float, default=0.98
        How far labels spread, strictly between 0 and 1: the weight of a row's
        neighbours against its own label. A label that its neighbourhood contradicts is
        outvoted, all the more the larger this is.

    share : float, default=0.85
        `estimator` is trained on so many of the rows of each class, the surest ones; in
        (0, 1]. One that accepts unlabelled rows gets the others, too, with y = -1.

    n_rounds : int, default=1
        How often `estimator` is trained: first on labels from the graph, then on its
        own, which takes a classifier with ``predict_proba``. After the first or second
        round, labels tend to drift.

    random_state : int, RandomState instance or None, default=None
        Seeds every `random_state` inside `estimator` and `representation`. None leaves
        them as they are.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on class indices.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    label_distributions_ : ndarray of shape (n_rows, n_classes)
        What the graph says about each row given to `fit`; rows sum to 1. A row that no
        label reaches has the shares of the classes among the labels.

    transduction_ : ndarray of shape (n_rows,)
        The label that the graph gives to each row given to `fit`.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Row i has weights exp(-4 norm(r_i - r_j)^2 / d_i^2) to its nearest rows r_j, d_i the
    distance of the last of them (Calder, Cook, Thorpe, Slepcev 2020), averaged with
    those from j to i. With S = D^{-1/2} W D^{-1/2} and one column of Y a class, labels
    spread to F = (I - alpha S)^{-1} Y (Zhou, Bousquet, Lal, Weston, Schoelkopf 2004),
    by conjugate gradients. Each column of F is scaled so that its sum is the share of
    that class among the labels, with one more label of each class (class-mass
    normalisation: Zhu, Ghahramani, Lafferty 2003, Section 4). A row of that, scaled to
    sum to 1, is the row's label distribution.

    The surest labelled row of each class keeps its label, so that no class is lost.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from sklearn_pate.students import GraphSelfTrainingClassifier
    >>> X, y_true = make_moons(400, noise=0.05, random_state=0)
    >>> y = np.full(400, -1)
    >>> y[:8] = y_true[:8]
    >>> student = GraphSelfTrainingClassifier(SVC()).fit(X, y)
    >>> bool(student.score(X, y_true) > 0.95)
    True
    """

    #: Rows with y = -1 are unlabelled, as for scikit-learn's own.
    accepts_unlabeled = True

    def __init__(
        self,
        estimator: Any = None,
        representation: Any = None,
        *,
        n_neighbors: int = 10,
        alpha: float = 0.98,
        share: float = 0.85,
        n_rounds: int = 1,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.representation = representation
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.share = share
        self.n_rounds = n_rounds
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Spread labels to all rows and train on the surest ones.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows, with and without label.

        y : array-like of shape (n_rows,)
            Labels, -1 for an unlabelled row. Where y holds only one label beside -1, as
            in {-1, 1}, -1 counts as a class; among labels that are text, none means
            unlabelled.

        Returns
        -------
        self : GraphSelfTrainingClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter cannot work, or y holds one class only.

        Warns
        -----
        ConvergenceWarning
            If `alpha` is too near 1.
        """
        self._check_parameters()
        X = self._check_rows(X, reset=True)
        check_consistent_length(X, y)
        classes, codes = encode_semi_supervised(y)
        seeds = check_random_state(self.random_state).randint(MAX_SEED, size=2)

        rows = X
        if self.representation is not None:
            # Some insist on a y, and a frozen one has no fit_transform.
            rows = self._seeded(self.representation, seeds[0]).fit(X, None).transform(X)
        prior = _class_shares(codes, len(classes))
        spread = _spread(self._graph(rows), codes, prior, self.alpha)
        distributions = spread + _NOTHING * prior
        distributions /= distributions.sum(axis=1, keepdims=True)

        labels = _labels(distributions, codes)
        reached = spread.sum(axis=1) > _NOTHING
        confidence = np.where(reached, distributions.max(axis=1), -np.inf)
        estimator = self._train(X, labels, confidence, seeds[1])
        for _ in range(self.n_rounds - 1):
            own = estimator.predict_proba(X)
            estimator = self._train(X, _labels(own, codes), own.max(axis=1), seeds[1])

        self.classes_ = classes
        self.label_distributions_ = distributions
        self.transduction_ = classes[labels]
        self.estimator_ = estimator
        return self

    def _graph(self, rows):
        n_rows = rows.shape[0]
        n_neighbors = min(self.n_neighbors, n_rows - 1)
        distances, neighbors = (
            NearestNeighbors(n_neighbors=n_neighbors).fit(rows).kneighbors()
        )
        farthest = distances[:, -1:]
        # Where all of them are duplicates, each is as near as can be.
        relative = distances / np.where(farthest > 0, farthest, 1)
        ends = np.arange(0, n_rows * n_neighbors + 1, n_neighbors)
        weights = sp.csr_matrix(
            (np.exp(-4 * relative.ravel() ** 2), neighbors.ravel(), ends),
            shape=(n_rows, n_rows),
        )
        return (weights + weights.T) / 2

    def _train(self, X, labels, confidence, seed):
        """Train a fresh estimator on the surest rows of each class."""
        chosen = []
        for label in np.unique(labels):
            rows = np.flatnonzero((labels == label) & np.isfinite(confidence))
            surest_first = rows[np.argsort(-confidence[rows], kind="stable")]
            chosen.append(surest_first[: math.ceil(self.share * len(rows))])
        rows = np.sort(np.concatenate(chosen))
        estimator = self._seeded(self._unfitted(), seed)
        if accepts_unlabeled(estimator):
            targets = np.full(len(labels), UNLABELED)
            targets[rows] = labels[rows]
            return estimator.fit(X, targets)
        return estimator.fit(_safe_indexing(X, rows), labels[rows])

    def _check_parameters(self):
        self._check_estimator()
        estimator, representation = self._unfitted(), self.representation
        if representation is not None and not hasattr(representation, "transform"):
            raise ValueError(
                f"representation={representation!r} is not a transformer; pass one, "
                "such as PCA(50), or None."
            )
        for name in ("n_neighbors", "n_rounds"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name}={value!r} must be an integer of at least 1.")
        if not isinstance(self.alpha, Real) or not 0 < self.alpha < 1:
            raise ValueError(
                f"alpha={self.alpha!r} must be strictly between 0 and 1, such as 0.98."
            )
        if not isinstance(self.share, Real) or not 0 < self.share <= 1:
            raise ValueError(
                f"share={self.share!r} must be above 0 and at most 1, such as 0.85."
            )
        if self.n_rounds > 1 and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"n_rounds={self.n_rounds!r} needs an estimator with predict_proba, "
                f"which {estimator!r} lacks; use another one, or n_rounds=1."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self.representation is None:
            tags.input_tags.allow_nan = False  # nearest neighbours do not
        else:
            representation = get_tags(self.representation).input_tags
            tags.input_tags.sparse &= representation.sparse
            tags.input_tags.allow_nan &= representation.allow_nan
        return tags


def _class_shares(codes, n_classes):
    """Return the share of each class among the labels and one more label of each."""
    counts = np.bincount(codes[codes != UNLABELED], minlength=n_classes) + 1
    return counts / counts.sum()


def _spread(graph, codes, prior, alpha):
    """Return what reaches each row of each class; a column sums to its prior."""
    # A row has neighbours, and so a degree above zero.
    scale = sp.diags(np.asarray(graph.sum(axis=1)).ravel() ** -0.5)
    system = sp.identity(len(codes), format="csr") - alpha * (scale @ graph @ scale)
    columns = []
    for code in range(len(prior)):
        given = (codes == code).astype(np.float64)
        column, failed = cg(
            system, given, atol=0.0, maxiter=_MAX_ITER, **{_RELATIVE: _TOLERANCE}
        )
        if failed:
            warn_user(
                f"alpha={alpha!r} is so near 1 that labels are still spreading after "
                f"{_MAX_ITER} steps; lower alpha.",
                ConvergenceWarning,
            )
        columns.append(np.maximum(column, 0))  # round-off goes below zero
    spread = np.column_stack(columns)
    return spread * (prior / spread.sum(axis=0))


def _labels(distributions, codes):
    """Return the likeliest class of each row, no class left out."""
    labels = distributions.argmax(axis=1)
    for code in range(distributions.shape[1]):
        own = np.flatnonzero(codes == code)
        labels[own[distributions[own, code].argmax()]] = code
    return labels

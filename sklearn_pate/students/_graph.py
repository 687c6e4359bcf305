"""Student for few answers: label spreading on a graph, then self-training."""

import inspect
import math
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import cg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._estimators._class_codes import fit_class_indices, on_labels
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._estimators._kinds import (
    accepts_unlabeled,
    check_classifier,
    check_transformer,
)
from sklearn_pate._estimators._predictions import WrappingClassifier
from sklearn_pate._inputs._labels import UNLABELED, read_targets
from sklearn_pate.accounting._value_checks import Constraint, check_parameters
from sklearn_pate.exceptions import warn_user

# Relative residual at which conjugate gradients stop.
_TOLERANCE = 1e-12
_MAX_ITER = 5000
# A smaller share of the mass of a class may be numerical error.
_NEGLIGIBLE = 100 * _TOLERANCE
# Name of this argument after and before scipy 1.12.
_RELATIVE = "rtol" if "rtol" in inspect.signature(cg).parameters else "tol"


class GraphSelfTrainingClassifier(WrappingClassifier):
    """Student trained on labels that spread over a graph of nearest neighbours.

    As student of a :class:`~sklearn_pate.PATEClassifier`, this classifier learns from
    few answers or soft labels, and from all public rows. Training is fast without a
    GPU. Training uses public rows and released results only, so no parameter has a
    privacy cost.

    Parameters
    ----------
    estimator : classifier, default=None
        Classifier to train on rows, with the labels from the graph. None is
        ``RandomForestClassifier()``.

    representation : transformer, default=None
        Transformer used for distances only, such as ``make_pipeline(StandardScaler(),
        PCA(50))``. Rows at small distances should have equal classes. A clone of the
        transformer is fitted on all rows; with None, distances use the original
        features.

    n_neighbors : int, default=10
        Number of nearest rows to which each row is connected.

    alpha : float, default=0.98
        Weight of a row's neighbours relative to the row's own label, strictly between 0
        and 1. With a larger value, labels spread farther, and the labels of neighbours
        more often replace a row's own label.

    share : float, default=0.85
        Share of the rows of each class, in (0, 1], on which `estimator` is trained. The
        rows with the most confident labels are used. An estimator that accepts
        unlabelled rows also gets the other rows, with y = -1.

    n_rounds : int, default=1
        Number of times that `estimator` is trained. The first labels are from the
        graph, and further labels from ``predict_proba`` of the estimator. More than two
        rounds seldom help.

    random_state : int, RandomState instance or None, default=None
        Seed of every `random_state` in `estimator` and `representation`. With None,
        these parameters are not changed.

    Attributes
    ----------
    estimator_ : classifier
        The estimator, which predicts class indices.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    label_distributions_ : ndarray of shape (n_rows, n_classes)
        Class probabilities of each row in `fit`, from the graph. A row that no path
        connects to a labelled row has the class shares of the labels.

    transduction_ : ndarray of shape (n_rows,)
        Label of each row in `fit`, from the graph.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    The weight from row i to a nearest row j is exp(-4 norm(r_i - r_j)^2 / d_i^2), where
    d_i is the largest distance from row i to its nearest rows (Calder, Cook, Thorpe,
    Slepcev 2020). The weights from i to j and from j to i are averaged. Let W be the
    weights, D their row sums, S = D^{-1/2} W D^{-1/2}, and Y the labels with one column
    per class. Labels spread to F = (I - alpha S)^{-1} Y (Zhou, Bousquet, Lal, Weston,
    Schoelkopf 2004), computed by conjugate gradients. Each column of F is scaled to the
    share of its class among the labels, with one label added to each class (class-mass
    normalisation: Zhu, Ghahramani, Lafferty 2003, Section 4). Then each row is scaled
    to sum to 1. The most confident labelled row of each class keeps its label, so that
    no class is lost.

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

    __module__ = "sklearn_pate.students"  # its name in files

    #: Rows with y = -1 are unlabelled, as in scikit-learn.
    accepts_unlabeled = True
    #: Each row of y may be a histogram, or probabilities.
    accepts_soft_labels = True

    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_neighbors": Constraint.count(),
        "n_rounds": Constraint.count(),
        "alpha": Constraint.number(0, 1, closed="neither"),
        "share": Constraint.number(0, 1, closed="right"),
    }

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
        """Spread labels to all rows, and train on rows with confident labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Labelled and unlabelled rows.

        y : array-like of shape (n_rows,) or (n_rows, n_classes)
            Labels; -1 for an unlabelled row. If y has only one label beside -1, as in
            {-1, 1}, -1 is a class. With text labels, no row is unlabelled. Several
            columns of y are the probabilities of classes 0, 1, ..., and a row of zeros,
            or with a NaN, is then unlabelled.

        Returns
        -------
        self : GraphSelfTrainingClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter is invalid, or y has one class only.

        Warns
        -----
        ConvergenceWarning
            If `alpha` is too near 1.
        """
        self._check_parameters()
        X = self._check_rows(X, reset=True)
        check_consistent_length(X, y)
        classes, read = read_targets(y)
        targets = read.astype(np.float64)
        seeds = check_random_state(self.random_state).randint(MAX_SEED, size=2)

        rows = X
        if self.representation is not None:
            # Some transformers need a y; a frozen one has no fit_transform.
            rows = self._seeded(self.representation, seeds[0]).fit(X, None).transform(X)
        prior = (targets.sum(axis=0) + 1) / (targets.sum() + len(classes))
        spread = _spread(self._graph(rows), targets, prior, self.alpha)
        distributions = spread + _NEGLIGIBLE * prior
        distributions /= distributions.sum(axis=1, keepdims=True)

        labeled = targets.any(axis=1)
        codes = np.where(labeled, targets.argmax(axis=1), UNLABELED)
        labels = _labels(distributions, codes)
        reached = spread.sum(axis=1) > _NEGLIGIBLE
        confidence = np.where(reached, distributions.max(axis=1), -np.inf)
        estimator = self._train(X, labels, classes, confidence, seeds[1])
        for _ in range(self.n_rounds - 1):
            own = estimator.predict_proba(X)
            later = _labels(own, codes)
            estimator = self._train(X, later, classes, own.max(axis=1), seeds[1])

        self.classes_ = classes
        self.label_distributions_ = distributions
        self.transduction_ = classes[labels]
        self.estimator_ = estimator
        return self

    def _graph(self, rows: Any) -> sp.csr_matrix:
        from sklearn.neighbors import NearestNeighbors  # slow to import

        n_rows = rows.shape[0]
        n_neighbors = min(self.n_neighbors, n_rows - 1)
        distances, neighbors = (
            NearestNeighbors(n_neighbors=n_neighbors).fit(rows).kneighbors()
        )
        farthest = distances[:, -1:]
        # Where all neighbours are duplicates, all distances are 0.
        relative = distances / np.where(farthest > 0, farthest, 1)
        ends = np.arange(0, n_rows * n_neighbors + 1, n_neighbors)
        weights = sp.csr_matrix(
            (np.exp(-4 * relative.ravel() ** 2), neighbors.ravel(), ends),
            shape=(n_rows, n_rows),
        )
        return (weights + weights.T) / 2

    def _train(
        self,
        X: Any,
        labels: NDArray[np.intp],
        classes: NDArray[Any],
        confidence: NDArray[np.float64],
        seed: int,
    ) -> Any:
        """Train a new estimator on the most confident rows of each class."""
        chosen = []
        for label in np.unique(labels):
            rows = np.flatnonzero((labels == label) & np.isfinite(confidence))
            most_confident_first = rows[np.argsort(-confidence[rows], kind="stable")]
            chosen.append(most_confident_first[: math.ceil(self.share * len(rows))])
        rows = np.sort(np.concatenate(chosen))
        estimator = self._seeded(self._unfitted_inner(), seed)
        estimator = on_labels("estimator", estimator, classes)
        if accepts_unlabeled(estimator):
            targets = np.full(len(labels), UNLABELED)
            targets[rows] = labels[rows]
            return estimator.fit(X, targets)
        return fit_class_indices(estimator, _safe_indexing(X, rows), labels[rows])

    def _check_parameters(self) -> None:
        estimator = self._unfitted_inner()
        check_classifier("estimator", estimator)
        check_transformer(self.representation)
        check_parameters(self)
        if self.n_rounds > 1 and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"n_rounds={self.n_rounds!r} needs predict_proba, which {estimator!r} "
                "lacks; use another estimator, or n_rounds=1."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.representation is None:
            tags.input_tags.allow_nan = False  # NearestNeighbors does not
        else:
            representation = get_tags(self.representation).input_tags
            tags.input_tags.sparse &= representation.sparse
            tags.input_tags.allow_nan &= representation.allow_nan
        return tags


def _spread(
    graph: sp.csr_matrix,
    targets: NDArray[np.float64],
    prior: NDArray[np.float64],
    alpha: float,
) -> NDArray[np.float64]:
    """Spread the labels of each class over the graph; columns sum to `prior`."""
    # Each row has neighbours, so its degree is positive.
    scale = sp.diags(np.asarray(graph.sum(axis=1)).ravel() ** -0.5)
    system = sp.identity(len(targets), format="csr") - alpha * (scale @ graph @ scale)
    columns = []
    for given in targets.T:
        column, failed = cg(
            system, given, atol=0.0, maxiter=_MAX_ITER, **{_RELATIVE: _TOLERANCE}
        )
        if failed:
            warn_user(
                f"alpha={alpha!r} is too near 1: labels have not converged after "
                f"{_MAX_ITER} steps; lower alpha.",
                ConvergenceWarning,
            )
        columns.append(np.maximum(column, 0))  # rounding errors may be negative
    spread = np.column_stack(columns)
    return spread * (prior / spread.sum(axis=0))


def _labels(
    distributions: NDArray[np.floating], codes: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return the most probable class of each row; each given class keeps a row."""
    labels = distributions.argmax(axis=1)
    for code in range(distributions.shape[1]):
        own = np.flatnonzero(codes == code)
        if len(own):
            labels[own[distributions[own, code].argmax()]] = code
    return labels

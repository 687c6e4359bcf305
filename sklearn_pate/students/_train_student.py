"""Training of a student on noisy labels, and distillation of soft labels."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.dummy import DummyClassifier
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from sklearn_pate._estimators._class_codes import (
    RelabeledClassifier,
    fit_class_indices,
    on_labels,
)
from sklearn_pate._estimators._isolation import MAX_SEED, seeded_clone, seeded_globals
from sklearn_pate._estimators._kinds import (
    accepts_soft_labels,
    accepts_unlabeled,
    check_classifier,
    declares,
    in_last_step,
)
from sklearn_pate._estimators._predictions import (
    WrappingClassifier,
    soften_probabilities,
)
from sklearn_pate._inputs._labels import UNLABELED, read_classes
from sklearn_pate.accounting._value_checks import check_number
from sklearn_pate.exceptions import StudentWarning, warn_user

if TYPE_CHECKING:
    from sklearn_pate.students.networks._network_classifier import RelationalHint


# Copies of each row for a classifier that takes no weights.
_N_COPIES = 10
# The fractional parts of its multiples are spread evenly over [0, 1).
_GOLDEN = (math.sqrt(5) - 1) / 2


def soften(histograms: ArrayLike, temperature: float = 1.0) -> NDArray[np.float64]:
    """Convert released vote counts, or probabilities, to class probabilities.

    Row by row, p_j is proportional to max(n_j, 0)^(1 / temperature), and uniform where
    no count is positive: the softmax at a temperature of the logarithms of the counts
    (Hinton, Vinyals, Dean 2015, "Distilling the knowledge in a neural network"). This
    is post-processing, and has no privacy cost.
    """
    check_number("temperature", temperature, 0, math.inf, closed="neither")
    histograms = np.asarray(histograms, dtype=np.float64)
    if histograms.ndim != 2 or histograms.shape[1] < 2:
        raise ValueError(
            f"histograms has shape {histograms.shape}; pass one row per query "
            "and one column per class, with at least two classes."
        )
    if not np.all(np.isfinite(histograms)):
        raise ValueError(
            "histograms holds NaN or infinity; leave out rows without an answer."
        )
    is_counted = histograms.max(axis=1, keepdims=True) > 0
    positive = np.where(is_counted, np.maximum(histograms, 0), 1)
    return soften_probabilities(positive, temperature)


class DistillationClassifier(WrappingClassifier):
    """Student that trains any classifier on soft labels, such as released histograms.

    This student is for :class:`~sklearn_pate.PATEClassifier` with
    ``mechanism="histogram"``, and wraps students of mean scores that learn from labels
    alone. For a row on which teachers disagree, the student learns
    the shares of the classes instead of the most-voted class. Training uses public rows
    and released histograms only, so no parameter has a privacy cost.

    Parameters
    ----------
    estimator : classifier, default=None
        Classifier to train. None is ``RandomForestClassifier()``. If `fit` of the
        classifier accepts `sample_weight`, each row is used once per class, weighted by
        the class probability. Otherwise, and for a Pipeline, ten copies of each row are
        labelled in proportion to the class probabilities.

    temperature : float, default=1.0
        Class probabilities are proportional to max(n_j, 0)^(1 / temperature), with
        counts n_j. A temperature above 1 makes probabilities more equal. A temperature
        below 1 favours the most-voted class, and reduces the noise in classes without
        votes.

    random_state : int, RandomState instance or None, default=None
        Seed of every `random_state` in `estimator`. With None, these parameters are not
        changed.

    Attributes
    ----------
    estimator_ : classifier
        The estimator, which predicts class indices.

    classes_ : ndarray of shape (n_classes,)
        Class labels; 0, 1, ... after a fit on soft labels.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    With the log-loss, a row with class probabilities p_j and predicted probabilities
    q_j contributes the cross-entropy -sum_j p_j log q_j (Hinton, Vinyals, Dean 2015,
    "Distilling the knowledge in a neural network"). Papernot et al. (2017, Appendix
    B.1) found that, without noise, the gain of soft labels over labels is too small for
    the privacy cost. With noise, the gain is larger, as errors of noisy histograms
    average out over rows, unlike errors of noisy answers. At a fixed epsilon, the noise
    on histograms is about 1.25 times the noise on counts for answers.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate.students import DistillationClassifier
    >>> X, histograms = [[0.0], [1.0], [2.0]], [[90, 3], [52, 41], [-8, 97]]
    >>> student = DistillationClassifier(LogisticRegression()).fit(X, histograms)
    >>> student.predict([[0.0], [2.0]])
    array([0, 1])
    """

    __module__ = "sklearn_pate.students"  # its name in files

    #: Each row of y may be a histogram, or probabilities.
    accepts_soft_labels = True

    def __init__(
        self,
        estimator: Any = None,
        temperature: float = 1.0,
        *,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.temperature = temperature
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train a clone of the estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        y : array-like of shape (n_rows, n_classes) or (n_rows,)
            Released histograms or probabilities of classes 0, 1, ..., or class labels.
            Class labels are used without change.

        Returns
        -------
        self : DistillationClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter is invalid, y has one class only, or histograms are not
            numbers.
        """
        check_classifier("estimator", self._unfitted_inner())
        check_number("temperature", self.temperature, 0, math.inf, closed="neither")
        X = self._check_rows(X, reset=True)
        check_consistent_length(X, y)
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        estimator = self._seeded(self._unfitted_inner(), seed)
        y = y if hasattr(y, "shape") else np.asarray(y)
        if len(y.shape) > 1 and y.shape[1] > 1:
            probabilities = soften(y, self.temperature)
            self.estimator_ = _distil(estimator, X, probabilities)
            self.classes_ = np.arange(probabilities.shape[1])
        else:
            self.classes_, codes = read_classes(y)
            labelled = on_labels("estimator", estimator, self.classes_)
            self.estimator_ = fit_class_indices(labelled, X, codes)
        return self


def _distil(estimator: Any, X: Any, probabilities: NDArray[np.float64]) -> Any:
    """Train on soft labels."""
    named = np.flatnonzero(probabilities.any(axis=0))
    if len(named) < 2:
        raise ValueError(
            f"y holds one class only, {named[0]}; query more rows, as classifiers need "
            "two."
        )
    # fit_class_indices also handles a class without any row.
    all_named = len(named) == probabilities.shape[1]
    if all_named and _uses_weights(estimator):
        rows, codes = np.nonzero(probabilities)
        weights = probabilities[rows, codes]
        X = _safe_indexing(X, rows)
        # With metadata routing, an ensemble or a search inside refuses weights.
        with config_context(enable_metadata_routing=False):
            return fit_class_indices(estimator, X, codes, sample_weight=weights)
    counts = _copies(probabilities)
    rows, codes = np.nonzero(counts)
    repeats = counts[rows, codes]
    return fit_class_indices(
        estimator,
        _safe_indexing(X, np.repeat(rows, repeats)),
        np.repeat(codes, repeats),
    )


def _uses_weights(estimator: Any) -> bool:
    """Check whether weights reach all that is trained: an inner estimator may not."""
    if isinstance(estimator, RelabeledClassifier):
        estimator = estimator.estimator
    is_nested = any("__" in name for name in estimator.get_params())
    return not is_nested and has_fit_parameter(estimator, "sample_weight")


def _copies(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Distribute the copies of each row over the classes.

    Copies are at equal distances along the classes, from another offset in each row, so
    that over many rows no class gains by rounding (systematic sampling).
    """
    offsets = (_GOLDEN * np.arange(1, len(probabilities) + 1)) % 1
    ends = np.cumsum(probabilities, axis=1)
    ends[:, -1] = 1
    before = np.ceil(_N_COPIES * ends - offsets[:, np.newaxis]).astype(np.int64)
    return np.diff(before, axis=1, prepend=0)


def accepts_hints(student: Any) -> bool:
    """Check whether the `fit` of a student takes a `RelationalHint` as `hint`.

    True for any estimator that accepts unlabelled rows and has an attribute
    ``accepts_hints = True``, and for a Pipeline that ends in one.
    """
    return bool(declares(student, "accepts_hints")) and accepts_unlabeled(student)


def train_student(
    student: Any,
    X_public: Any,
    queried: NDArray[np.intp],
    answers: NDArray[np.integer],
    *,
    n_classes: int,
    seed: int,
    histograms: NDArray[Any] | None = None,
    hint: "RelationalHint | None" = None,
) -> Any:
    """Train a clone of the student on public rows and released answers only.

    `answers` are class indices of the `queried` rows, -1 for no answer; `histograms`
    have shape (n_queries, n_classes). Both and `hint` must have been released by a
    mechanism: training is then post-processing and has no privacy cost. As most
    classifiers need two classes, the student is constant, with a StudentWarning, if the
    answers hold fewer.
    """
    answered = answers != UNLABELED
    rows, labels = queried[answered], answers[answered].astype(np.int64)
    if len(np.unique(labels)) < 2:
        return _constant_student(labels, n_classes)
    student = seeded_clone(student, seed)
    unlabeled = np.full(X_public.shape[0], UNLABELED, dtype=np.int64)
    if histograms is not None and accepts_soft_labels(student):
        labels = soften(histograms[answered])
        unlabeled = np.zeros((X_public.shape[0], n_classes))
    with seeded_globals(seed), _explained_errors():
        if accepts_unlabeled(student):
            unlabeled[rows] = labels
            hints = {} if hint is None else {in_last_step(student, "hint"): hint}
            # A copy, as the other fits of a search share the public rows.
            X_public = deepcopy(X_public)
            if not hints:
                return student.fit(X_public, unlabeled)
            # With metadata routing, a Pipeline refuses a parameter of its step.
            with config_context(enable_metadata_routing=False):
                return student.fit(X_public, unlabeled, **hints)
        X_rows = _safe_indexing(X_public, rows)
        if labels.ndim == 2:
            return student.fit(X_rows, labels)
        return fit_class_indices(student, X_rows, labels)


@contextmanager
def _explained_errors() -> Iterator[None]:
    """Add to an error of the student's `fit` that the privacy has been spent."""
    try:
        yield
    except Exception as error:
        error.add_note(
            "The student could not be trained on the public rows and the released "
            "answers, whose privacy cost is spent. Before another fit, try student.fit "
            "on X_public with these answers."
        )
        raise


def _constant_student(labels: NDArray[np.int64], n_classes: int) -> DummyClassifier:
    """Predict the one class in `labels`, or without labels all classes; warn."""
    if labels.size:
        problem = (
            f"All answers ({labels.size}) name one class; the student always "
            "predicts it"
        )
        targets = labels[:1]
    else:
        problem = "No query was answered; the student predicts equal probabilities"
        targets = np.arange(n_classes)
    warn_user(
        f"{problem}. The privacy cost is spent nevertheless. Before another fit, "
        "consider more queries, a lower threshold, more teachers or a larger epsilon.",
        StudentWarning,
    )
    return DummyClassifier(strategy="prior").fit(np.zeros((len(targets), 1)), targets)

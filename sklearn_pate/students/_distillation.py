"""Training of students on soft labels, such as released histograms."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from sklearn_pate._estimators._class_codes import fit_class_indices
from sklearn_pate._estimators._delegation import WrappingClassifier
from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._checks import check_number
from sklearn_pate._inputs._labels import read_classes

__all__ = ["DistillationClassifier", "soften"]

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
    largest = histograms.max(axis=1, keepdims=True)
    # Divided by the largest, no power overflows; without a positive one, all are 1.
    counted = np.where(largest > 0, np.maximum(histograms, 0), 1)
    weights = (counted / np.where(largest > 0, largest, 1)) ** (1 / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


class DistillationClassifier(WrappingClassifier):
    """Train any classifier on soft labels, such as released histograms.

    A student for :class:`~sklearn_pate.PATEClassifier` with ``release="histogram"``.
    From a row on which the teachers disagree it learns the shares of the classes,
    instead of the noisy plurality. It uses public rows and released histograms only:
    none of its parameters has a privacy cost.

    Parameters
    ----------
    estimator : classifier, default=None
        If its `fit` takes `sample_weight`, and no estimator is inside it, it is trained
        on each row once per class, weighted by the probability of the class; otherwise,
        as a Pipeline, on ten copies of each row, labelled in proportion. Fitted on
        class indices. None means ``RandomForestClassifier()``.

    temperature : float, default=1.0
        Probabilities are proportional to max(n_j, 0)^(1 / temperature) of the counts
        n_j. A value above 1 makes them more equal; one below 1 favours the plurality,
        and reduces the noise in classes without votes.

    random_state : int, RandomState instance or None, default=None
        Seed of every `random_state` inside `estimator`. None does not change them.

    Attributes
    ----------
    estimator_ : classifier
        The estimator, fitted on class indices.

    classes_ : ndarray of shape (n_classes,)
        Class labels; 0, 1, ... after a fit on soft labels.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    With the log-loss, a row with probabilities p_j contributes the cross-entropy
    -sum_j p_j log q_j of Hinton, Vinyals, Dean (2015), "Distilling the knowledge in a
    neural network". Papernot et al. (2017, Appendix B.1) found the gain over labels,
    without noise, too small for its privacy cost. It is larger with noise, as errors of
    histograms average out over rows and those of answers do not. At a fixed epsilon,
    the noise of histograms is about 1.25 times that of answers.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate.students import DistillationClassifier
    >>> X, histograms = [[0.0], [1.0], [2.0]], [[90, 3], [52, 41], [-8, 97]]
    >>> student = DistillationClassifier(LogisticRegression()).fit(X, histograms)
    >>> student.predict([[0.0], [2.0]])
    array([0, 1])
    """

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
            Released histograms, or probabilities, of classes 0, 1, ...; or class
            labels, on which the estimator is trained without any change.

        Returns
        -------
        self : DistillationClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter is invalid, or y holds one class only or no numbers.
        """
        self._check_estimator()
        check_number("temperature", self.temperature, 0, math.inf, closed="neither")
        X = self._check_rows(X, reset=True)
        check_consistent_length(X, y)
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        estimator = self._seeded(self._unfitted(), seed)
        y = y if hasattr(y, "shape") else np.asarray(y)
        if len(y.shape) > 1 and y.shape[1] > 1:
            probabilities = soften(y, self.temperature)
            self.estimator_ = _distil(estimator, X, probabilities)
            self.classes_ = np.arange(probabilities.shape[1])
        else:
            self.classes_, codes = read_classes(y)
            self.estimator_ = estimator.fit(X, codes)
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
            return estimator.fit(X, codes, sample_weight=weights)
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

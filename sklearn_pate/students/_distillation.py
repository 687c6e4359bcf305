"""Soft labels: what teachers thought of every class, noise included."""

import math
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from sklearn_pate._estimators._class_codes import fit_class_indices
from sklearn_pate._estimators._delegation import WrappingClassifier
from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._labels import read_classes

__all__ = ["DistillationClassifier", "soften"]

# Copies of a row for a classifier that takes no weights.
_N_COPIES = 10
# Its multiples, without their whole parts, are spread evenly.
_GOLDEN = (math.sqrt(5) - 1) / 2


def soften(histograms: ArrayLike, temperature: float = 1.0) -> NDArray[np.float64]:
    """Turn noisy vote counts into class probabilities.

    Released histograms are public: this costs no privacy, at any temperature.

    Parameters
    ----------
    histograms : array-like of shape (n_rows, n_classes)
        Released vote counts, which may be negative, or probabilities.

    temperature : float, default=1.0
        Above 1 evens the classes out; below 1 sharpens towards the plurality.

    Returns
    -------
    probabilities : ndarray of shape (n_rows, n_classes)
        Proportional to max(n_j, 0)^(1 / temperature); uniform where no count is
        positive.

    Raises
    ------
    ValueError
        If `histograms` has another shape or holds NaN or infinity, or `temperature` is
        not a positive, finite number.

    Notes
    -----
    The softmax at a temperature of Hinton, Vinyals, Dean (2015), "Distilling the
    knowledge in a neural network", of the logarithms of the counts.

    Examples
    --------
    >>> from sklearn_pate.students._distillation import soften
    >>> soften([[30, 10, -4]])
    array([[0.75, 0.25, 0.  ]])
    >>> soften([[30, 10, -4]], temperature=0.5)
    array([[0.9, 0.1, 0. ]])
    """
    _check_temperature(temperature)
    histograms = np.asarray(histograms, dtype=np.float64)
    if histograms.ndim != 2 or histograms.shape[1] < 2:
        raise ValueError(
            f"histograms has shape {histograms.shape}; pass one row a query and one "
            "column a class, with at least two classes."
        )
    if not np.all(np.isfinite(histograms)):
        raise ValueError(
            "histograms holds NaN or infinity; leave out rows without an answer."
        )
    largest = histograms.max(axis=1, keepdims=True)
    # Relative to the largest, no power overflows; where none is positive, all count.
    counted = np.where(largest > 0, np.maximum(histograms, 0), 1)
    weights = (counted / np.where(largest > 0, largest, 1)) ** (1 / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


class DistillationClassifier(WrappingClassifier):
    """Train any classifier on soft labels, such as released histograms.

    A student for :class:`~sklearn_pate.PATEClassifier` with ``release="histogram"``. A
    row on which the teachers are divided teaches that they are, instead of the noisy
    winner. It sees public rows and released histograms only, so that none of its
    parameters costs any privacy.

    Parameters
    ----------
    estimator : classifier, default=None
        Trained on every row once a class, weighted by the probability of the class, if
        its `fit` takes `sample_weight`; on ten copies of every row, labelled in
        proportion, if not (a Pipeline does not). None means
        ``RandomForestClassifier()``. It is fitted on class indices.

    temperature : float, default=1.0
        Above 1 evens the classes out; below 1 sharpens towards the plurality, which
        also mutes what noise adds to classes without votes. See :func:`soften`.

    random_state : int, RandomState instance or None, default=None
        Seeds every `random_state` inside `estimator`. None leaves them as they are.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on class indices.

    classes_ : ndarray of shape (n_classes,)
        Class labels; 0, 1, ... after a fit on soft labels.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    With the log-loss, a row weighted by p_j for each class j contributes the
    cross-entropy -sum_j p_j log q_j of Hinton, Vinyals, Dean (2015). Papernot et al.
    (2017, Appendix B.1) found the gain over plain labels, without noise, too small for
    its cost. It is larger with noise: where answers are often wrong, histograms still
    average out. At a fixed epsilon their noise is about 1.25 times that of answers.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate.students import DistillationClassifier
    >>> X, histograms = [[0.0], [1.0], [2.0]], [[90, 3], [52, 41], [-8, 97]]
    >>> student = DistillationClassifier(LogisticRegression()).fit(X, histograms)
    >>> student.predict([[0.0], [2.0]])
    array([0, 1])
    """

    #: A row of y may be a histogram, or probabilities.
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
            labels, on which the estimator is trained as it would be without this.

        Returns
        -------
        self : DistillationClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter cannot work, or y names one class only or is no number.
        """
        self._check_estimator()
        _check_temperature(self.temperature)
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


def _distil(estimator, X, probabilities):
    """Train on soft labels."""
    named = np.flatnonzero(probabilities.any(axis=0))
    if len(named) < 2:
        raise ValueError(
            f"y names one class only, {named[0]}; classifiers need two. Ask about more "
            "rows."
        )
    # With a class that no row names, fit_class_indices knows what to do.
    all_named = len(named) == probabilities.shape[1]
    if all_named and has_fit_parameter(estimator, "sample_weight"):
        rows, codes = np.nonzero(probabilities)
        weights = probabilities[rows, codes]
        return estimator.fit(_safe_indexing(X, rows), codes, sample_weight=weights)
    counts = _copies(probabilities)
    rows, codes = np.nonzero(counts)
    repeats = counts[rows, codes]
    return fit_class_indices(
        estimator,
        _safe_indexing(X, np.repeat(rows, repeats)),
        np.repeat(codes, repeats),
    )


def _copies(probabilities):
    """Apportion the copies of each row to the classes.

    They stand at equal distances along the classes, from another offset in each row, so
    that over many rows no class gains by rounding (systematic sampling).
    """
    offsets = (_GOLDEN * np.arange(1, len(probabilities) + 1)) % 1
    ends = np.cumsum(probabilities, axis=1)
    ends[:, -1] = 1
    before = np.ceil(_N_COPIES * ends - offsets[:, np.newaxis]).astype(np.int64)
    return np.diff(before, axis=1, prepend=0)


def _check_temperature(temperature):
    if (
        isinstance(temperature, bool)
        or not isinstance(temperature, Real)
        or not 0 < temperature < math.inf
    ):
        raise ValueError(
            f"temperature={temperature!r} must be a positive, finite number, such as 1."
        )

"""RecalibratedClassifier: a fitted model with scores corrected by private metrics."""

from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, get_tags

from sklearn_pate.accounting._assumptions import FITTED_ROWS_UNPROTECTED
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.metrics._estimates import Array, clipped_log_odds


class RecalibratedClassifier(ClassifierMixin, BaseEstimator):
    """Fitted classifier whose probabilities are corrected by private metrics.

    Created by :meth:`PrivateMetrics.recalibrated`. The log-odds of each class are
    multiplied by a slope and shifted by an intercept, which were computed from noisy
    counts. Published with its `estimator`, it is covered by the statement of the model
    together with that of the metrics.

    `fit` raises; it exists because scikit-learn requires it of estimators. A clone is
    the object itself. Where it would be fitted, pass it as a ``FrozenEstimator``.

    Parameters
    ----------
    estimator : classifier
        Fitted, with ``predict_proba``: the model that was measured.

    metrics : PrivateMetrics
        Its metrics.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    intercepts_ : ndarray of shape (n_scored,)
        Intercept for the second of two classes, or for each class.

    slopes_ : ndarray of shape (n_scored,)
        Slopes in the same order.

    n_features_in_, feature_names_in_ : object
        Those of the model, if it has them.

    privacy_spent_ : PrivacySpent
        The sum of the statements of model and metrics. For a model without a statement,
        it is that of the metrics, and assumes that the rows which the model was fitted
        on are public.

    Notes
    -----
    Platt (1999), "Probabilistic outputs for support vector machines". With more than
    two classes, each is corrected against all others, and probabilities are divided by
    their sum, as in :class:`~sklearn.calibration.CalibratedClassifierCV`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate.metrics import private_metrics
    >>> X, y = make_blobs(3000, centers=2, cluster_std=6.0, random_state=0)
    >>> model = GaussianNB().fit(X[:1000], y[:1000])
    >>> metrics = private_metrics(model, X[1000:], y[1000:], epsilon=1.0)
    >>> better = metrics.recalibrated(model)
    >>> better.predict_proba(X[:5]).shape
    (5, 2)
    >>> better.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    """

    def __init__(self, estimator: Any, metrics: Any) -> None:
        self.estimator = estimator
        self.metrics = metrics

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Raise TypeError: the model is fitted, and so is its correction.

        Parameters
        ----------
        X : object
            Not used.

        y : object
            Not used.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "A RecalibratedClassifier cannot be fitted; measure another model by "
            "private_metrics, or pass FrozenEstimator(recalibrated) to what needs to "
            "fit its estimators."
        )

    def predict_proba(self, X: Any) -> Array:
        """Predict corrected class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows, as the model takes them.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        scores = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        is_binary = len(self.classes_) == 2
        log_odds = clipped_log_odds(scores[:, 1:] if is_binary else scores)
        corrected = expit(self.intercepts_ + self.slopes_ * log_odds)
        if is_binary:
            return np.hstack([1 - corrected, corrected])
        return corrected / corrected.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class with the largest corrected probability.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows, as the model takes them.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            Class labels.
        """
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels."""
        return self.estimator.classes_

    @property
    def intercepts_(self) -> Array:
        """Intercept for the second of two classes, or for each class."""
        return self._corrections[:, 0]

    @property
    def slopes_(self) -> Array:
        """Slope for the second of two classes, or for each class."""
        return self._corrections[:, 1]

    @cached_property
    def privacy_spent_(self) -> PrivacySpent:
        """The sum of the statements of model and metrics."""
        spent = self.metrics.privacy_spent_
        of_model = getattr(self.estimator, "privacy_spent_", None)
        if of_model is not None:
            return of_model + spent
        return replace(spent, assumptions=(*spent.assumptions, FITTED_ROWS_UNPROTECTED))

    @cached_property
    def _corrections(self) -> Array:
        """Intercept and slope of each scored class."""
        return self.metrics._recalibrations()

    @property
    def n_features_in_(self) -> int:
        """Number of features, if the model has it."""
        return self.estimator.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Array of feature names, if the model has them."""
        return self.estimator.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

"""Prediction that is left to another classifier: the student, or a wrapped one."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
    is_classifier,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_pate._estimators._class_codes import in_all_classes, predict_codes
from sklearn_pate._estimators._seeding import seeded_clone
from sklearn_pate._inputs._features import check_features

__all__ = [
    "StudentPredictionMixin",
    "WrappingClassifier",
    "last_step",
    "with_last_step",
]


def last_step(estimator: Any) -> Any:
    """Return the estimator at the end of pipelines, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def with_last_step(estimator: Any, last: Any) -> Any:
    """Return a pipeline with another last step, or that step for what is none."""
    if not isinstance(estimator, Pipeline):
        return last
    *front, (name, inner) = estimator.steps
    return Pipeline([*front, (name, with_last_step(inner, last))])


def _predictor_has(method):
    return lambda self: hasattr(self._predictor(), method)


class _DelegatedPrediction:
    """Predict with a classifier that was fitted on class indices."""

    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows. Prediction costs no privacy, whoever they belong to.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels out of ``classes_``.

        Raises
        ------
        ValueError
            If X has other columns than in `fit`, or a prediction is no class index.
        """
        X = self._check_before_predicting(X)
        return self.classes_[predict_codes(self._predictor(), X, len(self.classes_))]

    @available_if(_predictor_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Predict class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            A column for each of ``classes_``, 0 where no answer named the class.
        """
        return self._scores("predict_proba", X, absent=0.0)

    @available_if(_predictor_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Score classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
            A column for each of ``classes_``, -inf where no answer named the class.
        """
        return self._scores("decision_function", X, absent=-np.inf)

    def _scores(self, method, X, *, absent):
        X = self._check_before_predicting(X)
        scores = getattr(self._predictor(), method)(X)
        n_classes = len(self.classes_)
        if scores.ndim == 1 and n_classes > 2:  # two of them were ever named
            scores = np.column_stack([-scores, scores])
        return in_all_classes(scores, self._predictor(), n_classes, absent=absent)

    @abstractmethod
    def _predictor(self):
        """Return the fitted classifier, or before `fit` what it will be made of."""

    @abstractmethod
    def _check_before_predicting(self, X):
        """Return rows as the classifier takes them, if it is fitted and they fit."""


class StudentPredictionMixin(_DelegatedPrediction):
    """Predict with ``student_``, in terms of ``classes_``."""

    student_: Any

    def _predictor(self):
        # Not `or`: an ensemble without members is false.
        student = getattr(self, "student_", None)
        return self._unfitted_student() if student is None else student

    def _check_before_predicting(self, X):
        check_is_fitted(self, "student_")
        return check_features(self, X, reset=False)


class WrappingClassifier(
    _DelegatedPrediction, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """Base of classifiers that train a clone of `estimator` on other labels.

    A subclass has the parameters `estimator` and `random_state`, and its `fit` sets
    ``estimator_``, fitted on class indices, and ``classes_``.
    """

    estimator: Any
    random_state: Any
    estimator_: Any

    def _predictor(self):
        fitted = getattr(self, "estimator_", None)
        return self._unfitted() if fitted is None else fitted

    def _check_before_predicting(self, X):
        check_is_fitted(self, "estimator_")
        return self._check_rows(X, reset=False)

    def _unfitted(self):
        return RandomForestClassifier() if self.estimator is None else self.estimator

    def _seeded(self, estimator, seed):
        """Clone, with seeds of its own if `random_state` asks for it."""
        if self.random_state is None:
            return clone(estimator)
        return seeded_clone(estimator, int(seed))

    def _check_estimator(self):
        estimator = self._unfitted()
        if not (hasattr(estimator, "fit") and is_classifier(estimator)):
            raise ValueError(
                f"estimator={estimator!r} is not a classifier; pass one, such as "
                "RandomForestClassifier()."
            )

    def _check_rows(self, X, *, reset):
        if hasattr(X, "columns"):
            # A ColumnTransformer still finds its columns by name.
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        tags = get_tags(self).input_tags
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if tags.sparse else False,
            ensure_all_finite="allow-nan" if tags.allow_nan else True,
            ensure_min_samples=2 if reset else 1,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        estimator = get_tags(self._unfitted()).input_tags
        tags.input_tags.sparse = estimator.sparse
        tags.input_tags.allow_nan = estimator.allow_nan
        return tags

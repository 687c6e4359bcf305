"""Prediction by an inner classifier: the student, the wrapped or the selected one."""

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
    is_classifier,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_pate._estimators._class_codes import DelegatedPredictionMixin
from sklearn_pate._estimators._seeding import seeded_clone
from sklearn_pate._inputs._features import check_features

__all__ = [
    "StudentPredictionMixin",
    "WrappingClassifier",
    "last_step",
    "with_last_step",
]


def last_step(estimator: Any) -> Any:
    """Return the last step of nested pipelines, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def with_last_step(estimator: Any, last: Any) -> Any:
    """Return a copy of nested pipelines with another last step, or that step alone."""
    if not isinstance(estimator, Pipeline):
        return last
    *front, (name, inner) = estimator.steps
    return Pipeline([*front, (name, with_last_step(inner, last))])


class StudentPredictionMixin(DelegatedPredictionMixin):
    """Predict with ``student_``, in terms of ``classes_``."""

    student_: Any
    _unfitted_student: Callable[[], Any]

    def _predictor(self) -> Any:
        return getattr(self, "student_", None)

    def _possible_predictors(self) -> Sequence[Any]:
        return [self._unfitted_student()]

    def _check_before_predicting(self, X: Any) -> Any:
        check_is_fitted(self, "student_")
        return check_features(self, X, reset=False)


class WrappingClassifier(
    DelegatedPredictionMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """Base of classifiers that train a clone of `estimator` on other labels.

    A subclass has the parameters `estimator` and `random_state`, and its `fit` sets
    ``estimator_``, fitted on class indices, and ``classes_``.
    """

    estimator: Any
    random_state: Any
    estimator_: Any

    def _predictor(self) -> Any:
        return getattr(self, "estimator_", None)

    def _possible_predictors(self) -> Sequence[Any]:
        return [self._unfitted()]

    def _check_before_predicting(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_")
        return self._check_rows(X, reset=False)

    def _unfitted(self) -> Any:
        from sklearn.ensemble import RandomForestClassifier  # slow to import

        return RandomForestClassifier() if self.estimator is None else self.estimator

    def _seeded(self, estimator: Any, seed: int) -> Any:
        """Clone an estimator, and seed the clone if `random_state` is given."""
        if self.random_state is None:
            return clone(estimator)
        return seeded_clone(estimator, int(seed))

    def _check_estimator(self) -> None:
        estimator = self._unfitted()
        if not (hasattr(estimator, "fit") and is_classifier(estimator)):
            raise ValueError(
                f"estimator={estimator!r} is not a classifier; pass one, such as "
                "RandomForestClassifier()."
            )

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
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
            allow_nd=True,  # images, which the estimator takes or refuses
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        estimator = get_tags(self._unfitted()).input_tags
        tags.input_tags.sparse = estimator.sparse
        tags.input_tags.allow_nan = estimator.allow_nan
        return tags

"""Class indices for classifiers, where some classes may be missing."""

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if

__all__ = [
    "ContiguousClasses",
    "DelegatedPredictionMixin",
    "fit_class_indices",
    "in_all_classes",
    "predict_codes",
    "read_codes",
]


def fit_class_indices(estimator: Any, X: Any, codes: NDArray[np.intp]) -> Any:
    """Fit on class indices, renumbered without gaps if the classifier insists on that.

    A shard, or the answers, may lack a class. Most classifiers take class indices with
    gaps; xgboost does not. `estimator` is fitted in place, or a
    :class:`ContiguousClasses` around a clone of it is returned.
    """
    if _is_binary_network(estimator):
        codes = codes.astype(np.float32)
    if len(np.unique(codes)) == codes.max() + 1:  # no gap
        return estimator.fit(X, codes)
    untouched = deepcopy(X)  # a step that scales in place may come before the error
    try:
        return estimator.fit(X, codes)
    except Exception:
        return ContiguousClasses(clone(estimator)).fit(untouched, codes)


def _is_binary_network(estimator: Any) -> bool:
    """Check for a NeuralNetBinaryClassifier, whose loss compares floats.

    It may be the estimator, or inside it, as in a pipeline or a search.
    """
    skorch = sys.modules.get("skorch")
    if skorch is None:
        return False
    parts = [estimator, *estimator.get_params(deep=True).values()]
    return any(isinstance(one, skorch.NeuralNetBinaryClassifier) for one in parts)


def in_all_classes(
    scores: NDArray[np.floating], classifier: Any, n_classes: int, *, absent: float
) -> NDArray[np.floating]:
    """Widen scores to one column per class; `absent` fills those not in ``classes_``.

    `classifier` was fitted on class indices. With two classes, scores of shape
    (n_rows,) stay as they are.
    """
    if scores.ndim == 1 or scores.shape[1] == n_classes:
        return scores
    seen = classifier.classes_
    if len(seen) == n_classes:
        return scores
    if scores.shape[1] != len(seen):
        raise ValueError(
            f"{type(classifier).__name__} has {len(seen)} of {n_classes} classes and "
            f"returned {scores.shape[1]} columns; use a student with one column a "
            "class (decision_function_shape='ovr' for SVC)."
        )
    widened = np.full((len(scores), n_classes), absent, dtype=scores.dtype)
    widened[:, seen] = scores
    return widened


def read_codes(predicted: ArrayLike, n_rows: int, n_classes: int) -> NDArray[np.intp]:
    """Read predicted class indices, of shape (n_rows,) or (n_rows, 1) as by CatBoost.

    Any other number, a fraction included, is read as -1.
    """
    predicted = np.asarray(predicted)
    if predicted.dtype.kind == "O":
        predicted = np.array(predicted.tolist())
    if predicted.shape == (n_rows, 1):
        predicted = predicted[:, 0]
    if predicted.shape != (n_rows,) or predicted.dtype.kind not in "biuf":
        raise ValueError(
            f"predict returned shape {predicted.shape} and dtype "
            f"{predicted.dtype} for {n_rows} rows, not a class index each"
        )
    is_code = (predicted >= 0) & (predicted < n_classes)
    if predicted.dtype.kind == "f":
        is_code &= np.rint(predicted) == predicted
    codes = np.full(n_rows, -1, dtype=np.intp)
    codes[is_code] = predicted[is_code]
    return codes


def predict_codes(classifier: Any, X: Any, n_classes: int) -> NDArray[np.intp]:
    """Predict class indices by a classifier that was trained on nothing sensitive.

    Raises ValueError, which may show a prediction, if any is no class index.
    """
    predicted = classifier.predict(X)
    try:
        codes = read_codes(predicted, X.shape[0], n_classes)
    except ValueError as error:
        problem = str(error)
    else:
        others = np.ravel(predicted)[codes < 0]
        if len(others) == 0:
            return codes
        problem = f"predict returned {others[0]!r}"
    raise ValueError(
        f"{type(classifier).__name__} was fitted on the class indices 0 to "
        f"{n_classes - 1}, and its {problem}; use a classifier whose predict returns "
        "labels that it was fitted on."
    )


def _predictor_has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self._predictor(), method)


@contextmanager
def _names_told() -> Iterator[None]:
    """Suppress the warning of missing names, which the outer classifier has given."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


class DelegatedPredictionMixin:
    """Prediction by an inner classifier that was fitted on class indices."""

    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows. Prediction has no privacy cost, even on private rows.

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
        with _names_told():
            codes = predict_codes(self._predictor(), X, len(self.classes_))
        return self.classes_[codes]

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

    def _scores(self, method: str, X: Any, *, absent: float) -> NDArray[np.floating]:
        X = self._check_before_predicting(X)
        with _names_told():
            scores = getattr(self._predictor(), method)(X)
        n_classes = len(self.classes_)
        if scores.ndim == 1 and n_classes > 2:  # the answers name two of them
            scores = np.column_stack([-scores, scores])
        return in_all_classes(scores, self._predictor(), n_classes, absent=absent)

    @abstractmethod
    def _predictor(self) -> Any:
        """Return the fitted inner classifier, or before `fit` the unfitted one."""

    @abstractmethod
    def _check_before_predicting(self, X: Any) -> Any:
        """Check that the classifier is fitted; return the rows, checked."""


class ContiguousClasses(
    DelegatedPredictionMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """Classifier that renumbers the classes in y as 0..m-1 for its inner classifier."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: NDArray[np.intp]) -> Self:
        """Fit a clone of the inner classifier on renumbered class indices."""
        self.classes_, own_codes = np.unique(y, return_inverse=True)
        self.estimator_ = fit_class_indices(clone(self.estimator), X, own_codes)
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict class indices; -1 where the inner classifier predicts none."""
        own_codes = read_codes(
            self.estimator_.predict(X), X.shape[0], len(self.classes_)
        )
        return np.where(own_codes < 0, -1, self.classes_[own_codes]).astype(np.intp)

    def _predictor(self) -> Any:
        return self.estimator_

    def _check_before_predicting(self, X: Any) -> Any:
        return X

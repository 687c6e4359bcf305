"""Class indices for labels in `fit`."""

import sys
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone

from sklearn_pate._estimators._kinds import (
    accepts_soft_labels,
    accepts_unlabeled,
    in_last_step,
    is_binary_network,
    is_network,
    last_step,
    parts,
)
from sklearn_pate._estimators._predictions import DelegatedPredictionMixin, read_codes
from sklearn_pate._inputs._labels import class_indices

# Ensembles whose parts get numbers instead of labels, even without this package.
_NUMBERING = {
    "BaggingClassifier",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OutputCodeClassifier",
    "StackingClassifier",
    "VotingClassifier",
}
# Parameters that name labels, and parameters that name labels if they are dicts.
_OF_LABELS = {"class_names", "classes", "labels", "outlier_label", "pos_label"}
_OF_DICTS = {"class_weight", "class_weights", "sampling_strategy"}


def fit_class_indices(
    estimator: Any, X: Any, codes: NDArray[np.intp], **weights: Any
) -> Any:
    """Fit on class indices, renumbered without gaps if the classifier insists on that.

    A shard, or the answers, may lack a class. Most classifiers take class indices with
    gaps; xgboost does not. `estimator` is fitted in place, or a
    :class:`RelabeledClassifier` around a clone of it is returned. An estimator that
    `on_labels` wrapped, and that refuses the labels, gets class indices.
    """
    if isinstance(estimator, RelabeledClassifier):
        untouched = deepcopy(X)  # a step that scales in place may come before the error
        try:
            return estimator.fit(X, codes, **weights)
        except Exception:
            if _label_parameter(estimator.estimator) is not None:
                raise
        estimator, X = clone(estimator.estimator), untouched
    if "skorch" in sys.modules and any(map(is_binary_network, parts(estimator))):
        codes = codes.astype(np.float32)
    if len(np.unique(codes)) == codes.max() + 1:  # no gap
        return estimator.fit(X, codes, **weights)
    untouched = deepcopy(X)
    try:
        return estimator.fit(X, codes, **weights)
    except Exception:
        return RelabeledClassifier(clone(estimator)).fit(untouched, codes, **weights)


def on_labels(
    name: str, estimator: Any, classes: NDArray[Any], *, soft: bool = False
) -> Any:
    """Wrap an estimator so that labels, not class indices, reach it in `fit`.

    Its parameters, such as `class_weight`, then mean what they say. An estimator that
    takes unlabelled rows or soft labels gets class indices, and the estimator in it
    gets labels. ValueError is raised if a parameter of one that gets class indices
    names labels. Where labels are class indices, nothing changes.
    """
    labels = np.asarray(classes.tolist())
    is_wrapped = estimator is None or isinstance(estimator, RelabeledClassifier)
    if is_wrapped or np.array_equal(labels, np.arange(len(labels))):
        return estimator
    last, inside, parameter = last_step(estimator), None, None
    if accepts_unlabeled(last) or (soft and accepts_soft_labels(last)):
        if hasattr(getattr(last, "estimator", None), "fit"):
            inside = in_last_step(estimator, "estimator")
        parameter = _label_parameter(estimator, f"{inside}__")
    elif any(is_network(one) or accepts_unlabeled(one) for one in parts(estimator)):
        parameter = _label_parameter(estimator)
    else:
        numbering = (
            one
            for one in parts(estimator)
            if any(kind.__name__ in _NUMBERING for kind in type(one).__mro__)
        )
        parameter = next(filter(None, map(_label_parameter, numbering)), None)
        if parameter is None:
            return RelabeledClassifier(estimator, labels)
    if parameter is not None:
        raise ValueError(
            f"{parameter} in {name}={type(estimator).__name__}(...) names labels, but "
            f"belongs to an estimator that gets class indices, 0 to {len(labels) - 1}. "
            "Replace the labels in y and classes= by these numbers, and use them in "
            f"{parameter}."
        )
    if inside is None:
        return estimator
    inner = on_labels(name, last.estimator, classes)
    return clone(estimator).set_params(**{inside: inner})


def _label_parameter(estimator: Any, but: str = "None__") -> str | None:
    """Return a parameter that names labels, and does not begin with `but`."""
    for path, value in estimator.get_params(deep=True).items():
        name = path.rpartition("__")[2]
        is_named = name in _OF_LABELS and value is not None
        is_dict = name in _OF_DICTS and isinstance(value, dict)
        if (is_named or is_dict) and not path.startswith(but):
            return path
    return None


class RelabeledClassifier(
    DelegatedPredictionMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """Classifier of class indices whose inner classifier gets other labels.

    `labels` are those of the classes; None numbers the classes in y as 0..m-1.
    """

    __module__ = "sklearn_pate.stored_types"  # its name in files
    _inner = "estimator_"

    def __init__(self, estimator: Any, labels: NDArray[Any] | None = None) -> None:
        self.estimator = estimator
        self.labels = labels

    def fit(self, X: Any, y: NDArray[np.intp], **weights: Any) -> Self:
        """Fit a clone of the inner classifier on other labels than class indices."""
        self.classes_, own_codes = np.unique(y, return_inverse=True)
        inner = clone(self.estimator)
        if self.labels is None:
            self.estimator_ = fit_class_indices(inner, X, own_codes, **weights)
        else:
            self.estimator_ = inner.fit(X, self.labels[y], **weights)
        return self

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict class indices; -1 where the inner classifier predicts none."""
        predicted = self.estimator_.predict(X)
        if self.labels is not None:
            return class_indices(predicted, self.labels)
        own_codes = read_codes(predicted, X.shape[0], len(self.classes_))
        return np.where(own_codes < 0, -1, self.classes_[own_codes]).astype(np.intp)

    def __getattr__(self, name: str) -> Any:
        """Return a fitted attribute of the inner classifier, such as coefficients."""
        is_fitted = name[0] != "_" and name[-1] == "_" and name != "estimator_"
        if is_fitted:
            return getattr(self.estimator_, name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )

    def _unfitted_inner(self) -> Any:
        return self.estimator

    def _check_before_predicting(self, X: Any) -> Any:
        return X

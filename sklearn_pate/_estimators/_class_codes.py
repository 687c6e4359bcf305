"""Wrappers that fit classifiers on class indices and predict labels."""

import hmac
import pickle
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
    is_classifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_pate._estimators._isolation import check_cloneable, seeded_clone
from sklearn_pate._inputs._features import check_features
from sklearn_pate.accounting._value_checks import counted

# Finite, as calibration and chains refuse infinity.
_LOWEST_SCORE = float(np.finfo(np.float32).min)


def estimator_hash(*estimators: object) -> str:
    """Hash estimators and parameters by content; the code of classes does not count.

    Equal content may hash differently once in a while. Raises an exception for objects
    that cannot be pickled, and for those defined in ``__main__``, whose names may stand
    for something else in the next run.
    """
    if b"__main__" in pickle.dumps(estimators):
        raise TypeError("something in it is defined in __main__")
    return joblib.hash(estimators)


def fingerprint(key: bytes, *digests: str) -> str:
    """Compute the HMAC-SHA256 of hashes, which only holders of the key can repeat."""
    return hmac.new(key, "\n".join(digests).encode(), "sha256").hexdigest()


def fit_class_indices(estimator: Any, X: Any, codes: NDArray[np.intp]) -> Any:
    """Fit on class indices, renumbered without gaps if the classifier insists on that.

    A shard, or the answers, may lack a class. Most classifiers take class indices with
    gaps; xgboost does not. `estimator` is fitted in place, or a
    :class:`ContiguousClasses` around a clone of it is returned.
    """
    parts = [estimator, *estimator.get_params(deep=True).values()]
    if any(is_binary_network(one) for one in parts):  # in a pipeline or a search, too
        codes = codes.astype(np.float32)
    if len(np.unique(codes)) == codes.max() + 1:  # no gap
        return estimator.fit(X, codes)
    untouched = deepcopy(X)  # a step that scales in place may come before the error
    try:
        return estimator.fit(X, codes)
    except Exception:
        return ContiguousClasses(clone(estimator)).fit(untouched, codes)


def is_binary_network(estimator: Any) -> bool:
    """Check for a NeuralNetBinaryClassifier, whose loss compares floats."""
    skorch = sys.modules.get("skorch")
    return skorch is not None and isinstance(
        estimator, skorch.NeuralNetBinaryClassifier
    )


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
            f"{type(classifier).__name__} learned {len(seen)} of {n_classes} classes, "
            f"but returned {counted(scores.shape[1], 'column')} of scores; use a "
            "student with one column per class (decision_function_shape='ovr' for SVC)."
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
            f"predict returned shape {predicted.shape} and dtype {predicted.dtype} for "
            f"{counted(n_rows, 'row')}, not one class index per row"
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
        f"{n_classes - 1}, but its {problem}; use a classifier that predicts only "
        "labels that it was fitted on."
    )


def check_classifier(name: str, estimator: Any) -> None:
    """Raise ValueError unless an estimator is a classifier, or None."""
    if estimator is None:
        return
    if isinstance(estimator, type):
        raise ValueError(
            f"{name}={estimator.__name__} is a class; pass an instance, "
            f"{estimator.__name__}()."
        )
    if hasattr(estimator, "fit"):
        _check_tags(name, estimator, "ClassifierMixin")
    # Some classifiers have `predict` only once they are fitted.
    if not (hasattr(estimator, "fit") and is_classifier(estimator)):
        raise ValueError(
            f"{name}={estimator!r} is not a classifier; pass one, such as "
            "RandomForestClassifier()."
        )
    check_cloneable(name, estimator)


def check_transformer(representation: Any) -> None:
    """Raise ValueError unless a representation is a transformer, or None."""
    if representation is None:
        return
    if isinstance(representation, type) or not (
        hasattr(representation, "fit") and hasattr(representation, "transform")
    ):
        raise ValueError(
            f"representation={representation!r} is not a transformer; pass one "
            "with fit and transform, such as PCA(50)."
        )
    _check_tags("representation", representation, "TransformerMixin")
    check_cloneable("representation", representation)


def _check_tags(name: str, estimator: Any, mixin: str) -> None:
    """Raise ValueError unless scikit-learn can read the tags of an estimator."""
    try:
        get_tags(estimator)
    except AttributeError as error:
        raise ValueError(
            f"{name}={estimator!r} has no __sklearn_tags__, or contains an estimator "
            f"without it; derive its class from {mixin} and BaseEstimator of "
            "sklearn.base, in this order."
        ) from error


def soften_probabilities(
    probabilities: NDArray[np.float64], temperature: float
) -> NDArray[np.float64]:
    """Compute p^(1/T), scaled to sum to 1: the softmax of logits over T.

    A row of zeros stays zero.
    """
    largest = probabilities.max(axis=1, keepdims=True)
    weights = (probabilities / np.where(largest > 0, largest, 1)) ** (1 / temperature)
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def log_odds(probabilities: NDArray[np.floating]) -> NDArray[np.float64]:
    """Turn probabilities into finite scores, of shape (n_rows,) with two classes."""
    smallest = np.finfo(np.float64).tiny
    logs = np.log(np.maximum(probabilities, smallest, dtype=np.float64))
    return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs


class ProbabilityScoresMixin:
    """Scores that follow from `predict_proba`."""

    predict_proba: Callable[[Any], NDArray[np.floating]]

    def predict_log_proba(self, X: Any) -> NDArray[np.floating]:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_rows, n_classes)
            One column per class in ``classes_``; -inf for a probability of 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Score classes by their probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
            Logarithms of the probabilities, one column per class in ``classes_``. With
            two classes, the log-odds of the second class. A probability of 0 counts as
            the smallest float.
        """
        return log_odds(self.predict_proba(X))


def has_after_fit(classifier: Any, method: str) -> bool:
    """Check whether a classifier has a method after `fit`, fitted or not."""
    # A StackingClassifier does not name its default before `fit`.
    unnamed = [
        name
        for name, value in classifier.get_params().items()
        if name.rpartition("__")[2] == "final_estimator" and value is None
    ]
    if unnamed:
        combiners = dict.fromkeys(unnamed, LogisticRegression())
        classifier = clone(classifier).set_params(**combiners)
    return hasattr(classifier, method)


def _offers(*methods: str) -> Callable[[Any], bool]:
    """Check that each classifier that may predict has one of the methods."""
    return lambda self: all(
        any(has_after_fit(one, method) for method in methods)
        for one in self._possible_predictors()
    )


@contextmanager
def _names_told() -> Iterator[None]:
    """Suppress the warning of missing names, which the outer classifier has given."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


class DelegatedPredictionMixin(ProbabilityScoresMixin):
    """Prediction by an inner classifier that was fitted on class indices.

    The parameters alone decide the methods: they are the same before and after `fit`,
    as meta-estimators ask the unfitted classifier. A constant student has others.
    """

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
            Labels from ``classes_``.

        Raises
        ------
        ValueError
            If the columns of X differ from the columns in `fit`, or if a prediction of
            the inner classifier is not a class index.
        """
        X = self._check_before_predicting(X)
        with _names_told():
            codes = predict_codes(self._predictor(), X, len(self.classes_))
        return self.classes_[codes]

    @available_if(_offers("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Predict class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class in ``classes_``. A class that the model does not know
            has probability 0.
        """
        return self._scores("predict_proba", X, absent=0.0)

    @available_if(_offers("predict_proba"))
    def predict_log_proba(self, X: Any) -> NDArray[np.floating]:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n_rows, n_classes)
            One column per class in ``classes_``; -inf for a probability of 0.
        """
        return super().predict_log_proba(X)

    @available_if(_offers("decision_function", "predict_proba"))
    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Score classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
            One column per class in ``classes_``. A class that the model does not know
            has the smallest float32 as score. If the inner classifier has no decision
            function, scores are logarithms of the probabilities, or, with two classes,
            log-odds.
        """
        return self._scores("decision_function", X, absent=_LOWEST_SCORE)

    def _scores(self, method: str, X: Any, *, absent: float) -> NDArray[np.floating]:
        X = self._check_before_predicting(X)
        predictor, n_classes = self._predictor(), len(self.classes_)
        with _names_told():
            if hasattr(predictor, method):
                scores = getattr(predictor, method)(X)
            else:
                scores = log_odds(predictor.predict_proba(X))
        if scores.ndim == 1 and n_classes > 2:  # the answers name two of them
            scores = np.column_stack([-scores, scores])
        scores = in_all_classes(scores, predictor, n_classes, absent=absent)
        if method == "decision_function" and scores.shape[1:] == (2,):
            return scores[:, 1] - scores[:, 0]
        return scores

    @abstractmethod
    def _predictor(self) -> Any:
        """Return the fitted inner classifier, None before `fit`."""

    @abstractmethod
    def _possible_predictors(self) -> Sequence[Any]:
        """Return unfitted classifiers, of which `fit` trains one as the inner one."""

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
        return getattr(self, "estimator_", None)

    def _possible_predictors(self) -> Sequence[Any]:
        return [self.estimator]

    def _check_before_predicting(self, X: Any) -> Any:
        return X


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


def is_of(one: Any, *packages: str) -> bool:
    """Check whether an object's class, or a base of it, is from one of the packages."""
    return any(
        kind.__module__.partition(".")[0] in packages for kind in type(one).__mro__
    )

"""Class indices for labels, networks among classifiers, and wrappers of predictions."""

import hmac
import pickle
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from numbers import Real
from typing import Any, ClassVar, Self

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
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_pate._estimators._isolation import check_cloneable, seeded_clone
from sklearn_pate._inputs._containers import is_frame
from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._known_columns import warn_of_columns
from sklearn_pate._inputs._labels import class_indices
from sklearn_pate.accounting._value_checks import counted

# Rows that are read together, where that is exact.
_AT_ONCE = 1024
# Finite, as calibration and chains refuse infinity.
_LOWEST_SCORE = float(np.finfo(np.float32).min)
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
    if "skorch" in sys.modules and any(map(is_binary_network, _parts(estimator))):
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
    elif any(is_network(one) or accepts_unlabeled(one) for one in _parts(estimator)):
        parameter = _label_parameter(estimator)
    else:
        numbering = (
            one
            for one in _parts(estimator)
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


def _parts(estimator: Any) -> list[Any]:
    """List an estimator and all its parameters, as in a pipeline or a search."""
    return [estimator, *estimator.get_params(deep=True).values()]


def _label_parameter(estimator: Any, but: str = "None__") -> str | None:
    """Return a parameter that names labels, and does not begin with `but`."""
    for path, value in estimator.get_params(deep=True).items():
        name = path.rpartition("__")[2]
        is_named = name in _OF_LABELS and value is not None
        is_dict = name in _OF_DICTS and isinstance(value, dict)
        if (is_named or is_dict) and not path.startswith(but):
            return path
    return None


def accepts_unlabeled(student: Any) -> bool:
    """Check whether a student takes rows with y = -1, and so gets all public rows.

    True for scikit-learn's semi-supervised classifiers, for any estimator with an
    attribute ``accepts_unlabeled = True``, and for a Pipeline that ends in one.
    """
    declared = declares(student, "accepts_unlabeled")
    if declared is not None:
        return declared
    from sklearn.semi_supervised import (  # slow to import
        LabelPropagation,
        LabelSpreading,
        SelfTrainingClassifier,
    )

    return isinstance(
        last_step(student), (SelfTrainingClassifier, LabelSpreading, LabelPropagation)
    )


def accepts_soft_labels(student: Any) -> bool:
    """Check whether each row of y may be a histogram, or probabilities.

    True for any estimator with an attribute ``accepts_soft_labels = True``, and for a
    Pipeline that ends in one.
    """
    return bool(declares(student, "accepts_soft_labels"))


def declares(student: Any, attribute: str) -> bool | None:
    """Read an attribute of the last step of a student; None without it."""
    declared = getattr(last_step(student), attribute, None)
    return None if declared is None else bool(declared)


def is_network(estimator: Any, kind: str = "NeuralNet") -> bool:
    """Check for a network of skorch, whose loss takes class indices."""
    skorch = sys.modules.get("skorch")
    return skorch is not None and isinstance(estimator, getattr(skorch, kind))


def is_binary_network(estimator: Any) -> bool:
    """Check for a network of skorch whose loss compares floats."""
    return is_network(estimator, "NeuralNetBinaryClassifier")


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


def scores_of(classifier: Any, X: Any, n_classes: int) -> NDArray[np.floating]:
    """Score class indices by probabilities, the decision function, or predictions."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(classifier, method):
            scores = np.asarray(getattr(classifier, method)(X), dtype=np.float64)
            if scores.ndim == 1:
                scores = np.column_stack([-scores, scores])
            return in_all_classes(scores, classifier, n_classes, absent=0.0)
    return np.eye(n_classes)[predict_codes(classifier, X, n_classes)]


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
        last, hint = last_step(estimator), ""
        if isinstance(last, ClassifierMixin):
            raise ValueError(
                f"{name}={estimator!r} is not a classifier to scikit-learn, as "
                f"{type(last).__name__} has its bases in the wrong order; write class "
                f"{type(last).__name__}(ClassifierMixin, BaseEstimator)."
            )
        if isinstance(estimator, Real):
            hint = f" For the privacy budget, write epsilon={estimator!r}."
        raise ValueError(
            f"{name}={estimator!r} is not a classifier; pass one, such as "
            f"RandomForestClassifier().{hint}"
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

    #: Attribute that holds the fitted inner classifier.
    _inner: ClassVar[str] = "student_"

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
            If columns differ from `fit`, or the student predicts no class index.

        Warns
        -----
        UserWarning
            If columns are not as in the public rows, such as text for numbers, new
            categories, or another unit.
        """
        X = self._rows_to_predict(X)
        with _names_told():
            codes = predict_codes(getattr(self, self._inner), X, len(self.classes_))
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
            One column per class in ``classes_``; 0 for a class unknown to the model.
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
            One column per class in ``classes_``; the smallest float32 for a class that
            the model does not know. Without a decision function of the inner
            classifier, logarithms of the probabilities, or log-odds for two classes.
        """
        return self._scores("decision_function", X, absent=_LOWEST_SCORE)

    def _scores(self, method: str, X: Any, *, absent: float) -> NDArray[np.floating]:
        X = self._rows_to_predict(X)
        predictor, n_classes = getattr(self, self._inner), len(self.classes_)
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

    def _rows_to_predict(self, X: Any) -> Any:
        """Return the rows, checked; warn of columns that the model does not know."""
        X = self._check_before_predicting(X)
        warn_of_columns(self, X)
        return X

    @abstractmethod
    def _unfitted_inner(self) -> Any:
        """Return the unfitted inner classifier."""

    def _possible_predictors(self) -> Sequence[Any]:
        """Return unfitted classifiers, of which `fit` trains one as the inner one."""
        return [self._unfitted_inner()]

    def _check_before_predicting(self, X: Any) -> Any:
        """Check that the classifier is fitted; return the rows, checked."""
        check_is_fitted(self, self._inner)
        return check_features(self, X, reset=False)


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


def last_step(estimator: Any) -> Any:
    """Return the last step of nested pipelines, or the estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def in_last_step(estimator: Any, name: str) -> str:
    """Return the name, in a Pipeline, of a parameter of its last step."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        step, estimator = estimator.steps[-1]
        prefix += f"{step}__"
    return prefix + name


def with_last_step(estimator: Any, last: Any) -> Any:
    """Return a copy of nested pipelines with another last step, or that step alone."""
    if not isinstance(estimator, Pipeline):
        return last
    *front, (name, inner) = estimator.steps
    return Pipeline([*front, (name, with_last_step(inner, last))])


class WrappingClassifier(
    DelegatedPredictionMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """Base of classifiers that train a clone of `estimator` on other labels.

    A subclass has the parameters `estimator` and `random_state`, and its `fit` sets
    ``estimator_``, fitted on class indices, and ``classes_``.
    """

    _inner = "estimator_"

    estimator: Any
    random_state: Any
    estimator_: Any

    def _check_before_predicting(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_")
        return self._check_rows(X, reset=False)

    def _unfitted_inner(self) -> Any:
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
        estimator = get_tags(self._unfitted_inner()).input_tags
        tags.input_tags.sparse = estimator.sparse
        tags.input_tags.allow_nan = estimator.allow_nan
        return tags


def keeps_rows_apart(estimator: Any) -> bool:
    """Check whether no bit of a transformed or scored row depends on other rows.

    Classes of this package that are tested for it list their parts that must, too. A
    subclass may compute anything.
    """
    parts = vars(type(estimator)).get("_keeps_rows_apart")
    return parts is not None and all(
        keeps_rows_apart(getattr(estimator, part, None)) for part in parts
    )


def read_apart(
    model: Any,
    X: Any,
    rows: NDArray[np.intp],
    read: Callable[[Any], tuple[NDArray[Any], ...]],
    failed: tuple[NDArray[Any], ...],
) -> tuple[NDArray[Any], ...]:
    """Read a model's answers so that no row changes a bit of the answer to another.

    In a batch, the last bits of a matrix product depend on the number of rows and on
    the position of a row. So rows are read one at a time, unless the model and the type
    of X keep them apart. `read` returns arrays with one entry a row; `failed` has the
    entries of a row that it fails on.
    """
    # A value among objects may set the type that the rows around it are read as.
    has_types = is_frame(X) or X.dtype.kind in "biuf"
    at_once = _AT_ONCE if has_types and keeps_rows_apart(model) else 1

    def read_part(part: NDArray[np.intp]) -> tuple[NDArray[Any], ...]:
        try:
            answers = read(_safe_indexing(X, part.tolist()))
            if any(len(answer) != len(part) for answer in answers):
                raise ValueError("the model has not one answer for each row")
            return answers
        except Exception:
            if len(part) == 1:
                return failed
            return joined(*map(read_part, np.array_split(part, 2)))

    def joined(*parts: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    none = tuple(entry[:0] for entry in failed)
    starts = range(0, len(rows), at_once)
    return joined(none, *(read_part(rows[k : k + at_once]) for k in starts))


def is_of(one: Any, *packages: str) -> bool:
    """Check whether an object's class, or a base of it, is from one of the packages."""
    return any(
        kind.__module__.partition(".")[0] in packages for kind in type(one).__mro__
    )

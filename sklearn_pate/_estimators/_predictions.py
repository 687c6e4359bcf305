"""Predicted class indices and scores, and bases of classifiers that delegate them."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_pate._estimators._isolation import seeded_clone
from sklearn_pate._estimators._kinds import has_after_fit, keeps_rows_apart
from sklearn_pate._inputs._containers import is_frame
from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._known_columns import warn_of_columns
from sklearn_pate.accounting._value_checks import counted

# Rows that are read together, where that is exact.
_AT_ONCE = 1024
# Finite, as calibration and chains refuse infinity.
_LOWEST_SCORE = float(np.finfo(np.float32).min)


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

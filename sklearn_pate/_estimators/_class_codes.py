"""Classifiers that insist on labels 0..m-1, where some of the classes are missing."""

from copy import deepcopy

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if

__all__ = [
    "ContiguousClasses",
    "fit_class_indices",
    "in_all_classes",
    "predict_codes",
    "read_codes",
]


def fit_class_indices(estimator, X, codes):
    """Fit on class indices, with indices of its own if the classifier insists.

    A shard, or the answers, may lack a class. Most classifiers take class indices as
    they are, and networks must; xgboost wants them without gaps.

    Parameters
    ----------
    estimator : classifier
        Unfitted; fitted in place where it takes the indices as they are.

    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
        Rows.

    codes : ndarray of int of shape (n_rows,)
        Class indices, perhaps with gaps.

    Returns
    -------
    fitted : classifier
        `estimator`, or a :class:`ContiguousClasses` around a clone of it.
    """
    if len(np.unique(codes)) == codes.max() + 1:  # no gap
        return estimator.fit(X, codes)
    untouched = deepcopy(X)  # a step that scales in place may come before the error
    try:
        return estimator.fit(X, codes)
    except Exception:
        return ContiguousClasses(clone(estimator)).fit(untouched, codes)


def in_all_classes(scores, classifier, n_classes, *, absent):
    """Give every class a column of scores.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_seen), or (n_rows,) with two classes
        Scores by a classifier fitted on class indices.

    classifier : classifier
        Fitted; its ``classes_`` are the class indices that it saw.

    n_classes : int
        Number of classes.

    absent : float
        The score of a class that it never saw.

    Returns
    -------
    scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
        The same scores.

    Raises
    ------
    ValueError
        If there is no column a class that it saw.
    """
    seen = classifier.classes_
    if scores.ndim == 1 or scores.shape[1] == n_classes or len(seen) == n_classes:
        return scores
    if scores.shape[1] != len(seen):
        raise ValueError(
            f"{type(classifier).__name__} saw {len(seen)} of {n_classes} classes and "
            f"returned {scores.shape[1]} columns; use a student with one column a "
            "class (decision_function_shape='ovr' for SVC)."
        )
    widened = np.full((len(scores), n_classes), absent, dtype=scores.dtype)
    widened[:, seen] = scores
    return widened


def read_codes(predicted, n_rows, n_classes):
    """Read class indices from what a classifier predicted.

    Parameters
    ----------
    predicted : array-like of shape (n_rows,) or (n_rows, 1)
        CatBoost predicts a column where there are more than two classes.

    n_rows : int
        Number of rows that were predicted.

    n_classes : int
        Number of classes.

    Returns
    -------
    codes : ndarray of int of shape (n_rows,)
        Class indices; -1 for any other number, a fraction included.

    Raises
    ------
    ValueError
        If there is not one number a row.
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


def predict_codes(classifier, X, n_classes):
    """Predict class indices by a classifier that learned from nothing sensitive.

    Parameters
    ----------
    classifier : classifier
        Fitted on class indices.

    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
        Rows.

    n_classes : int
        Number of classes.

    Returns
    -------
    codes : ndarray of int of shape (n_rows,)
        Class indices.

    Raises
    ------
    ValueError
        If it predicts anything else.
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


def _fitted_has(method):
    return lambda self: hasattr(self.estimator_, method)


class ContiguousClasses(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose inner classifier numbers the classes that it saw 0..m-1.

    Parameters
    ----------
    estimator : classifier
        The inner classifier.

    Attributes
    ----------
    estimator_ : classifier
        Fitted.

    classes_ : ndarray of int of shape (m,)
        The class indices that it saw.
    """

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        """Fit a clone of the inner classifier.

        Parameters
        ----------
        X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        y : ndarray of int of shape (n_rows,)
            Class indices.

        Returns
        -------
        self : ContiguousClasses
            Fitted.
        """
        self.classes_, own_codes = np.unique(y, return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, own_codes)
        return self

    def predict(self, X):
        """Predict class indices.

        Parameters
        ----------
        X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        codes : ndarray of int of shape (n_rows,)
            Class indices out of ``classes_``; -1 where the inner classifier predicts
            none of its own.
        """
        own_codes = read_codes(
            self.estimator_.predict(X), X.shape[0], len(self.classes_)
        )
        return np.where(own_codes < 0, -1, self.classes_[own_codes])

    @available_if(_fitted_has("predict_proba"))
    def predict_proba(self, X):
        """Predict class probabilities.

        Parameters
        ----------
        X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, m)
            A column for each of ``classes_``.
        """
        return self.estimator_.predict_proba(X)

    @available_if(_fitted_has("decision_function"))
    def decision_function(self, X):
        """Score classes.

        Parameters
        ----------
        X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, m), or (n_rows,) with two classes
            A column for each of ``classes_``.
        """
        return self.estimator_.decision_function(X)

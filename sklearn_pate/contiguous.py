"""Classifiers that insist on labels 0..m-1, where some of the classes are missing."""

from copy import deepcopy

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if

__all__ = ["ContiguousClasses", "fit_class_indices", "in_all_classes"]


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
            Class indices out of ``classes_``.
        """
        return self.classes_[np.asarray(self.estimator_.predict(X), dtype=np.intp)]

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

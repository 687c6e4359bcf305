"""Rows whose first column is a score, and a model that returns it."""

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin


class FirstColumn(ClassifierMixin, BaseEstimator):
    """Fitted model of two or more classes whose probabilities are columns of X."""

    # Rows are scored together, which is exact here and a hundred times as quick.
    _keeps_rows_apart = ()

    def __init__(self, n_classes=2):
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)
        self.n_features_in_ = 1 if n_classes == 2 else n_classes

    def fit(self, X, y=None):
        return self

    def predict_proba(self, X):
        X = np.asarray(X, dtype=float)
        return np.hstack([1 - X, X]) if self.n_classes == 2 else X

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def scored_rows(n_rows, *, slope=1.0, intercept=-1.5, seed=0):
    """Draw scores of rows of two classes, and labels.

    Scores are right after their log-odds have been multiplied by a slope.
    """
    rng = np.random.default_rng(seed)
    log_odds = 1.5 * rng.standard_normal(n_rows) + intercept
    y = (rng.random(n_rows) < expit(log_odds)).astype(int)
    return expit(log_odds / slope)[:, np.newaxis], y


def scored_rows_of_three_classes(n_rows, *, seed=0):
    """Draw scores of rows of three classes, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_rows)
    log_odds = rng.standard_normal((n_rows, 3)) + 2 * np.eye(3)[y]
    shares = np.exp(log_odds)
    return shares / shares.sum(axis=1, keepdims=True), y

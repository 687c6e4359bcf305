"""Sampler for pipelines of imbalanced-learn, without a base class."""

from sklearn.base import BaseEstimator


class Sampler(BaseEstimator):
    """Hands all rows on."""

    def fit_resample(self, X, y):
        return X, y

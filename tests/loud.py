"""Classifiers that tell what they are fitted on. Light, as every process imports it."""

import logging
import sys

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier

SECRET = "row 17 has label 2"


class Loud(ClassifierMixin, BaseEstimator):
    """Prints, writes to the error stream and logs, in `fit` and in `predict`."""

    def fit(self, X, y):
        self._tell()
        self.inner_ = DummyClassifier().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        self._tell()
        return self.inner_.predict(X)

    def _tell(self):
        print(SECRET)
        print(SECRET, file=sys.stderr)
        sys.stdout.flush()
        logging.getLogger("loud").critical(SECRET, extra={"quoted": SECRET})


class Quiet(ClassifierMixin, BaseEstimator):
    """Not scikit-learn's own, so that no tracker patches it."""

    def fit(self, X, y):
        self.classes_, self.counts_ = sorted(set(y)), len(y)
        return self

    def predict(self, X):
        return [self.classes_[0]] * X.shape[0]

"""Teachers that meddle with mlflow. Every process that fits one imports mlflow."""

import os

os.environ["MLFLOW_ALLOW_FILE_STORE"] = os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

import mlflow.sklearn
from mlflow.utils.autologging_utils import disable_autologging
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier


class Autologged(ClassifierMixin, BaseEstimator):
    """Turns autologging on, as its module might, and fits a tree."""

    def __init__(self, uri):
        self.uri = uri

    def fit(self, X, y):
        mlflow.set_tracking_uri(self.uri)
        mlflow.sklearn.autolog(log_models=False)
        self.tree_ = DecisionTreeClassifier().fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X)


class Resetting(ClassifierMixin, BaseEstimator):
    """Uses what ends by turning mlflow's autologging on again, and fits a tree."""

    def fit(self, X, y):
        with disable_autologging():
            pass
        self.tree_ = DecisionTreeClassifier().fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X)

"""Private classifiers that are fast, or that predict and cost what a test sets."""

import logging
import sys
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_pate.accounting import Assumption, PrivacySpent
from sklearn_pate.accounting.bounds import pure_dp_curve, threshold_worst_case
from sklearn_pate.mechanisms import Mechanism
from sklearn_pate.model_selection import PrivateSearchCV
from tests.private import NoisyTraining, TrainingPlan, check_features

X = np.arange(60.0)[:, np.newaxis]
Y = np.array([0, 1, 1] * 20)

SET_BY_TEST = Assumption("test", "its predictions and cost are set by a test")
BY_GROUP = {"unit": "group", "relation": "add-remove-or-change"}
#: What the fits of `Constant` were given, in order: a test empties it.
FITS = []


class NoisyMeansNoise(Mechanism):
    """Noise of NoisyMeans, with its cost."""

    released = "model"

    def __init__(self, epsilon, radius):
        self.epsilon = epsilon
        self.radius = radius

    def _curve(self, n_queries, n_classes, orders):
        return pure_dp_curve(self.epsilon)

    def _relation(self, unit):
        return "replace-one"

    def in_one_line(self):
        return f"NoisyMeans(radius={self.radius})"

    def _check_ready(self):
        pass


class NoisyMeans(NoisyTraining[None]):
    """Nearest of noisy class means; each coordinate is clipped to [-radius, radius]."""

    def __init__(
        self,
        radius=10,
        *,
        epsilon=1.0,
        delta=1e-5,
        classes=None,
        ledger=None,
    ):
        self.radius = radius
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.ledger = ledger

    def _check_parameters(self):
        if not self.radius >= 1:
            raise ValueError(f"radius={self.radius!r} must be at least 1.")
        super()._check_parameters()

    def _check_features(self, X, *, reset):
        return validate_data(self, X, reset=reset, dtype=np.float64)

    def _plan_training(self, rows):
        noise = NoisyMeansNoise(self.epsilon, self.radius)
        spent = self._state(
            noise,
            n_classes=len(rows.classes),
            epsilon=self.epsilon,
            delta=0,
            assumptions=rows.assumptions,
        )
        return TrainingPlan(rows, spent, noise, None)

    def _train(self, rows, settings, noise):
        n_classes, n_features = len(rows.classes), rows.X.shape[1]
        X = np.rint(np.clip(rows.X, -self.radius, self.radius)).astype(np.int64)
        sums = np.zeros((n_classes, n_features + 1), dtype=np.int64)
        kept = rows.codes >= 0
        np.add.at(
            sums, rows.codes[kept], np.column_stack([X, np.ones(len(X), int)])[kept]
        )
        sensitivity = 2 * (n_features * int(self.radius) + 1)
        noisy = sums + noise.discrete_laplace(self.epsilon / sensitivity, sums.shape)
        self.means_ = noisy[:, :-1] / np.maximum(noisy[:, -1:], 1)

    def _predictor(self):
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = self._check_features(X, reset=False)
        distances = ((X[:, np.newaxis] - self.means_) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


class Constant(ClassifierMixin, BaseEstimator):
    """Predict what `answer` is, or returns, at a cost that is set."""

    def __init__(
        self,
        answer=0,
        *,
        epsilon=1.0,
        sigma=None,
        unit="row",
        relation="replace-one",
        fails=False,
        costs_more=False,
        prints=False,
        verbose=0,
        classes=None,
        memory=None,
        ledger=None,
        random_state=None,
    ):
        self.answer = answer
        self.epsilon = epsilon
        self.sigma = sigma
        self.unit = unit
        self.relation = relation
        self.fails = fails
        self.costs_more = costs_more
        self.prints = prints
        self.verbose = verbose
        self.classes = classes
        self.memory = memory
        self.ledger = ledger
        self.random_state = random_state

    def plan_privacy(self, X, y, *, X_public=None, groups=None):
        return self._cost(len(y))

    def fit(self, X, y, *, X_public=None, groups=None):
        FITS.append(
            {
                "estimator": self,
                "X": X,
                "y": y,
                "X_public": X_public,
                "groups": groups,
                "random_state": self.random_state,
            }
        )
        if self.prints or self.verbose:
            print("a fit")
            print("a fit", file=sys.stderr)
            logging.getLogger("a fit").critical("a fit")
            warnings.warn("a fit", UserWarning, stacklevel=1)
        if self.fails:
            raise RuntimeError("a secret row")
        check_features(self, X, reset=True)
        self.classes_ = np.unique(y) if self.classes is None else self.classes
        self.privacy_spent_ = self._cost(len(y), self.costs_more)
        return self

    def predict(self, X):
        if callable(self.answer):
            return self.answer(np.asarray(X))
        return np.full(X.shape[0], self.answer)

    def _cost(self, n_rows, costs_more=False):
        if self.sigma is None:
            epsilon, delta = self.epsilon + costs_more, 0
            curve = pure_dp_curve(epsilon)
        else:
            sigma = self.sigma(n_rows) if callable(self.sigma) else self.sigma
            delta = 1e-5
            curve = threshold_worst_case(sigma)
            epsilon = curve.to_epsilon(delta)
        return PrivacySpent(
            epsilon=epsilon,
            delta=delta,
            unit=self.unit,
            relation=self.relation,
            release="model",
            mechanism=f"Constant({self.answer!r})",
            n_teachers=None,
            n_queries=None,
            assumptions=(SET_BY_TEST,),
            curve=curve,
        )


def search(grid=None, estimator=None, **parameters):
    parameters = {"mean_n_trials": 3} | parameters
    return PrivateSearchCV(
        estimator or Constant(), grid or {"answer": [0, 1]}, **parameters
    )

"""Rows with a number, a time or several labels, and fits of them."""

import numpy as np

from sklearn_pate import DPNewtonClassifier, PublicData
from sklearn_pate.outcomes import (
    BinnedRegressor,
    DiscreteSurvival,
    PrivateMultiOutput,
)

N_PRIVATE, N_PUBLIC, N_ROWS = 5000, 1000, 8000
DTYPE = [("event", bool), ("time", float)]
INTERVALS = [2.0, 5.0, 10.0]


def rows(seed=0):
    """Rows of three numbers."""
    return np.random.default_rng(seed).normal(size=(N_ROWS, 3))


def numbers(X, seed=1):
    """Numbers that grow with the first column, from about 0 to 10."""
    return 5 + 2 * X[:, 0] + np.random.default_rng(seed).normal(size=len(X))


def times(X, seed=1):
    """Exponential times whose rate grows with the first column, many censored."""
    rng = np.random.default_rng(seed)
    event = rng.exponential(10 * np.exp(-X[:, 0]))
    return survival(event, rng.uniform(0, 20, len(X)))


def survival(event, censoring):
    """Events that come before censoring, as scikit-survival has them."""
    y = np.empty(len(event), dtype=DTYPE)
    y["event"], y["time"] = event <= censoring, np.minimum(event, censoring)
    return y


def labels(X, seed=1):
    """Two labels a row, each of which depends on one column."""
    noise = np.random.default_rng(seed).normal(size=(len(X), 2))
    return (X[:, :2] + noise > 0).astype(int)


def classifier(**parameters):
    """A quick private classifier."""
    return DPNewtonClassifier(**{"epsilon": 1.0, "random_state": 0} | parameters)


MODELS = {
    "number": (lambda clf: BinnedRegressor(clf, bins=[0, 2, 4, 6, 8, 10]), numbers),
    "time": (lambda clf: DiscreteSurvival(clf, intervals=INTERVALS), times),
    "labels": (
        lambda clf: PrivateMultiOutput(clf, classes=[[0, 1], [0, 1]]),
        labels,
    ),
}


def parts(kind):
    """An unfitted estimator, and the arguments of its fit."""
    make, outcome = MODELS[kind]
    X = rows()
    y = outcome(X)
    given = {"X_public": PublicData(X[N_PRIVATE : N_PRIVATE + N_PUBLIC])}
    return make, X, y, given


def fitted(kind, **parameters):
    """Fit an estimator, and return the rows that were not used, with their outcomes."""
    make, X, y, given = parts(kind)
    model = make(classifier(**parameters)).fit(X[:N_PRIVATE], y[:N_PRIVATE], **given)
    return model, X[-2000:], y[-2000:]

"""A made-up table with a column of codes, and fits on it."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData

N_CODES = 300
# Beyond 2^53, so that neighbours are equal as floats.
WHOLE = [10**17 + 1 + 2 * number for number in range(20)]
CODES = [f"c{number:03d}" for number in range(N_CODES)]


def table_of_codes(n_rows, *, effect=1.5, seed=0):
    """Make rows with a code whose effect on the log-odds is normal, and numbers."""
    rng = np.random.default_rng(seed)
    effects = effect * rng.normal(size=N_CODES)
    place = rng.integers(N_CODES, size=n_rows)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=[*"abc"])
    X["code"] = np.array(CODES)[place]
    logits = effects[place] + 0.3 * X["a"].to_numpy()
    return X, (rng.uniform(size=n_rows) < 1 / (1 + np.exp(-logits))).astype(int)


X, Y = table_of_codes(12_000)
PRIVATE, PUBLIC, TEST = slice(0, 8000), slice(8000, 9000), slice(9000, 12_000)
LEARNERS = {
    "DPNewton": DPNewtonClassifier(epsilon=4, random_state=0),
    "mean scores": PATEClassifier(epsilon=4, random_state=0),
    "votes": PATEClassifier(epsilon=4, random_state=0, mechanism="gnmax"),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS)


def fit(learner="DPNewton", X=X, y=Y, groups=None, **parameters):
    clf = clone(LEARNERS[learner]).set_params(**parameters)
    public = PublicData(X[PUBLIC])
    return clf.fit(X[PRIVATE], y[PRIVATE], X_public=public, groups=groups)


@cache
def fitted_of(learner="DPNewton"):
    """Fit once in a process, for tests that change nothing."""
    return fit(learner)


def auc(fitted, X=X):
    return roc_auc_score(Y[TEST], fitted.predict_proba(X[TEST])[:, 1])

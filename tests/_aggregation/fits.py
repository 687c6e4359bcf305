"""Small fits with a ledger."""

import numpy as np
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GumbelMax

RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=300)
X = RNG.normal(size=(300, 2)) + 2 * Y[:, np.newaxis]
X_PUBLIC = RNG.normal(size=(60, 2)) + 2 * RNG.integers(2, size=(60, 1))
N_QUERIES = 20


class Crash(BaseException):
    """The end of a process, as far as a test can have it."""


class CountedTeacher(GaussianNB):
    """Counts its fits on private rows in all of this process."""

    fits = 0

    def fit(self, X, y):
        type(self).fits += not np.isin(X, X_PUBLIC).all()
        return super().fit(X, y)


def make(ledger, **changes):
    parameters = {
        "estimator": GaussianNB(),
        "n_teachers": 10,
        "n_queries": N_QUERIES,
        "mechanism": GumbelMax(c=0.5),  # answers that differ from run to run
        "epsilon": None,
        "ledger": ledger,
        "random_state": 0,
    }
    return PATEClassifier(**(parameters | changes))


def fit(ledger, X=X, y=Y, X_public=X_PUBLIC, groups=None, **changes):
    pate = make(ledger, **changes)
    return pate.fit(X, y, X_public=PublicData(X_public), groups=groups)


def released(pate):
    return pate.queried_indices_.tolist(), pate.answers_.tolist()

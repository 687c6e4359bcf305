"""Small fits of balanced votes."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.inspection import audit_neighbours

X, Y = make_classification(
    1300, 4, n_informative=3, n_redundant=0, weights=[0.85], random_state=0
)
X, X_PUBLIC, Y = X[:1200], X[1200:], Y[:1200]


def make(estimator=None, student=None, **parameters):
    given = {"mechanism": "gnmax", "n_teachers": 20, "n_queries": 100, "epsilon": 8.0}
    given |= {"classes": [0, 1], "random_state": 0}
    estimator = GaussianNB() if estimator is None else estimator
    return PATEClassifier(estimator, student, **given | parameters)


def fit(estimator=None, student=None, *, data=(X, Y), groups=None, **parameters):
    clf = make(estimator, student, **parameters)
    return clf.fit(*data, X_public=PublicData(X_PUBLIC), groups=groups)


def released(fitted):
    """Return all that left the teachers and the count of the classes."""
    answers = fitted.queried_indices_.tolist(), fitted.answers_.tolist()
    return *answers, fitted.class_shares_.tolist()


def counts_of(fitted):
    return fitted.privacy_analysis_.counts


def audit_fits(statistic, n_teachers):
    """Audit fits of which one row, next to half of the public rows, is changed."""
    rows, y = np.r_[np.zeros((1, 1)), np.ones((99, 1))], np.zeros(100, dtype=int)
    given = {"n_teachers": n_teachers, "n_queries": 20, "epsilon": 0.5}
    return audit_neighbours(
        make(KNeighborsClassifier(1), GaussianNB(), **given),
        (rows, y),
        (rows, np.where(np.arange(100) == 0, 1, y)),
        X_public=PublicData(np.repeat([[0.0], [1.0]], 10, axis=0)),
        statistic=statistic,
        n_runs=50,
    )

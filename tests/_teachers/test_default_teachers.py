"""Tests of the teachers that a PATEClassifier trains by default."""

from itertools import chain

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_pate import PATEClassifier, PublicData

pytestmark = pytest.mark.slow

N_ROWS = 900
FITS = []


class Recording(LogisticRegression):
    """The default teacher, which keeps the numbers of the rows of each fit."""

    def fit(self, X, y):
        FITS.append(X[:, 0].astype(int).tolist())
        return super().fit(X, y)


def table():
    """Return rows whose first column is their number, negative for public rows."""
    rng = np.random.RandomState(0)
    X = np.column_stack([np.arange(N_ROWS), rng.standard_normal((N_ROWS, 2))])
    X_public = X[:200] * [-1, 1, 1] - [1, 0, 0]
    return X, (X[:, 1] > 0).astype(int), PublicData(X_public)


def shards_of(pate, X, y, X_public, **given):
    """Fit, and return the numbers of the private rows of each teacher."""
    FITS.clear()
    pate.fit(X, y, X_public=X_public, **given)
    shards = [rows for rows in FITS if min(rows) >= 0]
    assert all(max(rows) < 0 for rows in FITS if rows not in shards)
    return shards


@pytest.fixture(params=["scores", "gnmax", "auto"])
def pate(request):
    return PATEClassifier(
        Recording(C=10, max_iter=1000),
        mechanism=request.param,
        representation=None,
        epsilon=8.0,
        random_state=0,
    )


def test_teachers_are_trained_on_disjoint_shards_that_cover_all_rows(pate):
    shards = shards_of(pate, *table())
    # Roots of the number of rows.
    assert len(shards) == (30 if pate.mechanism == "gnmax" else 60)
    assert sorted(chain.from_iterable(shards)) == list(range(N_ROWS))


def test_all_rows_of_a_group_reach_one_teacher(pate):
    groups = np.arange(N_ROWS) // 3
    pate.set_params(privacy_unit="group", n_teachers=17)
    shards = shards_of(pate, *table(), groups=groups)
    assert len(shards) <= 17  # some may be empty
    assert sorted(chain.from_iterable(shards)) == list(range(N_ROWS))
    of_shards = [set(groups[rows].tolist()) for rows in shards]
    assert sum(map(len, of_shards)) == len(set.union(*of_shards)) == 300


def test_without_an_estimator_teachers_are_trained_all_the_same():
    X, y, X_public = table()
    clf = PATEClassifier(epsilon=8.0, random_state=0).fit(X, y, X_public=X_public)
    assert clf.privacy_spent_.n_teachers == 90  # 3 roots of the number of rows
    assert clf.privacy_spent_.release == "scores"

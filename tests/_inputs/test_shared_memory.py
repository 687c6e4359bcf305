"""Private rows that are passed as public ones by mistake."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import BernoulliNB

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.learners import PETDLClassifier, PrivateKNNClassifier

RNG = np.random.default_rng(0)
Y = np.arange(300) % 2
X = RNG.normal(size=(300, 3)) + Y[:, np.newaxis]
FRAME = pd.DataFrame(X, columns=list("abc"))
POLARS = pl.DataFrame(X.copy(), schema=list("abc"))
SPARSE = sp.csr_matrix(X)


class Counted(BernoulliNB):
    """Counts its fits in this process."""

    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        return super().fit(X, y)


@pytest.fixture
def ledger(tmp_path):
    Counted.fits = 0
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)


def learners(ledger):
    given = {"ledger": ledger, "classes": [0, 1], "random_state": 0}
    return {
        "newton": DPNewtonClassifier(**given),
        "votes": PATEClassifier(Counted(), n_teachers=10, n_queries=20, **given),
        "PETDL": PETDLClassifier(Counted(), n_teachers=10, **given),
        "Private-kNN": PrivateKNNClassifier(Counted(), n_queries=20, **given),
    }


SAME_ROWS = {
    "the same array": (X, X),
    "an array by its name": (X, PublicData(X)),
    "a view": (X, X[::2]),
    "the same list": (2 * [X.tolist()]),
    "the same dataframe": (FRAME, FRAME),
    "rows of a dataframe": (FRAME, FRAME.iloc[:100]),
    "rows of a polars dataframe": (POLARS, POLARS[:100]),
    "the same sparse matrix": (SPARSE, SPARSE),
}
if int(pd.__version__.split(".")[0]) > 2:  # before, the other columns were copied
    SAME_ROWS["a dataframe with another column"] = (FRAME, FRAME.assign(c=0.0))


@pytest.mark.parametrize("case", SAME_ROWS)
def test_private_rows_are_refused_as_public_ones(case, ledger):
    rows, public = SAME_ROWS[case]
    clf = learners(ledger)["votes"]
    with pytest.raises(ValueError, match=r"^X_public is X, or shares rows with it"):
        clf.fit(rows, Y, X_public=PublicData(public))
    assert ledger.entries() == []
    assert Counted.fits == 0


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["newton", "PETDL", "Private-kNN"])
@pytest.mark.parametrize("method", ["fit", "plan_privacy"])
def test_other_learners_and_plans_refuse_them_too(learner, method, ledger):
    clf = learners(ledger)[learner]
    with pytest.raises(ValueError, match=r"X_public is X.*synthetic=PrivateMarginals"):
        getattr(clf, method)(X, Y, X_public=PublicData(X))
    assert ledger.entries() == []
    assert Counted.fits == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("private", "public"),
    [
        (X[:200], X[200:]),
        (X[:200].T.copy().T, X[200:]),
        (X[::2], X[1::2]),
        (FRAME.iloc[:200], FRAME.iloc[200:]),
        (FRAME.iloc[::2], FRAME.iloc[1::2]),
        (POLARS[:200], POLARS[200:]),
        (SPARSE[:200], SPARSE[200:]),
    ],
)
def test_other_rows_of_the_same_table_are_accepted(private, public, ledger):
    y = np.arange(private.shape[0]) % 2
    clf = learners(ledger)["votes"]
    clf.plan_privacy(private, y, X_public=PublicData(public))

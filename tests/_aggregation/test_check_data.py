"""The check of private rows that the data holder runs before a fit."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.model_selection import PrivateSearchCV

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, size=(400, 2))
Y = np.where(X[:, 0] > RNG.uniform(2, 8, 400), "died", "alive").astype(object)
Y_SLIPS = Y.copy()
Y_SLIPS[:7], Y_SLIPS[7] = "Died", None
PUBLIC = PublicData(RNG.uniform(0, 10, size=(100, 2)))
KNOWN = {"classes": ["alive", "died"]}
FRAME = pd.DataFrame(X, columns=["age", "weight"])
WORDS = FRAME.astype(object)
WORDS.loc[3:5, "weight"] = "62,8"
GAPS = np.where(X > 9.9, np.nan, X)
GROUPS = np.arange(400) // 2
WITHOUT_ID = GROUPS.astype(object)
WITHOUT_ID[:5] = None

LEARNERS = {
    "PATE": PATEClassifier(LogisticRegression(), n_teachers=20, **KNOWN),
    "Newton": DPNewtonClassifier(**KNOWN),
    "logistic": DPLogisticRegression(data_norm=20.0, **KNOWN),
    "hinge": DPLinearSVC(data_norm=20.0, **KNOWN),
    "counts": DPNaiveBayesClassifier((0, 10), **KNOWN),
    "neighbours": PrivateKNNClassifier(**KNOWN),
    "PETDL": PETDLClassifier(
        LogisticRegression(),
        LogisticRegression(),
        n_teachers=20,
        batches=Clusters(20),
        **KNOWN,
    ),
    "search": PrivateSearchCV(
        DPLogisticRegression(data_norm=20.0, **KNOWN), {"C": [1.0]}, **KNOWN
    ),
}
SLIPS = (
    "7 rows left out: the label 'Died' is not in classes, unlike 'died'.",
    "1 row left out: the label <missing> is not in classes.",
)


@pytest.mark.parametrize("name", LEARNERS)
def test_labels_that_are_no_class_are_listed_with_their_numbers(name):
    problems = LEARNERS[name].check_data(X, Y_SLIPS)
    assert problems == SLIPS
    text = "Sensitive: depends on private data, do not publish."
    assert str(problems).splitlines() == [text, *SLIPS]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning")
@pytest.mark.filterwarnings("ignore::sklearn_pate.exceptions.StudentWarning")
@pytest.mark.parametrize("name", LEARNERS)
def test_a_fit_keeps_the_same_problems_but_no_pickle_does(name):
    with_public = name in ("PATE", "Newton", "neighbours", "PETDL")
    public = {"X_public": PUBLIC} if with_public else {}
    fitted = LEARNERS[name].fit(X, Y_SLIPS, **public)
    assert fitted.data_problems_ == SLIPS
    assert not hasattr(pickle.loads(pickle.dumps(fitted)), "data_problems_")
    with pytest.raises(TypeError, match="DataProblems are sensitive"):
        pickle.dumps(fitted.data_problems_)


NAIVE = DPNaiveBayesClassifier({"age": (0, 10), "weight": (0, 5)}, **KNOWN)
# Learners, arguments of the check, and a problem that it lists.
PROBLEMS = {
    "no row of a class": (
        DPNewtonClassifier(classes=["alive", "died", "lost"]),
        (X, Y, {}),
        "No row has the label 'lost'.",
    ),
    "labels alike": (
        DPNewtonClassifier(),
        (X, Y_SLIPS, {}),
        "7 rows of the label 'Died', which differs from another label only in case "
        "or spaces.",
    ),
    "a rare label": (
        DPNewtonClassifier(),
        (X, np.where(np.arange(400) == 3, "unknown", Y), {}),
        "Only 1 row of the label 'unknown', which becomes a class if classes is None.",
    ),
    "another type": (
        DPNewtonClassifier(classes=[0, 1]),
        (X, Y.astype(str), {}),
        "No label of y can be in classes=[0, 1], as y is declared to be text; give "
        "both the same type.",
    ),
    "another unit than public rows": (
        DPNewtonClassifier(),
        (1000 * FRAME, Y, {"X_public": PublicData(FRAME[:100] + 0.0)}),
        "Columns ['age', 'weight'] have other values than in X_public; use the same "
        "units. A Pipeline transforms X_public only with "
        "transform_input=['X_public'].",
    ),
    "public rows of smaller numbers": (
        DPNewtonClassifier(),
        (X, Y, {"X_public": PublicData(X[:100] / 4)}),
        "Columns [0, 1] have other values than in X_public; use the same units. A "
        "Pipeline transforms X_public only with transform_input=['X_public'].",
    ),
    "labels in another order": (
        DPNewtonClassifier(),
        (FRAME, pd.Series(Y)[::-1], {}),
        "y has the index of X in another order; rows are paired by position.",
    ),
    "ids in another order": (
        LEARNERS["PATE"],
        (FRAME, Y, {"groups": pd.Series(GROUPS)[::-1]}),
        "groups has the index of X in another order; rows are paired by position.",
    ),
    "rows without an id": (
        LEARNERS["PATE"],
        (X, Y, {"groups": WITHOUT_ID}),
        "5 rows left out: without a group id.",
    ),
    "groups of several labels": (
        LEARNERS["PATE"],
        (X, np.arange(400) % 2, {"groups": GROUPS}),
        "200 groups of 200: rows with different labels.",
    ),
    "groups of one row": (
        LEARNERS["PATE"],
        (X, Y, {"groups": np.arange(400)}),
        "Each group has one row; pass the ids of persons as groups.",
    ),
    "ids that cannot be read": (
        LEARNERS["PATE"],
        (X, Y, {"groups": np.arange(400) / 2}),
        "groups holds a fraction, or a float too large to be exact, which numpy may "
        "change beside other ids; pass a whole number or a string for every row.",
    ),
    "missing values": (
        PATEClassifier(LogisticRegression(), representation=None),
        (GAPS, Y, {}),
        f"{np.isnan(GAPS).any(axis=1).sum()} rows with missing or infinite values, "
        "which may be left out.",
    ),
    "text among numbers": (
        LEARNERS["PATE"],
        (WORDS, Y, {}),
        "Column 'weight': 3 values of 400 cannot be read as a number.",
    ),
    "text, and public numbers": (
        LEARNERS["PATE"],
        (FRAME.assign(age="old"), Y, {"X_public": PublicData(FRAME)}),
        "Column 'age': 400 values of 400 cannot be read as a number.",
    ),
    "numbers, and public text": (
        LEARNERS["PATE"],
        (FRAME, Y, {"X_public": PublicData(FRAME.assign(age="old"))}),
        "Column 'age' is numeric, unlike in X_public.",
    ),
    "outside of a range": (
        NAIVE,
        (FRAME, Y, {}),
        f"Column 'weight': {(X[:, 1] > 5).sum()} values above the range.",
    ),
    "outside of declared values": (
        DPNewtonClassifier(
            synthetic=PrivateMarginals({"age": (0, 10), "weight": ["light", "heavy"]})
        ),
        (FRAME.assign(weight="Light"), Y, {}),
        "Column 'weight': 400 values without a declared value.",
    ),
    "outside of bounds": (
        DPLogisticRegression(feature_bounds=([0, 0], [10, 5])),
        (FRAME, Y, {}),
        f"Column 'weight': {(X[:, 1] > 5).sum()} values outside its bounds.",
    ),
    "longer than the norm": (
        DPLogisticRegression(data_norm=10.0),
        (X, Y, {}),
        f"{(np.linalg.norm(X, axis=1) > 10).sum()} rows longer than data_norm.",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_listed(name):
    learner, (rows, labels, others), problem = PROBLEMS[name]
    assert problem in learner.check_data(rows, labels, **others)


@pytest.mark.parametrize("name", LEARNERS)
def test_rows_as_declared_have_no_problem(name):
    problems = LEARNERS[name].check_data(X, Y, groups=None)
    assert problems == ()
    assert str(problems).endswith("No problem was found.")


def test_a_check_draws_charges_and_keeps_nothing(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=3, delta=1e-6)
    clf = PATEClassifier(LogisticRegression(), ledger=ledger, **KNOWN)
    before = dict(vars(clf))
    clf.check_data(X, Y_SLIPS, X_public=PUBLIC)
    assert vars(clf) == before
    assert ledger.entries() == []


def test_a_published_model_checks_rows_to_measure():
    clf = DPLogisticRegression(data_norm=20.0, **KNOWN).fit(X, Y)
    assert clf.publish().check_data(X, Y_SLIPS) == SLIPS
    assert (
        DPLogisticRegression(data_norm=20.0).fit(X, Y).check_data(X, Y_SLIPS) == SLIPS
    )


def test_objects_that_raise_are_counted():
    class Bad(str):
        def __eq__(self, other):
            raise RuntimeError("a private value")

        __hash__ = __str__ = __repr__ = __ne__ = __eq__

    rows, labels = WORDS.copy(), Y.copy()
    rows.loc[3, "weight"] = labels[0] = Bad("Zanzibar")
    problems = LEARNERS["PATE"].check_data(rows, labels)
    assert problems[0] == SLIPS[1]


def test_many_other_labels_are_counted_together():
    labels = np.array([f"label {k}" for k in range(400)], dtype=object)
    problems = DPNewtonClassifier(**KNOWN).check_data(X, labels)
    assert len(problems) == 2 + 10 + 1
    assert problems[-1] == "390 rows left out: 390 other labels not in classes."


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_booleans_with_missing_values_are_compared_with_public_booleans(library):
    pl = pytest.importorskip("polars")
    values = [None, *(bool(one > 5) for one in X[1:, 1])]
    frame = pl.DataFrame({"age": X[:, 0], "smoker": values})
    if library == "pandas":
        smoker = pd.array(values, dtype="boolean")
        frame = pd.DataFrame({"age": X[:, 0], "smoker": smoker})
    public = PublicData(frame[200:])
    clf = DPNewtonClassifier(**KNOWN)
    assert clf.check_data(frame[:200], Y[:200], X_public=public) == ()

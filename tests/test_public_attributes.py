"""What leaves is equal on neighbouring data, where noisy sums are fixed numbers.

Then every public attribute, text, warning and file is a function of released and of
public numbers. `data_problems_` and `privacy_analysis_` are sensitive, and exempt.
"""

import io
import pickle
import re
import warnings
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_pate import PATEClassifier, PrivateMarginals, PublicData
from sklearn_pate.inspection import PrivacyReport, plan
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    DPNewtonClassifier,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GumbelMax,
    LNMax,
    MeanScores,
    NoisyHistogram,
    PermuteAndFlip,
)
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import TableRepresentation
from tests.cases import thorough_but
from tests.fixed_sums import contents, fixed_sums, properties
from tests.publication.learners import network

pytestmark = pytest.mark.slow

CLASSES = ["ill", "unsure", "well"]
N_ROWS, N_PUBLIC = 240, 150
# Dates, places in memory, and scikit-learn's numbers of drawings.
CHANGING = re.compile(r"\d{4}-\d\d-\d\d|x[0-9a-f]{6,}|(sk-[\w-]*?-id|estimator)-\d+")
NUMBERS = ["age", "dose", "weight"]
WORDS = ["blue", "green", "red"]
DOMAIN = dict.fromkeys(NUMBERS, (-9, 9)) | {"colour": WORDS}


def table(n_rows, seed):
    rng = np.random.RandomState(seed)
    X = pd.DataFrame(rng.standard_normal((n_rows, 3)), columns=NUMBERS)
    X["colour"] = pd.Series(np.array(WORDS)[rng.randint(0, 3, n_rows)], dtype=object)
    y = np.array(CLASSES, dtype=object)[np.digitize(X["age"], [-0.5, 0.5])]
    return X, y


def with_row(place, label, **values):
    """Return neighbouring data: another label or other values in one row."""

    def change(X, y, groups):
        X, y = X.copy(), y.copy()
        for name, value in values.items():
            X.loc[X.index[place], name] = value
        y[place] = label
        return X, y, groups

    return change


def without_group(X, y, groups):
    kept = groups != groups[0]
    return X[kept].reset_index(drop=True), y[kept], groups[kept]


# Neighbours for a unit of rows. Types of columns stay, as they are declared.
OF_ROWS = {
    "another class, a huge value, an unseen category": with_row(
        0, CLASSES[0], dose=1e300, colour="violet"
    ),
    "a label that is no class, infinite values": with_row(
        5, "dead", dose=np.inf, age=-np.inf
    ),
    "nothing": with_row(N_ROWS - 1, None, age=np.nan, colour=None),
    "numbers for words": with_row(7, 3, colour=5),
}
OF_GROUPS = {
    "a group less": without_group,
    "a group of another class": lambda X, y, groups: (
        X,
        np.where(groups == groups[0], CLASSES[0], y),
        groups,
    ),
    "a group of a label that is no class": lambda X, y, groups: (
        X,
        np.where(groups == groups[0], "dead", y),
        groups,
    ),
    "a group less, as its id is missing": lambda X, y, groups: (
        X,
        y,
        np.where(groups == groups[0], None, groups),
    ),
}


def tabular():
    """Return a classifier of tables."""
    return make_pipeline(TableRepresentation(3), LogisticRegression())


PUBLIC = {"classes": CLASSES, "random_state": 0}
PATE = {"n_teachers": 20, "n_queries": 40} | PUBLIC
BOUNDS = {"feature_bounds": (-9.0, 9.0), "classes": CLASSES}
LEARNERS = {
    "votes": PATEClassifier(LogisticRegression(), **PATE, mechanism="gnmax"),
    "forests": PATEClassifier(
        make_pipeline(TableRepresentation(3), RandomForestClassifier(3)),
        **PATE,
        mechanism="gnmax",
    ),
    "LNMax": PATEClassifier(LogisticRegression(), **PATE, mechanism=LNMax()),
    "GumbelMax": PATEClassifier(LogisticRegression(), **PATE, mechanism=GumbelMax()),
    "PermuteAndFlip": PATEClassifier(
        LogisticRegression(), **PATE, mechanism=PermuteAndFlip()
    ),
    "histogram": PATEClassifier(
        LogisticRegression(), **PATE, mechanism=NoisyHistogram()
    ),
    "confident": PATEClassifier(
        LogisticRegression(), **PATE, mechanism=ConfidentGNMax()
    ),
    "uncertainty": PATEClassifier(
        LogisticRegression(), **PATE, mechanism="gnmax", query_strategy="uncertainty"
    ),
    "interactive": PATEClassifier(
        LogisticRegression(), **PATE, mechanism="interactive"
    ),
    "scores": PATEClassifier(
        LogisticRegression(), n_teachers=20, mechanism=MeanScores(), **PUBLIC
    ),
    "synthetic": PATEClassifier(
        LogisticRegression(),
        n_teachers=20,
        synthetic=PrivateMarginals(DOMAIN, n_rows=500),
        **PUBLIC,
    ),
    "Newton": DPNewtonClassifier(**PUBLIC),
    "Newton, synthetic": DPNewtonClassifier(
        synthetic=PrivateMarginals(DOMAIN, n_rows=500), **PUBLIC
    ),
    "neighbours": PrivateKNNClassifier(
        tabular(), n_queries=40, representation=TableRepresentation(3), **PUBLIC
    ),
    "PETDL": PETDLClassifier(
        LogisticRegression(),
        n_teachers=20,
        batches=Clusters(20),
        representation=TableRepresentation(3),
        student=tabular(),
        **PUBLIC,
    ),
    "naive Bayes": DPNaiveBayesClassifier(DOMAIN, classes=CLASSES),
    "objective": DPLogisticRegression(**BOUNDS),
    "output": DPLogisticRegression(method="output", **BOUNDS),
    "support vectors": DPLinearSVC(method="gaussian", **BOUNDS),
    "represented": DPLogisticRegression(representation="auto", classes=CLASSES),
    "DP-SGD": DPSGDClassifier(network(train_split=None), **PUBLIC),
    "search": PrivateSearchCV(
        PATEClassifier(LogisticRegression(), n_teachers=20, n_queries=20),
        {"epsilon": [0.5, 1.0]},
        mean_n_trials=2,
        classes=CLASSES,
        random_state=0,
    ),
    "search on disjoint rows": PrivateSearchCV(
        DPLogisticRegression(data_norm=5.0),
        {"C": [0.1, 1.0]},
        n_trials_distribution="disjoint",
        classes=CLASSES,
        random_state=0,
    ),
}
# The others differ from "votes" in one part, or take seconds.
DEFAULT = LEARNERS.keys() - {
    *("forests", "GumbelMax", "PermuteAndFlip", "histogram", "uncertainty"),
    *("interactive", "LNMax", "confident", "Newton, synthetic", "naive Bayes", "PETDL"),
    *("search", "search on disjoint rows"),
}
OF_NUMBERS = {"objective", "output", "support vectors", "DP-SGD"}
OF_NUMBERS |= {"search on disjoint rows"}
WITHOUT_PUBLIC = OF_NUMBERS | {"naive Bayes", "synthetic", "Newton, synthetic"}
BY_GROUPS = ("votes", "scores", "synthetic", "Newton", "Newton, synthetic", "PETDL")


def arguments(name, X):
    """Return private rows in the form that a learner takes, and its public rows."""
    if name in OF_NUMBERS:
        X = X[NUMBERS].to_numpy()[:, : 2 if name == "DP-SGD" else 3]
    if name in WITHOUT_PUBLIC:
        return X, {}
    return X, {"X_public": PublicData(table(N_PUBLIC, 1)[0])}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", thorough_but(DEFAULT, LEARNERS))
def test_fitted_attributes_that_do_not_apply_are_absent(name):
    X, y = table(N_ROWS, 0)
    X, given = arguments(name, X)
    fitted = clone(LEARNERS[name]).fit(X, y, **given)
    missing = {one for one, value in vars(fitted).items() if value is None}
    assert not {one for one in missing if one.endswith("_")}
    assert hasattr(fitted, "n_teachers") == ("n_teachers" in fitted.get_params())


def leaving(name, X, y, groups, monkeypatch):
    """Return all that leaves a plan and a fit, by its path."""
    X, given = arguments(name, X)
    if groups is not None:
        given["groups"] = groups
    learner, printed = clone(LEARNERS[name]), io.StringIO()
    if groups is not None:
        learner.set_params(privacy_unit="group")
        if "n_groups" in learner.get_params():
            learner.set_params(n_groups=200)
    if "verbose" in learner.get_params():
        learner.set_params(verbose=1)
    with (
        fixed_sums(monkeypatch),
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        # Which fits a process has made before is no part of a fit.
        warnings.filterwarnings("ignore", "2 fits of the same private rows")
        plans = [learner.plan_privacy(X, y, **given)]
        # Its plan would need the probabilities of a student.
        if (
            isinstance(learner, PATEClassifier | DPNewtonClassifier)
            and name != "interactive"
        ):
            plans.append(plan(learner, X, y, **given))
        fitted = learner.fit(X, y, **given)
        published = fitted.publish()
        report = PrivacyReport.from_estimator(fitted)
    found = {
        "fitted": fitted,
        "unpickled": pickle.loads(pickle.dumps(fitted)),
        "published": published,
        "plans": plans,
        "texts": [*map(str, plans), *map(repr, (fitted, published, report))],
        "page": fitted._repr_html_(),
        "card": published.card,
        "report": [report.to_dict(), report.to_markdown(), report.to_html()],
        "warnings": [str(one.message) for one in caught],
        "printed": printed.getvalue(),
    }
    everything = [*contents(found), *properties(fitted, "fitted")]
    return {path: CHANGING.sub("", repr(value)) for path, value in everything}


def differences(name, neighbours, groups, monkeypatch):
    """Return what differs on neighbouring data, by kind of neighbour and path."""
    X, y = table(N_ROWS, 0)
    before, found = leaving(name, X, y, groups, monkeypatch), {}
    assert len(before) > 100
    for kind, change in neighbours.items():
        after = leaving(name, *change(X, y, groups), monkeypatch)
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                found[kind, path] = before.get(path), after.get(path)
    return found


@pytest.mark.parametrize("name", thorough_but(DEFAULT, LEARNERS))
def test_nothing_that_leaves_differs_if_a_row_is_replaced(name, monkeypatch):
    assert not differences(name, OF_ROWS, None, monkeypatch)


@pytest.mark.thorough
@pytest.mark.parametrize("name", BY_GROUPS)
def test_nothing_that_leaves_differs_if_a_group_changes(name, monkeypatch):
    groups = np.array([f"p{number // 2:03}" for number in range(N_ROWS)], dtype=object)
    assert not differences(name, OF_GROUPS, groups, monkeypatch)


def test_labels_that_are_read_from_the_rows_are_found(monkeypatch):
    monkeypatch.setitem(LEARNERS, "read", DPNewtonClassifier(random_state=0))
    neighbour = {"a new label": with_row(5, "dead")}
    found = differences("read", neighbour, None, monkeypatch)
    assert ("a new label", "['fitted'].classes_.length") in found

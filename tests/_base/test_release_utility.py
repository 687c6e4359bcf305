"""Warnings of releases that no student can learn from, before anything is recorded."""

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from sklearn_pate import (
    PATEClassifier,
    PrivacyLedger,
    PrivacyUtilityWarning,
    PublicData,
    Votes,
)
from sklearn_pate.inspection import plan_fit
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax
from sklearn_pate.students import GraphSelfTrainingClassifier

pytestmark = pytest.mark.filterwarnings("always::sklearn_pate.PrivacyUtilityWarning")

AVERAGING, SEMI_SUPERVISED = LogisticRegression(), GraphSelfTrainingClassifier()


@pytest.fixture(scope="module")
def rows():
    X, y = make_blobs(700, centers=2, random_state=0)
    return X[:400], y[:400], PublicData(X[400:])


def pate(**parameters):
    return PATEClassifier(
        LogisticRegression(), **({"n_teachers": 10, "n_queries": 50} | parameters)
    )


def fit(X, y, X_public, **parameters):
    return pate(**parameters).fit(X, y, X_public=X_public)


def plan(X, y, X_public, **parameters):
    return pate(**parameters).plan_privacy(X, y, X_public=X_public)


def fit_from_votes(X, y, X_public, **parameters):
    votes = Votes.from_labels(np.zeros((10, 300), dtype=int), classes=[0, 1])
    return pate(**parameters, classes=[0, 1]).fit_from_votes(X_public, votes)


@pytest.mark.parametrize("method", [fit, plan, fit_from_votes])
def test_noise_that_hides_all_votes_is_warned_of(rows, method):
    with pytest.warns(PrivacyUtilityWarning) as caught:
        method(*rows)
    [text] = {str(one.message) for one in caught}
    voters = "parties" if method is fit_from_votes else "teachers"
    noise = r"The noise of GNMax\(sigma=30\.\d+\) is too large for 10 "
    assert re.match(noise + voters, text)
    assert "epsilon=" in text


@pytest.mark.parametrize("method", [fit, fit_from_votes])
def test_as_an_error_it_leaves_the_ledger_empty(rows, tmp_path, method):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=2, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        with pytest.raises(PrivacyUtilityWarning):
            method(*rows, ledger=ledger)
    assert ledger.entries() == []


def test_it_depends_on_no_private_value(rows):
    X, y, X_public = rows
    texts = []
    for values, labels in [(X, y), (np.zeros_like(X), y[::-1])]:
        with pytest.warns(PrivacyUtilityWarning) as caught:
            plan(values, labels, X_public)
        texts.append([str(one.message) for one in caught])
    assert texts[0] == texts[1]


def test_a_plan_of_the_fit_has_it_as_text_and_warns_of_nothing(rows):
    X, y, X_public = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        found = pate().plan_fit(X, y, X_public=X_public)
    assert "too large for 10 teachers" in found.warnings[-1]


@pytest.mark.slow
@pytest.mark.parametrize("student", [AVERAGING, SEMI_SUPERVISED])
@pytest.mark.parametrize(
    "setting",
    [
        {"n_teachers": 20, "n_queries": 2000},
        {"n_teachers": 60, "n_queries": 2000, "epsilon": 0.5},
        {"n_teachers": 100, "n_queries": 1000, "epsilon": 0.25, "n_classes": 10},
        {"n_teachers": 30, "n_queries": 200, "n_classes": 5},
    ],
)
def test_the_settings_that_it_names_would_do(setting, student):
    [text] = plan_fit(**setting, student=student).warnings
    named = dict(re.findall(r"(\w+)=([\d.]+\d)", text.split("Use ")[1]))
    assert {"n_teachers", "epsilon"} <= named.keys()
    for name, value in named.items():
        other = {name: float(value) if name == "epsilon" else int(value)}
        assert plan_fit(**setting | other, student=student).warnings == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "student"),
    [
        # The settings of the benchmarks on Adult, Diabetes and MNIST.
        ({"n_teachers": 500, "n_queries": 3000, "epsilon": 0.5}, AVERAGING),
        ({"n_teachers": 250, "n_queries": 3000}, AVERAGING),
        ({"n_teachers": 250, "n_queries": 1500, "epsilon": 2}, AVERAGING),
        ({"n_teachers": 250, "n_queries": 15369, "epsilon": 2}, AVERAGING),
        ({"n_teachers": 250, "n_queries": 100, "n_classes": 10}, SEMI_SUPERVISED),
        ({"n_teachers": 250, "n_queries": "auto"}, AVERAGING),
        ({"n_teachers": 250, "n_queries": "auto"}, SEMI_SUPERVISED),
    ],
)
def test_good_settings_are_not_warned_of(setting, student):
    assert plan_fit(**setting, student=student).warnings == ()


def test_few_queries_must_nearly_all_be_answered_right():
    few = {"n_teachers": 100, "n_queries": 5, "epsilon": None}
    assert plan_fit(**few, mechanism=GNMax(10.0)).warnings == ()
    assert plan_fit(**few, mechanism=GNMax(60.0)).warnings != ()


def test_more_rows_than_a_teacher_needs_are_needed_for_more_teachers():
    setting = {"n_teachers": 60, "n_queries": 2000, "epsilon": 0.5}
    assert "n_teachers=" not in plan_fit(n_rows=3000, **setting).warnings[-1]
    assert "n_teachers=" in plan_fit(n_rows=30_000, **setting).warnings[-1]


def test_a_check_that_hardly_passes_is_warned_of():
    mechanism = ConfidentGNMax(300, 10.0, 10.0)
    found = plan_fit(n_teachers=100, n_queries=500, epsilon=None, mechanism=mechanism)
    assert "0 % of 500 queries are answered right" in found.warnings[-1]


def test_interactive_answers_are_not_judged(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        plan(*rows, mechanism="interactive")

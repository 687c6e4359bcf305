"""Several outcomes at one privacy cost."""

from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multioutput import MultiOutputClassifier

from sklearn_pate import (
    BudgetExceededError,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
)
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.outcomes import PrivateMultiOutput
from tests.outcomes.outcomes import N_PRIVATE, classifier, parts, rows


def test_each_outcome_is_learned(of_labels):
    model, X, y = of_labels
    assert model.predict(X).shape == y.shape
    accuracies = (model.predict(X) == y).mean(axis=0)
    assert accuracies.min() > 0.65
    assert [one.shape for one in model.predict_proba(X)] == [(2000, 2), (2000, 2)]
    same = MultiOutputClassifier(LogisticRegression()).fit(X, y)
    both = np.mean((model.predict(X) == y).all(axis=1))
    assert model.score(X, y) == both
    assert same.score(X, same.predict(X)) == 1 == model.score(X, model.predict(X))


def test_the_cost_is_that_of_all_outcomes(of_labels):
    model, _, _ = of_labels
    spent = model.privacy_spent_
    assert spent.epsilon == pytest.approx(1.0, abs=1e-4)
    assert spent.epsilon <= 1.0
    parts_of = [one.privacy_spent_ for one in model.estimators_]
    assert spent.mu == pytest.approx(np.hypot(*(one.mu for one in parts_of)))
    assert spent.epsilon == pytest.approx(reduce(add, parts_of).epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: PATEClassifier(
            LogisticRegression(), n_teachers=50, n_queries=30, mechanism="gnmax"
        ),
        pytest.param(
            lambda: PATEClassifier(
                LogisticRegression(), n_teachers=50, n_queries=30, mechanism="lnmax"
            ),
            marks=pytest.mark.thorough,
        ),
        lambda: DPLogisticRegression(feature_bounds=(-5, 5)),
    ],
    ids=["Gaussian noise", "Laplace noise", "pure"],
)
def test_costs_without_a_mu_stay_within_epsilon_too(make):
    _, X, y, given = parts("labels")
    clf = make().set_params(epsilon=1.5)
    model = PrivateMultiOutput(clf, classes=[[0, 1], [0, 1]], shares=[0.3, 0.7])
    if isinstance(clf, DPLogisticRegression):
        given = {}
    spent = model.plan_privacy(X[:N_PRIVATE], y[:N_PRIVATE], **given)
    assert 1.3 < spent.epsilon <= 1.5 * (1 + 1e-9)


@pytest.mark.slow
def test_shares_divide_the_squared_mu():
    _, X, y, given = parts("labels")
    model = PrivateMultiOutput(classifier(), shares=[0.2, 0.8])
    model.fit(X[:N_PRIVATE], y[:N_PRIVATE], **given)
    first, second = (one.privacy_spent_.mu for one in model.estimators_)
    assert (first / second) ** 2 == pytest.approx(0.25, rel=1e-3)


@pytest.mark.slow
def test_one_ledger_entry_before_any_noise(tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=1.2, delta=1e-5)
    make, X, y, given = parts("labels")
    clf = classifier(ledger=ledger)
    fits = []
    kind = type(clf)
    before = kind.fit

    def noted(self, *args, **kwargs):
        fits.append(len(ledger.entries()))
        return before(self, *args, **kwargs)

    monkeypatch.setattr(kind, "fit", noted)
    model = make(clf).fit(X[:N_PRIVATE], y[:N_PRIVATE], **given)
    assert fits == [1, 1]
    [entry] = ledger.entries()
    assert entry.epsilon == pytest.approx(model.privacy_spent_.epsilon)
    with pytest.raises(BudgetExceededError):
        make(clf).fit(X[:N_PRIVATE], y[:N_PRIVATE], **given)
    assert len(fits) == 2


@pytest.mark.slow
def test_names_and_types_of_columns_are_kept():
    _, X, y, given = parts("labels")
    frame = pd.DataFrame(
        {"sepsis": y[:, 0], "stay": np.where(y[:, 1], "long", "short")}
    )
    model = PrivateMultiOutput(classifier()).fit(
        X[:N_PRIVATE], frame[:N_PRIVATE], **given
    )
    assert model.output_names_ == ["sepsis", "stay"]
    predicted = model.predict(X[:50])
    assert {*predicted[:, 1]} <= {"long", "short"}
    assert set(map(type, predicted[:, 0])) == {int}
    assert model.score(X, frame) > 0.4
    listed = PrivateMultiOutput(classifier())
    listed.fit(X[:N_PRIVATE], frame[:N_PRIVATE].to_numpy().tolist(), **given)
    assert [one.tolist() for one in listed.classes_] == [[0, 1], ["long", "short"]]


def test_a_row_with_an_unknown_label_is_dropped_for_this_outcome_alone():
    _, X, y, _ = parts("labels")
    y = y.astype(object)
    y[:7, 1] = "unknown"
    model = PrivateMultiOutput(classifier(), classes=[[0, 1], [0, 1]])
    said = str(model.check_data(X, y, X_public=rows(1)))
    assert "1: " in said
    assert "'unknown'" in said
    assert "0: " not in said


@pytest.mark.parametrize(
    ("parameters", "columns", "message"),
    [
        (
            {"classes": [[0, 1]]},
            2,
            "classes=.* must list the labels of each outcome",
        ),
        ({"shares": [0.5, 0.6]}, 2, "shares=.* must be positive numbers that sum"),
        ({"shares": "a"}, 2, "shares='a' must be positive numbers"),
        ({"classes": 5}, 2, "classes=5 must list the labels of each outcome"),
        ({"shares": [1.0]}, 2, "shares=.* must be positive numbers that sum"),
        ({}, None, "several outcomes are columns"),
    ],
)
def test_bad_columns_and_shares_are_refused_in_one_sentence(
    parameters, columns, message
):
    _, X, y, given = parts("labels")
    y = y[:, 0] if columns is None else y
    model = PrivateMultiOutput(classifier(), **parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X[:N_PRIVATE], y[:N_PRIVATE], **given)


def test_other_classifiers_are_refused():
    _, X, y, given = parts("labels")
    for clf, message in (
        (LogisticRegression(), "is not a private classifier"),
        (classifier(classes=[0, 1]), "leave classes at None"),
    ):
        with pytest.raises(ValueError, match=message):
            PrivateMultiOutput(clf).fit(X[:N_PRIVATE], y[:N_PRIVATE], **given)


@pytest.mark.slow
def test_it_is_cross_validated():
    _, X, y, _ = parts("labels")
    scores = cross_val_score(
        PrivateMultiOutput(classifier()),
        X,
        y,
        cv=2,
        params={"X_public": PublicData(rows(1)[:1000])},
    )
    assert scores.min() > 0.4


@pytest.mark.slow
def test_columns_of_other_outcomes_are_not_scored(of_labels):
    model, X, y = of_labels
    _, rows_, labels_, given = parts("labels")
    frame = pd.DataFrame(labels_, columns=["sepsis", "delirium"])
    named = PrivateMultiOutput(classifier())
    named.fit(rows_[:N_PRIVATE], frame[:N_PRIVATE], **given)
    assert named.score(rows_, frame) == named.score(rows_, labels_)
    for other in (frame[["delirium", "sepsis"]], frame[["sepsis"]]):
        with pytest.raises(ValueError, match="in this order"):
            named.score(rows_, other)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, y[:-1])


def test_shares_need_an_epsilon():
    _, X, y, given = parts("labels")
    clf = PATEClassifier(
        LogisticRegression(), mechanism=GNMax(sigma=20), n_queries=50, epsilon=None
    )
    model = PrivateMultiOutput(clf, shares=[0.5, 0.5])
    with pytest.raises(ValueError, match="but epsilon of the classifier is None"):
        model.fit(X[:N_PRIVATE], y[:N_PRIVATE], **given)
    model.set_params(shares=None)
    assert model.plan_privacy(X[:N_PRIVATE], y[:N_PRIVATE], **given).epsilon > 0

"""Groups whose number of rows depends on the outcome."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.inspection import plan
from sklearn_pate.learners import DPNaiveBayesClassifier
from tests.cases import thorough_but

N_YEARS, RISK = 5, 0.16
WITHIN = 1 - (1 - RISK) ** N_YEARS
DOMAIN = {0: (-3, 3), 1: (0, N_YEARS)}
GIVEN = {"privacy_unit": "group", "epsilon": 8.0, "random_state": 0}
LEARNERS = {
    "Newton": DPNewtonClassifier(n_groups=2000, **GIVEN),
    "naive Bayes": DPNaiveBayesClassifier(DOMAIN, **GIVEN),
    "Newton on counts": DPNewtonClassifier(
        n_groups=2000,
        synthetic=PrivateMarginals(DOMAIN),
        **GIVEN,
    ),
}


def persons(n, seed):
    """Return a value, and the year of the event or N_YEARS for none, of each person."""
    rng = np.random.RandomState(seed)
    return rng.standard_normal(n), np.minimum(rng.geometric(RISK, n) - 1, N_YEARS)


def by_year(values, events):
    """Return one row for each year until the event, with labels and persons."""
    person = np.repeat(np.arange(len(values)), np.minimum(events + 1, N_YEARS))
    year = np.concatenate([np.arange(min(one + 1, N_YEARS)) for one in events])
    X = np.column_stack([values[person], year])
    return X, (events[person] == year).astype(int), person


def fit(name, X, y, groups, X_public, classes):
    learner = LEARNERS[name].set_params(classes=classes)
    public = {"X_public": PublicData(X_public)} if name == "Newton" else {}
    return learner.fit(X, y, groups=groups, **public)


@pytest.mark.slow
@pytest.mark.parametrize("name", thorough_but(["naive Bayes"], LEARNERS))
def test_the_risk_is_right_with_one_row_a_person_and_too_high_with_one_a_year(name):
    (values, events), (public, ends) = persons(2000, 0), persons(500, 1)
    X, y, person = by_year(values, events)
    model = fit(name, X, y, person, by_year(public, ends)[0], [0, 1])
    years = np.column_stack([np.repeat(public, N_YEARS), np.tile(range(N_YEARS), 500)])
    risks = model.predict_proba(years)[:, 1].reshape(-1, N_YEARS)
    assert np.mean(1 - np.prod(1 - risks, axis=1)) > WITHIN + 0.1

    X, X_public = (np.column_stack([one, 0 * one]) for one in (values, public))
    model = fit(name, X, events, np.arange(2000), X_public, [*range(N_YEARS + 1)])
    within = model.predict_proba(X_public)[:, :N_YEARS].sum(axis=1)
    assert np.mean(within) == pytest.approx(WITHIN, abs=0.05)


def plan_on_counts(unit):
    clf = PATEClassifier(
        GaussianNB(),
        n_teachers=50,
        n_queries=10,
        synthetic=PrivateMarginals((-3, 3)),
        classes=[0, 1],
        privacy_unit=unit,
    )
    groups = {"groups": np.arange(500) // 2} if unit == "group" else {}
    return plan(clf, np.zeros((500, 2)), np.arange(500) % 2, **groups)


ROWS = {"row": {"n_rows": 9000}, "group": {}}
PLANS = {
    "each contributes the mean of its rows. The outcome must not decide": lambda unit: (
        plan(DPNewtonClassifier(privacy_unit=unit, n_groups=9000), **ROWS[unit])
    ),
    "a teacher learns from all rows of its groups": lambda unit: plan(
        PATEClassifier(n_teachers=50, n_queries=10, privacy_unit=unit)
    ),
    "each contributes one row. The outcome must not decide": plan_on_counts,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", PLANS)
def test_a_plan_describes_the_contribution_of_a_group(text):
    of_groups, of_rows = (
        " ".join(str(PLANS[text](u)).split()) for u in ("group", "row")
    )
    assert text in of_groups
    assert "rows of its groups" not in of_rows
    assert "the outcome decides" not in of_rows

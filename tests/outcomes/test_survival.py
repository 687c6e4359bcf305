"""Times until an event, which may be censored."""

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pate import PATEClassifier, PrivacyUtilityWarning, PublicData
from sklearn_pate.outcomes import DiscreteSurvival
from tests.outcomes.outcomes import (
    DTYPE,
    INTERVALS,
    N_PRIVATE,
    N_PUBLIC,
    classifier,
    parts,
    rows,
    survival,
    times,
)
from tests.private import SurvivalOutcome, concordance, survival_of


def made(pairs):
    """Events and times."""
    return np.array([*pairs], dtype=DTYPE)


def codes(pairs, ends=(2.0, 5.0, 10.0)):
    """Classes of events and times, for intervals from 0."""
    return SurvivalOutcome(np.array([0.0, *ends]), None).codes(made(pairs)).tolist()


def test_an_event_at_an_end_is_before_it_and_censoring_after_it():
    assert codes([(True, 2.0), (True, 2.1), (True, 0.0), (True, 10.0)]) == [0, 1, 0, 2]
    assert codes([(False, 1.0), (False, 2.0), (False, 0.0)]) == [3, 4, 3]
    # Whoever has a later time, or the last end, had no event until then.
    assert codes([(True, 11.0), (False, 11.0), (False, 10.0)]) == [6, 6, 6]


@pytest.mark.slow
@examples(st.lists(st.tuples(st.booleans(), st.floats(0, 12)), min_size=1, max_size=20))
def test_the_class_of_a_row_is_that_of_its_interval(pairs):
    edges = [0.0, *INTERVALS]
    for (event, time), code in zip(pairs, codes(pairs), strict=True):
        if event and time <= edges[-1]:
            assert code < 3
            assert edges[code] <= time <= edges[code + 1]
        elif not event and time < edges[-1]:
            assert 3 <= code < 6
            assert edges[code - 3] <= time < edges[code - 2]
        else:
            assert code == 6


@pytest.mark.parametrize("time", [np.nan, np.inf, -1.0])
def test_times_that_are_none_drop_the_row(time):
    assert codes([(True, time), (False, time), (True, 1.0)]) == [-1, -1, 0]


def test_unknown_event_codes_drop_the_row_and_are_told_to_the_holder():
    X = rows()[:300]
    y = np.zeros(300, dtype=[("event", int), ("time", float)])
    y["time"], y["event"][:7], y["time"][10:13] = 4.0, 2, -1.0
    y["time"][20:25] = np.nan
    model = DiscreteSurvival(classifier(), intervals=INTERVALS)
    said = str(model.check_data(X, y, X_public=rows(1)))
    assert "7 rows left out: the event is neither 0 nor 1." in said
    assert "3 rows left out: the time is negative." in said
    assert "5 rows left out: the time is missing, or no number." in said
    assert "Nobody is followed beyond the last interval" in said
    assert "No event is between 0 and 2." in said
    y["time"], y["event"] = 4000.0, 0
    said = str(model.check_data(X, y, X_public=rows(1)))
    assert "Nearly all times are beyond the last interval" in said


def test_survival_is_that_of_a_life_table():
    """Of 100 persons, 20 have an event and 10 are censored, then 14 and none."""
    found = survival_of(np.array([[0.2, 0.14, 0.1, 0.0, 0.56]]))
    first = 1 - 20 / (100 - 10 / 2)
    assert found[0] == pytest.approx([1, first, first * (1 - 14 / 70)])


@pytest.mark.parametrize("n_intervals", [1, 4])
def test_survival_of_any_probabilities_falls_from_one(n_intervals):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(2 * n_intervals + 1, 0.3), size=1000)
    found = survival_of(probabilities)
    assert np.all(found[:, 0] == 1)
    assert np.all(np.diff(found, axis=1) <= 0)
    assert np.all(found >= 0)
    certain = np.eye(2 * n_intervals + 1)[[0]]
    assert survival_of(certain)[0, -1] == 0


def test_survival_without_censoring_counts_those_without_an_event():
    probabilities = np.array([[0.3, 0.2, 0.0, 0.0, 0.5]])
    assert survival_of(probabilities)[0] == pytest.approx([1, 0.7, 0.5])


def test_concordance_is_that_of_all_pairs():
    """Brute force, with ties of times and of risks."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        time = rng.integers(1, 8, 40).astype(float)
        event, risk = rng.random(40) < 0.5, rng.integers(0, 5, 40).astype(float)
        right = pairs = 0
        for i in np.flatnonzero(event):
            for j in range(40):
                if time[j] > time[i] or (time[j] == time[i] and not event[j]):
                    pairs += 1
                    right += 1.0 * (risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j])
        assert concordance(event, time, risk) == pytest.approx(right / pairs)
    assert np.isnan(concordance(np.zeros(3, bool), np.ones(3), np.ones(3)))


def test_predictions_follow_a_known_law(of_times):
    """Persons of a law without censoring, whose survival is known."""
    model, X, y = of_times
    assert model.score(X, y) > 0.68
    found = model.predict_survival_function(X)
    truth = np.exp(-np.outer(np.exp(X[:, 0]) / 10, INTERVALS))
    assert np.abs(found.mean(axis=0) - truth.mean(axis=0)).max() < 0.05
    assert np.abs(found - truth).mean() < 0.12
    risk = model.predict(X)
    assert np.corrcoef(risk, X[:, 0])[0, 1] > 0.8
    assert np.all((risk >= 0) & (risk <= 1))
    assert model.event_times_.tolist() == INTERVALS


def test_survival_at_any_time_lies_between_the_ends(of_times):
    model, X, _ = of_times
    at_ends = model.predict_survival_function(X)
    found = model.predict_survival_function(X, times=[0, 2, 3.5, 10])
    assert np.allclose(
        found[:, [0, 1, 3]],
        np.column_stack(
            [
                np.ones(len(X)),
                at_ends[:, 0],
                at_ends[:, 2],
            ]
        ),
    )
    half = np.sqrt(at_ends[:, 0] * at_ends[:, 1])  # constant hazard
    assert np.allclose(found[:, 2], half)
    for wrong in ([-1], [10.5], [[1, 2]]):
        with pytest.raises(ValueError, match="nothing later is predicted"):
            model.predict_survival_function(X, times=wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("intervals", "y", "message"),
    [
        ([5, 2], None, "intervals=.* must be finite numbers that increase"),
        ([], None, "intervals=.* must be finite numbers that increase"),
        ([-1, 2], None, "intervals=.* must be positive ends"),
        ([0], None, "intervals=.* must be positive ends"),
        ([2], np.ones(200), "y must be a structured array of an event"),
        ([2], [(True, 1.0)] * 200, "y must be a structured array of an event"),
        (
            [2],
            np.zeros(200, dtype=[("time", float), ("event", bool)]),
            "y must be a structured array of an event",
        ),
        (
            [2],
            np.zeros(200, dtype=[("time", int), ("event", int)]),
            "y must be a structured array of an event",
        ),
        ([2], np.zeros((200, 1), dtype=DTYPE), "y must be a structured array"),
        ([2], None, None),
    ],
)
def test_bad_intervals_and_types_are_refused_in_one_sentence(intervals, y, message):
    X = rows()[:200]
    y = times(X) if y is None else y
    model = DiscreteSurvival(classifier(), intervals=intervals)
    if message is None:
        assert model.plan_privacy(X, y, X_public=PublicData(rows(1)))
        return
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, X_public=PublicData(rows(1)))


@pytest.mark.slow
def test_teachers_of_forests_vote_on_intervals():
    X = rows()
    y = times(X)
    clf = PATEClassifier(
        RandomForestClassifier(3), LogisticRegression(), n_teachers=40, epsilon=4.0
    )
    model = DiscreteSurvival(clf, intervals=[4.0])
    public = PublicData(X[N_PRIVATE : N_PRIVATE + N_PUBLIC])
    model.fit(X[:N_PRIVATE], y[:N_PRIVATE], X_public=public)
    assert model.score(X[-2000:], y[-2000:]) > 0.6


@pytest.mark.slow
def test_few_persons_are_warned_of():
    X = rows()[:200]
    model = DiscreteSurvival(classifier(epsilon=0.2), intervals=INTERVALS)
    with pytest.warns(PrivacyUtilityWarning):
        model.fit(X, times(X), X_public=PublicData(rows(1)))


@pytest.mark.thorough
def test_it_works_in_pipelines_and_searches():
    make, X, y, _ = parts("time")
    model, given = make(classifier()), {"X_public": PublicData(rows(1)[:1000])}
    pipeline = make_pipeline(FunctionTransformer(), model)
    pipeline.fit(X, y, discretesurvival__X_public=given["X_public"])
    assert pipeline.score(X, y) > 0.68
    search = GridSearchCV(
        model, {"classifier__epsilon": [0.5, 2.0]}, cv=KFold(2), refit=False
    ).fit(X, y, **given)
    assert search.cv_results_["mean_test_score"].min() > 0.65
    assert clone(model).get_params(deep=False)["intervals"] == INTERVALS


@pytest.mark.slow
def test_heavier_censoring_does_not_bias_the_incidence():
    X = rows()
    rng = np.random.default_rng(3)
    event = rng.exponential(10 * np.exp(-X[:, 0]))
    y = survival(event, rng.uniform(0, 8, len(X)))
    fine = DiscreteSurvival(classifier(epsilon=5.0), intervals=[1, 2, 3, 4, 5, 6])
    fine.fit(X[:N_PRIVATE], y[:N_PRIVATE], X_public=PublicData(X[N_PRIVATE:6000]))
    found = fine.predict_survival_function(X).mean(axis=0)
    truth = [np.mean(event > end) for end in fine.event_times_]
    assert found == pytest.approx(truth, abs=0.04)

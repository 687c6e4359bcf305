"""Private metrics of numbers and times: values, intervals, files, neighbours."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_absolute_error, r2_score

from sklearn_pate import PrivacyLedger
from sklearn_pate.exceptions import BudgetExceededError
from sklearn_pate.metrics import OutcomeMetrics, PrivateMetrics, private_metrics
from tests.outcomes.outcomes import (
    INTERVALS,
    fitted,
    numbers,
    times,
)
from tests.private import (
    MetricSums,
    PredictionsOfBins,
    _outcome_metrics,
    _private_metrics,
    score_rows,
)
from tests.seeding import equal_noise

N_ROWS = 12_000
OUTCOMES = {"number": numbers, "time": times}
STEPS = 1024


@pytest.fixture(scope="module")
def models():
    return {kind: fitted(kind)[0] for kind in OUTCOMES}


def measured_rows(kind, seed=5, n_rows=N_ROWS):
    X = np.random.default_rng(seed).normal(size=(n_rows, 3))
    return X, OUTCOMES[kind](X, seed + 1)


def measure(model, kind, *, epsilon=1.0, seed=5, n_rows=N_ROWS, **parameters):
    return private_metrics(
        model, *measured_rows(kind, seed, n_rows), epsilon=epsilon, **parameters
    )


@pytest.mark.slow
def test_metrics_of_a_number_are_those_of_scikit_learn(models):
    model = models["number"]
    metrics = measure(model, "number", epsilon=50.0)
    X, y = measured_rows("number")
    y, predicted = y.clip(0, 10), model.predict(X)
    ends = model.predict_interval(X, 0.9)
    truth = {
        "r2": r2_score(y, predicted),
        "mean_absolute_error": mean_absolute_error(y, predicted),
        "root_mean_squared_error": np.sqrt(np.mean((y - predicted) ** 2)),
        "mean_error": np.mean(predicted - y),
        "coverage": np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])),
    }
    assert {*metrics} == {*truth}
    for name, value in truth.items():
        assert metrics[name].value == pytest.approx(value, abs=0.01), name


@pytest.mark.slow
def test_metrics_of_times_are_those_of_the_rows(models):
    model = models["time"]
    metrics = measure(model, "time", epsilon=50.0)
    X, y = measured_rows("time")
    survival = model.predict_survival_function(X)
    # Pairs within a part of an interval are not compared, and bins of risk are wide.
    assert metrics["concordance"].value == pytest.approx(model.score(X, y), abs=0.02)
    for place, end in enumerate(INTERVALS):
        predicted = metrics["predicted_incidence", end].value
        assert predicted == pytest.approx(1 - survival[:, place].mean(), abs=0.005)
        truth = np.mean(1 - np.exp(-end * np.exp(X[:, 0]) / 10))
        assert metrics["incidence", end].value == pytest.approx(truth, abs=0.02)


def scored_once(model, X, monkeypatch):
    """Let many measurements of these rows look their scores up, by the first column."""
    classes, order = np.asarray(model.classifier_.classes_), np.argsort(X[:, 0])
    known = score_rows(model.classifier_, X, order, classes)

    def looked_up(classifier, X_some, rows, of_classes):
        assert classifier is model.classifier_
        places = np.searchsorted(X[order, 0], X_some[rows, 0])
        return known[0][places], known[1][places]

    monkeypatch.setattr(_private_metrics, "score_rows", looked_up)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", OUTCOMES)
def test_intervals_hold_the_truth_about_as_often_as_stated(models, kind, monkeypatch):
    """Of 100 draws of rows and noise; the truth is that of many rows."""
    model, (X, y) = models[kind], measured_rows(kind, 900, 40_000)
    scored_once(model, X, monkeypatch)
    truth = private_metrics(model, X, y, epsilon=200.0, delta=1e-6)
    monkeypatch.setattr(_outcome_metrics, "N_DRAWS", 1000)
    rng, drawn = np.random.default_rng(1), []
    for _ in range(100):
        some = rng.choice(len(X), 2000, replace=False)
        drawn.append(private_metrics(model, X[some], y[some], epsilon=1.0))
    for name, of_many in truth.items():
        value = of_many.value
        if name == "concordance":  # of shorter parts of intervals, with many rows
            value = np.mean([one[name].value for one in drawn])
        held = sum(one[name].low <= value <= one[name].high for one in drawn)
        # Intervals of incidences allow for more than the sampling there is.
        assert held >= 88, (name, held)


@pytest.mark.thorough
def test_intervals_of_the_returned_level_cover(models, monkeypatch):
    """Coverage over draws of the noise, on rows that were not measured."""
    model = models["number"]
    X, y = measured_rows("number", seed=77, n_rows=4000)
    probabilities = model.classifier_.predict_proba(X)
    others = measured_rows("number", seed=300, n_rows=3000)
    scored_once(model, others[0], monkeypatch)
    covered = []
    for _ in range(40):
        metrics = private_metrics(model, *others, epsilon=1.0)
        level = metrics.confidence_level(coverage=0.9)
        with monkeypatch.context() as patch:
            patch.setattr(model.classifier_, "predict_proba", lambda X: probabilities)
            ends = model.predict_interval(X, level)
        inside = (ends[:, 0] <= y.clip(0, 10)) & (y.clip(0, 10) <= ends[:, 1])
        covered.append(inside.mean())
    assert 0.9 <= np.mean(covered) < 0.97


@pytest.mark.slow
def test_too_much_noise_is_told(models):
    metrics = measure(models["number"], "number", epsilon=0.1, n_rows=30)
    assert np.isnan(metrics["r2"].value)
    assert metrics.confidence_level(coverage=0.9) == 1.0
    assert metrics.to_dict()["figures"]["r2"]["value"] is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", OUTCOMES)
def test_subgroups_have_their_own_metrics(models, kind):
    X, y = measured_rows(kind)
    subgroups = np.where(X[:, 1] > 0, "old", "young")
    metrics = private_metrics(
        models[kind],
        X,
        y,
        epsilon=5.0,
        subgroups=subgroups,
        subgroup_values=["old", "young"],
    )
    name = {"number": "r2", "time": "concordance"}[kind]
    for value in ("old", "young"):
        found = metrics.by_subgroup[value][name]
        exact = models[kind].score(X[subgroups == value], y[subgroups == value])
        assert found.value == pytest.approx(exact, abs=0.05)
    assert np.isnan(metrics.by_subgroup["other or missing"][name].value)
    codes = [one.code for one in metrics.privacy_spent_.assumptions]
    assert "subgroups-declared" in codes


@pytest.mark.slow
@pytest.mark.parametrize("kind", OUTCOMES)
def test_a_file_of_metrics_is_checked(models, kind, tmp_path):
    metrics = measure(models[kind], kind)
    path = tmp_path / "metrics.json"
    metrics.save(path)
    for loader in (OutcomeMetrics, PrivateMetrics):
        loaded = loader.load(path)
        assert isinstance(loaded, OutcomeMetrics)
        assert dict(loaded) == dict(metrics)
        assert loaded.privacy_spent_.epsilon == metrics.privacy_spent_.epsilon
    values = json.loads(path.read_text())
    name = {"number": "r2", "time": "concordance"}[kind]
    forged = {
        "figures": values["figures"] | {name: {"value": 1, "low": 1, "high": 1}},
        "epsilon": values["epsilon"] / 2,
        "noise_scales": [2 * one for one in values["noise_scales"]],
        "outcome": values["outcome"] | {"edges": [0.0, 1.0]},
        "sums": [one[:-1] for one in values["sums"]],
        "unit": "group",
        "statement": "nothing was spent",
    }
    for field, value in forged.items():
        path.write_text(json.dumps(values | {field: value}))
        with pytest.raises(ValueError, match="is not a file of private metrics"):
            OutcomeMetrics.load(path)


@pytest.mark.slow
def test_metrics_are_charged_and_refused_before_any_noise(models, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=1.2, delta=1e-5)
    first = measure(models["time"], "time", ledger=ledger, random_state=0)
    again = measure(models["time"], "time", ledger=ledger, random_state=0)
    assert all(map(np.array_equal, first.sums_, again.sums_))
    assert len(ledger.entries()) == 1
    with pytest.raises(BudgetExceededError):
        measure(models["number"], "number", ledger=ledger)


@pytest.mark.slow
def test_a_repeated_call_is_free_if_the_model_has_the_ledger(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=9, delta=1e-5)
    model, X, y = fitted("number", ledger=ledger)
    first = private_metrics(model, X, y, epsilon=1.0, ledger=ledger, random_state=0)
    again = private_metrics(model, X, y, epsilon=1.0, ledger=ledger, random_state=0)
    assert np.array_equal(first.sums_[0], again.sums_[0])
    assert len(ledger.entries()) == 2


@pytest.mark.slow
def test_no_warning_tells_a_protected_number_of_rows(models):
    """At 1001 rows, unlike at 998, delta is above one over the number of rows."""
    X, y = measured_rows("number", n_rows=1001)
    groups = np.minimum(np.arange(1001) // 2, 490)
    for n_rows in (998, 1001):
        private_metrics(
            models["number"],
            X[:n_rows],
            y[:n_rows],
            epsilon=1.0,
            delta=1e-3,
            groups=groups[:n_rows],
        )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bins": np.array([0.1, 0.5])}, "bins is about scores of classes"),
        ({"bins": [0.5]}, "bins is about scores of classes"),
        ({"class_prior": 0.1}, "class_prior is about scores of classes"),
        ({"epsilon": 0.0}, "epsilon=0.0 must be"),
    ],
)
def test_bad_parameters_are_refused(models, parameters, message):
    with pytest.raises(ValueError, match=message):
        measure(models["number"], "number", **{"epsilon": 1.0} | parameters)


@pytest.mark.slow
def test_a_level_is_of_numbers_and_a_share(models):
    metrics = measure(models["time"], "time")
    with pytest.raises(ValueError, match="metrics are of times"):
        metrics.confidence_level(coverage=0.9)
    metrics = measure(models["number"], "number")
    with pytest.raises(ValueError, match="coverage=2 must be"):
        metrics.confidence_level(coverage=2)


@pytest.mark.slow
def test_plots_show_what_was_measured(models):
    pytest.importorskip("matplotlib").use("agg")
    ax = measure(models["time"], "time").plot()
    assert [one.get_text() for one in ax.get_legend().get_texts()] == [
        "measured",
        "predicted",
    ]
    assert measure(models["number"], "number").plot().get_xlabel() == "confidence level"


# Neighbours.


def exact_sums(monkeypatch, model, X, y, **parameters):
    """Return the sums of all parts before noise, with the places of the first."""
    seen = []

    def release(self, sums, noise=None):
        seen.append(np.array(sums[0]))
        return np.zeros_like(sums) if len(seen) == 2 else FIRST[:, : len(sums[0])]

    monkeypatch.setattr(MetricSums, "release", release)
    private_metrics(model, X, y, epsilon=1.0, **parameters)
    return seen


# Released sums that do not depend on the rows, as for two runs with equal results.
FIRST = STEPS * np.ones((1, 4000), dtype=np.int64)
ODD = [np.nan, np.inf, -np.inf, 1e300, -7.0, 3.3, None, "text"]


@pytest.mark.slow
@pytest.mark.neighbours
@pytest.mark.parametrize("kind", OUTCOMES)
def test_a_replaced_row_moves_the_sums_no_further_than_stated(
    models, kind, monkeypatch
):
    X, y = measured_rows(kind, n_rows=40)
    by_subgroup = {"subgroups": np.arange(40) % 3, "subgroup_values": [0, 1]}
    before = exact_sums(monkeypatch, models[kind], X, y, **by_subgroup)
    # The noise is calibrated to the same parts.
    calibrated = _outcome_metrics.mechanisms_of(
        models[kind].classifier_._outcome, 3, 1.0, 1e-5
    )
    bounds = [2 * one.n_tables + one.n_numbers for one in calibrated]
    for place, odd in enumerate(ODD):
        row = (0, 7, 39)[place % 3]
        others, outcome = X.astype(object), y.copy()
        others[row, 0] = odd
        if kind == "time":
            outcome[row] = (not y[row]["event"], 8.0)
        else:
            outcome = outcome.astype(object)
            outcome[row] = odd
        after = exact_sums(
            monkeypatch,
            models[kind],
            others,
            outcome,
            subgroups=np.where(np.arange(40) == row, 1, np.arange(40) % 3),
            subgroup_values=[0, 1],
        )
        assert len(after) == len(before) == len(bounds)
        for one, other, bound in zip(before, after, bounds, strict=True):
            assert np.sum((one - other) ** 2) <= bound * STEPS**2


def parts_of(kind):
    """The releases whose cost is stated, without subgroups."""
    n_sums = {"number": 7, "time": len(INTERVALS)}[kind]
    first = MetricSums(1.0, n_tables=1, n_numbers=n_sums)
    return [first] if kind == "number" else [first, MetricSums(1.0)]


@pytest.mark.neighbours
def test_a_planted_dependence_between_rows_is_found(models, monkeypatch):
    """Predictions relative to their mean over all rows."""
    plain = PredictionsOfBins._measures

    def relative(self, probabilities, y):
        found = plain(self, probabilities, y)
        found[:, 0] -= np.nanmean(found[:, 0])
        return found

    monkeypatch.setattr(PredictionsOfBins, "_measures", relative)
    X, y = measured_rows("number", n_rows=400)
    before = exact_sums(monkeypatch, models["number"], X, y)
    X[0], y[0] = 9.0, 0.0
    after = exact_sums(monkeypatch, models["number"], X, y)
    assert np.sum((before[0] - after[0]) ** 2) > 1.5 * STEPS**2


@pytest.mark.neighbours
@pytest.mark.parametrize("kind", OUTCOMES)
def test_one_row_of_each_group_is_measured(models, kind, monkeypatch):
    X, y = measured_rows(kind, n_rows=60)
    groups = np.arange(60) // 3
    before = exact_sums(monkeypatch, models[kind], X, y, groups=groups, random_state=0)
    kept = groups != 4
    after = exact_sums(
        monkeypatch, models[kind], X[kept], y[kept], groups=groups[kept], random_state=0
    )
    bounds = [one.n_tables + one.n_numbers for one in parts_of(kind)]
    for one, other, bound in zip(before, after, bounds, strict=True):
        assert np.sum((one - other) ** 2) <= bound * STEPS**2


@pytest.mark.slow
def test_the_stated_cost_is_that_of_the_noise(models):
    for kind in OUTCOMES:
        metrics = measure(models[kind], kind, epsilon=0.7)
        mus = [
            np.sqrt(2 * part.n_tables + part.n_numbers) / scale
            for part, scale in zip(parts_of(kind), metrics.noise_scales_, strict=True)
        ]
        assert metrics.privacy_spent_.mu == pytest.approx(np.linalg.norm(mus), rel=1e-4)
        assert 0.69 < metrics.privacy_spent_.epsilon <= 0.7


@pytest.mark.slow
def test_seeded_noise_has_no_guarantee(models):
    with equal_noise():
        metrics = measure(models["number"], "number")
    assert metrics.privacy_spent_.epsilon == np.inf
    with pytest.raises(ValueError, match="have no privacy guarantee"):
        metrics.to_dict()


@pytest.mark.slow
def test_rows_in_a_frame_are_measured_as_in_an_array(models):
    X, y = measured_rows("number")
    with equal_noise():
        one = private_metrics(models["number"], X, y, epsilon=1.0)
    with equal_noise():
        other = private_metrics(models["number"], X, pd.Series(y), epsilon=1.0)
    assert np.array_equal(one.sums_[0], other.sums_[0])

"""The cost of a measurement is in the ledger before its noise, and once."""

import warnings

import numpy as np
import pytest

from sklearn_pate import BudgetExceededError, PrivacyLedger
from sklearn_pate.learners import DPNaiveBayesClassifier
from sklearn_pate.metrics import private_metrics
from tests._aggregation.fits import Crash
from tests.metrics.scores import FirstColumn, scored_rows
from tests.private import FitEntry, MarginalCounts

X, Y = scored_rows(3000)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=20, delta=1e-5)


def measured(ledger, **parameters):
    parameters = {"epsilon": 1.0, "random_state": 0} | parameters
    data = parameters.pop("data", (X, Y))
    model = parameters.pop("model", FirstColumn())
    return private_metrics(model, *data, ledger=ledger, **parameters)


def released(metrics):
    """Return all that was drawn."""
    return [
        metrics.confusion_.tolist(),
        *(one.tolist() for one in metrics.histograms_),
        *(one.tolist() for one in metrics.edges_),
    ]


# Where a call dies: what is called, whether before or after that, at which call; and
# the number of charges in the end.
MOMENTS = {
    "before the charge": (FitEntry, "open", "before", 1, 1),
    "after the charge": (FitEntry, "open", "after", 1, 2),
    "before the first draw": (MarginalCounts, "release", "before", 1, 2),
    "before the first storing": (FitEntry, "keep", "before", 1, 2),
    "after the first storing": (FitEntry, "keep", "after", 1, 1),
    "before the second draw": (MarginalCounts, "release", "before", 2, 2),
    "before the second storing": (FitEntry, "keep", "before", 2, 2),
    "after the second storing": (FitEntry, "keep", "after", 2, 1),
}


def die(moment, monkeypatch, work):
    """Run some work until it dies."""
    owner, name, when, call, _ = MOMENTS[moment]
    whole, calls = getattr(owner, name), 0

    def dies(self, *args, **kwargs):
        nonlocal calls
        calls += 1
        if calls < call:
            return whole(self, *args, **kwargs)
        if when == "after":
            whole(self, *args, **kwargs)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(Crash):
            work()


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_call_that_died_goes_on_and_pays_again_only_for_what_was_not_stored(
    moment, ledger, monkeypatch
):
    drawn_on, release = [], MarginalCounts.release

    def spy(self, counts, noise=None):
        drawn_on.append((len(ledger.entries()), self.n_tables))
        return release(self, counts, noise)

    monkeypatch.setattr(MarginalCounts, "release", spy)
    die(moment, monkeypatch, lambda: measured(ledger))
    first = measured(ledger)
    *_, n_charges = MOMENTS[moment]
    assert len(ledger.entries()) == n_charges
    # No noise without an entry, and no part twice on one.
    assert min(n_entries for n_entries, _ in drawn_on) > 0
    assert len(set(drawn_on)) == len(drawn_on)
    assert released(measured(ledger)) == released(first)
    assert len(ledger.entries()) == n_charges


OTHERS = {
    "rows": {"data": (X[1:], Y[1:])},
    "labels": {"data": (X, 1 - Y)},
    "model": {"model": FirstColumn(3), "data": (np.hstack([X, X, X]) / 3, Y)},
    "epsilon": {"epsilon": 0.9},
    "delta": {"delta": 1e-6},
    "bins": {"bins": [0.3, 0.5]},
    "other bins": {"bins": [0.3, 0.6]},
    "subgroups": {"subgroups": np.arange(3000) % 2, "subgroup_values": [0, 1]},
    "groups": {"groups": np.arange(3000) // 2},
    "seed": {"random_state": 1},
}


@pytest.mark.slow
def test_another_measurement_is_charged_and_drawn_anew(ledger):
    drawn = [released(measured(ledger))]
    for number, parameters in enumerate(OTHERS.values()):
        if "groups" not in parameters:  # a ledger has one unit
            drawn.append(released(measured(ledger, **parameters)))
            assert len(ledger.entries()) == len(drawn), number
    assert len({str(one) for one in drawn}) == len(drawn)


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_each_call_without_a_seed_is_charged(random_state, ledger):
    for n_charges in (1, 2):
        measured(ledger, random_state=random_state)
        assert len(ledger.entries()) == n_charges


def test_beyond_the_budget_nothing_is_scored_drawn_or_charged(tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1.2, delta=1e-5)
    measured(ledger)

    def fails(*args):
        raise AssertionError("not called")

    monkeypatch.setattr(MarginalCounts, "release", fails)
    monkeypatch.setattr(FirstColumn, "predict_proba", fails)
    with pytest.raises(BudgetExceededError, match="Use a smaller epsilon"):
        measured(ledger, random_state=1)
    assert len(ledger.entries()) == 1


def test_costs_of_a_fit_and_of_its_metrics_add_up(ledger):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPNaiveBayesClassifier(
            (0, 1), epsilon=1.0, classes=[0, 1], ledger=ledger
        ).fit(X, Y)
    metrics = measured(ledger, model=model)
    of_fit, of_metrics = model.privacy_spent_, metrics.privacy_spent_
    total = of_fit.curve + of_metrics.curve
    expected = ledger.budget_fractions(total)[0]
    assert ledger.spent == pytest.approx(expected, rel=1e-6)
    assert [one.description.split(",")[0] for one in ledger.entries()][1] == (
        "metrics of a DPNaiveBayesClassifier"
    )


def test_a_ledger_of_groups_refuses_metrics_of_rows(ledger):
    measured(ledger, groups=np.arange(3000) // 2)
    with pytest.raises(ValueError, match="protects unit='group'"):
        measured(ledger)
    assert len(ledger.entries()) == 1

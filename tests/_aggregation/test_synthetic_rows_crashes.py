"""Fits on drawn rows with a ledger that die, and fits that run at once."""

import contextlib
import multiprocessing

import pytest

from sklearn_pate import BudgetExceededError, PrivacyLedger
from sklearn_pate.mechanisms import Oracle
from tests._aggregation.fits import Crash
from tests._aggregation.synthetic_fits import FITS, fit, released, spy_on_counts
from tests.private import FitEntry, GaussianSum, MarginalCounts, _entry

# Where a fit dies: what is called, whether before or after that, at which call; and the
# number of charges in the end.
MOMENTS = {
    "before the charge": (FitEntry, "open", "before", 1, 1),
    "before the draw of counts": (MarginalCounts, "release", "before", 1, 2),
    "before the storing of counts": (FitEntry, "keep", "before", 1, 2),
    "after the storing of counts": (FitEntry, "keep", "after", 1, 1),
    "before the entry of answers": (FitEntry, "open", "before", 2, 1),
    "before the draw of answers": (Oracle, "_draw", "before", 1, 2),
    "before the storing of answers": (FitEntry, "keep", "before", 2, 2),
    "after the storing of answers": (FitEntry, "keep", "after", 2, 1),
    "before the end": (None, "_set_release", "before", 1, 1),
}


@contextlib.contextmanager
def dying(kind, moment, monkeypatch):
    owner, name, when, call, _ = MOMENTS[moment]
    owner = owner or type(FITS[kind])
    if owner is Oracle and kind in ("newton", "scores", "sum"):
        owner, name = GaussianSum, "release"
    work, calls = getattr(owner, name), 0

    def dies(self, *args, **kwargs):
        nonlocal calls
        calls += 1
        if calls < call:
            return work(self, *args, **kwargs)
        if when == "after":
            work(self, *args, **kwargs)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(Crash):
            yield


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", FITS)
def test_a_fit_that_died_goes_on_and_pays_again_only_for_what_was_not_stored(
    ledger, kind, moment, monkeypatch
):
    drawn_on = spy_on_counts(monkeypatch)
    with dying(kind, moment, monkeypatch):
        fit(kind, ledger)
    fitted = fit(kind, ledger)
    *_, n_charges = MOMENTS[moment]
    assert len(ledger.entries()) == n_charges
    assert len(set(drawn_on)) == len(drawn_on)
    assert released(fit(kind, ledger)) == released(fitted)
    assert len(ledger.entries()) == n_charges


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["votes", "sum", "neighbours"])
def test_of_two_equal_fits_at_once_both_pay_and_both_get_the_first_counts(
    ledger, kind, monkeypatch
):
    release, others = MarginalCounts.release, []

    def while_another_runs(self, *args):
        monkeypatch.setattr(MarginalCounts, "release", release)
        others.append(fit(kind, ledger))
        return release(self, *args)

    monkeypatch.setattr(MarginalCounts, "release", while_another_runs)
    fitted = fit(kind, ledger)
    assert len(ledger.entries()) == 2
    assert released(fitted) == released(others[0]) == released(fit(kind, ledger))
    assert len(ledger.entries()) == 2


def test_counts_that_another_fit_has_stored_meanwhile_are_not_drawn_on_its_entry(
    ledger, monkeypatch
):
    drawn_on = spy_on_counts(monkeypatch)
    count, others = _entry.count_cells, []

    def while_another_runs(*args, **kwargs):
        monkeypatch.setattr(_entry, "count_cells", count)
        with dying("votes", "after the storing of counts", monkeypatch):
            others.append(fit("votes", ledger))
        return count(*args, **kwargs)

    monkeypatch.setattr(_entry, "count_cells", while_another_runs)
    fitted = fit("votes", ledger)
    assert len(drawn_on) == 2
    assert len(set(drawn_on)) == 2
    assert len(ledger.entries()) == 2
    assert released(fit("votes", ledger)) == released(fitted)


@pytest.mark.thorough
def test_two_processes_at_once_pay_for_what_they_draw_and_agree(ledger):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        done = pool.starmap(fit_in_process, 4 * [(ledger.path,)])
    assert len(set(done)) == 1
    assert 1 <= len(ledger.entries()) <= 4


def fit_in_process(path):
    return released(fit("votes", PrivacyLedger(path)))


@pytest.mark.slow
def test_a_fit_that_died_before_storing_counts_and_is_beyond_the_budget_draws_nothing(
    tmp_path, monkeypatch, no_noise
):
    spent = fit("votes").privacy_spent_
    ledger = PrivacyLedger(
        tmp_path / "small.sqlite", epsilon=1.1 * spent.epsilon, delta=spent.delta
    )
    with dying("votes", "before the storing of counts", monkeypatch):
        fit("votes", ledger)
    no_noise()
    with pytest.raises(BudgetExceededError):
        fit("votes", ledger)
    assert len(ledger.entries()) == 1

"""Fits with a ledger that die, and fits that run at once."""

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import BudgetExceededError, LedgerError, PrivacyLedger, PublicData
from sklearn_pate.mechanisms import ConfidentGNMax, GumbelMax, PluralityMechanism
from sklearn_pate.students import UncertaintyQueries
from tests._aggregation.fits import (
    X_PUBLIC,
    CountedTeacher,
    Crash,
    X,
    Y,
    fit,
    make,
    released,
)
from tests._teachers.diary import Diary
from tests.private import FitEntry, PrivacyCost, Response

# Where a fit dies: before its charge, before it draws, before it stores, and after.
MOMENTS = {
    "before the charge": (FitEntry, "open", "before", 1),
    "before the draw": (PluralityMechanism, "respond", "before", 2),
    "before the storing": (FitEntry, "keep", "before", 2),
    "after the storing": (FitEntry, "keep", "after", 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("batch", [1, 3])
def test_a_fit_that_died_goes_on_and_pays_again_only_for_what_was_not_stored(
    ledger, moment, batch, monkeypatch
):
    owner, name, when, n_charges = MOMENTS[moment]
    work = getattr(owner, name)
    calls = 0

    def dying(self, *args, **kwargs):
        nonlocal calls
        calls += 1
        if calls < batch:
            return work(self, *args, **kwargs)
        if when == "after":
            work(self, *args, **kwargs)
        raise Crash

    wanted = {"query_strategy": UncertaintyQueries(n_rounds=4)}
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dying)
        with pytest.raises(Crash):
            fit(ledger, **wanted)
    with open_file(ledger) as file:
        stored = file.execute("SELECT row, answer FROM answers").fetchall()
    pate = fit(ledger, **wanted)
    assert len(ledger.entries()) == n_charges
    answer_of = dict(zip(*released(pate), strict=True))
    assert {row: answer_of[row] for row, _ in stored} == dict(stored)
    assert released(fit(ledger, **wanted)) == released(pate)
    assert len(ledger.entries()) == n_charges


def open_file(ledger):
    return contextlib.closing(sqlite3.connect(ledger.path))


def test_answers_that_cannot_be_stored_are_not_handed_out(ledger, monkeypatch):
    def full(self, *args):
        raise LedgerError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(FitEntry, "keep", full)
        pate = make(ledger)
        with pytest.raises(LedgerError):
            pate.fit(X, Y, X_public=PublicData(X_PUBLIC))
    assert not hasattr(pate, "answers_")
    assert len(ledger.entries()) == 1


@pytest.mark.slow
def test_of_two_equal_fits_at_once_both_pay_and_both_get_the_first_answers(
    ledger, monkeypatch
):
    respond, others = GumbelMax.respond, []

    def while_another_runs(self, *args, **kwargs):
        monkeypatch.setattr(GumbelMax, "respond", respond)
        others.append(fit(ledger))
        return respond(self, *args, **kwargs)

    monkeypatch.setattr(GumbelMax, "respond", while_another_runs)
    pate = fit(ledger)
    assert len(ledger.entries()) == 2
    assert released(pate) == released(others[0]) == released(fit(ledger))
    assert len(ledger.entries()) == 2


def test_of_two_equal_fits_in_rounds_each_pays_once(ledger):
    # Two accounts of one fit, in lockstep: each draws while the other is drawing.
    cost = PrivacyCost(
        GumbelMax(0.1).cost(20, 2).curve, 1e-6, "row", "replace-one", "", "", "fit"
    )
    one, other = (FitEntry(ledger, cost, 20, str) for _ in range(2))
    for start in range(0, 20, 2):
        rows = np.arange(start, start + 2)
        drawn = Response(np.zeros(2, dtype=int), 2)
        for account in (one, other):
            account.open(2)
        for account in (one, other):
            account.keep(rows, drawn)
    assert len(ledger.entries()) == 2
    assert len(one.stored()) == 20


@pytest.mark.slow
def test_a_killed_fit_that_is_beyond_the_budget_trains_no_teacher(
    tmp_path, monkeypatch
):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-6)
    wanted = {"mechanism": GumbelMax(c=0.045), "estimator": CountedTeacher()}

    def die(self, *args):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(FitEntry, "keep", die)
        with pytest.raises(Crash):
            fit(ledger, **wanted)
    assert ledger.spent > 0.5
    CountedTeacher.fits = 0
    with pytest.raises(BudgetExceededError):
        fit(ledger, **wanted)
    assert CountedTeacher.fits == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "is_charged_again"),
    [
        (PluralityMechanism, "respond", True),
        (FitEntry, "keep", True),
        (FitEntry, "open", False),
    ],
)
def test_a_killed_fit_that_took_the_whole_budget_goes_on_with_what_was_stored(
    tmp_path, monkeypatch, owner, name, is_charged_again
):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    wanted = {
        "mechanism": "gnmax",
        "epsilon": 1.0,
        "delta": 1e-5,
        "query_strategy": UncertaintyQueries(n_rounds=4),
    }
    work, calls = getattr(owner, name), 0

    def dying(self, *args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Crash
        return work(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dying)
        with pytest.raises(Crash):
            fit(ledger, **wanted)
    assert ledger.spent == 1
    if is_charged_again:  # a draw that was not stored, and nothing is left for another
        with pytest.raises(BudgetExceededError, match=r"0\.00% is left"):
            fit(ledger, **wanted)
    else:
        pate = fit(ledger, **wanted)
        assert released(fit(ledger, **wanted)) == released(pate)
    assert ledger.spent == 1
    assert len(ledger.entries()) == 1


@pytest.mark.slow
def test_a_cap_on_answers_holds_over_a_crash(ledger, monkeypatch):
    mechanism = ConfidentGNMax(1, 1, 1, max_answers=7)
    wanted = {"query_strategy": UncertaintyQueries(n_rounds=4), "mechanism": mechanism}
    keep, calls = FitEntry.keep, 0

    def dying(self, *args):
        nonlocal calls
        keep(self, *args)
        calls += 1
        if calls == 1:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(FitEntry, "keep", dying)
        with pytest.raises(Crash):
            fit(ledger, **wanted)
    pate = fit(ledger, **wanted)
    assert np.count_nonzero(pate.answers_ >= 0) == 7
    assert len(ledger.entries()) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:All answers .* name one class")  # noise may do so
def test_a_search_charges_every_fit_in_every_process(ledger):
    search = GridSearchCV(
        make(ledger, random_state=None),
        {"n_queries": [5, 10, 15]},
        cv=KFold(3, shuffle=True, random_state=0),
        n_jobs=2,
    )
    search.fit(X, Y, X_public=PublicData(X_PUBLIC))
    assert len(ledger.entries()) == 3 * 3 + 1
    assert search.best_estimator_.ledger == ledger


def run_one(path, seed):
    pate = fit(PrivacyLedger(path), random_state=seed)
    return pate.privacy_spent_.epsilon, ledger_share(path, pate)


def ledger_share(path, pate):
    return PrivacyLedger(path).budget_fractions(pate.privacy_spent_.curve)[0]


@pytest.mark.thorough
def test_the_charges_of_24_fits_at_once_are_the_sum_of_what_was_run(ledger):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        done = pool.starmap(run_one, [(ledger.path, seed) for seed in range(24)])
    assert len(ledger.entries()) == 24
    assert sorted(one.epsilon for one in ledger.entries()) == sorted(
        epsilon for epsilon, _ in done
    )
    assert ledger.spent == pytest.approx(sum(share for _, share in done), rel=1e-12)


@pytest.mark.thorough
def test_a_killed_fit_goes_on_with_its_teachers_and_its_answers(tmp_path):
    script = (
        "import sys\n"
        "from tests._aggregation.test_ledger_entry_crashes import fit_with_memory\n"
        "fit_with_memory(sys.argv[1])\n"
    )
    PrivacyLedger(tmp_path / "patients.sqlite", epsilon=50, delta=1e-6)
    (tmp_path / "diary").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        env=os.environ
        | {"PYTHONPATH": str(Path(__file__).parents[2]), "FITS_THAT_END": "4"},
    )
    # Each fit begins with a rehearsal on public rows.
    while process.poll() is None and len(os.listdir(tmp_path / "diary")) < 1 + 4:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(os.listdir(tmp_path / "diary")) == 1 + 4
    ledger = PrivacyLedger(tmp_path / "patients.sqlite")
    assert ledger.entries() == []
    first = fit_with_memory(tmp_path)
    # The one at work when the kill came has to begin again.
    assert len(os.listdir(tmp_path / "diary")) == 2 + 10 + 1
    again = fit_with_memory(tmp_path)
    assert released(again) == released(first)
    assert len(os.listdir(tmp_path / "diary")) == 3 + 10 + 1
    assert len(ledger.entries()) == 1


def fit_with_memory(folder):
    return fit(
        PrivacyLedger(Path(folder, "patients.sqlite")),
        estimator=Diary(str(Path(folder, "diary"))),
        student=GaussianNB(),
        memory=str(Path(folder, "votes")),
    )

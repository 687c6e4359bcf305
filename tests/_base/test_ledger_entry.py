"""Fits with a ledger: charged first, recognised when run again, answered once."""

import contextlib
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    BudgetExceededError,
    LedgerError,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    Votes,
)
from sklearn_pate.accounting._assumptions import OTHER_RANDOM_STATE
from sklearn_pate.accounting.ledger._entries import PrivacyCost
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    Mechanism,
)
from sklearn_pate.mechanisms._mechanism import Response
from sklearn_pate.mechanisms.noise._source import NoiseSource
from sklearn_pate.students import UncertaintyQueries
from tests._teachers.diary import Diary

RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=300)
X = RNG.normal(size=(300, 2)) + 2 * Y[:, np.newaxis]
X_PUBLIC = RNG.normal(size=(60, 2)) + 2 * RNG.integers(2, size=(60, 1))
N_QUERIES = 20


class Crash(BaseException):
    """The end of a process, as far as a test can have it."""


class CountedTeacher(GaussianNB):
    """Counts its fits in all of this process."""

    fits = 0

    def fit(self, X, y):
        type(self).fits += 1
        return super().fit(X, y)


class Another(PATEClassifier):
    """Perhaps with answers of its own."""


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=300, delta=1e-6)


def make(ledger, **changes):
    parameters = {
        "estimator": GaussianNB(),
        "n_teachers": 10,
        "n_queries": N_QUERIES,
        "mechanism": GumbelMax(c=0.5),  # answers that differ from run to run
        "epsilon": None,
        "ledger": ledger,
        "random_state": 0,
    }
    return PATEClassifier(**(parameters | changes))


def fit(ledger, X=X, y=Y, X_public=X_PUBLIC, groups=None, **changes):
    pate = make(ledger, **changes)
    return pate.fit(X, y, X_public=PublicData(X_public), groups=groups)


def released(pate):
    return pate.queried_indices_.tolist(), pate.answers_.tolist()


@pytest.fixture
def no_noise(monkeypatch):
    """From now on, whoever draws noise fails."""

    def forbid():
        def draw(self, shape):
            pytest.fail("noise was drawn")

        monkeypatch.setattr(NoiseSource, "words", draw)

    return forbid


def test_a_fit_is_charged_its_publishable_price(ledger):
    pate = fit(ledger)
    (charge,) = ledger.entries()
    assert charge.epsilon == pate.privacy_spent_.epsilon
    assert charge.share == ledger.budget_fractions(pate.privacy_spent_.curve)[0]
    assert ledger.spent == pytest.approx(charge.share, rel=1e-12)
    assert charge.description == "20 queries to 10 teachers, GumbelMax(c=0.5)"


def test_the_statement_says_what_equal_answers_would_tell(ledger):
    assert OTHER_RANDOM_STATE in fit(ledger).privacy_spent_.assumptions
    without_seed = fit(ledger, random_state=None).privacy_spent_.assumptions
    assert OTHER_RANDOM_STATE not in without_seed
    assert OTHER_RANDOM_STATE not in fit(None).privacy_spent_.assumptions


def test_the_charge_is_on_disk_before_any_noise_is_drawn(ledger, monkeypatch):
    draw = NoiseSource.words

    def watched(self, shape):
        assert len(PrivacyLedger(ledger.path).entries()) == 1
        return draw(self, shape)

    monkeypatch.setattr(NoiseSource, "words", watched)
    fit(ledger)


def test_the_same_fit_gets_the_same_answers_at_no_further_charge(ledger, no_noise):
    first = fit(ledger)
    no_noise()
    again = fit(ledger)
    assert released(again) == released(first)
    assert len(ledger.entries()) == 1
    assert again.privacy_spent_ == first.privacy_spent_


@pytest.mark.parametrize(
    "changes",
    [{"n_jobs": 2}, {"verbose": 1}, {"memory": "votes"}],
    ids=["n_jobs", "verbose", "memory"],
)
def test_how_a_fit_is_run_does_not_make_it_another(
    ledger, changes, no_noise, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    first = fit(ledger)
    no_noise()
    assert released(fit(ledger, **changes)) == released(first)


def one_changed(values, place=(0,), by=1):
    changed = np.array(values)
    changed[place] += by
    return changed


ANOTHER_FIT = {
    "a value of X": {"X": one_changed(X, (7, 1), 1e-9)},
    "a label": {"y": one_changed(Y, (7,), 1 - 2 * Y[7])},
    "a public value": {"X_public": one_changed(X_PUBLIC, (3, 0), 1e-9)},
    "one row less": {"X": X[1:], "y": Y[1:]},
    "random_state": {"random_state": 1},
    "no random_state": {"random_state": None},
    "a RandomState": {"random_state": np.random.RandomState(0)},
    "the teacher": {"estimator": GaussianNB(var_smoothing=1e-8)},
    "the student": {"student": GaussianNB()},
    "n_teachers": {"n_teachers": 11},
    "n_queries": {"n_queries": 21},
    "the noise": {"mechanism": GumbelMax(c=0.50001)},
    "the mechanism": {"mechanism": LNMax(gamma=0.5)},
    "the queries": {"query_strategy": "random"},
    "the classes": {"classes": [0, 1, 2]},
    "delta": {"delta": 1e-6},
}


@pytest.mark.parametrize("case", ANOTHER_FIT)
def test_anything_else_is_another_fit_and_charged(ledger, case):
    first = fit(ledger)
    other = fit(ledger, **ANOTHER_FIT[case])
    assert len(ledger.entries()) == 2
    assert len({charge.fit for charge in ledger.entries()}) == 2
    assert other.privacy_spent_.epsilon > 0
    assert released(first) == released(fit(ledger))


def test_groups_belong_to_the_question(ledger):
    groups = np.arange(300) // 3
    grouped = {"privacy_unit": "group"}
    fit(ledger, groups=groups, **grouped)
    fit(ledger, groups=groups, **grouped)
    assert len(ledger.entries()) == 1
    fit(ledger, groups=one_changed(groups, (0,), 1), **grouped)
    assert len(ledger.entries()) == 2
    with pytest.raises(ValueError, match="protects unit='group' with relation='add-"):
        fit(ledger)


def test_a_frame_is_recognised_in_another_process(ledger, tmp_path):
    script = tmp_path / "one_fit.py"
    script.write_text(
        "import sys\n"
        "import pandas as pd\n"
        "from tests._base.test_ledger_entry import X, X_PUBLIC, Y, fit\n"
        "from sklearn_pate import PrivacyLedger\n"
        "names = ['height', 'weight']\n"
        "labels = pd.Series(Y).map({0: 'ill', 1: 'well'})\n"
        "fit(PrivacyLedger(sys.argv[1]), pd.DataFrame(X, columns=names), labels,\n"
        "    pd.DataFrame(X_PUBLIC, columns=names))\n"
    )
    for _ in range(2):
        subprocess.run(
            [sys.executable, script, ledger.path],
            check=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
    assert len(ledger.entries()) == 1


def test_data_sets_are_told_apart_without_being_named(ledger, tmp_path):
    fit(ledger)
    fit(ledger, n_queries=5)
    fit(ledger, X=X[::-1].copy())
    names = [charge.dataset for charge in ledger.entries()]
    assert names[0] == names[1] != names[2]
    elsewhere = PrivacyLedger(tmp_path / "other.sqlite", epsilon=50, delta=1e-6)
    fit(elsewhere)
    assert elsewhere.entries()[0].dataset != names[0], "the key makes the name"


def test_whoever_loses_the_key_pays_again(ledger):
    fit(ledger)
    Path(f"{ledger.path}.key").unlink()
    fit(ledger)
    assert len(ledger.entries()) == 2


def test_a_fit_beyond_the_budget_trains_nobody_and_says_what_would_fit(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    wanted = {"mechanism": "gnmax", "estimator": CountedTeacher()}
    fit(ledger, epsilon=0.8, **wanted)
    CountedTeacher.fits = 0
    with pytest.raises(BudgetExceededError, match=r"epsilon=\d\S+ would fit") as caught:
        fit(ledger, epsilon=0.8, n_queries=30, **wanted)
    assert CountedTeacher.fits == 0
    assert len(ledger.entries()) == 1
    suggested = float(str(caught.value).split("epsilon=")[-1].split()[0])
    with pytest.raises(BudgetExceededError):
        fit(ledger, epsilon=1.02 * suggested, n_queries=30, **wanted)
    fit(ledger, epsilon=suggested, n_queries=30, **wanted)
    assert 0.98 < ledger.spent <= 1
    with pytest.raises(BudgetExceededError, match="Almost nothing is left"):
        fit(ledger, epsilon=0.8, n_queries=31, **wanted)


def test_with_noise_of_ones_own_the_number_of_questions_that_fit_is_named(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    wanted = {"mechanism": GumbelMax(c=0.1)}
    with pytest.raises(BudgetExceededError, match=r"n_queries=\d+ would fit") as caught:
        fit(ledger, n_queries=40, **wanted)
    suggested = int(str(caught.value).split("n_queries=")[-1].split()[0])
    with pytest.raises(BudgetExceededError):
        fit(ledger, n_queries=suggested + 1, **wanted)
    fit(ledger, n_queries=suggested, **wanted)
    with pytest.raises(BudgetExceededError, match="no query would fit; use"):
        fit(ledger, mechanism=GumbelMax(c=50))


def test_seeded_noise_is_refused(ledger):
    with pytest.raises(BudgetExceededError, match="no finite cost, as with seeded"):
        fit(ledger, mechanism=GumbelMax(c=0.1), noise_seed=0)
    assert ledger.entries() == []


# Where a fit dies: before its charge, before it draws, before it stores, and after.
MOMENTS = {
    "before the charge": (FitEntry, "open", "before", 1),
    "before the draw": (Mechanism, "respond", "before", 2),
    "before the storing": (FitEntry, "keep", "before", 2),
    "after the storing": (FitEntry, "keep", "after", 1),
}


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
        GumbelMax(0.1).account_curve(20, 2), 1e-6, "row", "replace-one", "", "", "fit"
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


def test_a_price_that_has_changed_is_paid_anew(ledger):
    what = {"delta": 1e-6, "unit": "row", "relation": "replace-one"}
    what |= {"description": "", "dataset": ""}
    for c in (0.1, 0.2):
        cost = PrivacyCost(GumbelMax(c).account_curve(20, 2), **what, fit="the same")
        account = FitEntry(ledger, cost, 20, str)
        account.open(5)
        account.keep(np.arange(5), Response(np.zeros(5, dtype=int), 5))
    assert len(ledger.entries()) == 2


def test_a_fit_that_died_and_cannot_be_paid_again_trains_nobody(tmp_path, monkeypatch):
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


def test_a_subclass_asks_questions_of_its_own(ledger):
    first = fit(ledger)
    other = Another(**make(ledger).get_params(deep=False))
    other.fit(X, Y, X_public=PublicData(X_PUBLIC))
    assert len(ledger.entries()) == 2
    assert first.privacy_spent_.epsilon == other.privacy_spent_.epsilon


def test_a_number_of_numpy_seeds_the_same_fit(ledger):
    fit(ledger)
    fit(ledger, random_state=np.int64(0))
    assert len(ledger.entries()) == 1


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


def test_histograms_come_back_as_they_were(ledger, no_noise):
    wanted = {"mechanism": GNMax(sigma=3), "release": "histogram"}
    first = fit(ledger, **wanted)
    no_noise()
    again = fit(ledger, **wanted)
    np.testing.assert_array_equal(again.histograms_, first.histograms_)
    assert released(again) == released(first)


def test_interactive_answers_come_back_as_they_were(ledger, no_noise):
    mechanism = InteractiveGNMax(sigma_threshold=5, sigma=3)
    first = fit(ledger, mechanism=mechanism)
    no_noise()
    assert released(fit(ledger, mechanism=mechanism)) == released(first)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("sealed", [False, True])
def test_collected_votes_are_charged_and_recognised_too(ledger, sealed, no_noise):
    votes_by_teacher = RNG.integers(2, size=(15, 60))
    pate = make(ledger, n_teachers="auto", classes=[0, 1])

    def fit_from_votes():
        votes = (
            Votes.from_labels(votes_by_teacher, [0, 1]) if sealed else votes_by_teacher
        )
        return clone(pate).fit_from_votes(PublicData(X_PUBLIC), votes)

    first = fit_from_votes()
    assert "15 teachers" in ledger.entries()[0].description
    assert released(fit_from_votes()) == released(first)
    assert len(ledger.entries()) == 1
    votes_by_teacher[3, 5] = 1 - votes_by_teacher[3, 5]
    fit_from_votes()
    assert len(ledger.entries()) == 2


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


def test_the_charges_of_24_fits_at_once_are_the_sum_of_what_was_run(ledger):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        done = pool.starmap(run_one, [(ledger.path, seed) for seed in range(24)])
    assert len(ledger.entries()) == 24
    assert sorted(one.epsilon for one in ledger.entries()) == sorted(
        epsilon for epsilon, _ in done
    )
    assert ledger.spent == pytest.approx(sum(share for _, share in done), rel=1e-12)


def test_a_killed_fit_goes_on_with_its_teachers_and_its_answers(tmp_path):
    script = (
        "import sys\n"
        "from tests._base.test_ledger_entry import fit_with_memory\n"
        "fit_with_memory(sys.argv[1])\n"
    )
    PrivacyLedger(tmp_path / "patients.sqlite", epsilon=50, delta=1e-6)
    (tmp_path / "diary").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    while process.poll() is None and len(os.listdir(tmp_path / "diary")) < 4:
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    begun = len(os.listdir(tmp_path / "diary"))
    assert 4 <= begun < 10
    ledger = PrivacyLedger(tmp_path / "patients.sqlite")
    assert ledger.entries() == []
    first = fit_with_memory(tmp_path)
    # The one at work when the kill came has to begin again.
    assert len(os.listdir(tmp_path / "diary")) <= 10 + 1
    again = fit_with_memory(tmp_path)
    assert released(again) == released(first)
    assert len(os.listdir(tmp_path / "diary")) <= 10 + 1
    assert len(ledger.entries()) == 1


def fit_with_memory(folder):
    return fit(
        PrivacyLedger(Path(folder, "patients.sqlite")),
        estimator=Diary(str(Path(folder, "diary")), seconds=0.2),
        student=GaussianNB(),
        memory=str(Path(folder, "votes")),
    )


def test_a_figure_about_the_votes_is_not_released_beside_a_ledger(ledger):
    pate = fit(ledger)
    with pytest.raises(ValueError, match="charged to a ledger, whose budget covers"):
        pate.privacy_analysis_.sanitize()


def test_what_is_not_recognised_is_charged_each_time(ledger):
    class Local(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.arange(len(X)) % 2

    for _ in range(2):
        fit(ledger, estimator=Local(), student=GaussianNB())
    assert len(ledger.entries()) == 2


def test_pandas_and_arrays_may_be_two_data_sets_but_never_one_answer_too_many(ledger):
    fit(ledger)
    fit(ledger, X=pd.DataFrame(X), X_public=pd.DataFrame(X_PUBLIC))
    assert len(ledger.entries()) == 2

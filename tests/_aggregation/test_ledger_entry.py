"""Fits with a ledger: charged first, recognised when run again, answered once."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    BudgetExceededError,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    Votes,
)
from sklearn_pate.mechanisms import GumbelMax, InteractiveGNMax, LNMax, NoisyHistogram
from sklearn_pate.testing import seeded_noise
from tests._aggregation.fits import (
    RNG,
    X_PUBLIC,
    CountedTeacher,
    X,
    Y,
    fit,
    make,
    released,
)
from tests.private import (
    OTHER_RANDOM_STATE,
    FitEntry,
    NoiseSource,
    PrivacyCost,
    Response,
)


class Another(PATEClassifier):
    """Perhaps with answers of its own."""


def test_a_fit_is_charged_its_publishable_cost(ledger):
    pate = fit(ledger)
    (charge,) = ledger.entries()
    assert charge.epsilon == pate.privacy_spent_.epsilon
    assert charge.share == ledger.budget_fractions(pate.privacy_spent_.curve)[0]
    assert ledger.spent == pytest.approx(charge.share, rel=1e-12)
    assert charge.description == "20 queries to 10 teachers, GumbelMax(c=0.5)"


@pytest.mark.slow
def test_the_statement_assumes_another_random_state_for_other_rows(ledger):
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("case", ANOTHER_FIT)
def test_anything_else_is_another_fit_and_charged(ledger, case):
    first = fit(ledger)
    other = fit(ledger, **ANOTHER_FIT[case])
    assert len(ledger.entries()) == 2
    assert len({charge.fit for charge in ledger.entries()}) == 2
    assert other.privacy_spent_.epsilon > 0
    assert released(first) == released(fit(ledger))


@pytest.mark.slow
def test_groups_are_part_of_the_fingerprint_of_a_fit(ledger):
    groups = np.arange(300) // 3
    grouped = {"privacy_unit": "group"}
    fit(ledger, groups=groups, **grouped)
    fit(ledger, groups=groups, **grouped)
    assert len(ledger.entries()) == 1
    fit(ledger, groups=one_changed(groups, (0,), 1), **grouped)
    assert len(ledger.entries()) == 2
    with pytest.raises(ValueError, match="protects unit='group' with relation='add-"):
        fit(ledger)


def fit_frame(path):
    labels = pd.Series(Y).map({0: "ill", 1: "well"})
    rows, public = (pd.DataFrame(one, columns=["a", "b"]) for one in (X, X_PUBLIC))
    fit(PrivacyLedger(path), rows, labels, public)


@pytest.mark.thorough
def test_a_frame_is_recognised_in_another_process(ledger):
    fit_frame(ledger.path)
    script = (
        "import sys\n"
        "from tests._aggregation.test_ledger_entry import fit_frame\n"
        "fit_frame(sys.argv[1])\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, ledger.path],
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert len(ledger.entries()) == 1


@pytest.mark.slow
def test_data_sets_are_distinguished_without_a_name(ledger, tmp_path):
    fit(ledger)
    fit(ledger, n_queries=5)
    fit(ledger, X=X[::-1].copy())
    names = [charge.dataset for charge in ledger.entries()]
    assert names[0] == names[1] != names[2]
    elsewhere = PrivacyLedger(tmp_path / "other.sqlite", epsilon=50, delta=1e-6)
    fit(elsewhere)
    assert elsewhere.entries()[0].dataset != names[0], "the key makes the name"


def test_a_lost_key_charges_equal_fits_again(ledger):
    fit(ledger)
    Path(f"{ledger.path}.key").unlink()
    fit(ledger)
    assert len(ledger.entries()) == 2


@pytest.mark.slow
def test_a_fit_beyond_the_budget_trains_no_teacher_and_names_an_affordable_one(
    tmp_path,
):
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
    with pytest.raises(BudgetExceededError, match="Almost no budget is left"):
        fit(ledger, epsilon=0.8, n_queries=31, **wanted)


@pytest.mark.slow
def test_a_first_fit_far_beyond_the_budget_is_told_what_fits(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    with pytest.raises(BudgetExceededError, match=r"epsilon=\d\S* would fit") as caught:
        fit(ledger, epsilon=20.0, mechanism="gnmax")
    suggested = float(str(caught.value).split("epsilon=")[-1].split()[0])
    fit(ledger, epsilon=suggested, mechanism="gnmax")
    assert 0.9 < ledger.spent <= 1


@pytest.mark.slow
def test_with_given_noise_the_affordable_number_of_queries_is_named(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    wanted = {"mechanism": GumbelMax(c=0.1)}
    with pytest.raises(BudgetExceededError, match=r"n_queries=\d+ would fit") as caught:
        fit(ledger, n_queries=40, **wanted)
    suggested = int(str(caught.value).split("n_queries=")[-1].split()[0])
    with pytest.raises(BudgetExceededError):
        fit(ledger, n_queries=suggested + 1, **wanted)
    fit(ledger, n_queries=suggested, **wanted)
    with pytest.raises(
        BudgetExceededError,
        match="not even one query fits into the remaining budget; use",
    ):
        fit(ledger, mechanism=GumbelMax(c=50))


def test_seeded_noise_is_refused(ledger):
    refused = pytest.raises(BudgetExceededError, match="no finite cost, as with seeded")
    with refused, seeded_noise(0):
        fit(ledger, mechanism=GumbelMax(c=0.1))
    assert ledger.entries() == []


def test_a_cost_that_has_changed_is_charged_again(ledger):
    what = {"delta": 1e-6, "unit": "row", "relation": "replace-one"}
    what |= {"description": "", "dataset": ""}
    for c in (0.1, 0.2):
        cost = PrivacyCost(GumbelMax(c).cost(20, 2).curve, **what, fit="the same")
        account = FitEntry(ledger, cost, 20, str)
        account.open(5)
        account.keep(np.arange(5), Response(np.zeros(5, dtype=int), 5))
    assert len(ledger.entries()) == 2


def test_a_subclass_is_another_fit(ledger):
    first = fit(ledger)
    other = Another(**make(ledger).get_params(deep=False))
    other.fit(X, Y, X_public=PublicData(X_PUBLIC))
    assert len(ledger.entries()) == 2
    assert first.privacy_spent_.epsilon == other.privacy_spent_.epsilon


def test_a_number_of_numpy_seeds_the_same_fit(ledger):
    fit(ledger)
    fit(ledger, random_state=np.int64(0))
    assert len(ledger.entries()) == 1


def test_histograms_come_back_as_they_were(ledger, no_noise):
    wanted = {"mechanism": NoisyHistogram(sigma=3)}
    first = fit(ledger, **wanted)
    no_noise()
    again = fit(ledger, **wanted)
    np.testing.assert_array_equal(again.histograms_, first.histograms_)
    assert released(again) == released(first)


@pytest.mark.slow
def test_interactive_answers_come_back_as_they_were(ledger, no_noise):
    mechanism = InteractiveGNMax(sigma_threshold=5, sigma=3)
    first = fit(ledger, mechanism=mechanism)
    no_noise()
    assert released(fit(ledger, mechanism=mechanism)) == released(first)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("counted", [False, True])
def test_collected_votes_are_charged_and_recognised_too(ledger, counted, no_noise):
    votes_by_teacher = RNG.integers(2, size=(15, 60))
    pate = make(ledger, n_teachers="auto", classes=[0, 1])

    def fit_from_votes():
        votes = (
            Votes.from_labels(votes_by_teacher, [0, 1]) if counted else votes_by_teacher
        )
        return clone(pate).fit_from_votes(PublicData(X_PUBLIC), votes)

    first = fit_from_votes()
    assert "15 teachers" in ledger.entries()[0].description
    assert released(fit_from_votes()) == released(first)
    assert len(ledger.entries()) == 1
    votes_by_teacher[3, 5] = 1 - votes_by_teacher[3, 5]
    fit_from_votes()
    assert len(ledger.entries()) == 2


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

"""The first entry of a ledger, which may cost the whole budget by its profile."""

import multiprocessing

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import BudgetExceededError, PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.bounds import pure_dp_curve
from sklearn_pate.accounting.composition import RenyiFilter
from sklearn_pate.learners import (
    Clusters,
    DPLogisticRegression,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax, NoisyHistogram
from sklearn_pate.model_selection import PrivateSearchCV
from tests.accounting.charges import curve
from tests.private import costs, largest_gdp_mu

EPSILON, DELTA = 1.0, 1e-5
RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=400)
X = (RNG.normal(size=(400, 2)) + 2 * Y[:, np.newaxis]).astype(np.float32)
PUBLIC = {"X_public": PublicData(X[300:])}
WHAT = {
    "delta": DELTA,
    "unit": "row",
    "relation": "replace-one",
    "description": "",
}


@pytest.fixture
def ledger(path):
    return PrivacyLedger(path, epsilon=EPSILON, delta=DELTA)


def histogram(epsilon):
    """Cost of a noisy histogram with this exact epsilon: curve and profile."""
    mu = largest_gdp_mu(epsilon, DELTA)
    mechanism = NoisyHistogram(sigma=np.sqrt(2 / mu**2 + 2.25) * (1 + 1e-9))
    stated = mechanism.cost(1, 2).epsilon(DELTA)
    assert stated <= epsilon
    return {
        "curve": mechanism.cost(1, 2).curve,
        "profile": mechanism.cost(1, 2).profile.thinned(stated, DELTA),
    }


def network():
    torch, skorch = pytest.importorskip("torch"), pytest.importorskip("skorch")
    return skorch.NeuralNetClassifier(
        torch.nn.Linear,
        module__in_features=2,
        module__out_features=2,
        criterion=torch.nn.CrossEntropyLoss,
        batch_size=50,
        max_epochs=1,
    )


def pate(**parameters):
    return PATEClassifier(GaussianNB(), n_teachers=20, n_queries=10, **parameters)


FITS = {
    "GNMax": lambda: (pate(), PUBLIC),
    "NoisyHistogram": lambda: (pate(mechanism="histogram"), PUBLIC),
    "LNMax": lambda: (pate(mechanism="lnmax"), PUBLIC),
    "PETDL": lambda: (
        PETDLClassifier(
            GaussianNB(), LogisticRegression(), n_teachers=20, batches=Clusters(10)
        ),
        PUBLIC,
    ),
    "Private-kNN": lambda: (PrivateKNNClassifier(GaussianNB(), n_queries=10), PUBLIC),
    "DP-ERM": lambda: (DPLogisticRegression(data_norm=5.0, method="gaussian"), {}),
    "pure DP-ERM": lambda: (DPLogisticRegression(data_norm=5.0), {}),
    "DP-SGD": lambda: (DPSGDClassifier(network()), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS)
def test_a_fit_with_the_epsilon_and_delta_of_the_budget_is_admitted(ledger, kind):
    learner, public = FITS[kind]()
    learner.set_params(epsilon=EPSILON, delta=DELTA, ledger=ledger)
    spent = learner.fit(X[:300], Y[:300], **public).privacy_spent_
    (entry,) = ledger.entries()
    assert entry.epsilon <= spent.epsilon <= EPSILON
    assert 0 < entry.share == ledger.spent <= 1
    if spent.curve.to_epsilon(DELTA) > EPSILON:
        assert ledger.spent == 1


@pytest.mark.slow
def test_a_search_with_the_epsilon_and_delta_of_the_budget_is_admitted(path):
    search = PrivateSearchCV(
        pate(epsilon=1.0), {"n_queries": [5, 10]}, mean_n_trials=2, classes=[0, 1]
    )
    spent = search.plan_privacy(X[:300], Y[:300], **PUBLIC)
    ledger = PrivacyLedger(path, epsilon=spent.epsilon, delta=spent.delta)
    search.set_params(ledger=ledger).fit(X[:300], Y[:300], **PUBLIC)
    (entry,) = ledger.entries()
    assert (entry.epsilon, entry.delta) == (spent.epsilon, spent.delta)


def test_nothing_is_admitted_after_a_first_entry_that_its_profile_admits(ledger):
    cost = histogram(EPSILON)
    assert not ledger.fits(cost["curve"])
    assert ledger.fits(**cost)
    ledger.charge(**cost, **WHAT)
    tiny = histogram(0.01)
    for later in (cost, tiny, {"curve": curve(0.0)}):
        assert not ledger.fits(**later)
        with pytest.raises(BudgetExceededError, match=r"and 0\.00% is left"):
            ledger.charge(**later, **WHAT)
    assert ledger.spent == 1
    assert [entry.share for entry in ledger.entries()] == [1]


def test_its_report_states_the_exact_epsilon_and_a_spent_budget(ledger):
    cost = histogram(EPSILON)
    ledger.charge(**cost, **WHAT)
    (entry,) = ledger.entries()
    assert entry.epsilon == cost["profile"].epsilon_at(DELTA)
    report = ledger.report()
    text = " ".join(report.split())
    assert "(epsilon=1.0, delta=1e-05)-differentially private" in text
    assert "100.00% of this budget is spent, in 1 entry, and 0.00% is left." in text
    assert "epsilon=1.000 so far" in report
    assert report.splitlines()[-1].split()[3] == "100.00%"


def test_a_first_entry_whose_profile_exceeds_the_budget_is_refused(ledger):
    cost = histogram(1.01 * EPSILON)
    assert not ledger.fits(**cost)
    with pytest.raises(
        BudgetExceededError, match=r"This release would take 1\d\d\.\d\d% of"
    ):
        ledger.charge(**cost, **WHAT)
    assert ledger.entries() == []
    assert ledger.spent == 0


def test_a_first_entry_without_a_profile_is_admitted_by_its_curve_alone(ledger):
    with pytest.raises(BudgetExceededError):
        ledger.charge(histogram(EPSILON)["curve"], **WHAT)


def test_a_profile_admits_no_second_entry(ledger):
    ledger.charge(**histogram(0.01), **WHAT)
    assert ledger.spent < 0.01
    almost_all = histogram(0.98 * EPSILON)
    with pytest.raises(BudgetExceededError):
        ledger.charge(**almost_all, **WHAT)
    assert len(ledger.entries()) == 1


def test_a_first_entry_that_the_filter_admits_leaves_the_rest(ledger):
    half = histogram(0.5)
    ledger.charge(**half, **WHAT)
    assert ledger.spent == pytest.approx(ledger.budget_fractions(half["curve"])[0])
    ledger.charge(**half, **WHAT)
    assert len(ledger.entries()) == 2


def test_a_first_entry_without_a_finite_curve_takes_the_whole_budget(ledger):
    infinite = RdpCurve(DEFAULT_ORDERS, np.full(DEFAULT_ORDERS.size, np.inf))
    ledger.charge(infinite, profile=histogram(EPSILON)["profile"], **WHAT)
    assert ledger.spent == 1
    assert "100.00% of this budget is spent" in ledger.report()
    assert not ledger.fits(curve(0.0))


def test_an_object_that_is_no_profile_is_refused(ledger):
    with pytest.raises(
        ValueError, match="is not a PrivacyProfile; pass the profile of the"
    ):
        ledger.charge(curve(0.001), profile=[[0.0, 0.0]], **WHAT)


def charge_at_once(path, barrier):
    barrier.wait()
    try:
        PrivacyLedger(path).charge(**histogram(EPSILON), **WHAT)
    except BudgetExceededError:
        return
    (path.parent / f"admitted {multiprocessing.current_process().pid}").touch()


@pytest.mark.thorough
def test_of_two_processes_at_once_one_is_first(ledger):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    processes = [
        context.Process(target=charge_at_once, args=(ledger.path, barrier))
        for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(list(ledger.path.parent.glob("admitted *"))) == 1
    assert len(ledger.entries()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GNMax, NoisyHistogram])
def test_a_first_fit_beyond_the_budget_is_told_the_epsilon_of_the_budget(ledger, kind):
    learner = pate(ledger=ledger, epsilon=1.5, delta=DELTA, mechanism=kind())
    with pytest.raises(
        BudgetExceededError, match=r"epsilon=1 would fit this budget\.$"
    ):
        learner.fit(X[:300], Y[:300], **PUBLIC)
    learner.set_params(epsilon=1.0).fit(X[:300], Y[:300], **PUBLIC)


@pytest.mark.slow
def test_a_first_fit_at_another_delta_is_told_an_epsilon_that_fits(ledger):
    learner = pate(ledger=ledger, epsilon=1.0, delta=1e-4)
    with pytest.raises(BudgetExceededError, match=r"epsilon=0\.\d+ would f") as caught:
        learner.fit(X[:300], Y[:300], **PUBLIC)
    suggested = float(str(caught.value).split("epsilon=")[-1].split()[0])
    learner.set_params(epsilon=suggested).fit(X[:300], Y[:300], **PUBLIC)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [GNMax, NoisyHistogram])
def test_a_first_fit_with_given_noise_is_told_the_largest_number_of_queries(
    ledger, kind
):
    noise = {"mechanism": kind(sigma=20.0), "epsilon": None}
    learner = pate(ledger=ledger, delta=DELTA, **noise).set_params(n_queries=80)
    with pytest.raises(BudgetExceededError, match=r"n_queries=\d+ would") as caught:
        learner.fit(X[:300], Y[:300], **PUBLIC)
    suggested = int(str(caught.value).split("n_queries=")[-1].split()[0])
    with pytest.raises(BudgetExceededError):
        learner.set_params(n_queries=suggested + 1).fit(X[:300], Y[:300], **PUBLIC)
    learner.set_params(n_queries=suggested).fit(X[:300], Y[:300], **PUBLIC)
    assert ledger.spent == 1


# A first entry with a delta of its own


def pair(epsilon, uncovered_delta):
    return {"curve": pure_dp_curve(epsilon), "uncovered_delta": uncovered_delta}


def test_a_pair_takes_its_delta_from_that_of_the_budget(path):
    ledger = PrivacyLedger(path, epsilon=3.0, delta=1e-5, orders=[6.0, 9.0])
    ledger.charge(**pair(0.5, 4e-6), **WHAT)
    left = RenyiFilter.for_budget(3.0, 6e-6 / (1 - 4e-6), [6.0, 9.0])
    with ledger.reading() as file:
        (values,) = costs(file)
    expected = [
        cost + full - less
        for cost, full, less in zip(
            left.cost(pure_dp_curve(0.5)),
            ledger.filter.limits,
            left.limits,
            strict=True,
        )
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    assert values[-1] == 0.5


def test_others_follow_a_pair(path):
    ledger = PrivacyLedger(path, epsilon=3.0, delta=1e-5)
    ledger.charge(**pair(0.5, 4e-6), **WHAT)
    (entry,) = ledger.entries()
    assert entry.epsilon == pytest.approx(0.5, rel=1e-3)
    ledger.charge(curve(0.01), **WHAT)
    assert len(ledger.entries()) == 2
    assert ledger.spent < 1
    # The report counts both at the delta that the pair leaves.
    both = pure_dp_curve(0.5) + curve(0.01)
    estimate = both.to_epsilon(6e-6 / (1 - 4e-6))
    assert f"epsilon={estimate:.3f} so far" in ledger.report()


def test_a_pair_with_the_whole_delta_leaves_pure_costs(path):
    ledger = PrivacyLedger(path, epsilon=3.0, delta=1e-5)
    ledger.charge(**pair(1.0, 1e-5), **WHAT)
    assert ledger.spent == pytest.approx(1 / 3)
    assert not ledger.fits(curve(1e-6))
    ledger.charge(pure_dp_curve(2.0), **WHAT)
    assert ledger.spent == 1


def test_a_pair_is_admitted_as_the_first_entry_alone(ledger):
    ledger.charge(curve(1e-6), **WHAT)
    with pytest.raises(BudgetExceededError, match=r"=1e-07\) may only be the first"):
        ledger.charge(**pair(0.1, 1e-7), **WHAT)
    assert len(ledger.entries()) == 1


def test_a_pair_with_a_delta_above_that_of_the_budget_is_refused(ledger):
    with pytest.raises(
        BudgetExceededError, match=r"The release has delta=2e-05, which is above"
    ):
        ledger.charge(**pair(0.1, 2e-5), **WHAT)
    for wrong in (-1e-9, 1.0, np.nan, "no"):
        with pytest.raises(ValueError, match=f"uncovered_delta={wrong!r} must be"):
            ledger.charge(**pair(0.1, wrong), **WHAT)
    assert ledger.entries() == []

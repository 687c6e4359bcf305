"""Claimed costs cover all votes, and smaller claims are detected."""

import inspect
from itertools import product

import numpy as np
import pytest
from scipy import stats

from sklearn_pate import PATEClassifier, mechanisms
from sklearn_pate.accounting.bounds import gaussian_worst_case, threshold_worst_case
from sklearn_pate.inspection import audit_mechanism
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    NoisyHistogram,
    PermuteAndFlip,
    PluralityMechanism,
)
from tests.private import ROUNDING, GaussianPlurality, NoiseSource, gaussian_plurality

ORDERS = np.array([1.2, 2, 5, 20])
N_DRAWS = 50_000
VOTES = {
    2: [*product(range(5), repeat=2), (30, 30), (17, 16), (9, 0)],
    3: [*product(range(3), repeat=3), (9, 9, 9), (12, 12, 1), (10, 1, 1)],
}
STUDENT = {2: [0.1 + 0.2, 0.7], 3: [0.1 + 0.2, 0.5, 0.2]}
ALL = [
    GNMax(0.7),
    GNMax(3.0),
    LNMax(0.5),
    GumbelMax(0.7),
    PermuteAndFlip(0.7),
    NoisyHistogram(3.0),
    ConfidentGNMax(3, 1.5, 2.0),
    ConfidentGNMax(2.5, 1.5, 2.0),
    InteractiveGNMax(2, 1.5, 2.0, n_teachers=20, confidence=1.0),
]
every_mechanism = pytest.mark.parametrize(
    "mechanism", ALL, ids=PluralityMechanism.in_one_line
)


def options_of(mechanism, n_classes):
    if not mechanism.needs_probabilities:
        return {}
    return {"probabilities": STUDENT[n_classes]}


def check_cost(mechanism):
    """Enumerate neighbouring votes: none may cost more than is claimed."""
    for n_classes, all_votes in VOTES.items():
        claimed = mechanism.cost(1, n_classes, orders=ORDERS).curve.values
        options = options_of(mechanism, n_classes)
        for votes in all_votes:
            exact = mechanism.enumerated_curve(votes, ORDERS, **options).values
            assert np.all(exact <= claimed * (1 + ROUNDING)), votes


def check_law(mechanism, votes=(12, 10, 9)):
    """Compare the draws of `respond` with the accounted law."""
    n_classes = len(votes)
    options = options_of(mechanism, n_classes)
    law = np.exp(mechanism._log_law(np.array([votes]), **options)[0])
    drawn = mechanism.respond(
        np.tile(votes, (N_DRAWS, 1)),
        NoiseSource(),
        N_DRAWS,
        **{name: np.tile(one, (N_DRAWS, 1)) for name, one in options.items()},
    )
    none = len(law) - n_classes  # comes first, where there may be none
    found = np.bincount(drawn.answers + none, minlength=len(law))
    assert stats.chisquare(found, N_DRAWS * law / law.sum()).pvalue > 1e-6


def test_every_mechanism_is_here():
    offered = [getattr(mechanisms, name) for name in mechanisms.__all__]
    concrete = {
        one
        for one in offered
        if inspect.isclass(one)
        and issubclass(one, PluralityMechanism)
        and not inspect.isabstract(one)
    }
    assert concrete == {type(one) for one in ALL}


@pytest.mark.slow
@every_mechanism
def test_no_votes_cost_more_than_is_claimed(mechanism):
    check_cost(mechanism)


@every_mechanism
def test_answers_follow_the_accounted_law(mechanism):
    check_law(mechanism)


@every_mechanism
def test_the_local_cost_is_the_enumerated_one(mechanism):
    for n_classes, all_votes in VOTES.items():
        options = options_of(mechanism, n_classes)
        for votes in all_votes[::4]:
            exact = mechanism.enumerated_curve(votes, ORDERS, **options).values
            local = mechanism.local_curve(
                [votes], ORDERS, **{name: [one] for name, one in options.items()}
            ).values
            np.testing.assert_allclose(local, exact, rtol=1e-8, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [one for one in ALL if not one.needs_probabilities],
    ids=PluralityMechanism.in_one_line,
)
def test_the_bound_that_can_be_released_is_one(mechanism):
    for all_votes in VOTES.values():
        for votes in all_votes[::4]:
            exact = mechanism.enumerated_curve(votes, ORDERS).values
            bound = mechanism.optimal_curve([votes], ORDERS).values
            assert np.all(exact <= bound * (1 + ROUNDING)), votes


# Planted: claims that are too small


class HalfTheClaim(GNMax):
    """Claims half of its cost, in both places."""

    def _cost(self, n_queries, n_answers, n_classes, orders):
        return super()._cost(n_queries, n_answers, n_classes, orders) * 0.5

    def _ceiling(self, orders):
        return super()._ceiling(orders) * 0.5


class HalfTheCheck(ConfidentGNMax):
    """Claims the cost of a check for every second query."""

    def _cost(self, n_queries, n_answers, n_classes, orders):
        return super()._cost(n_queries / 2, n_answers, n_classes, orders)

    def _ceiling(self, orders):
        check = threshold_worst_case(self.sigma_threshold, orders)
        return check * 0.5 + gaussian_worst_case(self.sigma, orders)


class HalfTheHistogram(NoisyHistogram):
    """Claims the cost of a histogram in which one count moves."""

    def _cost(self, n_queries, n_answers, n_classes, orders):
        return super()._cost(n_queries, n_answers, n_classes, orders) * 0.5


class OneQueryCharged(GNMax):
    """Claims one answer, however many are given."""

    def _cost(self, n_queries, n_answers, n_classes, orders):
        return super()._cost(1, 1, n_classes, orders)


class HalfTheNoise(GNMax):
    """Draws half of the noise that it is accounted for by."""

    def _answer(self, counts, noise):
        return gaussian_plurality(counts, self.sigma / 2, noise)


class HalfTheNoiseInItsLaw(HalfTheNoise):
    """Halves the noise in its law, but not in its cost."""

    def _plurality(self):
        return GaussianPlurality(self.sigma / 2)


TOO_SMALL = [
    HalfTheClaim(3.0),
    HalfTheCheck(9, 2.0, 10.0),
    HalfTheHistogram(3.0),
    HalfTheNoiseInItsLaw(3.0),
]
by_name = {"ids": lambda one: type(one).__name__}


@pytest.mark.parametrize("mechanism", TOO_SMALL, **by_name)
def test_the_common_test_fails_for_a_claim_that_is_too_small(mechanism):
    with pytest.raises(AssertionError):
        check_cost(mechanism)


def test_the_common_test_fails_for_half_of_the_noise():
    check_cost(HalfTheNoise(3.0))
    with pytest.raises(AssertionError):
        check_law(HalfTheNoise(3.0))


@pytest.mark.parametrize(
    ("mechanism", "counts", "neighbour", "n_queries"),
    [
        (HalfTheClaim(3.0), [5, 5], [4, 6], 1),
        (HalfTheCheck(9, 2.0, 10.0), [9, 0], [8, 1], 1),
        (HalfTheHistogram(3.0), [5, 5], [4, 6], 1),
        (HalfTheNoiseInItsLaw(3.0), [5, 5], [4, 6], 1),
        (OneQueryCharged(3.0), [5, 5], [4, 6], 2),
    ],
    **by_name,
)
def test_an_audit_finds_a_claim_that_is_too_small(
    mechanism, counts, neighbour, n_queries
):
    # From a single trial of each: nothing that is drawn could show it.
    result = audit_mechanism(
        mechanism, counts, neighbour, n_queries=n_queries, n_trials=2
    )
    assert result.epsilon_lower == 0
    assert result.cost_is_wrong
    assert result.contradicted
    assert "times the claimed Renyi cost of all votes" in str(result)


@pytest.mark.thorough
def test_an_audit_finds_half_of_the_noise():
    result = audit_mechanism(
        HalfTheNoise(4.0), [10, 10], [11, 9], n_queries=20, n_trials=8000, delta=1e-2
    )
    assert result.contradicted
    assert not result.cost_is_wrong


@pytest.mark.slow
@every_mechanism
def test_an_audit_finds_nothing_in_the_claims_of_the_package(mechanism):
    result = audit_mechanism(mechanism, [10, 9, 3], [9, 10, 3], n_trials=100)
    assert 0 < result.exact_share <= 1 + ROUNDING
    assert not result.contradicted


# In a fit


def fitted(mechanism, votes):
    pate = PATEClassifier(mechanism=mechanism, epsilon=None, classes=[0, 1])
    X_public = np.arange(3.0)[:, np.newaxis]
    return pate.set_params(n_queries=3).fit_from_votes(X_public, votes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "n_others"),
    [(HalfTheClaim(20.0), 50), (HalfTheCheck(70, 2.0, 10.0), 30)],
    **by_name,
)
def test_a_fit_records_a_claim_that_is_too_small_without_a_warning(mechanism, n_others):
    # One query of three is near a tie, or near the threshold. Warnings are errors.
    votes = np.tile([0, 1, 0], (100, 1))
    votes[:n_others, 2] = 1
    analysis = fitted(mechanism, votes).privacy_analysis_
    assert analysis.exceeds_claim is True
    assert "exceeds_claim" not in repr(analysis)


def test_a_fit_records_queries_that_were_not_counted():
    votes = np.tile([[0], [1]], (10, 3))
    assert fitted(OneQueryCharged(3.0), votes).privacy_analysis_.exceeds_claim


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning")
@pytest.mark.parametrize(
    "mechanism",
    [GNMax(3.0), GNMax(0.05), ConfidentGNMax(12, 2.0, 1.0, max_answers=1)],
    ids=PluralityMechanism.in_one_line,
)
def test_a_fit_records_nothing_for_claims_that_hold(mechanism):
    votes = np.tile([0, 1, 0], (20, 1))
    votes[:10, 2] = 1
    assert fitted(mechanism, votes).privacy_analysis_.exceeds_claim is False

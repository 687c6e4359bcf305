"""Bounds on attackers are reached by mechanisms with that epsilon and delta."""

from decimal import Decimal

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sklearn_pate.accounting._gdp import gdp_delta
from sklearn_pate.inspection.privacy_report._attack_bounds import (
    detections_at_most,
    guesses_at_most,
    of_many,
    of_several,
    round_up,
    wrong_once_in,
)

EPSILONS = st.floats(0, 12)
DELTAS = st.sampled_from([0.0, 1e-9, 1e-5, 1e-3, 0.1, 1.0])
RATES = st.integers(0, 1000).map(lambda k: Decimal(k) / 1000)


def worst_case(epsilon, delta):
    """Return two distributions as different as (epsilon, delta) allows.

    Kairouz, Oh, Viswanath (2015): all other such pairs are post-processing of these.
    """
    large = (1 - delta) / (1 + np.exp(-epsilon))
    law = np.array([delta, large, 1 - delta - large, 0.0])
    return law, law[::-1]


def power(null, alternative, false_alarms):
    """Return the power of the best test, by Neyman and Pearson."""
    ratio = np.divide(alternative, null, out=np.full(len(null), np.inf), where=null > 0)
    left, found = false_alarms, 0.0
    for outcome in np.argsort(-ratio):
        share = 1.0 if null[outcome] <= left else left / null[outcome]
        found += share * alternative[outcome]
        left = max(left - null[outcome], 0.0)
    return found


@pytest.mark.slow
@given(EPSILONS, DELTAS)
def test_guesses_are_those_of_the_worst_case_mechanism(epsilon, delta):
    null, alternative = worst_case(epsilon, delta)
    right = np.maximum(null, alternative).sum() / 2
    np.testing.assert_allclose(float(guesses_at_most(epsilon, delta)), right, 1e-12)


@given(EPSILONS, DELTAS, RATES)
def test_detections_are_those_of_the_worst_case_mechanism(epsilon, delta, alarms):
    found = power(*worst_case(epsilon, delta), float(alarms))
    bound = float(detections_at_most(epsilon, delta, alarms))
    np.testing.assert_allclose(bound, found, rtol=1e-9, atol=1e-12)


@given(st.floats(0.05, 3), st.floats(0, 8), RATES)
def test_no_test_of_gaussian_noise_exceeds_the_bounds(mu, epsilon, alarms):
    delta = float(np.clip(gdp_delta(epsilon, mu), 0, 1))
    found = norm.cdf(mu + norm.ppf(float(alarms)))
    assert found <= float(detections_at_most(epsilon, delta, alarms)) + 1e-12
    assert norm.cdf(mu / 2) <= float(guesses_at_most(epsilon, delta)) + 1e-12


@pytest.mark.parametrize("n_units", [1, 2, 3, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_several_units_are_a_chain_of_single_steps(epsilon, n_units):
    probability = 1e-6  # of an event without any of them
    reached = probability
    for _ in range(n_units):
        reached = np.exp(epsilon) * reached + 1e-9
    of_all, delta = map(float, of_several(epsilon, 1e-9, n_units))
    np.testing.assert_allclose(np.exp(of_all) * probability + delta, reached, 1e-12)


def test_many_units_have_no_guarantee():
    assert of_several(5, 1e-3, 10)[1] == 1
    assert of_several(1e7, 1e-300, 2)[1] == 1
    assert of_several(1e7, 0.0, 2) == (2 * Decimal("1e7"), 0)


@given(st.floats(1e-9, 12), st.sampled_from([0.0, 1e-9, 1e-5, 0.1]))
def test_figures_are_rounded_up_and_by_less_than_one(epsilon, delta):
    with mpmath.workdps(80):
        grown = mpmath.exp(mpmath.mpf(epsilon))
        exact = 1000 * (grown + mpmath.mpf(delta)) / (1 + grown)
        shown = of_many(guesses_at_most(epsilon, delta), 1000)
        assert exact <= shown < exact + 1


def test_figures_that_come_out_even_are_not_rounded():
    assert of_many(guesses_at_most(0, 0), 1000) == 500
    assert of_many(detections_at_most(0, 0, Decimal("0.01")), 1000) == 10
    assert wrong_once_in(0, 0) == 2


def test_a_huge_epsilon_gives_no_guarantee_and_no_overflow():
    for epsilon in (50, 1e3, 1e9):
        assert of_many(guesses_at_most(epsilon, 0), 1000) == 1000
        assert of_many(detections_at_most(epsilon, 0, Decimal("0.001")), 1000) == 1000
        assert wrong_once_in(epsilon, 0) is None


@given(st.floats(0, 1e4), st.integers(1, 6))
def test_rounding_up_is_up_but_for_what_arithmetic_adds(value, places):
    rounded = round_up(value, places)
    assert value - 1e-9 * 10.0**-places <= rounded * (1 + 1e-15)
    assert rounded <= value + 10.0**-places * (1 + 1e-9)
    assert round_up(1 + 1e-15, 3) == 1

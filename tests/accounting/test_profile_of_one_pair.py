"""What a profile of one pair (epsilon, delta) allows, some mechanism reaches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from tests.private import gaussian_profile, lower_hull

EPSILONS = st.floats(0, 12)
DELTAS = st.sampled_from([0.0, 1e-9, 1e-5, 1e-3, 0.1, 1.0])
RATES = st.integers(0, 1000).map(lambda k: k / 1000)


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


@given(EPSILONS, DELTAS)
def test_guesses_are_those_of_the_worst_case_mechanism(epsilon, delta):
    null, alternative = worst_case(epsilon, delta)
    right = np.maximum(null, alternative).sum() / 2
    bound = lower_hull([epsilon], [delta]).attack_accuracy()
    np.testing.assert_allclose(bound, right, rtol=1e-12)


@given(EPSILONS, DELTAS, RATES)
def test_detections_are_those_of_the_worst_case_mechanism(epsilon, delta, alarms):
    found = power(*worst_case(epsilon, delta), alarms)
    bound = lower_hull([epsilon], [delta]).detection_rate(alarms)
    np.testing.assert_allclose(bound, found, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@given(st.floats(0.05, 3), RATES)
def test_gaussian_noise_reaches_its_whole_profile(mu, alarms):
    profile = gaussian_profile(mu)
    found = norm.cdf(mu + norm.ppf(alarms))
    assert found <= profile.detection_rate(alarms) + 1e-12
    assert profile.detection_rate(alarms) <= found + 1e-3
    assert norm.cdf(mu / 2) == pytest.approx(profile.attack_accuracy(), abs=1e-3)
    assert norm.cdf(mu / 2) <= profile.attack_accuracy()


@pytest.mark.parametrize("n_units", [1, 2, 3, 7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5])
def test_several_units_cost_no_more_than_a_chain_of_single_steps(
    epsilon, n_units, delta
):
    of_units = lower_hull([epsilon], [delta]).of_units(n_units)
    chain = delta * np.exp(epsilon * np.arange(n_units)).sum()
    assert of_units.delta_at(n_units * epsilon) <= min(chain, 1.0) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [50.0, 1e3, 1e9])
def test_a_huge_epsilon_gives_no_guarantee_and_no_overflow(epsilon):
    for n_units in (1, 3, 20):
        profile = lower_hull([epsilon], [1e-300]).of_units(n_units)
        assert profile.attack_accuracy() == pytest.approx(1.0)
        assert profile.detection_rate(0.001) == pytest.approx(1.0)

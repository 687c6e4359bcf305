"""The best adversary against the noise that is drawn."""

import numpy as np
import pytest
from scipy import stats

from sklearn_pate.mechanisms import GNMax
from tests.accounting.plurality.adaptive_game import answer_law, best_tests
from tests.private import NoiseSource, adaptive_profile, plurality_tests, two_class_mu
from tests.seeding import equal_noise

pytestmark = pytest.mark.slow

SIGMA, N_ANSWERS, N_FITS = 40, 100, 20_000
# Symmetric around 1: a vote that moves makes a gap of 1 a gap of -1.
GAPS = 1 + np.arange(-60, 61, 4)


@pytest.fixture(scope="module")
def attack():
    """Losses less epsilon = 0 at the end of fits on both data sets, by GNMax."""
    p, q = answer_law(SIGMA, GAPS), answer_law(SIGMA, GAPS - 2)
    h = two_class_mu(SIGMA) / 20
    policy = best_tests(p, q, h, 1500, N_ANSWERS)
    change = np.log(np.stack([q / p, (1 - q) / (1 - p)], 1))

    def play(moved, seed):
        noise = equal_noise(seed)(NoiseSource)()
        states = np.zeros(N_FITS)
        for left in reversed(range(N_ANSWERS)):
            at = np.minimum(np.round(np.abs(states) / h).astype(int), 1499)
            # Below 0 the mirror image of a test is the best one.
            test = np.where(states >= 0, policy[left, at], -1 - policy[left, at])
            gaps = GAPS[test] - moved
            counts = np.stack([500 + gaps, np.full_like(gaps, 500)], 1)
            answers = GNMax(SIGMA)._answer(counts, noise)
            states += change[test, answers]
        return states

    return play(0, seed=1), play(2, seed=2)


@pytest.fixture(scope="module")
def profile():
    return adaptive_profile(plurality_tests(SIGMA, 2), N_ANSWERS)


def gain(states, epsilon):
    """Estimate delta, and its error, from the losses of fits on the first data set."""
    gains = np.maximum(-np.expm1(states + epsilon), 0)
    return gains.mean(), 4 * gains.std() / np.sqrt(len(gains))


@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 0.2, 0.5, 0.8])
def test_an_adaptive_policy_gains_no_more_than_the_profile(attack, profile, epsilon):
    found, error = gain(attack[0], epsilon)
    assert found <= profile.delta_at(epsilon) + error


def test_the_policy_for_epsilon_zero_attains_the_profile_there(attack, profile):
    found, error = gain(attack[0], 0.0)
    assert 0.98 * profile.delta_at(0.0) <= found + error


def test_the_best_attacker_is_right_as_often_as_stated(attack, profile):
    before, after = attack
    right = np.concatenate([before < 0, after > 0])
    found = stats.binomtest(int(right.sum()), len(right)).proportion_ci(1 - 1e-5)
    assert found.low <= profile.attack_accuracy() <= found.high


@pytest.mark.parametrize("false_alarms", [0.05, 0.2])
def test_no_attacker_detects_more_than_stated(attack, profile, false_alarms):
    before, after = attack
    threshold = np.quantile(after, false_alarms)
    error = 4 * np.sqrt(2 * 0.25 / N_FITS)
    stated = profile.detection_rate(false_alarms)
    assert stated - 0.02 - error <= np.mean(before < threshold) <= stated + error

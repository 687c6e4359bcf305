"""Tests that dominate the answers of mechanisms with pure guarantees."""

import mpmath
import numpy as np
import pytest
from scipy.special import comb, expit

from tests.accounting.oracles import exact_law
from tests.accounting.plurality.adaptive_game import best_delta, best_delta_of_laws
from tests.private import (
    adaptive_profile,
    bounded_range_tests,
    laplace_tests,
    randomised_response,
)

IN_UNITS = np.array([-1, 0, 0.3, 0.7, 1, 1.5])


def exponential_laws(c, votes):
    laws = [
        np.array([float(p) for p in exact_law("gumbel", c, counts)]) for counts in votes
    ]
    return np.array(laws)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize(("c", "n_answers"), [(0.05, 1), (0.3, 2), (0.05, 2)])
def test_no_votes_of_the_exponential_mechanism_exceed_its_profile(
    c, n_answers, n_classes
):
    rng = np.random.default_rng(n_classes)
    reach = int(2 / c)
    votes = 50 + rng.integers(-reach, reach + 1, (30, n_classes))
    votes[0] = 50
    moved = votes.copy()
    moved[:, 0] -= 1
    moved[:, 1] += 1
    p, q = exponential_laws(c, votes), exponential_laws(c, moved)
    laws = np.concatenate([p, q]), np.concatenate([q, p])
    profile = adaptive_profile(bounded_range_tests(2 * c), n_answers)
    for epsilon in 2 * c * IN_UNITS:
        assert best_delta_of_laws(*laws, n_answers, epsilon) <= profile.delta_at(
            epsilon
        )


@pytest.mark.parametrize("n_answers", [1, 2])
def test_the_exponential_mechanism_attains_its_profile(n_answers):
    width = 0.2
    gaps = np.linspace(-4, 4, 121)
    tests = expit(gaps), expit(gaps - width)
    profile = adaptive_profile(bounded_range_tests(width), n_answers)
    less = adaptive_profile(bounded_range_tests(0.99 * width), n_answers)
    for epsilon in width * np.array([0.0, 0.3, 0.6]):
        found = best_delta(*tests, n_answers, epsilon)
        assert less.delta_at(epsilon) < found <= profile.delta_at(epsilon)
        assert profile.delta_at(epsilon) < 1.01 * found


def randomised_delta(epsilon, n_answers, at):
    """Delta of randomised responses together (Kairouz, Oh, Viswanath 2015)."""
    i = np.arange(n_answers + 1)
    terms = np.exp((n_answers - i) * epsilon) - np.exp(at + i * epsilon)
    total = np.sum(comb(n_answers, i) * np.maximum(terms, 0))
    return total / (1 + np.exp(epsilon)) ** n_answers


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("n_answers", [1, 5, 60])
def test_randomised_responses_have_their_known_cost(epsilon, n_answers):
    profile = adaptive_profile(randomised_response(epsilon), n_answers)
    for at in epsilon * np.sqrt(n_answers) * np.array([0, 0.5, 1, 2]):
        exact = randomised_delta(epsilon, n_answers, at)
        assert exact <= profile.delta_at(at) * (1 + 1e-12)
        assert profile.delta_at(at) < 1.01 * exact + 2e-6


def laplace_pairs(gamma):
    """Laws of two classes whose gap changes by two, and by one, with exact sums."""
    reach = int(20 / gamma)
    mass = np.exp(-gamma * np.abs(np.arange(-reach, reach + 1)))
    difference = np.convolve(mass / mass.sum(), mass / mass.sum())
    upper = np.cumsum(difference[::-1])[::-1]
    gaps = np.unique(np.round(np.linspace(-3, 3, 41) / gamma).astype(int))

    def law(gap):
        at = 2 * reach - gap
        return upper[at] - difference[at] / 2

    p = law(np.tile(gaps, 2))
    q = np.concatenate([law(gaps - 2), law(gaps - 1)])
    return np.concatenate([p, 1 - p]), np.concatenate([q, 1 - q])


@pytest.mark.parametrize(("gamma", "n_answers"), [(0.05, 1), (0.05, 2), (0.4, 2)])
def test_no_votes_with_laplace_noise_exceed_their_profile(gamma, n_answers):
    tests = laplace_pairs(gamma)
    profile = adaptive_profile(laplace_tests(gamma), n_answers)
    for epsilon in 2 * gamma * IN_UNITS:
        assert best_delta(*tests, n_answers, epsilon) <= profile.delta_at(epsilon)


def test_laplace_noise_attains_its_profile():
    tests = laplace_pairs(0.05)
    profile = adaptive_profile(laplace_tests(0.05), 2)
    less = adaptive_profile(laplace_tests(0.0495), 2)
    for epsilon in (0.0, 0.03, 0.06):
        found = best_delta(*tests, 2, epsilon)
        assert less.delta_at(epsilon) < found < profile.delta_at(epsilon) < 1.02 * found


@pytest.mark.parametrize("gamma", [1e-4, 0.003, 0.05, 1.0])
def test_laplace_tests_lie_outside_those_of_all_thresholds(gamma):
    tests = laplace_tests(gamma)
    first = tests.weights[:, 0]
    other = first * np.exp(tests.shifts[:, 0])
    order = np.argsort(other)
    with mpmath.workdps(40):
        r = mpmath.exp(-mpmath.mpf(gamma))
        for m in np.unique(np.round(np.geomspace(1, 25 / gamma, 40)).astype(int)):
            p, q = (
                float(((1 - r) / (1 + r)) ** 2 * tail(r, int(at))) for at in (m, m + 2)
            )
            assert p <= np.interp(q, other[order], first[order]) * (1 + 1e-9)


def tail(r, m):
    """Sum of r^d (d + (1 + r^2) / (1 - r^2)) from m on."""
    offset = (1 + r**2) / (1 - r**2)
    return r**m * ((m + offset) / (1 - r) + r / (1 - r) ** 2)


TESTS = [
    *(bounded_range_tests(width) for width in (1e-4, 0.01, 0.3, 2.0)),
    *(laplace_tests(gamma) for gamma in (5e-5, 0.01, 0.3, 1.0)),
    *(randomised_response(epsilon) for epsilon in (1e-4, 0.1, 2.0)),
]


@pytest.mark.parametrize("tests", TESTS)
def test_tests_are_laws_within_their_mu(tests):
    other = tests.weights * np.exp(tests.shifts)
    np.testing.assert_allclose(tests.weights.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(other.sum(axis=1), 1, rtol=1e-9)
    # Corners of a polygon lie a little outside.
    with mpmath.workdps(40):
        for p, q in zip(tests.weights[:, 0], other[:, 0], strict=True):
            if min(p, q) > 1e-9 and max(p, q) < 1 - 1e-9:
                gap = abs(normal_quantile(p) - normal_quantile(q))
                assert gap <= tests.mu * 1.02


def normal_quantile(p):
    return float(mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1))


@pytest.mark.parametrize("scale", [1e-5, 3.0])
@pytest.mark.parametrize(
    "make", [bounded_range_tests, laplace_tests, randomised_response]
)
def test_scales_out_of_range_have_no_tests(make, scale):
    assert make(scale) is None


def test_more_noise_never_costs_more():
    for make in bounded_range_tests, laplace_tests, randomised_response:
        costs = [
            adaptive_profile(make(scale), 30).epsilon_at(1e-5)
            for scale in (0.01, 0.0101, 0.05, 0.051, 0.2)
        ]
        assert np.all(np.diff(costs) > 0)

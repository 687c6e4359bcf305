import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr, logsumexp, ndtri_exp
from scipy.stats import norm

from sklearn_pate.accounting.bounds import (
    gaussian_2018,
    gaussian_worst_case,
    laplace_2017,
    pure_dp_curve,
)
from sklearn_pate.mechanisms import GNMax
from tests.private import (
    _Tails,
    gaussian_optimal_cost,
    gdp_mu,
    log_losing,
    pure_optimal_cost,
)

DIRECTIONS = ("forward", "backward", "both")
orders = st.floats(1.02, 60)
probabilities = st.floats(1e-12, 0.95)


def divergence(p, q, order):
    """Compute D_a(p || q) without cancellation."""
    p, q = np.asarray(p), np.asarray(q)
    used = p > 1e-250
    ratio = np.log(p[used] / q[used])
    if order * np.max(ratio) > 600:  # nothing cancels
        return float(logsumexp(order * ratio, b=q[used]) / (order - 1))
    terms = np.expm1(order * ratio) - order * np.expm1(ratio)
    return float(np.log1p(np.sum(q[used] * terms)) / (order - 1))


def noisy_argmax(counts, log_weight):
    """Compute the exact law of the argmax with discrete noise, ties broken evenly."""
    noise = np.arange(-400, 401)
    law = np.exp(log_weight(noise))
    law /= law.sum()
    below = np.concatenate([[0], np.cumsum(law)[:-1]])
    values = np.arange(min(counts) - 400, max(counts) + 401)

    def at(table, count, high):
        index = values - count + 400
        inside = np.clip(index, 0, 800)
        result = np.where((index >= 0) & (index <= 800), table[inside], 0)
        return np.where(index > 800, high, result)

    # A uniform priority breaks ties: exact by Gauss-Legendre.
    nodes, weights = np.polynomial.legendre.leggauss(len(counts))
    result = []
    for j, count in enumerate(counts):
        total = 0.0
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            product = at(law, count, 0)
            for k, other in enumerate(counts):
                if k != j:
                    product = product * (at(below, other, 1) + node * at(law, other, 0))
            total += weight * product.sum()
        result.append(total)
    return np.array(result)


def gaussian_noise(sigma):
    return lambda z: -(z**2) / (2 * sigma**2)


def laplace_noise(gamma):
    return lambda z: -gamma * np.abs(z)


def neighbours(counts):
    """Yield counts after one vote moves, is withdrawn, or is cast."""
    for j in range(len(counts)):
        cast = np.array(counts)
        cast[j] += 1
        yield cast
        if counts[j]:
            withdrawn = np.array(counts)
            withdrawn[j] -= 1
            yield withdrawn
            for k in range(len(counts)):
                if k != j:
                    moved = withdrawn.copy()
                    moved[k] += 1
                    yield moved


def two_tails(q, share, mu, power):
    """Compute ln E[r^power] by quadrature, losers in two tails that they reveal."""
    low, high = norm.isf(q * share), norm.ppf(q * (1 - share))

    def moved(x):
        return math.exp(norm.logpdf(x) + power * (-mu * x - mu**2 / 2))

    tops = [low, max(low, -power * mu)]
    total = quad(moved, tops[0], tops[1], epsabs=0)[0] if tops[1] > low else 0.0
    total += quad(moved, tops[1], tops[1] + 40, epsabs=0)[0]
    tops = [high, min(high, -power * mu)]
    total += quad(moved, tops[1], tops[0], epsabs=0)[0] if tops[1] < high else 0.0
    total += quad(moved, tops[1] - 40, tops[1], epsabs=0)[0]
    winner = norm.cdf(low + mu) - norm.cdf(high + mu)
    return math.log(total + (1 - q) ** (1 - power) * winner**power)


# --- epsilon-DP answers


@pytest.mark.slow
@given(
    losers=st.lists(st.floats(1e-6, 1), min_size=1, max_size=3),
    q=st.floats(1e-6, 0.75),
    epsilon=st.floats(0.01, 3),
    order=orders,
)
def test_no_pure_pair_of_laws_costs_more_than_the_bound(losers, q, epsilon, order):
    law = np.array([1 - q, *(q * np.array(losers) / np.sum(losers))])
    forward, backward = (
        pure_optimal_cost([math.log(q)], epsilon, [order], d)[0, 0]
        for d in ("forward", "backward")
    )
    # Vertices of the polytope of ratios: all but one at an end of the interval.
    for free in range(law.size):
        for ends in itertools.product((-epsilon, epsilon), repeat=law.size - 1):
            ratio = np.exp(np.insert(np.array(ends), free, 0))
            ratio[free] = (1 - law @ ratio + law[free]) / law[free]
            if ratio[free] <= 0 or abs(math.log(ratio[free])) > epsilon * (1 + 1e-9):
                continue
            assert divergence(law, law * ratio, order) <= forward * (1 + 1e-9) + 1e-12
            assert divergence(law * ratio, law, order) <= backward * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("q", [1e-9, 0.01, 0.2])
@pytest.mark.parametrize("order", [1.1, 2, 20])
def test_two_outcomes_attain_the_pure_bound(q, order):
    epsilon = 0.8
    law = np.array([1 - q, q])
    others = [np.array([1 - q * math.exp(e), q * math.exp(e)]) for e in (0.8, -0.8)]
    forward = max(divergence(law, other, order) for other in others)
    backward = max(divergence(other, law, order) for other in others)
    log_q = [math.log(q)]
    for direction, expected in (
        ("forward", forward),
        ("backward", backward),
        ("both", max(forward, backward)),
    ):
        cost = pure_optimal_cost(log_q, epsilon, [order], direction)
        assert cost[0, 0] == pytest.approx(expected, rel=1e-9)


def test_beyond_the_polytope_the_pure_cost_is_that_of_randomised_response():
    log_q = np.log([1 / (1 + math.e), 0.5, 0.9, 1 - 1e-12])
    cost = pure_optimal_cost(log_q, 1.0, [1.5, 8])
    expected = pure_dp_curve(1.0, [1.5, 8]).values
    np.testing.assert_array_equal(cost, np.tile(expected[:, np.newaxis], 4))


@pytest.mark.thorough
@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 30), min_size=2, max_size=4),
    gamma=st.floats(0.1, 1),
    order=orders,
)
def test_no_neighbour_under_laplace_noise_costs_more(counts, gamma, order):
    law = noisy_argmax(counts, laplace_noise(gamma))
    q = np.delete(law, np.argmax(counts)).sum()
    forward, backward = (
        pure_optimal_cost([math.log(q)], 2 * gamma, [order], d)[0, 0]
        for d in ("forward", "backward")
    )
    for other in neighbours(counts):
        moved = noisy_argmax(other, laplace_noise(gamma))
        assert divergence(law, moved, order) <= forward + 1e-12
        assert divergence(moved, law, order) <= backward + 1e-12


@pytest.mark.slow
@given(gap=st.integers(0, 250), gamma=st.floats(0.01, 1), order=orders)
def test_the_2017_bound_is_never_below_the_optimal_one(gap, gamma, order):
    x = gap * gamma
    log_q = min(math.log((2 + x) / 4) - x, math.log(0.5))
    published = laplace_2017([[gap, 0]], gamma, [order]).values[0]
    cost = pure_optimal_cost([log_q], 2 * gamma, [order], "forward")[0, 0]
    assert cost <= published * (1 + 1e-9) + 1e-13


# --- Gaussian noise


def test_rounding_a_gaussian_changes_no_log_probability_by_more_than_the_slack():
    with mpmath.workdps(60):
        variance = mpmath.mpf("2.25")

        def mass(y, variance):
            terms = (
                mpmath.exp(-((j - y) ** 2) / (2 * variance)) for j in range(-60, 61)
            )
            return mpmath.fsum(terms) / mpmath.sqrt(2 * mpmath.pi * variance)

        # Extreme at whole and at half numbers.
        kernel = max(abs(mass(mpmath.mpf(y), variance) - 1) for y in (0, 0.5))
        normaliser = abs(mass(0, variance) - 1)
        per_count = mpmath.log((1 + normaliser) / (1 - kernel))
        assert 4e-19 < 2 * per_count < 5e-19


@pytest.mark.thorough
@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 40), min_size=2, max_size=4),
    sigma=st.floats(1.2, 25),
    order=orders,
)
def test_no_neighbour_under_discrete_gaussian_noise_costs_more(counts, sigma, order):
    law = noisy_argmax(counts, gaussian_noise(sigma))
    q = np.delete(law, np.argmax(counts)).sum()
    assume(q > 1e-100)
    forward, backward = (
        gaussian_optimal_cost([math.log(q)], sigma, [order], d)[0, 0]
        for d in ("forward", "backward")
    )
    for other in neighbours(counts):
        moved = noisy_argmax(other, gaussian_noise(sigma))
        assert divergence(law, moved, order) <= forward + 1e-12
        assert divergence(moved, law, order) <= backward + 1e-12


@pytest.mark.thorough
@settings(deadline=None, max_examples=50)
@example(q=1 / 256, share=1 / 32, sigma=3, order=3)
@given(
    q=st.floats(1e-6, 0.95),
    share=st.floats(0.001, 0.999),
    sigma=st.floats(3, 60),
    order=st.floats(1.1, 20),
)
def test_no_two_tails_cost_more_than_the_bound(q, share, sigma, order):
    log_q = np.array([math.log(q)])
    for direction, power in (("forward", 1 - order), ("backward", order)):
        cost = gaussian_optimal_cost(log_q, sigma, [order], direction)[0, 0]
        # The bound by tails alone holds for larger mu too, which the noise never has.
        mu = gdp_mu(sigma)
        by_tails = _Tails.split(log_q, mu).cost(order, power)[0]
        for bound, distance in ((cost, math.sqrt(2) / sigma), (by_tails, mu)):
            truth = two_tails(q, share, distance, power) / (order - 1)
            assert truth <= bound * (1 + 1e-6) + 1e-10 / (order - 1)


@pytest.mark.thorough
@pytest.mark.parametrize("q", [0.4, 0.1, 1e-2, 1e-5])
@pytest.mark.parametrize("order", [1.5, 8, 30])
def test_some_two_tails_cost_nearly_the_bound(q, order):
    sigma = 20.0
    shares = np.sin(np.linspace(1e-3, np.pi / 2 - 1e-3, 30)) ** 2
    for direction, power in (("forward", 1 - order), ("backward", order)):
        cost = gaussian_optimal_cost([math.log(q)], sigma, [order], direction)[0, 0]
        truth = max(two_tails(q, s, gdp_mu(sigma), power) for s in shares)
        assert cost == pytest.approx(truth / (order - 1), rel=0.004)


@pytest.mark.slow
@given(gap=st.integers(0, 250), sigma=st.floats(3, 60), order=orders)
@settings(deadline=None)
def test_the_2018_bound_is_never_below_the_optimal_one(gap, sigma, order):
    log_q = [log_ndtr(-gap / (math.sqrt(2) * sigma))]
    published = gaussian_2018([[gap, 0]], sigma, [order]).values[0]
    # With this sigma the test behind the answer is the paper's, of continuous noise.
    same_test = math.sqrt(sigma**2 + 2.25)
    cost = gaussian_optimal_cost(log_q, same_test, [order], "forward")[0, 0]
    assert cost <= published * (1 + 1e-9) + 1e-15


@pytest.mark.slow
@given(log_q=st.lists(st.floats(-1e4, -0.001), min_size=2, max_size=6), order=orders)
@settings(deadline=None)
def test_a_larger_q_never_costs_less(log_q, order):
    log_q = np.sort(log_q)
    for cost in (
        gaussian_optimal_cost(log_q, 12.0, [order]),
        pure_optimal_cost(log_q, 0.3, [order]),
    ):
        assert np.all(np.diff(cost[0]) >= -1e-15 * cost[0, 1:])


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1.0, 1.6, 7.0, 40.0, 1e3, 1e6])
def test_extreme_arguments_stay_between_zero_and_the_worst_case(noise):
    log_q = np.concatenate([-np.geomspace(1e-12, 1e5, 300), [0, -np.inf]])
    orders = np.geomspace(1.01, 1e4, 25)
    for direction in DIRECTIONS:
        for cost, cap in (
            (
                gaussian_optimal_cost(log_q, noise, orders, direction),
                gaussian_worst_case(noise, orders),
            ),
            (
                pure_optimal_cost(log_q, 2 / noise, orders, direction),
                pure_dp_curve(2 / noise, orders),
            ),
        ):
            assert cost.shape == (25, 302)
            assert np.all(cost >= 0)
            assert np.all(cost <= cap.values[:, np.newaxis])


def test_both_directions_cost_the_larger_one():
    log_q = np.log([0.3, 1e-3, 1e-12])
    for cost, noise in ((gaussian_optimal_cost, 15.0), (pure_optimal_cost, 0.2)):
        forward, backward, both = (
            cost(log_q, noise, [2, 16], direction)
            for direction in ("forward", "backward", "both")
        )
        np.testing.assert_allclose(both, np.maximum(forward, backward), rtol=1e-12)


def test_rounding_many_queries_adds_less_than_half_a_percent():
    rng = np.random.default_rng(0)
    log_q = log_ndtr(-np.abs(rng.normal(0, 3, 4000)))
    orders = [1.5, 8, 40]
    rounded = gaussian_optimal_cost(log_q, 40.0, orders)
    exact = np.concatenate(
        [gaussian_optimal_cost(part, 40.0, orders) for part in np.split(log_q, 2)],
        axis=1,
    )
    assert np.all(rounded >= exact * (1 - 1e-9))
    assert np.all(rounded.sum(axis=1) <= 1.005 * exact.sum(axis=1))
    # The rounding itself: at most one step of z up to 8.
    grid = np.unique(np.floor(-ndtri_exp(log_q) * 512))
    assert np.unique(rounded[0]).size <= grid.size


def test_a_noise_too_small_to_round_costs_between_an_answer_and_the_worst_case():
    assert gdp_mu(1.5) == np.inf
    cost = gaussian_optimal_cost([-0.1, -50.0], 1.5, [2, 4])
    np.testing.assert_array_equal(cost[:, 0], [2 / 2.25, 4 / 2.25])
    counts = [[20, 0]]
    law = GNMax(1.5)._plurality()
    optimal = gaussian_optimal_cost(log_losing(law, counts), 1.5, [2, 4])[:, 0]
    exact = GNMax(1.5).local_curve(counts, orders=[2, 4]).values
    assert np.all((exact <= optimal) & (optimal < 1e-3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1], 5.0, [2]), "log_q"),
        (([np.nan], 5.0, [2]), "log_q"),
        (([[-1.0]], 5.0, [2]), "log_q"),
        (([-1.0], 0.0, [2]), "positive"),
        (([-1.0], 5.0, [1]), "orders"),
        (([-1.0], 5.0, [2], "sideways"), "direction"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    for function in (pure_optimal_cost, gaussian_optimal_cost):
        with pytest.raises(ValueError, match=message):
            function(*arguments)

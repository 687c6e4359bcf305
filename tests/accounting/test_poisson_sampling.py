"""Noise on a secret sample, against quadrature, enumeration and other accountants."""

from itertools import product

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from hypothesis import given
from hypothesis import strategies as st
from mpmath import (
    binomial,
    exp,
    expm1,
    fsum,
    inf,
    log,
    log1p,
    mpf,
    npdf,
    quad,
    workdps,
)
from scipy.stats import binom

from sklearn_pate.accounting import DEFAULT_ORDERS
from sklearn_pate.accounting.composition import sampled_gaussian_curve
from tests.cases import thorough_but

noise_multipliers = st.floats(0.3, 100)
sampling_rates = st.floats(1e-4, 1)


def divergences(noise_multiplier, rate, order):
    """Both directions, by quadrature with 30 digits."""
    with workdps(30):
        order, rate = mpf(order), mpf(rate)

        def without(x):
            return npdf(x, 0, noise_multiplier)

        def mixed(x):
            return (1 - rate) * without(x) + rate * npdf(x, 1, noise_multiplier)

        def divergence(first, second):
            # Tails beyond the mean that the tilted law has are of no weight.
            reach = noise_multiplier * 12 + 3 * order
            nodes = np.linspace(-float(reach), float(reach), 40)
            moment = quad(
                lambda x: first(x) ** order * second(x) ** (1 - order), nodes.tolist()
            )
            return float(log(moment) / (order - 1))

        return divergence(mixed, without), divergence(without, mixed)


SAMPLED = {(0.7, 0.01), (2.0, 0.15), (8.0, 0.6)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise_multiplier", "rate"),
    [
        pytest.param(*one, marks=() if one in SAMPLED else pytest.mark.thorough)
        for one in product([0.7, 2.0, 8.0], [0.01, 0.15, 0.6])
    ],
)
@pytest.mark.parametrize("order", thorough_but([1.3, 2, 20], [1.3, 2, 3.5, 8, 20]))
def test_the_curve_is_at_least_both_divergences_and_exact_at_integers(
    noise_multiplier, rate, order
):
    true = max(divergences(noise_multiplier, rate, order))
    cost = sampled_gaussian_curve(noise_multiplier, rate, [order]).values[0]
    assert cost >= true * (1 - 1e-9)
    if order == int(order):
        assert cost == pytest.approx(true, rel=1e-8)


@pytest.mark.parametrize("sigma", [0.6, 1.5, 5.0])
@pytest.mark.parametrize("rate", [0.05, 0.4])
def test_the_curve_bounds_discrete_noise_on_a_vote_that_moves(sigma, rate):
    z = np.arange(-300, 301)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    mass /= mass.sum()
    still = np.outer(mass, mass)
    moved = np.outer(np.roll(mass, 1), np.roll(mass, -1))
    sample = (1 - rate) * still + rate * moved
    seen = (still > 1e-290) & (moved > 1e-290)
    for order in [2, 5, 12]:
        cost = sampled_gaussian_curve(sigma / 2**0.5, rate, [order]).values[0]
        for first, second in [(sample, still), (still, sample)]:
            ratio = np.log(first[seen]) * order - np.log(second[seen]) * (order - 1)
            assert np.log(np.exp(ratio).sum()) / (order - 1) <= cost * (1 + 1e-9)


@pytest.mark.parametrize(
    ("noise_multiplier", "rate", "n_times"),
    [(1.1, 0.01, 1000), (4.0, 0.01, 10000), (2.0, 0.04, 500), (35.0, 0.15, 100)],
)
def test_epsilon_is_that_of_dp_accounting(noise_multiplier, rate, n_times):
    curve = sampled_gaussian_curve(noise_multiplier, rate) * n_times
    other = rdp.RdpAccountant(orders=DEFAULT_ORDERS[DEFAULT_ORDERS < 500])
    event = dp_accounting.GaussianDpEvent(noise_multiplier)
    other.compose(dp_accounting.PoissonSampledDpEvent(rate, event), n_times)
    # Ours is interpolated between integers: a little more above order 3, never less.
    assert curve.best_order(1e-5) > 3
    assert curve.to_epsilon(1e-5) == pytest.approx(other.get_epsilon(1e-5), rel=0.01)
    assert curve.to_epsilon(1e-5) >= other.get_epsilon(1e-5) * (1 - 1e-6)


@pytest.mark.slow
@given(noise_multipliers, sampling_rates)
def test_a_smaller_sample_and_more_noise_never_cost_more(noise_multiplier, rate):
    cost = sampled_gaussian_curve(noise_multiplier, rate).values
    slack = 1e-9 * cost + 1e-15
    assert np.all(
        sampled_gaussian_curve(noise_multiplier, rate / 2).values <= cost + slack
    )
    assert np.all(
        sampled_gaussian_curve(noise_multiplier * 1.5, rate).values <= cost + slack
    )
    assert np.all(np.diff(cost) >= -1e-9 * cost[1:])


def test_a_sampling_rate_of_one_is_no_sampling():
    values = sampled_gaussian_curve(3.0, 1.0).values
    np.testing.assert_allclose(values, DEFAULT_ORDERS / 18)


def test_integer_orders_are_the_binomial_sum():
    order, rate, noise_multiplier = 30, 0.2, 1.7
    k = np.arange(order + 1)
    with workdps(40):
        moment = sum(
            mpf(weight) * exp(mpf(int(j * (j - 1))) / (2 * mpf(noise_multiplier) ** 2))
            for j, weight in zip(k, binom.pmf(k, order, rate), strict=True)
        )
        expected = float(log(moment) / (order - 1))
    cost = sampled_gaussian_curve(noise_multiplier, rate, [order]).values[0]
    assert cost == pytest.approx(expected, rel=1e-10)
    assert inf > moment > 1


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, float("nan"), None, True, "0.1"])
def test_a_rate_that_is_no_probability_is_named(rate):
    with pytest.raises(ValueError, match="sampling_rate="):
        sampled_gaussian_curve(1.0, rate)


@pytest.mark.parametrize("noise_multiplier", [0, -1, float("inf"), None])
def test_a_wrong_noise_multiplier_is_named(noise_multiplier):
    with pytest.raises(ValueError, match="noise_multiplier="):
        sampled_gaussian_curve(noise_multiplier, 0.1)


def log_moment(noise_multiplier, rate, order):
    """The sum of Mironov, Talwar and Zhang at an integer order, with 60 digits."""
    with workdps(60):
        q, z = mpf(rate), mpf(noise_multiplier)
        return log1p(
            fsum(
                binomial(order, k)
                * (1 - q) ** (order - k)
                * q**k
                * expm1((k * k - k) / (2 * z * z))
                for k in range(2, order + 1)
            )
        )


@pytest.mark.slow
@pytest.mark.parametrize("noise_multiplier", [0.3, 0.5185, 1.0, 10.0, 1e6])
@pytest.mark.parametrize("rate", [1e-300, 1e-17, 7e-17, 1e-6, 0.999])
def test_no_term_of_the_sum_is_lost(noise_multiplier, rate):
    for order in (2, 20, 64, 128):
        cost = sampled_gaussian_curve(noise_multiplier, rate, [order]).values[0]
        true = log_moment(noise_multiplier, rate, order) / (order - 1)
        assert true * (1 - 1e-15) - 1e-300 <= cost <= true * (1 + 1e-9) + 1e-300


@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_extreme_noise_costs_all_or_nothing(rate):
    assert np.all(sampled_gaussian_curve(1e-160, rate).values == np.inf)
    assert np.all(sampled_gaussian_curve(1e160, rate).values < 1e-300)

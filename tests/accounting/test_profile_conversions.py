"""Profiles of Renyi curves and of Gaussian noise."""

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
from tests.accounting.plurality.costs import divergence
from tests.private import curve_profile, gaussian_profile, gdp_epsilon, gdp_mu


def binary_curve(p, q, orders=DEFAULT_ORDERS):
    """Exact curve of two outcomes, for both orders of the data sets."""
    p, q = np.array([p, 1 - p]), np.array([q, 1 - q])
    pure = np.abs(np.log(p / q)).max()
    with np.errstate(over="ignore"):
        values = [
            np.maximum(divergence(p, q, order), divergence(q, p, order))
            for order in orders
        ]
    # Large orders overflow; there the divergence of infinite order is a bound.
    return RdpCurve(orders, np.where(np.isfinite(values), values, pure))


def binary_delta(p, q, t):
    """Delta of two outcomes, for both orders of the data sets."""
    return max(
        max(a - t * b, 0) + max(1 - a - t * (1 - b), 0) for a, b in ((p, q), (q, p))
    )


def of_gaussian(mu):
    return RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS * mu**2 / 2)


shares = st.floats(1e-4, 1 - 1e-4)


@pytest.mark.thorough
@given(p=shares, q=shares, epsilon=st.floats(-4, 12))
def test_the_profile_of_a_curve_is_never_below_the_pair_that_has_it(p, q, epsilon):
    profile = curve_profile(binary_curve(p, q))
    assert binary_delta(p, q, np.exp(epsilon)) <= profile.delta_at(epsilon) + 1e-15


@given(p=shares, q=shares, order=st.floats(1.05, 200), epsilon=st.floats(-2, 12))
def test_one_order_is_enough_for_an_upper_bound(p, q, order, epsilon):
    profile = curve_profile(binary_curve(p, q, np.array([order])))
    assert binary_delta(p, q, np.exp(epsilon)) <= profile.delta_at(epsilon) + 1e-15


def largest_delta(order, r, t):
    """Largest p - t q of two outcomes with a divergence of at most r."""

    def moment(p, q):
        return divergence(np.array([p, 1 - p]), np.array([q, 1 - q]), order) - r

    best = 0.0
    for p in np.geomspace(1e-9, 0.999, 400):
        low = p * 1e-30
        with np.errstate(over="ignore", invalid="ignore"):
            if moment(p, low) > 0:
                q = brentq(lambda q, p=p: moment(p, q), low, p)
                best = max(best, p - t * q)
    return best


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "r", "epsilon"),
    [(2, 0.1, 1), (2, 0.1, 2), (8, 0.3, 0.8), (8, 0.3, 1.5), (40, 1, 1.3)],
)
def test_the_conversion_of_one_order_is_optimal(order, r, epsilon):
    found = curve_profile(RdpCurve([order], [r])).delta_at(epsilon)
    best = largest_delta(order, r, np.exp(epsilon))
    assert best <= found <= 1.07 * best


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.5, 1, 3, 8])
def test_the_curve_of_gaussian_noise_has_more_than_its_exact_profile(mu):
    exact = gaussian_profile(mu)
    epsilons = np.linspace(-exact.epsilons[-1], exact.epsilons[-1], 500)
    profile = curve_profile(of_gaussian(mu))
    assert np.all(profile.delta_at(epsilons) >= exact.delta_at(epsilons))


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-6, 1e-8])
@pytest.mark.parametrize("mu", [0.05, 0.5, 1, 3, 8])
def test_the_profile_of_a_curve_is_hardly_above_the_common_conversion(mu, delta):
    curve = of_gaussian(mu)
    assert curve_profile(curve).epsilon_at(delta) <= 1.005 * curve.quiet_epsilon(delta)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1, 5, 40])
def test_a_pure_guarantee_has_the_profile_of_randomised_response(epsilon):
    curve = RdpCurve(DEFAULT_ORDERS, np.full(DEFAULT_ORDERS.shape, epsilon), epsilon)
    profile = curve_profile(curve)
    lie = 1 / (1 + np.exp(epsilon))
    for share in 0, 0.3, 0.9, 1:
        exact = lie * (np.exp(epsilon) - np.exp(share * epsilon))
        assert exact <= profile.delta_at(share * epsilon) + 1e-15
        assert profile.delta_at(share * epsilon) <= exact * (1 + 1e-8) + 2e-9 * epsilon
    assert profile.delta_at(0) == pytest.approx(np.tanh(epsilon / 2), rel=1e-8)
    assert epsilon <= profile.epsilon_at(0.0) <= epsilon * (1 + 1e-8)


def test_no_cost_has_no_delta():
    nothing = RdpCurve(DEFAULT_ORDERS, np.zeros(DEFAULT_ORDERS.shape), 0.0)
    assert curve_profile(nothing).delta_at(0.0) == 0


def test_a_curve_without_a_bound_has_a_delta_of_one_everywhere():
    profile = curve_profile(of_gaussian(1).unbounded())
    assert np.all(profile.delta_at([0.0, 1.0, 400.0]) == 1)


@pytest.mark.parametrize("mu", [0.05, 0.5, 1, 3])
def test_an_attacker_is_right_at_most_as_often_as_pinsker_allows(mu):
    exact, by_curve = gaussian_profile(mu), curve_profile(of_gaussian(mu))
    # Total variation is at most sqrt(KL / 2) and sqrt(1 - e^-KL), KL = mu^2 / 2 (at
    # orders near 1).
    divergence_of_order_one = DEFAULT_ORDERS[0] * mu**2 / 2
    pinsker = np.sqrt(divergence_of_order_one / 2)
    bretagnolle_huber = np.sqrt(-np.expm1(-divergence_of_order_one))
    most = 0.5 + min(pinsker, bretagnolle_huber) / 2
    assert exact.attack_accuracy() <= most
    assert exact.attack_accuracy() <= by_curve.attack_accuracy() <= 1.01 * most


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.05, 1, 8, 20])
def test_the_gaussian_profile_is_the_closed_form_rounded_up(mu):
    profile = gaussian_profile(mu)
    for epsilon in mu * np.array([0, 0.3, 1, 2, 4]):
        with mpmath.workdps(40):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(
                -m / 2 - e / m
            )
        if exact > 1e-11:
            assert exact <= profile.delta_at(epsilon) <= 1.002 * exact + 1e-9
    for delta in 1e-9, 1e-5, 1e-2:
        exact_epsilon = gdp_epsilon(mu, delta)
        assert profile.epsilon_at(delta) <= 1.0005 * exact_epsilon + 1e-8


def test_noise_that_costs_more_than_any_useful_epsilon_has_no_profile():
    assert gaussian_profile(40.0).delta_at(400.0) == 1


@pytest.mark.parametrize(("sigma", "n_queries"), [(10, 1), (40, 100), (20, 40)])
def test_histograms_have_the_profile_of_another_library(sigma, n_queries):
    mu = gdp_mu(sigma, squared_distance=2 * n_queries)
    # A moved vote shifts the counts by sqrt(2); the proof spends some noise.
    gaussian = pld.from_gaussian_mechanism(
        np.sqrt((sigma**2 - 2.25) / 2), value_discretization_interval=1e-4
    ).self_compose(n_queries)
    profile = gaussian_profile(mu)
    for epsilon in 0.0, 0.3, 1.0:
        other = gaussian.get_delta_for_epsilon(epsilon)
        assert profile.delta_at(epsilon) == pytest.approx(other, rel=2e-3, abs=1e-7)

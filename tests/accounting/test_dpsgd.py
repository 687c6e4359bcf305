"""The cost of DP-SGD, against closed forms and two other accountants."""

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant

from sklearn_pate.accounting import DEFAULT_ORDERS
from sklearn_pate.accounting.composition import (
    calibrate_steps,
    dpsgd_cost,
    dpsgd_profile,
    sampled_gaussian_curve,
)
from tests.cases import thorough_but
from tests.private import _loss_profiles, gdp_epsilon

DELTA = 1e-5
# Noise multiplier, sampling rate, steps, delta.
TRAININGS = [
    (1.1, 512 / 60_000, 2360, 1e-5),
    (0.7, 0.01, 1000, 1e-5),
    (4.0, 0.2, 100, 1e-6),
    (2.0, 0.5, 30, 1e-5),
    (20.0, 0.05, 100, 1e-5),
    (0.8, 0.001, 20_000, 1e-7),
    (1.0, 0.3, 1, 1e-5),
]


def cost(noise_multiplier, rate, n_steps, delta=DELTA, accountant="pld"):
    return dpsgd_cost(
        noise_multiplier, rate, n_steps, delta=delta, accountant=accountant
    )[0]


@pytest.mark.slow
@pytest.mark.parametrize("training", thorough_but(TRAININGS[::2], TRAININGS))
def test_the_cost_lies_between_two_bounds_of_another_library(training):
    noise_multiplier, rate, n_steps, delta = training
    low, high = (
        privacy_loss_distribution.from_gaussian_mechanism(
            noise_multiplier,
            sampling_prob=rate,
            value_discretization_interval=1e-4,
            pessimistic_estimate=pessimistic,
        )
        .self_compose(n_steps)
        .get_epsilon_for_delta(delta)
        for pessimistic in (False, True)
    )
    assert low <= cost(*training) <= 1.001 * high


@pytest.mark.slow
@pytest.mark.parametrize("training", thorough_but(TRAININGS[::2], TRAININGS[:4]))
def test_the_profile_lies_between_two_bounds_of_another_library(training):
    noise_multiplier, rate, n_steps, _ = training
    low, high = (
        privacy_loss_distribution.from_gaussian_mechanism(
            noise_multiplier,
            sampling_prob=rate,
            value_discretization_interval=1e-4,
            pessimistic_estimate=pessimistic,
        ).self_compose(n_steps)
        for pessimistic in (False, True)
    )
    profile = dpsgd_profile(noise_multiplier, rate, n_steps)
    for epsilon in 0.0, 0.1, 0.5, 1.0, 2.0:
        found = profile.delta_at(epsilon)
        assert low.get_delta_for_epsilon(epsilon) <= found
        assert found <= 1.01 * high.get_delta_for_epsilon(epsilon) + 2e-8


def test_the_cost_lies_within_the_error_that_opacus_states():
    accountant = PRVAccountant()
    accountant.history = [(1.1, 512 / 60_000, 2360)]
    high = accountant.get_epsilon(DELTA, eps_error=0.01)
    assert high - 0.02 <= cost(*accountant.history[0]) <= high


@pytest.mark.parametrize("n_steps", [1, 25])
@pytest.mark.parametrize("noise_multiplier", [1.0, 7.0])
def test_without_sampling_the_cost_is_that_of_one_gaussian(noise_multiplier, n_steps):
    exact = gdp_epsilon(np.sqrt(n_steps) / noise_multiplier, DELTA)
    assert exact <= cost(noise_multiplier, 1.0, n_steps) <= 1.001 * exact


@pytest.mark.parametrize(("noise_multiplier", "rate"), [(0.5, 0.01), (2.0, 0.3)])
def test_one_step_costs_its_definition(noise_multiplier, rate):
    epsilon = cost(noise_multiplier, rate, 1)
    z, q = mpmath.mpf(noise_multiplier), mpmath.mpf(rate)

    def delta_of(epsilon):
        """Integrate the positive part of P - e^epsilon Q, which begins at x."""
        x = z**2 * mpmath.log((mpmath.exp(epsilon) - 1 + q) / q) + mpmath.mpf(1) / 2
        of_q, of_shifted = mpmath.ncdf(-x / z), mpmath.ncdf((1 - x) / z)
        return (1 - q) * of_q + q * of_shifted - mpmath.exp(epsilon) * of_q

    assert delta_of(epsilon) <= DELTA
    assert delta_of(0.998 * epsilon) > DELTA


@pytest.mark.parametrize("training", TRAININGS[:3])
def test_moments_agree_with_another_library_up_to_interpolation(training):
    noise_multiplier, rate, n_steps, delta = training
    step = PoissonSampledDpEvent(rate, GaussianDpEvent(noise_multiplier))
    accountant = RdpAccountant(
        DEFAULT_ORDERS[(DEFAULT_ORDERS > 1.5) & (DEFAULT_ORDERS < 100)]
    )
    theirs = accountant.compose(SelfComposedDpEvent(step, n_steps)).get_epsilon(delta)
    ours = cost(*training, accountant="rdp")
    assert (1 - 1e-9) * theirs <= ours <= 1.05 * theirs


@pytest.mark.thorough
@settings(max_examples=25)
@given(
    st.floats(0.3, 30),
    st.floats(1e-4, 1),
    st.integers(1, 5000),
    st.sampled_from([1e-12, 1e-8, 1e-5]),
)
def test_more_noise_costs_less_and_the_law_of_the_loss_less_than_its_moments(
    noise_multiplier, rate, n_steps, delta
):
    training = (rate, n_steps, delta)
    exact = cost(noise_multiplier, *training)
    assert 0 <= cost(1.01 * noise_multiplier, *training) <= exact
    assert exact <= cost(noise_multiplier, *training, accountant="rdp") < np.inf


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 8.0])
def test_calibrated_noise_is_enough_and_a_little_less_is_not(epsilon, accountant):
    steps = {"sampling_rate": 512 / 60_000, "n_steps": 2360, "delta": DELTA}
    noise_multiplier = calibrate_steps(epsilon, **steps, accountant=accountant)

    def costs(noise_multiplier):
        return dpsgd_cost(noise_multiplier, **steps, accountant=accountant)[0]

    assert costs(noise_multiplier) <= epsilon < costs(0.9995 * noise_multiplier)
    assert float(f"{noise_multiplier:.6g}") == noise_multiplier


def test_the_tighter_accountant_needs_less_noise():
    steps = {"sampling_rate": 0.01, "n_steps": 1000, "delta": DELTA}
    tight, loose = (
        calibrate_steps(2.0, **steps, accountant=one) for one in ("pld", "rdp")
    )
    assert tight < 0.97 * loose


def test_a_target_out_of_reach_is_refused():
    with pytest.raises(ValueError, match=r"epsilon=1e-12 cannot be reached .* 5 steps"):
        calibrate_steps(1e-12, 1.0, 5, delta=1e-9, accountant="pld")


def test_tiny_noise_has_a_finite_cost():
    assert 1e4 < cost(0.001, 1.0, 10) < np.inf


@pytest.mark.parametrize("training", [(0.6, 0.01, 200), (1.0, 0.5, 10), (3.0, 0.99, 5)])
def test_the_profile_covers_both_directions(training):
    noise_multiplier, rate, n_steps = training
    curve = sampled_gaussian_curve(noise_multiplier, rate) * n_steps
    profile = dpsgd_profile(noise_multiplier, rate, n_steps)
    for direction in _loss_profiles(noise_multiplier, rate, n_steps, curve, 1e-8):
        at = direction.epsilons[:: len(direction.epsilons) // 500 + 1]
        assert np.all(profile.delta_at(at) >= direction.delta_at(at) * (1 - 1e-9))

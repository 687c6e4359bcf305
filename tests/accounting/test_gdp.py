"""The cost of Gaussian noise, against many digits, a library, and enumerated laws."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, mpf, ncdf, workdps

from tests.cases import thorough_but
from tests.mechanisms.laws import log_law
from tests.private import gdp_delta, gdp_epsilon, gdp_mu, largest_gdp_mu

SHIFTS = np.geomspace(1e-3, 30, 13)
DELTAS = [1e-300, 1e-30, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 0.5, 0.9]

shifts = st.floats(1e-3, 30)
deltas = st.floats(1e-12, 0.5)
epsilons = st.floats(0.01, 100)


def true_delta(epsilon, mu):
    with workdps(60):
        epsilon, mu = mpf(epsilon), mpf(mu)
        far = ncdf(-mu / 2 - epsilon / mu)
        return ncdf(mu / 2 - epsilon / mu) - exp(epsilon) * far


# Epsilon and delta of a test of N(0, 1) against N(mu, 1)


@pytest.mark.parametrize("mu", SHIFTS)
def test_delta_is_that_of_60_digits(mu):
    for epsilon in [0, 1e-6, 1e-3, 0.1, 1, 3, 10, 100, 1000]:
        expected = true_delta(epsilon, mu)
        if expected > 1e-290:
            assert gdp_delta(epsilon, mu) == pytest.approx(float(expected), rel=1e-9)
        else:
            assert gdp_delta(epsilon, mu) <= 1e-289


@pytest.mark.parametrize("mu", SHIFTS)
def test_epsilon_is_never_below_the_true_one_and_next_to_it(mu):
    found = {delta: gdp_epsilon(mu, delta) for delta in DELTAS}
    too_small = [one for one in DELTAS if true_delta(found[one], mu) > one]
    assert too_small == []
    below = {delta: found[delta] * (1 - 1e-8) - 2e-9 for delta in DELTAS}
    too_large = [
        one for one in DELTAS if below[one] > 0 and true_delta(below[one], mu) <= one
    ]
    assert too_large == []


@pytest.mark.slow
@given(mu=shifts, epsilon=epsilons)
def test_delta_is_that_of_dp_accounting(mu, epsilon):
    other = GaussianPrivacyLoss(standard_deviation=1 / mu, sensitivity=1)
    expected = other.get_delta_for_epsilon(epsilon)
    # It subtracts two numbers that are nearly alike.
    assert gdp_delta(epsilon, mu) == pytest.approx(expected, rel=1e-6, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("mu", thorough_but([0.1, 1, 2], [0.1, 1, 2, 5]))
@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-2])
def test_epsilon_is_that_of_a_privacy_loss_distribution(mu, delta):
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(1 / mu))
    expected = accountant.get_epsilon(delta)
    assert gdp_epsilon(mu, delta) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.slow
def test_many_releases_are_one_with_the_sum_of_the_squares():
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(3.0), count=7)
    accountant.compose(dp_accounting.GaussianDpEvent(2.0))
    together = np.sqrt(7 / 3**2 + 1 / 2**2)
    expected = accountant.get_epsilon(1e-5)
    assert gdp_epsilon(together, 1e-5) == pytest.approx(expected, rel=1e-3)


def test_noise_as_large_as_the_output_of_one_teacher_costs_epsilon_ten():
    # One changed teacher moves the sum by twice the norm of its output.
    assert gdp_epsilon(2.0, 1e-5) == pytest.approx(10, abs=0.01)


@given(mu=shifts, delta=deltas)
def test_epsilon_gives_its_delta_back(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    if epsilon > 0:
        assert gdp_delta(epsilon, mu) == pytest.approx(delta, rel=1e-4)
    assert gdp_delta(epsilon, mu) <= delta


@given(mu=shifts, factor=st.floats(1.001, 10), delta=deltas, epsilon=epsilons)
def test_more_shift_costs_more_and_more_delta_less(mu, factor, delta, epsilon):
    assert gdp_epsilon(mu * factor, delta) >= gdp_epsilon(mu, delta)
    assert gdp_epsilon(mu, min(delta * factor, 0.9)) <= gdp_epsilon(mu, delta)
    assert gdp_delta(epsilon, mu * factor) >= gdp_delta(epsilon, mu)
    assert gdp_delta(epsilon * factor, mu) <= gdp_delta(epsilon, mu)


def test_ends_of_the_range():
    assert gdp_epsilon(np.inf, 1e-5) == np.inf
    assert gdp_epsilon(0.0, 1e-5) == 0
    assert gdp_epsilon(1e-3, 1e-2) == 0, "such a delta covers everything"
    assert gdp_delta(0.0, 1e-3) == pytest.approx(1e-3 / np.sqrt(2 * np.pi), rel=1e-6)


@pytest.mark.parametrize("delta", [0, 1, -1e-5, np.nan, None])
def test_a_delta_that_is_no_probability_is_refused(delta):
    for call in (gdp_epsilon, largest_gdp_mu):
        with pytest.raises(ValueError, match="delta="):
            call(1.0, delta)


@pytest.mark.parametrize("value", [0, -1, np.nan])
def test_a_parameter_that_is_not_positive_is_refused(value):
    with pytest.raises(ValueError, match="mu="):
        gdp_delta(1.0, value)
    with pytest.raises(ValueError, match="epsilon="):
        largest_gdp_mu(value, 1e-5)
    with pytest.raises(ValueError, match="sigma="):
        gdp_mu(value)


# The way back


@pytest.mark.slow
@given(epsilon=epsilons, delta=st.floats(1e-30, 0.099))
def test_the_largest_shift_within_a_target_reaches_it_from_below(epsilon, delta):
    mu = largest_gdp_mu(epsilon, delta)
    assert epsilon * (1 - 1e-6) < gdp_epsilon(mu, delta) <= epsilon


# Discrete noise


def enumerated_delta(sigma, shift, epsilons):
    """Hockey-stick divergences of two discrete Gaussians, over the whole lattice."""
    # It is symmetric: the sign of a shift is of no consequence.
    law = np.exp(log_law(sigma, int(15 * sigma)))
    here, there = np.ones(()), np.ones(())
    for one in shift:
        here = np.multiply.outer(here, np.pad(law, (0, one)))
        there = np.multiply.outer(there, np.pad(law, (one, 0)))
    return [np.maximum(here - np.exp(e) * there, 0).sum() for e in epsilons]


@pytest.mark.parametrize(
    ("sigma", "shift"),
    [
        (3, (1,)),
        (3, (5,)),
        (4.5, (2,)),
        (20, (20,)),
        (20, (60,)),
        (3, (1, 1)),
        (3, (4, 3)),
        (5, (10, 0)),
        (7.3, (5, 12)),
        (12, (9, 9)),
    ],
)
def test_discrete_noise_costs_no_more_than_the_curve(sigma, shift):
    squared_distance = np.sum(np.square(shift))
    mu = gdp_mu(sigma, squared_distance)
    found = np.linspace(0, gdp_epsilon(mu, 1e-12), 60)
    exact = enumerated_delta(sigma, shift, found)
    charged = [gdp_delta(epsilon, mu) for epsilon in found]
    assert np.all(exact <= np.array(charged))
    # Nor is it charged for noise of another scale.
    nearly = gdp_mu(1.2 * sigma, squared_distance)
    assert np.any(exact > np.array([gdp_delta(epsilon, nearly) for epsilon in found]))


@settings(max_examples=40)
@given(
    sigma=st.floats(1.6, 8),
    shift=st.lists(st.integers(0, 12), min_size=1, max_size=2).filter(any),
    delta=st.floats(1e-10, 0.1),
)
def test_any_shift_on_the_lattice_is_within_its_epsilon_and_delta(sigma, shift, delta):
    epsilon = gdp_epsilon(gdp_mu(sigma, float(np.sum(np.square(shift)))), delta)
    assert enumerated_delta(sigma, shift, [epsilon])[0] <= delta


def test_a_cost_that_ignores_the_lattice_would_be_too_low():
    mu_if_continuous = 1 / 1.0
    found = np.linspace(0, 4, 400)
    exact = enumerated_delta(1.0, (1,), found)
    assert np.any(exact > [gdp_delta(one, mu_if_continuous) for one in found])


def test_much_noise_costs_as_much_as_continuous_noise():
    assert gdp_mu(1000, 2.0) == pytest.approx(np.sqrt(2) / 1000, rel=2e-6)
    assert gdp_mu(10) > gdp_mu(20) > np.sqrt(2) / 20


@pytest.mark.parametrize("sigma", [0.01, 1, 1.5])
def test_tiny_noise_has_an_infinite_cost(sigma):
    assert gdp_mu(sigma) == np.inf
    assert gdp_epsilon(gdp_mu(sigma), 1e-5) == np.inf


@pytest.mark.parametrize("mu", [1e-100, 1e-20, 1e-16, 1e-12, 1e-6])
def test_next_to_no_shift_costs_no_less_than_it_does(mu):
    for delta in DELTAS:
        assert true_delta(gdp_epsilon(mu, delta), mu) <= delta
    for epsilon in (0.0, mu, 5 * mu):
        assert gdp_delta(epsilon, mu) >= true_delta(epsilon, mu) * (1 - 1e-9)


@pytest.mark.parametrize("mu", [1e-300, 1e-155])
def test_delta_is_a_number_where_the_shift_is_next_to_nothing(mu):
    assert gdp_delta(1.0, mu) == 0
    assert gdp_epsilon(mu, 1e-5) == 0


@pytest.mark.parametrize("mu", [1e3, 1e6, 1e50, 1e99])
def test_a_useless_epsilon_is_half_of_the_squared_shift(mu):
    assert gdp_epsilon(mu, 1e-5) == pytest.approx(mu**2 / 2, rel=0.01)
    assert gdp_epsilon(mu, 1e-5) >= mu**2 / 2


def test_a_shift_whose_epsilon_may_overflow_has_an_infinite_one():
    assert gdp_epsilon(1e200, 1e-5) == np.inf

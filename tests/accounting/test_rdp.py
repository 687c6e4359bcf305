import dp_accounting
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.bounds import gaussian_worst_case

sigmas = st.floats(0.5, 500)
deltas = st.floats(1e-12, 1e-2)


@pytest.mark.slow
@given(sigma=sigmas, delta=deltas)
def test_conversion_agrees_with_dp_accounting_on_the_same_curve(sigma, delta):
    curve = gaussian_worst_case(sigma)
    expected, _ = dp_accounting.rdp.compute_epsilon(curve.orders, curve.values, delta)
    assert curve.to_epsilon(delta) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@given(sigma=sigmas, delta=deltas)
def test_classical_conversion_is_never_smaller(sigma, delta):
    curve = gaussian_worst_case(sigma)
    assert curve.to_epsilon(delta, "classical") >= curve.to_epsilon(delta)


@pytest.mark.parametrize(
    ("n_queries", "epsilon"),
    [(40, 0.897), (100, 1.478), (286, 2.642), (500, 3.617), (1000, 5.378)],
)
def test_gaussian_composition_has_its_known_epsilons(n_queries, epsilon):
    curve = gaussian_worst_case(40) * n_queries
    assert curve.to_epsilon(1e-5) == pytest.approx(epsilon, abs=1e-3)


def test_default_orders_lose_little_against_the_best_order():
    def at(orders):
        return (gaussian_worst_case(40, orders) * 1000).to_epsilon(1e-5)

    fine = at(1 + np.geomspace(0.01, 1e4, 200_000))
    assert fine <= at(DEFAULT_ORDERS) <= 1.002 * fine


@pytest.mark.slow
@given(k=st.integers(1, 50), sigma=sigmas)
def test_adding_a_curve_k_times_is_multiplying_by_k(k, sigma):
    curve = gaussian_worst_case(sigma)
    summed = curve
    for _ in range(k - 1):
        summed = summed + curve
    np.testing.assert_allclose(summed.values, (curve * k).values, rtol=1e-12)
    np.testing.assert_array_equal((k * curve).values, (curve * k).values)


def test_zero_times_a_curve_without_a_bound_costs_nothing():
    curve = RdpCurve([2, 3, 4], [np.inf, 1, np.inf]) * 0
    assert curve == RdpCurve([2, 3, 4], [0, 0, 0])


def test_epsilon_is_never_negative():
    assert RdpCurve([2, 30, 400], [0, 0, 0]).to_epsilon(0.5) == 0


def test_a_best_order_at_the_end_warns():
    with pytest.warns(UserWarning, match="at the end of the orders"):
        gaussian_worst_case(100, [2, 3, 4]).to_epsilon(1e-5)


def test_curve_cannot_be_changed_in_place():
    curve = gaussian_worst_case(1)
    with pytest.raises(ValueError, match="read-only"):
        curve.values[0] = 0


def test_curves_of_different_orders_do_not_add():
    with pytest.raises(ValueError, match="different Renyi orders"):
        gaussian_worst_case(1, [2, 3]) + gaussian_worst_case(1, [2, 4])

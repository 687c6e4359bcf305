"""Conversion to replace-one, against laws with known costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.bounds import pure_dp_curve
from sklearn_pate.accounting.composition import add_remove_to_replace_one

ORDERS = DEFAULT_ORDERS[:250]


@pytest.mark.parametrize("rho", [1e-6, 0.01, 1.0, 50.0])
def test_replacing_costs_four_times_removing_with_gaussian_noise(rho):
    curve = add_remove_to_replace_one(RdpCurve(DEFAULT_ORDERS, rho * DEFAULT_ORDERS))
    np.testing.assert_allclose(curve.values[:250], 4 * rho * ORDERS, rtol=0.01)
    assert np.all(curve.values[:250] >= 4 * rho * ORDERS * (1 - 1e-12))


@pytest.mark.slow
@given(epsilon=st.floats(0.01, 5))
def test_replacing_costs_at_most_twice_a_pure_epsilon(epsilon):
    curve = add_remove_to_replace_one(pure_dp_curve(epsilon))
    assert curve.pure_epsilon == 2 * epsilon
    assert np.all(curve.values <= pure_dp_curve(2 * epsilon).values)
    assert curve.values[-1] > 1.9 * epsilon


@pytest.mark.thorough
@given(
    laws=st.lists(
        st.lists(st.floats(0.01, 1), min_size=4, max_size=4), min_size=3, max_size=3
    )
)
def test_random_laws_are_within_the_converted_cost(laws):
    first, middle, last = (np.array(law) / sum(law) for law in laws)

    orders = ORDERS[::5]

    def largest(*pairs):
        return [
            max(
                renyi(order, one, other)
                for pair in pairs
                for one, other in [pair, pair[::-1]]
            )
            for order in orders
        ]

    one_step = RdpCurve(orders, largest((first, middle), (middle, last)))
    true = np.array(largest((first, last)))
    assert np.all(
        add_remove_to_replace_one(one_step).values >= true * (1 - 1e-9) - 1e-12
    )


def renyi(order, first, second):
    log_terms = order * np.log(first) + (1 - order) * np.log(second)
    return max(float(logsumexp(log_terms)) / (order - 1), 0.0)

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.filter import RenyiFilter
from sklearn_pate.mechanisms import GNMax, GumbelMax

BUDGETS = st.tuples(st.floats(0.1, 5), st.sampled_from([1e-6, 1e-3, 0.05]))


def gaussian(rho):
    return RdpCurve(DEFAULT_ORDERS, rho * DEFAULT_ORDERS)


def randomised_response(epsilon, order):
    """The Renyi divergence between a coin of bias e^eps : 1 and its opposite."""
    heads = 1 / (1 + math.exp(-epsilon))
    tails = 1 - heads
    return math.log(
        heads**order * tails ** (1 - order) + tails**order * heads ** (1 - order)
    ) / (order - 1)


@given(BUDGETS, st.lists(st.floats(1e-4, 0.3), min_size=1, max_size=30))
def test_charges_that_are_admitted_add_up_to_the_budget(budget, rhos):
    epsilon, delta = budget
    privacy_filter = RenyiFilter.for_budget(epsilon, delta)
    admitted = []
    for rho in rhos:
        cost = privacy_filter.cost(gaussian(rho))
        if privacy_filter.admits(cost, admitted):
            admitted.append(cost)
    total = gaussian(sum(cost[0] for cost in admitted) / privacy_filter.orders[0])
    assert total.quiet_epsilon(delta) <= epsilon * (1 + 1e-12)


def excess(privacy_filter, epsilon, wishes):
    """Return the exact delta of all transcripts of up to 7 coins at epsilon.

    Each coin's bias is a function of the coins before it. A coin that the filter
    refuses is fair: nothing is released.
    """
    total = 0.0
    for coins in itertools.product((0, 1), repeat=7):
        costs, here, there, node = [], 1.0, 1.0, 0
        for coin in coins:
            cost = [randomised_response(wishes[node], a) for a in privacy_filter.orders]
            heads = 0.5
            if privacy_filter.admits(cost, costs):
                costs.append(cost)
                heads = 1 / (1 + math.exp(-wishes[node]))
            here *= heads if coin == 0 else 1 - heads
            there *= 1 - heads if coin == 0 else heads
            node = 2 * node + 1 + coin
        total += max(here - math.exp(epsilon) * there, 0)
    return total


@settings(max_examples=200)
@given(
    BUDGETS,
    st.sampled_from([None, [3.0], [2.0, 8.0], [1.5, 4.0, 30.0]]),
    st.lists(st.floats(0, 3), min_size=127, max_size=127),
)
def test_whatever_is_asked_next_in_view_of_the_answers_the_budget_holds(
    budget, orders, wishes
):
    epsilon, delta = budget
    try:
        privacy_filter = RenyiFilter.for_budget(epsilon, delta, orders)
    except ValueError:
        return
    assert excess(privacy_filter, epsilon, wishes) <= delta * (1 + 1e-9)


def test_without_a_limit_the_same_questions_break_the_budget():
    unlimited = RenyiFilter((3.0,), (np.inf,))
    assert excess(unlimited, 1.0, [1.0] * 127) > 0.05


@pytest.mark.parametrize("mechanism", [GNMax(), GumbelMax()])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (1, 1e-5), (3, 1e-6)])
def test_the_default_order_holds_a_fit_that_spends_the_whole_budget(
    mechanism, epsilon, delta
):
    ready = mechanism.prepared(
        n_teachers=250, n_queries=100, n_classes=2, epsilon=epsilon, delta=delta
    )
    privacy_filter = RenyiFilter.for_budget(epsilon, delta)
    cost = privacy_filter.cost(ready.account_curve(100, 2))
    assert 0.99 < privacy_filter.shares(cost)[0] <= 1
    assert privacy_filter.admits(cost)


def test_a_curve_without_an_order_is_read_at_the_next_larger_one():
    privacy_filter = RenyiFilter.for_budget(8, 1e-6, [5.0, 20.0])
    assert privacy_filter.cost(RdpCurve([4, 6, 10], [0.1, 0.2, 0.3])) == (0.2, np.inf)


def test_several_orders_share_delta():
    alone = RenyiFilter.for_budget(8, 1e-6, [9.0])
    shared = RenyiFilter.for_budget(8, 1e-6, [9.0, 20.0])
    assert shared.limits[0] == pytest.approx(alone.limits[0] - math.log(2) / 8)


@pytest.mark.parametrize(
    ("epsilon", "delta", "orders"),
    [(1, 1e-6, [30, 1.5]), (1e-6, 1e-6, None), (5e-5, 1e-12, None)],
)
def test_a_budget_that_holds_nothing_is_refused(epsilon, delta, orders):
    with pytest.raises(ValueError, match=r"hold nothing at order .* is not positive"):
        RenyiFilter.for_budget(epsilon, delta, orders)
    with pytest.raises(ValueError, match="must all be positive"):
        RenyiFilter((9.0,), (-1e-9,))


@given(
    st.lists(st.tuples(st.floats(0, 0.2), st.floats(0, 0.2)), min_size=1, max_size=10),
    st.tuples(st.floats(1e-3, 0.2), st.floats(1e-3, 0.2)),
)
def test_what_is_left_is_as_many_charges_as_fit(spent, cost):
    privacy_filter = RenyiFilter((8.0, 64.0), (0.5, 0.7))
    share, left = privacy_filter.shares(cost, spent)
    assert privacy_filter.admits(cost, spent) == (share <= left) or share == (
        pytest.approx(left)
    )
    # Endless charges do not overflow.
    assert not privacy_filter.admits((1.5e308, 1.5e308), [(1.5e308, 1.5e308)])

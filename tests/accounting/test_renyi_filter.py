import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr

from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve, calibrate_noise
from sklearn_pate.accounting.bounds import pure_dp_curve
from sklearn_pate.accounting.composition import RenyiFilter
from sklearn_pate.mechanisms import GNMax, GumbelMax, LNMax, PermuteAndFlip

BUDGETS = st.tuples(st.floats(0.1, 5), st.sampled_from([1e-6, 1e-3, 0.05]))


def gaussian(rho):
    return RdpCurve(DEFAULT_ORDERS, rho * DEFAULT_ORDERS)


def randomised_response(epsilon, order):
    """The Renyi divergence between a coin of bias e^eps : 1 and its opposite."""
    if math.isinf(order):
        return epsilon
    heads = 1 / (1 + math.exp(-epsilon))
    tails = 1 - heads
    return math.log(
        heads**order * tails ** (1 - order) + tails**order * heads ** (1 - order)
    ) / (order - 1)


@pytest.mark.slow
@given(BUDGETS, st.lists(st.floats(1e-4, 0.3), min_size=1, max_size=30))
def test_admitted_costs_add_up_to_the_budget(budget, rhos):
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


@pytest.mark.slow
@settings(max_examples=50)
@given(
    BUDGETS,
    st.sampled_from([None, [3.0], [2.0, 8.0], [1.5, 4.0, 30.0]]),
    st.lists(st.floats(0, 3), min_size=127, max_size=127),
)
def test_the_budget_holds_for_adaptive_releases(budget, orders, wishes):
    epsilon, delta = budget
    try:
        privacy_filter = RenyiFilter.for_budget(epsilon, delta, orders)
    except ValueError:
        return
    assert excess(privacy_filter, epsilon, wishes) <= delta * (1 + 1e-9)


def test_without_a_limit_the_same_queries_break_the_budget():
    unlimited = RenyiFilter((3.0,), (np.inf,))
    assert excess(unlimited, 1.0, [1.0] * 127) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "epsilon", "delta"),
    [
        (GumbelMax(), 0.5, 1e-5),
        (GumbelMax(), 1, 1e-5),
        (GumbelMax(), 3, 1e-6),
        pytest.param(GNMax(), 0.5, 1e-5, marks=pytest.mark.thorough),
        pytest.param(GNMax(), 1, 1e-5, marks=pytest.mark.thorough),
        pytest.param(GNMax(), 3, 1e-6, marks=pytest.mark.thorough),
    ],
)
def test_the_default_order_holds_a_fit_that_spends_the_whole_budget(
    mechanism, epsilon, delta
):
    def curve(scale, orders):
        return mechanism._with_scale(scale).cost(100, 3, orders=orders).curve

    # Noise by the curve, which is what a filter counts.
    scale = calibrate_noise(curve, epsilon=epsilon, delta=delta)
    privacy_filter = RenyiFilter.for_budget(epsilon, delta)
    cost = privacy_filter.cost(curve(scale, DEFAULT_ORDERS))
    assert 0.99 < privacy_filter.budget_fractions(cost)[0] <= 1
    assert privacy_filter.admits(cost)


def test_a_curve_without_an_order_is_read_at_the_next_larger_one():
    privacy_filter = RenyiFilter.for_budget(8, 1e-6, [5.0, 20.0])
    values = [0.1, 0.2, 0.3]
    none_known = RdpCurve([4, 6, 10], values)
    assert privacy_filter.cost(none_known) == (0.2, np.inf, np.inf)
    pure = RdpCurve([4, 6, 10], values, pure_epsilon=0.4)
    assert privacy_filter.cost(pure) == (0.2, 0.4, 0.4)


def test_several_orders_share_delta():
    alone = RenyiFilter.for_budget(8, 1e-6, [9.0])
    shared = RenyiFilter.for_budget(8, 1e-6, [9.0, 20.0])
    assert shared.limits[0] == pytest.approx(alone.limits[0] - math.log(2) / 8)


@pytest.mark.parametrize(
    ("epsilon", "delta", "orders"),
    [(1, 1e-6, [30, 1.5]), (1e-6, 1e-6, None), (5e-5, 1e-12, None)],
)
def test_a_budget_that_admits_no_release_is_refused(epsilon, delta, orders):
    with pytest.raises(
        ValueError, match=r"allow no release at Renyi order .*; use larger orders"
    ):
        RenyiFilter.for_budget(epsilon, delta, orders)
    with pytest.raises(ValueError, match="must all be positive"):
        RenyiFilter((9.0,), (-1e-9,))


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.floats(0, 0.2), st.floats(0, 0.2)), min_size=1, max_size=10),
    st.tuples(st.floats(1e-3, 0.2), st.floats(1e-3, 0.2)),
)
def test_the_fraction_left_gives_the_number_of_costs_that_fit(spent, cost):
    privacy_filter = RenyiFilter((8.0, 64.0), (0.5, 0.7))
    share, left = privacy_filter.budget_fractions(cost, spent)
    assert privacy_filter.admits(cost, spent) == (share <= left) or share == (
        pytest.approx(left)
    )
    # Infinite costs do not overflow.
    assert not privacy_filter.admits((1.5e308, 1.5e308), [(1.5e308, 1.5e308)])


CUTS = np.array([-1.0, 0.5, 2.0])


def rounded_normal(mean):
    """Law of a normal number that is rounded by three cuts."""
    below = np.concatenate([[0], ndtr(CUTS - mean), [1]])
    return np.diff(below)


def release(privacy_filter, wish):
    """Return the laws of what is wished for under both data sets, and its cost."""
    is_pure, size = wish
    if is_pure:
        heads = 1 / (1 + math.exp(-size))
        laws = np.array([heads, 1 - heads]), np.array([1 - heads, heads])
        return *laws, privacy_filter.cost(pure_dp_curve(size))
    cost = privacy_filter.cost(gaussian(size**2 / 2))
    return rounded_normal(0.0), rounded_normal(size), cost


def largest_excess(privacy_filter, epsilon, wishes, depth):
    """Return the exact delta at epsilon of releases chosen in view of those before."""
    return excesses(privacy_filter, epsilon, wishes, depth, ([], 1.0, 1.0)).max()


def excesses(privacy_filter, epsilon, wishes, depth, before):
    """Return the exact delta at epsilon in both directions.

    `before` has the costs of earlier releases and the probabilities of their results.
    """

    def walk(node, left, spent, here, there):
        if left == 0:
            return np.maximum(
                [here - math.exp(epsilon) * there, there - math.exp(epsilon) * here], 0
            )
        one, other, cost = release(privacy_filter, wishes[node % len(wishes)])
        if not privacy_filter.admits(cost, spent):  # nothing is released
            return walk(4 * node + 1, left - 1, spent, here, there)
        return sum(
            walk(4 * node + 1 + seen, left - 1, [*spent, cost], here * p, there * q)
            for seen, (p, q) in enumerate(zip(one, other, strict=True))
        )

    spent, here, there = before
    return walk(0, depth, spent, here, there)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    BUDGETS,
    st.sampled_from([None, [2.0, 8.0]]),
    st.lists(st.tuples(st.booleans(), st.floats(0.01, 2.5)), min_size=1, max_size=60),
)
def test_adaptive_pure_and_other_releases_are_within_the_budget(budget, orders, wishes):
    epsilon, delta = budget
    try:
        privacy_filter = RenyiFilter.for_budget(epsilon, delta, orders)
    except ValueError:
        return
    assert largest_excess(privacy_filter, epsilon, wishes, 4) <= delta * (1 + 1e-9)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    BUDGETS,
    st.sampled_from([None, [2.0, 8.0]]),
    st.floats(0.01, 1.0),
    st.floats(0.01, 0.99),
    st.lists(st.tuples(st.booleans(), st.floats(0.01, 2.5)), min_size=1, max_size=60),
)
def test_releases_after_a_pair_are_within_what_it_leaves(
    budget, orders, size, share, wishes
):
    """The pair reveals the data set with probability delta, or is a biased coin."""
    epsilon, delta = budget
    of_pair = share * delta
    left = (delta - of_pair) / (1 - of_pair)
    try:
        privacy_filter = RenyiFilter.for_budget(epsilon, left, orders)
    except ValueError:
        return
    one, other, cost = release(privacy_filter, (True, size * epsilon))
    excess = of_pair * np.ones(2)
    for i, (p, q) in enumerate(zip(one, other, strict=True)):
        before = [cost], (1 - of_pair) * p, (1 - of_pair) * q
        later = wishes[i:] + wishes[:i]
        excess += excesses(privacy_filter, epsilon, later, 3, before)
    assert excess.max() <= delta * (1 + 1e-9)


def worst_law(epsilon, order, limit):
    """Return two outcomes with this divergence whose delta at epsilon is largest."""
    ratio = order / (order - 1) * math.exp(epsilon)

    def laws(rare):
        there = np.array([rare, 1 - rare])
        here = np.array([rare * ratio, 1 - rare * ratio])
        return here, there

    def excess(rare):
        here, there = laws(rare)
        return math.log(np.sum(here**order * there ** (1 - order))) / (order - 1)

    return laws(brentq(lambda rare: excess(rare) - limit, 1e-12, 1 / ratio))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_pair_that_took_no_delta_would_break_the_budget(share):
    epsilon, delta, order = 6.0, 0.05, 2.0
    of_pair = share * delta
    left = (delta - of_pair) / (1 - of_pair)
    total = {}
    for rest in (left, delta):
        limit, _ = RenyiFilter.for_budget(epsilon, rest, [order]).limits
        here, there = worst_law(epsilon, order, limit)
        excess = np.maximum(here - math.exp(epsilon) * there, 0).sum()
        total[rest] = of_pair + (1 - of_pair) * excess
    assert 0.98 * delta < total[left] <= delta < total[delta]


def test_pure_releases_alone_fill_the_budget_and_use_no_delta():
    privacy_filter = RenyiFilter.for_budget(2, 1e-6)
    coins = [(True, 0.5)]
    assert largest_excess(privacy_filter, 2, coins, 7) < 1e-15
    assert largest_excess(privacy_filter, 1.9, coins, 7) > 0.005


def test_a_pure_sum_beside_a_renyi_sum_would_break_the_budget():
    """Each within the budget on its own: both together are not."""

    class Careless(RenyiFilter):
        def admits(self, cost, spent=()):
            pure = [one for one in [*spent, cost] if one[-1] < np.inf]
            others = [one for one in [*spent, cost] if one[-1] == np.inf]
            return (
                sum(one[-1] for one in pure) <= self.limits[-1]
                and sum(one[0] for one in others) <= self.limits[0]
            )

    careless = Careless.for_budget(2, 1e-3)
    wishes = [(True, 1.0)] * 5 + [(False, 0.5)] * 80
    assert largest_excess(careless, 2, wishes, 4) > 1e-2


@pytest.mark.parametrize("seed", range(4))
def test_admitted_releases_compose_within_the_budget_by_privacy_loss_distributions(
    seed,
):
    rng = np.random.default_rng(seed)
    epsilon, delta, step = 2.0, 1e-3, 1e-2
    privacy_filter = RenyiFilter.for_budget(epsilon, delta)
    admitted, together = [], pld.identity(value_discretization_interval=step)
    for size in rng.uniform(0.05, 0.6, size=30):
        # All pure, or mixed with Gaussian noise, or nearly all Gaussian noise.
        is_pure = rng.random() < (1, 0.7, 0.3, 0)[seed]
        curve = pure_dp_curve(size) if is_pure else gaussian(size**2 / 2)
        cost = privacy_filter.cost(curve)
        if not privacy_filter.admits(cost, admitted):
            continue
        admitted.append(cost)
        one = (
            pld.from_randomized_response(
                2 / (1 + math.exp(size)), 2, value_discretization_interval=step
            )
            if is_pure
            else pld.from_gaussian_mechanism(
                1 / size, value_discretization_interval=step
            )
        )
        together = together.compose(one)
    assert 3 <= len(admitted) < 30
    # Each privacy loss is rounded to a multiple of the step.
    rounding = step * (len(admitted) + 1)
    assert together.get_epsilon_for_delta(delta) <= epsilon + rounding


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [LNMax(0.3), GumbelMax(0.3), PermuteAndFlip(0.3), LNMax(2.0)]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_pure_epsilon_of_an_answer_bounds_every_likelihood_ratio(
    mechanism, n_classes
):
    stated = mechanism.cost(1, n_classes).curve.pure_epsilon
    largest = 0.0
    for counts in itertools.product((0, 1, 2, 20), repeat=n_classes):
        law = exact_law(mechanism, counts)
        for c, d in itertools.permutations(range(n_classes), 2):
            if counts[c]:
                moved = np.array(counts)
                moved[[c, d]] += [-1, 1]
                ratio = np.log(law) - np.log(exact_law(mechanism, moved))
                largest = max(largest, np.abs(ratio).max())
    assert 0.7 * stated < largest <= stated * (1 + 1e-9)
    assert np.all(mechanism.cost(1, n_classes).curve.values <= stated * (1 + 1e-9))


def exact_law(mechanism, counts):
    values, place, sizes = np.unique(counts, return_inverse=True, return_counts=True)
    of_value = mechanism._plurality().log_probabilities(
        values[np.newaxis].astype(float), sizes[np.newaxis].astype(float)
    )
    return np.exp(of_value[0, place])


@pytest.mark.slow
def test_no_pure_epsilon_is_known_of_gaussian_noise():
    assert GNMax(1.0).cost(1, 3).curve.pure_epsilon == np.inf
    both = LNMax(0.1).cost(1, 3).curve + GNMax(1.0).cost(1, 3).curve
    assert both.pure_epsilon == np.inf

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pate.accounting import DEFAULT_ORDERS, local_cost, tight_laplace_worst_case
from sklearn_pate.accounting.bounds import laplace_worst_case, pure_dp_curve
from tests.cases import thorough_but
from tests.private import DiscreteLaplace, LaplacePlurality

GAMMAS = (0.02, 0.1, 0.5, 1.0, 2.0)
ORDERS = np.array([1.01, 1.5, 2, 3.7, 8, 16, 33, 64, 200, 1000])
# What is certified lies at most this far above what is reached.
SLACK = 3e-4
LARGE_SLACK = 7e-3

# With much noise, the search of larger orders takes seconds: few of them.
NOISY_ORDERS = np.append(DEFAULT_ORDERS[:150], DEFAULT_ORDERS[150::30])

by_gamma = pytest.mark.parametrize("gamma", GAMMAS)


def whole_curve(gamma, n_classes):
    orders = DEFAULT_ORDERS if gamma >= 0.1 else NOISY_ORDERS
    return tight_laplace_worst_case(gamma, n_classes, orders)


def bound(gamma, order, n_classes=3):
    return tight_laplace_worst_case(gamma, n_classes, [order]).values[0]


def mass_and_tail(gamma, points):
    """Pr[Z = z] and Pr[Z <= z], with terms summed, not subtracted."""
    mass = np.tanh(gamma / 2) * np.exp(-gamma * np.abs(points))
    return mass, np.cumsum(mass)


@lru_cache
def laws(gamma, reach, ties, threshold="geometric"):
    """ln Pr[c, d, neither] for leads from -reach to reach, by summation.

    `ties` is 1 if d loses its ties with the threshold; c wins all of its own.
    """
    furthest = reach + int(60 / gamma)
    mass, tail = mass_and_tail(
        gamma, np.arange(-furthest - reach, furthest + reach + 1)
    )
    zero = furthest + reach
    leads = np.arange(-reach, reach + 1)
    votes = np.arange(furthest + 1)
    heights = -np.expm1(-gamma) * np.exp(-gamma * votes)
    if threshold == "none above 0":
        heights = (votes == 0).astype(float)
    reached = np.cumsum(heights)
    away = zero + votes - leads[:, None]
    c_wins = (mass[away] * reached) @ tail[away].T
    passed = reached if ties == 0 else np.append(0, reached[:-1])
    d_wins = tail[away - 1] @ (mass[away] * passed).T
    neither = (tail[away - 1] * heights) @ tail[away - 1 + ties].T
    return np.log(np.stack([c_wins, d_wins, neither], axis=-1))


def divergence(log_p, log_q, order):
    """D_a(P || Q) over the last axis, without cancellation."""
    r = log_p - log_q
    excess = np.expm1(order * r) - order * np.expm1(r)
    return np.log1p(np.sum(np.exp(log_q) * excess, axis=-1)) / (order - 1)


def both_ways(before, after, order):
    return np.maximum(
        divergence(before, after, order), divergence(after, before, order)
    )


def largest_in_window(gamma, reach, order):
    return max(
        both_ways(law[1:, :-1], law[:-1, 1:], order).max()
        for law in (laws(gamma, reach, ties) for ties in (0, 1))
    )


# The reduction and the lemmas that the search rests on.


@by_gamma
@pytest.mark.parametrize("counts", [[9, 9], [3, 20, 21], [0, 0, 0, 0, 40]])
def test_the_best_of_the_others_has_a_geometric_part(gamma, counts):
    """Pr[M = m, k] never falls faster than by e^-gamma, the first class wins ties."""
    m = np.arange(-60, 120)
    noise = DiscreteLaplace(gamma)
    for k, count in enumerate(counts):
        log_p = noise.log_pmf(m - count)
        for j, other in enumerate(counts):
            if j != k:
                log_p = log_p + noise.log_cdf(m - other - (j < k))
        assert np.diff(log_p).min() >= -gamma - 1e-12


@pytest.mark.parametrize("gamma", [0.1, 1.0])
@pytest.mark.parametrize("ties", [0, 1])
def test_higher_leads_mix_three_laws(gamma, ties):
    law, fixed = (
        np.exp(laws(gamma, 150, ties, kind)) for kind in ("geometric", "none above 0")
    )
    q = np.exp(-gamma)
    for x, y in ((1, 1), (3, 7), (12, 2)):
        for s in (1, 5, 20):
            # Far above, two classes are alone.
            c_wins = fixed[285 + x, 285 + y, 0]
            alone = np.array([c_wins, 1 - c_wins, 0])
            mixed = q**s * law[150 + x, 150 + y]
            mixed += q ** (s + 1) * (1 - q**s) * fixed[150 + x, 150 + y]
            mixed += (1 - q**s) * (1 - q ** (s + 1)) * alone
            at = 150 + s
            np.testing.assert_allclose(law[at + x, at + y], mixed, atol=1e-10)


@by_gamma
@pytest.mark.parametrize("ties", [0, 1])
def test_every_log_ratio_falls_in_the_lead_of_c_and_rises_in_that_of_d(gamma, ties):
    law = laws(gamma, 120, ties)
    log_ratio = law[1:, :-1] - law[:-1, 1:]
    assert np.diff(log_ratio, axis=0).max() < 1e-12
    assert np.diff(log_ratio, axis=1).min() > -1e-12
    # c can only lose by the move, and d only gain.
    assert log_ratio[..., 0].min() > -1e-12
    assert log_ratio[..., 1].max() < 1e-12


@pytest.mark.parametrize("order", [1.01, 1.5, 4, 40])
def test_the_summand_is_worst_at_an_end_and_on_the_positive_side(order):
    r = np.linspace(0, 3, 301)

    def g(r):
        return np.expm1(order * r) - order * np.expm1(r)

    assert np.all(np.diff(g(r)) >= 0)
    assert np.all(np.diff(g(-r)) >= -1e-15)
    assert np.all(g(r) >= g(-r))


# Nothing lies above the bound.


@pytest.mark.thorough
@settings(deadline=None, max_examples=100)
@given(
    gamma=st.sampled_from(GAMMAS),
    order=st.sampled_from(ORDERS),
    ties=st.sampled_from([0, 1]),
    x=st.integers(-119, 120),
    y=st.integers(-120, 119),
)
def test_no_pair_of_leads_costs_more(gamma, order, ties, x, y):
    law = laws(gamma, 120, ties)
    if 2 * gamma * order > 600:  # beyond float64
        order = 300 / gamma
    cost = both_ways(law[x + 120, y + 120], law[x + 119, y + 121], order)
    assert cost <= bound(gamma, order)


@pytest.mark.thorough
@settings(deadline=None, max_examples=40)
@given(
    gamma=st.sampled_from([0.02, 0.05, 0.1, 0.3, 1.0, 2.0]),
    counts=st.lists(st.integers(0, 40), min_size=2, max_size=20),
)
def test_no_votes_cost_more(gamma, counts):
    orders = ORDERS[:8]
    cost = local_cost(LaplacePlurality(gamma), [counts], orders).values
    tight = tight_laplace_worst_case(gamma, len(counts), orders).values
    assert np.all(cost <= tight * (1 + 1e-9))


@pytest.mark.slow
@by_gamma
def test_no_votes_near_a_tie_cost_more(gamma):
    votes = [
        [50, 50 + a, *[50 + b] * others]
        for a in range(-12, 1, 3)
        for b in range(-40, 30, 5)
        for others in (1, 2, 8)
    ]
    for counts in votes:
        cost = local_cost(LaplacePlurality(gamma), [counts], [1.5, 4, 16])
        tight = tight_laplace_worst_case(gamma, len(counts), [1.5, 4, 16])
        assert np.all(cost.values <= tight.values)


@pytest.mark.slow
def test_two_classes_have_the_cost_of_the_worst_gap():
    gamma = 0.1
    # Far above the threshold, two classes are alone.
    law = laws(gamma, 500, 0, "none above 0")
    before, after = law[601:1000, 800, :2], law[600:999, 801, :2]
    for order in (1.1, 2, 10, 50, 300):
        reached = both_ways(before, after, order).max()
        assert reached <= bound(gamma, order, 2) * (1 + 1e-9)
        assert bound(gamma, order, 2) <= reached * (1 + SLACK)


# It is close.


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.1, 0.5])
@pytest.mark.parametrize("order", DEFAULT_ORDERS[::32][:8])
def test_the_bound_is_reached(gamma, order):
    reached = largest_in_window(gamma, 140, order)
    assert reached <= bound(gamma, order) <= reached * (1 + SLACK)


@pytest.mark.slow
@pytest.mark.parametrize("order", [2.5, 6.0, 19.0, 77.0])
def test_orders_between_those_searched_lose_little(order):
    reached = largest_in_window(0.1, 140, order)
    assert reached <= bound(0.1, order) <= reached * 1.002


@pytest.mark.slow
@pytest.mark.parametrize("gamma", thorough_but([0.05, 0.1], [1 / 180, 0.02, 0.05, 0.1]))
def test_a_tie_of_two_costs_it_with_much_noise(gamma):
    """At the orders that decide about 30 answers and more."""
    orders = [1.1, 2, 3, 0.4 / gamma]
    counts = [[int(20 / gamma) + 1, int(20 / gamma), 0, 0, 0, 0, 0, 0, 0, 0]]
    cost = local_cost(LaplacePlurality(gamma), counts, orders).values
    assert np.all(tight_laplace_worst_case(gamma, 10, orders).values <= cost * 1.015)


# Against the classical bounds.


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize(
    "gamma", thorough_but([0.1, 0.5, 2.0], [1e-3, 1 / 180, 0.05, 0.1, 0.5, 2.0])
)
def test_never_above_the_classical_bound(gamma, n_classes):
    tight = whole_curve(gamma, n_classes)
    assert np.all(tight.values <= laplace_worst_case(gamma, tight.orders).values)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("gamma", [1e-7, 1e-3, 2.0, 20.0, 140.0, 1e3])
def test_never_above_the_classical_bounds_of_discrete_noise(gamma, n_classes):
    tight = whole_curve(gamma, n_classes)
    assert np.all(tight.values > 0)
    assert np.all(tight.values <= 2 * pure_dp_curve(gamma, tight.orders).values)
    assert np.all(tight.values <= pure_dp_curve(2 * gamma, tight.orders).values)


@by_gamma
def test_one_discrete_count_costs_more_than_a_continuous_one(gamma):
    """Which is why the bound for continuous noise is no bound for this one."""
    z = np.arange(-2000, 2000)
    noise = DiscreteLaplace(gamma)
    order = 3.0
    cost = divergence(noise.log_pmf(z), noise.log_pmf(z - 1), order)
    assert cost == pytest.approx(pure_dp_curve(gamma, [order]).values[0], rel=1e-9)
    one_continuous = (
        np.logaddexp(np.log(3 / 5) + 2 * gamma, np.log(2 / 5) - 3 * gamma) / 2
    )
    assert cost > one_continuous


@pytest.mark.thorough
def test_two_classes_cost_no_more_than_many():
    for gamma in GAMMAS:
        two, three = (whole_curve(gamma, n_classes).values for n_classes in (2, 3))
        assert np.all(two <= three)


@pytest.mark.slow
def test_the_number_of_other_classes_does_not_matter():
    assert tight_laplace_worst_case(0.5, 3) == tight_laplace_worst_case(0.5, 1000)


# The shape of the curve.


@pytest.mark.slow
@pytest.mark.parametrize("gamma", thorough_but([2.0], [1e-3, 0.05, 2.0]))
def test_a_larger_order_never_costs_less(gamma):
    default = whole_curve(gamma, 3).orders
    orders = np.concatenate([[1.001, 1.005], default[:-1] + 0.001])
    if gamma >= 0.1:
        orders = np.append(orders, [1e6, 1e9])
    values = tight_laplace_worst_case(gamma, 3, orders).values
    assert np.all(np.diff(values) >= -1e-12 * values[1:])


@pytest.mark.thorough
def test_more_noise_never_costs_more():
    gammas = [1e-3, 1 / 180, 0.02, 0.05, 0.051, 0.1, 0.11, 0.5, 0.6, 1, 2, 3]
    values = [
        tight_laplace_worst_case(gamma, 3, NOISY_ORDERS).values for gamma in gammas
    ]
    for less, more in pairwise(values):
        assert np.all(less <= more * (1 + LARGE_SLACK))


@pytest.mark.parametrize("gamma", [1e-2, 0.1, 2.0])
def test_the_curve_goes_on_where_the_search_ends(gamma):
    end = 300 / gamma
    values = tight_laplace_worst_case(gamma, 3, [0.8 * end, end, 1.25 * end]).values
    assert np.all(values <= 2 * gamma)
    assert np.all(values[1:] <= values[:-1] * 1.02)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("gamma", "places"),
    # With much noise, every second order is searched: also the ends of blocks of 32.
    [(0.1, (0, 100, 200, 384)), (1e-3, (0, 31, 64, 95, 127))],
)
def test_a_value_does_not_depend_on_the_other_orders(gamma, places):
    orders = DEFAULT_ORDERS[: places[-1] + 9]
    together = tight_laplace_worst_case(gamma, 3, orders).values
    for i in places:
        alone = bound(gamma, DEFAULT_ORDERS[i])
        assert alone == pytest.approx(together[i], rel=1e-12)

from functools import lru_cache, partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pate.accounting import (
    DEFAULT_ORDERS,
    tight_gaussian_worst_case,
    tight_threshold_worst_case,
)
from sklearn_pate.accounting.bounds import gaussian_worst_case, threshold_worst_case

ORDERS = np.array([1.2, 1.6, 2, 3.3, 6, 12, 30, 100])
SIGMAS = (0.4, 0.7, 1.0, 3.0, 8.0, 20.0, 41.9, 42.1, 60.0, 100.0)


class Noise:
    """The discrete Gaussian as plain sums over whole numbers."""

    def __init__(self, sigma):
        self.reach = int(38 * sigma) + 2
        z = np.arange(-self.reach, self.reach + 1)
        mass = np.exp(-(z**2) / (2 * sigma**2))
        self.mass = mass / mass.sum()
        self.below = np.cumsum(self.mass)

    def p(self, z):
        inside = np.abs(z) <= self.reach
        return np.where(inside, self.mass[np.where(inside, z, 0) + self.reach], 0.0)

    def cdf(self, z):
        z = np.clip(z, -self.reach - 1, self.reach)
        return np.where(z >= -self.reach, self.below[z + self.reach], 0.0)


@lru_cache
def noise(sigma):
    return Noise(sigma)


def three_outcomes(sigma, x, y, priority):
    """Pr[c wins], Pr[d wins], Pr[neither], for all leads of two arrays.

    `priority` lists "c", "d" and "m", the threshold at 0, best first: who wins ties.
    """
    law, rank = noise(sigma), {name: priority.index(name) for name in "cdm"}
    c_over_d, d_over_c = rank["c"] < rank["d"], rank["d"] < rank["c"]
    t = np.arange(0, int(max(x.max(), y.max(), 0) + 12 * sigma) + 2)
    c_from, d_from = int(rank["c"] > rank["m"]), int(rank["d"] > rank["m"])
    # c is at t, which beats the threshold, and d at most there.
    at_c = law.p(t[:, None] - x) * (t >= c_from)[:, None]
    c_wins = at_c.T @ law.cdf(t[:, None] - y - d_over_c)
    at_d = law.p(t[:, None] - y) * (t >= d_from)[:, None]
    d_wins = (at_d.T @ law.cdf(t[:, None] - x - c_over_d)).T
    neither = law.cdf(c_from - 1 - x)[:, None] * law.cdf(d_from - 1 - y)
    return np.stack([c_wins, d_wins, neither], axis=-1)


def divergence(p, q, order):
    with np.errstate(over="ignore", invalid="ignore"):
        r = np.log(p) - np.log(q)
        moment = np.sum(q * (np.expm1(order * r) - order * np.expm1(r)), axis=-1)
    # What float64 cannot hold is left out: the tests look for the largest.
    return np.log1p(np.nan_to_num(moment, nan=0, posinf=0)) / (order - 1)


def costs_of_leads(sigma, x, y, orders, priorities=("cdm", "cmd")):
    """The largest divergence of moving a vote from c to d, both ways, by order."""
    x, y = np.asarray(x), np.asarray(y)
    worst = np.zeros(len(orders))
    for priority in priorities:
        before = three_outcomes(sigma, x, y, priority)
        after = three_outcomes(sigma, x - 1, y + 1, priority)
        kept = np.minimum(before, after).min(axis=-1) > 1e-290
        before, after = before[kept], after[kept]
        if before.size:
            for i, order in enumerate(orders):
                both = (
                    divergence(before, after, order).max(),
                    divergence(after, before, order).max(),
                )
                worst[i] = max(worst[i], *both)
    return worst


def costs_of_gaps(sigma, gaps, orders):
    """The same of two classes alone, c being ahead by each gap and winning ties."""
    law = noise(sigma)
    z = np.arange(-law.reach, law.reach + 1)

    def two(gaps):
        c_wins = law.mass @ law.cdf(z[:, None] + gaps)
        d_wins = law.mass @ law.cdf(z[:, None] - 1 - gaps)
        return np.stack([c_wins, d_wins], axis=-1)

    before, after = two(gaps), two(gaps - 2)
    kept = np.minimum(before, after).min(axis=-1) > 1e-290
    return [
        max(
            divergence(before[kept], after[kept], order).max(),
            divergence(after[kept], before[kept], order).max(),
        )
        for order in orders
    ]


def test_three_outcomes_of_this_module_are_a_law():
    # Against a sum over all noisy counts of c and d, number by number.
    sigma, x, y = 1.3, 2, -1
    z = np.arange(-30, 31)
    c, d = np.meshgrid(z, z, indexing="ij")
    mass = noise(sigma).p(c - x) * noise(sigma).p(d - y)
    rank = {"m": 0, "d": 1, "c": 2}
    ahead = np.stack([c, d, 0 * c]) - 0.1 * np.array(
        [rank["c"], rank["d"], rank["m"]]
    ).reshape(3, 1, 1)
    winner = ahead.argmax(axis=0)
    expected = [mass[winner == i].sum() for i in range(3)]
    found = three_outcomes(sigma, np.array([x]), np.array([y]), "mdc")[0, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert found.sum() == pytest.approx(1, rel=1e-13)


# Nothing exceeds the bound


@pytest.mark.thorough
@settings(deadline=None, max_examples=150)
@given(
    sigma=st.sampled_from(SIGMAS),
    x=st.floats(-6, 12),
    y=st.floats(-6, 12),
    near=st.booleans(),
    priority=st.permutations("cdm"),
)
def test_no_leads_and_no_rule_for_ties_exceed_the_tight_worst_case(
    sigma, x, y, near, priority
):
    if near:  # to the ridge, where c and d are about equal
        y = x + (y - x) / 20
    x, y = (np.array([round(lead * sigma)]) for lead in (x, y))
    worst = costs_of_leads(sigma, x, y, ORDERS, ["".join(priority)])
    tight = tight_gaussian_worst_case(sigma, 10, ORDERS).values
    assert np.all(worst <= tight * (1 + 1e-9) + 1e-15)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(sigma=st.sampled_from(SIGMAS), gap=st.floats(-12, 12))
def test_no_gap_exceeds_the_tight_worst_case_of_two_classes(sigma, gap):
    worst = costs_of_gaps(sigma, np.array([round(gap * sigma)]), ORDERS)
    tight = tight_gaussian_worst_case(sigma, 2, ORDERS).values
    assert np.all(worst <= tight * (1 + 1e-9) + 1e-15)


# It is tight


@pytest.mark.parametrize("sigma", [1.5, 3.0, 8.0])
def test_it_is_reached_by_whole_leads_under_little_noise(sigma):
    orders = np.array([1.6, 2, 4, 8, 16, 30])
    orders = orders[orders <= 4 * sigma]
    leads = np.arange(int(-8 * sigma - 40), int(8 * sigma + 80))
    reached = costs_of_leads(sigma, leads, leads, orders)
    one_count = threshold_worst_case(sigma, orders).values  # abstentions
    found = tight_gaussian_worst_case(sigma, 3, orders).values
    np.testing.assert_allclose(found, np.maximum(reached, one_count), rtol=1e-6)
    assert np.all(found >= reached)


@pytest.mark.parametrize("sigma", [1.5, 8.0, 30.0])
def test_two_classes_reach_theirs(sigma):
    orders = np.array([1.6, 2, 4, 8, 16, 30, 90])
    orders = orders[orders <= 4 * sigma]
    gaps = np.arange(-int(8 * sigma + 200), int(8 * sigma + 200))
    reached = costs_of_gaps(sigma, gaps, orders)
    one_count = threshold_worst_case(sigma, orders).values
    found = tight_gaussian_worst_case(sigma, 2, orders).values
    reached = np.maximum(reached, one_count)
    assert np.all(found >= reached * (1 - 1e-12))
    np.testing.assert_allclose(found, reached, rtol=1e-6 if sigma < 24 else 0.01)


@pytest.mark.parametrize("sigma", [1.5, 8.0, 30.0, 60.0, 100.0])
def test_a_check_reaches_its_tight_worst_case(sigma):
    orders = np.array([1.6, 2, 4, 8, 16, 30, 90])
    orders = orders[orders <= 4 * sigma]
    law, lead = noise(sigma), np.arange(-int(5 * sigma + 90), int(5 * sigma + 90))
    before, after = (
        np.stack([law.cdf(x), law.cdf(-1 - x)], axis=-1) for x in (lead, lead - 1)
    )
    kept = np.minimum(before, after).min(axis=-1) > 1e-290
    before, after = before[kept], after[kept]
    reached = [
        max(
            divergence(before, after, order).max(),
            divergence(after, before, order).max(),
        )
        for order in orders
    ]
    found = tight_threshold_worst_case(sigma, orders).values
    assert np.all(found >= np.array(reached) * (1 - 1e-12))
    np.testing.assert_allclose(found, reached, rtol=1e-6 if sigma < 24 else 0.01)


@pytest.mark.slow
def test_the_coarse_lattice_is_close_above_every_whole_lead():
    # From sigma = 42 on, the search goes over every few votes.
    sigma, orders = 60.0, np.array([2.0, 8, 20, 40, 80])
    reached = np.zeros(orders.size)
    # Near the ridge, in blocks; the ridge goes from far below to far above.
    for start in range(-240, 600, 60):
        block = np.arange(start, start + 60)
        wide = np.arange(start - 60, start + 120)
        reached = np.maximum(reached, costs_of_leads(sigma, block, wide, orders))
    found = tight_gaussian_worst_case(sigma, 5, orders).values
    assert np.all(found >= reached)
    np.testing.assert_allclose(found, reached, rtol=0.01)


# Values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "epsilons"),
    [
        (40.0, [0.707, 1.161, 2.058, 2.808, 4.153]),
        (100.0, [0.262, 0.430, 0.756, 1.024, 1.494]),
    ],
)
def test_epsilons_of_many_answers(sigma, epsilons):
    curve = tight_gaussian_worst_case(sigma, 10)
    found = [(curve * k).to_epsilon(1e-5) for k in (40, 100, 286, 500, 1000)]
    np.testing.assert_allclose(found, epsilons, rtol=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_queries", "n_answers", "sigmas", "epsilon"),
    [(640, 286, (150.0, 40.0), 2.15), (1500, 524, (200.0, 40.0), 2.97)],
)
def test_epsilons_of_capped_confident_answers(n_queries, n_answers, sigmas, epsilon):
    checks = tight_threshold_worst_case(sigmas[0]) * n_queries
    answers = tight_gaussian_worst_case(sigmas[1], 10) * n_answers
    assert (checks + answers).to_epsilon(1e-5) == pytest.approx(epsilon, rel=0.01)


@pytest.mark.parametrize("sigma", [25.0, 40.0, 100.0, 1000.0])
def test_it_is_two_over_pi_of_the_classical_worst_case_at_small_orders(sigma):
    # The two-way tie, while the order is small beside sigma.
    orders = np.array([2.0, 3.0])
    share = tight_gaussian_worst_case(sigma, 10, orders).values / (orders / sigma**2)
    np.testing.assert_allclose(share, 2 / np.pi, rtol=0.03)
    share = tight_threshold_worst_case(sigma, orders).values / (orders / sigma**2)
    np.testing.assert_allclose(share, 1 / np.pi, rtol=0.03)


# As curves


@pytest.mark.slow
@pytest.mark.parametrize(
    "sigma", [0.05, 0.2, 0.3, 0.5, 1, 2.2, 5, 15, 31.9, 32, 64, 250, 3000, 1e5]
)
def test_every_noise_has_a_curve_between_one_count_and_the_classical(sigma):
    # Warnings are errors.
    orders = DEFAULT_ORDERS[::24]
    plane = tight_gaussian_worst_case(sigma, 10, orders).values
    line = tight_gaussian_worst_case(sigma, 2, orders).values
    alone = tight_threshold_worst_case(sigma, orders).values
    classical = gaussian_worst_case(sigma, orders).values
    for values in (plane, line, alone):
        assert np.all(np.isfinite(values))
        assert np.all(values > 0)
        assert np.all(np.diff(values) >= 0)
    assert np.all(alone <= threshold_worst_case(sigma, orders).values)
    assert np.all(plane <= classical)
    # Up to the slack of the plane, two classes cost no more than ten.
    assert np.all(line <= plane * 1.005)


@pytest.mark.parametrize("sigma", [0.7, 8.0, 40.0, 100.0])
def test_large_orders_have_the_classical_cost(sigma):
    orders = sigma * np.array([4.01, 10, 1000])
    for n_classes in (2, 10):
        found = tight_gaussian_worst_case(sigma, n_classes, orders).values
        np.testing.assert_array_equal(found, gaussian_worst_case(sigma, orders).values)
    found = tight_threshold_worst_case(sigma, orders).values
    np.testing.assert_array_equal(found, threshold_worst_case(sigma, orders).values)


@pytest.mark.slow
def test_more_noise_never_costs_more():
    # To within the slack of the search, about half a percent.
    for bound in (
        lambda sigma: tight_gaussian_worst_case(sigma, 10, ORDERS),
        lambda sigma: tight_gaussian_worst_case(sigma, 2, ORDERS),
        lambda sigma: tight_threshold_worst_case(sigma, ORDERS),
    ):
        values = [bound(sigma).values for sigma in SIGMAS]
        for little, much in pairwise(values):
            assert np.all(much <= little * 1.005)


def test_three_classes_cost_as_much_as_a_thousand():
    np.testing.assert_array_equal(
        tight_gaussian_worst_case(8.0, 3, ORDERS).values,
        tight_gaussian_worst_case(8.0, 1000, ORDERS).values,
    )


@pytest.mark.slow
def test_the_value_at_an_order_is_a_bound_whatever_the_other_orders():
    # Orders are searched together, and a larger order's value may serve a smaller one.
    sigma, orders = 8.0, np.array([1.2, 1.6, 3.0, 7.0, 20.0])
    together = tight_gaussian_worst_case(sigma, 3, orders).values
    leads = np.arange(-60, 90)
    assert np.all(together >= costs_of_leads(sigma, leads, leads, orders))
    for order, value in zip(orders, together, strict=True):
        alone = tight_gaussian_worst_case(sigma, 3, [order]).values[0]
        assert value <= alone * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [8.0, 150.0, 1500.0])
def test_costs_at_large_orders_do_not_depend_on_small_ones(sigma):
    # Noise is calibrated at a few orders, and its cost is stated at all of them.
    few = DEFAULT_ORDERS[(sigma / 4 < DEFAULT_ORDERS) & (sigma / 2 > DEFAULT_ORDERS)]
    among_all = np.isin(DEFAULT_ORDERS, few)
    for cost in (
        tight_threshold_worst_case,
        partial(tight_gaussian_worst_case, n_classes=2),
    ):
        all_orders = cost(sigma, orders=DEFAULT_ORDERS).values
        np.testing.assert_allclose(
            cost(sigma, orders=few).values, all_orders[among_all], rtol=1e-3
        )

import inspect
import math
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from sklearn_pate.accounting import (
    RdpCurve,
    bounds,
    local_cost,
    tight_gaussian_worst_case,
    tight_laplace_worst_case,
    tight_threshold_worst_case,
)
from sklearn_pate.accounting.bounds import (
    confident_2018,
    gaussian_2018,
    gaussian_worst_case,
    laplace_2017,
    laplace_2017_strong_composition,
    laplace_worst_case,
    pure_dp_curve,
    threshold_worst_case,
)
from sklearn_pate.mechanisms import ConfidentGNMax
from tests.private import (
    GaussianPlurality,
    gaussian_optimal_cost,
    pure_optimal_cost,
    theorem_6_cost,
)

PAPER_ORDERS = np.arange(2, 10)  # moments l = 1..8
gammas = st.floats(0.005, 2)
orders = st.floats(1.05, 200)
vote_rows = st.lists(
    st.lists(st.integers(0, 250), min_size=3, max_size=3), min_size=1, max_size=8
)


def renyi_divergence(p, q, order):
    """D_a(p || q) with 50 digits."""
    with mpmath.workdps(50):
        total = mpmath.fsum(
            mpmath.mpf(a) ** order * mpmath.mpf(b) ** (1 - order)
            for a, b in zip(p, q, strict=True)
        )
        return float(mpmath.log(total) / (order - 1))


def two_class_laplace(gap, gamma):
    """Probabilities of plurality and runner-up under LNMax, two classes."""
    x = gamma * abs(gap)
    loser = (2 + x) / (4 * math.exp(x))
    return [1 - loser, loser] if gap >= 0 else [loser, 1 - loser]


def two_class_gaussian(gap, sigma):
    x = gap / (sigma * math.sqrt(2))
    return [ndtr(x), ndtr(-x)]


def paper_epsilon(counts, gamma, delta):
    curve = laplace_2017(counts, gamma, PAPER_ORDERS)
    return float(np.min(curve.values - np.log(delta) / (PAPER_ORDERS - 1)))


# Against the papers' published figures. The 2017 paper speaks of Laplace scale 20 for
# SVHN (gamma 0.05), but its 5.04 and 8.19 are those of scale 10.


@pytest.mark.parametrize(
    ("task", "n_queries", "gamma", "delta", "epsilon"),
    [
        ("svhn", 500, 0.1, 1e-6, 5.041),
        ("svhn", 1000, 0.1, 1e-6, 8.192),
        ("svhn", 500, 0.05, 1e-6, 4.372),
        ("svhn", 1000, 0.05, 1e-6, 6.433),
        ("mnist", 100, 0.05, 1e-5, 2.043),
        ("mnist", 1000, 0.05, 1e-5, 7.399),
        ("adult", 500, 0.05, 1e-5, 2.581),
    ],
)
def test_published_votes_give_the_2017_figures(
    data_set, task, n_queries, gamma, delta, epsilon
):
    counts = data_set("pate2018_votes", task=task)[:n_queries]
    assert paper_epsilon(counts, gamma, delta) == pytest.approx(epsilon, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "n_queries", "threshold", "sigmas", "delta", "epsilon"),
    [
        ("mnist", 640, 200, (150, 40), 1e-5, 2.00),
        ("adult", 1500, 300, (200, 40), 1e-5, 1.68),
        ("svhn", 8500, 300, (200, 40), 1e-6, 4.92),
    ],
)
def test_published_votes_give_the_2018_figures(
    data_set, task, n_queries, threshold, sigmas, delta, epsilon
):
    counts = data_set("pate2018_votes", task=task)[:n_queries]
    mechanism = ConfidentGNMax(threshold, *sigmas)
    assert mechanism.paper_epsilon(counts, delta) == pytest.approx(epsilon, rel=0.005)


@pytest.mark.parametrize(
    ("n_queries", "delta", "epsilon"), [(1000, 1e-6, 26.6), (100, 1e-5, 5.80)]
)
def test_strong_composition_gives_the_2017_figures(n_queries, delta, epsilon):
    found = laplace_2017_strong_composition(n_queries, 0.05, delta)
    assert found == pytest.approx(epsilon, abs=0.05)


def test_worst_case_of_100_laplace_answers():
    curve = laplace_worst_case(0.05) * 100
    assert curve.to_epsilon(1e-5) == pytest.approx(3.127, abs=1e-3)


# Against independent computations


@pytest.mark.slow
@settings(max_examples=25)
@given(gamma=gammas, order=st.floats(1.1, 40))
def test_laplace_worst_case_is_two_shifted_laplaces_or_pure_dp(gamma, order):
    with mpmath.workdps(30):
        integral = mpmath.quad(
            lambda x: (
                mpmath.exp(-gamma * (order * abs(x) + (1 - order) * abs(x - 1)))
                * gamma
                / 2
            ),
            [-mpmath.inf, 0, 1, mpmath.inf],
        )
        one_shift = float(mpmath.log(integral) / (order - 1))
    pure = renyi_divergence(
        *(
            [1 / (1 + math.exp(s * 2 * gamma)) for s in signs]
            for signs in ((-1, 1), (1, -1))
        ),
        order,
    )
    found = laplace_worst_case(gamma, [order]).values[0]
    assert found == pytest.approx(min(2 * one_shift, pure), rel=1e-7, abs=1e-12)


@given(gamma=gammas, order=orders, gap=st.integers(-60, 60))
def test_laplace_worst_case_covers_two_classes_exactly(gamma, order, gap):
    cost = renyi_divergence(
        two_class_laplace(gap, gamma), two_class_laplace(gap - 2, gamma), order
    )
    assert cost <= laplace_worst_case(gamma, [order]).values[0] * (1 + 1e-9)


@given(sigma=st.floats(0.7, 100), order=orders, gap=st.integers(-4, 4))
def test_gaussian_worst_case_covers_two_classes_exactly(sigma, order, gap):
    cost = renyi_divergence(
        two_class_gaussian(gap, sigma), two_class_gaussian(gap - 2, sigma), order
    )
    assert cost <= gaussian_worst_case(sigma, [order]).values[0] * (1 + 1e-9)


@given(sigma=st.floats(0.7, 100), order=orders, margin=st.integers(-4, 4))
def test_threshold_worst_case_covers_the_answered_bit_exactly(sigma, order, margin):
    def law(margin):
        return [ndtr(margin / sigma), ndtr(-margin / sigma)]

    for moved in (margin - 1, margin + 1):
        cost = renyi_divergence(law(margin), law(moved), order)
        assert cost <= threshold_worst_case(sigma, [order]).values[0] * (1 + 1e-9)


@pytest.mark.slow
@given(gamma=st.floats(0.005, 0.34), order=orders, gap=st.integers(0, 200))
def test_2017_bound_covers_the_exact_forward_cost_of_two_classes(gamma, order, gap):
    here = two_class_laplace(gap, gamma)
    bound = laplace_2017([[300, 300 - gap]], gamma, [order]).values[0]
    for moved in (gap - 2, gap + 2):
        cost = renyi_divergence(here, two_class_laplace(moved, gamma), order)
        # Near order 1, what rounding leaves of a logarithm is divided by order - 1.
        assert cost <= bound * (1 + 1e-9) + 1e-15 / min(1, order - 1)


@pytest.mark.slow
@given(sigma=st.floats(1, 60), order=orders, gap=st.integers(0, 250))
def test_2018_bound_covers_the_exact_forward_cost_of_two_classes(sigma, order, gap):
    assume(gap < 35 * sigma)  # beyond, probabilities underflow
    counts = [[300 + gap, 300]]
    bound = gaussian_2018(counts, sigma, [order]).values[0]
    for moved in (gap - 2, gap + 2):
        exact = renyi_divergence(
            two_class_gaussian(gap, sigma), two_class_gaussian(moved, sigma), order
        )
        # Below 1e-15, a divergence is the rounding of probabilities near 1.
        assert exact <= bound * (1 + 1e-9) + 1e-15
    assert bound <= order / sigma**2


def theorem_6(counts, sigma, order):
    """Theorem 6 at Proposition 10's choice, number by number, with 50 digits."""
    with mpmath.workdps(50):
        *others, top = sorted(counts)
        s, a = mpmath.mpf(sigma), mpmath.mpf(order)
        q = mpmath.fsum(mpmath.erfc((top - n) / (2 * s)) / 2 for n in others)
        q = min(q, 1 - mpmath.mpf(1) / len(counts))
        mu_2 = s * mpmath.sqrt(-mpmath.log(q))
        mu_1 = mu_2 + 1
        e_1, e_2 = mu_1 / s**2, mu_2 / s**2
        worst = a / s**2
        if not (a <= mu_1 and mu_2 > 1 and -mpmath.log(q) > e_2):
            return float(worst)
        limit = (
            mpmath.exp((mu_2 - 1) * e_2)
            / (mu_1 / (mu_1 - 1) * mu_2 / (mu_2 - 1)) ** mu_2
        )
        if q > limit:
            return float(worst)
        A = (1 - q) / (1 - (q * mpmath.exp(e_2)) ** ((mu_2 - 1) / mu_2))
        B = mpmath.exp(e_1) / q ** (1 / (mu_1 - 1))
        bound = mpmath.log((1 - q) * A ** (a - 1) + q * B ** (a - 1)) / (a - 1)
        return float(min(bound, worst))


@pytest.mark.slow
@given(
    counts=st.lists(st.integers(0, 250), min_size=2, max_size=12),
    sigma=st.floats(2, 100),
    order=st.floats(1.1, 40),
)
def test_2018_bound_is_theorem_6(counts, sigma, order):
    bound = gaussian_2018([counts], sigma, [order]).values[0]
    expected = theorem_6(counts, sigma, order)
    # In float64, r comes out of a difference of terms of the size of 1e-16 / (a - 1).
    assert bound == pytest.approx(expected, rel=1e-8, abs=1e-14)


@pytest.mark.thorough
@settings(max_examples=20)
@given(counts=vote_rows, sigma=st.floats(2, 100))
def test_2018_bounds_add_over_queries_and_ignore_names(counts, sigma):
    alone = [gaussian_2018([row], sigma) for row in counts]
    together = gaussian_2018([row[::-1] for row in counts], sigma)
    np.testing.assert_allclose(
        together.values, np.sum([one.values for one in alone], axis=0), atol=1e-12
    )


@pytest.mark.slow
@settings(max_examples=25)
@given(counts=vote_rows, sigma=st.floats(2, 100), threshold=st.integers(1, 300))
def test_2018_expected_cost_is_below_the_classical_worst_case(counts, sigma, threshold):
    expected = confident_2018(counts, threshold, 3 * sigma, sigma)
    cost = threshold_worst_case(3 * sigma) + gaussian_worst_case(sigma)
    assert np.all(expected.values <= len(counts) * cost.values * (1 + 1e-12))


@given(epsilon=st.floats(0.01, 5), order=orders)
def test_pure_dp_curve_is_randomised_response(epsilon, order):
    truth = 1 / (1 + math.exp(-epsilon))
    cost = renyi_divergence([truth, 1 - truth], [1 - truth, truth], order)
    assert pure_dp_curve(epsilon, [order]).values[0] == pytest.approx(cost, rel=1e-7)


# Properties of the 2017 bound


@pytest.mark.slow
@given(counts=vote_rows, gamma=gammas)
def test_2017_bound_adds_over_queries(counts, gamma):
    whole = laplace_2017(counts, gamma, PAPER_ORDERS)
    parts = [laplace_2017([row], gamma, PAPER_ORDERS) for row in counts]
    total = sum(parts[1:], start=parts[0])
    np.testing.assert_allclose(whole.values, total.values, rtol=1e-9, atol=1e-300)


@pytest.mark.slow
@given(counts=vote_rows, gamma=gammas, data=st.data())
def test_2017_bound_does_not_depend_on_the_order_of_classes(counts, gamma, data):
    order = data.draw(st.permutations(range(3)))
    renamed = np.array(counts)[:, order]
    found = laplace_2017(renamed, gamma, PAPER_ORDERS)
    np.testing.assert_allclose(
        found.values, laplace_2017(counts, gamma, PAPER_ORDERS).values, rtol=1e-12
    )


def test_2017_bound_ignores_theorem_3_where_its_condition_fails():
    # The first version of the paper lacks the condition; its formula goes negative.
    bound = laplace_2017([[10, 10]], 0.5, [2])
    assert bound.values[0] == pytest.approx(1.0)  # e0^2 l (l + 1) / 2 with e0 = 1


def test_2017_bound_of_a_unanimous_vote_with_huge_gaps_is_finite():
    bound = laplace_2017([[5000, 0, 0]], 1.0, PAPER_ORDERS)
    assert np.all(bound.values >= 0)
    assert np.all(bound.values < 1e-300)


def test_bounds_are_curves_that_add_to_each_other():
    total = laplace_2017([[10, 2]], 0.1) + laplace_worst_case(0.1)
    assert isinstance(total, RdpCurve)


@pytest.mark.parametrize("scale", [-1.0, 0.0, np.nan, np.inf])
@pytest.mark.parametrize(
    "cost",
    [
        bounds.gaussian_worst_case,
        bounds.threshold_worst_case,
        bounds.laplace_worst_case,
        bounds.discrete_laplace_worst_case,
        bounds.gumbel_worst_case,
        bounds.permute_and_flip_worst_case,
        tight_threshold_worst_case,
        partial(tight_gaussian_worst_case, n_classes=2),
        partial(tight_laplace_worst_case, n_classes=2),
        partial(bounds.gaussian_2018, [[5, 3]]),
        partial(bounds.laplace_2017, [[5, 3]]),
        partial(bounds.laplace_2017_strong_composition, 10, delta=1e-5),
    ],
)
def test_a_scale_that_is_not_positive_is_refused(cost, scale):
    with pytest.raises(ValueError, match="must be a positive, finite number"):
        cost(scale)


@pytest.mark.parametrize("epsilon", [-1.0, np.nan, np.inf])
def test_a_pure_epsilon_out_of_range_is_refused(epsilon):
    assert not bounds.pure_dp_curve(0.0).values.any()
    with pytest.raises(ValueError, match="must be a positive, finite number"):
        bounds.pure_dp_curve(epsilon)


def test_an_unknown_direction_is_refused():
    with pytest.raises(ValueError, match="direction='x' is unknown"):
        local_cost(GaussianPlurality(10.0), [[5, 3]], direction="x")


# At all orders and extreme leads

EXTREME_ORDERS = np.array([1.5, 2, 9, 64, 1000, 262145])
LEADS = [2, 10, 250, 720, 10**5, 2**31 - 3]
TOP = 2**31 - 1


def exact_forward_cost(loser, gap):
    """Largest forward cost of two classes with continuous noise, from logarithms."""
    with mpmath.workdps(60):
        q, moved = loser(mpmath.mpf(gap)), [loser(mpmath.mpf(gap + d)) for d in (-2, 2)]
        return [
            float(
                max(
                    mpmath.log(q**a * p ** (1 - a) + (1 - q) ** a * (1 - p) ** (1 - a))
                    for p in moved
                )
                / (a - 1)
            )
            for a in map(mpmath.mpf, EXTREME_ORDERS.tolist())
        ]


def laplace_loser(gamma):
    return lambda gap: (2 + gamma * gap) / 4 * mpmath.exp(-gamma * gap)


def gaussian_loser(sigma):
    return lambda gap: mpmath.erfc(gap / (2 * mpmath.mpf(sigma))) / 2


def log_losers(loser):
    with mpmath.workdps(30):
        return np.array([float(mpmath.log(loser(mpmath.mpf(gap)))) for gap in LEADS])


def curves(bound, *parameters):
    rows = [[[TOP, TOP - gap]] for gap in LEADS]
    return np.array([bound(row, *parameters, EXTREME_ORDERS).values for row in rows])


LAPLACE = (laplace_loser, lambda gamma: np.full(EXTREME_ORDERS.shape, 2 * gamma))
GAUSSIAN = (gaussian_loser, lambda sigma: EXTREME_ORDERS / sigma**2)

# Costs for each lead and order. The check of `confident_2018` here passes surely.
BOUNDS_BY_VOTES = {
    "laplace_2017": (lambda g: curves(laplace_2017, g), *LAPLACE),
    "gaussian_2018": (lambda s: curves(gaussian_2018, s), *GAUSSIAN),
    "confident_2018": (lambda s: curves(confident_2018, 1, 1, s), *GAUSSIAN),
    "pure_optimal_cost": (
        lambda g: (
            pure_optimal_cost(
                log_losers(laplace_loser(g)), 2 * g, EXTREME_ORDERS, "forward"
            ).T
        ),
        *LAPLACE,
    ),
    "gaussian_optimal_cost": (
        lambda s: (
            gaussian_optimal_cost(
                log_losers(gaussian_loser(s)), s, EXTREME_ORDERS, "forward"
            ).T
        ),
        *GAUSSIAN,
    ),
}


def test_every_bound_that_depends_on_votes_is_tested_at_extremes():
    by_votes = {
        name
        for name in bounds.__all__
        if "counts" in inspect.signature(getattr(bounds, name)).parameters
    }
    assert by_votes <= BOUNDS_BY_VOTES.keys()


@pytest.mark.parametrize("scale", [2**-20, 0.05, 1, 3, 40, 354.5, 355, 2**20])
@pytest.mark.parametrize("name", BOUNDS_BY_VOTES)
def test_bounds_are_right_at_all_orders_and_extreme_leads(name, scale):
    bound, loser, worst = BOUNDS_BY_VOTES[name]
    found = bound(scale)
    exact = np.array([exact_forward_cost(loser(scale), gap) for gap in LEADS])
    assert np.all(np.isfinite(found))
    assert np.all(found * (1 + 1e-9) + 1e-15 >= exact)
    assert np.all(found <= worst(scale) * (1 + 1e-12))
    assert np.all(found[1:] <= found[:-1] * (1 + 1e-12) + 1e-15)


@pytest.mark.parametrize("sigma", [2**-20, 0.05, 1, 3, 40, 2**20])
def test_optimal_cost_is_at_most_theorem_6_at_extremes(sigma):
    log_q = log_losers(gaussian_loser(sigma))
    found = gaussian_optimal_cost(log_q, sigma, EXTREME_ORDERS, "forward")
    for cost, order in zip(found, EXTREME_ORDERS, strict=True):
        assert np.all(cost <= theorem_6_cost(log_q, sigma, order) * (1 + 1e-12))


@pytest.mark.parametrize("epsilon", [1e-100, 1e-12, 1e-9, 1e-6, 1e-3, 0.99, 1, 1e5])
def test_a_pure_cost_keeps_its_digits_at_any_epsilon(epsilon):
    orders = np.array([1.015625, 1.1, 2, 64, 4096])
    found = pure_dp_curve(epsilon, orders).values
    with mpmath.workdps(260):
        x = mpmath.mpf(epsilon)
        for order, cost in zip(orders, found, strict=True):
            ratio = mpmath.cosh((order - mpmath.mpf(0.5)) * x) / mpmath.cosh(x / 2)
            true = mpmath.log(ratio) / (order - 1)
            assert cost == pytest.approx(float(true), rel=1e-12)
    continuous = laplace_worst_case(epsilon, orders).values
    assert np.all(continuous >= 0)
    assert np.all(continuous <= pure_dp_curve(2 * epsilon, orders).values)

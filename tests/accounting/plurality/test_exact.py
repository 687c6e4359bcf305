"""Exact costs: their properties, their bounds and extreme votes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from sklearn_pate.accounting import (
    RdpCurve,
    local_cost,
    tight_gaussian_worst_case,
    tight_threshold_worst_case,
)
from sklearn_pate.accounting.bounds import (
    gaussian_2018,
    gaussian_worst_case,
    gumbel_worst_case,
    laplace_2017,
    laplace_worst_case,
    permute_and_flip_worst_case,
    pure_dp_curve,
)
from tests.accounting.plurality.costs import (
    ORDERS,
    PLURALITIES,
    by_kind,
    cost,
    divergence,
    noisy_check_law,
)
from tests.cases import thorough_but
from tests.private import GaussianPlurality, LaplacePlurality, NoisyCheck

kinds = st.sampled_from(sorted(PLURALITIES))
votes = st.lists(st.integers(0, 60), min_size=2, max_size=5)
few_examples = settings(deadline=None, max_examples=60)


def scales(kind):
    """Scales that make the noise a few votes wide."""
    return st.floats(1, 20) if kind == "gaussian" else st.floats(0.05, 1)


# Properties


@pytest.mark.slow
@few_examples
@given(kind=kinds, counts=votes, data=st.data())
def test_the_cost_does_not_depend_on_the_order_of_classes(kind, counts, data):
    scale = data.draw(scales(kind))
    renamed = data.draw(st.permutations(counts))
    np.testing.assert_allclose(
        cost(kind, scale, [renamed]), cost(kind, scale, [counts]), rtol=1e-10
    )


@pytest.mark.thorough
@few_examples
@given(
    kind=kinds,
    queries=st.lists(
        st.lists(st.integers(0, 12), min_size=3, max_size=3), min_size=1, max_size=6
    ),
    data=st.data(),
)
def test_costs_add_over_queries_and_repetitions(kind, queries, data):
    scale = data.draw(scales(kind))
    check = data.draw(st.sampled_from([None, NoisyCheck(8, 4.0)]))
    alone = [cost(kind, scale, [query], check=check) for query in queries]
    together = cost(kind, scale, queries, check=check)
    np.testing.assert_allclose(together, np.sum(alone, axis=0), rtol=1e-10)
    twice = cost(kind, scale, queries[::-1] * 2, check=check)
    np.testing.assert_allclose(twice, 2 * together, rtol=1e-10)


@pytest.mark.slow
@few_examples
@given(kind=kinds, counts=votes, data=st.data())
def test_the_cost_grows_with_the_order(kind, counts, data):
    scale = data.draw(scales(kind))
    check = data.draw(st.sampled_from([None, NoisyCheck(20, 5.0)]))
    orders = np.array(sorted(data.draw(st.sets(st.floats(1.01, 300), min_size=2))))
    values = cost(kind, scale, [counts], orders, check=check)
    assert np.all(np.diff(values) >= -1e-10 * values[1:])


@pytest.mark.slow
@few_examples
@given(kind=kinds, counts=votes, data=st.data())
def test_forward_is_at_most_both(kind, counts, data):
    scale = data.draw(scales(kind))
    check = data.draw(st.sampled_from([None, NoisyCheck(20, 5.0)]))
    forward = cost(kind, scale, [counts], check=check, direction="forward")
    both = cost(kind, scale, [counts], check=check)
    assert np.all(forward <= both)
    assert np.all(both > 0)


@pytest.mark.thorough
@few_examples
@given(kind=kinds, counts=votes, data=st.data())
def test_the_cost_at_an_order_does_not_depend_on_other_orders(kind, counts, data):
    # Between some orders, moves are left out that cannot be the worst.
    scale = data.draw(scales(kind))
    orders = 1 + np.geomspace(0.02, 200, 24)
    together = cost(kind, scale, [counts], orders)
    alone = [cost(kind, scale, [counts], [order])[0] for order in orders]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


WORST_CASE_ORDERS = np.array([1.02, 1.1, 1.6, 2, 4, 8, 16, 32, 64, 200])


@pytest.mark.thorough
@settings(deadline=None, max_examples=150)
@given(
    sigma=st.sampled_from([0.7, 1.5, 3.0, 8.0, 20.0, 45.0, 100.0]),
    counts=st.lists(st.integers(0, 60), min_size=2, max_size=8),
    near=st.booleans(),
)
def test_exact_is_at_most_the_tight_worst_case_and_that_at_most_the_classical(
    sigma, counts, near
):
    if near:  # where the worst cases lie
        counts = [int(30 + (n - 30) * sigma / 20) for n in counts]
        counts = [n - min(counts) for n in counts]
    exact = cost("gaussian", sigma, [counts], WORST_CASE_ORDERS)
    tight = tight_gaussian_worst_case(sigma, len(counts), WORST_CASE_ORDERS).values
    classical = gaussian_worst_case(sigma, WORST_CASE_ORDERS).values
    assert np.all(exact <= tight * (1 + 1e-12))
    assert np.all(tight <= classical)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(
    c=st.floats(0.01, 4),
    counts=st.lists(st.integers(0, 20), min_size=2, max_size=8),
    order=st.floats(1.02, 300),
)
def test_exact_costs_are_at_most_the_worst_cases_in_closed_form(c, counts, order):
    for kind, bound in (
        ("laplace", laplace_worst_case),
        ("gumbel", gumbel_worst_case),
        ("flip", permute_and_flip_worst_case),
    ):
        exact = cost(kind, c, [counts], [order])[0]
        assert exact <= bound(c, [order]).values[0] * (1 + 1e-9), kind


@pytest.mark.parametrize(
    ("kind", "bound", "share"),
    [
        ("gumbel", gumbel_worst_case, 0.99),
        ("flip", permute_and_flip_worst_case, 0.95),
    ],
)
def test_worst_cases_in_closed_form_are_nearly_reached(kind, bound, share):
    orders = [2, 8, 32]
    worst = bound(0.3, orders).values
    reached = np.max(
        [cost(kind, 0.3, [[40, 40 - gap]], orders) for gap in range(30)], axis=0
    )
    assert np.all(reached <= worst)
    assert np.all(reached[-1:] >= share * worst[-1:])


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    sigma=st.floats(3, 60),
    counts=st.lists(st.integers(0, 250), min_size=2, max_size=6),
)
def test_the_2018_bound_covers_the_exact_forward_cost(sigma, counts):
    """Theorem 6 is about any mechanism of this cost; its q is about continuous noise.

    Discrete noise with ties at random may exceed that q, the union bound, by a share of
    about (gap / sigma^2)^2 / 48. The bound may be raised by the factor that is missing.
    """
    orders = np.array([1.5, 2, 4, 8, 16, 32])
    bound = gaussian_2018([counts], sigma, orders).values
    exact = cost("gaussian", sigma, [counts], orders, direction="forward")
    top = int(np.argmax(counts))
    others = np.delete(counts, top)
    q_bound = np.sum(ndtr((others - counts[top]) / (np.sqrt(2) * sigma)))
    law = GaussianPlurality(sigma).log_probabilities(
        np.array([counts], dtype=float), np.ones((1, len(counts)))
    )[0]
    q_exact = np.sum(np.exp(np.delete(law, top)))
    # Below 1e-15, the bound is the rounding of a probability near 1.
    informative = (bound < orders / sigma**2) & (bound > 1e-15)
    allowed = bound * max(1, q_exact / q_bound) if q_bound > 0 else bound
    assert np.all((exact <= allowed * (1 + 1e-9))[informative])
    assert np.all(exact <= orders / sigma**2 * (1 + 1e-9))


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    gamma=st.floats(0.01, 0.6),
    counts=st.lists(st.integers(0, 250), min_size=2, max_size=6),
)
def test_the_2017_bound_covers_the_exact_forward_cost(gamma, counts):
    """Theorem 3 is about any 2 gamma-DP mechanism; its q is about continuous noise.

    As above; here discrete noise exceeds the union bound by a share of gamma^2 or so.
    """
    orders = np.arange(2.0, 10)
    bound = laplace_2017([counts], gamma, orders).values
    exact = cost("laplace", gamma, [counts], orders, direction="forward")
    top = int(np.argmax(counts))
    gaps = gamma * (counts[top] - np.delete(counts, top))
    q_bound = np.sum((2 + gaps) / (4 * np.exp(gaps)))
    law = LaplacePlurality(gamma).log_probabilities(
        np.array([counts], dtype=float), np.ones((1, len(counts)))
    )[0]
    q_exact = np.sum(np.exp(np.delete(law, top)))
    # The last term is for the rounding of ln P' / P of the winner.
    assert np.all(exact <= bound * max(1, q_exact / q_bound) * (1 + 1e-9) + 1e-28)


@settings(deadline=None, max_examples=100)
@given(
    sigma=st.sampled_from([0.7, 3.0, 20.0, 45.0, 150.0]),
    margin=st.integers(-400, 400),
)
def test_a_check_alone_is_at_most_its_tight_worst_case(sigma, margin):
    margin = int(margin * sigma / 100)
    tight = tight_threshold_worst_case(sigma, WORST_CASE_ORDERS).values
    here, up = (np.array(noisy_check_law(m, sigma)) for m in (margin, margin + 1))
    for bound, order in zip(tight, WORST_CASE_ORDERS, strict=True):
        if np.max(np.abs(np.log(here) - np.log(up))) * order < 700:
            assert divergence(here, up, order) <= bound * (1 + 1e-9)
            assert divergence(up, here, order) <= bound * (1 + 1e-9)


def test_the_local_cost_may_rise_with_the_noise():
    # Agreement that small noise does not blur costs next to nothing.
    little, much = (cost("gaussian", s, [[200, 50]], [2])[0] for s in (10.0, 60.0))
    assert little < 1e-20 < much


# The published votes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "n_queries", "threshold", "sigmas", "delta", "epsilon"),
    [
        pytest.param(
            *("svhn", 8500, 300, (200, 40), 1e-6, 2.66), marks=pytest.mark.thorough
        ),
        ("mnist", 640, 200, (150, 40), 1e-5, 0.92),
        ("adult", 1500, 300, (200, 40), 1e-5, 0.958),
    ],
)
def test_published_votes_have_these_exact_costs(
    data_set, task, n_queries, threshold, sigmas, delta, epsilon
):
    counts = data_set("pate2018_votes", task=task)[:n_queries]
    check = NoisyCheck(threshold, sigmas[0])
    curve = local_cost(GaussianPlurality(sigmas[1]), counts, check=check)
    assert curve.to_epsilon(delta) == pytest.approx(epsilon, rel=0.01)


# Edges


@by_kind
@pytest.mark.parametrize(
    "counts",
    [
        [[250, 0]],
        [[250, 0, 0, 0]],
        [[125, 125]],
        [[50, 50, 50]],
        [[1, 0, 0]],
        [[0, 0, 0]],
        [[5000, 0, 0]],
    ],
)
def test_unanimous_tied_and_empty_votes_have_finite_costs(kind, counts):
    for scale in (5.0, 40.0) if kind == "gaussian" else (0.02, 0.2, 2.0):
        check = NoisyCheck(100, 30.0)
        for options in ({}, {"check": check}, {"direction": "forward"}):
            values = cost(kind, scale, counts, **options)
            assert np.all(np.isfinite(values))
            assert np.all(np.diff(values) >= -1e-16)


@by_kind
@pytest.mark.parametrize(
    "counts", [[[100, 0]], [[5, 5, 3]], [[60, 40, 0]], [[5000, 0]]]
)
def test_the_ceiling_is_used_where_noise_is_too_small_for_float64(kind, counts):
    scale = 0.05 if kind == "gaussian" else 40.0
    ceiling = gaussian_worst_case(scale, ORDERS)
    if kind != "gaussian":
        ceiling = pure_dp_curve(2 * scale, ORDERS)
    values = cost(kind, scale, counts, ceiling=ceiling)
    assert np.all(values <= ceiling.values)
    without = cost(kind, scale, counts)
    assert not np.any(np.isnan(without))
    np.testing.assert_array_equal(values, np.minimum(without, ceiling.values))


def test_a_cost_far_above_the_ceiling_is_kept():
    queries = [[9, 5, 1], [4, 4, 4]]
    costs = [cost("gaussian", 3.0, [query]) for query in queries]
    ceiling = RdpCurve(ORDERS, np.mean(costs, axis=0))
    found = cost("gaussian", 3.0, queries, ceiling=ceiling)
    np.testing.assert_allclose(found, np.sum(costs, axis=0), rtol=1e-12)


def test_a_cost_that_is_above_the_ceiling_by_rounding_is_the_ceiling():
    exact = cost("gaussian", 3.0, [[9, 5, 1]])
    ceiling = RdpCurve(ORDERS, exact * (1 - 1e-12))
    found = cost("gaussian", 3.0, [[9, 5, 1]], ceiling=ceiling)
    np.testing.assert_array_equal(found, ceiling.values)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", thorough_but(["gaussian", "laplace", "gumbel"], PLURALITIES)
)
def test_5000_teachers_and_1000_classes_are_not_too_many(kind):
    rng = np.random.default_rng(0)
    counts = rng.multinomial(5000, rng.dirichlet(np.full(1000, 0.3)), size=1)
    scale = 40.0 if kind == "gaussian" else 0.05
    values = cost(kind, scale, counts, check=NoisyCheck(50, 60.0))
    assert np.all(np.isfinite(values))
    assert np.all(values > 0)


@by_kind
def test_no_queries_cost_nothing(kind):
    assert np.all(cost(kind, 1.0, np.zeros((0, 3))) == 0)
    no_votes_by_teacher = np.zeros((4, 0), dtype=int)
    assert np.all(
        cost(kind, 1.0, np.zeros((0, 3)), votes_by_teacher=no_votes_by_teacher) == 0
    )


def test_a_single_class_is_refused():
    with pytest.raises(ValueError, match="at least two classes"):
        local_cost(GaussianPlurality(1.0), [[3]])

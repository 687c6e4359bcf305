from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import product
from math import ceil

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
from sklearn_pate.accounting.plurality._divergence import log_moment
from sklearn_pate.accounting.plurality._noisy_check import NoisyCheck
from sklearn_pate.accounting.plurality._noisy_counts import (
    GaussianPlurality,
    LaplacePlurality,
)
from sklearn_pate.accounting.plurality._outcomes import (
    GumbelPlurality,
    PermuteAndFlipPlurality,
)
from tests.accounting.oracles import (
    DIGITS,
    distinct_neighbours,
    exact_divergence,
    exact_law,
    exact_local_costs,
    neighbours,
    noise_table,
)

PLURALITIES = {
    "gaussian": GaussianPlurality,
    "laplace": LaplacePlurality,
    "gumbel": GumbelPlurality,
    "flip": PermuteAndFlipPlurality,
}
by_kind = pytest.mark.parametrize("kind", PLURALITIES)
kinds = st.sampled_from(sorted(PLURALITIES))
ORDERS = np.array([1.05, 1.5, 2, 3.7, 8, 16, 33, 64])
votes = st.lists(st.integers(0, 60), min_size=2, max_size=5)
few_examples = settings(deadline=None, max_examples=60)


def scales(kind):
    """Scales that make the noise a few votes wide."""
    return st.floats(1, 20) if kind == "gaussian" else st.floats(0.05, 1)


def cost(kind, scale, counts, orders=ORDERS, **options):
    return local_cost(PLURALITIES[kind](scale), counts, orders, **options).values


# Against 50 digits


def random_example(kind, rng):
    """A scale, counts and orders with an exact cost that can be computed quickly."""
    many = rng.random() < 0.2
    if kind == "gaussian":
        scale = float(np.exp(rng.uniform(np.log(0.4), np.log(1.2 if many else 5))))
        span = rng.uniform(0, 30) * scale
    else:
        scale = float(np.exp(rng.uniform(np.log(0.7), np.log(3))))
        span = rng.uniform(0, 40) / scale
    if many:
        counts = np.repeat(
            rng.integers(0, int(span) + 2, size=2), rng.integers(1, 11, 2)
        )
    else:
        n_classes = rng.choice([2, 3, 4], p=[0.4, 0.4, 0.2])
        counts = rng.integers(0, int(span) + 2, size=n_classes)
    orders = 1 + np.exp(rng.uniform(np.log(0.05), np.log(60), size=2))
    return scale, [int(n) for n in rng.permutation(counts)], np.sort(orders)


@by_kind
def test_every_cost_is_right_to_nine_digits(kind):
    rng = np.random.default_rng(5)
    least, deepest = 1, 0
    for _ in range(75):
        scale, counts, orders = random_example(kind, rng)
        found = cost(kind, scale, [counts], orders)
        exact = np.array(exact_local_costs(kind, scale, counts, orders), dtype=float)
        # Where probabilities leave float64, so may their share of the cost.
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-27)
        least = min([least, *exact[exact > 1e-18]])
        law = exact_law(kind, scale, counts)
        deepest = min(deepest, *(float(p.ln()) for p in law))
    assert least < 1e-10  # or the cases would be too easy
    assert deepest < -25


@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        ("gaussian", 3.0),
        ("gaussian", 8.0),
        ("laplace", 0.7),
        ("gumbel", 0.7),
        ("flip", 0.7),
    ],
)
def test_divergences_far_below_the_precision_of_probabilities_keep_their_digits(
    kind, scale
):
    gap = {"gaussian": int(13 * scale), "laplace": 60, "gumbel": 60, "flip": 60}[kind]
    for order in (1.1, 2, 3):
        for counts in ([gap, 0], [gap, 3, 1]):
            found = cost(kind, scale, [counts], [order])[0]
            exact = float(exact_local_costs(kind, scale, counts, [order])[0])
            assert found == pytest.approx(exact, rel=1e-9, abs=0)
            assert found < 1e-9


@pytest.mark.parametrize("order", [1.05, 2, 7.5, 64])
def test_the_divergence_of_close_laws_keeps_its_digits(order):
    # a r goes from where g(r) is a series to where it is not.
    for size in np.geomspace(1e-6, 0.1, 40) / order:
        with localcontext(prec=DIGITS):
            q = [Decimal("0.75"), Decimal("0.25")]
            p = [q[0] * Decimal(size).exp()]
            p.append(1 - p[0])
            ratio = np.array([float((a / b).ln()) for a, b in zip(p, q, strict=True)])
            exact = (Decimal(order) - 1) * exact_divergence(p, q, order)
        log_q = np.log(np.array(q, dtype=float))
        found = log_moment(log_q[None], ratio[None], order)[0]
        assert found == pytest.approx(float(exact), rel=1e-10, abs=0)


@pytest.mark.parametrize("sigma", [64.0, 90.0])
def test_costs_under_wide_noise_are_right_to_nine_digits(sigma):
    # Here the law comes from a formula, and sums go over every few votes.
    for counts in ([250, 0], [140, 100, 10]):
        found = cost("gaussian", sigma, [counts], [2, 20])
        exact = np.array(
            exact_local_costs("gaussian", sigma, counts, [2, 20]), dtype=float
        )
        np.testing.assert_allclose(found, exact, rtol=1e-9)


@pytest.mark.parametrize("counts", [[6, 5], [4, 4, 1], [9, 3, 3, 0]])
def test_the_joint_cost_with_a_check_is_right_to_nine_digits(counts):
    threshold, sigma_check, sigma, order = 7, 2.5, 1.7, 5.5

    def joint(counts):
        _, cdf = noise_table("gaussian", sigma_check, 40)
        fails = cdf[threshold - 1 - max(counts) + len(cdf) // 2]
        with localcontext(prec=DIGITS):
            answers = [(1 - fails) * p for p in exact_law("gaussian", sigma, counts)]
            return [fails, *answers]

    here = joint(counts)
    exact = max(
        exact_divergence(*pair, order)
        for moved in distinct_neighbours(counts)
        for pair in ((here, joint(moved)), (joint(moved), here))
    )
    check = NoisyCheck(threshold, sigma_check)
    found = cost("gaussian", sigma, [counts], [order], check=check)[0]
    assert found == pytest.approx(float(exact), rel=1e-9, abs=0)


# Against every neighbour of every vote of a few teachers


def divergence(p, q, order):
    """D_a(p || q) along the last axis, in float64, without cancellation."""
    r = np.log(p) - np.log(q)
    moment = np.sum(q * (np.expm1(order * r) - order * np.expm1(r)), axis=-1)
    return np.log1p(moment) / (order - 1)


class EveryVote:
    """All counts that some teachers can give, and the law of each by itself."""

    def __init__(self, kind, scale, n_teachers, n_classes):
        counts = product(range(n_teachers + 1), repeat=n_classes)
        # One teacher at least abstains: otherwise no teacher could start to vote.
        self.counts = np.array([c for c in counts if sum(c) <= n_teachers])
        self.at = {tuple(c): i for i, c in enumerate(self.counts.tolist())}
        plurality = PLURALITIES[kind](scale)
        ones = np.ones(self.counts.shape)
        self.laws = np.exp(plurality.log_probabilities(self.counts.astype(float), ones))

    def inner(self):
        """Counts with all their neighbours in this list."""
        full = self.counts.sum(axis=1).max()
        return self.counts[self.counts.sum(axis=1) < full].tolist()

    def after(self, counts, loser, gainer):
        """The index of the vector after one vote; None is an abstention."""
        moved = list(counts)
        if loser is not None:
            moved[loser] -= 1
        if gainer is not None:
            moved[gainer] += 1
        return self.at[tuple(moved)]

    def worst(self, counts, laws, order, direction="both"):
        here = laws[self.at[tuple(counts)]]
        there = laws[[self.at[moved] for moved in neighbours(counts)]]
        costs = divergence(here, there, order)
        if direction == "both":
            costs = np.maximum(costs, divergence(there, here, order))
        return costs.max()


@lru_cache
def every_vote(kind, n_teachers=11, n_classes=3):
    scale = {"gaussian": 2.0, "laplace": 0.6, "gumbel": 0.5, "flip": 0.5}[kind]
    return scale, EveryVote(kind, scale, n_teachers, n_classes)


def noisy_check_law(margin, sigma):
    """Pr[Z < margin] and Pr[Z >= margin] for whole margins, as a plain sum."""
    z = np.arange(-int(40 * sigma), int(40 * sigma) + 1)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    mass /= mass.sum()
    return mass[z < margin].sum(), mass[z >= margin].sum()


def joint_laws(votes_, scores, threshold, sigma):
    """The laws of "none" and the classes, for a check of these scores."""
    bits = np.array([noisy_check_law(ceil(threshold - s), sigma) for s in scores])
    return np.hstack([bits[:, :1], bits[:, 1:] * votes_.laws])


@by_kind
@pytest.mark.parametrize(("n_teachers", "n_classes"), [(12, 2), (11, 3), (6, 4)])
@pytest.mark.parametrize("direction", ["both", "forward"])
def test_the_cost_is_the_largest_over_all_votes_by_teacher(
    kind, n_teachers, n_classes, direction
):
    scale, everything = every_vote(kind, n_teachers, n_classes)
    for counts in everything.inner():
        found = cost(kind, scale, [counts], [1.3, 9], direction=direction)
        for order, value in zip([1.3, 9], found, strict=True):
            worst = everything.worst(counts, everything.laws, order, direction)
            assert value == pytest.approx(worst, rel=1e-9, abs=0), counts


@by_kind
@pytest.mark.parametrize(("threshold", "sigma"), [(7, 1.5), (0, 3.0), (25.5, 4.0)])
def test_the_joint_cost_is_the_largest_over_all_votes_by_teacher(
    kind, threshold, sigma
):
    scale, everything = every_vote(kind)
    laws = joint_laws(everything, everything.counts.max(axis=1), threshold, sigma)
    check = NoisyCheck(threshold, sigma)
    for counts in everything.inner()[::3]:
        for direction in ("both", "forward"):
            found = cost(kind, scale, [counts], [4], check=check, direction=direction)
            worst = everything.worst(counts, laws, 4, direction)
            assert found[0] == pytest.approx(worst, rel=1e-8, abs=0), counts


@by_kind
@pytest.mark.parametrize(
    "expected", [[5.25, 3, 0.1], [0, 0, 11], [4, 4, 4], [-0.5, 2, 2]]
)
def test_an_interactive_check_subtracts_the_expected_votes(kind, expected):
    scale, everything = every_vote(kind)
    scores = (everything.counts - np.array(expected)).max(axis=1)
    laws = joint_laws(everything, scores, threshold=3, sigma=2.0)
    check = NoisyCheck(3, 2.0)
    chosen = everything.inner()[::3]
    for counts in chosen:
        found = cost(kind, scale, [counts], [4], check=check, expected=[expected])
        worst = everything.worst(counts, laws, 4)
        assert found[0] == pytest.approx(worst, rel=1e-8, abs=0), counts


def test_a_check_that_always_passes_costs_nothing():
    check = NoisyCheck(-1000, 2.0)
    queries = [[9, 5, 1], [4, 4, 4]]
    np.testing.assert_allclose(
        cost("gaussian", 3.0, queries, check=check),
        cost("gaussian", 3.0, queries),
        rtol=1e-12,
    )


def test_queries_that_never_pass_the_check_cost_nothing():
    check = NoisyCheck(1000, 2.0)
    assert np.all(cost("gaussian", 3.0, [[9, 5, 1]], check=check) < 1e-300)


@by_kind
@pytest.mark.parametrize("checked", [False, True])
def test_with_votes_by_teacher_the_cost_is_that_of_the_worst_teacher(kind, checked):
    n_teachers, n_queries, n_classes = 11, 6, 3
    scale, everything = every_vote(kind)
    rng = np.random.default_rng(8)
    expected = rng.integers(0, 5, size=(n_queries, n_classes))
    for _ in range(10):
        votes_by_teacher = rng.integers(-1, n_classes, size=(n_teachers, n_queries))
        counts = np.array(
            [np.bincount(v[v >= 0], minlength=n_classes) for v in votes_by_teacher.T]
        )
        options = {}
        laws = [everything.laws] * n_queries
        if checked:
            options = {"check": NoisyCheck(4, 2.0), "expected": expected}
            laws = [
                joint_laws(everything, (everything.counts - e).max(axis=1), 4, 2.0)
                for e in expected
            ]
        total = np.zeros(n_teachers)
        for query, law, vote in zip(
            counts.tolist(), laws, votes_by_teacher.T, strict=True
        ):
            here = law[everything.at[tuple(query)]]
            for teacher, own in enumerate(vote):
                loser = None if own < 0 else own
                others = [c for c in (*range(n_classes), None) if c != loser]
                moved = law[[everything.after(query, loser, c) for c in others]]
                total[teacher] += max(
                    divergence(here, moved, 4).max(), divergence(moved, here, 4).max()
                )
        found = cost(
            kind, scale, counts, [4], votes_by_teacher=votes_by_teacher, **options
        )[0]
        assert found == pytest.approx(total.max(), rel=1e-8, abs=0)
        assert found <= cost(kind, scale, counts, [4], **options)[0] * (1 + 1e-12)


# Properties


@few_examples
@given(kind=kinds, counts=votes, data=st.data())
def test_the_cost_does_not_depend_on_the_order_of_classes(kind, counts, data):
    scale = data.draw(scales(kind))
    renamed = data.draw(st.permutations(counts))
    np.testing.assert_allclose(
        cost(kind, scale, [renamed]), cost(kind, scale, [counts]), rtol=1e-10
    )


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


@few_examples
@given(kind=kinds, counts=votes, data=st.data())
def test_the_cost_grows_with_the_order(kind, counts, data):
    scale = data.draw(scales(kind))
    check = data.draw(st.sampled_from([None, NoisyCheck(20, 5.0)]))
    orders = np.array(sorted(data.draw(st.sets(st.floats(1.01, 300), min_size=2))))
    values = cost(kind, scale, [counts], orders, check=check)
    assert np.all(np.diff(values) >= -1e-10 * values[1:])


@few_examples
@given(kind=kinds, counts=votes, data=st.data())
def test_forward_is_at_most_both(kind, counts, data):
    scale = data.draw(scales(kind))
    check = data.draw(st.sampled_from([None, NoisyCheck(20, 5.0)]))
    forward = cost(kind, scale, [counts], check=check, direction="forward")
    both = cost(kind, scale, [counts], check=check)
    assert np.all(forward <= both)
    assert np.all(both > 0)


@few_examples
@given(kind=kinds, counts=votes, data=st.data())
def test_the_cost_at_an_order_does_not_depend_on_other_orders(kind, counts, data):
    # Between some orders, moves are left out that cannot be the worst.
    scale = data.draw(scales(kind))
    orders = 1 + np.geomspace(0.02, 200, 40)
    together = cost(kind, scale, [counts], orders)
    alone = [cost(kind, scale, [counts], [order])[0] for order in orders]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


WORST_CASE_ORDERS = np.array([1.02, 1.1, 1.6, 2, 4, 8, 16, 32, 64, 200])


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


@pytest.mark.parametrize(
    ("data", "n_queries", "threshold", "sigmas", "delta", "epsilon"),
    [
        ("svhn", 8500, 300, (200, 40), 1e-6, 2.66),
        ("mnist", 640, 200, (150, 40), 1e-5, 0.92),
        ("adult", 1500, 300, (200, 40), 1e-5, 0.958),
    ],
)
def test_published_votes_have_these_exact_costs(
    published_counts, data, n_queries, threshold, sigmas, delta, epsilon
):
    counts = published_counts(data)[:n_queries]
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


@pytest.mark.parametrize("direction", ["both", "forward"])
@pytest.mark.parametrize("order", [40, 60])
@pytest.mark.parametrize("counts", [[90, 10], [90, 40, 10]])
def test_costs_of_tens_of_nats_are_right_too(direction, order, counts):
    # They come from an outcome with probability below 1e-600.
    found = cost("gaussian", 1.0, [counts], [order], direction=direction)[0]
    here = exact_law("gaussian", 1.0, counts)
    laws = [exact_law("gaussian", 1.0, list(n)) for n in neighbours(counts)]
    exact = max(exact_divergence(here, law, order) for law in laws)
    if direction == "both":
        exact = max(exact, *(exact_divergence(law, here, order) for law in laws))
    assert found == pytest.approx(float(exact), rel=1e-9, abs=0)


def test_a_small_cost_that_comes_from_a_rarest_outcome_keeps_its_digits():
    # e^{-1602} times the 20th power of e^{79}.
    found = cost("gaussian", 1.0, [[90, 10]], [20])[0]
    exact = exact_local_costs("gaussian", 1.0, [90, 10], [20])[0]
    assert found == pytest.approx(float(exact), rel=1e-9, abs=0)


@by_kind
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

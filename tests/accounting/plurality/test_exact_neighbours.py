"""Exact costs against every neighbour of every vote of a few teachers."""

from functools import lru_cache
from itertools import product
from math import ceil

import numpy as np
import pytest

from tests.accounting.oracles import neighbours
from tests.accounting.plurality.costs import (
    PLURALITIES,
    by_kind,
    cost,
    divergence,
    noisy_check_law,
)
from tests.private import NoisyCheck


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


def joint_laws(votes_, scores, threshold, sigma):
    """The laws of "none" and the classes, for a check of these scores."""
    bits = np.array([noisy_check_law(ceil(threshold - s), sigma) for s in scores])
    return np.hstack([bits[:, :1], bits[:, 1:] * votes_.laws])


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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

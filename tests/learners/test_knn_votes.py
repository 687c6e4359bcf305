"""Votes of the nearest rows, against brute force in Python's own whole numbers."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.private import Grid, NeighbourVotes, NoiseSource, PoissonSampler

N_CLASSES = 4


class Drawn:
    """Stands for the coins: a sample that is known."""

    def __init__(self, in_sample):
        self.in_sample = np.asarray(in_sample, dtype=bool)

    def draw(self, n_units):
        assert n_units == len(self.in_sample)
        return self.in_sample


def aggregate(points, codes, queries, *, k, sampler, groups=None, n_classes=N_CLASSES):
    units = None
    if groups is not None:
        _, units = np.unique(groups, return_inverse=True)
    return NeighbourVotes(
        np.asarray(points, dtype=np.float32),
        np.asarray(codes),
        units,
        np.asarray(queries, dtype=np.float32),
        n_neighbors=k,
        n_classes=n_classes,
        sampler=sampler,
    )


def count_by_hand(points, codes, query, *, k, sampled, groups):
    """Count votes: sort groups in the sample by distance, then by their name."""
    best = {}
    for point, code, group in zip(points, codes, groups, strict=True):
        steps = (int(a) - int(b) for a, b in zip(point, query, strict=True))
        distance = sum(step**2 for step in steps)
        if group not in best or distance < best[group][0]:
            best[group] = distance, code
    ranked = sorted(
        (distance, group, code)
        for group, (distance, code) in best.items()
        if group in sampled
    )
    counts = [0] * N_CLASSES
    for _, _, code in ranked[:k]:
        counts[code] += 1
    return counts


# Few coordinates and few values: many ties, and rows that are there twice.
@st.composite
def data_sets(draw):
    n_rows, n_features = draw(st.integers(1, 14)), draw(st.integers(1, 3))
    values = draw(st.sampled_from([[-1, 0, 1], [-(2**24), -3, 0, 2, 2**24]]))

    def table(n):
        row = st.lists(
            st.sampled_from(values), min_size=n_features, max_size=n_features
        )
        return draw(st.lists(row, min_size=n, max_size=n))

    codes = st.lists(st.integers(0, N_CLASSES - 1), min_size=n_rows, max_size=n_rows)
    groups = st.lists(st.integers(0, 5), min_size=n_rows, max_size=n_rows)
    return {
        "points": np.array(table(n_rows)),
        "codes": np.array(draw(codes)),
        "query": table(1)[0],
        "groups": np.array(draw(st.one_of(st.none(), groups)) or range(n_rows)),
        "k": draw(st.integers(1, 6)),
        "coins": draw(st.lists(st.booleans(), min_size=15, max_size=15)),
    }


def count(data, *, without=None, as_groups=True):
    """Count votes, without one group, by the same coins for all others."""
    kept = data["groups"] != without
    groups = data["groups"][kept]
    names = np.unique(groups)
    votes = aggregate(
        data["points"][kept],
        data["codes"][kept],
        [data["query"]],
        k=data["k"],
        groups=groups if as_groups else None,
        sampler=Drawn([data["coins"][name] for name in names]),
    )
    return votes.counts([0])[0]


@pytest.mark.slow
@given(data=data_sets())
def test_the_nearest_of_the_sample_vote_and_no_other(data):
    names = set(data["groups"].tolist())
    expected = count_by_hand(
        data["points"],
        data["codes"],
        data["query"],
        k=data["k"],
        sampled={name for name in names if data["coins"][name]},
        groups=data["groups"].tolist(),
    )
    assert count(data).tolist() == expected
    if len(names) == len(data["groups"]):
        order = np.argsort(data["groups"])
        rows = {name: data[name][order] for name in ("points", "codes", "groups")}
        assert count(data | rows, as_groups=False).tolist() == expected


@pytest.mark.slow
@given(data=data_sets())
def test_an_added_unit_adds_one_vote_and_removes_one_at_most(data):
    of_all = count(data)
    for name in np.unique(data["groups"]):
        if len(np.unique(data["groups"])) == 1:
            assert of_all.sum() <= 1
            continue
        change = of_all - count(data, without=name)
        assert change[change > 0].sum() <= 1
        assert -change[change < 0].sum() <= 1
        if not data["coins"][name]:
            assert not change.any(), "it was not in the sample"


@pytest.mark.slow
@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.sampled_from([1, 7, 64, 1300]),
    spread=st.sampled_from([0.0, 1e-15, 1e-6, 1.0]),
    angular=st.booleans(),
)
def test_features_that_differ_in_their_last_bits_leave_the_others_in_their_order(
    seed, n_features, spread, angular
):
    # All rows are nearly the same: matrix products in floating point would order them
    # by chance, and by another one when a row is left out.
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=n_features)
    X = centre + spread * rng.normal(size=(60, n_features))
    public = centre + rng.normal(size=(5, n_features))
    codes = rng.integers(N_CLASSES, size=60)
    grid = Grid.around(public, angular=angular)
    points, queries = grid.points(X), grid.points(public)

    def counts(kept):
        votes = aggregate(
            points[kept], codes[kept], queries, k=7, sampler=Drawn(kept[kept])
        )
        return votes.counts(range(5))

    of_all = counts(np.ones(60, dtype=bool))
    for left_out in range(60):
        change = of_all - counts(np.arange(60) != left_out)
        assert np.all(np.abs(change).sum(axis=1) <= 2)
        assert not change.sum(axis=1).any(), "the sample is larger than k"


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [1, 3, 200, 1300, 20_000])
def test_distances_are_exact_at_the_corners_of_the_grid(n_features):
    rng = np.random.default_rng(0)
    grid = Grid.around(rng.uniform(-1, 1, size=(9, n_features)))
    corners = grid.largest * rng.choice([-1, 1], size=(40, n_features))
    corners[::2, 0] += np.sign(-corners[::2, 0])  # one step nearer to the middle
    query = -corners[:1]
    rank = [
        (sum((int(a) - int(b)) ** 2 for a, b in zip(row, query[0], strict=True)), i)
        for i, row in enumerate(corners)
    ]
    for k in (1, 5, 20, 39):
        # Every row has a class of its own: the counts show the voters.
        votes = aggregate(
            corners,
            np.arange(40),
            query,
            k=k,
            n_classes=40,
            sampler=Drawn(np.ones(40)),
        )
        voters = np.flatnonzero(votes.counts([0])[0]).tolist()
        assert voters == sorted(i for _, i in sorted(rank)[:k])


# The grid


@pytest.mark.slow
@pytest.mark.neighbours
@given(
    seed=st.integers(0, 2**32 - 1),
    log_scale=st.floats(-300, 300),
    angular=st.booleans(),
)
def test_a_row_on_the_grid_depends_on_that_row_alone(seed, log_scale, angular):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 11)) * 10**log_scale
    grid = Grid.around(X[:5], angular=angular)
    points = grid.points(X)
    assert np.all(np.abs(points) <= grid.largest)
    np.testing.assert_array_equal(points, np.rint(points))
    for rows in (slice(7, 8), slice(3, 20), slice(None, None, -1)):
        np.testing.assert_array_equal(grid.points(X[rows]), points[rows])
    np.testing.assert_array_equal(grid.points(np.asfortranarray(X)), points)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_grid_is_fine_enough_to_find_the_nearest_rows(digits, metric):
    X, _ = digits
    X = X + np.random.default_rng(0).normal(scale=1e-3, size=X.shape)  # without ties
    public, private = X[:50], X[50:]
    grid = Grid.around(public, angular=metric == "cosine")
    votes = aggregate(
        grid.points(private),
        np.arange(len(private)),
        grid.points(public),
        k=10,
        n_classes=len(private),
        sampler=Drawn(np.ones(len(private))),
    ).counts(range(50))
    if metric == "cosine":
        public, private = (
            one / np.linalg.norm(one, axis=1, keepdims=True)
            for one in (public, private)
        )
    distances = np.linalg.norm(public[:, np.newaxis] - private, axis=2)
    nearest = np.argsort(distances, axis=1)[:, :10]
    agree = votes[np.arange(50)[:, np.newaxis], nearest].sum() / 500
    assert agree > 0.99


@pytest.mark.parametrize("angular", [False, True])
@pytest.mark.parametrize(
    "public",
    [
        [[0.0, 0.0]],
        [[5.0, 5.0], [5.0, 5.0]],
        [[1e308, -1e308], [-1e308, 0]],
        [[5e-324]],
    ],
    ids=["zeros", "constant", "largest", "smallest"],
)
def test_extreme_numbers_have_a_place_on_the_grid(public, angular):
    public = np.array(public)
    grid = Grid.around(public, angular=angular)
    far = np.array([-1.7e308, -1e-320, 0.0, 3.0, 1.7e308])
    X = np.repeat(far[:, np.newaxis], public.shape[1], axis=1)
    for points in (grid.points(X), grid.points(public)):
        assert np.all(np.isfinite(points))
        assert np.all(np.abs(points) <= grid.largest)
    if not angular:
        assert np.all(np.diff(grid.points(X), axis=0) >= 0)


# Samples


def each_its_own_class(n_units, n_queries, rate, *, groups=None):
    points = np.zeros((n_units, 1))
    return aggregate(
        points,
        np.arange(n_units),
        np.zeros((n_queries, 1)),
        k=n_units,
        n_classes=n_units,
        groups=groups,
        sampler=PoissonSampler(rate, NoiseSource()),
    )


@pytest.mark.parametrize("rate", [0.15, 0.6])
def test_every_query_has_a_fresh_poisson_sample(rate):
    n_units, n_queries = 50, 3000
    votes = each_its_own_class(n_units, n_queries, rate)
    drawn = votes.counts(np.arange(n_queries))
    again = votes.counts(np.arange(n_queries))
    assert set(np.unique(drawn)) == {0, 1}
    sizes = drawn.sum(axis=1)
    assert stats.binomtest(int(sizes.sum()), drawn.size, rate).pvalue > 1e-6
    # The variance of a sample's size is that of independent coins, not of a fixed size.
    statistic = ((sizes - n_units * rate) ** 2).sum() / (n_units * rate * (1 - rate))
    assert 1e-6 < stats.chi2.cdf(statistic, n_queries) < 1 - 1e-6
    for one, other in (
        (drawn, again),  # a query that is drawn twice
        (drawn[1:], drawn[:-1]),  # the next query
        (drawn[:, 1:], drawn[:, :-1]),  # the next row
    ):
        table = np.histogram2d(one.ravel(), other.ravel(), bins=2)[0]
        assert stats.chi2_contingency(table).pvalue > 1e-6


def test_groups_are_sampled_as_a_whole_and_vote_once():
    # Group 0 is near the query with one row of class 0, and far with many of class
    # 1: no other row of it ever votes.
    points = np.array([[1.0], *[[100.0]] * 9, [50.0]])
    codes = np.array([0] + [1] * 9 + [2])
    groups = np.array([0] * 10 + [1])
    votes = aggregate(
        points,
        codes,
        np.zeros((2000, 1)),
        k=5,
        groups=groups,
        sampler=PoissonSampler(0.5, NoiseSource()),
    ).counts(np.arange(2000))
    assert votes.max() == 1
    assert not votes[:, 1].any()
    for code in (0, 2):
        assert stats.binomtest(int(votes[:, code].sum()), 2000, 0.5).pvalue > 1e-6


def test_a_sample_smaller_than_k_casts_fewer_votes():
    votes = each_its_own_class(3, 400, 0.1)
    assert votes.shape == (3, 400)
    counts = votes.counts(np.arange(400))
    assert counts.sum(axis=1).min() == 0
    assert votes.counts([]).shape == (0, 3)


@pytest.mark.slow
def test_many_queries_are_counted_like_few():
    # More distances than are computed at once.
    rng = np.random.default_rng(0)
    points = rng.integers(-9, 10, size=(3000, 2))
    codes = rng.integers(N_CLASSES, size=3000)
    queries = rng.integers(-9, 10, size=(3000, 2))
    votes = aggregate(points, codes, queries, k=9, sampler=Drawn(np.ones(3000)))
    together = votes.counts(np.arange(3000))
    for row in (0, 1397, 1398, 2999):
        np.testing.assert_array_equal(votes.counts([row])[0], together[row])


# Pickles


def test_votes_cannot_be_pickled_or_shown():
    votes = each_its_own_class(7, 5, 0.5)
    assert repr(votes) == "NeighbourVotes(<private>, n_neighbors=7, n_queries=5)"
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="sensitive and cannot be pickled"):
            leave(votes)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sklearn_pate.teachers import (
    group_ids,
    hold_out_groups,
    hold_out_rows,
    shard_groups,
    shard_rows,
)

seeds = st.integers(0, 2**31 - 2)


@given(n_teachers=st.integers(1, 30), more=st.integers(0, 100), seed=seeds)
def test_every_row_goes_to_exactly_one_teacher(n_teachers, more, seed):
    n_rows = n_teachers + more
    shards = shard_rows(n_rows, n_teachers, seed)
    np.testing.assert_array_equal(np.sort(np.concatenate(shards)), np.arange(n_rows))
    sizes = [len(shard) for shard in shards]
    assert len(sizes) == n_teachers
    assert max(sizes) - min(sizes) <= 1


@given(
    ids=st.sets(st.integers(0, 10**9), min_size=20, max_size=60),
    newcomer=st.integers(0, 10**9),
    n_teachers=st.integers(2, 20),
    seed=seeds,
)
def test_adding_a_group_moves_no_other_group(ids, newcomer, n_teachers, seed):
    def shard_of(ids):
        spelled, _ = group_ids(sorted(ids))
        shards = shard_groups(spelled, n_teachers, seed)
        public = hold_out_groups(spelled, 0.2, seed)
        return dict(zip(spelled, zip(shards, public, strict=True), strict=True))

    before, after = shard_of(ids), shard_of(ids | {newcomer})
    assert before == {one: after[one] for one in before}


def test_groups_spread_evenly_over_shards():
    ids, _ = group_ids(np.arange(20_000))
    sizes = np.bincount(shard_groups(ids, 50, seed=1), minlength=50)
    assert stats.chisquare(sizes).pvalue > 1e-6


def test_shards_and_held_out_groups_are_independent():
    ids, _ = group_ids(np.arange(20_000))
    public = hold_out_groups(ids, 0.25, seed=1)
    assert stats.binomtest(int(public.sum()), 20_000, 0.25).pvalue > 1e-6
    shards = shard_groups(ids, 10, seed=1)
    table = [np.bincount(shards[public == side], minlength=10) for side in (0, 1)]
    assert stats.chi2_contingency(table).pvalue > 1e-6


def test_another_seed_gives_another_assignment():
    ids, _ = group_ids(np.arange(100))
    assert not np.array_equal(shard_groups(ids, 10, 0), shard_groups(ids, 10, 1))
    assert not np.array_equal(
        np.concatenate(shard_rows(100, 10, 0)), np.concatenate(shard_rows(100, 10, 1))
    )


@pytest.mark.parametrize(
    "spelling",
    [
        np.array([5, 17, 5]),
        np.array([5.0, 17.0, 5.0]),
        np.array(["5", "17", "5"]),
        np.array([5, "17", np.int32(5)], dtype=object),
        np.array([[5], [17], [5]], dtype=np.uint8),
        np.array([5.0, 17.0, 5.0, "abc"])[:3],
        [5, 17.0, "5"],
    ],
)
def test_an_id_hashes_alike_whatever_type_numpy_gave_it(spelling):
    ids, group_of_row = group_ids(spelling)
    assert ids.tolist() == ["17", "5"]
    assert group_of_row.tolist() == [1, 0, 1]


@pytest.mark.parametrize("newcomer", [7, 2.0, "abc", True])
@pytest.mark.parametrize("ids", [[5, 17], [5.0, 17.0], ["5", "17"], [True, False]])
def test_a_newcomer_of_another_type_moves_no_other_group(ids, newcomer):
    before, after = (
        set(group_ids(np.array(some))[0]) for some in (ids, [*ids, newcomer])
    )
    assert before <= after


def test_ids_beyond_the_exact_floats_are_kept_apart_as_integers():
    ids, _ = group_ids(np.array([2**53, 2**53 + 1], dtype=object))
    assert len(ids) == 2
    ids, _ = group_ids(np.array([np.int64(2**53 + 1), 5], dtype=object))
    assert str(2**53 + 1) in ids


@pytest.mark.parametrize(
    "missing", [np.nan, None, 0.5, np.inf, float(2**53), "", float("nan")]
)
def test_a_missing_or_fractional_id_is_refused(missing):
    with pytest.raises(ValueError, match="groups holds"):
        group_ids(np.array([1, missing, 2], dtype=object))


def test_held_out_rows_are_a_random_share():
    one, other = hold_out_rows(1000, 0.2, seed=0), hold_out_rows(1000, 0.2, seed=1)
    assert one.sum() == other.sum() == 200
    assert not np.array_equal(one, other)

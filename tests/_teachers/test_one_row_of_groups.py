import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.private import group_ids, one_row_of_groups

seeds = st.integers(0, 2**31 - 2)
owners = st.lists(st.integers(0, 9) | st.none(), min_size=1, max_size=40).filter(
    lambda some: any(one is not None for one in some)
)


def chosen(groups, seed, rows=None):
    """Return the number of the chosen row, by id of its group."""
    rows = np.arange(len(groups)) if rows is None else rows
    ids, group_of_row = group_ids(np.array(groups, dtype=object), len(groups))
    some = one_row_of_groups(ids, group_of_row, seed)
    return {ids[group_of_row[row]]: rows[row] for row in some}


@pytest.mark.slow
@given(groups=owners, seed=seeds)
def test_each_group_with_an_id_has_one_of_its_rows(groups, seed):
    by_id = chosen(groups, seed)
    assert set(by_id) == {b"%d" % one for one in groups if one is not None}
    assert all(b"%d" % groups[row] == one for one, row in by_id.items())


@pytest.mark.slow
@given(groups=owners, seed=seeds, leaver=st.integers(0, 9))
def test_the_rows_of_another_group_do_not_matter(groups, seed, leaver):
    rows = [row for row, one in enumerate(groups) if one != leaver]
    left = [groups[row] for row in rows]
    if any(one is not None for one in left):
        before, after = chosen(groups, seed), chosen(left, seed, rows)
        before.pop(str(leaver).encode(), None)
        assert before == after


@pytest.mark.slow
@given(groups=owners, seed=seeds, data=st.data())
def test_the_order_of_the_rows_of_other_groups_does_not_matter(groups, seed, data):
    # Another order of owners, in which each takes its rows in the order it has them.
    others = data.draw(st.permutations(groups))
    queues = {
        one: [row for row, owner in enumerate(groups) if owner == one] for one in groups
    }
    rows = [queues[one].pop(0) for one in others]
    assert chosen(groups, seed) == chosen(others, seed, rows)


def test_a_row_without_a_label_is_not_chosen():
    ids = np.array(["1", "2"])
    assert one_row_of_groups(ids, np.array([-1, 0, -1, -1]), 0).tolist() == [1]


def test_all_rows_of_a_group_are_chosen_equally_often():
    groups = np.repeat(np.arange(6000), 6)
    places = [row % 6 for row in chosen(groups, 1).values()]
    assert stats.chisquare(np.bincount(places, minlength=6)).pvalue > 1e-6


def test_the_chosen_rows_are_the_same_in_all_versions():
    groups = ["ann", "ann", "ann", "bob", "bob", "cem", "cem", "cem"]
    assert chosen(groups, 0) == {b"ann": 0, b"bob": 3, b"cem": 7}

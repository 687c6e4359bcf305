import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sklearn_pate import PrivateMarginals
from tests._synthetic.odd_cells import ODD, column_of
from tests.private import OUTSIDE, Marginals, count_cells, group_ids, one_row_of_groups

DOMAIN = {0: ["a", "2", None], 1: (0, 4), 2: {"edges": [0, 1, 3], "missing": True}}
D, N_CLASSES = len(DOMAIN), 2

# A row: places of its values in ODD, and its class index, -1 for a label unknown.
rows = st.tuples(
    *[st.integers(0, len(ODD) - 1)] * D, st.sampled_from(range(-1, N_CLASSES))
)
groups = st.dictionaries(
    st.integers(0, 6), st.lists(rows, min_size=1, max_size=4), min_size=2, max_size=6
)
seeds = st.integers(0, 2**31 - 2)
kinds = pytest.mark.parametrize("by_class", [True, False])


def place(value):
    """Return the place of a value in ODD."""
    return list(map(repr, ODD)).index(repr(value))


def counts(rows, by_class):
    """Return the exact counts of rows."""
    *columns, codes = zip(*rows, strict=True)
    values = [column_of([ODD[one] for one in column]) for column in columns]
    domain = PrivateMarginals(DOMAIN, n_bins=3)._read(np.empty((0, D), dtype=object))
    return count_cells(
        domain, np.stack(values, 1), np.array(codes), N_CLASSES, by_class=by_class
    )


def group_counts(groups, order, seed, by_class, choose=one_row_of_groups):
    """Return the exact counts of one row of each group, in a given order of groups."""
    left = {one: list(its_rows) for one, its_rows in groups.items()}
    table = [(one, left[one].pop(0)) for one in order]
    ids, group_of_row = group_ids([one for one, _ in table], len(table))
    is_labelled = np.array([row[-1] >= 0 for _, row in table])
    some = choose(ids, np.where(is_labelled, group_of_row, -1), seed)
    return counts([table[one][1] for one in some] + [(0,) * D + (-1,)], by_class)


def orders(data, groups):
    """Draw an order of the groups of all rows; the rows of each keep theirs."""
    return data.draw(
        st.permutations([one for one in groups for _ in groups[one]]), label="order"
    )


def squared_distance(one, other):
    return int(np.sum((one - other) ** 2))


@pytest.mark.slow
@kinds
@given(table=st.lists(rows, min_size=1, max_size=8), other=rows, data=st.data())
def test_a_replaced_row_changes_counts_by_two_in_each_table_at_most(
    by_class, table, other, data
):
    replaced = list(table)
    replaced[data.draw(st.integers(0, len(table) - 1))] = other
    distance = squared_distance(counts(table, by_class), counts(replaced, by_class))
    assert distance <= 2 * D


@kinds
def test_the_distance_of_replaced_rows_is_reached(by_class):
    zero, other = place(0), place(2.0)
    before, after = [(place("a"), zero, zero, 0)], [(place("2"), other, other, 1)]
    distance = squared_distance(counts(before, by_class), counts(after, by_class))
    assert distance == 2 * D


@pytest.mark.slow
@kinds
@given(table=st.lists(rows, min_size=1, max_size=8), newcomer=rows)
def test_an_added_row_changes_counts_by_one_in_each_table_at_most(
    by_class, table, newcomer
):
    before, after = counts(table, by_class), counts([*table, newcomer], by_class)
    assert squared_distance(before, after) <= D
    assert np.all(after >= before)


@pytest.mark.slow
@kinds
@given(groups=groups, seed=seeds, data=st.data())
def test_a_removed_group_changes_counts_by_one_in_each_table_at_most(
    by_class, groups, seed, data
):
    fewer = dict(groups)
    del fewer[data.draw(st.sampled_from(sorted(groups)))]
    before = group_counts(groups, orders(data, groups), seed, by_class)
    after = group_counts(fewer, orders(data, fewer), seed, by_class)
    assert squared_distance(before, after) <= D


@pytest.mark.slow
@kinds
@given(
    groups=groups,
    changed=st.lists(rows, min_size=1, max_size=4),
    seed=seeds,
    data=st.data(),
)
def test_a_changed_group_changes_counts_by_two_in_each_table_at_most(
    by_class, groups, changed, seed, data
):
    after = groups | {data.draw(st.sampled_from(sorted(groups))): changed}
    distance = squared_distance(
        group_counts(groups, orders(data, groups), seed, by_class),
        group_counts(after, orders(data, after), seed, by_class),
    )
    assert distance <= 2 * D


def first_of_a_permutation(ids, group_of_row, seed):
    """Choose one row of each group by one draw for all rows. Wrong."""
    order = np.random.RandomState(seed).permutation(len(group_of_row))
    order = order[group_of_row[order] >= 0]
    _, first = np.unique(group_of_row[order], return_index=True)
    return order[first]


@pytest.mark.parametrize(
    ("choose", "exceeds"),
    [(one_row_of_groups, False), (first_of_a_permutation, True)],
)
def test_one_draw_for_all_rows_would_change_more(choose, exceeds):
    a, b = place("a"), place(2.0)
    groups = {one: [(a, a, a, 0), (b, b, b, 1)] for one in range(50)}
    fewer = {one: its_rows for one, its_rows in groups.items() if one}
    before, after = (
        group_counts(some, np.repeat(list(some), 2), 0, True, choose)
        for some in (groups, fewer)
    )
    assert (squared_distance(before, after) > 2 * D) == exceeds


def test_counts_are_by_column_class_and_cell():
    table = [
        *[(place("a"), place(0), place(2.0), 1)] * 3,
        (place(None), place(np.inf), place(None), 0),
        (place(""), place(""), place(0), 0),
        (place("a"), place(0), place(0), -1),
    ]
    first, second = [[0, 0, 1], [3, 0, 0]], [[0, 0, 0], [0, 0, 0]]
    third = [[0, 0, 1], [0, 3, 0]]
    # Undeclared, below and above a range, at its lower end.
    outside = [
        [[1, 0, 0, 0], [0, 0, 0, 0]],
        [[1, 0, 1, 0], [0, 0, 0, 3]],
        [[0, 0, 0, 1], [0, 0, 0, 0]],
    ]
    parts = [first, second, third, *outside]
    expected = np.concatenate([np.ravel(one) for one in parts])
    assert counts(table, by_class=True).tolist() == expected.tolist()
    total = np.concatenate([np.sum(one, axis=0) for one in parts])
    assert counts(table, by_class=False).tolist() == total.tolist()


def test_numbers_outside_a_range_are_in_its_ends_unless_noise_explains_them():
    domain = PrivateMarginals((0, 4), n_bins=2)._read(np.empty((0, 1)))
    inside, outside = np.full((1, 2), 100), np.array([[[7, 20, 30, 40]]])
    counts = np.concatenate([inside.ravel(), outside.ravel()])

    def table(sigma):
        return Marginals(domain, 1, True, counts, None, sigma).tables[0].tolist()

    assert table(sigma=1.0) == [[160, 130]]
    assert table(sigma=8.0) == [[140, 130]]
    assert table(sigma=50.0) == [[100, 100]]


def none_outside(n_tables, n_labels=2):
    return np.zeros(n_tables * n_labels * len(OUTSIDE), dtype=int)


def marginals(*tables, n_rows=None, by_class=True):
    """Return tables of columns with listed values, with hardly any noise."""
    tables = [np.array(one) for one in tables]
    domain = PrivateMarginals(
        {j: [*range(one.shape[1])] for j, one in enumerate(tables)}
    )._read(np.empty((0, len(tables))))
    outside = none_outside(len(tables), 2 if by_class else 1)
    noisy = np.concatenate([*(one.ravel() for one in tables), outside])
    return Marginals(domain, 2, by_class, noisy, n_rows, 0.01)


def test_columns_of_drawn_rows_follow_the_tables_by_class():
    # Class 0 has the values 0 and 1 in the first column, class 1 has 2 and 3.
    first = np.array([[300, 100, 0, 0], [0, 0, 100, 900]])
    second = np.array([[360, 40], [100, 900]])
    drawn = marginals(first, second).draw(40_000, 0, equal_classes=True).X
    is_one = (drawn[:, 0] >= 2).astype(int)
    # Classes are equally frequent, whatever their counts.
    assert stats.binomtest(int(is_one.sum()), 40_000).pvalue > 1e-6
    for label in (0, 1):
        of_class = drawn[is_one == label].astype(int)
        seen = np.bincount(of_class[:, 0], minlength=4)
        expected = first[label] / first[label].sum() * len(of_class)
        assert np.all(seen[expected == 0] == 0)
        possible = expected > 0
        assert stats.chisquare(seen[possible], expected[possible]).pvalue > 1e-6
        share = second[label, 1] / second[label].sum()
        n_seen = int(of_class[:, 1].sum())
        assert stats.binomtest(n_seen, len(of_class), share).pvalue > 1e-6
        # Given the class, columns are independent.
        table = stats.contingency.crosstab(*of_class.T).count
        assert stats.chi2_contingency(table).pvalue > 1e-6


def test_tables_without_classes_are_drawn_from_alike():
    drawn = (
        marginals([[300, 100, 0]], by_class=False).draw(20_000, 0, equal_classes=True).X
    )
    assert stats.binomtest(int(np.sum(drawn == 1)), 20_000, 0.25).pvalue > 1e-6
    assert not np.any(drawn == 2)


def test_a_column_with_one_value_has_no_table_and_is_drawn():
    domain = PrivateMarginals({0: [7], 1: [0, 1]})._read(np.empty((0, 2)))
    counts = np.array([5, 1, 1, 5, *none_outside(1)])
    noisy = Marginals(domain, 2, True, counts, None, 0.01)
    assert list(noisy.tables) == [1]
    assert set(noisy.draw(50, 0, equal_classes=True).X[:, 0]) == {7}


def test_the_same_seed_draws_the_same_rows():
    noisy = marginals([[300, 100], [5, 50]])
    one, again, other = (
        noisy.draw(50, seed, equal_classes=True).X for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("equal_classes", [True, False])
def test_classes_are_equally_frequent_or_as_in_the_rows(equal_classes):
    exact = marginals([[900, 0], [0, 100]], n_rows=1000)
    labels = exact.draw(20_000, 0, equal_classes=equal_classes).labels
    expected = 0.5 if equal_classes else 0.1
    assert abs(np.mean(labels) - expected) < 0.02

"""Exact counts of neighbouring data sets, bit by bit, and planted faults."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from tests._synthetic.odd_cells import ODD
from tests.cases import thorough_but
from tests.metrics.exact_counts import (
    N_ROWS,
    REPLACED,
    OfBatch,
    Touchy,
    columns,
    exact_counts,
    in_container,
    is_within,
    squared_distances,
)
from tests.private import _estimates, _private_metrics

CONTAINERS = ("object", "list", "pandas", "float", "sparse")
BY_SUBGROUP = {"subgroups": np.arange(N_ROWS) % 3, "subgroup_values": [0, 1, 2]}
# Several tests draw examples inside a test that patches.
patched = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=30,
)


def replaced(X, y, row=REPLACED, *, x=(9.0, 9.0), label=1):
    """Replace a row, and its label."""
    X, y = X.copy(), y.copy()
    for column, value in enumerate(x):
        X[row, column] = value
    y[row] = label
    return X, y


def distances_of_rows(monkeypatch, *, x=(9.0, 9.0), label=1, **parameters):
    """Compare rows with those in which one is replaced."""
    X, y = columns()
    before = exact_counts(monkeypatch, X, y, **parameters)
    after = replaced(X, y, x=x, label=label)
    return squared_distances(monkeypatch, before, *after, **parameters)


@pytest.mark.slow
@pytest.mark.parametrize(
    "container", thorough_but(["pandas", "float", "sparse"], CONTAINERS)
)
def test_a_replaced_row_moves_one_count_of_each_table(container, monkeypatch):
    """Whatever its values: missing, huge, of any type, with a label of any type."""

    def held(X, y):
        return in_container(X, container), list(y) if container == "list" else y

    X, y = columns()
    before = exact_counts(monkeypatch, *held(X, y), **BY_SUBGROUP)
    for odd in ODD:
        for x, label in (((odd, 1.0), 0), ((1.0, odd), odd), ((odd, odd), "unknown")):
            rows, labels = held(*replaced(X, y, x=x, label=label))
            if rows is not None:
                found = squared_distances(
                    monkeypatch, before, rows, labels, **BY_SUBGROUP
                )
                assert is_within(found), (odd, found)


def test_the_bound_is_reached(monkeypatch):
    label = 1 - columns()[1][REPLACED]
    found = distances_of_rows(monkeypatch, x=(-50.0, 0.0), label=label)
    assert found == [(4, 4), (2, 2)]


@pytest.mark.parametrize("seed", range(5))
def test_a_replaced_row_of_more_classes(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(N_ROWS, 2)), rng.integers(0, 3, N_ROWS)
    changed, labels = replaced(X, y, x=(-50.0, 0.0), label=(y[REPLACED] + 1) % 3)
    before = exact_counts(monkeypatch, X, y, model=Touchy(3))
    found = squared_distances(monkeypatch, before, changed, labels, model=Touchy(3))
    assert [bound for _, bound in found] == [8, 6]
    assert is_within(found)


def distances_of_groups(monkeypatch, groups, keeps, *, values=None, **parameters):
    """Compare all rows with those that a function keeps, of which some are changed."""
    X, y = columns(n_rows=len(groups))
    kept = np.array([keeps(one) for one in groups])
    others = X[kept].copy()
    if values is not None:
        is_changed = np.asarray(groups)[kept] == values
        others[is_changed] = [[np.nan, "a"], *[[-50.0, 1.0]] * (is_changed.sum() - 1)]
    groups = np.asarray(groups)
    before = exact_counts(monkeypatch, X, y, groups=groups, **parameters)
    return squared_distances(
        monkeypatch, before, others, y[kept], groups=groups[kept], **parameters
    )


owners = st.lists(st.integers(0, 8), min_size=12, max_size=40)


@pytest.mark.slow
@patched
@given(groups=owners, leaver=st.integers(0, 8), seed=st.integers(0, 2**31 - 2))
def test_a_group_that_leaves_moves_one_count_of_each_table(groups, leaver, seed):
    if set(groups) <= {leaver}:
        return
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = distances_of_groups(
            monkeypatch, groups, lambda one: one != leaver, random_state=seed
        )
    # One is added or removed: half of the bound for a change.
    assert all(2 * distance <= bound for distance, bound in found)


@pytest.mark.slow
@patched
@given(groups=owners, seed=st.integers(0, 2**31 - 2))
def test_a_group_with_other_values_moves_two_counts_of_each_table(groups, seed):
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = distances_of_groups(
            monkeypatch,
            groups,
            lambda one: True,
            values=groups[0],
            random_state=seed,
        )
    assert is_within(found)


def test_a_row_without_an_id_counts_nowhere(monkeypatch):
    X, y = columns()
    groups = [None, *range(N_ROWS - 1)]
    for _, counts in exact_counts(monkeypatch, X, y, groups=groups):
        assert counts.sum() % (N_ROWS - 1) == 0
        assert counts.sum() > 0


def test_the_scores_of_a_row_are_those_of_that_row_alone(monkeypatch):
    """A model whose scores depend on the other rows of a batch gets no batch."""
    X, _ = columns()
    found = distances_of_rows(monkeypatch, model=OfBatch(), x=(1e6, 0.0))
    assert is_within(found)
    # One row is the mean of its batch.
    scores, _ = _estimates.score_rows(OfBatch(), X, np.arange(N_ROWS), np.array([0, 1]))
    np.testing.assert_array_equal(scores, 0.5)


@pytest.mark.slow
@pytest.mark.neighbours
def test_a_group_that_joins_changes_no_bit_of_another_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 30)), rng.integers(0, 2, 400)
    model = LogisticRegression().fit(X, y)
    classes = np.array([0, 1])
    few, _ = _estimates.score_rows(model, X[1:], np.arange(399), classes)
    more, _ = _estimates.score_rows(model, X, np.arange(400), classes)
    np.testing.assert_array_equal(few, more[1:])


# Planted faults, each with a comparison that finds it.


def scored_in_a_batch(model, X, rows, *others):
    """Score all rows at once; all fail if one does."""
    try:
        scores = model.predict_proba(X[rows])
    except Exception:
        return np.full((len(rows), 2), np.nan), np.full(len(rows), -1)
    return scores, scores.argmax(axis=1)


def test_rows_scored_in_a_batch_are_found(monkeypatch):
    monkeypatch.setattr(_private_metrics, "score_rows", scored_in_a_batch)
    assert not is_within(distances_of_rows(monkeypatch, x=(np.nan, 0.0)))
    assert not is_within(distances_of_rows(monkeypatch, model=OfBatch(), x=(1e6, 0.0)))


def by_one_permutation(ids, group_of_row, seed):
    """Take the first row of each group in a random order of all rows."""
    order = np.random.RandomState(seed).permutation(len(group_of_row))
    _, first = np.unique(group_of_row[order], return_index=True)
    return order[first]


@pytest.mark.slow
def test_rows_of_groups_by_one_permutation_are_found(monkeypatch):
    groups = [0, *np.repeat(np.arange(1, 9), 5)]

    def leaves(seed):
        return distances_of_groups(
            monkeypatch, groups, lambda one: one != 0, random_state=seed
        )

    assert all(is_within(leaves(seed)) for seed in range(5))
    monkeypatch.setattr(_private_metrics, "one_row_of_groups", by_one_permutation)
    assert not all(is_within(leaves(seed)) for seed in range(5))


def test_a_subgroup_counted_twice_is_found(monkeypatch):
    confusion = _estimates.ScoredRows.confusion

    def with_all_rows(self):
        counts = confusion(self)
        counts[0] = counts.sum(axis=0)
        return counts

    label = 1 - columns()[1][REPLACED]
    moved = {"x": (-50.0, 0.0), "label": label} | BY_SUBGROUP
    assert is_within(distances_of_rows(monkeypatch, **moved))
    monkeypatch.setattr(_estimates.ScoredRows, "confusion", with_all_rows)
    assert not is_within(distances_of_rows(monkeypatch, **moved))

"""Training and validation parts: each unit is in one part and moves no other unit."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pate import PublicData
from tests.private import (
    GROUP_SCORE,
    NEIGHBOURS,
    FitArguments,
    NoiseSource,
    RowSplit,
    split_rows,
)

OF_GROUPS = pytest.mark.parametrize("relation", ["add-remove-or-change", "add-remove"])


def rows(n_rows, **params):
    return FitArguments(
        np.arange(n_rows)[:, np.newaxis],
        np.zeros(n_rows),
        np.zeros(n_rows, int),
        params,
    )


def split(some, unit, relation, *, n_parts=1, test_size=0.25, seed=0, noise=None):
    return split_rows(
        some,
        unit,
        relation,
        n_parts=n_parts,
        test_size=test_size,
        seed=seed,
        noise=noise or NoiseSource(),
    )


@pytest.mark.parametrize(
    ("unit", "relation"), [one for one in NEIGHBOURS if one[0] != "party"]
)
@pytest.mark.parametrize("n_parts", [1, 3])
def test_every_row_is_in_one_part(unit, relation, n_parts):
    groups = {"groups": np.arange(600) // 2} if unit == "group" else {}
    parts = split(rows(600, **groups), unit, relation, n_parts=n_parts)
    everywhere = np.concatenate([*parts.training, parts.validation])
    assert sorted(everywhere) == list(range(600))
    assert len(parts.training) == n_parts
    # Shares of 600 within more than 6 deviations.
    assert 80 < len(parts.validation) < 220
    assert min(len(part) for part in parts.training) > 450 / n_parts * 0.5


@OF_GROUPS
def test_another_group_moves_no_row(relation):
    groups = np.repeat(np.arange(100), 3)
    few = split(rows(300, groups=groups), "group", relation, n_parts=2)
    # The new group's rows come first, and its id sorts among the others.
    new = rows(303, groups=[50.5 * 2] * 3 + [*groups])
    more = split(new, "group", relation, n_parts=2)
    for some, with_new in zip(
        [*few.training, few.validation],
        [*more.training, more.validation],
        strict=True,
    ):
        assert set(some + 3) == set(with_new) - {0, 1, 2}


def test_groups_stay_together():
    groups = np.tile(np.arange(50), 4)
    parts = split(rows(200, groups=groups), "group", "add-remove-or-change", n_parts=3)
    ids = [set(groups[part]) for part in [*parts.training, parts.validation]]
    assert sum(len(one) for one in ids) == 50


def test_rows_that_are_replaced_are_split_by_position_and_seed():
    first, again = (split(rows(100), "row", "replace-one") for _ in range(2))
    other = split(rows(100), "row", "replace-one", seed=1)
    assert first.validation.tolist() == again.validation.tolist()
    assert first.validation.tolist() != other.validation.tolist()
    assert len(first.validation) == 25


def test_parts_of_rows_that_may_be_added_are_secret():
    # They do not depend on the seed.
    first, again = (split(rows(200), "row", "add-remove") for _ in range(2))
    assert first.validation.tolist() != again.validation.tolist()


def test_parts_have_the_expected_sizes():
    parts = split(rows(100_000), "row", "add-remove", n_parts=3, test_size=0.3)
    sizes = [len(part) for part in [*parts.training, parts.validation]]
    expected = np.array([0.7 / 3, 0.7 / 3, 0.7 / 3, 0.3]) * 100_000
    assert np.all(np.abs(sizes - expected) < 6 * np.sqrt(expected))


@pytest.mark.parametrize(
    ("unit", "relation", "n_rows", "n_parts"),
    [
        ("row", "replace-one", 1, 1),
        ("row", "replace-one", 3, 3),
        ("group", "add-remove-or-change", 1, 1),
    ],
)
def test_too_few_rows_are_refused(unit, relation, n_rows, n_parts):
    groups = {"groups": np.arange(n_rows)} if unit == "group" else {}
    with pytest.raises(ValueError, match=f"n_samples={n_rows}"):
        split(rows(n_rows, **groups), unit, relation, n_parts=n_parts)


def test_a_part_without_rows_is_refused():
    with pytest.raises(ValueError, match="With 1 training part, a part has no row"):
        split(rows(3), "row", "replace-one", test_size=0.99)


@pytest.mark.slow
@given(st.data())
def test_one_group_moves_a_score_by_no_more_than_the_sensitivity(data):
    groups = np.array(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=20)))
    n_rows = len(groups)
    of_row = st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)
    right = np.array(data.draw(of_row))
    changed = data.draw(st.sampled_from(groups.tolist()))
    otherwise = np.where(groups == changed, data.draw(of_row), right)
    parts = RowSplit([], np.arange(n_rows), groups)
    score = parts.score(right)
    assert abs(score - parts.score(otherwise)) <= parts.sensitivity == GROUP_SCORE
    kept = groups != changed
    without = RowSplit([], np.arange(kept.sum()), groups[kept])
    assert 0 <= score - without.score(right[kept]) <= GROUP_SCORE


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_a_row_moves_a_score_by_one(right):
    parts = RowSplit([], np.arange(len(right)), None)
    right = np.array(right)
    other = right.copy()
    other[0] = ~other[0]
    assert abs(parts.score(right) - parts.score(other)) == parts.sensitivity == 1


def test_a_score_of_groups_is_the_mean_over_groups():
    groups = np.array([0, 0, 0, 0, 1])
    parts = RowSplit([], np.arange(5), groups)
    assert parts.score(np.array([True, False, False, False, True])) == 25 + 100


def test_arguments_are_split_with_the_rows_and_public_rows_are_not():
    public, raw = PublicData(np.zeros((4, 2))), np.zeros((4, 2))
    some = rows(
        4,
        groups=["a", "b", "c", "d"],
        step__groups=pd.Series([1, 2, 3, 4]),
        X_public=raw,
        step__X_public=public,
        other=public,
        words="four",
        number=4,
        short=[1, 2],
    )
    taken = some.take(np.array([1, 3]))
    assert taken.X.ravel().tolist() == [1, 3]
    assert taken.params["groups"] == ["b", "d"]
    assert taken.params["step__groups"].tolist() == [2, 4]
    assert taken.params["X_public"] is raw
    for name in ("step__X_public", "other", "words", "number", "short"):
        assert taken.params[name] is some.params[name]


@OF_GROUPS
def test_a_row_without_a_group_is_in_no_part(relation):
    groups = np.repeat(np.arange(100.0), 3)
    groups[::10] = np.nan
    parts = split(rows(300, groups=groups), "group", relation, n_parts=2)
    everywhere = np.concatenate([*parts.training, parts.validation])
    assert sorted(everywhere) == np.flatnonzero(~np.isnan(groups)).tolist()

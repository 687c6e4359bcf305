import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_pate import PrivateMarginals
from tests._synthetic.containers import TABLES
from tests.private import cell_of


def types_of(X):
    """List the names and types of columns."""
    if isinstance(X, np.ndarray):
        return X.dtype
    if isinstance(X, pd.DataFrame):
        return [*zip(X.columns, X.dtypes, strict=True)]
    return X.schema


@pytest.mark.parametrize("name", TABLES)
def test_uniform_rows_have_the_container_types_and_names_of_the_given(name):
    X, domain = TABLES[name]()
    rows = PrivateMarginals(domain).draw_uniform(X, 60, random_state=0)
    assert type(rows) is type(X)
    assert types_of(rows) == types_of(X)
    assert rows.shape == (60, X.shape[1])


@pytest.mark.parametrize("name", TABLES)
def test_all_cells_of_uniform_rows_are_found_again_equally_often(name):
    X, declared = TABLES[name]()
    domain = PrivateMarginals(declared, n_bins=8)._read(X)
    rows = domain.uniform(400, 0)
    for column, cells in enumerate(domain.cells):
        seen = np.bincount(cell_of(rows, column, cells), minlength=cells.n_cells)
        assert len(seen) == cells.n_cells
        present = seen[: cells.n_cells - cells.missing]
        assert present.max() - present.min() <= max(1, 0.4 * present.max())
        if cells.missing:
            assert seen[-1] == 40


def test_a_few_uniform_rows_are_of_any_cells():
    rows = PrivateMarginals((0, 1)).draw_uniform(np.empty((0, 40)), 3, random_state=0)
    assert rows.min() < 0.1
    assert rows.max() > 0.9


def test_uniform_rows_of_lists_are_an_array_of_objects():
    X = [["a", 1], ["b", 2]]
    rows = PrivateMarginals({0: ["a", "b"], 1: [1, 2]}).draw_uniform(X, 8)
    assert rows.dtype == object
    assert set(rows[:, 0]) == {"a", "b"}


def test_uniform_rows_hold_no_given_value():
    one, other = (np.full((9, 2), value) for value in (-5.5, np.nan))
    rows = [PrivateMarginals((0, 1)).draw_uniform(X, 9, 0) for X in (one, other)]
    np.testing.assert_array_equal(*rows)


READ_ALIKE = [
    (pl.Series([2**53 + 1, 7, -3]), [2**53 - 1, -3]),
    (pl.Series(["b\0", "b", "c"]), ["b", "c"]),
    (pl.Series([0.1, 0.5, -2.0], dtype=pl.Float32), [0.1, 0.5]),
    (pl.Series([True, False, True]), [True, False]),
    (pd.Series([2**53 + 1, 7, -3], dtype="Int64"), [2**53 - 1, -3]),
    (pd.Series(["b", "c", "b"], dtype="str"), ["b", "c"]),
    (pd.Series([True, False, True], dtype="boolean"), [True, False]),
    (pd.Series([3, 7, 5], dtype="category"), [3, 5]),
]


@pytest.mark.parametrize(
    ("column", "values"),
    READ_ALIKE,
    ids=[f"{type(one).__module__} {one.dtype}" for one, _ in READ_ALIKE],
)
def test_a_missing_value_does_not_change_how_others_are_read(column, values):
    whole, hole = column.rename("a").to_frame(), column.to_list()
    hole[1] = None
    with_hole = type(column)(hole, dtype=column.dtype).rename("a").to_frame()
    domain = PrivateMarginals({"a": values})._read(whole)
    first, _, last = cell_of(whole, 0, domain.cells[0])
    assert cell_of(with_hole, 0, domain.cells[0]).tolist() == [first, -1, last]


def test_whole_categories_that_floats_may_round_are_refused():
    frame = pd.DataFrame({"a": pd.Categorical([2**53 + 1, 2])})
    with pytest.raises(ValueError, match=r"not exact from 2\^53 on; convert"):
        PrivateMarginals()._read(frame)


def test_categories_and_bools_need_no_declaration():
    frame = pd.DataFrame({"c": pd.Categorical(["x"], ["y", "x"]), "b": [True]})
    domain = PrivateMarginals()._read(frame)
    assert [one.values for one in domain.cells] == [("y", "x"), (False, True)]
    frame = pl.DataFrame({"c": pl.Series(["x"], dtype=pl.Enum(["y", "x"]))})
    assert PrivateMarginals()._read(frame).cells[0].values == ("y", "x")


def test_values_of_a_polars_categorical_are_not_read():
    frame = pl.DataFrame({"c": pl.Series(["secret"], dtype=pl.Categorical)})
    with pytest.raises(ValueError, match=r"domain=\{'c': \[values\]\}"):
        PrivateMarginals()._read(frame)


def test_a_missing_declaration_is_printed_as_a_template_without_any_value():
    frame = pd.DataFrame({"age": [77123], "job": ["nurse"], "pay": [0.77123]})
    expected = "domain={'age': (low, high), 'job': [values], 'pay': (low, high)}"
    with pytest.raises(ValueError, match=re.escape(expected)) as caught:
        PrivateMarginals()._read(frame)
    assert "77123" not in str(caught.value)
    assert "nurse" not in str(caught.value)

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests._synthetic.odd_cells import ODD, Word, column_of
from tests.private import Bins, cells_of

OBJECTS, FLOATS, WHOLE = np.dtype(object), np.dtype(float), np.dtype(int)
DECLARED = {
    "values": [True, 2, 0.5],
    "values or missing": [True, 2, 0.5, None],
    "text": ["a", "b"],
    "text or missing": ["a", "b", None],
    "range": (0, 4),
    "range or missing": {"range": (0, 4), "missing": True},
    "edges": (0, 1, 10, 100),
}
numbers = st.floats(-1e300, 1e300)
places = st.floats(0, 1, exclude_max=True)


def declare(declared, dtype=OBJECTS, n_bins=4):
    return cells_of("age", declared, dtype, n_bins)


@pytest.mark.slow
@pytest.mark.parametrize("name", DECLARED)
@given(some=st.lists(st.integers(0, len(ODD) - 1), min_size=1, max_size=8))
def test_the_cell_of_an_object_depends_on_it_alone(name, some):
    cells = declare(DECLARED[name])
    together = cells.cell_of(column_of([ODD[one] for one in some]))
    alone = [cells.cell_of(column_of([ODD[one]]))[0] for one in some]
    assert together.tolist() == alone
    assert set(alone) <= {*range(-1, cells.n_cells)}


@pytest.mark.slow
@pytest.mark.parametrize("declared", [(0, 4), [2, 0.5], [2, 0.5, None]])
@given(values=st.lists(st.floats(width=32), min_size=1, max_size=8), data=st.data())
def test_the_cell_of_a_number_depends_on_it_alone(declared, values, data):
    cells = declare(declared, FLOATS)
    others = data.draw(st.permutations(values))
    expected = dict(
        zip(map(repr, values), cells.cell_of(np.array(values)), strict=True)
    )
    found = cells.cell_of(np.array(others))
    assert found.tolist() == [expected[repr(one)] for one in others]
    assert found.tolist() == cells.cell_of(column_of(others)).tolist()


@pytest.mark.thorough
@given(
    values=st.one_of(
        st.lists(one | st.none(), min_size=1, max_size=20, unique=True)
        for one in (
            st.integers(-(2**53) + 1, 2**53 - 1)
            | st.floats(allow_nan=False, allow_infinity=False),
            st.text(),
        )
    )
)
def test_a_listed_value_is_in_its_own_cell(values):
    assume(values != [None])
    assume(all(isinstance(one, str | None) or abs(one) < 2**53 for one in values))
    cells = declare({"values": values})  # two numbers may look like a range
    every = np.arange(cells.n_cells)
    drawn = cells.at(every, np.zeros(len(every)))
    assert set(drawn) == set(values)
    np.testing.assert_array_equal(cells.cell_of(drawn), every)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True])
@given(
    edges=st.lists(numbers, min_size=2, max_size=20, unique=True).map(sorted),
    place=places,
)
def test_a_drawn_float_is_in_its_own_bin(missing, edges, place):
    cells = declare({"edges": edges, "missing": missing}, FLOATS)
    every = np.arange(cells.n_cells)
    drawn = cells.at(every, np.full(len(every), place))
    np.testing.assert_array_equal(cells.cell_of(drawn), every)
    np.testing.assert_array_equal(cells.cell_of(drawn.astype(float)), every)


@given(
    edges=st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=20, unique=True),
    n_bins=st.integers(2, 40),
    place=places,
)
def test_a_drawn_whole_number_is_in_its_own_bin_and_within_the_bounds(
    edges, n_bins, place
):
    edges = tuple(sorted(edges))
    cells = declare(edges, WHOLE, n_bins)
    every = np.arange(cells.n_cells)
    drawn = cells.at(every, np.full(len(every), place))
    assert all(type(one) is int and edges[0] <= one <= edges[-1] for one in drawn)
    np.testing.assert_array_equal(cells.cell_of(drawn.astype(np.int64)), every)


@pytest.mark.slow
@given(low=numbers, high=numbers, n_bins=st.integers(2, 40), place=places)
def test_a_number_drawn_between_two_bounds_is_in_its_own_bin(low, high, n_bins, place):
    assume(low < high)
    cells = declare((low, high), FLOATS, n_bins)
    every = np.arange(cells.n_cells)
    drawn = cells.at(every, np.full(len(every), place))
    np.testing.assert_array_equal(cells.cell_of(drawn), every)


def test_a_short_range_of_whole_numbers_has_a_cell_for_each():
    cells = declare((17, 20), WHOLE, n_bins=32)
    assert cells == Bins(False, (17.0, 18.0, 19.0, 20.0, 21.0), True)
    assert cells.cell_of(np.array([16, 17, 18, 19, 20, 21])).tolist() == [
        *[0, 0, 1, 2, 3, 3]
    ]


def test_the_largest_whole_number_and_the_last_edge_are_in_the_last_bin():
    assert declare((0, 1, 10), WHOLE).cell_of(np.array([0, 1, 9, 10])).tolist() == [
        *[0, 1, 1, 1]
    ]
    assert declare((0, 1, 10), FLOATS).cell_of(np.array([0.5, 1, 10])).tolist() == [
        *[0, 1, 1]
    ]


@pytest.mark.parametrize("low", [-1, -np.inf, -(10**400), np.float32(-2), False])
@pytest.mark.parametrize("high", [41, np.inf, 10**400, 2**60, np.int8(99)])
def test_numbers_out_of_range_are_in_the_first_or_last_bin(low, high):
    assert declare((0, 40)).cell_of(column_of([low, high])).tolist() == [0, 3]


@pytest.mark.parametrize("nowhere", [np.nan, None, "2", "a", [2], 1j])
def test_what_is_no_number_is_in_no_bin_or_missing(nowhere):
    column = column_of([nowhere])
    assert declare((0, 40)).cell_of(column).tolist() == [-1]
    assert declare({"range": (0, 40), "missing": True}).cell_of(column).tolist() == [4]


@pytest.mark.parametrize("equal", [2, 2.0, np.int8(2), np.float32(2), np.array(2)[()]])
def test_an_equal_number_of_any_type_is_in_the_cell_of_a_listed_one(equal):
    assert declare([7, 2]).cell_of(column_of([equal])).tolist() == [1]
    assert declare([7, 2]).cell_of(np.array([equal])).tolist() == [1]


def test_text_of_any_type_is_in_the_cell_of_listed_text():
    texts = column_of(["a", Word("a"), np.str_("a"), "a ", b"a"])
    assert declare(["b", "a"]).cell_of(texts).tolist() == [1, 1, 1, -1, -1]
    assert declare(["b", "a"]).cell_of(np.array(["a", "c"])).tolist() == [1, -1]


def test_listed_floats_are_rounded_as_the_column_rounds_them():
    cells = declare([0.1, 0.3], np.dtype(np.float32))
    assert cells.cell_of(np.array([0.3, 0.1], dtype=np.float32)).tolist() == [1, 0]


@pytest.mark.parametrize("missing", [None, np.nan, float("nan")])
def test_a_missing_value_in_a_list_is_the_last_cell(missing):
    cells = declare([missing, "a", "b"])
    assert (cells.missing, cells.n_cells) == (True, 3)
    assert cells.cell_of(column_of([np.nan, None, "b"])).tolist() == [2, 2, 1]


def test_a_declaration_of_python_and_of_a_json_file_is_the_same():
    assert declare([1, None]) == declare({"values": [1], "missing": True})
    assert declare((0, 9)) == declare({"range": [0, 9]})
    assert declare((0, 1, 9)) == declare({"edges": [0, 1, 9], "missing": False})


@pytest.mark.parametrize("dtype", ["int64", "uint64", "object"])
def test_a_listed_whole_number_that_floats_may_round_is_refused(dtype):
    with pytest.raises(ValueError, match=r"not exact from 2\^53 on; convert"):
        declare([2**53], np.dtype(dtype))

"""Rows are read one by one, whatever stands in others."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier
from sklearn_pate._inputs._column_types import read_like_public
from sklearn_pate._inputs._features import check_features, check_numbers
from sklearn_pate._inputs._odd_rows import (
    HUGE,
    INFINITE,
    MISSING,
    finite_or_default,
    odd_rows,
    read_numbers,
)
from sklearn_pate.baselines import DPLogisticRegression
from tests._inputs.odd_values import ODD_ROW, WORDS, X_PUBLIC, X, with_value


@pytest.mark.parametrize("container", ["object array", "pandas object"])
@pytest.mark.parametrize("public_container", ["float64", "object array"])
@pytest.mark.parametrize("value", WORDS, ids=repr)
def test_other_rows_are_read_equally_bit_by_bit(container, public_container, value):
    if container.startswith("pandas"):
        public_container = {"float64": "pandas"}.get(public_container, container)
    public = with_value(X_PUBLIC, 0.5, public_container)
    clean, odd = (
        read_like_public(with_value(X, one, container), public) for one in (0.5, value)
    )
    others = np.arange(len(X)) != ODD_ROW
    one, other = np.asarray(clean), np.asarray(odd)
    assert one.dtype == other.dtype
    assert one[others].tolist() == other[others].tolist()


@pytest.mark.parametrize("value", [None, 0.5, 2**64, "much", 1j], ids=repr)
def test_one_value_in_a_list_gives_no_other_row_another_type(value):
    large = np.random.default_rng(1).integers(2**60, 2**62, size=(400, 2))

    def read(rows):
        learner = PATEClassifier(GaussianNB())
        X = check_features(learner, rows, reset=True, private=True)
        return read_like_public(X, check_features(learner, rows[:2], reset=True))

    odd = large.tolist()
    odd[ODD_ROW][1] = value
    clean, odd = read(large.tolist()), read(odd)
    assert clean.dtype == odd.dtype
    others = np.arange(400) != ODD_ROW
    np.testing.assert_array_equal(clean[others], odd[others])


@pytest.mark.parametrize("value", [None, 0.5, 2**64, "much", 1j], ids=repr)
@pytest.mark.parametrize("contain", [list, np.array])
def test_numbers_of_other_rows_are_rounded_equally(value, contain):
    # Rounded to float64 first, it is a tie between two numbers of 32 bits.
    rows = [[2**60 + 2**36 + 1, 3], [5, 7]]
    learner = DPLogisticRegression()
    clean = check_numbers(learner, contain(rows), reset=True, dtype=np.float32)
    rows[1][1] = value
    odd = check_numbers(learner, rows, reset=True, dtype=np.float32)
    assert odd[0].tolist() == clean[0].tolist()


def test_text_columns_of_objects_stay_text():
    rows = np.array([["red", 1], ["blue", "x"], [None, 3.5]], dtype=object)
    public = np.array([["red", 1.0], ["green", None]], dtype=object)
    read = read_like_public(rows, public)
    assert read[:, 0].tolist() == ["red", "blue", None]
    np.testing.assert_array_equal(read[:, 1].astype(float), [1, np.nan, 3.5])


def test_numbers_are_read_one_by_one():
    values = ["1.5", 2, None, "x", 10**400, -(10**400), pd.NA, np.float32(0.1), b"7"]
    rows = np.array(values, dtype=object)[:, np.newaxis]
    expected = [1.5, 2, np.nan, np.nan, np.inf, -np.inf, np.nan, np.float32(0.1), 7]
    np.testing.assert_array_equal(read_numbers(rows)[:, 0], expected)


def test_containers_among_numbers_are_refused_and_a_column_of_text_is_named():
    with pytest.raises(TypeError, match="not 'dict'"):
        read_numbers(np.array([[1.0], [{}]], dtype=object))
    with pytest.raises(ValueError, match="column 'job' is text, and holds no number"):
        read_numbers(pd.DataFrame({"age": [1, 2], "job": ["a", "b"]}))


@pytest.mark.parametrize("container", ["float64", "object array", "pandas", "sparse"])
def test_odd_values_are_found_in_their_rows(container):
    for value, kind in [(np.nan, MISSING), (np.inf, INFINITE), (1e308, HUGE), (2, 0)]:
        odd = odd_rows(with_value(X, value, container))
        assert odd[ODD_ROW] == kind
        assert not np.any(np.delete(odd, ODD_ROW))


def test_a_default_takes_the_place_of_whole_rows_and_leaves_others_alone():
    default = np.array([1.0, 2.0, 3.0])
    for value in (np.nan, np.inf, -np.inf):
        rows = finite_or_default(with_value(X, value, "float64"), default)
        np.testing.assert_array_equal(rows[ODD_ROW], default)
        np.testing.assert_array_equal(
            np.delete(rows, ODD_ROW, axis=0), np.delete(X, ODD_ROW, axis=0)
        )

"""Rows are read one by one, whatever stands in others."""

import datetime
import uuid
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PublicData, PublicDataWarning
from sklearn_pate.inspection import plan
from sklearn_pate.learners import DPLogisticRegression
from tests._inputs.odd_values import ODD_ROW, WORDS, X_PUBLIC, X, with_value
from tests.private import (
    HUGE,
    INFINITE,
    MISSING,
    check_features,
    check_numbers,
    finite_or_default,
    odd_rows,
    read_like_public,
    read_numbers,
    warn_of_text,
)


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


def test_times_among_numbers_are_seconds_and_dates_and_durations_are_days():
    values = [
        datetime.time(1, 0, 30),
        datetime.date(1970, 1, 3),
        datetime.timedelta(hours=12),
        pd.Period("1970-02", "M"),
        np.datetime64("1970-01-02"),
        pd.NaT,
    ]
    rows = np.array(values, dtype=object)[:, np.newaxis]
    expected = [3630, 2, 0.5, 31, 1, np.nan]
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


def _texts_of_kinds():
    rng = np.random.default_rng(0)
    numbers = rng.gamma(2, 20, size=200) + 12
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 365, 200), "D")
    points = [f"{one:.2f}" for one in numbers]
    return {
        "numbers": [
            points,
            [one.replace(".", ",") for one in points],
            [f"{100 * one:,.1f}" for one in numbers],
            [f" {one:.0f} " for one in numbers],
            [f"{one:.1f}%" for one in numbers],
            [f"{one:.1f} kg" for one in numbers],
            [f"€ {one:.2f}" for one in numbers],
            [f"{one:.2e}" for one in numbers],
            [
                ["", "N/A", "?"][i // 3 % 3] if i % 3 else x
                for i, x in enumerate(points)
            ],
            # Nearly all are numbers.
            [
                ["1O5", "see note", "10-20", "<5"][i // 20 % 4] if i % 20 == 0 else x
                for i, x in enumerate(points)
            ],
            [
                ["n/a", "<5", "low"][i % 3] if i % 15 == 0 else f"{x:.0f}"
                for i, x in enumerate(numbers)
            ],
            # Few are distinct.
            [["0.5", "1.0", "1.5"][one] for one in rng.integers(0, 3, 200)],
            [["2,5", "5", "7,5"][one] for one in rng.integers(0, 3, 200)],
            [["5 mg", "10 mg", "20 mg"][one] for one in rng.integers(0, 3, 200)],
            [f"{one:.0f}" for one in rng.normal(20, 4, 2000)],
            [f"{one}" for one in rng.poisson(5, 2000)],
            [str(one) for one in rng.integers(18, 90, 30)],
            [f"{one}" for one in rng.integers(1950, 2000, 200)],
        ],
        "dates": [
            [f"{one:%Y-%m-%d}" for one in days],
            [f"{one:%d.%m.%Y}" for one in days],
            [f"{one:%d %b %Y}" for one in days],
            [f"{one:%Y-%m}" for one in days],
            [f"{one:%Y-01-01}" if one.month > 3 else "2019-01-01" for one in days]
            + ["2018-01-01"],
            [f"{one // 60:02d}:{one % 60:02d}" for one in rng.integers(0, 1440, 200)],
        ],
        "ids": [
            [f"P{one}" for one in range(200)],
            [f"{one:05d}" for one in range(200)],
            [f"pain for {one} days in the knee" for one in range(200)],
        ],
        None: [
            [f"{one:02d}" for one in rng.integers(1, 13, 200)],
            [["250.83", "276", "V57", "E849"][one] for one in rng.integers(0, 4, 200)],
            [str(one) for one in rng.integers(1, 6, 200)],
            [f"{one}.0" for one in rng.integers(1, 6, 200)],
            [str(one) for one in rng.integers(1, 21, 2000)],
            [str(one) for one in rng.choice(26, 2000, p=rng.dirichlet(np.ones(26)))],
            [str(10_000 + 731 * one) for one in rng.integers(0, 80, 200)],
            [f"1.{one}.0" for one in rng.integers(0, 12, 200)],
            [f"10.0.0.{one}" for one in rng.integers(0, 12, 200)],
            [["0-5", "6-10", "11-20", ">20"][one] for one in rng.integers(0, 4, 200)],
            [["1 - yes", "2 - no"][one] for one in rng.integers(0, 2, 200)],
            [f"[{one}0-{one + 1}0)" for one in rng.integers(0, 10, 200)],
            [["red", "green", "?"][one] for one in rng.integers(0, 3, 200)],
        ],
    }


CONTAINERS = {
    "object": lambda values: pd.DataFrame({"a": pd.Series(values, dtype=object)}),
    "category": lambda values: pd.DataFrame({"a": pd.Categorical(values)}),
    "string": lambda values: pd.DataFrame({"a": pd.array(values, dtype="string")}),
    "object array": lambda values: np.array(values, dtype=object)[:, np.newaxis],
    "text array": lambda values: np.array(values)[:, np.newaxis],
}


@pytest.mark.parametrize("contain", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("kind", _texts_of_kinds())
def test_text_that_is_no_category_is_warned_of_without_a_value(kind, contain):
    for values in _texts_of_kinds()[kind]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_text(contain(values))
        messages = [str(one.message) for one in caught]
        assert [kind in one for one in messages] == ([] if kind is None else [True])
        assert not any(
            one in text for text in messages for one in values if len(one) > 3
        )


@pytest.mark.parametrize(
    ("value", "message"),
    {
        "lists": (lambda one: [one, 1.0], "lists, arrays"),
        "arrays": (lambda one: np.array([one, 1.0]), "lists, arrays"),
        "complex numbers": (lambda one: complex(one, 1), "lists, arrays"),
        "bytes": (lambda one: f"{one}.25".encode(), "numbers stored as text"),
        "uuids": (lambda one: uuid.UUID(int=one), "ids or text"),
        "times": (lambda one: datetime.time(one % 24), None),
        "intervals": (lambda one: pd.Interval(one % 3, 5), None),
        "bools": (lambda one: one % 2 == 0, None),
    }.values(),
)
def test_objects_are_read_as_numbers_or_told_of(value, message):
    column = pd.Series([value(one) for one in range(100)], dtype=object)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_text(pd.DataFrame({"a": column}))
    assert len(caught) == (message is not None)
    assert all(message in str(one.message) for one in caught)


@pytest.mark.parametrize("call", [PATEClassifier.fit, plan])
@pytest.mark.parametrize("source", ["X_public", "public_size"])
def test_numbers_as_text_are_warned_of_before_any_cost(call, source):
    frame = pd.DataFrame({"a": [f"{one},25" for one in range(300)]})
    y = np.arange(300) % 2
    public = {"X_public": PublicData(frame[:100])} if source == "X_public" else {}
    pate = PATEClassifier(public_size=None if public else 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=".*decimal points")
        with pytest.raises(PublicDataWarning, match=r"numbers stored as text.*\['a'\]"):
            call(pate, frame, y, **public)
    assert not hasattr(pate, "privacy_spent_")

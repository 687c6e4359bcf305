"""Tests of TeacherScores: bounds in exact arithmetic, and sealed content."""

import copy
import pickle
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from tests.private import (
    LONGEST_CLASS,
    LONGEST_DIRECTION,
    LONGEST_VALUE,
    SCORE_SHARES,
    STEPS,
    TeacherScores,
    direction_units,
    direction_vector,
    sum_of_classes,
    sum_of_units,
)

ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True, width=64)


def squared(vector):
    """Return the squared length in Python's whole numbers."""
    return sum(int(one) ** 2 for one in vector.ravel())


@pytest.mark.slow
@given(coefficients=arrays(np.float64, (6, 2), elements=ANY_NUMBER))
def test_no_vector_exceeds_its_share(coefficients):
    vector = direction_vector(coefficients)
    assert vector.dtype == np.int64
    assert vector.shape == (6, 2)
    assert squared(vector) <= SCORE_SHARES[1] * STEPS**2


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-320, 1e-160, 1e-3, 1.0, 1e3, 1e160, 1e300]),
)
def test_many_numbers_are_rounded_within_their_share(seed, scale):
    coefficients = scale * np.random.RandomState(seed).standard_normal((4000, 1))
    vector = direction_vector(coefficients)
    assert squared(vector) <= SCORE_SHARES[1] * STEPS**2
    assert vector.any() == (scale >= 1e-3)


def test_all_steps_together_are_within_the_unit():
    assert sum(SCORE_SHARES) == pytest.approx(1, abs=1e-15)
    longest = LONGEST_DIRECTION, LONGEST_VALUE
    assert [*longest] == [isqrt(int(share * STEPS**2)) for share in SCORE_SHARES[1:]]
    # Vectors of classes are sqrt(2) apart, where others are 2 apart.
    distances = 2 * LONGEST_CLASS**2, *(4 * one**2 for one in longest)
    for distance, share in zip(distances, SCORE_SHARES, strict=True):
        assert distance <= 4 * share * STEPS**2


def test_a_vector_is_the_direction_of_the_coefficients_whatever_their_length():
    coefficients = np.array([[0.1, -0.2], [0.05, 0.0]])
    direction = coefficients / np.linalg.norm(coefficients)
    for scale in (1e-2, 1.0, 1e9):
        read = direction_vector(scale * coefficients) / direction_units(4)
        assert np.abs(read - direction).max() <= 0.5 / direction_units(4) + 1e-12


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_coefficients_that_are_not_finite_add_nothing(bad):
    assert not direction_vector(np.array([[0.2], [bad]])).any()


def test_a_teacher_whose_scores_hardly_vary_adds_nothing():
    assert not direction_vector(np.full((3, 1), 1e-6)).any()


def scores_of(contributions, shape=(3, 1)):
    return TeacherScores(contributions, shape=shape)


def sums_of(contributions):
    return scores_of(contributions).sum()


def vectors_of(seed, n_teachers):
    drawn = np.random.RandomState(seed).standard_normal((n_teachers, 3, 1))
    return [direction_vector(one) for one in drawn]


def test_replacing_a_teacher_moves_the_sum_by_two_lengths_at_most():
    teachers = vectors_of(0, 20)
    before = sums_of(teachers)
    too_long = np.full((3, 1), LONGEST_DIRECTION)
    overflowing = np.full((3, 1), 2**62)
    for other in (None, -teachers[7], too_long, overflowing, np.full((3, 1), 0.5)):
        moved = sums_of([*teachers[:7], other, *teachers[8:]]) - before
        assert squared(moved) <= (2 * LONGEST_DIRECTION) ** 2


def test_the_bound_is_nearly_reached_by_opposite_vectors():
    one = direction_vector(np.array([[9.0], [0.0], [0.0]]))
    moved = sums_of([one]) - sums_of([-one])
    assert squared(moved) >= (2 * LONGEST_DIRECTION - 5) ** 2


def test_a_vector_does_not_depend_on_other_teachers_or_their_order():
    teachers = vectors_of(1, 9)
    total = sums_of(teachers)
    assert_array_equal(total, sums_of(teachers[::-1]))
    assert_array_equal(total, sums_of(teachers[:4]) + sums_of(teachers[4:]))


def test_a_teacher_without_scores_is_counted_and_adds_nothing():
    teachers = vectors_of(1, 4)
    of_another_shape = np.zeros((2, 1), dtype=np.int64)
    no_numbers = np.full((3, 1), np.nan)
    with_failed = scores_of([*teachers, None, of_another_shape, no_numbers])
    assert with_failed.n_teachers == 7
    assert with_failed.any_cast
    assert_array_equal(with_failed.sum(), sums_of(teachers))
    assert not scores_of([None, no_numbers]).any_cast


LEAST = np.iinfo(np.int64).min


@pytest.mark.parametrize(
    "vector",
    [
        np.array([[LONGEST_DIRECTION], [1], [0]]),
        np.full((3, 1), LEAST),  # its absolute value is negative, its square 0
        np.full((3, 1), 2**32),  # the square of which is 0
        np.full((3, 1), 2**64 - 1, dtype=np.uint64),
        np.full((3, 1), 1.0),
        np.ones(3, dtype=np.int64),
    ],
    ids=lambda one: f"{one.dtype} {one.ravel()[0]}",
)
def test_what_is_no_direction_adds_nothing_and_is_counted(vector):
    teachers = vectors_of(1, 4)
    scores = scores_of([*teachers, vector])
    assert scores.n_teachers == 5
    assert_array_equal(scores.sum(), sums_of(teachers))
    assert not scores_of([vector]).any_cast


def test_constant_teachers_have_scores():
    assert scores_of([np.zeros((3, 1), dtype=np.int64)]).any_cast


def test_scores_are_neither_shown_nor_pickled():
    scores = scores_of([np.full((3, 1), 123)])
    assert repr(scores) == "TeacherScores(<private>, n_teachers=1)"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="sensitive"):
            leak(scores)


VALUES = st.lists(
    st.integers(-LONGEST_VALUE, LONGEST_VALUE), min_size=1, max_size=30
).map(np.array)


@pytest.mark.slow
@given(values=VALUES, of_group=VALUES, seed=st.integers(0, 2**32 - 1))
def test_a_group_adds_the_mean_of_its_values(values, of_group, seed):
    groups = np.random.RandomState(seed).randint(5, size=len(values))
    before = sum_of_units(values, groups)
    joined = np.r_[of_group, values], np.r_[np.full(len(of_group), 7), groups]
    moved = sum_of_units(*joined) - before
    assert abs(moved) <= LONGEST_VALUE
    assert moved == sum(of_group.tolist()) // len(of_group)
    assert sum_of_units(values, None) == values.sum()


@pytest.mark.slow
@given(values=VALUES, data=st.data())
def test_a_replaced_row_moves_the_sum_by_its_own_value(values, data):
    row = data.draw(st.integers(0, len(values) - 1))
    changed = values.copy()
    changed[row] = data.draw(st.integers(-LONGEST_VALUE, LONGEST_VALUE))
    moved = sum_of_units(changed, None) - sum_of_units(values, None)
    assert moved == changed[row] - values[row]


def test_no_rows_have_a_sum_of_zero():
    nothing = np.zeros(0, dtype=np.int64)
    assert sum_of_units(nothing, None) == sum_of_units(nothing, nothing) == 0


CODES = st.lists(st.integers(-1, 3), min_size=1, max_size=30).map(np.array)


# Of the counts of mean scores, and of those before balanced votes.
LENGTHS = st.sampled_from([LONGEST_CLASS, STEPS])


@pytest.mark.slow
@given(codes=CODES, other=st.integers(-1, 3), longest=LENGTHS, data=st.data())
def test_replacing_a_row_moves_one_vector_of_its_class(codes, other, longest, data):
    row = data.draw(st.integers(0, len(codes) - 1))
    changed = codes.copy()
    changed[row] = other
    before, after = (sum_of_classes(y, None, 1, 4, longest) for y in (codes, changed))
    units = longest * np.vstack([np.eye(4, dtype=int), np.zeros(4, dtype=int)])
    assert_array_equal(after - before, units[other] - units[codes[row]])


@pytest.mark.slow
@given(codes=CODES, of_group=CODES, longest=LENGTHS, seed=st.integers(0, 2**32 - 1))
def test_a_group_adds_one_vector_whatever_its_rows(codes, of_group, longest, seed):
    groups = np.random.RandomState(seed).randint(5, size=len(codes))
    before = sum_of_classes(codes, groups, 1, 4, longest)
    # The new group comes first, so that all rows of others are moved.
    joined = np.r_[of_group, codes], np.r_[np.full(len(of_group), 7), groups]
    vector = sum_of_classes(*joined, 1, 4, longest) - before
    assert np.all(vector >= 0)
    assert vector.sum() <= longest


@pytest.mark.slow
@given(first=CODES, second=CODES, unit=st.sampled_from(["row", "group"]))
def test_a_changed_unit_moves_the_count_of_the_classes_by_sqrt_2(first, second, unit):
    if unit == "row":
        first, second = first[:1], second[:1]

    def vector(codes):
        groups = np.zeros(len(codes), dtype=int) if unit == "group" else None
        return sum_of_classes(codes, groups, 1, 4, STEPS)

    moved = vector(first) - vector(second)
    assert moved @ moved <= 2 * STEPS**2


def test_counted_pairs_stand_for_their_rows():
    codes, groups = np.array([0, 0, 1, 2, 2, 2]), np.array([4, 4, 4, 9, 9, 1])
    pairs = np.array([0, 1, 2, 2]), np.array([4, 4, 9, 1]), np.array([2, 1, 2, 1])
    for of_rows in (True, False):
        rows = sum_of_classes(codes, groups if of_rows else None, 1, 3, LONGEST_CLASS)
        of_pairs, of_group, n_rows = pairs
        counted = sum_of_classes(
            of_pairs, of_group if of_rows else None, n_rows, 3, LONGEST_CLASS
        )
        assert_array_equal(rows, counted)

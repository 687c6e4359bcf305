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

from tests.private import LONGEST, STEPS, ScoreStep, TeacherScores, sum_of_classes

SHARES = (0.29, 0.68)
ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True, width=64)
RADII = st.floats(1e-3, 2.0)


def squared(vector):
    """Return the squared length in Python's whole numbers."""
    return sum(int(one) ** 2 for one in vector.ravel())


@given(
    coefficients=arrays(np.float64, (6, 2), elements=ANY_NUMBER),
    centre=arrays(np.float64, (6, 2), elements=ANY_NUMBER),
    radius=RADII,
    n=st.integers(1, 6),
    share=st.sampled_from(SHARES),
)
def test_no_vector_exceeds_its_share(coefficients, centre, radius, n, share):
    vector = ScoreStep(centre, radius, n, share).vector(coefficients)
    assert vector.dtype == np.int64
    assert squared(vector) <= share * STEPS**2
    assert not vector[n:].any()


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-320, 1e-160, 1e-3, 1.0, 1e3, 1e160, 1e300]),
)
def test_long_vectors_are_clipped_within_their_share(seed, scale):
    shape = (4000, 1)
    coefficients = scale * np.random.RandomState(seed).standard_normal(shape)
    step = ScoreStep(np.zeros(shape), 0.3, 4000, 0.7)
    assert squared(step.vector(coefficients)) <= 0.7 * STEPS**2


def test_all_steps_together_are_within_the_unit():
    longest = [ScoreStep(np.zeros((1, 1)), 1.0, 1, share).longest for share in SHARES]
    assert longest == [isqrt(int(share * STEPS**2)) for share in SHARES]
    assert sum(one**2 for one in [LONGEST, *longest]) <= STEPS**2


def test_a_vector_stands_for_the_coefficients_inside_the_ball():
    coefficients = np.array([[0.1, -0.2], [0.05, 0.0]])
    step = ScoreStep(np.full((2, 2), 0.02), 0.5, 2, 0.7)
    read = step.centre + step.vector(coefficients) * step.unit
    assert np.abs(read - coefficients).max() <= step.unit / 2


def test_a_long_vector_is_scaled_down_to_the_radius():
    coefficients = np.array([[3.0], [4.0]])
    step = ScoreStep(np.zeros((2, 1)), 0.5, 2, 0.7)
    read = step.vector(coefficients) * step.unit
    assert np.abs(read - [[0.3], [0.4]]).max() <= step.unit / 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_coefficients_that_are_not_finite_add_nothing(bad):
    coefficients = np.array([[0.2], [bad]])
    assert not ScoreStep(np.zeros((2, 1)), 0.5, 2, 0.3).vector(coefficients).any()


def scores_of(contributions, shape=(3, 1)):
    return TeacherScores(contributions, shape=shape)


def sums_of(contributions, centre=None):
    scores = scores_of(contributions)
    centre = np.zeros((3, 1)) if centre is None else centre
    return scores.sum(ScoreStep(centre, 0.5, 3, 0.3))


def test_replacing_a_teacher_moves_the_sum_by_two_lengths_at_most():
    rng = np.random.RandomState(0)
    teachers = list(rng.standard_normal((20, 3, 1)))
    before = sums_of(teachers)
    longest = ScoreStep(np.zeros((3, 1)), 0.5, 3, 0.3).longest
    for other in (None, -teachers[7], rng.standard_normal((3, 1)), np.full((3, 1), 9)):
        moved = sums_of([*teachers[:7], other, *teachers[8:]]) - before
        assert squared(moved) <= (2 * longest) ** 2


def test_the_bound_is_nearly_reached_by_opposite_vectors():
    one = np.array([[9.0], [0.0], [0.0]])
    moved = sums_of([one]) - sums_of([-one])
    longest = ScoreStep(np.zeros((3, 1)), 0.5, 3, 0.3).longest
    assert squared(moved) >= (2 * longest - 5) ** 2


def test_a_vector_does_not_depend_on_other_teachers_or_their_order():
    teachers = list(np.random.RandomState(1).standard_normal((9, 3, 1)))
    total = sums_of(teachers)
    assert_array_equal(total, sums_of(teachers[::-1]))
    assert_array_equal(total, sums_of(teachers[:4]) + sums_of(teachers[4:]))


def test_a_teacher_without_scores_is_counted_and_adds_nothing():
    teachers = list(np.random.RandomState(1).standard_normal((4, 3, 1)))
    of_another_shape = np.zeros((2, 1))
    with_failed = scores_of([*teachers, None, of_another_shape])
    assert with_failed.n_teachers == 6
    assert with_failed.any_cast
    assert_array_equal(sums_of([*teachers, None, of_another_shape]), sums_of(teachers))
    assert not scores_of([None, np.full((3, 1), np.nan)]).any_cast


def test_scores_are_neither_shown_nor_pickled():
    scores = scores_of([np.full((3, 1), 0.123)])
    assert repr(scores) == "TeacherScores(<private>, n_teachers=1)"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="sensitive"):
            leak(scores)


CODES = st.lists(st.integers(-1, 3), min_size=1, max_size=30).map(np.array)


# Of the counts of mean scores, and of those before balanced votes.
LENGTHS = st.sampled_from([LONGEST, STEPS])


@given(codes=CODES, other=st.integers(-1, 3), longest=LENGTHS, data=st.data())
def test_replacing_a_row_moves_one_vector_of_its_class(codes, other, longest, data):
    row = data.draw(st.integers(0, len(codes) - 1))
    changed = codes.copy()
    changed[row] = other
    before, after = (sum_of_classes(y, None, 1, 4, longest) for y in (codes, changed))
    units = longest * np.vstack([np.eye(4, dtype=int), np.zeros(4, dtype=int)])
    assert_array_equal(after - before, units[other] - units[codes[row]])


@given(codes=CODES, of_group=CODES, longest=LENGTHS, seed=st.integers(0, 2**32 - 1))
def test_a_group_adds_one_vector_whatever_its_rows(codes, of_group, longest, seed):
    groups = np.random.RandomState(seed).randint(5, size=len(codes))
    before = sum_of_classes(codes, groups, 1, 4, longest)
    # The new group comes first, so that all rows of others are moved.
    joined = np.r_[of_group, codes], np.r_[np.full(len(of_group), 7), groups]
    vector = sum_of_classes(*joined, 1, 4, longest) - before
    assert np.all(vector >= 0)
    assert vector.sum() <= longest


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
        rows = sum_of_classes(codes, groups if of_rows else None, 1, 3, LONGEST)
        of_pairs, of_group, n_rows = pairs
        counted = sum_of_classes(
            of_pairs, of_group if of_rows else None, n_rows, 3, LONGEST
        )
        assert_array_equal(rows, counted)

"""Tests of the vectors of rows and groups: bounds in exact arithmetic, neighbours."""

from functools import partial
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import helmert
from scipy.special import softmax

from tests.private import (
    STEPS,
    CalibrationStep,
    NewtonSteps,
    RepresentedRows,
    Step,
    _newton,
)

SHARES = NewtonSteps.shares
FIRST, LAST = SHARES[0], SHARES[-1]
N_COORDINATES, N_VALUES = 4, 2  # three classes
SHAPE = (N_COORDINATES, N_VALUES)
ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True, width=64)


def step_of(shape=SHAPE, radius=1.0, share=0.25, seed=0):
    """Return a step with other than trivial coefficients and factors."""
    rng = np.random.RandomState(seed)
    left, right = (
        np.eye(size) + 0.1 * rng.standard_normal((size, size)) for size in shape
    )
    return Step(rng.standard_normal(shape), left, right, radius, share)


def last_step(coef, functions=None):
    """Return the step of the mean and the slope of a model."""
    constant, identity = np.eye(len(coef), 1), np.eye(coef.shape[1])
    return CalibrationStep(
        *(coef, constant, identity, 2.0, LAST, functions),
        centre=coef.mean(axis=0),
        scale=0.5,
    )


def squared(vector):
    """Return the squared length in Python's whole numbers."""
    return sum(int(one) ** 2 for one in vector.ravel())


@pytest.mark.slow
@given(
    vectors=arrays(np.float64, (3, *SHAPE), elements=ANY_NUMBER),
    radius=st.floats(1e-3, 100.0),
    share=st.sampled_from(SHARES),
)
def test_no_vector_exceeds_its_share(vectors, radius, share):
    whole = step_of(radius=radius, share=share).rounded(vectors)
    assert_array_equal(whole, np.rint(whole))
    for one in whole:
        assert squared(one) <= share * STEPS**2


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-320, 1e-160, 1e-3, 1.0, 1e3, 1e160, 1e300]),
    share=st.sampled_from(SHARES),
)
def test_long_vectors_are_clipped_within_their_share(seed, scale, share):
    vectors = scale * np.random.RandomState(seed).standard_normal((2, 500, 9))
    step = Step(np.zeros((500, 9)), np.eye(500), np.eye(9), 1.0, share)
    for one in step.rounded(vectors):
        assert squared(one) <= share * STEPS**2


def test_all_steps_together_are_within_the_unit():
    longest = [step_of(share=share).longest for share in SHARES]
    assert longest == [isqrt(int(share * STEPS**2)) for share in SHARES]
    assert sum(one**2 for one in longest) <= STEPS**2


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    n_classes=st.sampled_from([2, 3, 50]),
)
def test_labels_less_probabilities_are_within_their_share(seed, scale, n_classes):
    coef = scale * np.random.RandomState(seed).standard_normal((4, n_classes - 1))
    values = np.c_[np.ones(n_classes), coef[:3, :1].T.repeat(n_classes, axis=0)]
    step = Step.of_mean(coef, LAST)
    left, right = step.factors(values, np.arange(n_classes))
    for vectors in (left[:, :, None] * right[:, None], 9.0 * right[:, None]):
        for one in step.rounded(vectors):
            assert squared(one) <= LAST * STEPS**2
    # No label is clipped: lengths are at most those of e_y - p.
    assert np.linalg.norm(right, axis=1).max() <= np.sqrt(2) + 1e-12


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    n_classes=st.sampled_from([2, 3, 50]),
)
def test_no_vector_of_the_last_step_is_clipped(seed, scale, n_classes):
    rng = np.random.RandomState(seed)
    step = last_step(scale * rng.standard_normal((4, n_classes - 1)))
    values, codes = rng.standard_normal((30, 4)), rng.randint(n_classes, size=30)
    left, right = step.factors(values, codes)
    vectors = left[:, :, None] * right[:, None]
    assert np.linalg.norm(right, axis=1).max() <= 2
    for one in step.rounded(vectors):
        assert squared(one) <= LAST * STEPS**2


def test_the_last_product_is_the_derivative_of_the_log_likelihood_by_the_slope():
    step = last_step(0.3 * np.random.RandomState(1).standard_normal(SHAPE))
    values, label = np.array([[1.0, -0.5, 0.6, 0.3]]), 2
    _, right = step.factors(values, np.array([label]))
    u = step.standardised(values)
    assert np.linalg.norm(u) < 3  # not clipped

    def log_likelihood(slope):
        scores = (values @ step.coef + slope * u) @ helmert(N_VALUES + 1)
        return np.log(softmax(scores, axis=1))[0, label]

    derivative = (log_likelihood(1e-6) - log_likelihood(-1e-6)) / 2e-6
    assert_allclose(_newton._LONGEST * right[0, -1], derivative, atol=1e-8)


@pytest.mark.slow
@given(
    vectors=arrays(np.float64, (3, *SHAPE), elements=ANY_NUMBER),
    other=arrays(np.float64, SHAPE, elements=ANY_NUMBER),
)
def test_a_vector_does_not_depend_on_others(vectors, other):
    step = step_of()
    changed = vectors.copy()
    changed[1] = other
    assert_array_equal(step.rounded(vectors)[[0, 2]], step.rounded(changed)[[0, 2]])


def test_a_short_vector_is_rounded_only():
    vector = np.array([[[0.1, -0.2], [0.05, 0.0], [0.3, 0.1], [0.0, 0.0]]])
    step = step_of(radius=1.0, share=0.6)
    assert_allclose(
        step.rounded(vector) * step.unit, vector.reshape(1, -1), atol=step.unit / 2
    )


def test_a_long_vector_is_scaled_down_to_the_radius():
    vector = np.zeros((1, *SHAPE))
    vector[0, :2, 0] = 3.0, 4.0
    step = step_of(radius=0.5)
    read = step.rounded(vector).reshape(SHAPE) * step.unit
    assert_allclose(read[:2, 0], [0.3, 0.4], atol=step.unit / 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_zero(bad):
    vector = np.full((1, *SHAPE), 0.1)
    vector[0, 1, 1] = bad
    assert not step_of().rounded(vector).any()


def test_the_vector_of_a_row_is_the_gradient_of_its_log_likelihood():
    step = Step(
        np.random.RandomState(1).standard_normal(SHAPE),
        np.eye(N_COORDINATES),
        np.eye(N_VALUES),
        1.0,
        0.25,
    )
    values, label = np.array([[1.0, -0.5, 2.0, 0.3]]), 2
    left, right = step.factors(values, np.array([label]))

    def log_likelihood(coef):
        return np.log(softmax(values @ coef @ helmert(3), axis=1)[0, label])

    for place in np.ndindex(SHAPE):
        moved = np.zeros(SHAPE)
        moved[place] = 1e-6
        slope = log_likelihood(step.coef + moved) - log_likelihood(step.coef - moved)
        assert_allclose(np.outer(left, right)[place], slope / 2e-6, atol=1e-8)


# Neighbours, bit by bit


def values_of(X, places):
    """Compute values of a basis, with matrix products and exponentials."""
    weights = np.random.RandomState(5).standard_normal((X.shape[1], N_COORDINATES))
    return (np.exp(-np.abs(X)) @ weights)[:, places]


def functions(places):
    return partial(values_of, places=places)


def table(n_rows=60, seed=2):
    rng = np.random.RandomState(seed)
    return rng.standard_normal((n_rows, 3)), rng.randint(-1, 3, n_rows)


def rows_of(X, codes, group_of_row=None):
    size = N_COORDINATES * N_VALUES
    return RepresentedRows(X.__getitem__, codes, group_of_row, functions, size=size)


def sums_of(X, codes, group_of_row=None, step=None):
    return rows_of(X, codes, group_of_row).sum(step or step_of())


@pytest.fixture(params=[2**21, 64], ids=["one block", "blocks of 8 rows"])
def blocks(request, monkeypatch):
    monkeypatch.setattr(_newton, "_AT_ONCE", request.param)


# The first and the last step sum labels less probabilities.
OF_GRADIENTS, OF_LABELS = step_of(), Step.of_mean(step_of().coef, LAST)
OF_SHARES = Step.of_mean(np.zeros((1, N_VALUES)), FIRST, np.sqrt(2 / 3))
OF_SLOPE = last_step(step_of().coef[:2], np.array([0, 3]))
STEPS_OF_A_FIT = pytest.mark.parametrize(
    "step",
    [OF_GRADIENTS, OF_LABELS, OF_SHARES, OF_SLOPE],
    ids=["gradients", "labels", "shares", "slope of chosen functions"],
)

ODD_ROWS = [
    ([0.3, -0.2, 0.1], 2),
    ([0.3, -0.2, 0.1], -1),
    ([1e308, -1e308, 1.0], 0),
    ([np.nan, 0.0, 0.0], 1),
    ([np.inf, 0.0, 0.0], -1),
]


@pytest.mark.neighbours
@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("place", [0, 17, 59])
@pytest.mark.parametrize(("row", "label"), ODD_ROWS)
@STEPS_OF_A_FIT
def test_a_replaced_row_changes_its_own_vector_alone(step, place, row, label):
    X, codes = table()
    without = codes.copy()
    without[place] = -1  # contributes zeros at the same place
    rest = sums_of(X, without, step=step)
    for one, code in ((X[place], codes[place]), (row, label)):
        other_X, other_codes = X.copy(), codes.copy()
        other_X[place], other_codes[place] = one, code
        own = sums_of(other_X, other_codes, step=step) - rest
        assert squared(own) <= step.longest**2
        # The same vector in a table whose other rows are all different.
        rows, labels = table(seed=3)
        rows[place], labels[place] = one, code
        silent = labels.copy()
        silent[place] = -1
        moved = sums_of(rows, labels, step=step) - sums_of(rows, silent, step=step)
        assert_array_equal(moved, own)


@pytest.mark.neighbours
@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("most_kept", [0, 2000, 2**29])
@pytest.mark.parametrize("of_groups", [False, True])
def test_values_of_an_earlier_step_change_no_sum(monkeypatch, most_kept, of_groups):
    monkeypatch.setattr(_newton, "_MOST_KEPT", most_kept)
    X, codes, groups = group_table()
    groups = groups if of_groups else None
    rows = rows_of(X, codes, groups)
    for step in (step_of(seed=0), OF_SLOPE, step_of(seed=1), OF_SHARES):
        assert_array_equal(rows.sum(step), sums_of(X, codes, groups, step))


def group_table():
    X, codes = table(80)
    return X, codes, np.random.RandomState(4).randint(-1, 12, 80)


def own_vector(X, codes, groups, group, step=None):
    """Return the vector of a group that is alone."""
    rows = groups == group
    return sums_of(X[rows], codes[rows], groups[rows], step)


@pytest.mark.neighbours
@pytest.mark.parametrize("group", [1, 5, 11])
@STEPS_OF_A_FIT
def test_a_removed_group_takes_its_own_vector_with_it(step, group):
    X, codes, groups = group_table()
    kept = groups != group
    moved = sums_of(X, codes, groups, step)
    moved -= sums_of(X[kept], codes[kept], groups[kept], step)
    own = own_vector(X, codes, groups, group, step)
    assert own.any()
    assert_array_equal(moved, own)
    assert squared(own) <= step.longest**2


@pytest.mark.neighbours
@pytest.mark.parametrize(("row", "label"), ODD_ROWS)
@STEPS_OF_A_FIT
def test_a_changed_group_changes_its_own_vector_alone(step, row, label):
    X, codes, groups = group_table()
    own = own_vector(X, codes, groups, 5, step)
    rest = sums_of(X, codes, groups, step) - own
    other_X, other_codes = X.copy(), codes.copy()
    place = np.flatnonzero(groups == 5)[0]
    other_X[place], other_codes[place] = row, label
    # Another number of rows, at the start of the table, moves all others.
    other_X = np.vstack([np.tile(X[place], (7, 1)), other_X])
    other_codes = np.r_[np.full(7, 1), other_codes]
    other_groups = np.r_[np.full(7, 5), groups]
    other = own_vector(other_X, other_codes, other_groups, 5, step)
    assert squared(other) <= step.longest**2
    moved = sums_of(other_X, other_codes, other_groups, step) - other
    assert_array_equal(moved, rest)


def test_a_group_contributes_one_vector_however_many_rows_it_has():
    X, codes = np.full((1000, 3), 0.2), np.ones(1000, dtype=int)
    few = sums_of(X[:1], codes[:1], np.zeros(1, dtype=int))
    many = sums_of(X, codes, np.zeros(1000, dtype=int))
    assert_allclose(many, few, atol=1)


def test_the_ids_of_groups_do_not_count():
    X, codes, groups = group_table()
    renamed = np.where(groups < 0, -1, 100 - groups)
    assert_array_equal(sums_of(X, codes, groups), sums_of(X, codes, renamed))


def test_rows_without_a_label_or_a_group_contribute_nothing():
    X, codes = table()
    nothing = np.full(60, -1)
    assert not sums_of(X, nothing).any()
    assert not sums_of(X, codes, nothing).any()
    assert not sums_of(X, nothing, np.arange(60) % 7).any()


def test_opposite_labels_nearly_reach_the_bound():
    step = Step(np.zeros((1, 1)), np.eye(1), np.eye(1), 0.1, 0.6)
    one, other = (
        step.rounded(
            np.prod(step.factors(np.ones((1, 1)), np.array([code])), axis=0)[
                :, :, np.newaxis
            ]
        )
        for code in (0, 1)
    )
    assert squared(one - other) >= (2 * step.longest - 5) ** 2


@pytest.mark.parametrize("of_groups", [False, True])
def test_rows_are_represented_in_parts_of_bounded_size(monkeypatch, of_groups):
    monkeypatch.setattr(_newton, "_AT_ONCE", 8 * N_COORDINATES * N_VALUES)
    X, codes, groups = group_table()
    represented = []

    def represent(rows):
        represented.append(np.arange(len(X))[rows])
        return X[rows]

    size = N_COORDINATES * N_VALUES
    groups = groups if of_groups else None
    rows = RepresentedRows(represent, codes, groups, functions, size=size)
    assert_array_equal(rows.sum(OF_GRADIENTS), sums_of(X, codes, groups, OF_GRADIENTS))
    # Groups are whole, and the smallest number of them has eight rows.
    largest = np.bincount(groups[groups >= 0]).max() if of_groups else 0
    assert max(map(len, represented)) <= 8 + largest
    wanted = np.flatnonzero(groups >= 0) if of_groups else np.arange(len(X))
    assert_array_equal(np.sort(np.concatenate(represented)), wanted)
    # Values are kept, and the constant needs none.
    n_parts = len(represented)
    rows.sum(OF_GRADIENTS)
    rows.sum(OF_SHARES)
    assert len(represented) == n_parts

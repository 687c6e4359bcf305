"""Tests of UnitUpdates: bounds in exact arithmetic, neighbours bit by bit."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from sklearn_pate._votes._soft_votes import STEPS
from sklearn_pate._votes._unit_updates import UnitUpdates, UpdateStep

N_COORDINATES, N_CLASSES = 4, 3
SHAPE = (N_COORDINATES, N_CLASSES - 1)
SHARES = (0.15, 0.25, 0.6)


def step_of(share=0.6, radius=1.0, coef=None):
    coef = np.zeros(SHAPE) if coef is None else coef
    return UpdateStep(coef, np.eye(SHAPE[0]), np.eye(SHAPE[1]), radius, share)


def basis(X):
    return np.column_stack([np.ones(len(X)), X, X[:, 0] ** 2, np.sin(X[:, 0])])[:, :4]


def updates_of(X, codes, groups=None, n_units=None):
    return UnitUpdates(
        X, codes, groups, basis, n_units=n_units or len(X), size=8, n_steps=3
    )


def sum_of(*arguments, step=None, **parameters):
    updates = updates_of(*arguments, **parameters)
    return updates.counts([updates.take(step or step_of())])[0]


@pytest.fixture
def rows():
    rng = np.random.RandomState(0)
    return rng.standard_normal((50, 2)), rng.randint(N_CLASSES, size=50)


def squared(vector):
    """Return the squared length in Python's whole numbers."""
    return sum(int(one) ** 2 for one in np.ravel(vector))


@given(
    updates=arrays(
        np.float64, (3, *SHAPE), elements=st.floats(allow_nan=True, width=64)
    ),
    radius=st.floats(1e-3, 1e3),
    share=st.sampled_from(SHARES),
)
def test_no_update_exceeds_its_share(updates, radius, share):
    for whole in step_of(share, radius).rounded(updates):
        assert_array_equal(whole, np.rint(whole))
        assert squared(whole) <= share * STEPS**2


@settings(max_examples=20)
@given(scale=st.sampled_from([1e-320, 1e-9, 1.0, 1e9, 1e160, 1e300]))
def test_long_updates_are_clipped_within_their_share(scale):
    updates = scale * np.random.RandomState(0).standard_normal((20, 500, 1))
    step = UpdateStep(np.zeros((500, 1)), np.eye(500), np.eye(1), 0.3, 0.15)
    assert max(map(squared, step.rounded(updates))) <= 0.15 * STEPS**2


def test_all_steps_together_are_within_the_unit():
    assert sum(step_of(share).longest ** 2 for share in SHARES) <= STEPS**2


def test_a_short_update_is_the_gradient_of_the_log_loss():
    X, code = np.array([[0.3, -0.2]]), np.array([1])
    coef = np.random.RandomState(0).standard_normal(SHAPE) / 3
    step = step_of(radius=50.0, coef=coef)
    read = step.rounded(step.updates(basis(X), code)) * step.unit

    def log_likelihood(coef):
        from scipy.linalg import helmert
        from scipy.special import log_softmax

        return log_softmax(basis(X) @ coef @ helmert(N_CLASSES), axis=1)[0, 1]

    expected = np.zeros(SHAPE)
    for place in np.ndindex(SHAPE):
        moved = np.zeros(SHAPE)
        moved[place] = 1e-6
        rise = log_likelihood(coef + moved) - log_likelihood(coef - moved)
        expected[place] = rise / 2e-6
    assert np.abs(read.reshape(SHAPE) - expected).max() <= step.unit


@pytest.mark.parametrize("other", ["row", "label", "no label", "huge", "missing"])
def test_a_replaced_row_changes_its_own_update_alone(rows, other):
    X, codes = rows
    other_X, other_codes = X.copy(), codes.copy()
    if other == "label":
        other_codes[7] = (codes[7] + 1) % 3
    elif other == "no label":
        other_codes[7] = -1
    else:
        other_X[7] = {"row": [3.0, -1.0], "huge": 1e200, "missing": np.nan}[other]
    step = step_of()
    with np.errstate(all="ignore"):
        own = step.rounded(step.updates(basis(X[7:8]), codes[7:8]))[0]
        moved = sum_of(other_X, other_codes) - sum_of(X, codes)
    # Without its own update, the sum has those of the other rows.
    rest = sum_of(X, codes) - own
    without = codes.copy()
    without[7] = -1
    assert_array_equal(rest, sum_of(X, without))
    assert squared(moved) <= (2 * step.longest) ** 2


@pytest.mark.parametrize("position", [0, 20, 50])
def test_a_group_that_is_added_adds_its_own_update_alone(rows, position):
    X, codes = rows
    groups = np.arange(50) // 4
    own_X, own_codes = (
        np.array([[0.5, 1.0], [9.0, -3.0], [0.1, 0.1]]),
        np.array([0, 2, -1]),
    )
    with_X = np.insert(X, [position] * 3, own_X, axis=0)
    with_codes = np.insert(codes, [position] * 3, own_codes)
    with_groups = np.insert(groups, [position] * 3, 99)
    own = sum_of(own_X, own_codes, np.zeros(3, dtype=int), n_units=13)
    before = sum_of(X, codes, groups, n_units=13)
    after = sum_of(with_X, with_codes, with_groups, n_units=13)
    assert_array_equal(after - before, own)
    assert squared(own) <= step_of().longest ** 2


def test_rows_without_a_group_send_nothing(rows):
    X, codes = rows
    groups = np.arange(50) // 5
    left_out = np.where(groups == 3, -1, groups)
    kept = groups != 3
    assert_array_equal(
        sum_of(X, codes, left_out, n_units=10),
        sum_of(X[kept], codes[kept], groups[kept], n_units=10),
    )


def test_only_the_current_step_can_be_queried(rows):
    updates = updates_of(*rows)
    with pytest.raises(IndexError, match="take"):
        updates.counts([0])
    assert [updates.take(step_of()), updates.take(step_of())] == [0, 1]
    with pytest.raises(IndexError, match="current step"):
        updates.counts([0])


def test_updates_are_neither_shown_nor_pickled(rows):
    updates = updates_of(*rows)
    assert repr(updates) == "UnitUpdates(<private>, n_units=50, n_steps=3)"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="sensitive"):
            leak(updates)

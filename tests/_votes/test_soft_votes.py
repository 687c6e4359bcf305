"""The sensitivity: how far one teacher moves the sum, in exact whole numbers."""

import copy
import pickle
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from sklearn_pate import PublicData
from sklearn_pate.learners import Clusters, PETDLClassifier
from sklearn_pate.students import DistillationClassifier
from tests.private import (
    STEPS,
    SoftVoteForm,
    SoftVoteLayout,
    SoftVotes,
    _votes,
    collect,
    shard_rows,
)
from tests.seeding import equal_noise

N_PUBLIC, N_CLASSES = 12, 3


def squared_distance(one, other):
    """In Python's own numbers, which do not overflow."""
    pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
    return sum((a - b) ** 2 for a, b in pairs)


def largest_allowed(layout):
    return 2 * layout.n_parts * STEPS**2


# Soft votes of any outputs


def one_hot(code):
    return np.repeat(np.eye(N_CLASSES)[[code]], N_PUBLIC, axis=0)


def normalised(values):
    return values / values.sum(axis=1, keepdims=True)


def probabilities_of(rng):
    """Likely outputs, and extreme ones."""
    sure = np.eye(N_CLASSES)[rng.integers(N_CLASSES, size=N_PUBLIC)]
    return [
        normalised(rng.random((N_PUBLIC, N_CLASSES))),
        normalised(rng.random((N_PUBLIC, N_CLASSES)) ** 200 + 1e-300),
        sure,
        *map(one_hot, range(N_CLASSES)),
        np.full((N_PUBLIC, N_CLASSES), 1 / N_CLASSES),
        np.zeros((N_PUBLIC, N_CLASSES)),
        sure * 1e-300,
        np.ones((N_PUBLIC, N_CLASSES)),  # no probabilities, but for each alone
        1000 * rng.random((N_PUBLIC, N_CLASSES)),
    ]


def representations_of(rng):
    random = rng.normal(size=(N_PUBLIC, 5))
    orthogonal = np.eye(N_PUBLIC)
    return [
        random,
        random * 1e30,
        random * 1e-30,
        random + 1e6,
        orthogonal,
        -orthogonal,
        np.repeat(orthogonal[: N_PUBLIC // 2], 2, axis=0),
        np.zeros((N_PUBLIC, 2)),
        np.ones((N_PUBLIC, 1)),
        np.linspace(-1, 1, N_PUBLIC)[:, np.newaxis],
        rng.integers(2, size=(N_PUBLIC, 3)).astype(float),
        np.where(np.arange(N_PUBLIC) < 3, 1e38, 1e-38)[:, np.newaxis],
    ]


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    temperature=st.sampled_from([1e-3, 0.3, 1.0, 2.0, 50.0, 1e6]),
    clipping_bound=st.one_of(st.floats(0.01, 2), st.just(1.0)),
    weighted=st.booleans(),
    n_batches=st.integers(2, 6),
    n_hint_parts=st.integers(0, 3),
)
def test_soft_votes_are_within_their_bounds_and_so_are_all_distances(
    seed, temperature, clipping_bound, weighted, n_batches, n_hint_parts
):
    rng = np.random.default_rng(seed)
    layout = SoftVoteLayout(n_batches, N_CLASSES, n_hint_parts)
    batch_of_row = rng.permutation(np.arange(N_PUBLIC) % n_batches)
    batch_of_row[rng.random(N_PUBLIC) < 0.2] = -1
    form = SoftVoteForm(layout, batch_of_row, temperature, clipping_bound, weighted)
    outputs, hidden = probabilities_of(rng), representations_of(rng)
    vectors = [form.of_outputs(one, hidden[0]) for one in outputs]
    if n_hint_parts:
        vectors += [form.of_outputs(outputs[0], one) for one in hidden]
        vectors += [form.of_outputs(one_hot(0), one) for one in hidden]
    vectors.append(np.zeros((1, layout.size), dtype=np.int32))
    for vector in vectors:
        assert vector.shape == (1, layout.size)
        layout.check(vector)
    for one, other in combinations(vectors, 2):
        assert squared_distance(one, other) <= largest_allowed(layout)


def test_two_teachers_that_are_sure_of_other_classes_are_as_far_apart_as_is_charged():
    layout = SoftVoteLayout(4, N_CLASSES)
    form = SoftVoteForm(layout, np.arange(N_PUBLIC) % 4, 1.0, 1.0, weighted=True)
    one, other = (form.of_outputs(one_hot(code), None) for code in (0, 2))
    assert squared_distance(one, other) == largest_allowed(layout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_batches", "n_classes", "n_hint_parts", "steps"),
    [
        (1, 2, 0, 9),
        (1, 3, 0, 5),
        (2, 2, 0, 3),
        (2, 1, 1, 5),
        (2, 2, 1, 2),
        (3, 1, 2, 2),
    ],
)
def test_no_two_accepted_vectors_are_farther_apart(
    monkeypatch, n_batches, n_classes, n_hint_parts, steps
):
    monkeypatch.setattr(_votes, "STEPS", steps)
    layout = SoftVoteLayout(n_batches, n_classes, n_hint_parts)
    most = int(steps * max(1, n_hint_parts**0.5))
    accepted = []
    for values in product(range(-1, most + 2), repeat=layout.size):
        vector = np.array([values])
        parts = [
            vector[0, g * n_classes : (g + 1) * n_classes] for g in range(n_batches)
        ]
        hint = vector[0, n_batches * n_classes :]
        within = (
            min(values) >= 0
            and all((part**2).sum() <= steps**2 for part in parts)
            and (hint**2).sum() <= n_hint_parts * steps**2
        )
        if within:
            layout.check(vector)
            accepted.append(vector[0])
        else:
            with pytest.raises(ValueError, match="Soft votes"):
                layout.check(vector)
    accepted = np.array(accepted)
    squares = (accepted**2).sum(axis=1)
    distances = squares[:, np.newaxis] + squares - 2 * accepted @ accepted.T
    bound = 2 * layout.n_parts * steps**2
    assert distances.max() <= bound
    if n_classes > 1 and not n_hint_parts:
        assert distances.max() == bound
    assert squares.max() <= bound / 2, "nor is a teacher without soft votes"


# What is not let in


LAYOUT = SoftVoteLayout(n_batches=2, n_classes=2, n_hint_parts=1)


@pytest.mark.parametrize(
    "vector",
    [
        [STEPS, 0, 0, STEPS, STEPS],
        [0, 0, 0, 0, 0],
        [614, 819, 614, 819, 1024],  # 614^2 + 819^2 is 3 below the square of 1024
    ],
)
@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint64, int])
def test_vectors_up_to_the_bound_are_accepted(vector, dtype):
    vector = np.array([vector], dtype=dtype)
    LAYOUT.check(vector)
    np.testing.assert_array_equal(SoftVotes([vector], layout=LAYOUT).sum(), vector[0])


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([-1, 0, 0, 0, 0], "non-negative"),
        ([0, 0, 0, 0, -1], "non-negative"),
        ([1.0, 0.0, 0.0, 0.0, 0.0], "integers"),
        ([np.nan] * 5, "integers"),
        ([True, False, False, False, False], "integers"),
        ([STEPS + 1, 0, 0, 0, 0], "longer"),
        ([STEPS, 1, 0, 0, 0], "longer"),  # short over all
        ([0, 0, 725, 725, 0], "longer"),
        ([0, 0, 0, 0, STEPS + 1], "longer"),
        ([2**32, 0, 0, 0, 0], "longer"),  # its square is 2^64
        ([0, 0, 0, 0, 2**62], "longer"),
        ([2**63 - 1, 0, 0, 0, 0], "longer"),
        (np.array([2**63, 0, 0, 0, 0], dtype=np.uint64), "longer"),
        (np.array([2**64 - 1, 0, 0, 0, 0], dtype=np.uint64), "longer"),
        ([0, 0, 0, 0], "shape"),
        ([0, 0, 0, 0, 0, 0], "shape"),
        ([], "shape"),
    ],
)
def test_vectors_beyond_a_bound_are_refused(vector, message):
    vector = np.array([vector])
    with pytest.raises(ValueError, match=message):
        LAYOUT.check(vector)
    harmless = np.zeros((1, LAYOUT.size), dtype=int)
    with pytest.raises(ValueError, match=message):
        SoftVotes([harmless, None, vector], layout=LAYOUT)


def test_every_query_is_checked():
    vectors = np.zeros((3, LAYOUT.size), dtype=int)
    vectors[2, 3] = STEPS + 1
    with pytest.raises(ValueError, match="longer"):
        LAYOUT.check(vectors)
    with pytest.raises(ValueError, match="shape"):
        LAYOUT.check(vectors[0])


# Access


@pytest.fixture
def votes():
    vectors = [np.full((1, LAYOUT.size), value) for value in (3, 500)]
    return SoftVotes([vectors[0], None, vectors[1]], layout=LAYOUT)


def test_soft_votes_add_up_and_none_adds_nothing(votes):
    assert votes.n_teachers == 3
    np.testing.assert_array_equal(votes.sum(), np.full(5, 503))
    assert votes.any_cast
    assert not SoftVotes([None, None], layout=LAYOUT).any_cast
    assert not SoftVotes([None], layout=LAYOUT).sum().any()


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(1, 300))
def test_the_sum_is_that_of_plain_numbers(seed, n_teachers):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(0, 724, size=(n_teachers, 1, LAYOUT.size), dtype=np.int16)
    total = SoftVotes(iter(vectors), layout=LAYOUT).sum()
    expected = vectors.sum(axis=(0, 1), dtype=np.int64)
    np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_soft_votes_refuse_to_be_duplicated(votes, duplicate):
    with pytest.raises(TypeError, match="sensitive"):
        duplicate(votes)


def test_repr_shows_the_shape_only(votes):
    assert repr(votes) == "SoftVotes(<private>, n_teachers=3)"
    assert not hasattr(votes, "__dict__")


def test_other_sums_or_other_numbers_of_teachers_have_another_content():
    zeros = np.zeros((1, LAYOUT.size), dtype=int)
    vectors = [[zeros], [zeros, zeros], [zeros + 1]]
    contents = [
        pickle.dumps(SoftVotes(one, layout=LAYOUT).content()) for one in vectors
    ]
    assert len(set(contents)) == 3


# Whole ensembles of real teachers


N_TEACHERS = 10


def contributions(X, y, X_public, layout):
    """Return the soft votes of each teacher on digits, and their sum."""
    vectors = []

    def aggregate(iterator):
        vectors.extend(iterator)
        return SoftVotes(vectors, layout=layout)

    form = SoftVoteForm(
        layout, np.arange(len(X_public)) % layout.n_batches, 2.0, 1.0, True
    )
    votes, problems = collect(
        LogisticRegression(max_iter=500),
        X,
        y,
        shard_rows(len(X), N_TEACHERS, 0),
        X_public,
        form=form,
        aggregate=aggregate,
        seeds=list(range(N_TEACHERS)),
    )
    assert not problems.failures
    return vectors, votes.sum()[np.newaxis]


@pytest.mark.slow
@pytest.mark.parametrize("n_hint_parts", [0, 3])
@pytest.mark.parametrize("codes", ["all wrong", "one class", "dropped", "nonsense"])
def test_replacing_the_rows_of_one_teacher_moves_the_sum_through_it_alone(
    digits, n_hint_parts, codes
):
    X, y = digits[0] / 16, digits[1]
    X, y, X_public = X[:1000], y[:1000], X[1000:1400]
    layout = SoftVoteLayout(20, 10, n_hint_parts)
    rows = shard_rows(len(X), N_TEACHERS, 0)[4]
    X_changed, y_changed = X.copy(), y.copy()
    y_changed[rows] = {
        "all wrong": (y[rows] + 1) % 10,
        "one class": 7,
        "dropped": -1,
        "nonsense": np.arange(len(rows)) % 2,
    }[codes]
    if codes == "nonsense":
        X_changed[rows] = 1e3 * np.arange(len(rows))[:, np.newaxis]
    vectors, total = contributions(X, y, X_public, layout)
    changed, changed_total = contributions(X_changed, y_changed, X_public, layout)
    for teacher, (one, other) in enumerate(zip(vectors, changed, strict=True)):
        assert (other is None or not np.array_equal(one, other)) == (teacher == 4)
    before = vectors[4]
    after = np.zeros_like(before) if changed[4] is None else changed[4]
    np.testing.assert_array_equal(changed_total - total, after.astype(int) - before)
    assert 0 < squared_distance(total, changed_total) <= largest_allowed(layout)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Some teachers")
def test_a_label_in_a_whole_fit_moves_the_released_sum_within_the_bound(digits):
    X, y = digits[0] / 16, digits[1]
    X_public = PublicData(X[1000:1400])

    @equal_noise()
    def released(y):
        return PETDLClassifier(
            LogisticRegression(max_iter=500),
            DistillationClassifier(LogisticRegression(max_iter=500)),
            n_teachers=N_TEACHERS,
            batches=Clusters(40),
            epsilon=None,
            noise_scale=1.0,
            random_state=0,
        ).fit(X[:1000], y[:1000], X_public=X_public)

    changed = y.copy()
    changed[17] = (y[17] + 1) % 10
    one, other = released(y), released(changed)
    # Same noise, other labels of one row: what differs is one teacher's doing.
    moved = (one.released_ - other.released_) * STEPS
    np.testing.assert_allclose(moved, np.rint(moved), atol=1e-6)
    assert 0 < (moved**2).sum() <= 2 * one.mechanism_.n_parts * STEPS**2

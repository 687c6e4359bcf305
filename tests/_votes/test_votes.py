import copy
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_pate import TeacherWarning, Votes
from tests.cases import thorough_but


@pytest.fixture
def votes():
    votes_by_teacher = np.array([[0, 2, -1], [0, 1, -1], [1, 2, 2]], dtype=np.int8)
    return Votes(votes_by_teacher, n_public=3, n_classes=3)


def counts(votes):
    return votes.counts(np.arange(votes.shape[1]))


def test_counts_leave_out_abstentions(votes):
    np.testing.assert_array_equal(counts(votes), [[2, 1, 0], [0, 1, 2], [0, 0, 1]])


def test_counts_follow_the_order_of_the_queries(votes):
    np.testing.assert_array_equal(votes.counts([2, 0]), votes.counts([0, 1, 2])[[2, 0]])


@pytest.mark.slow
@given(
    arrays(
        np.int16,
        st.tuples(st.integers(1, 6), st.integers(0, 5)),
        elements=st.integers(-1, 3),
    )
)
def test_counts_are_those_of_plain_python(votes_by_teacher):
    votes = Votes(votes_by_teacher, n_public=votes_by_teacher.shape[1], n_classes=4)
    by_hand = [
        [np.sum(votes_by_teacher[:, i] == k) for k in range(4)]
        for i in range(len(votes_by_teacher.T))
    ]
    np.testing.assert_array_equal(counts(votes), np.reshape(by_hand, (-1, 4)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "n_teachers", thorough_but([255, 256], [255, 256, 65_535, 65_536])
)
def test_counts_do_not_overflow(n_teachers):
    one = np.array([1, 0], dtype=np.int8)
    votes = Votes((one for _ in range(n_teachers)), n_public=2, n_classes=2)
    assert counts(votes).tolist() == [[0, n_teachers], [n_teachers, 0]]


def test_public_rows_beyond_the_first_block_are_counted():
    votes_by_teacher = np.random.default_rng(0).integers(-1, 3, size=(4, 200_001))
    votes = Votes(votes_by_teacher, n_public=200_001, n_classes=3)
    by_hand = np.stack([(votes_by_teacher == k).sum(axis=0) for k in range(3)], axis=1)
    np.testing.assert_array_equal(counts(votes), by_hand)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_teachers():
    def peak(n_teachers):
        votes_by_teacher = (
            np.full(100_000, i % 10, np.int8) for i in range(n_teachers)
        )
        tracemalloc.start()
        try:
            Votes(votes_by_teacher, n_public=100_000, n_classes=10)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(200) < 1.01 * peak(20)


def test_a_missing_teacher_abstains_everywhere():
    votes = Votes([None, np.array([0])], n_public=1, n_classes=2)
    assert votes.shape == (2, 1)
    assert counts(votes).tolist() == [[1, 0]]


def test_repr_shows_the_shape_only(votes):
    assert repr(votes) == "Votes(<private>, n_teachers=3, n_public=3)"


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_votes_refuse_to_be_duplicated(votes, duplicate):
    with pytest.raises(TypeError, match="sensitive"):
        duplicate(votes)


# Labels that were collected elsewhere


@pytest.mark.parametrize(
    "container",
    [
        list,
        np.array,
        pd.Series,
        pl.Series,
        lambda labels: pd.Series(labels, index=[7, 8, 9]),
    ],
)
def test_labels_in_any_container_are_counted(container):
    parties = (container(labels) for labels in (["b", "a", "a"], ["b", "b", "a"]))
    votes = Votes.from_labels(parties, ["b", "a", "c"])
    assert counts(votes).tolist() == [[0, 2, 0], [1, 1, 0], [2, 0, 0]]


@pytest.mark.parametrize("nothing", [-1, -1.0, None, np.nan, pd.NA])
def test_a_party_may_abstain(nothing):
    labels = [np.array(["a", nothing], dtype=object), ["b", "b"]]
    assert counts(Votes.from_labels(labels, ["a", "b"])).tolist() == [[1, 1], [0, 1]]


def test_minus_one_is_a_vote_if_it_is_a_class():
    votes = Votes.from_labels(np.array([[-1, 1], [-1, -1]]), [-1, 1])
    assert counts(votes).tolist() == [[2, 0], [1, 1]]


def test_a_label_that_is_no_class_abstains_and_the_warning_has_no_counts():
    with pytest.warns(TeacherWarning, match="may not be in classes") as caught:
        votes = Votes.from_labels([["a", "B"], ["a", "b"]], ["a", "b"])
    assert counts(votes).tolist() == [[2, 0], [0, 1]]
    assert not any(character.isdigit() for character in str(caught[0].message))


def test_a_label_that_is_an_array_abstains():
    odd = np.empty(2, dtype=object)
    odd[:] = ["a", np.zeros(2)]
    with pytest.warns(TeacherWarning):
        votes = Votes.from_labels([odd, ["b", "b"]], ["a", "b"])
    assert counts(votes).tolist() == [[1, 1], [0, 1]]


def test_files_are_read_one_after_the_other():
    opened = []

    def files():
        for name in ("first", "second"):
            opened.append(name)
            yield np.zeros(5, dtype=int)

    assert Votes.from_labels(files(), [0, 1]).shape == (2, 5)
    assert opened == ["first", "second"]


@pytest.mark.slow
def test_lists_and_tensors_are_votes():
    torch = pytest.importorskip("torch")
    by_teacher = [[0, 1, 2], [2, 1, -1]]
    for given_votes in (by_teacher, torch.tensor(by_teacher)):
        votes = Votes(given_votes, n_public=3, n_classes=3)
        assert counts(votes).tolist() == [[1, 0, 1], [0, 2, 0], [0, 0, 1]]

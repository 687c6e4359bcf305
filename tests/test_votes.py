import copy
import pickle

import numpy as np
import pytest

from sklearn_pate.votes import Votes


@pytest.fixture
def votes():
    return Votes(np.array([[0, 2, -1], [0, 1, -1], [1, 2, 2]], dtype=np.int8), 3)


def test_counts_leave_out_abstentions(votes):
    np.testing.assert_array_equal(
        votes.counts([0, 1, 2]), [[2, 1, 0], [0, 1, 2], [0, 0, 1]]
    )


def test_counts_follow_the_order_of_the_questions(votes):
    np.testing.assert_array_equal(votes.counts([2, 0]), votes.counts([0, 1, 2])[[2, 0]])


def test_repr_shows_the_shape_only(votes):
    assert repr(votes) == "Votes(<sealed>, n_teachers=3, n_public=3)"


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_votes_refuse_to_be_duplicated(votes, duplicate):
    with pytest.raises(TypeError, match="sensitive"):
        duplicate(votes)

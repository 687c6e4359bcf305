import numpy as np
import pytest

from sklearn_pate import BudgetExceededError, Votes
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, Oracle

N_PUBLIC = 30


@pytest.fixture
def votes():
    tied = np.zeros((100, N_PUBLIC), dtype=np.int8)
    tied[:50] = 1
    return Votes(tied, n_public=N_PUBLIC, n_classes=2)


def test_a_row_gets_one_noisy_answer_however_often_it_is_queried(votes):
    oracle = Oracle(votes, GNMax(sigma=1000), n_queries=N_PUBLIC)
    rows = np.arange(N_PUBLIC)
    first = oracle.answer(rows)
    for _ in range(5):
        np.testing.assert_array_equal(oracle.answer(rows[::-1]), first[::-1])
    assert oracle.n_charged == N_PUBLIC


def test_a_row_repeated_in_one_batch_is_charged_once(votes):
    oracle = Oracle(votes, GNMax(sigma=1000), n_queries=1)
    answers = oracle.answer([4] * 20)
    assert len(set(answers.tolist())) == 1
    assert oracle.n_charged == 1


def test_no_answer_is_an_answer_and_is_kept(votes):
    oracle = Oracle(votes, ConfidentGNMax(99, 1, 1), n_queries=3)
    assert oracle.answer([0, 1, 2]).tolist() == [-1] * 3
    assert oracle.answer([2, 1, 0]).tolist() == [-1] * 3
    assert oracle.n_charged == 3


def test_a_batch_beyond_the_budget_draws_and_charges_nothing(votes):
    oracle = Oracle(votes, GNMax(sigma=1), n_queries=5)
    oracle.answer([0, 1, 2])
    with pytest.raises(
        BudgetExceededError, match="exceed the 2 of 5 queries that are left"
    ):
        oracle.answer([0, 3, 4, 5])
    assert oracle.n_charged == 3
    oracle.answer([0, 3, 4])
    assert oracle.n_charged == 5


def test_a_crash_while_drawing_noise_loses_the_answer_but_not_the_charge(votes):
    oracle = Oracle(votes, GNMax(sigma=1), n_queries=5)

    def crash(n_bytes):
        assert oracle.n_charged == 2, "noise was drawn before the charge"
        raise KeyboardInterrupt

    oracle._noise._random_bytes = crash
    with pytest.raises(KeyboardInterrupt):
        oracle.answer([0, 1])
    assert oracle.n_charged == 2


def test_the_cap_on_answers_holds_across_batches():
    votes = Votes(np.zeros((100, N_PUBLIC), int), n_public=N_PUBLIC, n_classes=2)
    oracle = Oracle(votes, ConfidentGNMax(50, 1, 1, max_answers=4), n_queries=10)
    given = np.concatenate([oracle.answer([0, 1, 2]), oracle.answer([3, 4, 5, 6])])
    assert given.tolist() == [0] * 4 + [-1] * 3


@pytest.mark.parametrize("row", [-1, N_PUBLIC])
def test_a_row_that_does_not_exist_is_not_charged(votes, row):
    oracle = Oracle(votes, GNMax(sigma=1), n_queries=5)
    with pytest.raises(IndexError, match="public rows"):
        oracle.answer([0, row])
    assert oracle.n_charged == 0

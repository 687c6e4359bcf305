import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr
from sklearn.base import clone

from sklearn_pate.accounting.bounds import laplace_2017
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, LNMax

P_VALUE = 1e-6
N_DRAWS = 100_000


def frequency_is(answers, wanted, probability):
    hits = int(np.count_nonzero(answers == wanted))
    return stats.binomtest(hits, len(answers), probability).pvalue > P_VALUE


@pytest.mark.parametrize(("gap", "sigma"), [(0, 5), (10, 20), (60, 20)])
def test_gnmax_answers_with_its_exact_probability(gap, sigma):
    answers = GNMax(sigma).answer(np.tile([100 + gap, 100], (N_DRAWS, 1)))
    assert frequency_is(answers, 0, ndtr(gap / (sigma * math.sqrt(2))))


@pytest.mark.parametrize(("gap", "gamma"), [(0, 0.1), (10, 0.05), (60, 0.05)])
def test_lnmax_answers_with_its_exact_probability(gap, gamma):
    answers = LNMax(gamma).answer(np.tile([100, 100 + gap], (N_DRAWS, 1)))
    x = gap * gamma
    assert frequency_is(answers, 0, (2 + x) / (4 * math.exp(x)))


def test_lnmax_with_three_classes_agrees_with_numpy_draws():
    counts = np.array([100, 90, 70])
    noise = np.random.default_rng(0).laplace(scale=20, size=(N_DRAWS, 3))
    by_numpy = np.bincount(np.argmax(counts + noise, axis=1), minlength=3)
    answers = LNMax(0.05).answer(np.tile(counts, (N_DRAWS, 1)))
    found = np.bincount(answers, minlength=3)
    assert stats.chi2_contingency([by_numpy, found]).pvalue > P_VALUE


@pytest.mark.parametrize("largest", [150, 200, 230])
def test_confident_answers_as_often_as_its_check_passes(largest):
    mechanism = ConfidentGNMax(threshold=200, sigma_threshold=30, sigma=1)
    answers = mechanism.answer(np.tile([largest, 10], (N_DRAWS, 1)))
    assert frequency_is(answers, -1, ndtr((200 - largest) / 30))
    assert set(answers) <= {-1, 0}


def test_confident_stops_at_its_cap_and_pays_for_the_cap_only():
    mechanism = ConfidentGNMax(200, 1, 1, max_answers=3)
    answers = mechanism.answer(np.tile([250, 0], (10, 1)))
    assert answers.tolist() == [0, 0, 0] + [-1] * 7
    price = mechanism.account_curve(10, 2)
    np.testing.assert_allclose(price.values, price.orders * (10 / 2 + 3))


def test_confident_has_a_price_before_its_share_is_a_number_of_votes():
    share, votes = ConfidentGNMax(0.8, 30, 10), ConfidentGNMax(200, 30, 10)
    assert share.account_curve(50, 2) == votes.account_curve(50, 2)


def test_the_price_of_confident_does_not_depend_on_how_many_were_answered():
    mechanism = ConfidentGNMax(200, 10, 10)
    curves = [
        mechanism.local_curve(np.tile(row, (5, 1))) for row in ([250, 0], [130, 120])
    ]
    assert curves[0] == curves[1] == mechanism.account_curve(5, 2)


def test_local_curve_of_lnmax_is_the_2017_bound_or_the_worst_case():
    mechanism = LNMax(0.05)
    clear, tied = [[250, 0]] * 20, [[125, 125]] * 20
    bound = laplace_2017(clear, 0.05)
    np.testing.assert_array_equal(mechanism.local_curve(clear).values, bound.values)
    assert mechanism.local_curve(tied) == mechanism.account_curve(20, 2)


@pytest.mark.parametrize(
    "mechanism", [GNMax(3), LNMax(0.1), ConfidentGNMax(0.8, 3, 1, max_answers=2)]
)
def test_mechanisms_are_cloned_and_set_like_estimators(mechanism):
    copied = clone(mechanism)
    assert copied is not mechanism
    assert copied.get_params() == mechanism.get_params()
    name = mechanism.noise_parameters[0]
    assert getattr(copied.set_params(**{name: 7.0}), name) == 7.0


def test_a_share_becomes_a_number_of_votes_that_never_reads_as_a_share():
    sure = {"n_queries": 1, "n_classes": 2}
    for n_teachers, threshold in ((250, 200), (10, 8), (1, 1)):
        ready = ConfidentGNMax(0.8, 1, 1).prepared(n_teachers=n_teachers, **sure)
        assert ready.threshold == threshold
        assert ready.answer([[n_teachers * 100, 0]]).tolist() == [0]

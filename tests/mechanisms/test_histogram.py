"""Noisy histograms: costs compared with enumerated laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.base import clone

from sklearn_pate.mechanisms import GNMax, NoisyHistogram
from tests.mechanisms.laws import goodness_of_fit, log_law
from tests.private import NoiseSource
from tests.seeding import equal_noise

ORDERS = np.array([1.1, 1.5, 2, 3, 3.7, 8, 20])
COUNTS = np.array([[5, 2, 0], [1, 1, 5], [0, 7, 0]])


def divergence(shifts, sigma, order):
    """D_a between histograms whose counts differ by `shifts`, on the whole lattice."""
    n_points = int(order + 12 * sigma) + 5
    first, second = 0.0, 0.0
    for axis, shift in enumerate(shifts):
        shape = [1] * len(shifts)
        shape[axis] = -1
        first = first + log_law(sigma, n_points).reshape(shape)
        second = second + log_law(sigma, n_points, shift).reshape(shape)
    return logsumexp(order * first + (1 - order) * second) / (order - 1)


@pytest.mark.parametrize("sigma", [0.4, 1, 2.5, 6])
def test_the_cost_is_the_divergence_when_one_vote_moves(sigma):
    costs = NoisyHistogram(sigma).cost(1, 3, orders=ORDERS).curve.values
    for order, cost in zip(ORDERS, costs, strict=True):
        exact = divergence((1, -1), sigma, order)
        assert exact <= cost * (1 + 1e-9)
        if order == int(order) or sigma >= 2.5:
            assert exact == pytest.approx(cost, rel=1e-6)


@pytest.mark.parametrize("sigma", [0.4, 2.5])
def test_an_abstention_costs_half_and_both_directions_the_same(sigma):
    for order in ORDERS:
        moved = divergence((1, -1), sigma, order)
        assert divergence((1, 0), sigma, order) == pytest.approx(moved / 2, rel=1e-9)
        assert divergence((-1, 0), sigma, order) == pytest.approx(moved / 2, rel=1e-9)
        assert divergence((-1, 1), sigma, order) == pytest.approx(moved, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_queries", "epsilon"),
    [(40, 0.897), (100, 1.478), (286, 2.642), (500, 3.617), (1000, 5.378)],
)
def test_epsilon_of_many_histograms_is_that_of_the_classical_bound(n_queries, epsilon):
    curve = NoisyHistogram(40).cost(n_queries, 10).curve
    assert curve.to_epsilon(1e-5) == pytest.approx(epsilon, abs=1e-3)
    assert GNMax(40).cost(n_queries, 10).curve.to_epsilon(1e-5) < 0.8 * epsilon


def test_noise_is_calibrated_to_the_cost_of_the_whole_histogram():
    ready = NoisyHistogram().prepared(
        n_teachers=250, n_queries=100, n_classes=10, epsilon=1.0
    )
    assert 0.999 < ready.cost(100, 10).epsilon(1e-5) <= 1.0
    answers = GNMax().prepared(n_teachers=250, n_queries=100, n_classes=2, epsilon=1.0)
    assert 1.2 * answers.sigma < ready.sigma < 1.3 * answers.sigma


@settings(max_examples=50, deadline=None)
@given(
    votes_by_teacher=st.lists(
        st.lists(st.integers(-1, 2), min_size=4, max_size=4), min_size=1, max_size=5
    )
)
def test_local_costs_are_the_worst_case_but_for_abstentions(votes_by_teacher):
    votes_by_teacher = np.array(votes_by_teacher)
    counts = (votes_by_teacher[:, :, np.newaxis] == np.arange(3)).sum(axis=0)
    mechanism = NoisyHistogram(3)
    one_count = ORDERS / (2 * 3**2)
    # On each query a vote moves, or the first vote is added.
    expected = one_count * sum(2 if row.any() else 1 for row in counts)
    np.testing.assert_allclose(mechanism.local_curve(counts, ORDERS).values, expected)
    by_teacher = [
        sum(2 if vote >= 0 else 1 for vote in row) for row in votes_by_teacher
    ]
    np.testing.assert_allclose(
        mechanism.local_curve(counts, ORDERS, votes_by_teacher=votes_by_teacher).values,
        one_count * max(by_teacher),
    )
    worst = mechanism.cost(*counts.shape, orders=ORDERS).curve.values
    assert np.all(mechanism.local_curve(counts, ORDERS).values <= worst * (1 + 1e-12))
    np.testing.assert_allclose(mechanism.optimal_curve(counts, ORDERS).values, worst)


def test_there_is_no_data_dependent_figure_to_publish():
    mechanism = NoisyHistogram(40)
    assert mechanism.paper_epsilon(COUNTS, 1e-5) is None
    assert not hasattr(mechanism, "sanitized_cost")


def test_a_release_is_the_counts_plus_independent_discrete_gaussian_noise():
    counts = np.tile([3, 250, 0], (100_000, 1))
    histograms = NoisyHistogram(2.5).release(counts)
    assert histograms.dtype == np.int64
    noise = histograms - counts
    for drawn in noise.T:
        assert goodness_of_fit(drawn, lambda z: -((z / 2.5) ** 2) / 2, 2.5) > 1e-6
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.02


def test_an_answer_is_the_plurality_of_a_release():
    counts = np.tile([100, 90, 40], (2000, 1))
    mechanism = NoisyHistogram(10)
    histograms = equal_noise()(mechanism.release)(counts)
    answers = equal_noise()(mechanism.answer)(counts)
    top = histograms.max(axis=1)
    assert np.array_equal(histograms[np.arange(2000), answers], top)
    # Ties, which there are, are broken at random.
    tied = np.count_nonzero(histograms == top[:, np.newaxis], axis=1) > 1
    assert set(answers[tied]) == {0, 1}
    with equal_noise():
        response = mechanism.respond(counts, NoiseSource(), max_answers=2000)
    np.testing.assert_array_equal(response.histograms, histograms)
    np.testing.assert_array_equal(response.answers, answers)
    assert response.n_given == 2000


def test_releases_differ():
    first, second = (NoisyHistogram(40).release(COUNTS) for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("call", ["release", "answer", "local_curve", "optimal_curve"])
@pytest.mark.parametrize("sigma", [None, -1, np.nan])
def test_without_noise_nothing_is_released(call, sigma):
    with pytest.raises(ValueError, match="sigma="):
        getattr(NoisyHistogram(sigma), call)(COUNTS)


@pytest.mark.parametrize("counts", [[1, 2], [[0.5, 1]], [[-1, 2]], [[np.nan, 1]]])
def test_invalid_vote_counts_are_refused(counts):
    with pytest.raises(ValueError, match="counts h"):
        NoisyHistogram(40).release(counts)


def test_it_is_cloned_and_set_like_an_estimator():
    copied = clone(NoisyHistogram(40)).set_params(sigma=7.0)
    assert repr(copied) == "NoisyHistogram(sigma=7.0)"

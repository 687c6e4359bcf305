"""Noisy sums of vectors: costs compared with enumerated laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone

from sklearn_pate.accounting import DEFAULT_ORDERS
from sklearn_pate.mechanisms import NoisySum
from tests.mechanisms.laws import log_law
from tests.private import STEPS, NoiseSource, SoftVoteLayout, SoftVotes, StoredSums

SUMS = np.array([[0, 5000, 123_456], [7, 7, 0]])
SIZE = 30

n_parts = st.integers(1, 500)
noise_scales = st.floats(0.5, 200)
deltas = st.floats(1e-10, 0.05)


# What is released


@pytest.mark.slow
@pytest.mark.parametrize("noise_scale", [0.01, 0.5, 7.3, 60])
def test_a_release_is_the_sum_plus_independent_discrete_gaussian_noise(noise_scale):
    sums = np.tile([3, 2_000_000, 0], (60_000, 1))
    noisy = NoisySum(noise_scale).release(sums)
    assert noisy.dtype == np.int64
    noise = noisy - sums
    sigma = noise_scale * STEPS
    width = max(1, int(sigma / 4))
    middles = width * np.arange(-10, 11)
    edges = np.append(middles, middles[-1] + width) - width / 2
    reach = int(12 * sigma)
    law = np.exp(log_law(sigma, reach))
    inside, _ = np.histogram(np.arange(-reach, reach + 1), edges, weights=law)
    expected = np.append(inside, 1 - inside.sum())
    for drawn in noise.T:
        found, _ = np.histogram(drawn, edges)
        found = np.append(found, len(drawn) - found.sum())
        assert stats.chisquare(found, len(drawn) * expected).pvalue > 1e-6
        assert stats.pearsonr(drawn[1:], drawn[:-1]).pvalue > 1e-6
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert stats.pearsonr(noise[:, one], noise[:, other]).pvalue > 1e-6
        size = abs(noise[:, one]), abs(noise[:, other])
        assert stats.pearsonr(*size).pvalue > 1e-6


@pytest.mark.slow
def test_releases_differ():
    first, second = (NoisySum(40).release(SUMS) for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_stored_sum_is_drawn_once():
    layout = SoftVoteLayout(2, 2)
    vectors = [np.array([[STEPS, 0, 0, STEPS]]), None, np.array([[0, STEPS, 0, 0]])]
    votes = SoftVotes(vectors, layout=layout)
    sums = StoredSums(NoisySum(0.001, n_parts=2), None, NoiseSource())
    noisy = sums.draw(0, votes.sum)
    assert sums.draw(0, votes.sum) is noisy
    np.testing.assert_allclose(noisy, [STEPS, STEPS, 0, STEPS], atol=20)


@pytest.mark.parametrize(
    "sums", [[1, 2], [[0.5, 1]], [[1.0, 2.0]], [[True]], [[np.nan]], 3, [["1"]]]
)
def test_sums_that_are_not_whole_numbers_are_refused(sums):
    with pytest.raises(ValueError, match="sums has shape"):
        NoisySum(40).release(sums)


# What it costs


@pytest.mark.parametrize("noise_scale", [0.25, 1, 3])
def test_the_curve_is_the_divergence_of_teachers_that_are_sure_of_other_classes(
    noise_scale,
):
    # Two coordinates of each part change by STEPS, and independent draws add up.
    sigma = noise_scale * STEPS
    reach = int(15 * sigma) + 10 * STEPS
    here, there = log_law(sigma, reach), log_law(sigma, reach, STEPS)
    mechanism = NoisySum(noise_scale, n_parts=3)
    for order in (1.25, 2, 3, 8):
        one = logsumexp(order * there + (1 - order) * here) / (order - 1)
        cost = mechanism.cost(1, SIZE, orders=[order]).curve.values[0]
        assert 2 * 3 * one == pytest.approx(cost, rel=1e-9)
        of_four = mechanism.cost(4, SIZE, orders=[order]).curve.values[0]
        assert of_four == pytest.approx(4 * cost)


@pytest.mark.parametrize("noise_scale", [0.1, 0.2, 0.3])
def test_epsilon_is_that_of_the_enumerated_laws(noise_scale):
    # If two coordinates change, the laws differ in their difference alone.
    sigma = noise_scale * STEPS
    law = np.exp(log_law(sigma, int(10 * sigma) + STEPS))
    difference = np.convolve(law, law)
    here = np.pad(difference, (0, 2 * STEPS))
    there = np.pad(difference, (2 * STEPS, 0))

    def exact_delta(epsilon):
        return np.maximum(there - np.exp(epsilon) * here, 0).sum()

    for delta in (1e-8, 1e-5, 1e-2):
        epsilon = NoisySum(noise_scale).cost(1, 2).epsilon(delta)
        assert exact_delta(epsilon) <= delta
        assert exact_delta(0.999 * epsilon) > delta


@pytest.mark.slow
@given(noise_scale=noise_scales, n_parts=n_parts, delta=deltas)
def test_the_exact_epsilon_is_at_most_that_of_the_curve(noise_scale, n_parts, delta):
    mechanism = NoisySum(noise_scale, n_parts=n_parts)
    of_curve = mechanism.cost(1, SIZE).curve.quiet_epsilon(delta)
    assert mechanism.cost(1, SIZE).epsilon(delta) <= of_curve


@pytest.mark.slow
@given(
    noise_scale=noise_scales, n_parts=n_parts, delta=deltas, factor=st.integers(2, 9)
)
def test_parts_queries_and_noise_can_have_the_same_cost(
    noise_scale, n_parts, delta, factor
):
    one = NoisySum(noise_scale, n_parts=n_parts)
    cost = one.cost(factor, SIZE).epsilon(delta)
    parts = NoisySum(noise_scale, n_parts=n_parts * factor)
    assert parts.cost(1, SIZE).epsilon(delta) == pytest.approx(cost, rel=1e-12)
    noise = NoisySum(noise_scale / np.sqrt(factor), n_parts=n_parts)
    assert noise.cost(1, SIZE).epsilon(delta) == pytest.approx(cost, rel=1e-3)
    assert cost >= one.cost(1, SIZE).epsilon(delta)
    assert NoisySum(2 * noise_scale).cost(1, SIZE).epsilon(delta) <= cost


def test_the_width_of_a_vector_costs_nothing():
    mechanism = NoisySum(3, n_parts=4)
    costs = {mechanism.cost(1, size).epsilon(1e-5) for size in (1, 2, 10_000)}
    assert len(costs) == 1


# Calibration


@pytest.mark.slow
@given(epsilon=st.floats(0.3, 20), n_parts=n_parts, delta=deltas)
def test_noise_is_calibrated_to_the_target_from_below(epsilon, n_parts, delta):
    ready = NoisySum().prepared(n_parts=n_parts, epsilon=epsilon, delta=delta)
    assert ready.n_parts == n_parts
    assert 0.999 * epsilon < ready.cost(1, SIZE).epsilon(delta) <= epsilon


def test_prepared_is_a_clone_and_keeps_noise_that_is_given():
    mechanism = NoisySum(3.0)
    ready = mechanism.prepared(n_parts=7)
    assert (ready.noise_scale, ready.n_parts) == (3.0, 7)
    assert (mechanism.noise_scale, mechanism.n_parts) == (3.0, 1)
    unset = NoisySum()
    assert unset.prepared(n_parts=7, epsilon=1.0).noise_scale > 1
    assert unset.noise_scale is None


@pytest.mark.parametrize(
    ("mechanism", "target", "message"),
    [
        (NoisySum(3.0), {"epsilon": 1.0}, r"NoisySum\(noise_scale=3.0\) both"),
        (NoisySum(), {}, "noise_scale=None"),
        (NoisySum(), {"epsilon": 1e-4}, "raise epsilon"),
        (NoisySum(), {"epsilon": -1.0}, "epsilon=-1.0"),
        (NoisySum(), {"epsilon": 1.0, "delta": 0}, "delta=0"),
        (NoisySum(-1.0), {}, "noise_scale=-1.0"),
    ],
)
def test_a_target_that_cannot_be_reached_is_refused(mechanism, target, message):
    with pytest.raises(ValueError, match=message):
        mechanism.prepared(n_parts=3, **target)


# Parameters


CALLS = {
    "release": lambda mechanism: mechanism.release(SUMS),
    "cost": lambda mechanism: mechanism.cost(1, SIZE),
    "cost of one query": lambda mechanism: mechanism.cost(1, SIZE).curve,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise_scale": None}, "noise_scale=None"),
        ({"noise_scale": 0}, "noise_scale=0 .* must be a positive"),
        ({"noise_scale": -1.5}, "noise_scale=-1.5 .* must be a positive"),
        ({"noise_scale": np.nan}, "noise_scale=nan .* must be a positive"),
        ({"noise_scale": np.inf}, "noise_scale=inf .* must be a positive"),
        ({"noise_scale": "1"}, "noise_scale='1' .* must be a positive"),
        ({"noise_scale": 1e-7}, "between .* and 1024"),
        ({"noise_scale": 1025}, "between .* and 1024"),
        ({"noise_scale": 1, "n_parts": 0}, "n_parts=0"),
        ({"noise_scale": 1, "n_parts": -3}, "n_parts=-3"),
        ({"noise_scale": 1, "n_parts": 0.5}, "n_parts=0.5"),
    ],
)
def test_parameters_out_of_range_are_refused_by_every_method(call, parameters, message):
    with pytest.raises(ValueError, match=message):
        CALLS[call](NoisySum(**parameters))


def test_the_widest_noise_that_is_accepted_has_a_cost():
    assert 0 < NoisySum(1024, n_parts=500).cost(1, SIZE).epsilon(1e-5) < 0.1


def test_it_is_cloned_and_set_like_an_estimator():
    copied = clone(NoisySum(40, n_parts=2)).set_params(noise_scale=7.0)
    assert copied.get_params() == {
        "noise_scale": 7.0,
        "n_parts": 2,
    }
    assert repr(copied) == "NoisySum(n_parts=2, noise_scale=7.0)"
    assert copied.in_one_line() == repr(copied)
    assert len(copied.cost(1, SIZE).curve.values) == len(DEFAULT_ORDERS)

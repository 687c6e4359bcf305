"""Mechanisms on secret samples: sampling rates, and costs compared with peers."""

import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
import sklearn
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from sklearn_pate import PATEClassifier
from sklearn_pate.accounting import DEFAULT_ORDERS
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    NoisyHistogram,
    PermuteAndFlip,
)
from tests.private import NoiseSource, PoissonSampler, SampledMechanism
from tests.seeding import equal_noise

ORDERS = [2, 3, 4, 8, 16, 32, 64]
rates = st.floats(1e-4, 1.0)
sigmas = st.floats(1.0, 1000.0)


# Sampling


@pytest.mark.parametrize("rate", [0.15, 0.5, 0.01, 0.99])
def test_each_row_is_sampled_with_the_stated_probability_on_its_own(rate):
    sampler = PoissonSampler(rate, NoiseSource())
    drawn = np.array([sampler.draw(200) for _ in range(2000)])
    assert drawn.dtype == bool
    n_cells = drawn.size
    assert stats.binomtest(int(drawn.sum()), n_cells, rate).pvalue > 1e-6
    # How many are in a sample, and how often a row is in one: both binomial.
    for axis, n in ((1, 200), (0, 2000)):
        found = drawn.sum(axis=axis)
        edges = np.unique(stats.binom.ppf(np.linspace(0, 1, 6)[1:-1], n, rate))
        observed = np.bincount(np.searchsorted(edges, found), minlength=len(edges) + 1)
        expected = np.diff([0, *stats.binom.cdf(edges, n, rate), 1]) * len(found)
        used = expected > 0
        assert observed[~used].sum() == 0
        assert stats.chisquare(observed[used], expected[used]).pvalue > 1e-6


def test_samples_of_two_queries_are_independent():
    sampler = PoissonSampler(0.3, NoiseSource())
    first, second = (sampler.draw(100_000) for _ in range(2))
    for one, other in ((first, second), (first[1:], first[:-1])):
        table = np.histogram2d(one, other, bins=2)[0]
        assert stats.chi2_contingency(table).pvalue > 1e-6


@given(rate=st.floats(2**-60, 1.0))
def test_the_real_probability_is_the_stated_one_or_barely_less(rate):
    threshold = math.floor(Fraction(rate) * 2**64)  # words below it are in the sample

    class Words:
        def words(self, shape):
            edge = [0, threshold - 1, min(threshold, 2**64 - 1), 2**64 - 1]
            return np.array(edge, dtype=np.uint64)

    drawn = PoissonSampler(rate, Words()).draw(4)
    assert drawn.tolist() == [True, True, threshold == 2**64, threshold == 2**64]
    assert 0 <= Fraction(rate) - Fraction(threshold, 2**64) < Fraction(1, 2**64)


def test_rate_one_takes_every_row():
    assert PoissonSampler(1.0, NoiseSource()).draw(10_000).all()


def test_samples_repeat_with_the_seed_of_the_noise_only_and_are_not_its_stream():
    mechanism = SampledMechanism(GNMax(3.0), 0.5)
    one, other = (mechanism.sampler(NoiseSource()).draw(1000) for _ in range(2))
    assert not np.array_equal(one, other)
    one, other = (
        mechanism.sampler(equal_noise()(NoiseSource)()).draw(1000) for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)
    with equal_noise():
        one = mechanism.sampler(NoiseSource()).draw(1000)
        of_noise = PoissonSampler(0.5, NoiseSource()).draw(1000)
    assert 350 < np.count_nonzero(one == of_noise) < 650


# What it costs


@pytest.mark.parametrize(("n_queries", "epsilon"), [(100, 0.15), (250, 0.25)])
def test_the_cost_has_its_known_values(n_queries, epsilon):
    mechanism = SampledMechanism(GNMax(50.0), 0.15)
    cost = mechanism.cost(n_queries, 10).epsilon(1e-5)
    assert cost == pytest.approx(epsilon, abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [2.0, 10.0, 50.0])
@pytest.mark.parametrize("rate", [0.01, 0.15, 0.9, 1.0])
def test_the_cost_is_that_of_another_library(sigma, rate):
    event = SelfComposedDpEvent(
        PoissonSampledDpEvent(rate, GaussianDpEvent(sigma / math.sqrt(2))), 100
    )
    mechanism = SampledMechanism(GNMax(sigma), rate)
    renyi = RdpAccountant(ORDERS)
    renyi.compose(event)
    ours = mechanism.cost(100, 10, orders=ORDERS).curve
    np.testing.assert_allclose(ours.values, renyi._rdp, rtol=1e-9, atol=1e-14)
    # A sharper accountant, which rounds up by an interval a query at most.
    interval = 1e-4
    exact = PLDAccountant(value_discretization_interval=interval)
    exact.compose(event)
    cost = mechanism.cost(100, 10).epsilon(1e-5)
    assert cost >= exact.get_epsilon(1e-5) - 100 * interval


def discrete_gaussian(sigma, reach, shift=0):
    weights = np.exp(-((np.arange(-reach, reach + 1) - shift) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def joint(*laws):
    return reduce(np.multiply.outer, laws)


MOVED = {
    # Which of the noisy numbers move, and by how much, with one row more.
    "the vote goes to the leader": (1, 1, 0),
    "the leader takes it from another class": (1, 1, -1),
    "the leader loses it": (-1, -1, 1),
    "others exchange it": (0, 1, -1),
    "one is cast": (0, 1, 0),
}


@pytest.mark.parametrize("moved", MOVED)
@pytest.mark.parametrize("rate", [0.1, 0.6, 1.0])
def test_the_cost_of_a_check_and_an_answer_covers_the_enumerated_laws(moved, rate):
    sigma_threshold, sigma, reach = 2.5, 1.7, 18
    scales = (sigma_threshold, sigma, sigma)
    without = joint(*(discrete_gaussian(scale, reach) for scale in scales))
    moved = MOVED[moved]
    shifted = joint(
        *(
            discrete_gaussian(scale, reach, shift)
            for scale, shift in zip(scales, moved, strict=True)
        )
    )
    mixed = (1 - rate) * without + rate * shifted
    mechanism = SampledMechanism(ConfidentGNMax(5, sigma_threshold, sigma), rate)
    for order, cost in zip(
        (2, 3, 5), mechanism.cost(1, 3, orders=[2, 3, 5]).curve.values, strict=True
    ):
        divergences = [
            np.log((one**order * other ** (1.0 - order)).sum()) / (order - 1)
            for one, other in ((mixed, without), (without, mixed))
        ]
        assert max(divergences) <= cost * (1 + 1e-9)
        if moved == (1, 1, -1):
            assert divergences[0] == pytest.approx(cost, rel=1e-6)


@pytest.mark.slow
@settings(max_examples=30)
@given(rate=rates, sigma=sigmas, n_queries=st.integers(1, 5000))
def test_sampling_never_costs_and_answers_never_count(rate, sigma, n_queries):
    def cost(mechanism, rate):
        return SampledMechanism(mechanism, rate).cost(n_queries, 10).curve.values

    sampled = cost(GNMax(sigma), rate)
    assert np.all(sampled <= cost(GNMax(sigma), 1.0))
    np.testing.assert_allclose(
        cost(GNMax(sigma), 1.0), n_queries * DEFAULT_ORDERS / sigma**2, rtol=1e-12
    )
    assert np.all(sampled <= cost(ConfidentGNMax(5, 3 * sigma, sigma), rate))
    np.testing.assert_array_equal(sampled, cost(NoisyHistogram(sigma), rate))


def test_there_is_no_data_dependent_figure_to_publish():
    mechanism = SampledMechanism(GNMax(40.0), 0.15)
    assert not hasattr(mechanism, "local_curve")
    assert not hasattr(mechanism, "sanitized_cost")


# Noise for a target


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("base", [GNMax(), NoisyHistogram(), ConfidentGNMax()])
def test_noise_is_calibrated_to_the_target_from_below(base, epsilon):
    mechanism = SampledMechanism(base, 0.15)
    ready = mechanism.prepared(n_queries=100, epsilon=epsilon, delta=1e-6)
    assert 0.999 * epsilon < ready.cost(100, 10).epsilon(1e-6) <= epsilon
    assert mechanism.mechanism.sigma is None
    if isinstance(base, ConfidentGNMax):
        inner = ready.for_neighbors(200).mechanism
        assert (inner.threshold, inner.sigma_threshold) == (160, 3.75 * inner.sigma)


# What has a cost


WITHOUT_COST = {
    "Laplace": LNMax(0.1),
    "Gumbel": GumbelMax(0.1),
    "permute and flip": PermuteAndFlip(0.1),
    "interactive": InteractiveGNMax(100, 10.0, 10.0),
    "a subclass": type("Mine", (GNMax,), {})(10.0),
    "a sampled one": SampledMechanism(GNMax(10.0), 0.5),
    "a name": "gnmax",
    "nothing": None,
}
CALLS = {
    "prepared": lambda one: one.prepared(n_queries=3),
    "for_neighbors": lambda one: one.for_neighbors(10),
    "respond": lambda one: one.respond([[3, 1]], NoiseSource(), 1),
    "cost": lambda one: one.cost(1, 2),
}


@pytest.mark.parametrize("call", ["prepared", "for_neighbors", "respond"])
@pytest.mark.parametrize("case", WITHOUT_COST)
def test_mechanisms_without_a_cost_on_a_sample_are_refused(case, call):
    with pytest.raises(ValueError, match="has no known cost on a secret sample"):
        CALLS[call](SampledMechanism(WITHOUT_COST[case], 0.15))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("base", "rate", "message"),
    [
        (
            ConfidentGNMax(5, 9.0, 9.0, max_answers=3),
            0.1,
            "max_answers=3 does not lower the cost",
        ),
        (GNMax(9.0), 0, "sampling_rate=0 must be a positive"),
        (GNMax(9.0), 1.1, "sampling_rate=1.1 must be a probability"),
        (GNMax(9.0), -0.1, "sampling_rate=-0.1 must be a positive"),
        (GNMax(9.0), np.nan, "sampling_rate=nan must be a positive"),
        (GNMax(9.0), True, "sampling_rate=True must be a positive"),
        (GNMax(9.0), "0.1", "sampling_rate='0.1' must be a positive"),
        (GNMax(9.0), 1e-20, "sampling_rate=1e-20 is below 2\\^-64"),
        (GNMax(), 0.1, "GNMax has sigma=None"),
        (GNMax(-2.0), 0.1, "sigma=-2.0 of GNMax"),
        (ConfidentGNMax(5, None, 9.0), 0.1, "sigma_threshold=None"),
    ],
)
def test_parameters_out_of_range_are_refused_by_every_method(base, rate, message, call):
    with pytest.raises(ValueError, match=message):
        CALLS[call](SampledMechanism(base, rate))


def test_a_target_and_given_noise_exclude_each_other():
    with pytest.raises(ValueError, match=r"epsilon=1.0 and GNMax\(sigma=9.0\) both"):
        SampledMechanism(GNMax(9.0), 0.1).prepared(n_queries=3, epsilon=1.0)


def test_pate_refuses_it_as_it_draws_no_samples(blobs):
    X, y, X_public, _ = blobs
    pate = PATEClassifier(mechanism=SampledMechanism(GNMax(9.0), 0.1))
    with pytest.raises(ValueError, match=r"mechanism=.* is unknown"):
        pate.fit(X, y, X_public=X_public)


# As an estimator


def test_answers_are_those_of_the_mechanism():
    counts = np.array([[100, 0, 0], [0, 0, 100]])
    noise = NoiseSource()
    quiet = SampledMechanism(GNMax(0.01), 0.5).respond(counts, noise, 2)
    assert quiet.answers.tolist() == [0, 2]
    assert quiet.histograms is None
    heard = SampledMechanism(NoisyHistogram(0.01), 0.5).respond(counts, noise, 2)
    np.testing.assert_array_equal(heard.histograms, counts)
    unsure = SampledMechanism(ConfidentGNMax(101, 0.01, 0.01), 0.5)
    assert unsure.respond(counts, noise, 2).answers.tolist() == [-1, -1]


def test_statements_print_the_rate_whatever_is_the_default():
    mechanism = SampledMechanism(GNMax(9.0), 0.15)
    assert mechanism.in_one_line() == (
        "SampledMechanism(mechanism=GNMax(sigma=9.0), sampling_rate=0.15)"
    )
    with sklearn.config_context(print_changed_only=False):
        assert "sampling_rate=0.15" in mechanism.in_one_line()
    copied = clone(mechanism).set_params(mechanism__sigma=7.0)
    assert (copied.sigma, mechanism.sigma) == (7.0, 9.0)

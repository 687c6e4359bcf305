import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from sklearn_pate.inspection import AuditResult, audit_mechanism
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    NoisyHistogram,
    NoisySum,
    Oracle,
    PermuteAndFlip,
)
from tests.private import STEPS, NoiseSource, clopper_pearson, epsilon_lower_bound

TIE, MOVED = [10, 10], [11, 9]
# A teacher that is sure of one class in each of five parts, and then of another.
SURE, CONTRARY = STEPS * np.tile(np.eye(3, dtype=int)[:2, np.newaxis], (1, 5, 1))
TWENTY = {"n_queries": 20, "n_trials": 10_000}


# The statistics


@pytest.mark.slow
@given(
    st.integers(1, 300), st.floats(1e-9, 1 - 1e-9), st.sampled_from([1e-5, 0.01, 0.1])
)
def test_clopper_pearson_covers_every_probability(n_trials, probability, alpha):
    hits = np.arange(n_trials + 1)
    lower, upper = clopper_pearson(hits, n_trials, alpha)
    mass = binom.pmf(hits, n_trials, probability)
    assert np.all((lower >= 0) & (lower <= upper) & (upper <= 1))
    assert mass[lower > probability].sum() <= alpha + 1e-9
    assert mass[upper < probability].sum() <= alpha + 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_a_tight_claim_is_contradicted_no_more_often_than_stated(delta):
    # Randomized response that shows the truth outright with probability delta: no
    # smaller epsilon than 1 is true of it.
    rng = np.random.default_rng(0)
    n_audits, n_trials, confidence = 1000, 600, 0.9
    truth_told = delta + (1 - delta) / (1 + np.exp(-1))
    bounds = [
        epsilon_lower_bound(
            (rng.random(n_trials) < truth_told) + 0.0,
            (rng.random(n_trials) >= truth_told) + 0.0,
            delta=delta,
            confidence=confidence,
        )[0]
        for _ in range(n_audits)
    ]
    n_contradicted = np.count_nonzero(np.array(bounds) > 1)
    assert n_contradicted <= binom.isf(1e-6, n_audits, 1 - confidence)


@pytest.mark.thorough
def test_equal_distributions_show_nothing():
    rng = np.random.default_rng(0)
    bounds = [
        epsilon_lower_bound(*rng.normal(size=(2, 400)), delta=0, confidence=0.99)[0]
        for _ in range(200)
    ]
    assert np.count_nonzero(bounds) <= binom.isf(1e-6, 200, 0.01)


def test_much_data_shows_nearly_all_of_epsilon():
    rng = np.random.default_rng(0)
    is_right = rng.random((2, 200_000)) < 1 / (1 + np.exp(-2))
    bound, _ = epsilon_lower_bound(
        is_right[0] + 0.0, ~is_right[1] + 0.0, delta=0, confidence=0.9999
    )
    assert 1.9 < bound <= 2


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("order", [1, -1])
def test_either_data_set_and_either_tail_may_have_the_event(sign, order):
    # Some scores of one data set never occur on the other.
    rng = np.random.default_rng(0)
    data_sets = rng.normal(size=(2, 4000))
    data_sets[0, rng.random(4000) < 0.3] = 10
    bound, _ = epsilon_lower_bound(
        *(sign * data_sets)[::order], delta=0, confidence=0.9999
    )
    assert bound > 3


# The package


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "counts", "neighbour", "n_queries"),
    [
        (LNMax(gamma=0.5), [6, 2], [5, 3], 1),
        (LNMax(gamma=0.5), [6, 2, 2], [6, 2, 1], 1),
        (GNMax(sigma=5), TIE, MOVED, 20),
        (GNMax(sigma=5), [10, 10, 0], [10, 11, 0], 20),
        (GumbelMax(c=0.5), [6, 1], [5, 2], 1),
        (PermuteAndFlip(c=0.5), [6, 1], [5, 2], 1),
        (ConfidentGNMax(10, 8, 5), TIE, MOVED, 20),
        (InteractiveGNMax(1, 8, 5, n_teachers=20), TIE, MOVED, 20),
        (NoisyHistogram(sigma=5), TIE, MOVED, 20),
        (NoisyHistogram(sigma=5), TIE, [10, 9], 1),
    ],
)
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_no_cost_is_contradicted(mechanism, counts, neighbour, n_queries, delta):
    result = audit_mechanism(
        mechanism,
        counts,
        neighbour,
        n_queries=n_queries,
        n_trials=10_000,
        delta=delta,
    )
    assert not result.contradicted
    n_classes = len(counts)
    claimed = mechanism.cost(n_queries, n_classes).epsilon(delta)
    assert result.epsilon_claimed == pytest.approx(claimed)
    assert claimed <= mechanism.cost(n_queries, n_classes).curve.to_epsilon(delta)
    assert "does not contradict the claim" in str(result)


def test_a_claim_is_rounded_up_and_what_is_shown_down():
    text = str(AuditResult(0.7129, 0.5431, 1e-5, 0.9999, "seen"))
    assert "contradicts the claim of epsilon=0.544 at delta=1e-05" in text
    assert "epsilon is at least 0.712 (seen)" in text


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [LNMax(gamma=0.5), PermuteAndFlip(c=0.5)])
def test_the_cost_of_pure_noise_is_nearly_reached(mechanism):
    result = audit_mechanism(mechanism, [6, 1], [5, 2])
    assert result.epsilon_lower > 0.6 * result.epsilon_claimed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise_scale", "n_parts", "counts", "neighbour", "n_queries"),
    [
        (2, 5, SURE, CONTRARY, 1),
        (4, 5, SURE.ravel(), CONTRARY.ravel(), 4),
        (1, 1, [[0, STEPS]], [[0, 0]], 1),
        (2, 5, SURE, SURE // 2, 1),
    ],
)
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_the_cost_of_a_sum_is_not_contradicted(
    noise_scale, n_parts, counts, neighbour, n_queries, delta
):
    mechanism = NoisySum(noise_scale, n_parts=n_parts)
    result = audit_mechanism(
        mechanism,
        counts,
        neighbour,
        n_queries=n_queries,
        n_trials=10_000,
        delta=delta,
    )
    assert not result.contradicted
    size = np.size(counts)
    assert result.epsilon_claimed == mechanism.cost(n_queries, size).epsilon(delta)


@pytest.mark.slow
def test_the_cost_of_a_sum_is_nearly_reached_by_a_teacher_that_changes_its_mind():
    mechanism = NoisySum(noise_scale=2, n_parts=5)
    result = audit_mechanism(mechanism, SURE, CONTRARY, delta=1e-2)
    assert result.epsilon_lower > 0.7 * result.epsilon_claimed
    of_nothing = audit_mechanism(mechanism, SURE, np.zeros_like(SURE), delta=1e-2)
    assert 0 < of_nothing.epsilon_lower < result.epsilon_lower
    assert of_nothing.epsilon_claimed == result.epsilon_claimed


# Defects


@pytest.mark.thorough
def test_gaussian_noise_of_half_the_scale_is_found(monkeypatch):
    draw = NoiseSource.discrete_gaussian
    monkeypatch.setattr(
        NoiseSource,
        "discrete_gaussian",
        lambda noise, sigma, shape: draw(noise, sigma / 2, shape),
    )
    for mechanism in (GNMax(sigma=5), NoisyHistogram(sigma=5)):
        assert audit_mechanism(
            mechanism, TIE, MOVED, n_queries=20, n_trials=10_000, delta=1e-2
        ).contradicted


class HalfTheNoise(NoisySum):
    def release(self, sums, noise=None):
        half = NoisySum(self.noise_scale / 2, n_parts=self.n_parts)
        return half.release(sums, noise)


class OnePartIsFree(NoisySum):
    def cost(self, n_queries=0, n_classes=2, **options):
        fewer = NoisySum(self.noise_scale, n_parts=self.n_parts - 1)
        return fewer.cost(n_queries, n_classes, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("n_queries", "noise_scale"), [(1, 4), (4, 8)])
def test_a_sum_with_half_of_its_noise_is_found(n_queries, noise_scale):
    result = audit_mechanism(
        HalfTheNoise(noise_scale=noise_scale, n_parts=5),
        SURE,
        CONTRARY,
        n_queries=n_queries,
        n_trials=10_000,
        delta=1e-2,
    )
    assert result.contradicted


@pytest.mark.slow
def test_a_sum_of_more_parts_than_are_paid_for_is_found():
    one_hots = SURE[:2], CONTRARY[:2]
    mechanism = OnePartIsFree(noise_scale=4, n_parts=2)
    assert audit_mechanism(mechanism, *one_hots, delta=1e-2).contradicted


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        ConfidentGNMax(10, 8, 5),
        pytest.param(InteractiveGNMax(1, 8, 5), marks=pytest.mark.thorough),
    ],
)
def test_gaussian_noise_of_a_quarter_of_the_scale_is_found(monkeypatch, mechanism):
    draw = NoiseSource.discrete_gaussian
    monkeypatch.setattr(
        NoiseSource,
        "discrete_gaussian",
        lambda noise, sigma, shape: draw(noise, sigma / 4, shape),
    )
    assert audit_mechanism(mechanism, TIE, MOVED, delta=1e-2, **TWENTY).contradicted


@pytest.mark.slow
def test_laplace_noise_of_half_the_scale_is_found(monkeypatch):
    draw = NoiseSource.discrete_laplace
    monkeypatch.setattr(
        NoiseSource,
        "discrete_laplace",
        lambda noise, gamma, shape: draw(noise, 2 * gamma, shape),
    )
    assert audit_mechanism(LNMax(gamma=0.5), [6, 2], [5, 3]).contradicted


@pytest.mark.slow
def test_coins_of_twice_the_rate_are_found(monkeypatch):
    toss = NoiseSource.bernoulli_exp
    monkeypatch.setattr(
        NoiseSource,
        "bernoulli_exp",
        lambda noise, rate, gaps: toss(noise, 2 * rate, gaps),
    )
    assert audit_mechanism(PermuteAndFlip(c=0.5), [5, 2], [4, 3]).contradicted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "data_sets"),
    [
        (GNMax(sigma=4), (TIE, MOVED)),
        (NoisyHistogram(sigma=4), (TIE, MOVED)),
    ],
)
def test_an_oracle_that_draws_new_noise_without_cost_is_found(
    monkeypatch, mechanism, data_sets
):
    def audit():
        return audit_mechanism(mechanism, *data_sets, n_trials=10_000, n_repeats=40)

    assert not audit().contradicted
    answer = Oracle.answer

    def forgetful(oracle, rows, probabilities=None):
        oracle._answer_of.clear()
        oracle.n_charged = 0
        oracle._answers_left = len(rows)
        return answer(oracle, rows, probabilities)

    monkeypatch.setattr(Oracle, "answer", forgetful)
    assert audit().contradicted


@pytest.mark.slow
def test_a_cost_of_one_query_too_few_is_found(monkeypatch):
    one = LNMax(gamma=0.5)
    of_one_query = one.cost(1, 2).curve
    monkeypatch.setattr(LNMax, "_curve", lambda self, *_: of_one_query)
    assert audit_mechanism(
        one, [4, 3], [3, 4], n_queries=6, n_trials=20_000
    ).contradicted


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([5, 5], [5, 5]), "not a neighbour"),
        (([5, 5], [7, 3]), "not a neighbour"),
        (([5, 5], [6, 6]), "not a neighbour"),
        (([5, 5, 5], [6, 4, 4]), "not a neighbour"),
        (([5, 5], [5, 5, 0]), "shape"),
        (([[5, 5]], [[6, 4]]), "shape"),
        (([5, 5], [6, -1]), "negative"),
    ],
)
def test_counts_that_are_no_neighbours_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        audit_mechanism(GNMax(sigma=1), *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SURE, 2 * CONTRARY), "longer than the clipping bound"),
        ((SURE, np.add(CONTRARY, [0, 0, 1])), "longer than the clipping bound"),
        ((SURE, -CONTRARY), "non-negative integers"),
        ((SURE, CONTRARY / 2), "non-negative integers"),
        ((SURE, SURE), "are equal"),
        ((SURE, CONTRARY.ravel()), "shape"),
        ((SURE[:4], CONTRARY[:4]), "n_parts=5"),
        ((SURE.T, CONTRARY.T), "n_parts=5"),
        ((SURE.ravel()[:-1], CONTRARY.ravel()[:-1]), "n_parts=5"),
        (([], []), "n_parts=5"),
        ((STEPS, 0), "n_parts=5"),
    ],
)
def test_vectors_that_no_teacher_may_send_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        audit_mechanism(NoisySum(noise_scale=1, n_parts=5), *arguments)


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (NoisySum(), "noise_scale=None"),
        (NoisySum(1, n_parts=0), "n_parts=0"),
        (ConfidentGNMax(10, 1, 1, max_answers=3), "max_answers=3"),
        (GNMax(), "sigma=None"),
        ("gnmax", "not a PluralityMechanism"),
    ],
)
def test_a_mechanism_that_claims_nothing_is_refused(mechanism, message):
    with pytest.raises(ValueError, match=message):
        audit_mechanism(mechanism, TIE, MOVED)


@pytest.mark.parametrize(
    "parameter",
    [
        {"n_queries": 0},
        {"n_trials": 1},
        {"n_repeats": 0.5},
        {"delta": 0},
        {"confidence": 1},
        {"confidence": "high"},
    ],
)
def test_parameters_out_of_range_are_refused(parameter):
    with pytest.raises(ValueError, match=next(iter(parameter))):
        audit_mechanism(GNMax(sigma=1), TIE, MOVED, **parameter)

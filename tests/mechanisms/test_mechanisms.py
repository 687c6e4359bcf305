import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr
from sklearn.base import clone

from sklearn_pate.accounting import (
    tight_gaussian_worst_case,
    tight_threshold_worst_case,
)
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    PermuteAndFlip,
)
from tests.cases import thorough_but
from tests.private import NoiseSource

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
    assert frequency_is(answers, -1, ndtr((199.5 - largest) / 30))
    assert set(answers) <= {-1, 0}


def test_confident_stops_at_its_cap_and_costs_the_cap_only():
    mechanism = ConfidentGNMax(200, 1, 1, max_answers=3)
    answers = mechanism.answer(np.tile([250, 0], (10, 1)))
    assert answers.tolist() == [0, 0, 0] + [-1] * 7
    cost = tight_threshold_worst_case(1) * 10 + tight_gaussian_worst_case(1, 2) * 3
    assert mechanism.cost(10, 2).curve == cost


def test_confident_has_a_cost_before_its_share_is_a_number_of_votes():
    share, votes = ConfidentGNMax(0.8, 30, 10), ConfidentGNMax(200, 30, 10)
    assert share.cost(50, 2).curve == votes.cost(50, 2).curve


@pytest.mark.parametrize("gap", [0, 10, 60])
def test_gumbelmax_is_the_exponential_mechanism(gap):
    answers = GumbelMax(0.05).answer(np.tile([100, 100 + gap, 80], (N_DRAWS, 1)))
    weights = np.exp(0.05 * np.array([0, gap, -20]))
    found = np.bincount(answers, minlength=3)
    expected = N_DRAWS * weights / weights.sum()
    assert stats.chisquare(found, expected).pvalue > P_VALUE


@pytest.mark.parametrize("gap", [0, 10, 60])
def test_permute_and_flip_is_the_maximum_with_exponential_noise(gap):
    counts = np.array([100, 100 + gap, 80])
    noise = np.random.default_rng(0).exponential(scale=20, size=(N_DRAWS, 3))
    by_numpy = np.bincount(np.argmax(counts + noise, axis=1), minlength=3)
    answers = PermuteAndFlip(0.05).answer(np.tile(counts, (N_DRAWS, 1)))
    found = np.bincount(answers, minlength=3)
    assert stats.chi2_contingency([by_numpy, found]).pvalue > P_VALUE


def test_ties_are_broken_at_random_however_little_noise_there_is():
    for mechanism in (GNMax(1e-3), LNMax(1e3), GumbelMax(1e3), PermuteAndFlip(1e3)):
        answers = mechanism.answer(np.tile([7, 7, 0], (N_DRAWS, 1)))
        assert set(answers) == {0, 1}
        assert frequency_is(answers, 0, 0.5)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mechanism",
    [GNMax(20), LNMax(0.07), GumbelMax(0.06), PermuteAndFlip(0.05)],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_two_million_answers_follow_the_accounted_law(mechanism):
    counts = np.array([100, 85, 85, 60])
    values, sizes = np.array([[60.0, 85, 100]]), np.array([[1.0, 2, 1]])
    last, middle, first = np.exp(
        mechanism._plurality().log_probabilities(values, sizes)[0]
    )
    block = np.tile(counts, (1_000_000, 1))
    found = sum(np.bincount(mechanism.answer(block), minlength=4) for _ in range(2))
    law = np.array([first, middle, middle, last])
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert stats.chisquare(found, 2e6 * law / law.sum()).pvalue > P_VALUE


PROBABILITIES = [[0.1, 0.9], [0.95, 0.05], [0.5, 0.5]]


def test_interactive_uses_the_votes_only_where_they_differ_from_the_student():
    mechanism = InteractiveGNMax(100, 1, 1, n_teachers=250)
    counts = [[250, 0], [250, 0], [130, 120]]
    answers = mechanism.answer(counts, probabilities=PROBABILITIES)
    # The teachers' answer, the student's own, and none.
    assert answers.tolist() == [0, 0, -1]


def test_the_cap_of_interactive_leaves_the_students_own_answers():
    mechanism = InteractiveGNMax(100, 1, 1, n_teachers=250, max_answers=1)
    counts = np.tile([250, 0], (6, 1))
    answers = mechanism.answer(counts, probabilities=PROBABILITIES[:2] * 3)
    assert answers.tolist() == [0, 0, -1, 0, -1, 0]
    assert (
        mechanism.cost(6, 2).curve
        == ConfidentGNMax(100, 1, 1, max_answers=1).cost(6, 2).curve
    )


def test_interactive_costs_less_where_the_student_agrees_with_the_teachers():
    mechanism = InteractiveGNMax(150, 15, 40, n_teachers=250)
    counts = [[150, 100]]
    agrees, differs = (
        mechanism.local_curve(counts, [2, 10], probabilities=[[p, 1 - p]]).values
        for p in (0.6, 0.0)
    )
    assert np.all(agrees < 1e-9 * differs)


def test_interactive_with_no_expectations_costs_what_confident_costs():
    counts = [[150, 100], [220, 30]]
    interactive = InteractiveGNMax(180, 50, 40, n_teachers=250)
    assert interactive.local_curve(
        counts, probabilities=np.zeros((2, 2))
    ).values == pytest.approx(ConfidentGNMax(180, 50, 40).local_curve(counts).values)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.answer([[9, 1]], probabilities=[0.5, 0.5]),
        lambda m: m.answer([[9, 1]], probabilities=[[np.nan, 0.5]]),
        lambda m: m.answer([[9, 1]]),
        lambda m: m.set_params(n_teachers=None).answer([[9, 1]]),
        lambda m: m.set_params(confidence=0).answer([[9, 1]]),
    ],
)
def test_interactive_refuses_invalid_probabilities(call, monkeypatch):
    monkeypatch.setattr(NoiseSource, "words", lambda *_: pytest.fail("drew noise"))
    with pytest.raises(ValueError, match=r"probabilities|n_teachers|confidence"):
        call(InteractiveGNMax(100, 1, 1, n_teachers=250))


MECHANISMS = [
    GNMax(40),
    LNMax(0.05),
    GumbelMax(0.05),
    PermuteAndFlip(0.03),
    ConfidentGNMax(200, 150, 40),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    # Costs of Laplace noise at ten classes take seconds.
    thorough_but([one for one in MECHANISMS if type(one) is not LNMax], MECHANISMS),
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("votes", ["mnist", "adult"])
def test_on_real_votes_exact_is_below_q_optimal_below_the_worst_case(
    mechanism, votes, data_set
):
    counts = data_set("pate2018_votes", task=votes)[:100]
    orders = np.array([1.5, 2, 5, 9, 20, 60])
    for direction in ("forward", "both"):
        exact = mechanism.local_curve(counts, orders, direction=direction).values
        optimal = mechanism.optimal_curve(counts, orders, direction=direction).values
        assert np.all(exact <= optimal * (1 + 1e-9))
    worst = mechanism.cost(*counts.shape, orders=orders).curve.values
    assert np.all(exact <= worst)
    assert mechanism.paper_epsilon(counts, 1e-5) is None or (
        mechanism.optimal_curve(counts).quiet_epsilon(1e-5)
        <= 1.1 * mechanism.paper_epsilon(counts, 1e-5)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    thorough_but(MECHANISMS[:3], MECHANISMS),
    ids=lambda m: type(m).__name__,
)
def test_a_sanitized_cost_covers_the_q_optimal_one(mechanism, data_set):
    counts = data_set("pate2018_votes", task="adult")[:100]
    sanitized = mechanism.sanitized_cost(
        counts, n_teachers=250, delta=1e-5, confidence=1 - 1e-9
    )
    cost = mechanism.optimal_curve(counts, [sanitized.order]).values[0]
    assert (
        sanitized.cost >= cost
        or sanitized.cost
        >= (mechanism.cost(*counts.shape, orders=[sanitized.order]).curve.values[0])
    )
    assert sanitized.epsilon > mechanism.optimal_curve(counts).quiet_epsilon(1e-5)


def test_interactive_costs_are_not_sanitized():
    mechanism = InteractiveGNMax(100, 1, 1, n_teachers=250)
    with pytest.raises(TypeError, match="pass them to local_curve"):
        mechanism.sanitized_cost([[9, 1]], n_teachers=10, delta=1e-5)


@pytest.mark.parametrize(
    "mechanism",
    [
        GNMax(3),
        LNMax(0.1),
        GumbelMax(0.1),
        PermuteAndFlip(0.1),
        ConfidentGNMax(0.8, 3, 1, max_answers=2),
        InteractiveGNMax(0.8, 3, 1, confidence=0.7, n_teachers=9),
    ],
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


EXTREME_MECHANISMS = [GNMax(0.1), GNMax(1), GNMax(40), LNMax(1), LNMax(400)]
EXTREME_MECHANISMS += [GumbelMax(800), PermuteAndFlip(1), ConfidentGNMax(10, 5, 5)]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", EXTREME_MECHANISMS, ids=repr)
def test_costs_at_extreme_leads_stay_below_the_worst_case(mechanism):
    orders = np.array([2, 9, 64.0])
    worst = mechanism.cost(1, 2, orders=orders).curve.values * (1 + 1e-6)
    for lead in (0, 5, 60, 720, 10**5, 2 * 10**6, 2**31 - 1):
        local = mechanism.local_curve([[lead, 0]], orders).values
        optimal = mechanism.optimal_curve([[lead, 0]], orders).values
        assert np.all(local <= worst)
        assert np.all(local <= optimal * (1 + 1e-6) + 1e-9)
        assert np.all(optimal <= worst)
    if not isinstance(mechanism, ConfidentGNMax):  # its check has a cost at any lead
        assert np.all(local < 1e-20)


@pytest.mark.parametrize("mechanism", EXTREME_MECHANISMS, ids=repr)
@pytest.mark.parametrize(
    "count", [1e20, 2**31, 2**63 + 5, 2**64, np.inf, np.nan, -1, 0.5]
)
def test_counts_out_of_range_are_refused(mechanism, count):
    for method in (mechanism.answer, mechanism.local_curve, mechanism.optimal_curve):
        with pytest.raises(ValueError, match=r"numbers? of (votes|teachers)"):
            method([[count, 5]])

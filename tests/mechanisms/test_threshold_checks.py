"""Checks against a threshold: one vote moves them by one whole number at most."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp, softmax

from sklearn_pate.accounting import (
    local_cost,
    tight_gaussian_worst_case,
    tight_threshold_worst_case,
)
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, InteractiveGNMax
from tests.accounting.oracles import neighbours
from tests.private import NoiseSource, NoisyCheck, SampledMechanism

ORDERS = np.array([1.1, 1.6, 2, 3.3, 6, 12, 30])
REACH = 5
# Just above one vote: its difference to a count is rounded to a whole number, or not.
JUST_ABOVE_ONE = 1 + 2**-52


class EveryNoise(NoiseSource):
    """Draws whole numbers in turn for checks, and no noise for answers."""

    def __init__(self, middle):
        super().__init__()
        self.middle = middle

    def discrete_gaussian(self, sigma, shape):
        if len(shape) == 2:
            return np.zeros(shape, dtype=np.int64)
        return self.middle + np.arange(-REACH, REACH + 1)


def least_noise(mechanism, counts, probabilities=None):
    """The least noise with which `respond` answers these votes."""
    inner = mechanism.mechanism if hasattr(mechanism, "mechanism") else mechanism
    options, expected = {}, 0
    if probabilities is not None:
        options["probabilities"] = np.tile(probabilities, (2 * REACH + 1, 1))
        expected = inner.n_teachers * np.array(probabilities, dtype=float)
    middle = round(float(inner.threshold - np.subtract(counts, expected).max()))
    tiled = np.tile(counts, (2 * REACH + 1, 1))
    given = mechanism.respond(tiled, EveryNoise(middle), len(tiled), **options)
    passed = given.answers >= 0
    assert np.all(np.diff(passed.astype(int)) >= 0)
    assert passed[-1] > passed[0]
    return int(middle + REACH + 1 - np.count_nonzero(passed))


def log_check(needed, sigma):
    """ln Pr[Z < needed] and ln Pr[Z >= needed], of plain sums."""
    reach = int(30 * sigma) + abs(needed)
    z = np.arange(-reach, reach + 1)
    weights = -(z**2) / (2 * sigma**2)
    sums = [logsumexp(weights[z < needed]), logsumexp(weights[z >= needed])]
    return np.array(sums) - logsumexp(weights)


def divergence(p, q, orders=ORDERS):
    """The larger of D_a(p || q) and D_a(q || p) at each order, of log-laws."""
    return np.array(
        [
            max(logsumexp(a * p + (1 - a) * q), logsumexp(a * q + (1 - a) * p))
            / (a - 1)
            for a in orders
        ]
    )


def joint_law(mechanism, counts, probabilities=None):
    """The log-law of none, 1, ..., K, as `respond` draws it."""
    votes = np.array([counts], dtype=float)
    answers = mechanism._plurality().log_probabilities(votes, np.ones_like(votes))
    none, some = log_check(
        least_noise(mechanism, counts, probabilities), mechanism.sigma_threshold
    )
    return np.append(none, some + answers[0])


# Of 320 teachers a student expects 96 votes and a last bit: a share of 0.1 + 0.2.
STUDENT = [0.1 + 0.2, 1 - (0.1 + 0.2)]
BEFORE, AFTER = [224, 96], [225, 95]


def interactive(sigma_threshold, sigma):
    mechanism = InteractiveGNMax(0.4, sigma_threshold, sigma, confidence=1.0)
    return mechanism.prepared(n_teachers=320, n_queries=1, n_classes=2)


def test_one_vote_moves_an_interactive_check_by_one_whole_number():
    mechanism = interactive(1, 1)
    # Of 128 votes above 96 and a last bit, 225 are the first to be enough.
    assert [least_noise(mechanism, c, STUDENT) for c in (BEFORE, AFTER)] == [1, 0]
    none = [log_check(needed, 1)[0] for needed in (1, 0)]
    np.testing.assert_allclose(np.exp(none), [0.699, 0.301], atol=5e-4)


@pytest.mark.parametrize("sigma", [1.0, 5.0, 20.0])
def test_an_interactive_check_costs_what_it_is_certified_for(sigma):
    mechanism = interactive(sigma, 1)
    laws = [
        log_check(least_noise(mechanism, counts, STUDENT), sigma)
        for counts in (BEFORE, AFTER)
    ]
    certified = tight_threshold_worst_case(sigma, ORDERS).values
    assert np.all(divergence(*laws) <= certified)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma_threshold", "sigma", "n_queries"), [(20, 40, 25), (30, 100, 70)]
)
def test_a_whole_interactive_fit_spends_no_more_than_it_claims(
    sigma_threshold, sigma, n_queries
):
    mechanism = interactive(sigma_threshold, sigma)
    claimed = mechanism.cost(n_queries, 2).epsilon(1e-5)
    assert 0.9 < claimed <= 1
    # Numbers of queries with each of three outcomes: a trinomial law.
    i, j = np.meshgrid(*2 * [np.arange(n_queries + 1)])
    numbers = np.stack([i, j, n_queries - i - j])[:, i + j <= n_queries]
    log_ways = gammaln(n_queries + 1) - gammaln(numbers + 1).sum(axis=0)
    laws = [joint_law(mechanism, counts, STUDENT) for counts in (BEFORE, AFTER)]
    for one, other in (laws, laws[::-1]):
        p, q = (np.exp(log_ways + law @ numbers) for law in (one, other))
        assert np.sum(np.maximum(p - np.exp(claimed) * q, 0)) <= 1e-5
        assert np.sum(np.maximum(p - np.exp(0.7 * claimed) * q, 0)) > 1e-5


@pytest.mark.parametrize("sampled", [False, True], ids=["alone", "on a secret sample"])
def test_one_vote_moves_a_fractional_threshold_by_one_whole_number(sampled):
    mechanism = ConfidentGNMax(JUST_ABOVE_ONE, 1.0, 1.0)
    if sampled:
        mechanism = SampledMechanism(mechanism, 0.5).for_neighbors(40)
    needed = [least_noise(mechanism, [n, 0]) for n in range(40)]
    assert needed == [2 - n for n in range(40)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_of_any_width_are_exact_numbers(dtype):
    mechanism = interactive(1, 1)
    student = np.array(STUDENT, dtype=dtype)
    for n in (223, 224, 225, 226):
        counts = [n, 320 - n]
        needed = min(
            ceil(128 + 320 * Fraction(float(p))) - n
            for p, n in zip(student, counts, strict=True)
        )
        assert least_noise(mechanism, counts, student) == needed


@pytest.mark.slow
@given(
    st.integers(1, 2**20) | st.floats(1e-9, 1e6),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
    st.integers(1, 2**40),
)
def test_thresholds_are_the_exact_ones(threshold, shares, n_teachers):
    check = NoisyCheck(threshold, 1.0)
    votes = check.whole_expectations([shares], n_teachers)
    exact = [Fraction(threshold) + n_teachers * Fraction(p) for p in shares]
    expected = [[ceil(one) - ceil(Fraction(threshold)) for one in exact]]
    assert votes.tolist() == expected
    assert check.needed(np.array([7])).tolist() == [ceil(Fraction(threshold)) - 7]


def test_thresholds_that_no_count_reaches_still_count_votes():
    check = NoisyCheck(1e300, 1.0)
    needed = check.needed(np.array([8, 9]))
    assert np.diff(needed).tolist() == [-1]
    assert np.all(np.isneginf(check.log_probabilities(np.array([9]))[0]) | (needed > 0))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_expected_votes_that_are_no_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match="expected holds NaN or infinity"):
        local_cost(
            GNMax(1.0)._plurality(),
            [[5, 3]],
            check=NoisyCheck(3, 1.0),
            expected=[[1.0, wrong]],
        )


def students(n_classes, n_teachers):
    """Probabilities as votes, sums, averages, products and softmax make them."""
    labels = st.integers(0, n_classes - 1)
    votes_by_teacher = st.lists(labels, min_size=5, max_size=40)
    tenths = st.lists(labels, min_size=10, max_size=10)
    numbers = st.lists(st.floats(-9, 9), min_size=n_classes, max_size=n_classes)

    def average(labels):
        return np.eye(n_classes)[labels].mean(axis=0)

    def sum_of_parts(labels):
        sums = np.zeros(n_classes)
        for label in labels:
            sums[label] += 1 / len(labels)
        return np.minimum(sums, 1)

    def whole_votes(votes, last_bits):
        share = votes / n_teachers
        share += last_bits * np.spacing(share)
        return np.append(np.full(n_classes - 1, share), 1 - share)

    averages = votes_by_teacher.map(average)
    few = st.integers(1, max(1, n_teachers // 16))
    near_whole = st.builds(whole_votes, few, st.integers(1, 2))
    wide = st.one_of(
        tenths.map(sum_of_parts),
        votes_by_teacher.map(sum_of_parts),
        averages,
        st.tuples(averages, averages).map(lambda two: two[0] * two[1]),
        numbers.map(softmax),
    )
    return st.one_of(
        near_whole, near_whole, wide, wide.map(lambda p: p.astype(np.float32))
    )


@st.composite
def queries(draw, interactive, near_threshold):
    """A mechanism, votes where rounding matters most, and probabilities."""
    # Counts that the noise of an answer reaches, so that the cost fits into float64.
    power = 2 ** draw(st.integers(4, 5 if near_threshold else 11))
    n_teachers = draw(st.sampled_from([power - 1, power, power + 1, 5 * power]))
    share = draw(st.sampled_from([0.1, 0.2, 0.4]) | st.floats(0.05, 0.5))
    votes = 2 ** draw(st.integers(1, n_teachers.bit_length() - 2))
    threshold = draw(
        st.sampled_from(
            [share, votes, votes / 2 + share, np.nextafter(float(votes), 1e9)]
        )
    )
    n_classes = draw(st.integers(2, 3))
    student, expected, leader = None, 0, 0
    mechanism = ConfidentGNMax(threshold, 1.0, 8.0)
    if interactive:
        student = draw(students(n_classes, n_teachers))
        leader = int(student.argmin())
        expected = n_teachers * float(student[leader])
        mechanism = InteractiveGNMax(threshold, 1.0, 8.0, confidence=1.0)
    ready = mechanism.prepared(n_teachers=n_teachers, n_queries=1, n_classes=n_classes)
    # Beyond a power of two, a difference is rounded more coarsely: that of a count to
    # what is expected, or of the threshold to a count.
    subtracted = expected if interactive else ready.threshold
    surplus = 2 ** (int(subtracted).bit_length() + draw(st.integers(0, 1)))
    if not interactive:
        surplus += ready.threshold
    if near_threshold:
        surplus = ready.threshold
    count = round(surplus + expected) + draw(st.integers(-1, 1))
    counts = np.zeros(n_classes, dtype=int)
    counts[leader] = min(max(count, 0), n_teachers)
    for label in set(range(n_classes)) - {leader}:
        counts[label] = draw(st.integers(0, n_teachers - counts.sum()))
    return ready, counts.tolist(), student


both = pytest.mark.parametrize("interactive", [False, True])


@pytest.mark.thorough
@both
@settings(max_examples=150)
@given(data=st.data())
def test_no_vote_costs_a_check_more_than_is_certified(data, interactive):
    mechanism, counts, student = data.draw(queries(interactive, near_threshold=False))
    here = least_noise(mechanism, counts, student)
    moved = {least_noise(mechanism, after, student) for after in neighbours(counts)}
    sigma = 50.0  # so wide that a vote far from the threshold counts as well
    certified = tight_threshold_worst_case(sigma, ORDERS).values
    for needed in moved - {here}:
        laws = [log_check(least, sigma) for least in (here, needed)]
        assert np.all(divergence(*laws) <= certified)
    assert max(abs(here - needed) for needed in moved) <= 1


@pytest.mark.slow
@both
@settings(max_examples=25)
@given(data=st.data())
def test_the_cost_is_that_of_the_drawn_laws(data, interactive):
    mechanism, counts, student = data.draw(queries(interactive, near_threshold=True))
    here = joint_law(mechanism, counts, student)
    laws = [joint_law(mechanism, after, student) for after in neighbours(counts)]
    exact = np.max([divergence(here, law) for law in laws], axis=0)
    options = {} if student is None else {"probabilities": [student]}
    cost = mechanism.local_curve([counts], ORDERS, **options).values
    np.testing.assert_allclose(cost, exact, rtol=1e-6, atol=1e-12)
    worst = tight_threshold_worst_case(1.0, ORDERS) + tight_gaussian_worst_case(
        8.0, len(counts), ORDERS
    )
    assert np.all(exact <= worst.values)

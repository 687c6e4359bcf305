"""Tight cost of many noisy pluralities that are chosen adaptively."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, ive, ndtr, ndtri, ndtri_exp

from sklearn_pate.accounting._calibrate import gdp_epsilon, gdp_mu, log_gdp_delta
from sklearn_pate.accounting._profile import (
    LARGEST_EPSILON,
    PrivacyProfile,
    after_losses,
    compose_profiles,
    dominating_masses,
    extended,
    lower_hull,
)
from sklearn_pate.accounting.plurality._tight import coarse_lattice, log_law

_Array = NDArray[np.float64]

# Knots of a polygon around a curve of tests: their distance grows from this to 1, up
# to the last one.
_KNOT_DISTANCE = 0.06
_DENSE_KNOTS = 0.6
_LAST_KNOT = 9.0
# Range of sigma where the tests are resolved in floating point.
_SMALLEST_SIGMA, _LARGEST_SIGMA = 3.0, 1e4
# Ranges of pure guarantees that are resolved, in nats.
_SMALLEST_RANGE, _LARGEST_RANGE = 1e-4, 2.0
# Relative margin for rounding of the corners of a polygon.
_ROUNDING_OF_TESTS = 1e-6
# Probability beyond the last knot of Laplace noise.
_SMALLEST_TAIL = 1e-18
# Knots of logistic tests, in units of those of Gaussian ones.
_LOGIT_OF_NORMAL = 2.3
# Points of the lattice of leads per standard deviation: finer costs less epsilon and
# more time. The size of the ripple of its noise.
_RESOLUTION = 10
_RIPPLE = 1e-9
# Two-outcome tests are taken this much further out: fewer tests of three are left.
_SLACK = 0.0035
# An outcome with a smaller probability is merged with another.
_NEGLIGIBLE_MASS = 1e-17
# Standard deviations at which an outcome is negligible.
_REACH = 8.6
# Error of the logarithm of a computed probability.
_ROUNDING = 1e-9
# Relative margin of mu for the rounding of probabilities.
_MARGIN = 1e-4
_BISECTIONS = 14
# Steps of the grid in the log-ratio of a tie: finer costs less epsilon and more time.
_STEPS_OF_TIE = 16
# Tests and points of the grid at a time, whose values fit into a processor's cache and
# into memory that is used again.
_BLOCK = 256
# Answers that are followed one by one, and growth of their number between those that
# are compared with jumps afterwards: more of them cost less epsilon and more time.
_FEW, _GROWTH = 48, 1.4
# Sizes of jumps that are compared, in log-ratios of a tie, and whether they may be
# many: best for GNMax, GumbelMax, LNMax and randomised response. Delta at which they
# are compared.
_JUMPS = ((0.625, True), (1.5625, False), (1.25, False), (1.0, False))
_TYPICAL = 1e-6
# Relative precision of the amount of jumps.
_PRECISION = 2e-5
_MOST_TRIES = 30
# Probability that may be left out of a law, for each of its losses.
_LEFT_OUT = 1e-25
# Added to delta for each answer, so that jumps are compared with what is resolved.
_UNRESOLVED = 1e-15
# Delta at the end of a grid.
_NEGLIGIBLE = 1e-16
# Profiles of more are not computed: the time grows with the grid.
MOST_ANSWERS = 100_000
# Largest grid of a profile that is computed, and largest product of its size and the
# number of tests.
_MOST_POINTS = 3_000_000
_MOST_VALUES = 1e8
# Relative margins for rounding, of mu, of delta and of one comparison.
_ROUNDING_OF_MU = 1e-6
_ROUNDING_OF_STEP = 1e-12
_ROUNDING_OF_EPSILON = 1e-8


@dataclass(frozen=True, eq=False)
class AnswerTests:
    """Pairs of distributions at least as distinguishable as one answer at any votes.

    A test is a pair of distributions of a few outcomes, under one data set and its
    neighbour. With each test, the one with the data sets exchanged is among them.
    """

    #: Probability of each outcome under the first data set, of shape (n_tests,
    #: n_outcomes).
    weights: _Array
    #: Log-ratio ln(q / p) of each outcome, of the same shape.
    shifts: _Array
    #: All tests post-process a test of N(0, 1) against N(mu, 1).
    mu: float
    #: Log-ratio of a tie, which sets the grid.
    tie: float
    #: Added to delta for each answer: probability of outcomes that were left out.
    rest: float = 0.0
    #: Largest error of the logarithm of a probability.
    error: float = 0.0

    def joined(
        self, weights: _Array, shifts: _Array, *, rest: float, error: float
    ) -> Self:
        """Add tests of more outcomes, in both orders, whose mu is not larger."""
        n_missing = weights.shape[1] - self.weights.shape[1]
        missing = np.zeros((len(self.weights), n_missing))
        return replace(
            self,
            weights=np.concatenate([np.hstack([self.weights, missing]), weights]),
            shifts=np.concatenate([np.hstack([self.shifts, missing]), shifts]),
            rest=self.rest + rest,
            error=error,
        )


def two_class_mu(sigma: float) -> float | None:
    """Return mu of one GNMax answer on two classes, None where it is not resolved.

    Given the coin for ties, an answer is a threshold of the difference of two noisy
    counts. One vote that moves shifts it by 2, and its noise is the discrete Gaussian
    of variance 2 sigma^2, which post-processes N(0, 2 sigma^2 - 2.25) as in `gdp_mu`.
    """
    if not _SMALLEST_SIGMA <= sigma <= _LARGEST_SIGMA:
        return None
    return gdp_mu(np.sqrt(2) * sigma, squared_distance=4.0)


def check_mu(sigma: float) -> float | None:
    """Return mu of one check of a count that changes by 1, None if not resolved."""
    if not _SMALLEST_SIGMA <= sigma <= _LARGEST_SIGMA:
        return None
    return gdp_mu(sigma, squared_distance=1.0)


@lru_cache(maxsize=64)
def gaussian_tests(mu: float) -> AnswerTests:
    """Return a polygon around the tests of N(0, 1) against N(mu, 1)."""
    mu = mu * (1 + _ROUNDING_OF_TESTS)
    x = _knots()
    # Tangents at (p, q) = (Phi(x + mu/2), Phi(x - mu/2)), of slope dp/dq = e^-mu x.
    return _polygon(ndtr(x + mu / 2), ndtr(x - mu / 2), np.exp(-mu * x), mu)


@lru_cache(maxsize=64)
def bounded_range_tests(width: float) -> AnswerTests | None:
    """Return a polygon around all tests whose log-ratios differ by at most a width.

    By convexity a law of the ratio q / p on an interval [a, b] with mean 1 is dominated
    by that on {a, b}: two outcomes with p = 1 / (1 + e^-g) and q = 1 / (1 + e^(width -
    g)) (Dong, Durfee, Rogers 2020, "Optimal differential privacy composition for
    exponential mechanisms"). The exponential mechanism with scores that change by at
    most 1, one up and one down, has the width 2c.
    """
    if not _SMALLEST_RANGE <= width <= _LARGEST_RANGE:
        return None
    width = width * (1 + _ROUNDING_OF_TESTS)
    # Up to a probability of 1e-9, where the tangent leaves out its square.
    g = _LOGIT_OF_NORMAL * _knots()
    p, q = expit(g + width / 2), expit(g - width / 2)
    slope = p * expit(-g - width / 2) / (q * expit(-g + width / 2))
    # The largest mu is that of the tie.
    tests = _polygon(p, q, slope, 2 * float(ndtri(expit(width / 2))))
    return replace(tests, rest=float(p[0] ** 2))


@lru_cache(maxsize=64)
def randomised_response(epsilon: float) -> AnswerTests | None:
    """Return the most distinguishable test under a pure guarantee of an epsilon.

    Two outcomes with odds e^epsilon (Kairouz, Oh, Viswanath 2015, "The composition
    theorem for differential privacy", Theorem 3.4).
    """
    if not _SMALLEST_RANGE <= epsilon <= _LARGEST_RANGE:
        return None
    epsilon = epsilon * (1 + _ROUNDING_OF_TESTS)
    p = np.array([[expit(epsilon), expit(-epsilon)]])
    shifts = np.array([[-epsilon, epsilon]])
    return AnswerTests(p, shifts, 2 * float(ndtri(p[0, 0])), epsilon)


@lru_cache(maxsize=64)
def laplace_tests(gamma: float) -> AnswerTests | None:
    """Return a polygon around the tests of one LNMax answer on two classes.

    Given the coin for ties, an answer is a threshold of the difference D of two
    discrete Laplace variables, which a moved vote shifts by 2. With r = e^-gamma,
    Pr[D >= m] = A r^m ((m + B) / (1 - r) + r / (1 - r)^2) for m > 0, A = tanh(gamma /
    2)^2 and B = (1 + r^2) / (1 - r^2). D is log-concave, so that the tests of whole
    thresholds are corners of a convex polygon; lines along some of its edges enclose
    it.
    """
    if not _SMALLEST_RANGE <= 2 * gamma <= _LARGEST_RANGE:
        return None
    r, less = np.exp(-gamma), -np.expm1(-gamma)
    scale, offset = np.tanh(gamma / 2) ** 2, (1 + r * r) / -np.expm1(-2 * gamma)

    def upper(m: NDArray[np.int64]) -> _Array:
        """Compute Pr[D >= m]."""
        size = np.where(m > 0, m, 1 - m)
        tail = scale * np.exp(-gamma * size) * ((size + offset) / less + r / less**2)
        return np.where(m > 0, tail, 1 - tail)

    def mass(m: NDArray[np.int64]) -> _Array:
        size = np.abs(m)
        return scale * np.exp(-gamma * size) * (size + offset)

    # Edge m joins (Pr[D >= m], Pr[D >= m + 2]) and the same at m + 1; it is the mirror
    # image of edge -2 - m. Their distance is that of the knots, in units of the noise.
    spread = np.sqrt(2.0) / gamma
    x = _knots()
    x = -x[x < 0]
    edges = np.unique(np.floor(spread * (x + x * x / 2)).astype(np.int64))
    edges = np.append(edges[upper(edges) > _SMALLEST_TAIL][::-1], -1)
    thresholds = np.arange(-1, int(12 * spread) + 1)
    largest = np.max(ndtri(upper(thresholds)) - ndtri(upper(thresholds + 2)))
    return _polygon(
        upper(edges),
        upper(edges + 2),
        mass(edges) / mass(edges + 2),
        float(largest) * (1 + _ROUNDING_OF_TESTS),
    )


def _polygon(p: _Array, q: _Array, slope: _Array, mu: float) -> AnswerTests:
    """Enclose a concave curve of tests, which is its own mirror image, by its tangents.

    The tangents, of slope dp / dq, begin where an outcome has a negligible probability,
    and end at the tie or one beyond it. The mirror image of (p, q) is (1 - q, 1 - p).
    """
    height = p - slope * q
    q_corner = np.diff(height) / -np.diff(slope)
    p_corner = height[:-1] + slope[:-1] * q_corner
    first = np.concatenate([p_corner, 1 - q_corner])
    shifts = np.concatenate(
        [np.log(q_corner) - np.log(p_corner), np.log1p(-p_corner) - np.log1p(-q_corner)]
    )
    falls = np.concatenate(
        [np.log1p(-q_corner) - np.log1p(-p_corner), np.log(p_corner) - np.log(q_corner)]
    )
    return AnswerTests(
        np.stack([first, 1 - first], 1),
        np.stack([shifts, falls], 1),
        mu,
        tie=-float(shifts[len(p_corner) - 1]),
        rest=float(p[0]),
    )


def _knots() -> _Array:
    """Return knots from far below a tie to the first one above it."""
    knots = [_KNOT_DISTANCE / 2]
    while knots[-1] < _LAST_KNOT:
        growth = max(knots[-1] / _DENSE_KNOTS, 1.0) ** 1.3
        knots.append(knots[-1] + min(_KNOT_DISTANCE * growth, 1.0))
    return np.append(-np.array(knots[::-1]), knots[0])


def plurality_tests(sigma: float, n_classes: int) -> AnswerTests | None:
    """Return tests that dominate one answer, None where sigma is not resolved."""
    mu = two_class_mu(sigma)
    if mu is None:
        return None
    if n_classes <= 2:
        return gaussian_tests(mu)
    return _tests_of_three_outcomes(sigma)


@lru_cache(maxsize=64)
def _tests_of_three_outcomes(sigma: float) -> AnswerTests | None:
    """Return tests that dominate one answer on any number of classes.

    Given the order of ties and the best of all other classes, an answer has three
    outcomes: c, d or that class (Lemma 1 of :doc:`Privacy cost of an answer
    </accounting>`). Noise of scale sigma is a mixture of slightly less noise around the
    points of a lattice (Lemma 2), so that whole leads on the lattice are enough. At
    most of them the answer post-processes a coin and one of two tests of two outcomes
    (Lemma 9), which lie within a polygon; the others are tests of their own.
    """
    noise, step, error = coarse_lattice(sigma, _RESOLUTION, _RIPPLE)
    mu = gdp_mu(noise.sigma)
    if not np.isfinite(mu):
        return None
    mu = max(mu, (1 + _SLACK) * np.sqrt(2) / noise.sigma)
    reach = int(_REACH * noise.sigma) // step + 1
    lead = step * np.arange(-reach, reach + 1)
    everywhere = np.ones((lead.size, lead.size), dtype=bool)
    log_p = log_law(noise, lead, lead, everywhere)
    log_q = log_law(noise, lead - 1, lead + 1, everywhere)
    likely = np.all(np.maximum(log_p, log_q) > np.log(_NEGLIGIBLE_MASS), axis=1)
    log_p, log_q = log_p[likely], log_q[likely]
    left = ~_is_coin_and_test(log_p, log_q, mu)
    log_p, log_q = log_p[left], log_q[left]
    return gaussian_tests(mu).joined(
        np.exp(np.concatenate([log_p, log_q])),
        np.concatenate([log_q - log_p, log_p - log_q]),
        rest=4 * _NEGLIGIBLE_MASS,
        error=error + _ROUNDING,
    )


def _is_coin_and_test(log_p: _Array, log_q: _Array, mu: float) -> NDArray[np.bool_]:
    """Check that laws of three outcomes post-process a coin and one of two tests.

    With a coin of probability w, and outcomes i and j: heads tests i against the rest,
    with probabilities p_i / w and q_i / w, tails tests j against the rest, with p_j /
    (1 - w) and q_j / (1 - w). Merging both rests gives back the law of three outcomes.
    Both tests have to lie within that of N(0, 1) against N(mu, 1).
    """
    least = np.stack([_least_coin(log_p[:, i], log_q[:, i], mu) for i in range(3)])
    found = np.zeros(len(log_p), dtype=bool)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        rows = np.flatnonzero(np.exp(least[i]) + np.exp(least[j]) <= 1)
        log_w = least[i, rows]
        heads = _test_mu(log_p[rows, i], log_q[rows, i], log_w)
        with np.errstate(divide="ignore"):  # of a coin that always shows heads
            log_rest = np.log(-np.expm1(log_w))
        tails = _test_mu(log_p[rows, j], log_q[rows, j], log_rest)
        found[rows] |= np.maximum(heads, tails) <= mu * (1 - _MARGIN)
    return found


def _least_coin(log_p: _Array, log_q: _Array, mu: float) -> _Array:
    """Return ln of about the smallest w with a test of (p / w, q / w) within mu."""
    low, high = np.maximum(log_p, log_q), np.zeros(len(log_p))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        within = _test_mu(log_p, log_q, middle) <= mu * (1 - _MARGIN)
        low, high = np.where(within, low, middle), np.where(within, middle, high)
    return high


def _test_mu(log_p: _Array, log_q: _Array, log_w: _Array) -> _Array:
    """Return mu of a test of two outcomes, the first with p / w and q / w."""
    with np.errstate(invalid="ignore"):
        normal = ndtri_exp(np.minimum(np.stack([log_p, log_q]) - log_w, 0.0))
        found = np.abs(normal[0] - normal[1])
    return np.where(np.isnan(found), np.inf, found)


@lru_cache(maxsize=256)
def adaptive_profile(
    tests: AnswerTests, n_answers: int, first_mu: float = 0.0
) -> PrivacyProfile | None:
    """Bound the profile of answers, each by one of some tests; None if it is too wide.

    A Gaussian release of `first_mu` may come before them, and all queries may depend on
    it: one more move of the recursion, of all outcomes of N(0, 1) against N(first_mu,
    1). Its law of the privacy loss is replaced by one on the grid that dominates it.

    The test of each answer may depend on earlier answers. With W_0(u) = max(0, 1 -
    e^u), the profile of k answers is W_k for W_{j+1}(u) = max over tests of the sum
    over outcomes of p W_j(u + ln q/p) (Theorems 1 and 2 of :doc:`Privacy cost of an
    answer </accounting>`). W_j is replaced by chords in e^u between points of a grid,
    an upper bound. After a few answers, many more are bounded by one law of the privacy
    loss (Theorem 4). All W_j are kept, so that further numbers of answers cost little.
    """
    steps = AnswerSteps.of(tests)
    n_points = steps.n_points(n_answers)
    most = (_n_points_of(first_mu, steps.step) if first_mu else 0) + n_points
    if most > _MOST_POINTS or n_points * len(tests.weights) > _MOST_VALUES:
        return None
    deltas = _after(steps, n_answers)
    if deltas is None:
        return None
    deltas = deltas + n_answers * (tests.rest + _UNRESOLVED)
    error = n_answers * (tests.error + _ROUNDING_OF_STEP)
    return _stated(deltas, steps.step, steps.mu_of(n_answers), error, first_mu)


@lru_cache(maxsize=256)
def checked_profile(
    checks: AnswerTests,
    answers: AnswerTests,
    n_checks: int,
    n_answers: int,
    first_mu: float = 0.0,
) -> PrivacyProfile | None:
    """Bound the profile of checks and answers in any order; None if it is too wide.

    The order may depend on all outcomes: that costs no more than all checks and then
    all answers, as two separate releases (Theorem 3 of :doc:`Privacy cost of an answer
    </accounting>`; Vadhan and Zhang 2023, "Concurrent composition theorems for
    differential privacy", in general).
    """
    if n_checks > MOST_ANSWERS:
        return None
    first = adaptive_profile(checks, n_checks, first_mu)
    if n_answers == 0 or first is None:
        return first
    second = adaptive_profile(answers, n_answers)
    return None if second is None else compose_profiles([first, second])


@dataclass(frozen=True, eq=False)
class AnswerSteps:
    """Steps of the recursion over answers, on a grid of epsilon."""

    tests: AnswerTests
    #: Distance of the grid's points, in epsilon.
    step: float
    #: Weights of the points that the outcomes of each test move to, in blocks of shape
    #: (n_tests, 2 reach + 1).
    moves: tuple[sparse.csr_array, ...]
    #: Largest move, in steps.
    reach: int

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, tests: AnswerTests) -> Self:
        """Place the moves of tests on a grid."""
        step = tests.tie / _STEPS_OF_TIE
        below = np.floor(tests.shifts / step)
        share = np.expm1(tests.shifts - below * step) / np.expm1(step)
        share = np.clip(share, 0.0, 1.0) * tests.weights
        at = np.hstack([below, below + 1]).astype(np.intp)
        weights = np.hstack([tests.weights - share, share])
        reach = int(np.abs(at).max())
        rows = np.repeat(np.arange(len(at)), at.shape[1])
        moves = sparse.csr_array(
            (weights.ravel(), (rows, at.ravel() + reach)),
            shape=(len(at), 2 * reach + 1),
        )
        blocks = (moves[i : i + _BLOCK] for i in range(0, len(at), _BLOCK))
        return cls(tests, step, tuple(blocks), reach)

    def mu_of(self, n_answers: int) -> float:
        """Return mu of a Gaussian test that all answers together post-process."""
        return float(self.tests.mu * np.sqrt(n_answers))

    def n_points(self, n_answers: int) -> int:
        """Return the number of points of a grid up to where delta is negligible."""
        # A tie has 2 / pi of the squared mu; .85 squared is more, if answers are many.
        share = 1.0 if n_answers < 20 else 0.85
        return _n_points_of(share * self.mu_of(n_answers), self.step)

    def after_one(self, deltas: _Array, mu: float | None) -> _Array:
        """Bound the profile of one more answer, before those that it is known of."""
        n_points = len(deltas)
        shifted = sliding_window_view(
            extended(deltas, self.step, mu, self.reach), n_points
        )
        found = np.empty(n_points)
        for first in range(0, n_points, _BLOCK):
            some = slice(first, first + _BLOCK)
            moved = np.ascontiguousarray(shifted[:, some])
            found[some] = np.max([(one @ moved).max(axis=0) for one in self.moves], 0)
        return found


@dataclass(frozen=True)
class _Jumps:
    """Distributions of a privacy loss that jumps by plus or minus one size, or is 0.

    A jump of h = `size` steps of a grid is down with probability expit(h), up with
    expit(-h). `many` laws have a number of jumps with a Poisson distribution: a loss of
    m h has probability e^{-a} I_m(a) e^{a (1 - cosh(h / 2)) - m h / 2}, I_m the
    modified Bessel function. The others have at most one jump, with probability a.
    """

    step: float
    size: int
    many: bool

    def law(self, a: float) -> _Array:
        """Return probabilities of losses of whole jumps, the middle one of 0."""
        jump = self.step * self.size
        if not self.many:
            return np.array([a * expit(jump), 1 - a, a * expit(-jump)])
        most = int(9 * np.sqrt(a)) + 20
        m = np.arange(-most, most + 1)
        return ive(np.abs(m), a) * np.exp(a * (1 - np.cosh(jump / 2)) - m * jump / 2)

    def before(self, deltas: _Array, law: _Array) -> _Array:
        """Return the profile of a law before what a profile is known of."""
        wide = extended(deltas, self.step, None, self.size * (len(law) // 2))
        found = np.empty(len(deltas))
        for first in range(min(self.size, len(deltas))):
            # Directly: a Fourier transform would lose the smallest deltas.
            some = slice(first, None, self.size)
            found[some] = np.convolve(wide[some], law[::-1], "valid")
        return found

    def least(self, deltas: _Array, needed: _Array, mu: float) -> float | None:
        """Find about the smallest a of a law that needs at least other deltas.

        None if it is more than three times that of a Gaussian test of `mu`.
        """
        most = 3 * (mu / (self.step * self.size)) ** 2
        most = most if self.many else min(most, 1.0)
        a = most / 5
        some = needed > deltas
        for _ in range(_MOST_TRIES):
            found = self.before(deltas, self.law(a))
            # What a law adds is nearly proportional to a.
            added = np.maximum((found - deltas)[some], _UNRESOLVED)
            ratio = np.max((needed - deltas)[some] / added, initial=0.0)
            is_enough = np.all(found * (1 + _ROUNDING_OF_STEP / 2) >= needed)
            if is_enough and ratio > 1 - _PRECISION:
                return a
            if a == most and not is_enough:
                break
            a = min(a * max(ratio, 0.1) * (1 + _PRECISION / 2), most)
        return None


@dataclass(frozen=True, eq=False)
class _Stretch:
    """Many answers in a row, each bounded by one distribution of jumps."""

    steps: AnswerSteps
    #: Number of answers before them, and their profile.
    n_before: int
    deltas: _Array
    jumps: _Jumps
    law: _Array

    @property
    def last(self) -> int:
        """Number of the last answer."""
        return int(np.ceil(_GROWTH * self.n_before))

    def after(self, n_answers: int) -> _Array:
        """Bound the profile of a number of answers, at most the last."""
        law = _power(self.law, n_answers - self.n_before)
        deltas = _padded(self.deltas, self.steps.n_points(n_answers))
        return self.jumps.before(deltas, law) + max(1 - law.sum(), 0.0)


def _after(steps: AnswerSteps, n_answers: int) -> _Array | None:
    """Bound the profile of answers on the grid, up to _UNRESOLVED; None as below."""
    if n_answers <= _FEW:
        return _after_few(steps, n_answers)[: steps.n_points(n_answers)]
    number = 0
    while (stretch := _stretch(steps, number)) is not None:
        if n_answers <= stretch.last:
            return stretch.after(n_answers)
        number += 1
    return None


@lru_cache(maxsize=256)
def _after_few(steps: AnswerSteps, n_answers: int) -> _Array:
    """Bound the profile of answers that are followed one by one."""
    if n_answers == 0:
        return np.zeros(steps.n_points(_FEW))
    n_before = n_answers - 1
    return steps.after_one(_after_few(steps, n_before), steps.mu_of(n_before))


@lru_cache(maxsize=64)
def _stretch(steps: AnswerSteps, number: int) -> _Stretch | None:
    """Return a stretch of answers after a few, None if no distribution is enough."""
    if number == 0:
        n_before, deltas = _FEW, _after_few(steps, _FEW)
        kinds = [
            _Jumps(steps.step, max(round(size * steps.tests.tie / steps.step), 1), many)
            for size, many in _JUMPS
        ]
    else:
        before = _stretch(steps, number - 1)
        if before is None:
            return None
        n_before, deltas = before.last, before.after(before.last)
        kinds = [before.jumps]
    found = _least_jumps(deltas, steps, kinds)
    return None if found is None else _Stretch(steps, n_before, deltas, *found)


def _least_jumps(
    deltas: _Array, steps: AnswerSteps, kinds: Sequence[_Jumps]
) -> tuple[_Jumps, _Array] | None:
    """Return the least distribution that costs at least one answer, None without one.

    Before all that a profile is known of, up to _UNRESOLVED and _ROUNDING_OF_STEP. The
    least is that where delta is _TYPICAL.
    """
    deltas = _padded(deltas, len(deltas) + steps.reach)
    needed = steps.after_one(deltas, None) - _UNRESOLVED
    at = min(int(np.sum(deltas > _TYPICAL)), len(deltas) - 1)
    best, least = None, np.inf
    for kind in kinds:
        a = kind.least(deltas, needed, steps.tests.mu)
        if a is not None:
            law = kind.law(a)
            cost = kind.before(deltas, law)[at]
            if cost < least:
                best, least = (kind, law), cost
    return best


def _power(law: _Array, n: int) -> _Array:
    """Return the distribution of a sum of n losses, without negligible ones."""
    total = np.ones(1)
    while True:
        if n % 2:
            total = np.convolve(total, law)
        n //= 2
        if n == 0:
            return total
        law = np.convolve(law, law)
        n_left_out = int(np.argmax(np.maximum(law, law[::-1]) > _LEFT_OUT))
        law = law[n_left_out : len(law) - n_left_out]


def _padded(deltas: _Array, n_points: int) -> _Array:
    """Continue a profile by its last value, up to a number of points."""
    return np.append(deltas, np.full(max(n_points - len(deltas), 0), deltas[-1]))


def _n_points_of(mu: float, step: float) -> int:
    """Return the number of grid points up to where a Gaussian delta is negligible.

    Or up to the largest epsilon of a profile.
    """
    top = min(gdp_epsilon(mu, _NEGLIGIBLE), LARGEST_EPSILON)
    return int(np.ceil(top / step)) + 2


def _stated(
    deltas: _Array, step: float, mu: float, error: float, first_mu: float
) -> PrivacyProfile:
    """Make a profile from bounds on the grid, after a Gaussian release."""
    if first_mu:
        deltas = _after_release(deltas, step, mu, first_mu)
    # A probability is off by a factor of e^error, their ratio by twice as much.
    deltas = np.minimum(deltas * (1 + _ROUNDING) * np.exp(error), 1.0)
    epsilons = step * np.arange(len(deltas)) + _ROUNDING_OF_EPSILON
    return lower_hull(epsilons + 2 * error, deltas)


def _after_release(deltas: _Array, step: float, mu: float, first_mu: float) -> _Array:
    """Compose a profile of answers with a Gaussian release before them."""
    first_mu *= 1 + _ROUNDING_OF_MU
    n_alone = _n_points_of(first_mu, step)
    alone = np.exp(log_gdp_delta(step * np.arange(n_alone), first_mu))
    masses, infinite = dominating_masses(alone, step)
    deltas = np.append(deltas, np.full(n_alone, deltas[-1]))
    return after_losses(deltas, step, mu, masses) + infinite

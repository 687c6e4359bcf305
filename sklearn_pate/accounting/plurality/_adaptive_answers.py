"""Exact privacy profile of adaptive answers, and of checks that withhold some."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, ive

from sklearn_pate.accounting._gdp import gdp_epsilon, log_gdp_delta
from sklearn_pate.accounting._profile import (
    LARGEST_EPSILON,
    PrivacyProfile,
    lower_hull,
)
from sklearn_pate.accounting._profile_composition import (
    after_losses,
    compose_profiles,
    dominating_masses,
    extended,
)
from sklearn_pate.accounting.plurality._answer_tests import AnswerTests

__all__ = [
    "MOST_ANSWERS",
    "AnswerSteps",
    "adaptive_profile",
    "checked_profile",
]

_Array = NDArray[np.float64]

# Steps of the grid in the log-ratio of a tie: finer costs less epsilon and more time.
_STEPS_OF_TIE = 16
# Points of the grid at a time, whose values fit into a processor's cache.
_COLUMNS = 128
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
_ROUNDING = 1e-9
_ROUNDING_OF_STEP = 1e-12
_ROUNDING_OF_EPSILON = 1e-8


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
    #: Weights of the points that the outcomes of each test move to, of shape (n_tests,
    #: 2 reach + 1).
    moves: sparse.csr_array
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
        return cls(tests, step, moves, reach)

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
        for first in range(0, n_points, _COLUMNS):
            some = slice(first, first + _COLUMNS)
            values = self.moves @ np.ascontiguousarray(shifted[:, some])
            found[some] = values.max(axis=0)
        return found


@dataclass(frozen=True)
class _Jumps:
    """Laws of a privacy loss that jumps up and down by one size, or not at all.

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
    """Many answers in a row, each bounded by one law of jumps."""

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
    """Return a stretch of answers after a few, None if no law of jumps is enough."""
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
    """Return the least law that costs at least one answer, None if there is none.

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
    """Return the law of a sum of n independent losses, but for negligible ones."""
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

"""Exact privacy profile of adaptive answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sklearn_pate.accounting._gdp import gdp_epsilon, log_gdp_delta
from sklearn_pate.accounting._profile import (
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    PrivacyProfile,
    lower_hull,
)
from sklearn_pate.accounting._profile_composition import (
    after_losses,
    dominating_masses,
    extended,
)
from sklearn_pate.accounting.plurality._answer_tests import AnswerTests

__all__ = [
    "MOST_ANSWERS",
    "MOST_POINTS",
    "AnswerSteps",
    "adaptive_profile",
    "n_points_of",
    "stated",
]

_Array = NDArray[np.float64]

# Steps of the grid in the log-ratio of a tie: of few tests, and of many, which need
# more time.
_STEPS_OF_TIE, _STEPS_OF_MANY = 16, 8
_MANY_TESTS = 200
# Tests with moves of up to so many log-ratios of a tie are one matrix.
_NEAR = 3
# More answers are composed of blocks of so many.
_LARGEST_BLOCK = 500
# Profiles of more are not computed: the time grows with the number of blocks.
MOST_ANSWERS = 100_000
# Largest grid of a profile that is computed, and largest product of its size and that
# of the matrix of tests.
MOST_POINTS = 3_000_000
_MOST_PRODUCTS = 5e8
# Relative margins for rounding, of mu and of delta.
_ROUNDING_OF_MU = 1e-6
_ROUNDING = 1e-9
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
    an upper bound. Many answers are composed of blocks, whose profiles are dominating
    pairs (Zhu, Dong, Wang 2022, "Optimal accounting of differential privacy via
    characteristic function", Theorem 10).
    """
    steps = AnswerSteps.of(tests)
    n_points = steps.n_points(n_answers)
    most = (n_points_of(first_mu, steps.step) if first_mu else 0) + n_points
    in_block = steps.n_points(min(n_answers, _LARGEST_BLOCK))
    if most > MOST_POINTS or in_block * steps.near.size > _MOST_PRODUCTS:
        return None
    if n_answers <= _LARGEST_BLOCK:
        (deltas,) = steps.deltas_after([n_answers])
    else:
        n_blocks = -(-n_answers // _LARGEST_BLOCK)
        n_first, n_in_block = n_answers % n_blocks, n_answers // n_blocks
        deltas, of_block = steps.deltas_after([n_first, n_in_block])
        masses, infinite = dominating_masses(of_block, steps.step)
        deltas = np.append(deltas, np.full(n_points - len(deltas), deltas[-1]))
        for i in range(n_blocks):
            mu = steps.mu_of(n_first + i * n_in_block)
            deltas = after_losses(deltas, steps.step, mu, masses) + infinite
    error = n_answers * tests.error
    return stated(deltas, steps.step, steps.mu_of(n_answers), error, first_mu)


@dataclass(frozen=True, eq=False)
class AnswerSteps:
    """Steps of the recursion over answers, on a grid of epsilon."""

    tests: AnswerTests
    #: Distance of the grid's points, in epsilon.
    step: float
    #: Weights of tests with short moves, of shape (n_tests, 2 reach + 1).
    near: _Array
    #: Indices and weights of the points that the outcomes of the others move to, of
    #: shape (n_moves, n_tests).
    at: NDArray[np.intp]
    weights: _Array
    #: Largest move of each kind, in steps.
    near_reach: int
    reach: int

    @classmethod
    def of(cls, tests: AnswerTests, step: float | None = None) -> Self:
        """Place the moves of tests on a grid, by default one of their own."""
        if step is None:
            many = len(tests.weights) > _MANY_TESTS
            step = tests.tie / (_STEPS_OF_MANY if many else _STEPS_OF_TIE)
        below = np.floor(tests.shifts / step)
        share = np.expm1(tests.shifts - below * step) / np.expm1(step)
        share = np.clip(share, 0.0, 1.0) * tests.weights
        moves = np.hstack([below, below + 1]).astype(np.intp)
        weights = np.hstack([tests.weights - share, share])
        is_near = np.abs(moves).max(axis=1) <= _NEAR * tests.tie / step
        near_reach = int(np.abs(moves[is_near]).max(initial=0))
        reach = int(np.abs(moves).max())
        near = np.zeros((np.count_nonzero(is_near), 2 * near_reach + 1))
        rows = np.arange(len(near))[:, np.newaxis]
        np.add.at(near, (rows, moves[is_near] + near_reach), weights[is_near])
        return cls(
            tests,
            step,
            near,
            (moves[~is_near] + reach).T,
            weights[~is_near].T[..., np.newaxis],
            near_reach,
            reach,
        )

    def mu_of(self, n_answers: int) -> float:
        """Return mu of a Gaussian test that all answers together post-process."""
        return float(self.tests.mu * np.sqrt(n_answers))

    def n_points(self, n_answers: int) -> int:
        """Return the number of points of a grid up to where delta is negligible."""
        # A tie has 2 / pi of the squared mu; .85 squared is more, if answers are many.
        share = 1.0 if n_answers < 20 else 0.85
        return n_points_of(share * self.mu_of(n_answers), self.step)

    def after_one(self, deltas: _Array, mu: float | None) -> _Array:
        """Bound the profile of one more answer, before those that it is known of."""
        n_points = len(deltas)
        shifted = sliding_window_view(
            extended(deltas, self.step, mu, self.reach), n_points
        )
        first, last = self.reach - self.near_reach, self.reach + self.near_reach + 1
        found = np.zeros(n_points)
        if len(self.near):
            found = (self.near @ np.ascontiguousarray(shifted[first:last])).max(axis=0)
        if self.at.size:
            values = sum(
                weight * shifted[at]
                for weight, at in zip(self.weights, self.at, strict=True)
            )
            found = np.maximum(found, values.max(axis=0))
        return found

    def all_deltas(self, n_points: int) -> Iterator[_Array]:
        """Yield upper bounds of the profile, on the grid, after 0, 1, ... answers."""
        deltas, n_answers = np.zeros(n_points), 0
        while True:
            yield deltas + n_answers * self.tests.rest
            deltas = self.after_one(deltas, self.mu_of(n_answers))
            n_answers += 1

    def deltas_after(self, numbers: Sequence[int]) -> list[_Array]:
        """Return upper bounds of the profile, on the grid, after numbers of answers."""
        most = max(numbers)
        found = islice(self.all_deltas(self.n_points(most)), most + 1)
        kept = {i: deltas for i, deltas in enumerate(found) if i in numbers}
        return [kept[number] for number in numbers]


def n_points_of(mu: float, step: float) -> int:
    """Return the number of grid points up to where a Gaussian delta is negligible.

    Or up to the largest epsilon of a profile.
    """
    top = min(gdp_epsilon(mu, SMALLEST_DELTA), LARGEST_EPSILON)
    return int(np.ceil(top / step)) + 2


def stated(
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
    n_alone = n_points_of(first_mu, step)
    alone = np.exp(log_gdp_delta(step * np.arange(n_alone), first_mu))
    masses, infinite = dominating_masses(alone, step)
    deltas = np.append(deltas, np.full(n_alone, deltas[-1]))
    return after_losses(deltas, step, mu, masses) + infinite

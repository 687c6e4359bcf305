"""Exact privacy profile of adaptive answers on two classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import ndtr

from sklearn_pate.accounting._gdp import gdp_epsilon, gdp_mu, log_gdp_delta
from sklearn_pate.accounting._profile import (
    SMALLEST_DELTA,
    PrivacyProfile,
    both_signs,
    lower_hull,
    mirrored,
)

__all__ = ["MOST_ANSWERS", "adaptive_profile", "two_class_mu"]

_Array = NDArray[np.float64]

# Knots of the polygon around the tests of N(0, 1) against N(mu, 1): their distance
# grows from this to 1, up to the last one.
_KNOT_DISTANCE = 0.06
_DENSE_KNOTS = 0.6
_LAST_KNOT = 9.0
# Steps of the grid in the log-ratio of a tie.
_STEPS_OF_TIE = 16
# More answers are composed of blocks of so many.
_LARGEST_BLOCK = 500
# Profiles of more are not computed: the time grows with the number of blocks.
MOST_ANSWERS = 100_000
# Range of sigma where the tests are resolved in floating point.
_SMALLEST_SIGMA, _LARGEST_SIGMA = 3.0, 1e4
# Relative margins for rounding, of mu and of delta.
_ROUNDING_OF_MU = 1e-6
_ROUNDING = 1e-9
_ROUNDING_OF_EPSILON = 1e-8
_FFT_ERROR = 1e-13


def two_class_mu(sigma: float) -> float | None:
    """Return mu of one answer on two classes, None where it is not resolved.

    Given the coin for ties, an answer is a threshold of the difference of two noisy
    counts. One vote that moves shifts it by 2, and its noise is the discrete Gaussian
    of variance 2 sigma^2, which post-processes N(0, 2 sigma^2 - 2.25) as in `gdp_mu`.
    """
    if not _SMALLEST_SIGMA <= sigma <= _LARGEST_SIGMA:
        return None
    return gdp_mu(np.sqrt(2) * sigma, squared_distance=4.0)


@lru_cache(maxsize=256)
def adaptive_profile(
    mu: float, n_answers: int, first_mu: float = 0.0
) -> PrivacyProfile:
    """Bound the profile of answers that each test N(0, 1) against N(mu, 1).

    A Gaussian release of `first_mu` may come before them, and all queries may depend on
    it: one more move of the recursion, of all outcomes of N(0, 1) against N(first_mu,
    1). Its law of the privacy loss is replaced by one on the grid that dominates it.

    Each answer has two outcomes, and its test may depend on earlier answers. With
    W_0(u) = max(0, 1 - e^u), the profile of k answers is W_k for W_{j+1}(u) = max over
    tests (p, q) of p W_j(u + ln q/p) + (1 - p) W_j(u + ln (1-q)/(1-p)) (Theorems 1 and
    2 of :doc:`Privacy cost of an answer </accounting>`). The tests are replaced by a
    polygon around them, and W_j by chords in e^u between points of a grid, both upper
    bounds. Many answers are composed of blocks, whose profiles are dominating pairs
    (Zhu, Dong, Wang 2022, "Optimal accounting of differential privacy via
    characteristic function", Theorem 10).
    """
    game = _AdaptiveTests.around(mu * (1 + _ROUNDING_OF_MU))
    if n_answers <= _LARGEST_BLOCK:
        (deltas,) = game.deltas_after([n_answers])
    else:
        n_blocks = -(-n_answers // _LARGEST_BLOCK)
        n_first, n_in_block = n_answers % n_blocks, n_answers // n_blocks
        deltas, of_block = game.deltas_after([n_first, n_in_block])
        masses, infinite = _dominating_masses(of_block, game.step)
        n_points = game.n_points(n_answers)
        deltas = np.append(deltas, np.full(n_points - len(deltas), deltas[-1]))
        for i in range(n_blocks):
            wide = game.extended(deltas, n_first + i * n_in_block, len(of_block) - 1)
            deltas = fftconvolve(wide, masses, "valid") + infinite + _FFT_ERROR
    if first_mu:
        deltas = game.after_release(deltas, n_answers, first_mu)
    deltas = np.minimum(deltas * (1 + _ROUNDING), 1.0)
    epsilons = game.step * np.arange(len(deltas)) + _ROUNDING_OF_EPSILON
    return lower_hull(epsilons, deltas)


@dataclass(frozen=True)
class _AdaptiveTests:
    """Adaptive answers by tests around those of N(0, 1) against N(mu, 1), on a grid."""

    mu: float
    #: Probability of the first outcome of each test that is at most that of a tie,
    #: under both data sets.
    p: _Array
    q: _Array
    #: Probability of an outcome that only one data set has, of each test.
    rest: float
    #: Distance of the grid's points, in epsilon.
    step: float

    @classmethod
    def around(cls, mu: float) -> Self:
        """Return the corners of a polygon around the tests."""
        knots = [_KNOT_DISTANCE / 2]
        while knots[-1] < _LAST_KNOT:
            growth = max(knots[-1] / _DENSE_KNOTS, 1.0) ** 1.3
            knots.append(knots[-1] + min(_KNOT_DISTANCE * growth, 1.0))
        # Tangents at (p, q) = (Phi(x + mu/2), Phi(x - mu/2)), of slope dp/dq = e^-mu x.
        x = np.append(-np.array(knots[::-1]), knots[0])
        p, q, slope = ndtr(x + mu / 2), ndtr(x - mu / 2), np.exp(-mu * x)
        height = p - slope * q
        q_corner = np.diff(height) / -np.diff(slope)
        p_corner = height[:-1] + slope[:-1] * q_corner
        # The middle corner is the tie, its own mirror image (1 - q, 1 - p).
        tie = p_corner[-1]
        q_corner[-1] = 1 - tie
        step = float(np.log(tie / (1 - tie)) / _STEPS_OF_TIE)
        return cls(mu, p_corner, q_corner, rest=float(p[0]), step=step)

    def n_points(self, n_answers: int) -> int:
        """Return the number of points of a grid up to where delta is negligible."""
        # A tie has 2 / pi of the squared mu; .85 squared is more, if answers are many.
        share = 1.0 if n_answers < 20 else 0.85
        top = gdp_epsilon(share * self.mu * np.sqrt(n_answers), SMALLEST_DELTA)
        return int(np.ceil(top / self.step)) + 2

    def deltas_after(self, numbers: Sequence[int]) -> list[_Array]:
        """Return upper bounds of the profile, on the grid, after numbers of answers."""
        rises = np.log(self.q) - np.log(self.p)
        falls = np.log1p(-self.q) - np.log1p(-self.p)
        # Both outcomes of each test, then of its mirror image (1 - q, 1 - p).
        shifts = np.concatenate([rises, -falls, falls, -rises])
        weights = np.concatenate([self.p, 1 - self.q, 1 - self.p, self.q])
        whole = np.floor(shifts / self.step)
        share = np.expm1(shifts - whole * self.step) / np.expm1(self.step)
        share = np.clip(share, 0.0, 1.0)
        reach = int(np.abs(whole).max()) + 1
        at = whole.astype(int) + reach
        left, right = (weights * (1 - share))[:, None], (weights * share)[:, None]
        n_points = self.n_points(max(numbers))
        n_tests = 2 * len(self.p)
        deltas, kept = np.zeros(n_points), {0: np.zeros(n_points)}
        for i in range(max(numbers)):
            shifted = sliding_window_view(self.extended(deltas, i, reach), n_points)
            values = left * shifted[at] + right * shifted[at + 1]
            deltas = (values[:n_tests] + values[n_tests:]).max(axis=0)
            if i + 1 in numbers:
                kept[i + 1] = deltas + (i + 1) * self.rest
        return [kept[number] for number in numbers]

    def after_release(self, deltas: _Array, n_answers: int, mu: float) -> _Array:
        """Compose a profile after some answers with a Gaussian release before them."""
        mu *= 1 + _ROUNDING_OF_MU
        n_alone = int(np.ceil(gdp_epsilon(mu, SMALLEST_DELTA) / self.step)) + 2
        alone = np.exp(log_gdp_delta(self.step * np.arange(n_alone), mu))
        masses, infinite = _dominating_masses(alone, self.step)
        deltas = np.append(deltas, np.full(n_alone, deltas[-1]))
        wide = self.extended(deltas, n_answers, n_alone - 1)
        return fftconvolve(wide, masses, "valid") + infinite + _FFT_ERROR

    def extended(self, deltas: _Array, n_answers: int, n_more: int) -> _Array:
        """Continue a profile after some answers to both ends, by n_more points."""
        u: _Array = self.step * np.arange(1, n_more + 1, dtype=np.float64)
        inner = np.append(deltas, np.full(max(n_more + 1 - len(deltas), 0), deltas[-1]))
        left = mirrored(u, inner[1 : n_more + 1])
        # All answers together post-process a test of N(0, 1) against N(sqrt(k) mu, 1).
        beyond = self.step * (len(deltas) - 1) + u
        gaussian = (
            np.exp(log_gdp_delta(beyond, np.sqrt(n_answers) * self.mu))
            if n_answers
            else np.zeros(n_more)
        )
        return np.concatenate([left[::-1], deltas, np.minimum(gaussian, deltas[-1])])


def _dominating_masses(deltas: _Array, step: float) -> tuple[_Array, float]:
    """Return a law of the privacy loss that has at least a profile, on its grid.

    The law of the loss under P has masses at all points from -(n - 1) to n - 1 steps,
    and one at infinity.
    """
    u: _Array = step * np.arange(len(deltas), dtype=np.float64)
    both = both_signs(u)
    deltas = lower_hull(u, deltas).delta_at(both)
    ratio = np.exp(both)
    slopes = np.diff(deltas, prepend=1.0) / np.diff(ratio, prepend=0.0)
    masses = ratio * np.maximum(np.diff(slopes, append=0.0), 0.0)
    return masses, float(deltas[-1])

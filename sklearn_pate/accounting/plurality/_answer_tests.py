"""Laws of one answer under neighbouring votes, as tests between two data sets."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from sklearn_pate.accounting._gdp import gdp_mu

__all__ = [
    "AnswerTests",
    "bounded_range_tests",
    "check_mu",
    "gaussian_tests",
    "laplace_tests",
    "randomised_response",
    "two_class_mu",
]

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
_ROUNDING = 1e-6
# Probability beyond the last knot of Laplace noise.
_SMALLEST_TAIL = 1e-18
# Knots of logistic tests, in units of those of Gaussian ones.
_LOGIT_OF_NORMAL = 2.3


@dataclass(frozen=True, eq=False)
class AnswerTests:
    """Tests that dominate one answer to a query, whatever the votes.

    A test is a pair of laws of a few outcomes, under one data set and its neighbour.
    With each test, the one with the data sets exchanged is among them.
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
    mu = mu * (1 + _ROUNDING)
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
    width = width * (1 + _ROUNDING)
    # Up to a probability of 1e-9, where the tangent leaves out its square.
    g = _LOGIT_OF_NORMAL * _knots()
    p, q = expit(g + width / 2), expit(g - width / 2)
    slope = p * expit(-g - width / 2) / (q * expit(-g + width / 2))
    # The largest mu is that of the tie.
    tests = _polygon(p, q, slope, 2 * float(ndtri(expit(width / 2))))
    return replace(tests, rest=float(p[0] ** 2))


@lru_cache(maxsize=64)
def randomised_response(epsilon: float) -> AnswerTests | None:
    """Return the test that dominates all pure guarantees of an epsilon.

    Two outcomes with odds e^epsilon (Kairouz, Oh, Viswanath 2015, "The composition
    theorem for differential privacy", Theorem 3.4).
    """
    if not _SMALLEST_RANGE <= epsilon <= _LARGEST_RANGE:
        return None
    epsilon = epsilon * (1 + _ROUNDING)
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
        float(largest) * (1 + _ROUNDING),
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

"""Distributions of discrete noise, and of a noisy threshold check."""

from fractions import Fraction
from functools import lru_cache
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermeval
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.special import gammaln, log_ndtr

from sklearn_pate.accounting._value_checks import check_not_masked

_Array = NDArray[np.float64]
# From this standard deviation on, the tail of the discrete Gaussian comes from a
# formula; below, from a table.
LARGE_SIGMA = 32
# B_2j(1/2) / (2j)! for j = 1..6, the Euler-Maclaurin coefficients of midpoint sums.
_MIDPOINT = (
    -1 / 24,
    7 / 5760,
    -31 / 967680,
    127 / 154828800,
    -2555 / 33792 / 3628800,
    1414477 / 5591040 / 479001600,
)
# The depth, in standard deviations, at which a Gaussian tail leaves float64.
_DEPTH = 38
# Number of points of a Gauss rule, and the length of its range in units of 1 / gamma.
_N_NODES = 20
_BLOCK = 4
# Larger thresholds are treated like this one; in float64, votes are still exact here.
_FARTHEST = 2**50


class DiscreteGaussian:
    """Distribution on whole numbers, Pr[z] proportional to exp(-z^2 / (2 sigma^2)).

    Canonne, Kamath, Steinke (2020), Definition 1. For sigma >= 32, F(z) = Phi(x) -
    phi(x) sum_j c_j He_{2j-1}(x) / sigma^{2j}, x = (z + 1/2) / sigma, c_j = B_{2j}(1/2)
    / (2j)! (Euler-Maclaurin), to a relative 1e-10 wherever F is above 1e-300, and z
    need not be whole.
    """

    def __init__(self, sigma: float) -> None:
        self.sigma = sigma
        if sigma < LARGE_SIGMA:
            self._reach = ceil(2 * _DEPTH * sigma) + 2
            points = np.arange(-self._reach, self._reach + 1)
            weights = -(points**2) / (2 * sigma**2)
            self._log_mass = -np.log(np.sum(np.exp(weights)))
            below = np.logaddexp.accumulate(weights[: self._reach]) + self._log_mass
            # From 0 on by symmetry, F(z) = 1 - F(-z - 1), so that 1 - F keeps its
            # digits.
            above = np.log1p(-np.exp(below[::-1]))
            self._log_cdf = np.concatenate([below, above, [0.0]])
        else:
            self._log_mass = -np.log(sigma) - 0.5 * np.log(2 * np.pi)
            self._midpoint_series = np.zeros(2 * len(_MIDPOINT))
            for j, c in enumerate(_MIDPOINT):
                self._midpoint_series[2 * j + 1] = c / sigma ** (2 * j + 2)

    def log_pmf(self, z: _Array) -> _Array:
        """Compute ln Pr[Z = z]."""
        return -(z * z) / (2 * self.sigma**2) + self._log_mass

    def log_pmf_step(self, z: _Array, step: Any) -> _Array:
        """Compute ln Pr[Z = z + step] - ln Pr[Z = z]."""
        return -(step * (2 * z + step)) / (2 * self.sigma**2)

    def log_cdf(self, z: _Array) -> _Array:
        """Compute ln Pr[Z <= z] at whole numbers, or at any z if sigma >= 32."""
        if self.sigma < LARGE_SIGMA:
            # Beyond the table F is 1, or a sum of few terms.
            inside = np.clip(z, -self._reach, self._reach)
            found = self._log_cdf[(inside + self._reach).astype(np.intp)]
            return self._with_deep_tail(z, found, z < inside)
        far = z < -(self.sigma**2)
        x = (np.where(far, 0, z) + 0.5) / self.sigma
        smooth = log_ndtr(x)
        mills = np.exp(-x * x / 2 - 0.5 * np.log(2 * np.pi) - smooth)
        correction = hermeval(x, self._midpoint_series) * mills
        return self._with_deep_tail(z, smooth + np.log1p(-correction), far)

    def _with_deep_tail(
        self, z: _Array, found: _Array, far: NDArray[np.bool_]
    ) -> _Array:
        """Replace ln F(z) where z < -sigma^2, so that the mass falls by e a step."""
        if np.any(far):
            deep = z[far][..., np.newaxis]
            steps = self.log_pmf_step(deep, -np.arange(40))
            found[far] = self.log_pmf(z[far]) + np.log(np.exp(steps).sum(axis=-1))
        return found

    def nodes(self, values: _Array, sizes: _Array) -> tuple[_Array, _Array]:
        """Return points and weights that approximate a sum over all whole numbers.

        `values` and `sizes`, of shape (n_vectors, n_levels), are the vote counts of
        each vector and the numbers of classes with them; the results have shape
        (n_vectors, n_points).

        The trapezoidal rule on the whole line: its error decreases as exp(-2 pi^2 s^2 /
        h^2) for a bump of standard deviation s and a step h. A class that beats m
        others far above it has a bump of at least sigma / sqrt(1 + m); where very many
        others are near, about 20 of them add to m, and 40 are allowed for.
        """
        low, high = values.min(axis=1), values.max(axis=1)
        above = np.sum(sizes, axis=1, where=values > low[:, None] + self.sigma)
        n_rivals = min(sizes[0].sum() - 1, 40 + above.max())
        start = np.floor((low + high) / 2 - 6.5 * self.sigma)
        stop = high + 8.5 * self.sigma
        step = max(1, int(self.sigma / (1.25 * np.sqrt(1 + n_rivals))))
        n_points = ceil(np.max(stop - start) / step) + 1
        points = start[:, None] + step * np.arange(n_points)
        return points, np.full(points.shape, float(step))


class DiscreteLaplace:
    """Distribution on whole numbers, Pr[z] proportional to exp(-gamma |z|).

    Pr[z] = tanh(gamma / 2) e^{-gamma |z|}; F(z) = e^{gamma z} / (1 + e^{-gamma}) up to
    0, and 1 - F(-z - 1) from there on (Canonne, Kamath, Steinke 2020, Section 3).
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def log_pmf(self, z: _Array) -> _Array:
        """Compute ln Pr[Z = z]."""
        return np.log(np.tanh(self.gamma / 2)) - self.gamma * np.abs(z)

    def log_pmf_step(self, z: _Array, step: Any) -> _Array:
        """Compute ln Pr[Z = z + step] - ln Pr[Z = z]."""
        return self.gamma * (np.abs(z) - np.abs(z + step))

    def log_cdf(self, z: _Array) -> _Array:
        """Compute ln Pr[Z <= z], z whole or between whole numbers of one sign."""
        norm = np.log1p(np.exp(-self.gamma))
        tail = -self.gamma * np.abs(np.where(z < 0, z, z + 1)) - norm
        return np.where(z < 0, tail, np.log1p(-np.exp(tail)))

    def nodes(self, values: _Array, sizes: _Array) -> tuple[_Array, _Array]:
        """Return points and weights as `DiscreteGaussian.nodes` does.

        Between two counts every factor is an exponential or one minus an exponential,
        so that Gauss quadrature for sums is exact to rounding there. The kinks, at the
        counts and at most one vote beside them, are separate points.
        """
        rules = [self._rule(row, sizes[0].sum()) for row in values]
        n_points = max(len(points) for points, _ in rules)
        points = np.empty((len(rules), n_points))
        weights = np.zeros((len(rules), n_points))
        for i, (found, weight) in enumerate(rules):
            points[i, : len(found)] = found
            points[i, len(found) :] = found[-1]
            weights[i, : len(found)] = weight
        return points, weights

    def _rule(self, row: _Array, n_classes: float) -> tuple[_Array, _Array]:
        kinks = np.unique(row[:, None] + np.arange(-1, 2))
        left = kinks[0] - ceil(_DEPTH / (self.gamma * n_classes)) - 1
        right = kinks[-1] + ceil(_DEPTH / self.gamma) + 1
        ends = np.concatenate([[left], kinks, [right]])
        blocks = [(kinks, np.ones_like(kinks))]
        longest = [max(1, int(_BLOCK / self.gamma))] * (len(ends) - 1)
        longest[0] = max(1, int(_BLOCK / (self.gamma * n_classes)))
        for start, stop, length in zip(ends, ends[1:], longest, strict=False):
            first = int(start) + 1
            while first < stop:
                n = min(length, int(stop) - first)
                at, weight = sum_rule(n)
                blocks.append((first + at, weight))
                first += n
        points, weights = zip(*blocks, strict=True)
        return np.concatenate(points), np.concatenate(weights)


@lru_cache(maxsize=4096)
def sum_rule(n: int) -> tuple[_Array, _Array]:
    """Return points and weights of Gauss quadrature for the sum over 0, 1, ..., n - 1.

    At most 20 points, all terms if there are no more; the weights sum to n. Golub and
    Welsch (1969), on the recurrence of the discrete Chebyshev polynomials, b_k = k^2
    (n^2 - k^2) / (4 (4 k^2 - 1)) around (n - 1)/2. Exact for polynomials of degree 39.
    """
    if n <= _N_NODES:
        return np.arange(float(n)), np.ones(n)
    k = np.arange(1, _N_NODES)
    off = np.sqrt(k * k * (float(n) ** 2 - k * k) / (4 * (4 * k * k - 1)))
    points, vectors = eigh_tridiagonal(np.full(_N_NODES, (n - 1) / 2), off)
    return points, n * vectors[0] ** 2


@lru_cache(maxsize=256)
def tie_nodes(slope: float, n_classes: int) -> tuple[_Array, _Array]:
    """Return points in (0, 1) and weights that average over a random priority in ties.

    Breaking ties at random is adding to each noisy count a uniform number in [0, 1):
    the law is a polynomial of degree `n_classes` - 1 in the winner's number, and its
    logarithm may grow by `slope` over [0, 1]. Gauss-Legendre with m points is exact for
    degree 2m - 1, and off by s^{2m} (m!)^4 / ((2m + 1) ((2m)!)^3) for e^{s u}.
    """
    enough = ceil(n_classes / 2)
    for m in range(1, min(enough, 40)):
        error = 2 * m * np.log(slope) + 4 * gammaln(m + 1) - 3 * gammaln(2 * m + 1)
        if error < np.log(1e-13):
            enough = m
            break
    points, weights = np.polynomial.legendre.leggauss(enough)
    return (points + 1) / 2, weights / 2


class NoisyCheck:
    """Check that the largest count with discrete Gaussian noise reaches a threshold.

    Mechanisms and their accounting use the same decisions. `threshold` and `sigma` are
    in votes.

    As counts and noise Z are whole, max_j (n_j - e_j) + Z >= T holds exactly where
    max_j (n_j - t_j) + Z >= 0, with the whole thresholds t_j = ceil(T + e_j). These are
    computed from the rational numbers that the floats represent, and from no private
    value, so that one moved vote changes the largest of the whole numbers n_j - t_j by
    at most 1. A difference n_j - e_j in floating point may be rounded differently for
    neighbouring counts, and change by two whole numbers.
    """

    def __init__(self, threshold: float, sigma: float) -> None:
        is_whole = isinstance(threshold, Integral)
        self._exact = Fraction(int(threshold) if is_whole else float(threshold))
        self._threshold = int(self._raised([0], 1)[0])
        self._noise = DiscreteGaussian(sigma)

    def whole_expectations(
        self, expected: ArrayLike, n_teachers: int = 1
    ) -> NDArray[np.int64]:
        """Round expected votes such that whole numbers decide as the exact ones do.

        `expected` holds the votes to subtract from each count, public: votes, or
        fractions of `n_teachers`, by which they are multiplied exactly. Returns whole
        numbers of the same shape: t_j as above, minus the threshold of a class with no
        expected votes.
        """
        check_not_masked("expected", expected)
        expected = np.asarray(expected)
        if not np.all(np.isfinite(expected)):
            raise ValueError(
                "expected holds NaN or infinity; pass finite numbers of votes."
            )
        distinct, place = np.unique(expected, return_inverse=True)
        thresholds = self._raised(distinct.tolist(), int(n_teachers))
        return (thresholds - self._threshold)[place].reshape(expected.shape)

    def _raised(self, expected: list[Any], n_teachers: int) -> NDArray[np.int64]:
        """Return ceil(T + n e) of each e, by integer arithmetic."""
        top, bottom = self._exact.as_integer_ratio()
        n_top = n_teachers * bottom
        parts = (value.as_integer_ratio() for value in expected)
        votes = [-(-(top * b + n_top * a) // (bottom * b)) for a, b in parts]
        return np.array(
            [min(max(vote, -_FARTHEST), _FARTHEST) for vote in votes], dtype=np.int64
        )

    def needed(self, largest: NDArray[Any]) -> NDArray[Any]:
        """Return the least noise with which the check passes, by largest count.

        `largest` is the largest count, minus `whole_expectations` if there are any.
        """
        return self._threshold - largest

    def log_probabilities(self, largest: _Array) -> tuple[_Array, _Array]:
        """Compute the log-probabilities of passing and failing, by largest count."""
        needed = self.needed(np.asarray(largest, dtype=np.float64))
        return self._noise.log_cdf(-needed), self._noise.log_cdf(needed - 1)

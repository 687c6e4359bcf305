"""Scores within bins, from the bins' edges and noisy sizes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from sklearn_pate.metrics._counts import GRID, GRID_OF_SCORES

Array = NDArray[np.float64]
# Scores that stand for those of a bin: middles of so many parts of equal size.
_PARTS = (np.arange(32) + 0.5) / 32
# Scores of the cells of the first counts, the outer ones of which are open.
_SCORES = expit(np.concatenate([[-8.5], GRID[:-1] + 0.125, [8.5]]))
# Places in a bin where its mean score may be.
_STEPS = (np.arange(200) + 0.5) / 200
# Smallest slope that the order of scores is computed for.
_LEAST_SLOPE = 0.01
# Log-odds by which scores spread where there is one edge or none.
_ONE_EDGE = 2.0
# Least share of a bin's width by which its guessed mean is off.
_LEAST_ERROR = 0.01
# Least share by which a guessed variance is off, of the way to the largest one.
_TO_LARGEST = 0.05


@dataclass(frozen=True)
class BinShapes:
    """Guesses of the scores within the bins of a class.

    There are two guesses, and their difference says how far both may be off. In the
    first one, log-odds are uniform between two edges, and fall off exponentially beyond
    the outer ones. In the second, they are a piecewise linear function of a normal
    variable. Both continue beyond an outer edge as sizes of the outer two bins say.
    """

    #: Scores between bins.
    edges: Array
    #: Noisy numbers of rows.
    sizes: Array
    #: Standard deviation of their noise.
    sigma: float

    @classmethod
    def of_counts(
        cls, edges: Array, counts: NDArray[np.int64], sigma: float
    ) -> "BinShapes":
        """Guess from noisy counts by subgroup, bin and label."""
        noise = sigma * np.sqrt(2 * len(counts))
        return cls(edges, counts.sum(axis=(0, 2)), float(noise))

    @cached_property
    def guesses(self) -> tuple[Array, Array]:
        """Return log-odds for the parts of each bin, of shape (n_bins, n_parts)."""
        return self._exponential, self._normal

    @property
    def _exponential(self) -> Array:
        edges, sizes = logit(self.edges), self._told_sizes
        tail = -np.log1p(-_PARTS)
        if not len(edges):
            return np.append(-tail[::-2], tail[::2])[np.newaxis] * _ONE_EDGE
        widths = np.diff(edges)
        low = high = _ONE_EDGE
        if len(widths):
            low = widths[0] / np.log1p(sizes[1] / sizes[0])
            high = widths[-1] / np.log1p(sizes[-2] / sizes[-1])
        inner = edges[:-1, np.newaxis] + widths[:, np.newaxis] * _PARTS
        return np.vstack([edges[0] - low * tail, inner, edges[-1] + high * tail])

    @property
    def _normal(self) -> Array:
        shares = self._told_sizes / self._told_sizes.sum()
        below = np.cumsum(shares) - shares
        normal = ndtri(below[:, np.newaxis] + shares[:, np.newaxis] * _PARTS)
        edges, places = logit(self.edges), ndtri(below[1:])
        if len(edges) < 2:
            return _ONE_EDGE * (normal - places.sum()) + edges.sum()
        slopes = np.diff(edges) / np.diff(places)
        inner = np.interp(normal, places, edges)
        low = np.minimum(normal - places[0], 0) * slopes[0]
        high = np.maximum(normal - places[-1], 0) * slopes[-1]
        return inner + low + high

    @property
    def _told_sizes(self) -> Array:
        """Sizes, none of which is smaller than the noise tells."""
        return np.maximum(self.sizes, np.sqrt(2) * self.sigma)

    def means(self, totals: NDArray[np.int64], sigma: float) -> tuple[Array, Array]:
        """Estimate the mean score of each bin from the guess and noisy first counts.

        Returns means and their standard deviations: of a Cauchy law around the guess,
        within the bin, given counts with noise of scale `sigma`.
        """
        guess, scale = self.guess
        places = np.searchsorted(self.edges, np.append(GRID_OF_SCORES, 1.0) - 1e-12)
        distances = _SCORES - guess[places]

        def of_bins(of_cells: Array) -> Array:
            sums = np.bincount(places, of_cells, len(self.sizes)).astype(np.float64)
            return sums[:, np.newaxis]

        sizes = self._told_sizes[:, np.newaxis]
        counted = of_bins(totals * distances) / sizes
        error = sigma * np.sqrt(of_bins(distances**2)) / sizes
        ends = self._ends[:, np.newaxis]
        means = ends[:-1] + (ends[1:] - ends[:-1]) * _STEPS
        away = means - guess[:, np.newaxis]
        # A bin without cells of its own has the guess alone.
        precision = np.where(error > 0, 1 / np.where(error > 0, error, 1) ** 2, 0)
        log_weights = -precision * (counted - away) ** 2 / 2
        log_weights -= np.log1p((away / scale[:, np.newaxis]) ** 2)
        weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        found = np.sum(weights * means, axis=-1)
        variances = np.sum(weights * (means - found[:, np.newaxis]) ** 2, axis=-1)
        return found, np.sqrt(variances)

    @cached_property
    def guess(self) -> tuple[Array, Array]:
        """Mean score of each bin, and how far it may be off."""
        mean, error = self._compared(lambda guess: expit(guess).mean(axis=-1))
        return mean, error + _LEAST_ERROR * np.diff(self._ends)

    @cached_property
    def variances(self) -> tuple[Array, Array]:
        """Variance of the scores of each bin, and how far it may be off."""
        variance, error = self._compared(lambda guess: expit(guess).var(axis=-1))
        means, _ = self.guess
        largest = (means - self._ends[:-1]) * (self._ends[1:] - means)
        return variance, error + _TO_LARGEST * np.maximum(largest - variance, 0)

    @property
    def _ends(self) -> Array:
        return np.concatenate([[0.0], self.edges, [1.0]])

    def order(self, slope: float) -> tuple[Array, Array]:
        """Return by how much pairs in a bin are in order, per unit of a slope.

        `slope` is that of the log-odds of the class in the log-odds of the score. Of
        independent scores s, t in a bin, the one of the class is higher with a
        probability of (1 + E|tanh(slope (s - t) / 2)|) / 2. The second array says how
        far the first may be off.
        """
        slope = max(slope, _LEAST_SLOPE)

        def order(guess: Array) -> Array:
            pairs = guess[:, :, np.newaxis] - guess[:, np.newaxis]
            return np.abs(np.tanh(slope * pairs / 2)).mean(axis=(1, 2)) / (2 * slope)

        return self._compared(order)

    def _compared(self, function: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Return the mean of a function of both guesses, and their difference."""
        one, other = map(function, self.guesses)
        return (one + other) / 2, np.abs(one - other)

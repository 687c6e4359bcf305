"""Scores within bins, from the bins' edges and noisy sizes."""

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
# Standard deviation of a score that may be anywhere in a bin of width 1.
_ANYWHERE = 12**-0.5
# Width of a bin, in log-odds, at which half of that is taken for the error of a guess.
_WIDE = 2.0
# Smallest slope that the order of scores is computed for.
_LEAST_SLOPE = 0.01
# Standard deviation of log-odds where there is one edge or none.
_ONE_EDGE = 2.0


@dataclass(frozen=True)
class BinShapes:
    """Guess of the scores within the bins of a class.

    Log-odds are a piecewise linear function of a normal variable, whose pieces are the
    inner bins, and continue beyond the first and the last edge.
    """

    #: Scores between bins.
    edges: Array
    #: Noisy numbers of rows.
    sizes: Array
    #: Standard deviation of their noise.
    sigma: float

    @cached_property
    def log_odds(self) -> Array:
        """Return log-odds for the parts of each bin, of shape (n_bins, n_parts)."""
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

    @cached_property
    def off(self) -> Array:
        """Possible error of the guess in each bin, from 0 to 1, for wide ones."""
        widths = np.ptp(self.log_odds, axis=-1)
        return widths / (widths + _WIDE)

    @cached_property
    def _guess(self) -> tuple[Array, Array]:
        """Mean score of each bin, and the variance of the guess."""
        means = expit(self.log_odds).mean(axis=-1)
        ends = np.concatenate([[0.0], self.edges, [1.0]])
        widths = np.diff(ends)
        if len(self.edges):  # an outer bin is as wide as its mean is far from its edge
            widths[0] = 2 * (self.edges[0] - means[0])
            widths[-1] = 2 * (means[-1] - self.edges[-1])
        return means, (_ANYWHERE * widths * self.off) ** 2

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Bin of each cell of the first counts."""
        return np.searchsorted(self.edges, np.append(GRID_OF_SCORES, 1.0) - 1e-12)

    def _counted_variance(self, sigma: float) -> Array:
        """Return the variance of mean scores from the first counts alone."""
        means, _ = self._guess
        squares = (_SCORES - means[self._places]) ** 2
        return sigma**2 * self._sums(squares) / self._told_sizes**2

    def _sums(self, of_cells: Array) -> Array:
        """Sum over the cells of each bin."""
        sums = np.bincount(self._places, of_cells, len(self.sizes))
        return sums.astype(np.float64)

    def means(self, totals: NDArray[np.int64], sigma: float) -> Array:
        """Estimate the mean score of each bin from noisy first counts and the guess.

        Both are weighted by their precision.
        """
        means, of_guess = self._guess
        counted = self._sums(totals * (_SCORES - means[self._places]))
        weight = of_guess / (of_guess + self._counted_variance(sigma))
        ends = np.concatenate([[0.0], self.edges, [1.0]])
        found = means + weight * counted / self._told_sizes
        return np.clip(found, ends[:-1], ends[1:])

    def spread(self, sigma: float) -> Array:
        """Return the standard deviation of the estimated mean scores."""
        _, of_guess = self._guess
        counted = self._counted_variance(sigma)
        return np.sqrt(of_guess * counted / (of_guess + counted))

    @cached_property
    def variances(self) -> Array:
        """Variance of the scores of each bin."""
        return expit(self.log_odds).var(axis=-1)

    def order(self, slope: float) -> Array:
        """Return by how much pairs in a bin are in order, per unit of a slope.

        `slope` is that of the log-odds of the class in the log-odds of the score. Of
        independent scores s, t in a bin, the one of the class is higher with a
        probability of (1 + E|tanh(slope (s - t) / 2)|) / 2.
        """
        slope = max(slope, _LEAST_SLOPE)
        pairs = self.log_odds[:, :, np.newaxis] - self.log_odds[:, np.newaxis]
        return np.abs(np.tanh(slope * pairs / 2)).mean(axis=(1, 2)) / (2 * slope)

"""Consistent tables of counts by class, and the log-odds of naive Bayes in them.

All of this is post-processing of released counts, of public rows and of the declared
domain, without a privacy cost.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, softmax

# Added to each count, in units of the noise. Measured on Adult, Diabetes and KDDCup99.
_SMOOTHING = 0.5
# Counts by column do not show how far D columns repeat each other: the variance of
# summed log-odds within a class is 1 to D times that of independent columns. Without
# public rows, this times the square root of D is assumed.
_DEPENDENCE = 0.67
_N_DRAWN, _N_REPEATS = 4000, 6
# Squared number of bins for each unit of a class, with noise of 1 on each count.
_UNITS_OF_BINS = 0.3
# Largest factor by which log-odds are stretched; those of a probability of about 0.
_MOST_STRETCHED, _OF_ZERO = 4.0, -40.0
# The ranking of rows is kept, however much noise there is.
_LEAST_TEMPERATURE = 0.01


@dataclass(frozen=True)
class ClassTables:
    """Tables of counts by class that are not negative, of shape (n_classes, n_cells).

    A class has the same total in all tables.
    """

    tables: tuple[NDArray[np.float64], ...]
    #: Share of each class.
    shares: NDArray[np.float64]
    #: Standard deviation of the noise in a share.
    shares_std: float
    #: Scale of the noise on each count.
    sigma: float
    n_units: float

    @classmethod
    def of_counts(
        cls, noisy: Sequence[NDArray], sigma: float, n_units: float | None
    ) -> Self:
        """Return the nearest tables with one total for each class.

        `n_units` is the public number of units; None takes the noisy total, at least 1.
        """
        # Sums of rows have a variance of n_cells sigma^2. They are unbiased; sums of
        # what is made non-negative before are too large for rare classes.
        weights = np.array([1 / table.shape[1] for table in noisy])
        sums = np.array([table.sum(axis=1) for table in noisy], dtype=np.float64)
        # Not by BLAS, so that rows are drawn alike on every machine.
        found = np.sum(weights[:, np.newaxis] * sums, axis=0) / weights.sum()
        std = sigma / math.sqrt(weights.sum())
        if n_units is None:
            n_units = max(1.0, float(found.sum()))
        # Less is lost in the noise.
        shares = np.maximum(found, min(std, n_units))
        shares /= shares.sum()
        totals = n_units * shares[:, np.newaxis]
        tables = tuple(nearest_on_simplex(table, totals) for table in noisy)
        return cls(tables, shares, std / n_units, sigma, n_units)

    def log_odds(self) -> list[NDArray[np.float64]]:
        """Return the log probability of each cell by class, less the mean of classes.

        Half of the noise is added to each count. The mean is weighted by `shares`.
        """
        odds = []
        for table in self.tables:
            smoothed = table + _SMOOTHING * self.sigma
            of_cells = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
            odds.append(of_cells - self.shares @ of_cells)
        return odds

    def moment(self, odds: Sequence[NDArray[np.float64]]) -> float:
        """Return the mean of the own class's summed log-odds, less that of all classes.

        In these tables, by which it is exact, whatever else columns have in common.
        """
        total = 0.0
        for table, of_cells in zip(self.tables, odds, strict=True):
            joint = self.shares[:, np.newaxis] * table / table.sum(axis=1)[:, None]
            independent = np.outer(self.shares, joint.sum(axis=0))
            total += float(np.sum((joint - independent) * of_cells))
        return total

    @cached_property
    def signal(self) -> float:
        """Share of the moment of log-odds that does not come from the noise.

        Noise on these tables makes others, whose log-odds have one moment in these and
        a larger one in those; this is the ratio of the two.
        """
        random_state = np.random.RandomState(0)
        in_own = in_these = 0.0
        for _ in range(_N_REPEATS):
            noisy = [
                table + self.sigma * random_state.standard_normal(table.shape)
                for table in self.tables
            ]
            other = self.of_counts(noisy, self.sigma, self.n_units)
            of_other = other.log_odds()
            in_own += other.moment(of_other)
            in_these += self.moment(of_other)
        return min(1.0, max(0.0, in_these) / in_own) if in_own > 0 else 0.0

    def draw(
        self, n_rows: int, seed: int
    ) -> tuple[NDArray[np.intp], list[NDArray[np.intp]]]:
        """Draw classes, and the cells of columns that are independent, given these."""
        random_state = np.random.RandomState(seed)
        classes = random_state.choice(len(self.shares), size=n_rows, p=self.shares)
        return classes, [draw_cells(one, classes, random_state) for one in self.tables]

    def calibrated(
        self,
        odds: Sequence[NDArray[np.float64]],
        scores: NDArray[np.float64] | None = None,
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the temperature of summed log-odds, and an intercept for each class.

        Probabilities are softmax(temperature * summed + intercepts). `scores` are the
        summed log-odds of public rows. None takes rows drawn from the tables, and adds
        to their spread what columns may have in common.
        """
        if scores is None:
            classes, cells = self.draw(_N_DRAWN, seed=0)
            scores = summed(odds, cells)
            is_class = classes == np.arange(len(self.shares))[:, np.newaxis]
            n_drawn = np.maximum(is_class.sum(axis=1), 1)[:, np.newaxis]
            means = (is_class @ scores / n_drawn)[classes]
            variance = max(1.0, _DEPENDENCE * math.sqrt(len(self.tables)))
            scores = means + math.sqrt(variance) * (scores - means)
        return _fitted(scores, self.shares, self.signal * self.moment(odds))


def spread_log_odds(
    log_odds: NDArray[np.float64], share: float, gap: float | None
) -> NDArray[np.float64]:
    """Stretch and shift log-odds of drawn rows to those of private rows.

    Columns of drawn rows are independent, given the class, so that log-odds t vary less
    than those of private rows. For calibrated probabilities p, the mean is the `share`
    s of the second class, and cov(p, t) = s (1 - s) gap. Here `gap` is the difference
    between the means of t in both classes; None stretches nothing.
    """
    mean = log_odds.mean()

    def stretched(factor: float) -> NDArray[np.float64]:
        scores = factor * (log_odds - mean)
        shift = brentq(
            lambda shift: expit(scores + shift).mean() - share,
            _OF_ZERO - scores.max(),
            -_OF_ZERO - scores.min(),
        )
        return scores + shift

    def excess(factor: float) -> float:
        scores = stretched(factor)
        found = np.mean(expit(scores) * (scores - scores.mean()))
        return float(found - share * (1 - share) * cast(float, gap))

    if gap is None or excess(1.0) >= 0:
        return stretched(1.0)
    if excess(_MOST_STRETCHED) <= 0:
        return stretched(_MOST_STRETCHED)
    return stretched(float(brentq(excess, 1.0, _MOST_STRETCHED, xtol=1e-3)))


def summed(
    odds: Sequence[NDArray[np.float64]], cells: Sequence[NDArray[np.intp]]
) -> NDArray[np.float64]:
    """Sum the log-odds of the cells of rows; -1 is no cell, and counts as zero.

    What a row gets does not depend on other rows.
    """
    scores = np.zeros((len(cells[0]), len(odds[0])))
    for of_cells, of_rows in zip(odds, cells, strict=True):
        scores += np.where(of_rows[:, np.newaxis] >= 0, of_cells.T[of_rows], 0.0)
    return scores


def draw_cells(
    table: NDArray[np.float64],
    labels: NDArray[np.intp],
    random_state: np.random.RandomState,
) -> NDArray[np.intp]:
    """Draw a cell of a table for each label."""
    upper = np.cumsum(table, axis=1)
    place = random_state.random_sample(len(labels)) * upper[labels, -1]
    found = np.empty(len(labels), dtype=np.intp)
    for label, bounds in enumerate(upper):
        of_class = labels == label
        found[of_class] = np.searchsorted(bounds, place[of_class], side="right")
    return np.minimum(found, table.shape[1] - 1)


def nearest_on_simplex(
    values: NDArray, total: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the nearest values that are not negative and sum to a positive total.

    Along the last axis, by one threshold that is subtracted from each (Duchi,
    Shalev-Shwartz, Singer, Chandra 2008, Figure 1).
    """
    falling = -np.sort(-values, axis=-1)
    size = values.shape[-1]
    excess = (np.cumsum(falling, axis=-1) - total) / np.arange(1, size + 1)
    last = np.count_nonzero(falling > excess, axis=-1, keepdims=True) - 1
    return np.maximum(values - np.take_along_axis(excess, last, axis=-1), 0)


def _fitted(
    scores: NDArray[np.float64], shares: NDArray[np.float64], moment: float
) -> tuple[float, NDArray[np.float64]]:
    """Return temperature and intercepts with a given moment and mean probabilities.

    The temperature is the one of the logistic regression whose moments of `scores` are
    those of the private rows, between _LEAST_TEMPERATURE and 1.
    """
    independent = (scores @ shares).mean()

    def intercepts(temperature: float) -> NDArray[np.float64]:
        found = np.log(shares)
        for _ in range(60):
            means = softmax(temperature * scores + found, axis=1).mean(axis=0)
            change = np.log(shares / np.maximum(means, 1e-12))
            found = found + change
            if np.max(np.abs(change)) < 1e-5:
                break
        return found

    def excess(temperature: float) -> float:
        probabilities = softmax(temperature * scores + intercepts(temperature), axis=1)
        return float(
            np.sum(probabilities * scores) / len(scores) - independent - moment
        )

    least, most = _LEAST_TEMPERATURE, 1.0
    if excess(least) >= 0:
        found = least
    elif excess(most) <= 0:
        found = most
    else:
        found = float(brentq(excess, least, most, xtol=1e-3))
    return found, intercepts(found)


def n_bins_for(n_units: int, n_classes: int, sigma: float) -> int:
    """Return the number of bins of a column for counts with a noise of sigma.

    A power of two between 4 and 32, by the number of units of a class and the noise.
    """
    expected = _UNITS_OF_BINS * n_units / (n_classes * sigma)
    return int(2 ** np.clip(np.round(np.log2(expected) / 2), 2, 5))

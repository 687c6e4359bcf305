"""Counts of private rows by score and label, and estimates of metrics from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri
from scipy.stats import gamma
from sklearn.linear_model import LogisticRegression

from sklearn_pate._estimators._isolation import no_output
from sklearn_pate._estimators._predictions import read_apart
from sklearn_pate._inputs._labels import class_indices
from sklearn_pate._synthetic._marginals import nearest_on_simplex

#: Log-odds between the cells of the first counts.
GRID = np.arange(-32, 33) / 4
# Width of a bin, beyond which it is divided.
_WIDE = 0.5
# Cell and class of a row that the model cannot score.
_UNSCORED = -1
#: Probabilities between the cells of the first counts.
GRID_OF_SCORES = expit(GRID)
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
# Draws of noise and sampling behind an interval, and the shares outside on each side.
N_DRAWS, TAIL = 4000, 0.025
#: A count below so many standard deviations of its noise is not told from none.
TOLD = 4.0
#: Smallest score whose log-odds are used.
LEAST = 1e-4
# Least size of a bin in a calibration error, as a share of the average one.
_LEAST_SIZE = 0.25
# Least half-width of an outer bin, in log-odds.
_NARROWEST = 0.125
# Standard deviation of slopes of recalibrations, around 1.
_SLOPE_OFF = 0.5
# Standard deviations of the noise that a coverage allows for.
_ALLOWANCE = 1.0
# Share of draws in which a metric may be undefined.
_UNDEFINED = 0.001


@dataclass(frozen=True)
class ScoredRows:
    """Scores and predictions of private rows, with labels and subgroups. Sensitive."""

    #: Probabilities of the classes, NaN for a row that the model cannot score.
    scores: NDArray[np.float64]
    #: Class indices; -1 for a row that the model cannot score.
    predicted: NDArray[np.intp]
    #: Class indices, -1 for a label that the model does not know.
    labels: NDArray[np.intp]
    #: Indices of subgroups.
    subgroups: NDArray[np.intp]
    n_subgroups: int

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.scores.shape[1]

    @property
    def is_measured(self) -> NDArray[np.bool_]:
        """Whether a row has a score and a label that the model knows."""
        return (self.predicted >= 0) & (self.labels >= 0)

    @property
    def scored_classes(self) -> list[int]:
        """List of classes whose scores are counted: the second of two, or all."""
        return [1] if self.n_classes == 2 else [*range(self.n_classes)]

    def confusion(self) -> NDArray[np.int64]:
        """Count rows by subgroup, label and prediction, one count a row.

        Shape (n_subgroups, n_classes^2 + 1): by label, then by prediction; rows of an
        unknown label or without a score are last.
        """
        n = self.n_classes
        cells = np.where(self.is_measured, n * self.labels + self.predicted, n**2)
        return table_of((self.n_subgroups, n**2 + 1), self.subgroups, cells)

    def first_counts(self) -> NDArray[np.int64]:
        """Count rows by prediction, and by score of each class on the grid, flat."""
        totals = [
            table_of(
                (len(GRID) + 1,), cells_between(self.scores[:, one], GRID_OF_SCORES)
            )
            for one in self.scored_classes
        ]
        return np.concatenate([self.confusion().ravel(), *totals])

    def histograms(self, edges: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
        """Count rows by subgroup, score and label, one count a row and class.

        Arrays of shape (n_subgroups, n_bins, 2), one a scored class, flat. A row of an
        unknown label or without a score counts nowhere.
        """
        parts = []
        for one, of_class in zip(self.scored_classes, edges, strict=True):
            cells = cells_between(self.scores[:, one], of_class)
            table = table_of(
                (self.n_subgroups, len(of_class) + 1, 2),
                self.subgroups,
                np.where(self.is_measured, cells, _UNSCORED),
                (self.labels == one).astype(np.intp),
            )
            parts.append(table.ravel())
        return np.concatenate(parts)


def score_rows(
    model: Any,
    X: Any,
    rows: NDArray[np.intp],
    classes: NDArray[Any],
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Score rows so that no row changes a bit of the score of another.

    Returns class probabilities, NaN where the model fails, and predicted class indices,
    -1 there. Nothing that the model prints or warns leaves this function.
    """

    def read(some: Any) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        scores = np.asarray(model.predict_proba(some), dtype=np.float64)
        if scores.shape[1:] != classes.shape:
            raise ValueError("the model has not one score of each class")
        return scores, class_indices(model.predict(some), classes)

    failed = np.full((1, len(classes)), np.nan), np.array([_UNSCORED])
    with no_output():
        scores, predicted = read_apart(model, X, rows, read, failed)
    is_valid = np.all((scores >= 0) & (scores <= 1), axis=1) & (predicted >= 0)
    return (
        np.where(is_valid[:, np.newaxis], scores, np.nan),
        np.where(is_valid, predicted, _UNSCORED),
    )


def quantile_edges(
    totals: NDArray[np.int64], n_bins: int, n_rows: float
) -> NDArray[np.float64]:
    """Return probabilities that divide rows into bins of about equal size.

    `totals` are noisy counts on the grid. The nearest counts are taken that are not
    negative and sum to `n_rows`. A wide bin is divided at one half.
    """
    sizes = nearest_on_simplex(totals.astype(np.float64), n_rows)
    share = np.cumsum(sizes) / n_rows
    places = np.searchsorted(share[:-1], np.arange(1, n_bins) / n_bins)
    edges = GRID_OF_SCORES[np.unique(places.clip(0, len(GRID) - 1))]
    # Else, rows near 0 and rows near 1 would be in one bin.
    is_wide = np.diff(edges, prepend=0.0, append=1.0) > _WIDE
    return np.union1d(edges, 0.5) if is_wide.any() else edges


def cells_between(
    scores: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Return the cell of each score, -1 for NaN."""
    return np.where(np.isnan(scores), _UNSCORED, np.digitize(scores, edges))


def table_of(shape: tuple[int, ...], *indices: NDArray[np.intp]) -> NDArray[np.int64]:
    """Count rows by indices; a row with a negative index counts nowhere."""
    kept = np.all([one >= 0 for one in indices], axis=0)
    flat = np.ravel_multi_index([one[kept] for one in indices], shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


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


@dataclass(frozen=True)
class WithinBins:
    """Guess of the scores and labels within the bins of a class, or many draws of it.

    The share of the class changes with the log-odds of the score by a slope: that of a
    recalibration, shrunk towards 1 by its error.
    """

    slope: Array
    #: Change of the slope by one more row of each cell, of shape (n_bins, 2).
    influence: Array
    #: Standard deviation of the slope apart from that.
    error: float
    #: Change of the share of the class by the score, per unit of the slope.
    steepness: Array
    #: Variance of scores, and order of pairs per unit of the slope; with errors.
    variance: tuple[Array, Array]
    order: tuple[Array, Array]

    @classmethod
    def guessed(
        cls, shapes: BinShapes, cells: Array, middles: Array, sigma: float
    ) -> "WithinBins":
        """Guess from released counts."""
        intercept, slope = recalibration(cells, middles)
        log_odds = clipped_log_odds(middles)
        share = expit(intercept + slope * log_odds)
        steepness = share * (1 - share) / (expit(log_odds) * expit(-log_odds))
        information = np.maximum(cells.sum(axis=-1), 0) * share * (1 - share)
        regressors = np.stack([np.ones_like(log_odds), log_odds])
        inverse = np.linalg.pinv((regressors * information) @ regressors.T)
        of_bins = inverse[1] @ regressors
        influence = of_bins[:, np.newaxis] * np.stack([-share, 1 - share], axis=-1)
        variance = of_bins**2 @ information + sigma**2 * np.sum(influence**2)
        weight = _SLOPE_OFF**2 / (_SLOPE_OFF**2 + variance)
        slope = 1 + weight * (np.clip(slope, 0, 2) - 1)
        return cls(
            np.array(slope),
            weight * influence,
            float(_SLOPE_OFF * (1 - weight)),
            steepness,
            shapes.variances,
            shapes.order(float(slope)),
        )

    def drawn(self, rng: np.random.Generator, change: Array) -> "WithinBins":
        """Draw the guess again, with its errors, for draws of a change of cells."""
        n_draws = len(change)
        slope = self.slope + np.sum(change * self.influence, axis=(-1, -2))
        slope = slope + self.error * rng.standard_normal(n_draws)
        off = rng.standard_normal((n_draws, len(self.steepness)))

        def drawn(value: Array, error: Array) -> tuple[Array, Array]:
            return np.maximum(value + error * off, 0), error

        return replace(
            self,
            slope=np.maximum(slope, 0)[:, np.newaxis],
            variance=drawn(*self.variance),
            order=drawn(*self.order),
        )

    @property
    def ahead(self) -> Array:
        """Share of pairs of a bin in which the row of the class has a higher score."""
        return 0.5 + np.minimum(self.slope * self.order[0], 0.5)

    @property
    def squares(self) -> Array:
        """Mean squared error of a row that the mean score of its bin does not show."""
        return self.variance[0] * (1 - 2 * self.slope * self.steepness)


@dataclass(frozen=True)
class ScoredClass:
    """Noisy counts of the scores of a class, perhaps many draws of them.

    Arrays may have further axes in front.
    """

    #: Shape (.., n_bins, 2): scores; another or this class.
    cells: Array
    #: Mean score of each bin, and its standard deviation.
    middles: Array
    middle_errors: Array
    #: Standard deviation of the noise on a cell.
    sigma: float
    #: Scores within the bins.
    shapes: BinShapes

    @cached_property
    def within(self) -> WithinBins:
        """Guess of scores and labels within the bins."""
        return WithinBins.guessed(self.shapes, self.cells, self.middles, self.sigma)

    def simulated(self, rng: np.random.Generator, of_label: Array) -> "ScoredClass":
        """Draw again, for draws of the numbers of rows of other classes and of this."""
        change = self.sigma * rng.standard_normal((len(of_label), *self.cells.shape))
        for label, n_of_label in enumerate(of_label.T):
            shares, _ = _shares_and_total(self.cells[:, label])
            change[..., label] += rng.multinomial(n_of_label, shares)
            change[..., label] -= n_of_label.mean() * shares
        off = rng.standard_normal((len(of_label), len(self.middles)))
        middles = (self.middles + self.middle_errors * off).clip(0, 1)
        drawn = replace(self, cells=self.cells + change, middles=middles)
        vars(drawn)["within"] = self.within.drawn(rng, change)
        return drawn


@dataclass(frozen=True)
class NoisyCounts:
    """Noisy counts of one subgroup or of all rows, perhaps many draws of them.

    Arrays may have further axes in front.
    """

    #: Shape (.., n_classes, n_classes): labels, predictions.
    confusion: Array
    #: Standard deviation of the noise on a cell of it.
    sigma: float
    #: By class index: the second of two classes, or all.
    scored: dict[int, ScoredClass]
    #: Whether all cells of the first part sum to a public number of rows.
    has_public_size: bool = False

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.confusion.shape[-1]

    def simulated(self, rng: np.random.Generator | None = None) -> "NoisyCounts":
        """Draw the counts again, with the noise and the sampling of rows.

        Both parts count the same rows: numbers of rows of a label agree. None as `rng`
        makes the same draws each time.
        """
        rng = np.random.default_rng(0) if rng is None else rng
        shares, n_rows = _shares_and_total(self.confusion.ravel())
        sampled = rng.multinomial(n_rows, shares, N_DRAWS)
        noise = self.sigma * rng.standard_normal((N_DRAWS, shares.size + 1))
        if self.has_public_size:  # the noise of all cells is made to sum to 0
            noise -= noise.mean(axis=-1, keepdims=True)
        change = sampled - n_rows * shares + noise[:, :-1]
        shape = N_DRAWS, *self.confusion.shape
        of_label = sampled.reshape(shape).sum(axis=-1)
        scored = {}
        for label, one in self.scored.items():
            own = of_label[:, label]
            scored[label] = one.simulated(rng, np.stack([n_rows - own, own], axis=-1))
        confusion = self.confusion + change.reshape(shape)
        return replace(self, confusion=confusion, scored=scored)

    def balanced(self, label: int) -> Array:
        """Return a histogram whose totals agree with those of the confusion matrix.

        By least squares: both parts have independent noise on each cell.
        """
        scored, size = self.scored[label], self.n_classes
        of_label = self.confusion[..., label, :].sum(axis=-1)
        known = self.confusion.sum(axis=(-1, -2))
        by_confusion = np.stack([known - of_label, of_label], axis=-1)
        n_bins = scored.cells.shape[-2]
        of_first = self.sigma**2 * size * np.array([size - 1, 1])
        of_second = scored.sigma**2 * n_bins
        weight = of_second / (of_first + of_second)
        excess = weight * (by_confusion - scored.cells.sum(axis=-2))
        return scored.cells + excess[..., np.newaxis, :] / n_bins


def _share(part: Array, whole: Array) -> Array:
    """Divide; NaN where the whole is not positive."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def _shares_and_total(cells: Array) -> tuple[Array, int]:
    """Return shares of the nearest cells that are not negative, and their sum."""
    n_rows = max(round(float(cells.sum())), 1)
    return nearest_on_simplex(cells, 1.0 * n_rows) / n_rows, n_rows


def accuracy(counts: NoisyCounts) -> Array:
    """Share of right predictions."""
    right = np.trace(counts.confusion, axis1=-2, axis2=-1)
    return _share(right, counts.confusion.sum(axis=(-1, -2)))


def recall(counts: NoisyCounts, label: int) -> Array:
    """Share of the rows of a class that are predicted as it."""
    of_label = counts.confusion[..., label, :].sum(axis=-1)
    return _share(counts.confusion[..., label, label], of_label)


def specificity(counts: NoisyCounts, label: int) -> Array:
    """Share of the rows of other classes that are not predicted as a class."""
    others = np.delete(counts.confusion, label, axis=-2).sum(axis=-2)
    rejected = np.delete(others, label, axis=-1).sum(axis=-1)
    return _share(rejected, others.sum(axis=-1))


def balanced_accuracy(counts: NoisyCounts) -> Array:
    """Mean of the recalls of all classes."""
    recalls = [recall(counts, label) for label in range(counts.n_classes)]
    return np.mean(recalls, axis=0)


def precision(counts: NoisyCounts, label: int) -> Array:
    """Share of the rows predicted as a class that are of it."""
    predicted = counts.confusion[..., label].sum(axis=-1)
    return _share(counts.confusion[..., label, label], predicted)


def prevalence(counts: NoisyCounts, label: int) -> Array:
    """Share of the rows that are of a class."""
    of_label = counts.confusion[..., label, :].sum(axis=-1)
    return _share(of_label, counts.confusion.sum(axis=(-1, -2)))


def roc_auc(counts: NoisyCounts, label: int) -> Array:
    """Area under the ROC curve, with an estimate of the order within each bin."""
    balanced, within = counts.balanced(label), counts.scored[label].within
    others, own = balanced[..., 0], balanced[..., 1]
    below = np.cumsum(others, axis=-1) - others
    ordered = np.sum(own * (below + within.ahead * others), axis=-1)
    sizes = others.sum(axis=-1), own.sum(axis=-1)
    return _share(ordered, np.where(np.minimum(*sizes) > 0, np.prod(sizes, axis=0), 0))


def brier_score(counts: NoisyCounts, label: int) -> Array:
    """Mean squared difference of score and outcome."""
    balanced, scored = counts.balanced(label), counts.scored[label]
    middle = scored.middles
    squared = balanced[..., 1] * (1 - middle) ** 2 + balanced[..., 0] * middle**2
    squared = squared + scored.within.squares * balanced.sum(axis=-1)
    return _share(squared.sum(axis=-1), balanced.sum(axis=(-1, -2)))


def squared_calibration_error(counts: NoisyCounts, label: int) -> Array:
    """Mean squared difference of a bin's mean score and its share of the class.

    The squares that noise and sampling add are subtracted.
    """
    squares, variances, _ = _squared_differences(counts, label)
    total = counts.scored[label].cells.sum(axis=(-1, -2))
    return _share(np.sum(squares - variances, axis=-1), total)


def _squared_differences(counts: NoisyCounts, label: int) -> tuple[Array, Array, Array]:
    """Return squared differences of bins, their variances, and sizes of bins.

    A difference is that of the rows of the class and the sum of scores, over the root
    of the bin's size.
    """
    scored = counts.scored[label]
    cells, p = scored.cells, scored.middles
    totals = cells.sum(axis=-1)
    # No bin is taken for smaller than the noise tells, nor for nearly empty: its noise
    # would hide the others.
    average = totals.mean(axis=-1, keepdims=True)
    sizes = np.maximum(totals, np.maximum(2 * scored.sigma, _LEAST_SIZE * average))
    difference = (1 - p) * cells[..., 1] - p * cells[..., 0]
    noise = scored.sigma**2 * ((1 - p) ** 2 + p**2)
    variance = noise + np.prod(np.maximum(cells, 0), axis=-1) / sizes
    return difference**2 / sizes, variance / sizes, sizes


def interval_of_calibration_error(
    counts: NoisyCounts, label: int
) -> tuple[float, float]:
    """Return the calibration errors that a test at 5 % does not reject.

    The sum of squared differences has a gamma law with its mean and variance. What is
    no noise is spread over the bins as the squares are.
    """
    squares, variances, sizes = _squared_differences(counts, label)
    scored = counts.scored[label]
    total = float(scored.cells.sum())
    if total <= 0:
        return 0.0, 1.0
    off = np.maximum(scored.cells.sum(axis=-1), 0) * scored.middle_errors
    both = variances + off**2 / sizes
    found, second = float(squares.sum()), float(np.sum(both**2))
    spread = float(squares @ both) / max(found, np.finfo(float).tiny)

    def share_above(excess: float, least: float) -> float:
        """Return the probability of larger squares, given the part that is no noise."""
        mean = excess + least
        variance = 2 * second + 4 * excess * spread
        return float(gamma.sf(found, mean**2 / variance, scale=variance / mean))

    def where(share: float, least: float) -> float:
        """Find the excess at which larger squares have a probability."""
        if share_above(0.0, least) >= share:
            return 0.0
        if share_above(total, least) <= share:
            return 1.0
        excess = brentq(lambda one: share_above(one, least) - share, 0.0, total)
        return float(np.sqrt(excess / total))

    # Mean scores may be off, which adds squares, or may not.
    return where(TAIL, float(both.sum())), where(1 - TAIL, float(variances.sum()))


def recalibration(cells: Array, middles: Array) -> tuple[float, float]:
    """Fit intercept and slope of a logistic regression on the log-odds of scores.

    Platt (1999), "Probabilistic outputs for support vector machines", on noisy counts
    without negative ones.
    """
    weights = np.maximum(cells, 0)
    scores = clipped_log_odds(middles)
    n_bins = len(middles)
    if not np.all(weights.sum(axis=0) > 0) or n_bins < 2:
        return 0.0, 1.0
    model = LogisticRegression(C=np.inf, max_iter=200).fit(
        np.tile(scores, 2)[:, np.newaxis],
        np.repeat([0, 1], n_bins),
        sample_weight=weights.T.ravel(),
    )
    return float(model.intercept_[0]), float(model.coef_[0, 0])


def clipped_log_odds(scores: Array) -> Array:
    """Return the log-odds of scores, none of which counts as sure."""
    return logit(np.clip(scores, LEAST, 1 - LEAST))


def shares_above(counts: NoisyCounts, label: int) -> Array:
    """Compute shares of other rows and of rows of a class above each edge.

    Shape (.., n_bins + 1, 2): from 1, at score 0, to 0, at score 1. These are the
    points of the ROC curve. Steps that noise reverses are levelled: each point is the
    mean of the least share below it and the largest one above.
    """
    cells = counts.balanced(label)
    above = np.flip(np.cumsum(np.flip(cells, axis=-2), axis=-2), axis=-2)
    shares = np.nan_to_num(_share(above, above[..., :1, :] + 0 * above)).clip(0, 1)
    least = np.minimum.accumulate(shares, axis=-2)
    most = np.flip(np.maximum.accumulate(np.flip(shares, axis=-2), axis=-2), axis=-2)
    ends = np.zeros_like(shares[..., :1, :])
    return np.concatenate([(least + most) / 2, ends], axis=-2)


def shares_of_bins(cells: Array) -> Array:
    """Share of rows of the class in each bin."""
    return _share(cells[..., 1], cells.sum(axis=-1))


def threshold_at(counts: NoisyCounts, share: float, label: int) -> float:
    """Interpolate the score above which a share of the rows of a class is.

    For two classes. Log-odds are interpolated; the middles of the outer bins say how
    far these reach.
    """
    scored = counts.scored[1]
    edges, middles = logit(scored.shapes.edges), clipped_log_odds(scored.middles)
    first = edges[0] - 2 * max(edges[0] - middles[0], _NARROWEST)
    last = edges[-1] + 2 * max(middles[-1] - edges[-1], _NARROWEST)
    places = np.concatenate([[first], edges, [last]])
    shares = shares_above(counts, 1)[:, label]
    return float(expit(np.interp(share, shares[::-1], places[::-1])))


def first_covering(
    values: Array,
    covered: Array,
    n_rows: float,
    noise: Array,
    coverage: float,
    otherwise: float,
) -> float:
    """Return the first value at which noisy counts show a coverage.

    `covered` are in rising order. Their noise, of a standard deviation each, is taken
    to have added to them.
    """
    if n_rows < TOLD * noise[-1]:
        return otherwise
    certain = covered - _ALLOWANCE * noise
    enough = np.flatnonzero(certain >= coverage * (n_rows + 1))
    return float(values[enough[0]]) if len(enough) else otherwise


def set_threshold(counts: NoisyCounts, coverage: float) -> float:
    """Return the least probability of the labels in a prediction set.

    Rows are counted whose own label is in a bin of larger probabilities alone: within a
    bin, all rows may have the same one.
    """
    starts, cells = [], []
    for label, one in counts.scored.items():
        edges = np.concatenate([[0.0], one.shapes.edges, [1.0]])
        starts.append(edges[:-1])
        cells.append(one.cells[..., 1])
        if counts.n_classes == 2 and label == 1:  # the score of the other label
            starts.append(1 - edges[1:])
            cells.append(one.cells[..., 0])
    low, sizes = np.concatenate(starts), np.concatenate(cells)
    order = np.argsort(-low, kind="stable")
    sigma = next(iter(counts.scored.values())).sigma
    noise = sigma * np.sqrt(np.arange(1, len(sizes) + 1))
    covered = np.cumsum(sizes[order])
    return first_covering(low[order], covered, sizes.sum(), noise, coverage, 0.0)


def fairness_gaps(counts: Sequence[NoisyCounts]) -> dict[str, Array]:
    """Compute the largest differences between subgroups, of the second of two classes.

    The names are those of fairlearn.
    """

    def gap(of_each: list[Array]) -> Array:
        return np.max(of_each, axis=0) - np.min(of_each, axis=0)

    selected = [
        _share(one.confusion[..., 1].sum(axis=-1), one.confusion.sum(axis=(-1, -2)))
        for one in counts
    ]
    true_positives = gap([recall(one, 1) for one in counts])
    false_positives = gap([1 - specificity(one, 1) for one in counts])
    return {
        "demographic_parity_difference": gap(selected),
        "equal_opportunity_difference": true_positives,
        "equalized_odds_difference": np.maximum(true_positives, false_positives),
    }


_METRICS: dict[str, Callable[..., Array]] = {
    "roc_auc": roc_auc,
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "sensitivity": recall,
    "specificity": specificity,
    "precision": precision,
    "prevalence": prevalence,
    "brier_score": brier_score,
    "calibration_error": squared_calibration_error,
}


def metrics_of(n_classes: int) -> dict[Any, Callable[[NoisyCounts], Array]]:
    """Return all metrics by name, and by name and class for more than two classes."""
    found: dict[Any, Callable[[NoisyCounts], Array]] = {}
    for name, function in _METRICS.items():
        if "accuracy" in name:
            found[name] = function
        elif n_classes == 2:
            found[name] = partial(function, label=1)
        else:
            for label in range(n_classes):
                found[name, label] = partial(function, label=label)
    return found


def band(value: Any, draws: Array, least: float = 0) -> tuple[Array, Array]:
    """Return the range of the middle draws, centred at a value, from `least` to 1."""
    low, middle, high = np.nanquantile(draws, [TAIL, 0.5, 1 - TAIL], axis=0)
    ends = value + low - middle, value + high - middle
    return np.clip(ends[0], least, 1), np.clip(ends[1], least, 1)


def estimate(value: float, draws: Array) -> tuple[float, float, float]:
    """Return a value and its interval: all of 0 to 1 where some draws are undefined.

    The value is clipped to 0 and 1 first, which loses no number that the interval would
    hold without.
    """
    value = float(np.clip(value, 0, 1))
    if not np.isfinite(value) or np.isnan(draws).mean() > _UNDEFINED:
        return value, 0.0, 1.0
    low, high = band(value, draws)
    return value, float(low), float(high)


def is_told(counts: NoisyCounts) -> bool:
    """Whether the number of rows of each class exceeds its noise by far."""
    size = counts.n_classes
    of_label = counts.confusion.sum(axis=-1)
    first = counts.sigma * np.sqrt(size)
    second = min(one.sigma * np.sqrt(len(one.cells)) for one in counts.scored.values())
    combined = 1 / np.sqrt(1 / first**2 + 1 / second**2)
    return bool(np.all(of_label >= TOLD * combined))

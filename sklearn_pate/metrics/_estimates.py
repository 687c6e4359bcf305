"""Estimates of metrics from noisy counts, with intervals by simulation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

Array = NDArray[np.float64]
# Draws of noise and sampling behind an interval, and the shares outside on each side.
N_DRAWS, TAIL = 2000, 0.025
# A count below so many standard deviations of its noise is not told from none.
_TOLD = 4.0
#: Smallest score whose log-odds are used.
LEAST = 1e-4
# Least half-width of an outer bin, in log-odds.
_NARROWEST = 0.125
# Largest share of ties of one bin that its width orders.
_MOST_ORDERED = 0.25


@dataclass(frozen=True)
class NoisyCounts:
    """Noisy counts of one subgroup or of all rows, perhaps many draws of them.

    Arrays may have further axes in front.
    """

    #: Shape (.., n_classes, n_classes): labels, predictions.
    confusion: Array
    #: For each scored class, shape (.., n_bins, 2): scores; another or this class.
    histograms: list[Array]
    #: Mean score of each bin of each scored class.
    middles: list[Array]
    #: Edges between the bins of each scored class.
    edges: list[Array]
    #: Standard deviation of the noise on a cell of each part.
    sigma: tuple[float, float]

    @cached_property
    def slopes(self) -> list[float]:
        """Slope of a recalibration of each scored class, from 0 to 2."""
        fitted = map(recalibration, self.histograms, self.middles)
        return [float(np.clip(slope, 0, 2)) for _, slope in fitted]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.confusion.shape[-1]

    def class_of(self, place: int) -> int:
        """Return the class index of a histogram."""
        return 1 if self.n_classes == 2 else place

    def simulated(self, rng: np.random.Generator, n_draws: int) -> "NoisyCounts":
        """Draw the counts again, with the noise and the sampling of rows."""
        first, second = self.sigma

        def sampled(counts: Array) -> Array:
            expected = np.maximum(counts, 0)
            return counts + rng.poisson(expected, (n_draws, *counts.shape)) - expected

        def noisy(counts: Array, sigma: float) -> Array:
            return counts + sigma * rng.standard_normal(counts.shape)

        histograms = [sampled(one) for one in self.histograms]
        confusion = sampled(self.confusion)
        # Both parts count the same rows: the numbers of a label differ by noise alone.
        for place, one in enumerate(histograms):
            label = self.class_of(place)
            given = one[..., 1].sum(axis=-1) - self.histograms[place][..., 1].sum()
            drawn = confusion[:, label].sum(axis=-1) - self.confusion[label].sum()
            size = self.n_classes
            confusion[:, label] += ((given - drawn) / size)[:, np.newaxis]
        drawn = replace(
            self,
            confusion=noisy(confusion, first),
            histograms=[noisy(one, second) for one in histograms],
        )
        vars(drawn)["slopes"] = self.slopes  # of the counts that were released
        return drawn

    def balanced(self, place: int) -> Array:
        """Return a histogram whose totals agree with those of the confusion matrix.

        By least squares: both parts have independent noise on each cell.
        """
        counts, label = self.histograms[place], self.class_of(place)
        first, second = self.sigma
        of_label = self.confusion[..., label, :].sum(axis=-1)
        known = self.confusion.sum(axis=(-1, -2))
        by_confusion = np.stack([known - of_label, of_label], axis=-1)
        n_bins, size = counts.shape[-2], self.n_classes
        of_first = first**2 * size * np.array([self.n_classes - 1, 1])
        of_second = second**2 * n_bins
        weight = of_second / (of_first + of_second)
        excess = weight * (by_confusion - counts.sum(axis=-2))
        return counts + excess[..., np.newaxis, :] / n_bins


def _share(part: Array, whole: Array) -> Array:
    """Divide; NaN where the whole is not positive."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def accuracy(counts: NoisyCounts) -> Array:
    """Share of right predictions."""
    right = np.trace(counts.confusion, axis1=-2, axis2=-1)
    return _share(right, counts.confusion.sum(axis=(-1, -2)))


def recall(counts: NoisyCounts, label: int) -> Array:
    """Share of the rows of a class that are predicted as it."""
    of_label = counts.confusion[..., label, :].sum(axis=-1)
    return _share(counts.confusion[..., label, label], of_label)


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


def roc_auc(counts: NoisyCounts, place: int) -> Array:
    """Area under the ROC curve, with the order within a bin from its width.

    Pairs of rows in one bin count a half, and more by a twelfth of the change of the
    log-likelihood ratio in the bin: its width in log-odds times the slope of a
    recalibration.
    """
    balanced = counts.balanced(place)
    others, own = balanced[..., 0], balanced[..., 1]
    widths = np.diff(logit(counts.edges[place]))
    outer = widths.mean() if len(widths) else 0.0
    widths = counts.slopes[place] * np.concatenate([[outer], widths, [outer]])
    tied = 0.5 + np.minimum(widths / 12, _MOST_ORDERED)
    below = np.cumsum(others, axis=-1) - others
    ordered = np.sum(own * (below + tied * others), axis=-1)
    return _share(ordered, others.sum(axis=-1) * own.sum(axis=-1))


def brier_score(counts: NoisyCounts, place: int) -> Array:
    """Mean squared difference of score and outcome."""
    balanced, middle = counts.balanced(place), counts.middles[place]
    squared = balanced[..., 1] * (1 - middle) ** 2 + balanced[..., 0] * middle**2
    return _share(squared.sum(axis=-1), balanced.sum(axis=(-1, -2)))


def squared_calibration_error(counts: NoisyCounts, place: int) -> Array:
    """Mean squared difference of a bin's mean score and its share of the class.

    The squares that noise and sampling add are subtracted.
    """
    cells, p = counts.histograms[place], counts.middles[place]
    totals = cells.sum(axis=-1)
    # No bin is taken for smaller than the noise tells.
    sizes = np.maximum(totals, 2 * counts.sigma[1])
    difference = (1 - p) * cells[..., 1] - p * cells[..., 0]
    noise = counts.sigma[1] ** 2 * ((1 - p) ** 2 + p**2)
    excess = difference**2 - noise - np.maximum(totals, 0) * p * (1 - p)
    return _share(np.sum(excess / sizes, axis=-1), totals.sum(axis=-1))


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


def shares_above(counts: NoisyCounts, place: int) -> Array:
    """Compute shares of other rows and of rows of a class above each edge.

    Shape (.., n_bins + 1, 2): from 1, at score 0, to 0, at score 1. These are the
    points of the ROC curve. Steps that noise reverses are levelled: each point is the
    mean of the least share below it and the largest one above.
    """
    cells = counts.balanced(place)
    above = np.flip(np.cumsum(np.flip(cells, axis=-2), axis=-2), axis=-2)
    shares = np.nan_to_num(_share(above, above[..., :1, :] + 0 * above)).clip(0, 1)
    least = np.minimum.accumulate(shares, axis=-2)
    most = np.flip(np.maximum.accumulate(np.flip(shares, axis=-2), axis=-2), axis=-2)
    ends = np.zeros_like(shares[..., :1, :])
    return np.concatenate([(least + most) / 2, ends], axis=-2)


def shares_of_bins(cells: Array) -> Array:
    """Share of rows of the class in each bin."""
    return _share(cells[..., 1], cells.sum(axis=-1))


def threshold_at(counts: NoisyCounts, share: float, of_class: int) -> float:
    """Interpolate the score above which a share of the rows of a class is.

    For two classes. Log-odds are interpolated; the middles of the outer bins say how
    far these reach.
    """
    edges, middles = logit(counts.edges[0]), clipped_log_odds(counts.middles[0])
    first = edges[0] - 2 * max(edges[0] - middles[0], _NARROWEST)
    last = edges[-1] + 2 * max(middles[-1] - edges[-1], _NARROWEST)
    places = np.concatenate([[first], edges, [last]])
    shares = shares_above(counts, 0)[:, of_class]
    return float(expit(np.interp(share, shares[::-1], places[::-1])))


def metrics_of(n_classes: int) -> dict[Any, Callable[[NoisyCounts], Array]]:
    """Return all metrics by name, and by name and class for more than two classes."""

    def of(function: Callable[..., Array], index: int) -> Callable[..., Array]:
        return lambda counts: function(counts, index)

    found: dict[Any, Callable[[NoisyCounts], Array]] = {
        "accuracy": accuracy,
        "balanced_accuracy": balanced_accuracy,
    }
    if n_classes == 2:
        return {
            "roc_auc": of(roc_auc, 0),
            **found,
            "sensitivity": of(recall, 1),
            "specificity": of(recall, 0),
            "precision": of(precision, 1),
            "prevalence": of(prevalence, 1),
            "brier_score": of(brier_score, 0),
            "calibration_error": of(squared_calibration_error, 0),
        }
    by_class = {
        "roc_auc": roc_auc,
        "sensitivity": recall,
        "precision": precision,
        "prevalence": prevalence,
        "brier_score": brier_score,
        "calibration_error": squared_calibration_error,
    }
    for name, function in by_class.items():
        for index in range(n_classes):
            found[name, index] = of(function, index)
    return found


def estimate(value: float, draws: Array, told: bool) -> tuple[float, float, float]:
    """Return a value and the range of the middle draws, which are centred at it.

    All of 0 to 1 where too many draws are undefined, or classes are not told from none.
    """
    if not told or not np.isfinite(value) or np.isnan(draws).mean() > TAIL:
        return (float(np.clip(value, 0, 1)) if told else np.nan), 0.0, 1.0
    low, middle, high = np.nanquantile(draws, [TAIL, 0.5, 1 - TAIL])
    found = np.clip([value, value + low - middle, value + high - middle], 0, 1)
    return tuple(found.tolist())


def is_told(counts: NoisyCounts) -> bool:
    """Whether the number of rows of each class exceeds its noise by far."""
    size = counts.n_classes
    of_label = counts.confusion.sum(axis=-1)
    first = counts.sigma[0] * np.sqrt(size)
    second = min(counts.sigma[1] * np.sqrt(one.shape[-2]) for one in counts.histograms)
    combined = 1 / np.sqrt(1 / first**2 + 1 / second**2)
    return bool(np.all(of_label >= _TOLD * combined))

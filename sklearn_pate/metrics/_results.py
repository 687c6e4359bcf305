"""Published metrics of a classifier on private rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.metrics._estimates import (
    N_DRAWS,
    Array,
    NoisyCounts,
    estimate,
    is_told,
    metrics_of,
)


class Estimate(NamedTuple):
    """Estimate of a metric, with a 95 % interval. May be published.

    The interval covers the noise and the sampling of rows.
    """

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


class _Estimates(Mapping[Any, Estimate]):
    """Estimates by name, or by name and class."""

    def __init__(self, counts: NoisyCounts, classes: NDArray[Any]) -> None:
        self._counts = counts
        self._classes = classes

    def __getitem__(self, name: Any) -> Estimate:
        if name not in self._all:
            raise KeyError(f"{name!r} is no metric; use one of {[*self._all]}.")
        return self._all[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        names = [
            name if isinstance(name, str) else f"{name[0]} of {name[1]}"
            for name in self._all
        ]
        width = 2 + max(map(len, names))
        return "\n".join(
            f"{name.replace('_', ' '):{width}}{one!r}"
            for name, one in zip(names, self._all.values(), strict=True)
        )

    @cached_property
    def _all(self) -> dict[Any, Estimate]:
        """All metrics; their intervals come from one simulation with fixed seed."""
        drawn = self._counts.simulated(np.random.default_rng(0), N_DRAWS)
        told = is_told(self._counts)
        found = {}
        for name, function in metrics_of(self._counts.n_classes).items():
            with np.errstate(all="ignore"):
                value, draws = float(function(self._counts)), function(drawn)
            numbers = estimate(value, draws, told)
            is_squared = "calibration_error" in (name, name[0])
            if is_squared:
                numbers = tuple(np.sqrt(numbers).tolist())
            if not isinstance(name, str):
                name = name[0], self._classes.tolist()[name[1]]
            found[name] = Estimate(*numbers)
        return found


@dataclass(frozen=True, eq=False)
class PrivateMetrics(Mapping[Any, Estimate]):
    """Metrics of a classifier on private rows, computed from noisy counts.

    Created by :func:`~sklearn_pate.metrics.private_metrics`. Everything in it may be
    published, with ``privacy_spent_`` as its statement: all figures are computed from
    the noisy counts, at no further cost.

    ``metrics["roc_auc"]`` is an :class:`Estimate` with ``value``, ``low`` and ``high``.
    The names for two classes are "roc_auc", "accuracy", "balanced_accuracy",
    "sensitivity", "specificity", "precision", "prevalence" (the share of the second
    class), "brier_score" and "calibration_error". For more classes, all but the two
    accuracies are by class, as in ``metrics["roc_auc", "diabetes"]``.

    Parameters
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels of the model.

    subgroups_ : list
        Values of `subgroups`; one None without any.

    confusion_ : ndarray of int of shape (n_subgroups, n_classes^2 + 1)
        Noisy counts by label, then by prediction. Last is the number of rows that the
        model cannot score, or whose label is no class of it.

    histograms_ : list of ndarray of int of shape (n_subgroups, n_bins, 2)
        Noisy counts by score and by label, for the second of two classes, or for each
        class. The label is another class, or this one.

    edges_ : list of ndarray of shape (n_bins - 1,)
        Scores between the bins.

    middles_ : list of ndarray of shape (n_bins,)
        Mean score of each bin.

    noise_scales_ : tuple of float
        Standard deviation of the noise on a count of `confusion_`, and of
        `histograms_`.

    n_rows_ : int or None
        Number of scored rows; None where it is not public.

    privacy_spent_ : PrivacySpent
        The privacy statement.

    See Also
    --------
    private_metrics : Measure a classifier.
    """

    classes_: NDArray[Any]
    subgroups_: list[Any]
    confusion_: NDArray[np.int64]
    histograms_: list[NDArray[np.int64]]
    edges_: list[Array]
    middles_: list[Array]
    noise_scales_: tuple[float, float]
    n_rows_: int | None
    privacy_spent_: PrivacySpent

    @property
    def by_subgroup(self) -> dict[Any, Mapping[Any, Estimate]]:
        """The same metrics for each subgroup.

        Returns
        -------
        metrics : dict
            By value of `subgroups`.
        """
        return {
            value: _Estimates(self._counts(place), self.classes_)
            for place, value in enumerate(self.subgroups_)
        }

    def __getitem__(self, name: Any) -> Estimate:
        return self._estimates[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def __str__(self) -> str:
        return f"{self._estimates}\n{'privacy':20}{self.privacy_spent_!r}"

    def __repr__(self) -> str:
        return f"PrivateMetrics({self.privacy_spent_!r})"

    @cached_property
    def _estimates(self) -> _Estimates:
        return _Estimates(self._counts(None), self.classes_)

    def _counts(self, subgroup: int | None) -> NoisyCounts:
        """Return the counts of a subgroup, or of all rows."""
        confusion = self.confusion_.astype(np.float64)
        histograms = [one.astype(np.float64) for one in self.histograms_]
        first, second = self.noise_scales_
        if subgroup is not None:
            confusion = confusion[subgroup]
            histograms = [one[subgroup] for one in histograms]
        else:
            if self.n_rows_ is not None:  # public: the cells sum to it
                confusion += (self.n_rows_ - confusion.sum()) / confusion.size
            n = len(self.subgroups_)
            confusion, first = confusion.sum(axis=0), first * np.sqrt(n)
            histograms = [one.sum(axis=0) for one in histograms]
            second *= np.sqrt(n)
        n_classes = len(self.classes_)
        confusion = confusion[..., :-1].reshape(n_classes, n_classes)
        return NoisyCounts(
            confusion, histograms, self.middles_, self.edges_, (first, second)
        )

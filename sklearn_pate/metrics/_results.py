"""Published metrics of a classifier on private rows: file, plots, corrected scores."""

import json
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, get_tags

from sklearn_pate._estimators._fingerprints import model_fingerprint
from sklearn_pate._inputs._file_content import check_can_write, strict_json, write_files
from sklearn_pate._inputs._labels import plain_label
from sklearn_pate.accounting._cost import Cost
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._statement import (
    ASSUMPTIONS,
    FITTED_ROWS_UNPROTECTED,
    SEEDED,
    Assumption,
    PrivacySpent,
    state_cost,
    with_metrics,
)
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.mechanisms._noisy_sum import (
    MarginalCounts,
    SharedNoise,
    TwoPartRelease,
)
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.metrics._estimates import (
    TOLD,
    Array,
    BinShapes,
    NoisyCounts,
    ScoredClass,
    band,
    clipped_log_odds,
    estimate,
    fairness_gaps,
    interval_of_calibration_error,
    is_told,
    metrics_of,
    recalibration,
    set_threshold,
    shares_above,
    shares_of_bins,
    threshold_at,
)

#: Palette of Okabe and Ito, also for colour-blind readers.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")

_LINE_STYLES = ("-", "--", "-.", ":")
_MARKERS = "os^Dv"
_FALSE_POSITIVES = np.linspace(0, 1, 201)
# Lists of an array for each scored class.
_OF_CLASSES = {
    "histograms": np.int64,
    "edges": np.float64,
    "middles": np.float64,
    "middle_errors": np.float64,
}
_FORMAT: dict[str, Any] = {"format": "sklearn_pate metrics", "format_version": 3}
#: Public name of the subgroup of all values that were not declared.
OTHER = "other or missing"
# Most cells of a subgroup, whose simulation takes memory, and of all subgroups.
_MOST_CELLS, _MOST_IN_ALL = 2**13, 2**18
# Difference of figures that random numbers of another version explain: five standard
# deviations of the ends of an interval are a tenth of its width, and the rounding.
_OF_WIDTH, _OF_ROUNDING = 0.1, 1e-3
# Relative difference of epsilon that the rounding of another platform explains.
_OF_EPSILON = 1e-9
# Most bytes of a file.
_LARGEST_FILE = 2**24


def require_matplotlib(display: type) -> Any:
    """Import matplotlib.pyplot for a display, before any work."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{display.__name__} needs matplotlib; pip install matplotlib."
        ) from error
    return plt


def make_axes(display: type, ax: Any, n_axes: int = 1) -> Any:
    """Return axes for a display to draw on, those of a new figure for None."""
    plt = require_matplotlib(display)
    if ax is None:
        size = None if n_axes == 1 else (4.8 * n_axes, 5.2)
        _, ax = plt.subplots(1, n_axes, layout="constrained", figsize=size)
    return ax


def line_style(place: int) -> dict[str, Any]:
    """Return colour and dashes of the line after `place` others, distinct in grey."""
    return {
        "color": COLORS[place % len(COLORS)],
        "linestyle": _LINE_STYLES[place % len(_LINE_STYLES)],
    }


def point_style(place: int) -> dict[str, Any]:
    """Return colour and marker of points after `place` others."""
    return {
        "color": COLORS[place % len(COLORS)],
        "marker": _MARKERS[place % len(_MARKERS)],
    }


def draw_roc(ax: Any, counts: NoisyCounts, texts: Sequence[str]) -> None:
    """Draw the ROC curve of each scored class with a pointwise 95 % band."""
    drawn = counts.simulated()
    for place, (label, text) in enumerate(zip(counts.scored, texts, strict=True)):
        curve = _on_grid(shares_above(counts, label))
        draws = np.array([_on_grid(one) for one in shares_above(drawn, label)])
        style = line_style(place)
        ax.plot(_FALSE_POSITIVES, curve, label=text, **style)
        ends = band(curve, draws)
        ax.fill_between(_FALSE_POSITIVES, *ends, color=style["color"], alpha=0.2, lw=0)
    ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", zorder=0)
    ax.set(xlabel="1 - specificity", ylabel="sensitivity", title="ROC curve", aspect=1)
    ax.legend(frameon=False, loc="lower right")


def draw_calibration(ax: Any, counts: NoisyCounts) -> None:
    """Draw the share of a class against its score with a pointwise 95 % band."""
    drawn, largest = counts.simulated(), 0.0
    for place, (label, one) in enumerate(counts.scored.items()):
        told = one.cells.sum(axis=-1) > TOLD * np.sqrt(2) * one.sigma
        if not told.any():
            continue
        middles, shares = one.middles[told], shares_of_bins(one.cells)[told]
        low, high = band(shares, shares_of_bins(drawn.scored[label].cells)[:, told])
        style = line_style(place)
        ax.plot(middles, shares.clip(0, 1), marker="o", markersize=4, **style)
        ax.fill_between(middles, low, high, color=style["color"], alpha=0.2, lw=0)
        largest = max([largest, *middles, *high])
    ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", zorder=0)
    ax.locator_params(nbins=5)
    end = min(1.0, 1.05 * largest) or 1.0
    ax.set(
        xlabel="predicted probability",
        ylabel="share of rows of the class",
        title="Calibration",
        xlim=(0, end),
        ylim=(0, end),
        aspect=1,
    )


def draw_subgroups(
    ax: Any, by_subgroup: Mapping[Any, NoisyCounts], name: Any, text: str
) -> None:
    """Draw a metric of each subgroup minus that of all rows, with 95 % intervals."""
    parts = [*by_subgroup.values()]
    rng = np.random.default_rng(0)
    drawn = [one.simulated(rng) for one in parts]
    together, drawn_together = _sum(parts), _sum(drawn)
    for label, one in together.scored.items():
        vars(drawn_together.scored[label])["within"] = one.within
    function = metrics_of(together.n_classes)[name]

    def metric(counts: NoisyCounts) -> Array:
        with np.errstate(all="ignore"):
            found = np.asarray(function(counts))
        is_squared = "calibration_error" in (name, name[0])
        return np.sqrt(np.maximum(found, 0)) if is_squared else found

    of_all, draws_of_all = metric(together), metric(drawn_together)
    ticks = []
    for place, (value, counts) in enumerate(by_subgroup.items()):
        if not is_told(counts):
            ticks.append(f"{value}\n(hidden by noise)")
            continue
        ticks.append(str(value))
        difference = metric(counts) - of_all
        low, high = band(difference, metric(drawn[place]) - draws_of_all, -1)
        around = [[difference - low], [high - difference]]
        ax.errorbar([difference], [place], xerr=around, capsize=3, **point_style(0))
    ax.axvline(0, color="0.6", linestyle=":", zorder=0)
    ax.set_yticks(range(len(ticks)), ticks)
    ax.locator_params(axis="x", nbins=5)
    ax.set(xlabel=f"{text} minus that of all rows", ylim=(len(ticks) - 0.5, -0.5))


def _on_grid(points: Array) -> Array:
    """Interpolate an ROC curve at equal steps of the false positives."""
    return np.interp(_FALSE_POSITIVES, points[::-1, 0], points[::-1, 1])


def _sum(parts: Sequence[NoisyCounts]) -> NoisyCounts:
    """Add the counts of subgroups."""
    first, root = parts[0], np.sqrt(len(parts))
    scored = {
        label: replace(
            one,
            cells=np.sum([part.scored[label].cells for part in parts], axis=0),
            sigma=one.sigma * root,
        )
        for label, one in first.scored.items()
    }
    confusion = np.sum([part.confusion for part in parts], axis=0)
    return replace(first, confusion=confusion, sigma=first.sigma * root, scored=scored)


def metrics_statement(
    whole: Mechanism,
    cost: Cost,
    delta: float,
    assumptions: tuple[Assumption, ...],
    n_tables: int | None = None,
) -> PrivacySpent:
    """State the cost of all parts of a measurement."""
    return state_cost(
        cost,
        delta,
        release="metrics",
        mechanism=whole.in_one_line(),
        assumptions=assumptions,
        n_tables=n_tables,
    )


def at_sites(release: Mechanism, sites: Any) -> Mechanism:
    """Return a release whose noise was drawn at sites, if numbers of them are given."""
    return release if sites is None else SharedNoise(release, *sites)


def sites_of(release: Any) -> tuple[int, int] | None:
    """Return the number of sites, and of those whose noise is not counted."""
    if not isinstance(release, SharedNoise):
        return None
    return release.n_sites, release.n_colluding


def sites_in_dict(metrics: Any) -> dict[str, list[int]]:
    """Write the numbers of sites, which metrics of one data holder lack."""
    return {} if metrics.sites_ is None else {"sites": [*metrics.sites_]}


def values_of(metrics: Any) -> dict[str, Any]:
    """Write private metrics as values for strict JSON."""
    spent = metrics.privacy_spent_
    if math.isinf(spent.epsilon):
        raise ValueError(
            "These metrics have no privacy guarantee, as their noise was seeded, and "
            "cannot be written; measure again without a seed of the noise."
        )
    of_subgroups = metrics.by_subgroup.values() if len(metrics.subgroups_) > 1 else ()
    return _FORMAT | {
        "statement": spent.in_one_line(),
        "figures": estimates_in_dict(metrics),
        "subgroups": [
            None if one is None else plain_label(one) for one in metrics.subgroups_
        ],
        "by_subgroup": [estimates_in_dict(one) for one in of_subgroups],
        **{
            name: getattr(spent, name)
            for name in ("epsilon", "delta", "unit", "relation", "n_tables")
        },
        "assumptions": [
            {"code": one.code, "sentence": one.sentence} for one in spent.assumptions
        ],
        "model_fingerprint": metrics.model_fingerprint_,
        "n_rows": metrics.n_rows_,
        "noise_scales": [*metrics.noise_scales_],
        **sites_in_dict(metrics),
        "classes": [plain_label(one) for one in metrics.classes_.tolist()],
        "confusion": metrics.confusion_.tolist(),
        **{
            name: [one.tolist() for one in getattr(metrics, f"{name}_")]
            for name in _OF_CLASSES
        },
    }


def with_part(name: str, part: Any) -> str:
    """Write the name of a metric of a class, or until a time."""
    return f"{name} {'until' if 'incidence' in name else 'of'} {part}"


def estimates_in_dict(estimates: Mapping[Any, Any]) -> dict[str, Any]:
    """Write estimates by name, and by class below the name."""
    figures: dict[str, Any] = {}
    for name, one in estimates.items():
        plain = {
            part: None if math.isnan(number) else round(number, 6)
            for part, number in one._asdict().items()
        }
        if isinstance(name, str):
            figures[name] = plain
        else:
            figures.setdefault(name[0], {})[str(plain_label(name[1]))] = plain
    return figures


def fields_of(values: dict[str, Any]) -> dict[str, Any]:
    """Read the fields of private metrics from values, which may be forged.

    `check_values` checks the types, by a comparison with the values of these fields.
    """
    classes, subgroups = values["classes"], values["subgroups"]
    of_classes = {
        f"{name}_": [np.array(one, dtype=kind) for one in values[name]]
        for name, kind in _OF_CLASSES.items()
    }
    histograms, edges, middles, middle_errors = of_classes.values()
    n_classes, n_subgroups = len(classes), len(subgroups)
    n_cells = n_classes**2 + 1 + sum(2 * one.size + 2 for one in edges)
    if n_cells > _MOST_CELLS or n_subgroups * n_cells > _MOST_IN_ALL:
        raise ValueError(f"they have too many counts: {n_subgroups * n_cells}")
    confusion = np.array(values["confusion"], dtype=np.int64)
    n_scored = 1 if n_classes == 2 else n_classes
    shapes = [(one.size + 1,) for one in edges]
    if (
        n_classes < 2
        or len({*classes}) < n_classes
        or len({*subgroups}) < max(n_subgroups, 1)
        or (subgroups != [None] and subgroups[-1] != OTHER)
        or not all(str(one).isprintable() for one in (*classes, *subgroups))
        or len(edges) != n_scored
        or [one.shape for one in middles] != shapes
        or [one.shape for one in middle_errors] != shapes
        or confusion.shape != (n_subgroups, n_classes**2 + 1)
        or [one.shape for one in histograms]
        != [(n_subgroups, *one, 2) for one in shapes]
        or any(np.any(np.diff(one, prepend=0.0, append=1.0) <= 0) for one in edges)
        or any(np.any((one < 0) | (one > 1)) for one in (*middles, *middle_errors))
        or values["unit"] != ("row" if values["n_rows"] is not None else "group")
        or values["n_tables"] != 1 + 2 * n_scored
        or not re.fullmatch("[0-9a-f]{64}", values["model_fingerprint"])
    ):
        raise ValueError(
            "their counts, bins, classes, model or unit do not fit together"
        )
    first, second = values["noise_scales"]
    both = at_sites(
        TwoPartRelease(
            MarginalCounts(first, n_tables=values["n_tables"] - n_scored),
            MarginalCounts(second, n_tables=n_scored),
        ),
        values.get("sites"),
    )
    both._check_ready()
    check_delta(values["delta"])
    assumptions = tuple(ASSUMPTIONS[one["code"]] for one in values["assumptions"])
    if SEEDED in assumptions:
        raise ValueError("their noise was seeded")
    cost = both.cost(unit=values["unit"])
    return {
        "classes_": np.array(classes),
        "subgroups_": subgroups,
        "confusion_": confusion,
        **of_classes,
        "noise_scales_": (first, second),
        "n_rows_": values["n_rows"],
        "privacy_spent_": metrics_statement(
            both, cost, values["delta"], assumptions, values["n_tables"]
        ),
        "model_fingerprint_": values["model_fingerprint"],
        "sites_": sites_of(both),
    }


def check_values(stated: dict[str, Any], derived: dict[str, Any]) -> None:
    """Raise ValueError unless values are those that follow from their fields."""
    if math.isclose(stated["epsilon"], derived["epsilon"], rel_tol=_OF_EPSILON):
        derived = derived | {"epsilon": stated["epsilon"]}
    for name in sorted(stated.keys() | derived.keys()):
        if not _agree(stated.get(name), derived.get(name)):
            raise ValueError(f"their {name} does not match their other fields")


def _agree(stated: Any, derived: Any) -> bool:
    """Compare values, which are equal but for the random numbers of an interval."""
    if isinstance(derived, dict) and isinstance(stated, dict):
        if stated.keys() != derived.keys():
            return False
        if derived.keys() == {"value", "low", "high"} and None not in derived.values():
            most = _OF_ROUNDING + _OF_WIDTH * (derived["high"] - derived["low"])
            return all(abs(stated[name] - derived[name]) <= most for name in derived)
        return all(_agree(stated[name], derived[name]) for name in derived)
    if isinstance(derived, list) and derived and isinstance(derived[0], dict):
        pairs = zip(stated, derived, strict=False)
        return len(stated) == len(derived) and all(_agree(*pair) for pair in pairs)
    return json.dumps(stated) == json.dumps(derived)


class Estimate(NamedTuple):
    """Estimate of a metric, with a 95 % interval. May be published.

    The interval accounts for the noise and for the sampling of rows.

    Parameters
    ----------
    value : float
        The estimate. NaN if a noisy number of rows is not positive.

    low, high : float
        Ends of the interval.

    Examples
    --------
    >>> from sklearn_pate.metrics import Estimate
    >>> Estimate(value=0.846, low=0.825, high=0.869)
    0.846 (0.825 to 0.869)
    """

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


class Estimates(dict[Any, Estimate]):
    """Estimates by name, or by name and class."""

    @classmethod
    def of_counts(cls, counts: NoisyCounts, classes: NDArray[Any]) -> Self:
        """Compute all metrics; intervals come from one simulation with fixed seed."""
        drawn, found = counts.simulated(), cls()
        for name, function in metrics_of(counts.n_classes).items():
            with np.errstate(all="ignore"):
                value, draws = float(function(counts)), function(drawn)
            numbers = estimate(value, draws)
            if "calibration_error" in (name, name[0]):
                label = 1 if isinstance(name, str) else name[1]
                low, high = interval_of_calibration_error(counts, label)
                value = float(np.sqrt(numbers[0]))
                numbers = value, min(low, value), max(high, value)
            if not isinstance(name, str):
                name = name[0], classes.tolist()[name[1]]
            found[name] = Estimate(*numbers)
        return found

    def __missing__(self, name: Any) -> Estimate:
        raise KeyError(f"{name!r} is not a metric; use one of {[*self]}.")

    def __repr__(self) -> str:
        names = [name if isinstance(name, str) else with_part(*name) for name in self]
        width = 2 + max(map(len, names))
        return "\n".join(
            f"{name.replace('_', ' '):{width}}{one!r}"
            for name, one in zip(names, self.values(), strict=True)
        )


class ReleasedMetrics(Mapping[Any, Estimate], ABC):
    """Base class of metrics that were released with noise. May be published."""

    #: Format of files of these metrics.
    _format: ClassVar[str]
    _estimates: Any

    subgroups_: list[Any]
    n_rows_: int | None
    privacy_spent_: PrivacySpent
    model_fingerprint_: str

    @property
    @abstractmethod
    def by_subgroup(self) -> dict[Any, Mapping[Any, Estimate]]:
        """All metrics for each subgroup."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return metrics, noisy counts and privacy statement as plain values."""

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the metrics to a JSON file, which may be published.

        Parameters
        ----------
        path : str or path-like
            Path of the file, such as "metrics.json".

        overwrite : bool, default=False
            Replace an existing file.

        Raises
        ------
        ValueError
            If the noise was seeded: there is then no guarantee.

        FileExistsError
            If the file exists and `overwrite` is False.
        """
        check_can_write([Path(path)], overwrite=overwrite, name="path=")
        text = json.dumps(self.to_dict(), allow_nan=False) + "\n"
        write_files({Path(path): text.encode()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "ReleasedMetrics":
        """Read metrics that :meth:`save` wrote.

        The statement and all metrics are computed again from noise scales and noisy
        counts.

        Parameters
        ----------
        path : str or path-like
            Path of the file.

        Returns
        -------
        metrics : PrivateMetrics or OutcomeMetrics
            The metrics.

        Raises
        ------
        ValueError
            If the file is damaged, or its values contradict each other.
        """
        try:
            if Path(path).stat().st_size > _LARGEST_FILE:
                raise ValueError("it is too large")
            return cls._from_values(strict_json(Path(path).read_bytes()))
        except ValueError as error:
            raise ValueError(
                f"{path} is not a file of private metrics: {error}."
            ) from None

    @staticmethod
    def _from_values(values: Any) -> "ReleasedMetrics":
        """Create metrics from values, which may be forged."""
        try:
            kinds = {kind._format: kind for kind in ReleasedMetrics.__subclasses__()}
            kind = kinds[values["format"]]
            metrics = kind(**kind._fields_of(values))
            check_values(values, metrics.to_dict())
        except Exception as error:
            raise ValueError(f"they cannot be read ({error})") from error
        return metrics

    @classmethod
    @abstractmethod
    def _fields_of(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read fields from values, which may be forged."""

    def __getitem__(self, name: Any) -> Estimate:
        return self._estimates[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def __str__(self) -> str:
        return f"{self._estimates}\n{'privacy':20}{self.privacy_spent_!r}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.privacy_spent_!r})"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateMetrics(ReleasedMetrics):
    """Metrics of a classifier on private rows, computed from noisy counts.

    Created by :func:`~sklearn_pate.metrics.private_metrics`. May be published, with
    ``privacy_spent_`` as privacy statement. All metrics are computed from the noisy
    counts, at no further cost.

    ``metrics["roc_auc"]`` is an :class:`Estimate` with ``value``, ``low`` and ``high``.
    Names of metrics for two classes: "roc_auc", "accuracy", "balanced_accuracy",
    "sensitivity", "specificity", "precision", "prevalence" (the share of the second
    class), "brier_score" and "calibration_error". With more classes, each metric except
    the two accuracies is for one class, as in ``metrics["roc_auc", "diabetes"]``.

    Parameters
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels of the model.

    subgroups_ : list
        Declared values of `subgroups`, then "other or missing". [None] without
        subgroups.

    confusion_ : ndarray of int of shape (n_subgroups, n_classes^2 + 1)
        Noisy counts by label, then by prediction. The last number counts rows that the
        model cannot score, and rows whose label is not a class of the model.

    histograms_ : list of ndarray of int of shape (n_subgroups, n_bins, 2)
        Noisy counts by score and by label, for the second of two classes, or for each
        of more classes. The last axis has the number of rows of other classes, then of
        this class.

    edges_ : list of ndarray of shape (n_bins - 1,)
        Edges between bins of scores.

    middles_ : list of ndarray of shape (n_bins,)
        Mean score of each bin, from noisy counts of scores.

    middle_errors_ : list of ndarray of shape (n_bins,)
        Standard deviation of each mean score.

    noise_scales_ : tuple of float
        Standard deviations of the noise on a count of `confusion_`, and on a count of
        `histograms_`.

    n_rows_ : int or None
        Number of scored rows. None if this number is not public.

    privacy_spent_ : PrivacySpent
        The privacy statement.

    model_fingerprint_ : str
        SHA-256 of all that the measured model predicts by. A private classifier, what
        it publishes, and a saved file of it have the same fingerprint.

    sites_ : tuple of int or None
        Number of sites that drew the noise, and of those whose noise is not counted.
        None for metrics of one data holder.

    See Also
    --------
    private_metrics : Measure a classifier.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate.metrics import private_metrics
    >>> X, y = make_blobs(3000, centers=2, cluster_std=6.0, random_state=0)
    >>> model = GaussianNB().fit(X[:1000], y[:1000])
    >>> metrics = private_metrics(model, X[1000:], y[1000:], epsilon=1.0)
    >>> len(metrics), metrics.classes_.tolist(), metrics.n_rows_
    (9, [0, 1], 2000)
    >>> metrics
    PrivateMetrics(PrivacySpent(epsilon=1.000, delta=1e-05))
    """

    __module__ = "sklearn_pate.metrics"  # its name in files
    _format = _FORMAT["format"]

    classes_: NDArray[Any]
    subgroups_: list[Any]
    confusion_: NDArray[np.int64]
    histograms_: list[NDArray[np.int64]]
    edges_: list[Array]
    middles_: list[Array]
    middle_errors_: list[Array]
    noise_scales_: tuple[float, float]
    n_rows_: int | None
    privacy_spent_: PrivacySpent
    model_fingerprint_: str
    sites_: tuple[int, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def by_subgroup(self) -> dict[Any, Mapping[Any, Estimate]]:
        """All metrics for each subgroup.

        Returns
        -------
        metrics : dict
            Metrics of each subgroup, by its value in ``subgroups_``.
        """
        return {
            value: Estimates.of_counts(self._counts(place), self.classes_)
            for place, value in enumerate(self.subgroups_)
        }

    def threshold(
        self,
        *,
        sensitivity: float | None = None,
        specificity: float | None = None,
        coverage: float | None = None,
    ) -> float:
        """Return a threshold for predicted probabilities.

        The threshold is read from noisy counts, at no further privacy cost.

        Parameters
        ----------
        sensitivity : float, default=None
            Wanted share of rows of the second of two classes with a correct prediction.

        specificity : float, default=None
            Wanted share of rows of the first of two classes with a correct prediction.

        coverage : float, default=None
            Wanted share of rows whose label is in a prediction set, that of all labels
            whose probability is at least the threshold. Give only one of the three.

        Returns
        -------
        threshold : float
            Threshold for ``model.predict_proba(X)[:, 1] >= threshold``, or, for
            `coverage`, for ``model.predict_proba(X) >= threshold``. With `coverage`, 0
            if the noise is too large for smaller sets than all labels.

        Raises
        ------
        ValueError
            If not one of the three is given, a share is not between 0 and 1, or
            `sensitivity` or `specificity` is given for more than two classes. Also if
            the noise is too large to know the number of rows of a class.

        Notes
        -----
        Prediction sets are those of split conformal prediction (Sadinle, Lei, Wasserman
        2019, "Least ambiguous set-valued classifiers with bounded error levels"), with
        an allowance for the noise. They cover the wanted share of new rows from the
        population of the measured rows, on average.

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from sklearn_pate.metrics import private_metrics
        >>> X, y = make_blobs(3000, centers=2, cluster_std=6.0, random_state=0)
        >>> model = GaussianNB().fit(X[:1000], y[:1000])
        >>> metrics = private_metrics(model, X[1000:], y[1000:], epsilon=1.0)
        >>> metrics.threshold(sensitivity=0.9) < metrics.threshold(sensitivity=0.6)
        True
        >>> sets = model.predict_proba(X) >= metrics.threshold(coverage=0.9)
        >>> sets.shape
        (3000, 2)
        """
        given = {
            "sensitivity": sensitivity,
            "specificity": specificity,
            "coverage": coverage,
        }
        named = [(name, value) for name, value in given.items() if value is not None]
        if len(named) != 1:
            raise ValueError(
                f"{len(named)} of sensitivity, specificity and coverage were given; "
                "pass exactly one of them, such as sensitivity=0.9."
            )
        name, wanted = named[0]
        if not 0 < wanted < 1:
            raise ValueError(f"{name}={wanted!r} must be between 0 and 1, such as 0.9.")
        if name == "coverage":
            return set_threshold(self._counts(None), wanted)
        if len(self.classes_) > 2:
            raise ValueError(
                f"These metrics are of {len(self.classes_)} classes, but a threshold "
                f"needs two for {name}; measure a model of two classes."
            )
        share = wanted if name == "sensitivity" else 1 - wanted
        return threshold_at(self._told_counts(), share, int(name == "sensitivity"))

    def fairness(self) -> "Estimates":
        """Compute the largest differences between subgroups, under fairlearn's names.

        Returns
        -------
        gaps : dict
            "demographic_parity_difference", of the shares of rows predicted as the
            second class; "equal_opportunity_difference", of the sensitivities; and
            "equalized_odds_difference", the larger of this and that of 1 - specificity.
            Subgroups whose numbers of rows the noise hides are left out. Noise makes
            differences larger on average, which the intervals account for.

        Raises
        ------
        ValueError
            If there are not two classes, or fewer than two subgroups that the noise
            does not hide.
        """
        counts = map(self._counts, range(len(self.subgroups_)))
        told = [one for one in counts if is_told(one)]
        if len(self.classes_) != 2 or len(told) < 2:
            raise ValueError(
                "Differences need two classes and two subgroups, but these metrics "
                f"are of {len(self.classes_)} classes and of "
                f"{counted(len(told), 'subgroup')} that the noise does not hide; pass "
                "subgroups and subgroup_values to private_metrics."
            )
        rng = np.random.default_rng(0)
        draws = fairness_gaps([one.simulated(rng) for one in told])
        return Estimates(
            {
                name: Estimate(*estimate(float(value), draws[name]))
                for name, value in fairness_gaps(told).items()
            }
        )

    def recalibrated(self, model: Any) -> "RecalibratedClassifier":
        """Return the model with corrected probabilities, at no further privacy cost.

        Intercept and slope of a logistic regression on the log-odds of the scores
        (Platt 1999) are computed from the noisy counts.

        Parameters
        ----------
        model : classifier
            The model of these metrics. Pass a model that may be published, such as
            ``clf.publish()``, as the model becomes a part of the result.

        Returns
        -------
        recalibrated : RecalibratedClassifier
            Fitted classifier. ``privacy_spent_`` of the result is the statement of
            model and metrics together. For a model without a statement, it is that of
            the metrics alone: the training rows of the model are then not protected.

        Raises
        ------
        ValueError
            If `model` is not the model that was measured, or its statement has another
            unit or neighbour relation. Also if the noise is too large to know the
            number of rows of a class.
        """
        if model_fingerprint(model) != self.model_fingerprint_:
            raise ValueError(
                f"model, a {type(model).__name__}, is not the model of these metrics; "
                "pass the model that was measured."
            )
        self._recalibrations()
        recalibrated = RecalibratedClassifier(model, self)
        _ = recalibrated.privacy_spent_  # raises if statements do not add up
        return recalibrated

    def plot(self, axes: Any = None) -> Any:
        """Draw ROC curve and calibration curve, with pointwise 95 % bands.

        The plot may be published, with the privacy statement of the metrics. The method
        needs matplotlib.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            Axes for both plots. With None, a new figure is created.

        Returns
        -------
        axes : sequence of two matplotlib Axes
            The axes.

        Raises
        ------
        ValueError
            If the noise is too large to know the number of rows of a class.
        """
        counts, axes = self._told_counts(), make_axes(type(self), axes, 2)
        texts = [
            f"AUC {one!r}" if isinstance(name, str) else f"{name[1]}: AUC {one!r}"
            for name, one in self.items()
            if "roc_auc" in (name, name[0])
        ]
        draw_roc(axes[0], counts, texts)
        draw_calibration(axes[1], counts)
        return axes

    def plot_subgroups(self, metric: Any = "roc_auc", ax: Any = None) -> Any:
        """Draw the difference of a metric between each subgroup and all rows.

        Differences have 95 % intervals. As the metric of all rows includes the rows of
        the subgroup, the interval differs from an interval for two independent
        estimates. The plot may be published, with the privacy statement of the metrics.
        The method needs matplotlib.

        Parameters
        ----------
        metric : str or tuple, default="roc_auc"
            Name of a metric, as in ``metrics[metric]``. With more than two classes, a
            tuple of name and class.

        ax : matplotlib Axes, default=None
            Axes to draw on. With None, a new figure is created.

        Returns
        -------
        ax : matplotlib Axes
            The axes.

        Raises
        ------
        ValueError
            If there are no subgroups, or `metric` is unknown.
        """
        if len(self.subgroups_) < 2:
            raise ValueError(
                "These metrics have no subgroups; pass subgroups and subgroup_values "
                "to private_metrics."
            )
        if metric not in self:
            raise ValueError(f"metric={metric!r} is unknown; use one of {[*self]}.")
        by_subgroup = {
            value: self._counts(place) for place, value in enumerate(self.subgroups_)
        }
        ax = make_axes(type(self), ax)
        name, text = metric, metric
        if not isinstance(metric, str):
            name = metric[0], self.classes_.tolist().index(metric[1])
            text = f"{metric[0]} of {metric[1]}"
        text = text.replace("roc_auc", "AUC").replace("_", " ")
        draw_subgroups(ax, by_subgroup, name, text)
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Return metrics, noisy counts and privacy statement as plain values.

        Returns
        -------
        values : dict
            Values for strict JSON. A metric is None if its noise is too large.

        Raises
        ------
        ValueError
            If the noise was seeded: there is then no guarantee.
        """
        return values_of(self)

    @classmethod
    def _fields_of(cls, values: dict[str, Any]) -> dict[str, Any]:
        return fields_of(values)

    def _recalibrations(self) -> Array:
        """Return intercept and slope of each scored class."""
        counts = self._told_counts()
        return np.array(
            [recalibration(one.cells, one.middles) for one in counts.scored.values()]
        )

    def _told_counts(self) -> NoisyCounts:
        """Return the counts of all rows, if they tell the number of each class."""
        counts = self._counts(None)
        if not is_told(counts):
            raise ValueError(
                "The noise hides the number of rows of a class; measure with more "
                "rows, or with a larger epsilon."
            )
        return counts

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates.of_counts(self._counts(None), self.classes_)

    def _counts(self, subgroup: int | None) -> NoisyCounts:
        """Return the counts of a subgroup, or of all rows."""
        confusion, root = self.confusion_.astype(np.float64), 1.0
        is_public = subgroup is None and self.n_rows_ is not None
        if is_public:  # the cells sum to it
            confusion += (self.n_rows_ - confusion.sum()) / confusion.size
        if subgroup is None:
            root = np.sqrt(len(self.subgroups_))
        first, second = self.noise_scales_
        n_classes, scored = len(self.classes_), {}
        for place, (edges, counts) in enumerate(
            zip(self.edges_, self.histograms_, strict=True)
        ):
            cells = counts.sum(axis=0) if subgroup is None else counts[subgroup]
            # Scores within the bins are guessed from the counts of all rows.
            scored[place + (n_classes == 2)] = ScoredClass(
                cells.astype(np.float64),
                self.middles_[place],
                self.middle_errors_[place],
                second * root,
                BinShapes.of_counts(edges, counts, second),
            )
        confusion = confusion.sum(axis=0) if subgroup is None else confusion[subgroup]
        confusion = confusion[:-1].reshape(n_classes, n_classes)
        return NoisyCounts(confusion, first * root, scored, is_public)


class RecalibratedClassifier(ClassifierMixin, BaseEstimator):
    """Fitted classifier with probabilities corrected by private metrics.

    Created by :meth:`PrivateMetrics.recalibrated`. The log-odds of each class are
    multiplied by a slope and shifted by an intercept, which were computed from noisy
    counts. The classifier contains `estimator`: publish the classifier with the
    statements of the model and of the metrics together.

    `fit` raises an error, and ``clone`` returns the classifier itself. To a
    meta-estimator that would fit the classifier, pass the classifier in a
    ``FrozenEstimator``.

    Parameters
    ----------
    estimator : classifier
        Fitted classifier with ``predict_proba``, the model of `metrics`.

    metrics : PrivateMetrics
        Metrics of `estimator`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    intercepts_ : ndarray of shape (n_scored,)
        Intercept for the second of two classes, or for each class.

    slopes_ : ndarray of shape (n_scored,)
        Slope for the second of two classes, or for each class.

    n_features_in_, feature_names_in_ : object
        Attributes of the model, if the model has them.

    privacy_spent_ : PrivacySpent
        Privacy statement of model and metrics together. For a model without a
        statement, that of the metrics alone, which then assumes that the training rows
        of the model are public.

    Notes
    -----
    Platt (1999), "Probabilistic outputs for support vector machines". With more than
    two classes, each class is corrected against all other classes, and probabilities
    are divided by their sum, as in
    :class:`~sklearn.calibration.CalibratedClassifierCV`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate.metrics import private_metrics
    >>> X, y = make_blobs(3000, centers=2, cluster_std=6.0, random_state=0)
    >>> model = GaussianNB().fit(X[:1000], y[:1000])
    >>> metrics = private_metrics(model, X[1000:], y[1000:], epsilon=1.0)
    >>> better = metrics.recalibrated(model)
    >>> better.predict_proba(X[:5]).shape
    (5, 2)
    >>> better.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    """

    _keeps_rows_apart = ("estimator",)

    def __init__(self, estimator: Any, metrics: Any) -> None:
        self.estimator = estimator
        self.metrics = metrics

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Raise TypeError, as model and correction are fitted already.

        Parameters
        ----------
        X : object
            Not used.

        y : object
            Not used.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "A RecalibratedClassifier cannot be fitted; measure another model by "
            "private_metrics, or pass FrozenEstimator(recalibrated) to what needs to "
            "fit its estimators."
        )

    def predict_proba(self, X: Any) -> Array:
        """Predict corrected class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows, as accepted by the model.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class in `classes_`.
        """
        scores = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        is_binary = len(self.classes_) == 2
        log_odds = clipped_log_odds(scores[:, 1:] if is_binary else scores)
        corrected = expit(self.intercepts_ + self.slopes_ * log_odds)
        if is_binary:
            return np.hstack([1 - corrected, corrected])
        return corrected / corrected.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class with the largest corrected probability.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows, as accepted by the model.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            Class labels.
        """
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels."""
        return self.estimator.classes_

    @property
    def intercepts_(self) -> Array:
        """Intercept for the second of two classes, or for each class."""
        return self._corrections[:, 0]

    @property
    def slopes_(self) -> Array:
        """Slope for the second of two classes, or for each class."""
        return self._corrections[:, 1]

    @cached_property
    def privacy_spent_(self) -> PrivacySpent:
        """Statement of model and metrics together."""
        spent = self.metrics.privacy_spent_
        of_model = getattr(self.estimator, "privacy_spent_", None)
        if of_model is None:
            assumptions = (*spent.assumptions, FITTED_ROWS_UNPROTECTED)
            return replace(spent, assumptions=assumptions)
        of_model = getattr(self.estimator, "model_privacy_spent_", of_model)
        whole = with_metrics(of_model, spent)
        # A model may be published with these metrics, or with others.
        published = getattr(self.estimator, "metrics_", None)
        if published is None or np.array_equal(
            published.confusion_, self.metrics.confusion_
        ):
            return whole
        return whole + published.privacy_spent_

    @cached_property
    def _corrections(self) -> Array:
        """Intercept and slope of each scored class."""
        return self.metrics._recalibrations()

    @property
    def n_features_in_(self) -> int:
        """Number of features, if known to the model."""
        return self.estimator.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Array of feature names, if known to the model."""
        return self.estimator.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

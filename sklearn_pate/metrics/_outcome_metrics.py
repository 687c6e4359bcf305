"""Metrics of models of numbers and times, from noisy counts of private rows."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._inputs._labels import plain_label
from sklearn_pate._synthetic._marginals import nearest_on_simplex
from sklearn_pate._votes._votes import STEPS
from sklearn_pate.accounting._ledger import FitEntry
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._statement import (
    ASSUMPTIONS,
    SEEDED,
    PrivacySpent,
)
from sklearn_pate.accounting._value_checks import check_number
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_sum import (
    MetricSums,
    StoredSums,
    TwoPartRelease,
)
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.metrics._estimates import (
    GRID,
    GRID_OF_SCORES,
    N_DRAWS,
    TAIL,
    TOLD,
    Array,
    cells_between,
    first_covering,
    quantile_edges,
    table_of,
)
from sklearn_pate.metrics._results import (
    OTHER,
    Estimate,
    Estimates,
    ReleasedMetrics,
    at_sites,
    estimates_in_dict,
    line_style,
    make_axes,
    metrics_statement,
    sites_in_dict,
    sites_of,
)

_FORMAT = {"format": "sklearn_pate metrics of an outcome", "format_version": 1}
# Edges of confidence levels.
_LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99])
_COVERED_AT = 0.9
# Numbers that are added up, and cells of levels; one more is for rows that are not
# measured.
_N_SUMS, _N_CELLS = 7, len(_LEVELS) + 2
# Cells of risk, the last of which is for rows that are not measured.
_N_PLACES = len(GRID) + 2
# Share of the squared mu for the places of bins of risk, and for mean predictions.
_SHARE = 0.25
# Bins of risk for each part of an interval.
_BINS_A_PART = 4
_MOST_CELLS = 2**18
# Metrics that are shares, beside those at each time.
_SHARES = ("coverage", "concordance")


def mechanisms_of(
    outcome: dict[str, Any], n_subgroups: int, epsilon: float, delta: float
) -> list[MetricSums]:
    """Calibrate the releases of metrics of an outcome."""
    parts = _unset(outcome, n_subgroups)
    shares = (1.0,) if len(parts) == 1 else (_SHARE, 1 - _SHARE)
    return [
        part.for_share(share, epsilon, delta)
        for part, share in zip(parts, shares, strict=True)
    ]


def _unset(outcome: dict[str, Any], n_subgroups: int) -> list[MetricSums]:
    is_number = outcome["kind"] == "number"
    n_sums = _N_SUMS if is_number else len(outcome["edges"]) - 1
    # A row of another subgroup changes the sums of both.
    n_numbers = n_sums if n_subgroups == 1 else 2 * n_sums
    first = MetricSums(n_tables=1, n_numbers=n_numbers)
    return [first] if is_number else [first, MetricSums(n_tables=1)]


def whole_of(parts: list[MetricSums]) -> Mechanism:
    """Return the release of all parts."""
    return parts[0] if len(parts) == 1 else TwoPartRelease(*parts)


def release_numbers(
    measures: Array,
    subgroups: NDArray[np.intp],
    n_subgroups: int,
    parts: list[MetricSums],
    entry: FitEntry | None,
    noise: NoiseSource,
) -> list[NDArray[np.int64]]:
    """Add up errors and outcomes, count rows by level, and release all with noise.

    `measures` are prediction and outcome as shares of the range, and the least level
    whose interval holds the outcome; NaN for a row that is not measured. An error of
    more than half the range counts as half.
    """
    known: NDArray[np.bool_] = np.all(np.isfinite(measures), axis=1)
    predicted, outcome, level = np.where(known[:, np.newaxis], measures, 0.0).T
    # From -1 to 1.
    error, centred = (2 * (predicted - outcome)).clip(-1, 1), 2 * outcome - 1
    numbers = np.stack(
        [
            error / 2,
            np.abs(error),
            error**2,
            (error**2) ** 2,
            centred / 2,
            centred**2,
            (centred**2) ** 2,
        ],
        axis=1,
    )
    cells = np.where(known, cells_between(level, _LEVELS), _N_CELLS - 1)

    def add() -> NDArray[np.int64]:
        sums = sums_of(numbers[known], subgroups[known], n_subgroups)
        table = STEPS * table_of((n_subgroups, _N_CELLS), subgroups, cells)
        return np.hstack([sums, table]).ravel()

    return [StoredSums(parts[0], entry, noise).draw(0, add)]


def sums_of(
    numbers: Array, subgroups: NDArray[np.intp], n_subgroups: int
) -> NDArray[np.int64]:
    """Add up numbers by subgroup, each rounded to whole steps.

    Numbers of one column are at most 1 apart, and no further from 0.
    """
    sums = np.zeros((n_subgroups, numbers.shape[1]), dtype=np.int64)
    np.add.at(sums, subgroups, np.rint(STEPS * numbers).astype(np.int64))
    return sums


def release_times(
    incidences: Array,
    codes_of: Callable[[Array], NDArray[np.intp]],
    edges: Array,
    subgroups: NDArray[np.intp],
    n_subgroups: int,
    parts: list[MetricSums],
    n_bins_of: Callable[[float], int],
    entry: FitEntry | None,
    noise: NoiseSource,
) -> tuple[list[NDArray[np.int64]], Array, Array]:
    """Release sums of predicted incidences, and counts by risk and time.

    `incidences` are predicted probabilities of an event until the end of each interval,
    NaN for a row that cannot be scored. Returns also the edges between the bins of
    risk, and those of the intervals, which are divided where noise allows it.
    """
    known = np.isfinite(incidences).all(axis=1) & (codes_of(edges) >= 0)
    risk = np.where(known, incidences[:, -1], np.nan)

    def sums() -> NDArray[np.int64]:
        of_subgroups = sums_of(incidences[known], subgroups[known], n_subgroups)
        cells = np.where(known, cells_between(risk, GRID_OF_SCORES), _N_PLACES - 1)
        grid = table_of((_N_PLACES,), cells)
        return np.concatenate([STEPS * grid, of_subgroups.ravel()])

    first = StoredSums(parts[0], entry, noise).draw(0, sums)
    totals = first[: _N_PLACES - 1]
    n_rows = max(float(totals.sum()) / STEPS, 1.0)
    n_bins = n_bins_of(n_rows)
    risk_edges = quantile_edges(totals // STEPS, n_bins, n_rows)
    n_parts = np.arange(len(edges) - 1)[:, np.newaxis] + _parts(n_bins)
    time_edges = np.append(np.interp(n_parts, np.arange(len(edges)), edges), edges[-1])

    def count() -> NDArray[np.int64]:
        shape = n_subgroups, len(risk_edges) + 1, 2 * len(time_edges) - 1
        cells = cells_between(risk, risk_edges)
        return STEPS * table_of(shape, subgroups, cells, codes_of(time_edges)).ravel()

    second = StoredSums(parts[1], entry, noise).draw(1, count)
    return [first, second], risk_edges, time_edges


def _parts(n_bins: int) -> Array:
    """Return the places that divide an interval into parts."""
    n_parts = max(n_bins // _BINS_A_PART, 1)
    return np.arange(n_parts) / n_parts


def _of_numbers(numbers: Array, cells: Array, width: float) -> dict[Any, Array]:
    """Estimate metrics of a number from mean numbers and counts of levels."""
    error, absolute, squared, _, centred, square, _ = np.moveaxis(numbers, -1, 0)
    variance = square - (2 * centred) ** 2
    covered = cells[..., : np.searchsorted(_LEVELS, _COVERED_AT) + 1].sum(axis=-1)
    return {
        "r2": 1 - squared / np.where(variance > 0, variance, np.nan),
        "mean_absolute_error": width / 2 * absolute,
        "root_mean_squared_error": width / 2 * np.sqrt(np.maximum(squared, 0)),
        "mean_error": width * error,
        "coverage": covered / cells[..., :-1].sum(axis=-1),
    }


def _variances(means: Array) -> Array:
    """Estimate the variances of the numbers of a row from their means."""
    error, absolute, squared, fourth, centred, square, quartic = means
    second = np.array(
        [
            squared / 4 - error**2,
            squared - absolute**2,
            fourth - squared**2,
            fourth - squared**2,  # at most: the fourth power is below the square
            square / 4 - centred**2,
            quartic - square**2,
            quartic - square**2,
        ]
    )
    return second.clip(0, 1)


def _of_times(
    means: Array, cells: Array, ends: list[float], time_edges: Array
) -> dict[Any, Array]:
    """Estimate metrics of times from counts by risk and time, and mean incidences.

    Pairs in one part of an interval are not compared. Pairs in one bin of risk count
    half.
    """
    n_times = len(time_edges) - 1
    events, others = cells[..., :n_times], cells[..., n_times:]
    # Nobody of these had an event until the end of interval j.
    later = np.flip(np.cumsum(np.flip(events, axis=-1), axis=-1), axis=-1) - events
    followed = np.flip(np.cumsum(np.flip(others, axis=-1), axis=-1), axis=-1)
    later = later + followed[..., 1:]
    below = np.cumsum(later, axis=-2) - later / 2
    right = np.sum(events * below, axis=(-1, -2))
    pairs = np.sum(events.sum(axis=-2) * later.sum(axis=-2), axis=-1)
    of_all = cells.sum(axis=-2)
    events, censored = of_all[..., :n_times], of_all[..., n_times:-1]
    both = events + censored
    exposed = of_all.sum(axis=-1, keepdims=True) - np.cumsum(both, axis=-1) + both
    exposed = exposed - censored / 2
    hazards = np.clip(events / np.where(exposed > 0, exposed, np.nan), 0, 1)
    incidence = 1 - np.cumprod(1 - hazards, axis=-1)
    found: dict[Any, Array] = {
        "concordance": right / np.where(pairs > 0, pairs, np.nan)
    }
    for place, end in enumerate(ends):
        at_end = int(np.searchsorted(time_edges[1:], end))
        found["incidence", end] = incidence[..., at_end]
        found["predicted_incidence", end] = means[..., place].clip(0, 1)
    return found


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OutcomeMetrics(ReleasedMetrics):
    """Metrics of a model of numbers or times on private rows, from noisy counts.

    Created by :func:`~sklearn_pate.metrics.private_metrics`. May be published, with
    ``privacy_spent_`` as privacy statement. All metrics are computed from the noisy
    counts, at no further cost.

    ``metrics["r2"]`` is an :class:`Estimate` with ``value``, ``low`` and ``high``.
    Names for a number: "r2", "mean_absolute_error", "root_mean_squared_error",
    "mean_error" (prediction minus outcome), and "coverage" of the interval at level
    0.9. Outcomes beyond the edges count as the edges, and errors beyond half the range
    as half. Names for times: "concordance", and at each time ("incidence", time), of
    which ("predicted_incidence", time) is the mean prediction. Pairs of persons with
    events in the same part of an interval are not compared, so that the concordance is
    larger than that of exact times. With subgroups, sums have more noise, as a row may
    change its subgroup.

    Parameters
    ----------
    outcome_ : dict
        Kind of the outcome, "number" or "time", and its declared edges.

    subgroups_ : list
        Declared values of `subgroups`, then "other or missing". [None] without
        subgroups.

    sums_ : list of ndarray of int
        Released noisy counts and sums, in units of 1/1024.

    risk_edges_ : ndarray of shape (n_bins - 1,)
        Edges between bins of predicted risk. Empty for numbers.

    time_edges_ : ndarray of shape (n_parts + 1,)
        Edges of the intervals, or of parts of them. Empty for numbers.

    noise_scales_ : tuple of float
        Standard deviation of the noise on each count of a release, in rows or groups.

    n_rows_ : int or None
        Number of measured rows. None if this number is not public.

    privacy_spent_ : PrivacySpent
        The privacy statement.

    model_fingerprint_ : str
        SHA-256 of all that the measured model predicts by.

    sites_ : tuple of int or None
        Number of sites that drew the noise, and of those whose noise is not counted.
        None for metrics of one data holder.

    See Also
    --------
    private_metrics : Measure a model.
    PrivateMetrics : Metrics of a classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate import DPNewtonClassifier, PublicData
    >>> from sklearn_pate.metrics import private_metrics
    >>> from sklearn_pate.outcomes import BinnedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(16000, 3))
    >>> y = 5 + 2 * X[:, 0] + rng.normal(size=16000)
    >>> model = BinnedRegressor(DPNewtonClassifier(epsilon=1.0), bins=(0, 10))
    >>> model = model.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:6000]))
    >>> metrics = private_metrics(model, X[6000:], y[6000:], epsilon=1.0)
    >>> metrics["r2"].low < metrics["r2"].value < metrics["r2"].high
    True
    >>> 0 < metrics.confidence_level(coverage=0.8) < 1
    True
    """

    __module__ = "sklearn_pate.metrics"  # its name in files
    _format = str(_FORMAT["format"])

    outcome_: dict[str, Any]
    subgroups_: list[Any]
    sums_: list[NDArray[np.int64]]
    risk_edges_: Array
    time_edges_: Array
    noise_scales_: tuple[float, ...]
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
            value: self._estimated([place])
            for place, value in enumerate(self.subgroups_)
        }

    @cached_property
    def _estimates(self) -> Estimates:
        return self._estimated([*range(len(self.subgroups_))])

    def confidence_level(self, *, coverage: float) -> float:
        """Return a level at which intervals hold a share of the outcomes.

        The level is read from noisy counts of the measured rows, at no further privacy
        cost: split conformal prediction (Vovk, Gammerman, Shafer 2005, "Algorithmic
        learning in a random world"), with an allowance for the noise.

        Parameters
        ----------
        coverage : float
            Wanted share of new outcomes inside their intervals, between 0 and 1.

        Returns
        -------
        level : float
            Level for ``model.predict_interval(X, confidence_level=level)``. 1, the
            whole range, if the noise is too large for less.

        Raises
        ------
        ValueError
            If `coverage` is not between 0 and 1, or the metrics are of times.
        """
        check_number("coverage", coverage, 0, 1, closed="neither")
        if self.outcome_["kind"] != "number":
            raise ValueError(
                "These metrics are of times, which have no intervals of a level; "
                "measure a model of numbers."
            )
        cells = self._cells([*range(len(self.subgroups_))])[_N_SUMS:-1]
        sigma = self._noise(0, len(self.subgroups_))
        noise = sigma * np.sqrt(np.arange(1, len(cells)))
        below = np.cumsum(cells)[:-1]
        return first_covering(_LEVELS, below, cells.sum(), noise, coverage, 1.0)

    def plot(self, ax: Any = None) -> Any:
        """Draw predicted against measured incidences, or coverage against levels.

        The plot may be published, with the privacy statement of the metrics. The method
        needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. With None, a new figure is created.

        Returns
        -------
        ax : matplotlib Axes
            The axes.
        """
        ax = make_axes(type(self), ax)
        if self.outcome_["kind"] == "number":
            levels = self._cells([*range(len(self.subgroups_))])[_N_SUMS:-1]
            shares = np.cumsum(levels)[:-1] / levels.sum()
            ax.plot(_LEVELS, shares.clip(0, 1), marker="o", **line_style(0))
            ax.plot([0.5, 1], [0.5, 1], color="0.6", linestyle=":", zorder=0)
            ax.set(xlabel="confidence level", ylabel="share of outcomes inside")
            return ax
        times = self.outcome_["edges"][1:]
        for place, name in enumerate(("incidence", "predicted_incidence")):
            found = [self[name, time] for time in times]
            values, *ends = np.array(found).T
            around = np.abs(np.array(ends) - values)
            text = {"incidence": "measured"}.get(name, "predicted")
            ax.errorbar(
                times,
                values,
                around,
                marker="o",
                capsize=3,
                label=text,
                **line_style(place),
            )
        ax.set(xlabel="time", ylabel="share of persons with an event", ylim=(0, None))
        ax.legend(frameon=False)
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
        spent = self.privacy_spent_
        if math.isinf(spent.epsilon):
            raise ValueError(
                "These metrics have no privacy guarantee, as their noise was seeded, "
                "and cannot be written; measure again without a seed of the noise."
            )
        of_subgroups = self.by_subgroup.values() if len(self.subgroups_) > 1 else ()
        return _FORMAT | {
            "statement": spent.in_one_line(),
            "figures": estimates_in_dict(self),
            "by_subgroup": [estimates_in_dict(one) for one in of_subgroups],
            **{
                name: getattr(spent, name)
                for name in ("epsilon", "delta", "unit", "relation")
            },
            "assumptions": [
                {"code": one.code, "sentence": one.sentence}
                for one in spent.assumptions
            ],
            "outcome": self.outcome_,
            "subgroups": [
                None if one is None else plain_label(one) for one in self.subgroups_
            ],
            "sums": [one.tolist() for one in self.sums_],
            "risk_edges": self.risk_edges_.tolist(),
            "time_edges": self.time_edges_.tolist(),
            "noise_scales": [*self.noise_scales_],
            **sites_in_dict(self),
            "n_rows": self.n_rows_,
            "model_fingerprint": self.model_fingerprint_,
        }

    @classmethod
    def _fields_of(cls, values: dict[str, Any]) -> dict[str, Any]:
        outcome, subgroups = values["outcome"], values["subgroups"]
        sums = [np.array(one, dtype=np.int64) for one in values["sums"]]
        risk_edges = np.array(values["risk_edges"], dtype=np.float64)
        edges = np.array(outcome["edges"], dtype=np.float64)
        time_edges = np.array(values["time_edges"], dtype=np.float64)
        n_subgroups, n_times = len(subgroups), len(edges) - 1
        sizes = [n_subgroups * (_N_SUMS + _N_CELLS)]
        if outcome["kind"] == "time":
            n_codes = 2 * len(time_edges) - 1
            n_cells = n_subgroups * (len(risk_edges) + 1) * n_codes
            sizes = [_N_PLACES + n_subgroups * n_times, n_cells]
        parts = [
            part.set_params(noise_scale=scale)
            for part, scale in zip(
                _unset(outcome, n_subgroups), values["noise_scales"], strict=True
            )
        ]
        if (
            outcome.keys() != {"kind", "edges"}
            or outcome["kind"] not in ("number", "time")
            or edges.ndim != 1
            or n_times < 1
            or not np.isfinite(edges).all()
            or np.any(np.diff(edges) <= 0)
            or [one.shape for one in sums] != [(size,) for size in sizes]
            or sum(sizes) > _MOST_CELLS
            or np.any(np.diff(risk_edges, prepend=0.0, append=1.0) <= 0)
            or np.any(np.diff(time_edges) <= 0)
            or not np.isin(edges if outcome["kind"] == "time" else [], time_edges).all()
            or (outcome["kind"] == "number" and (risk_edges.size or time_edges.size))
            or len({*subgroups}) < max(n_subgroups, 1)
            or (subgroups != [None] and subgroups[-1] != OTHER)
            or not all(str(one).isprintable() for one in subgroups)
            or values["unit"] != ("row" if values["n_rows"] is not None else "group")
            or not re.fullmatch("[0-9a-f]{64}", values["model_fingerprint"])
        ):
            raise ValueError("their counts, edges, model or unit do not fit together")
        whole = at_sites(whole_of(parts), values.get("sites"))
        whole._check_ready()
        check_delta(values["delta"])
        assumptions = tuple(ASSUMPTIONS[one["code"]] for one in values["assumptions"])
        if SEEDED in assumptions:
            raise ValueError("their noise was seeded")
        cost = whole.cost(1, unit=values["unit"])
        return {
            "outcome_": outcome,
            "subgroups_": subgroups,
            "sums_": sums,
            "risk_edges_": risk_edges,
            "time_edges_": time_edges,
            "noise_scales_": tuple(values["noise_scales"]),
            "n_rows_": values["n_rows"],
            "privacy_spent_": metrics_statement(
                whole, cost, values["delta"], assumptions
            ),
            "model_fingerprint_": values["model_fingerprint"],
            "sites_": sites_of(whole),
        }

    def _cells(self, places: list[int]) -> Array:
        """Return the noisy counts of some subgroups together."""
        shape: tuple[int, ...] = (len(self.subgroups_), -1)
        if self.outcome_["kind"] == "time":
            n_codes = 2 * len(self.time_edges_) - 1
            shape = len(self.subgroups_), len(self.risk_edges_) + 1, n_codes
        return self.sums_[-1].reshape(shape)[places].sum(axis=0) / STEPS

    def _noise(self, part: int, n_subgroups: int) -> float:
        return self.noise_scales_[part] * math.sqrt(n_subgroups)

    def _n_measured(self, places: list[int], counted: Array, missed: Array) -> Array:
        """Return the number of measured rows: a public number less those missed."""
        if self.n_rows_ is None or len(places) < len(self.subgroups_):
            return np.maximum(counted, 1.0)
        return np.maximum(self.n_rows_ - np.asarray(missed), 1.0)

    def _estimated(self, places: list[int]) -> Estimates:
        """Estimate all metrics of some subgroups, with intervals from a simulation."""
        cells, rng = self._cells(places), np.random.default_rng(0)
        edges, sigma = self.outcome_["edges"], self._noise(-1, len(places))
        if self.outcome_["kind"] == "number":
            sums, cells = np.split(cells, [_N_SUMS])
            drawn = _simulated(cells, sigma, rng)
            n_rows, n_drawn = (
                self._n_measured(places, one[..., :-1].sum(axis=-1), one[..., -1])
                for one in (cells, drawn)
            )
            variances = n_rows * _variances(sums / n_rows) + sigma**2
            width = edges[-1] - edges[0]
            function = partial(_of_numbers, width=width)
        else:
            released = self.sums_[0] / STEPS
            sums = released[_N_PLACES:].reshape(-1, len(edges) - 1)[places].sum(axis=0)
            drawn = _simulated(cells.ravel(), sigma, rng).reshape(-1, *cells.shape)
            first = self._noise(0, len(places))
            missed = released[_N_PLACES - 1]
            n_rows, n_drawn = (
                self._n_measured(places, one.sum(axis=(-1, -2)), missed + error)
                for one, error in (
                    (cells, 0.0),
                    (drawn, first * rng.standard_normal(len(drawn))),
                )
            )
            # No law of numbers from 0 to 1 has a larger variance.
            means = (sums / n_rows).clip(0, 1)
            variances = n_rows * means * (1 - means) + first**2
            function = partial(_of_times, ends=edges[1:], time_edges=self.time_edges_)
        draws = sums + np.sqrt(variances) * rng.standard_normal((N_DRAWS, len(sums)))
        functions = (
            function(mean, of_cells)
            for mean, of_cells in (
                (sums / n_rows, cells),
                (draws / n_drawn[:, np.newaxis], drawn),
            )
        )
        with np.errstate(all="ignore"):
            values, draws_of = functions
        is_told = n_rows >= TOLD * sigma * math.sqrt(cells.size)
        return Estimates(
            {
                name: _estimate(name, value if is_told else math.nan, draws_of[name])
                for name, value in values.items()
            }
        )


def _simulated(cells: Array, sigma: float, rng: np.random.Generator) -> Array:
    """Draw counts again, with the noise and the sampling of rows."""
    n_rows = max(round(float(cells.sum())), 1)
    shares = nearest_on_simplex(cells, 1.0 * n_rows) / n_rows
    sampled = rng.multinomial(n_rows, shares, N_DRAWS) - n_rows * shares
    return cells + sampled + sigma * rng.standard_normal(sampled.shape)


def _estimate(name: Any, value: Any, draws: Array) -> Estimate:
    """Return a value with the range of the middle draws; NaN where it is not told."""
    value = float(value)
    if not math.isfinite(value):
        return Estimate(math.nan, math.nan, math.nan)
    low, middle, high = np.nanquantile(draws, [TAIL, 0.5, 1 - TAIL])
    numbers = np.array([value, value + low - middle, value + high - middle])
    if isinstance(name, tuple) or name in _SHARES:
        numbers = numbers.clip(0, 1)
    return Estimate(*numbers.tolist())

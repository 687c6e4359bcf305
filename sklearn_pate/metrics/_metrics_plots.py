"""Pictures of private metrics: ROC curve, calibration, differences of subgroups."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sklearn_pate.metrics._axes import line_style, point_style
from sklearn_pate.metrics._estimates import (
    N_DRAWS,
    TAIL,
    Array,
    NoisyCounts,
    is_told,
    metrics_of,
    shares_above,
    shares_of_bins,
)

_FALSE_POSITIVES = np.linspace(0, 1, 201)
# A bin with fewer rows than so many standard deviations of its noise is not drawn.
_TOLD = 4.0


def draw_roc(ax: Any, counts: NoisyCounts, labels: Sequence[str]) -> None:
    """Draw the ROC curve of each scored class with a pointwise 95 % band."""
    drawn = counts.simulated(np.random.default_rng(0), N_DRAWS)
    for place, label in enumerate(labels):
        curve = _on_grid(shares_above(counts, place))
        draws = np.array([_on_grid(one) for one in shares_above(drawn, place)])
        style = line_style(place)
        ax.plot(_FALSE_POSITIVES, curve, label=label, **style)
        band = _band(curve, draws, 0, 1)
        ax.fill_between(_FALSE_POSITIVES, *band, color=style["color"], alpha=0.2, lw=0)
    ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", zorder=0)
    ax.set(xlabel="1 - specificity", ylabel="sensitivity", title="ROC curve", aspect=1)
    ax.legend(frameon=False, loc="lower right")


def draw_calibration(ax: Any, counts: NoisyCounts) -> None:
    """Draw the share of a class against its score with a pointwise 95 % band."""
    drawn = counts.simulated(np.random.default_rng(0), N_DRAWS)
    largest = 0.0
    for place, middles in enumerate(counts.middles):
        totals = counts.histograms[place].sum(axis=-1)
        told = totals > _TOLD * np.sqrt(2) * counts.sigma[1]
        if not told.any():
            continue
        shares = shares_of_bins(counts.histograms[place])[told]
        draws = shares_of_bins(drawn.histograms[place])[:, told]
        low, high = _band(shares, draws, 0, 1)
        style = line_style(place)
        ax.plot(middles[told], shares.clip(0, 1), marker="o", markersize=4, **style)
        ax.fill_between(middles[told], low, high, color=style["color"], alpha=0.2, lw=0)
        largest = max([largest, *middles[told], *high])
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
    drawn = [one.simulated(rng, N_DRAWS) for one in parts]
    together, drawn_together = _sum(parts), _sum(drawn)
    vars(drawn_together)["within"] = together.within
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
        low, high = _band(difference, metric(drawn[place]) - draws_of_all, -1, 1)
        around = [[difference - low], [high - difference]]
        ax.errorbar([difference], [place], xerr=around, capsize=3, **point_style(0))
    ax.axvline(0, color="0.6", linestyle=":", zorder=0)
    ax.set_yticks(range(len(ticks)), ticks)
    ax.locator_params(axis="x", nbins=5)
    ax.set(xlabel=f"{text} minus that of all rows", ylim=(len(ticks) - 0.5, -0.5))


def _on_grid(points: Array) -> Array:
    """Interpolate an ROC curve at equal steps of the false positives."""
    return np.interp(_FALSE_POSITIVES, points[::-1, 0], points[::-1, 1])


def _band(value: Array, draws: Array, least: float, most: float) -> tuple[Array, Array]:
    """Return the range of the middle draws, centred at the value."""
    low, middle, high = np.nanquantile(draws, [TAIL, 0.5, 1 - TAIL], axis=0)
    low, high = value + low - middle, value + high - middle
    return np.clip(low, least, most), np.clip(high, least, most)


def _sum(parts: Sequence[NoisyCounts]) -> NoisyCounts:
    """Add the counts of subgroups."""
    first = parts[0]
    root = np.sqrt(len(parts))
    return replace(
        first,
        confusion=np.sum([one.confusion for one in parts], axis=0),
        histograms=[
            np.sum([one.histograms[place] for one in parts], axis=0)
            for place in range(len(first.histograms))
        ],
        sigma=(first.sigma[0] * root, first.sigma[1] * root),
    )

"""Axes and lines of displays, and pictures of private metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sklearn_pate.metrics._estimates import (
    Array,
    NoisyCounts,
    band,
    is_told,
    metrics_of,
    shares_above,
    shares_of_bins,
)

#: Palette of Okabe and Ito, also for colour-blind readers.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")

_LINE_STYLES = ("-", "--", "-.", ":")
_MARKERS = "os^Dv"
_FALSE_POSITIVES = np.linspace(0, 1, 201)
# A bin with fewer rows than so many standard deviations of its noise is not drawn.
_TOLD = 4.0


def require_matplotlib(display: type) -> Any:
    """Import matplotlib.pyplot for a display, before any work."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{display.__name__} needs matplotlib; install sklearn-pate[plot]."
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
        told = one.cells.sum(axis=-1) > _TOLD * np.sqrt(2) * one.sigma
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

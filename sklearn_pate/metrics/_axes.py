"""Axes, colours and lines of displays; matplotlib is optional."""

from typing import Any

#: Palette of Okabe and Ito, also for colour-blind readers.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")

_LINE_STYLES = ("-", "--", "-.", ":")
_MARKERS = "os^Dv"


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

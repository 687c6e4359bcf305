"""Axes, colours, warning stamp and checks shared by all displays."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._estimators._delegation import last_step
from sklearn_pate.accounting._statement import PrivacySpent, plans_privacy

__all__ = [
    "COLORS",
    "SENSITIVE",
    "check_comparable",
    "fitted_last_step",
    "line_style",
    "log_ticks",
    "make_axes",
    "point_style",
    "protection_note",
    "require_matplotlib",
    "stamp",
    "statement_of",
]

#: Palette of Okabe and Ito, also for colour-blind readers.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")

#: Warning across a plot that must not be published.
SENSITIVE = "SENSITIVE: depends on private data, do not publish"

_LINE_STYLES = ("-", "--", "-.", ":")
_MARKERS = "os^Dv"
# Width of a letter of the stamp, over its height.
_LETTER = 0.6


def require_matplotlib(display: type) -> Any:
    """Import matplotlib.pyplot for a display, before any work."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{display.__name__} needs matplotlib; install sklearn-pate[plot]."
        ) from error
    return plt


def make_axes(display: type, ax: Any) -> Any:
    """Return axes for a display to draw on, those of a new figure for None."""
    plt = require_matplotlib(display)
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
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


def log_ticks(axis: Any) -> None:
    """Write the ticks of a logarithmic axis as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def stamp(ax: Any) -> None:
    """Write a warning across the data, once per axes, so that cropping keeps it."""
    if any(text.get_text() == SENSITIVE for text in ax.texts):
        return
    width = ax.get_window_extent().width * 72 / ax.figure.dpi
    ax.text(
        0.5,
        0.5,
        SENSITIVE,
        transform=ax.transAxes,
        ha="center",
        va="center",
        fontsize=np.clip(width / (_LETTER * len(SENSITIVE)), 5, 16),
        fontweight="bold",
        color=COLORS[1],
        alpha=0.9,
        zorder=100,
        bbox={"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "pad": 2},
    )


def fitted_last_step(estimator: Any) -> Any:
    """Return the last step; raise NotFittedError if it is private and not fitted."""
    learner = last_step(estimator)
    if plans_privacy(learner):
        check_is_fitted(learner, "privacy_spent_")
    return learner


def statement_of(estimator: Any) -> PrivacySpent:
    """Return the statement of a fitted private estimator or Pipeline.

    NotFittedError is raised if it is not fitted, ValueError if it has none.
    """
    learner = fitted_last_step(estimator)
    spent = getattr(learner, "privacy_spent_", None)
    if spent is None:
        raise ValueError(
            f"{type(learner).__name__} has no privacy_spent_; pass a fitted private "
            "estimator, such as PATEClassifier, or a Pipeline that ends in one."
        )
    return spent


def protection_note(unit: str | None, relation: str | None) -> str:
    """Describe unit of privacy and neighbour relation for an axis."""
    if unit is None:
        return ""
    return f"unit: {unit}" if relation is None else f"unit: {unit}, {relation}"


def check_comparable(statements: Iterable[PrivacySpent]) -> None:
    """Raise ValueError unless all statements have a guarantee and protect alike."""
    statements = list(statements)
    protected = sorted({(spent.unit, spent.relation) for spent in statements})
    if not protected:
        raise ValueError("There is nothing to draw; pass at least one fit.")
    if len(protected) > 1:
        named = (f"unit={one!r} with relation={other!r}" for one, other in protected)
        raise ValueError(
            f"The statements protect {' and '.join(named)}, and their epsilons are not "
            "comparable; draw one unit and relation per plot."
        )
    if any(np.isinf(spent.epsilon) for spent in statements):
        raise ValueError(
            "epsilon=inf: one of the fits has no guarantee, and cannot be drawn on an "
            "axis of epsilon; leave it out, or fit it again without a noise_seed and "
            "with bounds that are not read from private rows."
        )

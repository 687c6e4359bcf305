"""Minimisers of regularised convex losses, with a bound on the gradient."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

__all__ = ["HuberHinge", "LogisticLoss", "MarginLoss", "minimise"]

# Rows whose part of the Hessian is computed at once.
_BLOCK = 4096
# Rows whose gradients are added up at once, then sums of such: rounding grows with it.
_FAN_IN = 128
_UNIT_ROUNDOFF = 2.0**-53
# Line search: required share of the decrease that the slope predicts.
_SUFFICIENT = 1e-4
_MAX_HALVINGS = 60
# Newton's method takes a few dozen steps on the hardest rows of the tests. This is no
# parameter, as the number of steps depends on private rows.
_MOST_STEPS = 1000


class MarginLoss(ABC):
    """Convex, non-increasing loss of the margin y w.x, with slopes from -1 to 0.

    The privacy proofs require these properties.
    """

    #: Largest second derivative.
    curvature: float

    @abstractmethod
    def values(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the loss of each margin."""

    @abstractmethod
    def derivatives(
        self, margins: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the first and the second derivative, left or right of a kink."""


class LogisticLoss(MarginLoss):
    """The loss ln(1 + e^-z) of a margin z."""

    curvature = 0.25

    def values(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the loss of each margin."""
        return np.logaddexp(0.0, -margins)

    def derivatives(
        self, margins: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute minus the probability of the other class, and its variance."""
        other = expit(-margins)
        return -other, other * expit(margins)


class HuberHinge(MarginLoss):
    """The hinge loss max(0, 1 - z), but (1 + h - z)^2 / (4 h) for |1 - z| < h.

    Chaudhuri, Monteleoni, Sarwate (2011, Section 3.4).
    """

    def __init__(self, half_width: float) -> None:
        self.half_width = half_width
        self.curvature = 1 / (2 * half_width)

    def _position(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the position of margins in the quadratic piece, from 1 down to 0."""
        return (1 + self.half_width - margins) * self.curvature

    def values(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the loss of each margin."""
        position = self._position(margins)
        quadratic = self.half_width * np.maximum(position, 0) ** 2
        return np.where(position < 1, quadratic, 1 - margins)

    def derivatives(
        self, margins: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the slope, and the second derivative, which is 0 or 1 / (2 h)."""
        position = self._position(margins)
        is_quadratic = (position > 0) & (position < 1)
        return -np.clip(position, 0, 1), np.where(is_quadratic, self.curvature, 0.0)


def minimise(
    X: NDArray[np.float64],
    signs: NDArray[np.float64],
    loss: MarginLoss,
    *,
    regularisation: float,
    linear_term: NDArray[np.float64],
    tolerance: float,
) -> NDArray[np.float64]:
    """Minimise sum_i loss(y_i w.x_i) + lambda/2 |w|^2 + b.w over w.

    `signs` holds the y_i (1 or -1), `regularisation` is lambda > 0, `linear_term` is b.
    The L2 norm of the gradient at the result, rounding included, is at most
    `tolerance`, so that the exact minimiser is within `tolerance` / lambda. Raises
    RuntimeError if rounding prevents that.

    Newton's method with a line search by halving. For the Huber hinge it is semismooth:
    the pieces of the margins settle, and the last step is exact.

    Rounding, with u = 2^-53, d weights and n rows of norm at most 1: a margin is right
    to (d + 2) u |w|, its slope to c times that and u (8 + 8 c (1 + |w|)), where c is
    the curvature. A sum of n such terms, added up as a tree of depth k by m = 128 at a
    time, is right to (k m + 2) n u. For the other terms it is (d + 16) u (lambda |w| +
    |b|), and the same again for `b`, as the drawn `b` is rounded. The sum of these
    bounds is added to the computed norm.
    """
    weights = np.zeros(X.shape[1])
    margins = np.zeros(len(X))

    def objective(
        weights: NDArray[np.float64], margins: NDArray[np.float64]
    ) -> np.float64:
        return (
            loss.values(margins).sum()
            + regularisation / 2 * weights @ weights
            + linear_term @ weights
        )

    value = objective(weights, margins)
    for _ in range(_MOST_STEPS):
        slopes, curvatures = loss.derivatives(margins)
        gradient = _weighted_sum(X, signs * slopes)
        gradient += regularisation * weights + linear_term
        rounding = _rounding(X.shape, loss, weights, regularisation, linear_term)
        if np.linalg.norm(gradient) + rounding <= tolerance:
            return weights
        hessian = _weighted_gram(X, curvatures)
        hessian[np.diag_indices_from(hessian)] += regularisation
        try:
            step = -cho_solve(cho_factor(hessian, overwrite_a=True), gradient)
        except LinAlgError:  # dependent columns, hardly regularised
            break
        margins_step = signs * (X @ step)
        # Near the minimum, decreases are smaller than rounding.
        slack = 1e-12 * abs(value)
        size = 1.0
        for _ in range(_MAX_HALVINGS):
            ahead = objective(weights + size * step, margins + size * margins_step)
            if ahead <= value + _SUFFICIENT * size * (gradient @ step) + slack:
                break
            size /= 2
        weights = weights + size * step
        margins = signs * (X @ weights)
        value = objective(weights, margins)
    raise RuntimeError(
        "The solver did not reach the minimum, on which the guarantee rests, because "
        "of rounding: nothing was released, but the cost is spent. This error depends "
        "on private rows, so do not publish it; lower C, or raise epsilon."
    )


def _weighted_sum(
    X: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute X^T weights, added up as a tree."""
    n_full = len(X) // _FAN_IN * _FAN_IN
    shape = -1, 1, _FAN_IN
    sums = weights[:n_full].reshape(shape) @ X[:n_full].reshape(-1, _FAN_IN, X.shape[1])
    sums = np.concatenate([sums[:, 0], (weights[n_full:] @ X[n_full:])[np.newaxis]])
    while len(sums) > 1:
        starts = np.arange(0, len(sums), _FAN_IN)
        sums = np.add.reduceat(sums, starts, axis=0)
    return sums[0]


def _rounding(
    shape: tuple[int, ...],
    loss: MarginLoss,
    weights: NDArray[np.float64],
    regularisation: float,
    linear_term: NDArray[np.float64],
) -> float:
    """Bound the distance of the computed gradient from the exact one."""
    n_rows, n_weights = shape
    norm = np.linalg.norm(weights)
    depth = 1
    while _FAN_IN**depth < n_rows + _FAN_IN:
        depth += 1
    of_slope = 8 + loss.curvature * (8 + (n_weights + 10) * norm)
    of_sum = depth * _FAN_IN + 2
    others = regularisation * norm + 2 * np.linalg.norm(linear_term)
    total = n_rows * (of_slope + of_sum) + (n_weights + 16) * others
    return float(_UNIT_ROUNDOFF * total)


def _weighted_gram(
    X: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute X^T diag(weights) X from the rows with a nonzero weight."""
    rows = np.flatnonzero(weights)
    gram = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        part = X[block] * np.sqrt(weights[block])[:, np.newaxis]
        gram += part.T @ part
    return gram

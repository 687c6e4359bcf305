"""Minimisers of regularised convex losses, to a gradient that is next to zero."""

from dataclasses import dataclass

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
# What a line search asks for: so much of the decrease that the slope promises.
_SUFFICIENT = 1e-4
_MAX_HALVINGS = 60
# Newton's method takes a few dozen steps on the hardest rows that tests know. Whether
# it stops depends on private rows, so that this is no parameter.
_MOST_STEPS = 1000


class MarginLoss:
    """A convex loss of the margin y w.x that never rises, with slopes from -1 to 0.

    Both is what the proofs of privacy take.
    """

    @property
    def curvature(self) -> float:
        """Largest second derivative.

        Returns
        -------
        curvature : float
            For rows of L2 norm at most 1.
        """
        raise NotImplementedError

    def values(self, margins: NDArray) -> NDArray:
        """Compute the loss.

        Parameters
        ----------
        margins : ndarray of float, any shape
            Margins.

        Returns
        -------
        values : ndarray of float, of the same shape
            Not negative.
        """
        raise NotImplementedError

    def derivatives(self, margins: NDArray) -> tuple[NDArray, NDArray]:
        """Compute the first and the second derivative.

        Parameters
        ----------
        margins : ndarray of float, any shape
            Margins.

        Returns
        -------
        slopes, curvatures : ndarray of float, of the same shape
            Where the slope has a kink, the second derivative of either side.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class LogisticLoss(MarginLoss):
    """The loss ln(1 + e^-z) of a margin z."""

    curvature = 0.25

    def values(self, margins):
        """Compute the loss.

        Parameters
        ----------
        margins : ndarray of float, any shape
            Margins.

        Returns
        -------
        values : ndarray of float, of the same shape
            Not negative.
        """
        return np.logaddexp(0.0, -margins)

    def derivatives(self, margins):
        """Compute the first and the second derivative.

        Parameters
        ----------
        margins : ndarray of float, any shape
            Margins.

        Returns
        -------
        slopes, curvatures : ndarray of float, of the same shape
            Minus the probability of the other class, and its variance.
        """
        other = expit(-margins)
        return -other, other * expit(margins)


@dataclass(frozen=True)
class HuberHinge(MarginLoss):
    """The hinge loss max(0, 1 - z), with a quadratic piece for |1 - z| < h.

    Chaudhuri, Monteleoni, Sarwate (2011, Section 3.4).

    Parameters
    ----------
    half_width : float
        The h of that piece, (1 + h - z)^2 / (4 h).
    """

    half_width: float

    @property
    def curvature(self):
        """Largest second derivative.

        Returns
        -------
        curvature : float
            1 / (2 h).
        """
        return 1 / (2 * self.half_width)

    def _place(self, margins):
        """Tell where in the quadratic piece a margin lies, from 1 down to 0."""
        return (1 + self.half_width - margins) * self.curvature

    def values(self, margins):
        """Compute the loss.

        Parameters
        ----------
        margins : ndarray of float, any shape
            Margins.

        Returns
        -------
        values : ndarray of float, of the same shape
            Not negative.
        """
        place = self._place(margins)
        quadratic = self.half_width * np.maximum(place, 0) ** 2
        return np.where(place < 1, quadratic, 1 - margins)

    def derivatives(self, margins):
        """Compute the first and the second derivative.

        Parameters
        ----------
        margins : ndarray of float, any shape
            Margins.

        Returns
        -------
        slopes, curvatures : ndarray of float, of the same shape
            The second derivative is 0 or 1 / (2 h).
        """
        place = self._place(margins)
        is_quadratic = (place > 0) & (place < 1)
        return -np.clip(place, 0, 1), self.curvature * is_quadratic


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

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_weights)
        Rows.

    signs : ndarray of shape (n_rows,)
        The y_i, 1 or -1.

    loss : MarginLoss
        What is minimised.

    regularisation : float
        Lambda, positive.

    linear_term : ndarray of shape (n_weights,)
        The b.

    tolerance : float
        L2 norm that the gradient has at most, rounding included, so that the true
        minimiser lies within `tolerance` / `regularisation`.

    Returns
    -------
    weights : ndarray of shape (n_weights,)
        The minimiser, nearly.

    Raises
    ------
    RuntimeError
        If rounding keeps it from being reached.

    Notes
    -----
    Newton's method with a line search by halving. For the Huber hinge it is semismooth:
    the pieces that the margins lie in settle, and the last step is exact.

    Rounding, with u = 2^-53, d weights and n rows of norm at most 1: a margin is right
    to (d + 2) u |w|, its slope to c times that and u (8 + 8 c (1 + |w|)), where c is
    the curvature. A sum of n such terms, added up as a tree of depth k by m = 128 at a
    time, is right to (k m + 2) n u. For the other terms it is (d + 16) u (lambda |w| +
    |b|), and as much as for `b` again for how far the `b` that was drawn is from one
    that is not rounded. All of it is added to the norm that is computed.
    """
    weights = np.zeros(X.shape[1])
    margins = np.zeros(len(X))

    def objective(weights, margins):
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
        except LinAlgError:  # next to no regularisation of dependent columns
            break
        margins_step = signs * (X @ step)
        # Near the minimum, decreases drown in rounding.
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
        "Rounding kept the solver from the minimum, on which the guarantee rests, so "
        "that nothing was released, but the cost is spent. That this happened tells "
        "about the private rows: keep it to yourself. Lower C, or raise epsilon."
    )


def _weighted_sum(X, weights):
    """Return X^T weights, added up as a tree."""
    n_full = len(X) // _FAN_IN * _FAN_IN
    shape = -1, 1, _FAN_IN
    sums = weights[:n_full].reshape(shape) @ X[:n_full].reshape(-1, _FAN_IN, X.shape[1])
    sums = np.concatenate([sums[:, 0], (weights[n_full:] @ X[n_full:])[np.newaxis]])
    while len(sums) > 1:
        starts = np.arange(0, len(sums), _FAN_IN)
        sums = np.add.reduceat(sums, starts, axis=0)
    return sums[0]


def _rounding(shape, loss, weights, regularisation, linear_term):
    """Bound the distance of the computed gradient from the true one."""
    n_rows, n_weights = shape
    norm = np.linalg.norm(weights)
    depth = 1
    while _FAN_IN**depth < n_rows + _FAN_IN:
        depth += 1
    of_slope = 8 + loss.curvature * (8 + (n_weights + 10) * norm)
    of_sum = depth * _FAN_IN + 2
    others = regularisation * norm + 2 * np.linalg.norm(linear_term)
    return _UNIT_ROUNDOFF * (n_rows * (of_slope + of_sum) + (n_weights + 16) * others)


def _weighted_gram(X, weights):
    """Return X^T diag(weights) X, of the rows with a weight."""
    rows = np.flatnonzero(weights)
    gram = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        part = X[block] * np.sqrt(weights[block])[:, np.newaxis]
        gram += part.T @ part
    return gram

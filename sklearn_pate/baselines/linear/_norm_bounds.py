"""Bounds of rows in private linear training, and weights in units of the features."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._counted import counted

__all__ = ["Bounds", "read_feature_bounds"]

_SMALLEST_UNIT = 1e-200


@dataclass(frozen=True)
class Bounds:
    """Bounds that every row is brought within, alike in training and in prediction.

    With `clips`, features are clipped to [`low`, `low` + `width`] and scaled to [0, 1];
    without, `low` is 0 and `width` is 1. Then longer rows are scaled down to the L2
    norm `norm`. `constant` is the value of the column for the intercept, 0 for none.
    """

    low: NDArray[np.float64]
    width: NDArray[np.float64]
    clips: bool
    norm: float
    constant: float

    @property
    def _length(self) -> float:
        """Largest norm of a row with its constant, rounding included.

        With d features, the computed norm, and everything computed from it, is right to
        (d + 16) 2^-53.
        """
        rounding = (len(self.low) + 16) * 2.0**-52
        return math.hypot(self.norm, self.constant) * (1 + rounding)

    def can_be_undone(self) -> bool:
        """Check that weights in units of the features do not overflow."""
        return bool(np.all(self._length * self.width > _SMALLEST_UNIT))

    def scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring each row within the bounds, independently of the other rows.

        NaN counts as the middle of the bounds of its feature, as 0 without `clips`.
        Without `clips`, a row whose norm overflows becomes 0.
        """
        if self.clips:
            X = (np.clip(X, self.low, self.low + self.width) - self.low) / self.width
        # Infinity becomes the largest number, whose row has no finite norm either.
        X = np.nan_to_num(X, nan=0.5 if self.clips else 0.0)
        # In units of the bound, as the square of a small number may be rounded to 0.
        with np.errstate(over="ignore", divide="ignore"):
            shrink = np.minimum(1, 1 / np.linalg.norm(X / self.norm, axis=1))
        return X * shrink[:, np.newaxis]

    def rows(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute training rows: L2 norm at most 1, the constant column included."""
        rows = self.scaled(X)
        if self.constant:
            rows = np.column_stack([rows, np.full(len(X), self.constant)])
        rows /= self._length
        return rows

    def to_features(
        self, weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Convert weights of training rows to coefficients and intercepts.

        For rows within the bounds, ``X @ coef.T + intercept`` is
        ``rows(X) @ weights.T``; `low` contributes to the intercept.
        """
        n_features = len(self.low)
        coef = weights[:, :n_features] / (self._length * self.width)
        constant = weights[:, n_features:].sum(axis=1) * self.constant / self._length
        return coef, constant - coef @ self.low

    def scores(
        self,
        X: NDArray[np.float64],
        coef: NDArray[np.float64],
        intercept: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Compute ``rows(X) @ weights.T`` from coefficients and intercepts."""
        return self.scaled(X) @ (coef * self.width).T + (intercept + coef @ self.low)


def read_feature_bounds(
    feature_bounds: tuple[ArrayLike, ArrayLike] | None, n_features: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the low bound and the width of each feature, 0 and 1 without bounds."""
    if feature_bounds is None:
        return np.zeros(n_features), np.ones(n_features)
    try:
        low, high = (
            np.broadcast_to(np.asarray(bound, dtype=np.float64), n_features)
            for bound in feature_bounds
        )
    except (TypeError, ValueError):
        raise ValueError(
            f"feature_bounds={feature_bounds!r} must be a pair (low, high), each a "
            f"number or {counted(n_features, 'number')}, one per feature."
        ) from None
    if not (np.all(low < high) and np.all(np.isfinite(high - low))):
        raise ValueError(
            f"feature_bounds={feature_bounds!r} must be finite, with low below high "
            "for every feature."
        )
    return low, high - low

"""Rows within public bounds, and weights in units of the original features."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bounds", "read_feature_bounds"]

_SMALLEST_UNIT = 1e-200


@dataclass(frozen=True)
class Bounds:
    """What every row is brought within, alike in training and in prediction.

    Parameters
    ----------
    low, width : ndarray of shape (n_features,)
        Features are scaled from [low, low + width] to [0, 1].

    clips : bool
        Whether features beyond are clipped; without, `low` is 0 and `width` is 1.

    norm : float
        L2 norm that longer rows are scaled down to, afterwards.

    constant : float
        Value of the column for the intercept; 0 for none.
    """

    low: NDArray[np.float64]
    width: NDArray[np.float64]
    clips: bool
    norm: float
    constant: float

    @property
    def _length(self):
        """Longest that a row with its constant can be, rounding included.

        Of d features, the norm that is computed, and all that follows, is right to
        (d + 16) 2^-53.
        """
        rounding = (len(self.low) + 16) * 2.0**-52
        return math.hypot(self.norm, self.constant) * (1 + rounding)

    def can_be_undone(self) -> bool:
        """Tell whether weights can be expressed in units of the features.

        Returns
        -------
        can_be : bool
            Not if the bounds are so small that this would overflow.
        """
        return bool(np.all(self._length * self.width > _SMALLEST_UNIT))

    def scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring rows within the bounds.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows. NaN stands for the middle of `low` and `low` + `width`, for 0 without
            `clips`.

        Returns
        -------
        scaled : ndarray of shape (n_rows, n_features)
            Finite, of L2 norm at most `norm`, each made of that row alone. Without
            `clips`, 0 for a row whose norm is beyond all numbers.
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
        """Make the rows that weights are trained on.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        rows : ndarray of shape (n_rows, n_weights)
            Of L2 norm at most 1, the constant column included.
        """
        rows = self.scaled(X)
        if self.constant:
            rows = np.column_stack([rows, np.full(len(X), self.constant)])
        rows /= self._length
        return rows

    def to_features(
        self, weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Express weights in units of the features.

        Parameters
        ----------
        weights : ndarray of shape (n_problems, n_weights)
            Of `rows`.

        Returns
        -------
        coef : ndarray of shape (n_problems, n_features)
            ``X @ coef.T + intercept`` is ``rows(X) @ weights.T``, for rows within the
            bounds.

        intercept : ndarray of shape (n_problems,)
            Not zero without a constant either, where `low` is not.
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
        """Apply weights to rows that may lie beyond the bounds.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            Rows.

        coef : ndarray of shape (n_problems, n_features)
            From `to_features`.

        intercept : ndarray of shape (n_problems,)
            From `to_features`.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_problems)
            ``rows(X) @ weights.T``.
        """
        return self.scaled(X) @ (coef * self.width).T + (intercept + coef @ self.low)


def read_feature_bounds(feature_bounds, n_features):
    """Read the public bounds of the features.

    Parameters
    ----------
    feature_bounds : (low, high) of float or array-like of shape (n_features,), or None
        The parameter.

    n_features : int
        Number of features.

    Returns
    -------
    low, width : ndarray of shape (n_features,)
        0 and 1 for None.

    Raises
    ------
    ValueError
        If these are no such bounds.
    """
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
            f"number or {n_features} numbers, one a feature."
        ) from None
    if not (np.all(low < high) and np.all(np.isfinite(high - low))):
        raise ValueError(
            f"feature_bounds={feature_bounds!r} must be finite, with low below high "
            "for every feature."
        )
    return low, high - low

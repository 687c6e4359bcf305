"""Conversion of privacy costs from add/remove to replace-one neighbours."""

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve

__all__ = ["add_remove_to_replace_one"]

# Values of p - 1 in the Notes.
_P_LESS_ONE = 2.0 ** (np.arange(-96, 97) / 8)


def add_remove_to_replace_one(curve: RdpCurve) -> RdpCurve:
    """Convert a cost for adding or removing one row to one for replacing a row.

    Parameters
    ----------
    curve : RdpCurve
        Cost for neighbours that add or remove one row, in either direction.

    Returns
    -------
    curve : RdpCurve
        Cost for neighbours that replace one row; the number of rows need not be public.

    Notes
    -----
    D_a(P || R) <= (a - 1/p)/(a - 1) D_{pa}(P || Q) + D_{(pa - 1)/(p - 1)}(Q || R) for
    every p > 1 (Mironov 2017, "Renyi differential privacy", Proposition 11, by
    Hoelder's inequality), here at the best of many p. For Gaussian noise it is exactly
    four times the cost of add/remove. Between the orders of `curve`, (a-1) D_a is
    interpolated, which is an upper bound, as it is convex in a; below the first order,
    D_a is at most its value there; beyond the last, no bound is known. A pure epsilon
    doubles, and no order costs more than randomised response with the doubled one.

    Examples
    --------
    >>> from sklearn_pate.accounting.composition import (
    ...     add_remove_to_replace_one,
    ...     sampled_gaussian_curve,
    ... )
    >>> add_remove = sampled_gaussian_curve(5.0, 1.0)
    >>> replace_one = add_remove_to_replace_one(add_remove)
    >>> round(replace_one.to_epsilon(1e-5) / add_remove.to_epsilon(1e-5), 2)
    2.13
    """
    alphas = curve.orders[:, None]
    p = 1 + _P_LESS_ONE
    first = (alphas - 1 / p) / (alphas - 1) * _divergence(curve, p * alphas)
    second = _divergence(curve, (p * alphas - 1) / (p - 1))
    values = (first + second).min(axis=1)
    pure_epsilon = 2 * curve.pure_epsilon
    if np.isfinite(pure_epsilon):
        values = np.minimum(values, pure_dp_curve(pure_epsilon, curve.orders).values)
    return RdpCurve(curve.orders, values, pure_epsilon)


def _divergence(curve: RdpCurve, orders: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound the divergence at any order."""
    log_moments = np.interp(
        orders,
        [1, *curve.orders],
        [0, *((curve.orders - 1) * curve.values)],
        right=np.inf,
    )
    return log_moments / (orders - 1)

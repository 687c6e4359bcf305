"""The cost of a change that is two steps: one row out, another one in."""

import numpy as np

from sklearn_pate.accounting._rdp import RdpCurve

__all__ = ["two_steps"]

# How the two steps share the order: p = 1 + t in the notes.
_SHARES = 2.0 ** (np.arange(-96, 97) / 8)


def two_steps(curve: RdpCurve) -> RdpCurve:
    """Bound the cost of replacing a row by that of adding and removing one.

    Parameters
    ----------
    curve : RdpCurve
        For neighbours that add or remove one row, in either direction.

    Returns
    -------
    curve : RdpCurve
        For neighbours that replace one row; the number of rows need not be public.

    Notes
    -----
    D_a(P || R) <= (a - 1/p)/(a - 1) D_{pa}(P || Q) + D_{(pa - 1)/(p - 1)}(Q || R) for
    every p > 1 (Mironov 2017, "Renyi differential privacy", Proposition 11, by
    Hoelder's inequality), here at the best of many p. For Gaussian noise that is four
    times the cost of one step, exactly. Between the orders of `curve`, (a-1) D_a is
    interpolated, which is an upper bound, as it is convex in a; beyond them nothing is
    known, and below the first D_a is at most what it is there. A pure epsilon doubles.

    Examples
    --------
    >>> from sklearn_pate.accounting.composition import (
    ...     sampled_gaussian_curve,
    ...     two_steps,
    ... )
    >>> one = sampled_gaussian_curve(5.0, 1.0)
    >>> round(two_steps(one).to_epsilon(1e-5) / one.to_epsilon(1e-5), 2)
    2.13
    """
    alphas = curve.orders[:, None]
    p = 1 + _SHARES
    first = (alphas - 1 / p) / (alphas - 1) * _divergence(curve, p * alphas)
    second = _divergence(curve, (p * alphas - 1) / (p - 1))
    values = (first + second).min(axis=1)
    return RdpCurve(curve.orders, values, 2 * curve.pure_epsilon)


def _divergence(curve, orders):
    """Bound the divergence at any order."""
    log_moments = np.interp(
        orders,
        [1, *curve.orders],
        [0, *((curve.orders - 1) * curve.values)],
        right=np.inf,
    )
    return log_moments / (orders - 1)

"""Renyi divergences of finite laws, without cancellation."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_moment", "raise_to_largest"]

# Below this, a * r is small enough for four terms of the Taylor series.
_SMALL = 1e-2
# Above this, Q or e^{a r} may leave float64 where their product does not, and the rest
# of g(r), a - 1, is nothing beside it.
_STEEP = 100


def log_moment(
    log_q: NDArray[np.float64], log_ratio: NDArray[np.float64], order: float
) -> NDArray[np.float64]:
    """Compute (a - 1) D_a(P || Q) of laws over the last axis.

    Parameters
    ----------
    log_q : ndarray of shape (..., n_outcomes)
        The ln Q of each outcome; -inf for one that cannot happen.

    log_ratio : ndarray of shape (..., n_outcomes)
        The ratio r = ln(P / Q) of each outcome, finite. It carries the precision of the
        result: take it from a formula of its own, not from two logarithms.

    order : float
        The Renyi order a, greater than 1.

    Returns
    -------
    moments : ndarray of shape (...)
        Not negative; infinite where it is out of reach.

    Notes
    -----
    Since sum P = sum Q = 1, (a - 1) D_a = log1p(sum Q g(r)) with
    g(r) = expm1(a r) - a expm1(r), and no term is negative: divergences far below the
    machine's epsilon keep their digits. Near 0,
    g(r) = a (a - 1)/2 r^2 (1 + (a + 1) r/3 + (a^2 + a + 1) r^2/12 + ...).
    """
    return _Pairs(log_q, log_ratio).log_moment(slice(None), order)


class _Pairs:
    """Pairs of laws, with what does not depend on the order."""

    def __init__(self, log_q, log_ratio):
        self._log_q = log_q
        self._log_ratio = log_ratio
        self._q = np.exp(log_q)
        with np.errstate(over="ignore"):
            self._ratio_less_one = np.expm1(log_ratio)

    def log_moment(self, some, order):
        """Return (a - 1) D_a of some of the pairs."""
        log_ratio = self._log_ratio[some]
        scaled = order * log_ratio
        with np.errstate(over="ignore", invalid="ignore"):
            excess = np.expm1(scaled) - order * self._ratio_less_one[some]
            small = np.abs(scaled) < _SMALL
            if small.any():
                excess[small] = _series(log_ratio[small], order)
            steep = scaled > _STEEP
            if steep.any():
                log_q = self._log_q[some]
                terms = self._q[some] * excess
                terms[steep] = np.exp(log_q[steep] + scaled[steep])
                terms[steep] -= order * np.exp(log_q[steep] + log_ratio[steep])
                moments = np.log1p(np.sum(terms, axis=-1))
            else:
                moments = np.log1p(np.einsum("...i,...i", self._q[some], excess))
            large = ~np.isfinite(moments)
            if large.any():
                tilted = self._log_q[some][large] + scaled[large]
                largest = tilted.max(axis=-1)
                total = np.exp(tilted - largest[..., np.newaxis]).sum(axis=-1)
                moments[large] = largest + np.log(total)
        # What cannot be computed in float64 must not pass for small.
        return np.maximum(np.where(np.isnan(moments), np.inf, moments), 0)


def _series(r, a):
    tail = 1 + r * (
        (a + 1) / 3 + r * ((a * a + a + 1) / 12 + r * (a + 1) * (a * a + 1) / 60)
    )
    return a * (a - 1) / 2 * r * r * tail


def raise_to_largest(
    costs: NDArray[np.float64],
    row: NDArray[np.intp],
    log_q: NDArray[np.float64],
    log_ratio: NDArray[np.float64],
    orders: NDArray[np.float64],
    *,
    stride: int,
) -> None:
    """Raise each row of costs to the largest divergence of its pairs of laws.

    Parameters
    ----------
    costs : ndarray of shape (n_rows, n_orders)
        Changed in place.

    row : ndarray of int of shape (n_pairs,)
        The row that each pair of laws belongs to.

    log_q : ndarray of shape (n_pairs, n_outcomes)
        As for `log_moment`.

    log_ratio : ndarray of shape (n_pairs, n_outcomes)
        As for `log_moment`.

    orders : ndarray of shape (n_orders,)
        Renyi orders, increasing.

    stride : int
        All pairs are computed at every `stride`-th order. Between two such orders,
        (a - 1) D_a is convex in a and so lies below its chord: pairs whose chord lies
        below a value that is reached are left out, which changes nothing.
    """
    pairs = _Pairs(log_q, log_ratio)

    def raise_at(i, some):
        moments = pairs.log_moment(some, orders[i])
        divergences = moments / (orders[i] - 1)
        np.maximum.at(costs[:, i], row[some], divergences)
        return moments, divergences == costs[row[some], i]

    first, everything = 0, slice(None)
    start, leads = raise_at(first, everything)
    for last in sorted({*range(stride, orders.size, stride), orders.size - 1} - {0}):
        end, leads_at_end = raise_at(last, everything)
        leaders = np.flatnonzero(leads | leads_at_end)
        for i in range(first + 1, last):
            raise_at(i, leaders)
            share = (orders[i] - orders[first]) / (orders[last] - orders[first])
            chord = (1 - share) * start + share * end
            chord[leaders] = 0  # they are done
            # The margin is for rounding.
            reached = (orders[i] - 1) * costs[row, i] * (1 - 1e-12)
            raise_at(i, np.flatnonzero(chord > reached))
        first, start, leads = last, end, leads_at_end

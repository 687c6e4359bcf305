"""Renyi divergences of finite laws, without cancellation."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_moment", "raise_to_largest"]

_Array = NDArray[np.float64]
# Below this, a * r is small enough for four terms of the Taylor series.
_SMALL = 1e-2
# Above this, Q or e^{a r} may leave the range of float64 where their product does not,
# and the remaining term of g(r), a - 1, is negligible.
_STEEP = 100


def log_moment(
    log_q: NDArray[np.float64], log_ratio: NDArray[np.float64], order: float
) -> NDArray[np.float64]:
    """Compute (a - 1) D_a(P || Q) of laws over the last axis.

    Parameters
    ----------
    log_q : ndarray of shape (..., n_outcomes)
        Logarithm of Q for each outcome; -inf for an impossible one.

    log_ratio : ndarray of shape (..., n_outcomes)
        Log-ratio r = ln(P / Q) of each outcome, finite. The precision of the result is
        that of r: compute r directly, not as a difference of two logarithms.

    order : float
        Renyi order a, greater than 1.

    Returns
    -------
    moments : ndarray of shape (...)
        Not negative; infinite where float64 cannot represent them.

    Notes
    -----
    Since sum P = sum Q = 1, (a - 1) D_a = log1p(sum Q g(r)) with
    g(r) = expm1(a r) - a expm1(r), and no term is negative: divergences far below the
    machine's epsilon keep their digits. Near 0,
    g(r) = a (a - 1)/2 r^2 (1 + (a + 1) r/3 + (a^2 + a + 1) r^2/12 + ...).
    """
    return _Pairs(log_q, log_ratio).log_moment(slice(None), order)


class _Pairs:
    """Pairs of laws, with all quantities that do not depend on the order."""

    def __init__(self, log_q: _Array, log_ratio: _Array) -> None:
        self._log_q = log_q
        self._log_ratio = log_ratio
        self._q = np.exp(log_q)
        with np.errstate(over="ignore"):
            self._ratio_less_one = np.expm1(log_ratio)

    def log_moment(self, some: slice | NDArray[np.intp], order: float) -> _Array:
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
        # A value that cannot be computed in float64 must not count as small.
        return np.maximum(np.where(np.isnan(moments), np.inf, moments), 0)


def _series(r: _Array, a: float) -> _Array:
    """Return the Taylor series of g(r) near 0."""
    tail = 1 + r * (
        (a + 1) / 3 + r * ((a * a + a + 1) / 12 + r * (a + 1) * (a * a + 1) / 60)
    )
    return a * (a - 1) / 2 * r * r * tail


def raise_to_largest(
    costs: _Array,
    row: NDArray[np.intp],
    log_q: _Array,
    log_ratio: _Array,
    orders: _Array,
    *,
    stride: int,
) -> None:
    """Raise rows of costs, in place, to the largest divergence of their pairs of laws.

    `costs` has shape (n_rows, n_orders); `row` is the row of each pair, and `log_q` and
    `log_ratio`, of shape (n_pairs, n_outcomes), are as for `log_moment`; `orders`
    increase.

    All pairs are computed at every `stride`-th order. Between two such orders, (a - 1)
    D_a is convex in a and so lies below its chord: pairs with a chord below a value
    that is reached are left out, which does not change the result.
    """
    pairs = _Pairs(log_q, log_ratio)

    def raise_at(
        i: int, some: slice | NDArray[np.intp]
    ) -> tuple[_Array, NDArray[np.bool_]]:
        moments = pairs.log_moment(some, orders[i])
        divergences = moments / (orders[i] - 1)
        np.maximum.at(costs[:, i], row[some], divergences)
        return moments, divergences == costs[row[some], i]

    first, all_pairs = 0, slice(None)
    start, leads = raise_at(first, all_pairs)
    for last in sorted({*range(stride, orders.size, stride), orders.size - 1} - {0}):
        end, leads_at_end = raise_at(last, all_pairs)
        leaders = np.flatnonzero(leads | leads_at_end)
        for i in range(first + 1, last):
            raise_at(i, leaders)
            share = (orders[i] - orders[first]) / (orders[last] - orders[first])
            chord = (1 - share) * start + share * end
            chord[leaders] = 0  # already computed
            # The margin is for rounding.
            reached = (orders[i] - 1) * costs[row, i] * (1 - 1e-12)
            raise_at(i, np.flatnonzero(chord > reached))
        first, start, leads = last, end, leads_at_end

"""Privacy profiles of Renyi curves and of Gaussian noise."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._gdp import gdp_delta, gdp_epsilon
from sklearn_pate.accounting._profile import (
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    PrivacyProfile,
    lower_hull,
)
from sklearn_pate.accounting._rdp import RdpCurve

__all__ = ["curve_profile", "gaussian_profile"]

_Array = NDArray[np.float64]

# Relative margin for rounding.
_ROUNDING = 1e-9
# Tangent points of the conversion of a Renyi curve, see `curve_profile`: (a - 1)(ln w -
# r) and (a - 1) ln v.
_LOG_DELTAS = 28.0 * np.linspace(0.0, 1.0, 97) ** 2
_LOWER_TANGENTS = np.append(-np.inf, -(2.0 ** np.arange(3.0, -6.5, -0.75)))
_N_CELLS = 8000


def curve_profile(curve: RdpCurve) -> PrivacyProfile:
    """Convert a Renyi curve to a profile, as tightly as single orders allow.

    For L = P/Q, the divergence r of order a gives E_Q L^a <= e^{(a-1) r}, and E_Q L =
    1. The function f(x) = c x^a - c a v^{a-1} x + c (a-1) v^a is 0 at x = v and touches
    x - t at x = w if c = 1 / (a (w^{a-1} - v^{a-1})) and t = c (a-1) (w^a - v^a). It is
    convex, so that f(x) >= max(0, x - t), and delta = E_Q max(0, L - t) is at most
    E_Q f(L) <= c (e^{(a-1) r} - a v^{a-1} + (a-1) v^a). With v = 0 that is Canonne,
    Kamath, Steinke (2020), Proposition 12; the best v < 1 is optimal for one order
    (Asoodeh, Liao, Calmon, Kosut, Sankar 2021, "Three variants of differential privacy:
    lossless conversion and applications").
    """
    return _converted(
        curve.orders.tobytes(), curve.values.tobytes(), curve.pure_epsilon
    )


@lru_cache(maxsize=256)
def _converted(orders: bytes, values: bytes, pure_epsilon: float) -> PrivacyProfile:
    """Convert a Renyi curve, cached."""
    known = np.isfinite(np.frombuffer(values))
    a = np.frombuffer(orders)[known][:, np.newaxis, np.newaxis]
    r = np.frombuffer(values)[known][:, np.newaxis, np.newaxis]
    log_v = _LOWER_TANGENTS / (a - 1)
    # c e^{(a-1) r} from 1 down to the smallest delta.
    log_w = r + _LOG_DELTAS[:, np.newaxis] / (a - 1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap = log_v - log_w
        slope = -a * np.expm1((a - 1) * gap)
        log_t = log_w + np.log((a - 1) * -np.expm1(a * gap) / slope)
        # e^{-(a-1) r} (a v^{a-1} - (a-1) v^a), without cancellation at large orders.
        mean = np.exp((a - 1) * (log_v - r)) * (1 - (a - 1) * np.expm1(log_v))
        deltas = (1 - mean + _ROUNDING * 1e-6) * np.exp(-(a - 1) * (log_w - r)) / slope
    used = (gap < 0) & (log_t >= 0) & (log_t <= LARGEST_EPSILON) & (deltas < 1)
    epsilons, deltas = _best_of_cells(
        log_t[used] + _ROUNDING, deltas[used] * (1 + _ROUNDING)
    )
    if pure_epsilon <= LARGEST_EPSILON:
        epsilons = np.append(epsilons, pure_epsilon)
        deltas = np.append(deltas, 0.0)
    return lower_hull(epsilons * (1 + _ROUNDING), deltas)


def gaussian_profile(mu: float) -> PrivacyProfile:
    """Return the exact profile of a test of N(0, 1) against N(mu, 1), rounded up."""
    top = gdp_epsilon(mu, SMALLEST_DELTA)
    if top > LARGEST_EPSILON:
        return PrivacyProfile([0.0], [1.0])
    if top == 0:
        return PrivacyProfile([0.0], [SMALLEST_DELTA if mu > 0 else 0.0])
    epsilons = np.linspace(0.0, top, 400)
    deltas = np.array([gdp_delta(epsilon, mu) for epsilon in epsilons])
    return lower_hull(epsilons * (1 + _ROUNDING) + _ROUNDING, deltas * (1 + _ROUNDING))


def _best_of_cells(epsilons: _Array, deltas: _Array) -> tuple[_Array, _Array]:
    """Return the pair with the smallest delta of each of many cells of epsilon."""
    if epsilons.size == 0:
        return epsilons, deltas
    order = np.lexsort((deltas, _cells(epsilons)))
    cells = _cells(epsilons)[order]
    best = order[np.append(True, cells[1:] > cells[:-1])]
    return epsilons[best], deltas[best]


def _cells(epsilons: _Array) -> NDArray[np.intp]:
    """Return the cell of each epsilon; all have one width on a logarithmic scale."""
    return np.floor(np.log(np.maximum(epsilons, 1e-9)) * (_N_CELLS / 27)).astype(int)

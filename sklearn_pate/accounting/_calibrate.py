"""Noise for a target epsilon, and number of queries for a privacy budget."""

from bisect import bisect_left
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from sklearn_pate.accounting._rdp import (
    DEFAULT_ORDERS,
    LARGEST_DELTA,
    RdpCurve,
    check_delta,
)
from sklearn_pate.accounting._value_checks import is_positive
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user

#: Largest scale of noise that can be drawn, in votes.
LARGEST_SCALE = 2**20
# Relative precision of a noise scale, which is rounded towards more noise, and of an
# exact epsilon.
_RELATIVE_TOLERANCE, _EXACT_TOLERANCE = 5e-5, 2e-4
# Change of the logarithm of epsilon for that of the scale, near epsilon = 1.
_SLOPE = -1.1
# Most steps of a search for a scale.
_MOST_STEPS = 30
_LARGEST_N_QUERIES = 2**40
# Odds of exp(20), five hundred million, are no privacy.
_MOST_EPSILON = 20


def six_digits(value: float, rounding: Callable[[float], float]) -> float:
    """Round to six significant digits, so that a statement can print them all.

    `rounding` is ``np.ceil`` or ``np.floor``, whichever means more noise.
    """
    shift = 10.0 ** (5 - int(np.floor(np.log10(value))))
    return float(rounding(value * shift) / shift)


def check_epsilon(epsilon: float) -> float:
    """Return `epsilon` as a float, or raise if it is not positive and finite."""
    if not is_positive(epsilon):
        raise ValueError(
            f"epsilon={epsilon!r} must be a positive, finite number; typical values "
            "lie between 0.1 and 10."
        )
    return float(epsilon)


def check_epsilon_is_small(name: str, epsilon: float) -> None:
    """Raise for an invalid epsilon, and warn of an epsilon that protects nobody."""
    if check_epsilon(epsilon) > _MOST_EPSILON:
        warn_user(
            f"{name}={epsilon!r} is above {_MOST_EPSILON}, which protects almost "
            "nobody. Typical values lie between 0.1 and 10.",
            PrivacyLeakWarning,
        )


def check_delta_is_small(delta: float, n_units: int, units: str) -> None:
    """Warn of a delta of one over the number of units or more."""
    if delta >= 1 / n_units:
        warn_user(
            f"delta={delta!r} is not below 1 / n_{units} = 1 / {n_units}: such a "
            f"guarantee would allow the data of one of the {units} to be published. "
            "Choose a smaller delta.",
            PrivacyLeakWarning,
        )


def calibrate_noise(
    curve_at_scale: Callable[..., RdpCurve],
    *,
    epsilon: float,
    delta: float,
    rough_curve_at_scale: Callable[..., RdpCurve] | None = None,
) -> float:
    """Find the smallest noise scale whose guarantee is within (epsilon, delta).

    The scale may be published if `curve_at_scale` returns worst cases.

    Parameters
    ----------
    curve_at_scale : callable
        ``curve_at_scale(scale, orders)`` returns the worst-case
        :class:`~sklearn_pate.accounting.RdpCurve` of the whole release at this noise
        scale, in votes. A curve that depends on votes voids the guarantee.

    epsilon : float
        Target epsilon, positive.

    delta : float
        Delta of the (epsilon, delta) guarantee, in (0, 0.1), well below one over the
        number of rows.

    rough_curve_at_scale : callable, default=None
        A faster approximation of `curve_at_scale`, to start the search.

    Returns
    -------
    scale : float
        The smallest scale with
        ``curve_at_scale(scale, orders).to_epsilon(delta) <= epsilon``, to a relative
        precision of 1/5000 and six significant digits. More noise must never have a
        larger cost.

    Raises
    ------
    ValueError
        If `epsilon` or `delta` is out of range, or no scale up to 2^20 votes is enough.

    Notes
    -----
    Epsilon follows from the curve by Canonne, Kamath, Steinke (2020), Proposition 12,
    at a few default orders around the order with the smallest epsilon. Fewer orders
    never give a smaller epsilon. The scale is found by Brent's method and rounded up.

    Examples
    --------
    A hundred noisy histograms of votes on ten classes:

    >>> from sklearn_pate.accounting import calibrate_noise
    >>> from sklearn_pate.mechanisms import NoisyHistogram
    >>> def hundred(sigma, orders):
    ...     return NoisyHistogram(sigma).cost(100, n_classes=10, orders=orders).curve
    >>> sigma = calibrate_noise(hundred, epsilon=1.0, delta=1e-5)
    >>> round(sigma, 1)
    57.2
    >>> spent = NoisyHistogram(sigma).cost(100, n_classes=10).curve
    >>> 0.999 < spent.to_epsilon(1e-5) <= 1
    True
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta, LARGEST_DELTA)
    rough = rough_curve_at_scale or curve_at_scale

    def excess(
        curve_at: Callable[..., RdpCurve], orders: NDArray[np.float64], log_scale: float
    ) -> float:
        curve = curve_at(np.exp(log_scale), orders)
        # The last digits of a cost may depend on which orders are computed together.
        return curve.quiet_epsilon(delta) - epsilon * (1 - 1e-6)

    unreachable = ValueError(
        f"epsilon={epsilon!r} cannot be reached with delta={delta!r} by noise of up to "
        f"{LARGEST_SCALE} votes; raise epsilon or delta, or use fewer queries."
    )
    near = _root(partial(excess, rough, DEFAULT_ORDERS), 0.0, np.log(4), 0.01)
    if near is None:
        raise unreachable
    # A guarantee from a few orders is valid: these are the ones around the best.
    best = rough(np.exp(near), DEFAULT_ORDERS).best_order(delta)
    orders = DEFAULT_ORDERS[np.abs(np.log((DEFAULT_ORDERS - 1) / (best - 1))) < 0.25]
    exact = partial(excess, curve_at_scale, orders)
    log_scale = _root(exact, near, 0.02, _RELATIVE_TOLERANCE)
    while log_scale is not None:
        scale = six_digits(np.exp(log_scale), np.ceil)  # more noise
        if exact(np.log(scale)) <= 0:
            return scale
        log_scale += 2 * _RELATIVE_TOLERANCE
        if scale > LARGEST_SCALE:
            break
    raise unreachable


def least_noise(
    epsilon_at_scale: Callable[[float], float],
    *,
    epsilon: float,
    start: float,
    rough_epsilon_at_scale: Callable[[float], float] | None = None,
) -> float | None:
    """Find the smallest noise scale for epsilon, None if no allowed scale is enough.

    Epsilon of the result is smaller by at most one part in 5000. The scale has six
    significant digits. The search begins at `start`, with a faster approximation if
    there is one.
    """
    scale, slope = six_digits(start, np.ceil), _SLOPE
    for at in (rough_epsilon_at_scale, epsilon_at_scale):
        if at is None:
            continue
        too_small, found, last = 0.0, None, None
        for _ in range(_MOST_STEPS):
            # Nearly linear in the logarithm of the scale; constant where epsilon is 0.
            value = float(np.log(np.clip(at(scale) / epsilon, 0.1, 10)))
            if last is not None:
                slope = min((value - last[1]) / np.log(scale / last[0]), -0.5)
            last = scale, value
            if value > 0:
                too_small = scale
            else:
                found = scale
                if value >= -_EXACT_TOLERANCE:
                    break
            # A secant step that aims at the middle of the tolerance, or a bisection.
            scale *= np.exp(-(value + _EXACT_TOLERANCE / 2) / slope)
            if found is not None and not too_small < scale < found:
                scale = np.sqrt(max(too_small, found / 16) * found)
            scale = min(six_digits(scale, np.ceil), LARGEST_SCALE)
            if scale in (too_small, found):
                break
        if found is None:
            return None
        scale = found
    return scale


def _root(
    function: Callable[[float], float], start: float, step: float, tolerance: float
) -> float | None:
    """Solve for the zero of a decreasing function; None if above all scales."""
    limit = np.log(LARGEST_SCALE)
    low = high = min(start, limit)
    while function(high) > 0:
        if high >= limit:
            return None
        low, high, step = high, min(high + step, limit), 2 * step
    while low == high or function(low) <= 0:
        if low < -limit:
            return low
        low, high, step = low - step, low, 2 * step
    return brentq(function, low, high, xtol=tolerance)


def calibrate_n_queries(
    curve_at_n_queries: Callable[[int], RdpCurve], *, epsilon: float, delta: float
) -> int:
    """Find the largest number of queries whose guarantee is within (epsilon, delta).

    The number may be published if `curve_at_n_queries` returns worst cases.

    Parameters
    ----------
    curve_at_n_queries : callable
        ``curve_at_n_queries(n_queries)`` returns the worst-case
        :class:`~sklearn_pate.accounting.RdpCurve` of `n_queries` queries, such as
        ``lambda n: mechanism.cost(n, n_classes).curve``. More queries must not cost
        less. A curve that depends on votes voids the guarantee.

    epsilon : float
        Privacy budget, positive.

    delta : float
        Delta of the (epsilon, delta) guarantee, in (0, 0.1), well below one over the
        number of rows.

    Returns
    -------
    n_queries : int
        Largest number of queries, or 0 if one query exceeds the budget. The search ends
        above 2^40 queries.

    Raises
    ------
    ValueError
        If `epsilon` or `delta` is out of range.

    Notes
    -----
    Epsilon follows from the curve by Canonne, Kamath, Steinke (2020), Proposition 12.

    Examples
    --------
    >>> from sklearn_pate.accounting import calibrate_n_queries
    >>> from sklearn_pate.mechanisms import GNMax
    >>> mechanism = GNMax(sigma=40)
    >>> calibrate_n_queries(
    ...     lambda n: mechanism.cost(n, n_classes=2).curve, epsilon=1.0, delta=1e-5
    ... )
    76
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta, LARGEST_DELTA)

    def fits(n_queries: int) -> bool:
        return curve_at_n_queries(n_queries).quiet_epsilon(delta) <= epsilon

    high = 1
    while fits(high):
        high *= 2
        if high > _LARGEST_N_QUERIES:
            return high // 2
    return bisect_left(range(1, high), True, key=lambda n: not fits(n))

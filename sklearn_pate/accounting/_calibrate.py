"""Noise for a target epsilon, exact for Gaussian noise, and number of queries."""

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr

from sklearn_pate.accounting._rdp import (
    DEFAULT_ORDERS,
    LARGEST_DELTA,
    RdpCurve,
    check_delta,
)
from sklearn_pate.accounting._value_checks import check_positive, is_positive
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
# Variance spent on rounding a continuous Gaussian to a discrete one.
ROUNDING_VARIANCE = 2.25
# Logarithm of a delta that is 0 in floating point.
_LOG_OF_NOTHING = -1e300
# Error of ln Phi(x), relative to its size and that of epsilon, plus 1.
_ROUNDING = 2.0**-51
# A larger mu has an epsilon, about mu^2 / 2, that is useless and may overflow.
_LARGEST_MU = 1e100
# Epsilon is rounded up by this, which covers round-off and the rounding of more than a
# million counts to discrete noise.
_SAFETY = 1e-9


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


def gdp_mu(sigma: float, squared_distance: float = 2.0) -> float:
    """Compute mu of Gaussian differential privacy for discrete Gaussian noise.

    `sigma` is the scale of the noise on every count; `squared_distance` bounds the
    squared L2 distance between the counts of neighbouring data sets, and is 2 for one
    vote that moves. A release is a post-processing of one draw from N(0, 1) or N(mu,
    1), up to the error below; mu is `inf` if sigma is at most 1.5.

    mu = sqrt(squared_distance) / sqrt(sigma^2 - t^2) with t^2 = 2.25. With continuous
    noise it would be sqrt(squared_distance) / sigma (Dong, Roth, Su 2022, Theorem 2.7).

    For discrete noise, draw y from N(n, sigma^2 - t^2) and round it to the integer k
    with probability exp(-(k-y)^2 / 2t^2) / S(y), S(y) = sum_j exp(-(j-y)^2 / 2t^2). By
    Poisson summation S(y) = sqrt(2 pi) t (1 + 2 sum_{j>=1} e^{-2 pi^2 t^2 j^2} cos(2 pi
    j y)), within a factor 1 +- h of sqrt(2 pi) t, where h = 1.03e-19. Without S(y), the
    law of k would be proportional to the density of N(n, sigma^2) at k, the discrete
    Gaussian, whose own normaliser is within 1 +- h of 1 for the same reason. So the two
    laws differ pointwise by a factor e^{+-2.1h} per count. Only the counts that change
    need rounding: the others have one law under both data sets. If c of them change,
    every outcome's log-probability is off by at most 2.1 c h.
    """
    check_positive("sigma", sigma)
    variance = float(sigma) ** 2 - ROUNDING_VARIANCE
    return float(np.sqrt(squared_distance / variance)) if variance > 0 else np.inf


def gdp_delta(epsilon: float, mu: float) -> float:
    """Compute the smallest delta of mu-Gaussian differential privacy at an epsilon.

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle, Wang
    2018, Theorem 8; Dong, Roth, Su 2022, Corollary 2.13). Releases of several mu_i
    together are one test with mu^2 = sum of mu_i^2.
    """
    check_positive("mu", mu)
    return float(np.exp(log_gdp_delta(epsilon, mu)))


def gdp_epsilon(mu: float, delta: float) -> float:
    """Compute the smallest epsilon of mu-Gaussian differential privacy at a delta.

    Rounded up by one part in 10^9; `inf` for an infinite mu, or one above 1e100.
    """
    log_delta = np.log(check_delta(delta))
    if not mu <= _LARGEST_MU:
        return np.inf
    if mu <= 0 or log_gdp_delta(0.0, mu) <= log_delta:
        return 0.0
    high = mu
    while log_gdp_delta(high, mu) > log_delta:
        high *= 2
    epsilon = brentq(
        lambda epsilon: log_gdp_delta(epsilon, mu) - log_delta, 0.0, high, xtol=1e-13
    )
    return float(epsilon * (1 + _SAFETY) + _SAFETY)


def largest_gdp_mu(epsilon: float, delta: float) -> float:
    """Find the largest mu with ``gdp_epsilon(mu, delta) <= epsilon``, rounded down."""
    epsilon, delta = check_epsilon(epsilon), check_delta(delta, LARGEST_DELTA)
    high = 1.0
    while gdp_epsilon(high, delta) <= epsilon:
        high *= 2
    low = high
    while gdp_epsilon(low, delta) > epsilon:
        low /= 2
    mu = brentq(lambda mu: gdp_epsilon(mu, delta) - epsilon, low, high, xtol=1e-12)
    while gdp_epsilon(mu, delta) > epsilon:
        mu *= 1 - 1e-9
    return float(mu)


def log_gdp_delta(epsilon: Any, mu: float) -> Any:
    """Compute the logarithm of `gdp_delta`, also at an array of epsilons."""
    # Finite, so that differences are numbers.
    log_first = np.maximum(log_ndtr(mu / 2 - epsilon / mu), _LOG_OF_NOTHING)
    log_second = epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    # The second term is smaller, up to round-off, which is added to the difference.
    rounding = _ROUNDING * (1 + epsilon - log_first)
    less = -np.expm1(np.minimum(log_second - log_first, 0.0))
    return log_first + np.log(np.minimum(less + rounding, 1.0))

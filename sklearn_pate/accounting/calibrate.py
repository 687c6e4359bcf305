"""Noise for a target epsilon, and questions for a budget."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from sklearn_pate.accounting.curve import RdpCurve, check_delta

__all__ = ["calibrate_n_queries", "calibrate_noise"]

# A noise scale is found to this relative precision, on the safe side.
_RELATIVE_TOLERANCE = 1e-6
_LARGEST_SCALE = 1e12
_LARGEST_N_QUERIES = 2**40


def is_positive(value: Any) -> bool:
    """Tell whether a value is a positive, finite number, and no bool.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    positive : bool
        Whether it can be a scale, a threshold or an epsilon.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return bool(is_number and 0 < value < np.inf)


def six_digits(value: float, rounding: Callable[[float], float]) -> float:
    """Round to six significant digits, so that a statement can print them all.

    Parameters
    ----------
    value : float
        Positive.

    rounding : callable
        ``np.ceil`` or ``np.floor``, whichever means more noise.

    Returns
    -------
    value : float
        The rounded value.
    """
    shift = 10.0 ** (5 - int(np.floor(np.log10(value))))
    return float(rounding(value * shift) / shift)


def check_epsilon(epsilon: float) -> float:
    """Return `epsilon` as a float, or raise if it is not positive and finite.

    Parameters
    ----------
    epsilon : float
        The value to check.

    Returns
    -------
    epsilon : float
        The same value.
    """
    if not is_positive(epsilon):
        raise ValueError(
            f"epsilon={epsilon!r} must be a positive, finite number; typical values "
            "lie between 0.1 and 10."
        )
    return float(epsilon)


def calibrate_noise(
    curve_at_scale: Callable[[float], RdpCurve], *, epsilon: float, delta: float
) -> float:
    """Find the smallest noise scale whose guarantee is within (epsilon, delta).

    Parameters
    ----------
    curve_at_scale : callable
        ``curve_at_scale(scale)`` returns the :class:`RdpCurve` of everything that will
        be released with that noise scale, in votes. More noise must not cost more.

    epsilon : float
        The target, positive.

    delta : float
        In (0, 1).

    Returns
    -------
    scale : float
        At most one part in 50,000 above the smallest sufficient scale, and never
        below it: ``curve_at_scale(scale).to_epsilon(delta) <= epsilon``. It has six
        significant digits, so that a statement can print it in full.

    Raises
    ------
    ValueError
        If no scale up to 1e12 votes is enough.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)

    def enough(scale):
        return curve_at_scale(scale).quiet_epsilon(delta) <= epsilon

    high = 1.0
    while not enough(high):
        high *= 2
        if high > _LARGEST_SCALE:
            raise ValueError(
                f"epsilon={epsilon!r} cannot be reached with delta={delta!r} by any "
                "noise; raise epsilon or delta, or ask fewer questions."
            )
    low = high / 2
    while enough(low):
        low, high = low / 2, low
        if low < 1 / _LARGEST_SCALE:
            return high
    while high - low > _RELATIVE_TOLERANCE * high:
        middle = (low + high) / 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return six_digits(high, np.ceil)  # more noise is the safe side


def calibrate_n_queries(
    curve_at_n_queries: Callable[[int], RdpCurve], *, epsilon: float, delta: float
) -> int:
    """Find the largest number of questions whose guarantee is within (epsilon, delta).

    Parameters
    ----------
    curve_at_n_queries : callable
        ``curve_at_n_queries(n_queries)`` returns the :class:`RdpCurve` of that many
        questions, for instance
        ``lambda n: mechanism.account_curve(n, n_classes)``. More questions must not
        cost less.

    epsilon : float
        The budget, positive.

    delta : float
        In (0, 1).

    Returns
    -------
    n_queries : int
        0 if not even one question fits.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)

    def fits(n_queries):
        return curve_at_n_queries(n_queries).quiet_epsilon(delta) <= epsilon

    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
        if high > _LARGEST_N_QUERIES:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low

"""Data-independent worst cases in closed form. May be published."""

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve

__all__ = [
    "discrete_laplace_worst_case",
    "gaussian_worst_case",
    "gumbel_worst_case",
    "laplace_worst_case",
    "permute_and_flip_worst_case",
    "pure_dp_curve",
    "threshold_worst_case",
]


def gaussian_worst_case(sigma: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Classical worst case of one GNMax answer. May be published.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise added to every count, in votes; positive. More
        noise has a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Raises
    ------
    ValueError
        If `sigma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    r(a) = a / sigma^2: one vote moves, so that two counts change by 1 each, and the
    answer is a post-processing of the noisy histogram (Papernot et al. 2018,
    Proposition 8). It holds for discrete Gaussian noise too (Canonne, Kamath, Steinke
    2020, Proposition 5). :func:`~sklearn_pate.accounting.tight_gaussian_worst_case` is
    about two thirds of it.

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import gaussian_worst_case
    >>> round((100 * gaussian_worst_case(sigma=40)).to_epsilon(1e-5), 2)
    1.48
    """
    check_positive("sigma", sigma)
    orders = np.asarray(orders, dtype=np.float64)
    return RdpCurve(orders, orders / sigma**2)


def threshold_worst_case(sigma: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Classical worst case of a noisy count, or its check against a threshold.

    May be published.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise added to the count, over the sensitivity of the
        count; positive. More noise has a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Raises
    ------
    ValueError
        If `sigma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    r(a) = a / (2 sigma^2): the Gaussian mechanism, for instance on the maximum count,
    which one moved vote changes by at most 1 (Papernot et al. 2018, Section 4.2). It
    holds for discrete Gaussian noise too (Canonne, Kamath, Steinke 2020, Proposition
    5).

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import threshold_worst_case
    >>> round((640 * threshold_worst_case(sigma=150)).to_epsilon(1e-5), 2)
    0.66
    """
    check_positive("sigma", sigma)
    orders = np.asarray(orders, dtype=np.float64)
    return RdpCurve(orders, orders / (2 * sigma**2))


def pure_dp_curve(epsilon: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Tightest Renyi curve of a mechanism known to be epsilon-DP. May be published.

    Parameters
    ----------
    epsilon : float
        The pure guarantee, in nats; not negative. It must hold for all data.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Raises
    ------
    ValueError
        If `epsilon` is negative, or `orders` do not increase from above 1.

    Notes
    -----
    r(a) = ln[ (e^{a eps} + e^{(1-a) eps}) / (1 + e^eps) ] / (a - 1), attained by
    randomised response (Mironov 2017, Proposition 6 for the mechanism).

    Examples
    --------
    Curves of many releases compose to less than the sum of their epsilons, here 10:

    >>> from sklearn_pate.accounting.bounds import pure_dp_curve
    >>> hundred = 100 * pure_dp_curve(epsilon=0.1)
    >>> round(hundred.to_epsilon(1e-5), 2)
    4.62
    """
    if epsilon != 0:
        check_positive("epsilon", epsilon)
    orders = np.asarray(orders, dtype=np.float64)
    log_mgf = np.logaddexp(orders * epsilon, (1 - orders) * epsilon) - np.logaddexp(
        0, epsilon
    )
    # cosh((a - 1/2) x) / cosh(x / 2), less 1: without cancellation where both are near.
    near = np.where(orders * epsilon < 1, epsilon / 2, 0.0)
    rise = 2 * np.sinh(orders * near) * np.sinh((orders - 1) * near) / np.cosh(near)
    log_mgf = np.where(orders * epsilon < 1, np.log1p(rise), log_mgf)
    return RdpCurve(orders, log_mgf / (orders - 1), epsilon)


def laplace_worst_case(gamma: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Classical worst case of one LNMax answer with continuous noise.

    May be published. It does not cover :class:`~sklearn_pate.mechanisms.LNMax`, which
    draws whole numbers.

    Parameters
    ----------
    gamma : float
        Inverse scale of the Laplace noise added to every count, in 1 / votes; positive.
        A smaller value means more noise and a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Raises
    ------
    ValueError
        If `gamma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    The minimum of two bounds. The answer is a post-processing of two independent
    noisy counts, each shifted by 1, hence twice
    D_a(Lap(0, 1/g) || Lap(1, 1/g)) =
    ln{ a/(2a-1) e^{(a-1) g} + (a-1)/(2a-1) e^{-a g} } / (a - 1) (Mironov 2017,
    Proposition 6); and the answer is 2 gamma-DP (Papernot et al. 2017, Section 3.1).

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import laplace_worst_case
    >>> round((100 * laplace_worst_case(gamma=0.05)).to_epsilon(1e-5), 2)
    3.13
    """
    check_positive("gamma", gamma)
    orders = np.asarray(orders, dtype=np.float64)
    with np.errstate(divide="ignore"):
        one_shift = np.logaddexp(
            np.log(orders / (2 * orders - 1)) + (orders - 1) * gamma,
            np.log((orders - 1) / (2 * orders - 1)) - orders * gamma,
        )
    # The last term covers rounding.
    one_shift = np.maximum(one_shift, 0) + 8 * np.finfo(np.float64).eps
    pure = pure_dp_curve(2 * gamma, orders)
    values = np.minimum(2 * one_shift / (orders - 1), pure.values)
    return RdpCurve(orders, values, pure.pure_epsilon)


def discrete_laplace_worst_case(
    gamma: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Classical worst case of one LNMax answer with noise on whole votes.

    May be published.

    Parameters
    ----------
    gamma : float
        Inverse scale of the discrete Laplace noise added to every count, in 1 / votes;
        positive. A smaller value means more noise and a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Raises
    ------
    ValueError
        If `gamma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    As :func:`laplace_worst_case`, but the likelihood ratio of a whole number, shifted
    by 1, is e^gamma or e^-gamma and never between: D_a of one count equals that of
    randomised response, a factor of about 1 + gamma / 3 more than for continuous noise.
    The noise is from Canonne, Kamath, Steinke (2020), and
    :func:`~sklearn_pate.accounting.tight_laplace_worst_case` is smaller.

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import (
    ...     discrete_laplace_worst_case,
    ...     laplace_worst_case,
    ... )
    >>> whole = discrete_laplace_worst_case(gamma=0.3, orders=[2])
    >>> (whole.values / laplace_worst_case(gamma=0.3, orders=[2]).values).round(2)
    array([1.09])
    """
    check_positive("gamma", gamma)
    one_shift = pure_dp_curve(gamma, orders)
    pure = pure_dp_curve(2 * gamma, orders)
    values = np.minimum(2 * one_shift.values, pure.values)
    return RdpCurve(orders, values, pure.pure_epsilon)


def gumbel_worst_case(c: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Worst case of one GumbelMax answer. May be published.

    Parameters
    ----------
    c : float
        Inverse scale of the noise added to every count, in 1 / votes; positive. A
        smaller value means more noise and a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Raises
    ------
    ValueError
        If `c` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    One vote moves two counts by 1, so that ln P / P' lies in an interval
    [t - 2c, t] for some t in [0, 2c] (Durfee and Rogers 2019, bounded range). Of all
    such pairs, two outcomes are the worst (Dong, Durfee, Rogers 2020, Lemma 3.2):
    with e = 2c, (a - 1) r(a) = max over t of
    ln{ p e^{(a-1) t} + (1 - p) e^{(a-1)(t - e)} }, p = (e^e - e^t) / (e^e - 1).
    In s = e^t that is s^{a-1} (A - B s), largest at s = (a - 1) A / (a B). About
    a c^2 / 2, which the two-way tie attains.

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import gumbel_worst_case
    >>> round((100 * gumbel_worst_case(c=0.05)).to_epsilon(1e-5), 2)
    2.15
    """
    check_positive("c", c)
    orders = np.asarray(orders, dtype=np.float64)
    power, spread = orders - 1, -np.expm1(-2 * c)
    # Divided by e^{(a-1) e}: with s = e^{e} v, v in [e^{-e}, 1], and k = e^{-(a-1) e},
    # the sum is v^{a-1} [(1 - v) (1 - k) + (1 - e^{-e}) k] / (1 - e^{-e}).
    shrink = -np.expm1(-2 * c * power)
    slope = shrink
    level = shrink + spread * (1 - shrink)
    best = np.clip(power * level / (orders * slope), np.exp(-2 * c), 1)
    log_moment = (
        2 * c * power
        + power * np.log(best)
        + np.log(level - slope * best)
        - np.log(spread)
    )
    # The last term covers rounding.
    log_moment = np.maximum(log_moment, 0) + 8 * np.finfo(np.float64).eps
    return RdpCurve(orders, log_moment / power, 2 * c)


def permute_and_flip_worst_case(
    c: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Worst case of one PermuteAndFlip answer. May be published.

    Parameters
    ----------
    c : float
        Inverse scale of the noise added to every count, in 1 / votes; positive. A
        smaller value means more noise and a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Raises
    ------
    ValueError
        If `c` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    The answer is 2c-DP (McKenna and Sheldon 2020, with sensitivity 1 for each count),
    hence :func:`pure_dp_curve`. The bounded range of the exponential mechanism, which
    gives a quarter of this cost, does not hold here.

    Examples
    --------
    At the same c it costs more than :func:`gumbel_worst_case`, with fewer errors:

    >>> from sklearn_pate.accounting.bounds import permute_and_flip_worst_case
    >>> round((100 * permute_and_flip_worst_case(c=0.05)).to_epsilon(1e-5), 2)
    4.62
    """
    check_positive("c", c)
    return pure_dp_curve(2 * c, orders)

"""Worst cases in closed form, whatever the votes. May be published."""

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate.accounting.curve import DEFAULT_ORDERS, RdpCurve

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
    """Classical worst case of one GNMax answer.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise added to every count, in votes.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Notes
    -----
    r(a) = a / sigma^2: one vote moves, so that two counts change by 1 each, and the
    answer is a post-processing of the noisy histogram (Papernot et al. 2018,
    Proposition 8). It holds for discrete Gaussian noise too (Canonne, Kamath, Steinke
    2020, Proposition 5).
    """
    orders = np.asarray(orders, dtype=np.float64)
    return RdpCurve(orders, orders / sigma**2)


def threshold_worst_case(sigma: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Classical worst case of comparing the noisy maximum count with a threshold.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise added to the maximum count, in votes.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Notes
    -----
    r(a) = a / (2 sigma^2): the Gaussian mechanism on the maximum count, which one
    moved vote changes by at most 1 (Papernot et al. 2018, Section 4.2).
    """
    orders = np.asarray(orders, dtype=np.float64)
    return RdpCurve(orders, orders / (2 * sigma**2))


def pure_dp_curve(epsilon: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Tightest Renyi curve of a mechanism known to be epsilon-DP.

    Parameters
    ----------
    epsilon : float
        The pure guarantee, in nats.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Notes
    -----
    r(a) = ln[ (e^{a eps} + e^{(1-a) eps}) / (1 + e^eps) ] / (a - 1), attained by
    randomised response (Mironov 2017, Proposition 6 for the mechanism).
    """
    orders = np.asarray(orders, dtype=np.float64)
    log_mgf = np.logaddexp(orders * epsilon, (1 - orders) * epsilon) - np.logaddexp(
        0, epsilon
    )
    return RdpCurve(orders, np.maximum(log_mgf, 0) / (orders - 1))


def laplace_worst_case(gamma: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Classical worst case of one LNMax answer with continuous noise.

    Parameters
    ----------
    gamma : float
        Inverse scale of the Laplace noise added to every count, in 1 / votes.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Notes
    -----
    The minimum of two bounds. The answer is a post-processing of two independent
    noisy counts, each shifted by 1, hence twice
    D_a(Lap(0, 1/g) || Lap(1, 1/g)) =
    ln{ a/(2a-1) e^{(a-1) g} + (a-1)/(2a-1) e^{-a g} } / (a - 1) (Mironov 2017,
    Proposition 6); and the answer is 2 gamma-DP (Papernot et al. 2017, Section 3.1).
    """
    orders = np.asarray(orders, dtype=np.float64)
    with np.errstate(divide="ignore"):
        one_shift = np.logaddexp(
            np.log(orders / (2 * orders - 1)) + (orders - 1) * gamma,
            np.log((orders - 1) / (2 * orders - 1)) - orders * gamma,
        ) / (orders - 1)
    values = np.minimum(2 * one_shift, pure_dp_curve(2 * gamma, orders).values)
    return RdpCurve(orders, np.maximum(values, 0))


def discrete_laplace_worst_case(
    gamma: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Classical worst case of one LNMax answer with noise on whole votes.

    Parameters
    ----------
    gamma : float
        Inverse scale of the discrete Laplace noise added to every count, in 1 / votes.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Notes
    -----
    As :func:`laplace_worst_case`, but the likelihood ratio of a whole number, shifted
    by 1, is e^gamma or e^-gamma and never between: D_a of one count is that of
    randomised response, a factor of about 1 + gamma / 3 more than for continuous noise.
    """
    one_shift = pure_dp_curve(gamma, orders)
    values = np.minimum(2 * one_shift.values, pure_dp_curve(2 * gamma, orders).values)
    return RdpCurve(orders, values)


def gumbel_worst_case(c: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Worst case of one GumbelMax answer.

    Parameters
    ----------
    c : float
        Inverse scale of the noise added to every count, in 1 / votes.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Notes
    -----
    One vote moves two counts by 1, so that ln P / P' lies in an interval
    [t - 2c, t] for some t in [0, 2c] (Durfee and Rogers 2019, bounded range). Of all
    such pairs, two outcomes are the worst (Dong, Durfee, Rogers 2020, Lemma 3.2):
    with e = 2c, (a - 1) r(a) = max over t of
    ln{ p e^{(a-1) t} + (1 - p) e^{(a-1)(t - e)} }, p = (e^e - e^t) / (e^e - 1).
    In s = e^t that is s^{a-1} (A - B s), largest at s = (a - 1) A / (a B). About
    a c^2 / 2, which the two-way tie attains.
    """
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
    return RdpCurve(orders, log_moment / power)


def permute_and_flip_worst_case(
    c: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Worst case of one PermuteAndFlip answer.

    Parameters
    ----------
    c : float
        Inverse scale of the noise added to every count, in 1 / votes.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Notes
    -----
    The answer is 2c-DP (McKenna and Sheldon 2020, with sensitivity 1 for each count),
    hence :func:`pure_dp_curve`. The bounded range of the exponential mechanism, four
    times cheaper, does not hold here.
    """
    return pure_dp_curve(2 * c, orders)

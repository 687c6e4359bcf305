"""Privacy cost of Gaussian noise on a secret random sample of the rows."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve

__all__ = ["check_sampling_rate", "sampled_gaussian_curve"]

# Every integer up to 128, then some up to 4096: nodes of an interpolation that is an
# upper bound.
_INTEGER_ORDERS = np.unique(
    np.concatenate([np.arange(2, 129), np.round(2 ** np.arange(7, 12.01, 0.125))])
).astype(np.int64)
_LOG_FACTORIALS = gammaln(np.arange(_INTEGER_ORDERS[-1] + 1) + 1)
# Relative margin for rounding of the logarithms of factorials.
_ROUNDING = 1e-11


def check_sampling_rate(sampling_rate: float) -> float:
    """Return a sampling rate as a float, or raise if it is not in (0, 1]."""
    check_positive("sampling_rate", sampling_rate)
    if sampling_rate > 1:
        raise ValueError(
            f"sampling_rate={sampling_rate!r} is a probability; choose it in (0, 1]."
        )
    return float(sampling_rate)


def sampled_gaussian_curve(
    noise_multiplier: float, sampling_rate: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Compute the privacy cost of Gaussian noise on a fresh Poisson sample.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the L2 sensitivity to one row (or group)
        in the sample. Larger is more private.

    sampling_rate : float
        Probability in (0, 1] with which each row, independently, is in the sample. The
        sample must stay secret, and a new one must be drawn for every release. Smaller
        is more private.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent, for neighbours that add or remove one row. For replace-one,
        see :func:`~sklearn_pate.accounting.composition.add_remove_to_replace_one`.

    Notes
    -----
    At an integer order a, with z the noise multiplier and q the sampling rate,
    r(a) = 1/(a-1) ln sum_k C(a,k) (1-q)^{a-k} q^k exp((k^2 - k) / (2 z^2)) (Mironov,
    Talwar, Zhang 2019, "Renyi differential privacy of the sampled Gaussian mechanism",
    Section 3.3; by their Theorem 5, removing a row costs at most as much as adding
    one). The same sum is exact for discrete Gaussian noise on integers, as
    sum_x exp(-(x - k)^2 / (2 sigma^2)) is the same for all integers k, and the
    reflection that their theorem needs maps integers to integers.

    Between integers, (a-1) r(a) is at most its linear interpolation, as the logarithm
    of a moment is convex in the order; below 2, r(a) is at most r(2). Sampling never
    increases the cost, so that a / (2 z^2) is an upper bound too.

    Examples
    --------
    >>> from sklearn_pate.accounting.composition import sampled_gaussian_curve
    >>> curve = sampled_gaussian_curve(1.1, 0.01) * 1000
    >>> round(curve.to_epsilon(1e-5), 2)
    1.73
    """
    check_positive("noise_multiplier", noise_multiplier)
    rate = check_sampling_rate(sampling_rate)
    orders = np.asarray(orders, dtype=np.float64)
    with np.errstate(over="ignore"):
        unsampled = orders / 2 / noise_multiplier / noise_multiplier
    if rate == 1:
        return RdpCurve(orders, unsampled)
    log_moments = [
        _log_moment(order, rate, noise_multiplier) for order in _INTEGER_ORDERS
    ]
    at = np.interp(orders, [1, *_INTEGER_ORDERS], [0.0, *log_moments], right=np.inf) / (
        orders - 1
    )
    return RdpCurve(orders, np.minimum(at * (1 + _ROUNDING), unsampled))


def _log_moment(order: int, rate: float, noise_multiplier: float) -> float:
    """Return (order - 1) times the divergence, for an integer order."""
    k = np.arange(order + 1)
    log_factorials = _LOG_FACTORIALS[: order + 1]
    log_terms = (
        log_factorials[-1]
        - log_factorials
        - log_factorials[::-1]
        + (order - k) * np.log1p(-rate)
        + k * np.log(rate)
    )
    # Without the excess the terms sum to 1; adding it to 1 first would lose digits. In
    # logarithms, as a term may vanish where its product with the excess does not.
    with np.errstate(over="ignore", divide="ignore"):
        excess = k * (k - 1.0) / 2 / noise_multiplier / noise_multiplier
        log_rises = log_terms + excess + np.log(-np.expm1(-excess))
    return float(np.logaddexp(0.0, logsumexp(log_rises)))

"""Exact privacy cost of Gaussian noise by mu of Gaussian differential privacy."""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from sklearn_pate.accounting._calibrate import check_epsilon
from sklearn_pate.accounting._rdp import LARGEST_DELTA, check_delta
from sklearn_pate.accounting._value_checks import check_positive

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

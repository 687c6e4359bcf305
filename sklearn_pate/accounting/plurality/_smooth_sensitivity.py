"""Release of a data-dependent cost with noise, at an additional cost.

A data-dependent cost is as sensitive as the votes. One number of it may be published
with noise scaled to a smooth bound on its change by one teacher (Nissim, Raskhodnikova,
Smith 2007; Papernot et al. 2018, Appendix B).
"""

import math
from dataclasses import dataclass
from numbers import Real
from random import SystemRandom

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtri

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.plurality._neighbouring_votes import VoteCosts, check_order

__all__ = [
    "SanitizedCost",
    "published_smooth_sensitivity_cost",
    "release_parameters",
    "sanitize",
    "smooth_sensitivity_cost",
]

# Releases are rounded up to a multiple of 1 / _GRID: the last bits of a floating-point
# sum of private value and noise can reveal the value.
_GRID = 1000
# Candidates of release_parameters; smoothness in units of 1 / order.
_ORDERS = 2 ** np.arange(2, 6.5, 0.5)
_SMOOTHNESS = np.geomspace(0.01, 0.45, 16)
_NOISE_SCALES = np.geomspace(1, 200, 32)


def smooth_sensitivity_cost(
    order: float, smoothness: float, noise_scale: float, quantile: float = 0.0
) -> float:
    """Compute the exact Renyi cost of releasing f + s S (k + N(0, 1)).

    S is the smooth sensitivity of f, `order` is a, `smoothness` is b, the largest
    change of ln S by one teacher's data, `noise_scale` is s, and `quantile` is k. The
    cost covers any two neighbours, in both directions; `inf` unless a (1 - e^{-2b}) <
    1.

    Neighbours have S' = e^u S, |u| <= b, and |f - f'| <= min(S, S'), so that the means
    differ by at most S [min(1, e^u) + k s |e^u - 1|]. Put v = a e^{2u} + 1 - a. The
    divergence of the two Gaussians (Gil, Alajaji, Linder 2013) is at most [a u -
    ln(v)/2]/(a-1) + a [min(1, e^u) + k s |e^u - 1|]^2 / (2 s^2 v). Both terms are
    largest at u = -b. For the second: at u and -u its numerators, over min(1, e^{2u}),
    agree, and the denominators favour u < 0, where it grows with |u|. For the first:
    its slope is a (1 - x(u))/(a-1), x(u) = 1/(a - (a-1) e^{-2u}), so it falls, then
    rises, and x(u) + x(-u) >= 2 since x is convex in e^{-2u}: it is higher at -b than
    at b. Hence the cost [-a b - ln(1 - a (1 - e^{-2b}))/2]/(a-1) + a (1 + k s (e^b -
    1))^2 / (2 s^2 (a - (a-1) e^{2b})), attained at k = 0 by N(0, s^2) and N(e^{-b}, s^2
    e^{-2b}).
    """
    check_order(order)
    check_positive("smoothness", smoothness)
    check_positive("noise_scale", noise_scale)
    if not quantile >= 0:
        raise ValueError(f"quantile={quantile!r} is negative; use 0 or more.")
    growth = math.expm1(2 * smoothness) if smoothness < 350 else math.inf
    left = order * math.expm1(-2 * smoothness)
    if left <= -1 or (order - 1) * growth >= 1:
        return math.inf
    ratio = (-order * smoothness - math.log1p(left) / 2) / (order - 1)
    shift = 1 + quantile * noise_scale * math.expm1(smoothness)
    return ratio + order * shift**2 / (2 * noise_scale**2 * (1 - (order - 1) * growth))


def published_smooth_sensitivity_cost(
    order: float, smoothness: float, noise_scale: float
) -> float:
    """Compute the cost of the release by the 2018 PATE paper: **not an upper bound**.

    Kept to show its error: at order 30, smoothness 0.016 and noise scale 10.13 it is
    0.374, where the divergence between N(0, s^2) and N(e^-b, s^2 e^-2b), which are
    possible neighbours, is 2.598. The parameters are those of
    `smooth_sensitivity_cost`, which is correct; `inf` unless 2 a b < 1.

    a e^{2b}/s^2 + [-ln(1 - 2ab)/2 + a b]/(a-1) (Papernot et al. 2018, Theorem 23, as
    coded). It is below the true cost once a b exceeds about 0.3.
    """
    check_order(order)
    if 2 * order * smoothness >= 1:
        return math.inf
    return order * math.exp(2 * smoothness) / noise_scale**2 + (
        -math.log1p(-2 * order * smoothness) / 2 + order * smoothness
    ) / (order - 1)


@dataclass(frozen=True)
class SanitizedCost:
    """Data-dependent cost of a list of queries with noise. May be published.

    Attributes
    ----------
    epsilon : float
        Epsilon at `delta` of the released cost and the cost of the release together.

    delta : float
        The probability mass that epsilon does not cover.

    cost : float
        Released Renyi cost of the queries. With probability `confidence` over its noise
        it is at least the true one.

    release_cost : float
        Renyi cost of the release itself, which does not depend on the votes.

    order : float
        Renyi order of both costs.

    confidence : float
        Probability that `cost` is not too small.
    """

    epsilon: float
    delta: float
    cost: float
    release_cost: float
    order: float
    confidence: float


def sanitize(
    log_q: ArrayLike,
    *,
    n_teachers: int,
    order: float,
    smoothness: float,
    noise_scale: float,
    delta: float,
    sigma: float | None = None,
    pure_epsilon: float | None = None,
    largest_counts: ArrayLike | None = None,
    log_pass: ArrayLike | None = None,
    log_fail: ArrayLike | None = None,
    worst_case: float = np.inf,
    confidence: float = 0.975,
    normal: float | None = None,
) -> SanitizedCost:
    """Release the q-optimal cost of a list of queries, with noise.

    Every call is a separate release: call it once. `order`, `smoothness`, `noise_scale`
    and `confidence` must be chosen independently of votes, as by
    :func:`release_parameters`; trying several and keeping the best voids the guarantee.

    Parameters
    ----------
    log_q : array-like of shape (n_queries,)
        Logarithm of the exact probability that the plurality does not win, for each
        query of a list that was fixed independently of answers. An upper bound is not
        enough: one teacher could change it by more.

    n_teachers : int
        Number of teachers. Public.

    order : float
        Renyi order of all costs, greater than 1.

    smoothness : float
        Largest change of the logarithm of the smooth sensitivity by one teacher. A
        larger value means less noise and a larger cost.

    noise_scale : float
        Standard deviation of the noise, in units of the smooth sensitivity. A larger
        value means more noise and a smaller cost.

    delta : float
        The probability mass that epsilon does not cover, in (0, 1).

    sigma : float, default=None
        Scale of the noise of GNMax.

    pure_epsilon : float, default=None
        Pure epsilon of one answer, instead of `sigma`: 2 gamma for LNMax, 2 c for
        GumbelMax and PermuteAndFlip.

    largest_counts : array-like of shape (n_queries,), default=None
        Votes of the plurality, for a mechanism with a threshold step.

    log_pass, log_fail : array-like of shape (n_teachers + 1,), default=None
        Log-probabilities that the threshold step passes and fails, at each largest
        count.

    worst_case : float, default=inf
        Worst-case Renyi cost of all queries at `order`, an upper limit of the released
        cost.

    confidence : float, default=0.975
        Probability over the noise that the released cost is at least the true one. At
        least 0.5.

    normal : float, default=None
        Standard normal draw, for tests only: a known draw gives no privacy. None draws
        it from the operating system.

    Returns
    -------
    sanitized : SanitizedCost
        Released cost, which may be published.

    Notes
    -----
    f + s S (k + N(0, 1)) is released, f the cost, S its smooth sensitivity and k the
    normal quantile of `confidence`. S is private as well: the margin k s S moves with
    it, by up to k s (e^b - 1) S, which `smooth_sensitivity_cost` includes. All other
    results are computed from that one number and public ones: it is clipped to between
    0 and the worst case, and rounded up to 0.001, as epsilon is (Canonne, Kamath,
    Steinke 2020, Proposition 12, at the one order). Rounding hides the low bits of the
    sum, which may reveal the cost with floating-point noise; this is not proved.

    The guarantee is about the votes at hand: epsilon bounds what these answers reveal
    about one teacher, plus the worst-case cost of this release.
    """
    if not isinstance(confidence, Real) or not 0.5 <= confidence < 1:
        raise ValueError(
            f"confidence={confidence!r} must be at least 0.5 and less than 1; 0.975 "
            "adds two standard deviations."
        )
    quantile = float(ndtri(confidence))
    release_cost = smooth_sensitivity_cost(order, smoothness, noise_scale, quantile)
    if not release_cost < np.inf:
        raise ValueError(
            f"order={order!r} and smoothness={smoothness!r} give no guarantee; lower "
            "one of them, until order * (1 - exp(-2 * smoothness)) is well below 1."
        )
    table = VoteCosts(
        order, n_teachers, sigma, pure_epsilon, log_pass=log_pass, log_fail=log_fail
    )
    queries = table.locate(log_q, largest_counts)
    scale = noise_scale * table.smooth_sensitivity(queries, smoothness)
    if normal is None:
        normal = SystemRandom().gauss(0, 1)
    noisy = table.total(queries) + scale * (quantile + normal)
    worst = min(table.worst_case * queries[0].size, worst_case)
    cost = _round_up(min(max(noisy, 0.0), worst))
    curve = RdpCurve([order], [cost + release_cost])
    return SanitizedCost(
        epsilon=_round_up(curve.quiet_epsilon(delta)),
        delta=float(delta),
        cost=cost,
        release_cost=release_cost,
        order=float(order),
        confidence=float(confidence),
    )


def release_parameters(
    n_queries: int,
    n_teachers: int,
    delta: float,
    *,
    sigma: float | None = None,
    pure_epsilon: float | None = None,
    log_pass: ArrayLike | None = None,
    log_fail: ArrayLike | None = None,
    confidence: float = 0.975,
) -> dict[str, float]:
    """Choose the parameters of `sanitize` from public numbers only.

    Parameters
    ----------
    n_queries : int
        Number of queries.

    n_teachers : int
        Number of teachers.

    delta : float
        The probability mass that epsilon does not cover, in (0, 1).

    sigma, pure_epsilon : float, default=None
        Noise of the answers, as in :func:`sanitize`; exactly one of them.

    log_pass, log_fail : array-like of shape (n_teachers + 1,), default=None
        Threshold step, as in :func:`sanitize`.

    confidence : float, default=0.975
        Confidence, as in :func:`sanitize`.

    Returns
    -------
    parameters : dict
        `order`, `smoothness`, `noise_scale` and `confidence`.

    Notes
    -----
    They minimise the expected epsilon for artificial votes on two classes, with leads
    proportional to the square root of uniform numbers: most queries are easy, some are
    hard. For other votes the guarantee is the same, and epsilon mostly close.
    """
    check_count("n_queries", n_queries)
    check_count("n_teachers", n_teachers)
    leads = np.sqrt((np.arange(n_queries) + 0.5) / n_queries) * n_teachers
    if sigma is not None:
        log_q = log_ndtr(-leads / (np.sqrt(2) * sigma))
    else:
        check_positive("pure_epsilon", pure_epsilon)
        gaps = leads * float(pure_epsilon or 0) / 2
        log_q = np.log((2 + gaps) / 4) - gaps
    largest_counts = None
    if log_pass is not None:
        largest_counts = np.rint((n_teachers + leads) / 2)
    quantile = float(ndtri(confidence))
    best: tuple[float, dict[str, float]] = (np.inf, {})
    for order in _ORDERS:
        table = VoteCosts(
            order, n_teachers, sigma, pure_epsilon, log_pass=log_pass, log_fail=log_fail
        )
        queries = table.locate(log_q, largest_counts)
        cost = table.total(queries)
        sensitivities = np.array(list(table.local_sensitivities(queries)))
        for smoothness in _SMOOTHNESS / order:
            decay = np.exp(-smoothness * np.arange(sensitivities.size))
            sensitivity = float(np.max(decay * sensitivities))
            for noise_scale in _NOISE_SCALES:
                release_cost = smooth_sensitivity_cost(
                    order, smoothness, noise_scale, quantile
                )
                if not release_cost < np.inf:
                    continue
                expected = cost + quantile * noise_scale * sensitivity + release_cost
                epsilon = RdpCurve([order], [expected]).quiet_epsilon(delta)
                if epsilon < best[0]:
                    best = (
                        epsilon,
                        {
                            "order": float(order),
                            "smoothness": float(smoothness),
                            "noise_scale": float(noise_scale),
                            "confidence": float(confidence),
                        },
                    )
    return best[1]


def _round_up(value: float) -> float:
    """Round up to the grid of released numbers."""
    return math.ceil(value * _GRID) / _GRID

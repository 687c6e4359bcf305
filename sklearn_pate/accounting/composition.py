"""Costs of other private methods, and adaptive composition."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr, logsumexp

from sklearn_pate.accounting._calibrate import (
    calibrate_noise,
    check_epsilon,
    least_noise,
)
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import (
    DEFAULT_ORDERS,
    LARGEST_DELTA,
    RdpCurve,
    check_delta,
)
from sklearn_pate.accounting._value_checks import check_positive, counted
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve

__all__ = [
    "RenyiFilter",
    "TruncatedNegativeBinomial",
    "TruncatedPoisson",
    "add_remove_to_replace_one",
    "curvature_cost",
    "gaussian_objective_curve",
    "sampled_gaussian_curve",
]

# Values of p - 1 in the Notes.
_P_LESS_ONE = 2.0 ** (np.arange(-96, 97) / 8)
# Every integer up to 128, then some up to 4096: nodes of an interpolation that is an
# upper bound.
_INTEGER_ORDERS = np.unique(
    np.concatenate([np.arange(2, 129), np.round(2 ** np.arange(7, 12.01, 0.125))])
).astype(np.int64)
_LOG_FACTORIALS = gammaln(np.arange(_INTEGER_ORDERS[-1] + 1) + 1)
# Relative margin for rounding of the logarithms of factorials.
_ROUNDING = 1e-11
_Array = NDArray[np.float64]

# Fraction of delta for losses beyond the grid.
_BEYOND = 1e-3
# Width of a cell of the grid, over the standard deviation of the loss of a step. Any
# width gives an upper bound: moving masses to the ends of cells never lowers epsilon.
_FINENESS = 0.02
_LARGEST_GRID = 2**21
# Beyond this, costs are useless and exponentials of losses overflow.
_LARGEST_LOSS = 300.0
# Bound on the floating-point error of delta, far above any observed error.
_ROUND_OFF = 1e-10
# Smallest delta and largest number of points of a profile.
_SMALLEST_DELTA = 1e-8
_N_POINTS = 1000
# Parameters of Chernoff's inequality, times the largest loss of the grid.
_TILTS = 2.0 ** np.arange(0, 12.5, 0.5)
# The exponential of half of epsilon is limited to that of this, against overflow.
_LARGEST_EXPONENT = 700.0
# Covers round-off: costs are sums of a few terms.
_SAFETY = 1e-12


def add_remove_to_replace_one(curve: RdpCurve) -> RdpCurve:
    """Convert a cost for adding or removing one row to a cost for replacing a row.

    Parameters
    ----------
    curve : RdpCurve
        Cost for neighbours that add or remove one row, in either direction.

    Returns
    -------
    curve : RdpCurve
        Cost for neighbours that replace one row. The number of rows need not be public.

    Notes
    -----
    D_a(P || R) <= (a - 1/p)/(a - 1) D_{pa}(P || Q) + D_{(pa - 1)/(p - 1)}(Q || R) for
    every p > 1 (Mironov 2017, "Renyi differential privacy", Proposition 11, by
    Hoelder's inequality). The result uses the best of many p. For Gaussian noise the
    result is exactly four times the cost for add/remove. (a-1) D_a is convex in a, so
    interpolation between orders of `curve` gives an upper bound. Below the first order,
    D_a is at most its value at the first order. Beyond the last order of `curve`, no
    bound is known. A pure epsilon doubles: the Renyi curve of randomised response with
    the doubled epsilon bounds the cost at all orders.

    Examples
    --------
    >>> from sklearn_pate.accounting.composition import (
    ...     add_remove_to_replace_one,
    ...     sampled_gaussian_curve,
    ... )
    >>> add_remove = sampled_gaussian_curve(5.0, 1.0)
    >>> replace_one = add_remove_to_replace_one(add_remove)
    >>> round(replace_one.to_epsilon(1e-5) / add_remove.to_epsilon(1e-5), 2)
    2.13
    """
    alphas = curve.orders[:, None]
    p = 1 + _P_LESS_ONE
    first = (alphas - 1 / p) / (alphas - 1) * _divergence(curve, p * alphas)
    second = _divergence(curve, (p * alphas - 1) / (p - 1))
    values = (first + second).min(axis=1)
    pure_epsilon = 2 * curve.pure_epsilon
    if np.isfinite(pure_epsilon):
        values = np.minimum(values, pure_dp_curve(pure_epsilon, curve.orders).values)
    return RdpCurve(curve.orders, values, pure_epsilon)


def _divergence(curve: RdpCurve, orders: _Array) -> _Array:
    """Bound the divergence at any order."""
    log_moments = np.interp(
        orders,
        [1, *curve.orders],
        [0, *((curve.orders - 1) * curve.values)],
        right=np.inf,
    )
    return log_moments / (orders - 1)


def check_sampling_rate(sampling_rate: float) -> float:
    """Return a sampling rate as a float, or raise if it is not in (0, 1]."""
    check_positive("sampling_rate", sampling_rate)
    if sampling_rate > 1:
        raise ValueError(
            f"sampling_rate={sampling_rate!r} must be a probability above 0 and at "
            "most 1."
        )
    return float(sampling_rate)


def sampled_gaussian_curve(
    noise_multiplier: float, sampling_rate: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Compute the privacy cost of Gaussian noise on a fresh Poisson sample.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise, divided by the L2 sensitivity to one row (or
        group). A larger value has a lower cost.

    sampling_rate : float
        Probability in (0, 1] with which each row, independently, is in the sample. A
        smaller value has a lower cost. The sample must stay secret, and every release
        needs a new sample.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent cost for neighbours that add or remove one row. For a cost of
        replacing one row, see
        :func:`~sklearn_pate.accounting.composition.add_remove_to_replace_one`.

    Notes
    -----
    Let z be the noise multiplier and q the sampling rate. At an integer order a, r(a) =
    1/(a-1) ln sum_k C(a,k) (1-q)^{a-k} q^k exp((k^2 - k) / (2 z^2)) (Mironov, Talwar,
    Zhang 2019, "Renyi differential privacy of the sampled Gaussian mechanism", Section
    3.3). By Theorem 5 of the same paper, removing a row costs at most as much as adding
    a row. The sum is also exact for discrete Gaussian noise on integers, as sum_x
    exp(-(x - k)^2 / (2 sigma^2)) is equal for all integers k. The reflection in the
    proof of that theorem maps integers to integers.

    Between integer orders, (a-1) r(a) is at most the linear interpolation of its values
    at integers, as the logarithm of a moment is convex in the order. Below order 2,
    r(a) is at most r(2). As sampling never increases the cost, a / (2 z^2) is also an
    upper bound.

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
    log_moments = _log_moments(rate, noise_multiplier)
    at = np.interp(orders, [1, *_INTEGER_ORDERS], [0.0, *log_moments], right=np.inf) / (
        orders - 1
    )
    return RdpCurve(orders, np.minimum(at * (1 + _ROUNDING), unsampled))


def _log_moments(rate: float, noise_multiplier: float) -> list[float]:
    """Return (order - 1) times the divergence, for each integer order."""
    k = np.arange(_INTEGER_ORDERS[-1] + 1)
    without = k * np.log1p(-rate) - _LOG_FACTORIALS
    # Without the excess the terms sum to 1; adding it to 1 first would lose digits. In
    # logarithms, as a term may vanish where its product with the excess does not.
    with np.errstate(over="ignore", divide="ignore"):
        excess = k * (k - 1.0) / 2 / noise_multiplier / noise_multiplier
        rises = excess + np.log(-np.expm1(-excess))
    within = k * np.log(rate) - _LOG_FACTORIALS + rises
    found = []
    for order in _INTEGER_ORDERS:
        log_rises = _LOG_FACTORIALS[order] + without[order::-1] + within[: order + 1]
        found.append(float(np.logaddexp(0.0, np.logaddexp.reduce(log_rises))))
    return found


def dpsgd_cost(
    noise_multiplier: float,
    sampling_rate: float,
    n_steps: int,
    *,
    delta: float,
    accountant: Literal["pld", "rdp"],
) -> tuple[float, RdpCurve]:
    """Compute epsilon and Renyi curve of Gaussian noise on many Poisson samples.

    `noise_multiplier` is the standard deviation of the noise over the largest change of
    a sum by one row. Neighbouring data sets differ by one added or removed row. With
    "pld", epsilon comes from the numerically composed distribution of the privacy loss
    and is never larger than with "rdp", which uses the curve.
    """
    curve = sampled_gaussian_curve(noise_multiplier, sampling_rate) * n_steps
    epsilon = curve.quiet_epsilon(delta)
    if accountant == "pld":
        directions = _loss_profiles(
            noise_multiplier, sampling_rate, n_steps, curve, delta
        )
        epsilon = min(epsilon, max(one.epsilon_at(delta) for one in directions))
    return epsilon, curve


def calibrate_steps(
    epsilon: float,
    sampling_rate: float,
    n_steps: int,
    *,
    delta: float,
    accountant: Literal["pld", "rdp"],
) -> float:
    """Find the smallest noise multiplier whose cost is within a target.

    The result is exact up to one part in 5000, and rounded up to six significant
    digits.
    """

    def curve_at_scale(noise_multiplier: float, orders: _Array) -> RdpCurve:
        return sampled_gaussian_curve(noise_multiplier, sampling_rate, orders) * n_steps

    try:
        enough = calibrate_noise(curve_at_scale, epsilon=epsilon, delta=delta)
    except ValueError as error:
        raise ValueError(
            f"epsilon={epsilon!r} cannot be reached with delta={delta!r} in "
            f"{counted(n_steps, 'step')} by any useful noise; raise epsilon or delta, "
            "or lower max_epochs or batch_size of the estimator."
        ) from error
    if accountant == "rdp":
        return enough

    def cost_at_scale(noise_multiplier: float) -> float:
        cost, _ = dpsgd_cost(
            noise_multiplier, sampling_rate, n_steps, delta=delta, accountant=accountant
        )
        return cost

    return least_noise(cost_at_scale, epsilon=epsilon, start=enough) or enough


def dpsgd_profile(
    noise_multiplier: float, sampling_rate: float, n_steps: int
) -> PrivacyProfile:
    """Compute delta at every epsilon from the composed privacy-loss distribution."""
    curve = sampled_gaussian_curve(noise_multiplier, sampling_rate) * n_steps
    directions = _loss_profiles(
        noise_multiplier, sampling_rate, n_steps, curve, _SMALLEST_DELTA
    )
    # One direction alone has no mirror image: the hull is that of the maximum.
    return PrivacyProfile.largest(
        PrivacyProfile(
            *(
                values[:: -(-len(values) // _N_POINTS)]
                for values in (one.epsilons, one.deltas)
            )
        )
        for one in directions
    )


def _loss_profiles(
    noise_multiplier: float, rate: float, n_steps: int, curve: RdpCurve, delta: float
) -> list[PrivacyProfile]:
    """Compose the privacy losses of all steps on a grid; return both directions.

    Each profile holds for one direction alone, at epsilons that are not negative.

    The grid resolves `delta`.

    With P = (1-q) N(0, z^2) + q N(1, z^2) and Q = N(0, z^2), the pair (P, Q) dominates
    the removal of a row and the pair (Q, P) the addition, also after any number of
    adaptive steps (Zhu, Dong, Wang 2022, "Optimal accounting of differential privacy
    via characteristic function", Theorems 10 and 11). Neither direction is known to be
    the worse one after composition (Lebeda, Regehr, Kamath, Steinke 2024, "Avoiding
    pitfalls for privacy accounting of subsampled mechanisms under composition"), so
    both are computed.

    On a grid of losses, the mass of each cell moves to its two ends, such that its
    probabilities under P and under Q stay the same. That never makes the two laws more
    similar (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, "Connect the dots:
    tighter discrete approximations of privacy loss distributions"). Losses above the
    grid count as infinite, those below as the lowest point. The Fourier transform
    composes the losses on a circle; the probability of a sum beyond the grid, which the
    circle would wrap around, is bounded by Chernoff's inequality and added to delta.
    """
    one = curve * (1 / n_steps)
    farthest = max(
        curve.quiet_epsilon(_BEYOND * delta, "classical"),
        one.quiet_epsilon(_BEYOND * delta / n_steps, "classical"),
    )
    if farthest > _LARGEST_LOSS:
        return [PrivacyProfile([0.0], [1.0])]
    # A divergence of an order near 1 is half the variance, as for a Gaussian law.
    cell = _FINENESS * np.sqrt(2 * one.values[0])
    cell = max(cell, 2 * farthest / _LARGEST_GRID)
    n_cells = int(np.ceil(farthest / cell))
    losses = cell * np.arange(-n_cells, n_cells + 1)
    of_p, of_q = _cells(noise_multiplier, rate, losses)
    remove = _ends(of_p, of_q, losses)
    # Swapping P and Q changes the sign of all losses.
    add = _ends(of_q[::-1], of_p[::-1], losses)
    return [
        _composed_profile(masses, infinite, losses, n_steps)
        for masses, infinite in (remove, add)
    ]


def _cells(
    noise_multiplier: float, rate: float, losses: _Array
) -> tuple[_Array, _Array]:
    """Return the masses of P and Q below, between and above the points of the grid."""
    # The loss ln(1 - q + q e^{(2x - 1) / (2 z^2)}) of an output x, inverted.
    with np.errstate(divide="ignore", invalid="ignore"):
        above = losses + np.log1p(-(1 - rate) * np.exp(-losses)) - np.log(rate)
    x = noise_multiplier**2 * np.where(np.isnan(above), -np.inf, above) + 0.5
    of_q = _normal_masses(x / noise_multiplier)
    shifted = _normal_masses((x - 1) / noise_multiplier)
    return (1 - rate) * of_q + rate * shifted, of_q


def _normal_masses(points: _Array) -> _Array:
    """Return the masses of the standard normal below, between and above points."""
    points = np.concatenate([[-np.inf], points, [np.inf]])
    # From the tail in which no digits are lost.
    below, above = np.exp(log_ndtr(points)), np.exp(log_ndtr(-points))
    return np.where(points[1:] <= 0, np.diff(below), -np.diff(above))


def _ends(of_p: _Array, of_q: _Array, losses: _Array) -> tuple[_Array, float]:
    """Move the mass of P to grid points; return these masses and the infinite one."""
    cell = losses[1] - losses[0]
    inner = of_p[1:-1]
    upper = (inner - of_q[1:-1] * np.exp(losses[:-1])) / -np.expm1(-cell)
    upper = np.clip(upper, 0, inner)
    masses = np.zeros(len(losses))
    masses[:-1] += inner - upper
    masses[1:] += upper
    masses[0] += of_p[0]
    return masses, of_p[-1]


def _composed_profile(
    masses: _Array, infinite: float, losses: _Array, n_steps: int
) -> PrivacyProfile:
    """Compose the privacy losses of one direction n_steps times."""
    size = next_fast_len(len(losses), real=True)
    n_cells = len(losses) // 2
    around = np.zeros(size)
    around[: len(losses)] = masses
    around = np.roll(around, -n_cells)  # a loss of 0 comes first
    composed = irfft(rfft(around) ** n_steps, size)
    composed = np.roll(np.maximum(composed, 0), n_cells)[: len(losses)]
    lost = (
        -np.expm1(n_steps * np.log1p(-infinite))
        + _beyond(masses, losses, n_steps)
        + _ROUND_OFF
    )
    is_positive = losses > 0
    composed, losses = composed[is_positive], losses[is_positive]
    # Mass from each point on, under P and under Q.
    of_p = np.cumsum(composed[::-1])[::-1]
    of_q = np.cumsum((composed * np.exp(-losses))[::-1])[::-1]
    epsilons = np.append(0.0, losses[:-1])
    deltas = np.clip(of_p - of_q * np.exp(epsilons) + lost, 0.0, 1.0)
    return PrivacyProfile(epsilons, np.minimum.accumulate(deltas))


def _beyond(masses: _Array, losses: _Array, n_steps: int) -> float:
    """Bound the probability that the sum of losses is above the grid."""
    held = masses > 0
    log_masses, highest = np.log(masses[held]), losses[-1]
    exponents = [
        n_steps * logsumexp(log_masses + tilt * losses[held] / highest) - tilt
        for tilt in _TILTS
    ]
    return float(np.exp(min(exponents)))


def curvature_cost(curvature: float, regularisation: float) -> float:
    """Compute the privacy cost of the curvature that one row adds to an objective.

    Parameters
    ----------
    curvature : float
        Largest second derivative c of the loss of a row by its margin; rows have an L2
        norm of at most 1.

    regularisation : float
        Coefficient lambda of lambda/2 |w|^2. A larger value has a lower cost.

    Returns
    -------
    cost : float
        Cost in nats, ln(1 + c / lambda).

    Notes
    -----
    Let F(w) = sum_i l(y_i w.x_i) + lambda/2 |w|^2 + b.w with a convex l whose slope is
    Lipschitz, and b with a density p. Exactly one b makes a given w the minimiser,
    b(w) = -sum_i l'(y_i w.x_i) y_i x_i - lambda w; both this map and its inverse are
    Lipschitz, so that the minimiser has the density p(b(w)) det H(w), where
    H = sum_i l'' x_i x_i^T + lambda I, almost everywhere: l'' may jump, as that of the
    Huber hinge does.

    Let A be the part of H that two neighbouring data sets share; A >= lambda I. If row
    x is replaced by z, the ratio of the two determinants is
    (1 + l''_x x.A^-1 x) / (1 + l''_z z.A^-1 z) <= 1 + c / lambda; the same bound holds
    if a row is removed, and 1 if one is added. No constant is better for all losses:
    the Huber hinge attains it. Chaudhuri, Monteleoni, Sarwate (2011, Theorem 9) have
    2 ln(1 + c / lambda), as they bound the eigenvalues of both rows together.
    """
    check_positive("curvature", curvature)
    check_positive("regularisation", regularisation)
    return math.log1p(curvature / regularisation)


def least_regularisation(epsilon: float, curvature: float) -> float:
    """Compute the regularisation that leaves half of epsilon to the noise.

    The result is c / (e^{epsilon/2} - 1), for a `curvature_cost` of epsilon / 2.
    Chaudhuri, Monteleoni, Sarwate (2011, Algorithm 2) add the same amount where the
    curvature would take all of epsilon; where a little were left, the noise would be
    too large to be useful.
    """
    check_positive("epsilon", epsilon)
    check_positive("curvature", curvature)
    return curvature / math.expm1(min(epsilon / 2, _LARGEST_EXPONENT))


def gaussian_objective_curve(
    sigma: float,
    regularisation: float,
    curvature: float,
    gradient_bound: float = 1.0,
    orders: ArrayLike = DEFAULT_ORDERS,
) -> RdpCurve:
    """Compute the privacy cost of an exact minimiser with a Gaussian linear term.

    Parameters
    ----------
    sigma : float
        Standard deviation of each coordinate of the linear term. A larger value has a
        lower cost.

    regularisation : float
        Coefficient lambda of lambda/2 |w|^2. A larger value has a lower cost.

    curvature : float
        Largest second derivative c of the loss of a row by its margin.

    gradient_bound : float, default=1
        Largest slope G of the loss of a row by its margin. The loss must not increase
        with the margin; rows have an L2 norm of at most 1.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent cost for neighbours that add or remove one row.

    Notes
    -----
    With v = G^2 / sigma^2 and T distributed as N(v/2, v), (a-1) r(a) = ln E e^{(a-1)
    max(0, T)} + (a-1) ln(1 + c / lambda), where the expectation is Phi(-sqrt(v)/2) +
    e^{a(a-1)v/2} Phi((a - 1/2) sqrt(v)).

    For the proof, the density of the minimiser is as in :func:`curvature_cost`. The
    gradient of the row (x, y) at w is -g u with u = y x and g in [0, G], as the loss
    never increases. If the row is removed, b(w) changes by this gradient: the log-ratio
    of Gaussian densities is (g^2 |u|^2 - 2 g b.u) / (2 sigma^2). If the row is added, +
    2 g b.u replaces - 2 g b.u. The log-ratio is convex in g, hence at most the larger
    of its values at 0 and G, max(0, T), where T is the privacy loss of Gaussian noise
    about a shift by G u: b, of the minimiser drawn from the first data set, is
    distributed as N(0, sigma^2 I), and u does not depend on b. A shorter u is a
    post-processing of a longer one, and E e^{(a-1) max(0, T)} is an f-divergence, of
    f(t) = max(t^a, t): |u| = 1 is the worst. The determinants cost as much as
    :func:`curvature_cost` states.

    After Redberg, Koskela, Wang (2023, "Improving the privacy and practicality of
    objective perturbation for differentially private linear learners"). Their bound has
    v/2 + |X|, with X distributed as N(0, v), in place of max(0, T), which is never
    more, as their bound allows increasing losses. Their bound has |ln(1 - c / lambda)|
    in place of ln(1 + c / lambda).

    Examples
    --------
    >>> from sklearn_pate.accounting.composition import gaussian_objective_curve
    >>> curve = gaussian_objective_curve(5.0, regularisation=2.0, curvature=0.25)
    >>> round(curve.to_epsilon(1e-5), 2)
    0.91
    """
    check_positive("sigma", sigma)
    check_positive("gradient_bound", gradient_bound)
    cost = curvature_cost(curvature, regularisation)
    orders = np.asarray(orders, dtype=np.float64)
    mu = float(gradient_bound) / float(sigma)
    with np.errstate(over="ignore"):  # an infinite cost of next to no noise
        tilt = orders * (orders - 1) * mu * mu / 2
    log_moment = np.logaddexp(log_ndtr(-mu / 2), tilt + log_ndtr((orders - 0.5) * mu))
    # The last term covers rounding.
    log_moment = np.maximum(log_moment, 0) + 8 * np.finfo(np.float64).eps
    return RdpCurve(orders, log_moment / (orders - 1) + cost)


@dataclass(frozen=True)
class TruncatedNegativeBinomial:
    """Truncated negative binomial distribution of the number of trials of a search.

    Parameters
    ----------
    eta : {0, 1}
        0 for the logarithmic distribution, 1 for the geometric distribution. The
        logarithmic distribution has a lower privacy cost and a larger variance: often a
        single trial, sometimes very many trials.

    gamma : float
        Parameter in (0, 1). A smaller value gives more trials.

    Notes
    -----
    For k = 1, 2, ..., Pr[K = k] is proportional to (1 - gamma)^k times the product of
    the positive factors (l + eta) / (l + 1) over 0 <= l < k (Papernot and Steinke 2022,
    "Hyperparameter tuning with Renyi differential privacy", Definition 1).
    """

    eta: int
    gamma: float

    @classmethod
    def of_mean(cls, eta: int, mean: float) -> Self:
        """Find the distribution with a given mean.

        Parameters
        ----------
        eta : {0, 1}
            0 for the logarithmic distribution, 1 for the geometric distribution.

        mean : float
            Expected number of trials, more than 1.

        Returns
        -------
        law : TruncatedNegativeBinomial
            Distribution with this mean, up to rounding.
        """
        check_mean(mean)
        if eta == 1:
            return cls(1, 1 / mean)
        log_inverse_gamma = brentq(
            # ln((e^x - 1) / x), between x / 2 and x.
            lambda x: x + np.log(-np.expm1(-x) / x) - np.log(mean),
            np.log(mean),
            2 * np.log(mean) + 2,
            xtol=1e-15,
        )
        return cls(0, float(np.exp(-log_inverse_gamma)))

    @property
    def mean(self) -> float:
        """Expected number of trials.

        Returns
        -------
        mean : float
            1 / gamma for eta = 1, or (1 / gamma - 1) / ln(1 / gamma) for eta = 0.
        """
        if self.eta == 1:
            return 1 / self.gamma
        cost = -np.log(self.gamma)
        return float(np.expm1(cost) / cost)

    def probabilities(self) -> Iterator[Decimal]:
        """List Pr[K = 1], Pr[K = 2], ...

        Yields
        ------
        probability : Decimal
            Probability in the precision of the current decimal context.
        """
        gamma = Decimal(self.gamma)
        probability = gamma if self.eta == 1 else (1 - gamma) / -gamma.ln()
        k = 1
        while True:
            yield probability
            probability *= (1 - gamma) * (k + self.eta) / (k + 1)
            k += 1

    def cost(self, curve: RdpCurve) -> RdpCurve:
        """Bound the cost of a search that publishes only the best of K trials.

        Parameters
        ----------
        curve : RdpCurve
            Privacy cost of one trial, for its model and score together.

        Returns
        -------
        curve : RdpCurve
            Cost of the search, at the orders of `curve`.

        Notes
        -----
        The cost at order a is e'(a) = e(a) + ln(E[K]) / (a - 1) + (1 + eta) min over b
        >= 1 of { (1 - 1/b) e(b) + ln(1 / gamma) / b } (Papernot and Steinke 2022,
        Theorem 2), where e is `curve`. At b = 1 the term in braces is ln(1 / gamma).
        The number K of trials, and all trials but the best, must stay secret. A random
        number drawn with each trial breaks ties.

        Proof. Let f be the generating function of K, and Q the distribution of a trial.
        The best trial is y with probability f(Q(<= y)) - f(Q(< y)) = Q(y) E f'(U),
        where U is uniform between Q(< y) and Q(<= y). The neighbour has Q' in place of
        Q. The divergence of the best trial exceeds D_a(Q || Q') by at most the supremum
        of ln(f'(q)^a f'(q')^{1-a}) / (a - 1) over q = E g(Q) and q' = E g(Q'), for any
        g to [0, 1]. f'(q) is at most E[K], and f'(q) / f'(q') = (p' / p)^{1 + eta}.
        Here, p = gamma + (1 - gamma)(1 - q) is a probability under Q, and p' is the
        corresponding probability under Q'. Hence p'^b p^{1-b} <= e^{(b-1) e(b)}, so
        that p' / p <= e^{(1 - 1/b) e(b)} p^{-1/b}, and p >= gamma.
        """
        orders, ratio = curve.orders, self._ratio(curve)
        return _sound(orders, curve.values + ratio + np.log(self.mean) / (orders - 1))

    def pure_cost(self, epsilon: float, curve: RdpCurve) -> float:
        """Bound the pure epsilon of a search that publishes only the best of K trials.

        Parameters
        ----------
        epsilon : float
            Pure epsilon of one trial.

        curve : RdpCurve
            Renyi cost of one trial.

        Returns
        -------
        epsilon : float
            At most (2 + eta) times the epsilon of one trial, for any mean number of
            trials. Less for a small mean.

        Notes
        -----
        The result is the limit of `cost` at high orders. For eta = 1, the factor 3 is
        due to Liu and Talwar (2019), "Private selection from private candidates".
        """
        return epsilon + min((1 + self.eta) * epsilon, self._ratio(curve))

    def _ratio(self, curve: RdpCurve) -> float:
        """Bound the log-ratio of the derivatives of the generating function."""
        cost = -float(np.log(self.gamma))
        braces = (1 - 1 / curve.orders) * curve.values + cost / curve.orders
        return (1 + self.eta) * min(cost, float(braces.min()))


@dataclass(frozen=True)
class TruncatedPoisson:
    """Poisson distribution of the number K > 0 of trials of a private search.

    Parameters
    ----------
    rate : float
        Mean of the Poisson distribution without the condition K > 0. Positive.

    Notes
    -----
    Papernot and Steinke 2022 (Theorem 6) omit the condition K > 0, so that a search may
    have no trial and no model.
    """

    rate: float

    @classmethod
    def of_mean(cls, mean: float) -> Self:
        """Find the distribution with a given mean.

        Parameters
        ----------
        mean : float
            Expected number of trials, more than 1.

        Returns
        -------
        law : TruncatedPoisson
            Distribution with this mean, up to rounding.
        """
        check_mean(mean)
        # The rate is below the mean, and near 2 (mean - 1) where the mean is near 1.
        return cls(
            brentq(
                lambda rate: rate / -np.expm1(-rate) - mean,
                (mean - 1) / 2,
                2 * mean,
                xtol=1e-15,
            )
        )

    @property
    def mean(self) -> float:
        """Expected number of trials.

        Returns
        -------
        mean : float
            Equal to rate / (1 - e^-rate).
        """
        return float(self.rate / -np.expm1(-self.rate))

    def probabilities(self) -> Iterator[Decimal]:
        """List Pr[K = 1], Pr[K = 2], ...

        Yields
        ------
        probability : Decimal
            Probability in the precision of the current decimal context.
        """
        rate = Decimal(self.rate)
        probability = rate / (rate.exp() - 1)
        k = 1
        while True:
            yield probability
            k += 1
            probability *= rate / k

    def cost(self, curve: RdpCurve) -> RdpCurve:
        """Bound the cost of a search that publishes only the best of K trials.

        Parameters
        ----------
        curve : RdpCurve
            Privacy cost of one trial, for its model and score together.

        Returns
        -------
        curve : RdpCurve
            Cost of the search, at the orders of `curve`.

        Notes
        -----
        The cost at order a is e'(a) = e(a) + m d + ln(E[K]) / (a - 1), where e is
        `curve`, m is the rate and d is the delta of one trial at epsilon ln(1 +
        1/(a-1)). Papernot and Steinke 2022, Theorem 6, prove this cost without the
        condition K > 0, with mean m. The proof follows
        :meth:`TruncatedNegativeBinomial.cost`, with E[K] exp(m [(a-1) p' - a p]) for
        f'(q)^a f'(q')^{1-a}, where p = 1 - q and p' = 1 - q'. As p' <= a / (a-1) p + d,
        the term in brackets is at most (a-1) d. The delta d follows from the curve at
        its best order c: e^{(c-1)(e(c) - epsilon)} (1 - 1/c)^{c-1} / c (Canonne,
        Kamath, Steinke 2020, Proposition 12).
        """
        orders = curve.orders
        epsilons = -np.log1p(-1 / orders)
        d = self.rate * _deltas(curve, epsilons)
        return _sound(orders, curve.values + d + np.log(self.mean) / (orders - 1))

    def pure_cost(self, epsilon: float, curve: RdpCurve) -> None:
        """Return None, as a pure epsilon would grow with the number of trials.

        Parameters
        ----------
        epsilon : float
            Pure epsilon of one trial.

        curve : RdpCurve
            Renyi cost of one trial.

        Returns
        -------
        pure_cost : None
            None, as no useful pure guarantee is known.
        """
        return None


@dataclass(frozen=True)
class OnDisjointRows:
    """Cost of fits on disjoint rows, and of a choice between them on other rows.

    The cost is the largest of the costs of the fits and of the choice. One changed row
    changes the distribution of one fit, or of the choice between given models
    (Chaudhuri, Monteleoni, Sarwate 2011, "Differentially private empirical risk
    minimization", Algorithm 3).
    """

    def cost(self, curve: RdpCurve) -> RdpCurve:
        """Return the largest Renyi cost of the fits and the choice, unchanged."""
        return curve

    def pure_cost(self, epsilon: float, curve: RdpCurve) -> float:
        """Return the largest pure cost of the fits and the choice, unchanged."""
        return epsilon


SelectionLaw = TruncatedNegativeBinomial | TruncatedPoisson | OnDisjointRows


def upper_envelope(curves: Iterable[RdpCurve]) -> RdpCurve:
    """Bound the cost of one of several releases by the largest cost at each order.

    The bound holds for a random choice between the releases that does not depend on the
    data and is published: e^{(a-1) D_a} is then a mean over releases. The bound also
    holds for all releases together on disjoint rows, as one changed row changes one
    release.
    """
    first, *others = curves
    values, pure_epsilon = first.values, first.pure_epsilon
    for other in others:
        if not np.array_equal(other.orders, first.orders):
            raise ValueError(
                "The candidates state their costs at different Renyi orders; compute "
                "all of them at DEFAULT_ORDERS."
            )
        values = np.maximum(values, other.values)
        pure_epsilon = max(pure_epsilon, other.pure_epsilon)
    return RdpCurve(first.orders, values, pure_epsilon)


def check_mean(mean: float) -> None:
    """Raise unless the expected number of trials is more than 1."""
    check_positive("mean_n_trials", mean)
    if mean <= 1:
        raise ValueError(
            f"mean_n_trials={mean!r} must be more than 1, such as 10; for a single "
            "trial, fit one candidate without a search."
        )


def _deltas(curve: RdpCurve, epsilons: _Array) -> _Array:
    """Return the delta of a curve at each epsilon, at its best order."""
    orders = curve.orders
    gap = (orders - 1) * np.log1p(-1 / orders) - np.log(orders)
    log_deltas = (orders - 1) * (curve.values - epsilons[:, np.newaxis]) + gap
    return np.exp(np.minimum(log_deltas.min(axis=1), 0.0))


def _sound(orders: _Array, values: _Array) -> RdpCurve:
    """Make a curve from bounds, as a bound at an order also holds at smaller orders."""
    lowest = np.minimum.accumulate(values[::-1])[::-1]
    return RdpCurve(orders, lowest * (1 + _SAFETY))


@dataclass(frozen=True)
class RenyiFilter:
    """Privacy budget for releases that are chosen adaptively.

    Parameters
    ----------
    orders : tuple of float
        Renyi orders, fixed before the first release. At the infinite order, epsilons of
        pure guarantees add up.

    limits : tuple of float
        Largest sum of costs at each order.

    Notes
    -----
    If earlier results determine a release, the Renyi order must be fixed beforehand. A
    filter stops before the first cost that would exceed the limit. The divergence of
    all releases together is then at most this limit (Feldman and Zrnic 2021,
    "Individual privacy accounting via a Renyi filter", Theorem 4.3; Lecuyer 2021,
    "Practical privacy filters and odometers with Renyi differential privacy"). Canonne,
    Kamath and Steinke (2020, Proposition 12) convert the limit to epsilon. With m
    finite orders, each limit is computed with delta / m. A release is admitted if the
    limit holds at one order at least. While limit i holds, the releases are those of a
    filter with this limit alone, so each order adds at most delta / m to the total
    delta.

    At the infinite order the limit is epsilon. If all costs are pure and sum to at most
    epsilon, likelihood ratios are at most e^epsilon, and delta is 0. The infinite order
    thus takes no delta from other orders. The budget thus admits all releases that
    basic composition or the Renyi filter admits. The Renyi cost of a release never
    exceeds its pure epsilon, so sums of Renyi costs and pure epsilons would admit no
    further release. The proof is on the page :doc:`/proofs/ledger`.
    """

    orders: tuple[float, ...]
    limits: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(limit > 0 for limit in self.limits):
            raise ValueError(f"limits={self.limits!r} must all be positive.")

    @classmethod
    def for_budget(
        cls, epsilon: float, delta: float, orders: ArrayLike | None = None
    ) -> Self:
        """Create the filter for an (epsilon, delta) budget.

        Parameters
        ----------
        epsilon : float
            Privacy budget.

        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 0.1).

        orders : array-like of shape (n_orders,), default=None
            Finite Renyi orders that share delta. Default: the one order that admits the
            most releases with Gaussian noise.

        Returns
        -------
        privacy_filter : RenyiFilter
            Filter with one limit per order, including the infinite order.

        Raises
        ------
        ValueError
            If a parameter is out of range, or an order is too small for this budget.
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta, LARGEST_DELTA)
        if orders is None:
            limits = _limits(DEFAULT_ORDERS, epsilon, delta)
            best = [int(np.argmax(limits / DEFAULT_ORDERS))]
            chosen, limits = DEFAULT_ORDERS[best], limits[best]
        else:
            chosen = np.unique(np.asarray(orders, dtype=np.float64))
            limits = _limits(chosen, epsilon, delta / max(chosen.size, 1))
        if np.any(limits <= 0):
            raise ValueError(
                f"epsilon={epsilon!r} and delta={delta!r} allow no release at Renyi "
                f"order {chosen[np.argmin(limits)]:g}; use larger orders, "
                "orders=None, or a larger epsilon."
            )
        return cls((*chosen.tolist(), np.inf), (*limits.tolist(), epsilon))

    @property
    def finite_orders(self) -> tuple[float, ...]:
        """Finite Renyi orders.

        Returns
        -------
        orders : tuple of float
            The orders that share delta.
        """
        return tuple(order for order in self.orders if order < np.inf)

    def cost(self, curve: RdpCurve) -> tuple[float, ...]:
        """Evaluate a curve at the orders of this filter.

        Parameters
        ----------
        curve : RdpCurve
            Privacy cost of a release.

        Returns
        -------
        cost : tuple of float
            One number per order, at most the pure epsilon of the curve. If the curve
            lacks an order, the number is the value at the next larger order, an upper
            bound.
        """
        next_larger = np.searchsorted(curve.orders, self.orders)
        values = np.minimum(np.append(curve.values, np.inf), curve.pure_epsilon)
        return tuple(values[next_larger].tolist())

    def budget_fractions(
        self, cost: Sequence[float], spent: Sequence[Sequence[float | Fraction]] = ()
    ) -> tuple[float, float]:
        """Return the fraction of the budget that a cost takes, and the fraction left.

        Parameters
        ----------
        cost : sequence of float
            Cost of a release, from `cost`.

        spent : sequence of sequence of float or Fraction, default=()
            Cost of each earlier release, or the sum of all costs as the only item.

        Returns
        -------
        taken : float
            Fraction that the cost takes, at the order that admits the cost most often.

        left : float
            Fraction left at this order, which may be negative. The cost is admitted if
            `left` is at least `taken`.
        """
        taken = (one / limit for one, limit in zip(cost, self.limits, strict=True))
        return max(zip(taken, self.left(spent), strict=True), key=_how_often)

    def left(
        self, spent: Sequence[Sequence[float | Fraction]] = ()
    ) -> tuple[float, ...]:
        """Return the fraction of the budget that is left at each order.

        Parameters
        ----------
        spent : sequence of sequence of float or Fraction, default=()
            Cost of each release, or the sum of all costs as the only item.

        Returns
        -------
        left : tuple of float
            Fractions between 0 and 1, or negative if a limit is exceeded.
        """
        sums = [_sum(of_order) for of_order in zip(*spent, strict=True)]
        return tuple(
            1 - of_order / limit
            for of_order, limit in zip(
                sums or [0.0] * len(self.limits), self.limits, strict=True
            )
        )

    def admits(
        self, cost: Sequence[float], spent: Sequence[Sequence[float | Fraction]] = ()
    ) -> bool:
        """Check whether a cost is within the budget.

        Parameters
        ----------
        cost : sequence of float
            Cost of a release, from `cost`.

        spent : sequence of sequence of float or Fraction, default=()
            Cost of each earlier release, or the sum of all costs as the only item.

        Returns
        -------
        admits : bool
            True if the sum of all costs is within the limit at some order.
        """
        sums = (_sum(of_order) for of_order in zip(cost, *spent, strict=True))
        return any(
            total <= limit for total, limit in zip(sums, self.limits, strict=True)
        )


def _how_often(fractions: tuple[float, float]) -> tuple[float, float]:
    """Return a sort key for (taken, left): the number of times that the cost fits."""
    taken, left = fractions
    if np.isinf(taken):
        return -np.inf, -np.inf
    if left < 0:
        return -np.inf, left
    return (left / taken if taken else np.inf), left


def _sum(values: Iterable[float | Fraction]) -> float:
    """Return the exact sum, rounded once."""
    values = list(values)
    try:
        return (
            np.inf if np.inf in values else float(sum(Fraction(one) for one in values))
        )
    except OverflowError:
        return np.inf


def _limits(orders: _Array, epsilon: float, delta: float) -> _Array:
    """Return the limits at which a Renyi cost gives (epsilon, delta)."""
    free = RdpCurve(orders, np.zeros_like(orders))
    return epsilon - free.epsilons(delta)

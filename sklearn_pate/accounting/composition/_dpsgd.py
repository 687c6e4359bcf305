"""Privacy cost of all steps of DP-SGD together, and the noise for a target epsilon."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp

from sklearn_pate.accounting._calibrate import calibrate_noise, six_digits
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.composition._poisson_sampling import sampled_gaussian_curve

__all__ = ["calibrate_steps", "dpsgd_cost"]

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
_PRECISION = 5e-5
# Parameters of Chernoff's inequality, times the largest loss of the grid.
_TILTS = 2.0 ** np.arange(0, 12.5, 0.5)


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
    a sum by one row; neighbouring data sets differ by one added or removed row. With
    "pld", epsilon comes from the numerically composed law of the privacy loss and is
    never larger than with "rdp", which uses the curve.
    """
    curve = sampled_gaussian_curve(noise_multiplier, sampling_rate) * n_steps
    epsilon = curve.quiet_epsilon(delta)
    if accountant == "pld":
        exact = _loss_epsilon(noise_multiplier, sampling_rate, n_steps, curve, delta)
        epsilon = min(epsilon, exact)
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

    The smallest up to one part in 5000, rounded up to six significant digits.
    """

    def curve_at_scale(
        noise_multiplier: float, orders: NDArray[np.float64]
    ) -> RdpCurve:
        return sampled_gaussian_curve(noise_multiplier, sampling_rate, orders) * n_steps

    try:
        enough = calibrate_noise(curve_at_scale, epsilon=epsilon, delta=delta)
    except ValueError as error:
        raise ValueError(
            f"epsilon={epsilon!r} cannot be reached with delta={delta!r} in {n_steps} "
            "steps by any useful noise; raise epsilon or delta, or lower max_epochs or "
            "batch_size of the estimator."
        ) from error
    if accountant == "rdp":
        return enough

    def excess(log_noise: float) -> float:
        cost, _ = dpsgd_cost(
            np.exp(log_noise),
            sampling_rate,
            n_steps,
            delta=delta,
            accountant=accountant,
        )
        return cost - epsilon

    high = np.log(enough)
    low = high - 0.1
    while excess(low) <= 0:
        low, high = low - 0.1, low
    log_noise = brentq(excess, low, high, xtol=_PRECISION)
    while True:
        noise_multiplier = six_digits(np.exp(log_noise), np.ceil)
        if noise_multiplier >= enough or excess(np.log(noise_multiplier)) <= 0:
            return min(noise_multiplier, enough)
        log_noise += _PRECISION


def _loss_epsilon(
    noise_multiplier: float, rate: float, n_steps: int, curve: RdpCurve, delta: float
) -> float:
    """Compose the privacy losses of all steps on a grid; return epsilon.

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
        return np.inf
    # A divergence of an order near 1 is half the variance, as for a Gaussian law.
    cell = _FINENESS * np.sqrt(2 * one.values[0])
    cell = max(cell, 2 * farthest / _LARGEST_GRID)
    n_cells = int(np.ceil(farthest / cell))
    losses = cell * np.arange(-n_cells, n_cells + 1)
    of_p, of_q = _cells(noise_multiplier, rate, losses)
    remove = _ends(of_p, of_q, losses)
    # Swapping P and Q changes the sign of all losses.
    add = _ends(of_q[::-1], of_p[::-1], losses)
    return max(
        _composed_epsilon(masses, infinite, losses, n_steps, delta)
        for masses, infinite in (remove, add)
    )


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
    """Return the masses of a standard normal law below, between and above points."""
    points = np.concatenate([[-np.inf], points, [np.inf]])
    # From the tail in which no digits are lost.
    below, above = np.exp(log_ndtr(points)), np.exp(log_ndtr(-points))
    return np.where(points[1:] <= 0, np.diff(below), -np.diff(above))


def _ends(of_p: _Array, of_q: _Array, losses: _Array) -> tuple[_Array, float]:
    """Move the mass of P to the points of the grid; return it and the infinite mass."""
    cell = losses[1] - losses[0]
    inner = of_p[1:-1]
    upper = (inner - of_q[1:-1] * np.exp(losses[:-1])) / -np.expm1(-cell)
    upper = np.clip(upper, 0, inner)
    masses = np.zeros(len(losses))
    masses[:-1] += inner - upper
    masses[1:] += upper
    masses[0] += of_p[0]
    return masses, of_p[-1]


def _composed_epsilon(
    masses: _Array, infinite: float, losses: _Array, n_steps: int, delta: float
) -> float:
    """Compose one direction n_steps times and return its epsilon."""
    size = next_fast_len(len(losses), real=True)
    n_cells = len(losses) // 2
    around = np.zeros(size)
    around[: len(losses)] = masses
    around = np.roll(around, -n_cells)  # a loss of 0 comes first
    composed = irfft(rfft(around) ** n_steps, size)
    composed = np.roll(np.maximum(composed, 0), n_cells)[: len(losses)]
    allowed = (
        delta
        + np.expm1(n_steps * np.log1p(-infinite))
        - _beyond(masses, losses, n_steps)
        - _ROUND_OFF
    )
    return _epsilon(composed, losses, allowed)


def _beyond(masses: _Array, losses: _Array, n_steps: int) -> float:
    """Bound the probability that the sum of losses is above the grid."""
    held = masses > 0
    log_masses, highest = np.log(masses[held]), losses[-1]
    exponents = [
        n_steps * logsumexp(log_masses + tilt * losses[held] / highest) - tilt
        for tilt in _TILTS
    ]
    return float(np.exp(min(exponents)))


def _epsilon(masses: _Array, losses: _Array, delta: float) -> float:
    """Solve sum over losses s > epsilon of mass (1 - e^{epsilon - s}) <= delta."""
    if delta <= 0:
        return np.inf
    is_positive = losses > 0
    masses, losses = masses[is_positive], losses[is_positive]
    # Mass from each point on, under P and under Q.
    of_p = np.cumsum(masses[::-1])[::-1]
    of_q = np.cumsum((masses * np.exp(-losses))[::-1])[::-1]
    deltas = of_p - of_q * np.exp(np.concatenate([[0.0], losses[:-1]]))
    # Just below point i, epsilon is within (point i - 1, point i].
    fits = np.flatnonzero(deltas <= delta)
    if fits.size == 0:
        return np.inf
    if fits[0] == 0:
        return 0.0
    i = fits[0] - 1
    return float(np.log((of_p[i] - delta) / of_q[i]))

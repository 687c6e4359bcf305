"""Privacy cost of all steps of DP-SGD together, and the noise for a target epsilon."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import log_ndtr, logsumexp

from sklearn_pate.accounting._calibrate import calibrate_noise, least_noise
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.composition._poisson_sampling import sampled_gaussian_curve

__all__ = ["calibrate_steps", "dpsgd_cost", "dpsgd_profile"]

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
            f"epsilon={epsilon!r} cannot be reached with delta={delta!r} in "
            f"{counted(n_steps, 'step')} by any useful noise; raise epsilon or delta, "
            "or lower max_epochs or batch_size of the estimator."
        ) from error
    if accountant == "rdp":
        return enough

    def cost_at_scale(noise_multiplier: float) -> float:
        cost, _ = dpsgd_cost(
            noise_multiplier,
            sampling_rate,
            n_steps,
            delta=delta,
            accountant=accountant,
        )
        return cost

    return least_noise(cost_at_scale, epsilon=epsilon, start=enough) or enough


def dpsgd_profile(
    noise_multiplier: float, sampling_rate: float, n_steps: int
) -> PrivacyProfile:
    """Compute delta at every epsilon from the composed law of the privacy loss."""
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

    Each holds for its direction alone, at epsilons that are not negative.

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


def _composed_profile(
    masses: _Array, infinite: float, losses: _Array, n_steps: int
) -> PrivacyProfile:
    """Compose one direction n_steps times."""
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

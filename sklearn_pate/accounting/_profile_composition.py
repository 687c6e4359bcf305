"""Composition of privacy profiles by the laws of the privacy loss."""

from collections.abc import Iterable
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from sklearn_pate.accounting._gdp import log_gdp_delta
from sklearn_pate.accounting._profile import (
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    PrivacyProfile,
    both_signs,
    lower_hull,
    mirrored,
)

__all__ = ["after_losses", "compose_profiles", "dominating_masses", "extended"]

_Array = NDArray[np.float64]

# Largest error of a convolution of deltas.
_FFT_ERROR = 1e-13
# Points of the grid on the wider of two profiles.
_N_POINTS = 4000
_ROUNDING = 1e-9


def compose_profiles(profiles: Iterable[PrivacyProfile]) -> PrivacyProfile:
    """Compute the privacy profile of several releases about the same data.

    Parameters
    ----------
    profiles : iterable of PrivacyProfile
        Profile of each release, such as ``privacy_spent_.profile``, all for one
        neighbour relation. At least one.

    Returns
    -------
    profile : PrivacyProfile
        Holds for all releases together, also if a later one depends on the results of
        earlier ones, as long as its profile was fixed beforehand. Deltas below 1e-12
        are not resolved.

    Raises
    ------
    ValueError
        If there is no profile.

    Notes
    -----
    Each profile is that of a pair of laws, which dominates the release; the privacy
    losses of these pairs add up (Zhu, Dong, Wang 2022, "Optimal accounting of
    differential privacy via characteristic function", Theorem 10). The laws are placed
    on a grid of epsilon in such a way that no delta decreases. The sum of the Renyi
    curves may give a smaller epsilon where only curves are known.

    Examples
    --------
    Two fits with an epsilon of 1 each, whose Renyi curves add up to 1.58:

    >>> from sklearn_pate.accounting import compose_profiles
    >>> from sklearn_pate.mechanisms import GNMax
    >>> mechanism = GNMax(sigma=42.5)
    >>> profile = mechanism.stated_profile(n_queries=100, n_classes=2)
    >>> round(profile.epsilon_at(1e-5), 2)
    1.0
    >>> round(compose_profiles([profile, profile]).epsilon_at(1e-5), 2)
    1.46
    """
    profiles = list(profiles)
    if not profiles:
        raise ValueError("profiles is empty; pass the profile of each release.")
    return reduce(_composed, profiles)


def _composed(first: PrivacyProfile, second: PrivacyProfile) -> PrivacyProfile:
    """Bound the profile of two releases."""
    tops = [_top(profile) for profile in (first, second)]
    step = max(*tops, 1e-6) / _N_POINTS
    on_grid = [
        profile.delta_at(step * np.arange(int(np.ceil(top / step)) + 2))
        for profile, top in zip((first, second), tops, strict=True)
    ]
    masses, infinite = dominating_masses(on_grid[1], step)
    n_more = len(on_grid[1])
    deltas = np.append(on_grid[0], np.full(n_more, on_grid[0][-1]))
    deltas = after_losses(deltas, step, None, masses) + infinite
    epsilons = step * np.arange(len(deltas)) * (1 + _ROUNDING)
    return lower_hull(epsilons, np.minimum(deltas * (1 + _ROUNDING), 1.0))


def _top(profile: PrivacyProfile) -> float:
    """Return an epsilon where delta is negligible, or stays as it is."""
    n_used = int(np.sum(profile.deltas > SMALLEST_DELTA))
    top = float(profile.epsilons[min(n_used, len(profile.epsilons) - 1)])
    return min(top, LARGEST_EPSILON)


def extended(deltas: _Array, step: float, mu: float | None, n_more: int) -> _Array:
    """Continue a profile at both ends.

    Above, it stays at its last value, or is less if it post-processes a test of mu.
    """
    u: _Array = step * np.arange(1, n_more + 1, dtype=np.float64)
    inner = np.append(deltas, np.full(max(n_more + 1 - len(deltas), 0), deltas[-1]))
    left = mirrored(u, inner[1 : n_more + 1])
    right = np.full(n_more, deltas[-1])
    if mu:
        beyond = step * (len(deltas) - 1) + u
        right = np.minimum(right, np.exp(log_gdp_delta(beyond, mu)))
    return np.concatenate([left[::-1], deltas, right])


def after_losses(
    deltas: _Array, step: float, mu: float | None, masses: _Array
) -> _Array:
    """Compose a profile, which post-processes a test of mu, with masses of losses."""
    wide = extended(deltas, step, mu, len(masses) // 2)
    n = next_fast_len(len(wide), real=True)  # what wraps around is not read
    found: _Array = irfft(rfft(wide, n) * rfft(masses, n), n)
    return found[len(masses) - 1 : len(wide)] + _FFT_ERROR


def dominating_masses(deltas: _Array, step: float) -> tuple[_Array, float]:
    """Return a law of the privacy loss that has at least a profile, on its grid.

    The law of the loss under P has masses at all points from -(n - 1) to n - 1 steps,
    and one at infinity.
    """
    u: _Array = step * np.arange(len(deltas), dtype=np.float64)
    both = both_signs(u)
    deltas = lower_hull(u, deltas).delta_at(both)
    ratio = np.exp(both)
    slopes = np.diff(deltas, prepend=1.0) / np.diff(ratio, prepend=0.0)
    masses = ratio * np.maximum(np.diff(slopes, append=0.0), 0.0)
    return masses, float(deltas[-1])

"""Privacy profiles: delta as a function of epsilon, and their composition."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft

from sklearn_pate.accounting._calibrate import (
    gdp_delta,
    gdp_epsilon,
    log_gdp_delta,
    six_digits,
)
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._value_checks import (
    check_count,
    check_number,
    checked_pairs,
    counted,
)

_Array = NDArray[np.float64]
_Point = tuple[float, float]

# Deltas below this are not resolved.
SMALLEST_DELTA = 1e-12
# Larger epsilons mean nothing, and their exponentials overflow.
LARGEST_EPSILON = 500.0
# Thinned points make delta larger by at most this fraction.
_THINNING = 0.005
# Largest error of a convolution of deltas.
_FFT_ERROR = 1e-13
# Points of the grid on the wider of two profiles.
_N_POINTS = 4000
_ROUNDING = 1e-9
# Tangent points of the conversion of a Renyi curve, see `curve_profile`: (a - 1)(ln w -
# r) and (a - 1) ln v.
_LOG_DELTAS = 28.0 * np.linspace(0.0, 1.0, 97) ** 2
_LOWER_TANGENTS = np.append(-np.inf, -(2.0 ** np.arange(3.0, -6.5, -0.75)))
_N_CELLS = 8000


@dataclass(frozen=True, eq=False, init=False)
class PrivacyProfile:
    """Upper bound on delta of one release at every epsilon. May be published.

    The release is (epsilon, ``delta_at(epsilon)``)-differentially private at every
    epsilon. Bounds on attackers follow from all pairs (epsilon, delta) together, and
    are stronger than bounds from a single pair.

    Parameters
    ----------
    epsilons : array-like of shape (n_points,)
        Epsilons, increasing from 0, in nats.

    deltas : array-like of shape (n_points,)
        Delta at each epsilon, in [0, 1], not increasing. Beyond the last epsilon, delta
        stays at the last value.

    Raises
    ------
    ValueError
        If `epsilons` or `deltas` are not as described under Parameters.

    Notes
    -----
    Let P and Q be the distributions of the release for two neighbouring data sets. The
    profile is the supremum over events S of P(S) - e^epsilon Q(S) (Balle, Barthe,
    Gaboardi 2018, "Privacy amplification by subsampling: tight analyses via couplings
    and divergences"). The bound also holds with P and Q exchanged, so that
    delta(-epsilon) = 1 - e^-epsilon (1 - delta(epsilon)). Delta is convex in e^epsilon,
    so linear interpolation in e^epsilon gives an upper bound. Epsilons above 500 are
    not resolved.

    Examples
    --------
    >>> from sklearn_pate.accounting import PrivacyProfile
    >>> profile = PrivacyProfile([0.0, 0.5, 1.0], [0.11, 0.01, 1e-5])
    >>> profile.delta_at(1.0), profile.epsilon_at(0.01)
    (1e-05, 0.5)
    >>> round(profile.attack_accuracy(), 3)  # a fair coin decides between data sets
    0.555
    >>> round(profile.detection_rate(false_alarms=0.1), 3)
    0.175
    """

    __module__ = "sklearn_pate.accounting"  # its name in files

    epsilons: _Array
    deltas: _Array

    def __init__(self, epsilons: ArrayLike, deltas: ArrayLike) -> None:
        epsilons, deltas = checked_pairs(epsilons=epsilons, deltas=deltas)
        increases = np.all(np.isfinite(epsilons)) and np.all(np.diff(epsilons) > 0)
        if epsilons[0] != 0 or not increases:
            raise ValueError(
                f"epsilons={epsilons.tolist()} must increase strictly from 0; sort "
                "them, and drop repeated ones."
            )
        if not np.all((deltas >= 0) & (deltas <= 1)) or np.any(np.diff(deltas) > 0):
            raise ValueError(
                f"deltas={deltas.tolist()} must be between 0 and 1 and must not "
                "increase, as a larger epsilon never needs a larger delta."
            )
        object.__setattr__(self, "epsilons", epsilons)
        object.__setattr__(self, "deltas", deltas)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivacyProfile):
            return NotImplemented
        return np.array_equal(self.epsilons, other.epsilons) and np.array_equal(
            self.deltas, other.deltas
        )

    __hash__ = None  # type: ignore[assignment] # arrays cannot be hashed

    def __repr__(self) -> str:
        return (
            f"PrivacyProfile({counted(self.epsilons.size, 'point')}, delta "
            f"{self.deltas[0]:.3g} "
            f"at epsilon 0 to {self.deltas[-1]:.3g} at {self.epsilons[-1]:.3g})"
        )

    def delta_at(self, epsilon: Any) -> Any:
        """Return the delta of the guarantee at a given epsilon.

        Parameters
        ----------
        epsilon : float or array-like of float
            Epsilon in nats, may be negative.

        Returns
        -------
        delta : float or ndarray of float
            Delta between 0 and 1, interpolated linearly in e^epsilon.

        Raises
        ------
        ValueError
            If `epsilon` is not a number.
        """
        epsilons = np.asarray(epsilon, dtype=np.float64)
        if np.any(np.isnan(epsilons)):
            raise ValueError(f"epsilon={epsilon!r} must be a number.")
        size = np.abs(epsilons)
        last = len(self.epsilons) - 1
        low = np.searchsorted(self.epsilons, size, "right") - 1
        deltas = _on_chord(
            self.epsilons, self.deltas, low, np.minimum(low + 1, last), size
        )
        deltas = np.where(epsilons >= 0, deltas, mirrored(size, deltas))
        return deltas if deltas.ndim else float(deltas)

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest epsilon of the guarantee at a given delta.

        Parameters
        ----------
        delta : float
            Delta of the (epsilon, delta) guarantee, in [0, 1].

        Returns
        -------
        epsilon : float
            Epsilon in nats, not negative. Infinite if the profile exceeds `delta` at
            every epsilon.

        Raises
        ------
        ValueError
            If `delta` is out of range.
        """
        check_number("delta", delta, 0, 1)
        reached = np.flatnonzero(self.deltas <= delta)
        if reached.size == 0:
            return np.inf
        if reached[0] == 0:
            return 0.0
        high = reached[0]
        low = high - 1
        share = (self.deltas[low] - delta) / (self.deltas[low] - self.deltas[high])
        if share >= 1:
            return float(self.epsilons[high])
        with np.errstate(divide="ignore"):
            return float(
                np.logaddexp(
                    self.epsilons[low] + np.log1p(-share),
                    self.epsilons[high] + np.log(share),
                )
            )

    def attack_accuracy(self, prior: float = 0.5) -> float:
        """Bound how often an attacker guesses which of two data sets was used.

        Parameters
        ----------
        prior : float, default=0.5
            Probability before the release, in [0, 1], that the first data set was used.

        Returns
        -------
        accuracy : float
            Largest probability of a right guess between two neighbouring data sets, for
            any attacker who knows both data sets and the release.

        Raises
        ------
        ValueError
            If `prior` is out of range.

        Notes
        -----
        With prior probability c of the first data set, the best guess is right with
        probability 1 - c + c delta(ln((1 - c) / c)). For c = 1/2 this is (1 + delta(0))
        / 2, where delta(0) is the total variation distance of P and Q.
        """
        check_number("prior", prior, 0, 1)
        if prior in (0, 1):
            return 1.0
        rare = min(prior, 1 - prior)
        ratio = np.log1p(-rare) - np.log(rare)
        return float(min(1 - rare + rare * self.delta_at(ratio), 1.0))

    def detection_rate(self, false_alarms: float) -> float:
        """Bound how often an attacker detects a true claim about one unit.

        Parameters
        ----------
        false_alarms : float
            Share of false claims about a unit that the attacker accepts, in [0, 1].

        Returns
        -------
        detections : float
            Largest share of true claims that the attacker accepts (the power of a
            test at this level).

        Raises
        ------
        ValueError
            If `false_alarms` is out of range.

        Notes
        -----
        The bound is the minimum over epsilon of delta(epsilon) + e^epsilon a, where a
        is the rate of false alarms (Dong, Roth, Su 2022, "Gaussian differential
        privacy", Proposition 2.11).
        """
        check_number("false_alarms", false_alarms, 0, 1)
        if false_alarms == 0:
            return float(self.deltas[-1])
        both = both_signs(self.epsilons)
        with np.errstate(over="ignore"):
            bounds = self.delta_at(both) + np.exp(both) * false_alarms
        return float(min(bounds.min(), 1.0))

    def of_units(self, n_units: int) -> "PrivacyProfile":
        """Return the privacy profile for a change of several units (group privacy).

        Parameters
        ----------
        n_units : int
            Number of units that change together, positive.

        Returns
        -------
        profile : PrivacyProfile
            Profile for data sets that differ in `n_units` units.

        Raises
        ------
        ValueError
            If `n_units` is not a positive whole number.

        Notes
        -----
        By the triangle inequality of hockey-stick divergences, delta_{k+1}(a + b) <=
        delta_1(b) + e^b delta_k(a) for all a and b. Vadhan (2017, "The complexity of
        differential privacy", Lemma 2.2) proves the case of an equal epsilon for each
        unit.
        """
        check_count("n_units", n_units)
        resolved = self.epsilons <= LARGEST_EPSILON
        steps, deltas = self.epsilons[resolved], self.deltas[resolved]
        total, of_equal_steps = self, deltas
        splits = both_signs(steps)
        for k in range(1, int(n_units)):
            epsilons = steps * (k + 1)
            with np.errstate(over="ignore"):
                bounds = self.delta_at(splits) + np.exp(splits) * total.delta_at(
                    epsilons[:, np.newaxis] - splits
                )
                # Without rounding of epsilons, so that pure guarantees stay pure.
                of_equal_steps = deltas + np.exp(steps) * of_equal_steps
            bounds = np.minimum(bounds.min(axis=1), of_equal_steps)
            total = lower_hull(epsilons, np.minimum(bounds, 1.0))
        return total

    def intersect(self, other: "PrivacyProfile") -> "PrivacyProfile":
        """Combine two upper bounds on the profile of one release.

        Parameters
        ----------
        other : PrivacyProfile
            Another upper bound for the same release and neighbour relation.

        Returns
        -------
        profile : PrivacyProfile
            Lower convex hull of both bounds, also an upper bound.
        """
        return lower_hull(
            np.concatenate([self.epsilons, other.epsilons]),
            np.concatenate([self.deltas, other.deltas]),
        )

    @classmethod
    def largest(cls, profiles: Iterable["PrivacyProfile"]) -> "PrivacyProfile":
        """Return the pointwise maximum of several profiles.

        Parameters
        ----------
        profiles : iterable of PrivacyProfile
            At least one profile.

        Returns
        -------
        profile : PrivacyProfile
            Upper bound for a release that has one of these profiles.
        """
        profiles = list(profiles)
        epsilons = np.unique(np.concatenate([one.epsilons for one in profiles]))
        return lower_hull(
            epsilons, np.max([one.delta_at(epsilons) for one in profiles], axis=0)
        )

    def thinned(self, epsilon: float, delta: float) -> "PrivacyProfile":
        """Return a profile with fewer points, rounded up, that keeps a given pair.

        Parameters
        ----------
        epsilon, delta : float
            A pair that the release satisfies. The pair is kept exactly, or left out if
            epsilon is infinite.

        Returns
        -------
        profile : PrivacyProfile
            Profile with deltas larger by at most half a per cent, except the smallest
            deltas.
        """
        epsilons, deltas = self.epsilons, self.deltas
        kept = [0]
        while kept[-1] < len(epsilons) - 1:
            kept.append(_farthest(epsilons, deltas, kept[-1]))
        epsilons, deltas = _rounded_up(epsilons[kept]), _rounded_up(deltas[kept])
        if np.isfinite(epsilon):
            epsilons, deltas = np.append(epsilons, epsilon), np.append(deltas, delta)
        return lower_hull(epsilons, np.minimum(deltas, 1.0))


def lower_hull(epsilons: ArrayLike, deltas: ArrayLike) -> PrivacyProfile:
    """Make a profile from pairs (epsilon, delta) of a release, epsilon at least 0.

    Pairs (epsilon, delta) are joined with their mirror images and with delta = 1 at
    e^epsilon = 0; every chord in e^epsilon of two valid pairs is valid.
    """
    epsilons = np.asarray(epsilons, dtype=np.float64)
    deltas = np.asarray(deltas, dtype=np.float64)
    resolved = epsilons <= LARGEST_EPSILON
    epsilons, deltas = epsilons[resolved], deltas[resolved]
    log_ratio = np.concatenate([epsilons, -epsilons, [-np.inf]])
    ratio = np.exp(log_ratio)
    height = np.concatenate([deltas, mirrored(epsilons, deltas), [1.0]])
    # As lists, whose single numbers are read faster.
    points = list(zip(ratio.tolist(), height.tolist(), strict=True))
    hull: list[int] = []
    for i in np.lexsort((height, log_ratio)).tolist():
        if hull and points[i][1] >= points[hull[-1]][1]:
            continue
        while len(hull) > 1 and _is_above(
            points[hull[-1]], points[hull[-2]], points[i]
        ):
            hull.pop()
        hull.append(i)
    at, below = log_ratio[hull], height[hull]
    first = int(np.searchsorted(at, 0.0, "right"))
    if first == len(at):  # nothing beyond epsilon = 0
        return PrivacyProfile([0.0], [below[-1]])
    at_zero = _on_chord(at, below, first - 1, first, 0.0)
    epsilons = np.append(0.0, at[first:])
    deltas = np.append(np.clip(at_zero, below[first], 1.0), below[first:])
    # Without points that are not resolved, but for a pure guarantee.
    used = np.append(True, deltas[:-1] > SMALLEST_DELTA / 10) | (deltas == 0)
    return PrivacyProfile(epsilons[used], deltas[used])


def _is_above(point: _Point, low: _Point, high: _Point) -> bool:
    """Check that a point lies on or above the chord of two others."""
    return (point[1] - low[1]) * (high[0] - low[0]) >= (high[1] - low[1]) * (
        point[0] - low[0]
    )


def mirrored(epsilons: _Array, deltas: _Array) -> _Array:
    """Return delta at -epsilon for pairs of a profile: 1 - e^-epsilon (1 - delta)."""
    return np.exp(-epsilons) * deltas - np.expm1(-epsilons)


def both_signs(epsilons: _Array) -> _Array:
    """Return increasing epsilons, the first of which is 0, and their negatives."""
    return np.append(-epsilons[:0:-1], epsilons)


def _on_chord(
    epsilons: _Array, deltas: _Array, low: Any, high: Any, epsilon: ArrayLike
) -> _Array:
    """Interpolate delta at epsilon, linearly in e^epsilon, between two points.

    From the upper end on it is that of the upper end.
    """
    width = epsilons[low] - epsilons[high]
    with np.errstate(invalid="ignore"):
        # Weights of the lower end, so that small deltas at the other stay exact.
        share = np.expm1(np.minimum(epsilon - epsilons[high], 0.0)) / np.expm1(width)
    share = np.where(width < 0, share, 0.0)
    return share * deltas[low] + (1 - share) * deltas[high]


def _farthest(epsilons: _Array, deltas: _Array, start: int) -> int:
    """Return the last point to which a chord from a point is tight enough."""
    last, n = len(epsilons) - 1, 64
    while True:
        some = slice(start + 1, start + 1 + n)
        run = np.expm1(epsilons[some] - epsilons[start])
        rise = deltas[some] - deltas[start]
        # A tight chord is not steeper than those to the points before it, raised.
        steepest = np.minimum.accumulate((rise + _THINNING * deltas[some]) / run)
        loose = np.flatnonzero(rise[1:] / run[1:] > steepest[:-1])
        if loose.size:
            return start + 1 + int(loose[0])
        if start + n >= last:
            return last
        n *= 2


def _rounded_up(values: _Array) -> _Array:
    """Round values up to six significant digits, but for subnormal ones."""
    return np.array([six_digits(x, np.ceil) if x > 1e-300 else x for x in values])


def compose_profiles(profiles: Iterable[PrivacyProfile]) -> PrivacyProfile:
    """Compute the privacy profile of several releases about the same data.

    Parameters
    ----------
    profiles : iterable of PrivacyProfile
        Profile of each release, such as ``privacy_spent_.profile``, all for one
        neighbour relation. At least one profile.

    Returns
    -------
    profile : PrivacyProfile
        Profile of all releases together. A later release may depend on results of
        earlier releases if its profile was fixed beforehand. Deltas below 1e-12 are not
        resolved.

    Raises
    ------
    ValueError
        If there is no profile.

    Notes
    -----
    For each profile there is a pair of distributions, at least as distinguishable as
    the release on any neighbouring data sets. The privacy losses of all pairs add up
    (Zhu, Dong, Wang 2022, "Optimal accounting of differential privacy via
    characteristic function", Theorem 10). Losses are rounded to a grid of epsilon so
    that no delta decreases. If only Renyi curves are known, their sum may give a
    smaller epsilon.

    Examples
    --------
    Two fits with an epsilon of 1 each. The sum of the Renyi curves would give an
    epsilon of 1.58 for both:

    >>> from sklearn_pate.accounting import compose_profiles
    >>> from sklearn_pate.mechanisms import GNMax
    >>> mechanism = GNMax(sigma=42.5)
    >>> profile = mechanism.cost(n_queries=100, n_classes=2).profile
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
    """Return an epsilon above which delta is negligible or constant."""
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
    """Compose a profile with a discrete distribution of privacy losses."""
    wide = extended(deltas, step, mu, len(masses) // 2)
    n = next_fast_len(len(wide), real=True)  # what wraps around is not read
    found: _Array = irfft(rfft(wide, n) * rfft(masses, n), n)
    return found[len(masses) - 1 : len(wide)] + _FFT_ERROR


def dominating_masses(deltas: _Array, step: float) -> tuple[_Array, float]:
    """Return a distribution of privacy losses on a grid, whose profile is not smaller.

    The distribution of the loss under P has masses at all points from -(n - 1) to n - 1
    steps, and one at infinity.
    """
    u: _Array = step * np.arange(len(deltas), dtype=np.float64)
    both = both_signs(u)
    deltas = lower_hull(u, deltas).delta_at(both)
    ratio = np.exp(both)
    slopes = np.diff(deltas, prepend=1.0) / np.diff(ratio, prepend=0.0)
    masses = ratio * np.maximum(np.diff(slopes, append=0.0), 0.0)
    return masses, float(deltas[-1])


def curve_profile(curve: RdpCurve) -> PrivacyProfile:
    """Convert a Renyi curve to a profile, as tightly as single orders allow.

    For L = P/Q, the divergence r of order a gives E_Q L^a <= e^{(a-1) r}, and E_Q L =
    1. The function f(x) = c x^a - c a v^{a-1} x + c (a-1) v^a is 0 at x = v and touches
    x - t at x = w if c = 1 / (a (w^{a-1} - v^{a-1})) and t = c (a-1) (w^a - v^a). It is
    convex, so that f(x) >= max(0, x - t), and delta = E_Q max(0, L - t) is at most
    E_Q f(L) <= c (e^{(a-1) r} - a v^{a-1} + (a-1) v^a). With v = 0 that is Canonne,
    Kamath, Steinke (2020), Proposition 12; the best v < 1 is optimal for one order
    (Asoodeh, Liao, Calmon, Kosut, Sankar 2021, "Three variants of differential privacy:
    lossless conversion and applications").
    """
    return _converted(
        curve.orders.tobytes(), curve.values.tobytes(), curve.pure_epsilon
    )


@lru_cache(maxsize=256)
def _converted(orders: bytes, values: bytes, pure_epsilon: float) -> PrivacyProfile:
    """Convert a Renyi curve, cached."""
    known = np.isfinite(np.frombuffer(values))
    a = np.frombuffer(orders)[known][:, np.newaxis, np.newaxis]
    r = np.frombuffer(values)[known][:, np.newaxis, np.newaxis]
    log_v = _LOWER_TANGENTS / (a - 1)
    # c e^{(a-1) r} from 1 down to the smallest delta.
    log_w = r + _LOG_DELTAS[:, np.newaxis] / (a - 1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap = log_v - log_w
        slope = -a * np.expm1((a - 1) * gap)
        log_t = log_w + np.log((a - 1) * -np.expm1(a * gap) / slope)
        # e^{-(a-1) r} (a v^{a-1} - (a-1) v^a), without cancellation at large orders.
        mean = np.exp((a - 1) * (log_v - r)) * (1 - (a - 1) * np.expm1(log_v))
        deltas = (1 - mean + _ROUNDING * 1e-6) * np.exp(-(a - 1) * (log_w - r)) / slope
    used = (gap < 0) & (log_t >= 0) & (log_t <= LARGEST_EPSILON) & (deltas < 1)
    epsilons, deltas = _best_of_cells(
        log_t[used] + _ROUNDING, deltas[used] * (1 + _ROUNDING)
    )
    if pure_epsilon <= LARGEST_EPSILON:
        epsilons = np.append(epsilons, pure_epsilon)
        deltas = np.append(deltas, 0.0)
    return lower_hull(epsilons * (1 + _ROUNDING), deltas)


def gaussian_profile(mu: float) -> PrivacyProfile:
    """Return the exact profile of mu-Gaussian differential privacy, rounded up."""
    top = gdp_epsilon(mu, SMALLEST_DELTA)
    if top > LARGEST_EPSILON:
        return PrivacyProfile([0.0], [1.0])
    if top == 0:
        return PrivacyProfile([0.0], [SMALLEST_DELTA if mu > 0 else 0.0])
    epsilons = np.linspace(0.0, top, 400)
    deltas = np.array([gdp_delta(epsilon, mu) for epsilon in epsilons])
    return lower_hull(epsilons * (1 + _ROUNDING) + _ROUNDING, deltas * (1 + _ROUNDING))


def _best_of_cells(epsilons: _Array, deltas: _Array) -> tuple[_Array, _Array]:
    """Return the pair with the smallest delta of each of many cells of epsilon."""
    if epsilons.size == 0:
        return epsilons, deltas
    # All cells have equal width in log(epsilon).
    cells = np.floor(np.log(np.maximum(epsilons, 1e-9)) * (_N_CELLS / 27)).astype(int)
    cells -= cells.min()
    least = np.full(cells.max() + 1, np.inf)
    np.minimum.at(least, cells, deltas)
    best = np.flatnonzero(deltas == least[cells])
    best = best[np.unique(cells[best], return_index=True)[1]]
    return epsilons[best], deltas[best]

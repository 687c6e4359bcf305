"""Privacy profile: the smallest delta at every epsilon."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._calibrate import six_digits
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._value_checks import check_count, check_not_masked

__all__ = [
    "LARGEST_EPSILON",
    "SMALLEST_DELTA",
    "PrivacyProfile",
    "both_signs",
    "lower_hull",
    "mirrored",
]

_Array = NDArray[np.float64]
_Point = tuple[float, float]

# Deltas below this are not resolved.
SMALLEST_DELTA = 1e-12
# Larger epsilons mean nothing, and their exponentials overflow.
LARGEST_EPSILON = 500.0
# Thinned points make delta larger by at most this fraction.
_THINNING = 0.005


@dataclass(frozen=True, eq=False, init=False)
class PrivacyProfile:
    """Upper bound on delta at every epsilon, of one release. May be published.

    The release is (epsilon, ``delta_at(epsilon)``)-differentially private at every
    epsilon. All statements about attackers follow from these pairs together, and are
    stronger than those that follow from one of them.

    Parameters
    ----------
    epsilons : array-like of shape (n_points,)
        Epsilons, increasing from 0, in nats.

    deltas : array-like of shape (n_points,)
        Delta at each epsilon, in [0, 1], not increasing. Beyond the last epsilon it
        stays at its last value.

    Raises
    ------
    ValueError
        If `epsilons` or `deltas` are not of this form.

    Notes
    -----
    For a release with laws P and Q under two neighbouring data sets, the profile is
    sup over events S of P(S) - e^epsilon Q(S) (Balle, Barthe, Gaboardi 2018, "Privacy
    amplification by subsampling: tight analyses via couplings and divergences"). It
    holds for both orders of the data sets, so that delta(-epsilon) = 1 - e^-epsilon (1
    - delta(epsilon)). It is convex in e^epsilon: between two points, delta is read from
    the chord in e^epsilon, which is an upper bound too. Epsilons above 500 are not
    resolved.

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

    epsilons: _Array
    deltas: _Array

    def __init__(self, epsilons: ArrayLike, deltas: ArrayLike) -> None:
        check_not_masked("epsilons", epsilons)
        check_not_masked("deltas", deltas)
        epsilons = np.array(epsilons, dtype=np.float64)
        deltas = np.array(deltas, dtype=np.float64)
        if epsilons.ndim != 1 or epsilons.size == 0 or epsilons.shape != deltas.shape:
            raise ValueError(
                f"epsilons has shape {epsilons.shape} and deltas {deltas.shape}; pass "
                "two one-dimensional arrays of the same, non-zero length."
            )
        if (
            epsilons[0] != 0
            or not np.all(np.isfinite(epsilons))
            or np.any(np.diff(epsilons) <= 0)
        ):
            raise ValueError(
                f"epsilons={epsilons.tolist()} must increase strictly from 0; sort "
                "them, and drop repeated ones."
            )
        if not np.all((deltas >= 0) & (deltas <= 1)) or np.any(np.diff(deltas) > 0):
            raise ValueError(
                f"deltas={deltas.tolist()} must be numbers between 0 and 1 that do not "
                "increase; a larger epsilon never needs a larger delta."
            )
        for name, array in (("epsilons", epsilons), ("deltas", deltas)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

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
        """Return the delta that holds at an epsilon.

        Parameters
        ----------
        epsilon : float or array-like of float
            Any numbers, in nats. At a negative one the release of one data set is at
            most e^epsilon as likely as that of the other, but for delta.

        Returns
        -------
        delta : float or ndarray of float
            Between 0 and 1, from chords in e^epsilon.

        Raises
        ------
        ValueError
            If `epsilon` is no number.
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
        """Return the smallest epsilon that holds at a delta.

        Parameters
        ----------
        delta : float
            The probability mass that epsilon does not cover, in [0, 1].

        Returns
        -------
        epsilon : float
            In nats, not negative; infinite if the profile does not reach `delta`.

        Raises
        ------
        ValueError
            If `delta` is out of range.
        """
        _check_probability("delta", delta)
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
        """Bound how often an attacker names the right one of two data sets.

        Parameters
        ----------
        prior : float, default=0.5
            Probability of the first data set before the release, in [0, 1].

        Returns
        -------
        accuracy : float
            Largest probability of a right guess, for any attacker who knows both data
            sets and the release, and for any two neighbouring data sets.

        Raises
        ------
        ValueError
            If `prior` is out of range.

        Notes
        -----
        The best guess between P with probability c and Q with probability 1 - c is
        right with probability 1 - c + c delta(ln((1 - c) / c)); at 1/2 this is
        (1 + delta(0)) / 2, where delta(0) is the total variation distance.
        """
        _check_probability("prior", prior)
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
            Share of the false claims that the attacker accepts, in [0, 1].

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
        The minimum of delta(epsilon) + e^epsilon a over all epsilons, a being the rate
        of false alarms (Dong, Roth, Su 2022, "Gaussian differential privacy",
        Proposition 2.11).
        """
        _check_probability("false_alarms", false_alarms)
        if false_alarms == 0:
            return float(self.deltas[-1])
        both = both_signs(self.epsilons)
        with np.errstate(over="ignore"):
            bounds = self.delta_at(both) + np.exp(both) * false_alarms
        return float(min(bounds.min(), 1.0))

    def of_units(self, n_units: int) -> "PrivacyProfile":
        """Return the profile of a change of several units (group privacy).

        Parameters
        ----------
        n_units : int
            Number of units that change together, positive.

        Returns
        -------
        profile : PrivacyProfile
            Upper bound for data sets that are `n_units` changes apart.

        Raises
        ------
        ValueError
            If `n_units` is no positive whole number.

        Notes
        -----
        By the triangle inequality of hockey-stick divergences, delta_{k+1}(a + b) <=
        delta_1(b) + e^b delta_k(a) for all a and b (Vadhan 2017, "The complexity of
        differential privacy", Lemma 2.2, is the case of equal steps).
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
        """Return the smaller of two bounds on the profile of one release.

        Parameters
        ----------
        other : PrivacyProfile
            Another upper bound for the same release and neighbour relation.

        Returns
        -------
        profile : PrivacyProfile
            Lower convex hull of both.
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
            At least one.

        Returns
        -------
        profile : PrivacyProfile
            Holds for a release that is one of several.
        """
        profiles = list(profiles)
        epsilons = np.unique(np.concatenate([one.epsilons for one in profiles]))
        return lower_hull(
            epsilons, np.max([one.delta_at(epsilons) for one in profiles], axis=0)
        )

    def thinned(self, epsilon: float, delta: float) -> "PrivacyProfile":
        """Return fewer points, rounded up, with one that is to be kept as it is.

        Parameters
        ----------
        epsilon, delta : float
            A pair that the release satisfies; left out if epsilon is infinite.

        Returns
        -------
        profile : PrivacyProfile
            Deltas are larger by at most half a per cent, away from the smallest ones.
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
    """Make a profile from pairs that a release satisfies, epsilon at least 0.

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
    """Return delta at -epsilon, 1 - e^-epsilon (1 - delta), of pairs of a profile."""
    return np.exp(-epsilons) * deltas - np.expm1(-epsilons)


def both_signs(epsilons: _Array) -> _Array:
    """Return increasing epsilons, the first of which is 0, and their negatives."""
    return np.append(-epsilons[:0:-1], epsilons)


def _on_chord(
    epsilons: _Array, deltas: _Array, low: Any, high: Any, epsilon: ArrayLike
) -> _Array:
    """Read delta at epsilon from the chord in e^epsilon of two points, by their index.

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

    def is_tight(end: int) -> bool:
        between = slice(start + 1, end)
        chord = _on_chord(epsilons, deltas, start, end, epsilons[between])
        return bool(np.all(chord <= deltas[between] * (1 + _THINNING)))

    last = len(epsilons) - 1
    low, high = start + 1, start + 2
    while high <= last and is_tight(high):
        low, high = high, 2 * high - start
    high = min(high, last + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_tight(middle) else (low, middle)
    return low


def _rounded_up(values: _Array) -> _Array:
    """Round values up to six significant digits, but for subnormal ones."""
    return np.array([six_digits(x, np.ceil) if x > 1e-300 else x for x in values])


def _check_probability(name: str, value: float) -> None:
    if not isinstance(value, Real) or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r} must be a number between 0 and 1.")

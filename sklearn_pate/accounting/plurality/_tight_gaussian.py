"""Certified tight worst cases of a noisy plurality. May be published.

The reduction to two classes and a threshold, and the proofs that the returned values
are upper bounds, are in ``docs/accounting.md``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.plurality._closed_form import (
    gaussian_worst_case,
    threshold_worst_case,
)
from sklearn_pate.accounting.plurality._discrete_noise import (
    LARGE_SIGMA,
    DiscreteGaussian,
    sum_rule,
)
from sklearn_pate.accounting.plurality._divergence import raise_to_largest

__all__ = [
    "coarse_lattice",
    "log_law",
    "tight_gaussian_worst_case",
    "tight_threshold_worst_case",
]

_Array = NDArray[np.float64]
# Points of the lattice per standard deviation: for orders up to 3/4 of it, and for
# larger ones, where less depends on them and more points matter.
_RESOLUTION = 28
_COARSE_RESOLUTION = 16
# Orders below the first matter for an epsilon above 30 only; beyond the last, in units
# of sigma, the classical bound is nearly as small.
_SMALLEST_ORDER = 1.5
_LARGEST_ORDER = 4
# Number of orders that are searched together.
_STRIDE = 8
_Search = Callable[[DiscreteGaussian, int, _Array], _Array]
# Relative margin for rounding.
_ROUNDING = 1e-9


def tight_gaussian_worst_case(
    sigma: float, n_classes: int, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Compute a tight worst case of one GNMax answer. May be published.

    Parameters
    ----------
    sigma : float
        Scale of the discrete Gaussian noise on every count, in votes; positive. More
        noise has a lower cost.

    n_classes : int
        Number of classes, which is public. Two classes cost a little less than many.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent, at most that of
        :func:`~sklearn_pate.accounting.bounds.gaussian_worst_case`.

    Raises
    ------
    ValueError
        If `sigma` or `n_classes` is not positive, or `orders` do not increase from
        above 1.

    Notes
    -----
    The cost of :class:`~sklearn_pate.mechanisms.GNMax`. The largest divergence over all
    votes is attained with two classes and a threshold (Lemma 1 of :doc:`Privacy cost of
    an answer </accounting>`). Whole leads on a coarse lattice cover all leads with
    slightly less noise (Lemma 2), and closed forms those outside the search. So the
    result is an upper bound, rounding included, and no maximum over a grid. It is tight
    at orders from 1.5 to 4 sigma. Above them it is a / sigma^2 (Papernot et al. 2018,
    Proposition 8), below them the value at a larger order if it is smaller.

    Examples
    --------
    About two thirds of the classical worst case:

    >>> from sklearn_pate.accounting import tight_gaussian_worst_case
    >>> from sklearn_pate.accounting.bounds import gaussian_worst_case
    >>> orders = [2, 8]
    >>> tight = tight_gaussian_worst_case(sigma=10, n_classes=10, orders=orders)
    >>> (tight.values / gaussian_worst_case(sigma=10, orders=orders).values).round(2)
    array([0.64, 0.65])
    """
    check_positive("sigma", sigma)
    check_count("n_classes", n_classes)
    orders = np.asarray(orders, dtype=np.float64)
    search = _search_plane if n_classes > 2 else _search_line
    return RdpCurve(orders, _values(search, float(sigma), orders.tobytes()))


def tight_threshold_worst_case(
    sigma: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Compute a tight worst case of one check against a threshold. May be published.

    Parameters
    ----------
    sigma : float
        Scale of the discrete Gaussian noise on the largest count, in votes; positive.
        More noise has a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent, for any threshold, at most that of
        :func:`~sklearn_pate.accounting.bounds.threshold_worst_case`.

    Raises
    ------
    ValueError
        If `sigma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    The cost of each check of :class:`~sklearn_pate.mechanisms.ConfidentGNMax` and
    :class:`~sklearn_pate.mechanisms.InteractiveGNMax`, with or without an answer
    (Papernot et al. 2018, Section 4.2). One moved vote changes the largest count by at
    most one, so that the worst case is one lead over the threshold. The search and the
    proof are as for :func:`~sklearn_pate.accounting.tight_gaussian_worst_case`, see
    :doc:`Privacy cost of an answer </accounting>`.

    Examples
    --------
    A thousand checks, by this and by the classical worst case:

    >>> from sklearn_pate.accounting import tight_threshold_worst_case
    >>> from sklearn_pate.accounting.bounds import threshold_worst_case
    >>> round((1000 * tight_threshold_worst_case(sigma=150)).to_epsilon(1e-5), 2)
    0.66
    >>> round((1000 * threshold_worst_case(sigma=150)).to_epsilon(1e-5), 2)
    0.84
    """
    check_positive("sigma", sigma)
    orders = np.asarray(orders, dtype=np.float64)
    return RdpCurve(orders, _values(_search_point, float(sigma), orders.tobytes()))


@lru_cache(maxsize=256)
def _values(search: _Search, sigma: float, orders_as_bytes: bytes) -> _Array:
    """Return the bound at each order, cached."""
    orders = np.frombuffer(orders_as_bytes)
    one_count = threshold_worst_case(sigma, orders).values
    alone = search is _search_point
    classical = one_count if alone else gaussian_worst_case(sigma, orders).values
    values = classical.copy()
    middle = 0.75 * sigma
    for low, high, resolution in (
        (_SMALLEST_ORDER, middle, _RESOLUTION),
        (middle, _LARGEST_ORDER * sigma, _COARSE_RESOLUTION),
    ):
        chosen = np.flatnonzero((low < orders) & (orders <= high))
        if chosen.size:
            noise, step, error = coarse_lattice(sigma, resolution)
            found = search(noise, step, orders[chosen]) * (1 + _ROUNDING)
            wrong = error * (2 * orders[chosen] - 1) / (orders[chosen] - 1)
            values[chosen] = found + wrong
    if not alone:
        # A teacher that abstains shifts one count.
        values = np.maximum(values, one_count)
    # A divergence does not decrease with the order: a larger order's bound holds.
    values = np.minimum.accumulate(values[::-1])[::-1]
    return np.minimum(values, classical)


def coarse_lattice(
    sigma: float, resolution: int, ripple: float | None = None
) -> tuple[DiscreteGaussian, int, float]:
    """Trade a little noise for a lattice of fewer points, which never lowers the bound.

    Returns the remaining noise, the step of the lattice, and the largest error of the
    logarithm of a probability: noise of variance sigma^2 is a mixture, over the
    lattice, of the remaining noise, up to that error, about 8 times the `ripple`
    (Poisson summation).
    """
    step = round(sigma / resolution)
    if step < 2:
        return DiscreteGaussian(sigma), 1, 0.0
    if ripple is None:
        # Far below the divergences, about 1 / sigma^2.
        ripple = 1 / (4e5 * sigma**2)
    variance = -np.log(ripple) / (2 * np.pi**2) * step**2
    left = sigma**2 - variance
    ripple = np.exp(-2 * np.pi**2 * variance * left / (sigma * step) ** 2)
    # The noise of two counts has the error twice.
    error = 4 * np.arctanh(2 * ripple / (1 - ripple))
    return DiscreteGaussian(np.sqrt(left)), step, error


def _search_point(noise: DiscreteGaussian, step: int, orders: _Array) -> _Array:
    """Return the largest divergence of one count and a threshold, over all leads."""
    reach = _Window.around(orders, noise.sigma).below
    lead: NDArray[Any] = step * np.arange(-(reach // step) - 1, reach // step + 2)
    before, after = (
        np.stack([noise.log_cdf(x), noise.log_cdf(-1 - x)], axis=-1)
        for x in (lead, lead - 1)
    )
    found = _largest(before, after - before, orders)
    return np.maximum(found, _beyond_one(reach, noise, orders))


def _search_line(noise: DiscreteGaussian, step: int, orders: _Array) -> _Array:
    """Return the largest divergence of two classes alone, over all gaps."""
    window = _Window.around(orders, noise.sigma)
    _, before, after = _ties(window, noise, step)
    found = _largest(before, after - before, orders)
    return np.maximum(found, _beyond_gap(window, noise, orders))


def _search_plane(noise: DiscreteGaussian, step: int, orders: _Array) -> _Array:
    """Return the largest divergence of two classes and a threshold, over all leads."""
    window = _Window.around(orders, noise.sigma)
    lead = step * np.arange(
        -(window.below // step) - 1, (window.far + window.gap // 2) // step + 2
    )
    x, y = np.meshgrid(lead, lead, indexing="ij")
    inside = (np.abs(x - y) <= window.gap) & (x + y <= 2 * window.far)
    before = log_law(noise, lead, lead, inside)
    after = log_law(noise, lead - 1, lead + 1, inside)
    # The first bound includes the two-way tie, the limit of the plane.
    bounds = [
        _beyond_far(window, noise, step, orders),
        _beyond_below(window, noise, orders),
        _beyond_gap(window, noise, orders),
    ]
    found = _largest(before, after - before, orders, bounds[0])
    return np.max([found, *bounds], axis=0)


def log_law(
    noise: DiscreteGaussian,
    x: NDArray[Any],
    y: NDArray[Any],
    inside: NDArray[np.bool_],
) -> _Array:
    """Return ln Pr[c wins], ln Pr[d wins] and ln Pr[neither], by lead of c and of d.

    c wins ties with d, and both win ties with the threshold: the other rules for ties
    are this one at other leads.
    """
    points, weights = _half_line(noise.sigma, max(x[-1], y[-1]))
    c_first = np.exp(noise.log_pmf(points - x[:, None])) * weights
    c_wins = c_first @ np.exp(noise.log_cdf(points[:, None] - y))
    d_first = np.exp(noise.log_pmf(points - y[:, None])) * weights
    d_wins = np.exp(noise.log_cdf(points[:, None] - 1 - x)).T @ d_first.T
    neither = noise.log_cdf(-1 - x)[:, None] + noise.log_cdf(-1 - y)
    wins = np.log(c_wins[inside]), np.log(d_wins[inside])
    return np.stack([*wins, neither[inside]], axis=-1)


def _ties(
    window: "_Window", noise: DiscreteGaussian, step: int
) -> tuple[NDArray[Any], _Array, _Array]:
    """Return the gaps of two classes, and their laws before and after a move."""
    gaps = step * np.arange(-(window.gap // step) - 1, window.gap // step + 2)
    return gaps, _log_tie(noise, gaps), _log_tie(noise, gaps - 2)


def _log_tie(noise: DiscreteGaussian, gaps: NDArray[Any]) -> _Array:
    """Return ln Pr[c wins] and ln Pr[d wins] where c is `gaps` ahead and wins ties."""
    points, weights = _half_line(noise.sigma, 0)
    # Both half-lines, -1 - points being the other one.
    points = np.concatenate([points, -1 - points])
    mass = np.exp(noise.log_pmf(points)) * np.concatenate([weights, weights])
    c_wins = np.exp(noise.log_cdf(points + gaps[:, None])) @ mass
    d_wins = np.exp(noise.log_cdf(points - 1 - gaps[:, None])) @ mass
    return np.log(np.stack([c_wins, d_wins], axis=-1))


def _half_line(sigma: float, furthest: float) -> tuple[_Array, _Array]:
    """Return points and weights that sum over 0, 1, ... up to the end of the mass."""
    # Short blocks are summed term by term, as small noise needs.
    length = int(2 * sigma) if sigma >= LARGE_SIGMA else 1
    n_blocks = ceil((max(furthest, 0) + 12 * sigma) / length) + 1
    at, weight = sum_rule(length)
    starts = length * np.arange(n_blocks)
    return (starts[:, None] + at).reshape(-1), np.tile(weight, n_blocks)


def _largest(
    log_p: _Array, change: _Array, orders: _Array, reached: _Array | float = 0.0
) -> _Array:
    """Return the largest divergence of many neighbouring laws, in both directions.

    Laws that cannot exceed `reached` are left out: as g(r) is at most a (a - 1)/2 r^2
    e^{(a + 1) max(r, 0)}, D_a is at most a/2 sum Q r^2 e^{(a + 1) max r}.
    """
    log_q = np.concatenate([log_p, log_p + change])
    log_ratio = np.concatenate([change, -change])
    variance = np.sum(np.exp(log_q) * log_ratio**2, axis=1)
    with np.errstate(divide="ignore"):
        log_variance, steepest = np.log(variance), log_ratio.max(axis=1)
        least = np.log(2 * reached / orders) - 1e-9
    found = np.zeros(orders.size)
    for start in range(0, orders.size, _STRIDE):
        block = slice(start, start + _STRIDE)
        last = orders[block][-1]
        # The bound over a grows with it.
        kept = log_variance + (last + 1) * steepest >= least[block].min()
        costs = np.zeros((1, orders[block].size))
        raise_to_largest(
            costs,
            np.zeros(np.count_nonzero(kept), dtype=np.intp),
            log_q[kept],
            log_ratio[kept],
            orders[block],
            stride=_STRIDE,
        )
        found[block] = costs[0]
    return found


@dataclass(frozen=True)
class _Window:
    """Range of the search, in votes: leads from -below, gaps to gap, means to far."""

    below: int
    gap: int
    far: int

    @classmethod
    def around(cls, orders: _Array, sigma: float) -> Self:
        # The outside is bounded too: at this distance the bounds do not matter, as
        # a - 1 times the tail is far below (a - 1) D_a, about a (a - 1) / sigma^2.
        low, high = orders[0], orders[-1]
        least = low * min(low - 1, 1)
        spread = sigma * np.sqrt(2 * np.log(10 + 10 * sigma**2 / least))
        return cls(
            below=ceil(spread + high) + 2,
            gap=ceil(2 * spread + 2 * high) + 4,
            far=ceil(spread + 2 * high) + 8,
        )


def _beyond_below(window: _Window, noise: DiscreteGaussian, orders: _Array) -> _Array:
    """Bound the divergence where one of the two classes is far below the threshold."""
    return orders / (2 * noise.sigma**2) + _beyond_one(window.below, noise, orders)


def _beyond_one(distance: int, noise: DiscreteGaussian, orders: _Array) -> _Array:
    """Bound the divergence of comparing one count with a far threshold."""
    tilt = orders * (orders - 1) / (2 * noise.sigma**2)
    passes = np.exp(tilt + noise.log_cdf(np.ceil(orders) - distance))
    tail = np.exp(noise.log_cdf(np.array([-float(distance)])))
    fails = np.exp(-(orders - 1) * np.log1p(-tail))
    return np.log(passes + fails) / (orders - 1)


def _beyond_gap(window: _Window, noise: DiscreteGaussian, orders: _Array) -> _Array:
    """Bound the divergence where one class is far ahead of the other and wins."""
    sigma, tilt = noise.sigma, orders * (orders - 1) / noise.sigma**2
    gap, lead = window.gap - 1.0, float(window.gap - window.below)
    rest = np.exp(-(gap**2) / (4 * sigma**2)) + np.exp(noise.log_cdf(np.array([-lead])))
    wins = np.exp(-(orders - 1) * np.log1p(-rest))
    d_wins = np.exp(tilt - (gap - 2 * (orders - 1)) ** 2 / (4 * sigma**2))
    neither = np.exp(tilt + noise.log_cdf(np.ceil(orders) - lead))
    return np.log(wins + d_wins + neither) / (orders - 1)


def _beyond_far(
    window: _Window, noise: DiscreteGaussian, step: int, orders: _Array
) -> _Array:
    """Bound the divergence where both classes are far above the threshold."""
    gaps, before, after = _ties(window, noise, step)
    alone = _largest(before, after - before, orders)
    x, y = window.far + gaps / 2 - 2, window.far - gaps / 2 - 2
    neither = noise.log_cdf(-np.floor(x)) + noise.log_cdf(-np.floor(y))
    missing = np.exp(np.max(neither - np.minimum(before, after).min(axis=1)))
    tilt = orders * (orders - 1) / (2 * noise.sigma**2)
    # The tilt moves one of the two counts towards the threshold.
    nearest = np.floor(np.minimum(x, y)) - np.ceil(orders)[:, None]
    furthest = noise.log_cdf(-np.floor(np.maximum(x, y)))
    reached = np.exp(tilt + np.max(noise.log_cdf(-nearest) + furthest, axis=1))
    return alone - np.log1p(-missing) + reached / (orders - 1)

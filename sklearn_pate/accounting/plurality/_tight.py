"""Tight worst-case cost of a noisy plurality, with Gaussian and Laplace noise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count, check_positive
from sklearn_pate.accounting.plurality._closed_form import (
    discrete_laplace_worst_case,
    gaussian_worst_case,
    log_moment,
    raise_to_largest,
    threshold_worst_case,
)
from sklearn_pate.accounting.plurality._discrete_noise import (
    LARGE_SIGMA,
    DiscreteGaussian,
    DiscreteLaplace,
    sum_rule,
)

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
_Law = tuple[_Array, _Array]
# A box is divided while its bound is above the largest value found by more than this
# fraction.
_SLACK = 1e-4
# With more noise than this, in votes, the plane is large: more slack, half the orders.
_MUCH_NOISE = 64
_LARGE_SLACK = 3e-3
# Number of orders that are searched together, in fixed groups, and of boxes with
# corners that are tried at a time.
_STRIDE_OF_LAPLACE = 16
_BLOCK = 2 * _STRIDE_OF_LAPLACE
_N_TRIED = 64
# Orders are searched up to this over gamma; all exponentials stay within float64.
_LARGEST_ORDER_OF_LAPLACE = 300
# Ends of the first boxes, in units of 1 / gamma. The last stands for infinity: laws
# change beyond it by less than e^-3000, which e^{2 gamma a} < e^600 cannot offset.
_ENDS = 2.0 ** np.arange(-1, 13)
# From leads of this over gamma, plus a, the law is nearly that of two classes alone.
_FAR = 2.5
_ROUNDING_OF_LOG = 1e-13


def tight_gaussian_worst_case(
    sigma: float, n_classes: int, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Compute a tight worst-case cost of one GNMax answer. May be published.

    Parameters
    ----------
    sigma : float
        Scale of the discrete Gaussian noise on every count, in votes; positive. More
        noise has a lower cost.

    n_classes : int
        Number of classes, which is public. An answer on two classes costs slightly less
        than an answer on many classes.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent curve, at most
        :func:`~sklearn_pate.accounting.bounds.gaussian_worst_case`.

    Raises
    ------
    ValueError
        If `sigma` or `n_classes` is not positive, or `orders` do not increase from
        above 1.

    Notes
    -----
    The result is the cost of :class:`~sklearn_pate.mechanisms.GNMax`. Two classes and a
    threshold attain the largest divergence over all votes (Lemma 1, see the page
    :doc:`Privacy cost of an answer </accounting>`). To cover all leads, the cost is
    bounded at whole leads on a coarse lattice, with slightly less noise (Lemma 2).
    Closed-form bounds cover leads that are not searched. The result is thus an upper
    bound, rounding included, and not only a maximum over a grid. The search covers
    orders from 1.5 to 4 sigma. At a larger order a the bound is a / sigma^2 (Papernot
    et al. 2018, Proposition 8). At smaller orders the bound is the value at a larger
    order, if that value is smaller.

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
    """Compute a tight worst-case cost of one threshold check. May be published.

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
        Data-independent curve for any threshold, at most
        :func:`~sklearn_pate.accounting.bounds.threshold_worst_case`.

    Raises
    ------
    ValueError
        If `sigma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    The result is the cost of each check of
    :class:`~sklearn_pate.mechanisms.ConfidentGNMax` and
    :class:`~sklearn_pate.mechanisms.InteractiveGNMax`, with or without an answer
    (Papernot et al. 2018, Section 4.2). One moved vote changes the largest count by at
    most one, so the worst case depends on a single lead over the threshold. Search and
    proof are as for :func:`~sklearn_pate.accounting.tight_gaussian_worst_case`: see the
    page :doc:`Privacy cost of an answer </accounting>`.

    Examples
    --------
    A thousand checks, by the tight and by the classical worst case:

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
    noise: DiscreteGaussian, x: NDArray[Any], y: NDArray[Any], inside: NDArray[np.bool_]
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
    """Return gaps of two classes, and their distributions before and after a move."""
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
    """Return the largest divergence of neighbouring distributions, in both directions.

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


def tight_laplace_worst_case(
    gamma: float, n_classes: int, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Compute a tight worst-case cost of one LNMax answer. May be published.

    Parameters
    ----------
    gamma : float
        Inverse scale of the discrete Laplace noise on every count, in 1 / votes;
        positive. A smaller value means more noise and a lower cost.

    n_classes : int
        Number of classes, which is public. An answer on two classes may cost less than
        an answer on many classes.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent curve, at most
        :func:`~sklearn_pate.accounting.bounds.discrete_laplace_worst_case`.

    Raises
    ------
    ValueError
        If `gamma` or `n_classes` is not positive, or `orders` do not increase from
        above 1.

    Notes
    -----
    The result is the cost of :class:`~sklearn_pate.mechanisms.LNMax`. The page
    :doc:`Privacy cost of an answer </accounting>` proves the reduction to two classes
    and a threshold of geometric distribution, and bounds for rectangles of
    leads of the two classes (Lemma 3). The result is thus an upper bound, not only a
    maximum over a grid.

    The default orders up to 300 / gamma are searched. At these orders, the result
    exceeds the supremum for two classes and a threshold by at most 3e-4, or by 1 % if 1
    / gamma is above 64. Between and beyond these orders, (a - 1) D_a is convex in a,
    with a slope of at most 2 gamma. With much noise and an order a below 1 / gamma, the
    worst case is about a gamma^2 / 2. Two tied classes far ahead of other classes
    attain this cost.

    Examples
    --------
    >>> from sklearn_pate.accounting import tight_laplace_worst_case
    >>> from sklearn_pate.accounting.bounds import discrete_laplace_worst_case
    >>> orders = [2, 8]
    >>> tight = tight_laplace_worst_case(gamma=0.2, n_classes=2, orders=orders)
    >>> classical = discrete_laplace_worst_case(gamma=0.2, orders=orders)
    >>> (tight.values / classical.values).round(2)
    array([0.51, 0.54])
    """
    check_positive("gamma", gamma)
    check_count("n_classes", n_classes)
    orders = np.asarray(orders, dtype=np.float64)
    gamma = float(gamma)
    # The default orders around these, in whole blocks: the result for an order must
    # not depend on the other orders. One more, as every second may be left out.
    furthest = _LARGEST_ORDER_OF_LAPLACE / gamma
    ends = [min(orders.min(), furthest), orders.max()]
    places = np.searchsorted(DEFAULT_ORDERS, ends) - [1, -1]
    first, last = np.maximum(places, 0) // _BLOCK * _BLOCK
    searched, moments = _searched(gamma, n_classes > 2, first, last + _BLOCK)
    beyond = 2 * gamma * np.maximum(orders - searched[-1], 0)
    found = (np.interp(orders, searched, moments) + beyond) / (orders - 1)
    classical = discrete_laplace_worst_case(gamma, orders)
    values = np.minimum(found, classical.values)
    return RdpCurve(orders, values, classical.pure_epsilon)


@lru_cache(maxsize=256)
def _searched(gamma: float, others: bool, first: int, last: int) -> _Law:
    """Return orders and (a - 1) D_a, with or without other classes than c and d."""
    orders = DEFAULT_ORDERS[first:last]
    orders = orders[orders * gamma <= _LARGEST_ORDER_OF_LAPLACE]
    if gamma * _MUCH_NOISE < 1:
        orders = orders[::2]
    noise = DiscreteLaplace(gamma)
    ends = np.unique(np.ceil(_ENDS / gamma))
    ends = np.concatenate([-ends[::-1], [0], ends])
    values = np.empty(orders.size)
    for start in range(0, orders.size, _STRIDE_OF_LAPLACE):
        block = slice(start, start + _STRIDE_OF_LAPLACE)
        search = _search_plane_of_laplace if others else _search_line_of_laplace
        values[block] = search(noise, ends, orders[block])
    values *= 1 + _ROUNDING + _ROUNDING_OF_LOG / gamma
    # A divergence does not decrease with the order: a larger order's bound holds.
    values = np.minimum.accumulate(values[::-1])[::-1]
    # (a - 1) D_a is 0 at a = 1.
    return np.append(1.0, orders), np.append(0.0, values * (orders - 1))


def _search_line_of_laplace(
    noise: DiscreteLaplace, ends: _Array, orders: _Array
) -> _Array:
    """Bound the divergence of two classes alone: both are far above G."""
    far = np.full(ends.size - 1, ends[-1])
    boxes = np.stack([far + ends[:-1], far + ends[1:] - 1, far, far, 0 * far])
    return _bound(noise, boxes, orders, np.zeros(orders.size), _SLACK)


def _search_plane_of_laplace(
    noise: DiscreteLaplace, ends: _Array, orders: _Array
) -> _Array:
    """Bound the divergence of two classes and G."""
    # Two classes alone are a limit of the plane: their divergence counts as found.
    alone = _search_line_of_laplace(noise, ends, orders)
    far = np.ceil(_FAR / noise.gamma + orders[-1]) + 4
    boxes = _first_boxes(np.union1d(ends, [far, far + 1]))
    # The region beyond is bounded from its border.
    beyond = (boxes[0] > far) & (boxes[2] > far)
    border = np.minimum(boxes[0], boxes[2]) == far
    slack = _LARGE_SLACK if noise.gamma * _MUCH_NOISE < 1 else _SLACK
    found = _bound(noise, boxes[:, ~(beyond | border)], orders, alone, slack)
    at_border = _bound(noise, boxes[:, border], orders, 0.9 * alone, slack)
    beyond = _beyond(noise, far, orders, alone, at_border)
    return np.max([found, at_border, beyond], axis=0)


def _beyond(
    noise: DiscreteLaplace, far: float, orders: _Array, alone: _Array, at_border: _Array
) -> _Array:
    """Bound the divergence where both leads are above `far`.

    Let min(x, y) = far, and raise both leads by s. If G < s, the others' best is at a
    fixed height, i = s - G below 0; else, the rest of G has the law of G. For a fixed
    height, Pr[c or d is ahead, and both are below it] is q^{x + y} times a constant,
    which the move does not change and which falls as q^{2 i}. So T(x + s, y + s) is
    q^s T(x, y) + q^{s + 1} (1 - q^s) T_0(x, y) + (1 - q^s) (1 - q^{s + 1}) T_2, where
    T_0 is the law for G = 0 and T_2 that of two classes alone, for the moved vote as
    well. m = e^{(a - 1) D_a} is convex in the pair of laws, so that it is at most the
    larger of m(T_2) and m(T) + max(m(T_0) - m(T_2), 0).

    Given who is ahead, the chance of both below 0 is at most
    p = q^{2 (far - 1)} / (1 + q + 2 q^2). The move changes it by e^{2 gamma} at most,
    its complement by 1 - p (1 - e^{-2 gamma}) / (1 - p), and m(T_0) / m(T_2) is at most
    the moment of that.
    """
    q = np.exp(-noise.gamma)
    log_p = -2 * noise.gamma * (far - 1) - np.log1p(q + 2 * q**2)
    odds = np.exp(log_p) / -np.expm1(log_p)
    steepest = [2 * noise.gamma, -np.log1p(odds * np.expm1(-2 * noise.gamma))]
    values = []
    for order, tie, border in zip(orders, alone, at_border, strict=True):
        excess = log_moment(np.array([[log_p, 0]]), np.array([steepest]), order)[0]
        excess = np.exp((order - 1) * tie) * np.expm1(excess)
        values.append(np.log1p(np.expm1((order - 1) * border) + excess) / (order - 1))
    return np.array(values)


def _first_boxes(ends: _Array) -> _Array:
    """Cover all leads of c and d, for each rule for ties."""
    first, last = ends[:-1], ends[1:] - 1
    i, j, ties = (
        axis.reshape(-1)
        for axis in np.meshgrid(
            np.arange(first.size), np.arange(first.size), [0, 1], indexing="ij"
        )
    )
    return np.stack([first[i], last[i], first[j], last[j], ties])


def _bound(
    noise: DiscreteLaplace, boxes: _Array, orders: _Array, reached: _Array, slack: float
) -> _Array:
    """Bound the largest divergence over boxes of leads, in both directions, by order.

    Rows of `boxes` are the smallest and largest x, the smallest and largest y, and the
    rule for ties. Divergences below `reached` need not be searched for.
    """
    reached, bounds = reached.copy(), reached.copy()
    while boxes.size:
        upper, lower = _pairs(noise, boxes)
        wanted = np.zeros(boxes.shape[1], dtype=bool)
        single = (boxes[0] == boxes[1]) & (boxes[2] == boxes[3])
        for i, order in enumerate(orders):
            bound = log_moment(upper[0], upper[1], order).max(axis=0) / (order - 1)
            best = np.argpartition(bound, -min(_N_TRIED, bound.size))[-_N_TRIED:]
            log_q, log_ratio = lower[:, :, best]
            corners = log_moment(log_q, log_ratio, order) / (order - 1)
            reached[i] = max(reached[i], corners.max())
            divide = ~single & (bound > reached[i] * (1 + slack))
            bounds[i] = max(bounds[i], np.max(bound, where=~divide, initial=0))
            wanted |= divide
        boxes = _divided(boxes[:, wanted])
    return np.maximum(bounds, reached)


def _divided(boxes: _Array) -> _Array:
    """Halve the boxes in both directions; an edge of one lead stays."""
    x_first, x_last, y_first, y_last, ties = boxes
    x_middle, y_middle = (x_first + x_last) // 2, (y_first + y_last) // 2
    parts = [
        np.stack([*x, *y, ties])
        for x in ((x_first, x_middle), (x_middle + 1, x_last))
        for y in ((y_first, y_middle), (y_middle + 1, y_last))
    ]
    boxes = np.concatenate(parts, axis=1)
    return boxes[:, (boxes[0] <= boxes[1]) & (boxes[2] <= boxes[3])]


def _pairs(noise: DiscreteLaplace, boxes: _Array) -> _Law:
    """Return ln Q and ln P / Q that bound each box, and those at its corners.

    Shapes (2, 2, n_boxes, 3), for two directions, and (2, 4, n_boxes, 3), for two
    corners in each direction.
    """
    x_first, x_last, y_first, y_last, ties = boxes
    # Where ln T(x, y) / T(x - 1, y + 1) of all outcomes is smallest, and largest.
    low, low_after = _moved(noise, x_last, y_first, ties)
    high, high_after = _moved(noise, x_first, y_last, ties)
    behind, behind_after = _moved(noise, x_first, y_first, ties)
    smallest, largest = low - low_after, high - high_after
    # c only loses by the move, d only gains; "neither" may lose or gain.
    change_of_two = [largest[:, 0], smallest[:, 1]]
    least, most = smallest[:, 2], largest[:, 2]
    change = np.stack([*change_of_two, _steepest(least, most)], axis=1)
    back = np.stack([*change_of_two, -_steepest(-most, -least)], axis=1)
    log_before = np.stack([low[:, 0], high[:, 1], behind[:, 2]], axis=1)
    log_after = np.stack(
        [low_after[:, 0], high_after[:, 1], behind_after[:, 2]], axis=1
    )
    upper = np.array([[log_after, log_before], [change, -back]])
    lower = np.array(
        [[low_after, low, high_after, high], [smallest, -smallest, largest, -largest]]
    )
    return upper, lower


def _steepest(least: _Array, most: _Array) -> _Array:
    """Return an r such that g(r) is at least the largest g of an interval."""
    return np.where(most < 0, least, np.maximum(most, -least))


def _moved(noise: DiscreteLaplace, x: _Array, y: _Array, ties: _Array) -> _Law:
    """Return ln T before and after the vote is moved."""
    return _log_law(noise, x, y, ties), _log_law(noise, x - 1, y + 1, ties)


def _log_law(noise: DiscreteLaplace, x: _Array, y: _Array, ties: _Array) -> _Array:
    """Compute ln Pr[c wins], ln Pr[d wins] and ln Pr[neither].

    c wins ties with d and with G; d wins ties with G if `ties` is 0.
    """
    c_wins = _log_first(noise.gamma, x, y)
    d_wins = _log_first(noise.gamma, y - ties, x + 1 - ties)
    neither = _log_both_below(noise.gamma, x + 1, y + 1 - ties)
    return np.stack([c_wins, d_wins, neither], axis=-1)


def _log_first(gamma: float, x: _Array, y: _Array) -> _Array:
    """Compute ln Pr[x + Z >= y + Z', x + Z >= G].

    The sum over v >= 0 of p(v - x) F(v - y) (1 - q^{v + 1}): geometric sums between the
    kinks at 0, x and y. For x < 0 it is q^{-x} times that for x = 0. Where c is behind
    (y > x >= 0), all terms have the factor q^{y - x}; where it is not, the sum is 1
    less a small one, so that no digits are lost.
    """
    q, rest = np.exp(-gamma), -np.expm1(-gamma)
    cubes = 1 + q + q**2
    own, other = np.maximum(x, 0), np.maximum(y, 0)
    behind = own < other
    m = np.where(behind, other - own, own - other + 1)
    q_own, q_other, q_m = (np.exp(-gamma * power) for power in (own, other, m))
    q_below = np.exp(-gamma * np.maximum(-y, 0))

    # Pr[d beats c] is q^m alone, or Pr[c beats d] where c is behind.
    alone = (m * rest + (1 + q + 2 * q**2) / (1 + q)) / (1 + q) ** 2
    both = (q / (1 + q)) ** 3
    wins = alone - q_own * (q / (1 + q) - q_m * q**2 / ((1 + q) ** 2 * cubes))
    wins = np.log(np.where(behind, wins + q_own**2 * both, 1)) - gamma * m
    near = q_m * alone - q_own * q_other * both
    near += q_other * q_m / (1 + q) * (m * rest + q**2 / (1 + q) + q * q_m / cubes)
    share = ((own + 1) * rest + q**2 / (1 + q)) / (1 + q)
    far = (1 + q_below * share) / (1 + q) + share
    far -= q_below * q / (1 + q) ** 2 * (1 - q * q_own * (1 + q) / cubes)
    loses = np.where(y > 0, near, q * q_own * far)
    loses = np.log1p(-np.where(behind, 0, loses))
    return np.where(behind, wins, loses) - gamma * np.maximum(-x, 0)


def _log_both_below(gamma: float, x: _Array, y: _Array) -> _Array:
    """Compute ln Pr[x + Z <= G, y + Z' <= G].

    The sum over g >= 0 of (1 - q) q^g F(g - x) F(g - y), in three parts: up to the
    smaller lead, up to the larger one, and beyond.
    """
    q, rest = np.exp(-gamma), -np.expm1(-gamma)
    larger, smaller = np.maximum(x, y), np.minimum(x, y)
    end, start = np.maximum(larger, 0), np.maximum(smaller, 0)
    between = end - start
    q_end, q_start = np.exp(gamma * (larger - end)), np.exp(gamma * (smaller - start))
    # Each part over q^end.
    first = -q * np.expm1(-gamma * start) / (1 + q) ** 2
    second = between * rest + q * q_start * np.expm1(-gamma * between) / (1 + q)
    q_apart = np.exp(-gamma * (end - smaller))
    third = 1 - q * (q_end + q_apart) / (1 + q) ** 2
    third += q**2 * q_end * q_apart / ((1 + q) ** 2 * (1 + q + q**2))
    return np.log(first + second / (1 + q) + third) - gamma * end

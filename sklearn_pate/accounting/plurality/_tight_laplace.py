"""Certified tight worst case of a plurality with Laplace noise. May be published.

Let M be the largest noisy count of the classes that a moved vote does not touch and k*
the class that has it, ties being broken by a random order of priority. Given the order,
Pr[M = m, k* = k] is p(m - n_k) times distribution functions, which grow with m, and
p(z + 1) >= q p(z), q = e^{-gamma}. So Pr[M = m + 1, k*] >= q Pr[M = m, k*]: given k*,
M is the sum of some M' and of an independent G >= 0 with
Pr[G = g] = (1 - q) q^g. A vote moved from c to d changes the law of neither M', k*, G
nor the order, so that D_a is at most its supremum given all but G: over whole leads
x = n_c - M' and y = n_d - M', the divergence between T(x, y) and T(x - 1, y + 1), where
T is the law of (c wins, d wins, neither), c ~ x + Z and d ~ y + Z' against G.
Exchanging c and d exchanges the two directions, and losing ties with G is the same as a
lead of one less: two rules for ties of six remain. An abstention is the limit where d
is far below; of two classes alone, it changes less than a move.

The plane of leads is covered by boxes, by this lemma: for each outcome o,
r_o(x, y) = ln T_o(x, y) - ln T_o(x - 1, y + 1) falls in x and rises in y. Proof. The
laws of Z and G are log-concave, so p(z - x) is totally positive of order 2. The set of
(z_c, z_d, g) where o wins is a sublattice ({z_c >= z_d, z_c >= g}, and so on), so that
L_o = ln T_o is supermodular in (x, y), as a marginal of an MTP2 function (Karlin and
Rinott 1980). In each of x and y it is concave, as sums over half-lines, products and
convolutions of log-concave sequences are log-concave (Hoggar 1974). In
r_o = [L(x, y) - L(x - 1, y)] - [L(x - 1, y + 1) - L(x - 1, y)], the first bracket falls
in x by concavity and rises in y by supermodularity, the second rises in x and falls in
y.

So r_o over a box lies between its values at two corners, and T_o is largest at one. As
(a - 1) D_a = log1p(sum Q_o g(r_o)) with g(r) = expm1(a r) - a expm1(r), which falls
below 0, rises above it, and has g(r) >= g(-r) for r > 0, the corners bound the box.
Boxes that may exceed the largest value found are divided, down to single points.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.plurality._closed_form import discrete_laplace_worst_case
from sklearn_pate.accounting.plurality._discrete_noise import DiscreteLaplace
from sklearn_pate.accounting.plurality._divergence import log_moment

__all__ = ["tight_laplace_worst_case"]

_Array = NDArray[np.float64]
_Law = tuple[_Array, _Array]
# A box is divided while its bound is above the largest value found by more than this
# fraction.
_SLACK = 1e-4
# With more noise than this, in votes, the plane is large: more slack, half the orders.
_MUCH_NOISE = 64
_LARGE_SLACK = 3e-3
# Number of orders that are searched together, in fixed groups, and of boxes with
# corners that are tried at a time.
_STRIDE = 16
_BLOCK = 2 * _STRIDE
_N_TRIED = 64
# Orders are searched up to this over gamma; all exponentials stay within float64.
_LARGEST_ORDER = 300
# Ends of the first boxes, in units of 1 / gamma. The last stands for infinity: laws
# change beyond it by less than e^-3000, which e^{2 gamma a} < e^600 cannot offset.
_ENDS = 2.0 ** np.arange(-1, 13)
# From leads of this over gamma, plus a, the law is nearly that of two classes alone.
_FAR = 2.5
# Relative margins for rounding: of a sum, and of ln P / Q, which is about gamma.
_ROUNDING = 1e-9
_ROUNDING_OF_LOG = 1e-13


def tight_laplace_worst_case(
    gamma: float, n_classes: int, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Compute a tight worst case of one LNMax answer. May be published.

    Parameters
    ----------
    gamma : float
        Inverse scale of the discrete Laplace noise on every count, in 1 / votes;
        positive. A smaller value means more noise and a lower cost.

    n_classes : int
        Number of classes, which is public. Two classes may cost less than many.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent, at most that of
        :func:`~sklearn_pate.accounting.bounds.discrete_laplace_worst_case`.

    Raises
    ------
    ValueError
        If `gamma` or `n_classes` is not positive, or `orders` do not increase from
        above 1.

    Notes
    -----
    The cost of :class:`~sklearn_pate.mechanisms.LNMax`. The reduction to two classes
    and a geometric threshold, and Lemma 3 on monotone ratios, by which boxes of leads
    are bounded, are proved in :doc:`Privacy cost of an answer </accounting>`. So the
    result is an upper bound, and no maximum over a grid.

    The default orders are searched, up to 300 / gamma. There, the result is at most
    3e-4 above the supremum after the reduction, 1 % where 1 / gamma is above 64.
    Between and beyond them, (a - 1) D_a is convex in a, with a slope of at most
    2 gamma. With much noise, two classes that tie far ahead of the others attain it,
    about a gamma^2 / 2, while a is below 1 / gamma.

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
    # not depend on the other orders.
    furthest = _LARGEST_ORDER / gamma
    ends = [min(orders.min(), furthest), orders.max()]
    places = np.searchsorted(DEFAULT_ORDERS, ends) - [1, 0]
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
    orders = orders[orders * gamma <= _LARGEST_ORDER]
    if gamma * _MUCH_NOISE < 1:
        orders = orders[::2]
    noise = DiscreteLaplace(gamma)
    ends = np.unique(np.ceil(_ENDS / gamma))
    ends = np.concatenate([-ends[::-1], [0], ends])
    values = np.empty(orders.size)
    for start in range(0, orders.size, _STRIDE):
        block = slice(start, start + _STRIDE)
        search = _search_plane if others else _search_line
        values[block] = search(noise, ends, orders[block])
    values *= 1 + _ROUNDING + _ROUNDING_OF_LOG / gamma
    # A divergence does not decrease with the order: a larger order's bound holds.
    values = np.minimum.accumulate(values[::-1])[::-1]
    # (a - 1) D_a is 0 at a = 1.
    return np.append(1.0, orders), np.append(0.0, values * (orders - 1))


def _search_line(noise: DiscreteLaplace, ends: _Array, orders: _Array) -> _Array:
    """Bound the divergence of two classes alone: both are far above G."""
    far = np.full(ends.size - 1, ends[-1])
    boxes = np.stack([far + ends[:-1], far + ends[1:] - 1, far, far, 0 * far])
    return _bound(noise, boxes, orders, np.zeros(orders.size), _SLACK)


def _search_plane(noise: DiscreteLaplace, ends: _Array, orders: _Array) -> _Array:
    """Bound the divergence of two classes and G."""
    # Two classes alone are a limit of the plane: their divergence counts as found.
    alone = _search_line(noise, ends, orders)
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
    noise: DiscreteLaplace,
    far: float,
    orders: _Array,
    alone: _Array,
    at_border: _Array,
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
    noise: DiscreteLaplace,
    boxes: _Array,
    orders: _Array,
    reached: _Array,
    slack: float,
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
        [
            [low_after, low, high_after, high],
            [smallest, -smallest, largest, -largest],
        ]
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

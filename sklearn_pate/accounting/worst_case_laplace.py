"""The tight worst case of a plurality with Laplace noise, certified. May be published.

Let M be the largest noisy count of the classes that a moved vote does not touch and k*
the class that has it, ties being broken by a random order of priority. Given the order,
Pr[M = m, k* = k] is p(m - n_k) times distribution functions, which grow with m, and
p(z + 1) >= q p(z), q = e^{-gamma}. So Pr[M = m + 1, k*] >= q Pr[M = m, k*], which says
that given k*, M is the sum of some M' and of an independent G >= 0 with
Pr[G = g] = (1 - q) q^g. A vote moved from c to d changes the law of neither M', k*, G
nor the order, so that D_a is at most its supremum given all but G: over whole leads
x = n_c - M' and y = n_d - M', the divergence between T(x, y) and T(x - 1, y + 1), where
T is the law of (c wins, d wins, neither), c ~ x + Z and d ~ y + Z' against G.
Exchanging c and d exchanges the two directions, and to lose ties with G is to have a
lead of one less: two rules for ties are left of six. An abstention is the limit where d
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
Boxes that may hold more than what was found are divided, down to single points.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting.bounds import pure_dp_curve
from sklearn_pate.accounting.curve import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.divergence import log_moment
from sklearn_pate.accounting.lattice import DiscreteLaplace

__all__ = ["tight_laplace_worst_case"]

# A box is divided while its bound is above the largest value found by more than this
# share.
_SLACK = 1e-4
# So many orders are searched together.
_STRIDE = 16
# Orders are searched up to this over gamma; all exponentials stay within float64.
_LARGEST_ORDER = 300
# Ends of the first boxes, in units of 1 / gamma. The last stands for infinity: what
# lies beyond it has a chance below e^-4096, which no e^{2 gamma a} makes up for.
_ENDS = 2.0 ** np.arange(-1, 13)
# From leads of so much over gamma on, plus 4 a, G changes little.
_FAR = 12
# Relative margins for rounding: of a sum, and of ln P / Q, which is about gamma.
_ROUNDING = 1e-9
_ROUNDING_OF_LOG = 1e-14


def tight_laplace_worst_case(
    gamma: float, n_classes: int, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Bound one LNMax answer, whatever the votes, closely.

    Parameters
    ----------
    gamma : float
        Inverse scale of the discrete Laplace noise on every count, in 1 / votes.

    n_classes : int
        Number of classes.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    Returns
    -------
    curve : RdpCurve
        Data-independent.

    Notes
    -----
    At most the classical bounds for this noise: the answer is 2 gamma-DP, and two
    counts are shifted by 1 each, where D_a of one is that of randomised response,
    ln[ (e^{a gamma} + e^{(1-a) gamma}) / (1 + e^gamma) ] / (a - 1) (the likelihood
    ratio of a whole number is e^gamma or e^-gamma, never between; that is a little
    more than for continuous noise,
    :func:`~sklearn_pate.accounting.bounds.laplace_worst_case`).

    The default orders are searched, up to 300 / gamma. Between and beyond them,
    (a - 1) D_a is convex in a, with a slope of at most 2 gamma.
    """
    orders = np.asarray(orders, dtype=np.float64)
    gamma = float(gamma)
    searched, moments = _searched(gamma, n_classes > 2)
    beyond = 2 * gamma * np.maximum(orders - searched[-1], 0)
    found = (np.interp(orders, searched, moments) + beyond) / (orders - 1)
    independent = 2 * pure_dp_curve(gamma, orders).values
    pure = pure_dp_curve(2 * gamma, orders).values
    return RdpCurve(orders, np.minimum(found, np.minimum(independent, pure)))


@lru_cache(maxsize=256)
def _searched(gamma, others):
    """Return orders and (a - 1) D_a, with or without other classes than c and d."""
    orders = DEFAULT_ORDERS[DEFAULT_ORDERS * gamma <= _LARGEST_ORDER]
    noise = DiscreteLaplace(gamma)
    ends = np.unique(np.ceil(_ENDS / gamma))
    ends = np.concatenate([-ends[::-1], [0], ends])
    values = np.empty(orders.size)
    for start in range(0, orders.size, _STRIDE):
        block = slice(start, start + _STRIDE)
        search = _search_plane if others else _search_line
        values[block] = search(noise, ends, orders[block])
    values *= 1 + _ROUNDING + _ROUNDING_OF_LOG / gamma
    # A divergence does not fall where the order grows: a larger order's bound holds.
    values = np.minimum.accumulate(values[::-1])[::-1]
    return np.append(1.0, orders), np.append(0.0, values * (orders - 1))


def _search_line(noise, ends, orders):
    """Bound the divergence of two classes alone: both are far above G."""
    far = np.full(ends.size - 1, ends[-1])
    boxes = np.stack([far + ends[:-1], far + ends[1:] - 1, far, far, 0 * far])
    return _bound(noise, boxes, orders, np.zeros(orders.size))


def _search_plane(noise, ends, orders):
    """Bound the divergence of two classes and G."""
    # Their limit is that of two classes alone: it is no loss to take it for found.
    alone = _search_line(noise, ends, orders)
    far = np.ceil(_FAR / noise.gamma + 4 * orders[-1])
    boxes = _first_boxes(np.union1d(ends, far), far)
    return np.maximum(
        _bound(noise, boxes, orders, alone), _beyond(noise, far, orders, alone)
    )


def _beyond(noise, far, orders, alone):
    """Bound the divergence where both leads are at least `far`.

    T is a function of w, the one of c and d that is ahead, and of the event E that G
    beats it. Given w, the one ahead is stochastically larger than it would be alone, so
    that Pr[E | w] <= s = q^l (1 + l (1 - q) / (1 + q)), a bound of Pr[l + Z <= G],
    l = far - 1. The move changes Pr[E, w] and Pr[w] by e^{2 gamma} at most, hence
    Pr[E | w] by e^{4 gamma} and its complement by 1 - s (1 - e^{-4 gamma}) / (1 - s).
    So the moment given w is at most log1p(s g(4 gamma) + g(-ln of the latter)), which
    adds to that of w.
    """
    gamma, lead = noise.gamma, far - 1
    log_share = np.log1p(lead * np.tanh(gamma / 2)) - gamma * lead
    odds = np.exp(log_share) / -np.expm1(log_share)
    steepest = np.array([[4 * gamma, -np.log1p(odds * np.expm1(-4 * gamma))]])
    log_q = np.array([[log_share, 0.0]])
    beaten = [log_moment(log_q, steepest, order)[0] for order in orders]
    return alone + np.array(beaten) / (orders - 1)


def _first_boxes(ends, far):
    """Cover all leads of c and d but those that are both at least `far`, twice."""
    first, last = ends[:-1], ends[1:] - 1
    i, j, ties = (
        axis.reshape(-1)
        for axis in np.meshgrid(
            np.arange(first.size), np.arange(first.size), [0, 1], indexing="ij"
        )
    )
    boxes = np.stack([first[i], last[i], first[j], last[j], ties])
    return boxes[:, (first[i] < far) | (first[j] < far)]


def _bound(noise, boxes, orders, reached):
    """Bound the largest divergence over boxes of leads, both ways, by order.

    Columns of `boxes` are the smallest and largest x, the smallest and largest y, and
    the rule for ties. What is `reached` elsewhere need not be searched for.
    """
    reached, bounds = reached.copy(), reached.copy()
    while boxes.size:
        upper, lower = _pairs(noise, boxes)
        wanted = np.zeros(boxes.shape[1], dtype=bool)
        single = (boxes[0] == boxes[1]) & (boxes[2] == boxes[3])
        for i, order in enumerate(orders):
            bound = log_moment(*upper, order).max(axis=0) / (order - 1)
            open_boxes = np.flatnonzero(bound > reached[i] * (1 + _SLACK))
            if open_boxes.size:
                corners = log_moment(*lower[:, :, open_boxes], order) / (order - 1)
                reached[i] = max(reached[i], corners.max())
            divide = ~single & (bound > reached[i] * (1 + _SLACK))
            bounds[i] = max(bounds[i], np.max(bound, where=~divide, initial=0))
            wanted |= divide
        boxes = _divided(boxes[:, wanted])
    return np.maximum(bounds, reached)


def _divided(boxes):
    """Halve the boxes both ways; a side of one lead stays."""
    x_first, x_last, y_first, y_last, ties = boxes
    x_middle, y_middle = (x_first + x_last) // 2, (y_first + y_last) // 2
    parts = [
        np.stack([*x, *y, ties])
        for x in ((x_first, x_middle), (x_middle + 1, x_last))
        for y in ((y_first, y_middle), (y_middle + 1, y_last))
    ]
    boxes = np.concatenate(parts, axis=1)
    return boxes[:, (boxes[0] <= boxes[1]) & (boxes[2] <= boxes[3])]


def _pairs(noise, boxes):
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
    # c only loses by the move, d only gains; "neither" may do either.
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


def _steepest(least, most):
    """Return an r with the largest g(r) of an interval, or a larger g."""
    return np.where(most < 0, least, np.maximum(most, -least))


def _moved(noise, x, y, ties):
    """Return ln T before and after the vote is moved."""
    return _log_law(noise, x, y, ties), _log_law(noise, x - 1, y + 1, ties)


def _log_law(
    noise: DiscreteLaplace,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    ties: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Compute ln Pr[c wins], ln Pr[d wins] and ln Pr[neither].

    c wins ties with d and with G; d wins ties with G if `ties` is 0.
    """
    c_wins = _log_first(noise.gamma, x, y)
    d_wins = _log_first(noise.gamma, y - ties, x + 1 - ties)
    neither = _log_both_below(noise.gamma, x + 1, y + 1 - ties)
    return np.stack([c_wins, d_wins, neither], axis=-1)


def _log_first(gamma, x, y):
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


def _log_both_below(gamma, x, y):
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

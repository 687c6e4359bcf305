"""The tight worst case of a plurality with Laplace noise, certified. May be published.

Let M be the largest noisy count of the classes that a moved vote does not touch, k*
the class that has it, and let a random order of priority break ties. A vote moved from
c to d changes the law of none of the three, so that D_a is at most its supremum given
them: over whole leads x = n_c - M and y = n_d - M, the divergence between T(x, y) and
T(x - 1, y + 1), where T is the law of (c wins, d wins, neither), c ~ x + Z and
d ~ y + Z' against the threshold 0. Exchanging c and d exchanges the two directions, and
to lose ties with the threshold is to have a lead of one less: two rules for ties are
left of six. An abstention is the limit where d is far below.

The plane of leads is covered by boxes, by this lemma: for each outcome o,
r_o(x, y) = ln T_o(x, y) - ln T_o(x - 1, y + 1) falls in x and rises in y. Proof. The
law of Z is log-concave, so p(z - x) is totally positive of order 2. {z_c >= z_d},
{z_d > z_c} and the half-planes above a threshold are sublattices, so that
L_o = ln T_o is supermodular in (x, y), as a marginal of an MTP2 function (Karlin and
Rinott 1980); for "neither" it is a sum of a function of x and one of y. In each of x
and y it is concave, as the convolution of log-concave sequences is log-concave (Hoggar
1974). In r_o = [L(x, y) - L(x - 1, y)] - [L(x - 1, y + 1) - L(x - 1, y)], the first
bracket falls in x by concavity and rises in y by supermodularity, the second rises in x
and falls in y.

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
    """Bound the divergence of two classes alone: both are far above the threshold."""
    far = np.full(ends.size - 1, ends[-1])
    boxes = np.stack([far + ends[:-1], far + ends[1:] - 1, far, far, 0 * far])
    return _bound(noise, boxes, orders, np.zeros(orders.size))


def _search_plane(noise, ends, orders):
    """Bound the divergence of two classes and a threshold."""
    alone = _search_line(noise, ends, orders)
    gamma = noise.gamma
    enough = orders[-1] + np.log1p(100 / gamma**2) / gamma
    far = ends[np.searchsorted(ends, enough)]
    # The limit of two classes alone is reached, or approached, so that it is no loss
    # to take it for found.
    boxes = _first_boxes(ends, far)
    return np.maximum(
        _bound(noise, boxes, orders, alone), _beyond(noise, far, orders, alone)
    )


def _beyond(noise, far, orders, alone):
    """Bound the divergence where both leads are at least `far`.

    T is a function of which of c and d is ahead, w, and of the event E that this one
    is below the threshold (or at it, where it loses ties). Where E happens, so do
    c <= 0 and d <= 0, so that Pr[E] <= F(-far)^2, and two counts change, so that it
    adds at most e^{2 gamma (a - 1)} Pr[E] to the moment. Given w, the one ahead is
    stochastically larger than it would be alone: Pr[E | w] <= F(-far). Hence the
    moment is at most (1 - F(-far))^{1 - a} times that of w, plus the former.
    """
    log_below = noise.log_cdf(-far)
    reached = np.exp(2 * noise.gamma * (orders - 1) + 2 * log_below)
    return alone - np.log1p(-np.exp(log_below)) + reached / (orders - 1)


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

    c wins ties with d and with the threshold; d wins ties with the threshold if `ties`
    is 0.
    """
    c_wins = _log_first(noise, x, y)
    d_wins = _log_first(noise, y - ties, x + 1 - ties)
    neither = noise.log_cdf(-1 - x) + noise.log_cdf(-1 - y + ties)
    return np.stack([c_wins, d_wins, neither], axis=-1)


def _log_first(noise, x, y):
    """Compute ln Pr[x + Z >= max(y + Z', 0)].

    With q = e^{-gamma}, the sum of p(v - x) F(v - y) over v >= 0. For x, y >= 0 it is
    Pr[x + Z >= y + Z'], 1 - H(x - y + 1) or H(y - x), less q^{x + y + 2} / (1 + q)^3,
    where H(m) = q^m / (1 + q)^2 (m (1 - q) + (1 + q + 2 q^2) / (1 + q)) for m >= 0.
    For y <= 0 <= x it is F(x) less
    q^{x - y + 1} / (1 + q)^2 ((x + 1) (1 - q) + q^2 / (1 + q)). For x < 0 it is
    q^{-x} times that for x = 0.
    """
    gamma = noise.gamma
    q, gap_of_q = np.exp(-gamma), -np.expm1(-gamma)
    above, ahead = np.maximum(x, 0), np.maximum(y, 0)
    lead = above - ahead
    m = np.where(lead < 0, -lead, lead + 1)
    scaled = (m * gap_of_q + (1 + q + 2 * q**2) / (1 + q)) / (1 + q) ** 2
    below = q**2 / (1 + q) ** 3
    loses = np.log(scaled - np.exp(-2 * gamma * above) * below) - gamma * m
    miss = np.exp(-gamma * m) * scaled + np.exp(-gamma * (above + ahead)) * below
    share = ((above + 1) * gap_of_q + q**2 / (1 + q)) / (1 + q)
    miss_far = (1 + np.exp(gamma * np.minimum(y, 0)) * share) / (1 + q)
    miss = np.where(y > 0, miss, np.exp(-gamma * (above + 1)) * miss_far)
    # Its value is taken where lead >= 0 only, as everywhere where y <= 0.
    return gamma * np.minimum(x, 0) + np.where(lead < 0, loses, np.log1p(-miss))

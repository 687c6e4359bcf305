"""The Renyi cost of one query, neighbour by neighbour. Sensitive."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.plurality._divergence import log_moment
from sklearn_pate.accounting.plurality._unique_queries import check_counts

__all__ = ["enumerated_cost", "neighbours_of"]


def neighbours_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """List all votes that one teacher can make of these.

    Parameters
    ----------
    counts : ndarray of int of shape (n_classes,)
        Votes per class.

    Returns
    -------
    neighbours : ndarray of int of shape (n_neighbours, n_classes)
        One vote is moved, cast or withdrawn.
    """
    nowhere = np.zeros((1, counts.size), dtype=counts.dtype)
    parties = np.concatenate([np.eye(counts.size, dtype=counts.dtype), nowhere])
    moves = [gainer - loser for loser, gainer in permutations(parties, 2)]
    after = counts + np.array(moves)
    return after[after.min(axis=1) >= 0]


def enumerated_cost(
    log_law: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    counts: ArrayLike,
    orders: ArrayLike = DEFAULT_ORDERS,
) -> RdpCurve:
    """Compute the Renyi cost of one query from the laws at all neighbours.

    Sensitive as far as the votes are. It is slower than
    :func:`~sklearn_pate.accounting.local_cost` and takes nothing but the laws for
    granted: it is there to contradict what claims to be a bound.

    Parameters
    ----------
    log_law : callable
        Takes votes of shape (n_vectors, n_classes), and returns the log-probability of
        each outcome, of shape (n_vectors, n_outcomes).

    counts : array-like of shape (n_classes,)
        Votes per class.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        The largest divergence between these votes and a neighbour, in either direction.
        Infinite also where float64 does not hold a probability.

    Raises
    ------
    ValueError
        If `counts` are not vote counts.
    """
    (votes,) = check_counts(np.asarray(counts)[np.newaxis]).astype(np.int64)
    orders = np.asarray(orders, dtype=np.float64)
    after = log_law(neighbours_of(votes))
    before = np.broadcast_to(log_law(votes[np.newaxis]), after.shape)
    p, q = np.concatenate([before, after]), np.concatenate([after, before])
    possible = ~(np.isneginf(p) & np.isneginf(q))
    ratio = np.zeros(p.shape)
    np.subtract(p, q, out=ratio, where=possible)
    with np.errstate(all="ignore"):  # overflow ends in an infinite cost
        values = [log_moment(q, ratio, a).max() / (a - 1) for a in orders]
    return RdpCurve(orders, np.array(values))

"""Renyi cost of one query by enumeration of its neighbours. Sensitive."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_not_masked
from sklearn_pate.accounting.plurality._divergence import log_moment
from sklearn_pate.accounting.plurality._unique_queries import check_counts

__all__ = ["enumerated_cost", "neighbours_of"]


def neighbours_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """List all votes after one vote is moved, cast or withdrawn, one per row."""
    abstention = np.zeros((1, counts.size), dtype=counts.dtype)
    votes = np.concatenate([np.eye(counts.size, dtype=counts.dtype), abstention])
    moves = [after - before for before, after in permutations(votes, 2)]
    after = counts + np.array(moves)
    return after[after.min(axis=1) >= 0]


def enumerated_cost(
    log_law: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    counts: ArrayLike,
    orders: ArrayLike = DEFAULT_ORDERS,
) -> RdpCurve:
    """Compute the Renyi cost of one query from the laws at all neighbours.

    Sensitive if the votes are. It is slower than
    :func:`~sklearn_pate.accounting.local_cost` and uses the laws only: it serves to
    test the cost that a mechanism claims.

    Parameters
    ----------
    log_law : callable
        Function of votes of shape (n_vectors, n_classes) that returns the
        log-probability of each outcome, of shape (n_vectors, n_outcomes).

    counts : array-like of shape (n_classes,)
        Votes per class.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Largest divergence between these votes and a neighbour, in either direction.
        Infinite also where float64 cannot represent a probability.

    Raises
    ------
    ValueError
        If `counts` are not vote counts.
    """
    check_not_masked("counts", counts)
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

"""The exact Renyi cost of the votes that were cast. Sensitive."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.plurality._divergence import raise_to_largest
from sklearn_pate.accounting.plurality._noisy_check import NoisyCheck
from sklearn_pate.accounting.plurality._outcomes import Plurality, after_move, untouched
from sklearn_pate.accounting.plurality._unique_queries import (
    UniqueQueries,
    check_counts,
)

__all__ = [
    "LOCAL_ORDERS",
    "ROUNDING",
    "LocalCosts",
    "local_cost",
    "local_costs",
    "log_losing",
    "more_than_claimed",
]

#: Every fourth of the default orders: within 0.2 % of the best one.
LOCAL_ORDERS = DEFAULT_ORDERS[::4]
#: A cost above a claim by this share of it at most is above it by rounding: costs are
#: right to nine digits.
ROUNDING = 1e-6

# Every so many orders all moves are tried; between them only those that may be worst.
_STRIDE = 8


def local_cost(
    plurality: Plurality,
    counts: ArrayLike,
    orders: ArrayLike = LOCAL_ORDERS,
    *,
    ceiling: RdpCurve | None = None,
    check: NoisyCheck | None = None,
    expected: ArrayLike | None = None,
    votes_by_teacher: ArrayLike | None = None,
    direction: Literal["both", "forward"] = "both",
) -> RdpCurve:
    """Compute the exact Renyi cost of a list of queries, at these votes.

    Sensitive: it depends on the votes, must not be published, and must not decide when
    to stop asking. It is no (epsilon, delta) guarantee, which covers all data sets.

    Parameters
    ----------
    plurality : Plurality
        The law of an answer; a mechanism's `local_curve` fills it in.

    counts : array-like of shape (n_queries, n_classes)
        Votes per class for each query, whole numbers. The list of queries must
        have been fixed without looking at answers.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1. By default every fourth of
        :data:`~sklearn_pate.accounting.DEFAULT_ORDERS`.

    ceiling : RdpCurve, default=None
        A worst case of one query at the same orders. It stands in for what float64
        cannot hold, as with noise far below a vote, and for what is above it by
        rounding. A cost that is plainly above it stays: the worst case is then wrong.

    check : NoisyCheck, default=None
        The check before each answer, for mechanisms that may not answer. Every query
        is then priced as if it could still be answered, whatever the cap on answers.

    expected : array-like of shape (n_queries, n_classes), default=None
        Votes to subtract from each count before the check takes the largest
        (InteractiveGNMax). The check rounds them, see
        `NoisyCheck.whole_expectations`.

    votes_by_teacher : array-like of shape (n_teachers, n_queries), default=None
        The votes behind `counts`, -1 for an abstention. With them, one teacher's moves
        are followed through all queries, which is never more and still covers every
        neighbour.

    direction : {"both", "forward"}, default="both"
        "forward" is D_a(M(n) || M(n')) only, as in the papers; "both" takes the larger
        of it and D_a(M(n') || M(n)).

    Returns
    -------
    curve : RdpCurve
        Summed over the queries. Sensitive. It cannot be sanitized, as nothing is
        known about how much it differs between neighbours.

    Raises
    ------
    ValueError
        If `counts` are not vote counts, `orders` do not increase from above 1, or
        `direction` is unknown.

    Notes
    -----
    For each query, the largest D_a(M(n) || M(n')) over all n' that one teacher can
    cause: by moving its vote, abstaining, or no longer abstaining. It is the quantity
    that Theorem 3 of Papernot et al. 2017 and Theorem 6 of 2018 bound from above, in
    both directions. With a check, M is the law of "none", 1, ..., K together, which
    is a bound for the run itself, unlike an expected cost.

    Only classes with different counts differ, queries with equal sorted counts share
    one computation, and the divergence is the cancellation-free one of
    :func:`~sklearn_pate.accounting.plurality.log_moment`. :doc:`What an answer costs
    </accounting>` has the definitions, and what such a figure is no proof of.

    Examples
    --------
    A query on which teachers agree costs less than one that divides them, and no
    more than the worst case over all votes:

    >>> from sklearn_pate.accounting import local_cost, tight_gaussian_worst_case
    >>> from sklearn_pate.accounting.plurality._noisy_counts import GaussianPlurality
    >>> law = GaussianPlurality(sigma=10)
    >>> for votes in ([80, 20], [55, 45]):
    ...     print(votes, local_cost(law, [votes], orders=[8]).values.round(5))
    [80, 20] [0.00021]
    [55, 45] [0.05194]
    >>> tight_gaussian_worst_case(sigma=10, n_classes=2, orders=[8]).values.round(5)
    array([0.05199])
    """
    return local_costs(
        plurality,
        counts,
        orders,
        ceiling=ceiling,
        check=check,
        expected=expected,
        votes_by_teacher=votes_by_teacher,
        direction=direction,
    ).total


@dataclass(frozen=True)
class LocalCosts:
    """Exact Renyi costs of a list of queries, at the votes. Sensitive.

    Parameters
    ----------
    total : RdpCurve
        Of all queries together.

    largest : RdpCurve
        At each order, of the query that costs most there, whatever the votes.
    """

    total: RdpCurve
    largest: RdpCurve


def local_costs(
    plurality: Plurality,
    counts: ArrayLike,
    orders: ArrayLike = LOCAL_ORDERS,
    *,
    ceiling: RdpCurve | None = None,
    check: NoisyCheck | None = None,
    expected: ArrayLike | None = None,
    votes_by_teacher: ArrayLike | None = None,
    direction: Literal["both", "forward"] = "both",
) -> LocalCosts:
    """Compute what :func:`local_cost` does, and the largest cost of one query."""
    if direction not in ("both", "forward"):
        raise ValueError(
            f"direction={direction!r} is unknown; use 'both', or 'forward' for the "
            "papers' one."
        )
    counts = check_counts(counts)
    orders = np.asarray(orders, dtype=np.float64)
    whole = None
    if expected is not None and check is not None:
        whole = check.whole_expectations(expected).astype(np.float64)
    queries = UniqueQueries(counts, whole)
    teachers = None
    if votes_by_teacher is not None:
        groups = queries.groups_of(counts, whole)
        teachers = _Teachers(queries, groups, np.asarray(votes_by_teacher), orders.size)
    del counts  # of a million queries, the gathered ones take far less memory
    total, largest = np.zeros(orders.size), np.zeros(orders.size)
    for batch in queries.batches(plurality.points_per_move):
        # Overflow ends in an infinite cost.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            costs = _costs_by_loser(plurality, check, batch, orders, direction)
        if ceiling is not None:
            costs = _below(ceiling.values, costs)
        of_queries = costs.max(axis=1)
        largest = np.maximum(largest, of_queries.max(axis=0))
        if teachers is None:
            total += queries.repeats[batch.index] @ of_queries
        else:
            teachers.charge(batch, costs)
    if teachers is not None:
        total = teachers.largest()
    return LocalCosts(RdpCurve(orders, total), RdpCurve(orders, largest))


def more_than_claimed(cost: RdpCurve, claim: RdpCurve) -> bool:
    """Tell whether a cost is above a claim by more than rounding. Sensitive.

    Parameters
    ----------
    cost : RdpCurve
        Exact. Where it is not finite, float64 could not hold it, and it says nothing.

    claim : RdpCurve
        At the same orders.

    Returns
    -------
    more : bool
        At one order at least. The claim is then wrong.
    """
    allowed = claim.values * (1 + ROUNDING)
    return bool(np.any(np.isfinite(cost.values) & (cost.values > allowed)))


def _below(ceiling, costs):
    """Put the ceiling where float64 holds no cost, or one above it by rounding.

    A cost that is plainly above its ceiling stays: the ceiling is then wrong.
    """
    rounded = (costs <= ceiling * (1 + ROUNDING)) | ~np.isfinite(costs)
    return np.where(rounded, np.minimum(costs, ceiling), costs)


def log_losing(plurality: Plurality, counts: ArrayLike) -> NDArray[np.float64]:
    """Compute the exact log-probability that the most-voted class does not win.

    Sensitive. Where several classes have most votes it is that of any one of them.

    Parameters
    ----------
    plurality : Plurality
        The law of an answer.

    counts : array-like of shape (n_queries, n_classes)
        Votes per class for each query.

    Returns
    -------
    log_q : ndarray of shape (n_queries,)
        In nats.
    """
    queries = UniqueQueries(check_counts(counts), None)
    log_q = np.empty(len(queries.repeats))
    for batch in queries.batches(plurality.points_per_move):
        log_p = plurality.log_probabilities(batch.values, batch.sizes)
        rivals = batch.sizes.copy()
        rivals[:, -1] -= 1
        log_q[batch.index] = logsumexp(log_p, b=rivals, axis=1)
    return np.minimum(log_q, 0)[queries.vector_of_query]


class _Teachers:
    """What each teacher could have changed, summed over the queries."""

    def __init__(self, queries, groups, votes_by_teacher, n_orders):
        self._queries = queries
        self._groups = groups
        self._votes_by_teacher = votes_by_teacher
        self._total = np.zeros((len(votes_by_teacher), n_orders))

    def charge(self, batch, costs):
        """Add the costs of a batch, of shape (n_vectors, n_groups + 1, n_orders)."""
        row = np.full(len(self._queries.repeats), -1)
        row[batch.index] = np.arange(len(batch.index))
        for query in np.flatnonzero(row[self._queries.vector_of_query] >= 0):
            cost = costs[row[self._queries.vector_of_query[query]]]
            vote = self._votes_by_teacher[:, query]
            group = np.where(vote < 0, len(cost) - 1, self._groups[query, vote])
            self._total += cost[group]

    def largest(self):
        """Return the sum of the teacher who could have changed most."""
        return self._total.max(axis=0)


def _costs_by_loser(plurality, check, batch, orders, direction):
    """Return the worst cost of a move by who loses a vote, and by order."""
    moves = plurality.moves(batch.values, batch.sizes)
    log_p, change = moves.log_p, moves.change
    n_vectors, n_groups = batch.values.shape
    possible = np.all(untouched(batch.sizes) >= 0, axis=-1)
    possible[:, :n_groups] &= (batch.values > 0)[:, :, None]
    possible[:, n_groups, n_groups] = False
    if check is not None:
        log_p, change = _with_check(check, batch, log_p, change)

    # D(M(n') || M(n)) has Q = P; D(M(n) || M(n')) has Q = P'.
    log_q, log_ratio = log_p + change, -change
    if direction == "both":
        log_q = np.concatenate([log_q, log_p], axis=2)
        log_ratio = np.concatenate([log_ratio, change], axis=2)
        possible = np.concatenate([possible, possible], axis=2)
    n_outcomes = log_q.shape[-1]
    log_ratio = np.where(np.isneginf(log_q), 0.0, log_ratio)
    costs = np.zeros((n_vectors * (n_groups + 1), orders.size))
    where = np.nonzero(possible.reshape(len(costs), -1))
    flat = possible.reshape(-1)
    raise_to_largest(
        costs,
        where[0],
        log_q.reshape(-1, n_outcomes)[flat],
        log_ratio.reshape(-1, n_outcomes)[flat],
        orders,
        stride=_STRIDE,
    )
    return costs.reshape(n_vectors, n_groups + 1, orders.size)


def _with_check(check, batch, log_p, change):
    """Put the answer "none" beside the classes, for n and for each n'."""
    after, _ = after_move(batch.scores, batch.sizes)
    log_pass, log_fail = check.log_probabilities(batch.scores.max(axis=1))
    pass_after, fail_after = check.log_probabilities(after.max(axis=-1))
    log_pass, log_fail = log_pass[:, None, None], log_fail[:, None, None]
    none = np.broadcast_to(log_fail, pass_after.shape)
    return (
        np.concatenate([log_p + log_pass[..., None], none[..., None]], axis=-1),
        np.concatenate(
            [
                change + (pass_after - log_pass)[..., None],
                (fail_after - log_fail)[..., None],
            ],
            axis=-1,
        ),
    )

"""Exact Renyi cost of given votes. Sensitive."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_not_masked
from sklearn_pate.accounting.plurality._divergence import raise_to_largest
from sklearn_pate.accounting.plurality._noisy_check import NoisyCheck
from sklearn_pate.accounting.plurality._outcomes import Plurality, after_move, untouched
from sklearn_pate.accounting.plurality._unique_queries import (
    Batch,
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

#: Every fourth of the default orders: epsilon is within 0.2 % of that of all orders.
LOCAL_ORDERS = DEFAULT_ORDERS[::4]
#: Largest fraction by which rounding may raise a cost above a claim: costs are correct
#: to nine digits.
ROUNDING = 1e-6

# Distance of the orders at which all moves are tried; between, only possible maxima.
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

    Sensitive: it depends on the votes, must not be published, and must not decide the
    number of queries. It is no (epsilon, delta) guarantee, which covers all data sets.

    Parameters
    ----------
    plurality : Plurality
        Law of an answer; the `local_curve` of a mechanism passes it.

    counts : array-like of shape (n_queries, n_classes)
        Votes per class for each query, whole numbers. The list of queries must
        have been fixed independently of answers.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1. By default every fourth of
        :data:`~sklearn_pate.accounting.DEFAULT_ORDERS`.

    ceiling : RdpCurve, default=None
        Worst case of one query at the same orders. It replaces costs that float64
        cannot represent, as with noise far below a vote, or that exceed it by
        rounding. A cost that exceeds it by more stays: the worst case is then wrong.

    check : NoisyCheck, default=None
        Check before each answer, for mechanisms that may not answer. Every query costs
        as if it could still be answered, regardless of any limit on answers.

    expected : array-like of shape (n_queries, n_classes), default=None
        Votes to subtract from each count before the maximum in the check, for
        InteractiveGNMax. The check rounds them, see `NoisyCheck.whole_expectations`.

    votes_by_teacher : array-like of shape (n_teachers, n_queries), default=None
        Votes of each teacher, -1 for an abstention. With them, the cost is the largest
        sum over all queries by one teacher, which still covers every neighbour and is
        never more than the sum of the largest costs.

    direction : {"both", "forward"}, default="both"
        "forward" is D_a(M(n) || M(n')) only, as in the papers; "both" is the maximum
        of it and D_a(M(n') || M(n)).

    Returns
    -------
    curve : RdpCurve
        Sum over the queries. Sensitive. It cannot be sanitized, as no bound on its
        difference between neighbours is known.

    Raises
    ------
    ValueError
        If `counts` are not vote counts, `orders` do not increase from above 1, or
        `direction` is unknown.

    Notes
    -----
    For each query, the largest D_a(M(n) || M(n')) over all n' that one teacher can
    cause: by moving its vote, abstaining, or no longer abstaining. Theorem 3 of
    Papernot et al. 2017 and Theorem 6 of 2018 bound this quantity from above, in one
    direction. With a check, M is the joint law of "none", 1, ..., K, which gives a
    bound for every run, unlike an expected cost.

    Classes with equal counts, and queries with equal sorted counts, are computed once,
    by :func:`~sklearn_pate.accounting.plurality.log_moment`. See :doc:`Privacy cost of
    an answer </accounting>` for the definitions and the limits of such a figure.

    Examples
    --------
    A query costs less if more teachers agree, and never more than the worst case over
    all votes:

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
    """Exact Renyi costs of a list of queries, at their votes. Sensitive.

    `total` is the cost of all queries together, `largest` the largest cost of one query
    at each order.
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
    """Compute `local_cost`, and the largest cost of one query."""
    if direction not in ("both", "forward"):
        raise ValueError(
            f"direction={direction!r} is unknown; use 'both', or 'forward' for the "
            "direction of the papers."
        )
    counts = check_counts(counts)
    orders = np.asarray(orders, dtype=np.float64)
    whole = None
    if expected is not None and check is not None:
        whole = check.whole_expectations(expected).astype(np.float64)
    queries = UniqueQueries(counts, whole)
    teachers = None
    if votes_by_teacher is not None:
        check_not_masked("votes_by_teacher", votes_by_teacher)
        levels = queries.levels_of(counts, whole)
        teachers = _Teachers(queries, levels, np.asarray(votes_by_teacher), orders.size)
    del counts  # of a million queries, the distinct ones take far less memory
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
            teachers.add(batch, costs)
    if teachers is not None:
        total = teachers.largest()
    return LocalCosts(RdpCurve(orders, total), RdpCurve(orders, largest))


def more_than_claimed(cost: RdpCurve, claim: RdpCurve) -> bool:
    """Check that a cost exceeds a claim by more than rounding at an order. Sensitive.

    The claim is then wrong. Infinite costs, which float64 cannot represent, are left
    out.
    """
    allowed = claim.values * (1 + ROUNDING)
    return bool(np.any(np.isfinite(cost.values) & (cost.values > allowed)))


def _below(
    ceiling: NDArray[np.float64], costs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Replace costs that float64 cannot represent, or exceed the ceiling by rounding.

    A cost above the ceiling by more than rounding stays: the ceiling is then wrong.
    """
    rounded = (costs <= ceiling * (1 + ROUNDING)) | ~np.isfinite(costs)
    return np.where(rounded, np.minimum(costs, ceiling), costs)


def _within(values: NDArray[np.float64], reach: float) -> NDArray[np.float64]:
    """Raise counts that are farther than `reach` behind the largest one."""
    return np.maximum(values, values.max(axis=1, keepdims=True) - reach)


def log_losing(
    plurality: Plurality, counts: ArrayLike, order: float = 1.0
) -> NDArray[np.float64]:
    """Compute the exact log-probability that the most-voted class does not win.

    Sensitive. If several classes have most votes, it is the same for each of them. Of
    probabilities too small to matter up to this Renyi order, it is an upper bound.
    """
    queries = UniqueQueries(check_counts(counts), None)
    log_q = np.empty(len(queries.repeats))
    for batch in queries.batches(plurality.points_per_move):
        near = _within(batch.values, plurality.reach(order))
        log_p = plurality.log_probabilities(near, batch.sizes)
        rivals = batch.sizes.copy()
        rivals[:, -1] -= 1
        log_q[batch.index] = logsumexp(log_p, b=rivals, axis=1)
    return np.minimum(log_q, 0)[queries.vector_of_query]


class _Teachers:
    """Sum over the queries of the largest change by each teacher."""

    def __init__(
        self,
        queries: UniqueQueries,
        levels: NDArray[np.intp],
        votes_by_teacher: NDArray[Any],
        n_orders: int,
    ) -> None:
        self._queries = queries
        self._levels = levels
        self._votes_by_teacher = votes_by_teacher
        self._total = np.zeros((len(votes_by_teacher), n_orders))

    def add(self, batch: Batch, costs: NDArray[np.float64]) -> None:
        """Add the costs of a batch, of shape (n_vectors, n_levels + 1, n_orders)."""
        row = np.full(len(self._queries.repeats), -1)
        row[batch.index] = np.arange(len(batch.index))
        for query in np.flatnonzero(row[self._queries.vector_of_query] >= 0):
            cost = costs[row[self._queries.vector_of_query[query]]]
            vote = self._votes_by_teacher[:, query]
            level = np.where(vote < 0, len(cost) - 1, self._levels[query, vote])
            self._total += cost[level]

    def largest(self) -> NDArray[np.float64]:
        """Return the largest sum over the teachers."""
        return self._total.max(axis=0)


def _costs_by_loser(
    plurality: Plurality,
    check: NoisyCheck | None,
    batch: Batch,
    orders: NDArray[np.float64],
    direction: str,
) -> NDArray[np.float64]:
    """Return the largest cost of a move, by loser of a vote and by order."""
    near = _within(batch.values, plurality.reach(orders[-1]))
    moves = plurality.moves(near, batch.sizes)
    log_p, change = moves.log_p, moves.change
    n_vectors, n_levels = batch.values.shape
    possible = np.all(untouched(batch.sizes) >= 0, axis=-1)
    possible[:, :n_levels] &= (batch.values > 0)[:, :, None]
    possible[:, n_levels, n_levels] = False
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
    costs = np.zeros((n_vectors * (n_levels + 1), orders.size))
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
    return costs.reshape(n_vectors, n_levels + 1, orders.size)


def _with_check(
    check: NoisyCheck,
    batch: Batch,
    log_p: NDArray[np.float64],
    change: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add the outcome without an answer to the classes, for n and for each n'."""
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

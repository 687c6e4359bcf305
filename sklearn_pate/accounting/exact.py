"""The exact Renyi cost of the votes that were cast. Sensitive."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from sklearn_pate.accounting.bounds import check_counts
from sklearn_pate.accounting.curve import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.divergence import raise_to_largest
from sklearn_pate.accounting.lattice import DiscreteGaussian
from sklearn_pate.accounting.outcomes import Plurality, untouched

__all__ = ["LOCAL_ORDERS", "NoisyCheck", "local_cost", "log_losing"]

#: Every fourth of the default orders: within 0.2 % of the best one.
LOCAL_ORDERS = DEFAULT_ORDERS[::4]

# Numbers in the largest temporary array, which bound the memory; and how many of them
# one move takes.
_BLOCK_SIZE = 2_000_000
_POINTS_PER_GROUP = 400
# Every so many orders all moves are tried; between them only those that may be worst.
_STRIDE = 8


class NoisyCheck:
    """Whether the largest count, with discrete Gaussian noise, reaches a threshold.

    Parameters
    ----------
    threshold : float
        In votes.

    sigma : float
        Scale of the noise, in votes.
    """

    def __init__(self, threshold: float, sigma: float) -> None:
        self._threshold = threshold
        self._noise = DiscreteGaussian(sigma)

    def log_probabilities(
        self, largest: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the log-probabilities that the check passes and fails.

        Parameters
        ----------
        largest : ndarray
            The largest count, before noise.

        Returns
        -------
        log_pass, log_fail : ndarray of the same shape
            In nats.
        """
        needed = np.ceil(self._threshold - largest)
        return self._noise.log_cdf(-needed), self._noise.log_cdf(needed - 1)


def local_cost(
    plurality: Plurality,
    counts: ArrayLike,
    orders: ArrayLike = LOCAL_ORDERS,
    *,
    ceiling: RdpCurve | None = None,
    check: NoisyCheck | None = None,
    expected: ArrayLike | None = None,
    ballots: ArrayLike | None = None,
    direction: Literal["both", "forward"] = "both",
) -> RdpCurve:
    """Compute the exact Renyi cost of a list of questions, at these votes.

    Sensitive: it depends on the votes, must not be published, and must not decide when
    to stop asking. It is no (epsilon, delta) guarantee, which covers all data sets.

    Parameters
    ----------
    plurality : Plurality
        The law of an answer.

    counts : array-like of shape (n_queries, n_classes)
        Votes per class for each question. The list of questions must have been fixed
        without looking at answers.

    orders : array-like of shape (n_orders,)
        Renyi orders.

    ceiling : RdpCurve, default=None
        A worst case of one question at the same orders, not to be exceeded. It also
        stands in for what float64 cannot hold: noise far below a vote.

    check : NoisyCheck, default=None
        The check before each answer, for mechanisms that may not answer.

    expected : array-like of shape (n_queries, n_classes), default=None
        Votes to subtract from each count before the check takes the largest
        (InteractiveGNMax).

    ballots : array-like of int of shape (n_teachers, n_queries), default=None
        The votes behind `counts`, -1 for an abstention. With them, one teacher's moves
        are followed through all questions, which is never more and still covers every
        neighbour.

    direction : {"both", "forward"}, default="both"
        "forward" is D_a(M(n) || M(n')) only, as in the papers; "both" takes the larger
        of it and D_a(M(n') || M(n)).

    Returns
    -------
    curve : RdpCurve
        Summed over the questions.

    Notes
    -----
    For each question, the largest D_a(M(n) || M(n')) over all n' that one teacher can
    cause: by moving its vote, abstaining, or no longer abstaining. It is the quantity
    that Theorem 3 of Papernot et al. 2017 and Theorem 6 of 2018 bound from above, in
    both directions. With a check, M is the law of "none", 1, ..., K together, which
    is a bound for the run itself, unlike an expected cost.

    Only classes with different counts differ, questions with equal sorted counts share
    one computation, and the divergence is the cancellation-free one of
    :func:`~sklearn_pate.accounting.divergence.log_moment`.
    """
    counts = check_counts(counts)
    orders = np.asarray(orders, dtype=np.float64)
    scores = counts if expected is None else counts - np.asarray(expected)
    total = np.zeros(orders.size)
    for batch in _batches(counts, scores):
        # Overflow ends in an infinite cost.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            costs = _costs_by_loser(plurality, check, batch, orders, direction)
        if ceiling is not None:
            costs = np.minimum(costs, ceiling.values)
        if ballots is None:
            total = total + batch.repeats @ costs.max(axis=1)
        else:
            total = total + batch.add_up(costs, np.asarray(ballots))
    return RdpCurve(orders, np.max(np.atleast_2d(total), axis=0))


def log_losing(plurality: Plurality, counts: ArrayLike) -> NDArray[np.float64]:
    """Compute the exact log-probability that the most-voted class does not win.

    Sensitive. Where several classes have most votes it is that of any one of them.

    Parameters
    ----------
    plurality : Plurality
        The law of an answer.

    counts : array-like of shape (n_queries, n_classes)
        Votes per class for each question.

    Returns
    -------
    log_q : ndarray of shape (n_queries,)
        In nats.
    """
    counts = check_counts(counts)
    log_q = np.empty(len(counts))
    for batch in _batches(counts, counts):
        log_p = plurality.log_probabilities(batch.values, batch.sizes)
        rivals = batch.sizes.copy()
        rivals[:, -1] -= 1
        found = logsumexp(log_p, b=rivals, axis=1)
        for queries, value in zip(batch.queries, found, strict=True):
            log_q[queries] = value
    return np.minimum(log_q, 0)


@dataclass(frozen=True)
class _Batch:
    """Distinct vectors of counts with equally many groups of like classes."""

    values: NDArray[np.float64]
    sizes: NDArray[np.float64]
    scores: NDArray[np.float64]
    #: Queries of each vector, and the group of each of their classes.
    queries: list[NDArray[np.intp]]
    group_of_class: NDArray[np.intp]

    @property
    def repeats(self):
        return np.array([len(queries) for queries in self.queries], dtype=np.float64)

    def add_up(self, costs, ballots):
        """Sum what each teacher could have changed, shape (n_teachers, n_orders)."""
        total = np.zeros((len(ballots), costs.shape[2]))
        for cost, queries in zip(costs, self.queries, strict=True):
            for query in queries:
                vote = ballots[:, query]
                group = np.where(
                    vote < 0, len(cost) - 1, self.group_of_class[query, vote]
                )
                total += cost[group]
        return total


def _batches(counts, scores):
    """Sort the classes of each question, and gather questions that cost the same."""
    order = np.lexsort((scores, counts), axis=1)
    counts = np.take_along_axis(counts, order, axis=1)
    scores = np.take_along_axis(scores, order, axis=1)
    n_classes = counts.shape[1]
    both = np.concatenate([counts, scores], axis=1)
    vectors, first, inverse = np.unique(
        both, axis=0, return_index=True, return_inverse=True
    )
    starts = np.ones(counts.shape, dtype=bool)
    starts[:, 1:] = (np.diff(counts) != 0) | (np.diff(scores) != 0)
    group_of_class = np.empty(counts.shape, dtype=np.intp)
    np.put_along_axis(group_of_class, order, np.cumsum(starts, axis=1) - 1, axis=1)
    queries = np.split(
        np.argsort(inverse.reshape(-1), kind="stable"),
        np.cumsum(np.bincount(inverse.reshape(-1)))[:-1],
    )
    n_groups = starts[first].sum(axis=1)
    for n in np.unique(n_groups):
        same = np.flatnonzero(n_groups == n)
        n_at_once = max(1, _BLOCK_SIZE // (_POINTS_PER_GROUP * (int(n) + 1) ** 2))
        for start in range(0, len(same), n_at_once):
            block = same[start : start + n_at_once]
            at = np.nonzero(starts[first[block]])[1].reshape(-1, n)
            ends = np.append(at[:, 1:], np.full((len(block), 1), n_classes), axis=1)
            yield _Batch(
                values=np.take_along_axis(vectors[block, :n_classes], at, axis=1),
                sizes=(ends - at).astype(np.float64),
                scores=np.take_along_axis(vectors[block, n_classes:], at, axis=1),
                queries=[queries[i] for i in block],
                group_of_class=group_of_class,
            )


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
    n_groups = batch.values.shape[1]
    scores = batch.scores
    largest = scores.max(axis=1)
    after = np.empty((*log_p.shape[:3], n_groups + 2))
    after[..., :n_groups] = scores[:, None, None, :]
    after[..., n_groups:] = -np.inf
    for group in range(n_groups):
        alone = batch.sizes[:, group] == 1
        after[alone, group, :, group] = -np.inf
        after[:, group, :, n_groups] = scores[:, group, None] - 1
        after[:, :, group, n_groups + 1] = scores[:, group, None] + 1
    log_pass, log_fail = check.log_probabilities(largest)
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

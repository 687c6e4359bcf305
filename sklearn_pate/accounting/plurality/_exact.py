"""Exact privacy cost of a noisy plurality, by enumeration of its outcomes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_not_masked, check_option
from sklearn_pate.accounting.plurality._closed_form import (
    Batch,
    UniqueQueries,
    check_counts,
    log_moment,
    raise_to_largest,
)
from sklearn_pate.accounting.plurality._discrete_noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    NoisyCheck,
    tie_nodes,
)

_Array = NDArray[np.float64]
# Most points for the integral of permute-and-flip: exact for twice as many classes.
_N_FLIP_POINTS = 128
#: Where P' / P - 1 is below minus this, P' is summed directly.
DIRECT = 0.5
# Beyond, exponentials are not computed.
_LARGEST_EXPONENT = 300
#: Every fourth of the default orders: epsilon is within 0.2 % of that of all orders.
LOCAL_ORDERS = DEFAULT_ORDERS[::4]
#: Largest fraction by which rounding may raise a cost above a claim: costs are correct
#: to nine digits.
ROUNDING = 1e-6

# Distance of the orders at which all moves are tried; between, only possible maxima.
_STRIDE = 8
# Larger factors of a term are added in logarithms.
# Difference up to which a sum of factors less one has more digits than its logarithm.
_CLOSE = 1e-9
_GAUSS_LEGENDRE = lru_cache(np.polynomial.legendre.leggauss)


def neighbours_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """List all votes after one vote is moved, cast or withdrawn, one per row."""
    abstention = np.zeros((1, counts.size), dtype=counts.dtype)
    votes = np.concatenate([np.eye(counts.size, dtype=counts.dtype), abstention])
    moves = [after - before for before, after in permutations(votes, 2)]
    after = counts + np.array(moves)
    return after[after.min(axis=1) >= 0]


def enumerated_cost(
    log_law: Callable[[NDArray[np.int64]], _Array],
    counts: ArrayLike,
    orders: ArrayLike = DEFAULT_ORDERS,
) -> RdpCurve:
    """Compute the Renyi cost of one query from its distributions at all neighbours.

    The cost is sensitive if the votes are sensitive. Use this function to test the cost
    that a mechanism claims. The function is slower than
    :func:`~sklearn_pate.accounting.local_cost`.

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
        Largest divergence between the outcomes at these votes and at neighbouring
        votes, in either direction. Infinite if float64 cannot represent a probability.

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


@dataclass(frozen=True)
class Moves:
    """Distributions of the answers to some queries, at the votes and all neighbours.

    Classes with equal counts form a level, as they have equal chances. A move takes a
    vote from a class of one level and gives it to another class; the last index stands
    for an abstention before or after. Outcomes are a partition of the classes such that
    each part changes by one factor; the last two are the class that loses the vote and
    the one that gains it.

    `log_p` holds ln P, -inf for an empty outcome, and `change` ln P' / P, both of shape
    (n_vectors, n_levels + 1, n_levels + 1, n_outcomes), by loser and gainer.
    """

    log_p: _Array
    change: _Array


def untouched(sizes: _Array) -> _Array:
    """Count the classes of each level that a move does not touch.

    From (n_vectors, n_levels) to (n_vectors, n_levels + 1, n_levels + 1, n_levels), by
    loser and gainer; -1 where a move would need one class twice.
    """
    n_levels = sizes.shape[1]
    taken = np.eye(n_levels + 1, n_levels)
    return sizes[:, None, None, :] - taken[:, None] - taken


def after_move(values: _Array, sizes: _Array) -> tuple[_Array, _Array]:
    """Return the counts after each move, and the number of classes that have them.

    `values` holds the count of each level, or another score that a vote raises by 1.
    Both results have shape (n_vectors, n_levels + 1, n_levels + 1, n_levels + 2), by
    loser and gainer: the untouched classes of each level, the loser and the gainer. An
    empty level has -inf, as it must not set the maximum.
    """
    n_vectors, n_levels = values.shape
    shape = (n_vectors, n_levels + 1, n_levels + 1, n_levels + 2)
    after, left = np.zeros(shape), np.zeros(shape)
    after[..., :n_levels] = values[:, None, None, :]
    after[:, :n_levels, :, n_levels] = values[:, :, None] - 1
    after[:, :, :n_levels, n_levels + 1] = values[:, None, :] + 1
    left[..., :n_levels] = np.maximum(untouched(sizes), 0)
    left[:, :n_levels, :, n_levels] = 1
    left[:, :, :n_levels, n_levels + 1] = 1
    return np.where(left > 0, after, -np.inf), left


def log_p_by_move(log_p: _Array, sizes: _Array) -> _Array:
    """Compute ln P of each outcome of each move, as in `Moves`.

    The outcomes are all untouched classes of each level together, the loser and the
    gainer.
    """
    spread = _of_outcome(log_p)
    with np.errstate(divide="ignore"):
        spread[..., :-2] += np.log(np.maximum(untouched(sizes), 0))
    return spread


def _of_outcome(log_p: _Array) -> _Array:
    """Return ln P of one class of each level, of the loser and of the gainer."""
    n_vectors, n_levels = log_p.shape
    spread = np.full((n_vectors, n_levels + 1, n_levels + 1, n_levels + 2), -np.inf)
    spread[..., :n_levels] = log_p[:, None, None, :]
    spread[:, :n_levels, :, n_levels] = log_p[:, :, None]
    spread[:, :, :n_levels, n_levels + 1] = log_p[:, None, :]
    return spread


class Plurality(ABC):
    """Distribution of the winner of a noisy vote.

    `values` and `sizes`, of shape (n_vectors, n_levels), are the vote count and the
    number of classes of each level.
    """

    #: Approximate number of floats for computing one move.
    points_per_move: int

    def reach(self, order: float) -> float:
        """Bound the leads that matter at Renyi orders up to this, in votes.

        Raising a class farther behind to this lead changes a moment by less than the
        smallest float. Infinite where no computation grows with the leads.
        """
        return np.inf

    @abstractmethod
    def log_probabilities(self, values: _Array, sizes: _Array) -> _Array:
        """Compute the log-probability that a given class of each level wins.

        Of shape (n_vectors, n_levels), in nats; exp(log_p) times sizes sums to 1.
        `values` may have more axes before the last, for the counts after a move.
        """

    def moves(self, values: _Array, sizes: _Array) -> Moves:
        """Compute the change of the distribution by each move, even if impossible."""
        after, left = after_move(values, sizes)
        log_p_after = self.log_probabilities(after, left)
        log_p = self.log_probabilities(values, sizes)
        change = np.where(left > 0, log_p_after, 0) - np.where(
            left > 0, _of_outcome(log_p), 0
        )
        return Moves(log_p_by_move(log_p, sizes), change)


class GumbelPlurality(Plurality):
    """Exponential mechanism, Pr[j] proportional to exp(c n_j).

    It is argmax_j n_j + Gumbel(1 / c) (McSherry and Talwar 2007). A move changes ln P_j
    by -ln Z, less c for the class that loses the vote and plus c for the one that gains
    it, Z = 1 + P_c (e^-c - 1) + P_d (e^c - 1).
    """

    points_per_move = 120

    def __init__(self, c: float) -> None:
        self._c = c

    def log_probabilities(self, values: _Array, sizes: _Array) -> _Array:
        """Compute the log-probabilities of the winners, see `Plurality`."""
        scores = self._c * values
        return scores - logsumexp(scores, b=sizes, axis=1, keepdims=True)

    def moves(self, values: _Array, sizes: _Array) -> Moves:
        """Compute the change of the distribution by each move, see `Plurality`."""
        log_p = self.log_probabilities(values, sizes)
        p = np.concatenate([np.exp(log_p), np.zeros((len(values), 1))], axis=1)
        down, up = np.expm1(-self._c), np.expm1(min(self._c, _LARGEST_EXPONENT))
        # All classes that a move does not touch change by one factor.
        by_class = log_p_by_move(log_p, sizes)
        others = logsumexp(by_class[..., :-2], axis=-1, keepdims=True)
        excess = (p * down)[:, :, None] + (p * up)[:, None, :]
        # Far below 1, Z would lose its digits as 1 + excess, and e^c may overflow: sum
        # it directly.
        far = (excess < -DIRECT) | (self._c > _LARGEST_EXPONENT)
        log_z = np.log1p(np.where(far, 0, excess))
        log_z[far] = logsumexp(
            np.stack(
                [
                    others[..., 0][far],
                    by_class[..., -2][far] - self._c,
                    by_class[..., -1][far] + self._c,
                ]
            ),
            axis=0,
        )
        change = -log_z[..., None] + np.array([0, -self._c, self._c])
        return Moves(np.concatenate([others, by_class[..., -2:]], axis=-1), change)


class PermuteAndFlipPlurality(Plurality):
    """Permute-and-flip: argmax_j n_j + exponential noise of rate c.

    McKenna and Sheldon (2020). With w_k = exp(-c (max n - n_k)), Pr[j] = w_j int_0^1
    prod_{k != j} (1 - u w_k) du, a polynomial: Gauss-Legendre is exact for up to 256
    classes, and correct to 11 digits for a thousand.
    """

    points_per_move = 20 * _N_FLIP_POINTS

    def __init__(self, c: float) -> None:
        self._c = c

    def log_probabilities(self, values: _Array, sizes: _Array) -> _Array:
        """Compute the log-probabilities of the winners, see `Plurality`."""
        log_w = self._c * (values - values.max(axis=-1, keepdims=True))
        enough = ceil(sizes.sum(axis=-1).max() / 2)
        points, weights = _GAUSS_LEGENDRE(min(enough, _N_FLIP_POINTS))
        log_miss = np.log1p(-np.exp(log_w)[..., None] * (points + 1) / 2)
        all_miss = np.sum(sizes[..., None] * log_miss, axis=-2, keepdims=True)
        return log_w + logsumexp(all_miss - log_miss, b=weights / 2, axis=-1)


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
    """Compute the exact Renyi cost of a list of queries, at given votes.

    The cost is sensitive, as it depends on the votes. The cost must not be published,
    and must not decide the number of queries. A cost at given votes is no (epsilon,
    delta) guarantee, as it does not cover all data sets.

    Parameters
    ----------
    plurality : Plurality
        Distribution of an answer, as passed by `local_curve` of a mechanism.

    counts : array-like of shape (n_queries, n_classes)
        Votes per class for each query, whole numbers. The list of queries must
        have been fixed independently of answers.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1. By default every fourth of
        :data:`~sklearn_pate.accounting.DEFAULT_ORDERS`.

    ceiling : RdpCurve, default=None
        Worst-case cost of one query at `orders`. The worst case replaces costs that
        float64 cannot represent, and costs that exceed the worst case by rounding only.
        A cost that exceeds the worst case by more than rounding is kept: the worst case
        is then wrong.

    check : NoisyCheck, default=None
        Check of the votes before each answer, for mechanisms that may leave a query
        unanswered. Any limit on the number of answers is ignored.

    expected : array-like of shape (n_queries, n_classes), default=None
        For InteractiveGNMax, expected votes. The check rounds these numbers and
        subtracts them from the counts, before taking the maximum.

    votes_by_teacher : array-like of shape (n_teachers, n_queries), default=None
        Votes of each teacher, -1 for an abstention. The cost is then the largest sum
        over all queries that one teacher can cause, at most the sum of the largest cost
        of each query.

    direction : {"both", "forward"}, default="both"
        "forward" is D_a(M(n) || M(n')) only, as in the papers. "both" is the larger of
        D_a(M(n) || M(n')) and D_a(M(n') || M(n)).

    Returns
    -------
    curve : RdpCurve
        Sum of costs over the queries. Sensitive. `sanitize` cannot release this cost,
        as no bound on its difference between neighbours is known.

    Raises
    ------
    ValueError
        If `counts` are not vote counts, `orders` do not increase from above 1, or
        `direction` is unknown.

    Notes
    -----
    The cost of a query is the largest D_a(M(n) || M(n')) over all votes n' that one
    teacher can cause: by another vote, by an abstention, or by a vote in place of an
    abstention. Theorem 3 of Papernot et al. 2017 and Theorem 6 of Papernot et al. 2018
    bound this cost from above, in one direction. With a check, M is the joint
    distribution of "none", 1, ..., K. The cost of
    the joint distribution holds for every run, which a mean over runs does not.

    Classes with equal counts, and queries with equal sorted counts, are computed once,
    by :func:`~sklearn_pate.accounting.plurality.log_moment`. See the page :doc:`Privacy
    cost of an answer </accounting>` for the definitions and limits of this cost.

    Examples
    --------
    A query costs less if more teachers agree, and never more than the worst case over
    all votes:

    >>> from sklearn_pate.accounting import local_cost, tight_gaussian_worst_case
    >>> from sklearn_pate.accounting.plurality._exact import GaussianPlurality
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
    check_option("direction", direction, ("both", "forward"))
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


def _below(ceiling: _Array, costs: _Array) -> _Array:
    """Replace costs that float64 cannot represent, or exceed the ceiling by rounding.

    A cost above the ceiling by more than rounding stays: the ceiling is then wrong.
    """
    rounded = (costs <= ceiling * (1 + ROUNDING)) | ~np.isfinite(costs)
    return np.where(rounded, np.minimum(costs, ceiling), costs)


def _within(values: _Array, reach: float) -> _Array:
    """Raise counts that are farther than `reach` behind the largest one."""
    return np.maximum(values, values.max(axis=1, keepdims=True) - reach)


def log_losing(plurality: Plurality, counts: ArrayLike, order: float = 1.0) -> _Array:
    """Compute the exact log-probability that the most-voted class does not win.

    Sensitive. If several classes have most votes, the result is the same for each of
    them. For probabilities too small to matter up to this Renyi order, the result is an
    upper bound.
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

    def add(self, batch: Batch, costs: _Array) -> None:
        """Add the costs of a batch, of shape (n_vectors, n_levels + 1, n_orders)."""
        row = np.full(len(self._queries.repeats), -1)
        row[batch.index] = np.arange(len(batch.index))
        for query in np.flatnonzero(row[self._queries.vector_of_query] >= 0):
            cost = costs[row[self._queries.vector_of_query[query]]]
            vote = self._votes_by_teacher[:, query]
            level = np.where(vote < 0, len(cost) - 1, self._levels[query, vote])
            self._total += cost[level]

    def largest(self) -> _Array:
        """Return the largest sum over the teachers."""
        return self._total.max(axis=0)


def _costs_by_loser(
    plurality: Plurality,
    check: NoisyCheck | None,
    batch: Batch,
    orders: _Array,
    direction: str,
) -> _Array:
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
    check: NoisyCheck, batch: Batch, log_p: _Array, change: _Array
) -> tuple[_Array, _Array]:
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


class _LatticePlurality(Plurality):
    """Plurality of counts with independent noise on whole votes, ties at random."""

    def __init__(
        self, noise: DiscreteGaussian | DiscreteLaplace, slope: Callable[[int], float]
    ) -> None:
        self._noise = noise
        self._slope = slope

    def _grid(self, values: _Array, sizes: _Array) -> "_Grid":
        """Return the integrand at the winner's noisy count and its tie priority."""
        points, weights = self._noise.nodes(values, sizes)
        n_classes = int(sizes[0].sum())
        at, tie_weights = tie_nodes(self._slope(n_classes), n_classes)
        z = (points[:, None, :] - values[:, :, None])[..., None]
        log_pmf, log_cdf = self._noise.log_pmf(z), self._noise.log_cdf(z)
        # F(z - 1) + u p(z) = F(z) (1 - (1 - u) p(z) / F(z))
        share = np.exp(log_pmf - log_cdf)
        kept = 1 - (1 - at) * share
        log_h = log_cdf + np.log(kept)
        with np.errstate(divide="ignore"):  # padding weighs nothing
            log_weights = np.log(weights)[:, None, :, None] + np.log(tie_weights)
        all_below = np.sum(sizes[:, :, None, None] * log_h, axis=1, keepdims=True)
        log_f = log_pmf + all_below - log_h + log_weights
        return _Grid(z, at, share, kept, log_f.reshape(*values.shape, -1))

    def log_probabilities(self, values: _Array, sizes: _Array) -> _Array:
        """Compute the log-probabilities of the winners, see `Plurality`."""
        return logsumexp(self._grid(values, sizes).log_f, axis=2)

    def moves(self, values: _Array, sizes: _Array) -> Moves:
        """Compute the change of the distribution by each move, see `Plurality`."""
        grid = self._grid(values, sizes)
        log_p = logsumexp(grid.log_f, axis=2)
        f = _padded(np.exp(grid.log_f - log_p[:, :, None]), 0)

        # A lost vote multiplies a factor by 1 + beaten, a gained one by 1 + unbeaten.
        at, rate = grid.at, grid.share / grid.kept
        steps = [self._noise.log_pmf_step(grid.z, step) for step in (1, -1)]
        log_up, log_down = np.clip(steps, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
        beaten = _padded(rate * ((1 - at) + at * np.exp(log_up)), 0)
        unbeaten = _padded(-rate * (at + (1 - at) * np.exp(log_down)), 0)
        spread = np.zeros_like(at)
        wins = _padded(log_up + spread, 0)
        loses = _padded(log_down + spread, 0)
        change = _sums(f, beaten, 1 + unbeaten, np.expm1(wins), np.exp(loses))
        falls = f @ unbeaten.swapaxes(1, 2)
        change[..., :-2] += np.moveaxis(falls[:, :-1], 1, 2)[:, None]
        change[..., -2] += falls
        change[..., -1] += np.sum(f * np.expm1(loses), axis=2)[:, None, :]
        # Far below 1, P' / P would lose its digits as 1 + change: sum it directly.
        by_move = log_p_by_move(log_p, sizes)
        few = np.any((change < -DIRECT) & (by_move > -np.inf), axis=(1, 2, 3))
        change = np.log1p(np.maximum(change, -1 + 1e-15))
        steep = np.any(np.abs(steps) > _LARGEST_EXPONENT, axis=(0, 2, 3, 4))
        few &= ~steep
        if few.any():
            z = grid.z[few]
            before = np.exp(self._noise.log_pmf(z - 1) - self._noise.log_cdf(z - 1))
            step = self._noise.log_cdf(z - 1) - self._noise.log_cdf(z)
            left = np.exp(step) * (1 - (1 - at) * before) / grid.kept[few]
            ratio = _sums(
                f[few],
                1 + beaten[few],
                _padded(left, 1),
                np.exp(wins[few]),
                np.exp(loses[few]),
            )
            with np.errstate(divide="ignore"):
                change[few] = np.where(
                    change[few] < -DIRECT, np.log(ratio), change[few]
                )
        for i in np.flatnonzero(steep).tolist():
            exact = self._log_change(grid, i, log_p[i], steps[0][i], steps[1][i])
            close = np.abs(exact - change[i]) <= _CLOSE
            change[i] = np.where(close, change[i], exact)
        return Moves(by_move, change)

    def _log_change(
        self, grid: "_Grid", i: int, log_p: _Array, log_up: _Array, log_down: _Array
    ) -> _Array:
        """Compute ln P' / P of all moves of one vector, by sums of logarithms."""
        log_f = grid.log_f[i] - log_p[:, np.newaxis]
        n_levels, n_points = log_f.shape
        z, at, log_kept = grid.z[i], grid.at, np.log(grid.kept[i])
        log_cdf = self._noise.log_cdf(z)
        ends = []
        for step, log_step in ((1, log_up), (-1, log_down)):
            moved = self._noise.log_cdf(z + step)
            share = np.exp(self._noise.log_pmf(z + step) - moved)
            log_factor = moved - log_cdf + np.log1p(-(1 - at) * share) - log_kept
            factors = [log_factor, np.broadcast_to(log_step, log_factor.shape)]
            flat = [part.reshape(n_levels, n_points) for part in factors]
            ends.append([np.vstack([part, np.zeros(n_points)]) for part in flat])
        (lost, wins), (gained, loses) = ends
        log_f = np.vstack([log_f, np.full(n_points, -np.inf)])
        change = np.zeros((n_levels + 1, n_levels + 1, n_levels + 2))
        for loser, gainer in np.ndindex(n_levels + 1, n_levels + 1):
            others = log_f[:-1] + (lost[loser] + gained[gainer])
            change[loser, gainer, :-2] = logsumexp(others, axis=1)
            change[loser, gainer, -2] = logsumexp(
                log_f[loser] + wins[loser] + gained[gainer]
            )
            change[loser, gainer, -1] = logsumexp(
                log_f[gainer] + loses[gainer] + lost[loser]
            )
        return np.where(np.isneginf(change), 0.0, change)


def _padded(factors: _Array, factor: float) -> _Array:
    """Flatten the grid, and append the constant factor of the last level."""
    flat = factors.reshape(*factors.shape[:2], -1)
    last = np.full((flat.shape[0], 1, flat.shape[2]), float(factor))
    return np.concatenate([flat, last], axis=1)


def _sums(
    f: _Array, lost: _Array, gained: _Array, loser: _Array, gainer: _Array
) -> _Array:
    """Sum f times the factors of a move, by loser, gainer and outcome."""
    n_vectors, n_parties, n_points = f.shape
    sums = np.empty((n_vectors, n_parties, n_parties, n_parties + 1))
    both = (lost[:, :, None] * gained[:, None]).reshape(n_vectors, -1, n_points)
    others = (f[:, :-1] @ both.swapaxes(1, 2)).reshape(
        n_vectors, n_parties - 1, n_parties, n_parties
    )
    sums[..., :-2] = np.moveaxis(others, 1, 3)
    sums[..., -2] = (f * loser) @ gained.swapaxes(1, 2)
    sums[..., -1] = lost @ (f * gainer).swapaxes(1, 2)
    return sums


@dataclass(frozen=True)
class _Grid:
    """Integrand for the winner: factors per level, point and tie priority."""

    z: _Array
    at: _Array
    share: _Array
    kept: _Array
    log_f: _Array


class GaussianPlurality(_LatticePlurality):
    """Plurality with discrete Gaussian noise of scale sigma, ties broken at random.

    argmax_j n_j + Z_j, with Pr[j] = sum_t int_0^1 p(t - n_j) prod_{k != j} (F(t - 1 -
    n_k) + u p(t - n_k)) du: breaking ties at random is noise Z + U, with U uniform in
    [0, 1).
    """

    points_per_move = 400

    def __init__(self, sigma: float) -> None:
        # Where a class wins, the others' slopes add up to its own, 38 / sigma at most
        # while its probability is above 1e-300.
        self._sigma = sigma
        super().__init__(DiscreteGaussian(sigma), lambda n_classes: 38 / sigma)

    def reach(self, order: float) -> float:
        """Bound the leads that matter, see `Plurality`.

        A class g behind adds at most e^{a (a - 1) / s^2 - (g - 2 a)^2 / (4 s^2)} to the
        moment of order a, s being sigma: less than e^{-800} from 4 a + 60 s on.
        """
        return float(np.ceil(4 * order + 60 * self._sigma))


class LaplacePlurality(_LatticePlurality):
    """Plurality with discrete Laplace noise of inverse scale gamma, as for Gaussian."""

    points_per_move = 2000

    def __init__(self, gamma: float) -> None:
        # Where the others' slopes add up to s, all of them lose with probability
        # at most e^{-s / gamma}.
        self._gamma = gamma
        super().__init__(
            DiscreteLaplace(gamma), lambda n_classes: gamma * min(n_classes, 35)
        )

    def reach(self, order: float) -> float:
        """Bound the leads that matter, see `Plurality`.

        A class g behind wins with probability at most (1 + gamma g) e^{-gamma g}, which
        a move changes by a factor e^{2 gamma} at most.
        """
        return float(np.ceil(2 * order + 2 + 900 / self._gamma))

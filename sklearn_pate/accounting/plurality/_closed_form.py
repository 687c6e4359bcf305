"""Closed-form bounds on the cost of votes, and costs of distinct queries."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_not_masked, check_positive

_Array = NDArray[np.float64]
# Below this, a * r is small enough for four terms of the Taylor series.
_SMALL = 1e-2
# Above this, Q or e^{a r} may leave the range of float64 where their product does not,
# and the remaining term of g(r), a - 1, is negligible.
_STEEP = 100
#: Largest number of votes for a class: with noise, sums in int64 and float64 are exact.
LARGEST_COUNT = 2**31 - 1

# Size of the largest temporary array, which limits the memory.
_BLOCK_SIZE = 2_000_000


def log_moment(log_q: _Array, log_ratio: _Array, order: float) -> _Array:
    """Compute (a - 1) times the Renyi divergence D_a(P || Q), over the last axis.

    Parameters
    ----------
    log_q : ndarray of shape (..., n_outcomes)
        Logarithm of Q for each outcome; -inf for an impossible outcome.

    log_ratio : ndarray of shape (..., n_outcomes)
        Finite log-ratio r = ln(P / Q) of each outcome. Compute r directly, not as a
        difference of logarithms, as the result is as precise as r.

    order : float
        Renyi order a, greater than 1.

    Returns
    -------
    moments : ndarray of shape (...)
        Values of (a - 1) D_a(P || Q), not negative. Infinite if float64 cannot
        represent a value.

    Notes
    -----
    As sum P = sum Q = 1, (a - 1) D_a = log1p(sum Q g(r)) with g(r) = expm1(a r) - a
    expm1(r). No term is negative, so tiny divergences keep their precision. Near 0,
    g(r) = a (a - 1)/2 r^2 (1 + (a + 1) r/3 + (a^2 + a + 1) r^2/12 + ...).
    """
    return _Pairs(log_q, log_ratio).log_moment(slice(None), order)


class _Pairs:
    """Pairs of distributions, with all quantities that do not depend on the order."""

    def __init__(self, log_q: _Array, log_ratio: _Array) -> None:
        self._log_q = log_q
        self._log_ratio = log_ratio
        self._q = np.exp(log_q)
        with np.errstate(over="ignore"):
            self._ratio_less_one = np.expm1(log_ratio)

    def log_moment(self, some: slice | NDArray[np.intp], order: float) -> _Array:
        """Return (a - 1) D_a of some of the pairs."""
        log_ratio = self._log_ratio[some]
        scaled = order * log_ratio
        with np.errstate(over="ignore", invalid="ignore"):
            excess = np.expm1(scaled) - order * self._ratio_less_one[some]
            small = np.abs(scaled) < _SMALL
            if small.any():
                excess[small] = _series(log_ratio[small], order)
            steep = scaled > _STEEP
            if steep.any():
                log_q = self._log_q[some]
                terms = self._q[some] * excess
                terms[steep] = np.exp(log_q[steep] + scaled[steep])
                terms[steep] -= order * np.exp(log_q[steep] + log_ratio[steep])
                moments = np.log1p(np.sum(terms, axis=-1))
            else:
                moments = np.log1p(np.einsum("...i,...i", self._q[some], excess))
            large = ~np.isfinite(moments)
            if large.any():
                tilted = self._log_q[some][large] + scaled[large]
                largest = tilted.max(axis=-1)
                total = np.exp(tilted - largest[..., np.newaxis]).sum(axis=-1)
                moments[large] = largest + np.log(total)
        # A value that cannot be computed in float64 must not count as small.
        return np.maximum(np.where(np.isnan(moments), np.inf, moments), 0)


def _series(r: _Array, a: float) -> _Array:
    """Return the Taylor series of g(r) near 0."""
    tail = 1 + r * (
        (a + 1) / 3 + r * ((a * a + a + 1) / 12 + r * (a + 1) * (a * a + 1) / 60)
    )
    return a * (a - 1) / 2 * r * r * tail


def raise_to_largest(
    costs: _Array,
    row: NDArray[np.intp],
    log_q: _Array,
    log_ratio: _Array,
    orders: _Array,
    *,
    stride: int,
) -> None:
    """Raise rows of costs, in place, to the largest divergence of their pairs.

    `costs` has shape (n_rows, n_orders); `row` is the row of each pair, and `log_q` and
    `log_ratio`, of shape (n_pairs, n_outcomes), are as for `log_moment`; `orders`
    increase.

    All pairs are computed at every `stride`-th order. Between two such orders, (a - 1)
    D_a is convex in a and so lies below its chord: pairs with a chord below a value
    that is reached are left out, which does not change the result.
    """
    pairs = _Pairs(log_q, log_ratio)

    def raise_at(
        i: int, some: slice | NDArray[np.intp]
    ) -> tuple[_Array, NDArray[np.bool_]]:
        moments = pairs.log_moment(some, orders[i])
        divergences = moments / (orders[i] - 1)
        np.maximum.at(costs[:, i], row[some], divergences)
        return moments, divergences == costs[row[some], i]

    first, all_pairs = 0, slice(None)
    start, leads = raise_at(first, all_pairs)
    for last in sorted({*range(stride, orders.size, stride), orders.size - 1} - {0}):
        end, leads_at_end = raise_at(last, all_pairs)
        leaders = np.flatnonzero(leads | leads_at_end)
        for i in range(first + 1, last):
            raise_at(i, leaders)
            share = (orders[i] - orders[first]) / (orders[last] - orders[first])
            chord = (1 - share) * start + share * end
            chord[leaders] = 0  # already computed
            # The margin is for rounding.
            reached = (orders[i] - 1) * costs[row, i] * (1 - 1e-12)
            raise_at(i, np.flatnonzero(chord > reached))
        first, start, leads = last, end, leads_at_end


def gaussian_worst_case(sigma: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Classical worst-case cost of one GNMax answer. May be published.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise added to every count, in votes; positive. More
        noise has a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent cost.

    Raises
    ------
    ValueError
        If `sigma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    The cost at order a is r(a) = a / sigma^2 (Papernot et al. 2018, Proposition 8). One
    moved vote changes two counts by 1 each, and the answer is a post-processing of the
    noisy histogram. The formula also holds for discrete Gaussian noise (Canonne,
    Kamath, Steinke 2020, Proposition 5).
    :func:`~sklearn_pate.accounting.tight_gaussian_worst_case` is about two thirds of
    this bound.

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import gaussian_worst_case
    >>> round((100 * gaussian_worst_case(sigma=40)).to_epsilon(1e-5), 2)
    1.48
    """
    check_positive("sigma", sigma)
    orders = np.asarray(orders, dtype=np.float64)
    return RdpCurve(orders, orders / sigma**2)


def threshold_worst_case(sigma: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Classical worst-case cost of a noisy count, or of its check against a threshold.

    May be published.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise added to the count, divided by the sensitivity
        of the count; positive. More noise has a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent cost.

    Raises
    ------
    ValueError
        If `sigma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    The cost at order a is r(a) = a / (2 sigma^2), as for the Gaussian mechanism. One
    moved vote changes the maximum count by at most 1 (Papernot et al. 2018, Section
    4.2). The formula also holds for discrete Gaussian noise (Canonne, Kamath, Steinke
    2020, Proposition 5).

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import threshold_worst_case
    >>> round((640 * threshold_worst_case(sigma=150)).to_epsilon(1e-5), 2)
    0.66
    """
    check_positive("sigma", sigma)
    orders = np.asarray(orders, dtype=np.float64)
    return RdpCurve(orders, orders / (2 * sigma**2))


def pure_dp_curve(epsilon: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Tightest Renyi curve of a mechanism known to be epsilon-DP. May be published.

    Parameters
    ----------
    epsilon : float
        Epsilon of the pure guarantee in nats, not negative. The guarantee must hold for
        all data.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent cost.

    Raises
    ------
    ValueError
        If `epsilon` is negative, or `orders` do not increase from above 1.

    Notes
    -----
    r(a) = ln[ (e^{a eps} + e^{(1-a) eps}) / (1 + e^eps) ] / (a - 1). Randomised
    response attains this curve (Mironov 2017, Proposition 6).

    Examples
    --------
    A hundred releases with an epsilon of 0.1 each cost less than an epsilon of 10:

    >>> from sklearn_pate.accounting.bounds import pure_dp_curve
    >>> hundred = 100 * pure_dp_curve(epsilon=0.1)
    >>> round(hundred.to_epsilon(1e-5), 2)
    4.62
    """
    if epsilon != 0:
        check_positive("epsilon", epsilon)
    orders = np.asarray(orders, dtype=np.float64)
    log_mgf = np.logaddexp(orders * epsilon, (1 - orders) * epsilon) - np.logaddexp(
        0, epsilon
    )
    # cosh((a - 1/2) x) / cosh(x / 2), less 1: without cancellation where both are near.
    near = np.where(orders * epsilon < 1, epsilon / 2, 0.0)
    rise = 2 * np.sinh(orders * near) * np.sinh((orders - 1) * near) / np.cosh(near)
    log_mgf = np.where(orders * epsilon < 1, np.log1p(rise), log_mgf)
    return RdpCurve(orders, log_mgf / (orders - 1), epsilon)


def laplace_worst_case(gamma: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Classical worst-case cost of one LNMax answer with continuous noise.

    May be published. The bound does not cover :class:`~sklearn_pate.mechanisms.LNMax`,
    which draws whole numbers.

    Parameters
    ----------
    gamma : float
        Inverse scale of the Laplace noise added to every count, in 1 / votes; positive.
        A smaller value means more noise and a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent cost.

    Raises
    ------
    ValueError
        If `gamma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    The curve is the minimum of two bounds. First, the answer is a post-processing of
    two independent noisy counts, each shifted by 1. The two counts cost twice
    D_a(Lap(0, 1/g) || Lap(1, 1/g)) = ln{ a/(2a-1) e^{(a-1) g} + (a-1)/(2a-1) e^{-a g} }
    / (a - 1), with g = gamma (Mironov 2017, Proposition 6). Second, the answer is 2
    gamma-DP (Papernot et al. 2017, Section 3.1).

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import laplace_worst_case
    >>> round((100 * laplace_worst_case(gamma=0.05)).to_epsilon(1e-5), 2)
    3.13
    """
    check_positive("gamma", gamma)
    orders = np.asarray(orders, dtype=np.float64)
    with np.errstate(divide="ignore"):
        one_shift = np.logaddexp(
            np.log(orders / (2 * orders - 1)) + (orders - 1) * gamma,
            np.log((orders - 1) / (2 * orders - 1)) - orders * gamma,
        )
    # The last term covers rounding.
    one_shift = np.maximum(one_shift, 0) + 8 * np.finfo(np.float64).eps
    pure = pure_dp_curve(2 * gamma, orders)
    values = np.minimum(2 * one_shift / (orders - 1), pure.values)
    return RdpCurve(orders, values, pure.pure_epsilon)


def discrete_laplace_worst_case(
    gamma: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Classical worst-case cost of one LNMax answer with noise in whole numbers.

    May be published.

    Parameters
    ----------
    gamma : float
        Inverse scale of the discrete Laplace noise added to every count, in 1 / votes;
        positive. A smaller value means more noise and a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent cost.

    Raises
    ------
    ValueError
        If `gamma` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    The bound follows as in :func:`laplace_worst_case`. But a shift by 1 changes the
    likelihood of a whole number by a factor of e^gamma or e^-gamma, and by no factor
    between these two. D_a of one count thus equals D_a of randomised response, about 1
    + gamma / 3 times D_a of continuous noise. The noise is from Canonne, Kamath,
    Steinke (2020). :func:`~sklearn_pate.accounting.tight_laplace_worst_case` is a
    smaller bound.

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import (
    ...     discrete_laplace_worst_case,
    ...     laplace_worst_case,
    ... )
    >>> whole = discrete_laplace_worst_case(gamma=0.3, orders=[2])
    >>> (whole.values / laplace_worst_case(gamma=0.3, orders=[2]).values).round(2)
    array([1.09])
    """
    check_positive("gamma", gamma)
    one_shift = pure_dp_curve(gamma, orders)
    pure = pure_dp_curve(2 * gamma, orders)
    values = np.minimum(2 * one_shift.values, pure.values)
    return RdpCurve(orders, values, pure.pure_epsilon)


def gumbel_worst_case(c: float, orders: ArrayLike = DEFAULT_ORDERS) -> RdpCurve:
    """Worst-case cost of one GumbelMax answer. May be published.

    Parameters
    ----------
    c : float
        Inverse scale of the noise added to every count, in 1 / votes; positive. A
        smaller value means more noise and a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent cost.

    Raises
    ------
    ValueError
        If `c` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    One moved vote changes two counts by 1 each, so that the log-likelihood ratio lies
    in an interval [t - 2c, t] for some t in [0, 2c] (Durfee and Rogers 2019, bounded
    range). The worst case has two outcomes (Dong, Durfee, Rogers 2020, Lemma 3.2). With
    e = 2c, (a - 1) r(a) = max over t of ln{ p e^{(a-1) t} + (1 - p) e^{(a-1)(t - e)} },
    p = (e^e - e^t) / (e^e - 1). As a function of s = e^t, the term in braces is s^{a-1}
    (A - B s) with constants A and B, and has its maximum at s = (a - 1) A / (a B). The
    cost r(a) is about a c^2 / 2, and two tied classes attain this cost.

    Examples
    --------
    >>> from sklearn_pate.accounting.bounds import gumbel_worst_case
    >>> round((100 * gumbel_worst_case(c=0.05)).to_epsilon(1e-5), 2)
    2.15
    """
    check_positive("c", c)
    orders = np.asarray(orders, dtype=np.float64)
    power, spread = orders - 1, -np.expm1(-2 * c)
    # Divided by e^{(a-1) e}: with s = e^{e} v, v in [e^{-e}, 1], and k = e^{-(a-1) e},
    # the sum is v^{a-1} [(1 - v) (1 - k) + (1 - e^{-e}) k] / (1 - e^{-e}).
    shrink = -np.expm1(-2 * c * power)
    slope = shrink
    level = shrink + spread * (1 - shrink)
    best = np.clip(power * level / (orders * slope), np.exp(-2 * c), 1)
    log_moment = (
        2 * c * power
        + power * np.log(best)
        + np.log(level - slope * best)
        - np.log(spread)
    )
    # The last term covers rounding.
    log_moment = np.maximum(log_moment, 0) + 8 * np.finfo(np.float64).eps
    return RdpCurve(orders, log_moment / power, 2 * c)


def permute_and_flip_worst_case(
    c: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Worst-case cost of one PermuteAndFlip answer. May be published.

    Parameters
    ----------
    c : float
        Inverse scale of the noise added to every count, in 1 / votes; positive. A
        smaller value means more noise and a lower cost.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Data-independent cost.

    Raises
    ------
    ValueError
        If `c` is not positive, or `orders` do not increase from above 1.

    Notes
    -----
    The answer is 2c-DP (McKenna and Sheldon 2020, with sensitivity 1 for each count),
    so the cost is that of :func:`pure_dp_curve` at epsilon 2c. The bounded range of the
    exponential mechanism, which gives a quarter of this cost, does not hold for
    PermuteAndFlip.

    Examples
    --------
    For equal c, PermuteAndFlip costs more than GumbelMax, and errs less often:

    >>> from sklearn_pate.accounting.bounds import permute_and_flip_worst_case
    >>> round((100 * permute_and_flip_worst_case(c=0.05)).to_epsilon(1e-5), 2)
    4.62
    """
    check_positive("c", c)
    return pure_dp_curve(2 * c, orders)


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first index of each distinct row, and the distinct row of each row.

    Distinct rows are in lexicographic order. Sorts one number per row.
    """
    rng = np.random.default_rng(0)
    odd = (2 * rng.integers(2**62, size=(rows.shape[1], 1)) + 1).ravel().tolist()
    keys = np.zeros(len(rows), dtype=np.uint64)
    for column, multiplier in zip(rows.T, odd, strict=True):
        # Small whole numbers as floats differ in the high bits only.
        bits = column.astype(np.float64).view(np.uint64)
        keys += (bits ^ (bits >> np.uint64(43))) * np.uint64(multiplier)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if any(np.any(column[first][inverse] != column) for column in rows.T):
        # Two different rows have the same key, which is very unlikely.
        _, first, inverse = np.unique(
            rows, axis=0, return_index=True, return_inverse=True
        )
        return first, inverse.reshape(-1)
    order = np.lexsort(rows[first].T[::-1])
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return first[order], place[inverse]


@dataclass(frozen=True)
class Batch:
    """Distinct vectors of counts with the same number of levels of equal classes.

    `index` are their indices among the distinct vectors. The other arrays have shape
    (n_vectors, n_levels): the vote count of each level, not decreasing; its number of
    classes; and its score, the count minus expected votes, for the maximum in a check.
    """

    index: NDArray[np.intp]
    values: _Array
    sizes: _Array
    scores: _Array


class UniqueQueries:
    """List of queries, with equal sorted counts grouped.

    `expected` are votes to subtract from the counts, of shape (n_queries, n_classes),
    for the scores. Attribute `vector_of_query` is the index of each query's distinct
    vector, and `repeats` the number of queries of each vector.
    """

    def __init__(self, counts: _Array, expected: _Array | None) -> None:
        self._n_classes = counts.shape[1]
        self._has_scores = expected is not None
        # Whole votes in 32 bits: a million queries fit into little memory.
        key = counts.astype(np.int32)
        if expected is None:
            key = np.sort(key, axis=1)
        else:
            scores = counts - expected
            order = np.lexsort((scores, counts), axis=1)
            key = np.concatenate(
                [
                    np.take_along_axis(table, order, axis=1)
                    for table in (counts, scores)
                ],
                axis=1,
            )
        first, self.vector_of_query = distinct_rows(key)
        self._vectors = key[first]
        self.repeats = np.bincount(self.vector_of_query)

    def batches(self, points_per_move: int) -> Iterator[Batch]:
        """Iterate over the distinct vectors in batches of limited memory.

        `points_per_move` is the approximate number of floats per move.
        """
        starts = self._starts(self._vectors)
        n_levels = starts.sum(axis=1)
        for n in np.unique(n_levels):
            same = np.flatnonzero(n_levels == n)
            at_once = max(1, _BLOCK_SIZE // (points_per_move * (int(n) + 1) ** 2))
            for first in range(0, len(same), at_once):
                block = same[first : first + at_once]
                at = np.nonzero(starts[block])[1].reshape(-1, n)
                ends = np.append(at, np.full((len(block), 1), self._n_classes), axis=1)
                vectors = self._vectors[block].astype(np.float64)
                offset = self._n_classes if self._has_scores else 0
                yield Batch(
                    index=block,
                    values=np.take_along_axis(vectors, at, axis=1),
                    sizes=np.diff(ends).astype(np.float64),
                    scores=np.take_along_axis(vectors, at + offset, axis=1),
                )

    def levels_of(self, counts: _Array, expected: _Array | None) -> NDArray[np.intp]:
        """Return the level of each class of each query in the query's vector."""
        scores = counts if expected is None else counts - expected
        order = np.lexsort((scores, counts), axis=1)
        starts = self._starts(self._vectors)[self.vector_of_query]
        levels = np.empty(counts.shape, dtype=np.intp)
        np.put_along_axis(levels, order, np.cumsum(starts, axis=1) - 1, axis=1)
        return levels

    def _starts(self, vectors: NDArray[Any]) -> NDArray[np.bool_]:
        """Mark the first class of each level of equal classes."""
        n = self._n_classes
        starts = np.ones((len(vectors), n), dtype=bool)
        starts[:, 1:] = np.diff(vectors[:, :n]) != 0
        if self._has_scores:
            starts[:, 1:] |= np.diff(vectors[:, n:]) != 0
        return starts


def check_counts(counts: ArrayLike) -> _Array:
    """Return vote counts as a float64 array, or raise."""
    check_not_masked("counts", counts)
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise ValueError(
            f"counts has shape {counts.shape}; pass one row per query and one column "
            "per class, with at least two classes."
        )
    if counts.dtype.kind not in "biuf":
        raise ValueError(
            f"counts has dtype {counts.dtype}; pass whole numbers of votes, at most "
            f"{LARGEST_COUNT}."
        )
    whole = counts.dtype.kind != "f"
    if not (whole or np.all(np.isfinite(counts))):
        raise ValueError("counts holds NaN or infinity; pass whole numbers of votes.")
    if np.any(counts < 0) or not (whole or np.all(counts == np.rint(counts))):
        raise ValueError(
            "counts holds a negative or fractional number; pass whole numbers of votes."
        )
    if np.any(counts > LARGEST_COUNT):
        raise ValueError(
            f"counts holds a number above {LARGEST_COUNT}, the largest supported "
            "number of votes; pass numbers of votes, one per teacher."
        )
    return counts.astype(np.float64)

"""Classical bounds on the privacy cost of a noisy plurality vote, for comparison.

The classical worst cases depend on no data and may be published. The bounds of the PATE
papers depend on the votes and are as sensitive as the votes.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp, ndtr

from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve, check_delta
from sklearn_pate.accounting._value_checks import check_count, check_positive
from sklearn_pate.accounting.plurality._closed_form import (
    check_counts,
    discrete_laplace_worst_case,
    distinct_rows,
    gaussian_worst_case,
    gumbel_worst_case,
    laplace_worst_case,
    permute_and_flip_worst_case,
    pure_dp_curve,
    threshold_worst_case,
)
from sklearn_pate.accounting.plurality._optimal import theorem_6_cost

__all__ = [
    "confident_2018",
    "discrete_laplace_worst_case",
    "gaussian_2018",
    "gaussian_worst_case",
    "gumbel_worst_case",
    "laplace_2017",
    "laplace_2017_strong_composition",
    "laplace_worst_case",
    "permute_and_flip_worst_case",
    "pure_dp_curve",
    "threshold_worst_case",
]


def _distinct_votes(counts: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the distinct sorted counts of the queries, and how often each occurs."""
    counts = np.sort(check_counts(counts), axis=1)
    first, inverse = distinct_rows(counts)
    return counts[first], np.bincount(inverse)


def laplace_2017(
    counts: ArrayLike, gamma: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Compute the data-dependent bound of the 2017 PATE paper for LNMax answers.

    The bound is sensitive, as it depends on the votes, and must not be published.

    Parameters
    ----------
    counts : array-like of shape (n_queries, n_classes)
        Votes per class for each query. The list of queries must have been fixed
        independently of answers.

    gamma : float
        Inverse scale of the Laplace noise, in 1 / votes; positive.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1. The moments l = 1..8 of the paper are the
        orders l + 1 = 2..9.

    Returns
    -------
    curve : RdpCurve
        Sum of costs over the queries. Sensitive. The paper converts this curve by
        ``.to_epsilon(delta, conversion="classical")``.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Papernot et al. 2017, Theorems 2 and 3 and Lemma 4. Let j* be the most-voted class
    of K classes, and gap_j its lead over class j. Let e0 = 2 gamma, l = a - 1 and q =
    min( sum_{j != j*} (2 + gamma gap_j) / (4 exp(gamma gap_j)), 1 - 1/K ). The moment
    is the smallest of e0^2 l (l+1) / 2, e0 l, and, if q is below (e^{e0} - 1)/(e^{2 e0}
    - 1), ln[ (1-q) ((1-q)/(1 - e^{e0} q))^l + q e^{e0 l} ]. The divergence of order a
    is moment / l. The bound covers continuous noise and one direction only, D_a(M(d) ||
    M(d')) for the given data d. For :class:`~sklearn_pate.mechanisms.LNMax`, see
    :func:`~sklearn_pate.accounting.tight_laplace_worst_case`.

    Examples
    --------
    A hundred queries on which 230 of 250 teachers agree:

    >>> from sklearn_pate.accounting.bounds import laplace_2017
    >>> curve = laplace_2017(100 * [[230, 20]], gamma=0.05, orders=range(2, 10))
    >>> round(curve.quiet_epsilon(1e-5, conversion="classical"), 2)
    1.44
    """
    check_positive("gamma", gamma)
    orders = np.asarray(orders, dtype=np.float64)
    votes, repeats = _distinct_votes(counts)
    gaps = gamma * (votes[:, -1:] - votes[:, :-1])
    n_classes = votes.shape[1]
    log_q = np.minimum(
        logsumexp(np.log((2 + gaps) / 4) - gaps, axis=1), np.log1p(-1 / n_classes)
    )

    pure_epsilon = 2 * gamma
    moments = orders - 1
    independent = np.minimum(
        pure_epsilon**2 * moments * (moments + 1) / 2, pure_epsilon * moments
    )
    # (e^x - 1) / (e^{2x} - 1) = 1 / (e^x + 1)
    dependent = log_q < -np.logaddexp(0, pure_epsilon)
    total = independent * np.sum(repeats[~dependent])
    log_q, repeats = log_q[dependent], repeats[dependent]
    log_1_q = np.log1p(-np.exp(log_q))
    ratio = log_1_q - np.log1p(-np.exp(pure_epsilon + log_q))
    for i, moment in enumerate(moments):
        theorem_3 = np.logaddexp(
            log_1_q + moment * ratio, log_q + pure_epsilon * moment
        )
        # Round-off may make a divergence of about 1e-17 negative.
        moment_by_query = np.clip(theorem_3, 0, independent[i])
        total[i] += np.sum(repeats * moment_by_query)
    return RdpCurve(orders, total / moments)


def laplace_2017_strong_composition(
    n_queries: int, gamma: float, delta: float
) -> float:
    """Compute the data-independent epsilon of the 2017 PATE paper.

    Epsilon follows from strong composition, and may be published.

    Parameters
    ----------
    n_queries : int
        Number of LNMax answers.

    gamma : float
        Inverse scale of the Laplace noise, in 1 / votes; positive.

    delta : float
        Delta of the (epsilon, delta) guarantee, in (0, 1).

    Returns
    -------
    epsilon : float
        Equal to 4 n gamma^2 + 2 gamma sqrt(2 n ln(1/delta)), where n is `n_queries`.

    Raises
    ------
    ValueError
        If `delta` or `gamma` is out of range.

    Notes
    -----
    Papernot et al. 2017, Section 3.2, for continuous noise. The epsilon of
    :func:`laplace_worst_case` is never larger.

    Examples
    --------
    The paper's hundred queries on MNIST:

    >>> from sklearn_pate.accounting.bounds import laplace_2017_strong_composition
    >>> round(laplace_2017_strong_composition(100, gamma=0.05, delta=1e-5), 2)
    5.8
    """
    check_count("n_queries", n_queries, 0)
    check_positive("gamma", gamma)
    delta = check_delta(delta)
    return float(
        4 * n_queries * gamma**2 + 2 * gamma * np.sqrt(-2 * n_queries * np.log(delta))
    )


def gaussian_2018(
    counts: ArrayLike, sigma: float, orders: ArrayLike = DEFAULT_ORDERS
) -> RdpCurve:
    """Compute the data-dependent bound of the 2018 PATE paper for GNMax answers.

    The bound is sensitive, as it depends on the votes, and must not be published.

    Parameters
    ----------
    counts : array-like of shape (n_queries, n_classes)
        Votes per class for each query. The list of queries must have been fixed
        independently of answers.

    sigma : float
        Standard deviation of the noise on every count, in votes; positive.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Sum of costs over the queries. Sensitive.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Papernot et al. 2018, Theorem 6 with the parameters of Proposition 10, and q bounded
    by Proposition 7: q = min( sum_{j != j*} erfc(gap_j / (2 sigma)) / 2, 1 - 1/K ).
    Here j* is the most-voted class of K classes, and gap_j its lead over class j. If
    Theorem 6 does not apply, or a / sigma^2 is smaller, a / sigma^2 is used
    (Proposition 8). The bound covers continuous noise and one direction only, D_a(M(d)
    || M(d')) for the given data d. For :class:`~sklearn_pate.mechanisms.GNMax`, see
    :func:`~sklearn_pate.accounting.tight_gaussian_worst_case`.

    Examples
    --------
    A hundred queries on which 230 of 250 teachers agree. First the bound of the paper,
    then the worst case over all votes:

    >>> from sklearn_pate.accounting.bounds import gaussian_2018, gaussian_worst_case
    >>> curve = gaussian_2018(100 * [[230, 20]], sigma=40)
    >>> round(curve.to_epsilon(1e-5, conversion="classical"), 2)
    0.39
    >>> round((100 * gaussian_worst_case(sigma=40)).to_epsilon(1e-5), 2)
    1.48
    """
    check_positive("sigma", sigma)
    votes, repeats = _distinct_votes(counts)
    return _weighted_theorem_6(_log_q(votes, sigma), sigma, orders, repeats)


def confident_2018(
    counts: ArrayLike,
    threshold: float,
    sigma_threshold: float,
    sigma: float,
    orders: ArrayLike = DEFAULT_ORDERS,
) -> RdpCurve:
    """Compute the expected cost of ConfidentGNMax, as in the 2018 PATE paper.

    Sensitive, and **not a bound on the cost of a run**. The cost of an answer is
    multiplied by the probability that the query is answered. A limit on the number of
    answers is ignored. Use the function only to reproduce the paper.

    Parameters
    ----------
    counts : array-like of shape (n_queries, n_classes)
        Votes per class for each query.

    threshold : float
        Number of votes that the noisy largest count must reach.

    sigma_threshold : float
        Standard deviation of the noise on the largest count, in votes; positive.

    sigma : float
        Standard deviation of the noise on every count of an answer, in votes; positive.

    orders : array-like of shape (n_orders,)
        Renyi orders, increasing, above 1.

    Returns
    -------
    curve : RdpCurve
        Sum of expected costs over the queries. Sensitive, and not a guarantee.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Papernot et al. 2018, Theorem 6 and Section 4.2. The check passes with probability p
    = Phi((max n - threshold) / sigma_threshold). The check costs as much as GNMax with
    q = min(p, 1 - p) and noise sqrt(2) sigma_threshold. The guarantee is the curve of
    ``cost`` of :class:`~sklearn_pate.mechanisms.ConfidentGNMax`.

    Examples
    --------
    240 queries with clear votes and 400 with divided votes, with the noise of the
    paper:

    >>> from sklearn_pate.accounting.bounds import confident_2018
    >>> counts = 240 * [[240, 10]] + 400 * [[130, 120]]
    >>> curve = confident_2018(counts, threshold=200, sigma_threshold=150, sigma=40)
    >>> round(curve.to_epsilon(1e-5, conversion="classical"), 2)
    2.18
    """
    check_positive("sigma_threshold", sigma_threshold)
    check_positive("sigma", sigma)
    votes, repeats = _distinct_votes(counts)
    margin = (votes[:, -1] - threshold) / sigma_threshold
    checks = _weighted_theorem_6(
        log_ndtr(-np.abs(margin)), np.sqrt(2) * sigma_threshold, orders, repeats
    )
    answers = _weighted_theorem_6(
        _log_q(votes, sigma), sigma, orders, repeats * ndtr(margin)
    )
    return checks + answers


def _log_q(sorted_counts: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Bound the log-probability that the plurality loses (Proposition 7)."""
    gaps = sorted_counts[:, -1:] - sorted_counts[:, :-1]
    n_classes = sorted_counts.shape[1]
    union = logsumexp(log_ndtr(-gaps / (np.sqrt(2) * sigma)), axis=1)
    return np.minimum(union, np.log1p(-1 / n_classes))


def _weighted_theorem_6(
    log_q: NDArray[np.float64], sigma: float, orders: ArrayLike, weights: NDArray[Any]
) -> RdpCurve:
    """Sum Theorem 6, or a / sigma^2 where it does not apply or is larger."""
    orders = np.asarray(orders, dtype=np.float64)
    total = [weights @ theorem_6_cost(log_q, sigma, order) for order in orders]
    return RdpCurve(orders, np.array(total))

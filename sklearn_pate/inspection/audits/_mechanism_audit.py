"""Does a mechanism leak more than it claims? Monte Carlo on neighbouring votes."""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate._inputs._checks import check_count
from sklearn_pate._votes._soft_votes import SoftVoteLayout, SoftVotes
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting.plurality._unique_queries import check_counts
from sklearn_pate.inspection.audits._audit_result import AuditResult, check_confidence
from sklearn_pate.inspection.audits._statistics import (
    bound_from_two_worlds,
    log_ratio_scores,
)
from sklearn_pate.mechanisms import Mechanism, NoisySum, Oracle

__all__ = ["audit_mechanism"]


def audit_mechanism(
    mechanism: Mechanism | NoisySum,
    counts: ArrayLike,
    neighbour: ArrayLike,
    *,
    n_queries: int = 1,
    n_trials: int = 100_000,
    n_repeats: int = 10,
    delta: float = 1e-5,
    confidence: float = 1 - 1e-4,
) -> AuditResult:
    """Try to contradict the cost of a mechanism, at two neighbouring data sets.

    Votes, or what is summed by a :class:`~sklearn_pate.mechanisms.NoisySum`, are
    counted, and queried as in a fit, with noise from the
    operating system. That is done at `counts` and at `neighbour`, and an event is
    looked for that is likelier at one of them than the cost allows.

    Besides, the exact cost at each of the two counts is computed from the law that the
    mechanism states of its answers, over all neighbours, in both directions and at all
    Renyi orders of the claim. A claim that is below it by more than rounding is
    contradicted, whatever was drawn. (A sum has no votes to move, and is not
    enumerated.)

    A claim that is not contradicted is not proved: these two counts may be harmless
    ones, and an event may be too rare to be seen in `n_trials`. A claim that is
    contradicted by what was drawn is wrong, but for one audit in
    ``1 / (1 - confidence)``. Made-up counts reveal nothing; if they are the votes of a
    real fit, the result is as sensitive as they are.

    Parameters
    ----------
    mechanism : Mechanism or NoisySum
        With its noise parameters set, without `max_answers` and without `noise_seed`.
        Every trial draws fresh noise: nothing is charged to any account.

    counts : array-like of int of shape (n_classes,)
        Votes per class, the same on every query. For a
        :class:`~sklearn_pate.mechanisms.NoisySum`, what one teacher says, in 1/1024 of
        the clipping bound: its parts, of shape (n_parts, width) or one after the other,
        none longer than the bound. What all others say is the same in both data sets,
        and left out.

    neighbour : array-like of int, of the shape of `counts`
        The same but for one vote that is moved, cast or withdrawn; or what that teacher
        says instead.

    n_queries : int, default=1
        Queries of one trial. The claim is the cost of all of them.

    n_trials : int, default=100000
        Trials at each of the two counts. Half of them choose the event, half measure
        it. More trials show rarer events.

    n_repeats : int, default=10
        Every query is asked so often, and all its answers count: the cost covers
        one answer. The more repeats, the plainer it is if an oracle answers anew.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover. The cost is a curve that
        claims an epsilon for each delta: at a larger one, such as 0.01, the claim is
        nearer to what so many trials can show, and the audit is sharper.

    confidence : float, default=0.9999
        Probability that a true claim is not contradicted.

    Returns
    -------
    result : AuditResult
        A lower bound of epsilon beside the claim. It may be published if the counts are
        made up.

    Raises
    ------
    ValueError
        If the counts are no neighbours, a vector is longer than the mechanism's cost
        allows, the mechanism makes no claim for a trial, or another parameter is out of
        range; nothing was drawn.

    Notes
    -----
    Trials are ordered by the sum of the estimated log-likelihood ratios of their
    answers, or, where noisy histograms or sums are released, by their projection on
    ``counts - neighbour``, which is the likelihood ratio of Gaussian noise; see
    ``bound_from_two_worlds`` for the rest, after
    Jagielski, Ullman, Oprea (2020), "Auditing differentially private machine learning:
    how private is private SGD?", with bounds of Clopper and Pearson (1934). An
    :class:`~sklearn_pate.mechanisms.InteractiveGNMax` is asked with a student that
    finds all classes alike. All trials are queries to one oracle: the confidence
    holds if these are answered independently.

    Examples
    --------
    >>> from sklearn_pate.inspection import audit_mechanism
    >>> from sklearn_pate.mechanisms import GumbelMax
    >>> result = audit_mechanism(GumbelMax(c=0.5), [5, 1], [4, 2], n_trials=20_000)
    >>> result.contradicted
    False
    >>> 0.4 < result.epsilon_lower < result.epsilon_claimed <= 1
    True
    """
    _check_mechanism(mechanism)
    _check_shapes(counts, neighbour)
    check_confidence(confidence, delta)
    check_count("n_queries", n_queries, 1)
    check_count("n_trials", n_trials, 2)
    check_count("n_repeats", n_repeats, 1)
    if isinstance(mechanism, NoisySum):
        mechanism = mechanism.prepared(n_parts=mechanism.n_parts)
        layout, worlds = _check_vectors(counts, neighbour, mechanism.n_parts)
        aggregate = partial(_sum_vectors, layout)
    else:
        worlds = _check_counts(counts, neighbour)
        n_teachers = int(worlds.sum(axis=1).max())
        mechanism = mechanism.prepared(
            n_teachers=n_teachers, n_queries=n_queries, n_classes=worlds.shape[1]
        )
        aggregate = partial(_count_votes, n_teachers)
    claim = mechanism.stated_epsilon(n_queries, worlds.shape[1], delta)
    exact_share = None
    if not isinstance(mechanism, NoisySum):
        exact_share = _exact_share(mechanism, worlds, n_queries)
    seen, neighbour_seen = (
        _ask(
            mechanism,
            aggregate(world, n_trials * n_queries),
            n_trials=n_trials,
            n_queries=n_queries,
            n_repeats=n_repeats,
        )
        for world in worlds
    )
    if mechanism.releases_histograms:
        direction = worlds[0] - worlds[1]
        scores, neighbour_scores = seen @ direction, neighbour_seen @ direction
    else:
        scores, neighbour_scores = log_ratio_scores(
            seen, neighbour_seen, n_trials // 2, pooled=True
        )
    epsilon, evidence = bound_from_two_worlds(
        scores, neighbour_scores, delta=delta, confidence=confidence
    )
    return AuditResult(epsilon, claim, float(delta), confidence, evidence, exact_share)


def _exact_share(mechanism, worlds, n_queries):
    """Return the largest exact cost as a share of the claimed curve."""
    n_classes = worlds.shape[1]
    claimed = mechanism.stated_curve(n_queries, n_classes)
    shares = [0.0]
    for counts in worlds:
        exact = mechanism.enumerated_curve(
            counts, claimed.orders, probabilities=_opinion(mechanism, n_classes)
        )
        # Where float64 holds no cost, nothing is known.
        known = np.isfinite(exact.values)
        shares.extend(n_queries * exact.values[known] / claimed.values[known])
    return float(max(shares))


def _opinion(mechanism, n_classes):
    """Return the probabilities of a student that finds all classes alike, or None."""
    if not mechanism.needs_probabilities:
        return None
    return np.full(n_classes, 1 / n_classes)


def _check_shapes(counts, neighbour):
    if np.shape(counts) != np.shape(neighbour):
        raise ValueError(
            f"counts has shape {np.shape(counts)} and neighbour {np.shape(neighbour)}; "
            "pass the same query for both."
        )


def _check_counts(counts, neighbour):
    if np.ndim(counts) != 1:
        raise ValueError(
            f"counts and neighbour have shape {np.shape(counts)}; pass the votes per "
            "class of one query for both."
        )
    worlds = check_counts([counts, neighbour]).astype(np.int64)
    changes = np.sort((worlds[1] - worlds[0])[worlds[0] != worlds[1]]).tolist()
    if changes not in ([-1, 1], [-1], [1]):
        raise ValueError(
            f"neighbour={worlds[1].tolist()} is no neighbour of "
            f"counts={worlds[0].tolist()}; move, cast or withdraw one vote."
        )
    return worlds


def _check_vectors(counts, neighbour, n_parts):
    vectors = np.array([counts, neighbour])
    n_values = vectors[0].size
    is_flat = vectors.ndim == 2 and n_values and n_values % n_parts == 0
    if not is_flat and vectors.shape[1:-1] != (n_parts,):
        raise ValueError(
            f"counts and neighbour have shape {vectors.shape[1:]}; the mechanism has "
            f"n_parts={n_parts}: pass that many parts, all of one width."
        )
    layout = SoftVoteLayout(n_parts, n_values // n_parts)
    vectors = vectors.reshape(2, n_values)
    layout.check(vectors)
    if np.array_equal(*vectors):
        raise ValueError(
            "counts and neighbour are the same; pass two vectors that one teacher may "
            "send."
        )
    return layout, vectors.astype(np.int64)


def _check_mechanism(mechanism):
    if not isinstance(mechanism, Mechanism | NoisySum):
        raise ValueError(
            f"mechanism={mechanism!r} is not a Mechanism or NoisySum; pass one, such "
            "as GNMax(sigma=40)."
        )
    if mechanism.noise_seed is not None:
        raise ValueError(
            f"noise_seed={mechanism.noise_seed!r} voids every guarantee, so that there "
            "is no claim to audit; leave noise_seed=None."
        )
    if mechanism.max_answers is not None:
        raise ValueError(
            f"max_answers={mechanism.max_answers!r} counts the answers of all trials "
            "together, which then are not independent; leave max_answers=None."
        )


def _count_votes(n_teachers, counts, n_rows):
    votes_by_teacher = [None] * (n_teachers - counts.sum())  # abstentions
    for label, n_votes in enumerate(counts.tolist()):
        votes_by_teacher += n_votes * [np.full(n_rows, label, dtype=np.int32)]
    return Votes(votes_by_teacher, n_public=n_rows, n_classes=len(counts))


def _sum_vectors(layout, vector, n_rows):
    return SoftVotes([np.tile(vector, (n_rows, 1))], layout=layout, n_queries=n_rows)


def _ask(mechanism, votes, *, n_trials, n_queries, n_repeats):
    """Return all answers of each trial, or the sum of all its histograms."""
    rows = np.arange(n_trials * n_queries)
    oracle = Oracle(votes, mechanism, n_queries=len(rows))
    asked = {}
    opinion = _opinion(mechanism, votes.n_classes)
    if opinion is not None:
        asked["probabilities"] = np.tile(opinion, (len(rows), 1))
    answers = [oracle.ask(rows, **asked) for _ in range(n_repeats)]
    if mechanism.releases_histograms:
        # As many for each row as were released, in the order of the rows.
        released = oracle.transcript().histograms
        by_trial = released.reshape(-1, n_trials, n_queries, votes.n_classes)
        return by_trial.sum(axis=(0, 2))
    return np.hstack([answer.reshape(n_trials, n_queries) for answer in answers])

"""Audit of a mechanism by Monte Carlo trials on neighbouring vote counts."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest

from sklearn_pate._votes._sums import SoftVoteLayout, TeacherScores, sum_of_classes
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.plurality._closed_form import check_counts
from sklearn_pate.inspection._audits import (
    AuditResult,
    audit_scores,
    check_confidence,
    log_ratio_scores,
)
from sklearn_pate.mechanisms import MeanScores, NoisySum, Oracle, PluralityMechanism
from sklearn_pate.mechanisms._mean_scores import LONGEST
from sklearn_pate.mechanisms._plurality import NO_ANSWER

# Of a sum of probabilities; and the probability that answers with the stated law are
# taken to have another one.
_ROUNDING, _CHANCE = 1e-6, 1e-9


def audit_mechanism(
    mechanism: PluralityMechanism | MeanScores | NoisySum,
    counts: ArrayLike,
    neighbour: ArrayLike,
    *,
    n_queries: int = 1,
    n_trials: int = 100_000,
    n_repeats: int = 10,
    delta: float = 1e-5,
    confidence: float = 1 - 1e-4,
) -> AuditResult:
    """Audit the cost of a mechanism by its answers on two neighbouring data sets.

    The mechanism answers queries as in a fit, with noise from the operating system, on
    two neighbouring vote counts. For a :class:`~sklearn_pate.mechanisms.NoisySum` or
    :class:`~sklearn_pate.mechanisms.MeanScores`, the audit uses a vector of one teacher
    in place of vote counts. The audit searches for an event that is more probable on
    one data set than the cost allows.

    For vote counts, the exact Renyi cost is also computed from the distribution of
    answers that the mechanism states. The exact cost covers all neighbours of both
    counts, in both directions, at all orders of the claimed curve. A claimed cost below
    the exact cost is certainly wrong. The answers of all trials are compared with the
    stated distribution. If the mechanism states no distribution, the trials alone can
    contradict the claim.

    An audit cannot prove a claim: other counts may show a larger epsilon, or the event
    may be too rare for `n_trials`. By chance, one in ``1 / (1 - confidence)`` audits of
    true claims contradicts the claim. The result is as sensitive as the counts.

    Parameters
    ----------
    mechanism : PluralityMechanism, MeanScores or NoisySum
        Mechanism whose noise is set, without `max_answers`. The audit records no cost
        in a ledger.

    counts : array-like of int of shape (n_classes,)
        Vote counts of each query. For a :class:`~sklearn_pate.mechanisms.NoisySum`, the
        clipped vector of one teacher in units of 1/1024 of the clipping bound, of shape
        (n_parts, width) or flat. For :class:`~sklearn_pate.mechanisms.MeanScores`, the
        coefficients of one teacher, of shape (n_coordinates, n_classes - 1).

    neighbour : array-like of int, of the shape of `counts`
        Vote counts after one vote is moved, cast or withdrawn. For a sum or scores,
        another vector of the same teacher.

    n_queries : int, default=1
        Number of queries, or of releases of scores, in one trial. The audited claim is
        the cost of one trial.

    n_trials : int, default=100000
        Number of trials on each data set. Half of the trials choose the event, and the
        other half measure the probability of the event. More trials show rarer events.

    n_repeats : int, default=10
        Number of repeats of each query. The audit uses all answers, but the cost covers
        one answer per query. Repeats thus find a defective oracle that draws new noise
        for a repeated query.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee. At a larger delta, such as 0.01, the
        claim is smaller, and the audit is more sensitive.

    confidence : float, default=0.9999
        Probability that a true claim is not contradicted.

    Returns
    -------
    result : AuditResult
        Lower bound of epsilon, and the claimed epsilon.

    Raises
    ------
    ValueError
        If a parameter is out of range, the counts are not neighbours, or the mechanism
        states no valid cost or distribution.

    Notes
    -----
    Trials are ordered by the sum of the estimated log-likelihood ratios of their
    answers. Noisy histograms, sums and scores are ordered by their projection on the
    difference of the data sets, as for the likelihood ratio of Gaussian noise. The
    lower bound is by Jagielski, Ullman, Oprea (2020), "Auditing differentially private
    machine learning: how private is private SGD?", with binomial bounds of Clopper and
    Pearson (1934). For :class:`~sklearn_pate.mechanisms.InteractiveGNMax`, the
    student's probabilities are equal for all classes. One oracle answers all trials:
    the confidence holds if the answers of different trials are independent.

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
    if np.shape(counts) != np.shape(neighbour):
        raise ValueError(
            f"counts has shape {np.shape(counts)} and neighbour {np.shape(neighbour)}; "
            "pass arrays of one shape."
        )
    check_confidence(confidence, delta)
    check_count("n_queries", n_queries, 1)
    check_count("n_trials", n_trials, 2)
    check_count("n_repeats", n_repeats, 1)
    if isinstance(mechanism, MeanScores):
        teachers = _check_coefficients(counts, neighbour)
        scores, neighbour_scores = (
            np.array(
                [
                    _release_scores(mechanism, teachers, own, n_queries)
                    for _ in range(n_trials)
                ]
            )
            for own in (0, 1)
        )
        # The cost does not depend on the number of classes.
        claim = mechanism.cost(n_queries * mechanism.n_steps, 2).epsilon(delta)
        return audit_scores(scores, neighbour_scores, claim, delta, confidence)
    if isinstance(mechanism, NoisySum):
        mechanism = mechanism.prepared(n_parts=mechanism.n_parts)
        data_sets = _check_vectors(counts, neighbour, mechanism.n_parts)
        answer: Callable[..., NDArray[np.int64]] = partial(_release_sums, mechanism)
    else:
        data_sets = _check_counts(counts, neighbour)
        n_teachers = int(data_sets.sum(axis=1).max())
        mechanism = mechanism.prepared(
            n_teachers=n_teachers, n_queries=n_queries, n_classes=data_sets.shape[1]
        )
        answer = partial(_answer_queries, mechanism, n_teachers, n_repeats)
    claim = mechanism.cost(n_queries, data_sets.shape[1]).epsilon(delta)
    exact_share, laws = None, None
    if isinstance(mechanism, PluralityMechanism) and mechanism._plurality() is not None:
        exact_share = _exact_share(mechanism, data_sets, n_queries)
        if not mechanism.releases_histograms:
            laws = _laws(mechanism, data_sets)
    answers, neighbour_answers = (
        answer(one, n_trials=n_trials, n_queries=n_queries) for one in data_sets
    )
    if isinstance(mechanism, NoisySum) or mechanism.releases_histograms:
        direction = data_sets[0] - data_sets[1]
        follows_law = None
        scores = answers @ direction
        neighbour_scores = neighbour_answers @ direction
    else:
        both = (answers[:, :n_queries], neighbour_answers[:, :n_queries])
        for one in both:
            _check_answers(one, data_sets.shape[1])
        follows_law = None if laws is None else all(map(_follow, both, laws))
        scores, neighbour_scores = log_ratio_scores(
            answers, neighbour_answers, n_trials // 2, pooled=True
        )
    return audit_scores(
        scores, neighbour_scores, claim, delta, confidence, exact_share, follows_law
    )


def _exact_share(
    mechanism: PluralityMechanism, data_sets: NDArray[np.int64], n_queries: int
) -> float:
    """Return the largest exact cost as a share of the claimed curve."""
    n_classes = data_sets.shape[1]
    claimed = mechanism.cost(n_queries, n_classes).curve
    shares = [0.0]
    for counts in data_sets:
        exact = mechanism.enumerated_curve(
            counts,
            claimed.orders,
            probabilities=_student_probabilities(mechanism, n_classes),
        )
        # The cost at some orders may overflow.
        known = np.isfinite(exact.values)
        shares.extend(n_queries * exact.values[known] / claimed.values[known])
    return float(max(shares))


def _laws(
    mechanism: PluralityMechanism, data_sets: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """Return the stated probabilities of no answer and of each class, by data set."""
    probabilities = _student_probabilities(mechanism, data_sets.shape[1])
    laws = []
    for counts in data_sets:
        law = np.exp(mechanism._log_law(counts[np.newaxis], probabilities)[0])
        if not abs(law.sum() - 1) < _ROUNDING:
            raise ValueError(
                f"{type(mechanism).__name__} states probabilities of answers to votes "
                f"{counts.tolist()} that sum to {law.sum():.6g}, not to 1; correct "
                "_plurality()."
            )
        unanswered = np.zeros(len(counts) + 1 - len(law))  # without a check
        laws.append(np.concatenate([unanswered, law]))
    return laws


def _check_answers(answers: NDArray[np.int64], n_classes: int) -> None:
    wrong = answers[(answers < NO_ANSWER) | (answers >= n_classes)]
    if wrong.size:
        raise ValueError(
            f"The mechanism answered {wrong[0]}, which is neither a class index from "
            f"0 to {n_classes - 1}, nor -1 for no answer; correct _answer()."
        )


def _follow(answers: NDArray[np.int64], law: NDArray[np.float64]) -> bool:
    """Check answers against their stated law, by a binomial test of each outcome."""
    found = np.bincount(answers.ravel() - NO_ANSWER, minlength=len(law))
    values = [
        binomtest(int(n), answers.size, min(p, 1.0)).pvalue
        for n, p in zip(found, law, strict=True)
    ]
    return min(values) * len(values) >= _CHANCE


def _student_probabilities(
    mechanism: PluralityMechanism, n_classes: int
) -> NDArray[np.float64] | None:
    """Return equal probabilities of all classes, None if the mechanism needs none."""
    if not mechanism.needs_probabilities:
        return None
    return np.full(n_classes, 1 / n_classes)


def _check_counts(counts: ArrayLike, neighbour: ArrayLike) -> NDArray[np.int64]:
    if np.ndim(counts) != 1:
        raise ValueError(
            f"counts and neighbour have shape {np.shape(counts)}; pass the vote counts "
            "of one query for both."
        )
    both: Any = [counts, neighbour]
    data_sets = check_counts(both).astype(np.int64)
    changes = np.sort(data_sets[1] - data_sets[0])
    changes = changes[changes != 0].tolist()
    if changes not in ([-1, 1], [-1], [1]):
        raise ValueError(
            f"neighbour={data_sets[1].tolist()} is not a neighbour of "
            f"counts={data_sets[0].tolist()}; change, add or remove only one vote."
        )
    return data_sets


def _check_vectors(
    counts: ArrayLike, neighbour: ArrayLike, n_parts: int
) -> NDArray[np.int64]:
    vectors = np.array([counts, neighbour])
    n_values = vectors[0].size
    is_flat = vectors.ndim == 2 and n_values and n_values % n_parts == 0
    if not is_flat and vectors.shape[1:-1] != (n_parts,):
        raise ValueError(
            f"counts and neighbour have shape {vectors.shape[1:]}, but the mechanism "
            f"has n_parts={n_parts}; pass that many parts of equal width."
        )
    layout = SoftVoteLayout(n_parts, n_values // n_parts)
    vectors = vectors.reshape(2, n_values)
    layout.check(vectors)
    if np.array_equal(*vectors):
        raise ValueError(
            "counts and neighbour are equal; pass vectors that differ in one teacher."
        )
    return vectors.astype(np.int64)


def _check_mechanism(mechanism: Any) -> None:
    if not isinstance(mechanism, PluralityMechanism | MeanScores | NoisySum):
        raise ValueError(
            f"mechanism={mechanism!r} is not a PluralityMechanism, MeanScores or "
            "NoisySum; pass one, such as GNMax(sigma=40)."
        )
    if mechanism.max_answers is not None:
        raise ValueError(
            f"max_answers={mechanism.max_answers!r} makes the answers of different "
            "trials dependent; set max_answers=None."
        )


def _check_coefficients(counts: ArrayLike, neighbour: ArrayLike) -> NDArray[np.float64]:
    data_sets = np.array([counts, neighbour], dtype=np.float64)
    if data_sets.ndim != 3 or 0 in data_sets.shape:
        raise ValueError(
            f"counts and neighbour have shape {np.shape(counts)}; pass coefficients of "
            "shape (n_coordinates, n_classes - 1)."
        )
    if np.array_equal(*data_sets):
        raise ValueError(
            "counts and neighbour are equal; pass the coefficients of two teachers "
            "that differ."
        )
    return data_sets


def _release_scores(
    mechanism: MeanScores, teachers: NDArray[np.float64], own: int, n_releases: int
) -> float:
    """Release scores of one of two teachers, and return the likelihood ratio."""
    shape = teachers.shape[1:]
    n_coordinates = [
        min(one, shape[0]) for one in mechanism.n_coordinates(1, shape[1] + 1)
    ]
    scores = TeacherScores([teachers[own]], shape=shape)
    # The row that differs has another class, too.
    classes = partial(sum_of_classes, np.array([own]), None, 1, shape[1] + 1)
    ratio = 0.0
    for _ in range(n_releases):
        estimate = mechanism.estimate(scores, classes, n_coordinates)
        ratio += float(estimate.classes[0] - estimate.classes[1]) * LONGEST**2
        for step, released in estimate.steps:
            one, other = (step.vector(teacher) for teacher in teachers)
            # Of Gaussian noise, but for a factor.
            ratio += float(np.vdot(released - (one + other) / 2, one - other))
    return ratio


def _count_votes(n_teachers: int, counts: NDArray[np.int64], n_rows: int) -> Votes:
    votes_by_teacher: list[Any] = [None] * (n_teachers - counts.sum())  # abstentions
    for label, n_votes in enumerate(counts.tolist()):
        votes_by_teacher += n_votes * [np.full(n_rows, label, dtype=np.int32)]
    return Votes(votes_by_teacher, n_public=n_rows, n_classes=len(counts))


def _release_sums(
    mechanism: NoisySum, vector: NDArray[np.int64], *, n_trials: int, n_queries: int
) -> NDArray[np.int64]:
    """Return the noisy vectors of one teacher, added up in each trial."""
    released = mechanism.release(np.tile(vector, (n_trials * n_queries, 1)))
    return released.reshape(n_trials, n_queries, -1).sum(axis=1)


def _answer_queries(
    mechanism: PluralityMechanism,
    n_teachers: int,
    n_repeats: int,
    counts: NDArray[np.int64],
    *,
    n_trials: int,
    n_queries: int,
) -> NDArray[np.int64]:
    """Return all answers of each trial, or the sum of its histograms."""
    votes = _count_votes(n_teachers, counts, n_trials * n_queries)
    rows = np.arange(n_trials * n_queries)
    oracle = Oracle(votes, mechanism, n_queries=len(rows))
    arguments = {}
    probabilities = _student_probabilities(mechanism, votes.n_classes)
    if probabilities is not None:
        arguments["probabilities"] = np.tile(probabilities, (len(rows), 1))
    answers = [oracle.answer(rows, **arguments) for _ in range(n_repeats)]
    if mechanism.releases_histograms:
        # All released histograms, in the order of the rows.
        released = cast(NDArray[np.int64], oracle.transcript().histograms)
        by_trial = released.reshape(-1, n_trials, n_queries, votes.n_classes)
        return by_trial.sum(axis=(0, 2))
    return np.hstack([answer.reshape(n_trials, n_queries) for answer in answers])

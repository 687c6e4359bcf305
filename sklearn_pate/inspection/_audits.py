"""Audits of learners and mechanisms by trials on neighbouring data."""

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binomtest
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from sklearn_pate._aggregation._checks import check_n_jobs
from sklearn_pate._aggregation._entry import accounted_elsewhere
from sklearn_pate._aggregation._outlook import write_lower_bound
from sklearn_pate._estimators._isolation import autologging_off
from sklearn_pate._inputs._labels import PublicData
from sklearn_pate._pate import PATEClassifier
from sklearn_pate._votes._votes import (
    SoftVoteLayout,
    TeacherScores,
    Votes,
    sum_of_classes,
)
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._statement import (
    PrivacySpent,
    plans_privacy,
    write_epsilon,
)
from sklearn_pate.accounting._value_checks import check_count, check_number, counted
from sklearn_pate.accounting.plurality._closed_form import check_counts
from sklearn_pate.accounting.plurality._exact import ROUNDING
from sklearn_pate.exceptions import StudentWarning
from sklearn_pate.learners._private_knn import PrivateKNNClassifier
from sklearn_pate.mechanisms import MeanScores, NoisySum, Oracle, PluralityMechanism
from sklearn_pate.mechanisms._noisy_sum import LONGEST, ClassCounts, TwoPartRelease
from sklearn_pate.mechanisms._plurality import NO_ANSWER

# More candidates take longer and find no better event.
_MOST_THRESHOLDS = 1000
# Classifiers that answer queries about public rows.
_WITH_ANSWERS = (PATEClassifier, PrivateKNNClassifier)
# In place of an answer, for public rows that were no query.
_NO_QUERY = -2
# Of a sum of probabilities; and the probability that answers with the stated law are
# taken to have another one.
_ROUNDING, _CHANCE = 1e-6, 1e-9


def clopper_pearson(
    n_hits: ArrayLike, n_trials: int, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bound a probability from below and from above, each with confidence 1 - alpha.

    Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in
    the case of the binomial". Exact, without a normal approximation.
    """
    n_hits = np.asarray(n_hits)
    n_misses = n_trials - n_hits
    # The parameters of a beta distribution must not be 0.
    lower = beta.ppf(alpha, np.maximum(n_hits, 1), n_misses + 1)
    upper = beta.isf(alpha, n_hits + 1, np.maximum(n_misses, 1))
    return np.where(n_hits == 0, 0.0, lower), np.where(n_misses == 0, 1.0, upper)


def _epsilon_bound(
    n_hits: ArrayLike,
    n_false_hits: ArrayLike,
    n_trials: int,
    delta: float,
    alpha: float,
) -> NDArray[np.float64]:
    """Bound epsilon by ln((p - delta) / q), with error probability alpha in all."""
    p_lower, _ = clopper_pearson(n_hits, n_trials, alpha / 2)
    _, q_upper = clopper_pearson(n_false_hits, n_trials, alpha / 2)
    return np.log(np.maximum(p_lower - delta, np.finfo(float).tiny) / q_upper)


def epsilon_lower_bound(
    scores: NDArray[np.float64],
    neighbour_scores: NDArray[np.float64],
    *,
    delta: float,
    confidence: float,
) -> tuple[float, str]:
    """Bound epsilon from below by scores of trials on two neighbouring data sets.

    The first half of the trials chooses the event, "the score is at least (or at most)
    t", and the data set where it is more probable; the second half measures this event.
    NaN is a score above all numbers. If trials were used to choose the score function,
    they are in the first half. The result is a bound, not negative, and the number of
    observations.

    (epsilon, delta)-differential privacy bounds P(S) <= exp(epsilon) Q(S) + delta for
    every event S and both orders of the data sets. With Clopper-Pearson bounds, each at
    half of the error probability, epsilon >= ln((P_lower(S) - delta) / Q_upper(S)):
    Jagielski, Ullman, Oprea (2020), "Auditing differentially private machine learning:
    how private is private SGD?". The choice of the event costs no confidence, as other
    trials measure it. Any fixed order of the scores is valid, also with NaN last.
    """
    # NaN does not compare, but has the last rank.
    _, ranks = np.unique(
        np.concatenate([scores, neighbour_scores]), return_inverse=True
    )
    data_sets = np.split(ranks, [len(scores)])
    n_choosing = len(scores) // 2
    n_measuring = len(scores) - n_choosing
    alpha = 1 - confidence
    candidates = []
    # Either data set may have the higher scores, and either tail the better event.
    for sign, order in product((1, -1), (1, -1)):
        p, q = (sign * ranks for ranks in data_sets[::order])
        thresholds = np.unique(np.concatenate([p[:n_choosing], q[:n_choosing]]))
        if len(thresholds) > _MOST_THRESHOLDS:
            kept = np.linspace(0, len(thresholds) - 1, _MOST_THRESHOLDS).astype(int)
            thresholds = thresholds[kept]
        hits, false_hits = (
            n_choosing - np.searchsorted(np.sort(ranks[:n_choosing]), thresholds)
            for ranks in (p, q)
        )
        # The expected result of the measuring half.
        bounds = _epsilon_bound(hits, false_hits, n_choosing, delta, alpha)
        candidates.append((bounds.max(), thresholds[bounds.argmax()], p, q))
    _, threshold, p, q = max(candidates, key=lambda candidate: candidate[0])
    n_hits, n_false_hits = (
        np.count_nonzero(ranks[n_choosing:] >= threshold) for ranks in (p, q)
    )
    epsilon = _epsilon_bound(n_hits, n_false_hits, n_measuring, delta, alpha)
    evidence = (
        f"an event observed in {n_hits} of {counted(n_measuring, 'trial')} on one data "
        f"set, and in {n_false_hits} of {n_measuring} on the other"
    )
    return max(float(epsilon), 0.0), evidence


def log_ratio_scores(
    symbols: NDArray[np.integer],
    neighbour_symbols: NDArray[np.integer],
    n_choosing: int,
    *,
    pooled: bool,
) -> tuple[NDArray[np.float64], ...]:
    """Score trials by the estimated log-likelihood ratio of their answers.

    Answers have shape (n_trials, n_answers), scores (n_trials,), for each data set. The
    ratios are estimated from the first `n_choosing` trials of each data set; `pooled`
    if all answers of a trial have the same distribution.
    """
    known, codes = np.unique(
        np.concatenate([symbols, neighbour_symbols]), return_inverse=True
    )
    n_answers = symbols.shape[1]
    codes = codes.reshape(-1, n_answers)
    if not pooled:
        codes = codes + len(known) * np.arange(n_answers)
    data_sets = np.split(codes, [len(symbols)])
    size = len(known) * (1 if pooled else n_answers)
    first, second = (
        np.bincount(codes[:n_choosing].ravel(), minlength=size) + 0.5
        for codes in data_sets
    )
    log_ratio = np.log(first / second)
    # Ratios that may be due to chance are dropped.
    log_ratio[log_ratio**2 < 4 * (1 / first + 1 / second)] = 0.0
    return tuple(log_ratio[codes].sum(axis=1) for codes in data_sets)


@dataclass(frozen=True)
class AuditResult:
    """Result of an audit. Sensitive if the audit used sensitive data.

    Parameters
    ----------
    epsilon_lower : float
        Lower bound of epsilon at `delta`, at the given confidence. 0 if the audit found
        no evidence of a positive epsilon.

    epsilon_claimed : float
        Claimed epsilon at the same `delta`.

    delta : float
        Delta of the (epsilon, delta) guarantee.

    confidence : float
        Probability that an audit does not contradict a true claim.

    evidence : str
        Numbers that were observed, as text.

    exact_share : float, default=None
        Exact Renyi cost of the audited votes, divided by the claimed cost for all
        votes, at the Renyi order with the largest ratio. None if the exact cost was not
        computed, for example if a mechanism does not state the distribution of its
        answers.

    answers_follow_law : bool, default=None
        Whether the answers have the distribution that the mechanism states. None if the
        distribution was not tested. A wrong distribution may pass, if the difference is
        too small for the number of trials.

    Notes
    -----
    `epsilon_lower` follows from exact binomial bounds (Clopper and Pearson 1934). See
    :func:`~sklearn_pate.inspection.audit_mechanism` and
    :func:`~sklearn_pate.inspection.audit_neighbours`.

    Examples
    --------
    >>> from sklearn_pate.inspection import audit_mechanism
    >>> from sklearn_pate.mechanisms import GumbelMax
    >>> result = audit_mechanism(GumbelMax(c=0.5), [5, 1], [4, 2], n_trials=2_000)
    >>> result.contradicted
    False
    >>> result.epsilon_lower < result.epsilon_claimed
    True
    >>> print(result)
    The audit does not contradict the claim of epsilon=0.995 at delta=1e-05: with...
    """

    epsilon_lower: float
    epsilon_claimed: float
    delta: float
    confidence: float
    evidence: str
    exact_share: float | None = None
    answers_follow_law: bool | None = None

    @property
    def cost_is_wrong(self) -> bool:
        """Whether the exact cost of the audited votes is above the claim.

        Returns
        -------
        wrong : bool
            True proves a defect, as the comparison allows for rounding.
        """
        return self.exact_share is not None and self.exact_share > 1 + ROUNDING

    @property
    def contradicted(self) -> bool:
        """Whether the audit contradicts the claimed epsilon.

        Returns
        -------
        contradicted : bool
            True shows a defect. If `cost_is_wrong`, the defect is certain. Otherwise,
            one in ``1 / (1 - confidence)`` audits of true claims has this result by
            chance, or one in a billion if `answers_follow_law` is False. False does not
            prove the claim.
        """
        return (
            self.cost_is_wrong
            or self.answers_follow_law is False
            or self.epsilon_lower > self.epsilon_claimed
        )

    def __str__(self) -> str:
        found = "contradicts" if self.contradicted else "does not contradict"
        text = (
            f"The audit {found} the claim of epsilon="
            f"{write_epsilon(self.epsilon_claimed)} at delta={self.delta:g}: with "
            f"confidence {self.confidence:g}, epsilon is at least "
            f"{write_lower_bound(self.epsilon_lower)} ({self.evidence})"
        )
        if self.cost_is_wrong:
            text += (
                f", and the exact Renyi cost of these votes is {self.exact_share:.3g} "
                "times the claimed Renyi cost of all votes"
            )
        if self.answers_follow_law is False:
            text += (
                ", and the answers do not have the distribution that the mechanism "
                "states"
            )
        return text + "."


def audit_scores(
    scores: NDArray[np.float64],
    neighbour_scores: NDArray[np.float64],
    claim: float,
    delta: float,
    confidence: float,
    exact_share: float | None = None,
    answers_follow_law: bool | None = None,
) -> AuditResult:
    """Compare a claim with the bound that follows from the scores of trials."""
    epsilon, evidence = epsilon_lower_bound(
        scores, neighbour_scores, delta=delta, confidence=confidence
    )
    return AuditResult(
        epsilon,
        claim,
        float(delta),
        confidence,
        evidence,
        exact_share,
        answers_follow_law,
    )


def check_confidence(confidence: float, delta: float) -> None:
    """Raise ValueError unless both probabilities are in range."""
    check_delta(delta)
    check_number("confidence", confidence, 0.5, 1, closed="left")


def cost_of_fit(estimator: Any, **data: Any) -> PrivacySpent:
    """State the privacy cost of a fit on these data; raise if it cannot be stated."""
    if not plans_privacy(estimator):
        raise ValueError(
            f"estimator={estimator!r} cannot state its privacy cost before a fit; "
            "pass one with plan_privacy, such as a PATEClassifier."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit repeats them
        return estimator.plan_privacy(**data)


def fit_without_ledger(estimator: Any, **data: Any) -> Any:
    """Fit a clone that charges no ledger; the result is as sensitive as the data.

    A ledger would recognise repeated fits, and the fits of an audit are not released.
    """
    with warnings.catch_warnings(), autologging_off(), accounted_elsewhere():
        # The quality of the student does not matter here.
        warnings.simplefilter("ignore", StudentWarning)
        return clone(estimator).set_params(ledger=None).fit(**data)


def dense(X: Any) -> NDArray[Any]:
    """Return rows as a dense array, to count or compare them."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def audit_neighbours(
    estimator: Any,
    data: Sequence[Any],
    neighbouring_data: Sequence[Any],
    *,
    X_public: Any = None,
    statistic: Callable[[Any], float] | None = None,
    n_runs: int = 200,
    confidence: float = 1 - 1e-4,
    n_jobs: int | None = None,
) -> AuditResult:
    """Audit an estimator by many fits on two neighbouring data sets.

    The audit searches the published results of the fits for an event that is more
    probable on one data set than the claim allows. The audit also finds effects of one
    row on other rows, such as a move of these rows to another teacher.

    An audit cannot prove a claim: other data sets may show a larger epsilon, and events
    rarer than one in `n_runs` are not observed. By chance, one in
    ``1 / (1 - confidence)`` audits of true claims contradicts the claim. The result is
    as sensitive as the data.

    Parameters
    ----------
    estimator : classifier
        PATEClassifier, PrivateKNNClassifier or, with a `statistic`, any classifier that
        states its privacy cost. The audit fits clones without a `ledger`. With an
        integer `random_state`, only the noise differs between runs, and the audit is
        most sensitive.

    data : tuple (X, y) or (X, y, groups)
        Private rows, as for ``fit``.

    neighbouring_data : tuple (X, y) or (X, y, groups)
        Data set that differs from `data` in one unit, by the neighbour relation of the
        estimator. For example, one row is replaced, or one group is added.

    X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
            (n_public, n_features), default=None
        Public rows, for estimators that use public rows.

    statistic : callable, default=None
        Function that computes a number from the published results of a fitted
        estimator. NaN counts as larger than all numbers. Default: the log-likelihood
        ratio of all answers, estimated from the first half of the runs.

    n_runs : int, default=200
        Number of fits on each data set. Half of the fits choose the event, and the
        other half measure the probability of the event.

    confidence : float, default=0.9999
        Probability that a true claim is not contradicted.

    n_jobs : int, default=None
        Number of parallel fits, as in joblib.

    Returns
    -------
    result : AuditResult
        Lower bound of epsilon, and ``privacy_spent_.epsilon`` of the fits. As sensitive
        as the data.

    Raises
    ------
    ValueError
        If the data sets are not neighbours, or a parameter is invalid. Nothing was
        fitted.

    Notes
    -----
    An event with probability P on one data set and Q on the other shows that epsilon is
    at least ln((P - delta) / Q) (Jagielski, Ullman, Oprea 2020, "Auditing
    differentially private machine learning: how private is private SGD?").

    Examples
    --------
    One label of twelve is changed. (In practice, use hundreds of runs.)

    >>> import numpy as np
    >>> from sklearn_pate.learners import DPLogisticRegression
    >>> from sklearn_pate.inspection import audit_neighbours
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> y, changed = np.repeat([0, 1], 6), np.repeat([0, 1], [5, 7])
    >>> result = audit_neighbours(
    ...     DPLogisticRegression(epsilon=1.0, feature_bounds=([0.0], [11.0])),
    ...     (X, y),
    ...     (X, changed),
    ...     statistic=lambda fitted: fitted.coef_[0, 0],
    ...     n_runs=20,
    ... )
    >>> result.contradicted
    False
    >>> result.epsilon_lower < result.epsilon_claimed <= 1
    True
    """
    check_count("n_runs", n_runs, 2)
    check_n_jobs(n_jobs)
    if statistic is None:
        _check_public_rows(estimator, X_public)
    data_sets = [_arguments(one, X_public) for one in (data, neighbouring_data)]
    spent = cost_of_fit(estimator, **data_sets[0])
    check_confidence(confidence, estimator.delta)
    _check_neighbours(spent, [data, neighbouring_data])
    runs = Parallel(n_jobs=n_jobs)(
        delayed(_run)(estimator, arguments, statistic)
        for arguments in data_sets
        for _ in range(n_runs)
    )
    observed = np.array([published for published, _ in runs])
    scores, neighbour_scores = np.split(observed, 2)
    if statistic is None:
        scores, neighbour_scores = log_ratio_scores(
            scores, neighbour_scores, n_runs // 2, pooled=False
        )
    claim = max(claimed for _, claimed in runs)
    return audit_scores(scores, neighbour_scores, claim, spent.delta, confidence)


def _check_public_rows(estimator: Any, X_public: Any) -> None:
    """Raise unless the fits will have answers."""
    if not isinstance(estimator, _WITH_ANSWERS):
        raise ValueError(
            f"statistic=None compares answers to queries, but estimator={estimator!r} "
            "publishes none; pass a statistic, or a PATEClassifier."
        )
    if X_public is None:
        raise ValueError(
            "statistic=None compares answers about the same public rows, but "
            "X_public=None; pass X_public, or a statistic."
        )


def _arguments(data: Sequence[Any], X_public: Any) -> dict[str, Any]:
    """Return the arguments of a fit on one data set."""
    arguments = dict(zip(("X", "y", "groups"), data, strict=False))
    if X_public is not None:
        arguments["X_public"] = PublicData(X_public)
    return arguments


def _run(
    estimator: Any, arguments: dict[str, Any], statistic: Callable[[Any], float] | None
) -> tuple[Any, float]:
    """Fit once; return the observation and the claim."""
    fitted = fit_without_ledger(estimator, **arguments)
    if statistic is not None:
        return float(statistic(fitted)), fitted.privacy_spent_.epsilon
    answers = np.full(len(dense(arguments["X_public"].X)), _NO_QUERY)
    answers[fitted.queried_indices_] = fitted.answers_
    return answers, fitted.privacy_spent_.epsilon


def _check_neighbours(spent: PrivacySpent, data_sets: list[Sequence[Any]]) -> None:
    """Raise unless one unit differs, by a change that the statement covers."""
    unit, relation = spent.unit, spent.relation
    n_given = 3 if unit == "group" else 2
    if any(len(data) != n_given for data in data_sets):
        raise ValueError(
            f"data and neighbouring_data must be {n_given} arrays each, (X, y"
            f"{', groups' if n_given == 3 else ''}), for privacy_unit={unit!r}."
        )
    by_row = (unit, relation) == ("row", "add-remove")
    units: Callable[..., Any] = _by_row if by_row else _by_unit
    one, other = (units(*data) for data in data_sets)
    changed = [name for name in one.keys() | other.keys() if one[name] != other[name]]
    stays = any(one[name] and other[name] for name in changed)
    is_allowed = {
        "replace-one": stays,
        "add-remove-or-change": True,
        "add-remove": (
            abs(len(data_sets[0][1]) - len(data_sets[1][1])) == 1
            if by_row
            else not stays
        ),
    }
    if len(changed) != 1 or not is_allowed[relation]:
        raise ValueError(
            f"data and neighbouring_data differ in {len(changed)} {unit}s; "
            f"neighbouring data sets {spent.neighbours}."
        )


def _by_unit(X: Any, y: ArrayLike, groups: Any = None) -> dict[Any, list[str]]:
    """Return the rows of each unit, in order, as texts, so that NaN equals NaN."""
    X = dense(X)
    ids = range(len(X)) if groups is None else np.asarray(groups).tolist()
    units: dict[Any, list[str]] = defaultdict(list)
    for one, row, label in zip(ids, X.tolist(), np.asarray(y).tolist(), strict=True):
        units[one].append(repr((row, label)))
    return units


def _by_row(X: Any, y: ArrayLike) -> Counter[str]:
    """Count equal rows, in whatever order."""
    return Counter(
        repr((row, label))
        for row, label in zip(dense(X).tolist(), np.asarray(y).tolist(), strict=True)
    )


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
    in place of vote counts, and for a count of the classes the vector of one row. The
    audit searches for an event that is more probable on one data set than the cost
    allows.

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
        Mechanism whose noise is set, without `max_answers`. Of a fit with balanced
        votes, ``mechanism_.mechanism`` is the mechanism of the answers, and
        ``mechanism_.counts`` counts the classes. The audit records no cost in a ledger.

    counts : array-like of int of shape (n_classes,)
        Vote counts of each query. For a :class:`~sklearn_pate.mechanisms.NoisySum`, the
        clipped vector of one teacher in units of 1/1024 of the clipping bound, of shape
        (n_parts, width) or flat. For a count of the classes, 1024 for the class of the
        row, and 0 for others. For :class:`~sklearn_pate.mechanisms.MeanScores`, the
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
    if isinstance(mechanism, NoisySum | ClassCounts):
        mechanism = mechanism.prepared()
        n_parts = mechanism.n_parts if isinstance(mechanism, NoisySum) else 1
        data_sets = _check_vectors(counts, neighbour, n_parts)
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
    if isinstance(mechanism, NoisySum | ClassCounts) or mechanism.releases_histograms:
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
    audited = PluralityMechanism | MeanScores | NoisySum | ClassCounts
    if isinstance(mechanism, TwoPartRelease):
        raise ValueError(
            f"mechanism={mechanism!r} is two releases; pass one of its parts: "
            "mechanism.counts or mechanism.mechanism."
        )
    if not isinstance(mechanism, audited):
        raise ValueError(
            f"mechanism={mechanism!r} is not a PluralityMechanism, MeanScores or "
            "NoisySum; pass one, such as GNMax(sigma=40)."
        )
    if getattr(mechanism, "max_answers", None) is not None:
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
    mechanism: NoisySum | ClassCounts,
    vector: NDArray[np.int64],
    *,
    n_trials: int,
    n_queries: int,
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

"""Result of an audit, and its statistics."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

from sklearn_pate._aggregation._fit_plan import write_lower_bound
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._statement import write_epsilon
from sklearn_pate.accounting._value_checks import counted, is_positive
from sklearn_pate.accounting.plurality._exact import ROUNDING

# More candidates take longer and find no better event.
_MOST_THRESHOLDS = 1000


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
        Lower bound of epsilon at `delta`, at the stated confidence. 0 if the audit
        found nothing.

    epsilon_claimed : float
        Claimed epsilon at the same `delta`.

    delta : float
        Probability mass that epsilon does not cover.

    confidence : float
        Probability that an audit of a true claim does not contradict it.

    evidence : str
        Observations, in numbers.

    exact_share : float, default=None
        Exact Renyi cost of the audited votes as a share of the claimed Renyi cost of
        all votes, at the order where it is largest. None if it was not computed, as
        where the mechanism does not state the distribution of its answers.

    answers_follow_law : bool, default=None
        Whether the answers have the distribution that the mechanism states, from which
        the exact cost is computed. None if it was not tested. True at a false
        distribution that differs too little for the number of trials.

    Notes
    -----
    `epsilon_lower` comes from exact binomial bounds (Clopper and Pearson 1934): see
    :func:`~sklearn_pate.inspection.audit_mechanism` and
    :func:`~sklearn_pate.inspection.audit_neighbours`, which return it.

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
            True shows a defect with certainty, as rounding is allowed for.
        """
        return self.exact_share is not None and self.exact_share > 1 + ROUNDING

    @property
    def contradicted(self) -> bool:
        """Whether the claim is below the lower bound or the exact cost, or unfounded.

        Returns
        -------
        contradicted : bool
            True shows a defect: with certainty if `cost_is_wrong`; except for one audit
            in a billion if `answers_follow_law` is False; else at the stated
            confidence: of audits of true claims, one in ``1 / (1 - confidence)`` is
            True by chance. False proves nothing.
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


def check_confidence(confidence: float, delta: float) -> None:
    """Raise ValueError unless both probabilities are in range."""
    check_delta(delta)
    if not is_positive(confidence) or not 0.5 <= confidence < 1:
        raise ValueError(
            f"confidence={confidence!r} must be a probability from 0.5 to below 1, "
            "such as 0.9999."
        )

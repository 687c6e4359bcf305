"""What an audit may conclude from what it saw: the statistics behind all audits."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

from sklearn_pate.accounting._calibrate import is_positive
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._statement import write_epsilon
from sklearn_pate.accounting.plurality._exact import ROUNDING
from sklearn_pate.inspection._terminal import write_lower_bound

__all__ = [
    "AuditResult",
    "bound_from_guesses",
    "bound_from_two_worlds",
    "check_confidence",
    "check_count",
    "clopper_pearson",
    "guesses_p_value",
    "log_ratio_scores",
]

# More candidates would not find a better event, only take longer.
_MOST_THRESHOLDS = 1000

# A bound beyond this is not worth its digits: nobody claims such an epsilon.
_LARGEST_EPSILON = 50.0


@dataclass(frozen=True)
class AuditResult:
    """What an audit found. Sensitive if the audit ran on sensitive data.

    Parameters
    ----------
    epsilon_lower : float
        At the stated confidence, no smaller epsilon is true together with `delta`. 0 if
        nothing was found.

    epsilon_claimed : float
        What is claimed for the same `delta`.

    delta : float
        The probability mass that epsilon does not cover.

    confidence : float
        Probability that an audit of a true claim does not contradict it.

    evidence : str
        What was seen, in numbers.

    exact_share : float, default=None
        The exact Renyi cost of the audited votes as a share of what is claimed for all
        votes, at the order where it is largest. None where no law was enumerated.

    Notes
    -----
    `epsilon_lower` has exact binomial bounds behind it (Clopper and Pearson 1934), or
    Theorem 5.2 of Steinke, Nasr, Jagielski (2023): see
    :func:`~sklearn_pate.inspection.audit_mechanism`,
    :func:`~sklearn_pate.inspection.audit_neighbours` and
    :func:`~sklearn_pate.inspection.audit_canaries`, which return it.

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

    @property
    def price_is_wrong(self) -> bool:
        """Whether the exact cost of the audited votes is above the claim.

        Returns
        -------
        wrong : bool
            True is no matter of chance. Rounding aside.
        """
        return self.exact_share is not None and self.exact_share > 1 + ROUNDING

    @property
    def contradicted(self) -> bool:
        """Whether the claim is smaller than what was shown, or than the exact cost.

        Returns
        -------
        contradicted : bool
            True means a defect: for certain if `price_is_wrong`, else at the stated
            confidence, as of many audits of true claims one in
            ``1 / (1 - confidence)`` is True by chance. False proves nothing.
        """
        return self.price_is_wrong or self.epsilon_lower > self.epsilon_claimed

    def __str__(self):
        found = "contradicts" if self.contradicted else "does not contradict"
        text = (
            f"The audit {found} the claim of epsilon="
            f"{write_epsilon(self.epsilon_claimed)} at delta={self.delta:g}: with "
            f"confidence {self.confidence:g}, epsilon is at least "
            f"{write_lower_bound(self.epsilon_lower)} ({self.evidence})"
        )
        if self.price_is_wrong:
            text += (
                f", and the exact Renyi cost of these votes is {self.exact_share:.3g} "
                "times what is claimed for all votes"
            )
        return text + "."


def clopper_pearson(n_hits, n_trials, alpha):
    """Bound a probability from below and from above, each with confidence 1 - alpha.

    Parameters
    ----------
    n_hits : ndarray of int
        How often the event was seen.

    n_trials : int
        Independent trials.

    alpha : float
        Error probability of either bound.

    Returns
    -------
    lower : ndarray of float
        Exceeds the true probability with probability `alpha` at most.

    upper : ndarray of float
        Falls below it with probability `alpha` at most.

    Notes
    -----
    Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in
    the case of the binomial". Exact: no normal approximation stands behind it.
    """
    n_hits = np.asarray(n_hits)
    n_misses = n_trials - n_hits
    # The parameters of a beta distribution must not be 0.
    lower = beta.ppf(alpha, np.maximum(n_hits, 1), n_misses + 1)
    upper = beta.isf(alpha, n_hits + 1, np.maximum(n_misses, 1))
    return np.where(n_hits == 0, 0.0, lower), np.where(n_misses == 0, 1.0, upper)


def _epsilon_bound(n_hits, n_false_hits, n_trials, delta, alpha):
    """Bound epsilon by ln((p - delta) / q), with error probability alpha in all."""
    p_lower, _ = clopper_pearson(n_hits, n_trials, alpha / 2)
    _, q_upper = clopper_pearson(n_false_hits, n_trials, alpha / 2)
    return np.log(np.maximum(p_lower - delta, np.finfo(float).tiny) / q_upper)


def bound_from_two_worlds(
    scores: NDArray[np.float64],
    neighbour_scores: NDArray[np.float64],
    *,
    delta: float,
    confidence: float,
) -> tuple[float, str]:
    """Bound epsilon from scores of independent trials in two neighbouring worlds.

    The first half of the trials chooses the event, "the score is at least (or at most)
    t", and which of the two worlds is to be the likelier; the second half measures this
    one event.

    Parameters
    ----------
    scores : ndarray of shape (n_trials,)
        One world. NaN is a score like any other, higher than all numbers.

    neighbour_scores : ndarray of shape (n_trials,)
        The other. If trials of either half made the score function, then those of the
        first.

    delta : float
        The probability mass that epsilon does not cover.

    confidence : float
        Of the bound.

    Returns
    -------
    epsilon_lower : float
        Not negative.

    evidence : str
        How often the event was seen.

    Notes
    -----
    (epsilon, delta)-differential privacy says P(S) <= exp(epsilon) Q(S) + delta for
    every event S and both orders of the worlds. With Clopper-Pearson bounds, each at
    half of the error probability, epsilon >= ln((P_lower(S) - delta) / Q_upper(S)). As
    in Jagielski, Ullman, Oprea (2020), "Auditing differentially private machine
    learning: how private is private SGD?". Nothing is lost to the choice of the event,
    as other trials measure it. Any fixed order of the scores will do, such as one that
    ends in NaN.
    """
    # NaN compares with nothing, but has a rank: the last.
    _, ranks = np.unique(
        np.concatenate([scores, neighbour_scores]), return_inverse=True
    )
    worlds = np.split(ranks, [len(scores)])
    n_choosing = len(scores) // 2
    n_measuring = len(scores) - n_choosing
    alpha = 1 - confidence
    candidates = []
    # A score may rise or fall from one world to the other, and either tail tell more.
    for sign, order in product((1, -1), (1, -1)):
        p, q = (sign * world for world in worlds[::order])
        thresholds = np.unique(np.concatenate([p[:n_choosing], q[:n_choosing]]))
        if len(thresholds) > _MOST_THRESHOLDS:
            kept = np.linspace(0, len(thresholds) - 1, _MOST_THRESHOLDS).astype(int)
            thresholds = thresholds[kept]
        hits, false_hits = (
            n_choosing - np.searchsorted(np.sort(world[:n_choosing]), thresholds)
            for world in (p, q)
        )
        # What the measuring half is expected to show.
        bounds = _epsilon_bound(hits, false_hits, n_choosing, delta, alpha)
        candidates.append((bounds.max(), thresholds[bounds.argmax()], p, q))
    _, threshold, p, q = max(candidates, key=lambda candidate: candidate[0])
    n_hits, n_false_hits = (
        np.count_nonzero(world[n_choosing:] >= threshold) for world in (p, q)
    )
    epsilon = _epsilon_bound(n_hits, n_false_hits, n_measuring, delta, alpha)
    evidence = (
        f"an event seen in {n_hits} of {n_measuring} trials in one world, and in "
        f"{n_false_hits} of {n_measuring} in the other"
    )
    return max(float(epsilon), 0.0), evidence


def log_ratio_scores(symbols, neighbour_symbols, n_choosing, *, pooled):
    """Score trials by how much likelier their answers are in the first world.

    Parameters
    ----------
    symbols : ndarray of int of shape (n_trials, n_answers)
        Answers in the first world.

    neighbour_symbols : ndarray of int of shape (n_trials, n_answers)
        Answers in the other world.

    n_choosing : int
        The likelihoods are estimated from so many first trials of each world.

    pooled : bool
        Whether all answers of a trial have the same law, or each its own.

    Returns
    -------
    scores : ndarray of shape (n_trials,)
        Sums of estimated log-likelihood ratios.

    neighbour_scores : ndarray of shape (n_trials,)
        Of the other world.
    """
    known, codes = np.unique(
        np.concatenate([symbols, neighbour_symbols]), return_inverse=True
    )
    n_answers = symbols.shape[1]
    codes = codes.reshape(-1, n_answers)
    if not pooled:
        codes = codes + len(known) * np.arange(n_answers)
    worlds = np.split(codes, [len(symbols)])
    size = len(known) * (1 if pooled else n_answers)
    first, second = (
        np.bincount(world[:n_choosing].ravel(), minlength=size) + 0.5
        for world in worlds
    )
    log_ratio = np.log(first / second)
    # Ratios that may be chance would drown those that are not.
    log_ratio[log_ratio**2 < 4 * (1 / first + 1 / second)] = 0.0
    return tuple(log_ratio[world].sum(axis=1) for world in worlds)


def guesses_p_value(
    n_correct: int, *, n_guesses: int, n_canaries: int, epsilon: float, delta: float
) -> float:
    """Bound the probability of so many correct guesses under a true claim.

    Parameters
    ----------
    n_correct : int
        Guesses that were correct.

    n_guesses : int
        Guesses that were made, a number fixed beforehand.

    n_canaries : int
        Canaries, each with a fair secret bit.

    epsilon : float
        Claimed.

    delta : float
        Claimed with it.

    Returns
    -------
    p_value : float
        At most 1.

    Notes
    -----
    Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run",
    Theorem 5.2 and Appendix D: with W ~ Binomial(r, 1 / (1 + exp(-epsilon))), the
    probability of v or more correct guesses out of r is at most

    Pr[W >= v] + 2 m delta max_i Pr[v > W >= v - i] / i.
    """
    accuracy = 1 / (1 + np.exp(-epsilon))
    just_below = binom.pmf(n_correct - np.arange(1, n_correct + 1), n_guesses, accuracy)
    slopes = np.cumsum(just_below) / np.arange(1, n_correct + 1)
    excess = 2 * n_canaries * delta * slopes.max(initial=0.0)
    return float(min(binom.sf(n_correct - 1, n_guesses, accuracy) + excess, 1.0))


def bound_from_guesses(
    n_correct: int, *, n_guesses: int, n_canaries: int, delta: float, confidence: float
) -> float:
    """Bound epsilon from the number of correct guesses of secret bits.

    Parameters
    ----------
    n_correct : int
        Guesses that were correct.

    n_guesses : int
        Guesses that were made, a number fixed beforehand.

    n_canaries : int
        Canaries, each with a fair secret bit.

    delta : float
        The probability mass that epsilon does not cover.

    confidence : float
        Of the bound.

    Returns
    -------
    epsilon_lower : float
        The epsilon at which :func:`guesses_p_value` reaches ``1 - confidence``.
    """

    def rejected(epsilon):
        p_value = guesses_p_value(
            n_correct,
            n_guesses=n_guesses,
            n_canaries=n_canaries,
            epsilon=epsilon,
            delta=delta,
        )
        return p_value < 1 - confidence

    return _largest(rejected)


def _largest(rejected: Callable[[float], bool]) -> float:
    """Find the end of the epsilons that are rejected, from 0 on."""
    if not rejected(0.0):
        return 0.0
    lower, upper = 0.0, _LARGEST_EPSILON
    while upper - lower > 1e-6:
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if rejected(middle) else (lower, middle)
    return lower


def check_confidence(confidence: float, delta: float) -> None:
    """Raise unless both are probabilities that an audit can work with.

    Parameters
    ----------
    confidence : float
        Between 0.5 and 1.

    delta : float
        Between 0 and 1.
    """
    check_delta(delta)
    if not is_positive(confidence) or not 0.5 <= confidence < 1:
        raise ValueError(
            f"confidence={confidence!r} must be a probability from 0.5 to below 1, "
            "such as 0.9999."
        )


def check_count(name: str, value: int, smallest: int) -> None:
    """Raise unless this is a whole number that is large enough.

    Parameters
    ----------
    name : str
        Of the parameter.

    value : int
        What was given.

    smallest : int
        What is needed at least.
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < smallest:
        raise ValueError(
            f"{name}={value!r} must be a whole number of at least {smallest}."
        )

"""Lower bounds of epsilon from the trials of an audit."""

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

from sklearn_pate.accounting._counted import counted

__all__ = [
    "bound_from_guesses",
    "clopper_pearson",
    "epsilon_lower_bound",
    "guesses_p_value",
    "log_ratio_scores",
]

# More candidates take longer and find no better event.
_MOST_THRESHOLDS = 1000

# Bounds are cut off here, above any useful claim.
_LARGEST_EPSILON = 50.0


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


def guesses_p_value(
    n_correct: int, *, n_guesses: int, n_canaries: int, epsilon: float, delta: float
) -> float:
    """Bound the probability of at least this many correct guesses under a true claim.

    The number of guesses is fixed beforehand; each canary has a fair secret bit.
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
    """Compute the epsilon at which `guesses_p_value` reaches ``1 - confidence``."""

    def is_rejected(epsilon: float) -> bool:
        p_value = guesses_p_value(
            n_correct,
            n_guesses=n_guesses,
            n_canaries=n_canaries,
            epsilon=epsilon,
            delta=delta,
        )
        return p_value < 1 - confidence

    if not is_rejected(0.0):
        return 0.0
    lower, upper = 0.0, _LARGEST_EPSILON
    while upper - lower > 1e-6:
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if is_rejected(middle) else (lower, middle)
    return lower

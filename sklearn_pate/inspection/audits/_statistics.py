"""Lower bounds of epsilon from the trials of an audit."""

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

__all__ = [
    "bound_from_guesses",
    "bound_from_two_worlds",
    "clopper_pearson",
    "guesses_p_value",
    "log_ratio_scores",
]

# More candidates would not find a better event, only take longer.
_MOST_THRESHOLDS = 1000

# A bound beyond this is not worth its digits: nobody claims such an epsilon.
_LARGEST_EPSILON = 50.0


def clopper_pearson(
    n_hits: ArrayLike, n_trials: int, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bound a probability from below and from above, each with confidence 1 - alpha.

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
    one event. NaN is a score like any other, higher than all numbers. If trials of
    either half made the score function, then those of the first. Returned are a bound,
    not negative, and how often the event was seen.

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


def log_ratio_scores(
    symbols: NDArray[np.integer],
    neighbour_symbols: NDArray[np.integer],
    n_choosing: int,
    *,
    pooled: bool,
) -> tuple[NDArray[np.float64], ...]:
    """Score trials by how much likelier their answers are in the first world.

    Answers have shape (n_trials, n_answers), scores (n_trials,), both in either world.
    The log-likelihood ratios that a score sums up are estimated from the first
    `n_choosing` trials of each world, `pooled` if all answers of a trial have one law.
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

    The number of guesses was fixed beforehand; each canary has a fair secret bit.

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
    """Compute the epsilon at which `guesses_p_value` reaches ``1 - confidence``."""

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

"""Exact privacy profile of answers that a noisy check may withhold."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting.plurality._adaptive_answers import (
    MOST_ANSWERS,
    MOST_POINTS,
    AnswerSteps,
    adaptive_profile,
    n_points_of,
    stated,
)
from sklearn_pate.accounting.plurality._answer_tests import AnswerTests

__all__ = ["checked_profile"]

_Array = NDArray[np.float64]

# Grid steps in the tie of a small step.
_STEPS_OF_TIE = 3
# Points on the chord between the profiles of n and n + 1 small steps.
_PARTS = 4
# Large steps are taken at every number up to this one, and then at this share of it.
_DENSE = 100
# Delta that all large steps together may exceed the profiles of small ones by.
_TOLERANCE = 1e-9
# Smallest difference of profiles that is told from 0.
_SMALLEST = 1e-300
# Most numbers that are kept: profiles of small steps times points of the grid.
_MOST_NUMBERS = 4e7


@lru_cache(maxsize=256)
def checked_profile(
    checks: AnswerTests,
    answers: AnswerTests,
    n_checks: int,
    n_answers: int,
    first_mu: float = 0.0,
) -> PrivacyProfile | None:
    """Bound the profile of checks and answers, whose order may depend on both.

    The profile of j checks and a answers is at most the largest over their orders,
    W_{j,a} = max(C W_{j-1,a}, A W_{j,a-1}), where C and A are one step of the recursion
    of `adaptive_profile` with the tests of a check and of an answer. It is bounded by
    the profiles F_n of n steps of the kind that has the smaller mu, and chords between
    them, F_{n+t} = (1 - t) F_n + t F_{n+1}: one more step of that kind raises n by 1,
    and one of the other kind raises n to an m with F_m >= A F_n, which is found on the
    grid (Theorem 3 of :doc:`Privacy cost of an answer </accounting>`). None if that
    needs too many profiles.
    """
    if n_checks > MOST_ANSWERS:
        return None
    if n_answers == 0:
        return adaptive_profile(checks, n_checks, first_mu)
    kinds = [(checks, n_checks), (answers, n_answers)]
    (small, n_small), (large, n_large) = sorted(kinds, key=lambda kind: kind[0].mu)
    mu = float(np.hypot(small.mu * np.sqrt(n_small), large.mu * np.sqrt(n_large)))
    step = small.tie / _STEPS_OF_TIE
    n_points = n_points_of(mu, step)
    in_large = (large.mu / small.mu) ** 2
    most = int(n_small + 1.1 * n_large * in_large + 10 * in_large) + 2
    too_wide = first_mu and n_points_of(first_mu, step) + n_points > MOST_POINTS
    if too_wide or most * n_points > _MOST_NUMBERS:
        return None
    profiles = _profiles(AnswerSteps.of(small, step), most, n_points)
    raised = _raised(AnswerSteps.of(large, step), profiles, _TOLERANCE / n_large)
    n = _most_parts(raised, n_small, n_large)
    if n is None:
        return None
    deltas = _on_chord(profiles, n / _PARTS) + _TOLERANCE
    deltas += n_small * small.rest + n_large * large.rest
    error = n_small * small.error + n_large * large.error
    return stated(deltas, step, mu, error, first_mu)


def _profiles(steps: AnswerSteps, most: int, n_points: int) -> _Array:
    """Return the profiles on the grid after 0, 1, ... steps."""
    profiles = np.zeros((most + 1, n_points))
    for i in range(most):
        profiles[i + 1] = steps.after_one(profiles[i], None)
    return profiles


def _on_chord(profiles: _Array, n: float) -> _Array:
    """Return a profile between two numbers of steps."""
    i = min(int(n), len(profiles) - 2)
    found: _Array = profiles[i] + (n - i) * (profiles[i + 1] - profiles[i])
    return found


def _raised(steps: AnswerSteps, profiles: _Array, tolerance: float) -> NDArray[np.intp]:
    """Return what a large step raises n to, for each n, both in parts of a small step.

    Up to the first that has none among the profiles.
    """
    raised: list[int] = []
    low, after_low = 0, steps.after_one(profiles[0], None)
    found = 0.0
    while low < len(profiles) - 1:
        high = min(low + 1 + low // _DENSE, len(profiles) - 1)
        after_high = steps.after_one(profiles[high], None)
        for n in range(_PARTS * low, _PARTS * high):
            # The profile is below a chord from low to high, and its step below theirs.
            t = _share(profiles, low, high, _on_chord(profiles, n / _PARTS), 0.0)
            after = after_low + t * (after_high - after_low)
            i = int(found)
            while i < len(profiles) - 1 and np.any(after > profiles[i + 1] + tolerance):
                i += 1
            if i == len(profiles) - 1:
                return np.array(raised, dtype=np.intp)
            found = i + _share(profiles, i, i + 1, after, tolerance)
            raised.append(int(np.ceil(_PARTS * found)))
        low, after_low = high, after_high
    return np.array(raised, dtype=np.intp)


def _share(
    profiles: _Array, low: int, high: int, deltas: _Array, tolerance: float
) -> float:
    """Return the smallest share of a chord between two profiles that is not below."""
    width = np.maximum(profiles[high] - profiles[low], _SMALLEST)
    share = np.max((deltas - tolerance - profiles[low]) / width)
    return float(np.clip(share, 0.0, 1.0))


def _most_parts(raised: NDArray[np.intp], n_small: int, n_large: int) -> int | None:
    """Return the largest n after all steps, over all orders; None if not known."""
    # By number of large steps so far, from all orders of a number of steps.
    reached = np.full(n_large + 1, -1)
    reached[0] = 0
    large = np.arange(n_large + 1)
    for i in range(1, n_small + n_large + 1):
        if reached.max() >= len(raised):
            return None
        by_large = np.where(reached[:-1] >= 0, raised[reached[:-1]], -1)
        # No more small steps than there are.
        by_small = np.where(
            (reached >= 0) & (large >= i - n_small), reached + _PARTS, -1
        )
        reached = np.maximum(by_small, np.append(-1, by_large))
    return int(reached[-1])

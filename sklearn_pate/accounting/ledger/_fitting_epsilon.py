"""Largest useful epsilon whose cost is within a budget."""

import math
from collections.abc import Callable

__all__ = ["fitting_epsilon"]

# A smaller fraction of the requested epsilon is not suggested.
_SMALLEST_OF_USE = 0.1


def fitting_epsilon(
    requested: float, first: float, excess: Callable[[float], float]
) -> float | None:
    """Find an epsilon in three digits that is within a budget, None if none is useful.

    `excess` returns the ratio of the cost at an epsilon to what is left: at most 1 if
    it fits. `first` is tried first.
    """
    epsilon = first
    while epsilon > _SMALLEST_OF_USE * requested:
        digits = 2 - math.floor(math.log10(epsilon))
        epsilon = math.floor(epsilon * 10**digits) / 10**digits
        ratio = excess(epsilon)
        if ratio <= 1:
            return epsilon
        epsilon *= 0.999 / math.sqrt(ratio)  # as for Gaussian noise
    return None

"""An epsilon whose cost is within a budget."""

import math
from collections.abc import Callable

__all__ = ["fitting_epsilon", "least_useful", "rounded_down"]


def rounded_down(value: float) -> float:
    """Round a positive number down to three digits."""
    digits = 2 - math.floor(math.log10(value))
    return math.floor(value * 10.0**digits) / 10.0**digits


def least_useful(requested: float, budget: float) -> float:
    """Return the smallest epsilon that is suggested in place of the requested one."""
    return 0.1 * min(requested, budget)


def fitting_epsilon(
    first: float, least: float, excess: Callable[[float], float]
) -> float | None:
    """Find an epsilon in three digits that is within a budget, None below `least`.

    `excess` returns the ratio of the cost at an epsilon to what is left: at most 1 if
    it fits. `first` is tried first.
    """
    epsilon = first
    while epsilon >= least:
        epsilon = rounded_down(epsilon)
        ratio = excess(epsilon)
        if ratio <= 1:
            return epsilon
        epsilon *= 0.999 / math.sqrt(ratio)  # as for Gaussian noise
    return None

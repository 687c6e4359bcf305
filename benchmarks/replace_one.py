"""Calibration of a learner to an epsilon for replacing one row."""

from collections.abc import Callable

from scipy.optimize import brentq

from sklearn_pate.accounting import PrivacySpent
from sklearn_pate.accounting.composition import add_remove_to_replace_one


def replace_one_epsilon(spent: PrivacySpent) -> float:
    """Compute the epsilon of a statement for replacing one unit."""
    if spent.relation == "replace-one":
        return spent.epsilon
    return add_remove_to_replace_one(spent.curve).quiet_epsilon(spent.delta)


def own_epsilon(plan: Callable[[float], PrivacySpent], target: float) -> float:
    """Find an epsilon of a plan that costs at most `target` for replacing one unit.

    It is below the largest such epsilon by two thousandths of `target` at most.
    """
    if plan(target).relation == "replace-one":
        return target

    def excess(epsilon: float) -> float:
        return replace_one_epsilon(plan(epsilon)) - target

    tolerance = target / 1000
    return brentq(excess, target / 4, target / 2, xtol=tolerance) - tolerance

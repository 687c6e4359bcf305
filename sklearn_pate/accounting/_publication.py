"""Statement of a model that is published with its metrics."""

from dataclasses import dataclass, replace
from typing import ClassVar

from sklearn_pate.accounting._assumptions import FITTED_APART
from sklearn_pate.accounting._cost import Cost, ExactCost, GaussianTest
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._statement import PrivacySpent, state_cost
from sklearn_pate.accounting.composition import upper_envelope


@dataclass(frozen=True)
class _LargestCost:
    """Cost of one of several releases, whichever a changed unit is in."""

    profiles: tuple[PrivacyProfile, ...]
    is_all: ClassVar[bool] = True

    def epsilon(self, delta: float) -> float:
        """Compute epsilon at a delta."""
        return max(one.epsilon_at(delta) for one in self.profiles)

    @property
    def profile(self) -> PrivacyProfile:
        """Delta at every epsilon."""
        return PrivacyProfile.largest(self.profiles)

    def after(self, mu: float) -> None:
        """Return None: with a Gaussian release, curves are added."""


def with_metrics(of_model: PrivacySpent, of_metrics: PrivacySpent) -> PrivacySpent:
    """State the cost of a model together with metrics of it.

    The costs add up, unless fit_and_measure fitted the model on other rows: the larger
    of the costs then holds for both.
    """
    if FITTED_APART in of_metrics.assumptions:
        return _larger_cost(of_model, of_metrics)
    return replace(
        of_model + of_metrics,
        release="measured",
        mechanism=f"{of_model.mechanism}, and metrics by {of_metrics.mechanism}",
    )


def _larger_cost(of_fit: PrivacySpent, of_metrics: PrivacySpent) -> PrivacySpent:
    """State the cost of a fit and of metrics on rows that it did not read."""
    both = of_fit, of_metrics
    exact: ExactCost = _LargestCost(tuple(one.profile for one in both))
    if of_fit.mu is not None and of_metrics.mu is not None:
        exact = GaussianTest(max(of_fit.mu, of_metrics.mu))
    curve = upper_envelope(one.curve for one in both)
    return state_cost(
        Cost(of_metrics.unit, of_metrics.relation, curve, exact),
        of_metrics.delta,
        release="measured",
        mechanism=f"{of_fit.mechanism}, and metrics on other rows by "
        f"{of_metrics.mechanism}",
        assumptions=tuple(
            dict.fromkeys((*of_fit.assumptions, *of_metrics.assumptions))
        ),
    )

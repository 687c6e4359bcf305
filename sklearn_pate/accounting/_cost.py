"""Privacy cost of a release: unit, relation, Renyi curve and exact cost."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from sklearn_pate.accounting._calibrate import gdp_epsilon
from sklearn_pate.accounting._profile import (
    PrivacyProfile,
    curve_profile,
    gaussian_profile,
)
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._value_checks import read_table
from sklearn_pate.accounting.plurality._adaptive_answers import (
    AnswerTests,
    adaptive_profile,
    checked_profile,
)


def by_unit_and_relation(name: str) -> dict[tuple[str, str], str]:
    """Return texts of the statement by unit of privacy and relation."""
    texts = read_table("sklearn_pate.accounting", "statement.toml")[name]
    return {
        (unit, relation): text
        for unit, of_unit in texts.items()
        for relation, text in of_unit.items()
    }


#: Difference between neighbouring data sets, by unit of privacy and relation.
NEIGHBOURS = by_unit_and_relation("neighbours")


def check_neighbours(unit: str | None, relation: str | None) -> None:
    """Raise unless a neighbour relation is known for a unit of privacy."""
    if (unit, relation) not in [*NEIGHBOURS]:  # a list finds what has no hash, too
        raise ValueError(
            f"unit={unit!r} with relation={relation!r} is unknown; (unit, relation) "
            f"must be one of {[*NEIGHBOURS]}."
        )


def check_add_up(costs: str, one: tuple[str, str], other: tuple[str, str]) -> None:
    """Raise unless two costs are for one unit and one relation."""
    if one != other:
        raise ValueError(
            f"{costs} for unit={one[0]!r} with relation={one[1]!r} and for "
            f"unit={other[0]!r} with relation={other[1]!r} do not add up; state both "
            "for the same unit and relation."
        )


class ExactCost(Protocol):
    """Privacy cost of a release that is known more exactly than by a Renyi curve."""

    #: Whether a Renyi curve beside it adds nothing.
    is_all: ClassVar[bool]

    def epsilon(self, delta: float) -> float:
        """Compute epsilon at a delta; infinite where it is not resolved."""

    @property
    def profile(self) -> PrivacyProfile | None:
        """Delta at every epsilon, None where it is not resolved."""

    def after(self, mu: float) -> "ExactCost | None":
        """Return the cost after a Gaussian release, None if no bound is known."""


@dataclass(frozen=True)
class GaussianTest:
    """Cost of a release that is mu-Gaussian differentially private."""

    mu: float
    is_all: ClassVar[bool] = False

    def epsilon(self, delta: float) -> float:
        """Compute epsilon at a delta."""
        return gdp_epsilon(self.mu, delta)

    @property
    def profile(self) -> PrivacyProfile:
        """Delta at every epsilon."""
        return gaussian_profile(self.mu)

    def after(self, mu: float) -> "GaussianTest":
        """Add squares of mu: Dong, Roth, Su (2022), Corollary 3.3."""
        return GaussianTest(float(np.hypot(mu, self.mu)))


@dataclass(frozen=True, eq=False)
class AdaptiveAnswers:
    """Cost of adaptively chosen answers, after noisy checks and a Gaussian release."""

    answers: AnswerTests
    n_answers: int
    checks: AnswerTests | None = None
    n_checks: int = 0
    first_mu: float = 0.0
    is_all: ClassVar[bool] = False

    def epsilon(self, delta: float) -> float:
        """Compute epsilon at a delta."""
        return np.inf if self.profile is None else self.profile.epsilon_at(delta)

    @cached_property
    def profile(self) -> PrivacyProfile | None:
        """Delta at every epsilon, by the recursion over answers."""
        if self.checks is None:
            return adaptive_profile(self.answers, self.n_answers, self.first_mu)
        return checked_profile(
            self.checks, self.answers, self.n_checks, self.n_answers, self.first_mu
        )

    def after(self, mu: float) -> "AdaptiveAnswers | None":
        """Make a Gaussian release the first move of the recursion."""
        first_mu = float(np.hypot(mu, self.first_mu))
        if not np.isfinite(first_mu):
            return None
        return AdaptiveAnswers(
            self.answers, self.n_answers, self.checks, self.n_checks, first_mu
        )


@dataclass(frozen=True)
class PureCost:
    """Pure guarantee (delta is 0), which the statement gives at any delta."""

    curve: RdpCurve
    is_all: ClassVar[bool] = True

    def epsilon(self, delta: float) -> float:
        """Return epsilon, which holds at delta 0."""
        return self.curve.pure_epsilon

    @property
    def profile(self) -> PrivacyProfile:
        """Delta at every epsilon."""
        return curve_profile(self.curve)

    def after(self, mu: float) -> None:
        """Return None, as Renyi curves are added for a Gaussian release."""


@dataclass(frozen=True, eq=False)
class Cost:
    """Privacy cost of a release, for any data.

    The cost may be published: it follows from the parameters of a mechanism and from
    numbers that do not depend on private data.

    Parameters
    ----------
    unit : {"row", "group", "party"}
        Unit of privacy.

    relation : {"replace-one", "add-remove", "add-remove-or-change"}
        Neighbour relation.

    curve : RdpCurve
        Renyi curve. Infinite for seeded noise, which gives no privacy.

    exact : ExactCost, default=None
        A tighter bound than `curve`, if known: by Gaussian differential privacy, or by
        a recursion over answers that depend on earlier answers.

    Notes
    -----
    Costs with equal unit and neighbour relation add up, even if a release depends on
    results of an earlier release. Renyi curves add up by Proposition 1 of Mironov
    (2017). Squares of mu, the parameter of Gaussian differential privacy, add up by
    Corollary 3.3 of Dong, Roth, Su (2022). The recursion over answers can begin with an
    earlier release with Gaussian noise: see :doc:`/accounting`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import GNMax
    >>> cost = GNMax(sigma=42.5).cost(n_queries=100, n_classes=2)
    >>> round(cost.epsilon(1e-5), 2)
    1.0
    >>> round(cost.curve.to_epsilon(1e-5), 2)
    1.09
    """

    unit: str
    relation: str
    curve: RdpCurve
    exact: ExactCost | None = None

    def __post_init__(self) -> None:
        check_neighbours(self.unit, self.relation)

    @property
    def mu(self) -> float | None:
        """Parameter mu of Gaussian differential privacy, if a bound is known.

        Returns
        -------
        mu : float or None
            None if mu is unknown, zero or infinite.
        """
        if isinstance(self.exact, GaussianTest) and 0 < self.exact.mu < np.inf:
            return self.exact.mu
        return None

    def epsilon(self, delta: float) -> float:
        """Compute epsilon at a given delta.

        Parameters
        ----------
        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        Returns
        -------
        epsilon : float
            The smaller of the exact epsilon, if known, and the epsilon of the curve by
            Canonne, Kamath, Steinke (2020), Proposition 12.
        """
        exact = self._exact_epsilon(delta)
        if exact == np.inf:
            return self.curve.to_epsilon(delta)  # warns where orders are too few
        return self._least_epsilon(exact, delta)

    def quiet_epsilon(self, delta: float) -> float:
        """Compute epsilon at a given delta, without a warning.

        Parameters
        ----------
        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        Returns
        -------
        epsilon : float
            Equal to the result of `epsilon`.
        """
        return self._least_epsilon(self._exact_epsilon(delta), delta)

    def _exact_epsilon(self, delta: float) -> float:
        """Compute the exact epsilon, infinite if no exact cost is known."""
        return np.inf if self.exact is None else self.exact.epsilon(delta)

    def _least_epsilon(self, exact: float, delta: float) -> float:
        """Return the smaller of the exact epsilon and the epsilon of the curve."""
        if self.exact is not None and self.exact.is_all:
            return exact
        return min(exact, self.curve.quiet_epsilon(delta))

    def delta(self, epsilon: float) -> float:
        """Compute delta at a given epsilon.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        delta : float
            Delta of `profile` at this epsilon.
        """
        return float(self.profile.delta_at(epsilon))

    @cached_property
    def profile(self) -> PrivacyProfile:
        """Delta at every epsilon.

        Returns
        -------
        profile : PrivacyProfile
            At each epsilon, the smaller of the exact profile, if it is known, and the
            profile that follows from the curve.
        """
        exact = None if self.exact is None else self.exact.profile
        if exact is not None and self.exact is not None and self.exact.is_all:
            return exact
        profile = curve_profile(self.curve)
        return profile if exact is None else profile.intersect(exact)

    def __add__(self, other: "Cost") -> "Cost":
        if not isinstance(other, Cost):
            return NotImplemented
        own = self.unit, self.relation
        check_add_up("Costs", own, (other.unit, other.relation))
        exact = exact_after(self, other.exact) or exact_after(other, self.exact)
        return Cost(self.unit, self.relation, self.curve + other.curve, exact)

    def unbounded(self) -> "Cost":
        """Return the infinite cost of seeded noise.

        Returns
        -------
        cost : Cost
            Infinite cost for the same unit and relation.
        """
        return Cost(self.unit, self.relation, self.curve.unbounded())


def curve_after(before: Cost | None, curve: RdpCurve) -> RdpCurve:
    """Add the curve of a release to that of a release before, if there is one."""
    return curve if before is None else before.curve.at(curve.orders) + curve


def exact_after(before: Cost | None, exact: ExactCost | None) -> ExactCost | None:
    """Return the exact cost after a release before, None if no bound is known."""
    if before is None or exact is None:
        return exact
    return (
        exact.after(before.exact.mu) if isinstance(before.exact, GaussianTest) else None
    )

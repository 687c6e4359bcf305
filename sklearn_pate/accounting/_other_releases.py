"""Releases of other libraries, for a ledger of this package."""

import logging
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sklearn_pate.accounting._calibrate import check_epsilon
from sklearn_pate.accounting._cost import check_neighbours
from sklearn_pate.accounting._ledger import PrivacyLedger, entry_cost
from sklearn_pate.accounting._profile import PrivacyProfile, lower_hull
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve, check_delta
from sklearn_pate.accounting._value_checks import check_positive, optional_module
from sklearn_pate.accounting.composition import add_remove_to_replace_one
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve


@dataclass(frozen=True)
class OtherRelease:
    """Privacy cost of a release that another library made about the same data.

    Create an instance by a class method, such as :meth:`from_pure`. Record the cost in
    a ledger by :meth:`charge`, before the other library draws noise. The cost must be a
    worst case, fixed beforehand, that depends on no private data. The data holder must
    trust the guarantee of the other library.

    Parameters
    ----------
    curve : RdpCurve
        Renyi curve. Infinite if only pairs (epsilon, delta) are known.

    unit : {"row", "group"}
        Unit of privacy.

    relation : {"replace-one", "add-remove", "add-remove-or-change"}
        Neighbour relation of the cost, as in :class:`~sklearn_pate.PrivacySpent`.

    description : str
        Description of the release for auditors, without private values.

    profile : PrivacyProfile, default=None
        Delta at every epsilon, if known.

    Raises
    ------
    ValueError
        If `relation` is unknown for `unit`.

    Notes
    -----
    Costs for different neighbour relations do not add up. `to_relation` converts a cost
    if a proof is known: see the page :doc:`Privacy cost of an answer </accounting>`.

    Examples
    --------
    Cost of a noisy count of another library, for adding or removing one row, and then
    for replacing one row:

    >>> from sklearn_pate.accounting import OtherRelease
    >>> count = OtherRelease.from_pure(0.1, relation="add-remove")
    >>> count.curve.pure_epsilon
    0.1
    >>> count.to_relation("replace-one").curve.pure_epsilon
    0.2
    """

    curve: RdpCurve
    unit: str
    relation: str
    description: str
    profile: PrivacyProfile | None = None

    def __post_init__(self) -> None:
        check_neighbours(self.unit, self.relation)

    @classmethod
    def from_pure(
        cls,
        epsilon: float,
        *,
        unit: str = "row",
        relation: str,
        description: str = "pure differential privacy",
    ) -> Self:
        """Create a release from a pure guarantee (delta is 0), as for Laplace noise.

        Parameters
        ----------
        epsilon : float
            Epsilon in nats, positive.

        unit : {"row", "group"}, default="row"
            Unit of privacy.

        relation : str
            Neighbour relation of `epsilon`.

        description : str, default="pure differential privacy"
            Description of the release for auditors.

        Returns
        -------
        release : OtherRelease
            Release with the Renyi curve of randomised response, the largest curve for
            this epsilon (Kairouz, Oh, Viswanath 2015, "The composition theorem for
            differential privacy", proof of Theorem 3.3).

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        return cls(pure_dp_curve(check_epsilon(epsilon)), unit, relation, description)

    @classmethod
    def from_zcdp(
        cls,
        rho: float,
        *,
        unit: str = "row",
        relation: str,
        description: str = "zero-concentrated differential privacy",
    ) -> Self:
        """Create a release from zero-concentrated differential privacy.

        Parameters
        ----------
        rho : float
            Positive. The Renyi divergence is at most rho a at every order a (Bun and
            Steinke 2016, "Concentrated differential privacy", Definition 1.1).

        unit : {"row", "group"}, default="row"
            Unit of privacy.

        relation : str
            Neighbour relation of `rho`.

        description : str, default="zero-concentrated differential privacy"
            Description of the release for auditors.

        Returns
        -------
        release : OtherRelease
            Release with the Renyi curve rho a at order a.

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        check_positive("rho", rho)
        curve = RdpCurve(DEFAULT_ORDERS, rho * DEFAULT_ORDERS)
        return cls(curve, unit, relation, description)

    @classmethod
    def from_approximate(
        cls,
        epsilon: float,
        delta: float,
        *,
        unit: str = "row",
        relation: str,
        description: str = "approximate differential privacy",
    ) -> Self:
        """Create a release from one pair (epsilon, delta), if nothing more is known.

        Parameters
        ----------
        epsilon : float
            Epsilon in nats, positive.

        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        unit : {"row", "group"}, default="row"
            Unit of privacy.

        relation : str
            Neighbour relation of the pair (epsilon, delta).

        description : str, default="approximate differential privacy"
            Description of the release for auditors.

        Returns
        -------
        release : OtherRelease
            Only an empty ledger admits this release, as one pair (epsilon, delta)
            bounds no Renyi divergence. The ledger subtracts `delta` from the delta of
            its budget, which must be larger. If rho, a Renyi curve or an event of the
            release is known, use that in place of the pair (epsilon, delta).

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        profile = lower_hull([check_epsilon(epsilon)], [check_delta(delta)])
        curve = RdpCurve(DEFAULT_ORDERS, np.full(DEFAULT_ORDERS.shape, np.inf))
        return cls(curve, unit, relation, description, profile)

    @classmethod
    def from_dp_accounting(
        cls,
        event: Any,
        *,
        unit: str = "row",
        relation: str,
        description: str = "release accounted by dp-accounting",
    ) -> Self:
        """Create a release from an event of dp-accounting.

        Parameters
        ----------
        event : DpEvent
            Event of the whole release, such as ``accountant.ledger`` of an accountant
            of dp-accounting. The noise of the event is relative to the sensitivity
            under `relation`.

        unit : {"row", "group"}, default="row"
            Unit of privacy, called a record in dp-accounting.

        relation : {"add-remove", "replace-one"}
            Neighbour relation of the event.

        description : str, default="release accounted by dp-accounting"
            Description of the release for auditors.

        Returns
        -------
        release : OtherRelease
            Release with the Renyi curve of the event, computed by an RdpAccountant at
            the orders `DEFAULT_ORDERS`.

        Raises
        ------
        ImportError
            If dp-accounting is not installed.

        TypeError
            If `event` is not a DpEvent.

        ValueError
            If `relation` is neither "add-remove" nor "replace-one".

        dp_accounting.UnsupportedEventError
            If dp-accounting does not support the event, or the `relation` for it.
        """
        package = optional_module("dp_accounting", "dp-accounting")
        rdp = optional_module("dp_accounting.rdp", "dp-accounting")
        if not isinstance(event, package.DpEvent):
            raise TypeError(
                f"event={event!r} must be a DpEvent of dp-accounting; pass "
                "accountant.ledger of an accountant."
            )
        relations = {
            "add-remove": package.NeighboringRelation.ADD_OR_REMOVE_ONE,
            "replace-one": package.NeighboringRelation.REPLACE_ONE,
        }
        if relation not in [*relations]:
            raise ValueError(
                f"relation={relation!r} does not apply to an event of dp-accounting; "
                f"pass one of {[*relations]}."
            )
        accountant = rdp.RdpAccountant(DEFAULT_ORDERS, relations[relation])
        # dp-accounting would log a line for each infinite order.
        log = logging.getLogger("absl")
        level = log.level
        log.setLevel(logging.ERROR)
        try:
            accountant.compose(event)
        finally:
            log.setLevel(level)
        orders, values = np.asarray(accountant.orders), np.asarray(accountant.rdp)
        curve = RdpCurve(orders[orders > 1], values[orders > 1])
        return cls(curve, unit, relation, description)

    def to_relation(self, relation: str) -> Self:
        """Convert the cost to another neighbour relation, if a proof is known.

        Parameters
        ----------
        relation : {"replace-one", "add-remove", "add-remove-or-change"}
            Neighbour relation of the ledger.

        Returns
        -------
        release : OtherRelease
            Release with the cost for `relation`. Replacing a unit costs as much as
            removing a unit and adding another: see
            :func:`~sklearn_pate.accounting.composition.add_remove_to_replace_one`. A
            cost for "add-remove-or-change" is also a cost for "add-remove".

        Raises
        ------
        ValueError
            If no conversion is known, or `relation` is unknown for the unit.
        """
        check_neighbours(self.unit, relation)
        if relation == self.relation:
            return self
        if (self.relation, relation) == ("add-remove-or-change", "add-remove"):
            return replace(self, relation=relation)
        if self.relation != "add-remove":
            raise ValueError(
                f"A cost for {self.relation!r} gives no bound for {relation!r}, as "
                "the release may publish the number of units; account for the release "
                f"with {relation!r} neighbours in its own library."
            )
        profile = None if self.profile is None else self.profile.of_units(2)
        curve = add_remove_to_replace_one(self.curve)
        return replace(self, curve=curve, relation=relation, profile=profile)

    def charge(
        self,
        ledger: PrivacyLedger,
        *,
        delta: float = 1e-5,
        dataset: str = "",
        fit: str = "",
    ) -> int:
        """Record the cost in a ledger, before the release is made.

        Parameters
        ----------
        ledger : PrivacyLedger
            Ledger of the data set, with the unit and relation of the release.

        delta : float, default=1e-5
            Delta at which the epsilon of the entry is shown.

        dataset : str, default=""
            Name of the data, without private values.

        fit : str, default=""
            Name of the release.

        Returns
        -------
        number : int
            Number of the entry, which is then on disk.

        Raises
        ------
        BudgetExceededError
            If the cost exceeds the remaining budget. Also if only the profile of the
            release is known, and the ledger is not empty. Nothing was charged.

        ValueError
            If the ledger has another unit or relation.

        LedgerError
            If the file cannot be written. Nothing was charged.
        """
        curve, uncovered_delta = self._covered_part(ledger)
        return ledger.charge(
            curve,
            delta=delta,
            unit=self.unit,
            relation=self.relation,
            description=self.description,
            dataset=dataset,
            fit=fit,
            profile=self.profile,
            uncovered_delta=uncovered_delta,
        )

    def _covered_part(self, ledger: PrivacyLedger) -> tuple[RdpCurve, float]:
        """Return a Renyi curve, and the probability that the curve does not cover.

        If only a profile is known, that of its pair (epsilon, delta) that leaves most
        of the budget at a finite order, where most costs are counted.
        """
        if self.profile is None or np.any(np.isfinite(self.curve.values)):
            return self.curve, 0.0

        def order(part: tuple[RdpCurve, float]) -> tuple[float, ...]:
            *left, pure_left = ledger.filter.left([entry_cost(ledger, *part)])
            return max(0.0, *left), pure_left, -part[1]

        parts = [
            (pure_dp_curve(epsilon), float(self.profile.delta_at(epsilon)))
            for epsilon in (*self.profile.epsilons.tolist(), ledger.epsilon)
        ]
        return max(parts, key=order)

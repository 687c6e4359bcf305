"""Releases of other libraries, for a ledger of this one."""

import logging
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from sklearn_pate.accounting._calibrate import check_epsilon, check_positive
from sklearn_pate.accounting._profile import PrivacyProfile, lower_hull
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve, check_delta
from sklearn_pate.accounting._statement import check_neighbours
from sklearn_pate.accounting._value_checks import optional_module
from sklearn_pate.accounting.composition import (
    add_remove_to_replace_one,
    sampled_gaussian_curve,
)
from sklearn_pate.accounting.ledger._entries import entry_cost
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve

# Epsilons at which a privacy-loss distribution is read.
_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 100, 400)])


@dataclass(frozen=True)
class OtherRelease:
    """Privacy cost of a release that another library made about the same data.

    Made by one of its class methods, and recorded in a ledger by :meth:`charge`, before
    the other library draws its noise. The cost has to be a worst case that depends on
    no data, and was fixed beforehand. That the other library keeps its guarantee is an
    assumption of the data holder.

    Parameters
    ----------
    curve : RdpCurve
        Renyi curve; infinite if only pairs (epsilon, delta) are known.

    unit : {"row", "group"}
        Unit of privacy.

    relation : {"replace-one", "add-remove", "add-remove-or-change"}
        Neighbour relation of the cost, as in :class:`~sklearn_pate.PrivacySpent`.

    description : str
        Description of the release for auditors, without private values.

    profile : PrivacyProfile, default=None
        Delta at every epsilon, where it is known.

    Raises
    ------
    ValueError
        If `relation` is unknown for `unit`.

    Notes
    -----
    Costs of two relations do not add up. `to_relation` converts a cost where there is
    a proof; see :doc:`Privacy cost of an answer </accounting>`.

    Examples
    --------
    A noisy count of another library, for adding or removing one row, and its cost for
    replacing one row, as fits on rows have it:

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
        """Take a pure guarantee, such as that of Laplace noise.

        Parameters
        ----------
        epsilon : float
            In nats, positive.

        unit : {"row", "group"}, default="row"
            Unit of privacy.

        relation : str
            Neighbour relation of `epsilon`.

        description : str, default="pure differential privacy"
            Description of the release for auditors.

        Returns
        -------
        release : OtherRelease
            With the Renyi curve of randomised response, which dominates every such
            release (Kairouz, Oh, Viswanath 2015, "The composition theorem for
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
        """Take a guarantee of zero-concentrated differential privacy.

        Parameters
        ----------
        rho : float
            Positive: a Renyi divergence of at most rho a at every order a (Bun and
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
            Its Renyi curve is rho a.

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
        """Take one pair (epsilon, delta) of which nothing more is known.

        Parameters
        ----------
        epsilon : float
            In nats, positive.

        delta : float
            The probability mass that epsilon does not cover, in (0, 1).

        unit : {"row", "group"}, default="row"
            Unit of privacy.

        relation : str
            Neighbour relation of the pair.

        description : str, default="approximate differential privacy"
            Description of the release for auditors.

        Returns
        -------
        release : OtherRelease
            A pair bounds no Renyi divergence: with probability delta the release may
            reveal everything. An empty ledger admits it, and takes its delta from that
            of the budget: choose a budget with a larger one. No later entry may be such
            a release. Take it by its rho, its Renyi curve or its accountant where you
            can.

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        profile = lower_hull([check_epsilon(epsilon)], [check_delta(delta)])
        return cls(_unknown_curve(), unit, relation, description, profile)

    @classmethod
    def from_dp_accounting(
        cls,
        accountant: Any,
        *,
        unit: str = "row",
        relation: str | None = None,
        description: str = "release accounted by dp-accounting",
    ) -> Self:
        """Take an accountant or an event of dp-accounting.

        Parameters
        ----------
        accountant : RdpAccountant, PLDAccountant or DpEvent
            After all its compositions. An event is composed at our Renyi orders: its
            noise is relative to the sensitivity under `relation`.

        unit : {"row", "group"}, default="row"
            Unit of privacy: the meaning of a record for the accountant.

        relation : {"add-remove", "replace-one"}, default=None
            Neighbour relation of an event. An accountant has its own; None takes it.

        description : str, default="release accounted by dp-accounting"
            Description of the release for auditors.

        Returns
        -------
        release : OtherRelease
            With the Renyi curve of an RdpAccountant or an event. A PLDAccountant gives
            its profile, and for "add-remove" the curve of its events; without a curve,
            only an empty ledger admits it, by the pair (epsilon, delta) of the profile
            that leaves most.

        Raises
        ------
        ImportError
            If dp-accounting is not installed.

        TypeError
            If `accountant` is none of these.

        ValueError
            If its neighbour relation has no counterpart here.
        """
        package = optional_module("dp_accounting", "dp-accounting")
        rdp = optional_module("dp_accounting.rdp", "dp-accounting")
        pld = optional_module("dp_accounting.pld", "dp-accounting")
        relations = {
            package.NeighboringRelation.ADD_OR_REMOVE_ONE: "add-remove",
            package.NeighboringRelation.REPLACE_ONE: "replace-one",
        }
        if isinstance(accountant, package.DpEvent):
            names = {name: key for key, name in relations.items()}
            if relation not in names:
                raise ValueError(
                    f"relation={relation!r} is none of an event of dp-accounting; pass "
                    f"one of {[*names]}."
                )
            event = accountant
            accountant = rdp.RdpAccountant(DEFAULT_ORDERS, names[relation])
            _compose(accountant, event)
        if not isinstance(accountant, (rdp.RdpAccountant, pld.PLDAccountant)):
            raise TypeError(
                f"accountant={accountant!r} must be an RdpAccountant, a PLDAccountant "
                "or a DpEvent of dp-accounting."
            )
        own = relations.get(accountant.neighboring_relation)
        if own is None or relation not in (None, own):
            raise ValueError(
                f"The accountant counts for {accountant.neighboring_relation.name}, "
                f"and relation={relation!r} was given; make it with ADD_OR_REMOVE_ONE "
                "or REPLACE_ONE, and leave relation at None."
            )
        if isinstance(accountant, rdp.RdpAccountant):
            return cls(_curve_of(accountant), unit, own, description)
        deltas = [min(max(accountant.get_delta(x), 0.0), 1.0) for x in _EPSILONS]
        profile = lower_hull(_EPSILONS, deltas)
        curve = _unknown_curve()
        by_curve = rdp.RdpAccountant(DEFAULT_ORDERS, accountant.neighboring_relation)
        # For replaced rows both accountants read the noise of an event in other units.
        if own == "add-remove" and by_curve.supports(accountant.ledger):
            _compose(by_curve, accountant.ledger)
            curve = _curve_of(by_curve)
        return cls(curve, unit, own, description, profile)

    @classmethod
    def from_opacus(
        cls,
        accountant: Any,
        *,
        unit: str = "row",
        description: str = "network trained by Opacus",
    ) -> Self:
        """Take the accountant of a network that Opacus trained.

        Parameters
        ----------
        accountant : opacus.accountants.IAccountant
            ``privacy_engine.accountant`` after training. Any of its accountants: the
            cost is computed from its history of steps.

        unit : {"row", "group"}, default="row"
            Unit of privacy: the meaning of a sample for Opacus.

        description : str, default="network trained by Opacus"
            Description of the release for auditors.

        Returns
        -------
        release : OtherRelease
            Renyi curve of Gaussian noise on Poisson samples (Mironov, Talwar, Zhang
            2019), for adding or removing one sample. It holds if the batches were
            Poisson samples (``poisson_sampling=True``, the default).

        Raises
        ------
        TypeError
            If `accountant` has no history of (noise multiplier, sample rate, number of
            steps).

        ValueError
            If the history is empty, or one of its numbers is out of range.
        """
        history = getattr(accountant, "history", None)
        if not isinstance(history, list):
            raise TypeError(
                f"accountant={accountant!r} has no history of steps; pass "
                "privacy_engine.accountant of Opacus."
            )
        if not history:
            raise ValueError(
                "accountant has an empty history; train the network first."
            )
        curves = [
            sampled_gaussian_curve(noise_multiplier, sample_rate) * n_steps
            for noise_multiplier, sample_rate, n_steps in history
        ]
        total = curves[0]
        for curve in curves[1:]:
            total = total + curve
        return cls(total, unit, "add-remove", description)

    @classmethod
    def from_opendp(
        cls,
        measurement: Any,
        *,
        n_rows: int | None = None,
        unit: str = "row",
        description: str = "measurement of OpenDP",
    ) -> Self:
        """Take a measurement of OpenDP.

        Parameters
        ----------
        measurement : opendp.mod.Measurement
            Of one vector, under a symmetric, insert-delete, change-one or Hamming
            distance, whose cost is pure, approximate or zero-concentrated. The domain
            of a data frame may declare quantities as public, and is refused.

        n_rows : int, default=None
            Most rows that one unit has. A change of a unit changes so many rows. None
            is 1 for the unit "row"; other units need a number.

        unit : {"row", "group"}, default="row"
            Unit of privacy.

        description : str, default="measurement of OpenDP"
            Description of the release for auditors.

        Returns
        -------
        release : OtherRelease
            At ``measurement.map(n_rows)``. Distances that count insertions and
            deletions are for adding or removing a unit, those that count changes for
            replacing one. On a domain of a fixed number of rows there is no neighbour
            with one row more, so that the map bounds nothing at an odd distance, and a
            change of a row is a distance of two: the cost is at
            ``measurement.map(2 * n_rows)``, for replacing one.

        Raises
        ------
        ImportError
            If opendp is not installed.

        TypeError
            If `measurement` is none of OpenDP.

        ValueError
            If the domain, the distance or the kind of cost has no counterpart here, a
            parameter is out of range, or the map ends below the distance of a unit.
        """
        if n_rows is None and unit == "row":
            n_rows = 1
        is_whole = isinstance(n_rows, Integral) and not isinstance(n_rows, bool)
        if n_rows is None or not is_whole or n_rows < 1:
            raise ValueError(
                f"n_rows={n_rows!r} with unit={unit!r} must be a positive whole "
                "number; pass the most rows that one unit has."
            )
        opendp = optional_module("opendp.mod", "opendp")
        if not isinstance(measurement, opendp.Measurement):
            raise TypeError(
                f"measurement={measurement!r} must be a Measurement of OpenDP."
            )
        distance = str(measurement.input_metric.type)
        if distance not in _DISTANCES:
            raise ValueError(
                f"The measurement has the input distance {distance}, which counts no "
                "units; chain it to a transformation of a data set, with one of "
                f"{[*_DISTANCES]}."
            )
        domain = measurement.input_domain
        if not str(domain.type).startswith("VectorDomain"):
            raise ValueError(
                f"The measurement has the input domain {domain.type}, in which more "
                "than the rows may be public; take its cost by from_pure, from_zcdp or "
                "from_approximate, if it has no such invariant."
            )
        measure = str(measurement.output_measure.type)
        relation, distance_of_unit = _DISTANCES[distance], int(n_rows)
        if relation == "add-remove" and domain.size is not None:
            relation, distance_of_unit = "replace-one", 2 * distance_of_unit
        try:
            cost = measurement.map(distance_of_unit)
        except opendp.OpenDPException as error:
            raise ValueError(
                f"The measurement has no cost at a distance of {distance_of_unit}, "
                f"that of one unit; make it with d_in={distance_of_unit} or more: "
                f"{error}"
            ) from error
        options = {"unit": unit, "relation": relation, "description": description}
        if measure == "MaxDivergence":
            return cls.from_pure(cost, **options)
        if measure == "ZeroConcentratedDivergence":
            return cls.from_zcdp(cost, **options)
        if measure == "Approximate<MaxDivergence>":
            epsilon, delta = cost
            if delta == 0:
                return cls.from_pure(epsilon, **options)
            return cls.from_approximate(epsilon, delta, **options)
        raise ValueError(
            f"The measurement has a cost in {measure}, which is not known here; use "
            "one with MaxDivergence, ZeroConcentratedDivergence or "
            "Approximate<MaxDivergence> (opendp.combinators.make_fix_delta)."
        )

    def to_relation(self, relation: str) -> Self:
        """Convert the cost to another neighbour relation, where there is a proof.

        Parameters
        ----------
        relation : {"replace-one", "add-remove", "add-remove-or-change"}
            Neighbour relation of the ledger.

        Returns
        -------
        release : OtherRelease
            From "add-remove", a change is one removal and one addition: see
            :func:`~sklearn_pate.accounting.composition.add_remove_to_replace_one`.
            "add-remove-or-change" includes "add-remove".

        Raises
        ------
        ValueError
            If no conversion is proved, or `relation` is unknown for the unit.
        """
        check_neighbours(self.unit, relation)
        if relation == self.relation:
            return self
        if (self.relation, relation) == ("add-remove-or-change", "add-remove"):
            return replace(self, relation=relation)
        if self.relation != "add-remove":
            raise ValueError(
                f"A cost for {self.relation!r} bounds none for {relation!r}, as such a "
                "release may publish the number of units; account for the release "
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
        """Record the release in a ledger, before it is made.

        Parameters
        ----------
        ledger : PrivacyLedger
            Ledger of the data set, with the same unit and relation.

        delta : float, default=1e-5
            Delta at which the epsilon of the entry is shown.

        dataset : str, default=""
            Name of the data, without private values.

        fit : str, default=""
            Name of the release.

        Returns
        -------
        number : int
            Number of the entry, which is on disk.

        Raises
        ------
        BudgetExceededError
            If it does not fit, or only its profile is known and the ledger has an
            entry; nothing was charged.

        ValueError
            If the ledger has another unit or relation.

        LedgerError
            If the file cannot be written; nothing was charged.
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
        """Return a curve, and the probability mass that it does not cover.

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


# Relation of one unit of distance between data sets in OpenDP.
_DISTANCES = {
    "SymmetricDistance": "add-remove",
    "InsertDeleteDistance": "add-remove",
    "ChangeOneDistance": "replace-one",
    "HammingDistance": "replace-one",
}


def _compose(accountant: Any, event: Any) -> None:
    """Compose an event, without a line of dp-accounting for each infinite order."""
    log = logging.getLogger("absl")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        accountant.compose(event)
    finally:
        log.setLevel(level)


def _curve_of(accountant: Any) -> RdpCurve:
    """Return the curve of an RdpAccountant, at its orders above 1."""
    orders, values = np.asarray(accountant.orders), np.asarray(accountant.rdp)
    return RdpCurve(orders[orders > 1], values[orders > 1])


def _unknown_curve() -> RdpCurve:
    return RdpCurve(DEFAULT_ORDERS, np.full(DEFAULT_ORDERS.shape, np.inf))

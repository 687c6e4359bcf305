"""Record a privacy cost in a ledger, if it is within the budget."""

import datetime
import getpass
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from numbers import Real
from sqlite3 import Connection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import RdpCurve, check_delta
from sklearn_pate.accounting._statement import check_neighbours
from sklearn_pate.exceptions import BudgetExceededError, LedgerError

if TYPE_CHECKING:
    from sklearn_pate.accounting.ledger._ledger import PrivacyLedger

__all__ = [
    "PrivacyCost",
    "admits",
    "check_cost",
    "costs",
    "curve_to_bytes",
    "enter",
    "entry_cost",
    "now",
    "total_costs",
]

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class PrivacyCost:
    """Privacy cost of a release, with its description for a ledger.

    `curve` and `profile` are worst cases, which never depend on data; `curve` holds but
    for a probability of `uncovered_delta`. The other fields are those of
    `PrivacyLedger.charge`.
    """

    curve: RdpCurve
    delta: float
    unit: str
    relation: str
    description: str
    dataset: str
    fit: str
    profile: PrivacyProfile | None = None
    uncovered_delta: float = 0.0

    def __post_init__(self) -> None:
        if type(self.curve) is not RdpCurve:
            raise ValueError(
                f"curve={self.curve!r} is no RdpCurve; pass the worst-case curve of "
                "the release."
            )
        if self.profile is not None and type(self.profile) is not PrivacyProfile:
            raise ValueError(
                f"profile={self.profile!r} is no PrivacyProfile; pass that of the "
                "release, such as privacy_spent_.profile, or None."
            )
        check_delta(self.delta)
        uncovered_delta = self.uncovered_delta
        if not isinstance(uncovered_delta, Real) or not 0 <= uncovered_delta < 1:
            raise ValueError(
                f"uncovered_delta={uncovered_delta!r} must be a number from 0 to 1; "
                "leave it at 0 if the curve always holds."
            )
        for name in ("unit", "relation", "description", "dataset", "fit"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name}={getattr(self, name)!r} must be a str.")
        check_neighbours(self.unit, self.relation)

    @property
    def epsilon(self) -> float:
        """Smallest known epsilon at delta."""
        epsilon = np.inf
        if self.uncovered_delta < self.delta:
            covered = _covered(self.delta, self.uncovered_delta)
            epsilon = self.curve.quiet_epsilon(covered)
        if self.profile is None:
            return epsilon
        return min(epsilon, self.profile.epsilon_at(self.delta))


def admits(
    ledger: "PrivacyLedger",
    spent: Sequence[Sequence[float | Fraction]],
    cost: Sequence[float],
    profile: PrivacyProfile | None,
) -> bool:
    """Check a cost against a budget, a first one also by its profile.

    A first cost that is above all limits of the filter leaves nothing for later ones.
    """
    if ledger.filter.admits(cost, spent):
        return True
    if spent or profile is None:
        return False
    return bool(profile.delta_at(ledger.epsilon) <= ledger.delta)


def entry_cost(
    ledger: "PrivacyLedger", curve: RdpCurve, uncovered_delta: float = 0.0
) -> tuple[float, ...]:
    """Return the cost of a release at the orders of a ledger.

    With `uncovered_delta` it includes what the limits lose if the budget's delta has to
    cover that, too. Only a first entry may have one.
    """
    values = np.array(ledger.filter.cost(curve))
    lost = _lost(np.array(ledger.filter.orders), ledger.delta, uncovered_delta)
    return tuple((values + lost).tolist())


def _lost(orders: _Array, delta: float, uncovered_delta: float) -> _Array:
    """Return the loss of the limits at some orders; pure epsilons take no delta."""
    if uncovered_delta == 0:
        return np.zeros_like(orders)
    if uncovered_delta > delta:
        return np.full_like(orders, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = -np.log(_covered(delta, uncovered_delta) / delta) / (orders - 1)
    return np.where(orders == np.inf, 0.0, np.maximum(lost, 0.0))


def _covered(delta: float, uncovered_delta: float) -> float:
    """Return the delta that is left for all cases but one of that probability."""
    return (delta - uncovered_delta) / (1 - uncovered_delta)


def check_cost(ledger: "PrivacyLedger", file: Connection, cost: PrivacyCost) -> None:
    """Raise unless a cost fits the budget, the unit and the relation of a ledger."""
    unit, relation = file.execute("SELECT unit, relation FROM budget").fetchone()
    if unit is not None and (unit, relation) != (cost.unit, cost.relation):
        raise ValueError(
            f"The ledger {ledger.path} protects unit={unit!r} with "
            f"relation={relation!r}, but this cost is for unit={cost.unit!r} with "
            f"relation={cost.relation!r}, and such costs do not add up. "
            f"{_remedy(unit, relation, cost)}"
        )
    spent = total_costs(file)
    if cost.uncovered_delta and spent:
        raise BudgetExceededError(
            "A release without a Renyi curve for all cases (uncovered_delta="
            f"{cost.uncovered_delta!r}) is admitted as the first entry alone, and "
            f"{ledger.path} has entries: a later one could be chosen in view of "
            "earlier ones. Take its rho, its Renyi curve or its accountant instead, or "
            "charge it first to a new ledger. Nothing was charged."
        )
    values = entry_cost(ledger, cost.curve, cost.uncovered_delta)
    if admits(ledger, spent, values, cost.profile):
        return
    taken, left = ledger.filter.budget_fractions(values, spent)
    budget = (
        f"the budget of {ledger.path} (epsilon={ledger.epsilon!r}, "
        f"delta={ledger.delta!r})"
    )
    if np.isfinite(taken):
        left = max(left, 0.0)
        refused = f"This would take {taken:.2%} of {budget}, and {left:.2%} is left."
        if taken > 1:
            refused += " More than 100% is more than an unused budget of this size."
    elif cost.uncovered_delta > ledger.delta:
        refused = f"Its delta of {cost.uncovered_delta!r} is above that of {budget}."
    elif cost.curve.orders[-1] < ledger.filter.finite_orders[-1]:
        refused = (
            f"The curve ends at order {cost.curve.orders[-1]:g}, and {budget} counts "
            f"at {ledger.filter.finite_orders[-1]:g}; compute it at DEFAULT_ORDERS."
        )
    else:
        refused = f"This has no finite cost, as with seeded noise; {budget} is finite."
    raise BudgetExceededError(f"{refused} Nothing was charged, and no noise was drawn.")


def enter(ledger: "PrivacyLedger", file: Connection, cost: PrivacyCost) -> int:
    """Record a cost that `check_cost` accepts, and return the number of its entry.

    The entry is valid once the writing transaction of `file` has ended.
    """
    check_cost(ledger, file, cost)
    lost = _lost(cost.curve.orders, ledger.delta, cost.uncovered_delta)
    curve = RdpCurve(cost.curve.orders, cost.curve.values + lost)
    file.execute("UPDATE budget SET unit = ?, relation = ?", (cost.unit, cost.relation))
    file.execute(
        "INSERT INTO charges (time, who, dataset, fit, description, epsilon, delta, "
        "orders, curve) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            now(),
            _who(),
            cost.dataset,
            cost.fit,
            cost.description,
            cost.epsilon,
            float(cost.delta),
            *curve_to_bytes(curve),
        ),
    )
    (number,) = file.execute("SELECT last_insert_rowid()").fetchone()
    values = entry_cost(ledger, cost.curve, cost.uncovered_delta)
    file.executemany(
        "INSERT INTO costs VALUES (?, ?, ?)",
        [(number, *pair) for pair in zip(ledger.filter.orders, values, strict=True)],
    )
    [spent] = total_costs(file)
    totals = (
        str(inf if inf in (total, value) else total + Fraction(value))
        for total, value in zip(spent, values, strict=True)
    )
    file.executemany(
        "UPDATE limits SET spent = ? WHERE renyi_order = ?",
        zip(totals, ledger.filter.orders, strict=True),
    )
    return number


def _remedy(unit: str, relation: str, cost: PrivacyCost) -> str:
    """Return advice for a cost of another unit or relation than the ledger's."""
    if cost.unit != unit:
        return (
            "Use the same privacy_unit ('party' for fit_from_votes), or a separate "
            "ledger for each unit."
        )
    if cost.relation == "replace-one":
        return (
            f"A cost for {cost.relation!r} bounds none for {relation!r}, as such a fit "
            "may publish the number of units: no conversion is proved. Use a separate "
            "ledger for each relation."
        )
    reason, curve = f"{cost.relation!r} includes {relation!r}", "spent.curve"
    if cost.relation == "add-remove":
        reason = "To change one is to remove one and add another"
        curve = (
            "sklearn_pate.accounting.composition.add_remove_to_replace_one(spent.curve)"
        )
    return (
        f"{reason}, so that {curve} is a proved cost for {relation!r}: plan the fit "
        "without this ledger (spent = clf.plan_privacy(X, y, ...)), charge that curve "
        f"by ledger.charge(..., unit={unit!r}, relation={relation!r}), then fit; or "
        "use a separate ledger for each relation."
    )


def curve_to_bytes(curve: RdpCurve) -> tuple[bytes, bytes]:
    """Return orders and values of a curve as stored: float64, little-endian."""
    return curve.orders.astype("<f8").tobytes(), curve.values.astype("<f8").tobytes()


def costs(file: Connection) -> list[list[float]]:
    """Read the cost of each entry of a ledger, one number per order."""
    of_entry: dict[int, list[float]] = {}
    for entry, value in file.execute(
        "SELECT charge, value FROM costs ORDER BY charge, renyi_order"
    ):
        of_entry.setdefault(entry, []).append(value)
    return list(of_entry.values())


def total_costs(file: Connection) -> list[list[float | Fraction]]:
    """Read the exact sum of all costs, one number per order; empty without entries."""
    (any_entry,) = file.execute("SELECT EXISTS (SELECT 1 FROM charges)").fetchone()
    if not any_entry:
        return []
    texts = file.execute("SELECT spent FROM limits ORDER BY renyi_order").fetchall()
    try:
        return [[inf if text == "inf" else Fraction(text) for (text,) in texts]]
    except ValueError as error:
        raise LedgerError(
            "The sum of a ledger's costs is damaged; put back a copy of its file that "
            "has every entry."
        ) from error


def now() -> str:
    """Return the time in UTC, as text."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _who() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have users without names
        user = "unknown"
    return f"{user}@{platform.node()}"

"""Entering a charge in a ledger: within its budget, or not at all."""

import datetime
import getpass
import platform
from dataclasses import dataclass

import numpy as np

from sklearn_pate.accounting._rdp import RdpCurve, check_delta
from sklearn_pate.accounting._statement import check_neighbours
from sklearn_pate.exceptions import BudgetExceededError

__all__ = ["PrivacyCost", "blobs", "check_cost", "costs", "enter", "now"]


@dataclass(frozen=True)
class PrivacyCost:
    """What is to be charged.

    Parameters
    ----------
    curve : RdpCurve
        Worst-case cost: never one that depends on data.

    delta : float
        At which its epsilon is shown.

    unit : {"row", "group", "party"}
        Whom it protects.

    relation : {"replace-one", "add-remove", "add-remove-or-change"}
        Against which change of one unit.

    description : str
        What is released.

    dataset : str
        Which data, by a name that says nothing about them.

    fit : str
        Which release.

    Raises
    ------
    ValueError
        If it is something else.
    """

    curve: RdpCurve
    delta: float
    unit: str
    relation: str
    description: str
    dataset: str
    fit: str

    def __post_init__(self) -> None:
        if type(self.curve) is not RdpCurve:
            raise ValueError(
                f"curve={self.curve!r} is no RdpCurve; pass the worst-case curve of "
                "what is released."
            )
        check_delta(self.delta)
        for name in ("unit", "relation", "description", "dataset", "fit"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name}={getattr(self, name)!r} must be a str.")
        check_neighbours(self.unit, self.relation)


def check_cost(ledger, file, cost):
    """Raise unless a cost can be charged now. Charges nothing.

    Parameters
    ----------
    ledger : PrivacyLedger
        Which ledger.

    file : sqlite3.Connection
        Its file, in a transaction.

    cost : PrivacyCost
        What is to be charged.

    Raises
    ------
    BudgetExceededError
        If it does not fit.

    ValueError
        If the ledger has another unit or relation.
    """
    unit, relation = file.execute("SELECT unit, relation FROM budget").fetchone()
    if unit is not None and (unit, relation) != (cost.unit, cost.relation):
        raise ValueError(
            f"The ledger {ledger.path} protects unit={unit!r} with "
            f"relation={relation!r}, and this charge is for unit={cost.unit!r} with "
            f"relation={cost.relation!r}, whose costs do not add up. "
            f"{_other_unit(unit, relation, cost)}"
        )
    spent, values = costs(file), ledger.filter.cost(cost.curve)
    if ledger.filter.admits(values, spent):
        return
    share, left = ledger.filter.shares(values, spent)
    budget = f"the budget of {ledger.path} ({ledger.epsilon=}, {ledger.delta=})"
    budget = budget.replace("ledger.", "")
    if np.isfinite(share):
        left = max(left, 0.0)
        refused = (
            f"This would take {share:.2%} of {budget}, and {left:.2%} is left: "
            f"{left / share:.3g} times this charge would fit."
        )
    elif cost.curve.orders[-1] < ledger.filter.finite_orders[-1]:
        refused = (
            f"The curve ends at order {cost.curve.orders[-1]:g}, and {budget} counts "
            f"at {ledger.filter.finite_orders[-1]:g}; compute it at DEFAULT_ORDERS."
        )
    else:
        refused = f"This has no finite cost, as with seeded noise; {budget} is finite."
    raise BudgetExceededError(f"{refused} Nothing was charged, and no noise was drawn.")


def enter(ledger, file, cost):
    """Charge a cost.

    Parameters
    ----------
    ledger : PrivacyLedger
        Which ledger.

    file : sqlite3.Connection
        Its file, in a writing transaction: the charge counts once that has ended.

    cost : PrivacyCost
        What is to be charged.

    Returns
    -------
    number : int
        Of the charge.

    Raises
    ------
    BudgetExceededError
        If it does not fit.

    ValueError
        If the ledger has another unit or relation.
    """
    check_cost(ledger, file, cost)
    file.execute("UPDATE budget SET unit = ?, relation = ?", (cost.unit, cost.relation))
    number = file.execute(
        "INSERT INTO charges (time, who, dataset, fit, description, epsilon, delta, "
        "orders, curve) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            now(),
            _who(),
            cost.dataset,
            cost.fit,
            cost.description,
            cost.curve.quiet_epsilon(cost.delta),
            float(cost.delta),
            *blobs(cost.curve),
        ),
    ).lastrowid
    privacy_filter = ledger.filter
    file.executemany(
        "INSERT INTO costs VALUES (?, ?, ?)",
        [
            (number, *of_order)
            for of_order in zip(
                privacy_filter.orders, privacy_filter.cost(cost.curve), strict=True
            )
        ],
    )
    return number


def _other_unit(unit, relation, cost):
    """Say what can be done about a charge for others, as far as it is proved."""
    if cost.unit != unit:
        return (
            "Use the same privacy_unit ('party' for fit_from_votes), or a "
            "ledger of its own for each unit."
        )
    if cost.relation == "replace-one":
        return (
            f"A cost for {cost.relation!r} bounds none for {relation!r}, as such a "
            "fit may publish how many there are: no conversion is proved. Use a ledger "
            "of its own for each relation."
        )
    holds, curve = f"{cost.relation!r} includes {relation!r}", "spent.curve"
    if cost.relation == "add-remove":
        holds = "To change one is to remove one and add another"
        curve = "sklearn_pate.accounting.composition.two_steps(spent.curve)"
    return (
        f"{holds}, so that {curve} is a proved cost for {relation!r}: plan the fit "
        "without this ledger (spent = clf.plan_privacy(X, y, ...)), charge that curve "
        f"by ledger.charge(..., unit={unit!r}, relation={relation!r}), then fit; or "
        "use a ledger of its own for each relation."
    )


def blobs(curve):
    """Write a curve as it is stored.

    Parameters
    ----------
    curve : RdpCurve
        The curve.

    Returns
    -------
    orders : bytes
        Float64, little-endian.

    values : bytes
        Likewise.
    """
    return curve.orders.astype("<f8").tobytes(), curve.values.astype("<f8").tobytes()


def costs(file):
    """Read what each charge of a ledger costs at each order.

    Parameters
    ----------
    file : sqlite3.Connection
        The file.

    Returns
    -------
    costs : list of list of float
        In the order of the charges.
    """
    of_charge = {}
    for charge, value in file.execute(
        "SELECT charge, value FROM costs ORDER BY charge, renyi_order"
    ):
        of_charge.setdefault(charge, []).append(value)
    return list(of_charge.values())


def now():
    """Return the time, for people to read.

    Returns
    -------
    time : str
        In UTC.
    """
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _who():
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have users without names
        user = "unknown"
    return f"{user}@{platform.node()}"

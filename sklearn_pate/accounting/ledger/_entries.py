"""Entering a charge in a ledger: within its budget, or not at all."""

import datetime
import getpass
import platform
from dataclasses import dataclass

import numpy as np

from sklearn_pate.accounting._rdp import RdpCurve, check_delta
from sklearn_pate.accounting._statement import NEIGHBOURS
from sklearn_pate.exceptions import BudgetExceededError

__all__ = ["Price", "blobs", "check_price", "costs", "enter", "now"]


@dataclass(frozen=True)
class Price:
    """What is to be charged.

    Parameters
    ----------
    curve : RdpCurve
        Worst-case price: never one that depends on data.

    delta : float
        At which its epsilon is shown.

    unit : {"row", "group", "party", "row-add-remove", "group-add-remove"}
        Whom it protects, and against which change.

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
        for name in ("unit", "description", "dataset", "fit"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name}={getattr(self, name)!r} must be a str.")
        if self.unit not in NEIGHBOURS:
            raise ValueError(
                f"unit={self.unit!r} is unknown; use one of {[*NEIGHBOURS]}."
            )


def check_price(ledger, file, price):
    """Raise unless a price can be charged now. Charges nothing.

    Parameters
    ----------
    ledger : PrivacyLedger
        Which ledger.

    file : sqlite3.Connection
        Its file, in a transaction.

    price : Price
        What is to be charged.

    Raises
    ------
    BudgetExceededError
        If it does not fit.

    ValueError
        If the ledger has another unit.
    """
    (of_ledger,) = file.execute("SELECT unit FROM budget").fetchone()
    if of_ledger not in (None, price.unit):
        raise ValueError(
            f"The ledger {ledger.path} protects the unit {of_ledger!r}, and this "
            f"charge is for {price.unit!r}: prices of two units do not add up. "
            f"{_other_unit(of_ledger, price.unit)}"
        )
    spent, cost = costs(file), ledger.filter.cost(price.curve)
    if ledger.filter.admits(cost, spent):
        return
    share, left = ledger.filter.shares(cost, spent)
    budget = f"the budget of {ledger.path} ({ledger.epsilon=}, {ledger.delta=})"
    budget = budget.replace("ledger.", "")
    if np.isfinite(share):
        left = max(left, 0.0)
        refused = (
            f"This would take {share:.2%} of {budget}, and {left:.2%} is left: "
            f"{left / share:.3g} times this charge would fit."
        )
    elif price.curve.orders[-1] < ledger.filter.finite_orders[-1]:
        refused = (
            f"The curve ends at order {price.curve.orders[-1]:g}, and {budget} counts "
            f"at {ledger.filter.finite_orders[-1]:g}; compute it at DEFAULT_ORDERS."
        )
    else:
        refused = f"This has no finite price, as with seeded noise; {budget} is finite."
    raise BudgetExceededError(f"{refused} Nothing was charged, and no noise was drawn.")


def enter(ledger, file, price):
    """Charge a price.

    Parameters
    ----------
    ledger : PrivacyLedger
        Which ledger.

    file : sqlite3.Connection
        Its file, in a writing transaction: the charge counts once that has ended.

    price : Price
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
        If the ledger has another unit.
    """
    check_price(ledger, file, price)
    file.execute(
        "UPDATE budget SET unit = ?, neighbours = ?",
        (price.unit, NEIGHBOURS[price.unit]),
    )
    number = file.execute(
        "INSERT INTO charges (time, who, dataset, fit, description, epsilon, delta, "
        "orders, curve) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            now(),
            _who(),
            price.dataset,
            price.fit,
            price.description,
            price.curve.quiet_epsilon(price.delta),
            float(price.delta),
            *blobs(price.curve),
        ),
    ).lastrowid
    privacy_filter = ledger.filter
    file.executemany(
        "INSERT INTO costs VALUES (?, ?, ?)",
        [
            (number, *of_order)
            for of_order in zip(
                privacy_filter.orders, privacy_filter.cost(price.curve), strict=True
            )
        ],
    )
    return number


def _other_unit(of_ledger, unit):
    """Say what can be done about a charge for another unit, as far as it is proved."""
    if unit == f"{of_ledger}-add-remove":
        return (
            "To change one is to remove one and add another, so that "
            "sklearn_pate.accounting.composition.two_steps(spent.curve) is a proved "
            f"price for {of_ledger!r}: plan the fit without this ledger (spent = "
            "clf.plan_privacy(X, y, ...)), charge that curve by ledger.charge(..., "
            f"unit={of_ledger!r}), then fit; or use a ledger of its own for each unit."
        )
    if of_ledger == f"{unit}-add-remove":
        return (
            f"A price for {unit!r} bounds none for {of_ledger!r}, as such a fit may "
            "publish how many there are: no conversion is proved. Use a ledger of its "
            "own for each unit."
        )
    return (
        "Use the same privacy_unit (that of fit_votes is always 'party'), or a ledger "
        "of its own for each unit."
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

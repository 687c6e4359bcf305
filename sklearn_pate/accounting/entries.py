"""Entering a charge in a ledger: within its budget, or not at all."""

import datetime
import getpass
import platform
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_pate.accounting.curve import RdpCurve
from sklearn_pate.accounting.statement import NEIGHBOURS
from sklearn_pate.exceptions import BudgetExceededError

__all__ = ["Price", "check_price", "costs", "enter", "now"]


@dataclass(frozen=True)
class Price:
    """What is to be charged.

    Parameters
    ----------
    curve : RdpCurve
        Worst-case price: never one that depends on data.

    delta : float
        At which its epsilon is shown.

    unit : {"row", "group", "party"}
        Whom it protects.

    description : str
        What is released.

    dataset : str
        Which data, by a name that says nothing about them.

    fit : str
        Which release.

    remedy : callable, default=None
        Says what would fit, if this does not.
    """

    curve: RdpCurve
    delta: float
    unit: str
    description: str
    dataset: str
    fit: str
    remedy: Callable[[], str] | None = None


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
    if price.unit not in NEIGHBOURS:
        raise ValueError(f"unit={price.unit!r} is unknown; use one of {[*NEIGHBOURS]}.")
    if of_ledger not in (None, price.unit):
        raise ValueError(
            f"The ledger {ledger.path} protects the unit {of_ledger!r}, and this "
            f"charge is for {price.unit!r}: prices of two units do not add up. Use the "
            "same privacy_unit, or another ledger for other data."
        )
    spent, cost = costs(file), ledger.filter.cost(price.curve)
    if ledger.filter.share([*spent, cost]) <= 1:
        return
    share, left = ledger.filter.share([cost]), 1 - ledger.filter.share(spent)
    if np.isinf(share):
        advice = "It has no finite price, as with seeded noise."
    elif price.remedy is None:
        advice = f"{left / share:.3g} times this charge would fit."
    else:
        advice = price.remedy()
    raise BudgetExceededError(
        f"This would take {share:.2%} of the budget of {ledger.path} "
        f"(epsilon={ledger.epsilon!r}, delta={ledger.delta!r}), and {left:.2%} is "
        f"left. {advice} Nothing was charged, and no noise was drawn."
    )


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
            np.asarray(price.curve.orders, "<f8").tobytes(),
            np.asarray(price.curve.values, "<f8").tobytes(),
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

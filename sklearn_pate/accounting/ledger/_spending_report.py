"""What a ledger says of itself: its charges, in a table and in words."""

from dataclasses import dataclass

import numpy as np

from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._statement import NEIGHBOURS, write_epsilon
from sklearn_pate.accounting.ledger._entries import costs

__all__ = ["Charge", "read_entries", "write_report"]


@dataclass(frozen=True)
class Charge:
    """One line of a ledger, for auditors.

    Costs depend on no private value. Fingerprints tell whether two fits saw the same
    data, and nothing else without the key. Not for publication: that two fits saw the
    same data, and who fitted when, is covered by no epsilon.

    Parameters
    ----------
    number : int
        Counts up from 1.

    time : str
        When, in UTC.

    who : str
        User and machine.

    dataset : str
        Keyed fingerprint of the private rows, or the name that was given.

    fit : str
        Keyed fingerprint of everything that decides the answers.

    description : str
        What was asked, and how it was answered.

    epsilon : float
        The cost on its own, at `delta`.

    delta : float
        The probability mass that epsilon does not cover.

    share : float
        Part of the budget that it takes, at the order that has most left. Shares add
        up to `spent` of the ledger.

    Notes
    -----
    What all charges promise together is the budget, and no sum over `epsilon`: they
    compose in a Renyi filter (Feldman and Zrnic 2021), see
    :class:`~sklearn_pate.PrivacyLedger`.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_pate import PrivacyLedger
    >>> from sklearn_pate.mechanisms import GNMax
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=3, delta=1e-6)
    >>> curve = GNMax(sigma=40).account_curve(n_queries=50, n_classes=2)
    >>> for what in ("50 answers on lungs", "50 answers on hearts"):
    ...     number = ledger.charge(
    ...         curve,
    ...         delta=1e-6,
    ...         unit="row",
    ...         relation="replace-one",
    ...         description=what,
    ...     )
    >>> for one in ledger.charges():
    ...     print(one.number, f"{one.share:.1%}", f"{one.epsilon:.2f}", one.description)
    1 10.8% 0.90 50 answers on lungs
    2 10.8% 0.90 50 answers on hearts
    >>> folder.cleanup()
    """

    number: int
    time: str
    who: str
    dataset: str
    fit: str
    description: str
    epsilon: float
    delta: float
    share: float


def read_entries(file, privacy_filter):
    """Read all charges.

    Parameters
    ----------
    file : sqlite3.Connection
        The file of a ledger.

    privacy_filter : RenyiFilter
        Its limits.

    Returns
    -------
    charges : list of Charge
        In order.
    """
    lines = file.execute(
        "SELECT id, time, who, dataset, fit, description, epsilon, delta FROM charges "
        "ORDER BY id"
    )
    spent = costs(file)
    left = privacy_filter.left(spent)
    most = left.index(max(left))
    limit = privacy_filter.limits[most]
    return [
        Charge(*(*line, cost[most] / limit))
        for line, cost in zip(lines, spent, strict=True)
    ]


def write_report(ledger, file):
    """Describe the account.

    Parameters
    ----------
    ledger : PrivacyLedger
        The ledger.

    file : sqlite3.Connection
        Its file.

    Returns
    -------
    report : str
        Several lines.
    """
    unit, relation, created = file.execute(
        "SELECT unit, relation, created FROM budget"
    ).fetchone()
    title = f"{ledger!r}, created {created}"
    if unit is None:
        return (
            f"{title}: nothing was charged yet. The first charge sets whom it protects."
        )
    charges = read_entries(file, ledger.filter)
    times = "1 charge" if len(charges) == 1 else f"{len(charges)} charges"
    table = [HEADS, *(_cells(charge) for charge in charges)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows = [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in table
    ]
    return "\n".join(
        [
            title,
            "",
            "Everything charged here, now and later, is together "
            f"(epsilon={ledger.epsilon!r}, delta={ledger.delta!r})-differentially "
            f"private, where neighbouring data sets {NEIGHBOURS[unit, relation]}.",
            f"{ledger.spent:.2%} of this budget is spent, in {times}. At a glance, "
            f"and no guarantee: epsilon={_estimate(ledger, file):.3f} so far, if no "
            "fit was chosen in view of another.",
            "",
            *rows,
        ]
    )


def _estimate(ledger, file):
    """Compose what was charged as is best now."""
    curves = [
        RdpCurve(np.frombuffer(orders, "<f8"), np.frombuffer(values, "<f8"))
        for orders, values in file.execute("SELECT orders, curve FROM charges")
    ]
    at_order = dict(
        zip(ledger.filter.orders, zip(*costs(file), strict=True), strict=True)
    )
    estimates = [ledger.epsilon, sum(at_order.get(np.inf, [np.inf]))]
    common = sorted(set.intersection(*(set(curve.orders) for curve in curves)))
    if common:
        values = sum(curve.values[np.isin(curve.orders, common)] for curve in curves)
        estimates.append(RdpCurve(common, values).quiet_epsilon(ledger.delta))
    return min(estimates)


HEADS = (
    *("", "time (UTC)", "share", "epsilon", "delta", "dataset", "fit", "who"),
    "what",
)


def _cells(charge):
    return (
        str(charge.number),
        charge.time,
        f"{charge.share:.2%}",
        write_epsilon(charge.epsilon),
        f"{charge.delta:g}",
        charge.dataset[:12],
        charge.fit[:12],
        charge.who,
        charge.description,
    )

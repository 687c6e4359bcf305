"""Entries of a ledger, and its report for auditors."""

from dataclasses import dataclass
from sqlite3 import Connection
from typing import TYPE_CHECKING

import numpy as np

from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._statement import NEIGHBOURS, write_epsilon
from sklearn_pate.accounting.composition._renyi_filter import RenyiFilter
from sklearn_pate.accounting.ledger._entries import costs

if TYPE_CHECKING:
    from sklearn_pate.accounting.ledger._ledger import PrivacyLedger

__all__ = ["LedgerEntry", "read_entries", "write_report"]


@dataclass(frozen=True)
class LedgerEntry:
    """Record of one release in a ledger, for auditors.

    Not for publication: costs depend on no private value, but the fingerprints reveal
    which fits used the same data, and `time` and `who` are not covered by epsilon.

    Parameters
    ----------
    number : int
        Number of the entry, from 1.

    time : str
        Time in UTC.

    who : str
        User and machine.

    dataset : str
        Keyed fingerprint of the private rows, or the name that was given.

    fit : str
        Keyed fingerprint of the inputs that determine the answers, or the name that
        was given.

    description : str
        Description of the release and its mechanism.

    epsilon : float
        Privacy cost of this release alone, at `delta`: the exact one, where known.

    delta : float
        The probability mass that epsilon does not cover.

    share : float
        Fraction of the budget that it takes, at the order with most left, at most 1.
        These fractions add up to `spent` of the ledger.

    Notes
    -----
    The guarantee for all entries together is the budget, not the sum of `epsilon`: they
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
    >>> number = ledger.charge(
    ...     curve,
    ...     delta=1e-6,
    ...     unit="row",
    ...     relation="replace-one",
    ...     description="50 answers on lungs",
    ... )
    >>> (entry,) = ledger.entries()
    >>> print(f"{entry.share:.1%}", f"{entry.epsilon:.2f}", entry.description)
    10.8% 0.90 50 answers on lungs
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


def read_entries(file: Connection, privacy_filter: RenyiFilter) -> list[LedgerEntry]:
    """Read all entries of a ledger, in order."""
    lines = file.execute(
        "SELECT id, time, who, dataset, fit, description, epsilon, delta FROM charges "
        "ORDER BY id"
    )
    spent = costs(file)
    left = privacy_filter.left(spent)
    most = left.index(max(left))
    limit = privacy_filter.limits[most]
    return [
        # A first entry may be within the budget by its profile alone.
        LedgerEntry(*(*line, min(cost[most] / limit, 1.0)))
        for line, cost in zip(lines, spent, strict=True)
    ]


def write_report(ledger: "PrivacyLedger", file: Connection) -> str:
    """Describe a ledger in words and a table."""
    unit, relation, created = file.execute(
        "SELECT unit, relation, created FROM budget"
    ).fetchone()
    title = f"{ledger!r}, created {created}"
    if unit is None:
        return (
            f"{title}: nothing was charged yet. The first entry sets the unit of "
            "privacy and the neighbour relation."
        )
    entries = read_entries(file, ledger.filter)
    table = [HEADS, *(_cells(entry) for entry in entries)]
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
            "All releases charged here, now and later, are together "
            f"(epsilon={ledger.epsilon!r}, delta={ledger.delta!r})-differentially "
            f"private. Neighbouring data sets differ by one change: "
            f"{NEIGHBOURS[unit, relation]}.",
            f"{ledger.spent:.2%} of this budget is spent, in "
            f"{counted(len(entries), 'entry')}. Estimate, "
            f"not a guarantee: epsilon={_estimate(ledger, file):.3f} so far, if no fit "
            "was chosen in view of another.",
            "",
            *rows,
        ]
    )


def _estimate(ledger: "PrivacyLedger", file: Connection) -> float:
    """Compute epsilon of all entries, composed at the order that is best now."""
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


def _cells(entry: LedgerEntry) -> tuple[str, ...]:
    return (
        str(entry.number),
        entry.time,
        f"{entry.share:.2%}",
        write_epsilon(entry.epsilon),
        f"{entry.delta:g}",
        entry.dataset[:12],
        entry.fit[:12],
        entry.who,
        entry.description,
    )

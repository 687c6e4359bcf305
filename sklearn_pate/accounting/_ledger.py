"""PrivacyLedger: one privacy budget over all fits, its file and its entries."""

import datetime
import getpass
import math
import os
import platform
import secrets
import sqlite3
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._calibrate import gdp_epsilon
from sklearn_pate.accounting._cost import NEIGHBOURS, check_neighbours
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve, check_delta
from sklearn_pate.accounting._statement import PrivacySpent, write_epsilon
from sklearn_pate.accounting._value_checks import (
    WIDTH,
    check_number,
    control_character,
    counted,
    printable,
    read_text,
)
from sklearn_pate.accounting.composition import RenyiFilter
from sklearn_pate.exceptions import BudgetExceededError, LedgerError

_Array = NDArray[np.float64]
# "PATE", and the version of the tables.
APPLICATION_ID = int.from_bytes(b"PATE")
FORMAT_VERSION = 3
# Other processes lock the file for milliseconds each. SQLite counts its tries, 0.1 s
# apart: on a busy machine, where a try takes longer, it waits for longer.
SECONDS_TO_WAIT = 60.0
KEY_BYTES = 32

TABLES = read_text("sklearn_pate.accounting", "ledger.sql")
#: Reason why shares are not quotients of epsilons.
WHY_SHARES = (
    "A share of the budget is no share of its epsilon: releases with noise cost less "
    "together than the sum of their epsilons. With Gaussian noise, a third of the "
    "budget's epsilon takes less than a third of the budget."
)
HEADS = (
    *("", "time (UTC)", "share", "epsilon", "delta", "dataset", "fit", "who"),
    "what",
)


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
                f"curve={self.curve!r} is not an RdpCurve; pass the worst-case curve "
                "of the release."
            )
        if self.profile is not None and type(self.profile) is not PrivacyProfile:
            raise ValueError(
                f"profile={self.profile!r} is not a PrivacyProfile; pass the profile "
                "of the release, such as privacy_spent_.profile, or None."
            )
        check_delta(self.delta)
        check_number("uncovered_delta", self.uncovered_delta, 0, 1, closed="left")
        for name in ("unit", "relation", "description", "dataset", "fit"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name}={getattr(self, name)!r} must be a str.")
            if character := control_character(getattr(self, name)):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has the control character "
                    f"{character}, which could hide or forge lines of the ledger's "
                    "report; remove it."
                )
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
    """Check a cost against a budget, for a first entry also by the privacy profile.

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
    """Return the delta that is left once an uncovered probability is subtracted."""
    return (delta - uncovered_delta) / (1 - uncovered_delta)


def check_cost(ledger: "PrivacyLedger", file: Connection, cost: PrivacyCost) -> None:
    """Raise unless a cost fits the budget, the unit and the relation of a ledger."""
    unit, relation = file.execute("SELECT unit, relation FROM budget").fetchone()
    if unit is not None and (unit, relation) != (cost.unit, cost.relation):
        raise ValueError(
            f"The ledger {ledger.path} protects unit={unit!r} with "
            f"relation={relation!r}, but this cost is for unit={cost.unit!r} with "
            f"relation={cost.relation!r}. Such costs do not add up. "
            f"{_remedy(unit, relation, cost)}"
        )
    spent = total_costs(file)
    if cost.uncovered_delta and spent:
        raise BudgetExceededError(
            "A release without a Renyi curve for all cases "
            f"(uncovered_delta={cost.uncovered_delta!r}) may only be the first entry "
            f"of a ledger, but {ledger.path} has entries. Pass its rho, its Renyi "
            "curve or its accountant instead, or make it the first entry of a new "
            "ledger. Nothing was charged."
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
        refused = (
            f"This release would take {taken:.2%} of {budget}, and {left:.2%} is left."
        )
        if taken > 1:
            refused += (
                " A cost above 100% would exceed even an unused budget of this size."
            )
    elif cost.uncovered_delta > ledger.delta:
        refused = (
            f"The release has delta={cost.uncovered_delta!r}, which is above "
            f"the delta of {budget}."
        )
    elif cost.curve.orders[-1] < ledger.filter.finite_orders[-1]:
        refused = (
            f"The Renyi curve ends at order {cost.curve.orders[-1]:g}, but {budget} "
            f"needs order {ledger.filter.finite_orders[-1]:g}; compute the curve at "
            "DEFAULT_ORDERS."
        )
    else:
        refused = (
            "The release has no finite cost, as with seeded noise, but "
            f"{budget} is finite."
        )
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
    """Return advice for a cost whose unit or relation is not that of the ledger."""
    if cost.unit != unit:
        return (
            "Use the same privacy_unit ('party' for fit_from_votes), or a separate "
            "ledger for each unit."
        )
    if cost.relation == "replace-one":
        return (
            f"A cost for {cost.relation!r} gives no bound for {relation!r}, as the "
            "fit may publish the number of units. Use a separate ledger for each "
            "relation."
        )
    reason, curve = f"{cost.relation!r} includes {relation!r}", "spent.curve"
    if cost.relation == "add-remove":
        reason = "To change one is to remove one and add another"
        curve = (
            "sklearn_pate.accounting.composition.add_remove_to_replace_one(spent.curve)"
        )
    return (
        f"{reason}, so that {curve} is a proved cost for {relation!r}. Plan the fit "
        "without this ledger (spent = clf.plan_privacy(X, y, ...)), charge that curve "
        f"by ledger.charge(..., unit={unit!r}, relation={relation!r}), then fit. Or "
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
            "The sum of a ledger's costs is damaged; restore a copy of its file that "
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
    return printable(f"{user}@{platform.node()}")


def create_once(
    path: Path,
    epsilon: float,
    delta: float,
    limits: Iterable[tuple[float, float]],
    created: str,
) -> None:
    """Create the file of a ledger, complete or not at all, unless it exists."""

    def fill(unfinished: Path) -> None:
        with _connected(unfinished) as connection, _transaction(connection):
            for statement in TABLES.split(";")[:-1]:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO budget VALUES (1, ?, ?, NULL, NULL, ?, ?)",
                (epsilon, delta, created, secrets.token_hex(16)),
            )
            connection.executemany(
                "INSERT INTO limits (renyi_order, value) VALUES (?, ?)", limits
            )
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")

    with _ledger_errors(path):
        _create(path, fill)


def file_exists(path: Path) -> bool:
    """Check that a file exists; raise if it is a folder or its folder is missing."""
    with _ledger_errors(path):
        if path.is_dir():
            raise LedgerError(f"{path} is a folder; name a file in it.")
        if not path.parent.is_dir():
            raise LedgerError(f"There is no folder {path.parent}; create it first.")
        return path.exists()


def check_not_lost(path: Path, link: Any, key_file: Path) -> None:
    """Raise if the file of a ledger is missing, but a link to it or its key is not."""
    with _ledger_errors(path):
        # First: a ledger that another process creates now has its file before its key.
        of_ledger = (link, key_file, f"{path}-journal")
        left = [one for one in of_ledger if os.path.lexists(one)]
        if left and not path.exists():
            raise LedgerError(
                f"The ledger {path} is missing, but {left[0]} remains. Restore the "
                "ledger: a new one would not contain the earlier entries. For another "
                "data set, choose a path and a key_file that do not exist."
            )


def make_key(path: Path) -> bytes:
    """Read the secret key of the fingerprints, or create it for this user only."""
    with _ledger_errors(path):
        if not path.exists():
            key = secrets.token_bytes(KEY_BYTES)
            _create(path, lambda unfinished: unfinished.write_bytes(key))
        key = path.read_bytes()
    if len(key) < KEY_BYTES:
        raise LedgerError(
            f"The key file {path} has {counted(len(key), 'byte')}, but a key needs "
            f"{KEY_BYTES}. Restore the old key, or remove the file to create a new "
            "key (fits under the old key are then charged again)."
        )
    return key


@contextmanager
def transaction(
    path: Path, kind: Literal["DEFERRED", "IMMEDIATE"]
) -> Iterator[sqlite3.Connection]:
    """Open the file of a ledger in one transaction: "DEFERRED" reads one state of it.

    "IMMEDIATE" also writes, with no other writer at the same time; the changes are on
    disk once the block has ended. After an error nothing was written.
    """
    with (
        _ledger_errors(path),
        _connected(path) as connection,
        _transaction(connection, kind),
    ):
        _check_format(connection, path)
        yield connection


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    # One connection per transaction: none is used across a fork, none creates a file.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=SECONDS_TO_WAIT,
        isolation_level=None,
    )
    # Texts of a file from elsewhere could hide or forge lines of a report.
    connection.text_factory = lambda text: printable(text.decode())
    try:
        # No write-ahead log, which is lost if its file is not copied along. EXTRA: a
        # commit also survives a power cut that undoes the removal of the journal.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # else macOS may not write to disk
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection
    finally:
        connection.close()


@contextmanager
def _transaction(
    connection: sqlite3.Connection, kind: str = "IMMEDIATE"
) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise LedgerError(
            f"{path} is not a ledger; pass another file, or restore the ledger."
        )
    if version != FORMAT_VERSION:
        raise LedgerError(
            f"The ledger {path} has format {version}, but this version of "
            f"sklearn_pate reads {FORMAT_VERSION}; use the version that wrote it."
        )


def _create(path: Path, fill: Callable[[Path], object]) -> None:
    """Create a file that is complete once it is visible; keep an existing one."""
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(descriptor)
    try:
        fill(Path(unfinished))
        try:
            os.link(unfinished, path)
        except FileExistsError:
            return
    finally:
        os.unlink(unfinished)
    if hasattr(os, "O_DIRECTORY"):  # elsewhere folders cannot be opened
        folder = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def _ledger_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except LedgerError:
        raise
    # The error message of a damaged file may not be UTF-8.
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise LedgerError(
            f"The ledger {path} cannot be used ({error}): {_repair(error, path)}"
        ) from error
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be read or written ({error.strerror}): check the folder, "
            "its permissions and the disk."
        ) from error


def _repair(error: Exception, path: Path) -> str:
    if not path.exists():
        return (
            "there is no such file. Restore it: a new ledger, with epsilon= and "
            "delta=, would not contain the earlier entries."
        )
    text = str(error)
    if "not a database" in text:
        return "the file is not a ledger. Pass another file, or restore the ledger."
    if "locked" in text:
        return (
            f"another process has used the ledger for {SECONDS_TO_WAIT:.0f} s. Try "
            "again."
        )
    if "readonly" in text or "unable to open" in text:
        return (
            "nothing can be charged, so no query was answered. Make the file and its "
            "folder writable for this user."
        )
    if "full" in text or "I/O" in text:
        return "no further query was answered. Free space on the disk and try again."
    return "the file may be damaged. Restore a copy that has every entry."


def rounded_down(value: float) -> float:
    """Round a positive number down to three digits."""
    digits = 2 - math.floor(math.log10(value))
    return math.floor(value * 10.0**digits) / 10.0**digits


def fitting_epsilon(largest: float, excess: Callable[[float], float]) -> float | None:
    """Find an epsilon of three digits within a budget, None if below a tenth.

    `excess` returns the ratio of the cost at an epsilon to what is left: at most 1 if
    it fits.
    """
    epsilon = largest
    while epsilon >= largest / 10:
        epsilon = rounded_down(epsilon)
        ratio = excess(epsilon)
        if ratio <= 1:
            return epsilon
        # As for Gaussian noise; other costs fall more slowly.
        epsilon *= 0.999 / math.sqrt(ratio)
    return None


@dataclass(frozen=True)
class LedgerEntry:
    """Record of one release in a ledger, for auditors.

    An entry must not be published. The cost depends on no private value, but
    fingerprints reveal which fits used equal data. The guarantee does not cover `time`
    and `who`.

    Parameters
    ----------
    number : int
        Number of the entry, from 1.

    time : str
        Time in UTC.

    who : str
        User and machine.

    dataset : str
        Keyed fingerprint of the private rows, or a given name.

    fit : str
        Keyed fingerprint of the inputs that determine the answers, or a given name.

    description : str
        Description of the release and its mechanism.

    epsilon : float
        Epsilon of this release alone at `delta`, exact if the exact cost is known.

    delta : float
        Delta of the (epsilon, delta) guarantee.

    share : float
        Fraction of the budget that the release takes, at most 1, at the Renyi order
        with the most budget left. The fractions of all entries add up to `spent` of the
        ledger.

    Notes
    -----
    The guarantee for all entries together is the budget of the ledger, not the sum of
    `epsilon`. A Renyi filter composes the costs (Feldman and Zrnic 2021); see
    :class:`~sklearn_pate.PrivacyLedger`.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_pate import PrivacyLedger
    >>> from sklearn_pate.mechanisms import GNMax
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=3, delta=1e-6)
    >>> curve = GNMax(sigma=40).cost(n_queries=50, n_classes=2).curve
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
            f"{title}: nothing was charged yet, and 100% is left. The first "
            "entry sets the unit of privacy and the neighbour relation."
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
    paragraphs = (
        "All releases charged here, now and later, are together "
        f"(epsilon={ledger.epsilon!r}, delta={ledger.delta!r})-differentially private. "
        "Neighbouring data sets differ by one change: "
        f"{NEIGHBOURS[unit, relation]}.",
        f"{ledger.spent:.2%} of this budget is spent, in "
        f"{counted(len(entries), 'entry')}, and {1 - ledger.spent:.2%} is left"
        f"{_as_epsilon(ledger, file)}. {WHY_SHARES}",
        f"Estimate, not a guarantee: epsilon={_estimate(ledger, file):.3f} so far, if "
        "no fit was chosen in view of another.",
    )
    wrapped = (textwrap.fill(one, WIDTH, break_on_hyphens=False) for one in paragraphs)
    return "\n\n".join([title, *wrapped, "\n".join(rows)])


def _newest_entry(file: Connection) -> int:
    """Return the number of the last entry, 0 without any."""
    (number,) = file.execute("SELECT COALESCE(MAX(id), 0) FROM charges").fetchone()
    return int(number)


def _as_epsilon(ledger: "PrivacyLedger", file: Connection) -> str:
    """Describe what is left by the epsilon of one more Gaussian release."""
    of_one = ledger.filter.cost(RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS / 2))  # mu = 1
    taken, left = ledger.filter.budget_fractions(of_one, total_costs(file))
    if left <= 0:
        return ""
    epsilon = rounded_down(gdp_epsilon(math.sqrt(left / taken), ledger.delta))
    return f": one release with Gaussian noise of epsilon={epsilon:g} at this delta"


def _estimate(ledger: "PrivacyLedger", file: Connection) -> float:
    """Compute epsilon of all entries together, at the best Renyi order now."""
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


class PrivacyLedger:
    """Durable record of all releases about one sensitive data set, with a budget.

    Every fit with this ledger records its worst-case cost before any noise is drawn. A
    fit that would exceed the budget raises an error, and draws no noise. All releases
    together are (`epsilon`, `delta`)-differentially private, even if results of earlier
    releases determine later releases.

    The file survives crashes. Several processes of one user on one machine may use the
    ledger at once. A fit with equal data, parameters and integer ``random_state`` is
    charged once; a repeated fit returns the stored answers. Equal answers of two fits
    thus reveal that the data of the fits are equal. Before a fit on rows or labels
    prepared in another way, change ``random_state``.

    Parameters
    ----------
    path : str or path-like
        File of the ledger, one for each sensitive data set. Keep the file on a local
        disk, as file locks are unreliable on network drives. Make backups after every
        entry: an older copy lacks later entries.

    epsilon : float, default=None
        Privacy budget of the data set. `epsilon` and `delta` create the file if it does
        not exist, and cannot be changed afterwards. Default: the budget in the file.

    delta : float, default=None
        Delta of the (epsilon, delta) guarantee, well below one over the number of rows.

    orders : array-like of shape (n_orders,), default=None
        Renyi orders at which costs add up, fixed when the file is created. Default: the
        order that admits the most releases with Gaussian noise. With
        several orders, a ledger is better for several kinds of mechanisms, but admits
        slightly fewer releases with Gaussian noise.

    key_file : str or path-like, default=None
        File with the secret key of the fingerprints of data sets and fits, created with
        the ledger. Default: `path` with ".key" added. Do not pass the key on with the
        ledger, as a reader with the key can test guesses about the data.

    Attributes
    ----------
    path : Path
        File of the ledger.

    epsilon : float
        Privacy budget.

    delta : float
        Delta of the (epsilon, delta) guarantee.

    filter : RenyiFilter
        Renyi filter with the limits on the sums of costs.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the file has another budget.

    LedgerError
        If the file cannot be read, written or created, is missing beside its key, or
        was replaced by another ledger. Every method may raise this error.

    Notes
    -----
    The budget is a Renyi filter (Feldman and Zrnic 2021, "Individual privacy accounting
    via a Renyi filter", Theorem 4.3), see
    :class:`~sklearn_pate.accounting.composition.RenyiFilter`. Renyi costs add up at
    orders that are fixed beforehand, for any adaptive choice of fits. The limit at each
    order is the divergence that Proposition 12 of Canonne, Kamath, Steinke (2020)
    converts to the budget. If all costs are pure (delta is 0), a fit is also admitted
    if the sum of their epsilons is within the budget. For example, a fit with a pure
    epsilon of 0.5 takes a sixth of a budget of 3. After the first cost with a positive
    delta, pure releases count by their Renyi costs. The proof is on the page
    :doc:`/proofs/ledger`.

    The first entry is also admitted if its privacy profile (delta at every epsilon) is
    within the budget, so that one fit may use the whole budget. If the Renyi cost of
    the first entry exceeds the budget, no further entry is admitted. If only one pair
    (epsilon, delta) of the first release is known, this delta is subtracted from the
    delta of the budget.

    The first entry determines the unit of privacy and the neighbour relation of a
    ledger. The guarantee assumes that the parameters of each fit were chosen without
    private data, or from earlier releases only. Without the old key file, stored
    answers are not found, and equal fits are charged again.

    The file, `entries`, `report` and `spent` are for the data holder and auditors, not
    for publication. Entries show the user and time of each fit, and which fits used
    equal data. See :doc:`the threat model </threat-model>`.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
    >>> from sklearn_pate.mechanisms import GNMax
    >>> X, y = make_blobs(600, centers=2, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=3, delta=1e-6)
    >>> clf = PATEClassifier(
    ...     LogisticRegression(),
    ...     n_teachers=40,
    ...     mechanism=GNMax(sigma=10),
    ...     n_queries=10,
    ...     epsilon=None,
    ...     ledger=ledger,
    ...     random_state=0,
    ... )
    >>> clf = clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    >>> print(f"{ledger.spent:.0%} of the budget is spent")
    35% of the budget is spent

    The same fit again returns the same answers, at no further cost:

    >>> clf = clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    >>> print(f"{ledger.spent:.0%} in {len(ledger.entries())} entry")
    35% in 1 entry
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: Any,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        orders: ArrayLike | None = None,
        key_file: Any = None,
    ) -> None:
        # Absolute, as workers may have another working directory.
        self.path = _absolute("path", path)
        self._key_file = _absolute(
            "key_file", f"{self.path}.key" if key_file is None else key_file
        )
        if self._key_file == self.path:
            raise ValueError(
                f"key_file={key_file!r} is the ledger itself; choose another file."
            )
        if (epsilon is None) != (delta is None):
            raise ValueError(
                f"epsilon={epsilon!r} and delta={delta!r} together are one budget; "
                "pass both to create a ledger, or neither to open one."
            )
        check_not_lost(self.path, path, self._key_file)
        exists = file_exists(self.path)
        if epsilon is not None and delta is not None:
            wanted = RenyiFilter.for_budget(epsilon, delta, orders)
            epsilon, delta = float(epsilon), float(delta)
            if not exists:
                limits = list(zip(wanted.orders, wanted.limits, strict=True))
                create_once(self.path, epsilon, delta, limits, now())
                make_key(self._key_file)  # tells later that the file was lost
        elif not exists:
            raise LedgerError(
                f"There is no ledger at {self.path}; pass epsilon= and delta= to "
                "create one, or correct the path."
            )
        with transaction(self.path, "DEFERRED") as file:
            self.epsilon, self.delta, self._identity = file.execute(
                "SELECT epsilon, delta, identity FROM budget"
            ).fetchone()
            limits = file.execute(
                "SELECT renyi_order, value FROM limits ORDER BY renyi_order"
            ).fetchall()
        self._newest = 0  # last entry that was read or made
        self.filter = RenyiFilter(*zip(*limits, strict=True))
        if epsilon is not None and (epsilon, delta) != (self.epsilon, self.delta):
            raise ValueError(
                f"epsilon={epsilon!r} and delta={delta!r} differ from the budget of "
                f"{self.path}, which is fixed at {self.epsilon!r} and {self.delta!r}; "
                "leave both out to open this ledger."
            )
        if orders is not None and (
            np.unique(np.asarray(orders, dtype=np.float64)).tolist()
            != [*self.filter.finite_orders]
        ):
            raise ValueError(
                f"orders={orders!r} differ from the Renyi orders of {self.path}, "
                f"which are fixed at {self.filter.finite_orders}; leave them out to "
                "open this ledger."
            )

    def reading(self) -> AbstractContextManager[Connection]:
        """Open the file to read.

        Returns
        -------
        file : context manager of sqlite3.Connection
            All reads inside the block see the same state.
        """
        return self._transaction("DEFERRED")

    def writing(self) -> AbstractContextManager[Connection]:
        """Open the file to read and write, with no other writer at the same time.

        Returns
        -------
        file : context manager of sqlite3.Connection
            Connection in a transaction, written to disk at the end of the block.
        """
        return self._transaction("IMMEDIATE")

    @contextmanager
    def _transaction(
        self, kind: Literal["DEFERRED", "IMMEDIATE"]
    ) -> Iterator[Connection]:
        with transaction(self.path, kind) as file:
            (identity,) = file.execute("SELECT identity FROM budget").fetchone()
            if identity != self._identity:
                raise LedgerError(
                    f"{self.path} now holds another ledger than the one that was "
                    f"opened; open it again: PrivacyLedger({str(self.path)!r})."
                )
            if _newest_entry(file) < self._newest:
                raise LedgerError(
                    f"{self.path} lacks entries that it had before: it was replaced by "
                    "an older copy. Restore a copy that has every entry."
                )
            yield file
            newest = _newest_entry(file)
        self._newest = newest  # after the commit

    @property
    def key(self) -> bytes:
        """Secret key of the fingerprints.

        Returns
        -------
        key : bytes
            Content of the key file, which is created if it does not exist.

        Raises
        ------
        LedgerError
            If the key file cannot be read or created, or its key is too short.
        """
        return make_key(self._key_file)

    @property
    def spent(self) -> float:
        """Fraction of the budget that is spent.

        Returns
        -------
        spent : float
            Sum of all costs, divided by the limit on the sum, at the Renyi order with
            the most budget left. Between 0 and 1, and equal to 1 if the first entry was
            admitted by its privacy profile alone.
        """
        with self.reading() as file:
            spent = 1 - max(self.filter.left(total_costs(file)))
        return min(max(spent, 0.0), 1.0)

    def fits(self, curve: RdpCurve, profile: PrivacyProfile | None = None) -> bool:
        """Check whether a cost is within the remaining budget, without a charge.

        Parameters
        ----------
        curve : RdpCurve
            Worst-case cost.

        profile : PrivacyProfile, default=None
            Privacy profile of the same release, as in :meth:`charge`.

        Returns
        -------
        fits : bool
            True if the cost is within the remaining budget. Another process may still
            charge the ledger first. Unit and relation are not checked.
        """
        with self.reading() as file:
            return admits(self, total_costs(file), entry_cost(self, curve), profile)

    def budget_fractions(self, curve: RdpCurve) -> tuple[float, float]:
        """Return the fraction of the budget that a cost takes, and the fraction left.

        Parameters
        ----------
        curve : RdpCurve
            Worst-case cost.

        Returns
        -------
        taken : float
            Fraction that the cost takes, at the Renyi order that admits the cost most
            often.

        left : float
            Fraction left at this Renyi order, which admits the cost ``left / taken``
            times.
        """
        with self.reading() as file:
            cost = self.filter.cost(curve)
            return self.filter.budget_fractions(cost, total_costs(file))

    def charge(
        self,
        curve: RdpCurve,
        *,
        delta: float,
        unit: str,
        relation: str | None = None,
        description: str,
        dataset: str = "",
        fit: str = "",
        profile: PrivacyProfile | None = None,
        uncovered_delta: float = 0.0,
    ) -> int:
        """Record the cost of a release, before any noise is drawn for it.

        Estimators of this package call this method. Call the method yourself for other
        releases.

        Parameters
        ----------
        curve : RdpCurve
            Worst-case cost, which must not depend on data.

        delta : float
            Delta at which the epsilon of the entry is shown, not the delta of the
            budget.

        unit : {"row", "group", "party"}
            Unit of privacy.

        relation : {"replace-one", "add-remove", "add-remove-or-change"}, default=None
            Neighbour relation of the cost, as in :class:`~sklearn_pate.PrivacySpent`.
            Required for "row" and "group". For "party" there is only one relation.

        description : str
            Description of the release for auditors, in one line without private values.

        dataset : str, default=""
            Name of the data, without private values.

        fit : str, default=""
            Name of the release.

        profile : PrivacyProfile, default=None
            Worst-case privacy profile of this release, such as
            ``privacy_spent_.profile``. An empty ledger also admits a release whose
            profile is within the budget. If its `curve` exceeds the budget, no later
            release is admitted.

        uncovered_delta : float, default=0.0
            Probability with which the release may reveal everything, in addition to the
            cost of `curve`. The ledger subtracts this probability from the delta of the
            budget. Only an empty ledger admits such a release, see
            :class:`~sklearn_pate.accounting.OtherRelease`.

        Returns
        -------
        number : int
            Number of the entry, which is then on disk.

        Raises
        ------
        BudgetExceededError
            If the cost exceeds the remaining budget. Nothing was charged.

        ValueError
            If the ledger has another unit or relation, or a parameter is invalid.

        LedgerError
            If the file cannot be written. Nothing was charged.
        """
        if relation is None:
            relation = _only_relation(unit)
        cost = PrivacyCost(
            curve,
            delta,
            unit,
            relation,
            description,
            dataset,
            fit,
            profile,
            uncovered_delta,
        )
        try:
            with self.writing() as file:
                return enter(self, file, cost)
        except BudgetExceededError as error:
            taken, left = self.budget_fractions(curve)
            if uncovered_delta > 0 or not 0 < taken < np.inf or left <= 0:
                raise
            n_times = rounded_down(left / taken)
            fits = f"{n_times:g} times this cost would fit into this budget"
            epsilon = (curve * n_times).quiet_epsilon(delta)
            if 0 < epsilon < np.inf:
                fits += f", such as a release of epsilon={rounded_down(epsilon):g}"
            raise BudgetExceededError(f"{error} {fits}.") from None

    def entries(self) -> list[LedgerEntry]:
        """List all entries.

        Returns
        -------
        entries : list of LedgerEntry
            Entries in the order of their numbers.
            ``pandas.DataFrame(ledger.entries())`` makes a table.
        """
        with self.reading() as file:
            return read_entries(file, self.filter)

    def report(self) -> str:
        """Describe the ledger in words and a table, for auditors.

        Returns
        -------
        report : str
            The guarantee, the fraction of the budget spent, and one line per entry.
        """
        with self.reading() as file:
            return write_report(self, file)

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return (
            f"PrivacyLedger({str(self.path)!r}, epsilon={self.epsilon!r}, "
            f"delta={self.delta!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivacyLedger):
            return NotImplemented
        return (self.path, self._key_file) == (other.path, other._key_file)

    def __hash__(self) -> int:
        return hash((self.path, self._key_file))

    # clone() and searches copy parameters: every copy must be the same ledger.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _only_relation(unit: str) -> str:
    """Return the neighbour relation of a unit of privacy that has only one."""
    relations = [relation for one, relation in NEIGHBOURS if one == unit]
    if len(relations) != 1:
        raise ValueError(
            f"unit={unit!r} needs a relation, got None; (unit, relation) must be one "
            f"of {[*NEIGHBOURS]}."
        )
    return relations[0]


def _absolute(name: str, path: Any) -> Path:
    try:
        if os.fspath(path):
            return Path(path).resolve()
    except (OSError, RuntimeError, TypeError, ValueError):  # loops of links, NUL
        pass
    raise ValueError(
        f"{name}={path!r} must name a file, such as 'patients.sqlite'; it is created "
        "if it does not exist."
    )


@dataclass(frozen=True)
class Release:
    """Stored answer to one query: a class index or -1, and noisy votes if released."""

    answer: int
    histogram: NDArray[np.int64] | None


class FitEntry:
    """Record the cost of one fit in a ledger, and store its answers.

    Before each draw of noise the ledger must hold, on disk, an entry for all queries of
    the fit that no other process is using; the answers are stored before they are
    returned. So a fit that is killed continues with its stored answers, and is charged
    again if it died between a draw and its storing. Of two equal fits that run at the
    same time, each is charged, and both get the answers that were stored first.

    `cost` is for all `n_queries` queries, and a killed fit is found by its `fit`;
    `remedy` returns advice if it exceeds the budget.
    """

    def __init__(
        self,
        ledger: PrivacyLedger,
        cost: PrivacyCost,
        n_queries: int,
        remedy: Callable[[], str],
    ) -> None:
        self._ledger = ledger
        self._cost = cost
        self._n_queries = n_queries
        self._remedy = remedy
        self._number: int | None = None

    @classmethod
    def of_statement(
        cls,
        ledger: PrivacyLedger,
        spent: PrivacySpent,
        n_queries: int,
        *,
        description: str,
        dataset: str,
        fit: str,
        remedy: Callable[[], str],
    ) -> Self:
        """Return the entry of a stated cost, or raise if it exceeds the budget."""
        given = spent.curve, spent.delta, spent.unit, spent.relation
        cost = PrivacyCost(*given, description, dataset, fit, spent.profile)
        entry = cls(ledger, cost, n_queries, remedy)
        entry.check()
        return entry

    def check(self) -> None:
        """Raise unless the fit has an entry or a cost within the budget. No charge."""
        with self._advised(), self._ledger.reading() as file:
            is_done = len(self._stored(file)) >= self._n_queries
            if not is_done and self._unused(file, 0) is None:
                check_cost(self._ledger, file, self._cost)

    def open(self, n_new: int) -> int:
        """Record the cost of `n_new` queries on disk, unless an entry covers them.

        Returns the number of answers from votes that were given on this entry before.
        """
        with self._advised(), self._ledger.writing() as file:
            unused = self._unused(file, n_new)
            if unused is not None:
                self._number, n_given = unused
                file.execute(
                    "UPDATE draws SET pending = 1 WHERE charge = ?", (self._number,)
                )
                return n_given
            self._number = self._enter(file, pending=True)
        return 0

    def _enter(self, file: Connection, *, pending: bool) -> int:
        """Record the cost of all queries, and return the number of the entry."""
        number = enter(self._ledger, file, self._cost)
        file.execute(
            "INSERT INTO draws VALUES (?, ?, ?, 0, 0)",
            (number, self._cost.fit, int(pending)),
        )
        return number

    def keep(self, rows: NDArray[np.intp], drawn: Any) -> dict[int, Release]:
        """Store the answers drawn for queries `rows`; return the stored ones by query.

        These may differ from `drawn`, a `Response`: the answers stored first are kept.
        Only these may be used. If storing fails, `drawn` must be discarded.
        """
        histograms = (
            [None] * len(rows) if drawn.histograms is None else drawn.histograms
        )
        lines = zip(rows.tolist(), drawn.answers.tolist(), histograms, strict=True)
        with self._ledger.writing() as file:
            file.executemany(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)",
                [(self._cost.fit, *line[:2], _to_blob(line[2])) for line in lines],
            )
            file.execute(
                "UPDATE draws SET pending = 0, n_drawn = n_drawn + ?, "
                "n_given = n_given + ? WHERE charge = ?",
                (len(rows), drawn.n_given, self._number),
            )
            stored = self._stored(file)
        return {row: stored[row] for row in rows.tolist()}

    def stored(self) -> dict[int, Release]:
        """Read all stored answers of this fit, by query."""
        with self._ledger.reading() as file:
            return self._stored(file)

    def _unused(self, file: Connection, n_new: int) -> tuple[int, int] | None:
        """Find an entry of this fit with n_new queries left, its own entry first.

        Entries on which another process is drawing are left out.
        """
        return file.execute(
            "SELECT charge, n_given FROM draws JOIN charges ON charge = id "
            "WHERE draws.fit = ? AND NOT pending AND n_drawn + ? <= ? "
            # The fit must cost now what was charged for it then.
            "AND orders = ? AND curve = ? ORDER BY charge != ?, charge",
            (
                self._cost.fit,
                n_new,
                self._n_queries,
                *curve_to_bytes(self._cost.curve),
                self._number,
            ),
        ).fetchone()

    @contextmanager
    def _advised(self) -> Iterator[None]:
        # Outside of the transaction: computing the advice takes seconds.
        try:
            yield
        except BudgetExceededError as error:
            raise BudgetExceededError(f"{error} {self._remedy()}".rstrip()) from None

    def _stored(self, file: Connection) -> dict[int, Release]:
        return {
            row: Release(answer, None if blob is None else np.frombuffer(blob, "<i8"))
            for row, answer, blob in file.execute(
                "SELECT row, answer, histogram FROM answers WHERE fit = ?",
                (self._cost.fit,),
            )
        }


def _to_blob(histogram: NDArray[np.int64] | None) -> bytes | None:
    return None if histogram is None else np.asarray(histogram, "<i8").tobytes()

"""Entries of a ledger, and their file."""

import datetime
import getpass
import os
import platform
import secrets
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._neighbours import check_neighbours
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import RdpCurve, check_delta
from sklearn_pate.accounting._value_checks import (
    check_number,
    control_character,
    counted,
    printable,
    read_text,
)
from sklearn_pate.exceptions import BudgetExceededError, LedgerError

if TYPE_CHECKING:
    from sklearn_pate.accounting._ledger import PrivacyLedger


_Array = NDArray[np.float64]
# "PATE", and the version of the tables.
APPLICATION_ID = int.from_bytes(b"PATE")
FORMAT_VERSION = 3
# Other processes lock the file for milliseconds each. SQLite counts its tries, 0.1 s
# apart: on a busy machine, where a try takes longer, it waits for longer.
SECONDS_TO_WAIT = 60.0
KEY_BYTES = 32

TABLES = read_text("sklearn_pate.accounting", "ledger.sql")


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

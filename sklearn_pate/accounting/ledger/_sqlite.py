"""SQLite file of a ledger: one transaction per step, on disk before it returns."""

import os
import secrets
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from sklearn_pate.accounting._counted import counted
from sklearn_pate.exceptions import LedgerError

__all__ = ["create_once", "file_exists", "make_key", "transaction"]

# "PATE", and the version of the tables below.
APPLICATION_ID = int.from_bytes(b"PATE")
FORMAT_VERSION = 3
# Other processes lock the file for milliseconds each.
SECONDS_TO_WAIT = 60.0
KEY_BYTES = 32

TABLES = """
CREATE TABLE budget (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    unit TEXT,
    relation TEXT,
    created TEXT NOT NULL,
    identity TEXT NOT NULL
);
-- `spent` is the exact sum of all costs, as a fraction: a charge reads no other entry.
CREATE TABLE limits (
    renyi_order REAL PRIMARY KEY,
    value REAL NOT NULL CHECK (value > 0),
    spent TEXT NOT NULL DEFAULT '0'
);
CREATE TABLE charges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    dataset TEXT NOT NULL,
    fit TEXT NOT NULL,
    description TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    orders BLOB NOT NULL,
    curve BLOB NOT NULL
);
CREATE TABLE costs (
    charge INTEGER NOT NULL REFERENCES charges (id),
    renyi_order REAL NOT NULL REFERENCES limits (renyi_order),
    value REAL NOT NULL CHECK (value >= 0),
    PRIMARY KEY (charge, renyi_order)
);
-- Draws on an entry of a fit. `pending` is set from before a draw until its answers are
-- stored: no other process draws on an entry that is pending.
CREATE TABLE draws (
    charge INTEGER PRIMARY KEY REFERENCES charges (id),
    fit TEXT NOT NULL,
    pending INTEGER NOT NULL,
    n_drawn INTEGER NOT NULL,
    n_given INTEGER NOT NULL
);
CREATE INDEX draws_of_fit ON draws (fit);
CREATE TABLE answers (
    fit TEXT NOT NULL,
    row INTEGER NOT NULL,
    answer INTEGER NOT NULL,
    histogram BLOB,
    PRIMARY KEY (fit, row)
) WITHOUT ROWID;
"""


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


def make_key(path: Path) -> bytes:
    """Read the secret key of the fingerprints, or create it for this user only."""
    with _ledger_errors(path):
        if not path.exists():
            key = secrets.token_bytes(KEY_BYTES)
            _create(path, lambda unfinished: unfinished.write_bytes(key))
        key = path.read_bytes()
    if len(key) < KEY_BYTES:
        raise LedgerError(
            f"The key file {path} has {counted(len(key), 'byte')}, and a key needs "
            f"{KEY_BYTES}; "
            "put the old key back, or remove the file to create a new key (fits under "
            "the old key are then charged again)."
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
            f"{path} is no ledger; name another file, or put the ledger back."
        )
    if version != FORMAT_VERSION:
        raise LedgerError(
            f"The ledger {path} has format {version}, and this version of sklearn_pate "
            f"reads {FORMAT_VERSION}; use the version that wrote it."
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
            f"The ledger {path} cannot be used ({error}): {_remedy(error, path)}"
        ) from error
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be read or written ({error.strerror}): check the folder, "
            "its permissions and the disk."
        ) from error


def _remedy(error: Exception, path: Path) -> str:
    if not path.exists():
        return (
            "there is no such file. Put it back; a new one, with epsilon= and delta=, "
            "would not contain the earlier entries."
        )
    text = str(error)
    if "not a database" in text:
        return "it is no ledger. Name another file, or put the ledger back."
    if "locked" in text:
        return f"another process has held it for {SECONDS_TO_WAIT:.0f} s. Try again."
    if "readonly" in text or "unable to open" in text:
        return (
            "nothing can be charged, so no query was answered. Make the file and its "
            "folder writable for this user."
        )
    if "full" in text or "I/O" in text:
        return "no further query was answered. Free space on the disk and try again."
    return "it may be damaged. Put back a copy that has every entry."

"""The file of a ledger: SQLite, one transaction a step, on disk before it returns."""

import os
import secrets
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sklearn_pate.exceptions import LedgerError

__all__ = ["create_once", "is_there", "make_key", "reading", "writing"]

# "PATE", and the version of what is in the tables below.
APPLICATION_ID = int.from_bytes(b"PATE")
FORMAT_VERSION = 2
# Others hold the file for milliseconds each.
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
CREATE TABLE limits (
    renyi_order REAL PRIMARY KEY,
    value REAL NOT NULL CHECK (value > 0)
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
-- What was drawn on a charge of a fit. `pending` is set from before a draw until its
-- answers are stored: on a charge that is found pending nobody else draws.
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
    """Create the file of a ledger, whole or not at all, unless there is one.

    Parameters
    ----------
    path : Path
        Where.

    epsilon, delta : float
        The budget.

    limits : iterable of (float, float)
        Renyi orders and how much charges may add up to at each.

    created : str
        The time, for people to read.

    Raises
    ------
    LedgerError
        If it cannot be written.
    """

    def fill(unfinished):
        with _connected(unfinished) as connection, _transaction(connection):
            for statement in TABLES.split(";")[:-1]:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO budget VALUES (1, ?, ?, NULL, NULL, ?, ?)",
                (epsilon, delta, created, secrets.token_hex(16)),
            )
            connection.executemany("INSERT INTO limits VALUES (?, ?)", limits)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")

    with _explained(path):
        _appear(path, fill)


def is_there(path: Path) -> bool:
    """Tell whether there is a file.

    Parameters
    ----------
    path : Path
        Where.

    Returns
    -------
    exists : bool
        Whether it is a ledger is another matter.

    Raises
    ------
    LedgerError
        If it is a folder, or nobody can tell.
    """
    with _explained(path):
        if path.is_dir():
            raise LedgerError(f"{path} is a folder; name a file in it.")
        if not path.parent.is_dir():
            raise LedgerError(f"There is no folder {path.parent}; create it first.")
        return path.exists()


def make_key(path: Path) -> bytes:
    """Read the key of the fingerprints, which only this user can; made once.

    Parameters
    ----------
    path : Path
        Its file.

    Returns
    -------
    key : bytes
        What is in the file, 32 random bytes if it was made here.

    Raises
    ------
    LedgerError
        If it cannot be read or written, or is too short.
    """
    with _explained(path):
        if not path.exists():
            key = secrets.token_bytes(KEY_BYTES)
            _appear(path, lambda unfinished: unfinished.write_bytes(key))
        key = path.read_bytes()
    if len(key) < KEY_BYTES:
        raise LedgerError(
            f"The key file {path} has {len(key)} bytes, and a key needs {KEY_BYTES}; "
            "put the old one back, or remove it to make a new one (what was charged "
            "under the old one is then charged again)."
        )
    return key


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file of a ledger to read.

    Parameters
    ----------
    path : Path
        The file.

    Yields
    ------
    connection : sqlite3.Connection
        All its queries see the same state.

    Raises
    ------
    LedgerError
        If the file is missing, locked for long, or no ledger.
    """
    with (
        _explained(path),
        _connected(path) as connection,
        _transaction(connection, "DEFERRED"),
    ):
        _check_format(connection, path)
        yield connection


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file of a ledger to read and write, with nobody else writing.

    Parameters
    ----------
    path : Path
        The file.

    Yields
    ------
    connection : sqlite3.Connection
        In a transaction, which is on disk once the block has ended. After an error
        nothing was written.

    Raises
    ------
    LedgerError
        If the file is missing, read-only, locked for long, or no ledger, or the disk is
        full.
    """
    with _explained(path), _connected(path) as connection, _transaction(connection):
        _check_format(connection, path)
        yield connection


@contextmanager
def _connected(path):
    # Never across a fork, and never creating: a connection for each transaction.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=SECONDS_TO_WAIT,
        isolation_level=None,
    )
    try:
        # Not a write-ahead log, which is lost if its own file is left behind. EXTRA: a
        # commit also survives a power cut that undoes the removal of the journal.
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # macOS keeps its word with this
        connection.execute("PRAGMA foreign_keys = ON")
        yield connection
    finally:
        connection.close()


@contextmanager
def _transaction(connection, kind="IMMEDIATE"):
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_format(connection, path):
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


def _appear(path, fill):
    """Make a file that is complete from the moment it can be seen; leave an old one."""
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
def _explained(path):
    try:
        yield
    except LedgerError:
        raise
    # Of a damaged file, the message of an error may not be UTF-8.
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise LedgerError(
            f"The ledger {path} cannot be used ({error}): {_remedy(error, path)}"
        ) from error
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be read or written ({error.strerror}): check the folder, "
            "its permissions and the disk."
        ) from error


def _remedy(error, path):
    if not path.exists():
        return (
            "there is no such file. Put it back; a new one, with epsilon= and delta=, "
            "would forget what was charged."
        )
    text = str(error)
    if "not a database" in text:
        return "it is no ledger. Name another file, or put the ledger back."
    if "locked" in text:
        return f"another process has held it for {SECONDS_TO_WAIT:.0f} s. Try again."
    if "readonly" in text or "unable to open" in text:
        return (
            "nothing can be charged, so nothing was asked. Make the file and its "
            "folder writable for this user."
        )
    if "full" in text or "I/O" in text:
        return "nothing more was asked. Make room on the disk and try again."
    return "it may be damaged. Put back a copy that has every charge."

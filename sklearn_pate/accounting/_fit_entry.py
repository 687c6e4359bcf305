"""Ledger entry of one fit: its cost before any noise, and its stored answers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._entries import (
    PrivacyCost,
    check_cost,
    curve_to_bytes,
    enter,
)
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.exceptions import BudgetExceededError


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
            self._number = enter(self._ledger, file, self._cost)
            file.execute(
                "INSERT INTO draws VALUES (?, ?, 1, 0, 0)",
                (self._number, self._cost.fit),
            )
        return 0

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

"""Ledger entry of one fit: its charge before the noise, its answers after it."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting.ledger._entries import (
    PrivacyCost,
    blobs,
    check_cost,
    enter,
)
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.exceptions import BudgetExceededError

__all__ = ["FitEntry", "Release"]


@dataclass(frozen=True)
class Release:
    """An answer that was paid for and stored.

    Parameters
    ----------
    answer : int
        A class index, or -1 for no answer.

    histogram : ndarray of int of shape (n_classes,) or None
        Noisy votes, where they are released.
    """

    answer: int
    histogram: NDArray[np.int64] | None


class FitEntry:
    """Pays for the queries of one fit, and keeps its answers.

    Before each draw of noise the fit must have, on disk, a charge for all its queries
    on which nobody else is drawing, and after it the answers are stored before anybody
    sees them. So a fit that is killed goes on with the answers that were stored, and
    pays again if it died between a draw and its storing. Of two fits that are the same
    and run at the same time, each pays, and both get the answers that were stored
    first.

    Parameters
    ----------
    ledger : PrivacyLedger
        Where.

    cost : PrivacyCost
        Of all its queries. Its `fit` is what a killed fit is found by.

    n_queries : int
        How many queries that is.

    remedy : callable
        Says what would fit, if this does not.
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
        self._charge: int | None = None

    def check(self) -> None:
        """Raise unless the fit is paid for, or could be. Charges nothing.

        Raises
        ------
        BudgetExceededError
            If its cost does not fit the budget.
        """
        with self._advised(), self._ledger.reading() as file:
            is_done = len(self._stored(file)) >= self._n_queries
            if not is_done and self._free(file, 0) is None:
                check_cost(self._ledger, file, self._cost)

    def open(self, n_new: int) -> int:
        """Make sure that a draw is paid for, on disk.

        Parameters
        ----------
        n_new : int
            Queries in it.

        Returns
        -------
        n_given : int
            Answers from votes that were given on this charge before.

        Raises
        ------
        BudgetExceededError
            If a charge is needed and does not fit the budget.

        LedgerError
            If it cannot be written.
        """
        with self._advised(), self._ledger.writing() as file:
            free = self._free(file, n_new)
            if free is not None:
                self._charge, n_given = free
                file.execute(
                    "UPDATE draws SET pending = 1 WHERE charge = ?", (self._charge,)
                )
                return n_given
            self._charge = enter(self._ledger, file, self._cost)
            file.execute(
                "INSERT INTO draws VALUES (?, ?, 1, 0, 0)",
                (self._charge, self._cost.fit),
            )
        return 0

    def keep(self, rows: NDArray[np.intp], drawn: Any) -> dict[int, Release]:
        """Store what was drawn, and return what is now stored for these queries.

        Parameters
        ----------
        rows : ndarray of int of shape (n_new,)
            Queries.

        drawn : Response
            Answers to them.

        Returns
        -------
        releases : dict of int to Release
            What was stored first. Only this may be seen.

        Raises
        ------
        LedgerError
            If it cannot be written; what was drawn must not be seen.
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
                (len(rows), drawn.n_given, self._charge),
            )
            stored = self._stored(file)
        return {row: stored[row] for row in rows.tolist()}

    def stored(self) -> dict[int, Release]:
        """Read all answers of this fit that are stored.

        Returns
        -------
        releases : dict of int to Release
            By query.
        """
        with self._ledger.reading() as file:
            return self._stored(file)

    def _free(self, file, n_new):
        """Find a charge of this fit with room on which nobody draws, its own first."""
        return file.execute(
            "SELECT charge, n_given FROM draws JOIN charges ON charge = id "
            "WHERE draws.fit = ? AND NOT pending AND n_drawn + ? <= ? "
            # What the fit costs now must be what was paid for it then.
            "AND orders = ? AND curve = ? ORDER BY charge != ?, charge",
            (
                self._cost.fit,
                n_new,
                self._n_queries,
                *blobs(self._cost.curve),
                self._charge,
            ),
        ).fetchone()

    @contextmanager
    def _advised(self):
        # Outside of the transaction: what fits takes seconds to find out.
        try:
            yield
        except BudgetExceededError as error:
            raise BudgetExceededError(f"{error} {self._remedy()}".rstrip()) from None

    def _stored(self, file):
        return {
            row: Release(answer, None if blob is None else np.frombuffer(blob, "<i8"))
            for row, answer, blob in file.execute(
                "SELECT row, answer, histogram FROM answers WHERE fit = ?",
                (self._cost.fit,),
            )
        }


def _to_blob(histogram):
    return None if histogram is None else np.asarray(histogram, "<i8").tobytes()

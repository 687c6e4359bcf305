"""One fit at its ledger: the charge before the noise, the answers after it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting.entries import Price, check_price, enter
from sklearn_pate.accounting.ledger import PrivacyLedger
from sklearn_pate.accounting.ledger_file import reading, writing

__all__ = ["FitAccount", "Release"]


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


class FitAccount:
    """Pays for the questions of one fit, and keeps its answers.

    Before each draw of noise the fit must have, on disk, a charge for all its questions
    on which nobody else is drawing, and after it the answers are stored before anybody
    sees them. So a fit that is killed goes on with the answers that were stored, and
    pays again if it died between a draw and its storing. Of two fits that are the same
    and run at the same time, each pays, and both get the answers that were stored
    first.

    Parameters
    ----------
    ledger : PrivacyLedger
        Where.

    price : Price
        Of all its questions. Its `fit` is what a killed fit is found by.

    n_queries : int
        How many questions that is.
    """

    def __init__(self, ledger: PrivacyLedger, price: Price, n_queries: int) -> None:
        self._ledger = ledger
        self._price = price
        self._n_queries = n_queries
        self._charge: int | None = None

    def check(self) -> None:
        """Raise unless the fit is paid for, or could be. Charges nothing.

        Raises
        ------
        BudgetExceededError
            If its price does not fit the budget.
        """
        with reading(self._ledger.path) as file:
            if self._state(file) is None:
                check_price(self._ledger, file, self._price)

    def open(self, n_new: int) -> int:
        """Make sure that a draw is paid for, on disk.

        Parameters
        ----------
        n_new : int
            Questions in it.

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
        with writing(self._ledger.path) as file:
            state = self._state(file)
            if state is not None:
                self._charge, pending, n_drawn, n_given = state
                if not pending and n_drawn + n_new <= self._n_queries:
                    file.execute(
                        "UPDATE fits SET pending = 1 WHERE fit = ?", (self._price.fit,)
                    )
                    return n_given
            self._charge = enter(self._ledger, file, self._price)
            file.execute(
                "INSERT INTO fits VALUES (?, ?, 1, 0, 0) ON CONFLICT (fit) DO UPDATE "
                "SET charge = excluded.charge, pending = 1, n_drawn = 0, n_given = 0",
                (self._price.fit, self._charge),
            )
        return 0

    def keep(self, rows: NDArray[np.intp], drawn: Any) -> dict[int, Release]:
        """Store what was drawn, and return what is now stored for these questions.

        Parameters
        ----------
        rows : ndarray of int of shape (n_new,)
            Questions.

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
        with writing(self._ledger.path) as file:
            file.executemany(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)",
                [(self._price.fit, *line[:2], _to_blob(line[2])) for line in lines],
            )
            # Somebody else may have paid for the same fit in between.
            file.execute(
                "UPDATE fits SET pending = 0, n_drawn = n_drawn + ?, "
                "n_given = n_given + ? WHERE fit = ? AND charge = ?",
                (len(rows), drawn.n_given, self._price.fit, self._charge),
            )
            stored = self._stored(file)
        return {row: stored[row] for row in rows.tolist()}

    def stored(self) -> dict[int, Release]:
        """Read all answers of this fit that are stored.

        Returns
        -------
        releases : dict of int to Release
            By question.
        """
        with reading(self._ledger.path) as file:
            return self._stored(file)

    def _state(self, file):
        return file.execute(
            "SELECT charge, pending, n_drawn, n_given FROM fits WHERE fit = ?",
            (self._price.fit,),
        ).fetchone()

    def _stored(self, file):
        return {
            row: Release(answer, None if blob is None else np.frombuffer(blob, "<i8"))
            for row, answer, blob in file.execute(
                "SELECT row, answer, histogram FROM answers WHERE fit = ?",
                (self._price.fit,),
            )
        }


def _to_blob(histogram):
    return None if histogram is None else np.asarray(histogram, "<i8").tobytes()

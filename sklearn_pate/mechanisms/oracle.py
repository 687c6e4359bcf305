"""The turnstile: first the charge, then the answer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.exceptions import BudgetExceededError
from sklearn_pate.mechanisms.noise import NoiseSource

__all__ = ["Oracle", "Transcript"]


@dataclass(frozen=True)
class Transcript:
    """What was asked and what was released, all of it paid for.

    Parameters
    ----------
    rows : ndarray of int of shape (n_asked,)
        Public rows.

    answers : ndarray of int of shape (n_asked,)
        Class indices, -1 for no answer.

    probabilities : ndarray of shape (n_asked, n_classes) or None
        The student's, where the mechanism needs them.

    histograms : ndarray of int of shape (n_asked, n_classes) or None
        Noisy votes, where they are released.
    """

    rows: NDArray[np.intp]
    answers: NDArray[np.intp]
    probabilities: NDArray[np.float64] | None
    histograms: NDArray[np.int64] | None


class Oracle:
    """Answers questions about public rows, each row once, within a fixed budget.

    Parameters
    ----------
    votes : Votes
        The sealed votes.

    mechanism : Mechanism
        Ready to answer, see :meth:`Mechanism.prepared`.

    n_queries : int
        How many distinct rows may be asked about. Their price is fixed here, before
        anything is asked.

    account : FitAccount, default=None
        Where their price is charged, before any noise is drawn, and the answers are
        kept, before anybody sees them.

    Attributes
    ----------
    curve : RdpCurve
        Price of all `n_queries` questions, whatever the votes.

    n_charged : int
        Questions charged so far.
    """

    def __init__(self, votes, mechanism, *, n_queries, account=None):
        self._votes = votes
        self._mechanism = mechanism
        self._account = account
        self._stored = {} if account is None else account.stored()
        self._noise = NoiseSource(mechanism.noise_seed)
        self._answer_of = {}
        self._probabilities = []
        self._histograms = []
        self._answers_left = mechanism.answer_cap(n_queries)
        self._n_queries = n_queries
        self.n_charged = 0
        self.curve = mechanism.charged_curve(n_queries, votes.n_classes)

    def ask(self, rows, probabilities=None):
        """Ask about public rows.

        A row that was asked before gets its old answer, "no answer" included, and is
        not charged again.

        Parameters
        ----------
        rows : array-like of int of shape (n_queries,)
            Public rows.

        probabilities : array-like of shape (n_queries, n_classes), default=None
            The student's class probabilities, for a mechanism that needs them. A row is
            not asked twice, even if the student has changed its mind.

        Returns
        -------
        answers : ndarray of int of shape (n_queries,)
            Class indices, -1 for no answer.

        Raises
        ------
        BudgetExceededError
            If the new questions do not all fit the budget; then none is asked.
        LedgerError
            If the ledger cannot be written; then nothing is returned.
        IndexError
            If there is no such row; then none is asked.
        ValueError
            If `probabilities` are missing, no probabilities, or of no use; then none is
            asked.
        """
        rows = np.asarray(rows, dtype=np.intp)
        n_public = self._votes.shape[1]
        if rows.size and not 0 <= rows.min() <= rows.max() < n_public:
            raise IndexError(
                f"rows must lie in 0..{n_public - 1}, the public rows; got "
                f"{rows.min()}..{rows.max()}."
            )
        _, first = np.unique(rows, return_index=True)
        is_new = np.zeros(len(rows), dtype=bool)
        is_new[first] = [row not in self._answer_of for row in rows[first].tolist()]
        asked = self._check_asked(probabilities, rows, is_new)
        self._charge(np.count_nonzero(is_new))
        if np.any(is_new):
            new = rows[is_new]
            answers, histograms = self._answer(new, asked)
            self._answer_of.update(zip(new.tolist(), answers.tolist(), strict=True))
            self._probabilities.extend(asked.values())
            if histograms is not None:
                self._histograms.append(histograms)
        return np.array([self._answer_of[row] for row in rows.tolist()], dtype=np.intp)

    def _check_asked(self, probabilities, rows, is_new):
        if not self._mechanism.needs_probabilities:
            if probabilities is None:
                return {}
            raise ValueError(
                f"probabilities are of no use to {self._mechanism!r}; leave them out."
            )
        shape = len(rows), self._votes.n_classes
        checked = self._mechanism.check_probabilities(probabilities, shape)
        return {"probabilities": checked[is_new]}

    def _answer(self, rows, asked):
        if self._account is None:
            drawn = self._draw(rows, asked)
            return drawn.answers, drawn.histograms
        is_unknown = np.array([row not in self._stored for row in rows.tolist()])
        if np.any(is_unknown):
            unknown = rows[is_unknown]
            n_given = self._account.open(len(unknown))
            self._answers_left = self._mechanism.answer_cap(self._n_queries) - n_given
            drawn = self._draw(
                unknown, {name: value[is_unknown] for name, value in asked.items()}
            )
            self._stored |= self._account.keep(unknown, drawn)
        kept = [self._stored[row] for row in rows.tolist()]
        histograms = None
        if self._mechanism.releases_histograms:
            histograms = np.array([one.histogram for one in kept])
        return np.array([one.answer for one in kept], dtype=np.intp), histograms

    def _draw(self, rows, asked):
        response = self._mechanism.respond(
            self._votes.counts(rows), self._noise, self._answers_left, **asked
        )
        self._answers_left -= response.n_given
        return response

    def _charge(self, n_new):
        left = self._n_queries - self.n_charged
        if n_new > left:
            raise BudgetExceededError(
                f"{n_new} new questions were asked but only {left} of "
                f"{self._n_queries} are left; ask at most {left}."
            )
        # The charge comes first: a crash after it may lose answers, never a charge.
        self.n_charged += n_new

    def transcript(self):
        """Return everything that was asked and released so far.

        Returns
        -------
        transcript : Transcript
            In the order in which it was asked.
        """
        rows, answers = (
            np.array(list(values), dtype=np.intp)
            for values in (self._answer_of.keys(), self._answer_of.values())
        )
        return Transcript(
            rows,
            answers,
            np.concatenate(self._probabilities) if self._probabilities else None,
            np.concatenate(self._histograms) if self._histograms else None,
        )

    def __repr__(self):
        return f"Oracle(n_charged={self.n_charged}, n_queries={self._n_queries})"

    def __reduce_ex__(self, protocol):
        raise TypeError("An Oracle holds sensitive votes and cannot be pickled.")

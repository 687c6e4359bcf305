"""Answers to queries on vote counts, within a fixed budget."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.exceptions import BudgetExceededError
from sklearn_pate.mechanisms._mechanism import AccountedMechanism
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["Oracle", "Transcript", "VoteCounts"]


class VoteCounts(Protocol):
    """Container of vote counts, or of sums. Sensitive."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of teachers and of rows that a query can be about."""

    @property
    def n_classes(self) -> int:
        """Number of values of a query."""

    def counts(self, rows: ArrayLike) -> NDArray[Any]:
        """Return the counts of some rows, one query a row."""


@dataclass(frozen=True)
class Transcript:
    """What was asked and what was released, all of it paid for.

    All of it may be published, at the cost of the
    :class:`~sklearn_pate.mechanisms.Oracle` that it comes from.

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

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate import Votes
    >>> from sklearn_pate.mechanisms import GNMax, Oracle
    >>> votes = Votes(100 * [np.array([0, 1, 1])], n_public=3, n_classes=2)
    >>> oracle = Oracle(votes, GNMax(sigma=5), n_queries=3)
    >>> first = oracle.ask([2])
    >>> more = oracle.ask([0, 2])  # row 2 is not asked twice
    >>> transcript = oracle.transcript()
    >>> transcript.rows, transcript.answers
    (array([2, 0]), array([1, 0]))
    >>> transcript.histograms is None
    True
    """

    rows: NDArray[np.intp]
    answers: NDArray[np.intp]
    probabilities: NDArray[np.float64] | None
    histograms: NDArray[np.int64] | None


class Oracle:
    """Answers queries about public rows, each row once, within a fixed budget.

    It holds sensitive votes, and cannot be pickled. What it answers may be published,
    at the cost of `curve`, however each query was chosen in view of the answers
    before it.

    Parameters
    ----------
    votes : Votes
        The vote counts. Sensitive.

    mechanism : Mechanism
        Ready to answer, see :meth:`Mechanism.prepared`.

    n_queries : int
        How many distinct rows may be asked about. Their cost is fixed here, before
        anything is asked; asking fewer makes nothing cheaper.

    entry : FitEntry, default=None
        Where their cost is charged, before any noise is drawn, and the answers are
        kept, before anybody sees them. None charges no ledger: what is asked is then
        for the caller to account for.

    Attributes
    ----------
    curve : RdpCurve
        Privacy cost of all `n_queries`, whatever the votes: infinite if the noise is
        seeded. May be published.

    n_charged : int
        Queries charged so far.

    Raises
    ------
    ValueError
        If the noise parameters of `mechanism` are not set or out of range.

    LedgerError
        If the ledger of `entry` cannot be read.

    Warns
    -----
    PrivacyLeakWarning
        If the noise of `mechanism` is seeded.

    Notes
    -----
    Worst-case Renyi costs of queries add up however the next query was chosen
    (Mironov 2017, "Renyi differential privacy", Proposition 1), and an answer that is
    given again is post-processing, which costs nothing. See :doc:`What an answer costs
    </accounting>`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate import BudgetExceededError, Votes
    >>> from sklearn_pate.mechanisms import GNMax, Oracle
    >>> votes = Votes(100 * [np.array([0, 1, 1])], n_public=3, n_classes=2)
    >>> oracle = Oracle(votes, GNMax(sigma=10), n_queries=2)
    >>> round(oracle.curve.to_epsilon(1e-5), 2)
    0.69
    >>> oracle.ask([1, 0])
    array([1, 0])
    >>> try:
    ...     oracle.ask([0, 2])
    ... except BudgetExceededError as error:
    ...     print(error)
    1 new queries were asked but only 0 of 2 are left; ask at most 0.
    """

    def __init__(
        self,
        votes: VoteCounts,
        mechanism: AccountedMechanism,
        *,
        n_queries: int,
        entry: FitEntry | None = None,
    ) -> None:
        self._votes = votes
        self._mechanism = mechanism
        self._entry = entry
        self._stored = {} if entry is None else entry.stored()
        self._noise = NoiseSource(mechanism.noise_seed)
        self._answer_of: dict[int, int] = {}
        self._probabilities: list[NDArray[np.float64]] = []
        self._histograms: list[NDArray[np.int64]] = []
        self._answers_left = mechanism.answer_cap(n_queries)
        self._n_queries = n_queries
        self.n_charged = 0
        self.curve = mechanism.stated_curve(n_queries, votes.n_classes)

    def ask(self, rows, probabilities=None):
        """Ask about public rows.

        A row that was asked before gets its old answer, "no answer" included, and is
        not charged again.

        Parameters
        ----------
        rows : array-like of int of shape (n_queries,)
            Public rows.

        probabilities : array-like of shape (n_queries, n_classes), default=None
            The student's class probabilities, for a mechanism that needs them. They may
            depend on earlier answers, but on no private value. A row is not asked
            twice, even if the student has changed its mind.

        Returns
        -------
        answers : ndarray of int of shape (n_queries,)
            Class indices, -1 for no answer. Paid for.

        Raises
        ------
        BudgetExceededError
            If the new queries do not all fit the budget; then none is asked.

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
        if self._entry is None:
            drawn = self._draw(rows, asked)
            return drawn.answers, drawn.histograms
        is_unknown = np.array([row not in self._stored for row in rows.tolist()])
        if np.any(is_unknown):
            unknown = rows[is_unknown]
            n_given = self._entry.open(len(unknown))
            self._answers_left = self._mechanism.answer_cap(self._n_queries) - n_given
            drawn = self._draw(
                unknown, {name: value[is_unknown] for name, value in asked.items()}
            )
            self._stored |= self._entry.keep(unknown, drawn)
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
                f"{n_new} new queries were asked but only {left} of "
                f"{self._n_queries} are left; ask at most {left}."
            )
        # The charge comes first: a crash after it may lose answers, never a charge.
        self.n_charged += n_new

    def transcript(self):
        """Return everything that was asked and released so far.

        Returns
        -------
        transcript : Transcript
            In the order in which it was asked. May be published, at the cost of
            `curve`.
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

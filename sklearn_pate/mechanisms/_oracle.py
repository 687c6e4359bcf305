"""Answers to queries on vote counts, within a fixed budget."""

from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._ledger import FitEntry
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.exceptions import BudgetExceededError
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._plurality import Mechanism, Response


class VoteCounts(Protocol):
    """Container of vote counts, or of sums of vectors. Sensitive."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of teachers, and number of rows that can be queried."""

    @property
    def n_classes(self) -> int:
        """Number of values of a query."""

    def counts(self, rows: ArrayLike) -> NDArray[Any]:
        """Return the counts of queries, one row each."""


@dataclass(frozen=True)
class Transcript:
    """Queries and their noisy answers.

    A transcript may be published, at the privacy cost of the
    :class:`~sklearn_pate.mechanisms.Oracle` that answered the queries.

    Parameters
    ----------
    rows : ndarray of int of shape (n_answered,)
        Indices of public rows.

    answers : ndarray of int of shape (n_answered,)
        Class index of each answer, or -1 for no answer.

    probabilities : ndarray of shape (n_answered, n_classes) or None
        The student's class probabilities. None if the mechanism needs no probabilities.

    histograms : ndarray of int of shape (n_answered, n_classes) or None
        Noisy vote counts. None if the mechanism releases no vote counts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate import Votes
    >>> from sklearn_pate.mechanisms import GNMax, Oracle
    >>> votes = Votes(100 * [np.array([0, 1, 1])], n_public=3, n_classes=2)
    >>> oracle = Oracle(votes, GNMax(sigma=5), n_queries=3)
    >>> first = oracle.answer([2])
    >>> more = oracle.answer([0, 2])  # row 2 has its answer already
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
    """Answer queries on vote counts within a fixed budget.

    An oracle contains sensitive votes, and cannot be pickled. Answers may be published,
    at the privacy cost `curve`, even if earlier answers determine later queries. A
    repeated query gets the first answer again.

    Parameters
    ----------
    votes : Votes
        Vote counts. Sensitive.

    mechanism : Mechanism
        Mechanism with all parameters set, for example by
        :meth:`PluralityMechanism.prepared`.

    n_queries : int
        Maximum number of distinct public rows to query, which determines the privacy
        cost. Fewer queries do not lower the privacy cost.

    entry : FitEntry, default=None
        Ledger entry. The privacy cost is recorded before any noise is drawn, and
        answers are stored before they are returned. With None, the caller must account
        for the privacy cost.

    noise : NoiseSource, default=None
        Source of the noise. With None, a new source is created.

    Attributes
    ----------
    curve : RdpCurve
        Privacy cost of all `n_queries` queries, for any votes. Infinite if the noise is
        seeded. May be published.

    n_charged : int
        Number of queries charged so far.

    Raises
    ------
    ValueError
        If a noise parameter of `mechanism` is not set or out of range.

    LedgerError
        If the ledger of `entry` cannot be read.

    Warns
    -----
    PrivacyLeakWarning
        If the noise is seeded.

    Notes
    -----
    Worst-case Renyi costs add up even if the next query depends on earlier answers
    (Mironov 2017, "Renyi differential privacy", Proposition 1). Returning a stored
    answer is post-processing, at no privacy cost. See the page :doc:`/accounting`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate import BudgetExceededError, Votes
    >>> from sklearn_pate.mechanisms import GNMax, Oracle
    >>> votes = Votes(100 * [np.array([0, 1, 1])], n_public=3, n_classes=2)
    >>> oracle = Oracle(votes, GNMax(sigma=10), n_queries=2)
    >>> round(oracle.curve.to_epsilon(1e-5), 2)
    0.69
    >>> oracle.answer([1, 0])
    array([1, 0])
    >>> try:
    ...     oracle.answer([0, 2])
    ... except BudgetExceededError as error:
    ...     print(error)
    1 new query would exceed the 0 of 2 queries that are left; pass at most 0 new rows.
    """

    def __init__(
        self,
        votes: VoteCounts,
        mechanism: Mechanism,
        *,
        n_queries: int,
        entry: FitEntry | None = None,
        noise: NoiseSource | None = None,
    ) -> None:
        self._votes = votes
        self._mechanism: Any = mechanism
        self._entry = entry
        self._stored = {} if entry is None else entry.stored()
        self._noise = noise or NoiseSource()
        self._answer_of: dict[int, int] = {}
        self._probabilities: list[NDArray[np.float64]] = []
        self._histograms: list[NDArray[np.int64]] = []
        self._answers_left = self._mechanism.answer_cap(n_queries)
        self._n_queries = n_queries
        self.n_charged = 0
        curve = mechanism.cost(n_queries, votes.n_classes).curve
        self.curve = curve.unbounded() if self._noise.is_seeded else curve

    def answer(
        self, rows: ArrayLike, probabilities: ArrayLike | None = None
    ) -> NDArray[np.intp]:
        """Answer queries on public rows.

        A row that was queried before gets the stored answer, or again no answer, at no
        further privacy cost.

        Parameters
        ----------
        rows : array-like of int of shape (n_queries,)
            Indices of public rows.

        probabilities : array-like of shape (n_queries, n_classes), default=None
            The student's class probabilities, for a mechanism that needs probabilities.
            The probabilities may depend on earlier answers, but on no private value.
            Stored answers do not change with the probabilities.

        Returns
        -------
        answers : ndarray of int of shape (n_queries,)
            Class index of each answer, or -1 for no answer. May be published, at the
            privacy cost `curve`.

        Raises
        ------
        BudgetExceededError
            If the new queries exceed `n_queries`. No query is answered in this case.

        LedgerError
            If the ledger cannot be written. No answer is returned in this case.

        IndexError
            If a row does not exist. No query is answered in this case.

        ValueError
            If `probabilities` are missing, invalid, or not needed. No query is answered
            in this case.
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
        checked = self._check_probabilities(probabilities, len(rows))
        self._charge(int(np.count_nonzero(is_new)))
        if np.any(is_new):
            new = rows[is_new]
            if checked is not None:
                checked = checked[is_new]
            answers, histograms = self._release(new, checked)
            self._answer_of.update(zip(new.tolist(), answers.tolist(), strict=True))
            if checked is not None:
                self._probabilities.append(checked)
            if histograms is not None:
                self._histograms.append(histograms)
        return np.array([self._answer_of[row] for row in rows.tolist()], dtype=np.intp)

    def _check_probabilities(
        self, probabilities: ArrayLike | None, n_rows: int
    ) -> NDArray[np.float64] | None:
        """Return checked probabilities if the mechanism needs them."""
        if self._mechanism.needs_probabilities:
            return self._mechanism.check_probabilities(
                probabilities, (n_rows, self._votes.n_classes)
            )
        if probabilities is not None:
            raise ValueError(
                f"probabilities are not used by {self._mechanism!r}; leave them out."
            )
        return None

    def _charge(self, n_new: int) -> None:
        left = self._n_queries - self.n_charged
        if n_new > left:
            raise BudgetExceededError(
                f"{counted(n_new, 'new query')} would exceed the {left} of "
                f"{self._n_queries} queries that are left; pass at most "
                f"{counted(left, 'new row')}."
            )
        # The charge comes first: a crash after it may lose answers, never a charge.
        self.n_charged += n_new

    def _release(
        self, rows: NDArray[np.intp], probabilities: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.intp], NDArray[np.int64] | None]:
        """Return answers and histograms; stored ones, where the entry has them."""
        if self._entry is None:
            drawn = self._draw(rows, probabilities)
            return drawn.answers, drawn.histograms
        is_missing = np.array([row not in self._stored for row in rows.tolist()])
        if np.any(is_missing):
            missing = rows[is_missing]
            n_given = self._entry.open(len(missing))
            self._answers_left = self._mechanism.answer_cap(self._n_queries) - n_given
            if probabilities is not None:
                probabilities = probabilities[is_missing]
            drawn = self._draw(missing, probabilities)
            self._stored |= self._entry.keep(missing, drawn)
        stored = [self._stored[row] for row in rows.tolist()]
        histograms = None
        if self._mechanism.releases_histograms:
            histograms = np.array([one.histogram for one in stored])
        return np.array([one.answer for one in stored], dtype=np.intp), histograms

    def _draw(
        self, rows: NDArray[np.intp], probabilities: NDArray[np.float64] | None
    ) -> Response:
        # Only a mechanism that needs probabilities takes them.
        needed = {} if probabilities is None else {"probabilities": probabilities}
        response = self._mechanism.respond(
            self._votes.counts(rows), self._noise, self._answers_left, **needed
        )
        self._answers_left -= response.n_given
        return response

    def transcript(self) -> Transcript:
        """Return all queries so far, with their answers.

        Returns
        -------
        transcript : Transcript
            Queries in the order of their answers. May be published, at the privacy cost
            `curve`.
        """
        return Transcript(
            np.array(list(self._answer_of.keys()), dtype=np.intp),
            np.array(list(self._answer_of.values()), dtype=np.intp),
            np.concatenate(self._probabilities) if self._probabilities else None,
            np.concatenate(self._histograms) if self._histograms else None,
        )

    def __repr__(self) -> str:
        return f"Oracle(n_charged={self.n_charged}, n_queries={self._n_queries})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("An Oracle holds sensitive votes and cannot be pickled.")

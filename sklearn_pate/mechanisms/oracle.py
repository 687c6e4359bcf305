"""The turnstile: first the charge, then the answer."""

import numpy as np

from sklearn_pate.exceptions import BudgetExceededError
from sklearn_pate.mechanisms.base import NO_ANSWER
from sklearn_pate.mechanisms.noise import NoiseSource

__all__ = ["Oracle"]


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

    Attributes
    ----------
    curve : RdpCurve
        Price of all `n_queries` questions, whatever the votes.

    n_charged : int
        Questions charged so far.
    """

    def __init__(self, votes, mechanism, *, n_queries):
        self._votes = votes
        self._mechanism = mechanism
        self._noise = NoiseSource(mechanism.noise_seed)
        self._answer_of = {}
        self._answers_left = mechanism.answer_cap(n_queries)
        self._n_queries = n_queries
        self.n_charged = 0
        self.curve = mechanism.account_curve(n_queries, votes.n_classes)

    def ask(self, indices):
        """Ask about public rows.

        A row that was asked before gets its old answer, "no answer" included, and is
        not charged again.

        Parameters
        ----------
        indices : array-like of int of shape (n_queries,)
            Public rows.

        Returns
        -------
        answers : ndarray of int of shape (n_queries,)
            Class indices, -1 for no answer.

        Raises
        ------
        BudgetExceededError
            If the new questions do not all fit the budget; then none is asked.
        IndexError
            If there is no such row; then none is asked.
        """
        indices = np.asarray(indices, dtype=np.intp).tolist()
        n_public = self._votes.shape[1]
        if indices and not 0 <= min(indices) <= max(indices) < n_public:
            raise IndexError(
                f"indices must lie in 0..{n_public - 1}, the public rows; got "
                f"{min(indices)}..{max(indices)}."
            )
        new = [i for i in dict.fromkeys(indices) if i not in self._answer_of]
        left = self._n_queries - self.n_charged
        if len(new) > left:
            raise BudgetExceededError(
                f"{len(new)} new questions were asked but only {left} of "
                f"{self._n_queries} are left; ask at most {left}."
            )
        # The charge comes first: a crash below may lose answers, never a charge.
        self.n_charged += len(new)
        if new:
            answers = self._mechanism.answer(
                self._votes.counts(new),
                max_answers=self._answers_left,
                noise=self._noise,
            )
            self._answers_left -= int(np.count_nonzero(answers != NO_ANSWER))
            self._answer_of.update(zip(new, answers.tolist(), strict=True))
        return np.array([self._answer_of[i] for i in indices], dtype=np.intp)

    def __repr__(self):
        return f"Oracle(n_charged={self.n_charged}, n_queries={self._n_queries})"

    def __reduce_ex__(self, protocol):
        raise TypeError("An Oracle holds sensitive votes and cannot be pickled.")

"""Label accuracy: how often a noisy answer is right, by the lead of the votes."""

from dataclasses import dataclass

import numpy as np

from sklearn_pate.accounting.plurality._exact import log_losing
from sklearn_pate.mechanisms import Mechanism

__all__ = ["LabelAccuracy", "VotesWithLead"]


@dataclass(frozen=True)
class LabelAccuracy:
    """How often an answer is right, where the votes are so far apart.

    Parameters
    ----------
    margin : float
        Share of the teachers by which the most-voted class leads every other class.

    lead : int
        The same in votes, rounded up.

    answered : float
        Probability that there is an answer: 1, unless the mechanism checks first
        whether teachers agree. A lower bound over all votes with that lead, if no
        teacher abstains.

    right : float
        Probability that an answer, if there is one, is the most-voted class. A lower
        bound over all votes with that lead.

    Notes
    -----
    An answer is argmax_j n_j + Z_j for every mechanism: with noise in whole votes and a
    random priority against ties, with Gumbel noise, or, for permute-and-flip, with
    exponential noise (Ding et al. 2021). So its law stays the same when all counts are
    shifted alike, and the most-voted class j wins more often the further another class
    k falls behind, as the event ``n_k + Z_k < n_j + Z_j`` can only grow. Among all
    votes where j leads by l or more, it wins least often where all others are exactly l
    behind. The exact law there is what is computed. Two classes leave no choice.

    The check of :class:`~sklearn_pate.mechanisms.ConfidentGNMax` passes more often the
    larger the largest count is. If all n teachers vote on K classes and one leads by l
    or more, that count is at least (n + (K - 1) l) / K, rounded up. The check and the
    answer have noise of their own, so that answers are right as often where it passed.
    A cap, `max_answers`, comes after.

    Examples
    --------
    >>> from sklearn_pate.inspection import plan_fit
    >>> plan = plan_fit(n_teachers=250, n_queries=100, margins=[0.5])
    >>> [one] = plan.at_margins
    >>> one.lead, round(one.right, 3)
    (125, 0.973)
    """

    margin: float
    lead: int
    answered: float
    right: float


class VotesWithLead:
    """Answers to votes with a given lead, in the worst case.

    The mechanism has all its numbers, and is not interactive.
    """

    def __init__(self, mechanism: Mechanism, n_teachers: int, n_classes: int) -> None:
        self._plurality = mechanism._plurality()
        self._check = mechanism._check()
        self._n_teachers = n_teachers
        self._n_classes = n_classes

    def at(self, margin: float) -> LabelAccuracy:
        """Compute how often an answer is right, at a lead of that share, rounded up."""
        # 0.07 of 100 votes are 7, and not a bit more.
        lead = max(1, int(np.ceil(round(margin * self._n_teachers, 9))))
        return LabelAccuracy(
            float(margin), lead, self.answered(lead), self._right(lead)
        )

    def answered(self, lead: int) -> float:
        """Compute the probability of an answer; a lead of 0 is evenly divided votes."""
        if self._check is None:
            return 1.0
        others = self._n_classes - 1
        largest = np.ceil((self._n_teachers + others * lead) / self._n_classes)
        log_pass, _ = self._check.log_probabilities(np.array([largest]))
        return float(np.exp(log_pass[0]))

    def margin_for(self, share: float) -> float | None:
        """Find the smallest lead from which on such a share of answers is right.

        It is a share of the teachers; None if not even agreement of all is enough.
        """
        low, high = 0, self._n_teachers
        if self._right(high) < share:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self._right(middle) >= share:
                high = middle
            else:
                low = middle
        return high / self._n_teachers

    def _right(self, lead: int) -> float:
        counts = np.zeros((1, self._n_classes), dtype=np.int64)
        counts[0, 0] = lead
        return float(-np.expm1(log_losing(self._plurality, counts)[0]))

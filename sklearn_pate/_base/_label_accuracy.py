"""Label accuracy: probability that a noisy answer is right, by the lead of votes."""

from dataclasses import dataclass

import numpy as np

from sklearn_pate.accounting.plurality._exact import log_losing
from sklearn_pate.mechanisms import Mechanism

__all__ = ["LabelAccuracy", "VotesWithLead"]


@dataclass(frozen=True)
class LabelAccuracy:
    """Probability that an answer is right, at a given lead of the most-voted class.

    Parameters
    ----------
    margin : float
        Share of the teachers by which the most-voted class leads every other class.

    lead : int
        The margin in votes, rounded up.

    answered : float
        Probability of an answer: 1, unless the mechanism first checks that teachers
        agree. A lower bound over all votes with that lead, if no teacher abstains.

    right : float
        Probability that an answer is the most-voted class. A lower bound over all votes
        with that lead.

    Notes
    -----
    An answer is argmax_j n_j + Z_j for every mechanism: with noise in whole votes and a
    random priority against ties, with Gumbel noise, or, for permute-and-flip, with
    exponential noise (Ding et al. 2021). Its law does not change when all counts are
    shifted by the same number, and the most-voted class j wins more often the smaller
    another count n_k is, as the event ``n_k + Z_k < n_j + Z_j`` grows. Among all votes
    with a lead of l or more, j wins least often where all other counts are n_j - l, and
    the exact law at these votes is computed.

    The check of :class:`~sklearn_pate.mechanisms.ConfidentGNMax` passes more often the
    larger the largest count is. If all n teachers vote on K classes and one leads by l
    or more, that count is at least (n + (K - 1) l) / K, rounded up. The check and the
    answer draw independent noise, so that answers are right as often where it passed.
    A cap, `max_answers`, comes after.

    Examples
    --------
    >>> from sklearn_pate.inspection import plan_fit
    >>> plan = plan_fit(n_teachers=250, n_queries=100, margins=[0.5])
    >>> [one] = plan.at_margins
    >>> one.lead, round(one.right, 3)
    (125, 0.981)
    """

    margin: float
    lead: int
    answered: float
    right: float


class VotesWithLead:
    """Answers to the worst votes with a given lead, by a non-interactive mechanism."""

    def __init__(self, mechanism: Mechanism, n_teachers: int, n_classes: int) -> None:
        self._plurality = mechanism._known_plurality()
        self._check = mechanism._check()
        self._n_teachers = n_teachers
        self._n_classes = n_classes

    def at(self, margin: float) -> LabelAccuracy:
        """Compute the label accuracy at a lead, a share rounded up to whole votes."""
        # 0.07 * 100 is slightly more than 7 in floating point.
        lead = max(1, int(np.ceil(round(margin * self._n_teachers, 9))))
        return LabelAccuracy(
            float(margin), lead, self._answered(lead), self._right(lead)
        )

    def _answered(self, lead: int) -> float:
        if self._check is None:
            return 1.0
        others = self._n_classes - 1
        largest = np.ceil((self._n_teachers + others * lead) / self._n_classes)
        log_pass, _ = self._check.log_probabilities(np.array([largest]))
        return float(np.exp(log_pass[0]))

    def margin_for(self, share: float) -> float | None:
        """Return the smallest lead, a share of the teachers, at which `share` is right.

        None if fewer answers are right where all teachers agree.
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

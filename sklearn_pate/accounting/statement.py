"""What may be said about a fit, and what must stay inside."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting.curve import RdpCurve
from sklearn_pate.accounting.sanitize import SanitizedCost

__all__ = ["NEIGHBOURS", "PrivacyAnalysis", "PrivacySpent"]

#: The neighbour relation that each privacy unit stands for.
NEIGHBOURS = {
    "row": "replace one row by any other; the number of rows is public",
    "group": (
        "add or remove one group, or change any of its rows while its id stays "
        "(a change of id is two such steps)"
    ),
    "party": "change all votes of one party; the number of parties is public",
}


@dataclass(frozen=True)
class PrivacySpent:
    """The privacy statement of one fit. May be published.

    It depends on no private value, and unpacks as ``epsilon, delta = privacy_spent``.

    Parameters
    ----------
    epsilon : float
        Worst case over all votes. Infinite if the noise was seeded.

    delta : float
        The probability mass that epsilon does not cover.

    unit : {"row", "group", "party"}
        Whose presence is protected.

    neighbours : str
        The exact change of the private data that is hidden.

    mechanism : str
        The mechanism with its parameters.

    n_teachers : int
        Number of teachers.

    n_queries : int
        Number of questions paid for.

    assumptions : tuple of str
        What was taken to be public, for the data holder to confirm.

    curve : RdpCurve
        The Renyi curve behind epsilon. Curves of several fits on the same data add up;
        their sum's ``to_epsilon(delta)`` is the price of all of them together.
    """

    epsilon: float
    delta: float
    unit: str
    neighbours: str
    mechanism: str
    n_teachers: int
    n_queries: int
    assumptions: tuple[str, ...]
    curve: RdpCurve

    def __iter__(self) -> Iterator[float]:
        yield self.epsilon
        yield self.delta

    def __repr__(self):
        return f"PrivacySpent(epsilon={_round_up(self.epsilon)}, delta={self.delta})"

    def __str__(self):
        if np.isinf(self.epsilon):
            guarantee = "This fit gives no privacy guarantee (epsilon=inf)"
        else:
            guarantee = (
                f"This fit is (epsilon={_round_up(self.epsilon)}, "
                f"delta={self.delta})-differentially private"
            )
        return (
            f"{guarantee}, where neighbouring data sets {self.neighbours}: "
            f"{self.n_queries} questions to {self.n_teachers} teachers were answered "
            f"by {self.mechanism}; the statement covers this fit alone, no search or "
            f"other fit around it, and assumes {_enumerate(self.assumptions)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain Python values.

        Returns
        -------
        statement : dict
            Ready for ``json.dumps``, but for an infinite epsilon, which JSON lacks.
        """
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("curve", "assumptions")
        } | {"assumptions": list(self.assumptions)}


def _round_up(epsilon):
    """Write epsilon with three decimals, never below its value."""
    if np.isinf(epsilon):
        return "inf"
    # Adding 0 makes a negative zero positive.
    return f"{np.ceil(epsilon * 1000 - 1e-9) / 1000 + 0:.3f}"


def _enumerate(assumptions):
    *most, last = (f"that {one}" for one in assumptions)
    return f"{', '.join(most)} and {last}" if most else last


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyAnalysis:
    """What the votes say about a fit. Sensitive: not for publication.

    Everything here depends on private data. It prints redacted, cannot be pickled, and
    a pickled or copied estimator comes without it.

    Parameters
    ----------
    epsilon : float
        Data-dependent epsilon of this fit, from the exact cost of the votes; at most
        ``privacy_spent_.epsilon`` of as many answers, but no guarantee: it does not
        hold for other data.

    delta : float
        The probability mass that epsilon does not cover.

    curve : RdpCurve
        The Renyi curve behind `epsilon`, see
        :func:`~sklearn_pate.accounting.local_cost`. It cannot be sanitized.

    optimal_epsilon : float or None
        The same from the sharpest bound that is a function of the probability that a
        plurality loses. `sanitize` releases it. None for an interactive mechanism.

    paper_epsilon : float or None
        Epsilon as the mechanism's paper computed it; for few votes perhaps more than
        ``privacy_spent_.epsilon``, which knows a tighter worst case.

    along_transcript : bool
        Whether questions depended on earlier answers. The figures above then hold
        along the questions that were asked, as in the papers' tables, and bound nothing
        at all; ``privacy_spent_`` does.

    in_ledger : bool
        Whether the fit was charged to a ledger.

    counts : ndarray of int of shape (n_queries, n_classes)
        Votes per class for each question, in the order of ``queried_indices_``.

    mechanism : Mechanism
        What answered.

    n_teachers : int
        Number of teachers.

    teacher_failures : list of (int, str)
        Index and error of every teacher that failed.

    teacher_warnings : list of (int, str)
        Index of the teacher and text of every warning.
    """

    epsilon: float
    delta: float
    curve: RdpCurve
    optimal_epsilon: float | None
    paper_epsilon: float | None
    along_transcript: bool
    in_ledger: bool
    counts: NDArray[np.int64]
    mechanism: Any
    n_teachers: int
    teacher_failures: list[tuple[int, str]]
    teacher_warnings: list[tuple[int, str]]

    @property
    def plurality(self) -> NDArray[np.intp]:
        """Class with most votes, without noise, for each question.

        Returns
        -------
        plurality : ndarray of int of shape (n_queries,)
            Sensitive.
        """
        return np.argmax(self.counts, axis=1)

    def sanitize(self, *, confidence: float = 0.975, **release: float) -> SanitizedCost:
        """Release the data-dependent epsilon with noise, at a price of its own.

        What it returns may be published; `epsilon` may not. It is a statement about the
        votes of this fit, in the sense of Papernot et al. 2018, and does not replace
        ``privacy_spent_``. Every call is a release of its own: call it once.

        Parameters
        ----------
        confidence : float, default=0.975
            Probability that the released cost is at least the true one.

        **release : float
            `order`, `smoothness` and `noise_scale`, all or none; by default they are
            chosen from public numbers. Trying several voids the guarantee.

        Returns
        -------
        sanitized : SanitizedCost
            With the price of the release included.

        Raises
        ------
        ValueError
            If the noise of the answers was seeded, the questions depended on earlier
            answers, or the fit was charged to a ledger, whose budget would not cover
            this release.
        """
        if self.in_ledger:
            raise ValueError(
                "This fit was charged to a ledger, whose budget covers the answers but "
                "not a figure about the votes; publish privacy_spent_, or fit without "
                "a ledger."
            )
        if self.along_transcript:
            raise ValueError(
                "The questions depended on earlier answers, so that the cost along "
                "them bounds nothing; publish privacy_spent_, or ask with "
                "query_strategy='random' or 'representative'."
            )
        if self.mechanism.noise_seed is not None:
            raise ValueError(
                f"noise_seed={self.mechanism.noise_seed!r} voids every guarantee; fit "
                "without it before publishing a cost."
            )
        return self.mechanism.sanitized_cost(
            self.counts,
            n_teachers=self.n_teachers,
            delta=self.delta,
            confidence=confidence,
            **release,
        )

    def __repr__(self):
        return "PrivacyAnalysis(<sensitive: depends on private data, do not publish>)"

    def __reduce_ex__(self, protocol):
        raise TypeError(
            "A PrivacyAnalysis is sensitive and cannot be pickled or copied; publish "
            "privacy_spent_ instead."
        )

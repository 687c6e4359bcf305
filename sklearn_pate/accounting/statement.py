"""What may be said about a fit, and what must stay inside."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting.curve import RdpCurve

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
    return f"{np.ceil(epsilon * 1000 - 1e-9) / 1000:.3f}"


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
        Data-dependent epsilon of this fit; at most ``privacy_spent_.epsilon`` of the
        same noise, but not a guarantee that holds for other data.

    delta : float
        The probability mass that epsilon does not cover.

    curve : RdpCurve
        The Renyi curve behind `epsilon`.

    bound : str
        Where `curve` comes from.

    paper_epsilon : float or None
        Epsilon as the mechanism's paper computed it.

    plurality : ndarray of int of shape (n_queries,)
        The class with most votes, without noise, for each question in the order of
        ``queried_indices_``.

    teacher_failures : list of (int, str)
        Index and error of every teacher that failed.

    teacher_warnings : list of (int, str)
        Index of the teacher and text of every warning.
    """

    epsilon: float
    delta: float
    curve: RdpCurve
    bound: str
    paper_epsilon: float | None
    plurality: NDArray[np.intp]
    teacher_failures: list[tuple[int, str]]
    teacher_warnings: list[tuple[int, str]]

    def __repr__(self):
        return "PrivacyAnalysis(<sensitive: depends on private data, do not publish>)"

    def __reduce_ex__(self, protocol):
        raise TypeError(
            "A PrivacyAnalysis is sensitive and cannot be pickled or copied; publish "
            "privacy_spent_ instead."
        )

"""What may be said about a fit, and what must stay inside."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sklearn_pate.accounting._assumptions import Assumption
from sklearn_pate.accounting._rdp import RdpCurve

__all__ = [
    "NEIGHBOURS",
    "PrivacySpent",
    "check_neighbours",
    "plans_privacy",
    "write_epsilon",
]

#: How neighbouring data sets differ, by unit and relation.
NEIGHBOURS = {
    ("row", "replace-one"): (
        "replace one row by any other; the number of rows is public"
    ),
    ("group", "add-remove-or-change"): (
        "add or remove one group, or change any of its rows while its id stays "
        "(a change of id is two such steps)"
    ),
    ("party", "replace-one"): (
        "change all votes of one party; the number of parties is public"
    ),
    ("row", "add-remove"): "add or remove one row",
    ("group", "add-remove"): "add or remove one group with all its rows",
}
RELEASES = ("answers", "sum", "model", "search")


def check_neighbours(unit: str, relation: str) -> None:
    """Raise unless a neighbour relation is known for a unit.

    Parameters
    ----------
    unit : str
        Whom a statement protects.

    relation : str
        Against which change.

    Raises
    ------
    ValueError
        If they are no key of `NEIGHBOURS`.
    """
    if (unit, relation) not in NEIGHBOURS:
        raise ValueError(
            f"unit={unit!r} with relation={relation!r} is unknown; (unit, relation) "
            f"must be one of {[*NEIGHBOURS]}."
        )


@dataclass(frozen=True)
class PrivacySpent:
    """The privacy statement of one fit. May be published.

    It depends on no private value, and unpacks as ``epsilon, delta = privacy_spent``.
    Printed, it is the sentence to put one's name to.

    Parameters
    ----------
    epsilon : float
        Worst case over all private data, in nats. Infinite if the noise was seeded: the
        fit then has no guarantee, and nothing of it may be published.

    delta : float
        The probability mass that epsilon does not cover; 0 where there is none.

    unit : {"row", "group", "party"}
        Whom the statement protects.

    relation : {"replace-one", "add-remove", "add-remove-or-change"}
        Against which change of one unit. "replace-one" is for rows and parties, whose
        number is public; "add-remove" for rows and groups; "add-remove-or-change" for
        groups. Costs of two units or two relations neither add up nor compare.

    release : {"answers", "sum", "model", "search"}
        What was released: answers to queries, or noisy counts; one noisy sum of
        vectors; a model that was trained with noise; the winner of a private search.

    mechanism : str
        The mechanism with its parameters.

    n_teachers : int or None
        Number of teachers, or of neighbours that vote; None for a learner without any.

    n_queries : int or None
        Number of queries paid for; None for a learner that asks none.

    assumptions : tuple of Assumption
        What was taken to be public, for the data holder to confirm. The guarantee
        fails with any of them.

    curve : RdpCurve
        The Renyi curve behind epsilon. Curves of several fits on the same data add up;
        their sum's ``to_epsilon(delta)`` is the cost of all of them together.

    Raises
    ------
    ValueError
        If `relation` is unknown for `unit`, `release` is unknown or lacks its numbers,
        or `assumptions` is empty or holds anything else.

    Notes
    -----
    Whatever an outsider looks for (an event S in what is published, M), and for any two
    data sets d and d' that are neighbours in the sense of `neighbours`,
    Pr[M(d) in S] <= e^epsilon Pr[M(d') in S] + delta (Dwork, Kenthapadi, McSherry,
    Mironov, Naor 2006, "Our data, ourselves: privacy via distributed noise
    generation"). For a :class:`~sklearn_pate.PATEClassifier` epsilon is
    ``curve.to_epsilon(delta)``; other learners may state a smaller one, that of a pure
    guarantee or of an exact composition. The proofs are in :doc:`What an answer costs
    </accounting>`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.mechanisms import GNMax
    >>> X, y = make_blobs(1200, centers=2, random_state=0)
    >>> pate = PATEClassifier(
    ...     LogisticRegression(),
    ...     n_teachers=100,
    ...     mechanism=GNMax(sigma=40),
    ...     n_queries=50,
    ...     epsilon=None,
    ... )
    >>> spent = pate.plan_privacy(X[:1000], y[:1000], X_public=PublicData(X[1000:]))
    >>> epsilon, delta = spent
    >>> round(epsilon, 2), delta
    (0.8, 1e-05)
    >>> spent.neighbours
    'replace one row by any other; the number of rows is public'
    >>> str(spent.assumptions[1])
    'X_public is public'
    >>> two_fits = spent.curve + spent.curve
    >>> round(two_fits.to_epsilon(1e-5), 2)
    1.16
    """

    epsilon: float
    delta: float
    unit: str
    relation: str
    release: str
    mechanism: str
    n_teachers: int | None
    n_queries: int | None
    assumptions: tuple[Assumption, ...]
    curve: RdpCurve

    def __post_init__(self) -> None:
        check_neighbours(self.unit, self.relation)
        if self.release not in RELEASES:
            raise ValueError(
                f"release={self.release!r} is unknown; use one of {[*RELEASES]}."
            )
        asked = (self.n_teachers, self.n_queries)
        if self.release in ("answers", "sum") and None in asked:
            raise ValueError(
                f"release={self.release!r} with n_teachers={self.n_teachers!r} and "
                f"n_queries={self.n_queries!r} does not say who was asked, and how "
                "often; give both numbers, or release='model' where nobody was asked."
            )
        if not self.assumptions or not all(
            isinstance(one, Assumption) for one in self.assumptions
        ):
            raise ValueError(
                f"assumptions={self.assumptions!r} must hold at least one, each an "
                "Assumption(code, sentence, query)."
            )

    @property
    def neighbours(self) -> str:
        """The exact change of the private data that is hidden.

        Returns
        -------
        neighbours : str
            By `unit` and `relation`, to follow "neighbouring data sets".
        """
        return NEIGHBOURS[self.unit, self.relation]

    def __iter__(self) -> Iterator[float]:
        yield self.epsilon
        yield self.delta

    def __repr__(self):
        return (
            f"PrivacySpent(epsilon={write_epsilon(self.epsilon)}, delta={self.delta})"
        )

    def __str__(self):
        if np.isinf(self.epsilon):
            guarantee = "This fit gives no privacy guarantee (epsilon=inf)"
        else:
            guarantee = (
                f"This fit is (epsilon={write_epsilon(self.epsilon)}, "
                f"delta={self.delta})-differentially private"
            )
        if self.n_queries is None:
            release = f"one model was released by {self.mechanism}"
        else:
            # Only nearest neighbours vote about rows that may be added or removed.
            from_samples = self.relation == "add-remove"
            voters = f"the {self.n_teachers} nearest rows of secret samples"
            release = (
                f"{self.n_queries} queries to "
                f"{voters if from_samples else f'{self.n_teachers} teachers'} were "
                f"answered by {self.mechanism}"
            )
        return (
            f"{guarantee}, where neighbouring data sets {self.neighbours}: {release}; "
            "the statement covers this fit alone, no search or other fit around it, "
            f"and assumes {_enumerate(self.assumptions)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain Python values.

        Returns
        -------
        statement : dict
            Ready for ``json.dumps``, but for an infinite epsilon, which JSON lacks. It
            has every field but `curve`, `neighbours`, and code and sentence of each
            assumption. May be published.
        """
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("curve", "assumptions")
        } | {
            "neighbours": self.neighbours,
            "assumptions": [
                {"code": one.code, "sentence": one.sentence} for one in self.assumptions
            ],
        }


def write_epsilon(epsilon: float) -> str:
    """Write epsilon with three decimals, never below its value but for rounding.

    Parameters
    ----------
    epsilon : float
        Perhaps infinite.

    Returns
    -------
    text : str
        As statements have it.
    """
    if np.isinf(epsilon):
        return "inf"
    # What calibration or a product rounded up by a last digit is no further step.
    return f"{np.ceil(epsilon * 1000 * (1 - 1e-12)) / 1000 + 0:.3f}"


def _enumerate(assumptions):
    *most, last = (f"that {one}" for one in assumptions)
    return f"{', '.join(most)} and {last}" if most else last


def plans_privacy(estimator: Any) -> bool:
    """Tell whether an estimator can state the privacy cost of a fit beforehand.

    It has ``plan_privacy(X, y, **fit_params)``, which returns what ``privacy_spent_``
    will be after ``fit`` on the same. An estimator that has it promises that nothing
    else of its fit depends on private rows.
    """
    return callable(getattr(type(estimator), "plan_privacy", None))

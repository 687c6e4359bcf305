"""What may be said about a fit, and what must stay inside."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._assumptions import Assumption
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.plurality._smooth_sensitivity import SanitizedCost

__all__ = [
    "NEIGHBOURS",
    "PrivacyAnalysis",
    "PrivacySpent",
    "check_neighbours",
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
        groups. Prices of two units or two relations neither add up nor compare.

    release : {"answers", "sum", "model", "search"}
        What was released: answers to questions, or noisy counts; one noisy sum of
        vectors; a model that was trained with noise; the winner of a private search.

    mechanism : str
        The mechanism with its parameters.

    n_teachers : int or None
        Number of teachers, or of neighbours that vote; None for a learner without any.

    n_queries : int or None
        Number of questions paid for; None for a learner that asks none.

    assumptions : tuple of Assumption
        What was taken to be public, for the data holder to confirm. The guarantee
        fails with any of them.

    curve : RdpCurve
        The Renyi curve behind epsilon. Curves of several fits on the same data add up;
        their sum's ``to_epsilon(delta)`` is the price of all of them together.

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
                "Assumption(code, sentence, question)."
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
                f"{self.n_queries} questions to "
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

    exceeds_claim : bool or None
        Whether a query, or all of them together, cost more at these votes than the
        mechanism claims for any votes, rounding aside. True means that the mechanism's
        price is wrong, and ``privacy_spent_`` with it: publish nothing of this fit. A
        fit neither raises nor warns about it, which would tell of the votes. False
        proves nothing about other votes. None where the cost depends on no votes.

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

    data_problems : list of str
        How many rows no teacher learned from, as they have no group id or a label that
        is not in `classes`, and which of `classes` no row has. Empty without any.

    Notes
    -----
    `epsilon` is by :func:`~sklearn_pate.accounting.local_cost`, `optimal_epsilon` by
    the tightest bound that is a function of the probability that a plurality loses, as
    Theorem 6 of Papernot et al. 2018 is, and `paper_epsilon` by
    :func:`~sklearn_pate.accounting.bounds.laplace_2017`,
    :func:`~sklearn_pate.accounting.bounds.gaussian_2018` or
    :func:`~sklearn_pate.accounting.bounds.confident_2018`; the first two are converted
    by Canonne, Kamath, Steinke (2020), Proposition 12, the last as the papers did. See
    :doc:`What an answer costs </accounting>`.

    Examples
    --------
    >>> import pickle
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier
    >>> from sklearn_pate.mechanisms import GNMax
    >>> pate = PATEClassifier(
    ...     LogisticRegression(),
    ...     mechanism=GNMax(sigma=40),
    ...     epsilon=None,
    ...     classes=[0, 1],
    ... )
    >>> votes = 200 * [[0, 1, 1]]  # made up: 200 parties that agree on three rows
    >>> pate = pate.fit_votes(votes, [[0.0], [1.0], [2.0]])
    >>> pate.privacy_analysis_
    PrivacyAnalysis(<sensitive: depends on private data, do not publish>)
    >>> bool(pate.privacy_analysis_.epsilon < pate.privacy_spent_.epsilon)
    True
    >>> pate.privacy_analysis_.counts.max(axis=1)
    array([200, 200, 200])
    >>> hasattr(pickle.loads(pickle.dumps(pate)), "privacy_analysis_")
    False
    """

    epsilon: float
    delta: float
    curve: RdpCurve
    optimal_epsilon: float | None
    paper_epsilon: float | None
    exceeds_claim: bool | None
    along_transcript: bool
    in_ledger: bool
    counts: NDArray[np.int64]
    mechanism: Any
    n_teachers: int
    teacher_failures: list[tuple[int, str]]
    teacher_warnings: list[tuple[int, str]]
    data_problems: list[str] = field(default_factory=list)

    @property
    def plurality(self) -> NDArray[np.intp]:
        """Class with most votes, without noise, for each question.

        Returns
        -------
        plurality : ndarray of int of shape (n_queries,)
            Class indices, the first of equals. Sensitive: no noise hides them.
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
            Probability that the released cost is at least the true one, at least 0.5.

        **release : float
            `order`, `smoothness` and `noise_scale` of
            :func:`~sklearn_pate.accounting.plurality.sanitize`, all or none; by default
            they are chosen from public numbers. Trying several voids the guarantee.

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

        TypeError
            If noisy histograms were released: what they cost depends on no votes.

        Notes
        -----
        Papernot et al. 2018, Appendix B, with a smooth sensitivity (Nissim,
        Raskhodnikova, Smith 2007) and a price of its own, as the published one is no
        upper bound: :doc:`What an answer costs </accounting>`.
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

"""Privacy statement of a fit, which may be published."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sklearn_pate.accounting._assumptions import Assumption
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._profile_conversions import curve_profile
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._statement_facts import StatementFacts, facts_of

__all__ = [
    "NEIGHBOURS",
    "PrivacySpent",
    "check_neighbours",
    "plans_privacy",
    "write_epsilon",
]

#: Difference between neighbouring data sets, by unit of privacy and relation.
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
RELEASES = ("answers", "scores", "newton", "sum", "model", "search")


def check_neighbours(unit: str, relation: str) -> None:
    """Raise unless a neighbour relation is known for a unit of privacy."""
    if (unit, relation) not in NEIGHBOURS:
        raise ValueError(
            f"unit={unit!r} with relation={relation!r} is unknown; (unit, relation) "
            f"must be one of {[*NEIGHBOURS]}."
        )


@dataclass(frozen=True)
class PrivacySpent:
    """Privacy statement of one fit. May be published.

    It depends on no private value, and unpacks as ``epsilon, delta = privacy_spent``.
    ``print(privacy_spent)`` gives the statement in words, ready to be signed.

    Parameters
    ----------
    epsilon : float
        Worst case over all private data, in nats. Infinite if the noise was seeded: the
        fit then has no guarantee, and none of its results may be published.

    delta : float
        The probability mass that epsilon does not cover, 0 for a pure guarantee.

    unit : {"row", "group", "party"}
        Unit of privacy.

    relation : {"replace-one", "add-remove", "add-remove-or-change"}
        Neighbour relation, the change of one unit that is hidden. "replace-one" is for
        rows and parties, whose number is public; "add-remove" for rows and groups;
        "add-remove-or-change" for groups. Costs of two units or two relations can
        neither be added nor compared.

    release : {"answers", "scores", "newton", "sum", "model", "search"}
        Kind of release: answers to queries or noisy counts, the mean of score
        functions, a logistic regression by noisy Newton steps, one noisy sum of
        vectors, another model trained with noise, or the winner of a private search.

    mechanism : str
        The mechanism with its parameters.

    n_teachers : int or None
        Number of teachers, or of neighbours that vote; None for a learner without
        votes.

    n_queries : int or None
        Number of queries that the cost covers; None for a learner without queries.

    assumptions : tuple of Assumption
        Assumptions for the data holder to confirm. If one of them is false, there is
        no guarantee.

    curve : RdpCurve
        Renyi curve behind epsilon. Curves of several fits on the same data add up;
        ``to_epsilon(delta)`` of their sum is the cost of all of them together.

    profile : PrivacyProfile, default=None
        Delta at every epsilon, for this fit alone. It must belong to `curve`: replace
        both together. None converts `curve` and the stated pair.

    n_tables : int, default=None
        Number of columns whose noisy counts the public rows were drawn from, which the
        cost includes; None for rows that were public before.

    mu : float, default=None
        The fit is mu-Gaussian differentially private (Dong, Roth, Su 2022, "Gaussian
        differential privacy"): all of its noise is Gaussian. None if no mu is proved.

    Raises
    ------
    ValueError
        If `relation` is unknown for `unit`, `release` is unknown, `n_teachers` or
        `n_queries` is missing, `assumptions` is empty or of another type, or `mu` is
        no positive number.

    Notes
    -----
    With M the release, for any event S and any two data sets d and d' that are
    neighbours in the sense of `neighbours`,
    Pr[M(d) in S] <= e^epsilon Pr[M(d') in S] + delta (Dwork, Kenthapadi, McSherry,
    Mironov, Naor 2006, "Our data, ourselves: privacy via distributed noise
    generation"). Epsilon is at most ``curve.to_epsilon(delta)``, and smaller where an
    exact cost is known: for answers (but those of
    :class:`~sklearn_pate.mechanisms.LNMax` on three and more classes), noisy counts,
    noisy sums, pure guarantees, and the composed law of the losses of DP-SGD. The
    proofs are in :doc:`Privacy cost of an answer </accounting>`.

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
    (0.74, 1e-05)
    >>> spent.neighbours
    'replace one row by any other; the number of rows is public'
    >>> str(spent.assumptions[1])
    'X_public is public'
    >>> round((spent.curve + spent.curve).to_epsilon(1e-5), 2)  # two such fits
    1.16

    An attacker who knows all rows but one, and has two candidates for that one, names
    the right one in at most 54 of 100 cases:

    >>> round(spent.attack_accuracy(), 2)
    0.54
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
    profile: PrivacyProfile = None  # type: ignore[assignment] # set below
    n_tables: int | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        check_neighbours(self.unit, self.relation)
        if self.profile is None:
            profile = curve_profile(self.curve).thinned(self.epsilon, self.delta)
            object.__setattr__(self, "profile", profile)
        if self.release not in RELEASES:
            raise ValueError(
                f"release={self.release!r} is unknown; use one of {[*RELEASES]}."
            )
        if self.release in ("answers", "sum") and None in (
            self.n_teachers,
            self.n_queries,
        ):
            raise ValueError(
                f"release={self.release!r} needs n_teachers and n_queries, got "
                f"{self.n_teachers!r} and {self.n_queries!r}; pass both numbers, or "
                "release='model' for a learner without queries."
            )
        if not self.assumptions or not all(
            isinstance(one, Assumption) for one in self.assumptions
        ):
            raise ValueError(
                f"assumptions={self.assumptions!r} must hold at least one "
                "Assumption(code, sentence, question)."
            )
        if self.mu is not None and not 0 < self.mu < np.inf:
            raise ValueError(
                f"mu={self.mu!r} must be a positive, finite number; leave it at None "
                "if no mu is proved."
            )

    @property
    def neighbours(self) -> str:
        """The change of the private data that is hidden.

        Returns
        -------
        neighbours : str
            Description by `unit` and `relation`.
        """
        return NEIGHBOURS[self.unit, self.relation]

    @property
    def facts(self) -> StatementFacts:
        """The facts that follow from the statement, such as unprotected quantities.

        Returns
        -------
        facts : StatementFacts
            Derived from the other fields alone.
        """
        return facts_of(self)

    def delta_at(self, epsilon: Any) -> Any:
        """Return the delta that holds at another epsilon, for the same release.

        Parameters
        ----------
        epsilon : float or array-like of float
            In nats.

        Returns
        -------
        delta : float or ndarray of float
            Between 0 and 1; see :meth:`PrivacyProfile.delta_at
            <sklearn_pate.accounting.PrivacyProfile.delta_at>`.
        """
        return self.profile.delta_at(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon that holds at another delta, for the same release.

        Parameters
        ----------
        delta : float
            The probability mass that epsilon does not cover, in [0, 1].

        Returns
        -------
        epsilon : float
            At most `epsilon` at `delta`; infinite at a delta that `profile` does not
            reach, and above 500.
        """
        return self.profile.epsilon_at(delta)

    def attack_accuracy(self, prior: float = 0.5) -> float:
        """Bound how often an attacker names the right one of two data sets.

        Parameters
        ----------
        prior : float, default=0.5
            Probability of the first data set before the release, in [0, 1].

        Returns
        -------
        accuracy : float
            Holds for any attacker; see :meth:`PrivacyProfile.attack_accuracy
            <sklearn_pate.accounting.PrivacyProfile.attack_accuracy>`.
        """
        return self.profile.attack_accuracy(prior)

    def detection_rate(self, false_alarms: float) -> float:
        """Bound how often an attacker detects a true claim about one unit.

        Parameters
        ----------
        false_alarms : float
            Share of the false claims that the attacker accepts, in [0, 1].

        Returns
        -------
        detections : float
            Holds for any attacker; see :meth:`PrivacyProfile.detection_rate
            <sklearn_pate.accounting.PrivacyProfile.detection_rate>`.
        """
        return self.profile.detection_rate(false_alarms)

    def to_dp_accounting(self) -> Any:
        """Return an accountant of dp-accounting that has spent the cost of this fit.

        It has the relation of this statement, so that it refuses releases whose cost is
        for another one.

        Returns
        -------
        accountant : dp_accounting.rdp.RdpAccountant
            See :meth:`RdpCurve.to_dp_accounting
            <sklearn_pate.accounting.RdpCurve.to_dp_accounting>`. It counts by `curve`,
            so that its epsilon may be above the exact one that is stated.

        Raises
        ------
        ImportError
            If dp-accounting is not installed.
        """
        return self.curve.to_dp_accounting(self.relation)

    def __iter__(self) -> Iterator[float]:
        yield self.epsilon
        yield self.delta

    def __repr__(self) -> str:
        return (
            f"PrivacySpent(epsilon={write_epsilon(self.epsilon)}, delta={self.delta})"
        )

    def __str__(self) -> str:
        if np.isinf(self.epsilon):
            guarantee = "This fit gives no privacy guarantee (epsilon=inf)"
        else:
            guarantee = (
                f"This fit is (epsilon={write_epsilon(self.epsilon)}, "
                f"delta={self.delta})-differentially private"
            )
        if self.release == "scores":
            release = (
                f"The mean score function of {counted(self.n_teachers, 'teacher')} was "
                f"released by {self.mechanism}"
            )
        elif self.release == "newton":
            release = (
                "The model is a logistic regression. It was computed in 3 steps; in "
                f"each, every {self.unit} contributed one vector of bounded length, "
                f"and noise was added to the sum, by {self.mechanism}"
            )
        elif self.n_queries is None:
            release = f"One model was released by {self.mechanism}"
        else:
            # Of the learners with votes, only nearest neighbours have this relation.
            from_samples = self.relation == "add-remove"
            voter = "nearest row" if from_samples else "teacher"
            voters = counted(self.n_teachers, voter)
            if from_samples:
                voters = f"the {voters} of secret samples"
            release = (
                f"{counted(self.n_queries, 'query')} to {voters} "
                f"{'was' if self.n_queries == 1 else 'were'} answered by "
                f"{self.mechanism}"
            )
        if self.n_tables is not None:
            release += (
                ". The public rows were drawn from noisy counts of the values in "
                f"{counted(self.n_tables, 'column')}, which the statement covers, too"
            )
        return (
            f"{guarantee}. Neighbouring data sets differ by one change: "
            f"{self.neighbours}. {release}. The statement covers this fit alone, no "
            f"search or other fit around it. It assumes {_enumerate(self.assumptions)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain Python values.

        Returns
        -------
        statement : dict
            Every field except `curve`, `neighbours`, code and sentence of each
            assumption, the pairs [epsilon, delta] of `profile`, and `facts`; ready for
            ``json.dumps`` unless epsilon is infinite.
        """
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("curve", "assumptions", "profile")
        } | {
            "neighbours": self.neighbours,
            "assumptions": [
                {"code": one.code, "sentence": one.sentence} for one in self.assumptions
            ],
            "profile": np.stack(
                [self.profile.epsilons, self.profile.deltas], 1
            ).tolist(),
            "facts": self.facts.to_dict(),
        }


def write_epsilon(epsilon: float) -> str:
    """Write epsilon with three decimals, rounded up."""
    if np.isinf(epsilon):
        return "inf"
    # A last digit that calibration or a product rounded up must not add a step.
    return f"{np.ceil(epsilon * 1000 * (1 - 1e-12)) / 1000 + 0:.3f}"


def _enumerate(assumptions: tuple[Assumption, ...]) -> str:
    """Join the sentences of assumptions."""
    *most, last = (f"that {one}" for one in assumptions)
    return f"{', '.join(most)} and {last}" if most else last


def plans_privacy(estimator: Any) -> bool:
    """Check that an estimator can state the privacy cost of a fit beforehand.

    Its ``plan_privacy(X, y, **fit_params)`` returns what ``privacy_spent_`` will be
    after ``fit`` with the same arguments. No other part of its fit may depend on
    private rows.
    """
    return callable(getattr(type(estimator), "plan_privacy", None))

"""PrivacySpent: the privacy statement of a fit, its assumptions and its text."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from math import isinf
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_pate.accounting._calibrate import six_digits
from sklearn_pate.accounting._cost import (
    NEIGHBOURS,
    Cost,
    ExactCost,
    GaussianTest,
    by_unit_and_relation,
    check_add_up,
    check_neighbours,
)
from sklearn_pate.accounting._profile import (
    PrivacyProfile,
    compose_profiles,
    curve_profile,
)
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._value_checks import (
    capitalised,
    check_option,
    check_positive,
    counted,
    fact_lines,
    read_table,
)
from sklearn_pate.accounting.composition import upper_envelope

THOUSAND = 1000
# 60 digits, so that figures are rounded up correctly.
_EXACT = Context(prec=60)
_TEXTS = read_table("sklearn_pate.accounting", "statement.toml")
#: Content that the guarantee hides, by unit of privacy and relation.
PROTECTED = by_unit_and_relation("protected")
#: Quantities that are not protected, by the code of the assumption that it is public.
UNPROTECTED: dict[str, str] = _TEXTS["unprotected"]
#: Headings of the facts.
HEADINGS: dict[str, str] = _TEXTS["heading"]
# Subject of a statement, and what an attacker has, by release.
_SUBJECTS: dict[str, list[str]] = _TEXTS["subject"]
# Sentences of the codes. Cards contain the codes alone.
_SENTENCES: dict[str, dict[str, str]] = _TEXTS["sentence"]
# Sentences of all statements.
_OF_ALL: dict[str, str] = _TEXTS["always"]
_NUMBER = {"row": "number of rows", "party": "number of parties"}
_POST_PROCESSING = {
    "scores": "function",
    "newton": "predictions",
    "counts": "counts",
    "learner": "predictions",
    "search": "predictions",
    "metrics": "metrics",
    "several": "predictions",
    "measured": "measured",
}
# Kinds that may include the noise of other packages.
_OF_ANY_NOISE = ("learner", "several", "measured")
_COMPOSITION = {
    "several": "several",
    "measured": "several",
    "neighbours": "sampled",
    "search": "search",
    "learner": "unknown",
}
RELEASES = (
    *("answers", "scores", "newton", "sum", "model", "search", "metrics", "several"),
    "measured",
)


@dataclass(frozen=True)
class Assumption:
    """Assumption of a private fit, for the data holder to confirm.

    If an assumption is false, there is no guarantee. ``str(assumption)`` is `sentence`.

    Parameters
    ----------
    code : str
        Short permanent name in privacy cards and reports. An estimator of another
        package needs codes that this package does not use.

    sentence : str
        The assumption as a clause that can follow "assumes that", without a capital or
        a full stop.

    question : str, default=""
        Question in a privacy report to the person who confirms the assumption. Empty
        for a defect, such as seeded noise, that voids the guarantee. Privacy cards do
        not contain the question.

    for_engineer : bool, default=False
        Whether the question is for the engineer who ran the fit. In a privacy report,
        the engineer signs such assumptions.

    Examples
    --------
    The assumption of a third-party estimator:

    >>> from sklearn_pate.accounting import Assumption
    >>> consent = Assumption(
    ...     code="clinic-consent",
    ...     sentence="everybody in the data has consented",
    ...     question="Is there a signed form of each patient?",
    ... )
    >>> print(f"The guarantee assumes that {consent}.")
    The guarantee assumes that everybody in the data has consented.
    """

    __module__ = "sklearn_pate.accounting"  # its name in files

    code: str
    sentence: str
    question: str = ""
    for_engineer: bool = False

    def __str__(self) -> str:
        return self.sentence


#: All assumptions of this package, by code.
ASSUMPTIONS = {
    code: Assumption(code, **texts)
    for code, texts in read_table("sklearn_pate.accounting", "assumptions.toml").items()
}
LABEL_SET = ASSUMPTIONS["label-set-public"]
LABEL_SET_READ = ASSUMPTIONS["label-set-read"]
RANGE_READ = ASSUMPTIONS["range-read"]
BINS_DECLARED = ASSUMPTIONS["bins-declared"]
COLUMNS = ASSUMPTIONS["columns-public"]
DOMAIN_DECLARED = ASSUMPTIONS["domain-declared"]
PUBLIC_ROWS = ASSUMPTIONS["public-rows"]
HELD_OUT_ROWS = ASSUMPTIONS["held-out-rows-public"]
QUALITY_ROWS_PUBLIC = ASSUMPTIONS["quality-rows-public"]
N_ROWS_PUBLIC = ASSUMPTIONS["n-rows-public"]
N_ROWS = ASSUMPTIONS["sampling-rate-public"]
N_FITTED = ASSUMPTIONS["n-fitted-public"]
OWN_DATA = ASSUMPTIONS["party-own-data"]
ONE_PARTY = ASSUMPTIONS["one-party-each"]
SHARDS_BY_KEY = ASSUMPTIONS["shards-by-key"]
OWN_SHARD = ASSUMPTIONS["shard-own-rows"]
ONE_SITE = ASSUMPTIONS["one-site-each"]
N_ROWS_OF_SITES = ASSUMPTIONS["n-rows-of-sites-public"]
NOISE_OF_SITES = ASSUMPTIONS["sites-draw-noise"]
COMPARED = ASSUMPTIONS["fingerprint-compared"]
MASKS = ASSUMPTIONS["masks-unbroken"]
#: Of sums over sites that nobody sees without noise.
OF_SITES = (ONE_SITE, NOISE_OF_SITES, COMPARED, MASKS)
CHOSEN_BLINDLY = ASSUMPTIONS["parameters-chosen-blindly"]
OTHER_RANDOM_STATE = ASSUMPTIONS["other-random-state"]
PUBLIC_REPRESENTATION = ASSUMPTIONS["representation-public"]
ROW_ALONE = ASSUMPTIONS["representation-row-alone"]
FROZEN_IS_PUBLIC = ASSUMPTIONS["frozen-public"]
BOUNDS = ASSUMPTIONS["bounds-public"]
ROW_BY_ROW = ASSUMPTIONS["network-row-by-row"]
FLOATING_POINT = ASSUMPTIONS["floating-point"]
SECRET = ASSUMPTIONS["search-secret"]
ALIKE = ASSUMPTIONS["fits-alike"]
MODEL_IS_PUBLIC = ASSUMPTIONS["model-is-public"]
FITTED_APART = ASSUMPTIONS["fitted-apart"]
SCORES_OF_ROW = ASSUMPTIONS["scores-of-row"]
SUBGROUPS_DECLARED = ASSUMPTIONS["subgroups-declared"]
FITTED_ROWS_UNPROTECTED = ASSUMPTIONS["fitted-rows-unprotected"]
SEEDED = ASSUMPTIONS["noise-seeded"]
NORM_READ = ASSUMPTIONS["norm-read"]


@dataclass(frozen=True)
class StatementFacts:
    """Facts derived from the fields of a privacy statement. May be published.

    Created by :attr:`PrivacySpent.facts <sklearn_pate.PrivacySpent.facts>`.
    :meth:`sentences` gives the facts in words.

    Parameters
    ----------
    variant : {"pure", "approximate", "none"}
        "pure" if delta is 0, "none" if epsilon is infinite.

    mu : float or None
        The fit is mu-Gaussian differentially private. None if no mu is known.

    rho : float or None
        The fit is rho-zero-concentrated differentially private. None if no rho is
        known.

    protected : str
        Description of what the guarantee protects in the private data. Empty without a
        guarantee.

    unprotected : tuple of str
        Quantities that the results may reveal, as they are public by assumption or by
        the neighbour relation.

    count_is_public : bool
        Whether the number of units is among the unprotected quantities.

    trust_model : {"central", "collector", "sites"}
        "central": one data holder has the raw data and adds the noise. "collector":
        parties keep their raw data, and a collector of their votes adds the noise.
        "sites": sites keep their raw data, and each of them adds a part of the noise.

    tuning : {"blind", "paid", "unknown"}
        "blind": parameters are assumed to be chosen without private data. "paid": a
        search chose parameters, and the cost includes the search.

    composition : {"gaussian", "renyi", "sampled", "steps", "parts", "search", \
"several", "larger", "unknown"}
        Method that composes the costs of all steps.

    post_processing : {"student", "function", "counts", "predictions", "metrics", \
"measured"}
        Computations on the released results, at no further privacy cost.

    arithmetic : {"whole-numbers", "floating-point", "unknown"}
        Type of numbers in which noise is drawn.

    randomness : {"operating-system", "seeded", "unknown"}
        Source of the noise.

    Notes
    -----
    mu-Gaussian differential privacy implies a Renyi divergence of at most alpha mu^2 /
    2 at each order alpha, so that rho = mu^2 / 2. A pure epsilon implies rho =
    epsilon^2 / 2 (Bun, Steinke 2016, "Concentrated differential privacy:
    simplifications, extensions, and lower bounds", Proposition 1.4 and Lemma 2.4).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_pate.learners import DPLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DPLogisticRegression(feature_bounds=(0, 10), classes=[0, 1, 2])
    >>> facts = clf.fit(X, y).privacy_spent_.facts
    >>> facts.variant, facts.rho, facts.protected
    ('pure', 0.5, 'content of one row')
    >>> print(facts.sentences()["trust_model"])
    Central: the data holder has the raw data, adds the noise, and is trusted with both.
    """

    variant: str
    mu: float | None
    rho: float | None
    protected: str
    unprotected: tuple[str, ...]
    count_is_public: bool
    trust_model: str
    tuning: str
    composition: str
    post_processing: str
    arithmetic: str
    randomness: str

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain values.

        Returns
        -------
        facts : dict
            All fields, as values for strict JSON.
        """
        return asdict(self) | {"unprotected": [*self.unprotected]}

    def sentences(self) -> dict[str, str]:
        """Write the facts in words.

        Returns
        -------
        sentences : dict
            A sentence or number for each field that has one. Four sentences are of all
            statements: `release_type`, `data_source`, `access` and `timing`.
        """
        return sentences_of(self.to_dict())


def facts_of(spent: "PrivacySpent") -> StatementFacts:
    """Derive the facts from the fields of a statement."""
    codes = {one.code for one in spent.assumptions}
    kind, private = kind_of(spent), not isinf(spent.epsilon)
    pure_epsilon = spent.profile.epsilon_at(0.0)
    number = _NUMBER.get(spent.unit) if spent.relation == "replace-one" else None
    unprotected = [number] if number else []
    unprotected += [text for code, text in UNPROTECTED.items() if code in codes]
    with_guarantee = "approximate" if spent.delta else "pure"
    rho = None if isinf(pure_epsilon) else pure_epsilon**2 / 2
    if spent.mu is not None:
        rho = spent.mu**2 / 2
    is_known = FLOATING_POINT.code in codes or kind not in _OF_ANY_NOISE
    randomness = "operating-system" if is_known else "unknown"
    arithmetic = "whole-numbers" if is_known else "unknown"
    tuning = "blind" if CHOSEN_BLINDLY.code in codes else "unknown"
    return StatementFacts(
        variant=with_guarantee if private else "none",
        mu=spent.mu,
        rho=rho,
        protected=PROTECTED[spent.unit, spent.relation] if private else "",
        unprotected=tuple(dict.fromkeys(unprotected)),
        count_is_public=_NUMBER.get(spent.unit) in unprotected,
        trust_model=_trust_model(spent, codes),
        tuning="paid" if kind == "search" else tuning,
        composition=_composition_of(spent, kind, codes),
        post_processing=_POST_PROCESSING.get(kind, "student"),
        arithmetic=("floating-point" if FLOATING_POINT.code in codes else arithmetic),
        randomness="seeded" if SEEDED.code in codes else randomness,
    )


def _trust_model(spent: "PrivacySpent", codes: set[str]) -> str:
    if NOISE_OF_SITES.code in codes:
        return "sites"
    return "collector" if spent.unit == "party" else "central"


def kind_of(spent: "PrivacySpent") -> str:
    """Read the kind of the data flow from a statement, for published models too."""
    if spent.release != "answers":
        return {
            "sum": "sums",
            "model": "counts" if DOMAIN_DECLARED in spent.assumptions else "learner",
        }.get(spent.release, spent.release)
    if spent.relation == "add-remove":
        return "neighbours"
    return "parties" if spent.unit == "party" else "teachers"


def sentences_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """Write the facts of a dictionary in words, in the order of HEADINGS."""
    found = {}
    for name in HEADINGS:
        if name in _OF_ALL:
            found[name] = _OF_ALL[name]
        elif name in _SENTENCES:
            found[name] = _SENTENCES[name][facts[name]]
        elif value := facts[name]:
            if isinstance(value, float):
                value = f"{six_digits(value, np.ceil):g}"
            text = ", ".join(value) if isinstance(value, (list, tuple)) else value
            found[name] = _TEXTS["value"][name].format(text)
    return {name: capitalised(text) for name, text in found.items()}


def _composition_of(spent: "PrivacySpent", kind: str, codes: set[str]) -> str:
    if FITTED_APART.code in codes and kind == "measured":
        return "larger"
    if spent.mu is not None:
        return "gaussian"
    if ROW_BY_ROW.code in codes and kind == "learner":
        return "steps"
    if FLOATING_POINT.code in codes and kind == "learner":
        return "parts"
    return _COMPOSITION.get(kind, "renyi")


@dataclass(frozen=True)
class PrivacySpent:
    """Privacy statement of one fit. May be published.

    The statement depends on no private value. ``epsilon, delta = privacy_spent``
    unpacks the statement. ``print(privacy_spent)`` prints the statement in words, one
    fact per line.

    Parameters
    ----------
    epsilon : float
        Worst-case epsilon over all private data, in nats. Infinite if the noise was
        seeded: the fit then has no guarantee, and no result may be published.

    delta : float
        Delta of the (epsilon, delta) guarantee, 0 for a pure guarantee.

    unit : {"row", "group", "party"}
        Unit of privacy.

    relation : {"replace-one", "add-remove", "add-remove-or-change"}
        Neighbour relation: the change of one unit that the guarantee covers. With
        "replace-one", the number of units is public. Costs for different units or
        relations can neither be added nor compared.

    release : {"answers", "scores", "newton", "sum", "model", "search", "metrics", \
"several", "measured"}
        Kind of release, such as answers to queries, mean scores, a model trained with
        noise, the best candidate of a private search, or metrics of a model.

    mechanism : str
        The mechanism with its parameters.

    n_teachers : int or None
        Number of teachers, or of nearest rows that vote in place of teachers. None for
        a learner without votes.

    n_queries : int or None
        Number of queries that the cost covers. None for a learner without queries.

    assumptions : tuple of Assumption
        Assumptions for the data holder to confirm. If one assumption is false, there is
        no guarantee.

    curve : RdpCurve
        Renyi curve of the fit. Curves of several fits on the same data add up.
        ``to_epsilon(delta)`` of the sum is the cost of all these fits together.

    profile : PrivacyProfile, default=None
        Delta at every epsilon, for this fit alone. `profile` and `curve` must describe
        one release: replace both together. Default: computed from `curve`, `epsilon`
        and `delta`.

    n_tables : int, default=None
        Number of columns whose noisy counts were released, to draw rows in place of
        public rows. The cost includes the noisy counts. None if public rows were given.

    n_coded : int, default=None
        Number of columns whose codes were counted by class with noise, to become
        features. The cost includes the noisy counts. None without such columns.

    class_count : bool, default=False
        Whether a noisy count of each class was released before the answers. The cost
        includes this count.

    mu : float, default=None
        The fit is mu-Gaussian differentially private (Dong, Roth, Su 2022, "Gaussian
        differential privacy"): all of its noise is Gaussian. None if no mu is known.

    Raises
    ------
    ValueError
        If a field is missing or invalid, or `relation` is unknown for `unit`.

    Notes
    -----
    Let M be the release. For any event S and any two neighbouring data sets d and d',
    Pr[M(d) in S] <= e^epsilon Pr[M(d') in S] + delta (Dwork, Kenthapadi, McSherry,
    Mironov, Naor 2006, "Our data, ourselves: privacy via distributed noise
    generation"). Epsilon is at most ``curve.to_epsilon(delta)``, and smaller if an
    exact cost is known. The exact cost is known for noisy counts, noisy sums, pure
    guarantees, DP-SGD, and up to 100,000 answers with noise of a usual scale (for
    Gaussian noise, sigma from 3 to 10,000) by all mechanisms but
    :class:`~sklearn_pate.mechanisms.LNMax` on three or more classes. The proofs are on
    the page :doc:`Privacy cost of an answer </accounting>`.

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
    >>> str(spent.assumptions[0])
    'the set of labels, which was read from the training data, is public'
    >>> round((spent.curve + spent.curve).to_epsilon(1e-5), 2)  # two such fits
    1.16

    Statements with equal unit and relation add up, at the larger of their deltas. Noise
    and numbers of queries of both fits must be chosen beforehand:

    >>> spent + spent
    PrivacySpent(epsilon=1.077, delta=1e-05)

    In words:

    >>> print(spent)
    guarantee    This fit is (epsilon=0.737, delta=1e-05)-differentially private.
    risk         Suppose an attacker knows all other rows and wants to find out
                 which of two equally likely values one row has. Guessing blindly,
                 they are right 500 times in 1000. With this model, at most 541
                 times.
    neighbours   Replace one row by any other; the number of rows is public.
    release      50 queries to 100 teachers were answered by GNMax(sigma=40).
    covered      This fit alone. Each other fit, search or release about the same
                 data adds to the cost.
    assumptions  There is a guarantee only if all of these are true:
                 The set of labels, which was read from the training data, is
                 public.
                 Everybody may see the public rows, and they were chosen without
                 private rows.
                 The columns of the table, their types and their categories are
                 public.
                 All parameters were chosen without private data.
    """

    __module__ = "sklearn_pate.accounting"  # its name in files

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
    n_coded: int | None = None
    class_count: bool = False
    mu: float | None = None

    def __post_init__(self) -> None:
        check_neighbours(self.unit, self.relation)
        if self.profile is None:
            profile = curve_profile(self.curve).thinned(self.epsilon, self.delta)
            object.__setattr__(self, "profile", profile)
        check_option("release", self.release, RELEASES)
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
        check_positive("mu", self.mu, also=(None,))

    @property
    def neighbours(self) -> str:
        """Description of the change of private data that the guarantee covers.

        Returns
        -------
        neighbours : str
            Description of `unit` and `relation`.
        """
        return NEIGHBOURS[self.unit, self.relation]

    @property
    def facts(self) -> StatementFacts:
        """All facts of the statement, such as unprotected quantities.

        Returns
        -------
        facts : StatementFacts
            Facts derived from the other fields of the statement alone.
        """
        return facts_of(self)

    def delta_at(self, epsilon: Any) -> Any:
        """Return the delta of this release at another epsilon.

        Parameters
        ----------
        epsilon : float or array-like of float
            Epsilon in nats.

        Returns
        -------
        delta : float or ndarray of float
            Delta between 0 and 1, see :meth:`PrivacyProfile.delta_at
            <sklearn_pate.accounting.PrivacyProfile.delta_at>`.
        """
        return self.profile.delta_at(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return the epsilon of this release at another delta.

        Parameters
        ----------
        delta : float
            Delta of the (epsilon, delta) guarantee, in [0, 1].

        Returns
        -------
        epsilon : float
            Epsilon in nats. At the delta of the statement, the result is at most
            `epsilon` of the statement. Infinite if `profile` exceeds the given delta at
            all epsilons up to 500.
        """
        return self.profile.epsilon_at(delta)

    def attack_accuracy(self, prior: float = 0.5) -> float:
        """Bound how often an attacker guesses which of two data sets was used.

        Parameters
        ----------
        prior : float, default=0.5
            Probability before the release, in [0, 1], that the first data set was used.

        Returns
        -------
        accuracy : float
            Bound for any attacker, see :meth:`PrivacyProfile.attack_accuracy
            <sklearn_pate.accounting.PrivacyProfile.attack_accuracy>`.
        """
        return self.profile.attack_accuracy(prior)

    def detection_rate(self, false_alarms: float) -> float:
        """Bound how often an attacker detects a true claim about one unit.

        Parameters
        ----------
        false_alarms : float
            Share of false claims about a unit that the attacker accepts, in [0, 1].

        Returns
        -------
        detections : float
            Bound for any attacker, see :meth:`PrivacyProfile.detection_rate
            <sklearn_pate.accounting.PrivacyProfile.detection_rate>`.
        """
        return self.profile.detection_rate(false_alarms)

    def to_dp_accounting(self) -> Any:
        """Return an accountant of dp-accounting that has spent the cost of this fit.

        The accountant has the neighbour relation of this statement. The accountant
        refuses releases with costs for another relation.

        Returns
        -------
        accountant : dp_accounting.rdp.RdpAccountant
            See :meth:`RdpCurve.to_dp_accounting
            <sklearn_pate.accounting.RdpCurve.to_dp_accounting>`. The accountant
            composes Renyi curves, so its epsilon may be above the exact epsilon of the
            statement.

        Raises
        ------
        ImportError
            If dp-accounting is not installed.
        """
        return self.curve.to_dp_accounting(self.relation)

    def __add__(self, other: "PrivacySpent") -> "PrivacySpent":
        if not isinstance(other, PrivacySpent):
            return NotImplemented
        own = self.unit, self.relation
        check_add_up("Statements", own, (other.unit, other.relation))
        exact = None
        if self.mu is not None and other.mu is not None:
            exact = GaussianTest(float(np.hypot(self.mu, other.mu)))
        cost = Cost(self.unit, self.relation, self.curve + other.curve, exact)
        delta = max(self.delta, other.delta)
        composed = compose_profiles([self.profile, other.profile])
        stated = state_cost(
            cost,
            delta,
            release="several",
            mechanism=f"{self.mechanism} and by {other.mechanism}",
            assumptions=tuple(dict.fromkeys((*self.assumptions, *other.assumptions))),
            epsilon=_least_epsilon(cost, composed, delta),
        )
        profile = cost.profile.intersect(composed).thinned(stated.epsilon, delta)
        return replace(stated, profile=profile)

    def __iter__(self) -> Iterator[float]:
        yield self.epsilon
        yield self.delta

    def __repr__(self) -> str:
        return (
            f"PrivacySpent(epsilon={write_epsilon(self.epsilon)}, delta={self.delta})"
        )

    def __str__(self) -> str:
        return "\n".join(fact_lines(self._lines()))

    def in_one_line(self) -> str:
        """Write the statement in one line, for cards and reports.

        Returns
        -------
        text : str
            Facts of ``str(privacy_spent)``, each with its name.
        """
        facts = {name: " ".join(texts) for name, texts in self._lines().items()}
        return " ".join(f"{capitalised(name)}: {text}" for name, text in facts.items())

    def _lines(self) -> dict[str, list[str]]:
        """Write the facts of the statement, each under its name."""
        subject, kind = _SUBJECTS.get(self.release, _SUBJECTS["fit"])[0], "private"
        if isinf(self.epsilon):
            kind, risk = "void", _TEXTS["risk"]["void"]
        else:
            right = of_thousand(self.attack_accuracy())
            risk = risk_of(self.unit, self.relation, right, self.release)
        covered = _TEXTS["covered"]["one"].format(subject=subject)
        if self.n_tables is not None and self.release != "metrics":
            columns = counted(self.n_tables, "column")
            covered += " " + _TEXTS["covered"]["tables"].format(columns=columns)
        if self.n_coded is not None:
            columns = counted(self.n_coded, "column")
            covered += " " + _TEXTS["covered"]["codes"].format(columns=columns)
        if self.class_count:
            covered += " " + _TEXTS["covered"]["classes"]
        guarantee = _TEXTS["guarantee"][kind].format(
            subject=subject, epsilon=write_epsilon(self.epsilon), delta=self.delta
        )
        assumed = [f"{capitalised(one.sentence)}." for one in self.assumptions]
        return {
            "guarantee": [guarantee],
            "risk": [risk],
            "neighbours": [f"{capitalised(self.neighbours)}."],
            "release": [self._release_in_words()],
            "covered": [covered],
            "assumptions": [_TEXTS["assumptions"][kind], *assumed],
        }

    def _release_in_words(self) -> str:
        kind = self.release
        if kind not in ("scores", "newton", "metrics", "several", "measured"):
            kind = "model" if self.n_queries is None else "answers"
        if kind == "metrics" and self.n_tables is None:
            kind = "outcomes"
        voters = counted(self.n_teachers, "teacher")
        # Of the learners with votes, only nearest neighbours have this relation.
        if kind == "answers" and self.relation == "add-remove":
            voters = f"the {counted(self.n_teachers, 'nearest row')} of secret samples"
        return _TEXTS["release"][kind].format(
            voters=voters,
            unit=self.unit,
            queries=counted(self.n_queries, "query"),
            were="was" if self.n_queries == 1 else "were",
            tables=counted(self.n_tables, "table"),
            mechanism=self.mechanism,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain Python values.

        Returns
        -------
        statement : dict
            Values for ``json.dumps``, unless epsilon is infinite: `neighbours`,
            `facts`, and every field except `curve`. Assumptions have code and sentence,
            and `profile` is a list of pairs [epsilon, delta].
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


def state_cost(
    cost: Cost,
    delta: float,
    *,
    release: str,
    mechanism: str,
    assumptions: tuple[Assumption, ...],
    n_teachers: int | None = None,
    n_queries: int | None = None,
    n_tables: int | None = None,
    n_coded: int | None = None,
    class_count: bool = False,
    epsilon: float | None = None,
) -> PrivacySpent:
    """State a cost at a delta; epsilon=None takes the smallest known epsilon."""
    if epsilon is None:
        epsilon = cost.epsilon(delta) if delta else cost.curve.pure_epsilon
    return PrivacySpent(
        epsilon=float(epsilon),
        delta=float(delta),
        unit=cost.unit,
        relation=cost.relation,
        release=release,
        mechanism=mechanism,
        n_teachers=n_teachers,
        n_queries=n_queries,
        assumptions=assumptions,
        curve=cost.curve,
        profile=cost.profile.thinned(epsilon, delta),
        n_tables=n_tables,
        n_coded=n_coded,
        class_count=class_count,
        mu=cost.mu,
    )


def with_label_set(spent: PrivacySpent, label_set: Assumption) -> PrivacySpent:
    """Return a statement with another assumption about the labels."""
    changed = (label_set if one is LABEL_SET else one for one in spent.assumptions)
    return replace(spent, assumptions=tuple(changed))


def _least_epsilon(cost: Cost, composed: PrivacyProfile, delta: float) -> float:
    """Return the smallest epsilon by curve, exact cost and composed profile."""
    if delta == 0:
        return cost.curve.pure_epsilon
    return min(cost.quiet_epsilon(delta), composed.epsilon_at(delta))


def write_epsilon(epsilon: float) -> str:
    """Write epsilon with three decimals, rounded up."""
    if isinf(epsilon):
        return "inf"
    # A last digit that calibration or a product rounded up must not add a step.
    return f"{np.ceil(epsilon * 1000 * (1 - 1e-12)) / 1000 + 0:.3f}"


def risk_of(
    unit: str, relation: str, right: int, release: str, unit_name: str | None = None
) -> str:
    """Write the largest number of right guesses of a thousand about one unit."""
    texts, is_named = _TEXTS["risk"], unit_name is not None
    one, others = (texts[unit][part][is_named] for part in ("names", "others"))
    attacker = texts[unit][relation].format(
        others=others, one=one.format(name=unit_name)
    )
    at_most = f"at most {right} times" if right < THOUSAND else "perhaps every time"
    published = _SUBJECTS.get(release, _SUBJECTS["fit"])[1]
    return f"{attacker} {texts['guesses']} {published}, {at_most}."


def of_thousand(probability: float) -> int:
    """Express a probability as a number of a thousand cases, rounded up."""
    return int(round_up(THOUSAND * probability, 0))


def round_up(value: float, places: int) -> float:
    """Round up to decimal places, as privacy statements round epsilon.

    An excess of at most one billionth of the last place is dropped: floating-point
    arithmetic may have added it.
    """
    with localcontext(_EXACT):
        unit = Decimal(10) ** -places
        scaled = max(Decimal(value) / unit - Decimal("1e-9"), Decimal(0))
        return float(scaled.to_integral_value(rounding=ROUND_CEILING) * unit)


def plans_privacy(estimator: Any) -> bool:
    """Check that an estimator can state the privacy cost of a fit beforehand.

    ``plan_privacy(X, y, **fit_params)`` of the estimator returns what
    ``privacy_spent_`` will be after ``fit`` with the same arguments. No other part of
    its fit may depend on private rows.
    """
    return callable(getattr(type(estimator), "plan_privacy", None))


def statement_of(learner: Any) -> PrivacySpent:
    """Return the statement of a fitted private classifier, or of a published one.

    NotFittedError is raised if it is not fitted, ValueError if it has none.
    """
    if plans_privacy(learner) or hasattr(type(learner), "card"):
        check_is_fitted(learner, "privacy_spent_")
    spent = getattr(learner, "privacy_spent_", None)
    if not isinstance(spent, PrivacySpent):
        raise ValueError(
            f"{type(learner).__name__} has no privacy_spent_; pass a fitted private "
            "classifier, such as PATEClassifier, or a Pipeline that ends in one."
        )
    return spent


@dataclass(frozen=True)
class _LargestCost:
    """Cost of one of several releases, whichever a changed unit is in."""

    profiles: tuple[PrivacyProfile, ...]
    is_all: ClassVar[bool] = True

    def epsilon(self, delta: float) -> float:
        """Compute epsilon at a delta."""
        return max(one.epsilon_at(delta) for one in self.profiles)

    @property
    def profile(self) -> PrivacyProfile:
        """Delta at every epsilon."""
        return PrivacyProfile.largest(self.profiles)

    def after(self, mu: float) -> None:
        """Return None: with a Gaussian release, curves are added."""


def with_metrics(of_model: PrivacySpent, of_metrics: PrivacySpent) -> PrivacySpent:
    """State the cost of a model together with metrics of it.

    The costs add up, unless fit_and_measure fitted the model on other rows: the larger
    of the costs then holds for both.
    """
    if FITTED_APART in of_metrics.assumptions:
        return _larger_cost(of_model, of_metrics)
    return replace(
        of_model + of_metrics,
        release="measured",
        mechanism=f"{of_model.mechanism}, and metrics by {of_metrics.mechanism}",
    )


def _larger_cost(of_fit: PrivacySpent, of_metrics: PrivacySpent) -> PrivacySpent:
    """State the cost of a fit and of metrics on rows that it did not read."""
    both = of_fit, of_metrics
    exact: ExactCost = _LargestCost(tuple(one.profile for one in both))
    if of_fit.mu is not None and of_metrics.mu is not None:
        exact = GaussianTest(max(of_fit.mu, of_metrics.mu))
    curve = upper_envelope(one.curve for one in both)
    return state_cost(
        Cost(of_metrics.unit, of_metrics.relation, curve, exact),
        of_metrics.delta,
        release="measured",
        mechanism=f"{of_fit.mechanism}, and metrics on other rows by "
        f"{of_metrics.mechanism}",
        assumptions=tuple(
            dict.fromkeys((*of_fit.assumptions, *of_metrics.assumptions))
        ),
    )

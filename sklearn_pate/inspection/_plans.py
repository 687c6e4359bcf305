"""Plans of fits and searches: noise, privacy cost and label accuracy beforehand."""

import sys
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    check_cv,
)

from sklearn_pate._aggregation._checks import check_number_of_groups, read_rarest
from sklearn_pate._aggregation._design import Design, design_fit
from sklearn_pate._aggregation._entry import ReleasePlan
from sklearn_pate._aggregation._outlook import (
    FEW_ROWS,
    VotesWithLead,
    answers_of,
    newton_units,
    why_few_public_rows,
    why_many_queries,
    why_rarest_is_lost,
    why_scores_useless,
    why_useless,
)
from sklearn_pate._aggregation._rows import number_of_units
from sklearn_pate._estimators._kinds import accepts_unlabeled, last_step
from sklearn_pate._inputs._labels import public_table, read_classes
from sklearn_pate._pate import PATEClassifier
from sklearn_pate._synthetic._domain import count_tables
from sklearn_pate.accounting._calibrate import check_delta_is_small
from sklearn_pate.accounting._ledger import costs as spent
from sklearn_pate.accounting._ledger import fitting_epsilon
from sklearn_pate.accounting._statement import (
    CHOSEN_BLINDLY,
    SEEDED,
    Assumption,
    PrivacySpent,
    write_epsilon,
)
from sklearn_pate.accounting._value_checks import (
    WIDTH,
    capitalised,
    check_count,
    counted,
    fact_lines,
    is_positive,
)
from sklearn_pate.exceptions import PrivacyUtilityWarning
from sklearn_pate.inspection._leaks import splits_by_labels
from sklearn_pate.learners._newton import DPNewtonClassifier
from sklearn_pate.mechanisms import MeanScores
from sklearn_pate.mechanisms._noisy_sum import ClassCounts, MarginalCounts

Learner = PATEClassifier | DPNewtonClassifier
Search = GridSearchCV | RandomizedSearchCV

_OPENING = (
    "An answer is right if it is the class with the most votes. For each lead of that "
    "class over every other class, at least this share of the"
)
_CLOSING = (
    "The lead depends on the private data. So does the share of queries where most "
    "teachers are right."
)


@dataclass(frozen=True)
class Fact:
    """One fact of a plan.

    Parameters
    ----------
    name : str
        Name of the fact, which is an attribute of the plan.

    value : object
        Value of the attribute.

    text : str, default=""
        Text for a reader. A fact without a text is not printed.

    Examples
    --------
    >>> from sklearn_pate.inspection import Fact, Plan
    >>> Plan((Fact("n_teachers", 250, "250, each on about 80 rows"),)).n_teachers
    250
    """

    name: str
    value: Any
    text: str = ""


@dataclass(frozen=True)
class Plan:
    """Plan of a fit or a search: a list of facts, as text and numbers.

    A plan from numbers alone depends on no private value and may be published. A plan
    from data may be published if its `assumptions` hold. A plan of a search is
    sensitive.

    Parameters
    ----------
    facts : tuple of Fact
        Facts, of which each is an attribute of the plan, such as ``plan.epsilon``. A
        fact that does not apply is absent.

    warnings : tuple of str, default=()
        Reasons to change the plan.

    assumptions : tuple of Assumption, default=()
        Assumptions of the fit about the data, as in ``privacy_spent_.assumptions``.

    paragraphs : tuple of str, default=()
        Text after the facts.

    sensitive : bool, default=False
        Whether the plan is for the data holder alone.

    Notes
    -----
    The facts of every fit are:

    - `release`, `mechanism`, `epsilon`, `delta`, `unit`, `relation`, `neighbours`: as
      in ``privacy_spent_``;
    - `n_classes`, and `n_rows` if the number of private rows is public and known;
    - `rarest`: share of the rarest class, if `class_prior` was given;
    - `n_tables`: number of columns whose noisy counts are released, to draw rows in
      place of public rows;
    - `class_noise`: standard deviation, in rows or groups, of the noise on the count of
      each class, which balanced votes need.

    A fit of teachers has `n_teachers` and `rows_per_teacher`. If they answer queries:

    - `n_queries`;
    - `epsilon_of_one`: epsilon of one query alone, at `delta`. All queries together
      usually cost less than `n_queries` times this value;
    - `at_margins`: tuple of :class:`LabelAccuracy` at several leads of the most-voted
      class;
    - `margin_for_90`, `margin_for_99`: smallest lead, as a share of the teachers, at
      which 90 % or 99 % of the answers are right. None if no lead is large enough.

    Mean scores and a DPNewtonClassifier have `n_coordinates`, the number of
    coefficients of each class except one. A DPNewtonClassifier has:

    - `training`: text about its noisy steps;
    - `n_units_needed`: number of rows or groups below which noise hides the
      coefficients, for classes of equal shares or with the share `rarest`.

    A search has:

    - `n_fits`, `n_candidates`, `n_splits` and `refit`;
    - `share`: share of the ledger's budget that all fits take together, if no fit has
      an entry yet and the most costly candidate is refitted;
    - `left`: share of the budget that is left now;
    - `fits`: whether `share` is at most `left`;
    - `ledger`: path of the ledger;
    - `stratified`: whether the splits depend on labels;
    - `fitting_epsilon`: a smaller epsilon of each fit with which a search beyond the
      budget would be within it. Absent if fits have different epsilons, or if it is
      below a tenth of the present epsilon or of the budget.

    Examples
    --------
    >>> from sklearn_pate import PATEClassifier
    >>> from sklearn_pate.inspection import plan
    >>> clf = PATEClassifier(n_teachers=250, n_queries=100, privacy_unit="group")
    >>> planned = plan(clf)
    >>> f"90 % of the answers are right from a lead of {planned.margin_for_90:.0%} on"
    '90 % of the answers are right from a lead of 32% on'
    """

    facts: tuple[Fact, ...]
    warnings: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    paragraphs: tuple[str, ...] = ()
    sensitive: bool = False

    def __getattr__(self, name: str) -> Any:
        # A plan that is being unpickled has no facts yet.
        for fact in vars(self).get("facts", ()):
            if fact.name == name:
                return fact.value
        raise AttributeError(f"This plan has no {name}: see dir(plan) for its facts.")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(fact.name for fact in self.facts)]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain Python values.

        Returns
        -------
        plan : dict
            Values for ``json.dumps``, unless epsilon is infinite, which JSON lacks.
        """
        values = {fact.name: fact.value for fact in self.facts}
        if "at_margins" in values:
            values["at_margins"] = [asdict(one) for one in self.at_margins]
        return values | {
            "warnings": list(self.warnings),
            "assumptions": [asdict(one) for one in self.assumptions],
        }

    def __str__(self) -> str:
        facts = {
            fact.name.removeprefix("n_").replace("_", " "): fact.text
            for fact in self.facts
            if fact.text
        }
        paragraphs = [
            "\n".join(fact_lines(facts)),
            *self.paragraphs,
            self._publication(),
            *(_wrapped(f"Warning: {warning}") for warning in self.warnings),
        ]
        return "\n\n".join(paragraphs)

    def _publication(self) -> str:
        if self.sensitive:
            return "This plan depends on private data and is for the data holder alone."
        if not self.assumptions:
            return "This plan depends on no private value and may be published."
        sentences = (one.sentence for one in self.assumptions if one != SEEDED)
        return "\n".join(
            [
                "This plan may be published if all of these are true:",
                *(_wrapped(f"- {capitalised(one)}.", "  ") for one in sentences),
            ]
        )


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent)


def plan(
    estimator: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    X_public: Any = None,
    groups: Any = None,
    n_rows: int | None = None,
    n_classes: int | None = None,
    class_prior: float | ArrayLike | None = None,
    margins: Sequence[float] = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
) -> Plan:
    """Plan a fit or a search, from data or from numbers alone.

    No noise is drawn, no cost is charged, and nothing is trained on private rows. With
    data, teacher and student are tested on public rows with artificial labels.

    Parameters
    ----------
    estimator : PATEClassifier, DPNewtonClassifier, GridSearchCV or RandomizedSearchCV
        Estimator to fit later. A search is around such a classifier with a `ledger`, or
        around a Pipeline that ends in one. A random search needs an integer
        `random_state`.

    X, y : object, default=None
        Private rows and labels, as in `fit`. None plans a fit from numbers. Of the rows
        of a search, only the number and the columns are read.

    X_public, groups : object, default=None
        As in `fit`.

    n_rows : int, default=None
        Without X, the number of private rows. Must be None for ``privacy_unit="group"``
        as the number is then private.

    n_classes : int, default=None
        Without X, the number of classes, which is public. None is the number of the
        parameter `classes`, or 2.

    class_prior : float or array-like of shape (n_classes,), default=None
        Shares of the classes, or the share of the rarest class, from public knowledge.
        Must not be computed from private rows. The plan then warns if the noise is too
        large to learn the rarest class.

    margins : sequence of float, default=(0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
        Leads of the most-voted class over every other class, as shares of the teachers,
        at which to compute the label accuracy.

    Returns
    -------
    plan : Plan
        Plan with the epsilon, delta and mechanism that the fit will state. The plan of
        a search has the number of fits, and the share of the budget that they take.

    Raises
    ------
    ValueError
        If a parameter or the data cannot be used, epsilon cannot be reached, or the
        answers depend on a student. Also if a search has no ledger, or a cost that is
        not known before it starts.

    LedgerError
        If the ledger of a search cannot be read.

    See Also
    --------
    sklearn_pate.PATEClassifier.plan_privacy : Privacy statement of a fit.

    Notes
    -----
    The label accuracy is computed from the exact distribution of an answer, for the
    worst votes with a given lead. See :class:`~sklearn_pate.inspection.LabelAccuracy`.
    From numbers alone, the number of coefficients of a DPNewtonClassifier assumes a
    table with many public rows and classes of equal shares. With `synthetic`, the
    domain must then declare all columns by name, as the cost depends on their number.

    The ledger charges the worst case of all queries of each fit of a search. Renyi
    costs add up at the orders of the ledger (Feldman and Zrnic 2021); see
    :class:`~sklearn_pate.PrivacyLedger`. The cost does not include the choice of a
    candidate by scores on private labels, unlike the cost of
    :class:`~sklearn_pate.model_selection.PrivateSearchCV`.

    Examples
    --------
    >>> from sklearn_pate import DPNewtonClassifier, PATEClassifier
    >>> from sklearn_pate.inspection import plan
    >>> planned = plan(PATEClassifier(n_queries=100), n_rows=90_000)
    >>> planned.n_teachers
    300
    >>> [round(one.right, 2) for one in planned.at_margins]
    [0.69, 0.84, 0.98, 1.0, 1.0, 1.0]
    >>> planned = plan(DPNewtonClassifier(), n_rows=30_000)
    >>> planned.mechanism, planned.n_coordinates
    ('NewtonSteps(noise_scale=7.46127)', 233)

    A search with a ledger:

    >>> import tempfile
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn_pate import PrivacyLedger, PublicData
    >>> from sklearn_pate.mechanisms import GNMax
    >>> X, y = make_blobs(3000, centers=2, random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = PrivacyLedger(folder.name + "/patients.sqlite", epsilon=3, delta=1e-6)
    >>> pate = PATEClassifier(
    ...     LogisticRegression(),
    ...     mechanism=GNMax(sigma=40),
    ...     n_queries=50,
    ...     epsilon=None,
    ...     ledger=ledger,
    ... )
    >>> grid = {"estimator__C": [0.1, 1.0]}
    >>> search = GridSearchCV(pate, grid, cv=KFold(3, shuffle=True))
    >>> planned = plan(search, X[:2500], y[:2500], X_public=PublicData(X[2500:]))
    >>> planned.n_fits, planned.fits
    (7, True)
    >>> print(f"{planned.share:.0%} of the budget")
    75% of the budget
    >>> folder.cleanup()
    """
    is_search = isinstance(estimator, Search)
    _check_source(
        is_search,
        {"X": X, "y": y, "X_public": X_public, "groups": groups},
        {"n_rows": n_rows, "n_classes": n_classes},
    )
    if is_search:
        return _plan_search(estimator, X, np.asarray(y), X_public, groups)
    if not isinstance(estimator, Learner):
        raise ValueError(
            f"estimator is of type {type(estimator).__name__}; pass a PATEClassifier, "
            "a DPNewtonClassifier, or a GridSearchCV or RandomizedSearchCV around one."
        )
    _check_margins(margins)
    learner = clone(estimator)
    assumptions: tuple[Assumption, ...] = ()
    more: tuple[str | None, ...] = ()
    if X is None:
        _check_n_rows(learner, n_rows)
        sizes = _Sizes.of_numbers(learner, n_rows, n_classes)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyUtilityWarning)  # the plan has it
            found = learner._plan(X, y, X_public=X_public, groups=groups)
        sizes = _Sizes.of_fit(learner, found)
        assumptions = found.statement.assumptions
        counts = learner._why_counts_useless(found.private, found.public, found.release)
        more = counts, found.why_columns_are_lost
    rarest = read_rarest(class_prior, sizes.release.n_values)
    if sizes.design is None:
        facts, reasons = _facts_of_newton(learner, sizes, rarest)
    elif isinstance(sizes.design.mechanism, MeanScores):
        facts, reasons = _facts_of_scores(sizes, rarest)
    else:
        facts, reasons = _facts_of_votes(sizes, rarest, margins)
    return Plan(
        (*facts, *_facts_of_release(sizes, rarest)),
        tuple(filter(None, (*_reasons(sizes), *reasons, *more))),
        assumptions,
        _label_accuracy(facts),
    )


def _check_source(
    is_search: bool, data: dict[str, Any], numbers: dict[str, int | None]
) -> None:
    """Raise ValueError unless a plan is from data alone, or from numbers alone."""
    given = [name for name, value in numbers.items() if value is not None]
    if data["X"] is not None:
        if data["y"] is None:
            raise ValueError("y=None, but X is given; pass the labels, too.")
        if given:
            raise ValueError(
                f"{given[0]}={numbers[given[0]]!r} is for a plan without data, but X "
                "is given; leave it out."
            )
        return
    if is_search:
        raise ValueError("X=None, but a search is planned from its data; pass X and y.")
    needless = [name for name, value in data.items() if value is not None]
    if needless:
        raise ValueError(
            f"{needless[0]} is given without X; pass X and y, or plan from n_rows and "
            "n_classes alone."
        )


def _check_n_rows(learner: Learner, n_rows: int | None) -> None:
    """Raise ValueError for a number of rows that is not public, missing or small."""
    of_newton = isinstance(learner, DPNewtonClassifier)
    if learner.privacy_unit == "group":
        if n_rows is not None:
            other = "set n_groups" if of_newton else "set n_teachers"
            raise ValueError(
                f"n_rows={n_rows!r} is private if a group is the unit, but a plan may "
                f"be published; leave n_rows out, and {other}."
            )
    elif n_rows is not None:
        check_count("n_rows", n_rows, 1)
        n_teachers = "auto" if of_newton else learner.n_teachers
        if n_teachers != "auto" and n_teachers > n_rows:
            raise ValueError(
                f"n_teachers={n_teachers} is more than n_rows={n_rows}; lower "
                "n_teachers or pass more rows."
            )
    elif of_newton:
        raise ValueError(
            "n_rows=None, but a DPNewtonClassifier chooses its coefficients by the "
            "number of rows; pass n_rows, or X and y."
        )


def _check_margins(margins: Sequence[float]) -> None:
    """Raise ValueError unless leads are shares of the teachers."""
    if (
        np.ndim(margins) != 1
        or len(margins) == 0
        or not all(is_positive(margin) and margin <= 1 for margin in margins)
    ):
        raise ValueError(
            f"margins={margins!r} must be shares of the teachers, above 0 and at most "
            "1, such as (0.1, 0.5)."
        )


@dataclass(frozen=True)
class _Sizes:
    """Release of a fit, with the public numbers that decide its use."""

    release: ReleasePlan
    #: Choices of a PATEClassifier; None for a DPNewtonClassifier.
    design: Design | None
    #: Number of private rows or groups, None if it is not public.
    n_units: int | None
    n_public: int
    #: Number of coefficients for each class but one; None for votes.
    n_coordinates: int | None

    @property
    def n_rows(self) -> int | None:
        """Number of private rows, None if it is not public."""
        return self.n_units if self.release.statement.unit == "row" else None

    @classmethod
    def of_fit(cls, learner: Learner, found: Any) -> Self:
        """Take what a learner has planned from data."""
        return cls(
            found.release,
            getattr(found, "design", None),
            number_of_units(learner, found.private.n_rows),
            found.public.n_public,
            getattr(found, "n_coordinates", None),
        )

    @classmethod
    def of_numbers(
        cls,
        learner: Learner,
        n_rows: int | None,
        n_classes: int | None,
        X: Any = None,
        X_public: Any = None,
    ) -> Self:
        """Calibrate the noise by numbers, and by the columns of rows of a search."""
        if learner.classes is not None:
            n_classes = len(np.asarray(learner.classes))
        n_classes = 2 if n_classes is None else n_classes
        check_count("n_classes", n_classes, 2)
        learner._check_parameters()
        check_number_of_groups(learner)
        n_public = sys.maxsize if X_public is None else X_public.shape[0]
        n_tables = 0
        if learner.synthetic is not None:
            n_public, domain = learner.synthetic.n_rows, learner.synthetic.domain
            if X is None:
                n_tables = count_tables(domain)
            else:
                n_tables = len(learner.synthetic._read(X).counted)
        elif X_public is None and learner.public_size is not None and n_rows:
            n_public = round(learner.public_size * n_rows)
            n_rows -= n_public
        n_units = number_of_units(learner, cast(int, n_rows))

        def counts_for(epsilon: float | None) -> MarginalCounts | None:
            if learner.synthetic is None:
                return None
            return learner._counts_of(
                n_tables, n_classes=n_classes, n_units=n_units, epsilon=epsilon
            )

        if isinstance(learner, DPNewtonClassifier):
            release = learner._plan_release(n_classes, counts_for, (CHOSEN_BLINDLY,))
            most = learner._most_coordinates(
                release, n_public, cast(int, n_units), most=learner._most()
            )
            return cls(release, None, n_units, n_public, most)
        design = design_fit(
            learner,
            X if X_public is None else X_public,
            n_public=n_public,
            n_rows=n_units,
            n_classes=n_classes,
        )
        release = ReleasePlan.of_design(
            design,
            target=learner.epsilon,
            delta=learner.delta,
            n_classes=n_classes,
            unit=learner.privacy_unit,
            assumptions=(CHOSEN_BLINDLY,),
            counts_for=counts_for,
        )
        allowed = None
        if isinstance(design.mechanism, MeanScores):
            allowed = release.mechanism.n_coordinates(design.n_teachers, n_classes)
        return cls(release, design, n_units, n_public, allowed)


def _facts_of_release(sizes: _Sizes, rarest: float | None) -> Iterator[Fact]:
    """List the facts that every fit has."""
    spent = sizes.release.statement
    yield Fact("n_classes", int(sizes.release.n_values))
    if sizes.n_rows is not None:
        yield Fact("n_rows", int(sizes.n_rows))
        if spent.n_teachers is not None:
            yield Fact("rows_per_teacher", sizes.n_rows / spent.n_teachers)
    if rarest is not None:
        yield Fact("rarest", rarest)
    mechanism = sizes.release.accounted.in_one_line()
    yield Fact("mechanism", mechanism, mechanism)
    if spent.n_tables is not None:
        columns = counted(spent.n_tables, "column")
        drawn = f"public rows are drawn from noisy counts of {columns}"
        yield Fact("n_tables", spent.n_tables, drawn)
    if spent.n_coded is not None:
        columns = counted(spent.n_coded, "column")
        coded = f"the codes in {columns} are counted by class, and become features"
        yield Fact("n_coded", spent.n_coded, coded)
    counts = sizes.release.counts
    if isinstance(counts, ClassCounts):
        noise = float(counts.noise_scale)
        rows = f"each class is counted with noise of {noise:.3g} {spent.unit}s"
        yield Fact("class_noise", noise, rows)
    has_shares = isinstance(counts, ClassCounts) or (
        isinstance(sizes.release.mechanism, MeanScores)
    )
    of_groups = _of_groups(spent, has_shares) if spent.unit == "group" else ""
    yield Fact("unit", spent.unit, of_groups)
    epsilon = f"{write_epsilon(spent.epsilon)}, at delta={spent.delta:g}; publishable"
    yield Fact("epsilon", spent.epsilon, epsilon)
    yield Fact("delta", spent.delta)
    yield Fact("relation", spent.relation)
    yield Fact("neighbours", spent.neighbours, spent.neighbours)


def _of_groups(spent: PrivacySpent, has_shares: bool) -> str:
    """Describe what a group contributes."""
    if spent.n_teachers is None:
        of_group = "group; each contributes the mean of its rows"
    elif spent.n_tables is not None:
        of_group = "group; each contributes one row"
    else:
        of_group = "group; a teacher learns from all rows of its groups"
        if not has_shares:
            return f"{of_group}, and a group with more rows counts more"
        of_group += ", and each contributes the mean of its rows to the class shares"
    return (
        f"{of_group}. The outcome must not decide how many rows a group has. For "
        "example, in place of one row for each year until an event, pass one row a "
        "group, with the year as its label"
    )


def _of_teachers(sizes: _Sizes) -> Fact:
    """Describe the teachers."""
    n_teachers, n_rows = sizes.release.n_teachers, sizes.n_rows
    text = f"{n_teachers}"
    if n_rows is not None:
        each = n_rows / n_teachers
        text += f", each on about {each:.0f} of {counted(n_rows, 'row')}"
    return Fact("n_teachers", int(n_teachers), text)


def _facts_of_newton(
    learner: DPNewtonClassifier, sizes: _Sizes, rarest: float | None
) -> tuple[list[Fact], list[str | None]]:
    """List the facts of noisy Newton steps, and the reasons to change them."""
    release, n_units = sizes.release, cast(int, sizes.n_units)
    coefficients = counted(sizes.n_coordinates, "coefficient")
    unit = release.statement.unit
    training = (
        f"{counted(release.n_steps, 'step')}; in each, every {unit} contributes one "
        "vector of bounded length, and noise is added to the sum"
    )
    facts = [
        Fact(
            "release",
            release.statement.release,
            f"logistic regression of {counted(release.n_values, 'class')}, with up to "
            f"{coefficients} for each class but one",
        ),
        Fact("training", training, training),
        Fact("n_coordinates", sizes.n_coordinates),
    ]
    if not learner._has_log_odds:
        noise = release.mechanism.noise_scale
        needed = newton_units(noise, release.n_values, rarest)
        of_classes = "classes of equal shares; a rare class needs more (class_prior)"
        if rarest is not None:
            of_classes = f"a rarest class with a share of {rarest:.2g}"
        text = f"at least {counted(needed, unit)} for {of_classes}"
        facts.append(Fact("n_units_needed", needed, text))
    useless = learner._why_useless(release, n_units)
    useless = useless or learner._why_useless(release, n_units, rarest)
    return facts, [useless, why_few_public_rows(sizes.n_public)]


def _facts_of_scores(
    sizes: _Sizes, rarest: float | None
) -> tuple[list[Fact], list[str | None]]:
    """List the facts of mean scores, and the reasons to change them."""
    release, n_rows = sizes.release, sizes.n_rows
    scores = (
        f"mean scores of {counted(release.n_values, 'class')}, with "
        f"{counted(sizes.n_coordinates, 'coefficient')} each"
    )
    facts = [
        _of_teachers(sizes),
        Fact("release", release.statement.release, scores),
        Fact("n_coordinates", sizes.n_coordinates),
    ]
    useless = why_scores_useless(release, n_rows)
    useless = useless or why_scores_useless(release, n_rows, rarest)
    return facts, [useless, why_few_public_rows(sizes.n_public)]


def _facts_of_votes(
    sizes: _Sizes, rarest: float | None, margins: Sequence[float]
) -> tuple[list[Fact], list[str | None]]:
    """List the facts of answers to queries, and the reasons to change them."""
    release, design = sizes.release, cast(Design, sizes.design)
    mechanism, spent = release.mechanism, release.statement
    if mechanism.needs_probabilities:
        raise ValueError(
            f"{type(mechanism).__name__} compares votes with probabilities of a "
            "student, which are not known before a fit; plan with "
            "mechanism='confident', which has the same privacy cost."
        )
    n_classes, n_teachers = release.n_values, release.n_teachers
    one = mechanism.cost(1, n_classes).quiet_epsilon(spent.delta)
    facts = [
        _of_teachers(sizes),
        Fact(
            "n_queries",
            spent.n_queries,
            f"{spent.n_queries}, of {counted(n_classes, 'class')}",
        ),
        Fact("release", spent.release),
        Fact("epsilon_of_one", one, f"{write_epsilon(one)} for one query alone"),
    ]
    answers = answers_of(mechanism)
    numbers: dict[str, Any] = {
        "n_teachers": n_teachers,
        "n_queries": release.n_queries,
        "n_classes": n_classes,
        "few_answers": accepts_unlabeled(design.student),
    }
    reasons = [
        why_useless(
            mechanism,
            n_rows=sizes.n_rows,
            epsilon=release.target,
            delta=spent.delta,
            unit=spent.unit,
            **numbers,
        ),
        why_many_queries(release.n_queries, n_teachers, design.right_answers),
    ]
    if answers._plurality() is not None:
        votes = VotesWithLead(answers, n_teachers, n_classes)
        facts += [
            Fact("at_margins", tuple(map(votes.at, margins))),
            Fact("margin_for_90", votes.margin_for(0.9)),
            Fact("margin_for_99", votes.margin_for(0.99)),
        ]
        if reasons[0] is None and rarest is not None and not design.balanced:
            reasons.append(why_rarest_is_lost(mechanism, share=rarest, **numbers))
    return facts, reasons


def _reasons(sizes: _Sizes) -> Iterator[str]:
    """List the reasons to change a plan, for every kind of release."""
    release, n_rows = sizes.release, sizes.n_rows
    if SEEDED in release.statement.assumptions:
        yield f"There is no privacy: {SEEDED}. Leave the block of seeded_noise."
    if n_rows is not None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_delta_is_small(release.statement.delta, n_rows, "rows")
        yield from (str(one.message) for one in caught)
        # Fewer teachers of mean scores do worse.
        few_rows = n_rows < FEW_ROWS * release.n_teachers
        if sizes.design is not None and release.n_queries and few_rows:
            each = counted(round(n_rows / release.n_teachers), "row")
            other = ", or a representation, which is fitted on public rows"
            has_other = sizes.design.representation is not None
            yield (
                f"Each teacher learns from only about {each}; use fewer teachers"
                f"{'' if has_other else other}."
            )


def _label_accuracy(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Write the label accuracy of answers as a table and a text; nothing without it."""
    values = {fact.name: fact.value for fact in facts}
    if "at_margins" not in values:
        return ()
    at_margins = values["at_margins"]
    checks = any(one.answered < 1 for one in at_margins)
    shares = (
        "queries are answered, and this share of the answers" if checks else "answers"
    )
    rows = [("of teachers", "votes", *["answered"] * checks, "right")]
    for one in at_margins:
        answered = [_down(one.answered)] * checks
        share = f"{100 * one.margin:g} %"
        rows.append((share, str(one.lead), *answered, _down(one.right)))
    lines = ["  ".join(f"{cell:>12}" for cell in row) for row in rows]
    table = "\n".join([_wrapped(f"{_OPENING} {shares} are right:"), "", *lines])

    def lead(margin: float) -> str:
        votes = round(margin * values["n_teachers"])
        return f"a lead of {counted(votes, 'vote')} ({100 * margin:.1f} %)"

    for_90, for_99 = values["margin_for_90"], values["margin_for_99"]
    if for_90 is None:
        needed = "Fewer than 90 % of the answers are right even if all teachers agree."
    else:
        needed = f"At least 90 % of the answers are right from {lead(for_90)} on"
        needed += (
            "; fewer than 99 % are right even if all teachers agree."
            if for_99 is None
            else f", 99 % from {lead(for_99)} on."
        )
    return table, _wrapped(needed), _wrapped(_CLOSING)


def _down(share: float) -> str:
    """Write in percent with one decimal, rounded down."""
    return f"{np.floor(share * 1000 + 1e-9) / 10:.1f} %"


def _plan_search(
    search: Any, X: Any, y: NDArray[Any], X_public: Any, groups: Any
) -> Plan:
    """Compute the share of a budget that all fits of a search take."""
    learner = last_step(search.estimator)
    if not isinstance(learner, Learner) or learner.ledger is None:
        raise ValueError(
            "The search has no ledger; set ledger=PrivacyLedger(...) on the "
            "PATEClassifier or DPNewtonClassifier inside it."
        )
    if hasattr(search.cv, "__next__"):
        raise ValueError(
            f"cv={search.cv!r} can be read only once, but the search reads it again; "
            "pass a list of its splits."
        )
    ledger = learner.ledger
    fits = [last_step(one) for one in _candidates(search)]
    if any(not isinstance(one, Learner) or one.ledger != ledger for one in fits):
        raise ValueError(
            "The candidates of a search have different ledgers, or some have none; "
            "set one ledger for all of them."
        )
    cv = check_cv(search.cv, y, classifier=True)
    n_classes = len(read_classes(y)[0])
    sizes = [len(train) for train, _ in cv.split(np.zeros(len(y)), y, groups)]
    X, X_public = _rows(X), None if X_public is None else _rows(X_public)

    def cost(learner: Learner, n_rows: int) -> tuple[float, ...]:
        """Return the cost of one fit at each order of the ledger."""
        if X_public is None and learner.public_size is learner.synthetic is None:
            raise ValueError(
                "X_public=None, but the classifier has neither public_size nor "
                "synthetic; pass the X_public of the search."
            )
        found = _Sizes.of_numbers(learner, n_rows, n_classes, X, X_public)
        return ledger.filter.cost(found.release.statement.curve)

    def fractions(**changes: float) -> tuple[float, float]:
        """Return the fractions of the budget that are taken and left."""
        learners = [clone(one).set_params(**changes) for one in fits]
        total = np.sum([[cost(one, n) for one in learners] for n in sizes], axis=(0, 1))
        if search.refit:
            total = total + np.max([cost(one, len(y)) for one in learners], axis=0)
        with ledger.reading() as file:
            share, left = ledger.filter.budget_fractions(total, spent(file))
        # The first entry may exceed the sums.
        return float(share), max(float(left), 0.0)

    def excess(epsilon: float) -> float:
        share, left = fractions(epsilon=epsilon)
        return share / left

    share, left = fractions()
    requested = {one.epsilon for one in fits}
    epsilon = requested.pop() if len(requested) == 1 else None
    affordable = None
    if epsilon is not None and share > left > 0:
        affordable = fitting_epsilon(min(epsilon, ledger.epsilon), excess)
    n_fits = len(fits) * len(sizes) + bool(search.refit)
    tried = f"{counted(len(fits), 'candidate')} on {counted(len(sizes), 'split')}"
    refit = ", and a refit" if search.refit else ""
    facts = [
        Fact("n_fits", n_fits, f"{n_fits}: {tried}{refit}. Each new fit is charged"),
        Fact("n_candidates", len(fits)),
        Fact("n_splits", len(sizes)),
        Fact("refit", bool(search.refit)),
        Fact("ledger", str(ledger.path), str(ledger.path)),
        Fact("share", share, f"at most {share:.2%} of the budget, for all fits"),
        Fact("left", left, f"{left:.2%} of the budget"),
        Fact("fits", share <= left),
        Fact("stratified", splits_by_labels(cv)),
    ]
    reasons = []
    if share > left:
        reasons.append(
            "The search would fail before its end, for lack of budget. (Without "
            "error_score='raise', a refused fit counts as a bad score.)"
        )
    if affordable is not None:
        facts.append(Fact("fitting_epsilon", affordable))
        reasons.append(f"epsilon={affordable:g} would fit this budget.")
    reasons.append(
        "The choice between candidates depends on private labels, and no privacy cost "
        "covers it."
    )
    if splits_by_labels(cv):
        reasons.append(
            "The splits also depend on private labels: one changed label moves other "
            "rows between folds. Pass cv=KFold(shuffle=True)."
        )
    return Plan(tuple(facts), tuple(reasons), sensitive=True)


def _candidates(search: GridSearchCV | RandomizedSearchCV) -> list[Any]:
    """List the candidates: clones of the estimator with their parameters."""
    if isinstance(search, GridSearchCV):
        settings = ParameterGrid(search.param_grid)
    elif isinstance(search.random_state, Integral):
        settings = ParameterSampler(
            search.param_distributions, search.n_iter, random_state=search.random_state
        )
    else:
        raise ValueError(
            "search draws its candidates only when it starts, as "
            f"random_state={search.random_state!r}; set an integer random_state to "
            "plan it."
        )
    return [clone(search.estimator).set_params(**one) for one in settings]


def _rows(X: Any) -> Any:
    """Return rows that have a shape."""
    X = public_table(X)
    return X if hasattr(X, "shape") else np.asarray(X, dtype=object)

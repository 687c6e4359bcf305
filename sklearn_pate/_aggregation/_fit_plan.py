"""Plan of a fit: noise, privacy cost and label accuracy, as text and numbers."""

import math
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, cast

import numpy as np

from sklearn_pate._aggregation._entry import ReleasePlan
from sklearn_pate._aggregation._outlook import (
    FEW_ROWS,
    LabelAccuracy,
    VotesWithLead,
    answers_of,
    why_few_public_rows,
    why_rarest_is_lost,
    why_useless,
)
from sklearn_pate.accounting._assumptions import SEEDED, Assumption
from sklearn_pate.accounting._calibrate import check_delta_is_small
from sklearn_pate.accounting._neighbours import NEIGHBOURS, check_neighbours
from sklearn_pate.accounting._statement import write_epsilon
from sklearn_pate.accounting._value_checks import (
    WIDTH,
    capitalised,
    counted,
    fact_lines,
    is_positive,
)

#: Leads of the most-voted class at which label accuracy is planned.
MARGINS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_OPENING = (
    "An answer is right if it is the class with the most votes. For each lead of that "
    "class over every other class, at least this share of the"
)
_CLOSING = (
    "The lead depends on the private data. So does the share of queries where most "
    "teachers are right."
)


def write_lower_bound(epsilon: float) -> str:
    """Format a lower bound of epsilon with three decimals, rounded down."""
    return f"{math.floor(epsilon * 1000) / 1000:.3f}"


@dataclass(frozen=True)
class FitPlan:
    """Plan of a fit: its noise, its privacy cost, and its label accuracy.

    A plan made from numbers alone depends on no private value and may be published. A
    plan made from data may be published if its `assumptions` hold.

    Parameters
    ----------
    n_rows : int or None
        Number of private rows. None if the number is not public or not given.

    n_teachers : int or None
        Number of teachers. None for a DPNewtonClassifier, which has no teachers.

    n_queries : int or None
        Number of queries. None for mean scores and for a DPNewtonClassifier.

    n_classes : int
        Number of classes.

    mechanism : str
        Mechanism and noise scale, as in ``privacy_spent_.mechanism``.

    epsilon : float
        The publishable epsilon of the fit, as in ``privacy_spent_.epsilon``.

    delta : float
        Delta of the (epsilon, delta) guarantee.

    unit : {"row", "group"}
        Unit of privacy.

    relation : {"replace-one", "add-remove-or-change"}
        Neighbour relation.

    warnings : tuple of str
        Reasons to change the plan.

    assumptions : tuple of Assumption, default=()
        Assumptions of the fit about the data, as in ``privacy_spent_.assumptions``.

    epsilon_of_one : float, default=None
        Epsilon of one query alone, at `delta`. All queries together usually cost less
        than `n_queries` times this value. None without queries.

    at_margins : tuple of LabelAccuracy, default=()
        Label accuracy at several leads of the most-voted class. Empty without queries.

    margin_for_90, margin_for_99 : float, default=None
        Smallest lead, as a share of the teachers, at which 90 % or 99 % of the answers
        are right. None if no lead is large enough, or without queries.

    n_coordinates : int or None, default=None
        Number of coefficients of each class except one, for mean scores and for a
        DPNewtonClassifier.

    n_units_needed : int or None, default=None
        Number of rows or groups below which the noise of a DPNewtonClassifier hides its
        coefficients, for classes of equal shares or with the share `rarest`.

    rarest : float or None, default=None
        Share of the rarest class, from public knowledge.

    n_tables : int or None, default=None
        Number of columns whose noisy counts are released, to draw rows in place of
        public rows. None if public rows are given.

    Examples
    --------
    >>> from sklearn_pate.inspection import plan_fit
    >>> plan = plan_fit(n_teachers=250, n_queries=100, privacy_unit="group")
    >>> f"90 % of the answers are right from a lead of {plan.margin_for_90:.0%} on"
    '90 % of the answers are right from a lead of 31% on'
    """

    n_rows: int | None
    n_teachers: int | None
    n_queries: int | None
    n_classes: int
    mechanism: str
    epsilon: float
    delta: float
    unit: str
    relation: str
    warnings: tuple[str, ...]
    assumptions: tuple[Assumption, ...] = ()
    epsilon_of_one: float | None = None
    at_margins: tuple[LabelAccuracy, ...] = ()
    margin_for_90: float | None = None
    margin_for_99: float | None = None
    n_coordinates: int | None = None
    n_units_needed: int | None = None
    rarest: float | None = None
    n_tables: int | None = None

    def __post_init__(self) -> None:
        check_neighbours(self.unit, self.relation)

    @classmethod
    def of_votes(
        cls,
        release: ReleasePlan,
        *,
        n_rows: int | None,
        margins: Sequence[float],
        few_answers: bool,
        rarest: float | None = None,
    ) -> Self:
        """Plan a fit that releases answers to queries on votes.

        Parameters
        ----------
        release : ReleasePlan
            Mechanism, privacy statement and sizes.

        n_rows : int or None
            As in the plan.

        margins : sequence of float
            Leads of the most-voted class, as shares of the teachers.

        few_answers : bool
            Whether the student accepts unlabelled rows, and so needs few answers. Other
            students average over many noisy answers.

        rarest : float, default=None
            Share of the rarest class, if public. The plan warns if noise may hide this
            class.

        Returns
        -------
        plan : FitPlan
            The plan.

        Raises
        ------
        ValueError
            If `margins` are not between 0 and 1. Also if the mechanism uses
            probabilities of a student, which are not known before a fit.
        """
        check_margins(margins)
        mechanism, n_classes = release.mechanism, release.n_values
        delta = release.statement.delta
        if mechanism.needs_probabilities:
            raise ValueError(
                f"{type(mechanism).__name__} compares votes with probabilities of a "
                "student, which are not known before a fit; plan with "
                "mechanism='confident', which has the same privacy cost."
            )
        answers = answers_of(mechanism)
        votes = None
        if answers._plurality() is not None:
            votes = VotesWithLead(answers, release.n_teachers, n_classes)
        numbers: dict[str, Any] = {
            "n_teachers": release.n_teachers,
            "n_queries": release.n_queries,
            "n_classes": n_classes,
            "few_answers": few_answers,
        }
        useless = why_useless(
            mechanism,
            n_rows=n_rows,
            epsilon=release.target,
            delta=delta,
            unit=release.statement.unit,
            **numbers,
        )
        if useless is None and rarest is not None and votes is not None:
            useless = why_rarest_is_lost(mechanism, share=rarest, **numbers)
        return cls._of_release(
            release,
            n_rows,
            [useless],
            epsilon_of_one=mechanism.cost(1, n_classes).quiet_epsilon(delta),
            at_margins=tuple(map(votes.at, margins)) if votes else (),
            margin_for_90=votes.margin_for(0.9) if votes else None,
            margin_for_99=votes.margin_for(0.99) if votes else None,
            rarest=rarest,
        )

    @classmethod
    def of_coefficients(
        cls,
        release: ReleasePlan,
        *,
        n_rows: int | None,
        n_coordinates: int,
        useless: str | None,
        n_public: int | None = None,
        n_units_needed: int | None = None,
        rarest: float | None = None,
    ) -> Self:
        """Plan a fit that releases mean scores, or a logistic regression.

        Parameters
        ----------
        release : ReleasePlan
            Mechanism, privacy statement and sizes.

        n_rows, n_coordinates : object
            As in the plan.

        useless : str or None
            Warning that the noise is too large for the coefficients.

        n_public : int, default=None
            Number of public rows. The plan warns if there are few public rows.

        n_units_needed, rarest : object
            As in the plan.

        Returns
        -------
        plan : FitPlan
            The plan.
        """
        few = None if n_public is None else why_few_public_rows(n_public)
        return cls._of_release(
            release,
            n_rows,
            [useless, few],
            n_coordinates=n_coordinates,
            n_units_needed=n_units_needed,
            rarest=rarest,
        )

    @classmethod
    def _of_release(
        cls,
        release: ReleasePlan,
        n_rows: int | None,
        reasons: Sequence[str | None],
        **more: Any,
    ) -> Self:
        """Make the plan of a release, with warnings."""
        spent = release.statement
        return cls(
            n_rows=None if n_rows is None else int(n_rows),
            n_teachers=spent.n_teachers,
            n_queries=spent.n_queries,
            n_classes=int(release.n_values),
            mechanism=release.accounted.in_one_line(),
            epsilon=spent.epsilon,
            delta=spent.delta,
            unit=spent.unit,
            relation=spent.relation,
            warnings=(*_warnings(release, n_rows), *filter(None, reasons)),
            assumptions=spent.assumptions,
            n_tables=spent.n_tables,
            **more,
        )

    @property
    def neighbours(self) -> str:
        """Description of neighbouring data sets, as in ``privacy_spent_.neighbours``.

        Returns
        -------
        neighbours : str
            Description of `unit` and `relation`.
        """
        return NEIGHBOURS[self.unit, self.relation]

    @property
    def rows_per_teacher(self) -> float | None:
        """Mean number of private rows per teacher.

        Returns
        -------
        rows_per_teacher : float or None
            None if `n_rows` or `n_teachers` is None.
        """
        if self.n_rows is None or self.n_teachers is None:
            return None
        return self.n_rows / self.n_teachers

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain Python values.

        Returns
        -------
        plan : dict
            Values for ``json.dumps``, unless epsilon is infinite, which JSON lacks.
        """
        return asdict(self) | {
            "at_margins": [asdict(one) for one in self.at_margins],
            "warnings": list(self.warnings),
            "assumptions": [asdict(one) for one in self.assumptions],
            "neighbours": self.neighbours,
            "rows_per_teacher": self.rows_per_teacher,
        }

    def __str__(self) -> str:
        of_answers = [self._table(), _wrapped(self._needed()), _wrapped(_CLOSING)]
        paragraphs = [
            "\n".join(fact_lines(self._facts())),
            *(of_answers if self.n_coordinates is None else []),
            self._publication(),
            *(_wrapped(f"Warning: {warning}") for warning in self.warnings),
        ]
        return "\n\n".join(paragraphs)

    def _facts(self) -> dict[str, str]:
        epsilon = write_epsilon(self.epsilon)
        facts = {
            **(self._of_newton() if self.n_teachers is None else self._of_teachers()),
            "mechanism": self.mechanism,
            **self._of_units_needed(),
            **self._of_rows(),
            **self._of_groups(),
            "publishable": f"epsilon={epsilon}, delta={self.delta:g}",
            "neighbours": self.neighbours,
        }
        if self.epsilon_of_one is not None:
            one = write_epsilon(self.epsilon_of_one)
            facts["one query"] = f"epsilon={one} alone"
        return facts

    def _of_newton(self) -> dict[str, str]:
        coefficients = counted(self.n_coordinates, "coefficient")
        return {
            "model": f"logistic regression of {counted(self.n_classes, 'class')}, with "
            f"up to {coefficients} for each class but one",
            "training": f"5 steps; in each, every {self.unit} contributes one vector "
            "of bounded length, and noise is added to the sum",
        }

    def _of_teachers(self) -> dict[str, str]:
        per_teacher = self.rows_per_teacher
        teachers = f"{self.n_teachers}"
        if per_teacher is not None:
            teachers += (
                f", each on about {per_teacher:.0f} of {counted(self.n_rows, 'row')}"
            )
        queries = f"{self.n_queries}, of {counted(self.n_classes, 'class')}"
        if self.n_queries is None:
            queries = (
                f"none: mean scores of {counted(self.n_classes, 'class')} are "
                f"released, with {counted(self.n_coordinates, 'coefficient')} each"
            )
        return {"teachers": teachers, "queries": queries}

    def _of_units_needed(self) -> dict[str, str]:
        if self.n_units_needed is None:
            return {}
        needed = f"at least {counted(self.n_units_needed, self.unit)} "
        if self.rarest is None:
            needed += (
                "for classes of equal shares; a rare class needs more (class_prior)"
            )
        else:
            needed += f"for a rarest class with a share of {self.rarest:.2g}"
        return {"needed": needed}

    def _of_rows(self) -> dict[str, str]:
        if self.n_tables is None:
            return {}
        return {
            "public rows": "drawn from noisy counts of "
            f"{counted(self.n_tables, 'column')}"
        }

    def _of_groups(self) -> dict[str, str]:
        if self.unit != "group":
            return {}
        if self.n_teachers is not None and self.n_tables is None:
            of_group = "a teacher learns from all rows of its groups"
            return {"groups": f"{of_group}; a group with more rows counts more"}
        of_group = "the mean of its rows" if self.n_teachers is None else "one row"
        return {
            "groups": f"each contributes {of_group}. The outcome must not decide how "
            "many rows a group has. For example, in place of one row for each year "
            "until an event, pass one row a group, with the year as its label"
        }

    def _table(self) -> str:
        checks = any(one.answered < 1 for one in self.at_margins)
        shares = (
            "queries are answered, and this share of the answers"
            if checks
            else "answers"
        )
        rows = [("of teachers", "votes", *["answered"] * checks, "right")]
        for one in self.at_margins:
            answered = [_down(one.answered)] * checks
            share = f"{100 * one.margin:g} %"
            rows.append((share, str(one.lead), *answered, _down(one.right)))
        lines = ["  ".join(f"{cell:>12}" for cell in row) for row in rows]
        return "\n".join([_wrapped(f"{_OPENING} {shares} are right:"), "", *lines])

    def _needed(self) -> str:
        if self.margin_for_90 is None:
            return (
                "Fewer than 90 % of the answers are right even if all teachers agree."
            )
        text = (
            "At least 90 % of the answers are right from "
            f"{self._lead(self.margin_for_90)} on"
        )
        if self.margin_for_99 is None:
            return f"{text}; fewer than 99 % are right even if all teachers agree."
        return f"{text}, 99 % from {self._lead(self.margin_for_99)} on."

    def _publication(self) -> str:
        if not self.assumptions:
            return "This plan depends on no private value and may be published."
        sentences = (one.sentence for one in self.assumptions if one != SEEDED)
        return "\n".join(
            [
                "This plan may be published if all of these are true:",
                *(_wrapped(f"- {capitalised(one)}.", "  ") for one in sentences),
            ]
        )

    def _lead(self, margin: float) -> str:
        votes = round(margin * cast(int, self.n_teachers))
        return f"a lead of {counted(votes, 'vote')} ({100 * margin:.1f} %)"


def check_margins(margins: Sequence[float]) -> None:
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


def _warnings(release: ReleasePlan, n_rows: int | None) -> Iterator[str]:
    """List the reasons to change a plan."""
    n_teachers = release.n_teachers
    if SEEDED in release.statement.assumptions:
        yield f"There is no privacy: {SEEDED}. Leave the block of seeded_noise."
    if n_rows is not None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_delta_is_small(release.statement.delta, n_rows, "rows")
        yield from (str(one.message) for one in caught)
        # Fewer teachers of mean scores do worse.
        if release.n_queries and n_rows < FEW_ROWS * n_teachers:
            yield (
                "Each teacher learns from only about "
                f"{counted(round(n_rows / n_teachers), 'row')}; use fewer teachers, or "
                "a representation, which is fitted on public rows."
            )


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent)


def _down(share: float) -> str:
    """Write in percent with one decimal, rounded down."""
    return f"{np.floor(share * 1000 + 1e-9) / 10:.1f} %"

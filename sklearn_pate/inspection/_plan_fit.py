"""What a fit would cost and how often its answers would be right, before any data."""

import textwrap
import warnings
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from sklearn_pate._base._parameters import (
    as_mechanism,
    calibrated_mechanism,
    resolve_n_teachers,
)
from sklearn_pate._base._split_inputs import check_delta_is_small
from sklearn_pate._classifier import PATEClassifier
from sklearn_pate._inputs._checks import check_count
from sklearn_pate.accounting._assumptions import SEEDED
from sklearn_pate.accounting._calibrate import is_positive
from sklearn_pate.accounting._statement import NEIGHBOURS, write_epsilon
from sklearn_pate.inspection._label_accuracy import LabelAccuracy, VotesWithLead
from sklearn_pate.inspection._terminal import WIDTH, fact_lines
from sklearn_pate.mechanisms import Mechanism

__all__ = ["FitPlan", "plan_fit"]

# A teacher that learns from fewer rows is seldom a good one.
_FEW_ROWS = 30
# Where all teachers agree, fewer right answers than this are worth a warning.
_WORTH_ASKING = 0.9
_REMEDY = "Ask fewer queries, or take more teachers or a larger epsilon."
_OPENING = (
    "An answer is right if it is the class that most teachers voted for. Where that "
    "class leads every other class by so much, at least so many"
)
_CLOSING = (
    "How far the votes will be apart depends on the data, and so does whether most "
    "teachers are right. This plan depends on no private value and may be published."
)


@dataclass(frozen=True)
class FitPlan:
    """What a fit would cost, and how often its answers would be right.

    It depends on no private value but, where rows are the unit, their number, which is
    public then. May be published.

    Parameters
    ----------
    n_rows : int or None
        Number of private rows; None if it was not given.

    n_teachers : int
        Number of teachers.

    n_queries : int
        Number of queries.

    n_classes : int
        Number of classes.

    mechanism : str
        The mechanism with its noise, as ``privacy_spent_.mechanism`` will have it.

    epsilon : float
        The publishable epsilon of the fit, as ``privacy_spent_.epsilon`` will have it.

    delta : float
        The probability mass that epsilon does not cover.

    unit : {"row", "group"}
        Whom the statement protects.

    relation : {"replace-one", "add-remove-or-change"}
        Against which change of one unit.

    epsilon_of_one : float
        Epsilon of one of the queries, were it asked alone. Costs add up as Renyi
        costs, so that `epsilon` is less than `n_queries` times this.

    at_margins : tuple of LabelAccuracy
        How often an answer is right, by how far the votes are apart.

    margin_for_90, margin_for_99 : float or None
        The smallest lead, as a share of the teachers, from which on 90 % or 99 % of the
        answers are right; None if they are not even where all teachers agree.

    warnings : tuple of str
        What to think about before the fit.

    Examples
    --------
    >>> from sklearn_pate.inspection import plan_fit
    >>> plan = plan_fit(n_teachers=250, n_queries=100, privacy_unit="group")
    >>> f"nine answers of ten are right from a lead of {plan.margin_for_90:.0%} on"
    'nine answers of ten are right from a lead of 34% on'
    """

    n_rows: int | None
    n_teachers: int
    n_queries: int
    n_classes: int
    mechanism: str
    epsilon: float
    delta: float
    unit: str
    relation: str
    epsilon_of_one: float
    at_margins: tuple[LabelAccuracy, ...]
    margin_for_90: float | None
    margin_for_99: float | None
    warnings: tuple[str, ...]

    @property
    def neighbours(self) -> str:
        """The exact change of the private data that is hidden.

        Returns
        -------
        neighbours : str
            By `unit` and `relation`, as ``privacy_spent_.neighbours`` will have it.
        """
        return NEIGHBOURS[self.unit, self.relation]

    @property
    def rows_per_teacher(self) -> float | None:
        """How many rows a teacher learns from, on average.

        Returns
        -------
        rows_per_teacher : float or None
            None if the number of rows was not given.
        """
        return None if self.n_rows is None else self.n_rows / self.n_teachers

    def to_dict(self) -> dict[str, Any]:
        """Return the plan_fit as plain Python values.

        Returns
        -------
        plan_fit : dict
            Ready for ``json.dumps``, but for an infinite epsilon, which JSON lacks.
        """
        plain = asdict(self) | {
            "neighbours": self.neighbours,
            "rows_per_teacher": self.rows_per_teacher,
        }
        plain["at_margins"] = [asdict(one) for one in self.at_margins]
        return plain | {"warnings": list(self.warnings)}

    def __str__(self):
        return "\n".join(
            [
                *self._facts(),
                *self._table(),
                "",
                *_wrapped(self._needed()),
                *_wrapped(_CLOSING),
                *(
                    line
                    for warning in self.warnings
                    for line in ("", *_wrapped(f"Warning: {warning}"))
                ),
            ]
        )

    def _facts(self):
        per_teacher = self.rows_per_teacher
        each = ""
        if per_teacher is not None:
            each = f", each on about {per_teacher:.0f} of {self.n_rows} rows"
        epsilon = write_epsilon(self.epsilon)
        epsilon_of_one = write_epsilon(self.epsilon_of_one)
        facts = {
            "teachers": f"{self.n_teachers}{each}",
            "queries": f"{self.n_queries}, of {self.n_classes} classes",
            "mechanism": self.mechanism,
            "publishable": f"epsilon={epsilon}, delta={self.delta:g}",
            "neighbours": self.neighbours,
            "one query": f"epsilon={epsilon_of_one}, if asked alone",
        }
        return fact_lines(facts)

    def _table(self):
        checks = any(one.answered < 1 for one in self.at_margins)
        so_many = "queries are answered, and so many of the " if checks else ""
        rows = [("of teachers", "votes", *["answered"] * checks, "right")]
        for one in self.at_margins:
            answered = [_down(one.answered)] * checks
            share = f"{100 * one.margin:g} %"
            rows.append((share, str(one.lead), *answered, _down(one.right)))
        table = ["  ".join(f"{cell:>12}" for cell in row) for row in rows]
        return ["", *_wrapped(f"{_OPENING} {so_many}answers are right:"), "", *table]

    def _needed(self):
        if self.margin_for_90 is None:
            return "Not even where all teachers agree are 90 % of the answers right."
        text = f"90 % of the answers are right from {self._lead(self.margin_for_90)}"
        if self.margin_for_99 is None:
            return f"{text} on; 99 % are not, even where all teachers agree."
        return f"{text} on, 99 % from {self._lead(self.margin_for_99)} on."

    def _lead(self, margin):
        votes = round(margin * self.n_teachers)
        return f"a lead of {votes} votes ({100 * margin:.1f} %)"


def plan_fit(
    *,
    n_rows: int | None = None,
    n_teachers: int | Literal["auto"] = "auto",
    n_queries: int,
    n_classes: int = 2,
    epsilon: float | None = 1.0,
    delta: float = 1e-5,
    mechanism: str | Mechanism = "gnmax",
    privacy_unit: Literal["row", "group"] = "row",
    margins: tuple[float, ...] = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
) -> FitPlan:
    """Plan a fit before any data is touched.

    Nothing is fitted, drawn or charged.

    Parameters
    ----------
    n_rows : int, default=None
        Number of private rows, without those that `public_size` would set apart. Not
        public, and so refused, where groups are the unit.

    n_teachers : int or "auto", default="auto"
        Number of teachers, as for :class:`~sklearn_pate.PATEClassifier`: more outvote
        more noise, but learn from fewer rows each. "auto" needs `n_rows`.

    n_queries : int
        Number of queries. At a fixed epsilon, more of them mean more noise in each
        answer.

    n_classes : int, default=2
        Number of classes, public.

    epsilon : float or None, default=1.0
        The publishable epsilon of the fit, to which the noise is calibrated. None takes
        the noise of `mechanism` and says what it costs.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover. It must be well below one over
        the number of rows.

    mechanism : {"gnmax", "lnmax", "gumbel", "permute-and-flip", "confident"} or \
            Mechanism, default="gnmax"
        How queries are answered. Not "interactive", whose answers depend on what the
        student thinks.

    privacy_unit : {"row", "group"}, default="row"
        Whom the statement protects. The noise is the same for both.

    margins : sequence of float, default=(0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
        Shares of the teachers, above 0 and up to 1, by which the most-voted class leads
        every other class: where the label accuracy is to be known.

    Returns
    -------
    plan_fit : FitPlan
        To be printed, or read. A fit with these parameters states exactly this epsilon,
        delta and mechanism.

    Raises
    ------
    ValueError
        If a parameter cannot work, or epsilon cannot be reached.

    Notes
    -----
    The label accuracy is the exact law of an answer, not a simulation, at the votes
    that are worst among all with that lead: see
    :class:`~sklearn_pate.inspection.LabelAccuracy`.

    Examples
    --------
    >>> from sklearn_pate.inspection import plan_fit
    >>> plan = plan_fit(n_rows=90_000, n_queries=100)
    >>> plan.n_teachers, plan.mechanism
    (300, 'GNMax(sigma=45.8074)')
    >>> bool(plan.epsilon <= 1)
    True
    >>> [round(one.right, 2) for one in plan.at_margins]
    [0.68, 0.82, 0.97, 1.0, 1.0, 1.0]
    """
    pate = PATEClassifier(
        n_teachers=n_teachers,
        n_queries=n_queries,
        mechanism=mechanism,
        epsilon=epsilon,
        delta=delta,
        privacy_unit=privacy_unit,
    )
    check_count("n_queries", n_queries, 1)  # no "auto" here
    check_count("n_classes", n_classes, 2)
    pate._check_parameters()
    teachers = _check_teachers(pate, n_rows)
    _check_margins(margins)
    if as_mechanism(mechanism, pate.release).needs_probabilities:
        raise ValueError(
            f"mechanism={mechanism!r} answers where the teachers disagree with the "
            "student, which nobody can foresee; plan for 'confident', which costs the "
            "same."
        )
    ready = calibrated_mechanism(
        mechanism,
        pate.release,
        n_teachers=teachers,
        n_queries=n_queries,
        n_classes=n_classes,
        epsilon=epsilon,
        delta=delta,
    )
    votes = VotesWithLead(ready, teachers, n_classes)
    return FitPlan(
        n_rows=None if n_rows is None else int(n_rows),
        n_teachers=int(teachers),
        n_queries=int(n_queries),
        n_classes=int(n_classes),
        mechanism=ready.in_one_line(),
        epsilon=ready.stated_epsilon(n_queries, n_classes, delta),
        delta=float(delta),
        unit=privacy_unit,
        relation=ready.relation(privacy_unit),
        epsilon_of_one=ready.stated_curve(1, n_classes).quiet_epsilon(delta),
        at_margins=tuple(votes.at(margin) for margin in margins),
        margin_for_90=votes.margin_for(0.9),
        margin_for_99=votes.margin_for(0.99),
        warnings=tuple(_warnings(pate, ready, votes, teachers, n_rows)),
    )


def _check_teachers(pate, n_rows):
    """Return the number of teachers, or raise if it cannot be known."""
    if pate.privacy_unit == "group" and n_rows is not None:
        raise ValueError(
            f"n_rows={n_rows!r} is not public where a group is the unit, and a plan "
            "may be published; leave it out, and pass n_teachers."
        )
    if pate.privacy_unit == "group" and pate.n_teachers == "auto":
        raise ValueError(
            "n_teachers='auto' counts rows, which are not public where a group is the "
            "unit; pass a number, chosen without a look at the data, such as 100."
        )
    if n_rows is None:
        if pate.n_teachers == "auto":
            raise ValueError(
                "n_teachers='auto' is the square root of the number of rows, which is "
                "not known; pass n_rows, or n_teachers."
            )
        return pate.n_teachers
    check_count("n_rows", n_rows, 1)
    n_teachers = resolve_n_teachers(pate.n_teachers, n_rows)
    if n_teachers > n_rows:
        raise ValueError(
            f"n_teachers={n_teachers} is more than n_rows={n_rows}; lower n_teachers "
            "or bring more rows."
        )
    return n_teachers


def _check_margins(margins):
    if (
        np.ndim(margins) != 1
        or len(margins) == 0
        or not all(is_positive(margin) and margin <= 1 for margin in margins)
    ):
        raise ValueError(
            f"margins={margins!r} must be shares of the teachers, above 0 and up to 1, "
            "such as (0.1, 0.5)."
        )


def _warnings(pate, mechanism, votes, n_teachers, n_rows):
    if mechanism.noise_seed is not None:
        yield f"There is no privacy: {SEEDED}. Leave noise_seed=None."
    if n_rows is not None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_delta_is_small(pate.delta, n_rows, "rows")
        yield from (str(one.message) for one in caught)
        if n_rows < _FEW_ROWS * n_teachers:
            yield (
                f"A teacher learns from about {n_rows / n_teachers:.0f} rows; take "
                "fewer teachers, or a representation, which is learned on public rows."
            )
    agree = votes.at(1)
    if agree.answered < _WORTH_ASKING:
        yield (
            f"The check is noisy: it lets {_down(agree.answered)} of the queries "
            f"through where all {n_teachers} teachers agree, and "
            f"{_down(votes.answered(0))} where they are evenly divided. {_REMEDY}"
        )
    if agree.right < _WORTH_ASKING:
        yield (
            f"Noise is wider than the votes: where all {n_teachers} teachers agree, "
            f"{_down(agree.right)} of the answers are right. {_REMEDY}"
        )


def _wrapped(text):
    return textwrap.wrap(text, WIDTH)


def _down(share):
    """Write in percent with one decimal, never above the value."""
    return f"{np.floor(share * 1000 + 1e-9) / 10:.1f} %"

"""Plan of a fit: noise, privacy cost and label accuracy, as text and numbers."""

import math
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._aggregation._entry import ReleasePlan
from sklearn_pate._synthetic._domain import OUTSIDE, Bins
from sklearn_pate._synthetic._marginals import Marginals
from sklearn_pate.accounting._calibrate import (
    check_delta_is_small,
    gdp_epsilon,
    largest_gdp_mu,
)
from sklearn_pate.accounting._cost import NEIGHBOURS, check_neighbours
from sklearn_pate.accounting._statement import SEEDED, Assumption, write_epsilon
from sklearn_pate.accounting._value_checks import (
    WIDTH,
    capitalised,
    counted,
    fact_lines,
    is_positive,
)
from sklearn_pate.accounting.plurality._exact import log_losing
from sklearn_pate.mechanisms import GNMax, NoisySum, PluralityMechanism
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts
from sklearn_pate.mechanisms._noisy_training import SampledMechanism
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.students import TableRepresentation

#: Teachers rarely learn from fewer rows.
FEW_ROWS = 30
# Information that a student needs which averages over many noisy answers: in as many
# answers that are always right. Measured on Adult and KDDCup99.
_INFORMATION = 64.0
# Share of right answers that a student needs which gets few.
_RIGHT = 0.9
# Squared length of the largest scores over that of their noise, for each pair of
# classes beyond the first. Measured on tables of two and seven classes.
_SIGNAL = 12.0
# Rows of each class that a teacher of scores needs.
_ROWS_OF_CLASS = 5
# Rows or groups for each unit of noise, and for each class beyond the first.
_STEPS = 30.0
# Rows of each class for each unit of noise on a count, for naive Bayes to do better
# than Newton steps whose noise is too large. Measured on tables of 7 and 15 classes.
_ROWS_OF_CELL = 1.5
# Largest noise on a count, relative to the rows of a class.
_NOISE_OF_COUNTS = 0.25
# Public rows below which a released function is poor at any epsilon. Measured on Adult,
# KDDCup99 and Diabetes.
_FEW_PUBLIC_ROWS = 50
# Right answers that such a student needs of each class.
_RIGHT_OF_CLASS = 5
# Share of public rows whose category may be rare, and least share of the variance of
# public rows that features keep. Measured on tables, and on normal columns and codes.
_MOST_RARE, _LEAST_VARIANCE = 0.5, 0.5
# Share of rows that a domain may miss without a warning, in standard deviations of the
# noise, and number of columns that are named.
_MISSED, _CERTAIN, _MOST_NAMED = 0.1, 5.0, 5
# Standard deviations by which answers follow the scores of a student of others.
_SURE = 2.0
_MOST_TEACHERS = 2**20
_FEWEST_QUERIES = 20
# Queries, in those that are answered rightly, of which a network or a student of images
# learns less than from fewer.
_MOST_QUERIES = 8
_MORE_THAN_NEEDED = 1.03
_WITHOUT_TEACHERS = "DPNewtonClassifier, which has no teachers"
_MORE_VOTERS = {
    "teacher": "n_teachers={}",
    "neighbour": "n_neighbors={}",
    "party": "votes of {} parties",
}
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
        Probability that a query is answered: 1, unless the mechanism first checks that
        teachers agree. The value is a lower bound over all votes with this lead, if no
        teacher abstains.

    right : float
        Probability that an answer is the most-voted class. The value is a lower bound
        over all votes with this lead.

    Notes
    -----
    Every mechanism answers argmax_j n_j + Z_j, with vote counts n_j and noise Z_j. The
    noise is in whole votes with random tie-breaking, or Gumbel noise, or, for
    permute-and-flip, exponential noise (Ding et al. 2021). The distribution of the
    answer does not change if one number is added to all counts. A smaller count n_k of
    another class makes the most-voted class j win more often. Among all votes with a
    lead of l or more, j thus wins least often if all other counts are n_j - l. `right`
    is computed exactly at these votes.

    The check of :class:`~sklearn_pate.mechanisms.ConfidentGNMax` passes more often if
    the largest count is larger. If n teachers vote on K classes and one class leads by
    l or more, the largest count is at least (n + (K - 1) l) / K, rounded up. The check
    and the answer draw independent noise, so `right` does not depend on the check.
    `answered` ignores the limit `max_answers`.

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

    def __init__(
        self, mechanism: PluralityMechanism, n_teachers: int, n_classes: int
    ) -> None:
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


def why_useless(
    mechanism: Mechanism,
    *,
    n_teachers: int,
    n_queries: int,
    n_classes: int,
    few_answers: bool,
    n_rows: int | None,
    epsilon: float | None,
    delta: float,
    unit: str,
    voter: str = "teacher",
    query: str = "query",
) -> str | None:
    """Describe why no student can learn from a release, with settings that would do.

    None if one can, if there is nothing to learn, or if answers depend on a student or
    have no known distribution.
    `few_answers` is for students that need few right answers; others average over many
    noisy ones. `voter` is a teacher or neighbour; where a party is the unit, parties
    vote. `query` may be a public batch, for a sum.
    """
    answers = answers_of(mechanism)
    if n_classes < 2 or answers.needs_probabilities or answers._plurality() is None:
        return None
    if unit == "party":
        voter = "party"

    def suffices(n_teachers: int) -> bool:
        agree = VotesWithLead(answers, n_teachers, n_classes).at(1)
        if few_answers:
            return agree.answered * agree.right >= _RIGHT
        # The share of right answers beyond that of a guess, 2 right - 1 for two.
        signal = (n_classes * agree.right - 1) / (n_classes - 1)
        n_given = min(agree.answered * n_queries, answers.answer_cap(n_queries))
        # Few answers that are all right are as good as answers can be.
        return n_given * signal**2 >= min(_INFORMATION, _RIGHT * n_queries)

    if suffices(n_teachers):
        return None
    agree = VotesWithLead(answers, n_teachers, n_classes).at(1)
    needed = _least(suffices, n_teachers)
    settings = []
    if needed is not None:
        if n_rows is None or needed * FEW_ROWS <= n_rows:
            settings.append(_MORE_VOTERS[voter].format(needed))
        # Noise is nearly proportional to the root of n_queries, and to 1 / mu.
        less_noise = _MORE_THAN_NEEDED * needed / n_teachers
        if epsilon is not None:
            mu = less_noise * largest_gdp_mu(epsilon, delta)
            settings.append(f"epsilon={_two_digits(gdp_epsilon(mu, delta))}")
            fewer = int(n_queries / less_noise**2)
            if few_answers and fewer >= _FEWEST_QUERIES:
                settings.append(f"n_queries={fewer}")
    if voter != "party":
        settings += _without_teachers(n_rows, n_classes, epsilon, delta)
    if not settings:
        settings.append("less noise")
    noise = mechanism.in_one_line()
    right = f"{100 * agree.right * agree.answered:.0f} %"
    return (
        f"The noise of {noise} is too large for {counted(n_teachers, voter)}. Even "
        f"where all of them agree, only {right} of {counted(n_queries, query)} are "
        "answered correctly: a student can hardly learn from the answers. Use "
        f"{' or '.join(settings)}."
    )


def why_many_queries(n_queries: int, n_teachers: int, right: int | None) -> str | None:
    """Describe why fewer queries would teach more; None if not, or if not known."""
    if right is None or n_queries <= _MOST_QUERIES * right:
        return None
    return (
        f"With n_queries={n_queries!r}, most answers of "
        f"{counted(n_teachers, 'teacher')} are wrong: a network or a student of images "
        f"can hardly learn from them. Use n_queries={right}, more teachers, or a "
        "student that accepts unlabelled rows."
    )


def why_one_class(
    predicted: NDArray[Any], rows: str, balanced: str | None = None
) -> str | None:
    """Describe a released model that predicts one class; None if it does not.

    `predicted` are its predictions for `rows`, which are public. `balanced` is the
    setting of a threshold between them, where they differ in their scores.
    """
    if len(predicted) == 0 or np.any(predicted != predicted[0]):
        return None
    threshold = f"{balanced}, at no privacy cost, " if balanced else ""
    return (
        "The model predicts one class for all of "
        f"{counted(len(predicted), rows)}. The privacy cost is spent nevertheless. "
        f"Before another fit, consider {threshold}a larger epsilon, or more private "
        "rows."
    )


def why_only_noise(what: str, remedy: str = "") -> str:
    """Describe a release without information, by released and public numbers alone."""
    return (
        f"The released {what} can hardly be told from noise: the model may predict no "
        "better than the shares of the classes do. The privacy cost is spent "
        "nevertheless. Before another fit, consider a larger epsilon, more private "
        f"rows, or other columns{remedy}."
    )


def why_answers_are_noise(
    scores: NDArray[np.floating], answers: NDArray[np.intp]
) -> str | None:
    """Describe answers that a student trained on other answers does not predict.

    None if it predicts them. `scores`, of shape (n_queries, n_classes), are those of
    the student. If the answers were permuted, the sum of the scores of the answers
    would have the mean and the variance that are computed here (Hoeffding 1951, "A
    combinatorial central limit theorem").
    """
    n_answers, n_classes = scores.shape
    counts = np.bincount(answers, minlength=n_classes)
    centred = scores - scores.mean(axis=0)
    centred = centred - (centred @ counts / n_answers)[:, np.newaxis]
    found = float(centred[np.arange(n_answers), answers].sum())
    variance = float((centred**2 @ counts).sum()) / (n_answers - 1)
    if found > _SURE * np.sqrt(variance):
        return None
    return why_only_noise(
        "answers",
        "; for a rare class, teachers with class_weight='balanced', or "
        f"{_WITHOUT_TEACHERS}",
    )


def why_scores_useless(
    release: ReleasePlan, n_rows: int | None, rarest: float | None = None
) -> str | None:
    """Describe why no student can learn from mean scores; None if one can.

    `rarest` is the share of the rarest class, where it is public or was released.
    """
    mechanism, n_classes = release.mechanism, release.n_values
    if n_classes < 2:
        return None
    least = np.sqrt(_SIGNAL / _relative_variance(rarest, n_classes)) * (n_classes - 1)
    needed = int(np.ceil(mechanism.noise_scale * least))
    if release.n_teachers >= needed:
        return None
    of_scores = _ROWS_OF_CLASS * n_classes * needed
    enough = n_rows is None or of_scores <= n_rows
    settings = [
        *([f"n_teachers={needed}"] if enough else []),
        "a larger epsilon",
        *_without_teachers(n_rows, n_classes, release.target, release.statement.delta),
    ]
    return (
        f"The noise of {mechanism.in_one_line()} is too large for "
        f"{counted(release.n_teachers, 'teacher')}: it hides most of the scores of "
        f"{_described(rarest, n_classes)}. Use {', or '.join(settings)}."
    )


def _relative_variance(rarest: float | None, n_classes: int) -> float:
    """Return the variance of labels of a class, relative to that of equal shares."""
    if rarest is None:
        return 1.0
    return rarest * (1 - rarest) * n_classes**2 / (n_classes - 1)


def _described(rarest: float | None, n_classes: int) -> str:
    if rarest is None:
        return f"{n_classes} classes of equal shares"
    return f"the rarest class, with a share of {rarest:.2g}"


def newton_units(
    noise_scale: float, n_classes: int, rarest: float | None = None
) -> int:
    """Compute the rows or groups that Newton steps with this noise need.

    `rarest` is the share of the rarest class, where it is public or was released.
    """
    variance = _relative_variance(rarest, n_classes)
    return int(np.ceil(_STEPS * (n_classes - 1) * noise_scale / variance))


def why_newton_useless(
    release: ReleasePlan, n_units: int, rarest: float | None = None
) -> str | None:
    """Describe why nothing can be learned in Newton steps; None if something can."""
    mechanism, n_classes = release.mechanism, release.n_values
    needed = newton_units(mechanism.noise_scale, n_classes, rarest)
    if n_units >= needed:
        return None
    spent, others = release.statement, []
    if rarest is None and release.target is not None:
        others = _naive_bayes(n_units, n_classes, release.target, spent.delta)
    return _why_training_useless(
        mechanism, n_units, needed, spent.unit, rarest, n_classes, others
    )


def why_gradients_useless(
    mechanism: Mechanism, scale: float, *, n_units: int, n_classes: int
) -> str | None:
    """Describe why nothing is learned from noisy gradients; None if something is.

    `scale` is that of the noise on the sum of all gradients in one direction, relative
    to the longest gradient of a row. A class is told from the rest.
    """
    of_class = _relative_variance(1 / n_classes, 2)
    needed = int(np.ceil(_STEPS * scale / of_class))
    if n_units >= needed:
        return None
    return _why_training_useless(mechanism, n_units, needed, "row", None, n_classes)


def _why_training_useless(
    mechanism: Mechanism,
    n_units: int,
    needed: int,
    unit: str,
    rarest: float | None,
    n_classes: int,
    others: Sequence[str] = (),
) -> str:
    more = "; a rare class needs more" if rarest is None else ""
    settings = ["a larger epsilon", *others, f"at least {counted(needed, unit)}{more}"]
    return (
        f"The noise of {mechanism.in_one_line()} is too large for "
        f"{counted(n_units, unit)}: it hides the coefficients of "
        f"{_described(rarest, n_classes)}. Use {', or '.join(settings)}."
    )


def _without_teachers(
    n_rows: int | None, n_classes: int, epsilon: float | None, delta: float
) -> list[str]:
    """Name the learner without teachers that has enough rows, by public numbers."""
    if n_rows is None or epsilon is None:
        return [_WITHOUT_TEACHERS]
    noise_scale = 2 / largest_gdp_mu(epsilon, delta)
    if n_rows >= newton_units(noise_scale, n_classes):
        return [_WITHOUT_TEACHERS]
    return _naive_bayes(n_rows, n_classes, epsilon, delta)


def _naive_bayes(
    n_units: int, n_classes: int, epsilon: float, delta: float
) -> list[str]:
    """Name the learner that needs fewer rows of many classes, if it has enough.

    The noise of its counts grows with the root of the number of columns. On tables of
    two classes, it is no better where the noise of Newton steps is too large.
    """
    scale = np.sqrt(2) / largest_gdp_mu(epsilon, delta)
    n_columns = int((n_units / (_ROWS_OF_CELL * n_classes * scale)) ** 2)
    if n_classes < 3 or n_columns < 1:
        return []
    columns = counted(n_columns, "column")
    return [f"DPNaiveBayesClassifier for a table of up to {columns}"]


def why_counts_useless(
    mechanism: MarginalCounts, *, n_rows: int, n_labels: int
) -> str | None:
    """Describe why rows drawn from noisy counts are nearly uniform; None if not."""
    if mechanism.sigma <= _NOISE_OF_COUNTS * n_rows / n_labels:
        return None
    of_class = f" in each of {n_labels} classes" if n_labels > 1 else ""
    fewer = ", or PrivateMarginals(by_class=False)" if n_labels > 1 else ""
    return (
        f"The noise of {mechanism.in_one_line()} is too large for "
        f"{counted(n_rows // n_labels, 'row')}{of_class}: rows drawn from the noisy "
        "counts are almost random. Use a larger epsilon, a larger share of it for the "
        f"counts, fewer columns{fewer}."
    )


def why_domain_misses(marginals: Marginals) -> str | None:
    """Describe what the domain or classes miss, by released counts; None if nothing.

    Few rows may be missed on purpose, or be at the end of a range, as zeros are.
    """
    tables = marginals.tables
    outside = marginals.outside.sum(axis=1)
    # All tables have the same total.
    weights = np.array([1 / table.size for table in tables.values()])
    totals = outside[:, 0] + np.array([table.sum() for table in tables.values()])
    n_counted = max(1.0, float(weights @ totals / weights.sum()))
    n_rows = marginals.n_rows or n_counted
    std = marginals.sigma / np.sqrt(weights.sum())
    reasons = []
    if n_rows - n_counted > max(_MISSED * n_rows, _CERTAIN * std):
        share = 100 * (1 - n_counted / n_rows)
        reasons.append(f"{share:.0f} % of the rows have a label that is not in classes")
    std = marginals.sigma * np.sqrt(marginals.n_labels)
    least = max(_MISSED * n_counted, _CERTAIN * std)
    missed = []
    for name, column, counts in zip(marginals.names, tables, outside, strict=True):
        found = dict(zip(OUTSIDE[:-1], counts, strict=False))
        cells = marginals.domain.cells[column]
        if isinstance(cells, Bins) and cells.n_cells > 2:
            in_first = tables[column][:, 0].sum() - counts[1] - counts[3]
            # A smaller share is nothing unusual.
            if in_first > (1 - 2 * _MISSED) * n_counted + least:
                bins = counted(len(cells.edges) - 1, "bin")
                found[f"in the first of {bins}"] = in_first
        shares = [
            f"{min(100.0, 100 * count / n_counted):.0f} % {where}"
            for where, count in found.items()
            if count > least
        ]
        if shares:
            missed.append(f"{name!r} ({', '.join(shares)})")
    if missed:
        more = f" and {len(missed) - _MOST_NAMED} more" * (len(missed) > _MOST_NAMED)
        listed = ", ".join(missed[:_MOST_NAMED])
        reasons.append(f"the domain misses values of the columns {listed}{more}")
    if not reasons:
        return None
    return (
        f"By the released counts, {' and '.join(reasons)}. The privacy cost is spent "
        "nevertheless. Before another fit, compare spelling, units, types and missing "
        "values of X and y with what is declared."
    )


def why_columns_are_lost(representation: Any, of_basis: float = 1.0) -> str | None:
    """Describe columns that the features of a table hardly represent; None if none.

    By public rows. `of_basis` is the share of the variance of the features that a basis
    of them keeps.
    """
    if not isinstance(representation, TableRepresentation):
        return None
    names = getattr(representation, "feature_names_in_", None)
    rare = [
        f"{column if names is None else names[column]!r} ({100 * share:.0f} %)"
        for column, share in representation.rare_shares_.items()
        if share > _MOST_RARE
    ]
    if rare:
        listed = ", ".join(rare[:_MOST_NAMED])
        return (
            "Most public rows have a category that is too rare for a feature of its "
            f"own in the columns {listed}: the features do not tell such categories "
            "apart. Group the categories, or use DPNaiveBayesClassifier(domain), which "
            "counts each category."
        )
    kept = representation.kept_variance_ * of_basis
    if kept >= _LEAST_VARIANCE:
        return None
    columns = counted(representation.n_features_in_, "column")
    return (
        f"By the public rows, the features keep {100 * kept:.0f} % of the variance of "
        f"{columns}. If many columns matter, use DPLogisticRegression(data_norm=..., "
        "method='gaussian') in place of this learner. It sees all columns, and its "
        "data_norm is a public bound of the length of a row."
    )


def why_few_public_rows(n_public: int) -> str | None:
    """Describe why a function cannot be released on a few public rows; None if not."""
    if n_public >= _FEW_PUBLIC_ROWS:
        return None
    return (
        f"X_public has only {counted(n_public, 'row')}. They determine few "
        "coefficients of the released model, which predicts poorly at any epsilon. "
        "Pass some hundred public rows, or synthetic=PrivateMarginals(domain) instead."
    )


def why_rarest_is_lost(
    mechanism: PluralityMechanism,
    *,
    n_teachers: int,
    n_queries: int,
    n_classes: int,
    few_answers: bool,
    share: float,
) -> str | None:
    """Describe why a student cannot learn the rarest class, of a public share.

    Half of the answers that name the class must be right, or as many as of all answers
    if these are fewer: otherwise a student hardly ever predicts it. Beyond that, the
    rule of `why_useless` for a label that names this class or not: its information is
    in proportion to its variance p (1 - p), here relative to that of classes of equal
    shares. Of few answers, five must name the class rightly.
    """
    answers = answers_of(mechanism)
    agree = VotesWithLead(answers, n_teachers, n_classes).at(1)
    n_given = min(agree.answered * n_queries, answers.answer_cap(n_queries))
    rightly = n_given * share * agree.right
    wrongly = n_given * (1 - share) * (1 - agree.right) / (n_classes - 1)
    if few_answers:
        enough = min(_RIGHT_OF_CLASS, _RIGHT * n_queries / n_classes)
        suffices = rightly >= enough
    else:
        signal = (n_classes * agree.right - 1) / (n_classes - 1)
        information = n_given * signal**2 * _relative_variance(share, n_classes)
        suffices = information >= min(_INFORMATION, _RIGHT * n_queries)
    # For classes of equal shares, both sides are equal up to round-off.
    wanted = min(0.5, agree.right) - 1e-9
    if suffices and rightly >= wanted * (rightly + wrongly):
        return None
    return (
        f"The rarest class has a share of {share:g}. Even if all votes of "
        f"{counted(n_teachers, 'teacher')} agree, {rightly:.0f} of "
        f"{counted(n_queries, 'query')} are rightly answered with this class, and "
        f"{wrongly:.0f} wrongly: a student can hardly learn it. Use more queries, more "
        "teachers or a larger epsilon. Also weight its rows, for example by "
        "class_weight='balanced', as unweighted teachers rarely vote for a rare class."
    )


def answers_of(mechanism: Any) -> PluralityMechanism:
    """Return the mechanism of plain answers: the largest of noisy counts or of a sum.

    A teacher that is sure of a public batch adds one clipping bound to its sum.
    """
    if isinstance(mechanism, NoisySum):
        return GNMax(mechanism.noise_scale)
    if isinstance(mechanism, SampledMechanism):
        mechanism = mechanism.mechanism
    return GNMax(mechanism.sigma) if mechanism.releases_histograms else mechanism


def _least(suffices: Callable[[int], bool], low: int) -> int | None:
    """Return the smallest number of teachers above `low` that suffices."""
    high = 2 * low
    while not suffices(high):
        low, high = high, 2 * high
        if high > _MOST_TEACHERS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _two_digits(value: float) -> str:
    """Round up to two significant digits."""
    digits = 1 - int(np.floor(np.log10(value)))
    return f"{np.ceil(value * 10.0**digits) / 10.0**digits:g}"


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

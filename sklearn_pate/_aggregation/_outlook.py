"""Accuracy of noisy answers, and reasons why noise hides what is to be learned."""

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._aggregation._entry import ReleasePlan
from sklearn_pate._synthetic._domain import OUTSIDE, Bins
from sklearn_pate._synthetic._marginals import Marginals
from sklearn_pate.accounting._calibrate import (
    gdp_epsilon,
    largest_gdp_mu,
)
from sklearn_pate.accounting._value_checks import (
    counted,
)
from sklearn_pate.accounting.plurality._exact import log_losing
from sklearn_pate.mechanisms import GNMax, NoisySum, PluralityMechanism
from sklearn_pate.mechanisms._noisy_sum import SQUARED_SIGNAL, MarginalCounts
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
    >>> from sklearn_pate import PATEClassifier
    >>> from sklearn_pate.inspection import plan
    >>> clf = PATEClassifier(n_teachers=250, n_queries=100)
    >>> [one] = plan(clf, margins=[0.5]).at_margins
    >>> one.lead, round(one.right, 3)
    (125, 0.98)
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
        f"; for a rare class, vote='balanced', or {_WITHOUT_TEACHERS}",
    )


def why_scores_useless(
    release: ReleasePlan, n_rows: int | None, rarest: float | None = None
) -> str | None:
    """Describe why mean scores hardly rank rows; None if they may.

    The noise then leaves less than one function of a direction. `rarest` is the share
    of the rarest class, where it is public or was released.
    """
    mechanism, n_classes = release.mechanism, release.n_values
    n_teachers = release.n_teachers
    if n_classes < 2:
        return None
    needed = math.ceil(
        mechanism.noise_scale * math.sqrt(SQUARED_SIGNAL * (n_classes - 1))
    )
    share = 1.0
    if rarest is not None and n_rows is not None:
        # Teachers that have a row of the class; others say nothing about it.
        share -= (1 - rarest) ** (n_rows / n_teachers)
    if share * n_teachers >= needed:
        return None
    of_scores = _ROWS_OF_CLASS * n_classes * needed
    enough = rarest is None and (n_rows is None or of_scores <= n_rows)
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


def why_codes_tell_nothing(
    names: list[Any], log_odds: Sequence[NDArray[np.float64]]
) -> str | None:
    """Describe codes that are no feature, by released counts; None without any."""
    lost = [
        name
        for name, of_codes in zip(names, log_odds, strict=True)
        if not of_codes.any()
    ]
    if not lost:
        return None
    more = f" and {len(lost) - _MOST_NAMED} more" * (len(lost) > _MOST_NAMED)
    return (
        f"By their noisy counts, the codes in the columns {lost[:_MOST_NAMED]}{more} "
        "tell the classes apart no better than chance, and become no feature. Leave "
        "these columns out of codes, or use more rows or a larger epsilon."
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


def why_columns_are_lost(
    representation: Any, of_basis: float = 1.0, *, counted_columns: Container[int] = ()
) -> str | None:
    """Describe columns that the features of a table hardly represent; None if none.

    By public rows. `of_basis` is the share of the variance of the features that a basis
    of them keeps. Categories of `counted_columns` are told apart by their counts.
    """
    if not isinstance(representation, TableRepresentation):
        return None
    names = getattr(representation, "feature_names_in_", None)
    rare = [
        f"{column if names is None else names[column]!r} ({100 * share:.0f} %)"
        for column, share in representation.rare_shares_.items()
        if share > _MOST_RARE and column not in counted_columns
    ]
    if rare:
        listed = ", ".join(rare[:_MOST_NAMED])
        return (
            "Most public rows have a category that is too rare for a feature of its "
            f"own in the columns {listed}: the features do not tell such categories "
            "apart. Group the categories, or count them: with many rows by "
            "codes={column: None}, with few by DPNaiveBayesClassifier(domain)."
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
    """Describe why a student of plain votes cannot learn the rarest class.

    `share` is its public share. Half of the answers that name the class must be right,
    or as many as of all answers if these are fewer: otherwise a student hardly ever
    predicts it. Beyond that, the rule of `why_useless` for a label that names this
    class or not: its information is in proportion to its variance p (1 - p), here
    relative to that of classes of equal shares. Of few answers, five must name the
    class rightly.
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
        "teachers or a larger epsilon. Also set vote='balanced' where a student has "
        "probabilities, as teachers rarely find a rare class most probable."
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

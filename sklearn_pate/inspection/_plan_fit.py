"""Plans of fits of PATEClassifier and DPNewtonClassifier from public numbers."""

import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate._base._defaults import allows_scores, releases_function
from sklearn_pate._base._fit_plan import MARGINS, FitPlan
from sklearn_pate._base._parameters import resolve_n_queries, resolve_n_teachers
from sklearn_pate._classifier import PATEClassifier
from sklearn_pate._marginals._domain import count_tables
from sklearn_pate._marginals._private_marginals import PrivateMarginals
from sklearn_pate.accounting._value_checks import check_count, check_not_masked
from sklearn_pate.baselines._newton import DPNewtonClassifier, n_coordinates
from sklearn_pate.mechanisms import MeanScores, Mechanism
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts
from sklearn_pate.mechanisms._newton_steps import NewtonSteps
from sklearn_pate.students._train_student import accepts_unlabeled

__all__ = ["plan_fit", "plan_newton_fit"]


def plan_fit(
    *,
    n_rows: int | None = None,
    n_teachers: int | Literal["auto"] = "auto",
    n_queries: int | Literal["auto"] = "auto",
    n_classes: int = 2,
    epsilon: float | None = 1.0,
    delta: float = 1e-5,
    mechanism: str | Mechanism | MeanScores = "auto",
    student: Any = None,
    privacy_unit: Literal["row", "group"] = "row",
    class_prior: float | ArrayLike | None = None,
    synthetic: PrivateMarginals | None = None,
    margins: Sequence[float] = MARGINS,
) -> FitPlan:
    """Plan a fit of PATEClassifier from public numbers alone.

    Nothing is fitted, drawn or charged. With the data at hand,
    :meth:`PATEClassifier.plan_fit <sklearn_pate.PATEClassifier.plan_fit>` takes the
    numbers from them and from the classifier's parameters.

    Parameters
    ----------
    n_rows : int, default=None
        Number of private rows, without those that `public_size` would hold out. Where
        groups are the unit, this number is not public, and is refused.

    n_teachers : int or "auto", default="auto"
        Number of teachers, as for :class:`~sklearn_pate.PATEClassifier`: the votes of
        more teachers exceed more noise, but each learns from fewer rows. "auto" needs
        `n_rows`.

    n_queries : int or "auto", default="auto"
        Number of queries. At a fixed epsilon, more queries mean more noise in each
        answer. "auto" assumes that there are as many public rows.

    n_classes : int, default=2
        Number of classes, public.

    epsilon : float or None, default=1.0
        The publishable epsilon of the fit, to which the noise is calibrated. None takes
        the noise of `mechanism` and states its epsilon.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover. It must be well below one over
        the number of rows.

    mechanism : {"auto", "scores", "gnmax", "lnmax", "gumbel", \
            "permute-and-flip", "confident"} or mechanism, default="auto"
        As for :class:`~sklearn_pate.PATEClassifier`, of a table: "auto" may plan
        "scores" if `n_queries` is "auto", too. Not "interactive", whose
        answers depend on a student.

    student : classifier, default=None
        The student. One that accepts unlabelled rows needs few right answers; others,
        and None, average over many noisy ones.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy. The noise is the same for both.

    class_prior : float or array-like of shape (n_classes,), default=None
        Shares of the classes among the rows, from public knowledge, or the share of the
        rarest class alone. The plan then warns if answers cannot teach that class. It
        must not be computed from private rows.

    synthetic : PrivateMarginals, default=None
        Noisy counts that rows are drawn from, in place of public rows. Its domain must
        declare all columns by name: the cost depends on their number.

    margins : sequence of float, default=(0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
        Leads of the most-voted class over every other class, as shares of the teachers,
        at which to compute the label accuracy.

    Returns
    -------
    plan : FitPlan
        To be printed, or read. A fit with these parameters states exactly this epsilon,
        delta and mechanism.

    Raises
    ------
    ValueError
        If a parameter cannot work, or epsilon cannot be reached.

    Notes
    -----
    The label accuracy is computed from the exact law of an answer, without simulation,
    at the worst votes with a given lead: see
    :class:`~sklearn_pate.inspection.LabelAccuracy`.

    Examples
    --------
    >>> from sklearn_pate.inspection import plan_fit
    >>> plan = plan_fit(n_rows=90_000, n_queries=100)
    >>> plan.n_teachers, plan.mechanism
    (300, 'GNMax(sigma=42.5262)')
    >>> bool(plan.epsilon <= 1)
    True
    >>> [round(one.right, 2) for one in plan.at_margins]
    [0.69, 0.84, 0.98, 1.0, 1.0, 1.0]
    """
    pate = PATEClassifier(
        student=student,
        n_teachers=n_teachers,
        n_queries=n_queries,
        mechanism=mechanism,
        epsilon=epsilon,
        delta=delta,
        privacy_unit=privacy_unit,
        synthetic=synthetic,
    )
    check_count("n_classes", n_classes, 2)
    if n_rows is not None:
        check_count("n_rows", n_rows, 1)
    pate._check_parameters()
    counts = _counts(synthetic, epsilon, delta)
    rarest = None if class_prior is None else _rarest(class_prior, n_classes)
    student = pate._unfitted_student()
    scores = _score_mechanism(pate, n_rows, n_classes)
    if scores is not None:
        n_teachers = _resolve_n_teachers(pate, n_rows)
        ready = scores.prepared(epsilon=epsilon, delta=delta, counts=counts)
        return FitPlan.of_scores(
            ready,
            ready.n_coordinates(n_teachers, n_classes)[-1],
            n_rows=n_rows,
            n_teachers=n_teachers,
            n_classes=n_classes,
            delta=delta,
            unit=privacy_unit,
            counts=counts,
        )
    if n_queries == "auto":
        n_queries = resolve_n_queries("auto", sys.maxsize, student)
    n_teachers = _resolve_n_teachers(pate, n_rows)
    return FitPlan.of_mechanism(
        pate._prepared_mechanism(n_teachers, n_queries, n_classes, epsilon, counts),
        n_rows=n_rows,
        n_teachers=n_teachers,
        n_queries=n_queries,
        n_classes=n_classes,
        delta=delta,
        unit=privacy_unit,
        margins=margins,
        few_answers=accepts_unlabeled(student),
        target_epsilon=epsilon,
        rarest=rarest,
        counts=counts,
    )


def plan_newton_fit(
    n_units: int,
    *,
    n_classes: int = 2,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    privacy_unit: Literal["row", "group"] = "row",
    synthetic: PrivateMarginals | None = None,
) -> FitPlan:
    """Plan a fit of DPNewtonClassifier from public numbers alone.

    Nothing is fitted, drawn or charged. With the data at hand,
    :meth:`DPNewtonClassifier.plan_fit <sklearn_pate.DPNewtonClassifier.plan_fit>` takes
    the numbers from them and from the classifier's parameters.

    Parameters
    ----------
    n_units : int
        Number of private rows, without those that `public_size` would hold out. With
        ``privacy_unit="group"``, an estimate of the number of groups from public
        knowledge.

    n_classes : int, default=2
        Number of classes, public.

    epsilon : float, default=1.0
        The publishable epsilon of the fit, to which the noise is calibrated.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy. The noise is the same for both.

    synthetic : PrivateMarginals, default=None
        Noisy counts that rows are drawn from, in place of public rows. Its domain must
        declare all columns by name: the cost depends on their number.

    Returns
    -------
    plan : FitPlan
        To be printed, or read. Its number of coefficients is that of a table with many
        public rows.

    Raises
    ------
    ValueError
        If a parameter cannot work, or epsilon cannot be reached.

    Examples
    --------
    >>> from sklearn_pate.inspection import plan_newton_fit
    >>> plan = plan_newton_fit(30_000)
    >>> plan.mechanism, plan.n_coordinates
    ('NewtonSteps(noise_scale=7.46127)', 402)
    """
    check_count("n_units", n_units, 1)
    check_count("n_classes", n_classes, 2)
    learner = DPNewtonClassifier(
        epsilon=epsilon,
        delta=delta,
        privacy_unit=privacy_unit,
        n_groups=n_units,
        synthetic=synthetic,
    )
    learner._check_parameters()
    counts = _counts(synthetic, epsilon, delta)
    ready = NewtonSteps().prepared(epsilon=epsilon, delta=delta, counts=counts)
    return FitPlan.of_newton(
        ready,
        n_coordinates(ready, n_units, sys.maxsize, n_classes),
        n_rows=n_units if privacy_unit == "row" else None,
        n_units=n_units,
        n_classes=n_classes,
        delta=delta,
        unit=privacy_unit,
        counts=counts,
    )


def _counts(
    synthetic: PrivateMarginals | None, epsilon: float | None, delta: float
) -> MarginalCounts | None:
    """Return the release of counts of a declared domain, None with public rows."""
    if synthetic is None:
        return None
    return synthetic._mechanism(
        count_tables(synthetic.domain, synthetic.n_bins),
        epsilon=epsilon,
        delta=delta,
        add_remove=False,
        noise_seed=None,
    )


def _score_mechanism(
    pate: PATEClassifier, n_rows: int | None, n_classes: int
) -> MeanScores | None:
    """Return the mechanism that releases mean scores, None for answers."""
    chosen = pate._chosen_mechanism()
    if isinstance(chosen, MeanScores):
        return chosen
    if pate.epsilon is None or not releases_function(pate, None, n_classes):
        return None
    n_teachers = _resolve_n_teachers(pate, n_rows)
    allowed = allows_scores(n_teachers, n_classes, pate.epsilon, pate.delta)
    return MeanScores() if allowed else None


def _rarest(class_prior: Any, n_classes: int) -> float:
    """Return the share of the rarest class, or raise ValueError if it is none."""
    check_not_masked("class_prior", class_prior)
    shares = np.asarray(class_prior)
    is_number = shares.dtype.kind in "iuf"
    if shares.ndim and not (
        is_number and shares.shape == (n_classes,) and abs(shares.sum() - 1) < 0.01
    ):
        raise ValueError(
            f"class_prior={class_prior!r} must be {n_classes} shares that sum to 1, or "
            "the share of the rarest class."
        )
    rarest = shares.min() if is_number and shares.size else np.nan
    if not 0 < rarest <= 1 / n_classes:
        raise ValueError(
            f"class_prior={class_prior!r} must be positive, and the share of the "
            f"rarest of {n_classes} classes at most 1/{n_classes}."
        )
    return float(rarest)


def _resolve_n_teachers(pate: PATEClassifier, n_rows: int | None) -> int:
    """Return the number of teachers, or raise ValueError if it is not known."""
    if pate.privacy_unit == "group":
        if n_rows is not None:
            raise ValueError(
                f"n_rows={n_rows!r} is not public where a group is the unit, and a "
                "plan may be published; leave it out, and pass n_teachers."
            )
        if pate.n_teachers == "auto":
            raise ValueError(
                "n_teachers='auto' reads the number of rows, which is not public where "
                "a group is the unit; pass a number, chosen independently of the data, "
                "such as 100."
            )
    if n_rows is None:
        if pate.n_teachers == "auto":
            raise ValueError(
                "n_teachers='auto' is the square root of the number of rows, which is "
                "not known; pass n_rows, or n_teachers."
            )
        return pate.n_teachers
    n_teachers = resolve_n_teachers(pate.n_teachers, n_rows)
    if n_teachers > n_rows:
        raise ValueError(
            f"n_teachers={n_teachers} is more than n_rows={n_rows}; lower n_teachers "
            "or bring more rows."
        )
    return n_teachers

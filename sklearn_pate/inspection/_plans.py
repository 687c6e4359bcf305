"""Plans of fits and searches from numbers alone, without data."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, Literal

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
from sklearn_pate._aggregation._design import design_fit
from sklearn_pate._aggregation._entry import ReleasePlan
from sklearn_pate._aggregation._fit_plan import MARGINS, FitPlan, why_scores_useless
from sklearn_pate._aggregation._rows import PublicInputs, number_of_units
from sklearn_pate._estimators._class_codes import accepts_unlabeled, last_step
from sklearn_pate._inputs._labels import public_table, read_classes
from sklearn_pate._pate import PATEClassifier
from sklearn_pate._synthetic._domain import count_tables
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate.accounting._ledger import PrivacyLedger, fitting_epsilon
from sklearn_pate.accounting._ledger import costs as spent
from sklearn_pate.accounting._statement import CHOSEN_BLINDLY
from sklearn_pate.accounting._value_checks import check_count, counted
from sklearn_pate.inspection._leaks import splits_by_labels
from sklearn_pate.learners._newton import DPNewtonClassifier
from sklearn_pate.mechanisms import MeanScores, PluralityMechanism
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts

Learner = PATEClassifier | DPNewtonClassifier


def plan_fit(
    *,
    n_rows: int | None = None,
    n_teachers: int | Literal["auto"] = "auto",
    n_queries: int | Literal["auto"] = "auto",
    n_classes: int = 2,
    epsilon: float | None = 1.0,
    delta: float = 1e-5,
    mechanism: str | PluralityMechanism | MeanScores = "auto",
    student: Any = None,
    privacy_unit: Literal["row", "group"] = "row",
    class_prior: float | ArrayLike | None = None,
    synthetic: PrivateMarginals | None = None,
    margins: Sequence[float] = MARGINS,
) -> FitPlan:
    """Plan a fit of PATEClassifier, without data.

    No model is fitted, no noise is drawn, and no cost is charged. To plan a fit with
    data, use :meth:`PATEClassifier.plan_fit <sklearn_pate.PATEClassifier.plan_fit>`.

    Parameters
    ----------
    n_rows : int, default=None
        Number of private rows, without rows that `public_size` would hold out. Must be
        None for ``privacy_unit="group"``, as the number is then private.

    n_teachers : int or "auto", default="auto"
        Number of teachers. More teachers cast more votes against the same noise, but
        each teacher learns from fewer rows. "auto" needs `n_rows`.

    n_queries : int or "auto", default="auto"
        Number of queries. At a fixed epsilon, more queries mean more noise in each
        answer. "auto" assumes that there are enough public rows.

    n_classes : int, default=2
        Number of classes, which is public.

    epsilon : float or None, default=1.0
        Publishable epsilon of the fit, to which the noise is calibrated. With None, the
        fit uses the noise of `mechanism` and states the resulting epsilon.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee. Must be well below one over the number
        of rows.

    mechanism : {"auto", "scores", "gnmax", "lnmax", "gumbel", \
            "permute-and-flip", "confident"} or mechanism, default="auto"
        As for a :class:`~sklearn_pate.PATEClassifier` that is fitted on a table. "auto"
        may plan "scores" if `n_queries` is "auto", too. "interactive" cannot be
        planned, as its answers depend on a student.

    student : classifier, default=None
        The student. A student that accepts unlabelled rows needs few answers. The plan
        assumes that other students, and None, average over many noisy answers.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy. The noise is equal for both units.

    class_prior : float or array-like of shape (n_classes,), default=None
        Shares of the classes, or the share of the rarest class, from public knowledge.
        Must not be computed from private rows. The plan then warns if the noise is too
        large to learn the rarest class.

    synthetic : PrivateMarginals, default=None
        Noisy counts from which rows are drawn, in place of public rows. The domain must
        declare all columns by name, as the cost depends on the number of columns.

    margins : sequence of float, default=(0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
        Leads of the most-voted class over every other class, as shares of the teachers,
        at which to compute the label accuracy.

    Returns
    -------
    plan : FitPlan
        Plan with the epsilon, delta and mechanism that a fit with these parameters
        states.

    Raises
    ------
    ValueError
        If a parameter cannot be used, or epsilon cannot be reached.

    Notes
    -----
    The label accuracy is computed from the exact distribution of an answer, for the
    worst votes with a given lead. See :class:`~sklearn_pate.inspection.LabelAccuracy`.

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
    _check_n_rows(pate, n_rows)
    rarest = read_rarest(class_prior, n_classes)
    design = design_fit(
        pate, None, n_public=sys.maxsize, n_rows=n_rows, n_classes=n_classes
    )
    release = ReleasePlan.of_design(
        design,
        target=epsilon,
        delta=delta,
        n_classes=n_classes,
        unit=privacy_unit,
        assumptions=(CHOSEN_BLINDLY,),
        counts_for=partial(_counts, pate, n_classes, n_rows),
    )
    if isinstance(design.mechanism, MeanScores):
        allowed = release.mechanism.n_coordinates(design.n_teachers, n_classes)
        plan = FitPlan.of_coefficients(
            release,
            n_rows=n_rows,
            n_coordinates=allowed[-1],
            useless=why_scores_useless(release, n_rows)
            or why_scores_useless(release, n_rows, rarest),
            rarest=rarest,
        )
    else:
        plan = FitPlan.of_votes(
            release,
            n_rows=n_rows,
            margins=margins,
            few_answers=accepts_unlabeled(design.student),
            rarest=rarest,
        )
    # Numbers alone: a plan takes nothing for granted.
    return replace(plan, assumptions=())


def plan_newton_fit(
    n_units: int,
    *,
    n_classes: int = 2,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    privacy_unit: Literal["row", "group"] = "row",
    class_prior: float | ArrayLike | None = None,
    synthetic: PrivateMarginals | None = None,
) -> FitPlan:
    """Plan a fit of DPNewtonClassifier, without data.

    No model is fitted, no noise is drawn, and no cost is charged. To plan a fit with
    data, use :meth:`DPNewtonClassifier.plan_fit
    <sklearn_pate.DPNewtonClassifier.plan_fit>`.

    Parameters
    ----------
    n_units : int
        Number of private rows, without rows that `public_size` would hold out. With
        ``privacy_unit="group"``, an estimate of the number of groups from public
        knowledge.

    n_classes : int, default=2
        Number of classes, which is public.

    epsilon : float, default=1.0
        Publishable epsilon of the fit, to which the noise is calibrated.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy. The noise is equal for both units.

    class_prior : float or array-like of shape (n_classes,), default=None
        As in :func:`plan_fit`.

    synthetic : PrivateMarginals, default=None
        Noisy counts from which rows are drawn, in place of public rows. The domain must
        declare all columns by name, as the cost depends on the number of columns.

    Returns
    -------
    plan : FitPlan
        Plan. The number of coefficients in the plan assumes a table with many public
        rows and classes of equal shares.

    Raises
    ------
    ValueError
        If a parameter cannot be used, or epsilon cannot be reached.

    Examples
    --------
    >>> from sklearn_pate.inspection import plan_newton_fit
    >>> plan = plan_newton_fit(30_000)
    >>> plan.mechanism, plan.n_coordinates
    ('NewtonSteps(noise_scale=7.46127)', 233)
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
    rarest = read_rarest(class_prior, n_classes)
    counts = partial(_counts, learner, n_classes, n_units)
    release = learner._release(n_classes, counts, (CHOSEN_BLINDLY,))
    plan = learner._fit_plan(
        release,
        n_units,
        n_rows=n_units if privacy_unit == "row" else None,
        n_coordinates=learner._most_coordinates(release, sys.maxsize, n_units),
        rarest=rarest,
    )
    return replace(plan, assumptions=())


def _counts(
    learner: Learner, n_classes: int, n_units: int | None, epsilon: float | None
) -> MarginalCounts | None:
    """Return the release of counts of a declared domain, None with public rows."""
    if learner.synthetic is None:
        return None
    n_tables = count_tables(learner.synthetic.domain)
    return learner._counts_of(
        n_tables, n_classes=n_classes, n_units=n_units, epsilon=epsilon
    )


def _check_n_rows(pate: PATEClassifier, n_rows: int | None) -> None:
    """Raise ValueError for a number of rows that is not public, or too small."""
    if n_rows is None:
        check_number_of_groups(pate)
        return
    if pate.privacy_unit == "group":
        raise ValueError(
            f"n_rows={n_rows!r} is private if a group is the unit, but a plan may be "
            "published; leave n_rows out, and pass n_teachers."
        )
    if pate.n_teachers != "auto" and pate.n_teachers > n_rows:
        raise ValueError(
            f"n_teachers={pate.n_teachers} is more than n_rows={n_rows}; lower "
            "n_teachers or pass more rows."
        )


@dataclass(frozen=True)
class SearchPlan:
    """Number of fits of a search, and their share of a privacy budget. Sensitive.

    The plan depends on the number of rows in each split. For groups, these numbers are
    private.

    Parameters
    ----------
    n_candidates : int
        Number of candidates.

    n_splits : int
        Number of fits of each candidate.

    refit : bool
        Whether the best candidate is fitted once more.

    share : float
        Share of the ledger's budget that all fits take together, if no fit has an entry
        yet and the most costly candidate is refitted.

    left : float
        Share of the budget that is left now.

    ledger : str
        Path of the ledger.

    stratified : bool
        Whether the splits depend on labels. No privacy cost covers this dependence.

    fitting_epsilon : float, default=None
        Smaller epsilon of each fit with which the search would be within the budget.
        None if the search is within the budget, or fits have different epsilons. Also
        None if that epsilon is below a tenth of the present epsilon or of the budget.

    Examples
    --------
    >>> from sklearn_pate.inspection import SearchPlan
    >>> plan = SearchPlan(
    ...     n_candidates=4,
    ...     n_splits=3,
    ...     refit=True,
    ...     share=0.7,
    ...     left=0.5,
    ...     ledger="patients.sqlite",
    ...     stratified=False,
    ... )
    >>> plan.n_fits, plan.fits
    (13, False)
    """

    n_candidates: int
    n_splits: int
    refit: bool
    share: float
    left: float
    ledger: str
    stratified: bool
    fitting_epsilon: float | None = None

    @property
    def n_fits(self) -> int:
        """Number of fits. Each fit is charged to the ledger.

        Returns
        -------
        n_fits : int
            Fits of all splits of all candidates, and the refit.
        """
        return self.n_candidates * self.n_splits + self.refit

    @property
    def fits(self) -> bool:
        """Whether the cost of the search is within the budget.

        Returns
        -------
        fits : bool
            If False, the search would fail after some fits, whose costs stay charged.
        """
        return self.share <= self.left

    def __str__(self) -> str:
        refit = " and a refit" if self.refit else ""
        sentences = [
            f"This search will fit {counted(self.n_fits, 'time')} "
            f"({counted(self.n_candidates, 'candidate')} on {self.n_splits} "
            f"splits{refit}). Each new fit is charged. All fits together cost at most "
            f"{self.share:.2%} of the budget of {self.ledger}, of which "
            f"{self.left:.2%} is left.",
            "The choice between candidates depends on private labels, and no privacy "
            "cost covers it.",
        ]
        if not self.fits:
            sentences.insert(
                1,
                "The search would fail before its end, for lack of budget. (Without "
                "error_score='raise', a refused fit counts as a bad score.)",
            )
            if self.fitting_epsilon is not None:
                sentences.insert(
                    2, f"epsilon={self.fitting_epsilon:g} would fit this budget."
                )
        if self.stratified:
            sentences.append(
                "The splits also depend on private labels: one changed label moves "
                "other rows between folds. Pass cv=KFold(shuffle=True)."
            )
        return " ".join(sentences)


def plan_search(
    search: Any, X: Any, y: ArrayLike, *, X_public: Any = None, groups: Any = None
) -> SearchPlan:
    """Compute the privacy cost of all fits of a search around a private classifier.

    Nothing is fitted or charged. The plan is for the data holder, as it depends on the
    numbers of rows in splits and, if `classes` is None, on the set of labels.

    Parameters
    ----------
    search : GridSearchCV or RandomizedSearchCV
        Search around a PATEClassifier or DPNewtonClassifier with a `ledger`, or around
        a Pipeline that ends in such a classifier. A random search needs an integer
        `random_state`.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Private rows. Only their number and columns are read.

    y : array-like of shape (n_rows,)
        Labels of the private rows, for the label set and the splits.

    X_public : PublicData, array-like, sparse matrix or dataframe, default=None
        Public rows. Only their number and columns are read. None with `public_size` or
        `synthetic`.

    groups : array-like of shape (n_rows,), default=None
        Group of each row, for splits by group.

    Returns
    -------
    plan : SearchPlan
        Number of fits, and share of the budget that all fits take.

    Raises
    ------
    ValueError
        If `search` has another class, no ledger, or a cost that is unknown before the
        search. Also if `X_public` is missing.

    LedgerError
        If the ledger cannot be read.

    Notes
    -----
    The ledger charges the worst case of all queries of each fit. Renyi costs add up at
    the orders of the ledger (Feldman and Zrnic 2021); see
    :class:`~sklearn_pate.PrivacyLedger`. The cost does not include the choice of a
    candidate by scores on private labels, unlike the cost of
    :class:`~sklearn_pate.model_selection.PrivateSearchCV`.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
    >>> from sklearn_pate.inspection import plan_search
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
    >>> plan = plan_search(search, X[:2500], y[:2500], X_public=PublicData(X[2500:]))
    >>> plan.n_fits, plan.fits
    (7, True)
    >>> print(f"{plan.share:.0%} of the budget")
    75% of the budget
    >>> folder.cleanup()
    """
    if not isinstance(search, (GridSearchCV, RandomizedSearchCV)):
        raise ValueError(
            f"search is of type {type(search).__name__}, not a GridSearchCV or "
            "RandomizedSearchCV; its number of fits is not known before it starts."
        )
    learner = last_step(search.estimator)
    if not isinstance(learner, Learner) or learner.ledger is None:
        raise ValueError(
            "search has no ledger; set ledger=PrivacyLedger(...) on the PATEClassifier "
            "or DPNewtonClassifier inside it."
        )
    if hasattr(search.cv, "__next__"):
        raise ValueError(
            f"cv={search.cv!r} can be read only once, but the search reads it again; "
            "pass a list of its splits."
        )
    ledger, y = learner.ledger, np.asarray(y)
    fits = [last_step(one) for one in _candidates(search)]
    if any(not isinstance(one, Learner) or one.ledger != ledger for one in fits):
        raise ValueError(
            "The candidates of a search have different ledgers, or some have none; "
            "set one ledger for all of them."
        )
    cv = check_cv(search.cv, y, classifier=True)
    classes = read_classes(y)[0]
    sizes = [len(train) for train, _ in cv.split(np.zeros(len(y)), y, groups)]
    rows = None if X_public is None else _rows(X_public)

    def fractions(**changes: float) -> tuple[float, float]:
        """Return the fractions of the budget that are taken and left."""
        learners = [clone(one).set_params(**changes) for one in fits]

        def costs(n_rows: int) -> list[tuple[float, ...]]:
            return [
                _cost(one, ledger, _rows(X), n_rows, rows, classes) for one in learners
            ]

        cost = np.sum([costs(n_rows) for n_rows in sizes], axis=(0, 1))
        if search.refit:
            cost = cost + np.max(costs(len(y)), axis=0)
        with ledger.reading() as file:
            share, left = ledger.filter.budget_fractions(cost, spent(file))
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
    return SearchPlan(
        n_candidates=len(fits),
        n_splits=len(sizes),
        refit=bool(search.refit),
        share=share,
        left=left,
        ledger=str(ledger.path),
        stratified=splits_by_labels(cv),
        fitting_epsilon=affordable,
    )


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


def _cost(
    learner: Learner,
    ledger: PrivacyLedger,
    X: Any,
    n_rows: int,
    X_public: Any,
    classes: NDArray[Any],
) -> tuple[float, ...]:
    """Return the cost of one fit at each order of the ledger."""
    learner._check_parameters()
    check_number_of_groups(learner)
    domain, n_public = None, 0 if X_public is None else X_public.shape[0]
    if learner.synthetic is not None:
        domain, n_public = learner.synthetic._read(X), learner.synthetic.n_rows
    elif X_public is None:
        if learner.public_size is None:
            raise ValueError(
                "X_public=None, but the classifier has neither public_size nor "
                "synthetic; pass the X_public of the search."
            )
        n_public = round(learner.public_size * n_rows)
        n_rows -= n_public
    if learner.classes is not None:
        classes = np.asarray(learner.classes)
    # Public rows have the columns of private ones, whose values are not read.
    rows = X if X_public is None else X_public
    n_units = number_of_units(learner, n_rows)
    public = PublicInputs(
        classes, rows, learner.privacy_unit, (), domain, n_units=n_units
    )
    if isinstance(learner, DPNewtonClassifier):
        return ledger.filter.cost(learner._plan_release(public).statement.curve)
    design = design_fit(
        learner,
        rows,
        n_public=n_public,
        n_rows=n_rows if learner.privacy_unit == "row" else None,
        n_classes=len(classes),
    )
    return ledger.filter.cost(learner._release(design, public).statement.curve)


def _rows(X: Any) -> Any:
    """Return rows that have a shape."""
    X = public_table(X)
    return X if hasattr(X, "shape") else np.asarray(X, dtype=object)

"""PrivateSearchCV: private hyper-parameter search, and its cost."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from sklearn_pate._aggregation._entry import record_release
from sklearn_pate._estimators._isolation import MAX_SEED, check_cloneable
from sklearn_pate._estimators._kinds import last_step, with_last_step
from sklearn_pate._estimators._predictions import DelegatedPredictionMixin
from sklearn_pate._estimators._progress import check_verbose, phase, progress_of
from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._labels import private_rows_by_position
from sklearn_pate._private import PrivateClassifier
from sklearn_pate.accounting._calibrate import (
    LARGEST_SCALE,
    calibrate_noise,
    check_delta_is_small,
)
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._statement import (
    ALIKE,
    LABEL_SET,
    LABEL_SET_READ,
    N_FITTED,
    SECRET,
    Assumption,
    PrivacySpent,
    state_cost,
)
from sklearn_pate.accounting._value_checks import Constraint
from sklearn_pate.accounting.composition import (
    OnDisjointRows,
    SelectionLaw,
    upper_envelope,
)
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.mechanisms._noise import NoiseSource, as_drawn, noise_from
from sklearn_pate.mechanisms._noisy_training import (
    DisjointChoice,
    NoisyScores,
    SelectedFit,
    curves_of_fits,
    selection_law,
)
from sklearn_pate.model_selection._split import FitArguments, RowSplit, split_rows
from sklearn_pate.model_selection._trials import (
    Candidate,
    TrialSetup,
    best_of_trials,
    best_on_disjoint_rows,
    list_candidates,
    state_fit,
)
from sklearn_pate.publication._model_file import without_caches

# Largest share that noise on scores may add to the epsilon charged to a ledger.
_SHARE_OF_SCORES = 0.01
# Noise on scores is calibrated to this where delta alone covers the fits.
_LEAST_EPSILON = 1e-6


class FitCosts(NamedTuple):
    """Privacy cost of one fit of each candidate, and assumptions beside theirs."""

    of_candidates: list[PrivacySpent]
    assumptions: tuple[Assumption, ...]

    @property
    def curves(self) -> list[RdpCurve]:
        """Renyi curves of the candidates, with the pure cost where one is stated."""
        return [
            RdpCurve(one.curve.orders, one.curve.values, one.epsilon)
            if one.delta == 0
            else one.curve
            for one in self.of_candidates
        ]

    @property
    def pure(self) -> float | None:
        """Largest pure cost of a candidate; None if a candidate has none."""
        if all(one.delta == 0 and one.epsilon < np.inf for one in self.of_candidates):
            return max(spent.epsilon for spent in self.of_candidates)
        return None


def cost_of_fits(
    candidates: Sequence[Candidate],
    rows: FitArguments,
    split: RowSplit,
    unit: str,
    relation: str,
) -> FitCosts:
    """Compute the privacy cost of each candidate on the rows it would be fitted on.

    Raises ValueError if units or relations of candidates differ, or a candidate cannot
    be fitted. The costs depend on no private value.
    """
    parts = [rows.take(indices) for indices in split.training]
    costs: list[PrivacySpent] = []
    assumptions: list[Assumption] = []
    for index, candidate in enumerate(candidates):
        spent = state_fit(candidate.estimator, parts[index % len(parts)])
        if (spent.unit, spent.relation) != (unit, relation):
            raise ValueError(
                f"The candidates protect unit={unit!r} with relation={relation!r}, "
                f"and unit={spent.unit!r} with relation={spent.relation!r}, whose "
                "costs cannot be compared; pass candidates with the same unit and "
                "relation."
            )
        costs.append(spent)
        assumptions += candidate.assumptions
        is_drawn = (unit, relation) == ("row", "add-remove")
        if is_drawn and _depends_on_size(candidate, rows, spent):
            assumptions.append(N_FITTED)
    return FitCosts(costs, tuple(assumptions))


def choose_scoring(
    n_trials_distribution: str,
    mean_n_trials: float,
    delta: float,
    costs: FitCosts,
    sensitivity: int,
) -> NoisyScores | DisjointChoice:
    """Choose the noise on scores, or raise ValueError if it is too large to be drawn.

    A fixed rule: if all fits have a pure cost, noise of the same pure cost; otherwise
    the least noise that leaves the stated epsilon as it is and adds at most one
    hundredth to the epsilon that is charged.
    """
    kind = DisjointChoice if n_trials_distribution == "disjoint" else NoisyScores
    if costs.pure is not None:
        scoring = kind.at(costs.pure)
    else:
        law = selection_law(n_trials_distribution, mean_n_trials)
        cases = curves_of_fits(n_trials_distribution, mean_n_trials, costs.curves)
        stated = max(case.quiet_epsilon(delta) for case in cases)
        if np.isinf(stated):
            return kind(1.0)  # there is no guarantee to keep
        fits = upper_envelope(cases)
        charged = (1 + _SHARE_OF_SCORES) * fits.quiet_epsilon(delta)
        stated, charged = max(stated, _LEAST_EPSILON), max(charged, _LEAST_EPSILON)

        def of_score(scale: float, orders: ArrayLike | None = None) -> RdpCurve:
            return law.cost(kind(scale).curve(fits.orders))

        def of_all(scale: float, orders: ArrayLike) -> RdpCurve:
            return upper_envelope([fits, of_score(scale)])

        scoring = kind(
            max(
                calibrate_noise(of_score, epsilon=stated, delta=delta),
                calibrate_noise(of_all, epsilon=charged, delta=delta),
            )
        )
    if scoring.scale * sensitivity > LARGEST_SCALE:
        raise ValueError(
            f"Scores would need noise of scale {scoring.scale * sensitivity:g}, more "
            f"than {LARGEST_SCALE}, the largest that can be drawn; raise the epsilon "
            "of the estimator."
        )
    return scoring


def state_search(
    selection: SelectedFit, costs: FitCosts, delta: float, label_set: Assumption
) -> PrivacySpent:
    """Make the statement of a search, and warn if a candidate gives no privacy.

    Its delta is 0 if all fits and scores have a pure cost and the law of the number of
    trials keeps it.
    """
    unit = costs.of_candidates[0].unit
    cost, seeded = as_drawn(selection.cost(unit=unit))
    epsilon = cost.epsilon(delta)
    if np.isinf(epsilon) and not seeded:
        warn_user(
            "A candidate has no privacy guarantee (epsilon=inf), perhaps because it "
            "reads a bound from the data. Then nothing of this search is private: "
            "publish nothing of it.",
            PrivacyLeakWarning,
        )
    of_fits = [one for spent in costs.of_candidates for one in spent.assumptions]
    assumptions = [
        label_set,
        *(one for one in of_fits if one not in (LABEL_SET, LABEL_SET_READ)),
        *costs.assumptions,
        SECRET,
        ALIKE,
        *seeded,
    ]
    if not seeded and selection.pure_epsilon() is not None:
        delta = 0.0
    return state_cost(
        cost,
        delta,
        release=selection.released,
        mechanism=selection.in_one_line(),
        assumptions=tuple(dict.fromkeys(assumptions)),
        epsilon=epsilon,
    )


def _depends_on_size(
    candidate: Candidate, rows: FitArguments, spent: PrivacySpent
) -> bool:
    """Compare the cost on all rows with the cost on the drawn training rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # planning on the parts has issued them
        of_all = state_fit(candidate.estimator, rows)
    return not np.allclose(of_all.curve.values, spent.curve.values, rtol=1e-9, atol=0)


@dataclass(frozen=True)
class SearchSetup:
    """Plan of a search: candidates, trials, their noise, and the statement."""

    candidates: list[Candidate]
    trials: TrialSetup
    law: SelectionLaw
    noise: NoiseSource
    mechanism: SelectedFit
    statement: PrivacySpent


class PrivateSearchCV(MetaEstimatorMixin, DelegatedPredictionMixin, PrivateClassifier):
    """Private hyper-parameter search.

    GridSearchCV scores candidates on private labels, so that its choice has no privacy
    guarantee, and every fit has its own privacy cost. This search fits random
    candidates a random number of times. Each fit gets a noisy score on held-out rows,
    and only the best fit and its parameters are released. The privacy cost of the
    search is about twice the cost of one fit, for any number of candidates and fits.
    Give the estimator half of the epsilon of the search. The method `plan_privacy`
    states the exact cost.

    The attributes ``cv_results_`` and ``best_score_`` and the number of fits are
    secret, and not available.

    Parameters
    ----------
    estimator : classifier
        Private classifier with ``plan_privacy``, or a Pipeline that ends in such a
        classifier, if other steps do not depend on values of X. Each fit replaces every
        `random_state` by a secret seed. The estimator must not set `ledger`, `memory`
        or `public_size`.

    param_grid : dict or list of dict
        Parameter values to try, as for GridSearchCV. More candidates have no privacy
        cost, but each candidate is tried less often. All candidates must have one unit
        of privacy and one neighbour relation. The largest privacy cost of a candidate
        determines the cost of the search.

    n_trials_distribution : {"logarithmic", "geometric", "poisson", "disjoint"}, \
            default="logarithmic"
        Distribution of the number of fits, which must be random and secret. "disjoint"
        fits each candidate once, each on another part of the rows, at a privacy cost of
        at most one fit. The notes compare the privacy costs.

    mean_n_trials : float, default=10
        Expected number of fits, which must be more than 1. More fits find a better
        candidate, at a slightly higher privacy cost. "disjoint" does not use this
        parameter.

    test_size : float, default=0.2
        Share of the rows, or of the groups, to hold out for scores. The share does not
        change the privacy cost. Most classifiers predict the held-out rows one at a
        time, which takes from 0.2 to 4 milliseconds per row.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee. Must be well below one over the number
        of rows. Not used if all fits and scores are (epsilon, 0)-differentially
        private.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. With None, the labels are read from y; the privacy
        statement then assumes that the set of labels is public. An estimator with
        ``classes=None`` gets the same classes.

    ledger : PrivacyLedger, default=None
        Privacy budget of the private data over all fits. The privacy cost of the whole
        search is charged once, before the first fit.

    verbose : int or bool, default=0
        Progress messages, as for :class:`~sklearn_pate.PATEClassifier`. Only "disjoint"
        shows the number of fits, which is secret otherwise.

    random_state : int, RandomState instance or None, default=None
        Seed of the split into training and validation rows. The seed may be public. For
        candidates that protect an added or removed row, the split is secret and has no
        seed.

    Attributes
    ----------
    best_params_ : dict
        Parameters of the selected candidate, with unfitted estimators. May be
        published.

    best_estimator_ : classifier
        The selected fit. May be published. Its ``privacy_spent_`` states the privacy
        cost of the whole search.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = search.privacy_spent_``. May be
        published. The statement equals the result of `plan_privacy`, except for fits
        whose privacy cost depends on a number of rows that is not public. For such
        fits, the number of training rows is random.

    mechanism_ : SelectedFit
        The selection, with all parameters set. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    data_problems_ : tuple of str
        **Sensitive**: what `check_data` finds in the private rows of this fit. A
        pickled or copied estimator lacks this attribute.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    A trial is a fit and its score. A "logarithmic" search costs about twice as much as
    one trial, or less, but often has only one or two trials, and rarely very many. A
    "geometric" search costs up to three times as much as one trial. A "poisson" search
    nearly always has about the expected number of trials. With ten expected trials, a
    "poisson" search costs two and a half times as much as one trial with Gaussian
    noise. With other noise, this search costs up to seven times as much. "disjoint"
    suits few candidates and many rows.

    A changed row is either a training or a validation row. If a training row changes,
    the score is computed from the fit and unchanged rows, so a trial costs as much as
    its fit. If a validation row changes, the fit does not change, so a trial costs as
    much as its score. As no row changes the prediction of another, one row changes the
    number of correct predictions by at most 1. Candidates are drawn uniformly, so that
    the largest privacy cost of a candidate bounds the cost of a trial. The privacy cost
    of the best of all trials follows from
    :class:`~sklearn_pate.accounting.composition.TruncatedNegativeBinomial` and
    :class:`~sklearn_pate.accounting.composition.TruncatedPoisson` (Liu and Talwar 2019,
    "Private selection from private candidates"; Papernot and Steinke 2022,
    "Hyperparameter tuning with Renyi differential privacy"). For "disjoint", the
    privacy cost follows from Chaudhuri, Monteleoni, Sarwate (2011).

    The noise on scores follows a fixed rule. If all fits are (epsilon,
    0)-differentially private, the privacy cost of a score is the largest cost of a fit.
    Otherwise, the noise is the smallest noise with two properties. The privacy cost of
    a score is at most the cost of a fit. The charge to a ledger, which covers fits and
    scores, rises by at most one hundredth because of the scores.

    If a failed fit is selected, `fit` raises RuntimeError, and the privacy cost is
    spent.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.model_selection import PrivateSearchCV
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> pate = PATEClassifier(GaussianNB(), n_teachers=200)
    >>> grid = {"n_queries": [50, 200]}
    >>> search = PrivateSearchCV(pate, grid, mean_n_trials=3)
    >>> search = search.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> search.privacy_spent_
    PrivacySpent(epsilon=1.632, delta=1e-05)
    >>> bool(search.score(X[5500:], y[5500:]) > 0.8)
    True
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "test_size": Constraint.number(0, 1, closed="neither"),
        "verbose": Constraint(check_verbose),
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        n_trials_distribution: Literal[
            "logarithmic", "geometric", "poisson", "disjoint"
        ] = "logarithmic",
        mean_n_trials: float = 10,
        test_size: float = 0.2,
        delta: float = 1e-5,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_trials_distribution = n_trials_distribution
        self.mean_n_trials = mean_n_trials
        self.test_size = test_size
        self.delta = delta
        self.classes = classes
        self.ledger = ledger
        self.verbose = verbose
        self.random_state = random_state

    _inner = "best_estimator_"
    _unfitted = ("best_params_",)

    best_params_: dict[str, Any]
    best_estimator_: Any
    privacy_spent_: PrivacySpent
    classes_: NDArray[Any]

    @private_rows_by_position
    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit candidates, and keep the best candidate.

        Every call of `fit` is a new release with its own privacy cost.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows.

        y : array-like of shape (n_rows,)
            Labels of the private rows.

        **fit_params : object
            Further arguments of the estimator's ``fit``, such as
            ``X_public=PublicData(X_public)`` and ``groups``. Arguments with one entry
            per row are split as the rows are split. `X_public` is never split.

        Returns
        -------
        self : PrivateSearchCV
            Fitted.

        Raises
        ------
        ValueError
            If a parameter, a candidate or the data cannot be used. Nothing was fitted
            or charged.

        BudgetExceededError
            If the privacy cost exceeds the budget of the `ledger`. Nothing was fitted
            or charged.

        LedgerError
            If the file of the `ledger` cannot be read or written. Nothing was fitted.

        RuntimeError
            If the selected fit failed, or if the privacy cost of a fit was larger than
            ``plan_privacy`` of the candidate stated. The privacy cost was spent.

        Warns
        -----
        PrivacyLeakWarning
            If noise is seeded, or `delta` is too large for the number of rows.
        """
        with progress_of(self):
            plan = self._plan(X, y, **fit_params)
            rows = plan.trials.rows
            data = rows.X, rows.codes, rows.groups()
            named = {name: fit_params.get(name) for name in ("X_public", "groups")}
            dropped = self._find_problems(X, y, classes=self.classes, **named)
            record_release(self.ledger, plan.statement, data)
            # The privacy is spent on these lines: trials draw noise, the best is kept.
            if isinstance(plan.law, OnDisjointRows):
                best = best_on_disjoint_rows(plan.candidates, plan.trials, plan.noise)
            else:
                best = best_of_trials(
                    plan.candidates, plan.trials, plan.law, plan.noise
                )
        if best.fitted is None:
            raise RuntimeError(
                f"The selected fit, with {best.candidate.params!r}, failed: there is "
                "nothing to publish, and its cost is spent. Fit the candidates on "
                "public or artificial rows to find the reason."
            )
        _restate(best.fitted, plan.statement, plan.mechanism)
        self.best_params_ = clone(best.candidate.params, safe=False)
        self.best_estimator_ = best.fitted
        self.classes_ = best.fitted.classes_
        self._set_release(plan.mechanism, plan.statement)
        self.data_problems_ = dropped
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels with ``best_estimator_``.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows. Prediction has no privacy cost, even on private rows.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels from ``classes_``.
        """
        X = self._check_before_predicting(X)
        return self.best_estimator_.predict(X)

    def _published_model(self) -> Any:
        learner = last_step(self.best_estimator_)
        if not isinstance(learner, PrivateClassifier):
            raise ValueError(
                f"best_estimator_ is of type {type(learner).__name__}, but publish "
                "supports only classifiers of sklearn_pate; publish best_estimator_ "
                "in another way, with privacy_spent_ as its statement."
            )
        model = with_last_step(self.best_estimator_, learner._published_model())
        return without_caches(model)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing of `fit`.

        Returns
        -------
        router : MetadataRouter
            Router that passes metadata to the estimator's ``fit``.
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to_fit)

    def _check_parameters(self) -> None:
        selection_law(self.n_trials_distribution, self.mean_n_trials)
        check_cloneable("estimator", self.estimator)
        super()._check_parameters()

    @phase("planning the search")
    def _plan(self, X: Any, y: Any, **fit_params: Any) -> SearchSetup:
        """Plan a search: everything that comes before the first trial."""
        self._check_parameters()
        noise = NoiseSource()
        rows, classes, label_set = self._receive(X, y, fit_params)
        candidates = list_candidates(self.estimator, self.param_grid, classes)
        distribution, mean = self.n_trials_distribution, self.mean_n_trials
        seed = int(check_random_state(self.random_state).randint(MAX_SEED))
        with warnings.catch_warnings(), noise_from(None):
            warnings.simplefilter("ignore")  # planning on the parts repeats them
            first = state_fit(candidates[0].estimator, rows)
        if first.unit == "row" and first.relation != "add-remove":
            # Else, the number of rows is protected.
            check_delta_is_small(self.delta, rows.n_rows, "rows")
        split = split_rows(
            rows,
            first.unit,
            first.relation,
            n_parts=len(candidates) if distribution == "disjoint" else 1,
            test_size=self.test_size,
            seed=seed,
            noise=noise,
        )
        # Seeded noise has the scale that it would have without a seed.
        with noise_from(None):
            costs = cost_of_fits(candidates, rows, split, first.unit, first.relation)
        scoring = choose_scoring(
            distribution, mean, self.delta, costs, split.sensitivity
        )
        mechanism = SelectedFit(
            type(last_step(self.estimator)).__name__,
            distribution,
            mean,
            scoring.scale,
            scoring.pure,
            costs.curves,
            pure_fits=costs.pure is not None,
            add_remove=first.relation == "add-remove",
        )
        statement = state_search(mechanism, costs, self.delta, label_set)
        noise = noise.as_stated(statement.assumptions)
        ceilings = [
            (one.curve.unbounded() if noise.is_seeded else one.curve).values
            for one in costs.of_candidates
        ]
        trials = TrialSetup(rows, split, classes, scoring, ceilings)
        law = selection_law(distribution, mean)
        return SearchSetup(candidates, trials, law, noise, mechanism, statement)

    def _receive(
        self, X: Any, y: Any, fit_params: dict[str, Any]
    ) -> tuple[FitArguments, NDArray[Any], Assumption]:
        """Check the arguments of `fit`, and read the labels."""
        X = check_features(self, X, reset=True, private=True)
        if get_config()["enable_metadata_routing"]:
            fit_params = process_routing(self, "fit", **fit_params).estimator.fit
        return FitArguments.read(X, y, self.classes, fit_params)

    def _unfitted_inner(self) -> Any:
        return self.estimator

    def _possible_predictors(self) -> Sequence[Any]:
        try:
            return [
                clone(self.estimator).set_params(**clone(params, safe=False))
                for params in ParameterGrid(self.param_grid)
            ]
        except (TypeError, ValueError):  # `fit` explains what is wrong
            return [self.estimator]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        of_estimator = get_tags(self.estimator)
        tags.input_tags.sparse = of_estimator.input_tags.sparse
        tags.input_tags.allow_nan = of_estimator.input_tags.allow_nan
        if of_estimator.classifier_tags is not None:  # else, fit refuses it
            tags.classifier_tags.multi_class = of_estimator.classifier_tags.multi_class
        # With a few dozen rows, the noise dominates.
        tags.classifier_tags.poor_score = True
        return tags


def _restate(fitted: Any, spent: PrivacySpent, selection: SelectedFit) -> None:
    """Replace the statement of the selected fit by the statement of the search."""
    learner = last_step(fitted)
    learner.privacy_spent_ = replace(
        learner.privacy_spent_,
        epsilon=spent.epsilon,
        delta=spent.delta,
        release=spent.release,
        mechanism=f"{learner.privacy_spent_.mechanism}, by {spent.mechanism}",
        assumptions=spent.assumptions,
        curve=spent.curve,
        profile=spent.profile,
        mu=spent.mu,
    )
    if isinstance(learner, PrivateClassifier):
        learner._selected_by = clone(selection).set_params(fit=learner._released_by)
    if isinstance(learner, PrivateSearchCV):
        _restate(learner.best_estimator_, spent, selection)

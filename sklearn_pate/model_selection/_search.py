"""PrivateSearchCV: the best of many private fits, at about the cost of two."""

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sklearn_pate._base._ledger_entry import record_release
from sklearn_pate._base._private_classifier import PrivateClassifier
from sklearn_pate._base._split_inputs import (
    check_delta_is_small,
    check_target,
    read_labels,
)
from sklearn_pate._estimators._delegation import last_step, with_last_step
from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._features import check_features
from sklearn_pate._inputs._public_data import public_rows_by_name
from sklearn_pate.accounting._assumptions import LABEL_SET, LABEL_SET_READ
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting.composition._private_selection import SelectionLaw
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.mechanisms._selected_fit import SelectedFit, selection_law
from sklearn_pate.mechanisms.noise._source import NoiseSource, check_noise_seed
from sklearn_pate.model_selection._candidates import (
    Candidate,
    list_candidates,
    plan_fit,
)
from sklearn_pate.model_selection._cost import (
    choose_scoring,
    cost_of_fits,
    state_search,
)
from sklearn_pate.model_selection._split import PrivateRows, cut_rows
from sklearn_pate.model_selection._trials import (
    Contest,
    best_of_trials,
    best_on_disjoint_rows,
)
from sklearn_pate.publication._student_state import without_fitted_estimators

__all__ = ["PrivateSearchCV"]


def _winner_has(method):
    """Check the winner, or what it will be made of, for a method."""

    def check(self):
        winner = getattr(self, "best_estimator_", None)
        return hasattr(self.estimator if winner is None else winner, method)

    return check


@dataclass(frozen=True)
class SearchSetup:
    """What is settled about a search before the first trial."""

    candidates: list[Candidate]
    contest: Contest
    law: SelectionLaw
    #: Where the cut came from, and where scores get theirs.
    noise: NoiseSource
    mechanism: SelectedFit
    statement: PrivacySpent


class PrivateSearchCV(MetaEstimatorMixin, PrivateClassifier):
    """Search for hyper-parameters, without a look that is not paid for.

    GridSearchCV scores candidates on private labels: its choice has no guarantee, and
    every fit has its own cost. Here random candidates are fitted a random number of
    times, scored with noise on rows that they were not fitted on, and only the best is
    published: its parameters, and the fitted estimator itself. That costs about twice
    what one fit costs, however many candidates and fits there are: give the estimator
    half of the epsilon that the search may spend, and see what `plan_privacy` says.

    Nothing else comes out: there is no ``cv_results_``, no ``best_score_``, and no
    number of fits.

    Parameters
    ----------
    estimator : classifier
        A private classifier that states its cost beforehand (one with
        ``plan_privacy``), or a Pipeline that ends in one and whose other steps look at
        no value of X. Everything in it with a `random_state` gets a new, secret one in
        each fit. It must not keep an account or anything else of its own: `ledger`,
        `memory` and `public_size` are refused. Its `verbose` is switched off.

    param_grid : dict or list of dict
        As for GridSearchCV. The number of candidates costs nothing, but the more there
        are, the less often each is tried. All of them must protect the same unit, with
        the same relation. The most costly one sets the cost. A `random_state` in it is
        refused.

    n_trials_distribution : {"logarithmic", "geometric", "poisson", "disjoint"}, \
            default="logarithmic"
        How many fits there are: a number that must be random, and secret.
        "logarithmic" costs about twice what a fit costs, or less, but often fits only
        once or twice, and now and then very often. "geometric" costs up to three times
        a fit. "poisson" nearly always fits about as often as expected; with ten, it
        costs two and a half times a fit whose noise is all Gaussian, as PATE's is by
        default, and up to seven times others. "disjoint" fits every candidate once, on
        rows of its own, and costs no more than one fit: for few candidates and many
        rows.

    mean_n_trials : float, default=10
        How many fits are expected, more than 1. More find a better candidate, and cost
        a little more privacy, or none if fits are (epsilon, 0)-private. Not used by
        "disjoint".

    test_size : float, default=0.2
        Share of the rows (of the groups, if they are the unit) that scores are computed
        on. No candidate is fitted on them. It costs no privacy. Each of them is
        predicted on its own, once for each fit, which takes from 0.2 to 4 milliseconds.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover, well below one over the number
        of rows. Not used where everything is (epsilon, 0)-private.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. None reads them from y, and states as an assumption
        that they are public. The estimator is told, if it has a parameter `classes`
        that is None: no part of the rows can lack a class.

    ledger : PrivacyLedger, default=None
        The account of the private data over all fits. The cost of the whole search is
        charged once, before the first fit; a search that would exceed the budget raises
        BudgetExceededError and fits nothing.

    noise_seed : int, default=None
        None draws the noise, and the number of fits, from the operating system. An
        integer makes them reproducible and **voids every guarantee**.

    random_state : int, RandomState instance or None, default=None
        Seeds which rows are for scores. It may be known to anyone.

    Attributes
    ----------
    best_params_ : dict
        The winner; estimators in it are not fitted. May be published.

    best_estimator_ : classifier
        Fitted with these parameters, on the rows that were not for scores. May be
        published. Its own ``privacy_spent_`` states the cost of the whole search, as
        that is what it came from.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = search.privacy_spent_``. May be
        published. `plan_privacy` states it beforehand; nearly, where rows may be added
        or removed and the cost of a fit depends on their number, as coins decide how
        many are fitted on.

    mechanism_ : SelectedFit
        The choice with all its numbers. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    A changed row is one that fits see, or one that scores see. In the first case, a
    score is made of the fit and of equal rows, and a trial costs what its fit costs. In
    the second, fits have the same law, and a trial costs what its score costs: rows are
    predicted one at a time, so that the prediction of one is, to the last bit, the same
    whatever the others are, and one row moves a count of right ones by 1 at most.
    Candidates are drawn with equal probabilities whatever the data, so that the largest
    cost bounds a trial. The best of the trials is accounted for by
    :class:`~sklearn_pate.accounting.composition.TruncatedNegativeBinomial` and
    :class:`~sklearn_pate.accounting.composition.TruncatedPoisson` (Liu and Talwar 2019,
    "Private selection from private candidates"; Papernot and Steinke 2022,
    "Hyperparameter tuning with Renyi differential privacy"), "disjoint" by Chaudhuri,
    Monteleoni, Sarwate (2011).

    The noise on scores follows a fixed rule: where all fits are (epsilon, 0)-private,
    it costs what the most costly of them does; otherwise, it is the least by which the
    second case is no dearer than the first, and the curve of both, which a ledger is
    charged, dearer by no more than one hundredth.

    If the winner's fit failed, there is nothing to publish. That it did is part of what
    is priced; the cost is spent.

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
    PrivacySpent(epsilon=1.516, delta=1e-05)
    >>> bool(search.score(X[5500:], y[5500:]) > 0.8)
    True
    """

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
        noise_seed: int | None = None,
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
        self.noise_seed = noise_seed
        self.random_state = random_state

    _unfitted = ("best_params_",)

    best_params_: dict[str, Any]
    best_estimator_: Any
    privacy_spent_: PrivacySpent
    classes_: NDArray[Any]

    @public_rows_by_name
    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit candidates, and keep the best.

        Every call is a new release with its own cost.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows.

        y : array-like of shape (n_rows,)
            Their labels.

        **fit_params : object
            Further arguments of the estimator's ``fit``, such as
            ``X_public=PublicData(X_public)`` and ``groups``. Those with one entry a row
            are cut with the rows; `X_public` never is.

        Returns
        -------
        self : PrivateSearchCV
            Fitted.

        Raises
        ------
        ValueError
            If a parameter, a candidate or the data cannot work; nothing was fitted and
            no privacy was spent.

        BudgetExceededError
            If the cost does not fit the budget of the `ledger`; nothing was fitted or
            charged.

        LedgerError
            If the file of the `ledger` cannot be read or written; nothing was fitted.

        RuntimeError
            If the winner's fit failed, or a fit cost more than its ``plan_privacy``
            said. The cost is spent.

        Warns
        -----
        PrivacyLeakWarning
            If noise is seeded, or `delta` is too large for the number of rows.
        """
        plan = self._plan(X, y, **fit_params)
        rows = plan.contest.rows
        record_release(self.ledger, plan.statement, (rows.X, rows.codes, rows.groups()))
        # The privacy is spent on the next lines: trials draw noise, the best is kept.
        if self.n_trials_distribution == "disjoint":
            winner = best_on_disjoint_rows(
                plan.candidates, plan.contest, plan.noise, self.noise_seed
            )
        else:
            winner = best_of_trials(plan.candidates, plan.contest, plan.law, plan.noise)
        if winner.fitted is None:
            raise RuntimeError(
                f"The fit that won, with {winner.candidate.params!r}, had failed, and "
                "there is nothing to publish; its cost is spent. Try the candidates "
                "on public or made-up rows to see why."
            )
        _restate(winner.fitted, plan.statement, plan.mechanism)
        self.best_params_ = clone(winner.candidate.params, safe=False)
        self.best_estimator_ = winner.fitted
        self.classes_ = winner.fitted.classes_
        self._set_release(plan.mechanism, plan.statement)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels with the winner.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows. Prediction costs no privacy, whoever they belong to.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels out of ``classes_``.
        """
        X = self._check_before_predicting(X)
        return self.best_estimator_.predict(X)

    @available_if(_winner_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Predict class probabilities with the winner.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            A column for every class in ``classes_``.
        """
        X = self._check_before_predicting(X)
        return self.best_estimator_.predict_proba(X)

    @available_if(_winner_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Score classes with the winner.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
            A column for every class in ``classes_``.
        """
        X = self._check_before_predicting(X)
        return self.best_estimator_.decision_function(X)

    def _published_model(self) -> Any:
        learner = last_step(self.best_estimator_)
        if not isinstance(learner, PrivateClassifier):
            raise ValueError(
                f"The winner is a {type(learner).__name__}, and what of it may be "
                "published is known for the classifiers of sklearn_pate alone; publish "
                "best_estimator_ by its own means, under privacy_spent_."
            )
        model = with_last_step(self.best_estimator_, learner._published_model())
        return without_fitted_estimators(model)

    def get_metadata_routing(self) -> MetadataRouter:
        """Say where further arguments of `fit` go.

        Returns
        -------
        router : MetadataRouter
            To the estimator's ``fit``.
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to_fit)

    def _check_parameters(self):
        """Raise ValueError for the first parameter that cannot work."""
        selection_law(self.n_trials_distribution, self.mean_n_trials)
        size = self.test_size
        if not isinstance(size, Real) or not 0 < size < 1:
            raise ValueError(
                f"test_size={size!r} must be a share strictly between 0 and 1, such as "
                "0.2."
            )
        super()._check_parameters()
        check_noise_seed(self.noise_seed)

    def _plan(self, X: Any, y: Any, **fit_params: Any) -> SearchSetup:
        """Settle everything about a fit that comes before the first trial."""
        self._check_parameters()
        noise = NoiseSource(self.noise_seed)
        rows, classes = self._receive(X, y, fit_params)
        candidates = list_candidates(self.estimator, self.param_grid, classes)
        law = selection_law(self.n_trials_distribution, self.mean_n_trials)
        seed = int(check_random_state(self.random_state).randint(MAX_SEED))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # planning on the parts repeats them
            first = plan_fit(candidates[0].estimator, rows)
        cut = cut_rows(
            rows,
            first.unit,
            first.relation,
            n_parts=len(candidates) if self.n_trials_distribution == "disjoint" else 1,
            test_size=self.test_size,
            seed=seed,
            noise=noise,
        )
        costs = cost_of_fits(candidates, rows, cut, first.unit, first.relation)
        scoring = choose_scoring(self, law, costs, cut.sensitivity)
        selection = SelectedFit(
            type(last_step(self.estimator)).__name__,
            self.n_trials_distribution,
            self.mean_n_trials,
            scoring.scale,
            scoring.pure,
            costs.curves,
            pure_fits=costs.pure is not None,
            add_remove=first.relation == "add-remove",
            noise_seed=self.noise_seed,
        )
        label_set = LABEL_SET_READ if self.classes is None else LABEL_SET
        spent = state_search(selection, costs, self.delta, label_set)
        ceilings = [one.curve.values for one in costs.of_candidates]
        contest = Contest(rows, cut, classes, scoring, ceilings)
        return SearchSetup(candidates, contest, law, noise, selection, spent)

    def _receive(self, X, y, fit_params):
        check_target(self, y)
        X = check_features(self, X, reset=True, private=True)
        check_consistent_length(X, y)
        check_delta_is_small(self.delta, X.shape[0], "rows")
        classes, codes, _ = read_labels(self.classes, y)
        if not hasattr(y, "__getitem__"):
            y = np.asarray(y)
        if get_config()["enable_metadata_routing"]:
            fit_params = process_routing(self, "fit", **fit_params).estimator.fit
        return PrivateRows(X, y, codes, fit_params), classes

    def _check_before_predicting(self, X):
        check_is_fitted(self, "best_estimator_")
        return check_features(self, X, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        of_estimator = get_tags(self.estimator)
        tags.input_tags.sparse = of_estimator.input_tags.sparse
        tags.input_tags.allow_nan = of_estimator.input_tags.allow_nan
        tags.classifier_tags.multi_class = of_estimator.classifier_tags.multi_class
        # Noise drowns what a few dozen rows say.
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = (
            self.noise_seed is None or of_estimator.non_deterministic
        )
        return tags


def _restate(fitted: Any, spent: PrivacySpent, selection: SelectedFit) -> None:
    """Let the winner state what it cost to find it."""
    learner = last_step(fitted)
    learner.privacy_spent_ = replace(
        learner.privacy_spent_,
        epsilon=spent.epsilon,
        delta=spent.delta,
        release=spent.release,
        mechanism=f"{learner.privacy_spent_.mechanism}, by {spent.mechanism}",
        assumptions=spent.assumptions,
        curve=spent.curve,
    )
    if isinstance(learner, PrivateClassifier):
        learner._selected_by = clone(selection).set_params(fit=learner._released_by)
    if isinstance(learner, PrivateSearchCV):
        _restate(learner.best_estimator_, spent, selection)

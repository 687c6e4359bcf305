"""Trials of a private search, and a fit with its metrics."""

import warnings
from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._aggregation._entry import accounted_elsewhere, record_release
from sklearn_pate._estimators._isolation import (
    MAX_SEED,
    autologging_off,
    no_output,
    seeded_clone,
)
from sklearn_pate._estimators._kinds import last_step
from sklearn_pate._estimators._predictions import read_apart
from sklearn_pate._estimators._progress import drop_callbacks, phase, steps_of
from sklearn_pate._inputs._containers import as_table
from sklearn_pate._inputs._labels import class_indices
from sklearn_pate._teachers._shards import group_ids, hold_out_rows
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._statement import (
    FITTED_APART,
    FROZEN_IS_PUBLIC,
    Assumption,
    PrivacySpent,
    plans_privacy,
    with_label_set,
    with_metrics,
)
from sklearn_pate.accounting._value_checks import check_number, counted
from sklearn_pate.accounting.composition import (
    TruncatedNegativeBinomial,
    TruncatedPoisson,
)
from sklearn_pate.inspection._leaks import ROWS_DEPEND, leaks_of_steps
from sklearn_pate.mechanisms._noise import NoiseSource, noise_from
from sklearn_pate.mechanisms._noisy_training import DisjointChoice, NoisyScores
from sklearn_pate.metrics import PrivateMetrics
from sklearn_pate.metrics._private_metrics import (
    check_bins,
    check_subgroups,
    plan_measurement,
    read_rows,
    warn_if_hidden,
)
from sklearn_pate.model_selection._split import FitArguments, RowSplit, split_groups

# Parameters that a candidate must not set, and the reason.
_REFUSED = {
    "ledger": (
        "would be charged for every trial, which reveals their number; give the "
        "ledger to PrivateSearchCV, which charges it once for all trials."
    ),
    "memory": (
        "would keep results of every trial, which reveals their number; leave "
        "memory=None."
    ),
    "public_size": (
        "would make other rows public in every trial, until no row is protected; pass "
        "fit(..., X_public=PublicData(X_public))."
    ),
}
# Digits of the probabilities from which the number of trials is drawn.
_DIGITS = 60
# Lower than any score.
_FAILED = -(2**62)
# Units and relations for which the larger of both costs is proved.
_PROVED = (("row", "replace-one"), ("group", "add-remove-or-change"))


class Candidate(NamedTuple):
    """Parameters of the grid, and an unfitted estimator that has them."""

    params: dict[str, object]
    estimator: BaseEstimator
    assumptions: tuple[Assumption, ...]


def list_candidates(
    estimator: Any, param_grid: Any, classes: NDArray[Any]
) -> list[Candidate]:
    """List the candidates of a grid, or raise ValueError if one cannot be searched.

    Their output is switched off, and their `classes` are set where these are None.
    """
    settings = list(ParameterGrid(param_grid))
    if not settings:
        raise ValueError(
            f"param_grid={param_grid!r} has no candidate; list at least one setting "
            "({} leaves the estimator unchanged)."
        )
    candidates = []
    for params in settings:
        candidate = clone(estimator).set_params(**clone(params, safe=False))
        _check(candidate)
        _check_seeds(candidate, params)
        _switch_off_output(candidate)
        set_classes(candidate, classes)
        is_frozen = any(
            isinstance(part, FrozenEstimator)
            for part in candidate.get_params().values()
        )
        assumptions = (FROZEN_IS_PUBLIC,) if is_frozen else ()
        candidates.append(Candidate(params, candidate, assumptions))
    return candidates


def set_classes(estimator: Any, classes: NDArray[Any]) -> None:
    """Set the classes of a learner that would read them from its part of the rows."""
    learner = last_step(estimator)
    if learner.get_params(deep=False).get("classes", classes) is None:
        learner.set_params(classes=classes.tolist())


def state_fit(estimator: Any, rows: FitArguments) -> PrivacySpent:
    """State the privacy cost of a fit by ``plan_privacy`` of the last step."""
    X, params = rows.X, rows.params
    while isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        if get_config()["enable_metadata_routing"]:
            params = process_routing(estimator, "fit", **params)[name].fit
        else:
            params = {key.removeprefix(f"{name}__"): one for key, one in params.items()}
        if len(estimator.steps) > 1:
            with autologging_off():
                X = clone(estimator[:-1]).fit_transform(X)
        estimator = last
    return estimator.plan_privacy(X, rows.y, **params)


def _check(estimator: Any) -> None:
    """Raise unless a trial releases nothing but its result, at a stated cost."""
    learner = last_step(estimator)
    if not plans_privacy(learner) or not is_classifier(learner):
        raise ValueError(
            f"estimator={estimator!r} cannot state its privacy cost before a fit; pass "
            "a private classifier that has plan_privacy, such as PATEClassifier, or a "
            "Pipeline that ends in one."
        )
    check_steps(estimator)
    for name, value in estimator.get_params().items():
        refused = _REFUSED.get(name.rpartition("__")[2])
        if refused is not None and value is not None:
            raise ValueError(f"{name}={value!r} of the estimator {refused}")


def _check_seeds(estimator: Any, params: dict[str, object]) -> None:
    """Raise if the grid sets a seed, as ``best_params_`` would report a wrong one."""
    for name, value in estimator.get_params().items():
        is_seed = name.rpartition("__")[2] == "random_state" and value is not None
        if is_seed and any(f"{name}__".startswith(f"{key}__") for key in params):
            raise ValueError(
                f"{name}={value!r} in param_grid would be replaced by a secret seed in "
                "each trial; leave it out, or set it to None."
            )


def check_steps(estimator: Any) -> None:
    """Raise if a step of a pipeline reads values of private rows."""
    if not isinstance(estimator, Pipeline):
        return
    *steps, (_, last) = estimator.steps
    for leak in leaks_of_steps(steps, last):
        remedy = (
            leak.remedy
            if leak.reason in ROWS_DEPEND
            else "Leave it out, or fit it on public rows: "
            "FrozenEstimator(step.fit(X_public))."
        )
        raise ValueError(f"{leak.name} ({leak.estimator}) {leak.reason} {remedy}")
    check_steps(last)


def _switch_off_output(estimator: Any) -> None:
    """Switch off `verbose` and callbacks, which would report on trials."""
    for name, value in estimator.get_params().items():
        is_verbose = name.rpartition("__")[2] == "verbose"
        if is_verbose and isinstance(value, (int, np.integer)) and value:
            estimator.set_params(**{name: type(value)(0)})
    drop_callbacks(estimator)


class TrialSetup(NamedTuple):
    """Data, noise on scores, and the largest planned curve of each candidate."""

    rows: FitArguments
    split: RowSplit
    classes: NDArray[Any]
    scoring: NoisyScores | DisjointChoice
    ceilings: list[NDArray[np.float64]]

    def fit_and_score(self, estimator: Any, index: int) -> tuple[Any, int]:
        """Fit the seeded clone of candidate `index`, and score it without noise.

        Returns None and 0 if the fit fails: a failure is an outcome of a trial.
        """
        parts = self.split.training
        training = self.rows.take(parts[index % len(parts)])
        try:
            with accounted_elsewhere():
                fitted = estimator.fit(training.X, training.y, **training.params)
        except Exception:  # its message depends on private rows
            return None, 0
        check_spent(last_step(fitted), self.ceilings[index])
        if not len(self.split.validation):
            return fitted, 0
        validation = self.rows.take(self.split.validation)
        codes = _predicted_codes(fitted, validation.X, self.classes)
        is_right = (codes == validation.codes) & (codes >= 0)
        return fitted, self.split.score(is_right)


def check_spent(fitted: Any, ceiling: NDArray[np.float64]) -> None:
    """Raise if a fit cost more than was stated before it."""
    curve = fitted.privacy_spent_.curve
    if not np.all(curve.values <= ceiling * (1 + 1e-9)):
        raise RuntimeError(
            f"{type(fitted).__name__} cost more than its plan_privacy stated, perhaps "
            "because its cost depends on its random_state; set parameters that it "
            "reads from the data, such as n_queries. Nothing was released."
        )


class SelectedTrial(NamedTuple):
    """The selected candidate and its fitted estimator, None if the fit failed."""

    candidate: Candidate
    fitted: BaseEstimator | None


def draw_number_of_trials(
    law: TruncatedNegativeBinomial | TruncatedPoisson, noise: NoiseSource
) -> int:
    """Draw the number of trials, at least 1. Secret.

    Inversion of 128 random bits: the probabilities are right to 2^-128.
    """
    high, low = (int(word) for word in noise.words(2))
    with localcontext(prec=_DIGITS):
        left = Decimal(high << 64 | low) / 2**128
        n_trials = 0
        for probability in law.probabilities():
            left -= probability
            n_trials += 1
            if left < 0:
                break
    return n_trials


@phase("fitting a secret number of candidates")
def best_of_trials(
    candidates: Sequence[Candidate],
    setup: TrialSetup,
    law: TruncatedNegativeBinomial | TruncatedPoisson,
    noise: NoiseSource,
) -> SelectedTrial:
    """Fit random candidates a random number of times, and select the best noisy score.

    Trials are independent and identically distributed, as their cost requires: each
    draws its candidate uniformly and its seed from secret bits. Public seeds would make
    them differ. Ties are broken uniformly.
    """
    assert isinstance(setup.scoring, NoisyScores)
    best: tuple[tuple[int, int], SelectedTrial] | None = None
    with no_output():
        for _ in range(draw_number_of_trials(law, noise)):
            index = int(noise.index(len(candidates), 1)[0])
            fitted, score = setup.fit_and_score(
                seeded_clone(candidates[index].estimator, _seed(noise)), index
            )
            if fitted is None:
                score = _FAILED
            else:
                score += setup.scoring.draw(setup.split.sensitivity, noise)
            rank = score, int(noise.words(1)[0])
            if best is None or rank > best[0]:
                best = rank, SelectedTrial(candidates[index], fitted)
    assert best is not None  # there is at least one trial
    return best[1]


def best_on_disjoint_rows(
    candidates: Sequence[Candidate], setup: TrialSetup, noise: NoiseSource
) -> SelectedTrial:
    """Fit each candidate on its own part of the rows, and select one by its score."""
    assert isinstance(setup.scoring, DisjointChoice)
    with no_output():
        trials = [
            setup.fit_and_score(seeded_clone(candidate.estimator, _seed(noise)), index)
            for index, candidate in steps_of(
                "fitting candidates", list(enumerate(candidates))
            )
        ]
        scores = [score for _, score in trials]
        chosen = setup.scoring.choose(scores, setup.split.sensitivity, noise)
    return SelectedTrial(candidates[chosen], trials[chosen][0])


def _seed(noise: NoiseSource) -> int:
    """Draw a secret seed."""
    return int(noise.index(MAX_SEED, 1)[0])


def _predicted_codes(fitted: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Predict so that no row changes the prediction of another; -1 where it fails."""

    def read(some: Any) -> tuple[NDArray[np.intp]]:
        return (class_indices(fitted.predict(some), classes),)

    [codes] = read_apart(fitted, X, np.arange(X.shape[0]), read, (np.array([-1]),))
    return codes


class MeasuredFit(NamedTuple):
    """Private fit, metrics of the fit on other rows, and the privacy cost of both.

    The function :func:`~sklearn_pate.model_selection.fit_and_measure` creates this
    object. All its parts may be published.

    Parameters
    ----------
    model : classifier
        Fitted model, whose ``privacy_spent_`` covers the training rows.

    metrics : PrivateMetrics
        Metrics of the model, whose ``privacy_spent_`` covers the scored rows.

    privacy_spent : PrivacySpent
        Privacy statement of model and metrics together, for all rows. The cost is the
        larger of the costs of model and metrics.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate.learners import DPLogisticRegression
    >>> from sklearn_pate.model_selection import fit_and_measure
    >>> X, y = make_blobs(8000, centers=2, cluster_std=6.0, random_state=0)
    >>> clf = DPLogisticRegression(epsilon=0.5, data_norm=30.0, classes=[0, 1])
    >>> model, metrics, spent = fit_and_measure(clf, X, y, metrics_epsilon=1.0)
    >>> spent
    PrivacySpent(epsilon=1.000, delta=1e-05)
    """

    model: Any
    metrics: PrivateMetrics
    privacy_spent: PrivacySpent


def fit_and_measure(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    metrics_epsilon: float | None = None,
    delta: float = 1e-5,
    test_size: float = 0.25,
    subgroups: ArrayLike | None = None,
    subgroup_values: ArrayLike | None = None,
    bins: Any = "auto",
    class_prior: float | None = None,
    ledger: PrivacyLedger | None = None,
    random_state: Any = None,
    **fit_params: Any,
) -> MeasuredFit:
    """Fit a private classifier on some rows, and compute its metrics on other rows.

    If fit and metrics use the same rows, the privacy costs of fit and metrics add up.
    This function puts each row, or each group, in one part only. The privacy cost of
    fit and metrics together is then the larger of the two costs. By default, the
    metrics thus add nothing to the privacy cost of the fit.

    The classifier must protect groups, or rows that are replaced. Other classifiers,
    such as :class:`~sklearn_pate.learners.DPSGDClassifier`, are refused, as an added
    row would move later rows to other parts.

    Parameters
    ----------
    estimator : classifier
        Private classifier with ``plan_privacy`` and ``predict_proba``, or a Pipeline
        that ends in such a classifier, if other steps do not depend on values of X. A
        clone of the estimator is fitted. The `ledger` of the estimator must be None.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Private rows.

    y : array-like of shape (n_rows,)
        Labels of the private rows. If `classes` of the estimator is None, the classes
        are the labels of all rows, and the statement assumes that they are public. The
        label of a row without a group id does not count.

    metrics_epsilon : float, default=None
        Epsilon of the metrics. None is the epsilon of the fit.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee. Must be well below one over the number
        of rows.

    test_size : float, default=0.25
        Share of the rows, or of the groups, for the metrics. The share does not change
        the privacy cost of the metrics.

    subgroups, subgroup_values, bins, class_prior : object
        As in :func:`~sklearn_pate.metrics.private_metrics`.

    ledger : PrivacyLedger, default=None
        Privacy budget of the rows. The privacy cost of fit and metrics together is
        recorded once, before the fit. Every call is a new release.

    random_state : int, RandomState instance or None, default=None
        Seed of the parts, and of the choice of one row of each group. The seed may be
        public.

    **fit_params : object
        Further arguments of the estimator's ``fit``, such as
        ``X_public=PublicData(X_public)`` and ``groups``. Arguments with one entry per
        row are split as the rows are split. `X_public` is never split.

    Returns
    -------
    measured : MeasuredFit
        Model, metrics, and the privacy statement of model and metrics together.

    Raises
    ------
    ValueError
        If a parameter or the data cannot be used, or `estimator` protects another unit
        of privacy. Nothing was fitted, and no privacy cost was spent.

    BudgetExceededError
        If the privacy cost exceeds the budget of the `ledger`. Nothing was fitted.

    LedgerError
        If the file of the `ledger` cannot be read or written. Nothing was fitted.

    RuntimeError
        If the privacy cost of the fit was larger than ``plan_privacy`` stated, or the
        fit found other classes. The privacy cost was spent.

    Warns
    -----
    PrivacyUtilityWarning
        If the noise is too large for the ROC curve: nothing was released then. Also if
        released counts show many labels or subgroups that are not declared: the privacy
        cost was spent then.

    PrivacyLeakWarning
        If `delta` is too large for the number of rows, or noise is seeded.

    See Also
    --------
    sklearn_pate.metrics.private_metrics : Metrics of any model, at a further cost.
    GroupHashSplit : Parts of the rows for separate fits.

    Notes
    -----
    Positions of rows, or keyed hashes of group ids, determine the parts. Neighbouring
    data sets differ in one part only. If the training part differs, the metrics are a
    post-processing of the model and of equal rows. If the test part differs, the
    distribution of the model does not change. The Renyi curve and the privacy profile
    are thus the pointwise maxima for fit and metrics. The proof is Lemma 11 on
    the page :doc:`/proofs/counts`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate.learners import DPLogisticRegression
    >>> from sklearn_pate.model_selection import fit_and_measure
    >>> X, y = make_blobs(8000, centers=2, cluster_std=6.0, random_state=0)
    >>> clf = DPLogisticRegression(epsilon=1.0, data_norm=30.0, classes=[0, 1])
    >>> measured = fit_and_measure(clf, X, y)
    >>> bool(measured.metrics["roc_auc"].value > 0.5)
    True
    >>> measured.privacy_spent
    PrivacySpent(epsilon=1.000, delta=1e-05)
    """
    _check_estimator(estimator)
    check_number("test_size", test_size, 0, 1, closed="neither")
    bins, values = check_bins(bins), check_subgroups(subgroups, subgroup_values)
    X = as_table(X)
    check_consistent_length(X, subgroups)
    given = last_step(estimator).get_params(deep=False).get("classes")
    rows, classes, label_set = FitArguments.read(X, y, given, fit_params)
    estimator = clone(estimator)
    set_classes(estimator, classes)
    seed = int(check_random_state(random_state).randint(MAX_SEED))
    with warnings.catch_warnings(), noise_from(None):
        warnings.simplefilter("ignore")  # planning on the part repeats them
        unit = _proved_unit(state_fit(estimator, rows))
    groups = rows.groups() if unit == "group" else None
    fitted_on, measured = _parts(rows, unit, test_size, seed)
    training = rows.take(fitted_on)
    X_scored, y_scored, of_group, of_subgroup = (
        None if one is None else _safe_indexing(one, measured)
        for one in (X, rows.y, groups, subgroups)
    )
    scored = read_rows(X_scored, y_scored, classes, of_group, of_subgroup, values)
    # Seeded noise has the scale that it would have without a seed.
    with noise_from(None):
        of_fit = with_label_set(state_fit(estimator, training), label_set)
    if metrics_epsilon is None:
        metrics_epsilon = _epsilon_of_fit(of_fit, delta)
    plan = plan_measurement(
        scored,
        len(classes),
        bins,
        epsilon=metrics_epsilon,
        delta=delta,
        assumptions=(FITTED_APART,),
    )
    warn_if_hidden(plan, class_prior)
    statement = with_metrics(of_fit, plan.statement)
    record_release(ledger, statement, (rows.X, rows.codes, groups))
    # The privacy is spent on these lines: by the fit, then by the metrics.
    with accounted_elsewhere():
        model = estimator.fit(training.X, training.y, **training.params)
    learner = last_step(model)
    check_spent(learner, statement.curve.values)
    learner.privacy_spent_ = with_label_set(learner.privacy_spent_, label_set)
    if len(model.classes_) != len(classes):
        raise RuntimeError(
            f"{type(learner).__name__} has "
            f"{counted(len(model.classes_), 'class')}, but {len(classes)} were "
            "planned; set classes= of the estimator. The cost is spent."
        )
    metrics = plan.release(model, scored, seed, None)
    return MeasuredFit(model, metrics, statement)


def _check_estimator(estimator: Any) -> None:
    """Raise unless an estimator states its cost before a fit, which it has not paid."""
    learner = last_step(estimator)
    if not plans_privacy(learner) or not is_classifier(learner):
        raise ValueError(
            f"estimator={estimator!r} cannot state its privacy cost before a fit; pass "
            "a private classifier that has plan_privacy, or measure a fitted one by "
            "private_metrics."
        )
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"estimator={estimator!r} has no predict_proba, which metrics need; use a "
            "classifier that has it."
        )
    check_steps(estimator)
    if getattr(learner, "ledger", None) is not None:
        raise ValueError(
            f"ledger={learner.ledger!r} of the estimator would be charged for the fit "
            "only; pass it to fit_and_measure, which charges fit and metrics once."
        )


def _proved_unit(spent: PrivacySpent) -> str:
    """Return the unit of a fit for which the larger of both costs is proved."""
    if (spent.unit, spent.relation) not in _PROVED:
        raise ValueError(
            f"The estimator protects unit={spent.unit!r} with "
            f"relation={spent.relation!r}, for which the larger cost of fit and "
            "metrics is not proved: an added row moves others between parts. Use "
            "private_metrics, whose cost adds up in a ledger."
        )
    return spent.unit


def _parts(
    rows: FitArguments, unit: str, test_size: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows to fit on and those to measure on.

    A replaced row keeps its position and with it its part; the part of a group is a
    keyed hash of its id.
    """
    if unit == "group":
        ids, group_of_row = group_ids(rows.groups(), rows.n_rows)
        parts = split_groups(ids, group_of_row, test_size, seed, b"measured")
    else:
        is_measured = hold_out_rows(rows.n_rows, test_size, seed)
        parts = np.flatnonzero(~is_measured), np.flatnonzero(is_measured)
    if not all(len(part) for part in parts):
        raise ValueError(
            f"test_size={test_size!r} and random_state leave one part of the rows "
            "empty; pass more rows, or use another random_state."
        )
    return parts


def _epsilon_of_fit(spent: PrivacySpent, delta: float) -> float:
    """Return the epsilon of a fit at a delta, or raise if there is none."""
    epsilon = spent.profile.epsilon_at(delta)
    if np.isinf(epsilon):
        raise ValueError(
            f"The fit has no finite epsilon at delta={delta!r}; set metrics_epsilon."
        )
    return epsilon

"""A private fit and its metrics in one call, at the larger of both costs."""

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._aggregation._entry import record_release
from sklearn_pate._estimators._class_codes import last_step
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._inputs._containers import check_container
from sklearn_pate._teachers._shards import group_ids, hold_out_rows
from sklearn_pate.accounting._assumptions import FITTED_APART, LABEL_SET, Assumption
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._publication import with_metrics
from sklearn_pate.accounting._statement import PrivacySpent, plans_privacy
from sklearn_pate.accounting._value_checks import check_number, counted
from sklearn_pate.mechanisms._noise import noise_from
from sklearn_pate.metrics import PrivateMetrics
from sklearn_pate.metrics._private_metrics import (
    check_bins,
    check_subgroups,
    plan_measurement,
    read_rows,
    read_table,
    warn_if_hidden,
)
from sklearn_pate.model_selection._split import PrivateRows, split_groups
from sklearn_pate.model_selection._trials import (
    check_spent,
    check_steps,
    plan_fit,
    set_classes,
)

# Units and relations for which the larger of both costs is proved.
_PROVED = (("row", "replace-one"), ("group", "add-remove-or-change"))


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
        If the noise is too large for the ROC curve. Nothing was released.

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
    are thus the pointwise maxima for fit and metrics. The proof is on the page
    :doc:`/accounting`, section "Private metrics".

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
    check_container("y", y)
    X = read_table(X)
    check_consistent_length(X, y, subgroups)
    given = last_step(estimator).get_params(deep=False).get("classes")
    rows, classes, label_set = PrivateRows.read(X, y, given, fit_params)
    estimator = clone(estimator)
    set_classes(estimator, classes)
    seed = int(check_random_state(random_state).randint(MAX_SEED))
    with warnings.catch_warnings(), noise_from(None):
        warnings.simplefilter("ignore")  # planning on the part repeats them
        unit = _proved_unit(plan_fit(estimator, rows))
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
        of_fit = _assuming(label_set, plan_fit(estimator, training))
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
    model = estimator.fit(training.X, training.y, **training.params)
    learner = last_step(model)
    check_spent(learner, statement.curve.values)
    learner.privacy_spent_ = _assuming(label_set, learner.privacy_spent_)
    if len(model.classes_) != len(classes):
        raise RuntimeError(
            f"{type(learner).__name__} has "
            f"{counted(len(model.classes_), 'class')}, but {len(classes)} were "
            "planned; set classes= of the estimator. The cost is spent."
        )
    metrics = plan.release(model, scored, seed, None)
    return MeasuredFit(model, metrics, statement)


def _assuming(label_set: Assumption, spent: PrivacySpent) -> PrivacySpent:
    """Return a statement with another assumption about the labels."""
    changed = (label_set if one is LABEL_SET else one for one in spent.assumptions)
    return replace(spent, assumptions=tuple(changed))


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
    rows: PrivateRows, unit: str, test_size: float, seed: int
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

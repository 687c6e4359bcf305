"""Private metrics: noisy counts of scores and labels, from which all follows."""

import secrets
import sys
from numbers import Integral
from typing import Any

import joblib
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from sklearn_pate._estimators._class_codes import estimator_hash, fingerprint
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate.accounting._assumptions import MODEL_IS_PUBLIC
from sklearn_pate.accounting._entries import PrivacyCost
from sklearn_pate.accounting._fit_entry import FitEntry
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.metrics._measurement import (
    check_bins,
    check_columns,
    check_model,
    plan_measurement,
    read_rows,
    warn_if_hidden,
)
from sklearn_pate.metrics._results import PrivateMetrics


def private_metrics(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float,
    delta: float = 1e-5,
    groups: ArrayLike | None = None,
    subgroups: ArrayLike | None = None,
    bins: Any = "auto",
    class_prior: float | None = None,
    ledger: PrivacyLedger | None = None,
    random_state: Any = None,
) -> PrivateMetrics:
    """Measure a classifier on private rows, as a private release.

    Noisy counts of scores, predictions and labels are released, once. ROC curve,
    accuracy, sensitivity, calibration and Brier score follow from them, also by
    subgroup, and may be published. Every call is a new release with its own cost,
    unless a `ledger` has its entry.

    Parameters
    ----------
    model : classifier
        Fitted, with ``predict_proba``: one of this package, a published one, or any
        other. It must not have been fitted, or chosen, with these rows, except by
        private releases. Each row is scored by itself.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Private rows, which the model was not fitted on. No value makes an error: a row
        that the model cannot score is counted as such.

    y : array-like of shape (n_rows,)
        Their labels. Those that are no class of the model are counted as such.

    epsilon : float
        Privacy budget of this release.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover, well below one over the number
        of rows.

    groups : array-like of shape (n_rows,), default=None
        Group id of each row, such as a patient. The unit of privacy is then a group,
        and one row of each is counted. None protects single rows.

    subgroups : array-like of shape (n_rows,), default=None
        Values such as an age band, for metrics by subgroup. Their set must be public.
        The cost stays the same; the noise of each subgroup is that of all rows.

    bins : "auto", array-like of shape (n_edges,) or PublicData, default="auto"
        Scores between the bins, increasing, within 0 and 1; or public rows, whose
        scores make bins of equal size. "auto" finds such bins from noisy counts, within
        `epsilon`.

    class_prior : float, default=None
        An expected share of the rarest class, chosen without private data, for a
        warning that the noise hides the metrics.

    ledger : PrivacyLedger, default=None
        The privacy budget of the rows over all releases. The cost is recorded before
        the noise is drawn. With an integer `random_state`, a killed call resumes, and
        a repeated one returns the same counts at no further cost.

    random_state : int, RandomState instance or None, default=None
        Chooses the row of each group that is counted. It may be public.

    Returns
    -------
    metrics : PrivateMetrics
        May be published, with ``metrics.privacy_spent_`` as its statement.

    Raises
    ------
    ValueError
        If a parameter or the shape of the data cannot be used. Nothing was released.

    BudgetExceededError
        If the cost exceeds the budget of the `ledger`. Nothing was released.

    LedgerError
        If the file of the `ledger` cannot be read or written. Nothing was released.

    Warns
    -----
    PrivacyUtilityWarning
        If the noise hides the ROC curve. Nothing was released.

    PrivacyLeakWarning
        If `delta` is too large for the number of rows.

    See Also
    --------
    sklearn_pate.inspection.plan_fit : Plan of a private fit.

    Notes
    -----
    A row, or one row of a group, counts in one cell of each table. So the counts of
    neighbouring data sets are at most sqrt(2 d) apart for d tables. All cells get
    discrete Gaussian noise, empty ones too (Canonne, Kamath, Steinke 2020). A first
    release, of a quarter of the squared mu, is a confusion matrix and, unless public
    rows give the bins, the number of rows by score. The second one has scores by label.
    Proof: :doc:`/accounting`, "Private metrics".

    Scores within a bin are guessed from the sizes of all bins, in two ways. Mean scores
    of bins are corrected by the first release. Intervals come from a simulation of the
    noise, the sampling of rows and the errors of these guesses; that of the calibration
    error from tests. They do not cover that a model was chosen in view of earlier
    metrics.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate.metrics import private_metrics
    >>> X, y = make_blobs(9000, centers=2, cluster_std=6.0, random_state=0)
    >>> model = LogisticRegression().fit(X[:1000], y[:1000])
    >>> metrics = private_metrics(model, X[1000:], y[1000:], epsilon=1.0)
    >>> metrics["roc_auc"].low < metrics["roc_auc"].value < metrics["roc_auc"].high
    True
    """
    classes = check_model(model)
    rows = read_rows(X, y, classes, groups, subgroups)
    check_columns(model, rows.X)
    plan = plan_measurement(
        rows,
        len(classes),
        check_bins(bins),
        epsilon=epsilon,
        delta=delta,
        assumptions=(MODEL_IS_PUBLIC,),
    )
    warn_if_hidden(plan, class_prior)
    public_scores = plan.public_scores(model)
    version = sys.modules["sklearn_pate"].__version__
    public = plan.bins, version
    entry = _open_entry(ledger, plan.statement, model, rows, public, random_state)
    seed = check_random_state(random_state).randint(MAX_SEED)
    # The privacy is spent on this line: the cost is recorded, then noise is drawn.
    return plan.release(model, rows, public_scores, seed, entry)


def _open_entry(
    ledger: PrivacyLedger | None,
    spent: PrivacySpent,
    model: Any,
    private: object,
    public: object,
    random_state: Any,
) -> FitEntry | None:
    """Open the ledger entry of a measurement, None without a ledger.

    `public` is all public data that decide what is counted, beside the model.
    """
    if ledger is None:
        return None
    data = joblib.hash(private)
    name = secrets.token_hex(32)
    if isinstance(random_state, Integral):
        try:
            of_model = estimator_hash(model, public, int(random_state), spent.to_dict())
        except Exception:  # no hash, so that every call is a new one
            pass
        else:
            name = fingerprint(ledger.key, "metrics", data, of_model)
    cost = PrivacyCost(
        spent.curve,
        spent.delta,
        spent.unit,
        spent.relation,
        f"metrics of a {type(model).__name__}, {spent.mechanism}",
        fingerprint(ledger.key, "data", data),
        name,
        spent.profile,
    )
    entry = FitEntry(ledger, cost, 2, remedy=lambda: "Use a smaller epsilon.")
    entry.check()
    return entry

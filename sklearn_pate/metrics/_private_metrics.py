"""Private metrics: noisy counts of scores and labels, from which all follows."""

import secrets
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from sklearn_pate._estimators._class_codes import estimator_hash, fingerprint
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._inputs._containers import Table, as_objects, check_container
from sklearn_pate._inputs._features import as_array
from sklearn_pate._inputs._labels import PublicData, class_indices, is_missing
from sklearn_pate._inputs._odd_values import is_frame
from sklearn_pate._teachers._shards import group_ids, one_row_of_groups
from sklearn_pate.accounting._assumptions import (
    CHOSEN_BLINDLY,
    MODEL_IS_PUBLIC,
    SCORES_OF_ROW,
    SUBGROUPS_PUBLIC,
    Assumption,
)
from sklearn_pate.accounting._calibrate import (
    check_delta_is_small,
    check_epsilon_is_small,
)
from sklearn_pate.accounting._entries import PrivacyCost
from sklearn_pate.accounting._fit_entry import FitEntry
from sklearn_pate.accounting._gdp import largest_gdp_mu
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user
from sklearn_pate.mechanisms._noise import as_drawn
from sklearn_pate.mechanisms._noisy_sum import (
    MarginalCounts,
    StoredSums,
    TwoPartRelease,
)
from sklearn_pate.metrics._counts import (
    GRID,
    GRID_OF_SCORES,
    ScoredRows,
    quantile_edges,
    score_rows,
    without_noise,
)
from sklearn_pate.metrics._metrics_file import metrics_statement
from sklearn_pate.metrics._results import PrivateMetrics

# Share of the squared mu for the confusion matrix and the places of the bins.
_SHARE = 0.25
# Fewest and most bins, and the exponent of n mu between them: fewer under more noise.
_FEWEST, _MOST, _EXPONENT = 4, 24, 0.3
# Half-width of an interval of AUC that tells little.
_WIDE = 0.05


@dataclass(frozen=True)
class _Plan:
    """Plan of a measurement: the noise of both parts, and the statement."""

    first: MarginalCounts
    second: MarginalCounts
    statement: PrivacySpent
    #: Edges of bins that were given, None where the first part finds them.
    edges: NDArray[np.float64] | None
    n_bins: int


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
    release, of a quarter of the squared mu, is a confusion matrix and, for "auto", the
    number of rows by score. The second one has scores by label. Proof:
    :doc:`/accounting`, "Private metrics".

    Intervals come from a simulation of the noise and of the sampling of rows. They do
    not cover that a model was chosen in view of earlier metrics.

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
    classes = _check_model(model)
    X, labels, ids, group_of_row = _read_rows(model, X, y, groups, classes)
    values, of_subgroup = _read_subgroups(subgroups, len(labels))
    of_subgroups = () if subgroups is None else (SUBGROUPS_PUBLIC,)
    n_rows = None if groups is not None else len(labels)
    plan = _plan(
        model,
        classes,
        n_rows,
        epsilon=epsilon,
        delta=delta,
        bins=bins,
        assumptions=(MODEL_IS_PUBLIC, SCORES_OF_ROW, CHOSEN_BLINDLY, *of_subgroups),
    )
    check_delta_is_small(delta, len(labels), "rows")
    _warn_if_hidden(plan, n_rows, class_prior)
    private = X, labels, ids, group_of_row, of_subgroup
    entry = _open_entry(ledger, plan.statement, model, private, random_state)
    rows = np.arange(len(labels))
    if ids is not None and group_of_row is not None:
        seed = check_random_state(random_state).randint(MAX_SEED)
        rows = one_row_of_groups(ids, group_of_row, seed)
    scores, predicted = score_rows(model, X, rows, classes)
    scored = ScoredRows(scores, predicted, labels[rows], of_subgroup[rows], len(values))
    # The privacy is spent in this call: the cost is recorded, then noise is drawn.
    return _release(plan, scored, entry, classes, values, n_rows)


def _release(
    plan: _Plan,
    scored: ScoredRows,
    entry: FitEntry | None,
    classes: NDArray[Any],
    values: list[Any],
    n_rows: int | None,
) -> PrivateMetrics:
    """Release the counts of both parts, and collect them."""
    finds_bins = plan.edges is None

    def first_counts() -> NDArray[np.int64]:
        totals = scored.totals() if finds_bins else np.zeros((0,), dtype=np.int64)
        return np.concatenate([scored.confusion().ravel(), totals.ravel()])

    drawn = StoredSums(plan.first, entry).draw(0, first_counts)
    shape = len(values), len(classes) ** 2 + 1
    size = int(np.prod(shape))
    confusion = drawn[:size].reshape(shape)
    n_scored = len(scored.scored_classes)
    if plan.edges is None:
        noisy = drawn[size:].reshape(n_scored, -1)
        total = max(float(confusion.sum() if n_rows is None else n_rows), 1.0)
        totals = [without_noise(one, plan.first.sigma, total) for one in noisy]
        edges = [quantile_edges(one, plan.n_bins) for one in totals]
        middles = list(map(_mean_scores, edges, totals))
    else:
        edges = n_scored * [plan.edges]
        middles = n_scored * [_middles(plan.edges)]
    flat = StoredSums(plan.second, entry).draw(1, partial(scored.histograms, edges))
    ends = np.cumsum([len(values) * (len(one) + 1) * 2 for one in edges])
    histograms = [
        part.reshape(len(values), -1, 2) for part in np.split(flat, ends[:-1])
    ]
    return PrivateMetrics(
        classes,
        values,
        confusion,
        histograms,
        edges,
        middles,
        (float(plan.first.sigma), float(plan.second.sigma)),
        n_rows,
        plan.statement,
    )


def _plan(
    model: Any,
    classes: NDArray[Any],
    n_rows: int | None,
    *,
    epsilon: float,
    delta: float,
    bins: Any,
    assumptions: tuple[Assumption, ...],
) -> _Plan:
    """Calibrate the noise of both parts, and state the cost."""
    check_epsilon_is_small("epsilon", epsilon)
    n_scored = 1 if len(classes) == 2 else len(classes)
    n_bins = _FEWEST
    if n_rows is not None:
        signal = n_rows * largest_gdp_mu(epsilon, delta)
        n_bins = int(np.clip(round(signal**_EXPONENT), _FEWEST, _MOST))
    edges = _given_edges(model, bins, n_bins)
    n_first = 1 + (n_scored if edges is None else 0)
    first = MarginalCounts(n_tables=n_first).for_share(_SHARE, epsilon, delta)
    second = MarginalCounts(n_tables=n_scored).for_share(1 - _SHARE, epsilon, delta)
    both = TwoPartRelease(first, second)
    unit = "row" if n_rows is not None else "group"
    cost, assumptions = as_drawn(both.cost(unit=unit), assumptions)
    statement = metrics_statement(both, cost, delta, assumptions)
    return _Plan(first, second, statement, edges, n_bins)


def _given_edges(model: Any, bins: Any, n_bins: int) -> NDArray[np.float64] | None:
    """Return edges that were given or that public rows determine, None for "auto"."""
    if isinstance(bins, str) and bins == "auto":
        return None
    if isinstance(bins, PublicData):
        scores = np.asarray(model.predict_proba(bins.X), dtype=np.float64)[:, -1]
        edges = np.unique(np.quantile(scores, np.arange(1, n_bins) / n_bins))
        return edges[(edges > 0) & (edges < 1)]
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.zeros(0)
    if (
        edges.ndim != 1
        or edges.size == 0
        or not np.all((edges > 0) & (edges < 1))
        or np.any(np.diff(edges) <= 0)
    ):
        raise ValueError(
            f"bins={bins!r} must be 'auto', increasing scores strictly between 0 and "
            "1, such as [0.1, 0.3, 0.5], or PublicData(X_public)."
        )
    return edges


def _mean_scores(
    edges: NDArray[np.float64], totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean score of each bin, from counts on the grid."""
    grid = expit(np.concatenate([[GRID[0] - 0.5], GRID[:-1] + 0.125, [GRID[-1] + 0.5]]))
    place = np.searchsorted(edges, np.append(GRID_OF_SCORES, 1.0) - 1e-12)
    mass = np.bincount(place, totals, minlength=len(edges) + 1)
    sums = np.bincount(place, totals * grid, minlength=len(edges) + 1)
    return np.where(mass > 0, sums / np.where(mass > 0, mass, 1), _middles(edges))


def _middles(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the middle of each bin."""
    ends = np.concatenate([[0.0], edges, [1.0]])
    return (ends[:-1] + ends[1:]) / 2


def _warn_if_hidden(plan: _Plan, n_rows: int | None, class_prior: float | None) -> None:
    """Warn if an interval of AUC is wide at best, by numbers that are public."""
    share = 0.5 if class_prior is None else class_prior
    if class_prior is not None and not 0 < class_prior <= 0.5:
        raise ValueError(
            f"class_prior={class_prior!r} must be the share of the rarest class, above "
            "0 and at most 0.5."
        )
    if n_rows is None:
        return
    few, many = share * n_rows, (1 - share) * n_rows
    noise = plan.second.sigma**2 * plan.n_bins / 6 * (1 / few**2 + 1 / many**2)
    half_width = 1.96 * np.sqrt(noise + 1 / (12 * few))
    if half_width > _WIDE:
        of_share = "balanced classes" if class_prior is None else f"{share=:g}"
        warn_user(
            f"With {n_rows} rows, noise of {plan.second.sigma:.3g} on each count and "
            f"{of_share}, the interval of the AUC is at least +-{half_width:.2f} wide. "
            "Use more rows, or a larger epsilon.",
            PrivacyUtilityWarning,
        )


def _check_model(model: Any) -> NDArray[Any]:
    """Return the classes of a fitted classifier with probabilities."""
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"model is of type {type(model).__name__} and has no predict_proba; pass a "
            "classifier that has."
        )
    check_is_fitted(model)
    classes = np.asarray(model.classes_)
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(
            f"model has classes_={classes.tolist()!r}; pass a classifier of two or "
            "more classes and one output."
        )
    return classes


def _read_rows(
    model: Any, X: Any, y: Any, groups: Any, classes: NDArray[Any]
) -> tuple[Table, NDArray[np.intp], NDArray[Any] | None, NDArray[np.intp] | None]:
    """Check the shapes of private rows, and read their labels and groups."""
    check_container("X", X)
    X = X if is_frame(X) or hasattr(X, "tocsr") else as_array(X)
    check_consistent_length(X, y)
    labels = class_indices(y, classes)
    if groups is None:
        return X, labels, None, None
    ids, group_of_row = group_ids(groups)
    check_consistent_length(X, group_of_row)
    return X, labels, ids, group_of_row


def _read_subgroups(subgroups: Any, n_rows: int) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the values of subgroups and the index of each row's one."""
    if subgroups is None:
        return [None], np.zeros(n_rows, dtype=np.intp)
    check_container("subgroups", subgroups)
    given = as_objects(subgroups).tolist()
    if len(given) != n_rows:
        raise ValueError(
            f"subgroups has {len(given)} values and X {n_rows} rows; pass one value a "
            "row."
        )
    given = [None if is_missing(one) else one for one in given]
    values = sorted(set(given), key=lambda one: (one is None, str(one)))
    place = {value: number for number, value in enumerate(values)}
    return values, np.array([place[one] for one in given], dtype=np.intp)


def _open_entry(
    ledger: PrivacyLedger | None,
    spent: PrivacySpent,
    model: Any,
    private: object,
    random_state: Any,
) -> FitEntry | None:
    """Open the ledger entry of a measurement, None without a ledger."""
    if ledger is None:
        return None
    data = joblib.hash(private)
    name = secrets.token_hex(32)
    if isinstance(random_state, Integral):
        try:
            of_model = estimator_hash(model, int(random_state), spent.to_dict())
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

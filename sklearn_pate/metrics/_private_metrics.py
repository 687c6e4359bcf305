"""Private metrics, computed from noisy counts of scores and labels."""

import secrets
import sys
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_is_fitted,
)

from sklearn_pate._estimators._fingerprints import (
    estimator_hash,
    fingerprint,
    model_fingerprint,
)
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._inputs._containers import (
    as_objects,
    as_table,
    check_columns,
    check_container,
)
from sklearn_pate._inputs._labels import check_label_type, class_indices, plain_label
from sklearn_pate._teachers._private_rows import PrivateRows
from sklearn_pate._teachers._shards import one_row_of_groups
from sklearn_pate.accounting._calibrate import (
    check_delta_is_small,
    check_epsilon_is_small,
)
from sklearn_pate.accounting._ledger import FitEntry, PrivacyLedger
from sklearn_pate.accounting._sites import shared_release
from sklearn_pate.accounting._statement import (
    CHOSEN_BLINDLY,
    COLUMNS,
    MODEL_IS_PUBLIC,
    SCORES_OF_ROW,
    SUBGROUPS_DECLARED,
    Assumption,
    PrivacySpent,
)
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user
from sklearn_pate.mechanisms._noise import NoiseSource, as_drawn
from sklearn_pate.mechanisms._noisy_sum import (
    MarginalCounts,
    StoredSums,
    TwoPartRelease,
    over_sites,
)
from sklearn_pate.metrics._estimates import (
    GRID,
    BinShapes,
    ScoredRows,
    quantile_edges,
    score_rows,
)
from sklearn_pate.metrics._outcome_metrics import (
    OutcomeMetrics,
    mechanisms_of,
    release_numbers,
    release_times,
    whole_of,
)
from sklearn_pate.metrics._results import (
    OTHER,
    PrivateMetrics,
    metrics_statement,
    sites_of,
)

# Share of the squared mu for the confusion matrix and the places of the bins.
_SHARE = 0.25
# Fewest and most bins, and the exponent of n mu between them: fewer under more noise.
_FEWEST, _MOST, _EXPONENT = 4, 24, 0.3
# Half-width of an interval of AUC that tells little.
_WIDE = 0.05
# Shares of rows without a known label, and in other subgroups, that are usual, and the
# standard deviations of noise beyond them that are told of.
_NO_CLASS, _OTHERS, _CERTAIN = 0.1, 0.5, 4


def private_metrics(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    epsilon: float,
    delta: float = 1e-5,
    groups: ArrayLike | None = None,
    subgroups: ArrayLike | None = None,
    subgroup_values: ArrayLike | None = None,
    bins: Any = "auto",
    class_prior: float | None = None,
    ledger: PrivacyLedger | None = None,
    random_state: Any = None,
) -> Any:
    """Release metrics of a model on private rows, with noise.

    Noisy counts of scores, predictions and labels are released once. ROC curve,
    accuracy, sensitivity, calibration and Brier score are computed from the noisy
    counts, for all rows and by subgroup. All results may be published. Every call is a
    new release with its own privacy cost, unless the `ledger` has an entry of an equal
    call.

    Parameters
    ----------
    model : classifier, or estimator of a number or a time
        Any fitted classifier with ``predict_proba``, or a BinnedRegressor or
        DiscreteSurvival of :mod:`sklearn_pate.outcomes`, published or not. The model
        must not have been fitted or chosen on these rows, except by private releases.
        Each row is scored by itself, or in blocks if that is proved to be the same (see
        the notes).

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Private rows on which the model was not fitted. No value raises an error: rows
        that the model cannot score are counted separately.

    y : array-like of shape (n_rows,)
        Labels or outcomes of the rows of X. Labels that are not a class of the model,
        and missing outcomes, are counted separately.

    epsilon : float
        Privacy budget of this release.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee, well below one over the number of rows.

    groups : array-like of shape (n_rows,), default=None
        Group id of each row, such as the id of a patient, to protect groups. A keyed
        hash of the id chooses one row of each group to count. Pass one row a group if
        the outcome decides how many rows a group has: see :doc:`/guide/data`.

    subgroups : array-like of shape (n_rows,), default=None
        Subgroup of each row, such as an age band, for metrics by subgroup at no further
        privacy cost. Counts of a subgroup have as much noise as counts of all rows.

    subgroup_values : array-like of shape (n_values,), default=None
        Values of `subgroups` to measure, as texts or numbers, chosen **without a look
        at private rows**. Rows with another value, or none, are one further subgroup,
        "other or missing". This subgroup is published even if it is empty.

    bins : "auto" or array-like of shape (n_edges,), default="auto"
        Edges between bins of scores, increasing, between 0 and 1. The edges must be
        public. "auto" finds bins with about equal numbers of rows from noisy counts,
        whose cost `epsilon` includes.

    class_prior : float, default=None
        Expected share of the rarest class, chosen without private data. The function
        warns if, at this share, the noise is too large for the metrics.

    ledger : PrivacyLedger, default=None
        Privacy budget of the rows over all releases. The cost is recorded before any
        noise is drawn. With an integer `random_state`, a repeated call returns equal
        counts at no further cost.

    random_state : int, RandomState instance or None, default=None
        Seed of the choice of one row of each group. May be public.

    Returns
    -------
    metrics : PrivateMetrics or OutcomeMetrics
        Metrics of a classifier, or of a number or a time. May be published, with
        ``metrics.privacy_spent_`` as privacy statement.

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
        If the noise is too large for the ROC curve: nothing was released then. Also if
        released counts show many labels or subgroups that are not declared: the privacy
        cost was spent then.

    PrivacyLeakWarning
        If `delta` is too large for the number of rows.

    See Also
    --------
    sklearn_pate.inspection.plan : Plan of a private fit.

    Notes
    -----
    A row, or one row of a group, counts in one cell of each table. For d tables, counts
    of neighbouring data sets thus differ by at most sqrt(2 d) in the Euclidean norm.
    Every cell, even an empty one, gets discrete Gaussian noise (Canonne, Kamath,
    Steinke 2020). The first release has a confusion matrix and the number of rows by
    score, and takes a quarter of the squared mu (of Gaussian differential privacy). The
    second release has scores by label. The proof is Lemma 10 on the page
    :doc:`/proofs/counts`.

    A row's score must not depend on other rows, not even in the last bit. Rows are
    scored in blocks by these models, fitted or published:

    - :class:`~sklearn_pate.DPNewtonClassifier`, and
      :class:`~sklearn_pate.PATEClassifier` that released scores, with features of a
      :class:`~sklearn_pate.students.TableRepresentation`;
    - :class:`~sklearn_pate.learners.DPNaiveBayesClassifier`.

    X must be a dataframe, a sparse matrix or an array of numbers. Other models and
    containers take some milliseconds a row.

    Scores within a bin are estimated from the sizes of all bins, in two ways. The first
    release corrects the mean scores of bins. Intervals come from a simulation of the
    noise, the sampling of rows and the errors within bins. The interval of the
    calibration error comes from hypothesis tests. Intervals do not account for a choice
    of the model by earlier metrics.

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
    values = check_subgroups(subgroups, subgroup_values)
    if hasattr(type(model), "_measures"):
        return _outcome_metrics(
            model,
            X,
            y,
            groups=groups,
            subgroups=subgroups,
            values=values,
            others={
                "bins": not (isinstance(bins, str) and bins == "auto"),
                "class_prior": class_prior is not None,
            },
            epsilon=epsilon,
            delta=delta,
            ledger=ledger,
            random_state=random_state,
        )
    classes = check_model(model)
    rows = read_rows(X, y, classes, groups, subgroups, values)
    if hasattr(model, "n_features_in_"):
        check_columns(model, rows.private.X, reset=False)
    plan = plan_measurement(
        rows,
        len(classes),
        check_bins(bins),
        epsilon=epsilon,
        delta=delta,
        assumptions=(MODEL_IS_PUBLIC,),
    )
    warn_if_hidden(plan, class_prior)
    public = plan.edges, sys.modules["sklearn_pate"].__version__
    entry = _open_entry(ledger, plan.statement, model, rows, public, random_state)
    seed = check_random_state(random_state).randint(MAX_SEED)
    # The privacy is spent on this line: the cost is recorded, then noise is drawn.
    return plan.release(model, rows, seed, entry)


def _outcome_metrics(
    model: Any,
    X: Any,
    y: Any,
    *,
    groups: Any,
    subgroups: Any,
    values: list[Any],
    others: dict[str, bool],
    epsilon: float,
    delta: float,
    ledger: PrivacyLedger | None,
    random_state: Any,
) -> OutcomeMetrics:
    """Release metrics of a model of numbers or times."""
    for name, is_given in others.items():
        if is_given:
            raise ValueError(
                f"{name} is about scores of classes, but the model predicts a "
                "number or a time; leave it out."
            )
    check_is_fitted(model, "classifier_")
    classifier = model.classifier_
    classes, outcome = np.asarray(classifier.classes_), classifier._outcome
    if y is None:
        raise ValueError("y is None; pass the outcome of each row.")
    codes, outcomes = model._read(y)
    rows = read_rows(X, codes, classes, groups, subgroups, values)
    if hasattr(classifier, "n_features_in_"):
        check_columns(classifier, rows.private.X, reset=False)
    check_epsilon_is_small("epsilon", epsilon)
    rows.check_delta(delta)
    parts = mechanisms_of(outcome, len(rows.subgroups), epsilon, delta)
    whole, assumptions = over_sites(whole_of(parts), (MODEL_IS_PUBLIC, *_assumed(rows)))
    parts = [one for one in whole.parts if one is not None]
    cost, assumptions = as_drawn(whole.cost(1, unit=rows.unit), assumptions)
    statement = metrics_statement(whole, cost, delta, assumptions)
    version = sys.modules["sklearn_pate"].__version__
    private = rows, outcomes
    entry = _open_entry(
        ledger, statement, classifier, private, version, random_state, len(parts)
    )
    counted = rows.counted(check_random_state(random_state).randint(MAX_SEED))
    probabilities, _ = score_rows(classifier, rows.private.X, counted, classes)
    measures = model._measures(probabilities, outcomes[counted])
    of_subgroup = rows.of_subgroup[counted], len(rows.subgroups)
    noise = NoiseSource().as_stated(statement.assumptions)
    # The privacy is spent on these lines: the cost is recorded, then noise is drawn.
    if outcome["kind"] == "number":
        sums = release_numbers(measures, *of_subgroup, parts, entry, noise)
        edges = [np.zeros(0), np.zeros(0)]
    else:
        sums, *edges = release_times(
            measures,
            partial(model._codes_at, outcomes[counted]),
            np.array(outcome["edges"]),
            *of_subgroup,
            parts,
            partial(number_of_bins, mu=float(cost.mu or 0)),
            entry,
            noise,
        )
    return OutcomeMetrics(
        outcome_=outcome,
        subgroups_=rows.subgroups,
        sums_=sums,
        risk_edges_=edges[0],
        time_edges_=edges[1],
        noise_scales_=tuple(float(one.noise_scale) for one in parts),
        n_rows_=rows.n_public,
        privacy_spent_=statement,
        model_fingerprint_=model_fingerprint(classifier),
        sites_=sites_of(whole),
    )


def _assumed(rows: "MeasuredRows") -> tuple[Assumption, ...]:
    """List the assumptions of all metrics."""
    of_subgroups = () if rows.subgroups == [None] else (SUBGROUPS_DECLARED,)
    return SCORES_OF_ROW, COLUMNS, CHOSEN_BLINDLY, *of_subgroups


def number_of_bins(n_rows: float, mu: float) -> int:
    """Return the number of bins of scores for a public or noisy number of rows."""
    return int(np.clip(round((n_rows * mu) ** _EXPONENT), _FEWEST, _MOST))


def _open_entry(
    ledger: PrivacyLedger | None,
    spent: PrivacySpent,
    model: Any,
    private: object,
    public: object,
    random_state: Any,
    n_draws: int = 2,
) -> FitEntry | None:
    """Open the ledger entry of a measurement, None without a ledger.

    `public` is all public data that decide what is counted, beside the model.
    """
    if (shared := shared_release()) is not None:
        return shared.open_entry(spent, n_draws, private, None)
    if ledger is None:
        return None
    data = joblib.hash(private)
    name = secrets.token_hex(32)
    if isinstance(random_state, Integral):
        try:
            # Without the ledger in a private model, which changes.
            digest = model_fingerprint(model)
            of_model = estimator_hash(
                type(model), digest, public, int(random_state), spent.to_dict()
            )
        except Exception:  # no hash, so that every call is a new one
            pass
        else:
            name = fingerprint(ledger.key, "metrics", data, of_model)
    return FitEntry.of_statement(
        ledger,
        spent,
        n_draws,
        description=f"metrics of a {type(model).__name__}, {spent.mechanism}",
        dataset=fingerprint(ledger.key, "data", data),
        fit=name,
        remedy=lambda: "Use a smaller epsilon.",
    )


@dataclass(frozen=True)
class MeasuredRows:
    """Private rows to score, with labels, groups and subgroups. Sensitive."""

    private: PrivateRows
    #: Declared values of subgroups, then `OTHER`, or one None; and their indices.
    subgroups: list[Any]
    of_subgroup: NDArray[np.intp]

    @property
    def n_public(self) -> int | None:
        """Number of rows, None where it is not public."""
        return self.private.n_rows if self.private.ids is None else None

    def check_delta(self, delta: float) -> None:
        """Warn of a delta that is large for a public number of rows."""
        if self.n_public is not None:
            check_delta_is_small(delta, self.n_public, "rows")

    @property
    def unit(self) -> str:
        """Unit of privacy."""
        return "row" if self.private.ids is None else "group"

    def counted(self, seed: int) -> NDArray[np.intp]:
        """Return all rows, or one row of each group."""
        ids, group_of_row = self.private.ids, self.private.group_of_row
        if ids is None or group_of_row is None:
            return np.arange(len(self.private.codes))
        return one_row_of_groups(ids, group_of_row, seed)


@dataclass(frozen=True)
class Measurement:
    """Plan of a measurement: the noise of both parts, and the statement."""

    first: MarginalCounts
    second: MarginalCounts
    statement: PrivacySpent
    #: Edges between bins, None where noisy counts find them.
    edges: NDArray[np.float64] | None
    #: Number of rows, None where it is not public.
    n_rows: int | None
    #: As in the metrics.
    sites: tuple[int, int] | None

    def n_bins(self, n_rows: float) -> int:
        """Return the number of bins for a public or noisy number of rows."""
        return number_of_bins(n_rows, np.hypot(self.first.mu, self.second.mu))

    def release(
        self,
        model: Any,
        rows: MeasuredRows,
        seed: int,
        entry: FitEntry | None,
    ) -> PrivateMetrics:
        """Score rows, and release the counts of both parts.

        Each draw is recorded in the ledger entry before it is made.
        """
        classes, of_model = np.asarray(model.classes_), model_fingerprint(model)
        counted = rows.counted(seed)
        scores, predicted = score_rows(model, rows.private.X, counted, classes)
        n_subgroups = len(rows.subgroups)
        scored = ScoredRows(
            scores,
            predicted,
            rows.private.codes[counted],
            rows.of_subgroup[counted],
            n_subgroups,
        )
        noise = NoiseSource().as_stated(self.statement.assumptions)
        drawn = StoredSums(self.first, entry, noise).draw(0, scored.first_counts)
        shape = n_subgroups, len(classes) ** 2 + 1
        confusion, totals = np.split(drawn, [int(np.prod(shape))])
        confusion = confusion.reshape(shape)
        n_rows = (
            max(float(confusion.sum()), 1.0) if self.n_rows is None else self.n_rows
        )
        totals = totals.reshape(self.second.n_tables, len(GRID) + 1)
        if self.edges is None:
            n_bins = self.n_bins(n_rows)
            edges = [quantile_edges(one, n_bins, n_rows) for one in totals]
        else:
            edges = len(totals) * [self.edges]
        flat = StoredSums(self.second, entry, noise).draw(
            1, partial(scored.histograms, edges)
        )
        ends = np.cumsum([n_subgroups * (len(one) + 1) * 2 for one in edges])
        histograms = [
            part.reshape(n_subgroups, -1, 2) for part in np.split(flat, ends[:-1])
        ]
        means = [
            BinShapes.of_counts(of_class, counts, self.second.sigma).means(
                of_cells, self.first.sigma
            )
            for of_class, counts, of_cells in zip(
                edges, histograms, totals, strict=True
            )
        ]
        middles, middle_errors = map(list, zip(*means, strict=True))
        self._warn_if_missed(confusion, n_rows)
        return PrivateMetrics(
            classes_=classes,
            subgroups_=rows.subgroups,
            confusion_=confusion,
            histograms_=histograms,
            edges_=edges,
            middles_=middles,
            middle_errors_=middle_errors,
            noise_scales_=(float(self.first.sigma), float(self.second.sigma)),
            n_rows_=self.n_rows,
            privacy_spent_=self.statement,
            model_fingerprint_=of_model,
            sites_=self.sites,
        )

    def _warn_if_missed(self, confusion: NDArray[Any], n_rows: float) -> None:
        """Warn of rows without a declared label or subgroup, by released counts."""
        parts = {
            "label that is not a class of the model": (confusion[:, -1], _NO_CLASS)
        }
        if len(confusion) > 1:
            of_others = confusion[-1], _OTHERS
            parts["subgroup that is not in subgroup_values"] = of_others
        reasons = [
            f"{min(100, 100 * cells.sum() / n_rows):.0f} % of the rows have a {what}"
            for what, (cells, usual) in parts.items()
            if cells.sum()
            > usual * n_rows + _CERTAIN * self.first.sigma * np.sqrt(cells.size)
        ]
        if reasons:
            warn_user(
                f"By the released counts, {' and '.join(reasons)}. The privacy cost is "
                "spent nevertheless. Before another measurement, compare spelling and "
                "types with what is declared.",
                PrivacyUtilityWarning,
            )


def plan_measurement(
    rows: MeasuredRows,
    n_classes: int,
    edges: NDArray[np.float64] | None,
    *,
    epsilon: float,
    delta: float,
    assumptions: tuple[Assumption, ...] = (),
) -> Measurement:
    """Calibrate the noise of both parts, and state the cost, by public numbers."""
    check_epsilon_is_small("epsilon", epsilon)
    n_scored = 1 if n_classes == 2 else n_classes
    first = MarginalCounts(n_tables=1 + n_scored).for_share(_SHARE, epsilon, delta)
    second = MarginalCounts(n_tables=n_scored).for_share(1 - _SHARE, epsilon, delta)
    both, assumptions = over_sites(
        TwoPartRelease(first, second), (*assumptions, *_assumed(rows))
    )
    first, second = both.parts
    cost, assumptions = as_drawn(both.cost(unit=rows.unit), assumptions)
    statement = metrics_statement(both, cost, delta, assumptions, 1 + 2 * n_scored)
    rows.check_delta(delta)
    numbers = rows.n_public, sites_of(both)
    return Measurement(first, second, statement, edges, *numbers)


def check_bins(bins: Any) -> NDArray[np.float64] | None:
    """Return increasing edges, None for "auto"."""
    if isinstance(bins, str) and bins == "auto":
        return None
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
            f"bins={bins!r} must be 'auto', or increasing scores strictly between 0 "
            "and 1, such as [0.1, 0.3, 0.5]."
        )
    return edges


def check_model(model: Any) -> NDArray[Any]:
    """Return the classes of a fitted classifier with probabilities."""
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"model is of type {type(model).__name__} and has no predict_proba; pass "
            "a classifier that has it."
        )
    if hasattr(model, "fit"):
        check_is_fitted(model)
    classes = np.asarray(getattr(model, "classes_", ()))
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(
            f"model has classes_={classes.tolist()!r}; pass a classifier of two or "
            "more classes and one output."
        )
    return classes


def read_rows(
    X: Any,
    y: Any,
    classes: NDArray[Any],
    groups: Any,
    subgroups: Any,
    values: list[Any],
) -> MeasuredRows:
    """Check the shapes of private rows, and read labels, groups and subgroups.

    `values` of subgroups are those of `check_subgroups`.
    """
    private = PrivateRows.read(as_table(X), y, groups, classes=classes)
    of_subgroup = np.zeros(len(private.codes), dtype=np.intp)
    if subgroups is not None:
        shape = as_objects(subgroups).shape
        if shape[:1] != private.codes.shape:
            raise ValueError(
                f"subgroups has shape {shape} and X has "
                f"{counted(len(private.codes), 'row')}; pass one value for each row."
            )
        declared = np.array(values[:-1], dtype=object)
        check_label_type(subgroups, declared, "subgroups", "subgroup_values")
        of_subgroup = class_indices(subgroups, declared)
        of_subgroup[of_subgroup < 0] = len(values) - 1
    return MeasuredRows(private, values, of_subgroup)


def check_subgroups(subgroups: Any, values: Any) -> list[Any]:
    """Return the declared values of subgroups and `OTHER`, [None] without any."""
    if subgroups is None and values is None:
        return [None]
    if subgroups is None:
        raise ValueError(
            f"subgroup_values={values!r} needs subgroups, the subgroup of each row; "
            "pass both, or leave it out."
        )
    check_container("subgroups", subgroups)
    given = as_objects(values)
    plain = [
        plain_label(one)
        for one in given.ravel().tolist()
        if isinstance(one, (str, int, float, np.generic))
    ]
    texts = {str(one) for one in plain} - {OTHER}
    if (
        given.ndim != 1
        or plain != given.tolist()
        or not 0 < len(plain) == len(texts) == len({*plain})
        or not all(one.isprintable() for one in texts)
    ):
        raise ValueError(
            f"subgroup_values={values!r} must list the possible values of subgroups: "
            "texts or numbers, each once, such as ['under 60', '60 or more']. Choose "
            "them without a look at private rows. All other and missing values are "
            f"counted as {OTHER!r}."
        )
    return [*plain, OTHER]


def warn_if_hidden(plan: Measurement, class_prior: float | None) -> None:
    """Warn if an interval of AUC is wide at best, by numbers that are public."""
    share = 0.5 if class_prior is None else class_prior
    if class_prior is not None and not 0 < class_prior <= 0.5:
        raise ValueError(
            f"class_prior={class_prior!r} must be the share of the rarest class, above "
            "0 and at most 0.5."
        )
    if plan.n_rows is None:
        return
    few, many = share * plan.n_rows, (1 - share) * plan.n_rows
    n_bins = plan.n_bins(plan.n_rows)
    noise = plan.second.sigma**2 * n_bins / 6 * (1 / few**2 + 1 / many**2)
    half_width = 1.96 * np.sqrt(noise + 1 / (12 * few))
    if half_width > _WIDE:
        of_share = "balanced classes" if class_prior is None else f"{share=:g}"
        warn_user(
            f"With {counted(plan.n_rows, 'row')}, noise of {plan.second.sigma:.3g} on "
            f"each count and {of_share}, the interval of the AUC is at least "
            f"+-{half_width:.2f} wide. Use more rows, or a larger epsilon.",
            PrivacyUtilityWarning,
        )

"""Rows, noise and release of private metrics."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from sklearn_pate._inputs._containers import Table, as_objects, check_container
from sklearn_pate._inputs._features import as_array, check_column_names
from sklearn_pate._inputs._labels import PublicData, class_indices, is_missing
from sklearn_pate._inputs._odd_values import is_frame
from sklearn_pate._teachers._shards import group_ids, one_row_of_groups
from sklearn_pate.accounting._assumptions import (
    CHOSEN_BLINDLY,
    COLUMNS,
    SCORES_OF_ROW,
    SUBGROUPS_PUBLIC,
    Assumption,
)
from sklearn_pate.accounting._calibrate import (
    check_delta_is_small,
    check_epsilon_is_small,
)
from sklearn_pate.accounting._fit_entry import FitEntry
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user
from sklearn_pate.mechanisms._noise import as_drawn
from sklearn_pate.mechanisms._noisy_sum import (
    MarginalCounts,
    StoredSums,
    TwoPartRelease,
)
from sklearn_pate.metrics._bins import BinShapes
from sklearn_pate.metrics._counts import (
    GRID,
    ScoredRows,
    quantile_edges,
    score_rows,
    without_wide_bin,
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
class MeasuredRows:
    """Private rows to score, with labels, groups and subgroups. Sensitive."""

    X: Table
    #: Class indices, -1 for a label that the model does not know.
    labels: NDArray[np.intp]
    #: Distinct ids of groups, and the index of each row's one; None without groups.
    ids: NDArray[np.bytes_] | None
    group_of_row: NDArray[np.intp] | None
    #: Values of subgroups, one None without any, which are public; and their indices.
    subgroups: list[Any]
    of_subgroup: NDArray[np.intp]

    @property
    def n_public(self) -> int | None:
        """Number of rows, None where it is not public."""
        return len(self.labels) if self.ids is None else None

    def counted(self, seed: int) -> NDArray[np.intp]:
        """Return all rows, or one row of each group."""
        if self.ids is None or self.group_of_row is None:
            return np.arange(len(self.labels))
        return one_row_of_groups(self.ids, self.group_of_row, seed)


@dataclass(frozen=True)
class Measurement:
    """Plan of a measurement: the noise of both parts, and the statement."""

    first: MarginalCounts
    second: MarginalCounts
    statement: PrivacySpent
    #: What `check_bins` returns.
    bins: Any
    #: Number of rows, None where it is not public.
    n_rows: int | None

    def public_scores(self, model: Any) -> NDArray[np.float64] | None:
        """Return scores of public rows by scored class, None without public rows."""
        if not isinstance(self.bins, PublicData):
            return None
        scores = np.asarray(model.predict_proba(self.bins.X), dtype=np.float64)
        return scores.T[-self.second.n_tables :]

    def n_bins(self, n_rows: float) -> int:
        """Return the number of bins for a public or noisy number of rows."""
        signal = n_rows * np.hypot(self.first.mu, self.second.mu)
        return int(np.clip(round(signal**_EXPONENT), _FEWEST, _MOST))

    def release(
        self,
        model: Any,
        rows: MeasuredRows,
        public_scores: NDArray[np.float64] | None,
        seed: int,
        entry: FitEntry | None,
    ) -> PrivateMetrics:
        """Score rows, and release the counts of both parts.

        Each draw is recorded in the ledger entry before it is made.
        """
        classes = np.asarray(model.classes_)
        counted = rows.counted(seed)
        scores, predicted = score_rows(model, rows.X, counted, classes)
        n_subgroups = len(rows.subgroups)
        scored = ScoredRows(
            scores,
            predicted,
            rows.labels[counted],
            rows.of_subgroup[counted],
            n_subgroups,
        )
        first = partial(scored.first_counts, with_totals=public_scores is None)
        drawn = StoredSums(self.first, entry).draw(0, first)
        shape = n_subgroups, len(classes) ** 2 + 1
        confusion, totals = np.split(drawn, [int(np.prod(shape))])
        confusion = confusion.reshape(shape)
        n_rows = (
            max(float(confusion.sum()), 1.0) if self.n_rows is None else self.n_rows
        )
        n_bins = self.n_bins(n_rows)
        n_scored = self.second.n_tables
        totals = totals.reshape(-1 if public_scores is None else 0, len(GRID) + 1)
        if public_scores is not None:
            edges = [_quantiles(one, n_bins) for one in public_scores]
        elif self.bins is None:
            edges = [quantile_edges(one, n_bins, n_rows) for one in totals]
        else:
            edges = n_scored * [self.bins]
        flat = StoredSums(self.second, entry).draw(1, partial(scored.histograms, edges))
        ends = np.cumsum([n_subgroups * (len(one) + 1) * 2 for one in edges])
        histograms = [
            part.reshape(n_subgroups, -1, 2) for part in np.split(flat, ends[:-1])
        ]
        noise = float(self.second.sigma * np.sqrt(2 * n_subgroups))
        shapes = [
            BinShapes(of_class, counts.sum(axis=(0, 2)), noise)
            for of_class, counts in zip(edges, histograms, strict=True)
        ]
        if public_scores is not None:
            means = list(map(_public_means, public_scores, shapes))
        else:
            means = [
                one.means(of_class, self.first.sigma)
                for one, of_class in zip(shapes, totals, strict=True)
            ]
        middles, middle_errors = map(list, zip(*means, strict=True))
        return PrivateMetrics(
            classes,
            rows.subgroups,
            confusion,
            histograms,
            edges,
            middles,
            middle_errors,
            (float(self.first.sigma), float(self.second.sigma)),
            self.n_rows,
            self.statement,
        )


def plan_measurement(
    rows: MeasuredRows,
    n_classes: int,
    bins: Any,
    *,
    epsilon: float,
    delta: float,
    assumptions: tuple[Assumption, ...] = (),
) -> Measurement:
    """Calibrate the noise of both parts, and state the cost, by public numbers."""
    check_epsilon_is_small("epsilon", epsilon)
    n_scored = 1 if n_classes == 2 else n_classes
    # Rows by score are counted for places of bins, or for mean scores within them.
    n_first = 1 if isinstance(bins, PublicData) else 1 + n_scored
    first = MarginalCounts(n_tables=n_first).for_share(_SHARE, epsilon, delta)
    second = MarginalCounts(n_tables=n_scored).for_share(1 - _SHARE, epsilon, delta)
    both = TwoPartRelease(first, second)
    unit = "row" if rows.ids is None else "group"
    of_subgroups = () if rows.subgroups == [None] else (SUBGROUPS_PUBLIC,)
    cost, assumptions = as_drawn(
        both.cost(unit=unit),
        (*assumptions, SCORES_OF_ROW, COLUMNS, CHOSEN_BLINDLY, *of_subgroups),
    )
    statement = metrics_statement(both, cost, delta, assumptions)
    check_delta_is_small(delta, len(rows.labels), "rows")
    return Measurement(first, second, statement, bins, rows.n_public)


def check_bins(bins: Any) -> Any:
    """Return increasing edges or public rows, None for "auto"."""
    if isinstance(bins, str) and bins == "auto":
        return None
    if isinstance(bins, PublicData):
        return bins
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


def check_model(model: Any) -> NDArray[Any]:
    """Return the classes of a fitted classifier with probabilities."""
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"model is of type {type(model).__name__} and has no predict_proba; pass a "
            "classifier that has."
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


def check_columns(model: Any, X: Table) -> None:
    """Raise if the number or the names of columns are not those of the model's fit."""
    if hasattr(model, "n_features_in_"):
        validate_data(model, X, reset=False, skip_check_array=True)
        check_column_names(model, X, reset=False)


def read_rows(
    X: Any, y: Any, classes: NDArray[Any], groups: Any, subgroups: Any
) -> MeasuredRows:
    """Check the shapes of private rows, and read labels, groups and subgroups."""
    X = read_table(X)
    check_container("y", y)
    check_consistent_length(X, y)
    labels = class_indices(y, classes)
    ids = group_of_row = None
    if groups is not None:
        ids, group_of_row = group_ids(groups)
        check_consistent_length(X, group_of_row)
    return MeasuredRows(
        X, labels, ids, group_of_row, *_read_subgroups(subgroups, len(labels))
    )


def read_table(X: Any) -> Table:
    """Return rows that can be taken one by one; no value decides their type."""
    check_container("X", X)
    if sp.issparse(X):
        return X.tocsr()
    return X if is_frame(X) else as_array(X)


def _read_subgroups(subgroups: Any, n_rows: int) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the values of subgroups and the index of each row's one."""
    if subgroups is None:
        return [None], np.zeros(n_rows, dtype=np.intp)
    check_container("subgroups", subgroups)
    given = as_objects(subgroups).tolist()
    if len(given) != n_rows:
        raise ValueError(
            f"subgroups has {counted(len(given), 'value')} and X "
            f"{counted(n_rows, 'row')}; pass one value a row."
        )
    given = [None if is_missing(one) else one for one in given]
    values = sorted(set(given), key=lambda one: (one is None, str(one)))
    place = {value: number for number, value in enumerate(values)}
    return values, np.array([place[one] for one in given], dtype=np.intp)


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


def _quantiles(scores: NDArray[np.float64], n_bins: int) -> NDArray[np.float64]:
    """Return edges between bins of about as many public rows."""
    edges = np.unique(np.quantile(scores, np.arange(1, n_bins) / n_bins))
    return without_wide_bin(edges[(edges > 0) & (edges < 1)])


def _public_means(
    scores: NDArray[np.float64], shapes: BinShapes
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean public score of each bin, guessed without any, and its error."""
    guess, error = shapes.guess
    places = np.digitize(scores, shapes.edges)
    sizes = np.bincount(places, minlength=len(guess))
    sums = np.bincount(places, scores, len(guess))
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), guess), error

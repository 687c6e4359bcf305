"""Counts of private rows by score, prediction and label, with noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._class_codes import keeps_rows_apart
from sklearn_pate._estimators._isolation import no_output
from sklearn_pate._inputs._labels import class_indices
from sklearn_pate._inputs._odd_values import is_frame
from sklearn_pate._synthetic._class_tables import nearest_on_simplex

#: Log-odds between the cells of the first counts.
GRID = np.arange(-32, 33) / 4
# Width of a bin, beyond which it is divided.
_WIDE = 0.5
# Rows that are scored together, where that is exact.
_AT_ONCE = 1024
# Cell and class of a row that the model cannot score.
_UNSCORED = -1


@dataclass(frozen=True)
class ScoredRows:
    """Scores and predictions of private rows, with labels and subgroups. Sensitive."""

    #: Probabilities of the classes, NaN for a row that the model cannot score.
    scores: NDArray[np.float64]
    #: Class indices; -1 for a row that the model cannot score.
    predicted: NDArray[np.intp]
    #: Class indices, -1 for a label that the model does not know.
    labels: NDArray[np.intp]
    #: Indices of subgroups.
    subgroups: NDArray[np.intp]
    n_subgroups: int

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.scores.shape[1]

    @property
    def is_measured(self) -> NDArray[np.bool_]:
        """Whether a row has a score and a label that the model knows."""
        return (self.predicted >= 0) & (self.labels >= 0)

    @property
    def scored_classes(self) -> list[int]:
        """List of classes whose scores are counted: the second of two, or all."""
        return [1] if self.n_classes == 2 else [*range(self.n_classes)]

    def confusion(self) -> NDArray[np.int64]:
        """Count rows by subgroup, label and prediction, one count a row.

        Shape (n_subgroups, n_classes^2 + 1): by label, then by prediction; rows of an
        unknown label or without a score are last.
        """
        n = self.n_classes
        cells = np.where(self.is_measured, n * self.labels + self.predicted, n**2)
        return _table((self.n_subgroups, n**2 + 1), self.subgroups, cells)

    def first_counts(self) -> NDArray[np.int64]:
        """Count rows by prediction, and by score of each class on the grid, flat."""
        totals = [
            _table((len(GRID) + 1,), _cells(self.scores[:, one], GRID_OF_SCORES))
            for one in self.scored_classes
        ]
        return np.concatenate([self.confusion().ravel(), *totals])

    def histograms(self, edges: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
        """Count rows by subgroup, score and label, one count a row and class.

        Arrays of shape (n_subgroups, n_bins, 2), one a scored class, flat. A row of an
        unknown label or without a score counts nowhere.
        """
        parts = []
        for one, of_class in zip(self.scored_classes, edges, strict=True):
            cells = _cells(self.scores[:, one], of_class)
            table = _table(
                (self.n_subgroups, len(of_class) + 1, 2),
                self.subgroups,
                np.where(self.is_measured, cells, _UNSCORED),
                (self.labels == one).astype(np.intp),
            )
            parts.append(table.ravel())
        return np.concatenate(parts)


#: Probabilities between the cells of the first counts.
GRID_OF_SCORES = expit(GRID)


def score_rows(
    model: Any,
    X: Any,
    rows: NDArray[np.intp],
    classes: NDArray[Any],
    advance: Callable[[int], None] = lambda n: None,
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Score rows so that no row changes a bit of the score of another.

    That is one at a time, unless the model and the type of X keep rows apart. Returns
    class probabilities, NaN where the model fails, and predicted class indices, -1
    there. Nothing that the model prints or warns leaves this function. `advance` takes
    numbers of scored rows.
    """
    # A value among objects may set the type that the rows around it are read as.
    has_types = is_frame(X) or X.dtype.kind in "biuf"
    at_once = _AT_ONCE if has_types and keeps_rows_apart(model) else 1
    scores, predicted = np.empty((len(rows), len(classes))), np.empty(len(rows), int)
    with no_output():
        for start in range(0, len(rows), at_once):
            part = slice(start, start + at_once)
            scores[part], predicted[part] = _score(model, X, rows[part], classes)
            advance(len(rows[part]))
    return scores, predicted


def _score(
    model: Any, X: Any, rows: NDArray[np.intp], classes: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Score rows together, or each half of them if one fails."""
    try:
        together = _safe_indexing(X, rows.tolist())
        scores = np.asarray(model.predict_proba(together), dtype=np.float64)
        predicted = class_indices(model.predict(together), classes)
        if scores.shape != (len(rows), len(classes)) or len(predicted) != len(rows):
            raise ValueError("the model has not one score of each class for each row")
    except Exception:
        if len(rows) == 1:
            return np.full((1, len(classes)), np.nan), np.array([_UNSCORED])
        parts = [_score(model, X, part, classes) for part in np.array_split(rows, 2)]
        scores, predicted = map(np.concatenate, zip(*parts, strict=True))
    is_valid = np.all((scores >= 0) & (scores <= 1), axis=1) & (predicted >= 0)
    return (
        np.where(is_valid[:, np.newaxis], scores, np.nan),
        np.where(is_valid, predicted, _UNSCORED),
    )


def quantile_edges(
    totals: NDArray[np.int64], n_bins: int, n_rows: float
) -> NDArray[np.float64]:
    """Return probabilities that divide rows into bins of about equal size.

    `totals` are noisy counts on the grid. The nearest counts are taken that are not
    negative and sum to `n_rows`. A wide bin is divided at one half.
    """
    sizes = nearest_on_simplex(totals.astype(np.float64), n_rows)
    share = np.cumsum(sizes) / n_rows
    places = np.searchsorted(share[:-1], np.arange(1, n_bins) / n_bins)
    edges = GRID_OF_SCORES[np.unique(places.clip(0, len(GRID) - 1))]
    # Else, rows near 0 and rows near 1 would be in one bin.
    is_wide = np.diff(edges, prepend=0.0, append=1.0) > _WIDE
    return np.union1d(edges, 0.5) if is_wide.any() else edges


def _cells(scores: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the cell of each score, -1 for NaN."""
    return np.where(np.isnan(scores), _UNSCORED, np.digitize(scores, edges))


def _table(shape: tuple[int, ...], *indices: NDArray[np.intp]) -> NDArray[np.int64]:
    """Count rows by indices; a row with a negative index counts nowhere."""
    kept = np.all([one >= 0 for one in indices], axis=0)
    flat = np.ravel_multi_index([one[kept] for one in indices], shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)

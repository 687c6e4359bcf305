"""Plan of a fit that releases a logistic regression by steps, without teachers."""

import warnings
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing

from sklearn_pate._base._function_plan import FunctionPlan, ReleasedFunction
from sklearn_pate._base._query_plan import warn_if_slow
from sklearn_pate._base._release_utility import why_steps_useless
from sklearn_pate._estimators._progress import phase
from sklearn_pate._teachers import TeacherProblems
from sklearn_pate._votes._unit_updates import UnitUpdates
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.students import ImageRepresentation, TableRepresentation

__all__ = ["StepPlan"]

# Weak penalty of the first coefficients: rows from noisy counts are only like private
# ones. Measured on Adult and KDDCup99.
_C_OF_START = 30.0


@dataclass(frozen=True)
class StepPlan(FunctionPlan):
    """Plan of a fit that releases a logistic regression in a public basis."""

    @property
    def n_coordinates(self) -> int:
        """Number of released functions of the basis."""
        return self.scored.basis.n_coordinates_

    def _start(self) -> NDArray[np.float64] | None:
        """Fit the function to synthetic rows with the classes they were drawn for.

        None without them, or if a class has none.
        """
        rows = self.public.synthetic
        if rows is None or rows.labels is None:
            return None
        labels = rows.labels[self.scored.rows]
        if len(np.unique(labels)) < self.n_classes:
            return None
        model = LogisticRegression(
            C=_C_OF_START / len(labels), fit_intercept=False, max_iter=500
        )
        model.fit(self.scored.values, labels)
        coef = model.coef_
        if self.n_classes == 2:
            coef = np.concatenate([-coef, coef]) / 2
        return coef.T @ helmert(self.n_classes).T

    def _why_useless(self) -> str | None:
        """Describe why the noise hides the function, by public numbers."""
        return why_steps_useless(
            self.release.mechanism,
            n_units=self.release.n_teachers,
            n_classes=self.n_classes,
            unit=self.public.unit,
        )

    def warn_if_useless(self) -> None:
        """Warn of noise that hides the function, and of a slow representation."""
        super().warn_if_useless()
        if not self._is_for_all_rows:
            X, of_basis = self.public.X_public, self.scored.of_basis
            rows = [_safe_indexing(X, [row]) for row in range(min(5, X.shape[0]))]
            start = process_time()
            for row in rows:
                of_basis.transform(row)
            warn_if_slow(of_basis, (process_time() - start) / len(rows))

    @property
    def _is_for_all_rows(self) -> bool:
        """Check that rows that are transformed together do not affect each other.

        Two transformers of this package refuse no row: a row of a table is the same bit
        by bit in any position, and an image at the same position, where rows are the
        unit. A subclass may compute anything.
        """
        kind = type(self.scored.of_basis)
        of_rows = self.private.group_of_row is None
        return kind is TableRepresentation or (of_rows and kind is ImageRepresentation)

    @phase("representing the rows")
    def contributions(self, train: Any) -> tuple[UnitUpdates, TeacherProblems]:
        """Represent the private rows. Sensitive."""
        represented, refused = self._represented()
        updates = UnitUpdates(
            represented,
            self.private.codes,
            self.private.group_of_row,
            self.scored.basis.transform,
            n_units=self.release.n_teachers,
            size=self.scored.values.shape[1] * (self.n_classes - 1),
            n_steps=self.release.mechanism.n_steps,
        )
        return updates, TeacherProblems(data=[*self.private.problems, *refused])

    def _represented(self) -> tuple[NDArray[np.float64], list[str]]:
        """Return the private rows as the basis sees them, and problems. Sensitive.

        One row at a time: a transformer may refuse a row, and the rounding of rows that
        are transformed together may depend on their position, which depends on other
        groups.
        """
        of_basis, X = self.scored.of_basis, self.private.X
        if self._is_for_all_rows:
            return np.asarray(of_basis.transform(X), dtype=np.float64), []
        n_rows, n_columns = X.shape[0], len(self.scored.basis.mean_)
        represented = np.full((n_rows, n_columns), np.nan)  # NaN sends nothing
        n_refused = 0
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for row in range(n_rows):
                try:
                    represented[row] = of_basis.transform(_safe_indexing(X, [row]))
                except Exception:
                    n_refused += 1
        refused = f"rows that the representation refused: {n_refused}"
        return represented, [refused] if n_refused else []

    def query(
        self, updates: UnitUpdates, student: BaseEstimator, entry: FitEntry | None
    ) -> ReleasedFunction:
        """Record the cost, draw the noise, and release the function."""
        estimate = self.release.mechanism.estimate(
            updates, self.scored.values, self.n_classes, entry, self._start()
        )
        return self._released(estimate, estimate.coefficients, "softmax")

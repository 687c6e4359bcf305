"""Plan of a fit that releases a logistic regression by steps, without teachers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing

from sklearn_pate._base._function_plan import FunctionPlan, ReleasedFunction
from sklearn_pate._base._release_utility import why_steps_useless
from sklearn_pate._teachers import TeacherProblems
from sklearn_pate._votes._unit_updates import UnitUpdates
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user
from sklearn_pate.students import TableRepresentation

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

    def warn_if_useless(self) -> None:
        """Warn if the noise hides the function, by public numbers."""
        why = why_steps_useless(
            self.release.mechanism,
            n_units=self.release.n_teachers,
            n_classes=self.n_classes,
            unit=self.public.unit,
        )
        if why is not None:
            warn_user(why, PrivacyUtilityWarning)

    def contributions(self, train: Any) -> tuple[UnitUpdates, TeacherProblems]:
        """Represent the private rows. Sensitive."""
        updates = UnitUpdates(
            self._represented(),
            self.private.codes,
            self.private.group_of_row,
            self.scored.basis.transform,
            n_units=self.release.n_teachers,
            size=self.scored.values.shape[1] * (self.n_classes - 1),
            n_steps=self.release.mechanism.n_steps,
        )
        return updates, TeacherProblems(data=[*self.private.problems])

    def _represented(self) -> NDArray[np.float64]:
        """Return the private rows as the basis sees them. Sensitive.

        The position of a row depends on other groups, and so may its rounding where
        several rows are transformed together. Those of a table are functions of the row
        bit by bit.
        """
        of_basis, X = self.scored.of_basis, self.private.X
        if self.private.group_of_row is None or isinstance(
            of_basis, TableRepresentation
        ):
            return np.asarray(of_basis.transform(X), dtype=np.float64)
        parts = [
            of_basis.transform(_safe_indexing(X, [row])) for row in range(X.shape[0])
        ]
        return np.concatenate(parts).astype(np.float64)

    def query(
        self, updates: UnitUpdates, student: BaseEstimator, entry: FitEntry | None
    ) -> ReleasedFunction:
        """Record the cost, draw the noise, and release the function."""
        estimate = self.release.mechanism.estimate(
            updates, self.scored.values, self.n_classes, entry, self._start()
        )
        return self._released(estimate, estimate.coefficients, "softmax")

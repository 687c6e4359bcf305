"""Plan of a fit that releases a logistic regression by steps, without teachers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_pate._base._function_plan import FunctionPlan, ReleasedFunction
from sklearn_pate._base._release_utility import why_steps_useless
from sklearn_pate._teachers import TeacherProblems
from sklearn_pate._votes._unit_updates import UnitUpdates
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user

__all__ = ["StepPlan"]


@dataclass(frozen=True)
class StepPlan(FunctionPlan):
    """Plan of a fit that releases a logistic regression in a public basis."""

    @property
    def n_coordinates(self) -> int:
        """Number of released functions of the basis."""
        return self.scored.basis.n_coordinates_

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
        X = np.asarray(self.scored.of_basis.transform(self.private.X), dtype=np.float64)
        updates = UnitUpdates(
            X,
            self.private.codes,
            self.private.group_of_row,
            self.scored.basis.transform,
            n_units=self.release.n_teachers,
            size=self.scored.values.shape[1] * (self.n_classes - 1),
            n_steps=self.release.mechanism.n_steps,
        )
        return updates, TeacherProblems(data=[*self.private.problems])

    def query(
        self, updates: UnitUpdates, student: BaseEstimator, entry: FitEntry | None
    ) -> ReleasedFunction:
        """Record the cost, draw the noise, and release the function."""
        estimate = self.release.mechanism.estimate(
            updates, self.scored.values, self.n_classes, entry
        )
        return self._released(estimate, estimate.coefficients, "softmax")

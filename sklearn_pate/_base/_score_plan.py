"""Plan of a fit that releases the mean scores of teachers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_pate._base._function_plan import FunctionPlan, ReleasedFunction
from sklearn_pate._base._release_utility import why_scores_useless
from sklearn_pate._teachers import ScoreForm, collect
from sklearn_pate._votes._teacher_scores import TeacherScores
from sklearn_pate.accounting.ledger._fit_entry import FitEntry

__all__ = ["ScorePlan"]


@dataclass(frozen=True)
class ScorePlan(FunctionPlan):
    """Plan of a fit that releases the mean scores of teachers on private rows."""

    shards: Sequence[Any]

    @property
    def rows_per_teacher(self) -> int | None:
        """Mean number of rows of a teacher, None where it is not public."""
        if self.public.unit != "row":
            return None
        return self.private.n_rows // self.release.n_teachers

    @property
    def form(self) -> ScoreForm:
        """Form of the scores that a teacher sends."""
        values = self.scored.values[:, : self._n_coordinates[-1]]
        return ScoreForm(self.n_classes, np.ascontiguousarray(values))

    @property
    def n_coordinates(self) -> int:
        """Number of released functions of the basis."""
        return self._n_coordinates[-1]

    @property
    def _n_coordinates(self) -> list[int]:
        """Number of coordinates of each step, by public numbers."""
        mechanism = self.release.mechanism
        allowed = mechanism.n_coordinates(self.release.n_teachers, self.n_classes)
        return [min(self.scored.basis.n_coordinates_, one) for one in allowed]

    def _why_useless(self) -> str | None:
        """Describe why no student can learn from the scores, by public numbers."""
        return why_scores_useless(
            self.release.mechanism,
            n_teachers=self.release.n_teachers,
            n_classes=self.n_classes,
        )

    def contributions(self, train: Any) -> Any:
        """Train teachers, and collect their score functions. Sensitive."""
        form = self.form
        shape = (form.basis.shape[1], self.n_classes - 1)
        n_steps = self.release.mechanism.n_steps

        def gather(contributions: Iterable[Any]) -> TeacherScores:
            return TeacherScores(contributions, shape=shape, n_steps=n_steps)

        poll: Callable = partial(collect, aggregate=gather)
        if self.private.on_cluster:
            from sklearn_pate.distributed._dask_teachers import collect_scores

            poll = partial(
                collect_scores,
                shape=shape,
                n_steps=n_steps,
                given=self.public.X_public,
            )
        return train(
            poll,
            self.shards,
            self.private,
            self.scored.X_for_teachers,
            self.scored.representation,
            self.seeds.key,
            form=form,
        )

    def query(
        self, scores: TeacherScores, student: BaseEstimator, entry: FitEntry | None
    ) -> ReleasedFunction:
        """Record the cost, draw the noise, and release the score function."""
        mechanism = self.release.mechanism
        estimate = mechanism.estimate(scores, self._n_coordinates, entry)
        return self._released(estimate, estimate.shrunk, "linear")

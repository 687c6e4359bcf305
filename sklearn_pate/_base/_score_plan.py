"""Plan of a release of the teachers' mean scores, and what is learned from it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state

from sklearn_pate._base._query_plan import represent
from sklearn_pate._base._release_plan import (
    ReleasePlan,
    analyse_release,
    plan_release,
)
from sklearn_pate._base._release_utility import why_scores_useless
from sklearn_pate._base._split_inputs import PrivateInputs
from sklearn_pate._base._teacher_ensemble import TaughtPlan
from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers import ScoreForm, TeacherProblems, collect
from sklearn_pate._votes._teacher_scores import TeacherScores
from sklearn_pate.accounting._assumptions import Assumption
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.exceptions import (
    PrivacyUtilityWarning,
    StudentWarning,
    warn_user,
)
from sklearn_pate.mechanisms import MeanScores
from sklearn_pate.mechanisms._mean_scores import Estimate
from sklearn_pate.students import (
    DistillationClassifier,
    ScoreFunction,
    TableRepresentation,
)
from sklearn_pate.students._score_basis import ScoreBasis
from sklearn_pate.students._score_function import as_probabilities, resolve_threshold
from sklearn_pate.students._train_student import train_student
from sklearn_pate.students.queries._row_similarity import numeric_features

__all__ = [
    "ReleasedScores",
    "ScorePlan",
    "ScoredRows",
    "plan_score_release",
    "plan_scored_rows",
    "taking_soft_labels",
]

# More public rows hardly improve the mean over rows.
_MOST_ROWS = 10_000


@dataclass(frozen=True)
class ReleasedScores:
    """Released score function, and what follows from it. May be published."""

    estimate: Estimate
    #: Public rows that were scored.
    rows: NDArray[np.intp]
    student: ScoreFunction
    #: Probabilities of the scored rows, shape (n_rows, n_classes), and class indices.
    probabilities: NDArray[np.float64]
    answers: NDArray[np.intp]


@dataclass(frozen=True)
class ScoredRows:
    """Public rows that are scored, and the basis of score functions."""

    rows: NDArray[np.intp]
    X_for_teachers: Table
    #: What teachers see, fitted on public rows; None for the columns.
    representation: BaseEstimator | None
    #: What the basis sees, fitted on public rows.
    of_basis: BaseEstimator
    basis: ScoreBasis
    #: Values of the basis, shape (n_rows, n_coordinates).
    values: NDArray[np.float64]


@dataclass(frozen=True)
class ScorePlan(TaughtPlan):
    """Plan of a fit that releases the mean scores of teachers on private rows."""

    scored: ScoredRows
    private: PrivateInputs
    shards: Sequence[NDArray[np.intp]]
    threshold: Any
    #: Whether the released function is the student.
    predicts_itself: bool

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.public.classes)

    @property
    def public_content(self) -> tuple[Any, ...]:
        """All public data that decide the release."""
        return self.public.X_public, self.public.classes

    @property
    def public_rows(self) -> Table:
        """Public rows that teachers score."""
        return self.scored.X_for_teachers

    @property
    def representation(self) -> BaseEstimator | None:
        """What teachers see, fitted on public rows."""
        return self.scored.representation

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

    def poll(self, *arguments: Any, **parameters: Any) -> Any:
        """Train teachers, and collect their score functions. Sensitive."""
        form = self.form

        def gather(contributions: Iterable[Any]) -> TeacherScores:
            return TeacherScores(
                contributions,
                shape=(form.basis.shape[1], self.n_classes - 1),
                n_steps=self.release.mechanism.n_steps,
            )

        return collect(*arguments, form=form, aggregate=gather, **parameters)

    @property
    def _n_coordinates(self) -> list[int]:
        """Number of coordinates of each step, by public numbers."""
        mechanism = self.release.mechanism
        allowed = mechanism.n_coordinates(self.release.n_teachers, self.n_classes)
        return [min(self.scored.basis.n_coordinates_, one) for one in allowed]

    def warn_if_useless(self) -> None:
        """Warn if no student can learn from the scores, by public numbers."""
        why = why_scores_useless(
            self.release.mechanism,
            n_teachers=self.release.n_teachers,
            n_classes=self.n_classes,
        )
        if why is not None:
            warn_user(why, PrivacyUtilityWarning)

    def query(
        self, scores: TeacherScores, student: BaseEstimator, entry: FitEntry | None
    ) -> ReleasedScores:
        """Record the cost, draw the noise, and release the score function."""
        mechanism = self.release.mechanism
        estimate = mechanism.estimate(scores, self._n_coordinates, entry)
        # What follows is computed from the release and public rows alone.
        shrunk = estimate.shrunk
        scored = self.scored
        if not shrunk[1:].any():
            warn_user(
                "The released scores do not depend on the row; the student always "
                "predicts one class. The privacy cost is spent nevertheless. Before "
                "another fit, consider more teachers or a larger epsilon.",
                StudentWarning,
            )
        coef = np.zeros((scored.basis.n_coordinates_, shrunk.shape[1]))
        coef[: len(shrunk)] = shrunk
        threshold = resolve_threshold(self.threshold, as_probabilities(shrunk[:1])[0])
        function = ScoreFunction.of_release(
            coef, scored.of_basis, scored.basis, threshold
        )
        probabilities = as_probabilities(scored.values @ coef)
        return ReleasedScores(
            estimate,
            scored.rows,
            function,
            probabilities,
            function.decide(probabilities),
        )

    def teach(self, student: BaseEstimator, released: ReleasedScores) -> BaseEstimator:
        """Return the released function, or train a student on its scores."""
        if self.predicts_itself:
            return released.student
        return train_student(
            taking_soft_labels(student, self.seeds.student),
            self.public.X_public,
            released.rows,
            released.answers,
            n_classes=self.n_classes,
            seed=self.seeds.student,
            histograms=released.probabilities,
        )

    def attributes(self, released: ReleasedScores) -> dict[str, Any]:
        """Return what was released, as fitted attributes."""
        return {
            "representation_": self.representation,
            "query_strategy_": None,
            "queried_indices_": released.rows,
            "answers_": released.answers,
            "histograms_": None,
            "soft_answers_": released.probabilities,
            "mean_scores_": released.estimate,
        }

    def analyse(
        self,
        scores: TeacherScores,
        released: ReleasedScores,
        problems: TeacherProblems,
        entry: FitEntry | None,
    ) -> PrivacyAnalysis:
        """Keep the problems of teachers. Sensitive."""
        return analyse_release(
            self.release,
            np.zeros((0, self.n_classes), dtype=np.int64),
            problems,
            in_ledger=entry is not None,
        )


def taking_soft_labels(student: BaseEstimator, seed: int) -> BaseEstimator:
    """Return a student that learns from class probabilities."""
    if getattr(student, "accepts_soft_labels", False):
        return student
    return DistillationClassifier(student, random_state=seed)


def plan_score_release(
    mechanism: MeanScores,
    *,
    epsilon: float | None,
    delta: float,
    unit: str,
    assumptions: tuple[Assumption, ...],
    n_teachers: int,
    n_classes: int,
) -> ReleasePlan:
    """Calibrate the noise of mean scores, and state their cost."""

    def calibrated(epsilon: float | None) -> MeanScores:
        return mechanism.prepared(epsilon=epsilon, delta=delta)

    release = plan_release(
        calibrated(epsilon),
        calibrated,
        delta=delta,
        unit=unit,
        assumptions=assumptions,
        n_teachers=n_teachers,
        n_queries=mechanism.n_steps,
        n_values=n_classes,
    )
    # The oracle counts steps; the statement has no queries.
    statement = replace(release.statement, n_queries=None)
    return replace(release, statement=statement)


def plan_scored_rows(
    X_public: Table,
    mechanism: MeanScores,
    representation: BaseEstimator | None,
    *,
    held_out: bool,
    seed: int,
) -> ScoredRows:
    """Choose the public rows that are scored, and compute the basis.

    `representation` is for teachers; without one, the basis has its own. Raises
    ValueError if the public rows do not become finite numbers.
    """
    n_public = X_public.shape[0]
    rows = np.arange(n_public)
    if n_public > _MOST_ROWS:
        chosen = check_random_state(seed).choice(n_public, _MOST_ROWS, replace=False)
        rows = np.sort(chosen)
    fitted, X_for_teachers = represent(representation, X_public, seed)
    of_basis, represented = fitted, X_for_teachers
    if representation is None:
        of_basis, represented = represent(TableRepresentation(), X_public, seed)
    features = numeric_features(represented)
    if features is None:
        raise ValueError(
            f"representation={representation!r} makes no finite numbers of the public "
            "rows, which MeanScores needs; pass another transformer, or "
            "mechanism='gnmax'."
        )
    rbf = mechanism.basis == "rbf" or (mechanism.basis == "auto" and not held_out)
    basis = ScoreBasis(mechanism.max_coordinates, rbf, seed).fit(features[rows])
    return ScoredRows(
        rows,
        _safe_indexing(X_for_teachers, rows),
        fitted,
        of_basis,
        basis,
        basis.transform(features[rows]),
    )

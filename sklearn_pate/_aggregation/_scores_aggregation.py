"""Aggregation of teachers' class probabilities: the mean of their score functions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state

from sklearn_pate._aggregation._aggregation import TaughtPlan
from sklearn_pate._aggregation._entry import ReleasePlan, analyse_release, plan_release
from sklearn_pate._aggregation._outlook import why_few_public_rows, why_scores_useless
from sklearn_pate._aggregation._rows import PrivateInputs
from sklearn_pate._aggregation._votes_aggregation import represent
from sklearn_pate._estimators._progress import phase
from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers._forms import ScoreForm
from sklearn_pate._teachers._training import TeacherProblems, collect
from sklearn_pate._votes._sums import TeacherScores
from sklearn_pate.accounting._assumptions import Assumption
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.exceptions import (
    PrivacyUtilityWarning,
    StudentWarning,
    warn_user,
)
from sklearn_pate.mechanisms import MeanScores
from sklearn_pate.mechanisms._mechanism import AccountedMechanism
from sklearn_pate.mechanisms._noisy_sum import (
    MarginalCounts,
    TwoPartRelease,
    with_counts,
)
from sklearn_pate.students import (
    DistillationClassifier,
    ScoreFunction,
    TableRepresentation,
)
from sklearn_pate.students._basis import ScoreBasis, resolve_threshold
from sklearn_pate.students._queries import numeric_features
from sklearn_pate.students._train_student import accepts_soft_labels, train_student

# More public rows hardly improve a mean over rows.
_MOST_ROWS = 10_000


@dataclass(frozen=True)
class ReleasedFunction:
    """Released function, and what follows from it. May be published."""

    #: Released numbers, as the mechanism returns them.
    estimate: Any
    function: ScoreFunction
    #: Public rows that were scored.
    rows: NDArray[np.intp]
    #: Probabilities of the scored rows, shape (n_rows, n_classes), and class indices.
    probabilities: NDArray[np.float64]
    answers: NDArray[np.intp]


@dataclass(frozen=True)
class ScoredRows:
    """Public rows that are scored, and the basis of functions of a row."""

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
class FunctionPlan(TaughtPlan, ABC):
    """Plan of a fit that releases mean scores."""

    scored: ScoredRows
    private: PrivateInputs
    threshold: Any
    #: Whether the released function is the student.
    predicts_itself: bool

    equal_classes = False

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.public.classes)

    @property
    def public_content(self) -> tuple[Any, ...]:
        """All public data that decide the release."""
        return self.public.content

    @property
    @abstractmethod
    def n_coordinates(self) -> int:
        """Number of released functions of the basis."""

    @abstractmethod
    def _why_useless(self) -> str | None:
        """Describe why the noise hides the function, by public numbers."""

    @property
    def why_few_public_rows(self) -> str | None:
        """Description of too few public rows for a function, None if they suffice."""
        return why_few_public_rows(self.public.X_public.shape[0])

    def warn_if_useless(self) -> None:
        """Warn if the released function is of no use, by public numbers."""
        for why in (self._why_useless(), self.why_few_public_rows):
            if why is not None:
                warn_user(why, PrivacyUtilityWarning)

    @abstractmethod
    def contributions(self, train: Any) -> Any:
        """Collect what teachers send. Sensitive."""

    @abstractmethod
    def query(
        self, contributions: Any, student: BaseEstimator, entry: FitEntry | None
    ) -> ReleasedFunction:
        """Record the cost, draw the noise, and release the function."""

    def _released(
        self, estimate: Any, coef: NDArray[np.float64], link: str
    ) -> ReleasedFunction:
        """Compute what follows from a release, by public rows alone."""
        scored = self.scored
        if not coef[1:].any():
            warn_user(
                "The released function does not depend on the row; the student always "
                "predicts one class. The privacy cost is spent nevertheless. Before "
                "another fit, consider a larger epsilon, or more private rows.",
                StudentWarning,
            )
        full = np.zeros((scored.basis.n_coordinates_, coef.shape[1]))
        full[: len(coef)] = coef
        function = ScoreFunction.of_release(full, scored.of_basis, scored.basis, link)
        probabilities = function.probabilities(scored.values)
        function.threshold = resolve_threshold(
            self.threshold, probabilities.mean(axis=0)
        )
        return ReleasedFunction(
            estimate,
            function,
            scored.rows,
            probabilities,
            function.decide(probabilities),
        )

    def teach(
        self, student: BaseEstimator, released: ReleasedFunction
    ) -> BaseEstimator:
        """Return the released function, or train a student on its scores."""
        if self.predicts_itself:
            return released.function
        with phase("training the student"):
            return train_student(
                taking_soft_labels(student, self.seeds.student),
                self.public.X_public,
                released.rows,
                released.answers,
                n_classes=self.n_classes,
                seed=self.seeds.student,
                histograms=released.probabilities,
            )

    def attributes(self, released: ReleasedFunction) -> dict[str, Any]:
        """Return what was released, as fitted attributes."""
        return {
            "representation_": self.scored.representation,
            "query_strategy_": None,
            "queried_indices_": released.rows,
            "answers_": released.answers,
            "histograms_": None,
            "soft_answers_": released.probabilities,
            "estimate_": released.estimate,
        }

    def analyse(
        self,
        contributions: Any,
        released: ReleasedFunction,
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
    if accepts_soft_labels(student):
        return student
    return DistillationClassifier(student, random_state=seed)


def plan_function_release(
    mechanism: MeanScores,
    *,
    epsilon: float | None,
    delta: float,
    unit: str,
    assumptions: tuple[Assumption, ...],
    n_teachers: int,
    n_classes: int,
    counts: Callable[[float | None], MarginalCounts | None],
) -> ReleasePlan:
    """Calibrate the noise of a function, and state its cost.

    `counts` returns what is released before, for an epsilon.
    """

    def calibrated(epsilon: float | None) -> AccountedMechanism | TwoPartRelease:
        before = counts(epsilon)
        ready = mechanism.prepared(epsilon=epsilon, delta=delta, counts=before)
        return with_counts(before, ready)

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
    return replace(release, statement=replace(release.statement, n_queries=None))


def plan_scored_rows(
    X_public: Table,
    representation: BaseEstimator | None,
    *,
    max_coordinates: int,
    rbf: bool,
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
            "rows; pass another transformer."
        )
    basis = ScoreBasis(max_coordinates, rbf, seed).fit(features[rows])
    return ScoredRows(
        rows,
        _safe_indexing(X_for_teachers, rows),
        fitted,
        of_basis,
        basis,
        basis.transform(features[rows]),
    )


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

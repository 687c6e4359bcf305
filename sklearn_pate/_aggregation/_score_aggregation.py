"""Aggregation of scores: the noisy mean of the teachers' class probabilities."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_pate._aggregation._aggregation import Aggregation
from sklearn_pate._aggregation._design import Design
from sklearn_pate._aggregation._entry import analyse_release
from sklearn_pate._aggregation._fit_plan import FitPlan
from sklearn_pate._aggregation._outlook import (
    why_few_public_rows,
    why_one_class,
    why_only_noise,
    why_scores_useless,
)
from sklearn_pate._aggregation._prepared_rows import ScoredRows, score_rows
from sklearn_pate._aggregation._rehearsal import rehearse_student
from sklearn_pate._aggregation._rows import PublicInputs
from sklearn_pate._estimators._class_codes import accepts_soft_labels, on_labels
from sklearn_pate._estimators._progress import phase
from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers._forms import ScoreForm
from sklearn_pate._teachers._training import TeacherProblems
from sklearn_pate._votes._sums import TeacherScores
from sklearn_pate.accounting._fit_entry import FitEntry
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.exceptions import StudentWarning, warn_user
from sklearn_pate.mechanisms._mean_scores import Estimate, exceeds_noise
from sklearn_pate.students import DistillationClassifier, ScoreFunction
from sklearn_pate.students._basis import resolve_threshold
from sklearn_pate.students._train_student import train_student


@dataclass(frozen=True)
class ReleasedScores:
    """Released mean scores, and what follows from them. May be published."""

    #: Released numbers, as the mechanism returns them.
    estimate: Any
    model: ScoreFunction
    #: Probabilities of the scored rows, shape (n_rows, n_classes), and class indices.
    probabilities: NDArray[np.float64]
    answers: NDArray[np.intp]


@dataclass(frozen=True)
class ScoreAggregation(Aggregation[TeacherScores, ReleasedScores]):
    """Teachers send class probabilities; their noisy mean is the student or its labels.

    A teacher sends the coefficients of its probabilities in a public basis. The student
    is the released score model itself, or learns from its soft labels.
    """

    scored: ScoredRows

    equal_classes = False

    @property
    def representation(self) -> BaseEstimator | None:
        """Transformer of the rows of teachers, fitted on public rows."""
        return self.scored.representation

    @property
    def represented(self) -> Table:
        """Public rows that teachers score, transformed by the representation."""
        return self.scored.X_for_teachers

    @property
    def form(self) -> ScoreForm:
        """The coefficients of a teacher's scores in the public basis."""
        values = self.scored.values[:, : self.n_coordinates[-1]]
        return ScoreForm(self.n_classes, np.ascontiguousarray(values))

    @property
    def n_coordinates(self) -> list[int]:
        """Number of coordinates of each step, by public numbers."""
        mechanism = self.release.mechanism
        allowed = mechanism.n_coordinates(self.release.n_teachers, self.n_classes)
        return [min(self.scored.basis.n_coordinates_, one) for one in allowed]

    def on(self, public: PublicInputs) -> Self:
        """Return the same aggregation on other public rows."""
        seed = self.seeds.representation
        scored = prepare_scores(public.X_public, self.design, seed=seed)
        return replace(self, public=public, scored=scored)

    def fit_plan(self, margins: Sequence[float], rarest: float | None) -> FitPlan:
        """Plan the fit: its noise, its privacy cost, and its number of coefficients."""
        return FitPlan.of_coefficients(
            self.release,
            n_rows=self.n_rows,
            n_coordinates=self.n_coordinates[-1],
            useless=why_scores_useless(self.release, self.n_rows)
            or why_scores_useless(self.release, self.n_rows, rarest),
            n_public=self.public.n_public,
            rarest=rarest,
        )

    def _why_useless(self) -> Iterator[str | None]:
        yield why_scores_useless(self.release, self.n_rows)
        yield why_few_public_rows(self.public.n_public)

    def _rehearse_student(self) -> None:
        if self.design.student is not None:
            rehearse_student(
                self._student(),
                self.public.X_public,
                n_labeled=len(self.scored.rows),
                n_classes=self.n_classes,
                soft=True,
                seed=self.seeds.student,
            )

    @property
    def sums(self) -> Callable[[Iterable[Any]], TeacherScores]:
        """Score functions, which are summed in steps."""
        shape = self.n_coordinates[-1], self.n_classes - 1
        return partial(TeacherScores, shape=shape)

    def draw(self, scores: TeacherScores, entry: FitEntry | None) -> ReleasedScores:
        """Record the cost, draw the noise, and release the mean scores."""
        mechanism, scored = self.release.mechanism, self.scored
        class_sum = partial(self.private.class_sum, self.n_classes)
        noise = self.release.noise()
        estimate = mechanism.estimate(
            scores, class_sum, self.n_coordinates, entry, noise
        )
        coef = estimate.shrunk
        full = np.zeros((scored.basis.n_coordinates_, coef.shape[1]))
        full[: len(coef)] = coef
        model = ScoreFunction.of_release(full, scored.of_basis, scored.basis, "linear")
        probabilities = model.probabilities(scored.values)
        model.threshold = resolve_threshold(mechanism.threshold, probabilities)
        answers = model.decide(probabilities)
        balanced = None
        if self.n_classes == 2 and coef[1:].any():
            balanced = "mechanism=MeanScores(threshold='balanced')"
        one, hidden = why_one_class(answers, "public row", balanced), None
        if why_scores_useless(self.release, self.n_rows) is None:
            rarest = float(estimate.shares.min())
            hidden = why_scores_useless(self.release, self.n_rows, rarest)
            if hidden is None and self._is_noise(estimate):
                hidden = why_only_noise("scores")
        for why in (hidden, one):
            warn_user(why, StudentWarning)
        return ReleasedScores(estimate, model, probabilities, answers)

    def _is_noise(self, estimate: Estimate) -> bool:
        """Check whether mean scores can hardly be told from noise.

        Without signal, their variance is that of the noise, and that of as many labels
        as there are rows, where this number is public.
        """
        variances = estimate.variances
        if self.n_rows is not None:
            of_labels = (1 - np.sum(estimate.shares**2)) / (self.n_classes - 1)
            variances = variances + of_labels / self.n_rows
        return not exceeds_noise(estimate.coefficients, variances)

    def teach(self, released: ReleasedScores) -> BaseEstimator:
        """Return the released score model, or train a student on its soft labels."""
        if self.design.student is None:
            return released.model
        with phase("training the student"):
            return train_student(
                self._student(),
                self.public.X_public,
                self.scored.rows,
                released.answers,
                n_classes=self.n_classes,
                seed=self.seeds.student,
                histograms=released.probabilities,
            )

    def _student(self) -> BaseEstimator:
        """Return the student, made to learn from class probabilities."""
        student = self.design.student
        if not accepts_soft_labels(student):
            student = DistillationClassifier(student, random_state=self.seeds.student)
        return on_labels("student", student, self.public.classes, soft=True)

    def attributes(self, released: ReleasedScores) -> dict[str, Any]:
        """Return what was released, as fitted attributes."""
        return {
            "representation_": self.scored.representation,
            "query_strategy_": None,
            "queried_indices_": self.scored.rows,
            "answers_": released.answers,
            "histograms_": None,
            "soft_answers_": released.probabilities,
            "estimate_": released.estimate,
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


@phase("preparing public rows")
def prepare_scores(X_public: Table, design: Design, *, seed: int) -> ScoredRows:
    """Choose the public rows that are scored, and the basis of mean scores."""
    return score_rows(
        X_public,
        design.representation,
        max_coordinates=design.mechanism.max_coordinates,
        rbf=design.mechanism.basis == "rbf",
        seed=seed,
    )

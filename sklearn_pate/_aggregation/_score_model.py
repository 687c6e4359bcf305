"""Score model of a released direction: its scores, its slope and its shares."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.base import BaseEstimator

from sklearn_pate._aggregation._aggregation import (
    Aggregation,
    ScoredRows,
    represented_rows,
    score_rows,
    warn_if_slow_alone,
    with_codes,
)
from sklearn_pate._aggregation._design import Design
from sklearn_pate._aggregation._entry import analyse_release
from sklearn_pate._aggregation._outlook import (
    why_few_public_rows,
    why_one_class,
    why_only_noise,
    why_scores_useless,
)
from sklearn_pate._aggregation._rehearsal import rehearse_student
from sklearn_pate._aggregation._rows import PublicInputs
from sklearn_pate._estimators._class_codes import on_labels
from sklearn_pate._estimators._kinds import accepts_soft_labels
from sklearn_pate._estimators._progress import phase
from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers._training import ScoreForm, TeacherProblems
from sklearn_pate._votes._votes import LONGEST_VALUE, TeacherScores
from sklearn_pate.accounting._ledger import FitEntry
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.exceptions import StudentWarning, warn_user
from sklearn_pate.mechanisms._noisy_sum import Estimate, exceeds_noise
from sklearn_pate.students import (
    DistillationClassifier,
    ImageStudent,
    ReweightedClassifier,
    ScoreFunction,
)
from sklearn_pate.students._basis import (
    bounded,
    class_probabilities,
    resolve_threshold,
    row_products,
    shift_to_shares,
    slope_for,
)
from sklearn_pate.students._train_student import train_student

# Length that scores stay below, in units of their root mean square.
_BOUND = 2.0
# Slopes: the least, with which ranks are kept, and the largest. Their prior is the
# normal distribution.
_LEAST_SLOPE, _LARGEST_SLOPE = 0.02, 12.0
# Rows whose values are computed at once.
_ROWS_AT_ONCE = 2**13


@dataclass(frozen=True)
class DirectionScores:
    """Scores of rows by a released direction, before their slope is known.

    The score of a row is the product of its values of the basis and the direction,
    bounded, and standardised over public rows: of mean 0, and mean squared length 1. By
    class, it is the product with the Helmert matrix.
    """

    #: Shape (n_coordinates, n_classes - 1).
    direction: NDArray[np.float64]
    #: Released shares of the classes.
    shares: NDArray[np.float64]
    #: Mean of the bounded scores over public rows, and root of their mean square.
    mean: NDArray[np.float64]
    scale: float

    @classmethod
    def of_public_rows(
        cls,
        direction: NDArray[np.float64],
        shares: NDArray[np.float64],
        values: NDArray[np.float64],
    ) -> Self:
        """Standardise scores over public rows, by their values of the basis."""
        scores = bounded(row_products(values, direction), _BOUND)
        mean = scores.mean(axis=0)
        scale = np.sqrt(np.mean(np.sum((scores - mean) ** 2, axis=1)))
        return cls(direction, shares, mean, float(scale) or 1.0)

    def of_rows(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score classes, for each row by itself to the last bit."""
        scores = bounded(row_products(values, self.direction), _BOUND)
        contrasts = helmert(len(self.shares))
        return row_products((scores - self.mean) / self.scale, contrasts)

    def excess(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores of classes less their mean by shares, clipped to [-1, 1]."""
        means = row_products(scores, self.shares[:, np.newaxis])
        return np.clip(scores - means, -1, 1)


@dataclass(frozen=True)
class RowValues:
    """Whole number of each private row: the score of its class. Sensitive."""

    scores: DirectionScores
    scored: ScoredRows
    by_group: bool

    def __call__(self, X: Table, codes: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return numbers of at most LONGEST_VALUE; 0 without a class index.

        **Sensitivity.** The bound is checked in exact arithmetic. No number depends on
        another row.
        """
        basis = self.scored.basis.chosen(slice(1 + len(self.scores.direction)))
        represent, _ = represented_rows(
            self.scored.of_basis, X, len(basis.mean_), by_group=self.by_group
        )
        rounded = np.zeros(len(codes))
        with np.errstate(all="ignore"):
            for start in range(0, len(codes), _ROWS_AT_ONCE):
                part = slice(start, start + _ROWS_AT_ONCE)
                values = basis.transform(represent(part))[:, 1:]
                excess = self.scores.excess(self.scores.of_rows(values))
                own = excess[np.arange(len(excess)), codes[part]]  # the last one for -1
                rounded[part] = np.rint(LONGEST_VALUE * own)
        # False for NaN.
        within = (np.abs(rounded) <= LONGEST_VALUE) & (codes >= 0)
        return np.where(within, rounded, 0).astype(np.int64)


@dataclass(frozen=True)
class SlopedModels:
    """Models of a direction, one for each slope, by public rows and shares."""

    scores: DirectionScores
    #: Values of the basis at public rows, without the constant function.
    values: NDArray[np.float64]

    @cached_property
    def _of_public(self) -> NDArray[np.float64]:
        return self.scores.of_rows(self.values)

    @cached_property
    def _excess(self) -> NDArray[np.float64]:
        return self.scores.excess(self._of_public)

    def _shift(self, slope: float) -> NDArray[np.float64]:
        """Return class offsets with which mean probabilities are the shares."""
        return shift_to_shares(slope * self._of_public, self.scores.shares)

    def _expected(self, slope: float) -> float:
        """Return the mean value of a row, if the model with this slope is right."""
        logits = slope * self._of_public + self._shift(slope)
        return float(np.sum(softmax(logits, axis=1) * self._excess, axis=1).mean())

    def most_probable(self, released: float, variance: float) -> float:
        """Return the slope that a noisy mean value and a normal prior suggest."""

        def loss(slope: float) -> float:
            return (released - self._expected(slope)) ** 2 / variance + slope**2

        bounds = (_LEAST_SLOPE, _LARGEST_SLOPE)
        return float(minimize_scalar(loss, bounds=bounds, method="bounded").x)

    def model(self, slope: float, scored: ScoredRows) -> ScoreFunction:
        """Return the model with a slope."""
        scores, contrasts = self.scores, helmert(len(self.scores.shares))
        steepness = slope / scores.scale
        intercept = contrasts @ self._shift(slope) - steepness * scores.mean
        coef = np.vstack([intercept, steepness * scores.direction])
        return ScoreFunction.of_release(
            coef,
            scored.of_basis,
            scored.basis.chosen(slice(len(coef))),
            steepness * _BOUND,
        )


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

    @property
    def representation(self) -> BaseEstimator | None:
        """Transformer of the rows of teachers, fitted on public rows."""
        return self.scored.representation

    @property
    def represented(self) -> Table:
        """Public rows that teachers score, transformed by the representation."""
        return self.scored.X_for_teachers

    @property
    def features(self) -> NDArray[np.float64]:
        """Array of the values of the functions of a direction at public rows."""
        return self._values

    @property
    def form(self) -> ScoreForm:
        """The direction of a teacher's scores in the public basis."""
        return ScoreForm(self.n_classes, self._values)

    @property
    def n_coordinates(self) -> int:
        """Number of functions of a direction, by public numbers."""
        return self._values.shape[1]

    @property
    def _values(self) -> NDArray[np.float64]:
        """Values of the functions of a direction at public rows, by public numbers."""
        mechanism = self.release.mechanism
        allowed = mechanism.n_coordinates(self.release.n_teachers, self.n_classes)
        return np.ascontiguousarray(self.scored.values[:, 1 : 1 + allowed])

    def on(self, public: PublicInputs) -> Self:
        """Return the same aggregation on other public rows or features."""
        seed = self.seeds.representation
        design = with_codes(self.design, public.log_odds)
        scored = prepare_scores(public.X_public, design, seed=seed)
        return replace(self, public=public, design=design, scored=scored)

    def warn_if_useless(self) -> None:
        """Warn, by public numbers, of a model of no use, and of a slow fit."""
        super().warn_if_useless()
        by_group = self.public.unit == "group"
        warn_if_slow_alone(
            self.scored.of_basis, self.public.X_public, by_group=by_group
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
                soft=self._is_soft,
                seed=self.seeds.student,
            )

    @property
    def sums(self) -> Callable[[Iterable[Any]], TeacherScores]:
        """Container of the teachers' directions."""
        shape = self.n_coordinates, self.n_classes - 1
        return partial(TeacherScores, shape=shape)

    def draw(self, scores: TeacherScores, entry: FitEntry | None) -> ReleasedScores:
        """Record the cost, draw the noise, and release the mean scores."""
        estimate = self.release.mechanism.estimate(
            scores,
            partial(self.private.class_sum, self.n_classes),
            self._value_sum,
            entry,
            self.release.noise(),
        )
        return self._released(estimate)

    def _scores(
        self, direction: NDArray[np.float64], shares: NDArray[np.float64]
    ) -> DirectionScores:
        return DirectionScores.of_public_rows(direction, shares, self._values)

    def _value_sum(
        self, direction: NDArray[np.float64], shares: NDArray[np.float64]
    ) -> int:
        """Add up the values of private rows, or of groups. Sensitive."""
        by_group = self.public.unit == "group"
        values = RowValues(self._scores(direction, shares), self.scored, by_group)
        total: int = self.private.value_sum(values, self.public.X_public)
        return total

    def _released(self, estimate: Estimate) -> ReleasedScores:
        """Return the score model of released numbers, and its labels of public rows."""
        scores = self._scores(estimate.direction, estimate.shares)
        models = SlopedModels(scores, self._values)
        slope = models.most_probable(estimate.mean_value, estimate.mean_value_variance)
        model = models.model(slope, self.scored)
        probabilities = model.probabilities(self.scored.values[:, : len(model.coef_)])
        model.threshold = resolve_threshold(
            self.design.threshold, probabilities, estimate.share_noise
        )
        return ReleasedScores(
            estimate, model, probabilities, model.decide(probabilities)
        )

    def _warn_of_noise(self, released: ReleasedScores) -> None:
        """Warn if released scores are those of noise, or predict one class."""
        estimate, hidden, balanced = released.estimate, None, None
        own_rule = self.design.student is not None and self._is_soft
        if self.n_classes == 2 and estimate.direction.any() and not own_rule:
            balanced = "threshold='balanced'"
        one = why_one_class(released.answers, "public row", balanced)
        if why_scores_useless(self.release, self.n_rows) is None:
            rarest = float(estimate.shares.min())
            hidden = why_scores_useless(self.release, self.n_rows, rarest)
            if hidden is None and self._is_noise(estimate):
                hidden = why_only_noise("scores")
        for why in (hidden, one):
            warn_user(why, StudentWarning)

    def _is_noise(self, estimate: Estimate) -> bool:
        """Check whether directions can hardly be told from noise.

        Without signal, their variance is that of the noise, and that of teachers with
        independent directions.
        """
        directions = estimate.directions
        of_teachers = self.release.n_teachers / max(directions.size, 1)
        variance = estimate.variance + of_teachers
        return not exceeds_noise(directions, np.full(len(directions), variance))

    def teach(self, released: ReleasedScores) -> BaseEstimator:
        """Return the released score model, or train a student on its soft labels."""
        self._warn_of_noise(released)
        if self.design.student is None:
            return released.model
        rows, probabilities = self.scored.rows, released.probabilities
        with phase("training the student"):
            student = train_student(
                self._student(),
                self.public.X_public,
                rows,
                released.answers,
                n_classes=self.n_classes,
                seed=self.seeds.student,
                histograms=probabilities if self._is_soft else None,
            )
            if self._is_soft:
                return student
            X_public = self.public.X_public
            found = class_probabilities(student, X_public, self.n_classes)
            return ReweightedClassifier.with_shares(
                student,
                found,
                released.estimate.shares,
                slope=slope_for(found[rows], probabilities),
                threshold=self.design.threshold,
                share_noise=released.estimate.share_noise,
            )

    @property
    def _is_soft(self) -> bool:
        """Whether the student learns from probabilities; that of images from labels."""
        return not isinstance(self.design.student, ImageStudent)

    def _student(self) -> BaseEstimator:
        """Return the student, made to learn from class probabilities."""
        student = self.design.student
        if not self._is_soft:
            return student
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
            "class_shares_": released.estimate.shares,
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
def prepare_scores(X_public: Table, design: Design, seed: int) -> ScoredRows:
    """Choose the public rows that are scored, and the basis of mean scores."""
    return score_rows(
        X_public,
        design.representation,
        # Beside the constant function.
        max_coordinates=1 + design.mechanism.max_coordinates,
        rbf=design.mechanism.basis == "rbf",
        seed=seed,
        n_components=design.n_components,
    )

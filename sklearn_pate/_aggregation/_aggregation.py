"""Base classes of private classifiers whose student learns from a noisy release."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import Tags

from sklearn_pate._aggregation._checks import (
    check_classifier,
    check_memory,
    check_n_jobs,
    check_strategy,
)
from sklearn_pate._aggregation._design import as_mechanism, as_teacher, memory_location
from sklearn_pate._aggregation._entry import ReleasePlan, analyse_votes
from sklearn_pate._aggregation._outlook import why_useless
from sklearn_pate._aggregation._public_rows import PublicRowsClassifier
from sklearn_pate._aggregation._rows import PrivateInputs, PublicInputs
from sklearn_pate._aggregation._votes_aggregation import Answers, QueryPlan
from sklearn_pate._estimators._class_codes import StudentPredictionMixin
from sklearn_pate._estimators._isolation import Seeds
from sklearn_pate._estimators._progress import (
    CallbackSupportMixin,
    check_verbose,
    phase,
)
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._odd_values import input_tags
from sklearn_pate._teachers._shards import teacher_seeds
from sklearn_pate._teachers._training import TeacherProblems, poll_teachers
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.exceptions import (
    PrivacyUtilityWarning,
    TeacherWarning,
    warn_user,
)
from sklearn_pate.mechanisms import MeanScores, Mechanism, Oracle
from sklearn_pate.mechanisms._noise import check_noise_seed
from sklearn_pate.mechanisms._oracle import VoteCounts
from sklearn_pate.publication._student_state import without_caches
from sklearn_pate.students._train_student import accepts_unlabeled, train_student


@dataclass(frozen=True)
class TaughtPlan:
    """Plan of a release that a student learns from."""

    public: PublicInputs
    release: ReleasePlan
    seeds: Seeds

    #: Whether synthetic rows are of all classes equally often: queries are for a
    #: student that learns each class. Otherwise, they are like the private rows.
    equal_classes: ClassVar[bool] = True

    @property
    def statement(self) -> PrivacySpent:
        """Privacy statement, which does not depend on votes."""
        return self.release.statement


@dataclass(frozen=True)
class AnswerPlan(TaughtPlan):
    """Plan of a release of answers to queries, from votes cast anywhere."""

    queries: QueryPlan

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.public.classes)

    def query(
        self, votes: VoteCounts, student: BaseEstimator, entry: FitEntry | None
    ) -> Answers:
        """Query the votes: record the cost, draw the noise, release the answers.

        An adaptive query strategy trains `student` on the answers so far.
        """
        oracle = Oracle(
            votes, self.release.mechanism, n_queries=self.release.n_queries, entry=entry
        )
        with phase("querying", self.release.n_queries) as advance:
            return self.queries.query(
                oracle, student, self.n_classes, self.seeds.queries, advance
            )

    def warn_if_useless(self, student: BaseEstimator, epsilon: float | None) -> None:
        """Warn if the student cannot learn from the answers, by public numbers."""
        why = why_useless(
            self.release.mechanism,
            n_teachers=self.release.n_teachers,
            n_queries=self.release.n_queries,
            n_classes=self.n_classes,
            few_answers=accepts_unlabeled(student),
            n_rows=self._n_rows,
            epsilon=epsilon,
            delta=self.statement.delta,
            unit=self.public.unit,
        )
        if why is not None:
            warn_user(why, PrivacyUtilityWarning)

    @property
    def _n_rows(self) -> int | None:
        """Number of private rows, None where it is not public."""
        return None

    @phase("training the student")
    def teach(self, student: BaseEstimator, answers: Answers) -> BaseEstimator:
        """Train a clone of a student on public rows and released answers alone."""
        return train_student(
            student,
            self.public.X_public,
            answers.rows,
            answers.answers,
            n_classes=self.n_classes,
            seed=self.seeds.student,
            histograms=answers.transcript.histograms,
            clusters=self.queries.clusters,
        )

    def attributes(self, answers: Answers) -> dict[str, Any]:
        """Return what was released, as fitted attributes."""
        return {
            "representation_": self.queries.representation,
            "query_strategy_": self.queries.strategy,
            "queried_indices_": answers.rows,
            "answers_": answers.answers,
            "histograms_": answers.transcript.histograms,
            "soft_answers_": None,
            "estimate_": None,
        }

    def analyse(
        self,
        votes: Votes,
        answers: Answers,
        problems: TeacherProblems,
        entry: FitEntry | None,
    ) -> PrivacyAnalysis:
        """Compute the privacy cost that depends on the votes. Sensitive."""
        return analyse_votes(
            self.release,
            votes,
            answers.transcript,
            problems,
            adaptive=self.queries.strategy.adaptive,
            in_ledger=entry is not None,
        )

    @property
    def public_content(self) -> tuple:
        """All public data that decide the answers."""
        # Clusters of drawn rows follow from the counts.
        clusters = self.queries.clusters if self.public.domain is None else None
        return *self.public.content, clusters


@dataclass(frozen=True)
class FitSetup(AnswerPlan):
    """Plan of a fit on private rows."""

    private: Any
    #: Private rows of each teacher, where teachers are trained; their numbers alone on
    #: a cluster.
    shards: Sequence[Any] = ()

    @property
    def _n_rows(self) -> int | None:
        return self.private.n_rows if self.public.unit == "row" else None

    def contributions(self, train: Any) -> Any:
        """Train teachers, and count their votes. Sensitive."""
        poll: Callable = poll_teachers
        if self.private.on_cluster:
            from sklearn_pate.distributed._dask_teachers import poll_on_dask

            poll = partial(poll_on_dask, given=self.public.X_public)
        return train(
            poll,
            self.shards,
            self.private,
            self.queries.X_for_teachers,
            self.queries.representation,
            self.seeds.key,
            n_classes=self.n_classes,
            clusters=self.queries.clusters,
        )

    @property
    def rows_per_teacher(self) -> int | None:
        """Number of rows of a teacher, None where it is not public."""
        return None if self._n_rows is None else self._n_rows // len(self.shards)


class TaughtClassifier(
    MetaEstimatorMixin, StudentPredictionMixin, PublicRowsClassifier
):
    """Base class of classifiers whose student learns from a noisy release.

    A subclass provides `_unfitted_student`.
    """

    #: Number of shards; None where rows are not cut into any.
    n_teachers: Any = None

    student: Any

    # For the data holder: gaps between public rows are positions of private rows.
    _sensitive = ("privacy_analysis_", "public_indices_")
    _unfitted = ("query_strategy_",)

    def _check_parameters(self) -> None:
        check_classifier("student", self.student)
        super()._check_parameters()

    def _published_model(self) -> BaseEstimator:
        return without_caches(self.student_)

    def _readers_of_public_rows(self) -> dict[str, Any]:
        """Return the estimators that get public rows, by parameter."""
        first = self._sees_rows_first()
        of_rows = first is self._chosen_representation()
        return {
            "representation" if of_rows else "estimator": first,
            "student": self._unfitted_student(),
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        student = input_tags(self._unfitted_student())
        tags.input_tags.sparse = tags.input_tags.sparse and student.sparse
        tags.input_tags.allow_nan = tags.input_tags.allow_nan and student.allow_nan
        return tags


class TeacherEnsemble(CallbackSupportMixin, TaughtClassifier):
    """Base class of classifiers with teachers on disjoint shards of the rows."""

    estimator: Any
    memory: Any
    n_jobs: int | None
    verbose: int | Literal["auto"]

    def _check_parameters(self) -> None:
        check_classifier("estimator", self.estimator)
        check_count("n_teachers", self.n_teachers, also=("auto",))
        super()._check_parameters()
        check_memory(self.memory, self.random_state)
        check_n_jobs(self.n_jobs)
        check_verbose(self.verbose)

    def _train_teachers(
        self,
        poll: Callable,
        shards: Sequence[NDArray[np.intp]],
        private: PrivateInputs,
        X_for_teachers: Table,
        representation: BaseEstimator | None,
        seed: int,
        **parameters: Any,
    ) -> tuple[Any, TeacherProblems]:
        """Train a teacher on each shard, and collect its contribution by `poll`."""
        seeds = teacher_seeds(seed, np.arange(len(shards)))
        with phase("training teachers", len(shards)) as advance:
            contributions, problems = poll(
                self._teacher(),
                *private.rows(),
                shards,
                X_for_teachers,
                seeds=seeds,
                representation=representation,
                memory=memory_location(self.memory),
                n_jobs=self.n_jobs,
                verbose=0 if self.verbose == "auto" else self.verbose,
                on_teacher_done=partial(advance, 1),
                **parameters,
            )
        _warn_of(problems)
        return contributions, replace(problems, data=[*private.problems])

    def _teacher(self) -> Any:
        """Return the teacher to be cloned."""
        return as_teacher(self.estimator)

    def _sees_rows_first(self) -> Any:
        # Teachers get the rows that the representation has transformed.
        representation = self._chosen_representation()
        return self._teacher() if representation is None else representation


class QueryingClassifier(TaughtClassifier):
    """Base class of classifiers whose student learns from answers to queries."""

    mechanism: Any
    n_queries: Any
    query_strategy: Any
    release: str
    noise_seed: int | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_queries", self.n_queries, also=("auto",))
        check_noise_seed(self.noise_seed)
        check_strategy(
            self.query_strategy, self.mechanism, self.release, self._unfitted_student()
        )

    def _chosen_mechanism(self) -> Mechanism | MeanScores:
        """Return the mechanism, perhaps without its noise parameters."""
        return as_mechanism(self.mechanism, self.release, self.noise_seed)

    def _set_fitted(
        self,
        plan: TaughtPlan,
        released: dict[str, Any],
        student: BaseEstimator,
        analysis: PrivacyAnalysis | None,
        public_indices: NDArray[np.intp] | None,
        marginals: dict[Any, NDArray[np.int64]] | None = None,
    ) -> Self:
        """Set the fitted attributes, all at once."""
        self.student_ = student
        self.classes_ = plan.public.classes
        self.marginals_ = marginals
        for name, value in released.items():
            setattr(self, name, value)
        self._set_release(plan.release.accounted, plan.statement)
        self.privacy_analysis_ = analysis
        self.public_indices_ = public_indices
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.noise_seed is None
        return tags


def _warn_of(problems: TeacherProblems) -> None:
    if problems:
        warn_user(
            "Some teachers may have warned, or failed and abstained. The details are "
            "sensitive: see teacher_failures and teacher_warnings of "
            "privacy_analysis_.",
            TeacherWarning,
        )

"""Aggregation of votes: noisy answers to queries, and a student of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from sklearn_pate._aggregation._aggregation import Aggregation
from sklearn_pate._aggregation._design import Design, as_query_strategy
from sklearn_pate._aggregation._entry import analyse_votes
from sklearn_pate._aggregation._fit_plan import FitPlan
from sklearn_pate._aggregation._outlook import (
    why_answers_are_noise,
    why_many_queries,
    why_useless,
)
from sklearn_pate._aggregation._prepared_rows import comparable, represent
from sklearn_pate._aggregation._rehearsal import rehearse_student
from sklearn_pate._aggregation._rows import PublicInputs
from sklearn_pate._estimators._class_codes import (
    accepts_unlabeled,
    on_labels,
    scores_of,
)
from sklearn_pate._estimators._isolation import quiet, seeded_globals
from sklearn_pate._estimators._progress import phase
from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers._forms import VoteForm
from sklearn_pate._teachers._training import TeacherProblems
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._fit_entry import FitEntry
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.exceptions import PrivacyUtilityWarning, warn_user
from sklearn_pate.mechanisms import Oracle, Transcript
from sklearn_pate.mechanisms._oracle import VoteCounts
from sklearn_pate.students import (
    QuerySession,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
)
from sklearn_pate.students._train_student import train_student

# "auto": below this fraction of the public rows, representative rows are queried. More
# queries cover the public rows in any case, and random rows are found faster.
_FEW_QUERIES = 0.1
# Answers that a student of others must predict, to be told from noise.
_FEWEST_TESTED = 20


@dataclass(frozen=True)
class Answers:
    """Released answers to queries."""

    #: Public rows, in the order of the queries.
    rows: NDArray[np.intp]
    #: Class indices, -1 for no answer.
    answers: NDArray[np.intp]
    #: All that was released, by rows of the votes.
    transcript: Transcript


@dataclass(frozen=True)
class Queries:
    """Choice of the queries, by public rows and parameters alone."""

    #: The public rows by the representation.
    X_for_teachers: Table
    strategy: QueryStrategy
    #: Fitted on public rows.
    representation: BaseEstimator | None
    #: Public rows as numbers, where the strategy compares them.
    features: NDArray[np.float64] | None


@phase("preparing public rows")
def prepare_queries(X_public: Table, design: Design, seed: int) -> Queries:
    """Prepare the queries, or raise ValueError if the public rows do not allow them."""
    fitted, X_for_teachers = represent(design.representation, X_public, seed)

    def features() -> NDArray[np.float64] | None:
        return comparable(fitted, X_public, X_for_teachers, seed)

    strategy = as_query_strategy(design.query_strategy, design.mechanism)
    compared = None
    if strategy is None:
        few = design.n_queries < _FEW_QUERIES * X_public.shape[0]
        compared = features() if few else None
        strategy = RandomQueries() if compared is None else RepresentativeQueries()
    elif strategy.needs_features:
        compared = features()
        if compared is None:
            raise ValueError(
                f"query_strategy={design.query_strategy!r} compares public rows, but "
                "X_public has text, sparse or missing values; pass representation=, a "
                "transformer to dense numbers, or use 'random'."
            )
    return Queries(X_for_teachers, strategy, fitted, compared)


@dataclass(frozen=True)
class VoteAggregation(Aggregation[Votes, Answers]):
    """Teachers vote; noisy answers to queries leave them; a student learns these."""

    queries: Queries

    @property
    def representation(self) -> BaseEstimator | None:
        """Transformer of the rows of teachers, fitted on public rows."""
        return self.queries.representation

    @property
    def represented(self) -> Table:
        """Public rows that teachers label, transformed by the representation."""
        return self.queries.X_for_teachers

    @property
    def form(self) -> VoteForm:
        """Votes, one for each public row."""
        return VoteForm(self.n_classes)

    def on(self, public: PublicInputs) -> Self:
        """Return the same aggregation on other public rows."""
        queries = prepare_queries(
            public.X_public, self.design, self.seeds.representation
        )
        return replace(self, public=public, queries=queries)

    def fit_plan(self, margins: Sequence[float], rarest: float | None) -> FitPlan:
        """Plan the fit: its noise, its privacy cost, and its label accuracy."""
        return FitPlan.of_votes(
            self.release,
            n_rows=self.n_rows,
            margins=margins,
            few_answers=accepts_unlabeled(self.design.student),
            rarest=rarest,
        )

    def _why_useless(self) -> Iterator[str | None]:
        yield why_useless(
            self.release.mechanism,
            n_teachers=self.release.n_teachers,
            n_queries=self.release.n_queries,
            n_classes=self.n_classes,
            few_answers=accepts_unlabeled(self.design.student),
            n_rows=self.n_rows,
            epsilon=self.release.target,
            delta=self.statement.delta,
            unit=self.public.unit,
        )
        yield why_many_queries(
            self.release.n_queries, self.release.n_teachers, self.design.right_answers
        )

    @property
    def student(self) -> Any:
        """Student, made to learn labels or class indices."""
        soft = self.release.mechanism.releases_histograms
        return on_labels("student", self.design.student, self.public.classes, soft=soft)

    def _rehearse_student(self) -> None:
        for one in self.queries.strategy.classifiers(self.design.student):
            on_labels("query_strategy", one, self.public.classes)
        rehearse_student(
            self.student,
            self.public.X_public,
            n_labeled=self.design.n_queries,
            n_classes=self.n_classes,
            soft=self.release.mechanism.releases_histograms,
            seed=self.seeds.student,
        )

    @property
    def sums(self) -> Callable[[Iterable[Any]], Votes]:
        """Vote counts; a teacher that failed abstains everywhere."""
        n_public = self.represented.shape[0]
        return partial(Votes, n_public=n_public, n_classes=self.n_classes)

    def draw(self, votes: VoteCounts, entry: FitEntry | None) -> Answers:
        """Query the votes: record the cost, draw the noise, release the answers.

        An adaptive query strategy trains the student on the answers so far.
        """
        queries = self.queries
        oracle = Oracle(
            votes,
            self.release.mechanism,
            n_queries=self.release.n_queries,
            entry=entry,
            noise=self.release.noise(),
        )
        with phase("querying", self.release.n_queries) as on_answered:

            def answer(rows: Any, probabilities: Any = None) -> NDArray[np.intp]:
                answers = oracle.answer(rows, probabilities)
                on_answered(len(rows))
                return answers

            session = QuerySession(
                answer,
                self.public.X_public,
                self.student,
                n_classes=self.n_classes,
                classes=self.public.classes,
                n_queries=self.design.n_queries,
                seed=self.seeds.queries,
                features=queries.features,
            )
            queries.strategy.query(session)
        return Answers(session.queried, session.answers, oracle.transcript())

    @phase("training the student")
    def teach(self, released: Answers) -> BaseEstimator:
        """Train a clone of the student on public rows and released answers alone."""
        if not any(self._why_useless()):
            self._warn_of_noise(released)
        return train_student(
            self.student,
            self.public.X_public,
            released.rows,
            released.answers,
            n_classes=self.n_classes,
            seed=self.seeds.student,
            histograms=released.transcript.histograms,
        )

    def _warn_of_noise(self, released: Answers) -> None:
        """Warn if a student trained on half of the answers does not predict the others.

        A student that accepts unlabelled rows is not trained twice, as it has many.
        """
        student, X_public = self.student, self.public.X_public
        rows, answers = released.rows, released.answers
        answered = np.random.RandomState(self.seeds.student).permutation(
            np.flatnonzero(answers >= 0)
        )
        half, rest = np.array_split(answered, 2)
        if (
            accepts_unlabeled(student)
            or len(rest) < _FEWEST_TESTED
            or len(np.unique(answers[half])) < 2
        ):
            return
        try:
            with quiet(), seeded_globals(self.seeds.student):
                fitted = train_student(
                    student,
                    X_public,
                    rows[half],
                    answers[half],
                    n_classes=self.n_classes,
                    seed=self.seeds.student,
                )
                scores = scores_of(
                    fitted, _safe_indexing(X_public, rows[rest]), self.n_classes
                )
        except Exception:
            return  # half of the answers may be too few for the student
        warn_user(why_answers_are_noise(scores, answers[rest]), PrivacyUtilityWarning)

    def attributes(self, released: Answers) -> dict[str, Any]:
        """Return what was released, as fitted attributes."""
        return {
            "representation_": self.queries.representation,
            "query_strategy_": self.queries.strategy,
            "queried_indices_": released.rows,
            "answers_": released.answers,
            "histograms_": released.transcript.histograms,
            "soft_answers_": None,
            "estimate_": None,
        }

    def analyse(
        self,
        votes: Votes,
        released: Answers,
        problems: TeacherProblems,
        entry: FitEntry | None,
    ) -> PrivacyAnalysis:
        """Prepare the privacy cost of these votes, with problems. Sensitive."""
        return analyse_votes(
            self.release,
            votes,
            released.transcript,
            problems,
            adaptive=self.queries.strategy.adaptive,
            in_ledger=entry is not None,
        )

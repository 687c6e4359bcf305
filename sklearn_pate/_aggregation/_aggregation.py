"""Aggregation: what teachers send, what leaves them, and what a student learns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from time import thread_time
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state

from sklearn_pate._aggregation._design import Design, as_query_strategy
from sklearn_pate._aggregation._entry import (
    OF_COUNTS,
    ReleasePlan,
    analyse_release,
    analyse_votes,
)
from sklearn_pate._aggregation._outlook import (
    why_answers_are_noise,
    why_columns_are_lost,
    why_few_public_rows,
    why_many_queries,
    why_one_class,
    why_only_noise,
    why_scores_useless,
    why_useless,
)
from sklearn_pate._aggregation._rehearsal import rehearse_student, rehearse_teacher
from sklearn_pate._aggregation._rows import PublicInputs
from sklearn_pate._estimators._class_codes import (
    accepts_soft_labels,
    accepts_unlabeled,
    on_labels,
    scores_of,
)
from sklearn_pate._estimators._isolation import (
    Seeds,
    quiet,
    seeded_clone,
    seeded_globals,
)
from sklearn_pate._estimators._progress import phase
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._features import cause_of, in_short, quotes_values, remedy_of
from sklearn_pate._teachers._shards import teacher_seeds
from sklearn_pate._teachers._training import (
    Aggregate,
    Form,
    ScoreForm,
    TeacherProblems,
    VoteForm,
    collect,
)
from sklearn_pate._votes._votes import STEPS, TeacherScores, Votes
from sklearn_pate.accounting._ledger import FitEntry
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.exceptions import (
    PrivacyUtilityWarning,
    StudentWarning,
    TeacherWarning,
    warn_user,
)
from sklearn_pate.mechanisms import Oracle, Transcript
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_sum import (
    ClassCounts,
    Estimate,
    StoredSums,
    exceeds_noise,
)
from sklearn_pate.mechanisms._oracle import VoteCounts
from sklearn_pate.students import (
    DistillationClassifier,
    QuerySession,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
    ReweightedClassifier,
    ScoreFunction,
    TableRepresentation,
)
from sklearn_pate.students._basis import ScoreBasis, kept_variance, resolve_threshold
from sklearn_pate.students._queries import numeric_features, standardized_features
from sklearn_pate.students._train_student import train_student

# Seconds in which a transformer is expected to transform one row.
_SLOW = 0.005
# More public rows hardly improve a mean over rows.
_MOST_ROWS = 10_000
Sums = TypeVar("Sums", bound=Aggregate)
Released = TypeVar("Released")
# "auto": below this fraction of the public rows, representative rows are queried. More
# queries cover the public rows in any case, and random rows are found faster.
_FEW_QUERIES = 0.1
# Answers that a student of others must predict, to be told from noise.
_FEWEST_TESTED = 20


@dataclass(frozen=True)
class ScoredRows:
    """Public rows that are scored, and the basis of score models."""

    rows: NDArray[np.intp]
    X_for_teachers: Table
    #: What teachers see, fitted on public rows; None for the columns.
    representation: BaseEstimator | None
    #: What the basis sees, fitted on public rows.
    of_basis: BaseEstimator
    basis: ScoreBasis
    #: Values of the basis, shape (n_rows, n_coordinates).
    values: NDArray[np.float64]
    #: Share of the variance of the represented rows that the basis keeps.
    kept_variance: float = 1.0


def score_rows(
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
    features = finite_features(representation, represented)
    basis = ScoreBasis(max_coordinates, rbf, seed).fit(features[rows])
    values = basis.transform(features[rows])
    return ScoredRows(
        rows,
        _safe_indexing(X_for_teachers, rows),
        fitted,
        of_basis,
        basis,
        values,
        kept_variance(features[rows], values),
    )


def rows_in_order(
    X_public: Table, representation: BaseEstimator, max_coordinates: int
) -> ScoredRows:
    """Compute a basis of represented columns in their order, without a choice."""
    features = representation.transform(X_public)
    basis = ScoreBasis(max_coordinates, rbf=False, in_order=True).fit(features)
    rows, values = np.arange(len(features)), basis.transform(features)
    return ScoredRows(rows, X_public, representation, representation, basis, values)


def represent(
    representation: BaseEstimator | None, X_public: Table, seed: int
) -> tuple[BaseEstimator | None, Table]:
    """Fit a clone of a representation on public rows, and apply it to them."""
    if representation is None:
        return None, X_public
    fitted = seeded_clone(representation, seed)
    try:
        with seeded_globals(seed):
            fitted.fit(deepcopy(X_public), None)  # some insist on a y
        return fitted, fitted.transform(deepcopy(X_public))
    except (TypeError, ValueError) as error:
        failure = f"{type(error).__name__}: {error}"
        chained = None if quotes_values(failure) else error
        remedy = remedy_of(failure, X_public, "representation", representation)
        raise ValueError(
            f"representation={in_short(representation)} fails on the public rows: "
            f"{cause_of(failure)}. {remedy}".rstrip()
        ) from chained


def finite_features(representation: Any, represented: Any) -> NDArray[np.float64]:
    """Return represented public rows as numbers, or raise ValueError."""
    if sp.issparse(represented):
        raise ValueError(
            f"representation={representation!r} makes a sparse matrix of the public "
            "rows; put a TruncatedSVD behind it."
        )
    features = numeric_features(represented)
    if features is None:
        raise ValueError(
            f"representation={representation!r} does not return finite numbers for the "
            "public rows; pass another transformer."
        )
    return features


def seconds_a_row(transform: Callable[[Any], object], rows: Iterable[Any]) -> float:
    """Measure the least processor time that a public row takes.

    Other threads, other processes and the further work of a first call do not count.
    """

    def seconds(row: Any) -> float:
        start = thread_time()
        transform(row)
        return thread_time() - start

    return min(map(seconds, rows))


def warn_if_slow(representation: Any, seconds_a_row: float) -> None:
    """Warn, from public rows, of a transformer that is slow for one row at a time."""
    if seconds_a_row > _SLOW:
        warn_user(
            f"representation={type(representation).__name__}(...) transforms private "
            f"rows one at a time and takes {1000 * seconds_a_row:.0f} ms each: "
            f"{1000 * seconds_a_row:.0f} s for a thousand rows. A TableRepresentation "
            "is faster."
        )


def comparable(
    representation: BaseEstimator | None,
    X_public: Table,
    X_for_teachers: Table,
    seed: int,
) -> NDArray[np.float64] | None:
    """Return public rows as numbers that a query strategy can compare.

    None for text, missing values and sparse matrices.
    """
    if representation is None:
        return standardized_features(X_public, seed)
    return numeric_features(X_for_teachers)


@dataclass(frozen=True)
class Aggregation(ABC, Generic[Sums, Released]):
    """What teachers send, what leaves them, and what a student learns.

    Everything but `private` follows from public rows and public numbers.
    """

    public: PublicInputs
    design: Design
    release: ReleasePlan
    seeds: Seeds
    #: Private rows; None where others trained the teachers.
    private: Any
    #: Private rows of each teacher; their numbers alone on a cluster. Empty where no
    #: teacher is trained here.
    shards: Sequence[Any]

    #: Whether synthetic rows are of all classes equally often: queries are for a
    #: student that learns each class. Otherwise, they are like the private rows.
    equal_classes: ClassVar[bool] = False

    @property
    def statement(self) -> PrivacySpent:
        """Privacy statement, which does not depend on what teachers send."""
        return self.release.statement

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.public.classes)

    @property
    def n_rows(self) -> int | None:
        """Number of private rows, None where it is not public."""
        is_public = self.private is not None and self.public.unit == "row"
        return self.private.n_rows if is_public else None

    @property
    def public_content(self) -> tuple[Any, ...]:
        """All public data that decide the release."""
        return self.public.content

    @property
    def teacher(self) -> Any:
        """Teacher, made to learn labels or class indices."""
        return on_labels("estimator", self.design.teacher, self.public.classes)

    @property
    @abstractmethod
    def representation(self) -> BaseEstimator | None:
        """Transformer of the rows of teachers, fitted on public rows."""

    @property
    @abstractmethod
    def represented(self) -> Table:
        """Public rows that teachers predict, transformed by the representation."""

    @property
    @abstractmethod
    def form(self) -> Form:
        """Form of what a teacher sends."""

    @abstractmethod
    def _why_useless(self) -> Iterable[str | None]:
        """Describe why a student can hardly learn from the release."""

    def warn_if_useless(self) -> None:
        """Warn if a student can hardly learn from the release, by public numbers."""
        for why in (*self._why_useless(), self.why_columns_are_lost):
            warn_user(why, PrivacyUtilityWarning)

    @property
    def why_columns_are_lost(self) -> str | None:
        """Description of columns that features hardly represent; None without any."""
        if self.public.domain is not None:
            return None  # rows of the domain are not like private ones
        return why_columns_are_lost(self.representation)

    def rehearse(self) -> None:
        """Raise ValueError if the student or a teacher fails on public rows."""
        self._rehearse_student()
        if self.shards:
            rehearse_teacher(
                self.teacher,
                self.public.X_public,
                self.represented,
                self.form,
                representation=self.representation,
                n_rows=None if self.n_rows is None else self.n_rows // len(self.shards),
                seed=self.seeds.key,
            )

    @abstractmethod
    def _rehearse_student(self) -> None:
        """Raise ValueError if the student fails on public rows."""

    @property
    @abstractmethod
    def sums(self) -> Callable[[Iterable[Any]], Sums]:
        """Container of what teachers send, made of it; None for one that failed."""

    @abstractmethod
    def draw(self, sums: Sums, entry: FitEntry | None) -> Released:
        """Record the cost, draw the noise, and release what a student learns."""

    @abstractmethod
    def teach(self, released: Released) -> BaseEstimator:
        """Return the student, from public rows and what was released alone."""

    @abstractmethod
    def attributes(self, released: Released) -> dict[str, Any]:
        """Return what was released, as fitted attributes."""

    @abstractmethod
    def analyse(
        self,
        sums: Sums,
        released: Released,
        problems: TeacherProblems,
        entry: FitEntry | None,
    ) -> PrivacyAnalysis:
        """Prepare the privacy cost of these sums, with problems. Sensitive."""


def train_teachers(
    aggregation: Aggregation[Sums, Any],
    *,
    memory: str | None,
    n_jobs: int | None,
    verbose: int,
) -> tuple[Sums, TeacherProblems]:
    """Train a teacher on each shard, and sum what they send. Sensitive."""
    private, n_teachers = aggregation.private, len(aggregation.shards)
    if private.on_cluster:
        # Imported here, as it imports dask.
        from sklearn_pate.distributed._dask_teachers import collect_on_dask

        train = partial(
            collect_on_dask, private=private, given=aggregation.public.X_public
        )
    else:
        train = partial(
            collect,
            X=private.X,
            codes=private.codes,
            memory=memory,
            n_jobs=n_jobs,
            verbose=verbose,
        )
    with phase("training teachers", n_teachers) as advance:
        sums, problems = train(
            aggregation.teacher,
            shards=aggregation.shards,
            X_public=aggregation.represented,
            form=aggregation.form,
            aggregate=aggregation.sums,
            seeds=teacher_seeds(aggregation.seeds.key, np.arange(n_teachers)),
            representation=aggregation.representation,
            on_teacher_done=partial(advance, 1),
        )
    if problems:
        warn_user(
            "Some teachers may have failed and abstained, or issued warnings. The "
            "details are sensitive: see teacher_failures and teacher_warnings of "
            "privacy_analysis_.",
            TeacherWarning,
        )
    return sums, problems


@dataclass(frozen=True)
class Answers:
    """Released answers to queries."""

    #: Public rows, in the order of the queries.
    rows: NDArray[np.intp]
    #: Class indices, -1 for no answer.
    answers: NDArray[np.intp]
    #: All that was released, by rows of the votes.
    transcript: Transcript
    #: Released shares of the classes, None with plain votes.
    shares: NDArray[np.float64] | None


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
    def equal_classes(self) -> bool:  # type: ignore[override]
        """Whether synthetic rows are of all classes equally often, for plain votes."""
        return not self.design.balanced

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
        return VoteForm(self.n_classes, self.design.balanced)

    def on(self, public: PublicInputs) -> Self:
        """Return the same aggregation on other public rows."""
        queries = prepare_queries(
            public.X_public, self.design, self.seeds.representation
        )
        return replace(self, public=public, queries=queries)

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
        queries, noise = self.queries, self.release.noise()
        shares = self._draw_shares(entry, noise) if self.design.balanced else None
        oracle = Oracle(
            votes,
            self.release.mechanism,
            n_queries=self.release.n_queries,
            entry=entry,
            noise=noise,
        )
        with phase("querying", self.release.n_queries) as on_answered:
            session = QuerySession(
                oracle.answer,
                self.public.X_public,
                self.student,
                n_classes=self.n_classes,
                classes=self.public.classes,
                n_queries=self.design.n_queries,
                seed=self.seeds.queries,
                features=queries.features,
                on_answered=on_answered,
            )
            queries.strategy.query(session)
        transcript = oracle.transcript()
        return Answers(session.queried, session.answers, transcript, shares)

    def _draw_shares(
        self, entry: FitEntry | None, noise: NoiseSource
    ) -> NDArray[np.float64]:
        """Release the shares of the classes, unless synthetic rows have them."""
        if self.public.synthetic is not None:
            return self.public.synthetic.marginals.class_shares()
        counts = cast(ClassCounts, self.release.counts)
        class_sum = partial(self.private.class_sum, self.n_classes, STEPS)
        drawn = StoredSums(counts, entry, noise).draw(OF_COUNTS, class_sum)
        return counts.shares(drawn)

    @phase("training the student")
    def teach(self, released: Answers) -> BaseEstimator:
        """Train a clone of the student on public rows and released answers alone."""
        if not any(self._why_useless()):
            self._warn_of_noise(released)
        student = train_student(
            self.student,
            self.public.X_public,
            released.rows,
            released.answers,
            n_classes=self.n_classes,
            seed=self.seeds.student,
            histograms=released.transcript.histograms,
        )
        if released.shares is None:
            return student
        return ReweightedClassifier.with_shares(
            student,
            self.public.X_public,
            released.shares,
            slope=self.design.slope,
            threshold=self.design.threshold,
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
            "class_shares_": released.shares,
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
            # Drawn rows are queries that depend on released counts.
            adaptive=self.queries.strategy.adaptive or self.public.domain is not None,
            in_ledger=entry is not None,
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
        class_sum = partial(self.private.class_sum, self.n_classes)
        noise = self.release.noise()
        estimate = self.release.mechanism.estimate(
            scores, class_sum, self.n_coordinates, entry, noise
        )
        return self._released(estimate)

    def _released(self, estimate: Estimate) -> ReleasedScores:
        """Return the score model of released numbers, and its labels of public rows."""
        scored, coef = self.scored, estimate.shrunk
        full = np.zeros((scored.basis.n_coordinates_, coef.shape[1]))
        full[: len(coef)] = coef
        model = ScoreFunction.of_release(full, scored.of_basis, scored.basis, "linear")
        probabilities = model.probabilities(scored.values)
        model.threshold = resolve_threshold(self.design.threshold, probabilities)
        return ReleasedScores(
            estimate, model, probabilities, model.decide(probabilities)
        )

    def _warn_of_noise(self, released: ReleasedScores) -> None:
        """Warn if released scores are those of noise, or predict one class."""
        estimate, hidden, balanced = released.estimate, None, None
        if self.n_classes == 2 and estimate.shrunk[1:].any():
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
        self._warn_of_noise(released)
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
        max_coordinates=design.mechanism.max_coordinates,
        rbf=design.mechanism.basis == "rbf",
        seed=seed,
    )

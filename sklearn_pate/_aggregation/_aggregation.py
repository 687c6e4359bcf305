"""Aggregation: what teachers send, what leaves them, and what a student learns."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import partial
from time import thread_time
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state

from sklearn_pate._aggregation._design import Design, as_query_strategy, is_table
from sklearn_pate._aggregation._entry import OF_COUNTS, ReleasePlan, analyse_votes
from sklearn_pate._aggregation._outlook import (
    why_answers_are_noise,
    why_columns_are_lost,
    why_many_queries,
    why_useless,
)
from sklearn_pate._aggregation._rehearsal import rehearse_student, rehearse_teacher
from sklearn_pate._aggregation._rows import PublicInputs
from sklearn_pate._estimators._class_codes import on_labels
from sklearn_pate._estimators._isolation import (
    Seeds,
    quiet,
    seeded_clone,
    seeded_globals,
)
from sklearn_pate._estimators._kinds import accepts_unlabeled, keeps_rows_apart
from sklearn_pate._estimators._predictions import scores_of
from sklearn_pate._estimators._progress import phase
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._features import cause_of, in_short, quotes_values, remedy_of
from sklearn_pate._teachers._shards import teacher_seeds
from sklearn_pate._teachers._training import (
    Aggregate,
    Form,
    TeacherProblems,
    VoteForm,
    collect,
    own_copy,
)
from sklearn_pate._votes._votes import STEPS, Votes
from sklearn_pate.accounting._ledger import FitEntry
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.exceptions import PrivacyUtilityWarning, TeacherWarning, warn_user
from sklearn_pate.mechanisms import Oracle, Transcript
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_sum import ClassCounts, StoredSums
from sklearn_pate.mechanisms._oracle import VoteCounts
from sklearn_pate.students import (
    ImageRepresentation,
    ImageStudent,
    QuerySession,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
    ReweightedClassifier,
    TableRepresentation,
)
from sklearn_pate.students._basis import (
    ScoreBasis,
    class_probabilities,
    kept_variance,
    slope_for,
)
from sklearn_pate.students._queries import numeric_features, standardized_features
from sklearn_pate.students._representations import CodeLogOdds
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
# Slope of a student with fewer.
_UNTESTED_SLOPE = 0.1


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
    #: The representation with all its components.
    whole: BaseEstimator | None = None
    #: Share of the variance of the represented rows that the basis keeps.
    kept_variance: float = 1.0


def score_rows(
    X_public: Table,
    representation: BaseEstimator | None,
    *,
    max_coordinates: int,
    rbf: bool,
    seed: int,
    n_components: int | None = None,
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
    own = representation
    if own is None:
        own = TableRepresentation() if is_table(X_public) else ImageRepresentation()
    whole, of_basis, represented = represent_first(own, n_components, X_public, seed)
    fitted, X_for_teachers = of_basis, represented
    if representation is None:
        fitted, X_for_teachers = None, X_public
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
        whole,
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


def with_shared_representation(design: Design, fitted: BaseEstimator | None) -> Design:
    """Let the default student of images use what is fitted on public rows already."""
    student = design.student
    is_without = isinstance(student, ImageStudent) and student.representation is None
    if fitted is None or not is_without:
        return design
    shared = clone(student).set_params(representation=FrozenEstimator(fitted))
    return replace(design, student=shared)


def with_codes(design: Design, log_odds: CodeLogOdds | None) -> Design:
    """Let the teachers and a student see the log-odds of codes, too."""
    if log_odds is None:
        return design
    representation = clone(design.representation).set_params(codes=log_odds)
    student = design.student
    if isinstance(student, Pipeline) and isinstance(student[0], TableRepresentation):
        name, _ = student.steps[0]
        student = clone(student).set_params(**{f"{name}__codes": log_odds})
    return replace(design, representation=representation, student=student)


def represent_first(
    representation: BaseEstimator | None,
    n_components: int | None,
    X_public: Table,
    seed: int,
) -> tuple[BaseEstimator | None, Any, Any]:
    """Fit a representation; return it, and its first components, also of the rows."""
    fitted, represented = represent(representation, X_public, seed)
    if n_components is None or fitted is None:
        return fitted, fitted, represented
    few = copy(cast(ImageRepresentation, fitted))
    few.components_ = few.components_[:, :n_components]
    return fitted, few, np.ascontiguousarray(cast(Any, represented)[:, :n_components])


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


def represented_rows(
    representation: Any, X: Table, n_columns: int, *, by_group: bool
) -> tuple[Callable[[Any], NDArray[np.float64]], int]:
    """Return the representation of some private rows, and how many it refuses.

    Sensitive. It takes indices or a slice. A transformer that is not of this package
    gets one row at a time: it may refuse a row, and the rounding of rows that are
    transformed together may depend on their position, which depends on other groups. A
    refused row is NaN. The representation that is published has had no private row.
    """
    own = own_copy(representation)
    if is_for_all_rows(representation, by_group=by_group):

        def represent(rows: Any) -> NDArray[np.float64]:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                some = own.transform(_safe_indexing(X, rows))
                return np.asarray(some, dtype=np.float64)

        return represent, 0
    represented, n_refused = np.full((X.shape[0], n_columns), np.nan), 0
    with quiet(), np.errstate(all="ignore"):
        for row in range(X.shape[0]):
            try:
                represented[row] = own.transform(_safe_indexing(X, [row]))
            except Exception:
                n_refused += 1
    return represented.__getitem__, n_refused


def is_for_all_rows(representation: Any, *, by_group: bool) -> bool:
    """Check that rows that are transformed together do not affect each other.

    Transformers of this package refuse no row. An image at the same position, where
    rows are the unit, is the same bit by bit; a subclass may compute anything.
    """
    return keeps_rows_apart(representation) or (
        not by_group and type(representation) is ImageRepresentation
    )


def warn_if_slow_alone(representation: Any, X_public: Table, *, by_group: bool) -> None:
    """Warn, from public rows, of a slow transformer of private rows one at a time."""
    if not is_for_all_rows(representation, by_group=by_group):
        few = range(min(5, X_public.shape[0]))
        rows = (_safe_indexing(X_public, [row]) for row in few)
        warn_if_slow(representation, seconds_a_row(representation.transform, rows))


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
    """Warn of a transformer that is slow for one private row at a time."""
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
    def features(self) -> NDArray[np.float64] | None:
        """Array of features of public rows that all sites have to compute alike."""
        return None

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
        return why_columns_are_lost(
            self.representation, counted_columns=self.public.counted_columns
        )

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
                n_rows=self.n_rows and self.n_rows // self.release.n_teachers,
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
    if n_teachers == 0:  # all of them are at the sites
        return aggregation.sums(()), TeacherProblems()
    if private.on_cluster:
        # Imported here, as it imports dask.
        from sklearn_pate._teachers._dask_teachers import collect_on_dask

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
    #: What teachers see, fitted on public rows.
    representation: BaseEstimator | None
    #: Public rows as numbers, where the strategy compares them.
    features: NDArray[np.float64] | None
    #: The representation with all its components.
    whole: BaseEstimator | None


@phase("preparing public rows")
def prepare_queries(X_public: Table, design: Design, seed: int) -> Queries:
    """Prepare the queries, or raise ValueError if the public rows do not allow them."""
    whole, fitted, X_for_teachers = represent_first(
        design.representation, design.n_components, X_public, seed
    )

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
    return Queries(X_for_teachers, strategy, fitted, compared, whole)


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
        """Return the same aggregation on other public rows or features."""
        design = with_codes(self.design, public.log_odds)
        queries = prepare_queries(public.X_public, design, self.seeds.representation)
        return replace(self, public=public, design=design, queries=queries)

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
        """Release the shares of the classes, unless other counts have given them."""
        if self.public.class_shares is not None:
            return self.public.class_shares
        counts = cast(ClassCounts, self.release.counts)
        class_sum = partial(self.private.class_sum, self.n_classes, STEPS)
        drawn = StoredSums(counts, entry, noise).draw(OF_COUNTS, class_sum)
        return counts.shares(drawn)

    @phase("training the student")
    def teach(self, released: Answers) -> BaseEstimator:
        """Train a clone of the student on public rows and released answers alone."""
        X_public, tested = self.public.X_public, self._tested(released)
        if tested is not None and not any(self._why_useless()):
            warn_user(why_answers_are_noise(*tested), PrivacyUtilityWarning)
        student = train_student(
            self.student,
            X_public,
            released.rows,
            released.answers,
            n_classes=self.n_classes,
            seed=self.seeds.student,
            histograms=released.transcript.histograms,
        )
        if released.shares is None:
            return student
        slope = self.design.slope
        if slope is None:
            slope = _UNTESTED_SLOPE
            if tested is not None:
                scores, answers = tested
                slope = slope_for(scores, np.eye(self.n_classes)[answers])
        return ReweightedClassifier.with_shares(
            student,
            class_probabilities(student, X_public, self.n_classes),
            released.shares,
            slope=slope,
            threshold=self.design.threshold,
            share_noise=self._share_noise,
        )

    @property
    def _share_noise(self) -> float:
        """Standard deviation of the noise on a share, where the rows are public."""
        counts = self.release.counts
        if not isinstance(counts, ClassCounts) or self.n_rows is None:
            return 0.0
        return float(counts.noise_scale / self.n_rows)

    def _tested(
        self, released: Answers
    ) -> tuple[NDArray[np.floating], NDArray[np.intp]] | None:
        """Return half of the answers, and scores by a student trained on the others.

        None where answers are too few. A student that accepts unlabelled rows is not
        trained twice, as it has many, unless its slope is needed.
        """
        student, X_public = self.student, self.public.X_public
        rows, answers = released.rows, released.answers
        answered = np.random.RandomState(self.seeds.student).permutation(
            np.flatnonzero(answers >= 0)
        )
        half, rest = np.array_split(answered, 2)
        if (
            (accepts_unlabeled(student) and self.design.slope is not None)
            or len(rest) < _FEWEST_TESTED
            or len(np.unique(answers[half])) < 2
        ):
            return None
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
                tested = _safe_indexing(X_public, rows[rest])
                return scores_of(fitted, tested, self.n_classes), answers[rest]
        except Exception:
            return None  # half of the answers may be too few for the student

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
            # Drawn rows and log-odds of codes depend on released counts.
            adaptive=self.queries.strategy.adaptive or self.public.depends_on_counts,
            in_ledger=entry is not None,
        )

"""Training of teachers, each on its shard, and collection of what they send."""

import os
import secrets
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from traceback import walk_tb
from typing import Any, NoReturn, Protocol, Self, TypeVar

import joblib
import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._class_codes import estimator_hash, fit_class_indices
from sklearn_pate._estimators._isolation import (
    autologging_off,
    kept_globals,
    muted,
    one_thread,
    seed_names,
    seeded_clone,
    this_thread,
    with_seeds,
)
from sklearn_pate._estimators._progress import drop_callbacks
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._odd_values import (
    HUGE,
    INFINITE,
    MISSING,
    odd_rows,
    takes_missing,
)
from sklearn_pate._teachers._forms import Contribution, Form
from sklearn_pate.accounting._value_checks import counted

#: Start of the failure text of a teacher that was trained.
ON_PUBLIC_ROWS = "on X_public, "
_DROPPED = "dropped for missing or infinite values"
# Tasks for each worker: enough of them to share the work and to show progress, and few
# enough that a task of small teachers takes longer than to prepare it.
_TASKS_A_WORKER = 64


@dataclass(frozen=True)
class Shard:
    """Private rows and seed of one teacher, and the file that keeps its result."""

    teacher: int
    X: Table
    codes: NDArray[np.intp]
    seed: int
    file: Path | None = None
    #: Number of rows that were dropped for their values.
    n_dropped: int = 0

    def without(self, is_odd: NDArray[np.bool_]) -> Self:
        """Drop odd rows; return the same shard if there are none."""
        if not np.any(is_odd):
            return self
        rows = np.flatnonzero(~is_odd)
        return replace(
            self,
            X=rows_of(self.X, rows),
            codes=self.codes[rows],
            n_dropped=self.n_dropped + int(np.count_nonzero(is_odd)),
        )


@dataclass(frozen=True)
class TeacherResult:
    """Result of one teacher: its contribution or failure, and its warnings."""

    teacher: int
    #: None of a teacher that failed, or that had no rows.
    contribution: Contribution | None = None
    failure: str | None = None
    warnings: tuple[str, ...] = ()
    n_dropped: int = 0


@dataclass(frozen=True)
class Poll:
    """Inputs that all teachers share."""

    estimator: BaseEstimator
    #: Names of its parameters that are seeded, as each search for them takes time.
    seed_names: Sequence[str]
    form: Form
    X_public: Table
    representation: BaseEstimator | None
    config: dict[str, object]
    polling_thread: tuple[int, int]

    @classmethod
    def by_this_thread(
        cls,
        estimator: BaseEstimator,
        form: Form,
        X_public: Table,
        representation: BaseEstimator | None = None,
    ) -> Self:
        """Collect the inputs in the thread that gets the results."""
        # A clone, so that the callbacks of the user's estimator stay.
        unwatched = drop_callbacks(clone(estimator))
        names = seed_names(unwatched)
        thread = this_thread()
        return cls(
            unwatched, names, form, X_public, representation, get_config(), thread
        )

    @contextmanager
    def isolated(self) -> Iterator[list[warnings.WarningMessage]]:
        """Limit a teacher, catch its warnings, and suppress its output."""
        with (
            one_thread(this_thread() != self.polling_thread),
            autologging_off(),
            muted(),
            # Warnings may quote private rows, as errors may. Filters are global to the
            # process, as generators are: scikit-learn's Parallel, which would pass on
            # its configuration, sets them while other threads run.
            warnings.catch_warnings(record=True) as caught,
            config_context(**self.config),
            # Parallel code inside a teacher would compete with other teachers, and
            # wait for them on a cluster.
            parallel_config(backend="sequential"),
        ):
            warnings.simplefilter("always")
            yield caught

    def without_training(self, shard: Shard) -> TeacherResult | None:
        """Return the result for an empty shard or a single class, else None."""
        codes, contribution = shard.codes, None
        if codes.size:
            if np.any(codes != codes[0]):
                return None
            # Many classifiers refuse a single class.
            contribution = self.form.constant(int(codes[0]), self.X_public.shape[0])
        return TeacherResult(shard.teacher, contribution, n_dropped=shard.n_dropped)


def rows_of(X: Table, rows: Any) -> Any:
    """Return some rows, of an array in C order: a sum in another order rounds so."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X[rows])
    return _safe_indexing(X, rows)


def train_shards(poll: Poll, shards: Iterable[Shard]) -> list[TeacherResult]:
    """Train a teacher on each shard, unless its result is kept in a file."""
    results = []
    # Muted here, too, as the first of nested blocks takes longest.
    with kept_globals() as seed_globals, muted():
        for shard in shards:
            result = _read(shard)
            if result is None:
                result = _train_on_most(poll, shard, seed_globals)
                _keep(result, shard.file)
            results.append(result)
    return results


def _train_on_most(
    poll: Poll, given: Shard, seed_globals: Callable[[int], None]
) -> TeacherResult:
    """Train; if that fails or warns, drop rows whose values may be the reason."""
    first = poll.estimator if poll.representation is None else poll.representation
    shard = _usable_rows(first, given)
    result = poll.without_training(shard)
    if result is not None:
        return result
    failure: str | None = None
    n_rows = shard.codes.size
    try:
        for refused in (0, INFINITE | HUGE, INFINITE | HUGE | MISSING):
            rest = shard
            if refused:
                rest = shard.without(odd_rows(shard.X) & refused > 0)
                # Rows with missing values are dropped only if training fails.
                if rest.codes.size == n_rows or (result and refused & MISSING):
                    continue
                if result and rest.codes.size == 0:
                    break
            n_rows = rest.codes.size
            tried = poll.without_training(rest) or _train(poll, rest, seed_globals)
            if tried.failure is not None:
                failure = failure or tried.failure
                continue
            # Rows are not dropped for a warning that persists without them.
            if result is None or not tried.warnings:
                result = tried
            if refused or not tried.warnings:
                break
    except Exception as error:  # an object of a private row may raise any
        failure = failure or _text_of(error)
    dropped = shard.n_dropped
    return result or TeacherResult(given.teacher, failure=failure, n_dropped=dropped)


def _train(
    poll: Poll, shard: Shard, seed_globals: Callable[[int], None]
) -> TeacherResult:
    """Train a teacher in isolation, read its contribution, and drop it."""
    had_torch = "torch" in sys.modules
    stage = ""
    try:
        with poll.isolated() as caught:
            seed_globals(shard.seed)
            teacher = with_seeds(clone(poll.estimator), poll.seed_names, shard.seed)
            # Copies: a teacher that modifies its rows in place would otherwise pass
            # information from its shard on to later teachers, and fail on a memory map.
            X, codes, X_public = deepcopy((shard.X, shard.codes, poll.X_public))
            own, result = replace(shard, X=X, codes=codes), None
            if poll.representation is not None:
                X = _own(poll.representation).transform(X)
                own = _usable_rows(poll.estimator, replace(own, X=X))
                if own.n_dropped > shard.n_dropped:
                    result = poll.without_training(own)
            if result is None:
                teacher = fit_class_indices(teacher, own.X, own.codes)
                stage = ON_PUBLIC_ROWS
                sent = poll.form.read(teacher, X_public)
                result = TeacherResult(shard.teacher, sent, n_dropped=own.n_dropped)
    except Exception as error:
        return TeacherResult(shard.teacher, failure=stage + _text_of(error))
    if "torch" in sys.modules and not had_torch:
        # The teacher imported torch, too late to seed and limit it: train again.
        return _train(poll, shard, seed_globals)
    texts = tuple(f"{one.category.__name__}: {one.message}" for one in caught)
    return replace(result, warnings=texts)


def _text_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _usable_rows(estimator: Any, shard: Shard) -> Shard:
    """Drop rows of an array with values that an estimator refuses."""
    X = shard.X
    is_array = isinstance(X, np.ndarray) or sp.issparse(X)
    if not is_array or takes_missing(estimator) is not False:
        return shard
    return shard.without(odd_rows(X) & (MISSING | INFINITE) > 0)


def _own(representation: BaseEstimator) -> Any:
    """Copy a representation whose `transform` may keep something of a row."""
    # Not inherited: a subclass may compute anything.
    keeps_no_row = "_keeps_no_row" in vars(type(representation))
    return representation if keeps_no_row else deepcopy(representation)


def _key_of_results(poll: Poll, location: str) -> str:
    """Hash what the results of teachers depend on, beside their shards.

    That is the estimator's parameters (not its code), `X_public`, the form, the
    representation fitted on public rows, and the versions of packages.
    """
    teacher = seeded_clone(poll.estimator, 0), poll.representation
    try:
        of_teacher = estimator_hash(*teacher)
    except Exception as error:
        raise ValueError(
            f"memory={location!r} needs an estimator (and a representation) that can "
            f"be hashed ({error}); define their classes and functions in a module."
        ) from error
    parts = [*teacher, *teacher[0].get_params(deep=True).values()]
    packages = {type(part).__module__.partition(".")[0] for part in parts}
    versions = [
        (name, str(getattr(sys.modules.get(name), "__version__", None)))
        for name in sorted(packages | {"sklearn_pate", "sklearn", "numpy", "scipy"})
    ]
    return joblib.hash((of_teacher, poll.X_public, poll.form, versions))


def _read(shard: Shard) -> TeacherResult | None:
    """Read the kept result of a teacher, None if there is none."""
    if shard.file is not None:
        with suppress(Exception):  # no file, or of another version
            return replace(joblib.load(shard.file), teacher=shard.teacher)
    return None


def _keep(result: TeacherResult, file: Path | None) -> None:
    """Write the result of a teacher that was trained without failure."""
    if file is not None and result.failure is None:
        # Other workers may read it, or write the same.
        temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
        joblib.dump(result, temporary)
        os.replace(temporary, file)


@dataclass
class TeacherProblems:
    """Errors and warnings of teachers, each with the teacher's index. Sensitive.

    Texts may quote private rows, and which teachers failed, and how many, depends on
    them; `repr` shows everything. A failure starts with "on X_public, " if the teacher
    was trained. `dropped` has the number of rows a teacher dropped for missing or
    infinite values. True if a teacher failed or warned.
    """

    failures: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    dropped: list[tuple[int, int]] = field(default_factory=list)

    def add(self, result: TeacherResult) -> None:
        """Add the problems of a teacher."""
        if result.failure is not None:
            self.failures.append((result.teacher, result.failure))
        self.warnings.extend((result.teacher, text) for text in result.warnings)
        if result.n_dropped:
            self.dropped.append((result.teacher, result.n_dropped))

    def sort(self) -> None:
        """Sort all problems by teacher."""
        for problems in (self.failures, self.warnings, self.dropped):
            problems.sort()

    def texts(self) -> list[tuple[int, str]]:
        """List warnings and dropped rows as texts, with the teacher's index."""
        dropped = [
            (teacher, f"{counted(n_rows, 'row')} {_DROPPED}")
            for teacher, n_rows in self.dropped
        ]
        return sorted([*self.warnings, *dropped])

    def __bool__(self) -> bool:
        return bool(self.failures or self.warnings)


def raise_for_no_votes(problems: TeacherProblems) -> NoReturn:
    """Raise an error that explains why no teacher voted. It may quote private rows."""
    failures = problems.failures
    if not failures and problems.dropped:
        raise ValueError(
            f"No teacher had rows to train on: all rows were {_DROPPED}, which "
            "estimator does not accept. Put an imputer inside estimator= and student=, "
            "as in make_pipeline(SimpleImputer(), LogisticRegression()), or leave out "
            "the column with these values."
        )
    if not failures:
        raise ValueError(
            "No teacher cast a vote: no row of y has a label "
            "in classes, or every prediction was out of range. Compare classes with "
            "the labels in y."
        )
    first = failures[0][1]
    if first.startswith(ON_PUBLIC_ROWS):
        where, remedy = "in predict on X_public", ", and then predict on X_public"
    else:
        where, remedy = "in training", ""
    raise ValueError(
        f"All teachers with data failed, the first one {where}. Try estimator.fit on a "
        f"few hundred rows alone{remedy}. Its error (do not publish: it may quote "
        f"private rows): {first.removeprefix(ON_PUBLIC_ROWS)}"
    )


class Aggregate(Protocol):
    """Sum of the contributions of teachers. Sensitive."""

    @property
    def any_cast(self) -> bool:
        """Whether any teacher contributed."""


A = TypeVar("A", bound=Aggregate)


def collect(
    estimator: BaseEstimator,
    X: Table,
    codes: NDArray[np.intp],
    shards: Sequence[NDArray[np.intp]],
    X_public: Table,
    *,
    form: Form,
    aggregate: Callable[[Iterator[Contribution | None]], A],
    seeds: Sequence[int],
    representation: BaseEstimator | None = None,
    memory: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    on_teacher_done: Callable[[], object] | None = None,
) -> tuple[A, TeacherProblems]:
    """Train a teacher on each shard and aggregate the contributions. Sensitive.

    Shards of row indices must be disjoint, and chosen independently of X and y: then
    neighbouring data sets differ in one contribution (Papernot et al. 2017, Section
    2.1). A code of -1 drops a row. Contributions reach `aggregate` in any order, None
    for a failed teacher or an empty shard; fitted teachers are not kept, so that memory
    does not grow with their number. `representation` is fitted on public rows, and
    `X_public` already transformed by it. `seeds` may be public. The times at which
    `verbose` prints and `on_teacher_done` is called are sensitive.
    """
    problems = TeacherProblems()
    # Here, as joblib dispatches tasks from other threads.
    poll = Poll.by_this_thread(estimator, form, X_public, representation)
    folder = None
    if memory is not None:
        key = _key_of_results(poll, memory)
        folder = Path(memory, "sklearn_pate")
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)

    def all_shards() -> Iterator[Shard]:
        for teacher, (rows, seed) in enumerate(zip(shards, seeds, strict=True)):
            rows = rows[codes[rows] >= 0]
            own = rows_of(X, rows), codes[rows]
            # Hashed here, as pickling changes the hashes of some objects.
            file = folder and folder / f"{joblib.hash((key, *own, seed))}.pkl"
            yield Shard(teacher, *own, seed, file)

    def tasks() -> Iterator[Any]:
        n_tasks = _TASKS_A_WORKER * effective_n_jobs(n_jobs)
        rest, n_at_once = all_shards(), max(len(shards) // n_tasks, 1)
        while some := list(islice(rest, n_at_once)):
            yield delayed(train_shards)(poll, some)

    def contributions() -> Iterator[Contribution | None]:
        parallel = {"n_jobs": n_jobs, "verbose": max(verbose - 1, 0)}
        try:
            run = Parallel(return_as="generator_unordered", **parallel)
        except ValueError:  # ray and multiprocessing return all results at the end
            run = Parallel(**parallel)
        for some in run(tasks()):
            for result in some:
                problems.add(result)
                if on_teacher_done is not None:
                    on_teacher_done()
                yield result.contribution

    with one_thread(), _errors_of_backend():
        aggregated = aggregate(contributions())
    problems.sort()  # teachers finish in any order
    if not aggregated.any_cast:
        raise_for_no_votes(problems)
    return aggregated, problems


@contextmanager
def _errors_of_backend() -> Iterator[None]:
    """Raise the error of a task that a joblib backend returned as its result.

    joblib fails on such a result; joblibspark 0.6 returns it.
    """
    try:
        yield
    except TypeError as error:
        found = (
            value
            for frame, _ in walk_tb(error.__traceback__)
            for value in frame.f_locals.values()
            if type(value).__name__ == "_ExceptionWithTraceback"  # private to joblib
        )
        returned = next(found, None)
        if returned is None:
            raise
        raise RuntimeError(
            "joblib's backend could not run the teachers; install the Python and "
            "packages of this process for its workers (for Spark, set PYSPARK_PYTHON). "
            "Its error (do not publish: it may quote private rows): "
            f"{type(returned.exc).__name__}: {returned.exc}"
        ) from returned.exc

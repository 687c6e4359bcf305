"""Training of teachers, each on its shard, and collection of what they send."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from traceback import walk_tb
from typing import Any, NoReturn, Protocol, Self, TypeAlias, TypeVar

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
from sklearn_pate._teachers._forms import Contribution, Form, VoteForm
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._value_checks import counted

#: Contribution, texts of warnings and number of dropped rows of one teacher.
Outcome: TypeAlias = tuple[Any, tuple[str, ...], int]

#: Start of the failure text of a teacher that was trained.
ON_PUBLIC_ROWS = "on X_public, "
_DROPPED = "dropped for missing or infinite values"


@dataclass(frozen=True)
class Poll:
    """Inputs that all teachers share, beside the public rows."""

    estimator: BaseEstimator
    #: Names of its parameters that are seeded, as each search for them takes time.
    seed_names: Sequence[str]
    form: Form
    representation: BaseEstimator | None
    config: dict[str, object]
    polling_thread: tuple[int, int]

    @classmethod
    def by_this_thread(
        cls,
        estimator: BaseEstimator,
        form: Form,
        representation: BaseEstimator | None = None,
    ) -> Self:
        """Collect the inputs in the thread that gets the results."""
        # A clone, so that the callbacks of the user's estimator stay.
        unwatched = drop_callbacks(clone(estimator))
        names = seed_names(unwatched)
        return cls(unwatched, names, form, representation, get_config(), this_thread())

    @property
    def first_step(self) -> Any:
        """First estimator that is applied to private rows."""
        return self.estimator if self.representation is None else self.representation

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


@dataclass(frozen=True)
class Shard:
    """Private rows and seed of one teacher, and the cache slot of its result."""

    teacher: int
    X: Table
    codes: NDArray[np.intp]
    seed: int
    slot: Callable[[Callable[[], Outcome]], Outcome] | None

    def without(self, is_odd: NDArray[np.bool_]) -> Self:
        """Drop odd rows; return the same shard if there are none."""
        if not np.any(is_odd):
            return self
        rows = np.flatnonzero(~is_odd)
        return replace(self, X=rows_of(self.X, rows), codes=self.codes[rows])


@dataclass
class TeacherResult:
    """Result of one teacher: its contribution or failure, and its warnings."""

    teacher: int
    contribution: Contribution | None = None
    failure: str | None = None
    warnings: tuple[str, ...] = ()
    n_dropped: int = 0


class PublicRowsError(Exception):
    """Failure of a trained teacher on public rows."""


def rows_of(X: Table, rows: Any) -> Any:
    """Return some rows, of an array in C order: a sum in another order rounds so."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X[rows])
    return _safe_indexing(X, rows)


def usable_rows(estimator: Any, shard: Shard) -> Shard:
    """Drop rows of an array with values that an estimator refuses."""
    X = shard.X
    is_array = isinstance(X, np.ndarray) or sp.issparse(X)
    if not is_array or takes_missing(estimator) is not False:
        return shard
    return shard.without(odd_rows(X) & (MISSING | INFINITE) > 0)


def result_without_training(
    poll: Poll, X_public: Any, shard: Shard
) -> TeacherResult | None:
    """Return the result for an empty shard or a single class, else None."""
    codes = shard.codes
    if codes.size == 0:
        return TeacherResult(shard.teacher)
    if np.all(codes == codes[0]):  # many classifiers refuse a single class
        return TeacherResult(
            shard.teacher, poll.form.constant(int(codes[0]), X_public.shape[0])
        )
    return None


def warning_texts(caught: Iterable[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return category and text of each warning."""
    return tuple(f"{one.category.__name__}: {one.message}" for one in caught)


@dataclass
class TeacherProblems:
    """Errors and warnings of teachers, each with the teacher's index. Sensitive.

    Texts may quote private rows, and which teachers failed, and how many, depends on
    them; `repr` shows everything. A failure starts with "on X_public, " if the teacher
    was trained. `data` lists private rows and classes that no teacher used; `dropped`
    the number of rows a teacher dropped for missing or infinite values. True if a
    teacher failed or warned.
    """

    failures: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
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
            "No teacher had rows to train on: all of them "
            f"were {_DROPPED}, which estimator does not accept. Put an imputer inside "
            "estimator= and student=, as in make_pipeline(SimpleImputer(), "
            "LogisticRegression()), or leave out the column."
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
        f"few hundred rows alone, with y encoded as class indices{remedy}. Its "
        "error (do not publish: it may quote private rows): "
        f"{first.removeprefix(ON_PUBLIC_ROWS)}"
    )


class TeacherMemory:
    """Cache of the results of one fit's teachers, in a folder shared by all workers.

    Results are stored in a subfolder that only this user can read, by hashes of the
    estimator's parameters (not of its code), `X_public`, the form, the representation
    fitted on public rows, and package versions.
    """

    def __init__(
        self,
        location: str,
        estimator: BaseEstimator,
        X_public: Table,
        form: Form,
        representation: BaseEstimator | None = None,
    ) -> None:
        teacher = seeded_clone(estimator, 0), representation
        try:
            of_teacher = estimator_hash(*teacher)
        except Exception as error:
            raise ValueError(
                f"memory={location!r} needs an estimator (and a representation) that "
                "can be hashed; define its classes and functions in a module "
                f"({error})."
            ) from error
        versions = _versions(*teacher)
        self._location = location
        self._poll = joblib.hash((of_teacher, X_public, form, versions))
        cached = _cached(location)
        if not any(_private(location).rglob("func_code.py")):
            # joblib stores the function's code. Workers that do it at the same time may
            # read an incomplete file, take it for other code, and clear the cache.
            cached.clear(warn=False)

    def of_teacher(self, *parts: object) -> Callable[[Callable[[], Outcome]], Outcome]:
        """Return the cache slot of a teacher: it calls a function the first time only.

        `parts` are hashed in this process: pickling changes the hashes of some objects.
        A function that raises leaves the slot empty.
        """
        return _Slot(self._location, joblib.hash((self._poll, parts)))


@dataclass(frozen=True)
class _Slot:
    location: str
    key: str

    def __call__(self, train: Callable[[], Outcome]) -> Outcome:
        return _cached(self.location)(self.key, train)


def _private(location: str) -> Path:
    folder = Path(location, "joblib", "sklearn_pate")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def _cached(location: str) -> Any:
    _private(location)
    return joblib.Memory(location, verbose=0).cache(_call, ignore=["train"])


def _call(key: str, train: Callable[[], Outcome]) -> Outcome:
    return train()


def _versions(
    teacher: BaseEstimator, representation: BaseEstimator | None
) -> list[tuple[str, str]]:
    """List the versions of the packages used by the teacher."""
    parts = [teacher, *teacher.get_params(deep=True).values(), representation]
    packages = {type(part).__module__.partition(".")[0] for part in parts}
    packages |= {"sklearn_pate", "sklearn", "numpy", "scipy"}
    return [
        (name, str(getattr(sys.modules.get(name), "__version__", None)))
        for name in sorted(packages)
    ]


def train_teachers(
    poll: Poll, X_public: Any, shards: Iterable[Shard]
) -> list[TeacherResult]:
    """Train a teacher on each shard, unless its result is cached."""
    # Muted here, too, as the first of nested blocks takes longest.
    with kept_globals() as seed_globals, muted():
        return [_result(poll, X_public, shard, seed_globals) for shard in shards]


def _result(
    poll: Poll, X_public: Any, shard: Shard, seed_globals: Callable[[int], None]
) -> TeacherResult:
    """Train one teacher, or find out that there is nothing to train."""
    usable = usable_rows(poll.first_step, shard)
    result = result_without_training(poll, X_public, usable)
    if result is None:
        result = TeacherResult(shard.teacher)
        train = partial(_train_on_most, poll, X_public, usable, seed_globals)
        try:
            result.contribution, result.warnings, result.n_dropped = (
                train() if shard.slot is None else shard.slot(train)
            )
        except PublicRowsError as error:
            result.failure = f"{ON_PUBLIC_ROWS}{error}"
        except Exception as error:
            result.failure = f"{type(error).__name__}: {error}"
    result.n_dropped += shard.codes.size - usable.codes.size
    return result


def _train_on_most(
    poll: Poll, X_public: Any, shard: Shard, seed_globals: Callable[[int], None]
) -> Outcome:
    """Train; if that fails or warns, drop rows whose values may be the reason."""
    outcome: Outcome | None = None
    failures: list[Exception] = []
    n_rows = shard.codes.size
    for refused in (0, INFINITE | HUGE, INFINITE | HUGE | MISSING):
        rest = shard
        if refused:
            rest = shard.without(odd_rows(shard.X) & refused > 0)
            # Rows with missing values are dropped only if training fails.
            if rest.codes.size == n_rows or (outcome and refused & MISSING):
                continue
            if outcome and rest.codes.size == 0:
                break
        n_rows = rest.codes.size
        try:
            result = result_without_training(poll, X_public, rest)
            contribution, texts, n_dropped = (
                (result.contribution, (), 0)
                if result
                else _train(poll, X_public, rest, seed_globals)
            )
        except Exception as failure:
            failures.append(failure)
            continue
        # Rows are not dropped for a warning that persists without them.
        if outcome is None or not texts:
            outcome = contribution, texts, n_dropped + shard.codes.size - n_rows
        if refused or not texts:
            break
    if outcome is None:
        raise failures[0]
    return outcome


def _own(representation: BaseEstimator) -> Any:
    """Copy a representation whose `transform` may keep something of a row."""
    # Not inherited: a subclass may compute anything.
    keeps_no_row = "_keeps_no_row" in vars(type(representation))
    return representation if keeps_no_row else deepcopy(representation)


def _train(
    poll: Poll, X_public: Any, shard: Shard, seed_globals: Callable[[int], None]
) -> Outcome:
    """Return the contribution of a teacher, its warnings, and its dropped rows."""
    had_torch = "torch" in sys.modules
    with poll.isolated() as caught:
        seed_globals(shard.seed)
        teacher = with_seeds(clone(poll.estimator), poll.seed_names, shard.seed)
        # Copies: a teacher that modifies its rows in place would otherwise pass
        # information from its shard on to later teachers, and fail on a memory map.
        own_X, own_codes, own_X_public = deepcopy((shard.X, shard.codes, X_public))
        contribution: Contribution | None
        untrained = None
        if poll.representation is not None:
            own_X = _own(poll.representation).transform(own_X)
            own = usable_rows(poll.estimator, replace(shard, X=own_X, codes=own_codes))
            if own.codes.size < own_codes.size:
                untrained = result_without_training(poll, X_public, own)
            own_X, own_codes = own.X, own.codes
        if untrained is None:
            teacher = fit_class_indices(teacher, own_X, own_codes)
            try:
                contribution = poll.form.read(teacher, own_X_public)
            except Exception as error:
                raise PublicRowsError(f"{type(error).__name__}: {error}") from error
        else:
            contribution = untrained.contribution
    if "torch" in sys.modules and not had_torch:
        # The teacher imported torch, too late to seed and limit it: train again.
        return _train(poll, X_public, shard, seed_globals)
    return contribution, warning_texts(caught), shard.codes.size - own_codes.size


class Aggregate(Protocol):
    """Sum of the contributions of teachers. Sensitive."""

    @property
    def any_cast(self) -> bool:
        """Whether any teacher contributed."""


# Tasks for each worker: enough of them to share the work and to show progress, and few
# enough that a task of small teachers takes longer than to prepare it.
_TASKS_A_WORKER = 64

A = TypeVar("A", bound=Aggregate)


def poll_teachers(
    estimator: BaseEstimator,
    X: Table,
    codes: NDArray[np.intp],
    shards: Sequence[NDArray[np.intp]],
    X_public: Table,
    *,
    n_classes: int,
    **parameters: Any,
) -> tuple[Votes, TeacherProblems]:
    """Train a teacher on each shard and count its votes on `X_public`. Sensitive.

    A teacher that failed, or with an empty shard, abstains everywhere; a teacher of a
    single class votes for it. Further parameters are those of `collect`.
    """

    def count(contributions: Iterable[Any]) -> Votes:
        return Votes(
            contributions,
            n_public=X_public.shape[0],
            n_classes=n_classes,
        )

    form = VoteForm(n_classes)
    return collect(
        estimator, X, codes, shards, X_public, form=form, aggregate=count, **parameters
    )


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
    cache = None
    if memory is not None:
        cache = TeacherMemory(memory, estimator, X_public, form, representation)
    # Here, as joblib dispatches tasks from other threads.
    poll = Poll.by_this_thread(estimator, form, representation)

    def all_shards() -> Iterator[Shard]:
        for teacher, (rows, seed) in enumerate(zip(shards, seeds, strict=True)):
            rows = rows[codes[rows] >= 0]
            shard = rows_of(X, rows), codes[rows]
            slot = cache.of_teacher(*shard, seed) if cache else None
            yield Shard(teacher, *shard, seed, slot)

    def tasks() -> Iterator[Any]:
        n_tasks = _TASKS_A_WORKER * effective_n_jobs(n_jobs)
        rest, n_at_once = all_shards(), max(len(shards) // n_tasks, 1)
        while some := list(islice(rest, n_at_once)):
            yield delayed(train_teachers)(poll, X_public, some)

    def contributions() -> Iterator[Contribution | None]:
        for some in _parallel(n_jobs=n_jobs, verbose=max(verbose - 1, 0))(tasks()):
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


def _parallel(**parameters: Any) -> Parallel:
    try:
        return Parallel(return_as="generator_unordered", **parameters)
    except ValueError:  # ray and multiprocessing return all results at the end
        return Parallel(**parameters)


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
            "joblib's backend could not run the teachers; give its workers the Python "
            "and the packages of this process (for Spark, by PYSPARK_PYTHON). Its "
            "error (do not publish: it may quote private rows): "
            f"{type(returned.exc).__name__}: {returned.exc}"
        ) from returned.exc

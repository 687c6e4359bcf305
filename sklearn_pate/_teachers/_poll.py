"""Training of teachers in parallel tasks, of which only the results come back."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from traceback import walk_tb
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers._cache import TeacherMemory
from sklearn_pate._teachers._task import Poll, Shard, rows_of
from sklearn_pate._teachers._teacher_problems import TeacherProblems, raise_for_no_votes
from sklearn_pate._teachers._threads import one_thread
from sklearn_pate._teachers._vote_form import Contribution, Form, VoteForm
from sklearn_pate._teachers._worker import train_teachers
from sklearn_pate._votes._votes import Votes

__all__ = ["collect", "poll_teachers"]


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
    clusters: Any = None,
    **parameters: Any,
) -> tuple[Votes, TeacherProblems]:
    """Train a teacher on each shard and count its votes on `X_public`. Sensitive.

    A teacher that failed, or with an empty shard, abstains everywhere; a teacher of a
    single class votes for it. With `clusters`, teachers vote once a cluster. Further
    parameters are those of `collect`.
    """

    def count(contributions: Iterable[Any]) -> Votes:
        return Votes(
            contributions,
            n_public=X_public.shape[0],
            n_classes=n_classes,
            clusters=None if clusters is None else clusters.of_row,
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

"""Teachers that are trained on the workers of dask, where their rows lie."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
from dask import delayed
from distributed import Client, Future, as_completed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._odd_values import read_like_public
from sklearn_pate._teachers._forms import Form, VoteForm
from sklearn_pate._teachers._training import (
    Poll,
    Shard,
    TeacherProblems,
    TeacherResult,
    raise_for_no_votes,
    rows_of,
    train_shards,
)
from sklearn_pate._votes._sums import ScoreStep, TeacherScores
from sklearn_pate._votes._votes import Votes
from sklearn_pate.distributed._dask_rows import DaskRows, clear_errors, read_pieces

# Partial sums added at once, on one worker.
_FAN_IN = 8

Results = list[TeacherResult]


@dataclass(frozen=True)
class _Task:
    """What all teachers need, beside their rows."""

    poll: Poll
    #: Public rows as they were given, and private rows without any row.
    given: Table
    like: Table
    seeds: Sequence[int]


def collect_on_dask(
    estimator: BaseEstimator,
    private: DaskRows,
    shards: Sequence[Any],
    X_public: Table,
    *,
    form: Form,
    aggregate: Callable[[Iterable[Any]], Any],
    given: Table,
    seeds: Sequence[int],
    representation: BaseEstimator | None,
    on_teacher_done: Callable[[], object],
) -> tuple[Any, TeacherProblems]:
    """Train a teacher on each shard, on the workers. Sensitive.

    Votes are counted there, and the counts reach the client; score functions stay.
    Parameters are those of `collect`. The cluster decides how many teachers are trained
    at once.
    """
    client, n_teachers = private.client(), len(shards)
    poll = Poll.by_this_thread(estimator, form, X_public, representation)
    n_blocks = private.n_blocks(sum(client.nthreads().values()), n_teachers)
    bounds = np.linspace(0, n_teachers, n_blocks + 1).astype(int).tolist()
    # Not scattered: data that were would be lost with their workers.
    task = delayed(
        _Task(poll, given, private.like, seeds),
        name=f"teachers-{uuid4().hex}",
        traverse=False,
    )
    train = delayed(_train_block, pure=False)
    blocks = zip(private.shuffled(bounds), pairwise(bounds), strict=True)
    futures = client.compute([train(pieces, task, *block) for pieces, block in blocks])
    n_of = dict(zip(futures, np.diff(bounds).tolist(), strict=True))
    for future in as_completed(futures):
        if future.status != "finished":
            error = future.exception()
            client.cancel(futures)
            with clear_errors():
                raise error
        for _ in range(n_of[future]):
            on_teacher_done()
    teachers = _Teachers(client, futures, n_teachers)
    sums: Votes | DaskScores
    if isinstance(form, VoteForm):
        counts = teachers.sum(partial(_counts, aggregate=aggregate))
        sums = Votes.of_counts(counts, n_teachers=n_teachers)
    else:
        sums = DaskScores(teachers, aggregate)
    return sums, teachers.problems(any_cast=sums.any_cast)


def _train_block(pieces: Any, task: _Task, first: int, last: int) -> Results:
    """Train the teachers of a block, from the first to before the last."""
    X, codes, shards = read_pieces(pieces, task.like)
    X = read_like_public(X, task.given, refuse=False)

    def shard(teacher: int) -> Shard:
        rows = slice(*np.searchsorted(shards, [teacher, teacher + 1]).tolist())
        return Shard(teacher, rows_of(X, rows), codes[rows], task.seeds[teacher])

    return train_shards(task.poll, map(shard, range(first, last)))


class _Teachers:
    """Results of teachers, on the workers. Sensitive."""

    def __init__(self, client: Client, futures: list[Future], n_teachers: int) -> None:
        self._client = client
        self._futures = futures
        self.n_teachers = n_teachers

    def sum(self, function: Callable[[Results], NDArray[Any]]) -> NDArray[Any]:
        """Add up a function of the results of each block, in a tree of workers."""
        submit = partial(self._client.submit, pure=False)
        parts = [submit(function, one) for one in self._futures]
        while len(parts) > 1:
            parts = [
                submit(_added, parts[first : first + _FAN_IN])
                for first in range(0, len(parts), _FAN_IN)
            ]
        total: NDArray[Any] = parts[0].result()
        return total

    def problems(self, *, any_cast: bool) -> TeacherProblems:
        """Return the errors and warnings of teachers; raise if no one voted."""
        problems = TeacherProblems()
        parts = [self._client.submit(_without_contributions, f) for f in self._futures]
        for results in self._client.gather(parts):
            for result in results:
                problems.add(result)
        problems.sort()
        if not any_cast:
            raise_for_no_votes(problems)
        return problems


def _added(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return np.sum(parts, axis=0)


def _without_contributions(results: Results) -> Results:
    """Leave what the client reports, of those teachers that have something to say."""
    return [
        replace(one, contribution=None)
        for one in results
        if one.failure or one.warnings or one.n_dropped
    ]


def _sums(results: Results, aggregate: Callable[[Iterable[Any]], Any]) -> Any:
    return aggregate(one.contribution for one in results)


def _counts(results: Results, *, aggregate: Any) -> NDArray[np.uint32]:
    votes: Votes = _sums(results, aggregate)
    return votes.counts(np.arange(votes.shape[1])).astype(np.uint32)


class DaskScores(TeacherScores):
    """Score functions of teachers that stay on the workers. Sensitive.

    Only sums of clipped vectors of whole numbers reach the client.
    """

    __slots__ = ("_aggregate", "_teachers")

    def __init__(
        self, teachers: _Teachers, aggregate: Callable[[Iterable[Any]], TeacherScores]
    ) -> None:
        super().__init__((), shape=aggregate(()).shape)
        self._teachers = teachers
        self._aggregate = aggregate

    @property
    def n_teachers(self) -> int:
        """Number of teachers."""
        return self._teachers.n_teachers

    @property
    def any_cast(self) -> bool:
        """Whether any teacher has scores. Sensitive."""
        return bool(self._teachers.sum(partial(_any_cast, aggregate=self._aggregate)))

    def sum(self, step: ScoreStep) -> NDArray[np.int64]:
        """Return the sum of the vectors of a step. Sensitive."""
        add = partial(_step_sum, aggregate=self._aggregate, step=step)
        return self._teachers.sum(add)


def _any_cast(results: Results, *, aggregate: Any) -> NDArray[np.bool_]:
    return np.array(_sums(results, aggregate).any_cast)


def _step_sum(
    results: Results, *, aggregate: Any, step: ScoreStep
) -> NDArray[np.int64]:
    scores: TeacherScores = _sums(results, aggregate)
    return scores.sum(step)

"""Teachers on the workers of dask, where their rows lie. Sensitive."""

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
from dask import dataframe, delayed
from distributed import Client, Future, as_completed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._containers import Table, is_frame
from sklearn_pate._inputs._odd_values import read_like_public
from sklearn_pate._teachers._dask_rows import (
    DaskRows,
    PartitionLabels,
    check_rows,
    clear_errors,
    read,
)
from sklearn_pate._teachers._shards import shard_of, shard_of_hash
from sklearn_pate._teachers._training import (
    Form,
    Poll,
    Shard,
    TeacherProblems,
    TeacherResult,
    VoteForm,
    check_any_sent,
    rows_of,
    train_shards,
)
from sklearn_pate._votes._votes import TeacherScores, Votes

# Pieces travel as bytes: dask's shuffle would change the types of some columns.
_PIECES = pd.DataFrame(
    {
        "block": pd.Series(dtype="int64"),
        "piece": pd.Series(dtype=pd.ArrowDtype(pa.large_binary())),
    }
)
# Bytes of the rows of a block, of which a worker holds a few copies.
_BLOCK_BYTES = 2**26
# Bytes of the rows that are cut at once, unless a partition has more: each task and
# each piece takes some milliseconds, however small.
_CUT_BYTES = 2**24
# Bytes of a value that is not a number, such as text.
_VALUE_BYTES = 64
# Blocks for each thread of a cluster, so that all threads end at about the same time.
_BLOCKS_PER_THREAD = 4
# Partial sums added at once, on one worker.
_FAN_IN = 8
Results = list[TeacherResult]


@dataclass(frozen=True)
class Piece:
    """Rows of some partitions for the teachers of one block, by shard. Sensitive."""

    #: Number of the first of the partitions.
    first: int
    #: Rows of the table, or its columns as the rows of one array.
    X: Any
    codes: NDArray[np.signedinteger]
    shards: NDArray[np.unsignedinteger]


def number_of_blocks(private: DaskRows, n_threads: int, n_teachers: int) -> int:
    """Return the number of blocks of teachers for a cluster, by public numbers."""
    per_row = _bytes_per_row(private.like)
    by_size = -(-private.n_rows * per_row // _BLOCK_BYTES)
    return min(n_teachers, max(by_size, _BLOCKS_PER_THREAD * n_threads))


def shuffled_blocks(private: DaskRows, bounds: Sequence[int]) -> list[Any]:
    """Return the pieces of each block as delayed frames.

    Block b has the shards from ``bounds[b]`` to below ``bounds[b + 1]``. Rows move
    between workers, by dask's own shuffle.
    """
    n_blocks = len(bounds) - 1
    common = delayed(
        _Cut(private.like, private.classes, private.key, np.array(bounds)),
        traverse=False,
    )
    cut = [delayed(_cut)(common, some) for some in _cuts(private, n_blocks)]
    pieces = dataframe.from_delayed(cut, meta=_PIECES, verify_meta=False)
    divisions = [*range(n_blocks), n_blocks - 1]
    by_block = pieces.set_index("block", divisions=divisions, sort=True)
    blocks: list[Any] = by_block.to_delayed()
    return blocks


def _cuts(private: DaskRows, n_blocks: int) -> list[list[tuple[int, int, Any, Any]]]:
    """Join small partitions; list their number, first position, X and labels."""
    joined: list[list[tuple[int, int, Any, Any]]] = []
    most = min(_CUT_BYTES // _bytes_per_row(private.like), private.n_rows // n_blocks)
    position = n_joined = 0
    for number, (part, facts) in enumerate(
        zip(private.parts, private.facts, strict=True)
    ):
        if not joined or n_joined + facts.n_rows > most:
            joined.append([])
            n_joined = 0
        joined[-1].append((number, position, *part))
        position += facts.n_rows
        n_joined += facts.n_rows
    return joined


@dataclass(frozen=True)
class _Cut:
    """What cutting a partition needs to know. Sensitive, as the key may be."""

    like: Table
    classes: NDArray[Any]
    key: int
    bounds: NDArray[np.intp]


def _cut(
    common: _Cut, parts: list[tuple[int, int, Any, PartitionLabels]]
) -> pd.DataFrame:
    """Cut partitions into pieces, one for each block, as bytes."""
    tables, all_codes, all_shards = [], [], []
    for number, first, part, labels in parts:
        table = read(part)
        check_rows(common.like, number, table, labels)
        codes = labels.class_codes(common.classes)
        tables.append(table)
        all_codes.append(codes)
        all_shards.append(_shards(common, first, labels))
    X, codes = _joined(tables), np.concatenate(all_codes)
    shards = np.concatenate(all_shards)
    # Rows keep their order within a shard.
    order = np.argsort(shards, kind="stable")
    order = order[codes[order] >= 0]
    X, codes, shards = _packed(_safe_indexing(X, order)), codes[order], shards[order]
    ends = np.searchsorted(shards, common.bounds)
    kind = np.min_scalar_type(-len(common.classes))
    blocks, pieces = [], []
    for block, (start, end) in enumerate(pairwise(ends)):
        if start < end:
            rows = slice(start, end)
            some = X[:, rows] if _is_packed(X, common.like) else _safe_indexing(X, rows)
            piece = Piece(parts[0][0], some, codes[rows].astype(kind), shards[rows])
            blocks.append(block)
            pieces.append(pickle.dumps(piece, protocol=5))
    return pd.DataFrame(
        {
            "block": np.array(blocks, dtype=np.int64),
            "piece": pd.array(pieces, dtype=_PIECES["piece"].dtype),
        }
    )


def _shards(
    common: _Cut, first: int, labels: PartitionLabels
) -> NDArray[np.unsignedinteger]:
    """Return the shard of each row of a partition, in a small type, to sort fast."""
    n_teachers = int(common.bounds[-1])
    if labels.hashes is None:
        positions = np.arange(first, first + len(labels.codes))
        shards = shard_of(positions, n_teachers, common.key)
    else:
        shards = shard_of_hash(labels.hashes, n_teachers)
    small: NDArray[np.unsignedinteger] = shards.astype(np.min_scalar_type(n_teachers))
    return small


def read_pieces(
    block: pd.DataFrame, like: Table
) -> tuple[Table, NDArray[np.intp], NDArray[np.integer]]:
    """Return the rows of a block's pieces, their class indices and their shards.

    Rows are in the order of their partitions, and within these in their own.
    """
    pieces: list[Piece] = [pickle.loads(one) for one in block["piece"]]
    pieces.sort(key=lambda one: one.first)
    if not pieces:
        nothing = np.zeros(0, dtype=np.intp)
        return like, nothing, nothing
    codes = np.concatenate([one.codes for one in pieces]).astype(np.intp)
    shards = np.concatenate([one.shards for one in pieces])
    order = np.argsort(shards, kind="stable")
    X = _stacked([one.X for one in pieces], like, order)
    return X, codes[order], shards[order]


def _packed(X: Any) -> Any:
    """Return the columns of a frame as one array, if all are numbers of one type.

    Many small frames take long to write and to read.
    """
    if not isinstance(X, pd.DataFrame):
        return X
    types = {*X.dtypes}
    kinds = {one.kind for one in types if isinstance(one, np.dtype)}
    return X.to_numpy().T if len(types) == 1 and kinds and kinds <= {*"biuf"} else X


def _is_packed(X: Any, like: Table) -> bool:
    return isinstance(X, np.ndarray) and isinstance(like, pd.DataFrame)


def _stacked(tables: list[Any], like: Any, order: NDArray[np.intp]) -> Any:
    """Put rows of several tables on top of each other, in some order."""
    if _is_packed(tables[0], like):
        columns = np.concatenate(tables, axis=1)[:, order]
        return pd.DataFrame(columns.T, columns=like.columns, copy=False)
    return _safe_indexing(_joined(tables), order)


def _joined(tables: list[Any]) -> Any:
    """Put tables on top of each other."""
    if len(tables) == 1:
        return tables[0]
    if isinstance(tables[0], pd.DataFrame):
        return pd.concat(tables, ignore_index=True)
    return np.concatenate(tables)


def _bytes_per_row(like: Any) -> int:
    """Estimate the size of a row by the types of its columns."""
    if not is_frame(like):
        return int(np.prod(like.shape[1:])) * like.dtype.itemsize
    return sum(
        one.itemsize if getattr(one, "kind", "O") in "biufmM" else _VALUE_BYTES
        for one in like.dtypes
    )


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
    n_blocks = number_of_blocks(private, sum(client.nthreads().values()), n_teachers)
    bounds = np.linspace(0, n_teachers, n_blocks + 1).astype(int).tolist()
    # Not scattered: data that were would be lost with their workers.
    task = delayed(
        _Task(poll, given, private.like, seeds),
        name=f"teachers-{uuid4().hex}",
        traverse=False,
    )
    train = delayed(_train_block, pure=False)
    blocks = zip(shuffled_blocks(private, bounds), pairwise(bounds), strict=True)
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
    sums: Votes | TeacherScores
    if isinstance(form, VoteForm):
        counts = teachers.sum(partial(_counts, aggregate=aggregate))
        sums = Votes.of_counts(counts, n_teachers=n_teachers)
    else:
        shape = aggregate(()).shape
        n_cast, *total = teachers.sum(partial(_directions, aggregate=aggregate))
        sums = TeacherScores.of_sum(
            np.reshape(total, shape), n_teachers=n_teachers, any_cast=n_cast > 0
        )
    return sums, teachers.problems(form, any_cast=sums.any_cast)


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

    def problems(self, form: Form, *, any_cast: bool) -> TeacherProblems:
        """Return the errors and warnings of teachers; raise if no one voted."""
        problems = TeacherProblems()
        parts = [self._client.submit(_without_contributions, f) for f in self._futures]
        for results in self._client.gather(parts):
            for result in results:
                problems.add(result)
        problems.sort()
        any_sent = bool(self.sum(_any_sent))
        check_any_sent(form, problems, any_cast=any_cast, any_sent=any_sent)
        return problems


def _added(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return np.sum(parts, axis=0)


def _any_sent(results: Results) -> NDArray[np.bool_]:
    return np.array(any(one.contribution is not None for one in results))


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


def _directions(results: Results, *, aggregate: Any) -> NDArray[np.int64]:
    """Return the sum of directions, behind 1 if a teacher has scores, else 0."""
    scores: TeacherScores = _sums(results, aggregate)
    return np.append(int(scores.any_cast), scores.sum())

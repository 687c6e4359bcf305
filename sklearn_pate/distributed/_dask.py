"""Private rows and teachers on the workers of dask, where the rows lie. Sensitive."""

import hashlib
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar
from uuid import uuid4

import dask
import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
from dask import dataframe, delayed
from dask.optimization import cull
from distributed import Client, Future, as_completed, futures_of, get_client
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._containers import Table, column_names
from sklearn_pate._inputs._labels import class_indices
from sklearn_pate._inputs._odd_values import is_frame, read_like_public
from sklearn_pate._teachers._data_problems import DataProblems, as_code
from sklearn_pate._teachers._shards import (
    check_n_rows,
    shard_hashes,
    shard_of,
    shard_of_hash,
    spelled_ids,
)
from sklearn_pate._teachers._training import (
    Form,
    Poll,
    Shard,
    TeacherProblems,
    TeacherResult,
    VoteForm,
    raise_for_no_votes,
    rows_of,
    train_shards,
)
from sklearn_pate._votes._votes import ScoreStep, TeacherScores, Votes, sum_of_classes
from sklearn_pate.accounting._value_checks import counted

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
class PartitionFacts:
    """What the client learns of a partition. Sensitive."""

    n_rows: int
    #: Distinct labels of rows with an id.
    labels: NDArray[Any]
    #: Labels outside of the given classes, as code, and their numbers of these rows.
    others: Counter[str]
    n_without_id: int
    #: Number of rows with a class and an id.
    n_usable: int
    #: The only id of the partition, or none; empty if it has no ids.
    only_id: bytes | None
    #: Hash of all its rows; None where no ledger asks.
    digest: str | None


@dataclass(frozen=True)
class PartitionLabels:
    """Labels and ids of a partition, which stay on its worker. Sensitive."""

    facts: PartitionFacts
    #: Index of each label in `labels` of the facts, -1 without an id.
    codes: NDArray[np.signedinteger]
    #: Hash of the index of the rows, in their order; None for arrays.
    index: str | None
    #: Keyed hashes of ids, and which rows have one; None where rows are the unit.
    hashes: NDArray[np.uint32] | None
    has_id: NDArray[np.bool_]

    def class_codes(self, classes: NDArray[Any]) -> NDArray[np.intp]:
        """Return the class index of each row; -1 without a class or an id."""
        codes = np.full(len(self.codes), -1)
        of_label = class_indices(self.facts.labels, classes)
        codes[self.has_id] = of_label[self.codes[self.has_id]]
        return codes


@dataclass(frozen=True)
class Piece:
    """Rows of some partitions for the teachers of one block, by shard. Sensitive."""

    #: Number of the first of the partitions.
    first: int
    #: Rows of the table, or its columns as the rows of one array.
    X: Any
    codes: NDArray[np.signedinteger]
    shards: NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class DaskRows:
    """Private rows in partitions on a cluster, for teachers alone. Sensitive."""

    #: Partitions of X, and their labels and ids, as delayed objects.
    parts: Sequence[tuple[Any, Any]]
    #: A table without rows, with the columns and types of X.
    like: Table
    classes: NDArray[Any]
    facts: Sequence[PartitionFacts]
    #: Key of the shards.
    key: int
    has_groups: bool
    #: Rows and classes that are not learned from.
    problems: DataProblems
    public_indices: None = None
    on_cluster: ClassVar[bool] = True

    @staticmethod
    def client() -> Client:
        """Return the running client, or raise ValueError."""
        try:
            return get_client()
        except ValueError:
            raise ValueError(
                "X is a dask collection, but no dask client is running; start one: "
                "dask.distributed.Client(n_workers=2, threads_per_worker=1)."
            ) from None

    @property
    def n_rows(self) -> int:
        """Number of private rows."""
        return sum(one.n_rows for one in self.facts)

    def shards(self, n_teachers: int, key: int) -> range:
        """List the shards, to which workers assign rows by the same `key`."""
        if not self.has_groups:
            check_n_rows(self.n_rows, n_teachers)
        return range(n_teachers)

    def class_sum(self, n_classes: int, longest: int) -> NDArray[np.int64]:
        """Add up vectors of at most this length, by class. Sensitive.

        Groups are told apart by a hash: two with the same one have one vector, so that
        either of them moves the sum by no more than a group alone.
        """
        client = self.client()
        read = delayed(_classes_of_units)
        found = client.gather(
            client.compute([read(labels, self.classes) for _, labels in self.parts])
        )
        units, codes, n_rows = np.concatenate(found).T
        return sum_of_classes(
            codes, units if self.has_groups else None, n_rows, n_classes, longest
        )

    def content(self) -> tuple[Any, ...] | None:
        """Return everything about the private rows, for a keyed fingerprint.

        None where no ledger asked for hashes.
        """
        digests = [one.digest for one in self.facts]
        return None if None in digests else ("dask", digests, self.classes)

    def n_blocks(self, n_threads: int, n_teachers: int) -> int:
        """Return the number of blocks of teachers for a cluster, by public numbers."""
        per_row = _bytes_per_row(self.like)
        by_size = -(-self.n_rows * per_row // _BLOCK_BYTES)
        return min(n_teachers, max(by_size, _BLOCKS_PER_THREAD * n_threads))

    def shuffled(self, bounds: Sequence[int]) -> list[Any]:
        """Return the pieces of each block as delayed frames.

        Block b has the shards from ``bounds[b]`` to below ``bounds[b + 1]``. Rows move
        between workers, by dask's own shuffle.
        """
        n_blocks = len(bounds) - 1
        common = delayed(
            _Cut(self.like, self.classes, self.key, np.array(bounds)), traverse=False
        )
        cut = [delayed(_cut)(common, some) for some in self._cuts(n_blocks)]
        pieces = dataframe.from_delayed(cut, meta=_PIECES, verify_meta=False)
        divisions = [*range(n_blocks), n_blocks - 1]
        by_block = pieces.set_index("block", divisions=divisions, sort=True)
        blocks: list[Any] = by_block.to_delayed()
        return blocks

    def _cuts(self, n_blocks: int) -> list[list[tuple[int, int, Any, Any]]]:
        """Join small partitions; list their number, first position, X and labels."""
        joined: list[list[tuple[int, int, Any, Any]]] = []
        most = min(_CUT_BYTES // _bytes_per_row(self.like), self.n_rows // n_blocks)
        position = n_joined = 0
        for number, (part, facts) in enumerate(
            zip(self.parts, self.facts, strict=True)
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
        _check_rows(common.like, number, table, labels)
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


def rows_like(X: Any) -> Table:
    """Return a table without rows that has the columns and types of a collection."""
    if hasattr(X, "columns"):
        like: Table = X._meta
        return like
    if X.ndim < 2 or not isinstance(X._meta, np.ndarray):
        raise ValueError(
            f"X is a dask array of {X.ndim} dimensions and chunks of type "
            f"{type(X._meta).__name__}; pass rows in numpy arrays, of shape (n_rows, "
            "n_features)."
        )
    return np.empty((0, *X.shape[1:]), dtype=X.dtype)


class Unread:
    """A partition that is read inside the task that needs it."""

    def __init__(self, tasks: dict[Any, Any], key: Any) -> None:
        self._tasks = tasks
        self._key = key

    def read(self) -> Any:
        """Read the partition, in this thread."""
        return dask.get(self._tasks, self._key)


def read(part: Any) -> Any:
    """Return a partition that may be unread."""
    return part.read() if isinstance(part, Unread) else part


def partitions(name: str, values: Any) -> list[Any]:
    """Return the partitions of a dask collection, delayed or unread."""
    if not hasattr(values, "__dask_graph__"):
        raise ValueError(
            f"{name} is of type {type(values).__name__}, but X is a dask collection; "
            "pass both as dask collections with the same partitions."
        )
    if hasattr(values, "rechunk"):  # an array, which may be cut along its columns, too
        values = values.rechunk(dict.fromkeys(range(1, values.ndim), -1))
        return _unread(list(values.to_delayed().ravel()))
    # Optimised further, a collection that reads few columns would join partitions.
    return _unread(list(values.simplify().to_delayed(optimize_graph=False)))


def _unread(parts: list[Any]) -> list[Any]:
    """Make partitions unread, if no task of one is needed by another.

    This spares the scheduler several tasks for each partition.
    """
    graph = parts[0].__dask_graph__()
    layers = getattr(graph, "layers", {}).values()
    if futures_of(parts[0]) or any(one.annotations for one in layers):
        return parts
    tasks = dict(graph)
    of_parts = [cull(tasks, [part.key])[0] for part in parts]
    is_shared = len(set().union(*of_parts)) < sum(map(len, of_parts))
    if is_shared:
        return parts
    return [Unread(own, part.key) for own, part in zip(of_parts, parts, strict=True)]


def read_labels_of(
    like: Table,
    classes: NDArray[Any] | None,
    key: int,
    number: int,
    X: Any,
    y: Any,
    groups: Any,
) -> PartitionLabels:
    """Read the labels and ids of a partition; with X, hash all of it."""
    X, y, groups = read(X), read(y), read(groups)
    values = np.asarray(y)
    codes, has_id = np.full(len(values), -1), np.ones(len(values), dtype=bool)
    hashes, only_id = None, None
    if groups is not None:
        texts, has_id = spelled_ids(groups)
        if len(texts) != len(codes):
            raise _differ(number, "y", len(codes), "groups", len(texts))
        _check_index(number, "groups", _index_of(groups), _index_of(y))
        hashes = shard_hashes(texts, key)
        present = texts[has_id]
        if np.all(present == present[:1]):
            only_id = bytes(present[0]) if present.size else b""
    # A row without an id is not learned from, and adds no label.
    codes[has_id], labels = pd.factorize(values[has_id], use_na_sentinel=False)
    usable = has_id.copy()
    if classes is not None:
        usable[has_id] = (class_indices(labels, classes) >= 0)[codes[has_id]]
    n_of_label = np.bincount(codes[has_id & ~usable], minlength=len(labels))
    facts = PartitionFacts(
        len(codes),
        labels,
        Counter({as_code(labels[k]): int(n) for k, n in enumerate(n_of_label) if n}),
        int(np.count_nonzero(~has_id)),
        int(np.count_nonzero(usable)),
        only_id,
        None if X is None else joblib.hash((X, y, groups)),
    )
    kind = np.min_scalar_type(-len(labels) - 1)
    read_labels = PartitionLabels(
        facts, codes.astype(kind), _index_of(y), hashes, has_id
    )
    if X is not None:
        _check_rows(like, number, X, read_labels)
    return read_labels


def _classes_of_units(
    labels: PartitionLabels, classes: NDArray[Any]
) -> NDArray[np.int64]:
    """Count the rows of each group, or of all, by class: hash, index and number."""
    codes = labels.class_codes(classes)
    units = np.zeros(len(codes)) if labels.hashes is None else labels.hashes
    pairs = np.stack([units, codes], axis=1).astype(np.int64)[codes >= 0]
    pairs, n_rows = np.unique(pairs, axis=0, return_counts=True)
    return np.column_stack([pairs, n_rows])


def facts_of(labels: PartitionLabels) -> PartitionFacts:
    """Return what the client learns."""
    return labels.facts


def _check_rows(like: Table, number: int, X: Any, labels: PartitionLabels) -> None:
    """Raise ValueError unless a partition of X is as announced, and has its labels."""
    where = f"Partition {number} of X"
    names, expected = column_names(X), column_names(like)
    is_like = type(X) is type(like) and X.shape[1:] == like.shape[1:]
    if not is_like or names != expected:
        raise ValueError(
            f"{where} has other columns than the collection; read all files with the "
            "same columns, in the same order."
        )
    for name, found, wanted in _types(X, like):
        if found != wanted:
            raise ValueError(
                f"{where} has type {found} in {name}, but the collection has "
                f"{wanted}; convert it by astype, or categories by categorize."
            )
    if X.shape[0] != len(labels.codes):
        raise _differ(number, "X", X.shape[0], "y", len(labels.codes))
    _check_index(number, "X", _index_of(X), labels.index)


def _index_of(values: Any) -> str | None:
    """Return a hash of the index of a partition; None for arrays."""
    if not isinstance(values, (pd.DataFrame, pd.Series)):
        return None
    if isinstance(values.index, pd.RangeIndex):
        return repr(values.index)
    hashes = pd.util.hash_pandas_object(values.index).to_numpy()
    return hashlib.sha256(hashes).hexdigest()


def _check_index(number: int, name: str, found: str | None, of_y: str | None) -> None:
    """Raise ValueError if rows of one partition are not in the order of y."""
    if found != of_y and found is not None and of_y is not None:
        raise ValueError(
            f"Partition {number} has another index, or another order of rows, in "
            f"{name} than in y; make both from one collection, and persist it first "
            "if its rows were sorted, shuffled or merged."
        )


def _differ(number: int, one: str, n_one: int, other: str, n_other: int) -> ValueError:
    return ValueError(
        f"Partition {number} has {counted(n_one, 'row')} in {one} and {n_other} in "
        f"{other}; make both from one collection."
    )


@contextmanager
def clear_errors() -> Iterator[None]:
    """Name the cause of an error that dask raised while it read a partition."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(
            f"A partition could not be read ({type(error).__name__}: {error}); give "
            "all partitions the columns and types of their collection."
        ) from error


def _types(X: Any, like: Any) -> list[tuple[str, Any, Any]]:
    if not is_frame(X):
        return [("its rows", X.dtype, like.dtype)]
    return [
        (f"column {name!r}", one, other)
        for name, one, other in zip(X.columns, X.dtypes, like.dtypes, strict=True)
    ]


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

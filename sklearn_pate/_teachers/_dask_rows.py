"""Private rows in partitions on the workers of dask, where they lie. Sensitive."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import dask
import joblib
import numpy as np
import pandas as pd
from dask import delayed
from dask.optimization import cull
from distributed import Client, futures_of, get_client
from numpy.typing import NDArray

from sklearn_pate._inputs._containers import Table, column_names, is_frame
from sklearn_pate._inputs._labels import check_label_type, class_indices, read_classes
from sklearn_pate._inputs._odd_values import read_like_public
from sklearn_pate._teachers._private_rows import (
    DataProblems,
    as_code,
    check_any_usable,
    problems_of_labels,
)
from sklearn_pate._teachers._shards import (
    ONE_GROUP,
    check_n_rows,
    shard_hashes,
    spelled_ids,
)
from sklearn_pate._votes._votes import sum_of_classes, sum_of_units
from sklearn_pate.accounting._statement import LABEL_SET, LABEL_SET_READ, Assumption
from sklearn_pate.accounting._value_checks import counted


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
class DaskRows:
    """Private rows in partitions on a cluster, for teachers alone. Sensitive."""

    #: Partitions of X, and their labels and ids, as delayed objects.
    parts: Sequence[tuple[Any, Any]]
    #: A table without rows, with the columns and types of X.
    like: Table
    classes: NDArray[Any]
    label_set: Assumption
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

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        groups: Any,
        *,
        like: Table,
        classes: NDArray[Any] | None,
        key: int,
        hashed: bool,
    ) -> Self:
        """Read labels and groups on the workers, once; with `hashed`, also X.

        `like` is the table without rows. Numbers of rows and labels reach the client.
        """
        client = cls.client()
        if classes is not None:
            check_label_type(getattr(y, "_meta", y), classes)
        of_X = partitions("X", X)
        others = []
        for name, values in (("y", y), ("groups", groups)):
            if name == "groups" and values is None:
                others.append([None] * len(of_X))
                continue
            of_values = partitions(name, values)
            if len(of_values) != len(of_X):
                raise ValueError(
                    f"X has {counted(len(of_X), 'partition')} and {name} has "
                    f"{len(of_values)}; create both from one collection."
                )
            others.append(of_values)
        read_part = partial(delayed(read_labels_of), delayed(like), classes, key)
        # Labels and ids are small, and stay on the workers.
        labels = client.persist(
            [
                read_part(number, part if hashed else None, *of_part)
                for number, (part, *of_part) in enumerate(
                    zip(of_X, *others, strict=True)
                )
            ]
        )
        with clear_errors():
            facts: list[PartitionFacts] = client.gather(
                client.compute([delayed(facts_of)(one) for one in labels])
            )
        found = [one.labels for one in facts if one.labels.size]
        seen = np.concatenate(found) if found else np.zeros(0)
        label_set, unseen = LABEL_SET_READ, np.zeros(0)
        if classes is None:
            classes, _ = read_classes(seen)
        else:
            label_set, unseen = LABEL_SET, classes[~np.isin(classes, seen)]
        problems = problems_of_labels(
            classes.tolist(),
            unseen.tolist(),
            sum((one.others for one in facts), Counter()),
            sum(one.n_without_id for one in facts),
        )
        return cls(
            list(zip(of_X, labels, strict=True)),
            like,
            classes,
            label_set,
            facts,
            key,
            groups is not None,
            DataProblems(problems),
        )

    def check_usable(self) -> None:
        """Raise ValueError if no row can be learned from, or all are of one group."""
        check_any_usable(
            any(one.n_usable for one in self.facts),
            self.classes,
            of_groups=self.has_groups,
        )
        only_ids = {one.only_id for one in self.facts} - {b""}
        if self.has_groups and len(only_ids) == 1 and None not in only_ids:
            raise ValueError(ONE_GROUP)

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

    def value_sum(
        self,
        values_of: Callable[[Table, NDArray[np.intp]], NDArray[np.int64]],
        X_public: Table,
    ) -> int:
        """Add up a whole number of each row, or the mean of each group. Sensitive.

        Groups are told apart by a hash, as in `class_sum`.
        """
        client = self.client()
        common = delayed((values_of, X_public, self.like, self.classes), traverse=False)
        compute = delayed(_values_of_units)
        tasks = [
            compute(common, number, X, labels)
            for number, (X, labels) in enumerate(self.parts)
        ]
        with clear_errors():
            found = client.gather(client.compute(tasks))
        units, values = np.concatenate(found).T
        return sum_of_units(values, units if self.has_groups else None)

    def content(self) -> tuple[Any, ...] | None:
        """Return everything about the private rows, for a keyed fingerprint.

        None where no ledger asked for hashes.
        """
        digests = [one.digest for one in self.facts]
        return None if None in digests else ("dask", digests, self.classes)


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
        check_rows(like, number, X, read_labels)
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


def _values_of_units(
    common: tuple[Any, ...], number: int, X: Any, labels: PartitionLabels
) -> NDArray[np.int64]:
    """Compute the whole number of each row of a partition, behind its unit."""
    values_of, X_public, like, classes = common
    X = read(X)
    check_rows(like, number, X, labels)
    codes = labels.class_codes(classes)
    values = values_of(read_like_public(X, X_public, refuse=False), codes)
    units = np.zeros(len(codes)) if labels.hashes is None else labels.hashes
    return np.stack([units.astype(np.int64), values], axis=1)[codes >= 0]


def facts_of(labels: PartitionLabels) -> PartitionFacts:
    """Return what the client learns."""
    return labels.facts


def check_rows(like: Table, number: int, X: Any, labels: PartitionLabels) -> None:
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

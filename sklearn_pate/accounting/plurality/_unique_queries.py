"""Vote counts of queries, with equal queries grouped."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._value_checks import check_not_masked

__all__ = [
    "LARGEST_COUNT",
    "Batch",
    "UniqueQueries",
    "check_counts",
    "distinct_rows",
]

#: Largest number of votes for a class: with noise, sums in int64 and float64 are exact.
LARGEST_COUNT = 2**31 - 1

# Size of the largest temporary array, which limits the memory.
_BLOCK_SIZE = 2_000_000


def distinct_rows(
    rows: NDArray[Any],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first index of each distinct row, and the distinct row of each row.

    Distinct rows are in lexicographic order. Sorts one number per row.
    """
    rng = np.random.default_rng(0)
    odd = (2 * rng.integers(2**62, size=(rows.shape[1], 1)) + 1).ravel().tolist()
    keys = np.zeros(len(rows), dtype=np.uint64)
    for column, multiplier in zip(rows.T, odd, strict=True):
        # Small whole numbers as floats differ in the high bits only.
        bits = column.astype(np.float64).view(np.uint64)
        keys += (bits ^ (bits >> np.uint64(43))) * np.uint64(multiplier)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if any(np.any(column[first][inverse] != column) for column in rows.T):
        # Two different rows have the same key, which is very unlikely.
        _, first, inverse = np.unique(
            rows, axis=0, return_index=True, return_inverse=True
        )
        return first, inverse.reshape(-1)
    order = np.lexsort(rows[first].T[::-1])
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return first[order], place[inverse]


@dataclass(frozen=True)
class Batch:
    """Distinct vectors of counts with the same number of levels of equal classes.

    `index` are their indices among the distinct vectors. The other arrays have shape
    (n_vectors, n_levels): the vote count of each level, not decreasing; its number of
    classes; and its score, the count minus expected votes, for the maximum in a check.
    """

    index: NDArray[np.intp]
    values: NDArray[np.float64]
    sizes: NDArray[np.float64]
    scores: NDArray[np.float64]


class UniqueQueries:
    """List of queries, with equal sorted counts grouped.

    `expected` are votes to subtract from the counts, of shape (n_queries, n_classes),
    for the scores. Attribute `vector_of_query` is the index of each query's distinct
    vector, and `repeats` the number of queries of each vector.
    """

    def __init__(
        self, counts: NDArray[np.float64], expected: NDArray[np.float64] | None
    ) -> None:
        self._n_classes = counts.shape[1]
        self._has_scores = expected is not None
        # Whole votes in 32 bits: a million queries fit into little memory.
        key = counts.astype(np.int32)
        if expected is None:
            key = np.sort(key, axis=1)
        else:
            scores = counts - expected
            order = np.lexsort((scores, counts), axis=1)
            key = np.concatenate(
                [
                    np.take_along_axis(table, order, axis=1)
                    for table in (counts, scores)
                ],
                axis=1,
            )
        first, self.vector_of_query = distinct_rows(key)
        self._vectors = key[first]
        self.repeats = np.bincount(self.vector_of_query)

    def batches(self, points_per_move: int) -> Iterator[Batch]:
        """Iterate over the distinct vectors in batches of limited memory.

        `points_per_move` is the approximate number of floats per move.
        """
        starts = self._starts(self._vectors)
        n_levels = starts.sum(axis=1)
        for n in np.unique(n_levels):
            same = np.flatnonzero(n_levels == n)
            at_once = max(1, _BLOCK_SIZE // (points_per_move * (int(n) + 1) ** 2))
            for first in range(0, len(same), at_once):
                block = same[first : first + at_once]
                at = np.nonzero(starts[block])[1].reshape(-1, n)
                ends = np.append(at, np.full((len(block), 1), self._n_classes), axis=1)
                vectors = self._vectors[block].astype(np.float64)
                offset = self._n_classes if self._has_scores else 0
                yield Batch(
                    index=block,
                    values=np.take_along_axis(vectors, at, axis=1),
                    sizes=np.diff(ends).astype(np.float64),
                    scores=np.take_along_axis(vectors, at + offset, axis=1),
                )

    def levels_of(
        self,
        counts: NDArray[np.float64],
        expected: NDArray[np.float64] | None,
    ) -> NDArray[np.intp]:
        """Return the level of each class of each query in the query's vector."""
        scores = counts if expected is None else counts - expected
        order = np.lexsort((scores, counts), axis=1)
        starts = self._starts(self._vectors)[self.vector_of_query]
        levels = np.empty(counts.shape, dtype=np.intp)
        np.put_along_axis(levels, order, np.cumsum(starts, axis=1) - 1, axis=1)
        return levels

    def _starts(self, vectors: NDArray[Any]) -> NDArray[np.bool_]:
        """Mark the first class of each level of equal classes."""
        n = self._n_classes
        starts = np.ones((len(vectors), n), dtype=bool)
        starts[:, 1:] = np.diff(vectors[:, :n]) != 0
        if self._has_scores:
            starts[:, 1:] |= np.diff(vectors[:, n:]) != 0
        return starts


def check_counts(counts: ArrayLike) -> NDArray[np.float64]:
    """Return vote counts as a float64 array, or raise."""
    check_not_masked("counts", counts)
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise ValueError(
            f"counts has shape {counts.shape}; pass one row per query and one column "
            "per class, with at least two classes."
        )
    if counts.dtype.kind not in "biuf":
        raise ValueError(
            f"counts has dtype {counts.dtype}; pass whole numbers of votes, at most "
            f"{LARGEST_COUNT}."
        )
    whole = counts.dtype.kind != "f"
    if not (whole or np.all(np.isfinite(counts))):
        raise ValueError("counts holds NaN or infinity; pass whole numbers of votes.")
    if np.any(counts < 0) or not (whole or np.all(counts == np.rint(counts))):
        raise ValueError(
            "counts holds a negative or fractional number; pass whole numbers of votes."
        )
    if np.any(counts > LARGEST_COUNT):
        raise ValueError(
            f"counts holds a number above {LARGEST_COUNT}, the largest number of votes "
            "that is supported; pass numbers of teachers."
        )
    return counts.astype(np.float64)

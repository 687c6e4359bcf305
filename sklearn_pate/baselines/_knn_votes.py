"""Votes of the nearest private rows in a fresh sample for each query."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.mechanisms._poisson_sampled import PoissonSampler

__all__ = ["Grid", "NeighbourVotes"]

# Largest whole numbers that are exact in float64 and in float32.
_EXACT, _EXACT_STORED = 2**53, 2**24
_LARGEST = float(np.finfo(np.float64).max)
# Distances computed at once, and rows with coordinates in memory as float64.
_N_DISTANCES, _N_ROWS = 2**22, 2**12


@dataclass(frozen=True)
class Grid:
    """Whole numbers in place of features, for exact distances.

    `centre` and `reach` are the middle and half the side of a box, `largest` bounds the
    whole numbers; with `angular`, rows are projected on a sphere first, for the cosine.

    The proof of privacy needs distances that depend on two rows alone. Those of
    floating-point matrix products do not: the last bits of a row depend on the number
    of rows before it, so that adding one row could reorder others at nearly the same
    distance, and change more votes than the proof allows.

    Here, each coordinate becomes a whole number by operations on that number alone,
    rounded as IEEE 754 specifies. There are n_features of them, each at most c in size,
    with 4 n_features c^2 <= 2^53. So every product, sum and partial sum of a squared
    distance x.x - 2 x.p + p.p is a whole number that float64 holds exactly, in whatever
    order they are added.

    The box is twice as wide as the widest column of the public rows; rows beyond it are
    moved to its border. It depends on public rows, and has no privacy cost. For the
    cosine, each row is first divided by its own largest number, then rounded, then
    divided by its own length, the square root of a whole number.
    """

    centre: NDArray[np.float64]
    reach: float
    largest: int
    angular: bool

    @classmethod
    def around(cls, features: NDArray[np.float64], *, angular: bool = False) -> "Grid":
        """Choose a grid for finite public rows, as fine as exact sums allow.

        With a thousand features, the spacing is a millionth of the box.
        """
        n_features = features.shape[1]
        largest = min(math.isqrt(_EXACT // (4 * n_features)), _EXACT_STORED)
        if angular:
            return cls(np.zeros(n_features), 1.0, largest, angular)
        low, high = features.min(axis=0), features.max(axis=0)
        reach = 2 * min(float((high / 2 - low / 2).max()), _LARGEST / 2)
        # If all columns are constant, the range is 0.
        return cls(low / 2 + high / 2, reach or 1.0, largest, angular)

    def points(self, features: NDArray[np.float64]) -> NDArray[np.float32]:
        """Convert finite rows to whole numbers, each from that row alone."""
        if self.angular:
            longest = np.abs(features).max(axis=1, keepdims=True)
            points = self._round(features / np.where(longest > 0, longest, 1.0))
            # Their squares add up exactly, in any order.
            lengths = np.sqrt((points**2).sum(axis=1, keepdims=True))
            points = self._round(points / np.maximum(lengths, 1.0))
        else:
            with np.errstate(over="ignore"):  # overflow is clipped
                points = self._round((features - self.centre) / self.reach)
        return points.astype(np.float32)

    def _round(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Round numbers in units of the reach to the grid."""
        return np.rint(np.clip(shares, -1.0, 1.0) * self.largest)


class NeighbourVotes:
    """Votes of the nearest private rows on public rows. Sensitive.

    Each query draws a fresh sample. Like :class:`~sklearn_pate.Votes`, this is for a
    mechanism only, is not shown by `repr`, and cannot be pickled or copied.

    `points` are private rows on a :class:`Grid`, in the order of the private data,
    `queries` public rows on the same grid. `unit_of_row` has the group of each row, in
    an order of the groups that does not depend on which others there are; None makes
    each row a unit.

    **Sensitivity.** Let T be the rows in the sample of a query, ordered by their exact
    distance to it, equally distant ones by their position in the data. The order of two
    rows depends on these two alone, wherever a third one is added or removed. The first
    k of T vote. If x joins T, then either x is not among the first k, and nothing
    changes; or it is, and adds a vote, and the row that was k-th before (if T had k
    rows) loses its vote. So at most one vote is added and one removed: the counts move
    by 2 in the L1 and by sqrt 2 in the L2 norm, for every T.

    A group takes part as a whole, by the nearest of its rows, the first of them if
    several are; this depends on the group alone. Groups are ordered by the distance of
    that row, equally distant ones by their ids as strings. So the same holds for a
    group that is added or removed with all its rows.
    """

    __slots__ = (
        "_codes",
        "_n_classes",
        "_n_neighbors",
        "_norms",
        "_points",
        "_queries",
        "_sampler",
        "_starts",
        "_unit_of_row",
    )

    def __init__(
        self,
        points: NDArray[np.float32],
        codes: NDArray[np.intp],
        unit_of_row: NDArray[np.intp] | None,
        queries: NDArray[np.float32],
        *,
        n_neighbors: int,
        n_classes: int,
        sampler: PoissonSampler,
    ) -> None:
        if unit_of_row is not None:
            # Sorted by group, in the order of the data within each.
            order = np.argsort(unit_of_row, kind="stable")
            points, codes, unit_of_row = points[order], codes[order], unit_of_row[order]
            self._starts = np.flatnonzero(np.diff(unit_of_row, prepend=-1))
        else:
            self._starts = np.arange(len(points))
        self._points = points
        self._norms = np.concatenate([(part**2).sum(axis=1) for part in self._parts()])
        self._codes = codes
        self._unit_of_row = unit_of_row
        self._queries = queries
        self._n_neighbors = n_neighbors
        self._n_classes = n_classes
        self._sampler = sampler

    @property
    def shape(self) -> tuple[int, int]:
        """Largest number of votes on a query, and number of queries."""
        return self._n_neighbors, len(self._queries)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._n_classes

    def counts(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Draw a fresh sample for each query, and count its votes.

        A repeated query draws another sample, at another cost. A row of counts sums to
        the number of neighbours, or to the size of a smaller sample.
        """
        indices = np.asarray(indices, dtype=np.intp)
        at_once = max(1, _N_DISTANCES // len(self._points))
        counts = [
            self._count(distances)
            for start in range(0, len(indices), at_once)
            for distances in self._distances(indices[start : start + at_once])
        ]
        return np.array(counts, dtype=np.int64).reshape(-1, self._n_classes)

    def _parts(self) -> Iterator[NDArray[np.float64]]:
        """Yield the coordinates, a block of rows at a time."""
        for start in range(0, len(self._points), _N_ROWS):
            yield self._points[start : start + _N_ROWS].astype(np.float64)

    def _distances(self, indices: NDArray[np.intp]) -> NDArray[np.float64]:
        """Compute squared distances of all rows, less the squared norm of the query."""
        queries = self._queries[indices].astype(np.float64)
        products = np.hstack([queries @ part.T for part in self._parts()])
        return self._norms - 2 * products

    def _count(self, distances: NDArray[np.float64]) -> NDArray[np.intp]:
        """Count the votes of a fresh sample on one query."""
        nearest, codes = distances, self._codes
        if self._unit_of_row is not None:
            nearest = np.minimum.reduceat(distances, self._starts)
            first = np.flatnonzero(distances == nearest[self._unit_of_row])
            _, of_unit = np.unique(self._unit_of_row[first], return_index=True)
            codes = self._codes[first[of_unit]]
        sample = np.flatnonzero(self._sampler.draw(len(nearest)))
        voters = sample[_first(nearest[sample], self._n_neighbors)]
        return np.bincount(codes[voters], minlength=self._n_classes)

    def __repr__(self) -> str:
        n_neighbors, n_queries = self.shape
        return f"NeighbourVotes(<private>, {n_neighbors=}, {n_queries=})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "NeighbourVotes are sensitive and cannot be pickled or copied; publish "
            "answers only."
        )


def _first(distances: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Return the positions of the k smallest distances, ties in order of position."""
    if len(distances) <= k:
        return np.arange(len(distances))
    farthest = np.partition(distances, k - 1)[k - 1]
    nearer = np.flatnonzero(distances < farthest)
    equal = np.flatnonzero(distances == farthest)
    return np.concatenate([nearer, equal[: k - len(nearer)]])

"""Votes of the nearest private rows, out of a fresh sample for every query."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.mechanisms._poisson_sampled import PoissonSampler

__all__ = ["Grid", "NeighbourVotes"]

# Whole numbers beyond this are no longer exact in float64, and in float32.
_EXACT, _EXACT_STORED = 2**53, 2**24
_LARGEST = float(np.finfo(np.float64).max)
# Distances computed at once, and rows whose coordinates are in memory as float64.
_N_DISTANCES, _N_ROWS = 2**22, 2**12


@dataclass(frozen=True)
class Grid:
    """Whole numbers in place of features, between which distances are exact.

    Parameters
    ----------
    centre : ndarray of shape (n_features,)
        The middle of the box.

    reach : float
        Half the length of its sides; 1 for the cosine.

    largest : int
        Coordinates lie between this number and its negative.

    angular : bool
        Whether rows are projected on a sphere first, for the cosine.

    Notes
    -----
    **Why.** The proof of privacy needs distances that depend on two rows alone. Those
    that floating-point matrix products compute do not: a row's last bits depend on how
    many rows stand before it, so that adding one row could reorder others that are
    nearly equally far, and turn more votes than are paid for.

    Here, each coordinate becomes a whole number by operations on that number alone,
    each rounded as IEEE 754 says. There are n_features of them and each is at most c in
    size, 4 n_features c^2 <= 2^53. So every product, sum and partial sum of a squared
    distance x.x - 2 x.p + p.p is a whole number that float64 holds exactly, in
    whichever order they are added.

    The box is twice as long as the widest column of the public rows: what lies beyond
    is moved to its border. It is chosen by public rows, and costs no privacy. For the
    cosine, each row is first divided by its own largest number, then rounded, then
    divided by its own length, which is the square root of a whole number.
    """

    centre: NDArray[np.float64]
    reach: float
    largest: int
    angular: bool

    @classmethod
    def around(cls, features: NDArray[np.float64], *, angular: bool = False) -> "Grid":
        """Choose a grid for public rows.

        Parameters
        ----------
        features : ndarray of shape (n_public, n_features)
            Public rows, finite.

        angular : bool, default=False
            Whether only the direction of a row counts.

        Returns
        -------
        grid : Grid
            As fine as exact arithmetic allows: a millionth of the box for a thousand
            features, and finer for fewer.
        """
        n_features = features.shape[1]
        largest = min(math.isqrt(_EXACT // (4 * n_features)), _EXACT_STORED)
        if angular:
            return cls(np.zeros(n_features), 1.0, largest, angular)
        low, high = features.min(axis=0), features.max(axis=0)
        reach = 2 * min(float((high / 2 - low / 2).max()), _LARGEST / 2)
        # All columns may be constant.
        return cls(low / 2 + high / 2, reach or 1.0, largest, angular)

    def points(self, features: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return rows as whole numbers.

        Parameters
        ----------
        features : ndarray of shape (n_rows, n_features)
            Rows, finite.

        Returns
        -------
        points : ndarray of float32 of shape (n_rows, n_features)
            Each made of that row alone.
        """
        if self.angular:
            longest = np.abs(features).max(axis=1, keepdims=True)
            points = self._round(features / np.where(longest > 0, longest, 1.0))
            # Their squares add up exactly, in any order.
            lengths = np.sqrt((points**2).sum(axis=1, keepdims=True))
            points = self._round(points / np.maximum(lengths, 1.0))
        else:
            with np.errstate(over="ignore"):  # what is beyond all numbers is clipped
                points = self._round((features - self.centre) / self.reach)
        return points.astype(np.float32)

    def _round(self, shares):
        return np.rint(np.clip(shares, -1.0, 1.0) * self.largest)


class NeighbourVotes:
    """What the nearest private rows say about public rows. Sensitive.

    Each query is put to a fresh sample. Like :class:`~sklearn_pate.Votes`, this is
    handed out to a mechanism only, is not shown by `repr`, and cannot be pickled or
    copied.

    Parameters
    ----------
    points : ndarray of float32 of shape (n_rows, n_features)
        Private rows on a :class:`Grid`, in the order of the private data.

    codes : ndarray of int of shape (n_rows,)
        Class indices in ``range(n_classes)``.

    unit_of_row : ndarray of int of shape (n_rows,) or None
        The group of each row, in ``range(n_groups)``, in an order of the groups that
        does not depend on which others there are. None means that each row is on its
        own.

    queries : ndarray of float32 of shape (n_queries, n_features)
        Public rows on the same grid.

    n_neighbors : int
        How many rows (or groups) vote.

    n_classes : int
        Number of classes.

    sampler : PoissonSampler
        Who draws the samples.

    Notes
    -----
    **Sensitivity.** Let T be the rows in the sample of a query, and order them by
    their exact distance to it, equally distant ones by their place in the data. What
    comes first of two rows depends on these two alone, wherever a third one is added or
    removed. The first k of T vote. If x joins T, then either x is not among the first
    k, and nothing changes; or it is, and casts a vote, and the row that was k-th before
    (if T had k rows) loses its own. So at most one vote is cast and one withdrawn: the
    counts move by 2 in the L1 and by sqrt 2 in the L2 norm, for every T.

    A group takes part as a whole, by the nearest of its own rows, the first of them if
    several are; that is a matter of this group alone. Groups are ordered by the
    distance of that row, equally distant ones by their spelled ids. So the same holds
    for a group that is added or removed with all its rows.
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
            # One group after the other, each in its own order.
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
        """Number of votes that a query can get, and number of queries."""
        return self._n_neighbors, len(self._queries)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._n_classes

    def counts(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Draw a fresh sample for each query, and count its votes.

        Parameters
        ----------
        indices : array-like of int of shape (n_queries,)
            Queries. One that is asked again gets another sample, and must be paid
            for again.

        Returns
        -------
        counts : ndarray of int64 of shape (n_queries, n_classes)
            Votes per class. A row sums to the number of neighbours, unless the sample
            was smaller.
        """
        indices = np.asarray(indices, dtype=np.intp)
        at_once = max(1, _N_DISTANCES // len(self._points))
        counts = [
            self._count(distances)
            for start in range(0, len(indices), at_once)
            for distances in self._distances(indices[start : start + at_once])
        ]
        return np.array(counts, dtype=np.int64).reshape(-1, self._n_classes)

    def _parts(self):
        """Yield the coordinates, some rows at a time."""
        for start in range(0, len(self._points), _N_ROWS):
            yield self._points[start : start + _N_ROWS].astype(np.float64)

    def _distances(self, indices):
        """Return squared distances of all rows, but for the length of the query."""
        asked = self._queries[indices].astype(np.float64)
        products = np.hstack([asked @ part.T for part in self._parts()])
        return self._norms - 2 * products

    def _count(self, distances):
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

    def __repr__(self):
        n_neighbors, n_queries = self.shape
        return f"NeighbourVotes(<private>, {n_neighbors=}, {n_queries=})"

    def __reduce_ex__(self, protocol):
        raise TypeError(
            "NeighbourVotes are sensitive and cannot be pickled or copied; publish "
            "answers only."
        )


def _first(distances, k):
    """Return the places of the k smallest distances, equal ones by their place."""
    if len(distances) <= k:
        return np.arange(len(distances))
    farthest = np.partition(distances, k - 1)[k - 1]
    nearer = np.flatnonzero(distances < farthest)
    equal = np.flatnonzero(distances == farthest)
    return np.concatenate([nearer, equal[: k - len(nearer)]])

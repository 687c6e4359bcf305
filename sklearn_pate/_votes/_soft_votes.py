"""Sums of soft votes of teachers on public rows, in whole numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["STEPS", "SoftVoteLayout", "SoftVotes"]

#: Whole numbers stand for multiples of the clipping bound over this.
STEPS = 1024


@dataclass(frozen=True)
class SoftVoteLayout:
    """Where things are in the vector that each teacher sends.

    First, for each group of public rows, a value for each class: a *part*, whose L2
    norm is at most the clipping bound. Then, if a hint is sent, how alike each pair of
    groups is: the upper triangle of a symmetric matrix without its diagonal, line by
    line, whose norm is at most sqrt(n_hint_parts) times the clipping bound.

    Parameters
    ----------
    n_groups : int
        Number of groups of public rows.

    n_classes : int
        Number of classes.

    n_hint_parts : int, default=0
        How many parts the hint is charged like; 0 for no hint.

    Notes
    -----
    **Sensitivity.** A vector v has whole, non-negative numbers, v.v <= P^2 in all
    with P^2 = (n_groups + n_hint_parts) STEPS^2, which `SoftVotes` checks in
    exact arithmetic before it adds v. If one teacher's v becomes v', the sum moves by
    v' - v, of squared length v.v + v'.v' - 2 v.v' <= 2 P^2, as no product of two
    coordinates is negative. That is reached, by vectors that share no class, so there
    is nothing to gain. A teacher that says nothing sends zeros: it is P away at most.
    """

    n_groups: int
    n_classes: int
    n_hint_parts: int = 0

    @property
    def n_parts(self) -> int:
        """Number of parts that are charged for.

        Returns
        -------
        n_parts : int
            The hint included.
        """
        return self.n_groups + self.n_hint_parts

    @property
    def size(self) -> int:
        """Length of the vector.

        Returns
        -------
        size : int
            Values of groups, and pairs of them for a hint.
        """
        n_pairs = self.n_groups * (self.n_groups - 1) // 2
        return self.n_groups * self.n_classes + n_pairs * (self.n_hint_parts > 0)

    def check(self, vectors: NDArray[np.integer]) -> None:
        """Raise unless vectors are within the bounds that the cost is computed for.

        Parameters
        ----------
        vectors : ndarray of int of shape (n_queries, size)
            What one teacher says.

        Raises
        ------
        ValueError
            If they are something else.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.size:
            raise ValueError(
                f"Knowledge has shape {vectors.shape}; pass vectors of {self.size} "
                "numbers."
            )
        if vectors.dtype.kind not in "iu" or np.any(vectors < 0):
            raise ValueError(
                "Knowledge must be whole numbers, none of them negative; the cost of "
                "their sum depends on it."
            )
        # Larger ones, or their squares, would not fit.
        if np.any(vectors > STEPS * (1 + self.n_hint_parts)):
            raise ValueError(_TOO_LONG)
        of_groups, hint = self.split(vectors.astype(np.int64) ** 2)
        too_long = np.any(of_groups.sum(axis=2) > STEPS**2) or np.any(
            hint.sum(axis=1) > self.n_hint_parts * STEPS**2
        )
        if too_long:
            raise ValueError(_TOO_LONG)

    def split(self, vectors: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Split vectors into values by group, and the hint.

        Parameters
        ----------
        vectors : ndarray of shape (n_queries, size)
            One teacher's, or noisy sums.

        Returns
        -------
        of_groups : ndarray of shape (n_queries, n_groups, n_classes)
            A value for each class.

        hint : ndarray of shape (n_queries, n_pairs)
            Empty without a hint.
        """
        of_groups, hint = np.split(vectors, [self.n_groups * self.n_classes], axis=1)
        return of_groups.reshape(-1, self.n_groups, self.n_classes), hint

    def similarities(self, hint: NDArray[Any]) -> NDArray[np.float64]:
        """Write a hint as a symmetric matrix.

        Parameters
        ----------
        hint : ndarray of shape (n_pairs,)
            Upper triangle, line by line.

        Returns
        -------
        similarities : ndarray of shape (n_groups, n_groups)
            With zeros on its diagonal.
        """
        matrix = np.zeros((self.n_groups, self.n_groups))
        matrix[np.triu_indices(self.n_groups, 1)] = hint
        return matrix + matrix.T


_TOO_LONG = (
    "Knowledge is longer than its clipping bound; the cost of the sum depends on it."
)


class SoftVotes:
    """The sum of what teachers say of groups of public rows. Sensitive.

    Like :class:`~sklearn_pate.Votes`, it is handed out to a mechanism only, is not
    shown by `repr`, and cannot be pickled or copied.

    Parameters
    ----------
    contributions : iterable of (ndarray of int of shape (n_queries, size) or None)
        One a teacher; None says nothing.

    layout : SoftVoteLayout
        Where things are in them, and how long they may be.

    n_queries : int, default=1
        How many vectors a teacher sends. A fit has one query: everything at once.

    Raises
    ------
    ValueError
        If a contribution is beyond its bounds.
    """

    __slots__ = ("_n_teachers", "_sums", "layout")

    layout: SoftVoteLayout
    _n_teachers: int
    _sums: NDArray[np.int64]

    def __init__(
        self,
        contributions: Iterable[NDArray[np.integer] | None],
        *,
        layout: SoftVoteLayout,
        n_queries: int = 1,
    ) -> None:
        self.layout = layout
        self._sums = np.zeros((n_queries, layout.size), dtype=np.int64)
        self._n_teachers = 0
        for vectors in contributions:
            self._n_teachers += 1
            if vectors is not None:
                layout.check(vectors)
                self._sums += vectors.astype(np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of teachers, and number of queries."""
        return self._n_teachers, len(self._sums)

    @property
    def n_classes(self) -> int:
        """Number of values that a query has."""
        return self.layout.size

    @property
    def any_cast(self) -> bool:
        """Whether anybody said anything. Sensitive."""
        return bool(self._sums.any())

    def counts(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Return sums.

        Parameters
        ----------
        indices : array-like of int of shape (n_queries,)
            Queries.

        Returns
        -------
        sums : ndarray of int64 of shape (n_queries, size)
            Sensitive.
        """
        return self._sums[np.asarray(indices, dtype=np.intp)]

    def content(self) -> tuple[Any, ...]:
        """Return everything about the knowledge, for a keyed fingerprint.

        Returns
        -------
        content : tuple
            Sensitive.
        """
        return self._sums, self._n_teachers

    def __repr__(self):
        n_teachers, n_queries = self.shape
        return f"SoftVotes(<private>, {n_teachers=}, {n_queries=})"

    def __reduce_ex__(self, protocol):
        raise TypeError(
            "Knowledge is sensitive and cannot be pickled or copied; publish what a "
            "mechanism releases only."
        )

"""Sums of soft votes of teachers on public batches, in whole numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["STEPS", "SoftVoteLayout", "SoftVotes"]

#: Soft votes are in units of the clipping bound divided by this.
STEPS = 1024


@dataclass(frozen=True)
class SoftVoteLayout:
    """Layout of the vector of soft votes of each teacher.

    First, for each public batch, a value for each class: a *part*, whose L2 norm is at
    most the clipping bound. Then, with a hint, the similarity of each pair of batches:
    the upper triangle of a symmetric matrix without its diagonal, line by line, whose
    norm is at most sqrt(n_hint_parts) times the clipping bound.

    **Sensitivity.** A vector v has whole, non-negative numbers, v.v <= P^2 in all
    with P^2 = (n_batches + n_hint_parts) STEPS^2, which `SoftVotes` checks in
    exact arithmetic before it adds v. If one teacher's v becomes v', the sum moves by
    v' - v, of squared length v.v + v'.v' - 2 v.v' <= 2 P^2, as no product of two
    coordinates is negative. The bound is reached by vectors that share no class, so it
    cannot be improved. A teacher without soft votes adds zeros: it is P away at most.
    """

    n_batches: int
    n_classes: int
    n_hint_parts: int = 0

    @property
    def n_parts(self) -> int:
        """Number of parts that are charged, the hint included."""
        return self.n_batches + self.n_hint_parts

    @property
    def size(self) -> int:
        """Length of the vector."""
        n_pairs = self.n_batches * (self.n_batches - 1) // 2
        return self.n_batches * self.n_classes + n_pairs * (self.n_hint_parts > 0)

    def check(self, vectors: NDArray[np.integer]) -> None:
        """Raise ValueError unless vectors are within the bounds of the privacy cost.

        `vectors` are those of one teacher, of shape (n_queries, size).
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.size:
            raise ValueError(
                f"Soft votes have shape {vectors.shape}; pass vectors of {self.size} "
                "numbers."
            )
        if vectors.dtype.kind not in "iu" or np.any(vectors < 0):
            raise ValueError(
                "Soft votes must be non-negative integers, which the privacy cost of "
                "their sum assumes; round and clip them."
            )
        # Larger numbers, or their squares, would overflow.
        if np.any(vectors > STEPS * (1 + self.n_hint_parts)):
            raise ValueError(_TOO_LONG)
        of_batches, hint = self.split(vectors.astype(np.int64) ** 2)
        if np.any(of_batches.sum(axis=2) > STEPS**2) or np.any(
            hint.sum(axis=1) > self.n_hint_parts * STEPS**2
        ):
            raise ValueError(_TOO_LONG)

    def split(self, vectors: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Split vectors into values by batch and class, and the hint."""
        of_batches, hint = np.split(vectors, [self.n_batches * self.n_classes], axis=1)
        return of_batches.reshape(-1, self.n_batches, self.n_classes), hint

    def similarities(self, hint: NDArray[Any]) -> NDArray[np.float64]:
        """Write a hint as a symmetric matrix, with zeros on its diagonal."""
        matrix = np.zeros((self.n_batches, self.n_batches))
        matrix[np.triu_indices(self.n_batches, 1)] = hint
        return matrix + matrix.T


_TOO_LONG = (
    "Soft votes are longer than the clipping bound, which the privacy cost of their "
    "sum assumes; clip them."
)


class SoftVotes:
    """Sum of the soft votes of teachers on public batches. Sensitive.

    Like :class:`~sklearn_pate.Votes`, it is passed to a mechanism only, is not shown by
    `repr`, and cannot be pickled or copied. `contributions` has the vectors of each
    teacher, of shape (n_queries, size), or None; a fit has one query.
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
        """Whether any teacher sent soft votes. Sensitive."""
        return bool(self._sums.any())

    def counts(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Return the sums of some queries. Sensitive."""
        return self._sums[np.asarray(indices, dtype=np.intp)]

    def content(self) -> tuple[Any, ...]:
        """Return all data of the sum, for a keyed fingerprint. Sensitive."""
        return self._sums, self._n_teachers

    def __repr__(self) -> str:
        n_teachers, n_queries = self.shape
        return f"SoftVotes(<private>, {n_teachers=}, {n_queries=})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "Soft votes are sensitive and cannot be pickled or copied; publish what a "
            "mechanism releases only."
        )

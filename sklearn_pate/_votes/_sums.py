"""Sums of teachers' votes and score functions in whole numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

#: Soft votes are in units of the clipping bound divided by this.
STEPS = 1024


class SensitiveSums:
    """Base class of sums of what teachers send, which stay in their process.

    They are passed to a mechanism only, are not shown by `repr`, and cannot be pickled
    or copied.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        n_teachers = self.n_teachers  # type: ignore[attr-defined]
        return f"{type(self).__name__}(<private>, {n_teachers=})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} is sensitive and cannot be pickled or copied; "
            "publish only what a mechanism releases."
        )


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
                "Soft votes must be non-negative integers, as the privacy cost of "
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
    "Soft votes are longer than the clipping bound that the privacy cost of their sum "
    "assumes; clip them."
)


class SoftVotes(SensitiveSums):
    """Sum of the soft votes of teachers on public batches. Sensitive.

    `contributions` has the vector of each teacher, of shape (1, size), or None.
    """

    __slots__ = ("_sum", "layout", "n_teachers")

    layout: SoftVoteLayout
    n_teachers: int
    _sum: NDArray[np.int64]

    def __init__(
        self,
        contributions: Iterable[NDArray[np.integer] | None],
        *,
        layout: SoftVoteLayout,
    ) -> None:
        self.layout = layout
        self.n_teachers = 0
        self._sum = np.zeros(layout.size, dtype=np.int64)
        for vectors in contributions:
            self.n_teachers += 1
            if vectors is not None:
                layout.check(vectors)
                self._sum += vectors[0].astype(np.int64)

    @property
    def any_cast(self) -> bool:
        """Whether any teacher sent soft votes. Sensitive."""
        return bool(self._sum.any())

    def sum(self) -> NDArray[np.int64]:
        """Return the sum of the vectors, of shape (size,). Sensitive."""
        return self._sum

    def content(self) -> tuple[Any, ...]:
        """Return all data of the sum, for a keyed fingerprint. Sensitive."""
        return self._sum, self.n_teachers


@dataclass(frozen=True)
class ScoreStep:
    """Clipping of score functions in one step of a release.

    The first `n_coordinates` coefficients of a score function, less those of `centre`,
    are clipped to the ball of `radius` and rounded to a vector of whole numbers. All
    others are zero.

    **Sensitivity.** `share` is the step's part of the squared length of all vectors of
    a teacher: a vector v has v.v <= share STEPS^2, which `TeacherScores` checks in
    exact arithmetic before it adds v. If one teacher's v becomes v', the sum moves by
    |v' - v| <= 2 sqrt(share) STEPS. The bound is reached by v and -v. A teacher without
    scores adds zeros.
    """

    centre: NDArray[np.float64]
    radius: float
    n_coordinates: int
    share: float

    @property
    def longest(self) -> int:
        """Largest length of a vector, rounded down."""
        return int(np.sqrt(self.share) * STEPS)

    @property
    def unit(self) -> float:
        """Coefficient that one unit of a vector stands for."""
        # Rounding makes a vector longer by sqrt(size) / 2 at most; 1 is for round-off.
        size = self.n_coordinates * self.centre.shape[1]
        return self.radius / (self.longest - np.sqrt(size) / 2 - 1)

    def vector(self, coefficients: NDArray[np.float64]) -> NDArray[np.int64]:
        """Clip and round coefficients of the shape of `centre`; zeros if too long."""
        with np.errstate(all="ignore"):
            moved = coefficients - self.centre
            moved[self.n_coordinates :] = 0
            largest = np.abs(moved).max(initial=0)
            # Divided by the largest, no square overflows.
            length = largest * np.linalg.norm(moved / largest) if largest > 0 else 0.0
            scale = min(1.0, self.radius / length) if length > 0 else 0.0
            rounded = np.rint(moved * (scale / self.unit))
        # The privacy cost rests on this check alone: nothing above is trusted.
        if not np.all(np.abs(rounded) <= self.longest):  # true for NaN
            return np.zeros(coefficients.shape, dtype=np.int64)
        vector = rounded.astype(np.int64)
        if np.vdot(vector, vector) > self.longest**2:
            return np.zeros(coefficients.shape, dtype=np.int64)
        return vector


def sum_of_classes(
    codes: NDArray[np.intp],
    group_of_row: NDArray[np.integer] | None,
    n_rows: NDArray[np.integer] | int,
    n_classes: int,
    longest: int,
) -> NDArray[np.int64]:
    """Add up a vector of whole numbers of each row, or group, by class. Sensitive.

    That of a row is `longest` times the unit vector of its class; that of a group is
    the mean over its rows, rounded down. A row without a class index (-1) has none. A
    pair of group and class stands for `n_rows` equal rows.

    **Sensitivity.** The numbers of a vector are not negative, and add up to `longest`
    at most: so does its length, in exact arithmetic.
    """
    known = codes >= 0
    groups = np.zeros(len(codes)) if group_of_row is None else group_of_row
    distinct, groups = np.unique(groups[known], return_inverse=True)
    counts = np.zeros((len(distinct), n_classes), dtype=np.int64)
    n_rows = np.broadcast_to(n_rows, known.shape)[known]
    np.add.at(counts, (groups, codes[known]), n_rows)
    of_unit = 1 if group_of_row is None else counts.sum(axis=1, keepdims=True)
    total: NDArray[np.int64] = (longest * counts // of_unit).sum(axis=0)
    return total


class TeacherScores(SensitiveSums):
    """Score functions of teachers, as coefficients in a public basis. Sensitive.

    `contributions` has the coefficients of each teacher, of `shape` (n_coordinates,
    n_classes - 1), or None.
    """

    __slots__ = ("_coefficients", "shape")

    def __init__(
        self,
        contributions: Iterable[NDArray[np.float64] | None],
        *,
        shape: tuple[int, int],
    ) -> None:
        nothing = np.full(shape, np.nan)  # becomes a vector of zeros
        self._coefficients = [
            nothing if one is None or one.shape != shape else one
            for one in contributions
        ]
        self.shape = shape

    @property
    def n_teachers(self) -> int:
        """Number of teachers."""
        return len(self._coefficients)

    @property
    def any_cast(self) -> bool:
        """Whether any teacher has scores. Sensitive."""
        return any(bool(np.all(np.isfinite(one))) for one in self._coefficients)

    def sum(self, step: ScoreStep) -> NDArray[np.int64]:
        """Return the sum of the vectors of a step, of shape (size,). Sensitive."""
        total = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        for one in self._coefficients:
            total += step.vector(one).ravel()
        return total

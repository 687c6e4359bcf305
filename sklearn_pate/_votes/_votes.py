"""Vote counts: their sums in whole numbers, their container and its file."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate._inputs._containers import check_container
from sklearn_pate._inputs._file_content import (
    digest_of_rows,
    key_commitment,
    strict_json,
    write_files,
)
from sklearn_pate._inputs._labels import (
    check_classes,
    check_label_type,
    class_indices,
    is_abstention,
    public_table,
)
from sklearn_pate.accounting._value_checks import check_count, check_not_masked
from sklearn_pate.accounting.plurality._closed_form import LARGEST_COUNT
from sklearn_pate.exceptions import TeacherWarning, warn_user

#: Soft votes are in units of the clipping bound divided by this.
STEPS = 1024
#: Shares of the squared mu of mean scores: for the classes of rows, for directions of
#: teachers, and for the slope. Measured on tables.
SCORE_SHARES = (0.03, 0.92, 0.05)
#: Length of the vectors of these, rounded down; that of a class is never negative.
LONGEST_CLASS = int(np.sqrt(2 * SCORE_SHARES[0]) * STEPS)
LONGEST_DIRECTION, LONGEST_VALUE = (
    int(np.sqrt(share) * STEPS) for share in SCORE_SHARES[1:]
)
# Length of coefficients, in probabilities, that is no direction.
_LEAST_LENGTH = 1e-4
_TOO_LONG = (
    "Soft votes are longer than the clipping bound that the privacy cost of their sum "
    "assumes; clip them."
)
_FIRST_LINE = b"sklearn_pate votes, format 1\n"
# Number of public rows counted at once, which fit in the processor's cache.
_BLOCK = 2**16


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


def direction_vector(coefficients: NDArray[np.float64]) -> NDArray[np.int64]:
    """Scale coefficients to the length of a direction, as whole numbers.

    Zeros for coefficients without a length, or whose vector is too long.
    """
    with np.errstate(all="ignore"):
        largest = np.abs(coefficients).max(initial=0)
        # Divided by the largest, no square overflows.
        length = largest * np.linalg.norm(coefficients / largest) if largest > 0 else 0
        scale = direction_units(coefficients.size) if length > _LEAST_LENGTH else 0.0
        rounded = np.rint(coefficients / length * scale) if scale else 0 * coefficients
    vector = np.zeros(coefficients.shape, dtype=np.int64)
    # False for NaN.
    if np.all(np.abs(rounded) <= LONGEST_DIRECTION):
        vector[:] = rounded
    return vector if is_direction(vector) else np.zeros_like(vector)


def direction_units(size: int) -> float:
    """Return the length that a vector of so many numbers is scaled to."""
    # Rounding makes it longer by sqrt(size) / 2 at most; 1 is for round-off.
    return float(LONGEST_DIRECTION - np.sqrt(size) / 2 - 1)


def is_direction(vector: NDArray[np.int64]) -> bool:
    """Check that a vector of whole numbers is no longer than a direction."""
    # Squares of larger numbers, and the absolute value of the least, would overflow.
    small = (vector >= -LONGEST_DIRECTION) & (vector <= LONGEST_DIRECTION)
    return bool(np.all(small)) and int(np.vdot(vector, vector)) <= LONGEST_DIRECTION**2


def sum_of_units(
    values: NDArray[np.int64], unit_of_row: NDArray[np.integer] | None
) -> int:
    """Add up whole numbers of rows; of a group, the mean of its rows, rounded down.

    With groups, `unit_of_row` has the group of each row. Sensitive.
    """
    if unit_of_row is None:
        return int(values.sum())
    distinct, unit, sizes = np.unique(
        unit_of_row, return_inverse=True, return_counts=True
    )
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, unit, values)
    return int((sums // sizes).sum())


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
    """Sum of the directions of teachers' scores. Sensitive.

    `contributions` has the vector of each teacher, of `shape` (n_coordinates, n_classes
    - 1), as `direction_vector` makes it, or None.

    **Sensitivity.** A vector v has whole numbers and v.v <= LONGEST_DIRECTION^2, which
    is checked in exact arithmetic before v is added; any other adds zeros. If one
    teacher's v becomes v', the sum moves by |v' - v| <= 2 LONGEST_DIRECTION. The bound
    is reached by v and -v.
    """

    __slots__ = ("_sum", "any_cast", "n_teachers", "shape")

    def __init__(
        self,
        contributions: Iterable[NDArray[np.int64] | None],
        *,
        shape: tuple[int, int],
    ) -> None:
        self.shape = shape
        self.n_teachers = 0
        #: Whether any teacher has scores, be they constant. Sensitive.
        self.any_cast = False
        self._sum = np.zeros(shape, dtype=np.int64)
        for one in contributions:
            self.n_teachers += 1
            if one is None or one.dtype != np.int64 or one.shape != shape:
                continue
            if is_direction(one):
                self._sum += one
                self.any_cast = True

    @classmethod
    def of_sum(
        cls, total: NDArray[np.int64], *, n_teachers: int, any_cast: bool
    ) -> Self:
        """Create the sum of parts that were added up elsewhere."""
        scores = cls((), shape=total.shape)
        scores.n_teachers, scores.any_cast, scores._sum = n_teachers, any_cast, total
        return scores

    def sum(self) -> NDArray[np.int64]:
        """Return the sum of the vectors, of shape (size,). Sensitive."""
        return self._sum.ravel()


@dataclass(frozen=True)
class VoteHeader:
    """What votes of shards were cast on, and by the teachers of which shards."""

    #: Unit of privacy that a shard holds whole: "row" or "group".
    unit: str
    #: Number of shards of each site.
    n_teachers: int
    #: SHA-256 of the public rows.
    public_rows: str
    #: Commitment to the key that assigns ids to shards.
    key: str
    #: Shards of these votes, by site; the name of a single table is "".
    shards: dict[str, list[int]]

    def __post_init__(self) -> None:
        if self.unit not in ("row", "group"):
            raise ValueError(
                f"privacy_unit={self.unit!r} must be 'row' or 'group', the unit that "
                "each shard holds whole."
            )
        check_count("n_teachers", self.n_teachers, largest=LARGEST_COUNT)
        if not isinstance(self.public_rows, str) or not isinstance(self.key, str):
            raise ValueError(
                "public_rows and key must be text; pass them as they were written."
            )
        for of_site in self.shards.values():
            if len(set(of_site)) < len(of_site):
                raise ValueError("A shard occurs twice; pass each shard once.")
            for one in of_site:
                if not 0 <= one < self.n_teachers:
                    raise ValueError(
                        f"Shard {one} does not exist for n_teachers={self.n_teachers}; "
                        "shards are numbered from 0."
                    )

    def merged(self, other: Self, part: str, first: str) -> Self:
        """Add the shards of another part; names of both are for messages."""
        for name, what in (
            ("unit", "protects another unit"),
            ("n_teachers", "has another number of teachers"),
            ("public_rows", "was cast on other public rows"),
            ("key", "has shards of another key"),
        ):
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                values = (
                    "" if name in ("public_rows", "key") else f" ({its}, not {mine})"
                )
                raise ValueError(
                    f"{part} {what} than {first}{values}; ask its site to vote again "
                    "with the same study."
                )
        shards = dict(self.shards)
        for site, more in other.shards.items():
            twice = set(more) & set(shards.get(site, ()))
            if twice:
                of_site = f" of site {site!r}" if site else ""
                raise ValueError(
                    f"{part} repeats the votes of shard {min(twice)}{of_site}: the "
                    "votes were sent twice, or the rows of a shard were split over two "
                    "teachers. Pass each shard once."
                )
            shards[site] = sorted([*shards.get(site, ()), *more])
        return replace(self, shards=shards)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read a header, or raise TypeError, KeyError or ValueError."""
        header = cls(**{one.name: values[one.name] for one in fields(cls)})
        if not all(
            isinstance(site, str) and all(type(one) is int for one in of_site)
            for site, of_site in header.shards.items()
        ):
            raise TypeError("a field is of another type")
        return header


def write_votes(
    path: str | os.PathLike[str], header: dict[str, Any], counts: NDArray[Any]
) -> None:
    """Write counts behind a header of plain values; only this user can read them."""
    content = counts.astype(counts.dtype.newbyteorder("<")).tobytes()
    header = header | {
        "shape": list(counts.shape),
        "bytes": counts.itemsize,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    # Complete, or not there: a part that was cut off could be sent.
    text = _FIRST_LINE + json.dumps(header).encode() + b"\n"
    write_files({Path(path): text + content}, mode=0o600)


def read_votes(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], NDArray[np.unsignedinteger[Any]]]:
    """Read the header and the counts of a file, or raise ValueError."""
    with open(path, "rb") as file:
        if file.readline(len(_FIRST_LINE)) != _FIRST_LINE:
            raise ValueError(
                f"{path} is not a file of votes; pass one that Votes.save or the "
                "command vote wrote."
            )
        text, content = file.readline(), file.read()
    try:
        header = strict_json(text)
        whole = hashlib.sha256(content).hexdigest() == header["sha256"]
        kind = np.dtype(f"<u{header['bytes']}")
        counts = np.frombuffer(content, dtype=kind).reshape(header["shape"])
    except (KeyError, OverflowError, TypeError, ValueError):
        whole = False
    if not whole:
        raise ValueError(
            f"{path} was cut off or changed; ask its site to send it again."
        )
    return header, counts


class Votes(SensitiveSums):
    """Counts of the teachers' votes on the public rows. Sensitive.

    Votes are counted teacher by teacher, so that memory does not grow with the number
    of teachers. Only mechanisms read the counts. `repr` does not show the counts, and
    the container cannot be pickled or copied. Answers of a
    :class:`~sklearn_pate.mechanisms.Oracle` may be published, at the privacy cost that
    the oracle states.

    Parameters
    ----------
    votes_by_teacher : iterable of (ndarray of int of shape (n_public,) or None)
        One array per teacher: class indices in ``range(n_classes)``, or -1 for an
        abstention. With None in place of an array, the teacher abstains on all rows.

    n_public : int
        Number of public rows.

    n_classes : int
        Number of classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class of each index: the index itself, or a class as given to a class method.

    Raises
    ------
    ValueError
        If an array has another shape, or holds anything but class indices and -1.

    Notes
    -----
    All privacy costs assume that all data of one unit of privacy belong to one teacher.
    Neighbouring data sets then differ in at most one vote on each query. See
    :doc:`/accounting`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate import Votes
    >>> from sklearn_pate.mechanisms import GNMax, Oracle
    >>> votes_by_teacher = 100 * [np.array([0, 1, 1])] + 20 * [np.array([1, -1, 0])]
    >>> votes = Votes(votes_by_teacher, n_public=3, n_classes=2)
    >>> votes
    Votes(<private>, n_teachers=120, n_public=3)
    >>> oracle = Oracle(votes, GNMax(sigma=5), n_queries=2)
    >>> oracle.answer([0, 1])
    array([0, 1])
    """

    __slots__ = ("_counts", "_n_teachers", "classes", "header")

    classes: NDArray[Any]
    #: What votes of shards were cast on; None for votes of parties.
    header: VoteHeader | None
    _counts: NDArray[np.unsignedinteger[Any]]
    _n_teachers: int

    def __init__(
        self,
        votes_by_teacher: Iterable[NDArray[np.integer] | None],
        *,
        n_public: int,
        n_classes: int,
    ) -> None:
        check_count("n_public", n_public, 0)
        check_count("n_classes", n_classes, 2)
        self.classes = np.arange(n_classes)
        self.header = None
        self._counts = np.zeros((n_public, n_classes), dtype=np.uint8)
        self._n_teachers = 0
        for teacher_votes in votes_by_teacher:
            self._n_teachers += 1
            if teacher_votes is not None:
                self._add(teacher_votes)

    @classmethod
    def from_labels(cls, labels_by_party: Any, classes: ArrayLike) -> Self:
        """Count labels that were collected elsewhere.

        Parameters
        ----------
        labels_by_party : iterable of array-like of shape (n_public,)
            Labels of the public rows by each party: an array of shape (n_parties,
            n_public), or a generator that reads one file after the other. A label that
            is not in `classes`, such as -1, None or NaN, is an abstention.

        classes : array-like of shape (n_classes,)
            All labels that count as votes, chosen independently of the votes. The
            classes are published with the student.

        Returns
        -------
        votes : Votes
            Votes with sorted classes, as in ``classes_`` of an estimator.

        Raises
        ------
        ValueError
            If the labels of a party are not one for each public row, no label is a
            class, or `classes` are not at least two distinct labels. The message is
            sensitive: it may contain the number of a party.

        Warns
        -----
        TeacherWarning
            If labels may have been ignored because they are not classes.

        Examples
        --------
        >>> from sklearn_pate import Votes
        >>> Votes.from_labels([["ill", "well"], ["ill", None]], ["ill", "well"])
        Votes(<private>, n_teachers=2, n_public=2)
        """
        known = check_classes(classes)
        parties = iter(labels_by_party)
        first = next(parties, None)
        if first is None:
            raise ValueError("labels_by_party is empty; pass one array per party.")
        n_public = np.shape(first)[0] if np.ndim(first) else 0
        if np.ndim(first) and n_public == 0:
            raise ValueError(
                "labels_by_party has no public row; pass one label for each row and "
                "party."
            )
        unknown = False

        def teacher_votes() -> Iterator[NDArray[np.intp]]:
            nonlocal unknown
            for party, labels in enumerate(chain([first], parties)):
                if np.shape(labels) != (n_public,):
                    raise ValueError(
                        f"The labels of party {party} have shape {np.shape(labels)}; "
                        "pass one label for each public row, of shape "
                        f"({n_public or 'n_public'},), such as frame.to_numpy().T of a "
                        "dataframe with one column a party."
                    )
                check_label_type(labels, known, f"party {party}")
                codes = class_indices(labels, known)
                left_out = np.asarray(labels, dtype=object)[codes < 0]
                unknown |= not all(map(is_abstention, left_out))
                yield codes

        votes = cls(teacher_votes(), n_public=n_public, n_classes=len(known))
        votes.classes = known
        if not votes.any_cast:
            raise ValueError(
                f"No label of any party is in classes={known.tolist()}; compare "
                "their spelling and type."
            )
        if unknown:
            warn_user(
                "Some labels may not be in classes, and count as abstentions; compare "
                "the parties' labels with classes (details are sensitive).",
                TeacherWarning,
            )
        return votes

    @classmethod
    def from_shards(
        cls,
        votes_by_shard: Mapping[int, NDArray[np.integer]],
        X_public: Any,
        *,
        classes: ArrayLike,
        n_teachers: int,
        key: int | bytes,
        privacy_unit: str,
        site: str = "",
    ) -> Self:
        """Count the votes of teachers that were trained where their rows are stored.

        Parameters
        ----------
        votes_by_shard : mapping of int to ndarray of int of shape (n_public,)
            Votes of the teacher of each shard, as returned by
            :func:`~sklearn_pate.distributed.cast_votes`. Shards without rows may be
            missing, and so may shards that other parts count.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features)
            The rows that were voted on. Votes keep a hash of the rows, not the rows.

        classes : array-like of shape (n_classes,)
            All labels that count as votes, as given to `cast_votes`.

        n_teachers : int
            Number of shards of this site, as given to
            :func:`~sklearn_pate.distributed.shard_of`. Teachers of empty shards
            abstain.

        key : int or bytes
            Key of the shards, as given to `shard_of`. Votes keep a hash of the key.

        privacy_unit : {"row", "group"}
            Unit of privacy: a row, or all rows of a group. All data of a unit must be
            in one shard.

        site : str, default=""
            Name of the hospital or other data holder, if there are several. Each site
            has its own `n_teachers` shards.

        Returns
        -------
        votes : Votes
            Votes with a header, for `save`, `merge` or
            ``PATEClassifier.fit_from_votes``.

        Raises
        ------
        ValueError
            If a parameter cannot be used, a shard number is out of range, or votes are
            not class indices of the public rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pate import Votes
        >>> X_public = np.zeros((3, 2))
        >>> parts = [
        ...     Votes.from_shards(
        ...         {shard: np.array([0, 1, 1])},
        ...         X_public,
        ...         classes=["ill", "well"],
        ...         n_teachers=100,
        ...         key=0,
        ...         privacy_unit="group",
        ...     )
        ...     for shard in (7, 25)
        ... ]
        >>> Votes.merge(parts)
        Votes(<private>, n_teachers=100, n_public=3)
        """
        known = check_classes(classes)
        X = public_table(X_public)
        for shard in votes_by_shard:
            check_count("shard", shard, 0)
        header = VoteHeader(
            unit=privacy_unit,
            n_teachers=n_teachers,
            public_rows=digest_of_rows(X),
            key=key_commitment(key),
            shards={str(site): sorted(int(one) for one in votes_by_shard)},
        )
        n_public = np.shape(X)[0]
        votes = cls(votes_by_shard.values(), n_public=n_public, n_classes=len(known))
        return cls._of_shards(header, votes._counts, known)

    @classmethod
    def merge(cls, parts: Iterable[Self]) -> Self:
        """Add up the votes of different shards.

        Parameters
        ----------
        parts : iterable of Votes
            Votes that `from_shards`, `load` or `merge` returned.

        Returns
        -------
        votes : Votes
            Votes of all shards.

        Raises
        ------
        ValueError
            If a part has no header, or repeats a shard of another part. Also if parts
            differ in public rows, classes, number of teachers, key or unit. The message
            has the number of the part, counted from 0.
        """
        header, counts, classes = None, np.zeros(0), np.zeros(0)
        for number, part in enumerate(parts):
            if part.header is None:
                raise ValueError(
                    f"Part {number} has no header of shards; create it by "
                    "Votes.from_shards."
                )
            if header is None:
                header, classes = part.header, part.classes
                counts = part._counts.astype(np.uint64)
                continue
            if not np.array_equal(part.classes, classes):
                raise ValueError(
                    f"Part {number} has the classes {part.classes.tolist()} and part 0 "
                    f"{classes.tolist()}; ask its site to vote again with the same "
                    "study."
                )
            header = header.merged(part.header, f"Part {number}", "part 0")
            if part.n_public != len(counts):  # in spite of an equal hash
                raise ValueError(
                    f"Part {number} is inconsistent; ask its site to vote again."
                )
            counts += part._counts
        if header is None:
            raise ValueError("There are no parts; pass the votes of at least one site.")
        return cls._of_shards(header, counts, classes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write votes of shards to a file that only this user can read.

        **The file is sensitive**: it holds vote counts without noise. An existing file
        is replaced.

        Parameters
        ----------
        path : str or path-like
            The file.

        Raises
        ------
        ValueError
            If the votes were not made from shards.
        """
        if self.header is None:
            raise ValueError(
                "Votes without a header of shards cannot be saved; create them by "
                "Votes.from_shards."
            )
        header = asdict(self.header) | {"classes": self.classes.tolist()}
        write_votes(path, header, self._counts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read votes of shards from a file that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file. No content of the file is executed.

        Returns
        -------
        votes : Votes
            The saved votes.

        Raises
        ------
        ValueError
            If `save` did not write the file, or the file was truncated or changed.
        """
        values, counts = read_votes(path)
        try:
            header = VoteHeader.from_dict(values)
            known = check_classes(values["classes"])
            if known.tolist() != values["classes"]:  # the order of the counts
                raise ValueError("its classes are not sorted")
            n_shards = sum(map(len, header.shards.values()))
            _, n_classes = counts.shape
            if (
                n_classes != len(known)
                or counts.max(initial=0) > n_shards  # so that no sum overflows
                or counts.sum(axis=1).max(initial=0) > n_shards
            ):
                raise ValueError("it has more votes than teachers")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is inconsistent; ask its site to vote again."
            ) from error
        return cls._of_shards(header, counts, known)

    @classmethod
    def _of_shards(
        cls, header: VoteHeader, counts: NDArray[Any], classes: NDArray[Any]
    ) -> Self:
        """Make votes of a header; shards without votes are teachers that abstain."""
        n_of_all_sites = header.n_teachers * len(header.shards)
        votes = cls.of_counts(counts, n_teachers=n_of_all_sites)
        votes.header, votes.classes = header, classes
        return votes

    @classmethod
    def of_counts(cls, counts: NDArray[Any], *, n_teachers: int) -> Self:
        """Create votes from the vote counts of each public row.

        Parameters
        ----------
        counts : ndarray of int of shape (n_public, n_classes)
            Numbers of teachers that voted for each class.

        n_teachers : int
            Number of teachers, including teachers that abstained.

        Returns
        -------
        votes : Votes
            Votes.
        """
        check_count("n_teachers", n_teachers, 0)
        check_not_masked("counts", counts)
        counts = np.asarray(counts)
        votes = cls((), n_public=len(counts), n_classes=counts.shape[1])
        votes._n_teachers = n_teachers
        votes._counts = counts.astype(np.min_scalar_type(n_teachers))
        return votes

    @property
    def shape(self) -> tuple[int, int]:
        """Number of teachers, and number of public rows."""
        return self._n_teachers, self._counts.shape[0]

    @property
    def n_public(self) -> int:
        """Number of public rows that were voted on."""
        return len(self._counts)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._counts.shape[1]

    @property
    def any_cast(self) -> bool:
        """Whether any teacher voted for a class. Sensitive."""
        return bool(self._counts.any())

    def counts(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Return the vote counts of some public rows. Sensitive.

        Parameters
        ----------
        indices : array-like of int of shape (n_queries,)
            Public rows.

        Returns
        -------
        counts : ndarray of shape (n_queries, n_classes), dtype int64
            Votes per class. A row sums to the number of teachers that did not abstain.

        Raises
        ------
        IndexError
            If an index is out of range.
        """
        return self._counts[np.asarray(indices, dtype=np.intp)].astype(np.int64)

    def content(self) -> tuple[Any, ...]:
        """Return all data of the votes, to compute a keyed fingerprint.

        Returns
        -------
        content : tuple
            Sensitive.
        """
        return self._counts, self._n_teachers, self.classes

    def _add(self, teacher_votes: NDArray[np.integer]) -> None:
        """Check and count the votes of one teacher."""
        check_container("votes_by_teacher", teacher_votes)
        teacher_votes = np.asarray(teacher_votes)
        n_classes = self.n_classes
        shape, dtype = teacher_votes.shape, teacher_votes.dtype
        if shape != (self.n_public,) or dtype.kind != "i":
            raise ValueError(
                f"The votes of a teacher have shape {shape} and dtype {dtype}; pass "
                f"signed integers of shape ({self.n_public},)."
            )
        if (
            teacher_votes.size
            and not -1 <= teacher_votes.min() <= teacher_votes.max() < n_classes
        ):
            raise ValueError(
                f"Votes must lie between -1 and n_classes - 1 = {n_classes - 1}; -1 is "
                "an abstention."
            )
        if self._n_teachers > np.iinfo(self._counts.dtype).max:
            self._counts = self._counts.astype(np.min_scalar_type(self._n_teachers))
        counts = self._counts.reshape(-1)
        for start in range(0, len(teacher_votes), _BLOCK):
            votes = teacher_votes[start : start + _BLOCK]
            cast = np.flatnonzero(votes >= 0)
            counts[(start + cast) * n_classes + votes[cast]] += 1

    def __repr__(self) -> str:
        n_teachers, n_public = self.shape
        return f"Votes(<private>, n_teachers={n_teachers}, n_public={n_public})"

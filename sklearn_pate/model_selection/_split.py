"""Split of private rows into training and validation parts, independent of X and y."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._public_data import PublicData
from sklearn_pate._teachers import (
    group_ids,
    hold_out_groups,
    hold_out_rows,
    shard_groups,
    shard_rows,
)
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["GROUP_SCORE", "PrivateRows", "RowSplit", "split_rows"]

#: Score of a group whose rows are all predicted correctly.
GROUP_SCORE = 100


class PrivateRows(NamedTuple):
    """Private rows, their labels, class indices and further arguments of a fit.

    A code of -1 is a label that does not count.
    """

    X: Table
    y: ArrayLike
    codes: NDArray[np.intp]
    params: dict[str, object]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def groups(self) -> object:
        """Return the argument `groups` of the fit, None without one."""
        named = (one for name, one in self.params.items() if _is(name, "groups"))
        return next(named, None)

    def take(self, indices: NDArray[np.intp]) -> "PrivateRows":
        """Take rows, and the same entries of arguments with one entry per row.

        Public rows are never cut.
        """
        return PrivateRows(
            _safe_indexing(self.X, indices),
            _safe_indexing(self.y, indices),
            self.codes[indices],
            {
                name: _safe_indexing(one, indices) if self._has_rows(name, one) else one
                for name, one in self.params.items()
            },
        )

    def _has_rows(self, name: str, value: object) -> bool:
        """Check an argument for one entry per row."""
        if isinstance(value, (PublicData, str, dict)) or _is(name, "X_public"):
            return False
        try:
            return _num_samples(value) == self.n_rows
        except TypeError:  # no array
            return False


class RowSplit(NamedTuple):
    """Disjoint parts of the rows: one or several to train on, one to score on.

    `group_of_row` has the group of each validation row, or is None if rows are the unit
    of privacy.
    """

    training: list[NDArray[np.intp]]
    validation: NDArray[np.intp]
    group_of_row: NDArray[np.intp] | None

    @property
    def sensitivity(self) -> int:
        """Largest change of a score by one unit of privacy."""
        return 1 if self.group_of_row is None else GROUP_SCORE

    def score(self, is_right: NDArray[np.bool_]) -> int:
        """Count the validation rows that are predicted correctly.

        For groups: the sum over groups of the share of correct rows, in hundredths,
        rounded down. So one unit moves the score by `sensitivity` at most, whatever its
        number of rows.
        """
        if self.group_of_row is None:
            return int(np.count_nonzero(is_right))
        sizes = np.bincount(self.group_of_row)
        n_right = np.bincount(self.group_of_row[is_right], minlength=len(sizes))
        return int(np.sum(GROUP_SCORE * n_right // np.maximum(sizes, 1)))


def split_rows(
    rows: PrivateRows,
    unit: str,
    relation: str,
    *,
    n_parts: int,
    test_size: float,
    seed: int,
    noise: NoiseSource,
) -> RowSplit:
    """Split rows into `n_parts` training parts and one validation part.

    Only the number of rows and their groups are read; `seed` may be public, `noise`
    must be secret. Each unit of privacy lies in one part, and moves no other unit:

    A replaced row keeps its position, so that a split by position suffices. The part of
    a group depends on a keyed hash of its id, wherever its rows are. An added row
    shifts the rows after it; there, the part of each row is drawn independently and
    secretly. Given the draws for all rows, that of the added row included, neighbouring
    data sets differ in one part, and Renyi divergences are quasi-convex over draws.
    """
    n_rows = rows.n_rows
    if unit == "group":
        ids, group_of_row = group_ids(rows.groups())
        _check_enough(len(ids), n_parts, "groups")
        held_out = hold_out_groups(ids, test_size, seed)
        part_of_group = np.zeros(len(ids), dtype=np.intp)
        if n_parts > 1:
            part_of_group = shard_groups(ids, n_parts, seed)
        part_of_row = np.where(held_out, -1, part_of_group)[group_of_row]
        part_of_row[group_of_row < 0] = n_parts  # a row without an id is not used
        validation = np.flatnonzero(part_of_row < 0)
        training = _training_parts(part_of_row, n_parts)
        return RowSplit(training, validation, group_of_row[validation])
    _check_enough(n_rows, n_parts, "rows")
    if relation == "add-remove":
        threshold = np.uint64(test_size * 2**64)
        part_of_row = noise.index(n_parts, n_rows)
        part_of_row[noise.words(n_rows) < threshold] = -1
    else:
        kept = np.flatnonzero(~hold_out_rows(n_rows, test_size, seed))
        part_of_row = np.full(n_rows, -1)
        if len(kept) >= n_parts:
            for part, of_part in enumerate(shard_rows(len(kept), n_parts, seed)):
                part_of_row[kept[of_part]] = part
    training = _training_parts(part_of_row, n_parts)
    return RowSplit(training, np.flatnonzero(part_of_row < 0), None)


def _training_parts(
    part_of_row: NDArray[np.intp], n_parts: int
) -> list[NDArray[np.intp]]:
    """List the rows of each training part, or raise if a part is empty."""
    parts = [np.flatnonzero(part_of_row == part) for part in range(n_parts)]
    if min(len(part) for part in parts) == 0:
        raise ValueError(
            f"A training part, of {n_parts} in all, holds no row; pass more rows, "
            "lower test_size, or try fewer candidates."
        )
    return parts


def _check_enough(n_units: int, n_parts: int, units: str) -> None:
    """Raise if there are too few units for the parts."""
    if n_units <= n_parts:
        raise ValueError(
            f"n_samples={n_units} {units} cannot be split into {n_parts} to train on "
            "and one to score on; pass more rows, or try fewer candidates."
        )


def _is(name: str, wanted: str) -> bool:
    """Compare the name of an argument, without the name of a pipeline's step."""
    return name.rpartition("__")[2] == wanted

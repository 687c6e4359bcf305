"""Which rows train, and which rows judge: decided without a look at X or y."""

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

__all__ = ["STEPS", "Cut", "PrivateRows", "cut_rows"]

#: What a group that is predicted right adds to a score.
STEPS = 100


class PrivateRows(NamedTuple):
    """Rows with all that belongs to them.

    Parameters
    ----------
    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
        Features.

    y : array-like of shape (n_rows,)
        Labels, for fits.

    codes : ndarray of int of shape (n_rows,)
        Class indices, -1 for a label that does not count.

    params : dict
        Further arguments of a fit.
    """

    X: Table
    y: ArrayLike
    codes: NDArray[np.intp]
    params: dict[str, object]

    @property
    def n_rows(self):
        """Number of rows."""
        return len(self.codes)

    def groups(self):
        """Return whose row each is.

        Returns
        -------
        groups : array-like of shape (n_rows,) or None
            The argument of that name.
        """
        named = (one for name, one in self.params.items() if _is(name, "groups"))
        return next(named, None)

    def at(self, rows):
        """Take some of the rows.

        Parameters
        ----------
        rows : ndarray of int of shape (n_taken,)
            Which.

        Returns
        -------
        taken : PrivateRows
            Arguments that have one entry a row are cut alike; public rows never are.
        """
        return PrivateRows(
            _safe_indexing(self.X, rows),
            _safe_indexing(self.y, rows),
            self.codes[rows],
            {
                name: _safe_indexing(one, rows) if self._has_rows(name, one) else one
                for name, one in self.params.items()
            },
        )

    def _has_rows(self, name, value):
        if isinstance(value, (PublicData, str, dict)) or _is(name, "X_public"):
            return False
        try:
            return _num_samples(value) == self.n_rows
        except TypeError:  # no array
            return False


class Cut(NamedTuple):
    """Disjoint parts of the rows.

    Parameters
    ----------
    training : list of ndarray of int
        Rows to train on; several parts for candidates that get one each.

    validation : ndarray of int
        Rows to score on.

    group_of_row : ndarray of int or None
        Group of each validation row, where groups are the unit.
    """

    training: list[NDArray[np.intp]]
    validation: NDArray[np.intp]
    group_of_row: NDArray[np.intp] | None

    @property
    def sensitivity(self):
        """How far one unit of privacy moves a score.

        Returns
        -------
        sensitivity : int
            `STEPS` for groups.
        """
        return 1 if self.group_of_row is None else STEPS

    def score(self, is_right):
        """Count what was predicted right.

        Parameters
        ----------
        is_right : ndarray of bool of shape (n_validation_rows,)
            Of each validation row.

        Returns
        -------
        score : int
            The number of rows; for groups, the sum over groups of the share of their
            rows, in hundredths, rounded down. One unit moves it by `sensitivity` at
            most, whatever its size.
        """
        if self.group_of_row is None:
            return int(np.count_nonzero(is_right))
        sizes = np.bincount(self.group_of_row)
        n_right = np.bincount(self.group_of_row[is_right], minlength=len(sizes))
        return int(np.sum(STEPS * n_right // np.maximum(sizes, 1)))


def cut_rows(rows, unit, relation, *, n_parts, test_size, seed, noise):
    """Cut rows into parts to train on, and one to score on.

    Parameters
    ----------
    rows : PrivateRows
        Their number, and whose they are, is all that is looked at.

    unit, relation : str
        Of privacy, as statements name them.

    n_parts : int
        Number of parts to train on.

    test_size : float
        Share of the units to score on.

    seed : int
        May be known to anyone.

    noise : NoiseSource
        Secret coins.

    Returns
    -------
    cut : Cut
        One unit is in one part, and moves no other unit.

    Raises
    ------
    ValueError
        If there are too few of them.

    Notes
    -----
    A row that is replaced stays in its place: any cut by place will do. A group has its
    place by a keyed hash of its id, wherever its rows stand. A row that is added has no
    name, and pushes on those behind it. Their places are independent coins then, which
    nobody sees: given the coins of all rows, that of the added one included, the two
    data sets differ in one part, and over coins, Renyi divergences are quasi-convex.
    """
    n_rows = rows.n_rows
    if unit == "group":
        ids, group_of_row = group_ids(rows.groups())
        _check_enough(len(ids), n_parts, "groups")
        held_out = hold_out_groups(ids, test_size, seed)
        place = np.zeros(len(ids), dtype=np.intp)
        if n_parts > 1:
            place = shard_groups(ids, n_parts, seed)
        place = np.where(held_out, -1, place)[group_of_row]
        place[group_of_row < 0] = n_parts  # no part: a row without an id is not used
        validation = np.flatnonzero(place < 0)
        return Cut(_by_place(place, n_parts), validation, group_of_row[validation])
    _check_enough(n_rows, n_parts, "rows")
    if relation == "add-remove":
        threshold = np.uint64(test_size * 2**64)
        place = noise.index(n_parts, n_rows)
        place[noise.words(n_rows) < threshold] = -1
    else:
        held_out = hold_out_rows(n_rows, test_size, seed)
        kept = np.flatnonzero(~held_out)
        place = np.full(n_rows, -1)
        if len(kept) >= n_parts:
            for part, of_part in enumerate(shard_rows(len(kept), n_parts, seed)):
                place[kept[of_part]] = part
    return Cut(_by_place(place, n_parts), np.flatnonzero(place < 0), None)


def _by_place(place, n_parts):
    parts = [np.flatnonzero(place == part) for part in range(n_parts)]
    if min(len(part) for part in parts) == 0:
        raise ValueError(
            f"Nobody is left to train on in one of {n_parts} parts; bring more rows, "
            "lower test_size, or try fewer candidates."
        )
    return parts


def _check_enough(n_units, n_parts, units):
    if n_units <= n_parts:
        raise ValueError(
            f"n_samples={n_units} {units} cannot be cut into {n_parts} to train on and "
            "one to score on; bring more rows, or try fewer candidates."
        )


def _is(name, wanted):
    """Tell an argument of a fit, also that of a step of a pipeline."""
    return name.rpartition("__")[2] == wanted

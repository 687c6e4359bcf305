"""Splits by a keyed hash of groups or positions."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._labels import known_classes
from sklearn_pate._teachers._private_rows import PrivateRows
from sklearn_pate._teachers._shards import (
    group_ids,
    hold_out_groups,
    hold_out_rows,
    shard_groups,
    shard_rows,
)
from sklearn_pate.accounting._statement import Assumption
from sklearn_pate.accounting._value_checks import Constraint, check_parameters, counted
from sklearn_pate.mechanisms._noise import NoiseSource

#: Score of a group whose rows are all predicted correctly.
GROUP_SCORE = 100


class GroupHashSplit(BaseCrossValidator):
    """Splitter into training and test rows by a keyed hash of each group id.

    The id of a group alone decides whether the group is in the training part or the
    test part. Adding or removing a patient thus moves no other patient. If groups are
    the unit of privacy, the guarantee of a private fit on one part thus holds for the
    whole table. GroupShuffleSplit and GroupKFold count, shuffle or sort the groups, so
    removing one group moves many other groups. No privacy statement covers a fit on
    such parts.

    Parameters
    ----------
    test_size : float, default=0.25
        Expected share of the groups in the test part, between 0 and 1.

    n_splits : int, default=1
        Number of independent splits. Each fit on a part of a split has its own privacy
        cost.

    random_state : int, RandomState instance or None, default=None
        Key of the hash function. The key need not be secret. To split a part again, use
        another key, as an equal key would select equal groups.

    See Also
    --------
    sklearn_pate.PrivacyLedger : Sum of the privacy costs of several fits.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.model_selection import GroupHashSplit
    >>> patient = np.repeat(np.arange(10), 2)
    >>> split = GroupHashSplit(test_size=0.3, random_state=1)
    >>> train, test = next(split.split(patient, groups=patient))
    >>> bool(set(patient[train]) & set(patient[test]))
    False
    """

    # As in scikit-learn's splitters by group: routed to `split` without a request.
    __metadata_request__split = {"groups": True}  # noqa: RUF012

    _constraints: ClassVar[dict[str, Constraint]] = {
        "test_size": Constraint.number(0, 1, closed="neither"),
        "n_splits": Constraint.count(),
    }

    def __init__(
        self, test_size: float = 0.25, n_splits: int = 1, *, random_state: Any = None
    ) -> None:
        self.test_size = test_size
        self.n_splits = n_splits
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows of the training part and of the test part.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
            Not read.

        y : array-like of shape (n_rows,), default=None
            Not read.

        groups : array-like of shape (n_rows,)
            Group id of each row, as whole numbers or strings. A row without an id is in
            neither part.

        Yields
        ------
        train : ndarray of int
            Indices of the rows in the training part.

        test : ndarray of int
            Indices of the rows in the test part.

        Raises
        ------
        ValueError
            If a parameter or an id cannot be used, or if a part is empty. The error
            message is sensitive.
        """
        check_parameters(self)
        if groups is None:
            raise ValueError("GroupHashSplit needs groups, an id for each row.")
        n_rows = _num_samples(groups if X is None else X)
        ids, group_of_row = group_ids(groups, n_rows)
        rng = check_random_state(self.random_state)
        for seed in rng.randint(MAX_SEED, size=self.n_splits).tolist():
            train, test = split_groups(
                ids, group_of_row, float(self.test_size), seed, b"test"
            )
            if not (len(train) and len(test)):
                raise ValueError(
                    f"random_state={self.random_state!r} and "
                    f"test_size={self.test_size!r} leave one part of "
                    f"{counted(len(ids), 'group')} empty; use another random_state, "
                    "which no earlier split of these groups has used."
                )
            yield train, test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X : object, default=None
            Not read.

        y : object, default=None
            Not read.

        groups : object, default=None
            Not read.

        Returns
        -------
        n_splits : int
            Number of splits.
        """
        return self.n_splits


def split_groups(
    ids: NDArray[np.bytes_],
    group_of_row: NDArray[np.intp],
    test_size: float,
    seed: int,
    purpose: bytes,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of two parts by a keyed hash of their group's id.

    A row without a group, of index -1, is in neither part.
    """
    # One more value for rows without a group, at index -1.
    in_test = np.append(hold_out_groups(ids, test_size, seed, purpose), False)
    is_test = in_test[group_of_row]
    return np.flatnonzero(~is_test & (group_of_row >= 0)), np.flatnonzero(is_test)


class FitArguments(NamedTuple):
    """Private rows, their labels, class indices and further arguments of a fit.

    A code of -1 is a label that does not count.
    """

    X: Table
    y: ArrayLike
    codes: NDArray[np.intp]
    params: dict[str, object]

    @classmethod
    def read(
        cls, X: Table, y: Any, given: ArrayLike | None, params: dict[str, object]
    ) -> tuple["FitArguments", NDArray[Any], Assumption]:
        """Read labels; return rows, classes, and the assumption about the classes.

        Without `given` classes, those of all rows with an id are taken.
        """
        if y is not None and not hasattr(y, "__getitem__"):
            y = np.asarray(y)
        rows = cls(X, y, np.zeros(0, dtype=np.intp), params)
        read = PrivateRows.read(X, y, rows.groups(), classes=known_classes(given))
        return rows._replace(codes=read.codes), read.classes, read.label_set

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def groups(self) -> object:
        """Return the argument `groups` of the fit, None without one."""
        named = (one for name, one in self.params.items() if _is(name, "groups"))
        return next(named, None)

    def take(self, indices: NDArray[np.intp]) -> "FitArguments":
        """Take rows, and the same entries of arguments with one entry per row.

        Public rows are never cut.
        """
        return FitArguments(
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
        if isinstance(value, (str, dict)) or _is(name, "X_public"):
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
    rows: FitArguments,
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
        ids, group_of_row = group_ids(rows.groups(), rows.n_rows)
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
            f"With {counted(n_parts, 'training part')}, a part has no row; pass more "
            "rows, lower test_size, or try fewer candidates."
        )
    return parts


def _check_enough(n_units: int, n_parts: int, units: str) -> None:
    """Raise if there are too few units for the parts."""
    if n_units <= n_parts:
        raise ValueError(
            f"n_samples={n_units} {units} cannot be split into "
            f"{counted(n_parts, 'training part')} and one part for scores; pass more "
            "rows, or try fewer candidates."
        )


def _is(name: str, wanted: str) -> bool:
    """Compare the name of an argument, without the name of a pipeline's step."""
    return name.rpartition("__")[2] == wanted

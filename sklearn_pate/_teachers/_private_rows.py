"""Private rows with their labels and groups. Sensitive."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._inputs._containers import Table, check_container
from sklearn_pate._inputs._labels import check_label_type, class_indices, read_classes
from sklearn_pate._teachers._shards import (
    group_ids,
    hold_out_groups,
    hold_out_rows,
    rows_of_shards,
    shard_groups,
    shard_rows,
)
from sklearn_pate._votes._votes import sum_of_classes
from sklearn_pate.accounting._statement import LABEL_SET, LABEL_SET_READ, Assumption
from sklearn_pate.exceptions import PublicDataWarning, warn_user


@dataclass(frozen=True)
class PrivateRows:
    """Private rows, with the class and the group of each. Sensitive."""

    X: Table
    #: Class indices, -1 for a label that is no class and for a row without a group id.
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    #: Where the classes are from.
    label_set: Assumption
    #: Distinct ids, and the index of each row's id, -1 without one; None for rows.
    ids: NDArray[np.bytes_] | None = None
    group_of_row: NDArray[np.intp] | None = None
    #: Rows as they were given that were held out as public.
    public_indices: NDArray[np.intp] | None = None
    on_cluster: ClassVar[bool] = False

    @classmethod
    def read(
        cls, X: Table, y: Any, groups: Any = None, *, classes: NDArray[Any] | None
    ) -> Self:
        """Read the labels and groups of checked rows.

        The type of y may raise a ValueError, no value of it does if `classes` are
        given. Without them, they are read from y; a row without a group adds none.
        """
        if y is None:
            raise ValueError(
                "A private classifier requires y to be passed, but the target y is "
                "None; pass the label of each row."
            )
        if isinstance(y, str):
            raise ValueError(
                "y is one text; pass the label of each row, such as frame['label']."
            )
        check_container("y", y)
        check_consistent_length(X, y)
        ids = group_of_row = None
        has_id = np.ones(X.shape[0], dtype=bool)
        if groups is not None:
            ids, group_of_row = group_ids(groups, X.shape[0])
            has_id = group_of_row >= 0
        if classes is not None:
            check_label_type(y, classes)
            # A row without an id may belong to a group that has one in another row.
            codes = np.where(has_id, class_indices(y, classes), -1)
            return cls(X, codes, classes, LABEL_SET, ids, group_of_row)
        codes = np.full(X.shape[0], -1)
        if not np.all(has_id):
            y = _safe_indexing(y, np.flatnonzero(has_id))
        classes, codes[has_id] = read_classes(y)
        return cls(X, codes, classes, LABEL_SET_READ, ids, group_of_row)

    @property
    def n_rows(self) -> int:
        """Number of private rows."""
        return self.X.shape[0]

    def check_usable(self) -> None:
        """Raise ValueError if no row can be learned from."""
        check_any_usable(
            bool(np.any(self.codes >= 0)),
            self.classes,
            of_groups=self.ids is not None,
        )

    def hold_out(self, public_size: float, seed: int) -> tuple[Self, Table]:
        """Take out public rows, by whole groups where groups are the unit."""
        ids, group_of_row = self.ids, self.group_of_row
        if ids is None or group_of_row is None:
            is_public = hold_out_rows(self.n_rows, public_size, seed)
        else:
            is_public = hold_out_groups(ids, public_size, seed)[group_of_row]
            is_public &= group_of_row >= 0
        if np.all(is_public) or not np.any(is_public):
            part = "private" if np.all(is_public) else "public"
            raise ValueError(
                f"public_size={public_size!r} leaves no {part} row out of "
                f"n_samples={self.n_rows}; pass X_public, or pass more rows."
            )
        warn_user(
            f"public_size={public_size!r} uses {np.count_nonzero(is_public)} private "
            "rows as public rows. The people in these rows are not protected (see "
            "public_indices_). Pass X_public to protect every row.",
            PublicDataWarning,
        )
        public, kept = np.flatnonzero(is_public), np.flatnonzero(~is_public)
        if ids is not None and group_of_row is not None:
            group_of_row = group_of_row[kept]
            left = np.unique(group_of_row[group_of_row >= 0])
            # The last place is for rows without an id.
            place = np.full(len(ids) + 1, -1)
            place[left] = np.arange(len(left))
            ids, group_of_row = ids[left], place[group_of_row]
        X, codes = _safe_indexing(self.X, kept), self.codes[kept]
        rows = replace(
            self,
            X=X,
            codes=codes,
            ids=ids,
            group_of_row=group_of_row,
            public_indices=public,
        )
        return rows, _safe_indexing(self.X, public)

    def shards(self, n_teachers: int, key: int) -> list[NDArray[np.intp]]:
        """Assign rows to teachers, independently of X and y."""
        if self.ids is None:
            return shard_rows(self.n_rows, n_teachers, key)
        shard_of_group = shard_groups(self.ids, n_teachers, key)
        return rows_of_shards(shard_of_group[self.group_of_row], n_teachers)

    def class_sum(self, n_classes: int, longest: int) -> NDArray[np.int64]:
        """Add up vectors of at most this length, by class. Sensitive."""
        return sum_of_classes(self.codes, self.group_of_row, 1, n_classes, longest)

    def content(self) -> tuple:
        """Return everything about the private rows, for a keyed fingerprint."""
        return self.X, self.codes, self.ids, self.group_of_row


def check_any_usable(
    any_usable: bool, classes: NDArray[Any], *, of_groups: bool
) -> None:
    """Raise ValueError if private rows hold none to learn from."""
    if not any_usable:
        without_id = " and a group id" if of_groups else ""
        raise ValueError(
            f"No private row of y has a label in classes={classes.tolist()}"
            f"{without_id}; compare the spelling and type of the labels in y and "
            "classes."
        )

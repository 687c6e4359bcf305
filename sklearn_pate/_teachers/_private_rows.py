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
    rows_of_shards,
    shard_groups,
    shard_rows,
)
from sklearn_pate._votes._votes import sum_of_classes
from sklearn_pate.accounting._statement import LABEL_SET, LABEL_SET_READ, Assumption


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

    def without(self, is_public: NDArray[np.bool_]) -> Self:
        """Leave out rows that are held out as public."""
        kept, ids, group_of_row = np.flatnonzero(~is_public), self.ids, None
        if ids is not None and self.group_of_row is not None:
            group_of_row = self.group_of_row[kept]
            left = np.unique(group_of_row[group_of_row >= 0])
            place = np.full(
                len(ids) + 1, -1
            )  # the last place is for rows without an id
            place[left] = np.arange(len(left))
            ids, group_of_row = ids[left], place[group_of_row]
        return replace(
            self,
            X=_safe_indexing(self.X, kept),
            codes=self.codes[kept],
            ids=ids,
            group_of_row=group_of_row,
            public_indices=np.flatnonzero(is_public),
        )

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

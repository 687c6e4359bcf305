"""Private rows with their labels and groups, and problems in them. Sensitive."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length, column_or_1d

from sklearn_pate._inputs._containers import (
    NUMBERS,
    Table,
    as_objects,
    as_table,
    check_container,
    column_kinds,
    column_names,
    column_of,
)
from sklearn_pate._inputs._labels import (
    check_label_type,
    class_indices,
    is_missing,
    public_table,
    read_classes,
)
from sklearn_pate._inputs._odd_values import (
    INFINITE,
    MISSING,
    is_a,
    is_missing_or_nan,
    odd_rows,
    of_each,
    read_numbers,
    to_number,
    to_text,
)
from sklearn_pate._teachers._shards import (
    group_ids,
    hold_out_groups,
    hold_out_rows,
    rows_of_shards,
    shard_groups,
    shard_rows,
)
from sklearn_pate._votes._votes import sum_of_classes, sum_of_units
from sklearn_pate.accounting._sites import shared_release
from sklearn_pate.accounting._statement import LABEL_SET, LABEL_SET_READ, Assumption
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.exceptions import PublicDataWarning, warn_user

# Values that are listed, and rows of a label that may be a slip.
_MOST_LISTED, _FEW_ROWS = 10, 5
# Fewest numbers that show what is usual, and a share of them that chance does not move.
_FEWEST_NUMBERS, _OTHER_SHARE = 50, 0.25


class DataProblems(tuple[str, ...]):
    """Problems in private rows, as sentences. Sensitive.

    ``check_data`` of a private classifier creates this tuple. `print` shows all
    problems, with values and numbers of private rows. The tuple cannot be pickled.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        # Notebooks show the attributes of a fitted estimator.
        return "DataProblems(<sensitive: depends on private data, do not publish>)"

    def __str__(self) -> str:
        lines = self or ("No problem was found.",)
        return "\n".join(
            ("Sensitive: depends on private data, do not publish.", *lines)
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "DataProblems are sensitive and cannot be pickled or copied; leave them "
            "with the data holder."
        )


NO_PROBLEMS = DataProblems()


def find_problems(
    X: Any,
    y: Any,
    groups: Any,
    classes: NDArray[Any] | None,
    X_public: Any = None,
    *,
    takes_missing: bool,
) -> list[str]:
    """List problems of private labels, groups and columns. Sensitive.

    Raises ValueError for containers and shapes alone.
    """
    X = as_table(X)
    check_container("y", y)
    labels = column_or_1d(as_objects(y))
    check_consistent_length(X, labels)
    problems, has_id = [], np.ones(len(labels), dtype=bool)
    problems += [
        f"{name} has the index of X in another order; rows are paired by position."
        for name, values in (("y", y), ("groups", groups))
        if _is_reordered(X, values)
    ]
    if classes is not None:
        try:
            check_label_type(y, classes)
        except ValueError as error:
            problems.append(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would reveal a value
        if groups is not None:
            of_groups, has_id = _of_groups(groups, labels)
            problems += of_groups
        problems += _of_labels(labels[has_id], classes)
        problems += _of_columns(X, X_public, takes_missing)
    return problems


def problems_of_labels(
    known: Iterable[Any], unseen: Iterable[Any], others: Counter[str], n_without_id: int
) -> list[str]:
    """Describe classes without rows, and rows without a class or an id. Sensitive.

    `others` are labels that are no class, as code, with their numbers of rows.
    """
    problems = [f"No row has the label {label!r}." for label in unseen]
    if n_without_id:
        problems.append(f"{counted(n_without_id, 'row')} left out: without a group id.")
    alike = {_folded(repr(one)): one for one in known}
    for label, n_rows in others.most_common(_MOST_LISTED):
        near = alike.get(_folded(label))
        hint = "" if near is None else f", unlike {near!r}"
        problems.append(
            f"{counted(n_rows, 'row')} left out: the label {label} is not in "
            f"classes{hint}."
        )
    rest = others.most_common()[_MOST_LISTED:]
    if rest:
        problems.append(
            f"{counted(sum(n for _, n in rest), 'row')} left out: "
            f"{counted(len(rest), 'other label')} not in classes."
        )
    return problems


def as_code(label: Any) -> str:
    """Write a private label as code; text cannot be taken for a number."""
    if is_missing(label):
        return "<missing>"
    label = label.item() if is_a(label, np.generic) else label
    return repr(str.__str__(label)) if is_a(label, str) else to_text(label)


def _is_reordered(X: Any, values: Any) -> bool:
    """Check whether pandas values have the index of X in another order."""
    wanted: Any = getattr(X, "index", None)
    given: Any = getattr(values, "index", None)
    if not (hasattr(wanted, "equals") and hasattr(given, "equals")):
        return False
    return not wanted.equals(given) and set(wanted) == set(given)


def _of_labels(labels: NDArray[np.object_], classes: NDArray[Any] | None) -> list[str]:
    """Describe labels that are no class, and labels that look like slips."""
    if classes is not None:
        codes = class_indices(labels, classes)
        unseen = classes[~np.isin(np.arange(len(classes)), codes)].tolist()
        others = Counter(map(as_code, labels[codes < 0]))
        return problems_of_labels(classes.tolist(), unseen, others, 0)
    found = Counter(map(as_code, labels))
    problems = []
    spellings = Counter(map(_folded, found))
    for label, n_rows in found.items():
        if spellings[_folded(label)] > 1:
            problems.append(
                f"{counted(n_rows, 'row')} of the label {label}, which differs from "
                "another label only in case or spaces."
            )
        elif n_rows < _FEW_ROWS:
            problems.append(
                f"Only {counted(n_rows, 'row')} of the label {label}, which becomes a "
                "class if classes is None."
            )
    return problems


def _of_groups(
    groups: Any, labels: NDArray[np.object_]
) -> tuple[list[str], NDArray[np.bool_]]:
    """Describe groups of several labels, or of one row; return which rows have ids."""
    try:
        ids, group_of_row = group_ids(groups, len(labels))
    except ValueError as error:
        return [str(error)], np.ones(len(labels), dtype=bool)
    has_id = group_of_row >= 0
    problems = problems_of_labels((), (), Counter(), int(np.count_nonzero(~has_id)))
    codes = map(as_code, labels[has_id])
    pairs = set(zip(group_of_row[has_id].tolist(), codes, strict=True))
    n_mixed = sum(n > 1 for n in Counter(group for group, _ in pairs).values())
    if n_mixed:
        problems.append(
            f"{counted(n_mixed, 'group')} of {len(ids)}: rows with different labels."
        )
    if np.count_nonzero(has_id) == len(ids) > 1:
        problems.append("Each group has one row; pass the ids of persons as groups.")
    return problems, has_id


def _of_columns(X: Table, X_public: Any, takes_missing: bool) -> Iterator[str]:
    """Describe missing values, and columns whose values differ from their type."""
    odd = odd_rows(X) & (MISSING | INFINITE)
    n_odd = np.count_nonzero(odd)
    if n_odd and not takes_missing:
        yield (
            f"{counted(int(n_odd), 'row')} with missing or infinite values, which may "
            "be left out."
        )
    if len(X.shape) != 2 or sp.issparse(X):
        return
    public = public_table(X_public)
    public = None if public is None else as_table(public, "X_public")
    of_public = None if public is None else column_kinds(public)
    names = column_names(X) or range(X.shape[1])
    unlike = []
    for column, kind in enumerate(column_kinds(X)):
        wanted = None if of_public is None else of_public[column] in NUMBERS
        if kind in NUMBERS:
            if wanted is False:
                yield f"Column {names[column]!r} is numeric, unlike in X_public."
            elif wanted and _is_unlike(column_of(X, column), column_of(public, column)):
                unlike.append(names[column])
            continue
        values = column_of(X, column).tolist()
        is_text = np.array(of_each(lambda one: is_a(one, str), values), dtype=bool)
        words = np.count_nonzero(is_text & np.isnan(of_each(to_number, values)))
        n_known = len(values) - sum(of_each(is_missing_or_nan, values))
        if words and (wanted or (wanted is None and words < n_known / 2)):
            yield (
                f"Column {names[column]!r}: {counted(int(words), 'value')} of "
                f"{n_known} cannot be read as a number."
            )
    if unlike:
        more = " and more" if len(unlike) > _MOST_LISTED else ""
        yield (
            f"Columns {unlike[:_MOST_LISTED]}{more} have other values than in "
            "X_public; use the same units. A Pipeline transforms X_public only with "
            "transform_input=['X_public']."
        )


def _is_unlike(private: NDArray[Any], public: NDArray[Any]) -> bool:
    """Check whether many more or fewer numbers are in the middle half of the public."""
    # Booleans with missing values are objects.
    read = (read_numbers(values[:, None], refuse=False) for values in (private, public))
    one, other = (values[~np.isnan(values)] for values in read)
    if min(len(one), len(other)) < _FEWEST_NUMBERS:
        return False
    one, other = one.astype(np.float32), other.astype(np.float32)
    low, high = np.quantile(other, (0.25, 0.75))
    shares = [np.mean((low <= values) & (values <= high)) for values in (one, other)]
    return bool(abs(shares[0] - shares[1]) > _OTHER_SHARE)


def _folded(label: str) -> str:
    """Return the code of a label without case and spaces at the ends of text."""
    return label.strip("'\"").strip().casefold()


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
                "This method requires y to be passed, but the target y is None; pass "
                "the label of each row."
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
        """Number of private rows, at all sites if there are several."""
        shared = shared_release()
        n_of_all = None if shared is None else shared.n_rows
        return self.X.shape[0] if n_of_all is None else n_of_all

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
        """Assign rows to the teachers of this site, independently of X and y."""
        if (shared := shared_release()) is not None:
            n_teachers = shared.n_teachers_here(n_teachers)
        if n_teachers == 0:
            return []
        if self.ids is None:
            return shard_rows(self.X.shape[0], n_teachers, key)
        shard_of_group = shard_groups(self.ids, n_teachers, key)
        return rows_of_shards(shard_of_group[self.group_of_row], n_teachers)

    def class_sum(self, n_classes: int, longest: int) -> NDArray[np.int64]:
        """Add up vectors of at most this length, by class. Sensitive."""
        return sum_of_classes(self.codes, self.group_of_row, 1, n_classes, longest)

    def value_sum(
        self,
        values_of: Callable[[Table, NDArray[np.intp]], NDArray[np.int64]],
        X_public: Table,
    ) -> int:
        """Add up a whole number of each row, or the mean of each group. Sensitive.

        `values_of` computes them from rows and class indices. The rows are like the
        public ones already.
        """
        known, groups = self.codes >= 0, self.group_of_row
        if groups is not None:
            known &= groups >= 0
            groups = groups[known]
        return sum_of_units(values_of(self.X, self.codes)[known], groups)

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

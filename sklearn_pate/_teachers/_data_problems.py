"""Problems in private rows, for the data holder alone."""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
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
)
from sklearn_pate._inputs._odd_values import (
    INFINITE,
    MISSING,
    is_a,
    is_missing_or_nan,
    odd_rows,
    to_number,
    to_text,
)
from sklearn_pate._teachers._shards import group_ids
from sklearn_pate.accounting._value_checks import counted

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
        texts = [one for one in values if is_a(one, str)]
        words = sum(np.isnan(to_number(one)) for one in texts)
        n_known = sum(not is_missing_or_nan(one) for one in values)
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
    one, other = (values[~np.isnan(values)] for values in (private, public))
    if min(len(one), len(other)) < _FEWEST_NUMBERS:
        return False
    one, other = one.astype(np.float32), other.astype(np.float32)
    low, high = np.quantile(other, (0.25, 0.75))
    shares = [np.mean((low <= values) & (values <= high)) for values in (one, other)]
    return bool(abs(shares[0] - shares[1]) > _OTHER_SHARE)


def _folded(label: str) -> str:
    """Return the code of a label without case and spaces at the ends of text."""
    return label.strip("'\"").strip().casefold()

"""Private and public rows of a fit, and public rows with the votes of parties."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._aggregation._checks import (
    check_number_of_groups,
    check_one_source,
    check_target,
    check_unit,
    no_usable_row,
    unwrapped,
)
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._features import (
    check_features,
    check_held_out,
    check_not_private,
    check_public_features,
)
from sklearn_pate._inputs._file_content import digest_of_rows
from sklearn_pate._inputs._known_columns import warn_of_text
from sklearn_pate._inputs._labels import (
    PublicData,
    check_classes,
    check_label_type,
    class_indices,
    public_table,
    read_classes,
)
from sklearn_pate._inputs._odd_values import read_like_public
from sklearn_pate._synthetic._domain import Domain
from sklearn_pate._synthetic._marginals import SyntheticRows
from sklearn_pate._teachers._shards import (
    group_ids,
    hold_out_groups,
    hold_out_rows,
    rows_of_shards,
    shard_groups,
    shard_rows,
)
from sklearn_pate._votes._votes import VoteHeader, Votes, sum_of_classes
from sklearn_pate.accounting._calibrate import check_delta_is_small
from sklearn_pate.accounting._statement import (
    COLUMNS,
    DOMAIN_DECLARED,
    HELD_OUT_ROWS,
    LABEL_SET,
    LABEL_SET_READ,
    ONE_PARTY,
    ONE_SITE,
    OWN_DATA,
    OWN_SHARD,
    PUBLIC_ROWS,
    SHARDS_BY_KEY,
    Assumption,
)
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.exceptions import PublicDataWarning, warn_user


@dataclass(frozen=True)
class PublicInputs:
    """Classes and public rows, with the assumptions about both."""

    classes: NDArray[Any]
    X_public: Table
    unit: str
    assumptions: tuple[Assumption, ...]
    #: Domain of rows that noisy counts are drawn for; `X_public` are uniform rows of it
    #: until then. None for public rows.
    domain: Domain | None = None
    #: Rows that were drawn, with the class of each.
    synthetic: SyntheticRows | None = None
    #: Number of rows or groups before any were held out, None where it is not public.
    n_units: int | None = None

    @property
    def content(self) -> tuple[Any, ...]:
        """Everything public that decides the release, but for parameters."""
        return (None if self.domain is not None else self.X_public), self.classes

    @property
    def n_public(self) -> int:
        """Number of public rows."""
        return self.X_public.shape[0]


@dataclass(frozen=True)
class PrivateInputs:
    """Private rows, for teachers alone. Sensitive."""

    X: Table
    codes: NDArray[np.intp]
    ids: NDArray[Any] | None
    group_of_row: NDArray[np.intp] | None
    #: Rows of X that were held out as public.
    public_indices: NDArray[np.intp] | None
    on_cluster: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        """Number of private rows."""
        return self.X.shape[0]

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


def split_inputs(
    estimator: Any, X: Any, y: Any, X_public: Any, groups: Any, *, seed: int
) -> tuple[PrivateInputs, PublicInputs]:
    """Check the arguments of `fit`, and hold out public rows where none are given.

    Sets ``n_features_in_`` and ``feature_names_in_``. Private values decide about an
    error only where a row has a group id of another type, or no row is left to learn
    from; with public rows, also where a column of numbers holds text alone, or a list.
    With groups as the unit, numbers of rows and groups, which are private there, decide
    about the error of more teachers than groups, about that of public rows without
    PublicData, and about a warning.
    """
    given = X
    X, codes, ids, group_of_row, classes, label_set = read_rows(estimator, X, y, groups)
    check_number_of_groups(estimator)
    assumptions = [label_set]
    domain, public_indices = None, None
    synthetic = estimator.synthetic
    n_units = number_of_units(estimator, X.shape[0])
    check_one_source(estimator, X_public)
    if synthetic is not None:
        domain = synthetic._read(
            X,
            n_units,
            len(classes),
            partial(
                estimator._counts_of,
                n_classes=len(classes),
                n_units=n_units,
                epsilon=estimator.epsilon,
            ),
        )
        uniform = domain.uniform(synthetic.n_rows, seed)
        X_public = check_synthetic_rows(estimator, uniform)
        assumptions.append(DOMAIN_DECLARED)
    elif X_public is None:
        is_public = _hold_out(
            estimator.public_size, ids, group_of_row, X.shape[0], seed
        )
        public_indices = np.flatnonzero(is_public)
        private = np.flatnonzero(~is_public)
        X_public, X = _safe_indexing(X, public_indices), _safe_indexing(X, private)
        X_public, codes = check_held_out(estimator, X_public), codes[private]
        if ids is not None and group_of_row is not None:
            ids, group_of_row = _groups_left(ids, group_of_row[private])
        assumptions.append(HELD_OUT_ROWS)
    else:
        X_public = read_public_rows(estimator, X_public, X, given)
        assumptions.append(PUBLIC_ROWS)
    if domain is None:
        warn_of_text(X_public)
    X = read_like_public(X, X_public, refuse=synthetic is None)
    codes = of_groups(codes, group_of_row, estimator.classes)
    assumptions.append(COLUMNS)
    return (
        PrivateInputs(X, codes, ids, group_of_row, public_indices),
        PublicInputs(
            classes,
            X_public,
            estimator.privacy_unit,
            tuple(assumptions),
            domain,
            n_units=n_units,
        ),
    )


def read_public_rows(estimator: Any, X_public: Any, X: Table, given: Any) -> Table:
    """Check public rows, alone and against checked private rows; `given` are those."""
    unit = getattr(estimator, "privacy_unit", "row")
    X_public = unwrapped(X_public, X, unit)
    check_not_private(X_public, given)
    return check_public_features(estimator, X_public, X)


def number_of_units(estimator: Any, n_rows: int) -> int | None:
    """Return the number of rows or groups, None where it is not public."""
    if estimator.privacy_unit == "group":
        return getattr(estimator, "n_groups", None)
    return None if estimator._add_remove else n_rows


def read_rows(
    estimator: Any, X: Any, y: Any, groups: Any
) -> tuple[
    Table,
    NDArray[np.intp],
    NDArray[Any] | None,
    NDArray[np.intp] | None,
    NDArray[Any],
    Assumption,
]:
    """Check private rows, their labels and their groups.

    Returns X, class indices, the ids of groups and the group of each row, the classes,
    and the assumption about them.
    """
    check_target(estimator, y)
    X = check_features(estimator, X, reset=True, private=True)
    check_consistent_length(X, y)
    ids = group_of_row = None
    check_unit(estimator.privacy_unit, groups)
    if groups is not None:
        ids, group_of_row = group_ids(groups, X.shape[0])
    classes, codes, label_set = read_labels(estimator.classes, y, group_of_row)
    check_delta_is_small(estimator.delta, X.shape[0], "rows")
    return X, codes, ids, group_of_row, classes, label_set


def of_groups(
    codes: NDArray[np.intp], group_of_row: NDArray[np.intp] | None, given: Any
) -> NDArray[np.intp]:
    """Drop the labels of rows without a group id; raise ValueError if none is left."""
    if group_of_row is not None:
        # Such a row may belong to a group that has an id in another row.
        codes = np.where(group_of_row < 0, -1, codes)
    if np.all(codes < 0):
        raise no_usable_row(given, with_groups=group_of_row is not None)
    return codes


def check_synthetic_rows(estimator: Any, rows: Table) -> Table:
    """Return rows drawn from a domain as public rows, or raise ValueError.

    They have the columns and types of the private rows, which are not read.
    """
    try:
        return check_public_features(estimator, rows)
    except ValueError as error:
        raise ValueError(
            "Rows of the domain of PrivateMarginals cannot be used as public rows: "
            f"{error}"
        ) from error


def read_labels(
    given: ArrayLike | None, y: Any, group_of_row: NDArray[np.intp] | None = None
) -> tuple[NDArray[Any], NDArray[np.intp], Assumption]:
    """Return the classes, the class indices of private labels, and the assumption made.

    A label outside `given` has index -1. The type of y may raise a ValueError, no value
    of it does. Without `given`, a row without a group, of index -1, adds no class, and
    has index -1: it is not learned from.
    """
    if given is None and group_of_row is not None:
        kept, codes = np.flatnonzero(group_of_row >= 0), np.full(len(group_of_row), -1)
        classes, codes[kept] = read_classes(_safe_indexing(y, kept))
        return classes, codes, LABEL_SET_READ
    if given is None:
        return *read_classes(y), LABEL_SET_READ
    classes = check_classes(given)
    check_label_type(y, classes)
    return classes, class_indices(y, classes), LABEL_SET


def _groups_left(
    ids: NDArray[Any], group_of_row: NDArray[np.intp]
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Drop the ids of groups without a row."""
    left = np.unique(group_of_row[group_of_row >= 0])
    place = np.full(len(ids) + 1, -1)  # the last place is for rows without an id
    place[left] = np.arange(len(left))
    return ids[left], place[group_of_row]


def _hold_out(
    public_size: float,
    ids: NDArray[Any] | None,
    group_of_row: NDArray[np.intp] | None,
    n_rows: int,
    seed: int,
) -> NDArray[np.bool_]:
    """Choose the public rows, by whole groups where groups are the unit."""
    if ids is None or group_of_row is None:
        is_public = hold_out_rows(n_rows, public_size, seed)
    else:
        is_public = hold_out_groups(ids, public_size, seed)[group_of_row]
        is_public &= group_of_row >= 0
    if np.all(is_public) or not np.any(is_public):
        part = "private" if np.all(is_public) else "public"
        raise ValueError(
            f"public_size={public_size!r} leaves no {part} row out of "
            f"n_samples={n_rows}; pass X_public, or pass more rows."
        )
    warn_user(
        f"public_size={public_size!r} uses {np.count_nonzero(is_public)} private rows "
        "as public rows. The people in these rows are not protected (see "
        "public_indices_). Pass X_public to protect every row.",
        PublicDataWarning,
    )
    return is_public


def read_public_inputs(
    estimator: Any,
    X_public: Any,
    sent: Any,
    *,
    method: str,
    privacy_unit: str | None = None,
) -> PublicInputs:
    """Check the arguments of a fit on what parties sent, except for its values.

    `estimator` is read as in `split_inputs`; `method` is the name of that fit. With a
    `privacy_unit`, they are votes of shards that hold these units whole.
    """
    if isinstance(X_public, Votes) or isinstance(sent, PublicData):
        raise ValueError(
            f"{method} takes the public rows first; call {method}(X_public, ...)."
        )
    if estimator.classes is None:
        raise ValueError(
            f"{method} needs the label set: pass all possible labels as classes=, "
            "chosen independently of the votes."
        )
    if estimator.public_size is not None:
        raise ValueError(
            f"public_size={estimator.public_size!r} holds out private rows, but "
            f"{method} gets none; set public_size=None."
        )
    if estimator.synthetic is not None:
        raise ValueError(
            f"synthetic={estimator.synthetic!r} counts private rows, but {method} gets "
            "none; set synthetic=None."
        )
    if X_public is None:
        raise ValueError(
            f"{method} needs the public rows that were labelled; pass "
            "X_public=PublicData(X_public)."
        )
    classes = check_classes(estimator.classes)
    X_public = public_table(X_public)
    header = sent.header if isinstance(sent, Votes) else None
    if header is not None and digest_of_rows(X_public) != header.public_rows:
        raise ValueError(
            "X_public differs from the public rows that teachers voted on, in values, "
            "types or order; pass exactly the rows that every site had."
        )
    X_public = check_public_features(estimator, X_public)
    warn_of_text(X_public)
    assumptions: tuple[Assumption, ...] = (OWN_DATA, ONE_PARTY)
    if privacy_unit is not None:
        assumptions = _assumptions_of_shards(header, privacy_unit)
    return PublicInputs(
        classes,
        X_public,
        privacy_unit or "party",
        (LABEL_SET, PUBLIC_ROWS, *assumptions),
    )


def _assumptions_of_shards(
    header: VoteHeader | None, privacy_unit: str
) -> tuple[Assumption, ...]:
    """Return what a statement about the units in shards assumes."""
    if header is None:
        raise ValueError(
            f"privacy_unit={privacy_unit!r} needs votes made by Votes.from_shards, "
            "which record the unit of their shards; leave it out for a guarantee per "
            "party."
        )
    if header.unit != privacy_unit:
        raise ValueError(
            f"privacy_unit={privacy_unit!r}, but the shards of these votes keep each "
            f"{header.unit} whole; pass privacy_unit={header.unit!r}."
        )
    of_sites = (ONE_SITE,) if len(header.shards) > 1 else ()
    return (COLUMNS, SHARDS_BY_KEY, OWN_SHARD, *of_sites)


def check_votes(votes: Any, public: PublicInputs) -> Votes:
    """Count the labels that `fit_from_votes` received, and check the counts."""
    if not isinstance(votes, Votes):
        votes = Votes.from_labels(votes, public.classes)
    if votes.n_public != public.n_public:
        raise ValueError(
            f"The votes are on {counted(votes.n_public, 'public row')} and X_public "
            f"has {public.n_public}; pass the rows that the parties labelled, in the "
            "same order."
        )
    if not np.array_equal(votes.classes, public.classes):
        raise ValueError(
            f"The votes were counted with the classes {votes.classes.tolist()}, not "
            f"with classes={public.classes.tolist()}; use the same list for both."
        )
    return votes


def check_parties(
    n_parties: int,
    n_teachers: int | str,
    delta: float,
    units: str = "parties",
    *,
    sent: str,
) -> None:
    """Check the number of parties or other units, which all `sent` something.

    A `delta` that is too large for their number gives a PrivacyLeakWarning.
    """
    if n_parties == 0:
        raise ValueError("No party sent outputs; pass one array per party.")
    if n_teachers not in ("auto", n_parties):
        raise ValueError(
            f"n_teachers={n_teachers!r}, but {n_parties} {units} {sent}; set "
            "n_teachers='auto'."
        )
    check_delta_is_small(delta, n_parties, units)

"""Private and public rows of a fit, and public rows with the votes of parties."""

from collections.abc import Container
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._aggregation._checks import (
    check_for_cluster,
    check_number_of_groups,
    check_one_source,
    check_unit,
)
from sklearn_pate._aggregation._codes import CodedColumns
from sklearn_pate._inputs._containers import Table, check_columns
from sklearn_pate._inputs._features import (
    check_features,
    check_held_out,
    check_public_features,
    read_public_rows,
)
from sklearn_pate._inputs._file_content import digest_of_rows
from sklearn_pate._inputs._known_columns import warn_of_text
from sklearn_pate._inputs._labels import (
    PublicData,
    check_classes,
    known_classes,
    public_table,
)
from sklearn_pate._inputs._odd_values import read_like_public
from sklearn_pate._synthetic._domain import Domain
from sklearn_pate._synthetic._marginals import SyntheticRows
from sklearn_pate._teachers._private_rows import PrivateRows
from sklearn_pate._votes._votes import VoteHeader, Votes
from sklearn_pate.accounting._calibrate import check_delta_is_small
from sklearn_pate.accounting._statement import (
    COLUMNS,
    DOMAIN_DECLARED,
    HELD_OUT_ROWS,
    LABEL_SET,
    ONE_PARTY,
    ONE_SITE,
    OWN_DATA,
    OWN_SHARD,
    PUBLIC_ROWS,
    SHARDS_BY_KEY,
    Assumption,
)
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.students._representations import CodeLogOdds


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
    #: Columns whose codes are counted, and log-odds from their noisy counts.
    coded: CodedColumns | None = None
    log_odds: CodeLogOdds | None = None
    #: Shares of the classes by noisy counts of rows or codes.
    class_shares: NDArray[np.float64] | None = None
    #: Number of rows or groups before any were held out, None where it is not public.
    n_units: int | None = None

    @property
    def content(self) -> tuple[Any, ...]:
        """Everything public that decides the release, but for parameters."""
        return (None if self.domain is not None else self.X_public), self.classes

    @property
    def counted_columns(self) -> Container[int]:
        """Container of the numbers of columns whose codes are counted."""
        return () if self.coded is None else self.coded.codes

    @property
    def counted_codes(self) -> dict[Any, list[str]] | None:
        """Dict of counted codes by the name of their column; None without any."""
        return None if self.coded is None else self.coded.by_name

    @property
    def depends_on_counts(self) -> bool:
        """Whether rows or features depend on noisy counts of private rows."""
        return self.domain is not None or self.coded is not None

    @property
    def n_public(self) -> int:
        """Number of public rows."""
        return self.X_public.shape[0]


def split_inputs(
    estimator: Any,
    X: Any,
    y: Any,
    X_public: Any,
    groups: Any,
    *,
    seed: int,
    key: int | None = None,
) -> tuple[Any, PublicInputs]:
    """Check the arguments of `fit`, and hold out public rows where none are given.

    Sets ``n_features_in_`` and ``feature_names_in_``. With the `key` of shards, X may
    be a dask collection, whose rows stay on the workers.

    Private values decide about an error only where a row has a group id of another
    type, or no row is left to learn from; with public rows, also where a column of
    numbers holds text alone, or a list. With groups as the unit, numbers of rows and
    groups, which are private there, decide about the error of more teachers than
    groups, and about that of public rows without PublicData.
    """
    unit, synthetic = estimator.privacy_unit, estimator.synthetic
    check_unit(unit, groups)
    check_number_of_groups(estimator)
    check_one_source(estimator, X_public)
    classes = known_classes(estimator.classes)
    private: Any
    if key is not None and hasattr(X, "__dask_graph__"):
        # Imported here, as it imports dask.
        from sklearn_pate._teachers._dask_rows import DaskRows, rows_like

        check_for_cluster(estimator)
        like = rows_like(X)
        check_columns(estimator, like, reset=True)
        X_public = read_public_rows(estimator, X_public, like, like, unit)
        read_like_public(like, X_public)  # errors of types, before workers read values
        hashed = estimator.ledger is not None
        private = DaskRows.read(
            X, y, groups, like=like, classes=classes, key=key, hashed=hashed
        )
    else:
        table = check_features(estimator, X, reset=True, private=True)
        if X_public is not None:
            X_public = read_public_rows(estimator, X_public, table, X, unit)
        private = PrivateRows.read(table, y, groups, classes=classes)
    n_rows = private.n_rows
    n_units = number_of_units(estimator, n_rows)
    domain, source = None, PUBLIC_ROWS
    if synthetic is not None:
        n_classes, source = len(private.classes), DOMAIN_DECLARED
        counts = partial(
            estimator._counts_of,
            n_classes=n_classes,
            n_units=n_units,
            epsilon=estimator.epsilon,
        )
        domain = synthetic._read(private.X, n_units, n_classes, counts)
        uniform = domain.uniform(synthetic.n_rows, seed)
        X_public = check_synthetic_rows(estimator, uniform)
    elif X_public is None:
        private, held_out = private.hold_out(estimator.public_size, seed)
        X_public, source = check_held_out(estimator, held_out), HELD_OUT_ROWS
    if not private.on_cluster:
        X = read_like_public(private.X, X_public, refuse=synthetic is None)
        private = replace(private, X=X)
    if domain is None:
        warn_of_text(X_public)
    private.check_usable()
    # The number of rows of groups is protected.
    n_checked = n_rows if unit == "row" else n_units
    if n_checked is not None:
        check_delta_is_small(estimator.delta, n_checked, f"{unit}s")
    assumptions = (private.label_set, source, COLUMNS)
    return private, PublicInputs(
        private.classes, X_public, unit, assumptions, domain, n_units=n_units
    )


def number_of_units(estimator: Any, n_rows: int) -> int | None:
    """Return the number of rows or groups, None where it is not public."""
    if estimator.privacy_unit == "group":
        return getattr(estimator, "n_groups", None)
    return None if estimator._add_remove else n_rows


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
    if isinstance(getattr(estimator, "codes", None), dict):
        raise ValueError(
            f"codes are counted in private rows, but {method} gets none; set "
            "codes=None."
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

"""Checks of votes and outputs of parties."""

from typing import Any

import numpy as np

from sklearn_pate._base._argument_checks import check_delta_is_small
from sklearn_pate._base._split_inputs import PublicInputs
from sklearn_pate._inputs._column_types import warn_of_text
from sklearn_pate._inputs._digest import digest_of_rows
from sklearn_pate._inputs._features import check_public_features
from sklearn_pate._inputs._labels import check_classes
from sklearn_pate._inputs._public_data import PublicData
from sklearn_pate._votes._vote_header import VoteHeader
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._assumptions import (
    COLUMNS,
    LABEL_SET,
    ONE_PARTY,
    ONE_SITE,
    OWN_DATA,
    OWN_SHARD,
    PUBLIC_ROWS,
    SHARDS_BY_KEY,
    Assumption,
)
from sklearn_pate.accounting._counted import counted
from sklearn_pate.students import Clusters

__all__ = ["check_parties", "check_votes", "read_public_inputs"]


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
            f"{method} needs the label set: set classes= to all labels that count, "
            "chosen independently of the votes."
        )
    if estimator.public_size is not None:
        raise ValueError(
            f"public_size={estimator.public_size!r} holds out private rows, and "
            f"{method} has none; leave public_size=None."
        )
    if estimator.synthetic is not None:
        raise ValueError(
            f"synthetic={estimator.synthetic!r} counts private rows, and {method} has "
            "none; leave synthetic=None."
        )
    if X_public is None:
        raise ValueError(
            f"{method} needs the public rows that were labelled; pass "
            "X_public=PublicData(X_public)."
        )
    classes = check_classes(estimator.classes)
    X_public = X_public.X if isinstance(X_public, PublicData) else X_public
    header = sent.header if isinstance(sent, Votes) else None
    if header is not None and digest_of_rows(X_public) != header.public_rows:
        raise ValueError(
            "X_public is not what the votes were cast on, or differs in a type or a "
            "bit; pass the rows that every site had, in the same order."
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
            f"privacy_unit={privacy_unit!r} needs votes that say what a shard holds, "
            "made by Votes.from_shards; leave it out to state the guarantee of a party."
        )
    if header.unit != privacy_unit:
        raise ValueError(
            f"privacy_unit={privacy_unit!r}, but the shards of these votes hold each "
            f"{header.unit} whole; pass privacy_unit={header.unit!r}."
        )
    of_sites = (ONE_SITE,) if len(header.shards) > 1 else ()
    return (COLUMNS, SHARDS_BY_KEY, OWN_SHARD, *of_sites)


def check_votes(votes: Any, public: PublicInputs, clusters: Clusters | None) -> Votes:
    """Count the labels that `fit_from_votes` received, and check the counts."""
    if not isinstance(votes, Votes):
        of_row = None if clusters is None else clusters.of_row
        votes = Votes.from_labels(votes, public.classes, clusters=of_row)
    elif clusters is not None:
        raise ValueError(
            "query_strategy='cluster' counts the votes of each party on clusters, and "
            "Votes are counted by public row; pass the parties' arrays of labels."
        )
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
        raise ValueError("No party's outputs were given; pass one array a party.")
    if n_teachers not in ("auto", n_parties):
        raise ValueError(
            f"n_teachers={n_teachers!r} but {n_parties} {units} {sent}; leave "
            "n_teachers='auto'."
        )
    check_delta_is_small(delta, n_parties, units)

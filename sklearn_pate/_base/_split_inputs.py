"""What `fit` and `predict` received, checked and sorted into private and public."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._inputs._containers import check_container
from sklearn_pate._inputs._features import (
    check_features,
    check_held_out,
    check_public_features,
    is_frame,
    read_like_public,
)
from sklearn_pate._inputs._labels import check_classes, class_indices, read_classes
from sklearn_pate._inputs._public_data import PublicData
from sklearn_pate._teachers import group_ids, hold_out_groups, hold_out_rows
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._assumptions import (
    COLUMNS,
    HELD_OUT_ROWS,
    LABEL_SET,
    LABEL_SET_READ,
    ONE_PARTY,
    OWN_DATA,
    PUBLIC_ROWS,
    Assumption,
)
from sklearn_pate.exceptions import PrivacyLeakWarning, PublicDataWarning

__all__ = [
    "RELATIONS",
    "PrivateInputs",
    "PublicInputs",
    "check_delta_is_small",
    "check_parties",
    "check_target",
    "receive",
    "receive_labels",
    "receive_public",
    "seal_votes",
]

#: The change of one unit that reaches one teacher alone.
RELATIONS = {
    "row": "replace-one",
    "group": "add-remove-or-change",
    "party": "replace-one",
}


@dataclass
class PublicInputs:
    """What may be seen after the vote."""

    classes: np.ndarray
    X_public: Any
    unit: str
    relation: str
    assumptions: tuple[Assumption, ...]

    @property
    def n_public(self):
        """Number of public rows."""
        return self.X_public.shape[0]


@dataclass
class PrivateInputs:
    """What only teachers may see, and which rows were set apart from it."""

    X: Any
    codes: np.ndarray
    ids: np.ndarray | None
    group_of_row: np.ndarray | None
    public_indices: np.ndarray | None
    #: Which rows and classes nothing is learned from. Sensitive.
    problems: tuple[str, ...] = ()

    @property
    def n_rows(self):
        """Number of private rows."""
        return self.X.shape[0]

    def content(self):
        """Return everything about the private rows, for a keyed fingerprint.

        Returns
        -------
        content : tuple
            Sensitive.
        """
        return self.X, self.codes, self.ids, self.group_of_row


def receive(pate, X, y, X_public, groups, *, seed):
    """Check the arguments of `fit`, and set the public rows apart.

    Parameters
    ----------
    pate : TeacherEnsemble
        Its parameters are read; ``n_features_in_`` and ``feature_names_in_`` are set.

    X, y, X_public, groups : array-like
        As in :meth:`PATEClassifier.fit`.

    seed : int
        Seed of the choice of public rows, where `public_size` asks for one.

    Returns
    -------
    private : PrivateInputs
        What is left to do needs no further checks of the data.

    public : PublicInputs
        With what was assumed.

    Raises
    ------
    ValueError
        If an argument cannot be used. Private values decide only where a row has a
        group id of another type, or no row at all is left to learn from.
    """
    check_target(pate, y)
    X = check_features(pate, X, reset=True, private=True)
    check_consistent_length(X, y)
    ids, group_of_row = _check_groups(pate, groups, X)
    classes, codes, label_set = receive_labels(pate, y)
    assumptions = [label_set]
    check_delta_is_small(pate.delta, X.shape[0], "rows")
    if X_public is None:
        is_public = _hold_out(pate, ids, group_of_row, X.shape[0], seed)
        public_indices = np.flatnonzero(is_public)
        private = np.flatnonzero(~is_public)
        X_public, X = _safe_indexing(X, public_indices), _safe_indexing(X, private)
        X_public, codes = check_held_out(pate, X_public), codes[private]
        if group_of_row is not None:
            ids, group_of_row = _groups_left(ids, group_of_row[private])
        assumptions.append(HELD_OUT_ROWS)
    else:
        public_indices = None
        X_public = _check_public(pate, X, X_public)
        assumptions.append(PUBLIC_ROWS)
    X = read_like_public(X, X_public)
    problems = _problems(pate, classes, codes)
    if group_of_row is not None:
        n_without = np.count_nonzero(group_of_row < 0)
        if n_without:
            problems.append(f"{n_without} rows have no group id, and were left out.")
        # It could be anyone's, also somebody's who has an id in another row.
        codes = np.where(group_of_row < 0, -1, codes)
    if np.all(codes < 0):
        without_id = "" if group_of_row is None else " and a group id"
        raise ValueError(
            f"No private row of y has a label in classes={pate.classes!r}{without_id}; "
            "compare their spelling and type."
        )
    assumptions.append(COLUMNS)
    unit = pate.privacy_unit
    return (
        PrivateInputs(X, codes, ids, group_of_row, public_indices, tuple(problems)),
        PublicInputs(classes, X_public, unit, RELATIONS[unit], tuple(assumptions)),
    )


def check_target(estimator, y):
    """Raise unless there are labels.

    Parameters
    ----------
    estimator : estimator
        Who needs them.

    y : array-like or None
        As received by its `fit`.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None."
        )
    check_container("y", y)


def receive_labels(estimator, y):
    """Turn private labels into class indices.

    Parameters
    ----------
    estimator : estimator
        Its parameter `classes` is read.

    y : array-like of shape (n_rows,)
        Private labels.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted labels.

    codes : ndarray of int of shape (n_rows,)
        Class indices, -1 for a label that is not in `classes`.

    assumption : Assumption
        What is stated about the label set.

    Raises
    ------
    ValueError
        If `classes` are text and the type of y is that of numbers, or the other way
        round. No value of y decides.
    """
    if estimator.classes is None:
        return *read_classes(y), LABEL_SET_READ
    classes = check_classes(estimator.classes)
    _check_label_type(estimator.classes, classes, y)
    return classes, class_indices(y, classes), LABEL_SET


def receive_public(pate, X_public, *, method):
    """Check the arguments of a fit on what was collected elsewhere, but for that.

    Parameters
    ----------
    pate : TeacherEnsemble
        Its parameters are read; ``n_features_in_`` and ``feature_names_in_`` are set.

    X_public : array-like
        As in :meth:`PATEClassifier.fit_votes`.

    method : str
        How that fit is called.

    Returns
    -------
    public : PublicInputs
        With what was assumed.
    """
    if pate.classes is None:
        raise ValueError(
            f"{method} needs the label set: set classes= to all labels that count, "
            "chosen without a look at the votes."
        )
    if pate.public_size is not None:
        raise ValueError(
            f"public_size={pate.public_size!r} holds out private rows, and {method} "
            "has none; leave public_size=None."
        )
    if X_public is None:
        raise ValueError(
            f"{method} needs the public rows that were labelled; pass "
            "X_public=PublicData(X_public)."
        )
    classes = check_classes(pate.classes)
    X_public = X_public.X if isinstance(X_public, PublicData) else X_public
    X_public = check_public_features(pate, X_public)
    assumptions = (LABEL_SET, PUBLIC_ROWS, OWN_DATA, ONE_PARTY)
    return PublicInputs(classes, X_public, "party", RELATIONS["party"], assumptions)


def seal_votes(pate, votes, public, clusters):
    """Check the votes that `fit_votes` received, and seal them.

    Parameters
    ----------
    pate : TeacherEnsemble
        Its parameters are read.

    votes : Votes or array-like
        As in :meth:`PATEClassifier.fit_votes`.

    public : PublicInputs
        What they are about.

    clusters : Clusters or None
        Public rows that are voted on together.

    Returns
    -------
    votes : Votes
        One ballot a party.
    """
    if not isinstance(votes, Votes):
        of_row = None if clusters is None else clusters.of_row
        votes = Votes.from_labels(votes, public.classes, clusters=of_row)
    elif clusters is not None:
        raise ValueError(
            f"query_strategy={pate.query_strategy!r} adds up what each party says "
            "about clusters, and Votes hold all parties' sums alone; pass the parties' "
            "arrays of labels."
        )
    n_parties = votes.shape[0]
    if votes.n_public != public.n_public:
        raise ValueError(
            f"The votes are on {votes.n_public} public rows and X_public has "
            f"{public.n_public}; pass the rows that the parties labelled, in the "
            "same order."
        )
    if not np.array_equal(votes.classes, public.classes):
        raise ValueError(
            f"The votes were sealed with the classes {votes.classes.tolist()}, not "
            f"with classes={pate.classes!r}; use the same list for both."
        )
    check_parties(pate, n_parties, "voted")
    return votes


def check_parties(pate, n_parties, did):
    """Check how many parties sent something.

    Parameters
    ----------
    pate : TeacherEnsemble
        Its parameters are read.

    n_parties : int
        How many.

    did : str
        What they did.

    Raises
    ------
    ValueError
        If there are none, or `n_teachers` says another number.

    Warns
    -----
    PrivacyLeakWarning
        If `delta` is too large for their number.
    """
    if n_parties == 0:
        raise ValueError("No party's outputs were given; pass one array a party.")
    if pate.n_teachers not in ("auto", n_parties):
        raise ValueError(
            f"n_teachers={pate.n_teachers!r} but {n_parties} parties {did}; leave "
            "n_teachers='auto'."
        )
    check_delta_is_small(pate.delta, n_parties, "parties")


def check_delta_is_small(delta, n_units, units):
    """Warn of a delta that would allow somebody's data to be published.

    Parameters
    ----------
    delta : float
        In (0, 1).

    n_units : int
        How many there are whose data could be.

    units : str
        What they are.

    Warns
    -----
    PrivacyLeakWarning
        If `delta` is 1 / `n_units` or more.
    """
    if delta >= 1 / n_units:
        warnings.warn(
            f"delta={delta!r} is not below 1 / n_{units} = 1 / {n_units}: such a "
            "statement would allow the data of one of them to be published outright. "
            "Choose a smaller delta.",
            PrivacyLeakWarning,
            stacklevel=5,
        )


def _check_label_type(given, classes, y):
    """Raise if no label of the type that y declares could be in `classes`."""
    kind = np.asarray(y).dtype.kind if hasattr(y, "dtype") else "O"
    is_text, is_number = classes.dtype.kind == "U", classes.dtype.kind in "biuf"
    if (is_text and kind in "biufcSmM") or (is_number and kind in "UTSmM"):
        raise ValueError(
            f"No private row of y has a label in classes={given!r}, as y is of type "
            f"{y.dtype}; give both the same type."
        )


def _problems(pate, classes, codes):
    """Describe labels that are in y or in `classes` only. Sensitive."""
    if pate.classes is None:
        return []
    seen = np.isin(np.arange(len(classes)), codes)
    problems = [f"No row has the label {label!r}." for label in classes[~seen].tolist()]
    n_other = np.count_nonzero(codes < 0)
    if n_other:
        problems.append(f"{n_other} rows have a label that is not in classes.")
    return problems


def _groups_left(ids, group_of_row):
    """Leave out the ids of groups that have no row."""
    left = np.unique(group_of_row[group_of_row >= 0])
    place = np.full(len(ids) + 1, -1)  # the last one for rows without an id
    place[left] = np.arange(len(left))
    return ids[left], place[group_of_row]


def _check_groups(pate, groups, X):
    if pate.privacy_unit == "row":
        if groups is not None:
            raise ValueError(
                "groups were passed but privacy_unit='row' protects single rows; set "
                "privacy_unit='group', or leave groups out."
            )
        return None, None
    if groups is None:
        raise ValueError(
            "privacy_unit='group' needs groups in fit, and got none. Inside a search "
            "or a pipeline, groups reach fit only with "
            "set_config(enable_metadata_routing=True) and "
            ".set_fit_request(groups=True) on the classifier."
        )
    if pate.n_teachers == "auto":
        raise ValueError(
            "n_teachers='auto' counts rows, which are not public when a group is the "
            "unit; pass a number, chosen without a look at the data, such as 100."
        )
    ids, group_of_row = group_ids(groups)
    check_consistent_length(X, group_of_row)
    return ids, group_of_row


def _hold_out(pate, ids, group_of_row, n_rows, seed):
    if pate.public_size is None:
        raise ValueError(
            f"{type(pate).__name__} needs public rows to ask its teachers about: pass "
            "fit(..., X_public=PublicData(X_public)), or set public_size=0.2 to give "
            "up the privacy of a random fifth of the rows."
        )
    if ids is None:
        is_public = hold_out_rows(n_rows, pate.public_size, seed)
    else:
        is_public = hold_out_groups(ids, pate.public_size, seed)[group_of_row]
        is_public &= group_of_row >= 0
    if np.all(is_public) or not np.any(is_public):
        side = "private" if np.all(is_public) else "public"
        raise ValueError(
            f"public_size={pate.public_size!r} leaves no {side} row out of "
            f"n_samples={n_rows}; pass X_public, or bring more rows."
        )
    warnings.warn(
        f"public_size={pate.public_size!r}: {np.count_nonzero(is_public)} of the rows "
        "are used as public data, and the people in them get no protection (see "
        "public_indices_). Pass X_public to protect every row.",
        PublicDataWarning,
        stacklevel=5,
    )
    return is_public


def _check_public(pate, X, X_public):
    if pate.public_size is not None:
        raise ValueError(
            f"X_public and public_size={pate.public_size!r} were both given; leave "
            "public_size=None, or do not pass X_public."
        )
    is_wrapped = isinstance(X_public, PublicData)
    X_public = X_public.X if is_wrapped else X_public
    check_container("X_public", X_public)
    if not is_wrapped and getattr(X_public, "shape", ())[:1] == X.shape[:1]:
        warnings.warn(
            f"X_public has as many rows as X ({X.shape[0]}): a search or a "
            "cross-validation would cut both alike. Wrap it: X_public=PublicData(...).",
            PublicDataWarning,
            stacklevel=5,
        )
    if is_frame(X_public) != is_frame(X):
        raise ValueError(
            f"X is a {type(X).__name__} and X_public a {type(X_public).__name__}; pass "
            "both as dataframes with the same columns, or neither."
        )
    if sp.issparse(X_public) != sp.issparse(X):
        raise ValueError(
            "One of X and X_public is sparse and the other is not; pass both alike."
        )
    return check_public_features(pate, X_public, X)

"""What `fit` and `predict` received, checked and sorted into private and public."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, assert_all_finite, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from sklearn_pate.exceptions import PrivacyLeakWarning, PublicDataWarning
from sklearn_pate.public_data import PublicData
from sklearn_pate.teachers import group_ids, hold_out_groups, hold_out_rows

__all__ = ["FitInputs", "check_features", "receive"]


@dataclass
class FitInputs:
    """Private rows and public rows, apart from here on."""

    X: Any
    codes: np.ndarray
    classes: np.ndarray
    ids: np.ndarray | None
    group_of_row: np.ndarray | None
    X_public: Any
    public_indices: np.ndarray | None
    assumptions: tuple[str, ...]

    @property
    def n_rows(self):
        """Number of private rows."""
        return self.X.shape[0]

    @property
    def n_public(self):
        """Number of public rows."""
        return self.X_public.shape[0]


def receive(pate, X, y, X_public, groups, *, seed):
    """Check the arguments of `fit`, and set the public rows apart.

    Parameters
    ----------
    pate : PATEClassifier
        Its parameters are read; ``n_features_in_`` and ``feature_names_in_`` are set.

    X, y, X_public, groups : array-like
        As in :meth:`PATEClassifier.fit`.

    seed : int
        Seed of the choice of public rows, where `public_size` asks for one.

    Returns
    -------
    inputs : FitInputs
        What is left to do needs no further checks of the data.
    """
    if y is None:
        raise ValueError(
            "PATEClassifier requires y to be passed, but the target y is None."
        )
    X = check_features(pate, X, reset=True)
    check_consistent_length(X, y)
    ids, group_of_row = _check_groups(pate.privacy_unit, groups, X)
    classes, codes, assumptions = _encode(y, pate.classes)
    if pate.delta >= 1 / X.shape[0]:
        warnings.warn(
            f"delta={pate.delta!r} is not below 1 / n_rows = 1 / {X.shape[0]}: such a "
            "statement would allow one person's data to be published outright. Choose "
            "a smaller delta.",
            PrivacyLeakWarning,
            stacklevel=4,
        )
    if X_public is None:
        is_public = _hold_out(pate, ids, group_of_row, X.shape[0], seed)
        public_indices = np.flatnonzero(is_public)
        private = np.flatnonzero(~is_public)
        X_public, X = _safe_indexing(X, public_indices), _safe_indexing(X, private)
        codes = codes[private]
        if group_of_row is not None:
            kept, group_of_row = np.unique(group_of_row[private], return_inverse=True)
            ids = ids[kept]
        assumptions = (*assumptions, "the rows held out by public_size are public")
    else:
        public_indices = None
        X_public = _check_public(pate, X, X_public)
        assumptions = (*assumptions, "X_public is public")
    if np.all(codes < 0):
        raise ValueError(
            f"No private row of y has a label in classes={pate.classes!r}; compare "
            "their spelling and type."
        )
    return FitInputs(
        X, codes, classes, ids, group_of_row, X_public, public_indices, assumptions
    )


def check_features(pate, X, *, reset):
    """Check features as teachers and student can take them.

    Frames are handed on as they are, so that a ColumnTransformer inside a teacher still
    finds its columns by name.

    Parameters
    ----------
    pate : PATEClassifier
        Holds ``n_features_in_`` and ``feature_names_in_``.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Features.

    reset : bool
        Set the two attributes, or compare with them.

    Returns
    -------
    X : {ndarray, csr matrix, dataframe} of shape (n_rows, n_features)
        The same features.
    """
    if _is_frame(X):
        validate_data(pate, X, reset=reset, skip_check_array=True)
        if X.shape[0] == 0:
            raise ValueError("Found array with 0 sample(s); pass at least one row.")
        return X
    tags = get_tags(pate).input_tags
    if not sp.issparse(X):
        X = np.asarray(X)
    return validate_data(
        pate,
        X,
        reset=reset,
        accept_sparse="csr" if tags.sparse else False,
        ensure_all_finite="allow-nan" if tags.allow_nan else True,
        dtype=None if _holds_text(X) else "numeric",
        allow_nd=True,
    )


def _holds_text(X):
    # Text is for the teachers to encode; other objects should be numbers.
    return X.dtype.kind in "US" or (
        X.dtype.kind == "O" and any(isinstance(value, str) for value in X.ravel())
    )


def _is_frame(X):
    return hasattr(X, "columns") or hasattr(X, "__dataframe__")


def _encode(y, classes):
    """Return sorted classes, the index of each label in them, and what is assumed."""
    if classes is None:
        labels, codes = np.unique(_check_labels(y), return_inverse=True)
        if len(labels) < 2:
            raise ValueError(
                f"y holds one class only, {labels.tolist()[0]!r}; classifiers need "
                "two. Pass classes= if others are possible."
            )
        return labels, codes, ("the label set (read from y) is public",)
    classes = np.unique(np.asarray(classes))
    index = {label: k for k, label in enumerate(classes.tolist())}
    # Label by label: one label of another type must not change how others are read.
    y = y if hasattr(y, "dtype") else np.array(y, dtype=object)
    codes = np.array([_code(label, index) for label in column_or_1d(y).tolist()])
    return classes, codes, ("the label set is public",)


def _code(label, index):
    try:
        return index.get(label, -1)
    except TypeError:  # unhashable, so no label of ours
        return -1


def _check_labels(y):
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "O":
        if any(_is_missing(label) for label in y.tolist()):
            raise ValueError(
                "y holds missing labels (None or NaN); drop those rows, or give them a "
                "label of their own."
            )
    elif y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    return y


def _is_missing(label):
    # pandas' own missing value refuses to be compared.
    return label is None or type(label).__name__ == "NAType" or label != label


def _check_groups(privacy_unit, groups, X):
    if privacy_unit == "row":
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
            ".set_fit_request(groups=True) on the PATEClassifier."
        )
    ids, group_of_row = group_ids(groups)
    check_consistent_length(X, group_of_row)
    return ids, group_of_row


def _hold_out(pate, ids, group_of_row, n_rows, seed):
    if pate.public_size is None:
        raise ValueError(
            "PATEClassifier needs public rows to ask its teachers about: pass "
            "fit(..., X_public=PublicData(X_public)), or set public_size=0.2 to give "
            "up the privacy of a random fifth of the rows."
        )
    if ids is None:
        is_public = hold_out_rows(n_rows, pate.public_size, seed)
    else:
        is_public = hold_out_groups(ids, pate.public_size, seed)[group_of_row]
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
    if isinstance(X_public, PublicData):
        X_public = X_public.X
    elif hasattr(X_public, "shape") and X_public.shape[0] == X.shape[0]:
        warnings.warn(
            f"X_public has as many rows as X ({X.shape[0]}): a search or a "
            "cross-validation would cut both alike. Wrap it: X_public=PublicData(...).",
            PublicDataWarning,
            stacklevel=5,
        )
    if _is_frame(X_public) != _is_frame(X):
        raise ValueError(
            f"X is a {type(X).__name__} and X_public a {type(X_public).__name__}; pass "
            "both as dataframes with the same columns, or neither."
        )
    X_public = check_features(pate, X_public, reset=False)
    if sp.issparse(X_public) != sp.issparse(X):
        raise ValueError(
            "One of X and X_public is sparse and the other is not; pass both alike."
        )
    return X_public

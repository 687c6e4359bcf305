"""Checks of private and public features, with advice on preprocessing."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import InputTags, get_tags
from sklearn.utils.validation import check_array

from sklearn_pate._inputs._containers import (
    NUMBERS,
    Table,
    as_public_array,
    as_table,
    check_columns,
    check_container,
    column_kinds,
    column_of,
    holds_text,
    is_frame,
)
from sklearn_pate._inputs._labels import is_wrapped, public_table
from sklearn_pate._inputs._odd_values import (
    INFINITE,
    MISSING,
    columns_with_missing,
    odd_rows,
    read_numbers,
    text_columns,
)
from sklearn_pate.exceptions import PublicDataWarning, warn_user

# Packages whose tags are right about missing values.
_RELIABLE_TAGS = {"sklearn", "skorch", "sklearn_pate"}
# They accept missing values and pass them on.
_SCALERS = (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
# In errors of scikit-learn, numpy and catboost.
_OF_TEXT, _OF_MISSING = ("to float", "bytes/strings"), "contains NaN"
# What follows is a value, which may be that of a row of `public_size`.
_BEFORE_VALUES = re.compile(
    r"(string to \w+|invalid literal for \w+|unknown categories|Bad value for).*"
)
# What is in an error, and what to do about it. Errors of columns are told apart before.
_REMEDIES = {
    r"to float|bytes/strings|contains NaN": (
        "Inside {name}=, put an encoder with handle_unknown='ignore' for text, or an "
        "imputer for missing values, before the step that refuses these values"
    ),
    r"[Ee]arly.stopping|validation (data|set)": (
        "The model gets no validation set; in {name}=, turn early stopping off, or let "
        "the model split its own rows"
    ),
    r"unknown categories": (
        "In {name}=, set handle_unknown='ignore' in the encoder, or "
        "handle_unknown='use_encoded_value' and unknown_value=-1 in an OrdinalEncoder"
    ),
    r"Double|float64": (
        "Cast X and X_public to float32, or add a step in {name}= that casts them "
        "before the network"
    ),
    r"Invalid classes inferred": (
        "Replace the labels in y and classes= by the numbers 0, 1, ..., and use them "
        "in {name}="
    ),
    r"inconsistent numbers of samples": (
        "A text vectorizer reads one column: name it, as in "
        "make_column_transformer((vectorizer, 'text'))"
    ),
    r"feature_names must|JSON characters|string names": (
        "Rename the columns of X and X_public, or those that a step in {name}= "
        "creates: use letters, digits and underscores only"
    ),
}
# A longer estimator has dots in a message.
_MOST_CHARACTERS = 60
# An exact answer may be slow for arrays with unusual strides; then it is not known.
_MOST_WORK = 10_000


def _fills_missing(step: Any) -> bool:
    is_imputer = type(step).__module__.startswith("sklearn.impute")
    return is_imputer or getattr(step, "_fills_missing", False)


def takes_missing(estimator: Any) -> bool | None:
    """Check whether an estimator accepts missing values in arrays of numbers.

    The tag ``allow_nan`` decides; for an estimator that wraps others, the tags of all
    of them. A Pipeline accepts them if all steps do, or those up to an imputer of
    scikit-learn or a TableRepresentation. None if that is unknown, as behind a
    ColumnTransformer, or for a `fit` that is neither scikit-learn's nor skorch's and
    has the default tag. An estimator of None stands for the comparison of rows, which
    does not accept them.
    """
    if estimator is None:
        return False
    if isinstance(estimator, Pipeline):
        steps = [
            step for _, step in estimator.steps if step not in (None, "passthrough")
        ]
        for step in steps:
            taken = takes_missing(step)
            if not taken:
                return taken
            if _fills_missing(step):
                return True
            if step is not steps[-1] and not isinstance(step, _SCALERS):
                return None
        return True
    tags = get_tags(estimator)
    if tags.input_tags.allow_nan:
        return True
    inner = _wrapped(estimator)
    if inner:
        all_taken = {takes_missing(one) for one in inner}
        return None if None in all_taken else False not in all_taken
    of_fit = (one.__module__ for one in type(estimator).__mro__ if "fit" in vars(one))
    if next(of_fit, "").partition(".")[0] not in _RELIABLE_TAGS:
        return None
    parts = getattr(
        estimator, "transformers", getattr(estimator, "transformer_list", 0)
    )
    return None if tags.no_validation or parts else False


def input_tags(estimator: Any) -> InputTags:
    """Return input tags, with ``allow_nan`` decided by `takes_missing`."""
    tags = get_tags(estimator).input_tags
    tags.allow_nan = takes_missing(estimator) is True
    return tags


def _wrapped(estimator: Any) -> list[Any]:
    """List the estimators that an estimator wraps."""
    parts = [getattr(estimator, "estimator", None)]
    parts += [part for _, part in getattr(estimator, "estimators", None) or []]
    return [
        part
        for part in parts
        if hasattr(part, "get_params") and not isinstance(part, type)
    ]


def is_of_values(failure: str) -> bool:
    """Check whether an estimator failed for text or missing values."""
    return _is_of_text(failure) or _OF_MISSING in failure


def quotes_values(failure: str) -> bool:
    """Check whether an error quotes a value of a row."""
    return bool(_BEFORE_VALUES.search(failure))


def cause_of(failure: str) -> str:
    """Return the line of an error that has the cause, without values of rows.

    That is the last line of a traceback in it, as a search has, and else the first.
    Advice of scikit-learn follows, such as to impute in front of this classifier.
    """
    lines = failure.strip().splitlines() or [failure]
    cause = lines[-1 if any(line.startswith("Traceback") for line in lines) else 0]
    return _BEFORE_VALUES.sub(r"\1", cause).rstrip(".")


def remedy_of(failure: str, X_public: Table, name: str, estimator: Any) -> str:
    """Return what to do about a failure on public rows; "" if nothing is known."""
    if len(X_public.shape) == 2 and (
        (_is_of_text(failure) and text_columns(X_public))
        or (_OF_MISSING in failure and columns_with_missing(X_public))
    ):
        return advice_on_values(failure, X_public, {name: estimator})
    for part, remedy in _REMEDIES.items():  # of a step, or of types and names
        if re.search(part, failure):
            return f"{remedy.format(name=name)}."
    return ""


def advice_on_values(failure: str, X_public: Any, estimators: Mapping[str, Any]) -> str:
    """Return code that encodes text and imputes missing values, by public rows alone.

    `estimators` are those that fail, by the names of their parameters.
    """
    text, missing = text_columns(X_public), columns_with_missing(X_public)
    inside = " and ".join(f"{name}=" for name in estimators)
    has_own_encoder = not _is_of_text(failure) and None in map(
        takes_missing, estimators.values()
    )
    if not is_frame(X_public) and (
        X_public.dtype.kind in "SU" or (text and missing)  # its columns have one type
    ):
        return (
            "Pass X and X_public as dataframes, so that each column has a type. Put an "
            f"encoder for text and an imputer for missing values inside {inside}."
        )
    if text and has_own_encoder:
        return (
            f"Put an imputer for {missing} into {inside}, and set "
            "handle_unknown='ignore' in an encoder of text. A step in front of this "
            "classifier would learn from private rows without protection."
        )
    first = "SimpleImputer()" if missing else "'passthrough'"
    steps = ["an imputer"] if missing else []
    if text:
        steps = ["an encoder", *steps]
        first = (
            "make_column_transformer((OneHotEncoder(handle_unknown='ignore', "
            f"sparse_output=False), {text}), remainder={first})"
        )
    code = ", ".join(
        # Without a representation, rows are compared by standardized columns.
        f"{name}=make_pipeline({first}, "
        f"{'StandardScaler()' if estimator is None else in_short(estimator)})"
        for name, estimator in estimators.items()
    )
    return (
        f"Put {' and '.join(steps)} inside {inside}, never in front of this "
        f"classifier, where a step learns from private rows without protection: {code}."
    )


def in_short(estimator: Any) -> str:
    """Return the code of an estimator, with dots in a long one."""
    whole = repr(estimator)
    is_short = len(whole) <= _MOST_CHARACTERS and "\n" not in whole
    return whole if is_short else f"{type(estimator).__name__}(...)"


def _is_of_text(failure: str) -> bool:
    return any(part in failure for part in _OF_TEXT)


def read_public_rows(
    estimator: Any, X_public: Any, X: Table, given: Any, unit: str = "row"
) -> Table:
    """Check public rows, alone and against checked private rows; `given` are those.

    Errors reveal no more of `X` than its shape and the names and types of its columns.
    """
    X_public = _unwrapped(X_public, X, unit)
    # No value decides. Copies are not detected.
    parts = zip(_parts(given), _parts(X_public), strict=False)
    if X_public is given or any(_share_memory(*both) for both in parts):
        raise ValueError(
            "X_public is X, or shares rows with it in memory. The people in these rows "
            "would not be protected, although the statement would say so. Pass rows of "
            "other people. Or leave X_public out and set "
            "synthetic=PrivateMarginals(domain), which protects all rows, or "
            "public_size=0.2, which leaves a random fifth of them unprotected."
        )
    return check_public_features(estimator, X_public, X)


def _unwrapped(X_public: Any, X: Table, unit: str) -> Any:
    """Return the public rows of PublicData, in a container like that of X."""
    given, X_public = X_public, public_table(X_public)
    check_container("X_public", X_public)
    n_public = len(X_public) if isinstance(X_public, (list, tuple)) else None
    if getattr(X_public, "shape", (n_public,))[:1] == X.shape[:1]:
        if not is_wrapped(given):
            raise ValueError(
                f"X_public has as many rows as X ({X.shape[0]}): a search or "
                "cross-validation may have split it like X. Pass "
                "X_public=PublicData(X_public), which is never split."
            )
        if unit == "row":  # with groups, the number of rows is not public
            warn_user(
                f"X_public has as many rows as X ({X.shape[0]}). If it is a copy of X, "
                "no person in it is protected: pass rows of other people. If not, "
                "ignore this.",
                PublicDataWarning,
            )
    if is_frame(X_public) != is_frame(X):
        raise ValueError(
            f"X is of type {type(X).__name__} and X_public of type "
            f"{type(X_public).__name__}; pass dataframes with the same columns for "
            "both, or for neither."
        )
    if sp.issparse(X_public) != sp.issparse(X):
        raise ValueError(
            "One of X and X_public is sparse and the other is not; pass both sparse, "
            "or both dense."
        )
    return X_public


def _parts(X: Any) -> list[NDArray[Any]]:
    """List arrays in the memory of X, of a dataframe one for each column of numbers."""
    if sp.issparse(X):
        X = getattr(X, "data", None)
    elif is_frame(X):
        kinds = enumerate(column_kinds(X))
        return [column_of(X, column) for column, kind in kinds if kind in NUMBERS]
    return [X] if isinstance(X, np.ndarray) else []


def _share_memory(one: NDArray[Any], other: NDArray[Any]) -> bool:
    try:
        # numpy's stubs know -1 and 0 alone.
        return np.shares_memory(one, other, max_work=_MOST_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return False


def check_features(
    estimator: Any, X: Any, *, reset: bool, name: str = "X", private: bool = False
) -> Any:
    """Check features, and return them as an array, a CSR matrix or the same dataframe.

    Dataframes stay as they are, so that a ColumnTransformer inside a teacher finds its
    columns by name. `reset` sets ``n_features_in_`` and ``feature_names_in_`` of the
    estimator; otherwise X is compared with them. No value of `private` features raises
    an error, as that would reveal something about its row: values are read later, by
    `read_like_public` or by the teachers. `name` stands for the features in messages.
    """
    X = as_table(X, name, private=private)
    if not is_frame(X):
        tags = get_tags(estimator).input_tags
        finite = "allow-nan" if tags.allow_nan else True
        X = check_array(
            X,
            accept_sparse="csr" if tags.sparse else False,
            ensure_all_finite=False if private else finite,
            dtype=None if private or holds_text(X) else "numeric",
            allow_nd=True,
            estimator=estimator,
            input_name=name,
        )
    check_columns(estimator, X, reset=reset, name=name)
    if X.shape[0] == 0:
        raise ValueError("Found array with 0 sample(s); pass at least one row.")
    return X


def check_numbers(
    estimator: Any, X: Any, *, reset: bool, dtype: DTypeLike, allow_nd: bool = False
) -> NDArray[np.floating]:
    """Read private features as numbers, each value on its own.

    Numbers may be infinite; what is missing, and text among numbers, is NaN. `reset` is
    that of `check_features`; with `allow_nd`, rows may have any shape.
    """
    X = received = as_table(X)
    # Integers too, so that they are rounded via float64 as objects are.
    if is_frame(X) or (not sp.issparse(X) and X.size and X.dtype.kind in "biuOUST"):
        X = read_numbers(X)
    # numpy would warn of a number that is too large for float32.
    with np.errstate(over="ignore"):
        X = check_array(
            X,
            dtype=dtype,
            ensure_all_finite=False,
            allow_nd=allow_nd,
            estimator=estimator,
            input_name="X",
        )
    names = received if is_frame(received) else X
    check_columns(estimator, names, reset=reset)
    return X


def check_public_features(estimator: Any, X_public: Any, X: Any = None) -> Any:
    """Check public features alone, and against checked private features `X`.

    Without `X`, ``n_features_in_`` and ``feature_names_in_`` are set. Errors reveal no
    more of `X` than its shape and the names and types of its columns.
    """
    check_container("X_public", X_public)
    received = type(X_public).__name__
    if not (is_frame(X_public) or sp.issparse(X_public)):
        try:
            X_public = as_public_array(X_public)
        except ValueError as error:
            raise ValueError(
                f"X_public is a {received} of rows of different lengths; pass rows of "
                "one length."
            ) from error
    shape = tuple(X_public.shape)
    if len(shape) < 2 or 0 in shape[:2]:
        raise ValueError(
            f"X_public is of type {received} and shape {shape}; pass the public rows "
            "themselves, of shape (n_public, n_features)."
        )
    # For frames with names, check_features reports which columns are wrong.
    if (
        X is not None
        and not hasattr(estimator, "feature_names_in_")
        and shape[1:] != X.shape[1:]
    ):
        raise ValueError(
            f"X_public has shape {shape} and X has shape {X.shape}; pass rows with the "
            "same features in both."
        )
    try:
        X_public = check_features(estimator, X_public, reset=X is None, name="X_public")
        _check_values_of_frame(estimator, X_public, "X_public")
    except (TypeError, ValueError) as error:
        problem = str(error).rstrip().removesuffix(".") + "."
        remedy = "Give X_public the same columns and types as the private rows."
        if is_of_values(problem) and len(shape) == 2:
            readers = estimator._readers()
            taken = {name: takes_missing(one) for name, one in readers.items()}
            # Those that refuse missing values, or else those that may.
            refused = False if False in taken.values() else None
            refusing = {name: readers[name] for name in taken if taken[name] is refused}
            remedy = advice_on_values(problem, X_public, refusing)
        raise ValueError(
            f"X_public has shape {shape} and cannot be used: {problem} {remedy}"
        ) from error
    return X_public


def check_held_out(estimator: Any, X: Any) -> Any:
    """Check rows of the private features that `public_size` makes public."""
    name = "X (a row that public_size makes public)"
    X = check_features(estimator, X, reset=False, name=name)
    _check_values_of_frame(estimator, X, name)
    return X


def _check_values_of_frame(estimator: Any, X: Any, name: str) -> None:
    """Raise for NaN or infinity in a dataframe if the estimator is known to refuse."""
    if is_frame(X) and False in map(takes_missing, estimator._readers().values()):
        odd = np.bitwise_or.reduce(odd_rows(X))
        if odd & (MISSING | INFINITE):
            what = "NaN" if odd & MISSING else "infinity"
            raise ValueError(f"Input {name} contains {what}.")

"""Causes and remedies of estimators that fail on public rows."""

import re
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._column_types import text_columns
from sklearn_pate._inputs._containers import Table, column_names
from sklearn_pate._inputs._odd_rows import (
    MISSING,
    columns_with_missing,
    is_frame,
    odd_rows,
    read_numbers,
)

__all__ = [
    "advice_on_values",
    "cause_of",
    "in_short",
    "is_of_values",
    "quotes_values",
    "remedy_of",
    "remedy_on_values",
]

# In errors of scikit-learn and numpy.
_OF_TEXT, _OF_MISSING = ("to float", "bytes/strings"), "contains NaN"
# The rest of such a line is a value, which may be that of a row of `public_size`.
_BEFORE_VALUES = re.compile(
    r"(could not convert string to \w+|invalid literal for \w+|unknown categories).*"
)
_OF_VALIDATION = re.compile("early.stopping|validation (data|set)", re.IGNORECASE)
# A longer estimator has dots in a message.
_MOST_CHARACTERS = 60

#: Runs a rehearsal again, on changed public rows; True if it passes.
Passes = Callable[[Callable[[Any], Any]], bool]


def is_of_values(failure: str) -> bool:
    """Check whether public rows were refused for text or missing values."""
    return _is_of_text(failure) or _OF_MISSING in failure


def quotes_values(failure: str) -> bool:
    """Check whether an error quotes a value of a row."""
    return bool(_BEFORE_VALUES.search(failure))


def cause_of(failure: str) -> str:
    """Return the line of an error that has the cause, without values of rows.

    That is the last line of a traceback in it, as a search has, and else the first.
    Advice of scikit-learn follows, such as to impute in front of this classifier.
    """
    lines = failure.strip().splitlines()
    cause = lines[-1 if any(line.startswith("Traceback") for line in lines) else 0]
    return _BEFORE_VALUES.sub(r"\1", cause).rstrip(".")


def remedy_of(
    passes: Passes, failure: str, X_public: Table, name: str, estimator: Any
) -> str:
    """Return what makes an estimator work that fails on public rows; "" if unknown."""
    remedy = remedy_on_values(passes, X_public, {name: estimator})
    if remedy:
        return remedy
    if _OF_VALIDATION.search(failure):
        return (
            f"{name} gets no validation set; leave out early stopping, or use the "
            "estimator's own split of its rows."
        )
    if "unknown categories" in failure:
        return f"Give the encoder in {name}= handle_unknown='ignore'."
    if is_of_values(failure):  # of a step
        return (
            "Put an encoder with handle_unknown='ignore' for text, or an imputer for "
            f"missing values, in front of the step that refuses them, inside {name}=."
        )
    is_numeric = getattr(X_public, "dtype", np.dtype("O")).kind in "biuf"
    if is_numeric and passes(lambda X: X.astype(np.float32)):
        return "Cast X and X_public to float32: X.astype('float32')."
    if "Double" in failure:  # of a step in front of a network
        return f"Cast to float32 in front of the network, inside {name}=."
    if is_frame(X_public) and passes(_renamed):
        return (
            "Rename the columns of X and X_public to letters, digits and underscores: "
            f"{type(estimator).__name__} refuses some of their names."
        )
    return ""


def remedy_on_values(
    passes: Passes, X_public: Table, estimators: Mapping[str, Any]
) -> str:
    """Return what to do about text or missing values; "" if they are not the cause."""
    if len(X_public.shape) != 2:
        return ""
    has_text = bool(text_columns(X_public))
    has_missing = bool(columns_with_missing(X_public))
    for text, missing in ((False, True), (True, False), (True, True)):
        if (
            text <= has_text
            and missing <= has_missing
            and passes(lambda X, text=text, missing=missing: _without(X, text, missing))
        ):
            return advice_on_values(X_public, estimators, text=text, missing=missing)
    return ""


def advice_on_values(
    X_public: Any, estimators: Mapping[str, Any], *, text: bool, missing: bool
) -> str:
    """Return code that encodes text and imputes missing values, by public rows alone.

    `estimators` are those that refuse the text or the missing values, by the names of
    their parameters; without `text`, they have an encoder of their own.
    """
    texts, gaps = text_columns(X_public), columns_with_missing(X_public)
    inside = " and ".join(f"{name}=" for name in estimators)
    if not is_frame(X_public) and (
        X_public.dtype.kind in "SU" or (texts and gaps)  # its columns have one type
    ):
        return (
            "Pass X and X_public as dataframes, whose columns have types, with an "
            f"encoder for text and an imputer for missing values inside {inside}."
        )
    gaps = gaps if missing else []
    if texts and not text:
        return (
            f"Put an imputer for {gaps} into {inside}, and give an encoder of text "
            "handle_unknown='ignore'. In front of this classifier, a step learns from "
            "private rows without protection."
        )
    first = "SimpleImputer()" if gaps else "'passthrough'"
    steps = ["an imputer"] if gaps else []
    if texts:
        steps = ["an encoder", *steps]
        first = (
            "make_column_transformer((OneHotEncoder(handle_unknown='ignore', "
            f"sparse_output=False), {texts}), remainder={first})"
        )
    code = ", ".join(
        # Without a representation, rows are compared by standardized columns.
        f"{name}=make_pipeline({first}, "
        f"{'StandardScaler()' if estimator is None else in_short(estimator)})"
        for name, estimator in estimators.items()
    )
    return (
        f"Put {' and '.join(steps)} inside {inside}, never in front of this "
        "classifier, where a step learns from private rows without protection: "
        f"{code}."
    )


def in_short(estimator: Any) -> str:
    """Return the code of an estimator, with dots in a long one."""
    whole = repr(estimator)
    is_short = len(whole) <= _MOST_CHARACTERS and "\n" not in whole
    return whole if is_short else f"{type(estimator).__name__}(...)"


def _is_of_text(failure: str) -> bool:
    return any(part in failure for part in _OF_TEXT)


def _without(X: Any, text: bool, missing: bool) -> Any:
    """Leave out columns of text, and put other rows for those with missing values."""
    dropped = text_columns(X) if text else []
    if missing:
        complete = np.flatnonzero(odd_rows(X) & MISSING == 0)
        if complete.size:
            X = _safe_indexing(X, np.resize(complete, X.shape[0]))
        else:
            dropped = [*dropped, *columns_with_missing(X)]
    if not dropped:
        return X
    names = column_names(X) or range(X.shape[1])
    kept = [place for place, one in enumerate(names) if one not in dropped]
    if not kept:
        return np.zeros((X.shape[0], 1))
    X = _safe_indexing(X, kept, axis=1)
    return X if is_frame(X) else read_numbers(X)


def _renamed(X: Any) -> Any:
    """Name the columns of a dataframe by letters and digits."""
    X = copy(X)
    X.columns = [f"c{place}" for place in range(X.shape[1])]
    return X

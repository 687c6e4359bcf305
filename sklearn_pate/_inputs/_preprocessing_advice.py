"""Causes and remedies of estimators that fail on public rows."""

import re
from collections.abc import Mapping
from typing import Any

from sklearn_pate._inputs._column_types import text_columns
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._odd_rows import (
    columns_with_missing,
    is_frame,
    takes_missing,
)

__all__ = [
    "advice_on_values",
    "cause_of",
    "in_short",
    "is_of_values",
    "quotes_values",
    "remedy_of",
]

# In errors of scikit-learn, numpy and catboost.
_OF_TEXT, _OF_MISSING = ("to float", "bytes/strings"), "contains NaN"
# What follows is a value, which may be that of a row of `public_size`.
_BEFORE_VALUES = re.compile(
    r"(string to \w+|invalid literal for \w+|unknown categories|Bad value for).*"
)
# What is in an error, and what to do about it. Errors of columns are told apart before.
_REMEDIES = {
    r"to float|bytes/strings|contains NaN": (
        "Put an encoder with handle_unknown='ignore' for text, or an imputer for "
        "missing values, in front of the step that refuses them, inside {name}="
    ),
    r"[Ee]arly.stopping|validation (data|set)": (
        "A model gets no validation set here; leave early stopping out of {name}=, or "
        "use its own split of its rows"
    ),
    r"unknown categories": (
        "Give the encoder in {name}= handle_unknown='ignore', or an OrdinalEncoder "
        "handle_unknown='use_encoded_value' and unknown_value=-1"
    ),
    r"Double|float64": (
        "Cast X and X_public to float32, or do so in front of the network in {name}="
    ),
    r"feature_names must|JSON characters|string names": (
        "Rename the columns of X and X_public, or those that a step in {name}= makes, "
        "to letters, digits and underscores"
    ),
}
# A longer estimator has dots in a message.
_MOST_CHARACTERS = 60


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
    has_own_encoder = not _is_of_text(failure) and None in map(
        takes_missing, estimators.values()
    )
    if not is_frame(X_public) and (
        X_public.dtype.kind in "SU" or (text and missing)  # its columns have one type
    ):
        return (
            "Pass X and X_public as dataframes, whose columns have types, with an "
            "encoder for text and an imputer for missing values inside "
            f"{' and '.join(_inside(estimators))}."
        )
    if text and has_own_encoder:
        return (
            f"Put an imputer for {missing} into {' and '.join(_inside(estimators))}, "
            "and give an encoder of text handle_unknown='ignore'. In front of this "
            "classifier, a step learns from private rows without protection."
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
        f"Put {' and '.join(steps)} inside {' and '.join(_inside(estimators))}, never "
        "in front of this classifier, where a step learns from private rows without "
        f"protection: {code}."
    )


def in_short(estimator: Any) -> str:
    """Return the code of an estimator, with dots in a long one."""
    whole = repr(estimator)
    is_short = len(whole) <= _MOST_CHARACTERS and "\n" not in whole
    return whole if is_short else f"{type(estimator).__name__}(...)"


def _is_of_text(failure: str) -> bool:
    return any(part in failure for part in _OF_TEXT)


def _inside(estimators: Mapping[str, Any]) -> list[str]:
    return [f"{name}=" for name in estimators]

"""Advice on text and missing values that an estimator does not take."""

from collections.abc import Mapping
from typing import Any

from sklearn_pate._inputs._column_types import text_columns
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._odd_rows import (
    columns_with_missing,
    is_frame,
    takes_missing,
)

__all__ = ["advice_on_values", "is_of_values", "remedy_of", "without_advice"]

# In errors of scikit-learn, numpy and catboost.
_OF_TEXT, _OF_MISSING = ("to float", "bytes/strings"), "contains NaN"
_REMEDY = (
    "Use another classifier; or put before it, as steps of a Pipeline, an encoder with "
    "handle_unknown='ignore' for text, and an imputer for missing values."
)
# A longer estimator has dots in the code of a message.
_MOST_CHARACTERS = 60


def is_of_values(failure: str) -> bool:
    """Check whether an estimator failed for text or missing values."""
    return _is_of_text(failure) or _OF_MISSING in failure


def without_advice(failure: str) -> str:
    """Drop scikit-learn's own advice on missing values, which is to impute in front."""
    return failure.partition("\n")[0] if _OF_MISSING in failure else failure


def remedy_of(failure: str, X_public: Table, name: str, estimator: Any) -> str:
    """Return what to do about an estimator that fails on public rows."""
    is_of_column = len(X_public.shape) == 2 and (
        (_is_of_text(failure) and text_columns(X_public))
        or (_OF_MISSING in failure and columns_with_missing(X_public))
    )
    if not is_of_column:  # a step of the estimator may make the value
        return _REMEDY
    return advice_on_values(failure, X_public, {name: estimator})


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
        f"{name}=make_pipeline({first}, {_in_short(estimator)})"
        for name, estimator in estimators.items()
    )
    return (
        f"Put {' and '.join(steps)} inside {' and '.join(_inside(estimators))}, never "
        "in front of this classifier, where a step learns from private rows without "
        f"protection: {code}."
    )


def _is_of_text(failure: str) -> bool:
    return any(part in failure for part in _OF_TEXT)


def _inside(estimators: Mapping[str, Any]) -> list[str]:
    return [f"{name}=" for name in estimators]


def _in_short(estimator: Any) -> str:
    # Without a representation, rows are compared by standardized columns.
    whole = "StandardScaler()" if estimator is None else repr(estimator)
    is_short = len(whole) <= _MOST_CHARACTERS and "\n" not in whole
    return whole if is_short else f"{type(estimator).__name__}(...)"

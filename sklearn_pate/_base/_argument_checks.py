"""Checks of the arguments of `fit`, in memory and on a cluster alike."""

from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray

from sklearn_pate._inputs._containers import Table, check_container
from sklearn_pate._inputs._odd_rows import is_frame
from sklearn_pate._inputs._public_data import PublicData
from sklearn_pate.accounting._calibrate import check_epsilon
from sklearn_pate.accounting._counted import counted
from sklearn_pate.exceptions import PrivacyLeakWarning, PublicDataWarning, warn_user

__all__ = [
    "check_delta_is_small",
    "check_epsilon_is_small",
    "check_number_of_groups",
    "check_one_source",
    "check_target",
    "check_unit",
    "data_problems",
    "no_usable_row",
    "unwrapped",
]

# Odds of exp(20), five hundred million, are no privacy.
_MOST_EPSILON = 20


def check_target(estimator: Any, y: Any) -> None:
    """Raise ValueError unless y is a container of labels."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None."
        )
    check_container("y", y)


def check_epsilon_is_small(epsilon: float) -> None:
    """Raise for an epsilon that is none, and warn of one that protects nobody."""
    if check_epsilon(epsilon) > _MOST_EPSILON:
        warn_user(
            f"epsilon={epsilon!r} is above {_MOST_EPSILON}: such a statement protects "
            "almost nobody. Typical values lie between 0.1 and 10.",
            PrivacyLeakWarning,
        )


def check_delta_is_small(delta: float, n_units: int, units: str) -> None:
    """Warn of a delta of one over the number of units or more."""
    if delta >= 1 / n_units:
        warn_user(
            f"delta={delta!r} is not below 1 / n_{units} = 1 / {n_units}: such a "
            "statement would allow the data of one of them to be published. "
            "Choose a smaller delta.",
            PrivacyLeakWarning,
        )


def data_problems(
    unseen: NDArray[Any], n_other: int, n_without_id: int
) -> tuple[str, ...]:
    """Describe classes and rows that no teacher learns from. Sensitive."""
    problems = [f"No row has the label {label!r}." for label in unseen.tolist()]
    if n_other:
        problems.append(
            f"{counted(n_other, 'row')} had a label that is not in classes."
        )
    if n_without_id:
        problems.append(f"Left out: {counted(n_without_id, 'row')} without a group id.")
    return tuple(problems)


def check_one_source(estimator: Any, X_public: Any) -> None:
    """Raise unless public rows have one source."""
    name = type(estimator).__name__
    given = [
        one
        for one, value in (
            ("X_public", X_public),
            (f"public_size={estimator.public_size!r}", estimator.public_size),
            ("synthetic", estimator.synthetic),
        )
        if value is not None
    ]
    if not given:
        raise ValueError(
            f"{name} needs public rows: pass fit(..., X_public=PublicData(X_public)); "
            "or set synthetic=PrivateMarginals(domain), which draws rows from noisy "
            "counts of a domain that you declare; or set public_size=0.2, which leaves "
            "a random fifth of the rows unprotected."
        )
    if len(given) > 1:
        both = "both" if len(given) == 2 else "all"
        raise ValueError(
            f"{' and '.join(given)} were {both} given to {name}; give one of them."
        )


def check_unit(privacy_unit: str, groups: Any) -> None:
    """Raise unless groups are given for the unit "group", and for no other."""
    if privacy_unit == "row" and groups is not None:
        raise ValueError(
            "groups were passed but privacy_unit='row' protects single rows; set "
            "privacy_unit='group', or leave groups out."
        )
    if privacy_unit == "group" and groups is None:
        raise ValueError(
            "privacy_unit='group' needs groups in fit, and got none. Inside a search "
            "or a pipeline, groups reach fit only with "
            "set_config(enable_metadata_routing=True) and "
            ".set_fit_request(groups=True) on the classifier."
        )


def check_number_of_groups(estimator: Any) -> None:
    """Raise ValueError if a number that is needed would depend on private rows."""
    n_teachers = getattr(estimator, "n_teachers", None)
    if estimator.privacy_unit != "group" or n_teachers != "auto":
        return
    if not hasattr(estimator, "n_groups"):
        raise ValueError(
            "n_teachers='auto' reads the number of rows, which is not public when a "
            "group is the unit; pass a number, chosen independently of the data, such "
            "as 100."
        )
    if estimator.n_groups is None:
        raise ValueError(
            "n_teachers='auto' reads the number of groups, which is not public when a "
            "group is the unit; pass n_groups, a rounded or estimated number that was "
            "chosen independently of the data, or n_teachers, such as 100."
        )


def unwrapped(X_public: Any, X: Table, unit: str) -> Any:
    """Return the public rows of PublicData, in a container like that of X."""
    is_wrapped = isinstance(X_public, PublicData)
    X_public = X_public.X if is_wrapped else X_public
    check_container("X_public", X_public)
    # With groups, the number of rows is not public.
    is_public = unit == "row" or not is_wrapped
    if is_public and getattr(X_public, "shape", ())[:1] == X.shape[:1]:
        otherwise = (
            "ignore this."
            if is_wrapped
            else "wrap them, so that a search or a cross-validation does not split "
            "them like X: X_public=PublicData(...)."
        )
        warn_user(
            f"X_public has as many rows as X ({X.shape[0]}). If they are a copy of the "
            "private rows, no person in them is protected: pass rows of others. If "
            f"not, {otherwise}",
            PublicDataWarning,
        )
    if is_frame(X_public) != is_frame(X):
        raise ValueError(
            f"X is of type {type(X).__name__} and X_public {type(X_public).__name__}; "
            "pass both as dataframes with the same columns, or neither."
        )
    if sp.issparse(X_public) != sp.issparse(X):
        raise ValueError(
            "One of X and X_public is sparse and the other is not; pass both alike."
        )
    return X_public


def no_usable_row(given: Any, *, with_groups: bool) -> ValueError:
    """Return the error of private rows without one to learn from."""
    without_id = " and a group id" if with_groups else ""
    return ValueError(
        f"No private row of y has a label in classes={given!r}{without_id}; "
        "compare their spelling and type."
    )

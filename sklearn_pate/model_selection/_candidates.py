"""Candidates of a private search, and the privacy cost of one fit of each."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing

from sklearn_pate._estimators._callbacks import drop_callbacks
from sklearn_pate._estimators._delegation import last_step
from sklearn_pate._estimators._hooks import autologging_off
from sklearn_pate.accounting._assumptions import FROZEN_IS_PUBLIC, Assumption
from sklearn_pate.accounting._statement import PrivacySpent, plans_privacy
from sklearn_pate.inspection._leak_rules import RESAMPLES, ROUNDS
from sklearn_pate.inspection._leaks import leaks_of_steps
from sklearn_pate.model_selection._split import PrivateRows

__all__ = ["Candidate", "list_candidates", "plan_fit"]

# Parameters that a candidate must not set, and the reason.
_REFUSED = {
    "ledger": (
        "would be charged for every trial, which reveals their number; give the "
        "ledger to PrivateSearchCV, which charges it once for all trials."
    ),
    "memory": (
        "would keep results of every trial, which reveals their number; leave "
        "memory=None."
    ),
    "public_size": (
        "would make other rows public in every trial, until no row is protected; pass "
        "fit(..., X_public=PublicData(X_public))."
    ),
}


class Candidate(NamedTuple):
    """Parameters of the grid, and an unfitted estimator that has them."""

    params: dict[str, object]
    estimator: BaseEstimator
    assumptions: tuple[Assumption, ...]


def list_candidates(
    estimator: Any, param_grid: Any, classes: NDArray[Any]
) -> list[Candidate]:
    """List the candidates of a grid, or raise ValueError if one cannot be searched.

    Their output is switched off, and their `classes` are set where these are None.
    """
    settings = list(ParameterGrid(param_grid))
    if not settings:
        raise ValueError(
            f"param_grid={param_grid!r} holds no candidate; list at least one setting "
            "({} leaves the estimator unchanged)."
        )
    candidates = []
    for params in settings:
        candidate = clone(estimator).set_params(**clone(params, safe=False))
        _check(candidate)
        _check_seeds(candidate, params)
        _switch_off_output(candidate)
        learner = last_step(candidate)
        if learner.get_params(deep=False).get("classes", classes) is None:
            learner.set_params(classes=classes.tolist())
        is_frozen = any(
            isinstance(part, FrozenEstimator)
            for part in candidate.get_params().values()
        )
        assumptions = (FROZEN_IS_PUBLIC,) if is_frozen else ()
        candidates.append(Candidate(params, candidate, assumptions))
    return candidates


def plan_fit(estimator: Any, rows: PrivateRows) -> PrivacySpent:
    """State the privacy cost of a fit by ``plan_privacy`` of the last step."""
    X, params = rows.X, rows.params
    while isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        if get_config()["enable_metadata_routing"]:
            params = process_routing(estimator, "fit", **params)[name].fit
        else:
            params = {key.removeprefix(f"{name}__"): one for key, one in params.items()}
        if len(estimator.steps) > 1:
            with autologging_off():
                X = clone(estimator[:-1]).fit_transform(X)
        estimator = last
    return estimator.plan_privacy(X, rows.y, **params)


def _check(estimator: Any) -> None:
    """Raise unless a trial releases nothing but its result, at a stated cost."""
    learner = last_step(estimator)
    if not plans_privacy(learner) or not is_classifier(learner):
        raise ValueError(
            f"estimator={estimator!r} cannot state its privacy cost before a fit; pass "
            "a private classifier that has plan_privacy, such as PATEClassifier, or a "
            "Pipeline that ends in one."
        )
    _check_steps(estimator)
    for name, value in estimator.get_params().items():
        refused = _REFUSED.get(name.rpartition("__")[2])
        if refused is not None and value is not None:
            raise ValueError(f"{name}={value!r} of the estimator {refused}")


def _check_seeds(estimator: Any, params: dict[str, object]) -> None:
    """Raise if the grid sets a seed, as ``best_params_`` would report a wrong one."""
    for name, value in estimator.get_params().items():
        is_seed = name.rpartition("__")[2] == "random_state" and value is not None
        if is_seed and any(f"{name}__".startswith(f"{key}__") for key in params):
            raise ValueError(
                f"{name}={value!r} in param_grid would be replaced by a secret seed in "
                "each trial; leave it out, or set it to None."
            )


def _check_steps(estimator: Any) -> None:
    """Raise if a step of a pipeline reads values of private rows."""
    if not isinstance(estimator, Pipeline):
        return
    *steps, (_, last) = estimator.steps
    for leak in leaks_of_steps(steps, last):
        remedy = (
            leak.remedy
            if leak.reason in (RESAMPLES.reason, ROUNDS.reason)
            else "Leave it out, or fit it on public rows: "
            "FrozenEstimator(step.fit(X_public))."
        )
        raise ValueError(f"{leak.name} ({leak.estimator}) {leak.reason} {remedy}")
    _check_steps(last)


def _switch_off_output(estimator: Any) -> None:
    """Switch off `verbose` and callbacks, which would report on trials."""
    for name, value in estimator.get_params().items():
        is_verbose = name.rpartition("__")[2] == "verbose"
        if is_verbose and isinstance(value, (int, np.integer)) and value:
            estimator.set_params(**{name: type(value)(0)})
    drop_callbacks(estimator)

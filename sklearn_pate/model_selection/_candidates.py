"""What a private search may choose between, and what one fit of each costs."""

from numbers import Integral
from typing import NamedTuple

from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing

from sklearn_pate._estimators._callbacks import drop_callbacks
from sklearn_pate._estimators._hooks import autologging_off
from sklearn_pate._estimators._seeding import seeded_clone
from sklearn_pate.accounting._assumptions import FROZEN_IS_PUBLIC, Assumption
from sklearn_pate.accounting._statement import plans_privacy
from sklearn_pate.inspection._leak_rules import RESAMPLES, ROUNDS
from sklearn_pate.inspection._leaks import leaks_of_steps

__all__ = ["Candidate", "list_candidates", "plan_fit"]

# What a candidate must not have, and why.
_REFUSED = {
    "ledger": (
        "would be charged for every trial, and tell how many there were; give the "
        "ledger to PrivateSearchCV, which charges it once for all of them."
    ),
    "memory": (
        "would keep something of every trial, and tell how many there were; leave "
        "memory=None."
    ),
    "public_size": (
        "would make other rows public in every trial, until nobody is protected; pass "
        "fit(..., X_public=PublicData(X_public))."
    ),
}


class Candidate(NamedTuple):
    """One setting.

    Parameters
    ----------
    params : dict
        As in the grid.

    estimator : classifier
        With these parameters, silenced, unfitted.

    assumptions : tuple of Assumption
        What was taken to be public about it.
    """

    params: dict[str, object]
    estimator: BaseEstimator
    assumptions: tuple[Assumption, ...]

    def seeded(self, seed):
        """Return a clone for one trial.

        Parameters
        ----------
        seed : int
            Of everything in it that has a `random_state`.

        Returns
        -------
        estimator : classifier
            Unfitted.
        """
        return seeded_clone(self.estimator, seed)


def list_candidates(estimator, param_grid, classes):
    """List the estimator with every setting of the grid.

    Parameters
    ----------
    estimator : classifier
        With ``plan_privacy``, or a Pipeline that ends in one.

    param_grid : dict or list of dict
        As for GridSearchCV.

    classes : ndarray of shape (n_classes,)
        Labels, for those that have a parameter `classes` and were not told.

    Returns
    -------
    candidates : list of Candidate
        At least one.

    Raises
    ------
    ValueError
        If one of them cannot be searched.
    """
    settings = list(ParameterGrid(param_grid))
    if not settings:
        raise ValueError(
            f"param_grid={param_grid!r} holds no candidate; list at least one setting. "
            "{} stands for the estimator as it is."
        )
    candidates = []
    for params in settings:
        one = clone(estimator).set_params(**clone(params, safe=False))
        _check(one)
        _check_seeds(one, params)
        _silence(one)
        prefix, learner = _last(one)
        if learner.get_params(deep=False).get("classes", classes) is None:
            one.set_params(**{f"{prefix}classes": classes.tolist()})
        is_frozen = any(_is_frozen(part) for part in one.get_params().values())
        assumptions = (FROZEN_IS_PUBLIC,) if is_frozen else ()
        candidates.append(Candidate(params, one, assumptions))
    return candidates


def plan_fit(estimator, rows):
    """State what a fit would cost.

    Parameters
    ----------
    estimator : classifier
        A candidate.

    rows : PrivateRows
        What it would be fitted on.

    Returns
    -------
    spent : PrivacySpent
        As its ``plan_privacy`` has it.
    """
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


def _last(estimator):
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def _check(estimator):
    """Raise unless nothing of a trial can come out but by its cost."""
    _, learner = _last(estimator)
    if not plans_privacy(learner) or not is_classifier(learner):
        raise ValueError(
            f"estimator={estimator!r} cannot state its cost beforehand; pass a "
            "private classifier that has plan_privacy, such as PATEClassifier, or a "
            "Pipeline that ends in one."
        )
    _check_steps(estimator)
    for name, value in estimator.get_params().items():
        refused = _REFUSED.get(name.rpartition("__")[2])
        if refused is not None and value is not None:
            raise ValueError(f"{name}={value!r} of the estimator {refused}")


def _check_seeds(estimator, params):
    """Raise if the grid sets a seed: what it says of the winner would be wrong."""
    for name, value in estimator.get_params().items():
        is_seed = name.rpartition("__")[2] == "random_state" and value is not None
        if is_seed and any(f"{name}__".startswith(f"{key}__") for key in params):
            raise ValueError(
                f"{name}={value!r} in param_grid would be replaced by a secret seed of "
                "each trial; leave it out, or None."
            )


def _check_steps(estimator):
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


def _silence(estimator):
    """Switch off what would tell about trials while they run."""
    params = estimator.get_params()
    for name, value in params.items():
        is_verbose = name.rpartition("__")[2] == "verbose"
        if is_verbose and isinstance(value, Integral) and value:
            estimator.set_params(**{name: type(value)(0)})
    drop_callbacks(estimator)


def _is_frozen(part):
    return isinstance(part, FrozenEstimator)

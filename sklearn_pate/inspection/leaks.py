"""What a pipeline or a search learns from private rows, around PATEClassifier."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from sklearn_pate.ensemble import TeacherEnsemble

__all__ = ["PrivacyLeak", "privacy_leaks"]


@dataclass(frozen=True)
class PrivacyLeak:
    """Something outside PATEClassifier that is fitted on private rows.

    Parameters
    ----------
    name : str
        Where it is, as in ``get_params``: "scaler", or "estimator__scaler".

    estimator : str
        Its class.

    reason : str
        What it learns.

    remedy : str
        What to do instead.
    """

    name: str
    estimator: str
    reason: str
    remedy: str

    def __str__(self):
        where = f"{self.name} ({self.estimator})" if self.name else self.estimator
        return f"{where} {self.reason} {self.remedy}"


STRATIFIED = (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
INSIDE = "Move it into estimator= and student=, as make_pipeline(step, classifier). "
FROZEN = "Or fit it on public rows: FrozenEstimator(step.fit(X_public))."


def privacy_leaks(estimator: Any) -> list[PrivacyLeak]:
    """List what is fitted on private rows around a PATEClassifier.

    The privacy statement covers PATEClassifier alone. A step in front of it, or a
    search around it, looks at private rows for free. Nothing is fitted here, and no
    data is needed: the classes and tags of the estimators tell.

    Parameters
    ----------
    estimator : estimator
        A PATEClassifier or PETDLClassifier, a Pipeline that ends in one, a search or
        another meta-estimator around either.

    Returns
    -------
    leaks : list of PrivacyLeak
        Empty if none was found. Some may be harmless, as nobody can tell without
        reading their code: a step that needs `fit` without learning from rows (a random
        projection), a function that treats each row by itself. What is in a
        FrozenEstimator is taken to have been fitted on public rows.

    Raises
    ------
    ValueError
        If there is no PATEClassifier in it.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from sklearn_pate import PATEClassifier, privacy_leaks
    >>> pipeline = make_pipeline(Normalizer(), StandardScaler(), PATEClassifier())
    >>> [leak.name for leak in privacy_leaks(pipeline)]
    ['standardscaler']
    """
    if not _holds_pate(estimator):
        raise ValueError(
            f"estimator={estimator!r} holds no PATEClassifier; pass the pipeline or "
            "search around one."
        )
    return list(dict.fromkeys(_leaks_around(estimator, "")))


def looks_at_labels(cv: Any) -> bool:
    """Tell whether a splitter's folds depend on y.

    Parameters
    ----------
    cv : splitter
        As scikit-learn's ``check_cv`` returns it.

    Returns
    -------
    stratified : bool
        Whether it is one of scikit-learn's stratified ones.
    """
    return isinstance(cv, STRATIFIED)


def _leaks_around(estimator, prefix):
    if isinstance(estimator, (TeacherEnsemble, FrozenEstimator)):
        return
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps[:-1]:
            yield from _leaks_of_step(step, prefix + name)
        name, last = estimator.steps[-1]
        yield from _leaks_around(last, f"{prefix}{name}__")
        return
    reason = (
        "is fitted on private rows and labels around PATEClassifier: what it learns "
        "there (a choice between candidates, a threshold, a calibration) has no "
        "guarantee, and each fit inside it is a release with its own price."
    )
    if hasattr(estimator, "cv") and looks_at_labels(
        check_cv(estimator.cv, [0, 1], classifier=True)
    ):
        reason += (
            " Its splits look at labels, too: one changed label moves other rows "
            "between folds, which no price covers; cv=KFold(shuffle=True) does not."
        )
    yield PrivacyLeak(
        prefix.removesuffix("__"),
        type(estimator).__name__,
        reason,
        "Put it inside, as student= (it then learns from answers) or as estimator= (it "
        "then learns inside each teacher), or fit it on labelled rows that are public.",
    )
    for name, inner in _children(estimator):
        if _holds_pate(inner):
            yield from _leaks_around(inner, f"{prefix}{name}__")
        elif not isinstance(inner, FrozenEstimator) and _grids(estimator) is None:
            yield PrivacyLeak(
                prefix + name,
                type(inner).__name__,
                "is fitted on private rows beside PATEClassifier: it is published with "
                "it, without any guarantee.",
                "Leave it out, or train it as the student.",
            )
    for candidate in _searched(estimator):
        yield from _leaks_around(candidate, f"{prefix}estimator__")


def _leaks_of_step(step, name):
    if isinstance(step, (Pipeline, FeatureUnion, ColumnTransformer)):
        for inner_name, inner in _children(step):
            yield from _leaks_of_step(inner, f"{name}__{inner_name}")
    elif isinstance(step, FrozenEstimator) or step in (None, "passthrough", "drop"):
        return
    elif _requires_fit(step):
        yield PrivacyLeak(
            name,
            type(step).__name__,
            "is fitted on private rows in front of PATEClassifier: what it learns is "
            "part of the published pipeline, without a guarantee.",
            INSIDE + FROZEN,
        )
    elif isinstance(step, FunctionTransformer) and not (
        step.func is None or isinstance(step.func, np.ufunc)
    ):
        yield PrivacyLeak(
            name,
            type(step).__name__,
            "may look across private rows in front of PATEClassifier, and one person "
            "then reaches every teacher.",
            INSIDE + "If its function treats each row by itself, all is well.",
        )


def _holds_pate(estimator):
    return isinstance(estimator, TeacherEnsemble) or any(
        _holds_pate(inner)
        for inner in [one for _, one in _children(estimator)] + _searched(estimator)
    )


def _children(estimator):
    """List names and estimators among the parameters, also in lists such as steps."""
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        return []
    children = []
    for name, value in estimator.get_params(deep=False).items():
        if _is_estimator(value):
            children.append((name, value))
        elif isinstance(value, (list, tuple)):
            named = [item for item in value if isinstance(item, (list, tuple))]
            children += [(item[0], item[1]) for item in named if len(item) > 1]
    return [(name, one) for name, one in children if _is_estimator(one)]


def _is_estimator(value):
    return hasattr(value, "fit") and not isinstance(value, type)


def _grids(search):
    """Return the grids of a search as a list, None for anything else."""
    grids = getattr(search, "param_grid", getattr(search, "param_distributions", None))
    return [grids] if isinstance(grids, Mapping) else grids


def _searched(search):
    """List what a search makes of its estimator by replacing whole estimators in it."""
    return [
        clone(search.estimator).set_params(**{name: value})
        for grid in _grids(search) or []
        for name, values in grid.items()
        if isinstance(values, (list, tuple))
        for value in values
        if _is_estimator(value)
    ]


def _requires_fit(step):
    try:
        return get_tags(step).requires_fit
    except (AttributeError, TypeError):  # not scikit-learn's: nobody knows
        return True

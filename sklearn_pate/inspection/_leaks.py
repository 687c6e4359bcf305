"""Estimators around a private one that are fitted on private rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from sklearn_pate.accounting._statement import plans_privacy
from sklearn_pate.inspection._leak_rules import (
    BESIDE,
    CONTAINERS,
    ROUNDS,
    rule_around,
    rule_in_front,
    transforms_row_by_row,
)

__all__ = ["PrivacyLeak", "leaks_of_steps", "privacy_leaks"]


@dataclass(frozen=True)
class PrivacyLeak:
    """Something outside a private classifier that is fitted on private rows.

    No privacy statement covers it. It was found by a look at classes and parameters,
    and at no data. Printed, it says all of this in words.

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

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn_pate import PATEClassifier, privacy_leaks
    >>> [leak] = privacy_leaks(make_pipeline(StandardScaler(), PATEClassifier()))
    >>> leak.name, leak.estimator
    ('standardscaler', 'StandardScaler')
    >>> print(leak.remedy)
    Move it into estimator= and student=, as make_pipeline(step, classifier). Or fit...
    """

    name: str
    estimator: str
    reason: str
    remedy: str

    def __str__(self):
        where = f"{self.name} ({self.estimator})" if self.name else self.estimator
        return f"{where} {self.reason} {self.remedy}"


# Parameters that decide which rows there are, and whether their number is public.
DECIDES_ROWS = {"bootstrap", "privacy_unit"}


def privacy_leaks(estimator: Any) -> list[PrivacyLeak]:
    """List what is fitted on private rows around a PATEClassifier, or another learner.

    A privacy statement covers the private classifier alone. A step in front of it, or a
    search around it, looks at private rows for free. One that resamples them, as
    imbalanced-learn and bootstraps do, voids the statement. Nothing is fitted, and no
    data is needed: the classes and tags of the estimators tell, and what it returns
    depends on nothing else.

    Parameters
    ----------
    estimator : estimator
        A PATEClassifier or another private classifier (one with ``plan_privacy``), a
        Pipeline that ends in one, a search or another meta-estimator around either.

    Returns
    -------
    leaks : list of PrivacyLeak
        Empty if none was found. Some may be harmless, as nobody can tell without
        reading their code: a step of your own that needs `fit` without learning from
        rows, a function that treats each row by itself. What is in a
        FrozenEstimator is taken to have been fitted on public rows.

    Raises
    ------
    ValueError
        If there is no private classifier in it.

    Notes
    -----
    It reads types, not code, and proves nothing: an empty list is no guarantee. That a
    choice between candidates by their scores can tell about a single row, even where
    each candidate is private, is shown by Papernot and Steinke (2022), "Hyperparameter
    tuning with Renyi differential privacy";
    :class:`~sklearn_pate.model_selection.PrivateSearchCV` has a cost for it.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from sklearn_pate import PATEClassifier, privacy_leaks
    >>> pipeline = make_pipeline(Normalizer(), StandardScaler(), PATEClassifier())
    >>> [leak.name for leak in privacy_leaks(pipeline)]
    ['standardscaler']
    """
    if not _holds_private(estimator):
        raise ValueError(
            f"estimator={estimator!r} holds no private classifier, such as "
            "PATEClassifier; pass the pipeline or search around one."
        )
    return list(dict.fromkeys(_leaks_around(estimator, "")))


def _leaks_around(estimator, prefix):
    if isinstance(estimator, FrozenEstimator):
        return
    if plans_privacy(estimator):
        # A private search, of which the steps in front of its candidates are no part.
        if _grids(estimator) is not None:
            for name, inner in _children(estimator):
                if _holds_private(inner):
                    yield from _leaks_around(inner, f"{prefix}{name}__")
        return
    if isinstance(estimator, Pipeline):
        *steps, (name, last) = estimator.steps
        yield from leaks_of_steps(steps, last, prefix)
        yield from _leaks_around(last, f"{prefix}{name}__")
        return
    yield PrivacyLeak(
        prefix.removesuffix("__"), type(estimator).__name__, *rule_around(estimator)
    )
    for name, inner in _children(estimator):
        if _holds_private(inner):
            yield from _leaks_around(inner, f"{prefix}{name}__")
        elif _is_published(inner) and _grids(estimator) is None:
            yield PrivacyLeak(prefix + name, type(inner).__name__, *BESIDE)
    for candidate in _searched(estimator):
        yield from _leaks_around(candidate, f"{prefix}estimator__")


def _is_published(inner):
    """Tell whether what is beside a private classifier learns, and is published."""
    return not (isinstance(inner, FrozenEstimator) or hasattr(inner, "fit_resample"))


def leaks_of_steps(
    steps: Iterable[tuple[str, Any]], last: Any, prefix: str = ""
) -> Iterator[PrivacyLeak]:
    """List what the steps leak that stand in front of the holder of a classifier."""
    for name, step in steps:
        yield from _leaks_of_step(step, prefix + name)
        if _counts_rows(last):
            yield from _rounding_leaks(step, prefix + name)


def _leaks_of_step(step, name):
    """List what a step in front of a private classifier leaks, or one inside it."""
    rule = rule_in_front(step)
    if rule is not None:
        yield PrivacyLeak(name, type(step).__name__, *rule)
    if isinstance(step, CONTAINERS):
        for inner_name, inner in _children(step):
            yield from _leaks_of_step(inner, f"{name}__{inner_name}")


def _rounding_leaks(step, name):
    """List what transforms rows together that must not depend on each other."""
    if isinstance(step, CONTAINERS):
        for inner_name, inner in _children(step):
            yield from _rounding_leaks(inner, f"{name}__{inner_name}")
    # What leaks more is listed for that.
    elif not _is_row_by_row(step) and rule_in_front(step) is None:
        yield PrivacyLeak(name, type(step).__name__, *ROUNDS)


def _is_row_by_row(step):
    if isinstance(step, FrozenEstimator):
        return _is_row_by_row(step.estimator)
    if isinstance(step, CONTAINERS):
        return all(_is_row_by_row(inner) for _, inner in _children(step))
    return transforms_row_by_row(step)


def _counts_rows(estimator):
    """Tell whether neighbouring data sets may differ in the number of rows."""
    inner = [one for _, one in _children(estimator)] + _searched(estimator)
    return getattr(estimator, "_counts_rows", False) or any(map(_counts_rows, inner))


def _holds_private(estimator):
    return plans_privacy(estimator) or any(
        _holds_private(inner)
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
    can_be_fitted = hasattr(value, "fit") or hasattr(value, "fit_resample")
    return can_be_fitted and not isinstance(value, type)


def _grids(search):
    """Return the grids of a search as a list, None for anything else."""
    grids = getattr(search, "param_grid", getattr(search, "param_distributions", None))
    return [grids] if isinstance(grids, Mapping) else grids


def _searched(search):
    """List what a search makes of its estimator, where classes or rows change."""
    return [
        clone(search.estimator).set_params(**{name: value})
        for grid in _grids(search) or []
        for name, values in grid.items()
        if isinstance(values, (list, tuple, np.ndarray))
        for value in values
        if _is_estimator(value) or name.rpartition("__")[2] in DECIDES_ROWS
    ]

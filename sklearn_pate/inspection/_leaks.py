"""Leaks of private data in estimators around a private classifier."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from sklearn_pate._estimators._kinds import keeps_rows_apart
from sklearn_pate.accounting._statement import plans_privacy
from sklearn_pate.accounting._value_checks import read_table

# Their inner steps are checked one by one.
CONTAINERS = (Pipeline, FeatureUnion, ColumnTransformer)
NO_STEP = (None, "passthrough", "drop")
STRATIFIED = (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
_TEXTS = read_table("sklearn_pate.inspection", "leaks.toml")
# Classes of scikit-learn, by name.
DATA_FREE, ROW_BY_ROW = {*_TEXTS["data_free"]}, {*_TEXTS["row_by_row"]}
#: Reasons for which each row of the private classifier depends on others.
ROWS_DEPEND = [_TEXTS["rule"][rule]["reason"] for rule in ("resamples", "rounds")]
# With these settings they read values or the number of rows.
SETTINGS_THAT_READ = {("gamma", "scale"), ("n_components", "auto")}


def rule_in_front(step: Any) -> str | None:
    """Return the rule that a step in front of a private classifier breaks, or None.

    Steps inside it are not checked.
    """
    if isinstance(step, CONTAINERS):
        return "learns" if _chooses_by_values(step) else None
    if step in NO_STEP:
        return None
    if hasattr(step, "fit_resample"):  # a FrozenEstimator around it, too
        does_nothing = getattr(step, "func", step) is None  # FunctionSampler()
        return None if does_nothing else "resamples"
    if isinstance(step, FrozenEstimator):
        return None
    if _requires_fit(step):
        return "learns"
    if isinstance(step, FunctionTransformer) and not _is_elementwise(step):
        return "combines_rows"
    return None


def rule_around(estimator: Any) -> str:
    """Return the rule that an estimator around a private classifier breaks."""
    params = estimator.get_params(deep=False)
    if "sampling_strategy" in params:
        return "balances"
    if "bootstrap" in params:
        return "bootstraps" if params["bootstrap"] else "fits_often"
    if hasattr(estimator, "cv") and splits_by_labels(estimator.cv):
        return "stratifies"
    return "searches"


def splits_by_labels(cv: Any) -> bool:
    """Check whether the splits of a classifier's rows depend on y.

    None, a number of folds and a share of rows stand for stratified splitters.
    """
    return cv is None or isinstance(cv, (Real, *STRATIFIED))


def _is_elementwise(step: FunctionTransformer) -> bool:
    return step.func is None or isinstance(step.func, np.ufunc)


def _chooses_by_values(container: Any) -> bool:
    """Check whether columns are chosen by a function that may read values."""
    return isinstance(container, ColumnTransformer) and any(
        callable(columns) and type(columns) is not make_column_selector
        for *_, columns in container.transformers
    )


def _requires_fit(step: Any) -> bool:
    """Check whether the fit of a step may read values, by its tags."""
    if _is_of(step, DATA_FREE):
        named = step.get_params(deep=False).items()
        settings = {(name, value) for name, value in named if isinstance(value, str)}
        return bool(settings & SETTINGS_THAT_READ)
    try:
        return bool(get_tags(step).requires_fit)
    except (AttributeError, TypeError):  # no scikit-learn tags
        return True


def _is_of(step: Any, names: set[str]) -> bool:
    """Check for a class of scikit-learn by its name."""
    kind = type(step)
    return kind.__module__.startswith("sklearn.") and kind.__name__ in names


@dataclass(frozen=True)
class PrivacyLeak:
    """Estimator that is fitted on private rows outside a private classifier.

    No privacy statement covers this estimator. Leaks are found from the classes and
    parameters of estimators, without data. ``str(leak)`` is a full description.

    Parameters
    ----------
    name : str
        Name as in ``get_params``, such as "scaler" or "estimator__scaler".

    estimator : str
        Class name of the estimator.

    reason : str
        Reason why the estimator leaks.

    remedy : str
        Changes that avoid the leak.

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

    def __str__(self) -> str:
        where = f"{self.name} ({self.estimator})" if self.name else self.estimator
        return f"{where} {self.reason} {self.remedy}"


# Parameters that change the rows, or whether their number is public.
DECIDES_ROWS = {"bootstrap", "privacy_unit"}


def privacy_leaks(estimator: Any) -> list[PrivacyLeak]:
    """List the estimators around a private classifier that are fitted on private rows.

    A privacy statement covers the private classifier alone, and neither preceding steps
    of a Pipeline nor a search around the classifier. Resampling, as in imbalanced-learn
    and bootstraps, voids the statement. Nothing is fitted: the result depends on the
    classes, tags and parameters of the estimators alone.

    Parameters
    ----------
    estimator : estimator
        Private classifier (a classifier with ``plan_privacy``), a Pipeline that ends in
        a private classifier, or a search or other meta-estimator around these.

    Returns
    -------
    leaks : list of PrivacyLeak
        Empty if no leak was found. A listed leak may be harmless. Examples are a step
        of your own that does not learn in `fit`, and a function that transforms each
        row by itself. A FrozenEstimator is assumed to be fitted on public rows.

    Raises
    ------
    ValueError
        If `estimator` contains no private classifier.

    Notes
    -----
    An empty list is not a guarantee, as the code of estimators is not read. A choice
    between candidates by their scores can reveal a single row, even if each candidate
    is private (Papernot and Steinke 2022, "Hyperparameter tuning with Renyi
    differential privacy"). The privacy cost of
    :class:`~sklearn_pate.model_selection.PrivateSearchCV` includes this choice.

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
            f"estimator={_shown(estimator)} holds no private classifier, such as "
            "PATEClassifier; pass the pipeline or search around one."
        )
    return list(dict.fromkeys(_leaks_around(estimator, "")))


def _leak(rule: str, name: str, estimator: Any) -> PrivacyLeak:
    """Describe an estimator that breaks a rule."""
    reason, remedy = (_TEXTS["rule"][rule][part] for part in ("reason", "remedy"))
    remedy = remedy.format(**_TEXTS["shared"])
    return PrivacyLeak(name, type(estimator).__name__, reason, remedy)


def _shown(estimator: Any) -> str:
    """Write an estimator, and of anything else its type, as it may be private rows."""
    if hasattr(estimator, "get_params"):
        return repr(estimator)
    return f"<{type(estimator).__name__}>"


def _leaks_around(estimator: Any, prefix: str) -> Iterator[PrivacyLeak]:
    if isinstance(estimator, FrozenEstimator):
        return
    if plans_privacy(estimator):
        # A private search does not cover the steps in front of its candidates.
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
    yield _leak(rule_around(estimator), prefix.removesuffix("__"), estimator)
    for name, inner in _children(estimator):
        if _holds_private(inner):
            yield from _leaks_around(inner, f"{prefix}{name}__")
        elif (
            _grids(estimator) is None
            and not isinstance(inner, FrozenEstimator)
            and not hasattr(inner, "fit_resample")
        ):
            yield _leak("beside", prefix + name, inner)
    for candidate in _searched(estimator):
        yield from _leaks_around(candidate, f"{prefix}estimator__")


def leaks_of_steps(
    steps: Iterable[tuple[str, Any]], last: Any, prefix: str = ""
) -> Iterator[PrivacyLeak]:
    """List the leaks of steps in front of a classifier, or of its container."""
    for name, step in steps:
        yield from _leaks_of_step(step, prefix + name)
        if _counts_rows(last):
            yield from _rounding_leaks(step, prefix + name)


def _leaks_of_step(step: Any, name: str) -> Iterator[PrivacyLeak]:
    """List the leaks of a step in front of a private classifier, and inside it."""
    rule = rule_in_front(step)
    if rule is not None:
        yield _leak(rule, name, step)
    if isinstance(step, CONTAINERS):
        for inner_name, inner in _children(step):
            yield from _leaks_of_step(inner, f"{name}__{inner_name}")


def _rounding_leaks(step: Any, name: str) -> Iterator[PrivacyLeak]:
    """List the steps that transform rows together where rows must be independent."""
    if isinstance(step, CONTAINERS):
        for inner_name, inner in _children(step):
            yield from _rounding_leaks(inner, f"{name}__{inner_name}")
    # Leaks of other rules are listed already.
    elif not _is_row_by_row(step) and rule_in_front(step) is None:
        yield _leak("rounds", name, step)


def _is_row_by_row(step: Any) -> bool:
    """Check whether each transformed row depends on no other row, to the last bit."""
    if isinstance(step, FrozenEstimator):
        return _is_row_by_row(step.estimator)
    if isinstance(step, CONTAINERS):
        return all(_is_row_by_row(inner) for _, inner in _children(step))
    if isinstance(step, FunctionTransformer):
        return _is_elementwise(step)
    return step in NO_STEP or _is_of(step, ROW_BY_ROW) or keeps_rows_apart(step)


def _counts_rows(estimator: Any) -> bool:
    """Check whether neighbouring data sets may differ in the number of rows."""
    return getattr(estimator, "_counts_rows", False) or any(
        map(_counts_rows, _inner(estimator))
    )


def _holds_private(estimator: Any) -> bool:
    return plans_privacy(estimator) or any(map(_holds_private, _inner(estimator)))


def _inner(estimator: Any) -> list[Any]:
    return [one for _, one in _children(estimator)] + _searched(estimator)


def _children(estimator: Any) -> list[tuple[str, Any]]:
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


def _is_estimator(value: Any) -> bool:
    can_be_fitted = hasattr(value, "fit") or hasattr(value, "fit_resample")
    return can_be_fitted and not isinstance(value, type)


def _grids(search: Any) -> list[Mapping[str, Any]] | None:
    """Return the grids of a search as a list, None for other estimators."""
    grids = getattr(search, "param_grid", getattr(search, "param_distributions", None))
    return [grids] if isinstance(grids, Mapping) else grids


def _searched(search: Any) -> list[Any]:
    """List the candidates of a search whose classes or rows differ."""
    return [
        clone(search.estimator).set_params(**{name: value})
        for grid in _grids(search) or []
        for name, values in grid.items()
        if isinstance(values, (list, tuple, np.ndarray))
        for value in values
        if _is_estimator(value) or name.rpartition("__")[2] in DECIDES_ROWS
    ]

"""What a pipeline or a search learns from private rows, around a private one."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfVectorizer,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from sklearn_pate._base._private_classifier import plans_privacy

__all__ = [
    "RESAMPLES",
    "ROUNDS",
    "PrivacyLeak",
    "leaks_of_steps",
    "looks_at_labels",
    "privacy_leaks",
]


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


STRATIFIED = (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
# They are fitted, and look at no value: at the number of columns alone. Subclasses may.
DATA_FREE = (
    AdditiveChi2Sampler,
    GaussianRandomProjection,
    PolynomialCountSketch,
    PolynomialFeatures,
    RBFSampler,
    SkewedChi2Sampler,
    SparseRandomProjection,
)
# They compute each number from its own row without a matrix product, in one order.
ROW_BY_ROW = (
    Binarizer,
    CountVectorizer,
    HashingVectorizer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
    TfidfVectorizer,
)
# These settings of theirs do look at values, or at the number of rows.
SETTINGS_THAT_LOOK = {("gamma", "scale"), ("n_components", "auto")}
# Parameters that decide which rows there are, and whether their number is public.
DECIDES_ROWS = {"bootstrap", "privacy_unit"}
INSIDE = "Move it into estimator= and student=, as make_pipeline(step, classifier). "
FROZEN = (
    "Or fit it on public rows, as FrozenEstimator(step.fit(X_public)), and take "
    "X_public through it before the fit: a pipeline does not."
)
# A step with fit_resample, as imbalanced-learn has them. One that drops rows is among
# them: how many are left, and which, decides where all others go.
RESAMPLES = (
    "repeats, mixes or drops private rows in front of a private classifier: one "
    "changed row changes several of those that it is fitted on, and its privacy "
    "statement is void."
)
RESAMPLE_INSIDE = (
    "Resample inside estimator= of a PATEClassifier or PETDLClassifier, as "
    "imblearn.pipeline.make_pipeline(step, classifier): each teacher then resamples "
    "its own shard. Or weigh classes there, with class_weight='balanced'. Private "
    "classifiers without teachers have no place for it: leave it out."
)
# Of a product of many rows, the last bits of each depend on how many there are.
ROUNDS = (
    "transforms all private rows in one call in front of a private classifier whose "
    "neighbouring data sets differ in the number of rows: the last bits of every row "
    "depend on that number, so that one row can move the votes of many others, and the "
    "privacy statement is void."
)
ROUND_APART = (
    "Pass it as representation= of the classifier, which transforms a shard or a row "
    "at a time; for one without representation=, transform each row alone, beforehand."
)
# What is around a private classifier and chooses the rows of its fits.
BALANCES = (
    "is fitted on private rows that it chooses by their labels: one changed label "
    "changes which other rows the private classifier inside is fitted on, and its "
    "privacy statement is void."
)
BOOTSTRAPS = (
    "is fitted on private rows that it draws with replacement: copies of one row reach "
    "several teachers of the private classifier inside, or count as several rows, and "
    "its privacy statement is void."
)
WITHOUT_COPIES = (
    "Set bootstrap=False, which leaves several fits on overlapping rows, whose costs "
    "add up. Or number the rows, and pass the numbers as groups=, with "
    "privacy_unit='group' and metadata routing, so that copies stay together. "
)
FITS_OFTEN = (
    "is fitted on private rows several times, by the private classifier inside: each "
    "fit is a release with its own privacy cost, and publishing them together costs "
    "the sum."
)
ADD_UP = (
    "Add the costs up (the curves in privacy_spent_ do), or charge all fits to one "
    "PrivacyLedger. "
)
HARMLESS_INSIDE = (
    "Inside a PATEClassifier it does no harm: as estimator= (each teacher then has "
    "one, on its own shard) or as student=."
)


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
    :class:`~sklearn_pate.model_selection.PrivateSearchCV` has a price for it.

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


def looks_at_labels(cv: Any) -> bool:
    """Tell whether the splits of a classifier's rows depend on y.

    Parameters
    ----------
    cv : splitter, iterable, int, float, "prefit" or None
        As scikit-learn's searches and meta-estimators take it. It is not read.

    Returns
    -------
    stratified : bool
        Whether it is one of scikit-learn's stratified splitters, or None, a number of
        folds or a share of rows, each of which stands for one.
    """
    return cv is None or isinstance(cv, (Real, *STRATIFIED))


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
    reason, remedy = _learns_around(estimator)
    yield PrivacyLeak(
        prefix.removesuffix("__"), type(estimator).__name__, reason, remedy
    )
    for name, inner in _children(estimator):
        if _holds_private(inner):
            yield from _leaks_around(inner, f"{prefix}{name}__")
        elif _is_published(inner) and _grids(estimator) is None:
            yield PrivacyLeak(
                prefix + name,
                type(inner).__name__,
                "is fitted on private rows beside a private classifier: it is "
                "published with it, without any guarantee.",
                "Leave it out, or train it as the student.",
            )
    for candidate in _searched(estimator):
        yield from _leaks_around(candidate, f"{prefix}estimator__")


def _counts_rows(estimator):
    """Tell whether neighbouring data sets may differ in the number of rows."""
    inner = [one for _, one in _children(estimator)] + _searched(estimator)
    return getattr(estimator, "_counts_rows", False) or any(map(_counts_rows, inner))


def _rounding_leaks(step, name):
    """List what transforms rows together that must not depend on each other."""
    if isinstance(step, (Pipeline, FeatureUnion, ColumnTransformer)):
        for inner_name, inner in _children(step):
            yield from _rounding_leaks(inner, f"{name}__{inner_name}")
    # What leaks more is listed for that.
    elif not _is_row_by_row(step) and not any(leaks_of_step(step, name)):
        yield PrivacyLeak(name, type(step).__name__, ROUNDS, ROUND_APART)


def _is_row_by_row(step):
    if isinstance(step, FrozenEstimator):
        return _is_row_by_row(step.estimator)
    if isinstance(step, (Pipeline, FeatureUnion, ColumnTransformer)):
        return all(_is_row_by_row(inner) for _, inner in _children(step))
    if isinstance(step, FunctionTransformer):
        return step.func is None or isinstance(step.func, np.ufunc)
    return step in (None, "passthrough", "drop") or type(step) in ROW_BY_ROW


def _is_published(inner):
    """Tell whether what is beside a private classifier learns, and is published."""
    return not (isinstance(inner, FrozenEstimator) or hasattr(inner, "fit_resample"))


def _learns_around(estimator):
    """Say what an estimator does around a private classifier, and what to do."""
    params = estimator.get_params(deep=False)
    if "sampling_strategy" in params:
        return BALANCES, HARMLESS_INSIDE
    if "bootstrap" in params:
        if params["bootstrap"]:
            return BOOTSTRAPS, WITHOUT_COPIES + HARMLESS_INSIDE
        return FITS_OFTEN, ADD_UP + HARMLESS_INSIDE
    reason = (
        "is fitted on private rows and labels around a private classifier: what it "
        "learns there (a choice between candidates, a threshold, a calibration) has no "
        "guarantee, and each fit inside it is a release with its own price."
    )
    if hasattr(estimator, "cv") and looks_at_labels(estimator.cv):
        reason += (
            " Its splits look at labels, too: one changed label moves other rows "
            "between folds, which no price covers; cv=KFold(shuffle=True) does not."
        )
    remedy = (
        "Put it inside, as student= (it then learns from answers) or as estimator= (it "
        "then learns inside each teacher), fit it on labelled rows that are public, or "
        "search with PrivateSearchCV."
    )
    return reason, remedy


def leaks_of_steps(steps, last, prefix=""):
    """List what the steps in front of a private classifier leak.

    Parameters
    ----------
    steps : list of (str, transformer)
        Of a Pipeline.

    last : estimator
        What holds the classifier.

    prefix : str, default=""
        Of the names of its steps.

    Yields
    ------
    leak : PrivacyLeak
        Of a step, or of one inside it.
    """
    for name, step in steps:
        yield from leaks_of_step(step, prefix + name)
        if _counts_rows(last):
            yield from _rounding_leaks(step, prefix + name)


def leaks_of_step(step, name):
    """List what a step in front of a private classifier learns.

    Parameters
    ----------
    step : transformer, None or str
        A step of a Pipeline.

    name : str
        Its name.

    Yields
    ------
    leak : PrivacyLeak
        Of the step, or of one inside it.
    """
    if isinstance(step, (Pipeline, FeatureUnion, ColumnTransformer)):
        if isinstance(step, ColumnTransformer) and _chooses_by_values(step):
            yield PrivacyLeak(
                name,
                type(step).__name__,
                "chooses columns by a function that may look at private rows in front "
                "of a private classifier: which ones it takes has no guarantee. Names "
                "of columns and make_column_selector look at no value.",
                INSIDE + FROZEN,
            )
        for inner_name, inner in _children(step):
            yield from leaks_of_step(inner, f"{name}__{inner_name}")
    elif step in (None, "passthrough", "drop"):
        return
    elif hasattr(step, "fit_resample"):  # a FrozenEstimator around it, too
        if getattr(step, "func", step) is not None:  # FunctionSampler(), does nothing
            yield PrivacyLeak(name, type(step).__name__, RESAMPLES, RESAMPLE_INSIDE)
    elif _is_fitted_on_nothing_private(step):
        return
    elif _requires_fit(step):
        yield PrivacyLeak(
            name,
            type(step).__name__,
            "is fitted on private rows in front of a private classifier: what it "
            "learns is part of the published pipeline, without a guarantee.",
            INSIDE + FROZEN,
        )
    elif isinstance(step, FunctionTransformer) and not (
        step.func is None or isinstance(step.func, np.ufunc)
    ):
        yield PrivacyLeak(
            name,
            type(step).__name__,
            "may look across private rows in front of a private classifier, and one "
            "person then reaches all rows it sees.",
            INSIDE + "If its function treats each row by itself, all is well.",
        )


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


def _chooses_by_values(column_transformer):
    """Tell whether a function chooses columns that is not known to see types only."""
    return any(
        callable(columns) and type(columns) is not make_column_selector
        for *_, columns in column_transformer.transformers
    )


def _is_fitted_on_nothing_private(step):
    if type(step) in DATA_FREE:
        named = step.get_params(deep=False).items()
        settings = {(name, value) for name, value in named if isinstance(value, str)}
        return not settings & SETTINGS_THAT_LOOK
    return isinstance(step, FrozenEstimator)


def _requires_fit(step):
    try:
        return get_tags(step).requires_fit
    except (AttributeError, TypeError):  # not scikit-learn's: nobody knows
        return True

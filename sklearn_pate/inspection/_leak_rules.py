"""Rules: what an estimator in front of or around a private classifier leaks."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
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

__all__ = [
    "BESIDE",
    "CONTAINERS",
    "RESAMPLES",
    "ROUNDS",
    "looks_at_labels",
    "rule_around",
    "rule_in_front",
    "transforms_row_by_row",
]

# Their inner steps are looked at one by one.
CONTAINERS = (Pipeline, FeatureUnion, ColumnTransformer)
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


class Rule(NamedTuple):
    """Why an estimator leaks, and what to do instead."""

    reason: str
    remedy: str


_INSIDE = "Move it into estimator= and student=, as make_pipeline(step, classifier). "
_FROZEN = (
    "Or fit it on public rows, as FrozenEstimator(step.fit(X_public)), and take "
    "X_public through it before the fit: a pipeline does not."
)
_HARMLESS_INSIDE = (
    "Inside a PATEClassifier it does no harm: as estimator= (each teacher then has "
    "one, on its own shard) or as student=."
)

# In front of a private classifier.
LEARNS = Rule(
    "is fitted on private rows in front of a private classifier: what it "
    "learns is part of the published pipeline, without a guarantee.",
    _INSIDE + _FROZEN,
)
CHOOSES_COLUMNS = Rule(
    "chooses columns by a function that may look at private rows in front "
    "of a private classifier: which ones it takes has no guarantee. Names "
    "of columns and make_column_selector look at no value.",
    _INSIDE + _FROZEN,
)
LOOKS_ACROSS = Rule(
    "may look across private rows in front of a private classifier, and one "
    "person then reaches all rows it sees.",
    _INSIDE + "If its function treats each row by itself, all is well.",
)
# A step with fit_resample, as imbalanced-learn has them. One that drops rows is among
# them: how many are left, and which, decides where all others go.
RESAMPLES = Rule(
    "repeats, mixes or drops private rows in front of a private classifier: one "
    "changed row changes several of those that it is fitted on, and its privacy "
    "statement is void.",
    "Resample inside estimator= of a PATEClassifier or PETDLClassifier, as "
    "imblearn.pipeline.make_pipeline(step, classifier): each teacher then resamples "
    "its own shard. Or weigh classes there, with class_weight='balanced'. Private "
    "classifiers without teachers have no place for it: leave it out.",
)
# Of a product of many rows, the last bits of each depend on how many there are.
ROUNDS = Rule(
    "transforms all private rows in one call in front of a private classifier whose "
    "neighbouring data sets differ in the number of rows: the last bits of every row "
    "depend on that number, so that one row can move the votes of many others, and the "
    "privacy statement is void.",
    "Pass it as representation= of the classifier, which transforms a shard or a row "
    "at a time; for one without representation=, transform each row alone, beforehand.",
)

# Beside a private classifier.
BESIDE = Rule(
    "is fitted on private rows beside a private classifier: it is "
    "published with it, without any guarantee.",
    "Leave it out, or train it as the student.",
)

# Around a private classifier: it is fitted several times, perhaps on chosen rows.
BALANCES = Rule(
    "is fitted on private rows that it chooses by their labels: one changed label "
    "changes which other rows the private classifier inside is fitted on, and its "
    "privacy statement is void.",
    _HARMLESS_INSIDE,
)
BOOTSTRAPS = Rule(
    "is fitted on private rows that it draws with replacement: copies of one row reach "
    "several teachers of the private classifier inside, or count as several rows, and "
    "its privacy statement is void.",
    "Set bootstrap=False, which leaves several fits on overlapping rows, whose costs "
    "add up. Or number the rows, and pass the numbers as groups=, with "
    "privacy_unit='group' and metadata routing, so that copies stay together. "
    + _HARMLESS_INSIDE,
)
FITS_OFTEN = Rule(
    "is fitted on private rows several times, by the private classifier inside: each "
    "fit is a release with its own privacy cost, and publishing them together costs "
    "the sum.",
    "Add the costs up (the curves in privacy_spent_ do), or charge all fits to one "
    "PrivacyLedger. " + _HARMLESS_INSIDE,
)
SEARCHES = Rule(
    "is fitted on private rows and labels around a private classifier: what it "
    "learns there (a choice between candidates, a threshold, a calibration) has no "
    "guarantee, and each fit inside it is a release with its own cost.",
    "Put it inside, as student= (it then learns from answers) or as estimator= (it "
    "then learns inside each teacher), fit it on labelled rows that are public, or "
    "search with PrivateSearchCV.",
)
STRATIFIES = SEARCHES._replace(
    reason=f"{SEARCHES.reason} Its splits look at labels, too: one changed label moves "
    "other rows between folds, which no cost covers; cv=KFold(shuffle=True) does not."
)


def rule_in_front(step: Any) -> Rule | None:
    """Return why a step in front of a private classifier leaks; None if it does not.

    What is inside it is not looked at.
    """
    if isinstance(step, CONTAINERS):
        chooses = isinstance(step, ColumnTransformer) and _chooses_by_values(step)
        return CHOOSES_COLUMNS if chooses else None
    if step in (None, "passthrough", "drop"):
        return None
    if hasattr(step, "fit_resample"):  # a FrozenEstimator around it, too
        does_nothing = getattr(step, "func", step) is None  # FunctionSampler()
        return None if does_nothing else RESAMPLES
    if _is_fitted_on_nothing_private(step):
        return None
    if _requires_fit(step):
        return LEARNS
    if isinstance(step, FunctionTransformer) and not _is_elementwise(step):
        return LOOKS_ACROSS
    return None


def rule_around(estimator: Any) -> Rule:
    """Return what is wrong with an estimator around a private classifier."""
    params = estimator.get_params(deep=False)
    if "sampling_strategy" in params:
        return BALANCES
    if "bootstrap" in params:
        return BOOTSTRAPS if params["bootstrap"] else FITS_OFTEN
    if hasattr(estimator, "cv") and looks_at_labels(estimator.cv):
        return STRATIFIES
    return SEARCHES


def looks_at_labels(cv: Any) -> bool:
    """Tell whether the splits of a classifier's rows depend on y.

    None, a number of folds and a share of rows stand for stratified splitters; what
    else scikit-learn's searches take is not read.
    """
    return cv is None or isinstance(cv, (Real, *STRATIFIED))


def transforms_row_by_row(step: Any) -> bool:
    """Tell whether a transformed row depends on no other row, to the last bit."""
    if isinstance(step, FunctionTransformer):
        return _is_elementwise(step)
    return step in (None, "passthrough", "drop") or type(step) in ROW_BY_ROW


def _is_elementwise(step: FunctionTransformer) -> bool:
    return step.func is None or isinstance(step.func, np.ufunc)


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

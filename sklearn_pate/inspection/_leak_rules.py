"""Rules for leaks of estimators in front of or around a private classifier."""

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
    "rule_around",
    "rule_in_front",
    "splits_by_labels",
    "transforms_row_by_row",
]

# Their inner steps are checked one by one.
CONTAINERS = (Pipeline, FeatureUnion, ColumnTransformer)
STRATIFIED = (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
# Their fit reads the number of columns alone. Subclasses may read values.
DATA_FREE = (
    AdditiveChi2Sampler,
    GaussianRandomProjection,
    PolynomialCountSketch,
    PolynomialFeatures,
    RBFSampler,
    SkewedChi2Sampler,
    SparseRandomProjection,
)
# They transform each row by itself, without a matrix product, in one order.
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
    StandardScaler,
    TfidfVectorizer,
)
# With these settings they read values or the number of rows.
SETTINGS_THAT_READ = {("gamma", "scale"), ("n_components", "auto")}


class Rule(NamedTuple):
    """Reason of a leak, and its remedy."""

    reason: str
    remedy: str


_INSIDE = "Move it into estimator= and student=, as make_pipeline(step, classifier). "
_FROZEN = (
    "Or fit it on public rows, as FrozenEstimator(step.fit(X_public)), and transform "
    "X_public by it before the fit: a pipeline does not."
)
_HARMLESS_INSIDE = (
    "Inside a PATEClassifier it is harmless: as estimator= (each teacher then has "
    "one, on its own shard) or as student=."
)

# In front of a private classifier.
LEARNS = Rule(
    "is fitted on private rows in front of a private classifier, and is published "
    "with the pipeline, without a guarantee.",
    _INSIDE + _FROZEN,
)
CHOOSES_COLUMNS = Rule(
    "chooses columns by a function that may read private rows in front of a private "
    "classifier: the choice has no guarantee. Column names and make_column_selector "
    "read no values.",
    _INSIDE + _FROZEN,
)
COMBINES_ROWS = Rule(
    "may combine private rows in front of a private classifier, so that one row "
    "changes others.",
    _INSIDE + "If its function transforms each row by itself, it is harmless.",
)
# Steps with fit_resample, as in imbalanced-learn. Dropped rows count, too: the number
# of the others decides their shards.
RESAMPLES = Rule(
    "repeats, mixes or drops private rows in front of a private classifier: one "
    "changed row changes several of those that it is fitted on, and its privacy "
    "statement is void.",
    "Resample inside estimator= of a PATEClassifier or PETDLClassifier, as "
    "imblearn.pipeline.make_pipeline(step, classifier): each teacher then resamples "
    "its own shard. Or weight classes there, with class_weight='balanced'. For private "
    "classifiers without teachers, leave it out.",
)
# In a matrix product, the last bits of each row depend on the number of rows.
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
    "is fitted on private rows beside a private classifier, and is published with it, "
    "without a guarantee.",
    "Leave it out, or train it as the student.",
)

# Around a private classifier, which is fitted several times, perhaps on chosen rows.
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
    "is fitted on private rows and labels around a private classifier: its result (a "
    "choice between candidates, a threshold, a calibration) has no guarantee, and each "
    "fit inside it is a release with its own privacy cost.",
    "Put it inside, as student= (fitted on answers) or as estimator= (fitted in each "
    "teacher), fit it on labelled rows that are public, or search with "
    "PrivateSearchCV.",
)
STRATIFIES = SEARCHES._replace(
    reason=f"{SEARCHES.reason} Its splits use labels, too: one changed label moves "
    "other rows between folds, which no cost covers; cv=KFold(shuffle=True) avoids "
    "this."
)


def rule_in_front(step: Any) -> Rule | None:
    """Return the rule that a step in front of a private classifier breaks, or None.

    Steps inside it are not checked.
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
        return COMBINES_ROWS
    return None


def rule_around(estimator: Any) -> Rule:
    """Return the rule that an estimator around a private classifier breaks."""
    params = estimator.get_params(deep=False)
    if "sampling_strategy" in params:
        return BALANCES
    if "bootstrap" in params:
        return BOOTSTRAPS if params["bootstrap"] else FITS_OFTEN
    if hasattr(estimator, "cv") and splits_by_labels(estimator.cv):
        return STRATIFIES
    return SEARCHES


def splits_by_labels(cv: Any) -> bool:
    """Check whether the splits of a classifier's rows depend on y.

    None, a number of folds and a share of rows stand for stratified splitters.
    """
    return cv is None or isinstance(cv, (Real, *STRATIFIED))


def transforms_row_by_row(step: Any) -> bool:
    """Check whether each transformed row depends on no other row, to the last bit."""
    if isinstance(step, FunctionTransformer):
        return _is_elementwise(step)
    from sklearn.impute import SimpleImputer  # slow to import

    row_by_row = (*ROW_BY_ROW, SimpleImputer)
    return step in (None, "passthrough", "drop") or type(step) in row_by_row


def _is_elementwise(step: FunctionTransformer) -> bool:
    return step.func is None or isinstance(step.func, np.ufunc)


def _chooses_by_values(column_transformer: ColumnTransformer) -> bool:
    """Check whether columns are chosen by a function that may read values."""
    return any(
        callable(columns) and type(columns) is not make_column_selector
        for *_, columns in column_transformer.transformers
    )


def _is_fitted_on_nothing_private(step: Any) -> bool:
    if type(step) in DATA_FREE:
        named = step.get_params(deep=False).items()
        settings = {(name, value) for name, value in named if isinstance(value, str)}
        return not settings & SETTINGS_THAT_READ
    return isinstance(step, FrozenEstimator)


def _requires_fit(step: Any) -> bool:
    try:
        return bool(get_tags(step).requires_fit)
    except (AttributeError, TypeError):  # no scikit-learn tags
        return True

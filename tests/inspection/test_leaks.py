"""Steps and searches that see private rows before the classifier does."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import (
    ColumnTransformer,
    make_column_selector,
    make_column_transformer,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
    scale,
)

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData, privacy_leaks
from sklearn_pate.learners import (
    DPLogisticRegression,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV

INSIDE = PATEClassifier(make_pipeline(StandardScaler(), LogisticRegression()))


class FromAnotherLibrary:
    def get_params(self, deep=True):
        return {}

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class Centred(PolynomialFeatures):
    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return super().fit(X, y)


class Selector(make_column_selector):
    def __call__(self, X):
        return X.columns[X.var() > 1]


def varied(X):
    return X.var(axis=0) > 1


def names(estimator):
    return [leak.name for leak in privacy_leaks(estimator)]


@pytest.mark.parametrize(
    "step",
    [
        Normalizer(),
        FunctionTransformer(np.log1p),
        "passthrough",
        None,
        FrozenEstimator(StandardScaler()),
        make_union(Normalizer(), FunctionTransformer()),
        make_column_transformer((Normalizer(), [0]), remainder="passthrough"),
        make_column_transformer((Normalizer(), make_column_selector("^age"))),
        FrozenEstimator(make_column_transformer((Normalizer(), varied))),
        PolynomialFeatures(),
    ],
)
def test_steps_that_learn_nothing_do_not_leak(step):
    assert names(Pipeline([("step", step), ("pate", INSIDE)])) == []


@pytest.mark.parametrize(
    ("step", "leaks"),
    [
        (StandardScaler(), ["step"]),
        (SimpleImputer(), ["step"]),
        (TfidfVectorizer(), ["step"]),
        (FromAnotherLibrary(), ["step"]),
        (make_pipeline(Normalizer(), PCA()), ["step__pca"]),
        (make_union(Normalizer(), PCA()), ["step__pca"]),
        (
            make_column_transformer(
                (OneHotEncoder(), [0]), ("drop", [1]), remainder=StandardScaler()
            ),
            ["step__onehotencoder", "step__remainder"],
        ),
        (
            ColumnTransformer(
                [("n", Normalizer(), [0])], remainder=FromAnotherLibrary()
            ),
            ["step__remainder"],
        ),
        (Pipeline((("s", StandardScaler()),)), ["step__s"]),
        (Pipeline([["s", StandardScaler()]]), ["step__s"]),
        (ColumnTransformer((("s", StandardScaler(), [0]),)), ["step__s"]),
        (FeatureUnion([["s", StandardScaler()]]), ["step__s"]),
        (FunctionTransformer(scale), ["step"]),
        (make_column_transformer(("passthrough", varied)), ["step"]),
        (make_column_transformer((Normalizer(), Selector())), ["step"]),
        (
            make_union(make_column_transformer((PCA(), [0]), ("drop", varied))),
            ["step__columntransformer", "step__columntransformer__pca"],
        ),
        (Centred(), ["step"]),
    ],
)
def test_steps_that_learn_leak(step, leaks):
    assert sorted(names(Pipeline([("step", step), ("pate", INSIDE)]))) == leaks


@pytest.mark.parametrize("wrap", [lambda pate: pate, make_pipeline, FrozenEstimator])
def test_what_is_inside_does_not_leak(wrap):
    assert privacy_leaks(wrap(INSIDE)) == []


@pytest.mark.parametrize(
    "around",
    [
        GridSearchCV(INSIDE, {}),
        CalibratedClassifierCV(INSIDE),
        OneVsRestClassifier(INSIDE),
        BaggingClassifier(INSIDE),
    ],
)
def test_what_is_fitted_around_leaks(around):
    [leak] = privacy_leaks(around)
    assert leak.estimator == type(around).__name__
    assert str(leak).startswith(f"{leak.estimator} is fitted on private rows")


def test_what_is_fitted_beside_leaks():
    voting = VotingClassifier([("pate", INSIDE), ("lr", LogisticRegression())])
    assert names(voting) == ["", "lr"]
    frozen = FrozenEstimator(LogisticRegression())
    assert names(VotingClassifier([("pate", INSIDE), ("lr", frozen)])) == [""]
    stacking = StackingClassifier([("p", INSIDE)], LogisticRegression())
    assert sorted(names(stacking)) == ["", "final_estimator"]


@pytest.mark.parametrize(
    ("cv", "looks"),
    [
        ("prefit", False),
        (KFold(2, shuffle=True), False),
        (0.3, True),
        (3, True),
        (None, True),
    ],
)
def test_splits_of_any_kind_are_looked_at(cv, looks):
    tuned = TunedThresholdClassifierCV(INSIDE, cv=cv, refit=cv != "prefit")
    stacking = StackingClassifier([("p", INSIDE)], FrozenEstimator(PCA()), cv=cv)
    for around in (tuned, stacking):
        [leak] = privacy_leaks(around)
        assert ("one changed label moves other rows" in leak.reason) is looks


def test_a_look_at_splits_uses_none_of_them_up():
    splits = iter([([0, 1], [2, 3])])
    privacy_leaks(GridSearchCV(INSIDE, {}, cv=splits))
    assert len(list(splits)) == 1


def test_candidates_of_a_search_are_looked_at():
    pipeline = Pipeline([("step", "passthrough"), ("last", INSIDE)])
    steps = {"step": [Normalizer(), StandardScaler()], "last__estimator": [PCA()]}
    assert names(GridSearchCV(pipeline, steps)) == ["", "estimator__step"]
    assert names(RandomizedSearchCV(pipeline, [steps])) == ["", "estimator__step"]
    without = Pipeline([("step", StandardScaler()), ("last", LogisticRegression())])
    searched = GridSearchCV(without, {"last": [INSIDE]})
    assert names(searched) == ["", "estimator__step"]


def test_a_search_around_a_pipeline_leaks_twice():
    pipeline = Pipeline([("scale", StandardScaler()), ("pate", INSIDE)])
    search = GridSearchCV(pipeline, {})
    assert names(search) == ["", "estimator__scale"]
    assert names(make_pipeline(Normalizer(), search)) == [
        "gridsearchcv",
        "gridsearchcv__estimator__scale",
    ]


def test_the_message_has_a_remedy():
    [leak] = privacy_leaks(make_pipeline(StandardScaler(), INSIDE))
    for part in ("standardscaler (StandardScaler)", "estimator=", "FrozenEstimator"):
        assert part in str(leak)


@pytest.mark.slow
def test_remedied_pipelines_work(blobs):
    X, y, X_public, y_public = blobs
    pate = PATEClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()),
        n_teachers=20,
        mechanism=GNMax(sigma=1),
        epsilon=None,
    )
    frozen = FrozenEstimator(StandardScaler().fit(X_public))
    for step in (Normalizer(), frozen):
        remedied = make_pipeline(step, pate)
        assert privacy_leaks(remedied) == []
        public = PublicData(step.transform(X_public))
        remedied.fit(X, y, pateclassifier__X_public=public)
        assert remedied.score(X_public, y_public) > 0.7


@pytest.mark.parametrize("without", [StandardScaler(), GridSearchCV(PCA(), {}), None])
def test_without_pate_there_is_nothing_to_say(without):
    with pytest.raises(ValueError, match="holds no private classifier"):
        privacy_leaks(without)


@pytest.mark.parametrize(
    "learner",
    [
        DPLogisticRegression(),
        PrivateKNNClassifier(),
        PETDLClassifier(),
        DPNewtonClassifier(),
    ],
)
def test_a_scaler_in_front_of_any_private_classifier_is_found(learner):
    [leak] = privacy_leaks(make_pipeline(StandardScaler(), learner))
    assert leak.name == "standardscaler"


def test_a_step_that_looks_at_the_number_of_columns_alone_is_no_leak():
    assert privacy_leaks(make_pipeline(RBFSampler(), DPLogisticRegression())) == []
    [leak] = privacy_leaks(
        make_pipeline(RBFSampler(gamma="scale"), DPLogisticRegression())
    )
    assert leak.estimator == "RBFSampler"


def test_a_private_search_is_no_leak_and_a_plain_one_is():
    grid = {"C": [0.1, 1.0]}
    assert privacy_leaks(PrivateSearchCV(DPLogisticRegression(), grid)) == []
    [leak] = privacy_leaks(GridSearchCV(DPLogisticRegression(), grid))
    assert "PrivateSearchCV" in leak.remedy

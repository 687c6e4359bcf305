from importlib import import_module

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
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
from sklearn.random_projection import GaussianRandomProjection

from sklearn_pate import PATEClassifier, PublicData, privacy_leaks
from sklearn_pate.baselines import (
    DPLogisticRegression,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from tests.sampler import Sampler

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


def imblearn(module):
    pytest.importorskip("imblearn", reason="imbalanced-learn is not installed")
    return import_module(f"imblearn.{module}")


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


def test_the_message_says_what_to_do():
    [leak] = privacy_leaks(make_pipeline(StandardScaler(), INSIDE))
    for part in ("standardscaler (StandardScaler)", "estimator=", "FrozenEstimator"):
        assert part in str(leak)


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
    "learner", [DPLogisticRegression(), PrivateKNNClassifier(), PETDLClassifier()]
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


def only(estimator):
    [leak] = privacy_leaks(estimator)
    return str(leak)


@pytest.mark.parametrize(
    "learner",
    [
        INSIDE,
        PETDLClassifier(),
        PrivateKNNClassifier(),
        DPLogisticRegression(),
        DPSGDClassifier(None),
        PrivateSearchCV(INSIDE, {}),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_a_sampler_in_front_voids_the_statement_of_any_learner(learner):
    leak = only(make_pipeline(Sampler(), learner))
    assert leak.startswith("sampler (Sampler) repeats, mixes or drops private rows")
    assert "its privacy statement is void" in leak
    assert "FrozenEstimator" not in leak  # fitted on public rows, it repeats as many


@pytest.mark.parametrize(
    "pipeline",
    [
        Pipeline([("n", Normalizer()), ("s", Sampler()), ("pate", INSIDE)]),
        make_pipeline(make_pipeline(Normalizer(), Sampler()), INSIDE),
        make_pipeline(Normalizer(), Pipeline([("s", Sampler()), ("pate", INSIDE)])),
        make_pipeline(FrozenEstimator(Sampler()), INSIDE),
        make_pipeline(make_column_transformer((Sampler(), [0])), INSIDE),
    ],
    ids=["step", "nested", "nested last", "frozen", "columns"],
)
def test_a_sampler_is_found_wherever_it_is(pipeline):
    assert "its privacy statement is void" in only(pipeline)


@pytest.mark.parametrize(
    "sampler",
    [
        "over_sampling.SMOTE",
        "over_sampling.RandomOverSampler",
        "over_sampling.ADASYN",
        "under_sampling.RandomUnderSampler",
        "under_sampling.TomekLinks",
        "under_sampling.ClusterCentroids",
        "combine.SMOTEENN",
    ],
)
def test_samplers_of_imbalanced_learn_void_the_statement(sampler):
    module, name = sampler.split(".")
    sampler = getattr(imblearn(module), name)()
    leak = only(imblearn("pipeline").make_pipeline(sampler, INSIDE))
    assert f"({name}) repeats, mixes or drops private rows" in leak
    assert "its privacy statement is void" in leak
    assert "inside estimator=" in leak


def test_a_function_that_resamples_is_found_and_none_is_not():
    sampler = imblearn("base").FunctionSampler
    assert privacy_leaks(make_pipeline(sampler(), INSIDE)) == []
    leak = only(make_pipeline(sampler(func=lambda X, y: (X, y)), INSIDE))
    assert "its privacy statement is void" in leak


def test_searched_samplers_and_their_parameters_are_found():
    pipeline = imblearn("pipeline").Pipeline([("s", "passthrough"), ("pate", INSIDE)])
    smote = imblearn("over_sampling").SMOTE()
    search = GridSearchCV(pipeline, {"s": ["passthrough", smote]})
    assert names(search) == ["", "estimator__s"]
    sampled = clone(pipeline).set_params(s=smote)
    assert names(GridSearchCV(sampled, {"s__k_neighbors": [1, 2]})) == [
        "",
        "estimator__s",
    ]


def test_a_bootstrap_around_voids_the_statement():
    leak = only(BaggingClassifier(INSIDE))
    assert "its privacy statement is void" in leak
    assert "Set bootstrap=False" in leak


def test_a_searched_bootstrap_is_found():
    bagging = BaggingClassifier(INSIDE, bootstrap=False)
    search = GridSearchCV(bagging, {"bootstrap": [False, True]})
    assert sum("statement is void" in str(leak) for leak in privacy_leaks(search)) == 1


@pytest.mark.parametrize("max_samples", [0.5, 1.0])
def test_fits_on_overlapping_rows_add_up_and_are_not_void(max_samples):
    leak = only(BaggingClassifier(INSIDE, bootstrap=False, max_samples=max_samples))
    assert "void" not in leak
    assert "each fit is a release with its own privacy cost" in leak
    assert "Add the costs up" in leak


@pytest.mark.parametrize(
    "ensemble",
    ["BalancedBaggingClassifier", "EasyEnsembleClassifier", "RUSBoostClassifier"],
)
def test_ensembles_that_balance_void_the_statement(ensemble):
    leak = only(getattr(imblearn("ensemble"), ensemble)(estimator=INSIDE))
    assert f"{ensemble} is fitted on private rows that it chooses by their labels" in (
        leak
    )
    assert "its privacy statement is void" in leak


def test_a_given_sampler_of_an_ensemble_is_not_called_published():
    balanced = imblearn("ensemble").BalancedBaggingClassifier(
        INSIDE, sampler=imblearn("under_sampling").RandomUnderSampler()
    )
    assert "by their labels" in only(balanced)


def test_resampling_inside_the_teacher_is_no_leak_and_works(blobs):
    X, y, X_public, y_public = blobs
    few = np.flatnonzero((y > 0) | (np.arange(len(y)) % 4 == 0))
    for sampler in (
        imblearn("over_sampling").RandomOverSampler(),
        imblearn("over_sampling").SMOTE(k_neighbors=1),
        imblearn("under_sampling").RandomUnderSampler(),
    ):
        teacher = imblearn("pipeline").make_pipeline(sampler, LogisticRegression())
        pate = PATEClassifier(
            teacher,
            student=LogisticRegression(),
            n_teachers=10,
            mechanism=GNMax(sigma=1),
            epsilon=None,
            classes=range(3),
        )
        assert privacy_leaks(pate) == []
        pate.fit(X[few], y[few], X_public=PublicData(X_public))
        assert not pate.privacy_analysis_.teacher_failures
        assert pate.score(X_public, y_public) > 0.7


class Named(ClassifierMixin, BaseEstimator):
    """Keeps what it is fitted on."""

    def fit(self, X, y, groups=None):
        self.classes_, self.X_, self.groups_ = np.unique(y), X, groups
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_copies_of_a_bootstrap_keep_the_number_of_their_row(blobs):
    X, y, _, _ = blobs
    with config_context(enable_metadata_routing=True):
        bagging = BaggingClassifier(Named().set_fit_request(groups=True), 2)
        bagging.fit(X, y, groups=np.arange(len(X)))
    for fitted in bagging.estimators_:
        np.testing.assert_array_equal(fitted.X_, X[fitted.groups_])
        assert len(np.unique(fitted.groups_)) < len(X)


FROZEN_PCA = FrozenEstimator(PCA(2).fit(np.eye(3)))
COUNTS_ROWS = [
    PrivateKNNClassifier(),
    PATEClassifier(privacy_unit="group"),
    PETDLClassifier(privacy_unit="group"),
    DPSGDClassifier(None),
]


@pytest.mark.parametrize("classifier", COUNTS_ROWS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    "step", [FROZEN_PCA, GaussianRandomProjection(2), RBFSampler()], ids=repr
)
def test_rows_that_are_transformed_together_void_statements_that_count_rows(
    classifier, step
):
    columns = make_column_transformer((step, ["a", "b", "c"]))
    steps = [("first", step), ("columns", columns), ("clf", classifier)]
    leaks = privacy_leaks(Pipeline(steps))
    assert [leak.name for leak in leaks] == [
        "first",
        f"columns__{columns_name(columns)}",
    ]
    for leak in leaks:
        assert "last bits of every row" in leak.reason
        assert "representation=" in leak.remedy


def columns_name(columns):
    return columns.transformers[0][0]


@pytest.mark.parametrize(
    "around",
    [
        lambda knn: make_pipeline(Normalizer(), knn),
        lambda knn: GridSearchCV(knn, {"n_neighbors": [1]}, cv=KFold(3)),
        lambda knn: BaggingClassifier(knn, bootstrap=False),
        lambda knn: PrivateSearchCV(knn, {"n_neighbors": [1]}),
    ],
    ids=["pipeline", "grid", "bagging", "private search"],
)
def test_rows_that_are_transformed_together_are_found_around_what_holds_the_classifier(
    around,
):
    leaks = privacy_leaks(make_pipeline(FROZEN_PCA, around(PrivateKNNClassifier())))
    assert "frozenestimator" in [leak.name for leak in leaks]


@pytest.mark.parametrize("contain", [list, np.array])
def test_a_searched_unit_is_found(contain):
    units = contain(["row", "group"])
    search = GridSearchCV(PATEClassifier(), {"privacy_unit": units}, cv=KFold(3))
    leaks = privacy_leaks(make_pipeline(FROZEN_PCA, search))
    assert "frozenestimator" in [leak.name for leak in leaks]


def test_rows_inside_a_private_search_are_transformed_together_at_no_price():
    pipeline = make_pipeline(FROZEN_PCA, PrivateKNNClassifier())
    search = PrivateSearchCV(pipeline, {"privateknnclassifier__n_neighbors": [5]})
    (leak,) = privacy_leaks(search)
    assert leak.name == "estimator__frozenestimator"
    assert "last bits of every row" in leak.reason


def test_rows_that_are_replaced_may_be_transformed_together():
    assert privacy_leaks(make_pipeline(FROZEN_PCA, PATEClassifier())) == []
    assert privacy_leaks(make_pipeline(FROZEN_PCA, DPLogisticRegression())) == []


def test_rounding_that_moves_a_smooth_sum_is_what_a_linear_model_assumes_of_floats():
    smooth = DPLogisticRegression(method="gaussian")
    assert privacy_leaks(make_pipeline(RBFSampler(), smooth)) == []


@pytest.mark.parametrize(
    "step",
    [
        Normalizer(),
        PolynomialFeatures(),
        FunctionTransformer(np.sqrt),
        FrozenEstimator(StandardScaler().fit(np.eye(3))),
    ],
    ids=repr,
)
def test_numbers_that_are_computed_one_by_one_do_not_depend_on_other_rows(step):
    assert privacy_leaks(make_pipeline(step, PrivateKNNClassifier())) == []

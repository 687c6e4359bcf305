"""Samplers, and rows that are transformed together, void statements."""

from importlib import import_module

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData, privacy_leaks
from sklearn_pate.learners import (
    DPLogisticRegression,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from tests.sampler import Sampler

INSIDE = PATEClassifier(make_pipeline(StandardScaler(), LogisticRegression()))


def imblearn(module):
    pytest.importorskip("imblearn", reason="imbalanced-learn is not installed")
    return import_module(f"imblearn.{module}")


def only(estimator):
    [leak] = privacy_leaks(estimator)
    return str(leak)


def names(estimator):
    return [leak.name for leak in privacy_leaks(estimator)]


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
    assert "the privacy statement is void" in leak
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
    assert "the privacy statement is void" in only(pipeline)


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
    assert "the privacy statement is void" in leak
    assert "inside estimator=" in leak


def test_a_function_that_resamples_is_found_and_none_is_not():
    sampler = imblearn("base").FunctionSampler
    assert privacy_leaks(make_pipeline(sampler(), INSIDE)) == []
    leak = only(make_pipeline(sampler(func=lambda X, y: (X, y)), INSIDE))
    assert "the privacy statement is void" in leak


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
    assert "the privacy statement is void" in leak
    assert "Set bootstrap=False" in leak


def test_a_searched_bootstrap_is_found():
    bagging = BaggingClassifier(INSIDE, bootstrap=False)
    search = GridSearchCV(bagging, {"bootstrap": [False, True]})
    assert sum("statement is void" in str(leak) for leak in privacy_leaks(search)) == 1


@pytest.mark.parametrize("max_samples", [0.5, 1.0])
def test_fits_on_overlapping_rows_add_up_and_are_not_void(max_samples):
    leak = only(BaggingClassifier(INSIDE, bootstrap=False, max_samples=max_samples))
    assert "void" not in leak
    assert "Each fit is a release with its own privacy cost" in leak
    assert "Add up the costs" in leak


@pytest.mark.parametrize(
    "ensemble",
    ["BalancedBaggingClassifier", "EasyEnsembleClassifier", "RUSBoostClassifier"],
)
def test_ensembles_that_balance_void_the_statement(ensemble):
    leak = only(getattr(imblearn("ensemble"), ensemble)(estimator=INSIDE))
    assert f"{ensemble} is fitted on private rows that it chooses by their labels" in (
        leak
    )
    assert "the privacy statement is void" in leak


def test_a_given_sampler_of_an_ensemble_is_not_called_published():
    balanced = imblearn("ensemble").BalancedBaggingClassifier(
        INSIDE, sampler=imblearn("under_sampling").RandomUnderSampler()
    )
    assert "by their labels" in only(balanced)


@pytest.mark.slow
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
    DPNewtonClassifier(privacy_unit="group"),
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


def test_rows_transformed_together_inside_a_private_search_are_a_leak():
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

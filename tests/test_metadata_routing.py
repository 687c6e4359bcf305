"""Public rows and groups in searches, cross-validation and pipelines."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData
from sklearn_pate.learners import (
    Clusters,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import TableRepresentation
from tests.cases import thorough_but
from tests.witness import Witness

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
    pytest.mark.filterwarnings("ignore:X_public has as many rows as X.*ignore this"),
]
ROUTING = pytest.mark.parametrize("routing", [False, True])


def frame(X):
    return pd.DataFrame(X, columns=["age", "weight"])


CONTAINERS = pytest.mark.parametrize("contain", [np.asarray, frame])


@pytest.fixture
def pate():
    return Witness(
        LogisticRegression(),
        n_teachers=10,
        mechanism=GNMax(sigma=1.0),
        epsilon=None,
        n_queries=20,
        random_state=0,
    )


@pytest.fixture
def rows(blobs):
    """As many public rows as private ones."""
    X, y, X_public, _ = blobs
    return X[:300], y[:300], X_public


LEARNERS = {
    "PATE": PATEClassifier(GaussianNB(), n_teachers=10, epsilon=50),
    "Newton": DPNewtonClassifier(epsilon=20),
    "neighbours": PrivateKNNClassifier(
        LogisticRegression(), n_queries=20, epsilon=50, representation=None
    ),
    "PETDL": PETDLClassifier(
        GaussianNB(),
        LogisticRegression(),
        n_teachers=10,
        batches=Clusters(50),
        epsilon=50,
        representation=None,
    ),
    "represented": DPLogisticRegression(
        epsilon=20, representation=TableRepresentation(3)
    ),
    "naive Bayes": DPNaiveBayesClassifier((-15, 15), epsilon=20),
}
LEARNERS["search"] = PrivateSearchCV(LEARNERS["PATE"], {"epsilon": [40, 50]})
WITH_PUBLIC_ROWS = [name for name in LEARNERS if name != "naive Bayes"]
BY_GROUP = [name for name in LEARNERS if name not in ("represented", "search")]


# Requests by default


@pytest.mark.slow
@ROUTING
@pytest.mark.parametrize(
    "name",
    thorough_but(set(WITH_PUBLIC_ROWS) - {"search"}, WITH_PUBLIC_ROWS),
)
def test_public_rows_reach_every_learner_in_a_search(name, routing, rows):
    X, y, X_public = rows
    classifier = clone(LEARNERS[name]).set_params(classes=[0, 1, 2])
    with config_context(enable_metadata_routing=routing):
        search = GridSearchCV(classifier, {"delta": [1e-5]}, cv=2, error_score="raise")
        search.fit(X, y, X_public=PublicData(X_public))
    assert search.best_estimator_.classes_.tolist() == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_GROUP)
def test_groups_reach_a_learner_whose_unit_they_are(name, rows):
    X, y, X_public = rows
    classifier = clone(LEARNERS[name])
    classifier.set_params(privacy_unit="group", classes=[0, 1, 2])
    if "n_groups" in classifier.get_params():
        classifier.set_params(n_groups=100)
    params = {"groups": np.arange(300) // 3, "X_public": PublicData(X_public)}
    if name == "naive Bayes":
        del params["X_public"]
    with config_context(enable_metadata_routing=True):
        results = cross_validate(
            classifier,
            X,
            y,
            params=params,
            cv=GroupKFold(2),
            return_estimator=True,
            error_score="raise",
        )
    units = [fitted.privacy_spent_.unit for fitted in results["estimator"]]
    assert units == ["group", "group"]


@pytest.mark.slow
@pytest.mark.parametrize("in_pipeline", [False, True])
@pytest.mark.parametrize("unit", ["row", "group"])
def test_groups_of_a_splitter_reach_fit_only_if_they_are_the_unit(
    pate, rows, unit, in_pipeline
):
    X, y, X_public = rows
    pate.set_params(privacy_unit=unit)
    estimator = make_pipeline(FunctionTransformer(), pate) if in_pipeline else pate
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(estimator, {}, cv=GroupKFold(3), error_score="raise")
        search.fit(X, y, X_public=PublicData(X_public), groups=np.arange(300) // 3)
    best = search.best_estimator_
    fitted = best[-1] if in_pipeline else best
    assert fitted.shapes_["groups"] == (None if unit == "row" else (300,))


def test_groups_without_a_reader_are_refused(pate, rows):
    X, y, X_public = rows
    with (
        config_context(enable_metadata_routing=True),
        pytest.raises(TypeError, match="groups"),
    ):
        GridSearchCV(pate, {}).fit(X, y, X_public=X_public, groups=np.arange(300))


@pytest.mark.slow
def test_a_request_may_be_set_otherwise(pate, rows):
    X, y, X_public = rows
    pate.set_params(privacy_unit="group")
    with config_context(enable_metadata_routing=True):
        pate.set_fit_request(groups="patient")
        copied = clone(pate)
        scores = cross_val_score(
            copied,
            X,
            y,
            cv=2,
            params={"patient": np.arange(300), "X_public": PublicData(X_public)},
            error_score="raise",
        )
        pate.set_fit_request(X_public=False)
        with pytest.raises(TypeError, match="X_public"):
            cross_val_score(pate, X, y, params={"X_public": PublicData(X_public)})
    assert len(scores) == 2


def test_a_request_for_public_rows_leaves_that_for_groups_to_the_unit(pate, rows):
    X, y, X_public = rows
    with config_context(enable_metadata_routing=True):
        pate.set_fit_request(X_public=True).set_params(privacy_unit="group")
        pipeline = make_pipeline(FunctionTransformer(), pate)
        pipeline.fit(X, y, X_public=PublicData(X_public), groups=np.arange(300))
    assert pipeline[-1].privacy_spent_.unit == "group"


def test_a_search_without_routing_loses_groups_and_is_told(pate, rows):
    X, y, X_public = rows
    pate.set_params(privacy_unit="group")
    search = GridSearchCV(pate, {}, cv=GroupKFold(3), error_score="raise")
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        search.fit(X, y, X_public=PublicData(X_public), groups=np.arange(300) // 3)


# As many public rows as private rows


def fit_grid(pate, X, y, X_public):
    search = GridSearchCV(pate, {}, cv=3, error_score="raise")
    return [search.fit(X, y, X_public=X_public).best_estimator_]


def fit_folds(pate, X, y, X_public):
    results = cross_validate(
        pate,
        X,
        y,
        params={"X_public": X_public},
        cv=3,
        return_estimator=True,
        error_score="raise",
    )
    return results["estimator"]


@pytest.mark.slow
@ROUTING
@pytest.mark.parametrize("fit", [fit_grid, fit_folds])
@CONTAINERS
def test_public_data_is_never_split(pate, rows, fit, routing, contain):
    X, y, X_public = rows
    with config_context(enable_metadata_routing=routing):
        fits = fit(pate, contain(X), y, PublicData(contain(X_public)))
    assert {fitted.shapes_["X_public"] for fitted in fits} == {(300, 2)}


@ROUTING
@pytest.mark.parametrize("fit", [fit_grid, fit_folds])
@CONTAINERS
def test_plain_rows_that_may_have_been_split_are_refused(
    pate, rows, fit, routing, contain
):
    X, y, X_public = rows
    with (
        config_context(enable_metadata_routing=routing),
        pytest.raises(ValueError, match=r"Pass X_public=PublicData\(X_public\)"),
    ):
        fit(pate, contain(X), y, contain(X_public))


@pytest.mark.slow
@ROUTING
def test_plain_rows_of_another_length_are_not_split(pate, rows, routing):
    X, y, X_public = rows
    with config_context(enable_metadata_routing=routing):
        fits = fit_folds(pate, X, y, X_public[:-1])
    assert {fitted.shapes_["X_public"] for fitted in fits} == {(299, 2)}


# Pipelines that transform public rows


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [PublicData, lambda X: X[:250]])
@CONTAINERS
def test_a_pipeline_transforms_public_rows_like_private_ones(pate, rows, contain, wrap):
    X, y, X_public = contain(rows[0]), rows[1], wrap(contain(rows[2]))
    with config_context(enable_metadata_routing=True):
        pipeline = Pipeline(
            [("square", FunctionTransformer(np.square)), ("pate", pate)],
            transform_input=["X_public"],
        ).fit(X, y, X_public=X_public)
    by_hand = clone(pate)
    squared = np.square(getattr(X_public, "X", X_public))
    by_hand.fit(np.square(X), y, X_public=PublicData(squared))
    assert pipeline[-1].shapes_ == by_hand.shapes_
    np.testing.assert_array_equal(
        pipeline[-1].privacy_analysis_.plurality, by_hand.privacy_analysis_.plurality
    )


@pytest.mark.slow
def test_a_search_over_a_pipeline_transforms_public_data_whole(pate, rows):
    X, y, X_public = rows
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            make_pipeline(StandardScaler(), FunctionTransformer()),
            pate,
            transform_input=["X_public"],
        )
        search = GridSearchCV(
            pipeline, {"witness__n_queries": [100]}, cv=3, error_score="raise"
        ).fit(100 + 10 * X, y, X_public=PublicData(100 + 10 * X_public))
    assert search.best_estimator_[-1].shapes_["X_public"] == (300, 2)
    assert search.best_score_ > 0.8


@ROUTING
@CONTAINERS
def test_the_holder_is_told_of_public_rows_that_a_pipeline_left_as_they_are(
    pate, rows, routing, contain
):
    X, y, X_public = contain(rows[0]), rows[1], contain(rows[2])
    scaler = StandardScaler().set_output(
        transform="pandas" if contain is frame else "default"
    )
    pipeline = make_pipeline(scaler, pate)
    name = "X_public" if routing else "witness__X_public"
    with config_context(enable_metadata_routing=routing):
        pipeline.fit(100 + 10 * X, y, **{name: PublicData(100 + 10 * X_public)})
    with pytest.warns(UserWarning, match="outside the range that the model knows"):
        pipeline[-1].predict(scaler.transform(100 + 10 * X))
    assert "transform_input=['X_public']" in str(pipeline[-1].data_problems_)


def test_public_rows_that_were_transformed_have_no_problem(pate, rows):
    X, y, X_public = rows
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), pate, transform_input=["X_public"])
        pipeline.fit(X, y, X_public=PublicData(X_public))
    assert pipeline[-1].data_problems_ == ()


def test_a_frame_beside_an_array_is_refused(pate, rows):
    X, y, X_public = frame(rows[0]), rows[1], frame(rows[2])
    pipeline = make_pipeline(StandardScaler(), pate)
    with pytest.raises(ValueError, match="X is of type ndarray and X_public of type D"):
        pipeline.fit(X, y, witness__X_public=PublicData(X_public))

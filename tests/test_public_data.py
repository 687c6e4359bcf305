"""Public rows under cross-validation: whole with the wrapper, cut without it."""

import copy
import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pate import PATEClassifier, PublicData, PublicDataWarning
from sklearn_pate.mechanisms import GNMax

from .witness import Witness


@pytest.fixture
def pate():
    return PATEClassifier(
        LogisticRegression(),
        n_teachers=10,
        mechanism=GNMax(sigma=1.0),
        epsilon=None,
        n_queries=20,
        random_state=0,
    )


@pytest.fixture
def as_many_public_as_private_rows(blobs):
    X, y, X_public, _ = blobs
    return X[:300], np.array(["a", "b", "c"])[y[:300]], X_public


@pytest.mark.filterwarnings("ignore:X_public has as many rows")
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_grid_search_cuts_raw_public_rows_but_not_public_data(
    pate, as_many_public_as_private_rows, routing, wrapped
):
    X, y, X_public = as_many_public_as_private_rows
    pate = Witness(**pate.get_params(deep=False))
    with config_context(enable_metadata_routing=routing):
        if routing:
            pate.set_fit_request(X_public=True)
        results = cross_validate(
            pate,
            X,
            y,
            params={"X_public": PublicData(X_public) if wrapped else X_public},
            cv=3,
            return_estimator=True,
        )
    seen = {fitted.shapes_["X_public"][0] for fitted in results["estimator"]}
    assert seen == ({300} if wrapped else {200})


@pytest.mark.parametrize("routing", [False, True])
def test_a_grid_search_over_teacher_student_and_mechanism(
    pate, as_many_public_as_private_rows, routing
):
    X, y, X_public = as_many_public_as_private_rows
    with config_context(enable_metadata_routing=routing):
        if routing:
            pate.set_fit_request(X_public=True)
        search = GridSearchCV(
            pate,
            {"estimator__C": [0.1, 1], "mechanism__sigma": [1.0], "n_queries": [15]},
            cv=3,
        )
        search.fit(X, y, X_public=PublicData(X_public))
    assert search.best_estimator_.answers_.shape == (15,)
    assert set(search.predict(X)) <= {"a", "b", "c"}
    assert search.best_score_ > 0.5


def test_groups_reach_fit_through_a_search_with_routing_only(
    pate, as_many_public_as_private_rows
):
    X, y, X_public = as_many_public_as_private_rows
    patients = np.repeat(np.arange(100), 3)
    pate.set_params(privacy_unit="group")

    def search():
        return GridSearchCV(
            pate, {"n_queries": [15]}, cv=GroupKFold(3), error_score="raise"
        )

    with config_context(enable_metadata_routing=True):
        pate.set_fit_request(X_public=True, groups=True)
        fitted = search().fit(X, y, X_public=PublicData(X_public), groups=patients)
    assert fitted.best_estimator_.privacy_spent_.unit == "group"
    with pytest.raises(ValueError, match="set_fit_request"):
        search().fit(X, y, X_public=PublicData(X_public), groups=patients)


def test_a_pipeline_around_pate_hands_public_rows_on(
    pate, as_many_public_as_private_rows
):
    X, y, X_public = as_many_public_as_private_rows
    pipeline = make_pipeline(FunctionTransformer(), pate)
    pipeline.fit(X, y, pateclassifier__X_public=PublicData(X_public))
    assert pipeline[-1].n_features_in_ == 2
    assert set(pipeline.predict(X)) <= {"a", "b", "c"}


def test_raw_public_rows_as_many_as_x_warn(pate, as_many_public_as_private_rows):
    X, y, X_public = as_many_public_as_private_rows
    with pytest.warns(PublicDataWarning, match="as many rows as X"):
        pate.fit(X, y, X_public=X_public)
    pate.fit(X, y, X_public=X_public[:-1])  # and otherwise they do not


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_share_the_rows(duplicate):
    public = PublicData(np.zeros((5, 2)))
    assert duplicate(public) is public
    assert PublicData(public).X is public.X


def test_it_travels_to_worker_processes():
    public = pickle.loads(pickle.dumps(PublicData(np.arange(6).reshape(3, 2))))
    assert public.X.shape == (3, 2)


def test_it_has_no_length_to_be_cut_by():
    public = PublicData(np.zeros((5, 2)))
    for attribute in ("__len__", "shape", "__array__", "__iter__"):
        assert not hasattr(public, attribute)
    assert repr(public) == "PublicData(<ndarray of shape (5, 2)>)"


def test_cloning_pate_draws_no_accounts_along(pate):
    copied = clone(pate)
    assert copied.mechanism is not pate.mechanism
    assert copied.mechanism.sigma == 1.0

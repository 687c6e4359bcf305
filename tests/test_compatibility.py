"""PATEClassifier inside, around and beside what people already use."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    GroupKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from tests.private import RelabeledClassifier, fit_class_indices
from tests.witness import Witness

N_ROWS = 300


@pytest.fixture
def pate():
    return Witness(
        LogisticRegression(),
        n_teachers=10,
        mechanism=GNMax(sigma=1.0),
        epsilon=None,
        n_queries=100,
        random_state=0,
    )


@pytest.fixture
def frames(blobs):
    """As many public rows as private ones, in frames, with string labels."""
    X, y, X_public, _ = blobs
    columns = ["age", "weight"]
    return (
        pd.DataFrame(X[:N_ROWS], columns=columns),
        pd.Series(np.array(["ill", "well", "unknown"])[y[:N_ROWS]]),
        pd.DataFrame(X_public, columns=columns),
    )


# Searches and cross-validation


@pytest.mark.slow
def test_a_grid_search_with_groups_hands_every_shape_on(pate, frames):
    X, y, X_public = frames
    patients = np.repeat(np.arange(N_ROWS // 4), 4)
    fits = []

    class Recorded(Witness):
        def fit(self, X, y, *, X_public=None, groups=None):
            super().fit(X, y, X_public=X_public, groups=groups)
            fits.append(self)
            return self

    recorded = Recorded(**pate.get_params(deep=False) | {"privacy_unit": "group"})
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            recorded,
            {"estimator__C": [0.1, 1.0]},
            cv=GroupKFold(3),
            error_score="raise",
        ).fit(
            X,
            y,
            X_public=PublicData(X_public),
            groups=patients,
        )
    assert len(fits) == 2 * 3 + 1
    for fitted, n_rows in zip(fits, [200] * 6 + [300], strict=True):
        assert fitted.shapes_["X"] == (n_rows, 2)
        assert fitted.shapes_["y"] == fitted.shapes_["groups"] == (n_rows,)
        assert fitted.feature_names_in_.tolist() == ["age", "weight"]
        assert fitted.classes_.tolist() == ["ill", "unknown", "well"]
        assert fitted.privacy_spent_.unit == "group"
    assert {fitted.shapes_["X_public"] for fitted in fits} == {(300, 2)}
    assert search.predict_proba(X).shape == (300, 3)
    assert search.best_score_ > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("routing", [False, True])
def test_cross_val_score(pate, frames, routing):
    X, y, X_public = frames
    with config_context(enable_metadata_routing=routing):
        scores = cross_val_score(
            pate, X, y, cv=3, params={"X_public": PublicData(X_public)}
        )
    assert scores.shape == (3,)
    assert scores.min() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrapper", "routing"),
    [
        (CalibratedClassifierCV(cv=3), False),
        (CalibratedClassifierCV(cv=3), True),
        (TunedThresholdClassifierCV(None, cv=3), True),
        (FixedThresholdClassifier(None, threshold=0.5), True),
    ],
)
def test_wrappers_that_split_keep_public_rows_whole(pate, frames, wrapper, routing):
    X, y, X_public = frames
    y = np.where(y == "ill", "ill", "other")
    pate.set_params(estimator=DecisionTreeClassifier(max_depth=4))
    with config_context(enable_metadata_routing=routing):
        wrapped = clone(wrapper).set_params(estimator=pate)
        wrapped.fit(X, y, X_public=PublicData(X_public))
    if isinstance(wrapper, CalibratedClassifierCV):
        inner = [one.estimator for one in wrapped.calibrated_classifiers_]
    else:
        inner = [wrapped.estimator_]
    assert {one.shapes_["X_public"] for one in inner} == {(300, 2)}
    assert wrapped.score(X, y) > 0.85


# Classifiers of other libraries


BOOSTERS = {
    "xgboost": xgboost.XGBClassifier(n_estimators=10, max_depth=3),
    "lightgbm": lightgbm.LGBMClassifier(
        n_estimators=10, min_child_samples=2, n_jobs=1, verbose=-1
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOOSTERS)
def test_boosters_teach_though_shards_lack_classes(name, digits):
    X, y = digits
    names = np.array(list("abcdefghij"))
    pate = PATEClassifier(
        BOOSTERS[name],
        n_teachers=40,  # of 25 rows: most lack a class
        mechanism=GNMax(sigma=1.0),
        epsilon=None,
        random_state=0,
        n_jobs=2,
    ).fit(X[:1000], names[y[:1000]], X_public=PublicData(X[1000:1500]))
    assert pate.privacy_analysis_.teacher_failures == []
    assert pate.predict_proba(X[1500:]).shape == (297, 10)
    assert pate.score(X[1500:], names[y[1500:]]) > 0.55


@pytest.mark.slow
@pytest.mark.parametrize("name", BOOSTERS)
def test_boosters_take_frames_with_categories(name, data_set):
    adult = data_set("adult", as_frame=True)
    X = adult.data[["age", "workclass", "education", "hours-per-week"]][:6000]
    y = adult.target[:6000]
    booster = BOOSTERS[name]
    if name == "xgboost":
        booster = xgboost.XGBClassifier(n_estimators=10, enable_categorical=True)
    pate = PATEClassifier(
        booster,
        n_teachers=20,
        mechanism=GNMax(sigma=1.0),
        epsilon=None,
        random_state=0,
    ).fit(X[:4000], y[:4000], X_public=PublicData(X[4000:5000]))
    assert pate.privacy_analysis_.teacher_failures == []
    assert pate.score(X[5000:], y[5000:]) > 0.74


@pytest.mark.slow
@pytest.mark.parametrize("name", BOOSTERS)
@pytest.mark.parametrize("seen", [[1, 4], [1, 4, 7]])
def test_a_booster_learns_from_answers_that_lack_classes(name, seen, digits):
    X, y = digits
    rows = np.isin(y[:1000], seen)
    pate = PATEClassifier(
        BOOSTERS[name],
        n_teachers=5,
        mechanism=GNMax(sigma=0.3),
        epsilon=None,
        classes=range(10),
        random_state=0,
    ).fit(X[:1000][rows], y[:1000][rows], X_public=PublicData(X[1000:1500]))
    assert set(pate.predict(X)) == set(seen)
    probabilities = pate.predict_proba(X)
    assert probabilities.shape == (len(X), 10)
    assert np.flatnonzero(probabilities.any(axis=0)).tolist() == seen
    test = np.isin(y, seen)
    assert pate.score(X[test], y[test]) > 0.8


class Insists(DecisionTreeClassifier):
    """Wants labels 0..m-1, like xgboost."""

    def fit(self, X, y):
        if not np.array_equal(np.unique(y), np.arange(len(np.unique(y)))):
            raise ValueError("labels must be contiguous")
        return super().fit(X, y)


@pytest.mark.parametrize("copy", [True, False])
def test_scaling_in_place_before_a_refusal_does_not_count_twice(copy, digits):
    X, y = digits
    rows = np.isin(y, [2, 5, 9])
    scaled = make_pipeline(StandardScaler(copy=copy), Insists(random_state=0))
    fitted = fit_class_indices(scaled, X[rows].copy(), y[rows])
    assert isinstance(fitted, RelabeledClassifier)
    assert fitted.score(X[rows], y[rows]) == 1


def test_indices_without_gaps_predict_the_indices_that_were_seen(digits):
    X, y = digits
    rows = np.isin(y, [2, 5, 9])
    own = RelabeledClassifier(Insists(random_state=0)).fit(X[rows], y[rows])
    plain = DecisionTreeClassifier(random_state=0).fit(X[rows], y[rows])
    np.testing.assert_array_equal(own.predict(X), plain.predict(X))
    np.testing.assert_array_equal(own.predict_proba(X), plain.predict_proba(X))
    assert np.isfinite(own.decision_function(X)).all()  # by predict_proba

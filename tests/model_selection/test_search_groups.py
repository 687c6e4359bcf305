"""Groups, public rows and pipelines in a private search."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.accounting.bounds import pure_dp_curve
from sklearn_pate.accounting.composition import TruncatedNegativeBinomial
from sklearn_pate.inspection import privacy_leaks
from sklearn_pate.model_selection import PrivateSearchCV
from tests.model_selection.learners import BY_GROUP, FITS, Constant, X, Y, search


def test_groups_reach_the_fits_and_stay_together():
    groups = np.repeat(np.arange(20), 3)
    searched = search(estimator=Constant(**BY_GROUP), random_state=1)
    planned = searched.plan_privacy(X, Y, groups=groups)
    searched.fit(X, Y, groups=groups)
    fit = FITS[-1]
    np.testing.assert_array_equal(fit["groups"], groups[fit["X"].ravel().astype(int)])
    assert set(np.bincount(fit["groups"], minlength=20)) == {0, 3}
    assert planned.unit == searched.privacy_spent_.unit == "group"


@pytest.mark.thorough
def test_pate_by_group(easy):
    X, y, X_public, _ = easy
    pate = PATEClassifier(
        GaussianNB(), n_teachers=30, n_queries=30, epsilon=8, privacy_unit="group"
    )
    searched = search({"n_teachers": [20, 30]}, pate)
    searched.fit(X, y, X_public=PublicData(X_public), groups=np.arange(len(X)) // 4)
    assert searched.privacy_spent_.unit == "group"
    assert "change of id" in searched.privacy_spent_.neighbours


def test_public_rows_are_never_cut():
    public = PublicData(X)
    for X_public in (public, X):
        search().fit(X, Y, X_public=X_public)
        assert FITS[-1]["X_public"] is X_public


@pytest.mark.slow
def test_a_pipeline_of_steps_that_look_at_no_value():
    scaler = FrozenEstimator(StandardScaler().fit(X))
    pipeline = Pipeline(
        [
            ("public", scaler),
            ("each_row", Normalizer()),
            ("random", RBFSampler(gamma=1.0, n_components=5)),
            ("constant", Constant(**BY_GROUP)),
        ]
    )
    groups = np.repeat(np.arange(20), 3)
    searched = search({"constant__answer": [0, 1], "random__gamma": [0.1]}, pipeline)
    planned = searched.plan_privacy(X, Y, constant__groups=groups)
    searched.fit(X, Y, constant__groups=groups)
    assert FITS[-1]["X"].shape == (len(FITS[-1]["groups"]), 5)
    assert str(planned) == str(searched.privacy_spent_)
    assert (
        "fitted beforehand, were fitted on public rows alone" in planned.in_one_line()
    )
    assert searched.best_estimator_[-1].privacy_spent_.epsilon == planned.epsilon
    assert searched.best_estimator_[-1].classes == [0, 1]
    assert searched.predict(X).shape == Y.shape


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_groups_are_routed(in_pipeline):
    groups = np.repeat(np.arange(20), 3)
    with config_context(enable_metadata_routing=True):
        constant = Constant(**BY_GROUP).set_fit_request(groups=True, X_public=True)
        estimator = make_pipeline(Normalizer(), constant) if in_pipeline else constant
        prefix = "constant__" if in_pipeline else ""
        searched = search({f"{prefix}answer": [0]}, estimator)
        public = PublicData(X)
        planned = searched.plan_privacy(X, Y, groups=groups, X_public=public)
        searched.fit(X, Y, groups=groups, X_public=public)
    assert len(FITS[-1]["groups"]) == len(FITS[-1]["X"])
    assert FITS[-1]["X_public"] is public
    assert planned.unit == "group"


def test_a_search_may_be_searched():
    inner = search(estimator=Constant(epsilon=0.7))
    outer = PrivateSearchCV(inner, {"test_size": [0.1, 0.3]}, mean_n_trials=2)
    planned = outer.plan_privacy(X, Y)
    outer.fit(X, Y)
    law = TruncatedNegativeBinomial.of_mean(0, 2)
    assert planned.epsilon == pytest.approx(law.pure_cost(1.4, pure_dp_curve(1.4)))
    inner = outer.best_estimator_
    for one in (outer, inner, inner.best_estimator_):
        assert one.privacy_spent_.epsilon == planned.epsilon
    assert privacy_leaks(outer) == []

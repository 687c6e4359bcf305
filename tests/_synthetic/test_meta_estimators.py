"""Fits on drawn rows inside pipelines, searches and calibration, without routing."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pate import PATEClassifier, PrivacyLedger, PrivateMarginals
from sklearn_pate.mechanisms import GumbelMax
from sklearn_pate.model_selection import PrivateSearchCV
from tests._aggregation.fits import X, Y
from tests._aggregation.synthetic_fits import SYNTHETIC, of_votes
from tests.private import DOMAIN_DECLARED

PATE = of_votes(mechanism=GumbelMax(c=5.0))


def test_a_pipeline_hands_on_rows_whose_domain_is_declared():
    pipeline = make_pipeline(FunctionTransformer(lambda X: X / 10), clone(PATE))
    pipeline.set_params(pateclassifier__synthetic__domain=(-0.3, 0.5))
    pipeline.fit(X, Y)
    assert pipeline.score(X, Y) > 0.75
    pipeline.set_params(pateclassifier__synthetic__domain=(-3, 5)).fit(X, Y)
    # All rows are in the middle of a domain that is too wide.
    counts = pipeline[-1].marginals_[0].sum(axis=0)
    assert counts[3:5].mean() > 3 * np.abs(counts[[0, 1, 6, 7]]).mean()


@pytest.mark.slow
def test_a_grid_searches_shares_and_numbers_of_teachers(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=1e4, delta=1e-5)
    synthetic = clone(SYNTHETIC).set_params(sigma=None)
    pate = of_votes(epsilon=50.0, mechanism="gnmax", synthetic=synthetic, ledger=ledger)
    pate.set_params(random_state=None)
    grid = {"synthetic__share": [0.1, 0.3], "n_teachers": [5, 10]}
    search = GridSearchCV(pate, grid, cv=2).fit(X, Y)
    assert len(ledger.entries()) == 4 * 2 + 1
    best = search.best_estimator_
    assert best.synthetic.share == search.best_params_["synthetic__share"]
    assert 49.9 < best.privacy_spent_.epsilon <= 50
    assert search.score(X, Y) > 0.75


@pytest.mark.slow
def test_a_grid_of_shares_has_different_noise_on_counts():
    synthetic = clone(SYNTHETIC).set_params(sigma=None)
    pate = of_votes(epsilon=8.0, mechanism="gnmax", synthetic=synthetic)
    few, many = [
        clone(pate).set_params(synthetic__share=share).fit(X, Y).mechanism_.counts.sigma
        for share in (0.1, 0.4)
    ]
    # A variance of 2.25 is spent on whole numbers.
    assert few**2 - 2.25 == pytest.approx(4 * (many**2 - 2.25), rel=1e-4)


def test_folds_need_no_public_rows():
    assert cross_val_score(PATE, X, Y, cv=2).mean() > 0.75


def test_calibration_needs_no_public_rows():
    calibrated = CalibratedClassifierCV(PATE, cv=2).fit(X, Y)
    assert calibrated.predict_proba(X).shape == (len(X), 2)


@pytest.mark.slow
def test_a_private_search_selects_among_fits_after_counts():
    pate = PATEClassifier(
        LogisticRegression(),
        GaussianNB(),
        n_teachers=10,
        n_queries=20,
        mechanism="gnmax",
        synthetic=PrivateMarginals((-3, 5), n_rows=60),
        classes=[0, 1],
    )
    search = PrivateSearchCV(
        pate, {"epsilon": [20.0, 40.0]}, mean_n_trials=2, classes=[0, 1]
    ).fit(X, Y)
    fitted = search.best_estimator_
    assert fitted.privacy_spent_.n_tables == 2
    assert "drawn from noisy counts" in fitted.privacy_spent_.in_one_line()
    assert search.privacy_spent_.epsilon > 20
    assert DOMAIN_DECLARED in search.privacy_spent_.assumptions
    assert fitted.marginals_.keys() == {0, 1}

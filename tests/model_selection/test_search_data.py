"""Private searches on Adult: numbers and frames, learners of two kinds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.model_selection import PrivateSearchCV

pytestmark = pytest.mark.slow

BOUNDS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 10_000),
    "capital-loss": (0, 5000),
    "hours-per-week": (1, 99),
}
LOW, HIGH = (
    np.array(bounds, dtype=float) for bounds in zip(*BOUNDS.values(), strict=True)
)


@pytest.fixture(scope="module")
def numbers(data_set):
    """Private and other rows, with five columns of numbers."""
    adult = data_set("adult")
    X = adult.data[:, [adult.feature_names.index(name) for name in BOUNDS]]
    return X[:12_000], adult.target[:12_000], X[30_000:], adult.target[30_000:]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "distribution",
    ["logarithmic", pytest.param("disjoint", marks=pytest.mark.thorough)],
)
def test_a_search_over_regularisations(numbers, distribution):
    X, y, X_test, y_test = numbers
    learner = DPLogisticRegression(epsilon=1.0, feature_bounds=(LOW, HIGH))
    search = PrivateSearchCV(
        learner,
        {"C": [0.01, 0.1, 1.0]},
        n_trials_distribution=distribution,
        mean_n_trials=5,
    ).fit(X, y)
    total = 2 if distribution == "logarithmic" else 1
    assert tuple(search.privacy_spent_) == (total, 0)
    assert search.best_params_["C"] in (0.01, 0.1, 1.0)
    # 0.76 earn less than 50,000; all three are about equally good.
    assert search.score(X_test, y_test) > 0.74
    assert search.decision_function(X_test).shape == (len(X_test),)


@pytest.mark.thorough
def test_rows_that_may_be_added_and_a_kernel(numbers):
    X, y, X_test, _ = numbers
    pipeline = make_pipeline(
        Normalizer(),
        RBFSampler(n_components=20),
        DPLogisticRegression(method="gaussian", epsilon=1.0, data_norm=np.sqrt(2)),
    )
    search = PrivateSearchCV(
        pipeline, {"rbfsampler__gamma": [0.1, 1.0]}, mean_n_trials=3
    )
    few = X[:3000], y[:3000]
    planned = search.plan_privacy(*few)
    search.fit(*few)
    # Its noise knows nothing of the number of rows, which is secret here.
    assert str(search.privacy_spent_) == str(planned)
    assert planned.relation == "add-remove"
    assert "number of rows" not in str(planned)
    assert 1 < planned.epsilon < 2.2
    assert search.predict(X_test).shape == (len(X_test),)


@pytest.mark.thorough
def test_frames_reach_teachers_with_their_names(data_set):
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    frame, labels = X[[*BOUNDS]].iloc[:4000], y.iloc[:4000]
    pate = PATEClassifier(RandomForestClassifier(5), n_teachers=10, epsilon=2.0)
    search = PrivateSearchCV(pate, {"n_queries": [20, 50]}, mean_n_trials=2)
    search.fit(
        frame.iloc[:3000], labels.iloc[:3000], X_public=PublicData(frame.iloc[3000:])
    )
    assert search.feature_names_in_.tolist() == [*BOUNDS]
    assert search.best_estimator_.feature_names_in_.tolist() == [*BOUNDS]
    assert isinstance(search.best_estimator_.predict(frame), np.ndarray)
    np.testing.assert_array_equal(
        search.predict(frame), search.best_estimator_.predict(pd.DataFrame(frame))
    )

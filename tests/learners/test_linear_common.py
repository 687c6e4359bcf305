"""scikit-learn's own checks, all of them: there is no list of expected failures.

Several checks fit twice and compare, so each fit has equal noise here.
"""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate.learners import DPLinearSVC, DPLogisticRegression
from sklearn_pate.testing import seeded_noise

CONFIGURATIONS = {
    "logistic, objective": DPLogisticRegression(),
    "logistic, output": DPLogisticRegression(method="output"),
    "logistic, gaussian": DPLogisticRegression(method="gaussian"),
    "logistic, little noise": DPLogisticRegression(epsilon=1e6, C=1.0),
    "logistic, bounded": DPLogisticRegression(
        feature_bounds=(-10, 10), fit_intercept=False
    ),
    "machine, objective": DPLinearSVC(data_norm=10),
    "machine, gaussian": DPLinearSVC(method="gaussian"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "routing"),
    [*((name, False) for name in CONFIGURATIONS), ("logistic, objective", True)],
)
def test_check_estimator_has_no_failures(name, routing, monkeypatch):
    kind = type(CONFIGURATIONS[name])
    monkeypatch.setattr(kind, "fit", seeded_noise(0)(kind.fit))
    with config_context(enable_metadata_routing=routing):
        results = check_estimator(CONFIGURATIONS[name], on_fail=None, on_skip=None)
    failed = {
        result["check_name"]: result["exception"]
        for result in results
        if result["status"] not in ("passed", "skipped")
    }
    assert failed == {}
    assert len(results) > 45


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learner", [DPLogisticRegression, DPLinearSVC])
def test_fits_differ_as_their_tag_says(blobs, learner):
    X, y, _, _ = blobs
    learner = learner(data_norm=10)
    one, other = (learner.fit(X, y).coef_ for _ in range(2))
    assert get_tags(learner).non_deterministic
    assert not np.array_equal(one, other)

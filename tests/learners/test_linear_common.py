"""scikit-learn's own checks, all of them: there is no list of expected failures.

Several checks fit twice and compare, so the noise is seeded.
"""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate.learners import DPLinearSVC, DPLogisticRegression

CONFIGURATIONS = {
    "logistic, objective": DPLogisticRegression(noise_seed=0),
    "logistic, output": DPLogisticRegression(method="output", noise_seed=0),
    "logistic, gaussian": DPLogisticRegression(method="gaussian", noise_seed=0),
    "logistic, little noise": DPLogisticRegression(epsilon=1e6, C=1.0, noise_seed=0),
    "logistic, bounded": DPLogisticRegression(
        feature_bounds=(-10, 10), fit_intercept=False, noise_seed=0
    ),
    "machine, objective": DPLinearSVC(noise_seed=0, data_norm=10),
    "machine, gaussian": DPLinearSVC(method="gaussian", noise_seed=0),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "routing"),
    [*((name, False) for name in CONFIGURATIONS), ("logistic, objective", True)],
)
def test_check_estimator_has_no_failures(name, routing):
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
@pytest.mark.parametrize("noise_seed", [None, 0])
@pytest.mark.parametrize("learner", [DPLogisticRegression, DPLinearSVC])
def test_the_tag_non_deterministic_depends_on_the_noise(blobs, learner, noise_seed):
    X, y, _, _ = blobs
    learner = learner(data_norm=10, noise_seed=noise_seed)
    one, other = (learner.fit(X, y).coef_ for _ in range(2))
    assert get_tags(learner).non_deterministic is not np.array_equal(one, other)

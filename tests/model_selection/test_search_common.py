"""scikit-learn's own checks, all of them: there is no list of expected failures.

Several checks fit twice and compare, so each fit has equal noise here.
"""

import pytest
from sklearn import config_context
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.testing import seeded_noise
from tests.cases import thorough_but
from tests.model_selection.learners import NoisyMeans

LEARNER = NoisyMeans(epsilon=5.0)
RADII = {"radius": [5, 10]}
FEW = {"mean_n_trials": 2}
CONFIGURATIONS = {
    "logarithmic": PrivateSearchCV(LEARNER, RADII, **FEW),
    "geometric": PrivateSearchCV(
        LEARNER, RADII, n_trials_distribution="geometric", **FEW
    ),
    "poisson": PrivateSearchCV(LEARNER, RADII, n_trials_distribution="poisson", **FEW),
    "disjoint": PrivateSearchCV(LEARNER, RADII, n_trials_distribution="disjoint"),
    "pipeline": PrivateSearchCV(
        make_pipeline(PolynomialCountSketch(n_components=10), LEARNER),
        {"noisymeans__radius": [5, 10]},
        **FEW,
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("name", thorough_but(["disjoint"], CONFIGURATIONS))
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


def test_no_two_fits_need_be_equal():
    assert get_tags(PrivateSearchCV(LEARNER, RADII)).non_deterministic

"""scikit-learn's own checks, all of them: there is no list of expected failures.

Several checks fit twice and compare, so the noise is seeded.
"""

import pytest
from sklearn import config_context
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate.model_selection import PrivateSearchCV
from tests.model_selection.learners import NoisyMeans

LEARNER = NoisyMeans(epsilon=5.0, noise_seed=0)
RADII = {"radius": [5, 10]}
SEEDED = {"noise_seed": 0, "mean_n_trials": 2}
CONFIGURATIONS = {
    "logarithmic": PrivateSearchCV(LEARNER, RADII, **SEEDED),
    "geometric": PrivateSearchCV(
        LEARNER, RADII, n_trials_distribution="geometric", **SEEDED
    ),
    "poisson": PrivateSearchCV(
        LEARNER, RADII, n_trials_distribution="poisson", **SEEDED
    ),
    "disjoint": PrivateSearchCV(
        LEARNER, RADII, n_trials_distribution="disjoint", noise_seed=0
    ),
    "pipeline": PrivateSearchCV(
        make_pipeline(PolynomialCountSketch(n_components=10), LEARNER),
        {"noisymeans__radius": [5, 10]},
        **SEEDED,
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "routing"),
    [*((name, False) for name in CONFIGURATIONS), ("logarithmic", True)],
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


@pytest.mark.parametrize("seeds", [(None, 0), (0, None), (0, 0)])
def test_the_tag_non_deterministic_depends_on_the_noise(seeds):
    search = PrivateSearchCV(
        NoisyMeans(noise_seed=seeds[0]), RADII, noise_seed=seeds[1]
    )
    assert get_tags(search).non_deterministic == (None in seeds)

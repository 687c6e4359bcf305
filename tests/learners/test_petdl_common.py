"""scikit-learn's own checks, all of them: there is no list of expected failures.

Several checks fit twice and compare, so each fit has equal noise here.
"""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

from sklearn_pate import PublicData
from sklearn_pate.learners import Clusters, Hint, PETDLClassifier, RandomBatches
from sklearn_pate.students import DistillationClassifier, FixMatchClassifier
from sklearn_pate.testing import seeded_noise
from tests.cases import thorough_but

pytestmark = pytest.mark.slow

SMALL = {"public_size": 0.4, "batches": Clusters(1), "n_teachers": 3}
QUIET = {"epsilon": None, "noise_scale": 0.01}


def perceptron(input_shape, n_classes):
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(int(np.prod(input_shape)), 16),
        nn.ReLU(),
        nn.Linear(16, n_classes),
    )


CONFIGURATIONS = {
    "random batches": PETDLClassifier(
        LogisticRegression(),
        LogisticRegression(),
        **SMALL | {"batches": RandomBatches(1)},
        **QUIET,
    ),
    "clusters, soft labels": PETDLClassifier(
        GaussianNB(), DistillationClassifier(LogisticRegression()), **SMALL, **QUIET
    ),
    "clusters, calibrated": PETDLClassifier(GaussianNB(), GaussianNB(), **SMALL),
    "network, with a hint": PETDLClassifier(
        LogisticRegression(),
        FixMatchClassifier(perceptron, max_epochs=1, lr=0.1),
        hint=Hint(1),
        **SMALL,
        **QUIET,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("routing", thorough_but([True], [False, True]))
@pytest.mark.parametrize("name", thorough_but(["random batches"], CONFIGURATIONS))
def test_check_estimator_has_no_failures(name, routing, monkeypatch):
    fit = seeded_noise(0)(PETDLClassifier.fit)
    monkeypatch.setattr(PETDLClassifier, "fit", fit)
    with config_context(enable_metadata_routing=routing):
        results = check_estimator(
            CONFIGURATIONS[name],
            on_fail=None,
            on_skip=None,
            # It asks for seven digits; networks have six.
            expected_failed_checks={"check_methods_subset_invariance": "float32"},
        )
    failed = {
        result["check_name"]: result["exception"]
        for result in results
        if result["status"] not in ("passed", "skipped", "xfail")
    }
    assert failed == {}
    assert len(results) > 45


@pytest.mark.filterwarnings("ignore")
def test_fits_differ_as_their_tag_says(blobs):
    X, y, X_public, _ = blobs
    petdl = PETDLClassifier(
        GaussianNB(),
        GaussianNB(),
        batches=Clusters(20),
        random_state=0,
    )

    def released():
        return petdl.fit(X, y, X_public=PublicData(X_public)).released_.tolist()

    assert get_tags(petdl).non_deterministic
    assert released() != released()


@pytest.mark.thorough
@pytest.mark.parametrize(("epsilon", "poor"), [(None, False), (1.0, True)])
def test_the_tag_depends_on_the_noise_on_small_data(blobs, epsilon, poor):
    X, y, X_public, y_public = blobs
    petdl = PETDLClassifier(
        GaussianNB(),
        GaussianNB(),
        batches=Clusters(20),
        epsilon=epsilon,
        noise_scale=0.3 if epsilon is None else None,
        random_state=0,
    )
    assert get_tags(petdl).classifier_tags.poor_score is poor
    # One draw of the noise may be lucky.
    scores = [
        petdl.fit(X[:100], y[:100], X_public=PublicData(X_public)).score(
            X_public, y_public
        )
        for _ in range(20)
    ]
    assert bool(np.mean(scores) < 0.83) is poor

"""scikit-learn's own checks, all of them: there is no list of expected failures.

Several checks fit twice and compare, so each fit has equal noise and samples here, or
there is neither.
"""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate import PublicData
from sklearn_pate.learners import PrivateKNNClassifier
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax
from sklearn_pate.students import GraphSelfTrainingClassifier
from sklearn_pate.testing import seeded_noise
from tests.cases import thorough_but

pytestmark = pytest.mark.slow

QUIET = {
    "mechanism": GNMax(sigma=0.1),
    "epsilon": None,
    "n_neighbors": 3,
    "public_size": 0.4,
}

CONFIGURATIONS = {
    "forest": PrivateKNNClassifier(
        GraphSelfTrainingClassifier(RandomForestClassifier(5)),
        **QUIET,
        sampling_rate=1.0,
    ),
    "logistic regression": PrivateKNNClassifier(
        LogisticRegression(), **QUIET, sampling_rate=0.7
    ),
    "calibrated": PrivateKNNClassifier(
        LogisticRegression(),
        mechanism="gnmax",
        sampling_rate=1.0,
        public_size=0.4,
    ),
    "noise of the operating system": PrivateKNNClassifier(
        LogisticRegression(),
        **(QUIET | {"mechanism": GNMax(sigma=1e-3), "n_neighbors": 1}),
        sampling_rate=1.0,
    ),
    "confident, cosine, scaled": PrivateKNNClassifier(
        LogisticRegression(),
        **(QUIET | {"mechanism": ConfidentGNMax(0.5, 0.1, 0.1)}),
        metric="cosine",
        representation=StandardScaler(),
        sampling_rate=1.0,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("routing", thorough_but([True], [False, True]))
@pytest.mark.parametrize("name", thorough_but(["forest"], CONFIGURATIONS))
def test_check_estimator_has_no_failures(name, routing, monkeypatch):
    if "operating system" not in name:
        fit = seeded_noise(0)(PrivateKNNClassifier.fit)
        monkeypatch.setattr(PrivateKNNClassifier, "fit", fit)
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
def test_fits_differ_as_their_tag_says(blobs):
    X, y, X_public, _ = blobs
    knn = PrivateKNNClassifier(
        LogisticRegression(),
        mechanism=GNMax(sigma=100),
        epsilon=None,
        random_state=0,
    )

    def answers():
        return knn.fit(X, y, X_public=PublicData(X_public)).answers_.tolist()

    assert get_tags(knn).non_deterministic
    assert answers() != answers()


@pytest.mark.thorough
@pytest.mark.parametrize(("epsilon", "poor"), [(None, False), (1.0, True)])
def test_the_tag_poor_score_depends_on_the_noise(blobs, epsilon, poor):
    X, y, X_public, y_public = blobs
    knn = PrivateKNNClassifier(
        LogisticRegression(),
        mechanism=GNMax(sigma=0.5 if epsilon is None else None),
        epsilon=epsilon,
        sampling_rate=1.0,
        random_state=0,
    )
    assert get_tags(knn).classifier_tags.poor_score is poor
    # One draw of the noise may be lucky.
    scores = [
        knn.fit(X[:100], y[:100], X_public=PublicData(X_public)).score(
            X_public, y_public
        )
        for _ in range(20)
    ]
    assert bool(np.mean(scores) < 0.83) is poor


def test_tags_are_those_of_the_first_reader_of_the_rows():
    tags = get_tags(PrivateKNNClassifier(LogisticRegression())).input_tags
    assert not tags.sparse
    assert not tags.allow_nan
    scaled = PrivateKNNClassifier(
        LogisticRegression(), representation=StandardScaler(with_mean=False)
    )
    assert get_tags(scaled).input_tags.sparse

"""Features from public rows alone."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import ContrastiveEncoder


def encoder(**parameters):
    return ContrastiveEncoder(
        **{"image_shape": (8, 8), "max_epochs": 2, "random_state": 0} | parameters
    )


@pytest.mark.filterwarnings("ignore")
def test_check_estimator_has_no_failures():
    results = check_estimator(
        ContrastiveEncoder(max_epochs=1, random_state=0), on_fail=None, on_skip=None
    )
    failed = {
        result["check_name"]: result["exception"]
        for result in results
        if result["status"] not in ("passed", "skipped")
    }
    assert failed == {}


def test_the_features_of_a_row_depend_on_that_row_alone(digits):
    X = digits[0][:300]
    fitted = encoder().fit(X)
    together = fitted.transform(X[:20])
    alone = np.concatenate([fitted.transform(row[np.newaxis]) for row in X[:20]])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_a_seed_makes_it_repeatable_and_leaves_torchs_generator_alone(digits):
    X = digits[0][:300]
    state = torch.random.get_rng_state()
    first = encoder().fit_transform(X)
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(first, encoder().fit_transform(X))
    assert not np.array_equal(first, encoder(random_state=1).fit_transform(X))


def test_it_comes_back_from_a_pickle(digits):
    X = digits[0][:300]
    fitted = encoder().fit(X)
    revived = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(fitted.transform(X), revived.transform(X))


def test_images_may_come_in_their_own_shape(digits):
    X = digits[0][:300]
    flat = encoder().fit_transform(X)
    shaped = encoder(image_shape=None).fit_transform(X.reshape(-1, 8, 8))
    np.testing.assert_array_equal(flat, shaped)


def test_a_module_of_the_users_own_is_copied(digits):
    own = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 7))
    before = own[1].weight.clone()
    features = encoder(module=own).fit_transform(digits[0][:300])
    assert features.shape == (300, 7)
    assert torch.equal(own[1].weight, before)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_epochs": 0}, "max_epochs=0 must be"),
        ({"batch_size": 1.5}, "batch_size=1.5 must be"),
        ({"lr": -1}, "lr=-1 must be"),
        ({"temperature": 0}, "temperature=0 must be"),
        ({"device": "abacus"}, "device='abacus' is unknown to torch"),
        ({"image_shape": (7, 8)}, r"image_shape=\(7, 8\) must be"),
    ],
)
def test_a_wrong_parameter_is_refused(parameters, message, digits):
    with pytest.raises(ValueError, match=message):
        clone(encoder()).set_params(**parameters).fit(digits[0][:50])


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # some classes have a single row in a shard
def test_teachers_of_few_rows_learn_more_from_it_than_from_pixels(digits):
    X, y = digits

    def agreement(representation):
        pate = PATEClassifier(
            LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3),
            n_teachers=30,
            representation=representation,
            mechanism=GNMax(sigma=1),
            epsilon=None,
            query_strategy="random",
            n_queries=897,
            random_state=0,
        ).fit(X[:900], y[:900], X_public=PublicData(X[900:]))
        counts = pate.privacy_analysis_.counts
        truth = y[900:][pate.queried_indices_]
        return counts[np.arange(897), truth].mean() / 30

    assert agreement(encoder(max_epochs=30)) > agreement(None) + 0.05

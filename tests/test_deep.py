"""skorch networks as teachers and students: no seed, no float64, no string labels."""

import numpy as np
import pytest
import torch
from skorch import NeuralNetClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax

pytestmark = pytest.mark.slow


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, 32),
            torch.nn.ReLU(),
            torch.nn.Linear(32, 10),
            torch.nn.Softmax(dim=-1),
        )

    def forward(self, X):
        return self.layers(X)


@pytest.fixture(scope="module")
def fit(digits):
    X, y = digits
    X = (X / 16).astype(np.float32)
    names = np.array(list("abcdefghij"))[y]

    def fit(n_jobs=None):
        net = NeuralNetClassifier(
            Net, max_epochs=40, lr=0.5, batch_size=32, train_split=None, verbose=0
        )
        pate = PATEClassifier(
            net,
            n_teachers=6,
            mechanism=GNMax(sigma=0.01),
            noise_seed=0,  # ties fall the same way
            epsilon=None,
            n_jobs=n_jobs,
            random_state=0,
        )
        return pate.fit(X[:900], names[:900], X_public=PublicData(X[900:1400]))

    return fit, X[1400:], names[1400:]


@pytest.mark.filterwarnings("ignore:noise_seed")
def test_networks_teach_a_network(fit):
    fit, X, names = fit
    pate = fit()
    assert pate.score(X, names) > 0.8
    assert pate.predict_proba(X).shape == (len(X), 10)
    assert pate.privacy_analysis_.teacher_failures == []


@pytest.mark.filterwarnings("ignore:noise_seed")
def test_votes_of_networks_are_seeded_without_touching_torchs_generator(fit):
    fit, X, _ = fit
    state = torch.random.get_rng_state()
    one, other = fit(), fit(n_jobs=2)
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(
        one.privacy_analysis_.plurality, other.privacy_analysis_.plurality
    )
    np.testing.assert_array_equal(one.predict_proba(X), fit().predict_proba(X))

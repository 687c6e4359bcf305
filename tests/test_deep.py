"""skorch networks as teachers and students: no seed, no float64, no string labels."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.learners import DPSGDClassifier
from sklearn_pate.mechanisms import GNMax, NoisyHistogram
from tests.seeding import equal_noise

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

    @equal_noise()  # ties fall the same way
    def fit(n_jobs=None, max_epochs=40):
        net = NeuralNetClassifier(
            Net,
            max_epochs=max_epochs,
            lr=0.5,
            batch_size=32,
            train_split=None,
            verbose=0,
        )
        pate = PATEClassifier(
            net,
            n_teachers=6,
            mechanism=GNMax(sigma=0.01),
            epsilon=None,
            n_jobs=n_jobs,
            random_state=0,
        )
        return pate.fit(X[:900], names[:900], X_public=PublicData(X[900:1400]))

    return fit, X[1400:], names[1400:]


@pytest.mark.thorough
def test_networks_teach_a_network(fit):
    fit, X, names = fit
    pate = fit()
    assert pate.score(X, names) > 0.8
    assert pate.predict_proba(X).shape == (len(X), 10)
    assert pate.privacy_analysis_.teacher_failures == []


@pytest.mark.thorough
def test_votes_of_networks_are_seeded_without_touching_torchs_generator(fit):
    fit, X, _ = fit
    state = torch.random.get_rng_state()
    one, other = fit(max_epochs=3), fit(max_epochs=3, n_jobs=2)
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(
        one.privacy_analysis_.plurality, other.privacy_analysis_.plurality
    )
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


class OneOutput(torch.nn.Module):
    def __init__(self, has_column=False):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.has_column = has_column

    def forward(self, X):
        scores = self.layer(X)
        return scores if self.has_column else scores.squeeze(-1)


def binary_network(has_column):
    return NeuralNetBinaryClassifier(
        OneOutput,
        module__has_column=has_column,
        criterion=torch.nn.BCEWithLogitsLoss,
        max_epochs=10,
        lr=0.5,
        train_split=None,
        verbose=0,
    )


@pytest.mark.parametrize("has_column", [False, True])
@pytest.mark.parametrize("kind", [GNMax, NoisyHistogram])
@pytest.mark.parametrize("role", ["teacher", "student"])
def test_a_network_of_one_output_learns_two_classes(role, kind, has_column):
    X, y = make_blobs(1200, centers=[[-3, 0], [3, 0]], random_state=0)
    X, names = X.astype(np.float32), np.array(["ill", "well"])[y]
    network, other = binary_network(has_column), LogisticRegression()
    pate = PATEClassifier(
        *([network, other] if role == "teacher" else [other, network]),
        n_teachers=5,
        n_queries=60,
        mechanism=kind(sigma=0.5),
        epsilon=None,
        random_state=0,
    ).fit(X[:900], names[:900], X_public=PublicData(X[900:1100]))
    assert pate.score(X[1100:], names[1100:]) > 0.95
    assert set(pate.predict(X)) == {"ill", "well"}
    np.testing.assert_allclose(pate.predict_proba(X).sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("role", ["estimator", "student"])
def test_a_network_of_one_output_is_refused_for_three_classes(role):
    X, y = make_blobs(900, centers=3, random_state=0)
    X = X.astype(np.float32)
    roles = dict.fromkeys(("estimator", "student"), LogisticRegression())
    roles[role] = binary_network(False)
    pate = PATEClassifier(n_teachers=5, mechanism=GNMax(1.0), epsilon=None, **roles)
    named = rf"^{role}=NeuralNetBinaryClassifier\(\.\.\.\) predicts two classes"
    with pytest.raises(ValueError, match=named) as told:
        pate.fit(X[:600], y[:600], X_public=PublicData(X[600:]))
    assert "there are 3; use a NeuralNetClassifier" in str(told.value)


class Layers(torch.nn.Module):
    def __init__(self, last, n_outputs=2):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, n_outputs), last)

    def forward(self, X):
        return self.layers(X)


def of_two(last, **parameters):
    return NeuralNetClassifier(
        Layers,
        module__last=last,
        max_epochs=5,
        train_split=None,
        callbacks=None,
        verbose=0,
        **parameters,
    )


CROSS_ENTROPY = {"criterion": torch.nn.CrossEntropyLoss}
WRONG_OUTPUTS = {
    "logits": of_two(torch.nn.Identity()),
    "sigmoid": of_two(torch.nn.Sigmoid()),
    "log-probabilities": of_two(torch.nn.LogSoftmax(dim=1)),
    "two softmax": of_two(torch.nn.Softmax(dim=1), **CROSS_ENTROPY),
    "no nonlinearity": of_two(
        torch.nn.Identity(), predict_nonlinearity=None, **CROSS_ENTROPY
    ),
    "in a pipeline": make_pipeline(StandardScaler(), of_two(torch.nn.Identity())),
    "two sigmoids": NeuralNetBinaryClassifier(
        Layers,
        module__last=torch.nn.Sigmoid(),
        module__n_outputs=1,
        train_split=None,
        verbose=0,
    ),
}
RIGHT_OUTPUTS = {
    "softmax": of_two(torch.nn.Softmax(dim=1)),
    "logits": of_two(torch.nn.Identity(), **CROSS_ENTROPY),
    "log-probabilities": of_two(torch.nn.LogSoftmax(dim=1), **CROSS_ENTROPY),
}
OUTPUTS = "returned (probabilities|.* no class probabilities)"


def plan_with(**learners):
    X, y = make_blobs(600, centers=2, random_state=0)
    X = X.astype(np.float32)
    pate = PATEClassifier(**({"estimator": LogisticRegression()} | learners))
    pate.set_params(n_teachers=10, n_queries=50, mechanism="gnmax")
    pate.plan_privacy(X[:400], y[:400], X_public=PublicData(X[400:]))


@pytest.mark.parametrize("role", ["estimator", "student"])
@pytest.mark.parametrize("case", WRONG_OUTPUTS)
def test_outputs_that_do_not_suit_the_loss_are_refused_before_any_cost(role, case):
    with pytest.raises(ValueError, match=rf"^{role}=.*{OUTPUTS}"):
        plan_with(**{"student": LogisticRegression(), role: WRONG_OUTPUTS[case]})


@pytest.mark.parametrize("case", RIGHT_OUTPUTS)
def test_outputs_that_suit_the_loss_are_not_refused(case):
    plan_with(estimator=RIGHT_OUTPUTS[case], student=RIGHT_OUTPUTS[case])
    DPSGDClassifier(RIGHT_OUTPUTS[case]).plan_privacy(np.zeros((60, 2)), [0, 1] * 30)


@pytest.mark.parametrize(
    "case", ["logits", "log-probabilities", "two softmax", "no nonlinearity"]
)
def test_they_are_refused_for_noisy_gradients_too(case):
    with pytest.raises(ValueError, match=OUTPUTS):
        DPSGDClassifier(WRONG_OUTPUTS[case]).plan_privacy(
            np.zeros((60, 2)), [0, 1] * 30
        )

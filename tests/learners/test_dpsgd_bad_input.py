"""Wrong calls: one clear sentence each, before any noise is drawn or charged."""

# ruff: noqa: E501 - two tables, one wrong call a line

import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, EpochScoring
from torch import nn

from sklearn_pate import PrivacyLeakWarning, PrivacyLedger
from sklearn_pate.learners import DPSGDClassifier
from tests.private import NoiseSource

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.arange(60) % 2


@pytest.fixture(autouse=True)
def no_noise(monkeypatch):
    def draw(self, shape):
        pytest.fail("noise was drawn before the input was checked")

    monkeypatch.setattr(NoiseSource, "words", draw)


class Centered(nn.Module):
    """Subtracts the mean of its batch, which no validator of layers can see."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, X):
        return self.linear(X - X.mean(dim=0))


class Counting(nn.Module):
    """Module that adds up its rows in a buffer."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.statistics = nn.Module()
        self.statistics.register_buffer("seen", torch.zeros(4))

    def forward(self, X):
        self.statistics.seen += X.detach().sum(dim=0)
        return self.linear(X)


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.idle = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, X):
        return self.linear(X)


class MeanOnly(nn.Module):
    """A criterion that does not know of losses of single rows."""

    reduction = "mean"

    def forward(self, logits, y):
        return nn.functional.cross_entropy(logits, y)


def network(module=None, **parameters):
    defaults = {"criterion": nn.CrossEntropyLoss, "batch_size": 20, "max_epochs": 2}
    module = nn.Linear(4, 2) if module is None else module
    return NeuralNetClassifier(module, **(defaults | parameters))


def normalized(layer):
    return network(nn.Sequential(nn.Linear(4, 3), layer, nn.Linear(3, 2)))


FROZEN = nn.BatchNorm1d(3).requires_grad_(False)
MIXES = r"mixes the rows of a batch, or keeps statistics of them, .*GroupNorm"

# Parameters and message.
WRONG_PARAMETERS = {
    "no network": ({"estimator": LogisticRegression()}, r"estimator=LogisticRegression\(\) is not a skorch.NeuralNetClassifier"),
    "a class": ({"estimator": NeuralNetClassifier}, r"is not a skorch.NeuralNetClassifier"),
    "a regressor": ({"estimator": NeuralNetRegressor(nn.Linear(4, 2))}, r"is not a skorch.NeuralNetClassifier"),
    "full batches": ({"estimator": network(batch_size=-1)}, r"estimator.batch_size=-1 must be a whole number of at least 1"),
    "no epoch": ({"estimator": network(max_epochs=0)}, r"estimator.max_epochs=0 must be a whole number of at least 1"),
    "early stopping": ({"estimator": network(callbacks=[EarlyStopping()])}, r"estimator.callbacks=.*EarlyStopping.* would read private rows"),
    "a callback on its own": ({"estimator": network(callbacks=EarlyStopping())}, r"estimator.callbacks=.*EarlyStopping.* would read private rows"),
    "named callbacks": ({"estimator": network(callbacks=[("score", EpochScoring("accuracy"))])}, r"set callbacks=None"),
    "BatchNorm": ({"estimator": normalized(nn.BatchNorm1d(3))}, r"cannot be trained .*BatchNorm cannot support training with differential privacy"),
    "frozen BatchNorm": ({"estimator": normalized(FROZEN)}, MIXES),
    "BatchNorm without weights": ({"estimator": normalized(nn.BatchNorm1d(3, affine=False))}, MIXES),
    "a module that centers": ({"estimator": network(Centered)}, MIXES),
    "a module that counts": ({"estimator": network(Counting)}, MIXES),
    "softmax over rows": ({"estimator": network(nn.Sequential(nn.Linear(4, 2), nn.Softmax(dim=0)))}, MIXES),
    "a layer that Opacus cannot take": ({"estimator": network(nn.Sequential(nn.Unflatten(1, (1, 4)), nn.LSTM(4, 2)))}, r"cannot be trained"),
    "a layer that is not used": ({"estimator": network(Unused)}, r"estimator cannot be trained on rows of shape \(4,\) with 2 classes: "),
    "another number of features": ({"estimator": network(nn.Linear(5, 2))}, r"cannot be trained on rows of shape \(4,\) with 2 classes: .*shapes"),
    "too few outputs": ({"estimator": network(nn.Linear(4, 1))}, r"estimator cannot be trained on rows of shape \(4,\) with 2 classes: "),
    "too many outputs": ({"estimator": network(nn.Linear(4, 3))}, r"with 2 classes: its module gives outputs of shape \(3,\) for a row"),
    "a loss that is a mean": ({"estimator": network(criterion=MeanOnly)}, r"gives \(\) losses for 3 rows; use a criterion that gives one loss per row"),
    "an optimizer with a closure": ({"estimator": network(optimizer=torch.optim.LBFGS)}, r"cannot be trained .* 'closure'"),
    "nothing to train": ({"estimator": network(nn.Linear(4, 2).requires_grad_(False))}, r"no weights to train"),
    "epsilon and noise": ({"epsilon": 1.0, "noise_multiplier": 2.0}, r"epsilon=1.0 and noise_multiplier=2.0 both set the noise"),
    "neither": ({"epsilon": None}, r"not set, as epsilon=None and noise_multiplier=None"),
    "epsilon is 0": ({"epsilon": 0}, r"epsilon=0 must be a positive, finite number"),
    "epsilon out of reach": ({"epsilon": 1e-13, "delta": 1e-9}, r"epsilon=1e-13 cannot be reached with delta=1e-09 in 6 steps"),
    "noise is 0": ({"epsilon": None, "noise_multiplier": 0.0}, r"noise_multiplier=0.0 must be a positive, finite number"),
    "delta": ({"delta": 1}, r"delta=1 must be a number strictly between 0 and 0.1"),
    "a bound whose square is zero": ({"max_grad_norm": 1e-300}, r"max_grad_norm=1e-300 is too small.*use at least 1e-30"),
    "the bound": ({"max_grad_norm": float("inf")}, r"max_grad_norm=inf must be a positive, finite number"),
    "the accountant": ({"accountant": "gdp"}, r"accountant='gdp' is unknown; use one of \['pld', 'rdp'\]"),
    "random_state": ({"random_state": "secret"}, r"'secret' cannot be used to seed"),
    "ledger": ({"ledger": "patients.sqlite"}, r"ledger='patients.sqlite' is not a PrivacyLedger; pass PrivacyLedger"),
    "classes": ({"classes": [1]}, r"classes=\[1\] must list at least two distinct labels"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_PARAMETERS)
def test_wrong_parameters_are_refused(case, tmp_path):
    parameters, message = WRONG_PARAMETERS[case]
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)
    clf = DPSGDClassifier(**({"estimator": network(), "ledger": ledger} | parameters))
    with pytest.raises(ValueError, match=message):
        clf.fit(X, Y)
    assert ledger.entries() == []


@pytest.mark.parametrize("case", WRONG_PARAMETERS)
def test_wrong_parameters_are_refused_by_a_plan_too(case):
    parameters, message = WRONG_PARAMETERS[case]
    clf = DPSGDClassifier(**({"estimator": network()} | parameters))
    with pytest.raises(ValueError, match=message):
        clf.plan_privacy(X, Y)


WRONG_DATA = {
    "no labels": (X, None, r"requires y to be passed"),
    "one class": (X, np.zeros(60), r"y holds one class only"),
    "too few labels": (X, Y[1:], r"inconsistent numbers of samples"),
    "text": (np.array([["red"] * 4] * 60), Y, r"could not convert"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_DATA)
def test_wrong_data_are_refused(case):
    rows, labels, message = WRONG_DATA[case]
    with pytest.raises(ValueError, match=message):
        DPSGDClassifier(network()).fit(rows, labels)


def test_a_large_delta_warns():
    with pytest.warns(PrivacyLeakWarning, match="delta=0.09 is not below 1 / n_rows"):
        DPSGDClassifier(network(), delta=0.09).plan_privacy(X, Y)


def test_a_missing_dependency_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(
        ImportError, match="needs skorch and Opacus; pip install skorch"
    ):
        DPSGDClassifier(network()).fit(X, Y)


@pytest.mark.thorough
def test_nothing_heavy_is_imported_before_it_is_needed():
    script = (
        "import sys; from sklearn_pate.learners import DPSGDClassifier as C; "
        "C(None, epsilon=2.0).get_params(); "
        "print({'torch', 'skorch', 'opacus'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"

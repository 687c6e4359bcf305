"""DP-SGD: what a fit states, and what is saved."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate import BudgetExceededError, PrivacyLedger, PrivacyUtilityWarning
from sklearn_pate.learners import DPSGDClassifier
from tests.learners.networks import (
    N_CLASSES,
    N_FEATURES,
    Perceptron,
    make,
    network,
    weights,
)
from tests.private import (
    FLOATING_POINT,
    LABEL_SET_READ,
    N_ROWS,
    ROW_BY_ROW,
    NoiseSource,
)
from tests.seeding import equal_noise

PLANTED = 98765.4321


# Accuracy


@pytest.mark.thorough
@pytest.mark.parametrize("probabilities", [False, True])
def test_digits_are_learnt_through_little_noise(rows, probabilities):
    X, y = rows
    criterion = nn.NLLLoss if probabilities else nn.CrossEntropyLoss
    net = network(
        module__probabilities=probabilities, criterion=criterion, max_epochs=8
    )
    clf = make(net, noise_multiplier=0.3).fit(X[:1400], y[:1400])
    assert clf.score(X[1400:], y[1400:]) > 0.8
    probabilities = clf.predict_proba(X[1400:])
    assert probabilities.shape == (len(X) - 1400, N_CLASSES)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(("noise_multiplier", "useless"), [(0.3, False), (30.0, True)])
def test_noise_that_hides_all_gradients_is_warned_of(rows, noise_multiplier, useless):
    clf = make(network(max_epochs=20), noise_multiplier=noise_multiplier)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyUtilityWarning)
        clf.plan_privacy(*rows)
    texts = [str(one.message) for one in caught]
    assert any("hides the coefficients" in text for text in texts) == useless


@pytest.mark.thorough
def test_images_frames_and_names_go_in_as_they_are(rows):
    X, y = rows
    conv = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, N_CLASSES))
    names = np.array(list("abcdefghij"))[y]
    clf = make(network(conv), noise_multiplier=0.1).fit(X.reshape(-1, 1, 8, 8), names)
    assert set(clf.predict(X[:50].reshape(-1, 1, 8, 8))) <= set(names)
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(N_FEATURES)])
    clf = make().fit(frame, names)
    assert clf.feature_names_in_[3] == "pixel 3"
    assert clf.predict(frame).shape == names.shape


@pytest.mark.slow
def test_the_optimizer_and_its_parameters_are_those_of_the_network(rows):
    X, y = rows
    net = network(optimizer=torch.optim.Adam, optimizer__betas=(0.8, 0.9), lr=0.003)
    clf = make(net).fit(X, y)
    (group,) = clf.network_.optimizer_.param_groups
    assert group["lr"] == 0.003
    assert group["betas"] == (0.8, 0.9)


def test_without_a_bound_or_noise_a_full_batch_is_gradient_descent(rows):
    X, y = rows
    flat = nn.Linear(N_FEATURES, N_CLASSES)
    for p in flat.parameters():
        nn.init.zeros_(p)
    clf = make(
        network(flat, batch_size=5000),
        noise_multiplier=1e-15,
        max_grad_norm=1e6,
    ).fit(X, y)
    loss = nn.functional.cross_entropy(flat(torch.tensor(X)), torch.tensor(y))
    gradients = torch.autograd.grad(loss, list(flat.parameters()))
    expected = torch.cat([-0.5 * gradient.flatten() for gradient in gradients])
    torch.testing.assert_close(weights(clf), expected.double(), rtol=1e-4, atol=1e-6)


# The statement


@pytest.mark.slow
def test_the_statement_names_every_number_and_assumption(rows):
    X, y = rows
    clf = make(epsilon=2.0, noise_multiplier=None, delta=1e-6).fit(X, y)
    spent = clf.privacy_spent_
    assert spent.epsilon <= 2.0 < 1.001 * spent.epsilon
    assert spent.epsilon < spent.curve.to_epsilon(1e-6)
    assert (spent.delta, spent.unit, spent.relation) == (1e-6, "row", "add-remove")
    assert "Add or remove one row" in str(spent)
    assert f"noise_multiplier={clf.noise_multiplier_}" in spent.mechanism
    assert f"sampling_rate={100 / 1797}, n_steps=18" in spent.mechanism
    assert {N_ROWS, ROW_BY_ROW, FLOATING_POINT, LABEL_SET_READ} < {*spent.assumptions}


@pytest.mark.slow
def test_the_moments_accountant_states_its_curve(rows):
    spent = make(accountant="rdp").fit(*rows).privacy_spent_
    assert spent.epsilon == spent.curve.to_epsilon(1e-5)


@pytest.mark.slow
def test_the_plan_is_the_statement_of_the_fit(rows):
    clf = make(epsilon=1.0, noise_multiplier=None)
    planned = clf.plan_privacy(*rows)
    assert not hasattr(clf, "n_features_in_")
    assert planned == clf.fit(*rows).privacy_spent_


@pytest.mark.slow
def test_the_cost_is_charged_before_any_noise_is_drawn(rows, tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=10, delta=1e-5)
    draw = NoiseSource.words

    def watched(self, shape):
        assert len(PrivacyLedger(ledger.path).entries()) == 1
        return draw(self, shape)

    monkeypatch.setattr(NoiseSource, "words", watched)
    clf = make(noise_multiplier=3.0, ledger=ledger).fit(*rows)
    (charge,) = ledger.entries()
    assert charge.epsilon >= clf.privacy_spent_.epsilon
    assert charge.description == clf.privacy_spent_.mechanism


def test_a_fit_beyond_the_budget_draws_nothing(rows, tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=0.5, delta=1e-5)

    def draw(self, shape):
        pytest.fail("noise was drawn")

    monkeypatch.setattr(NoiseSource, "words", draw)
    with pytest.raises(BudgetExceededError):
        make(ledger=ledger).fit(*rows)
    assert ledger.entries() == []


@pytest.mark.slow
def test_a_seed_makes_noise_repeatable_and_voids_the_statement(rows):
    X, y = rows
    clf = make(network(module__dropout=0.5))
    fits = []
    for _ in range(2):
        with equal_noise(3):
            fits.append(weights(clf.fit(X, y)))
    assert torch.equal(*fits)
    assert clf.privacy_spent_.epsilon == np.inf
    assert "seeded" in str(clf.privacy_spent_)


@pytest.mark.slow
def test_global_generators_are_restored(rows):
    state = torch.random.get_rng_state()
    np.random.seed(0)
    expected = np.random.random()
    np.random.seed(0)
    make().fit(*rows)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert np.random.random() == expected


# What is saved


class Remembering(Perceptron):
    """Module that stores its last rows."""

    def forward(self, X):
        self.last = X.detach().clone()
        return super().forward(X)


@pytest.fixture(scope="module")
def planted(rows):
    X, y = rows
    X = X.copy()
    X[::3, 5] = PLANTED
    X[:, 6] = np.linspace(0.1, 0.2, len(X))
    return make(network(Remembering, max_epochs=2)).fit(X, y), X


@pytest.mark.slow
def test_saved_bytes_hold_no_row(planted):
    clf, X = planted
    secrets = [X[0].tobytes(), np.float32(PLANTED).tobytes(), X[:, 6].tobytes()]
    assert all(one in pickle.dumps([X[0], X[:, 6].copy()]) for one in secrets[:2])
    saved = pickle.dumps(clf)
    assert [one for one in secrets if one in saved] == []


def test_the_network_keeps_no_history_no_gradient_and_no_hook(planted, capsys):
    net = planted[0].network_
    assert net.history_ == []
    assert net.optimizer_.state_dict()["state"] == {}
    for p in net.module_.parameters():
        assert p.grad is None
        assert vars(p) == {}
    assert not hasattr(net.module_, "last")
    for module in net.module_.modules():
        assert not module._forward_hooks
        assert not module._backward_hooks
        assert not hasattr(module, "activations")


@pytest.mark.slow
def test_saved_bytes_hold_no_fit_without_privacy_of_the_network_given(rows):
    X, y = rows
    net = network(train_split=None, verbose=0)
    clf = make(net).fit(X, y)
    net.fit(X, y)
    weight = net.module_.layers[0].weight.detach().numpy()
    assert weight.tobytes() in pickle.dumps(net)
    saved = pickle.dumps(clf)
    assert weight.tobytes() not in saved
    assert not pickle.loads(saved).estimator.history_
    assert len(net.history_) == 1


@pytest.mark.parametrize("duplicate", [copy.deepcopy, "pickle"])
def test_a_duplicate_predicts_the_same(planted, duplicate):
    clf, X = planted
    if duplicate == "pickle":
        copied = pickle.loads(pickle.dumps(clf))
    else:
        copied = duplicate(clf)
    assert copied.privacy_spent_ == clf.privacy_spent_
    np.testing.assert_array_equal(copied.predict_proba(X), clf.predict_proba(X))


def test_training_prints_nothing_and_leaves_the_network_given_alone(rows, capsys):
    net = network(nn.Linear(N_FEATURES, N_CLASSES))
    before = net.module.weight.clone()
    make(net).fit(*rows)
    assert capsys.readouterr() == ("", "")
    assert torch.equal(net.module.weight, before)
    assert not hasattr(net, "module_")


def test_frozen_weights_do_not_change(rows):
    pretrained = Perceptron()
    pretrained.layers[0].requires_grad_(False)
    clf = make(network(pretrained)).fit(*rows)
    first, _, _, last, _ = clf.network_.module_.layers
    assert torch.equal(first.weight, pretrained.layers[0].weight)
    assert not torch.equal(last.weight, pretrained.layers[3].weight)


# Odd values


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39, None, "much"])
def test_an_odd_value_counts_as_zero(value):
    rows = np.random.default_rng(0).normal(size=(60, 4)).astype(object)
    y = (rows[:, 0] > 0).astype(int)
    rows[7, 1] = value
    zero = rows.copy()
    zero[7, 1] = 0.0
    net = NeuralNetClassifier(
        nn.Linear,
        module__in_features=4,
        module__out_features=2,
        criterion=nn.CrossEntropyLoss,
        batch_size=30,
        max_epochs=2,
    )
    clf = DPSGDClassifier(net, epsilon=None, noise_multiplier=1.0, random_state=0)
    fit = equal_noise()(clf.fit)
    one, other = (fit(X, y).predict_proba(rows) for X in (rows, zero))
    np.testing.assert_array_equal(one, other)
    assert np.all(np.isfinite(one))

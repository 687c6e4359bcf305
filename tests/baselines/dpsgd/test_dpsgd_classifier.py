"""DP-SGD: accuracy, statements, the effect of one row, and the fitted state."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom, kstest
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate import BudgetExceededError, PrivacyLeakWarning, PrivacyLedger
from sklearn_pate.accounting._assumptions import (
    FLOATING_POINT,
    LABEL_SET_READ,
    N_ROWS,
    ROW_BY_ROW,
)
from sklearn_pate.baselines import DPSGDClassifier
from sklearn_pate.baselines.dpsgd import _dpsgd_training
from sklearn_pate.baselines.dpsgd._dpsgd_training import NoisySteps
from sklearn_pate.mechanisms._dpsgd_steps import DPSGDSteps
from sklearn_pate.mechanisms.noise._source import NoiseSource

SEEDED = pytest.mark.filterwarnings("ignore:noise_seed:sklearn_pate.PrivacyLeakWarning")
N_FEATURES, N_CLASSES = 64, 10
PLANTED = 98765.4321


class Perceptron(nn.Module):
    def __init__(self, probabilities=False, dropout=0.0):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(N_FEATURES, 32),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(32, N_CLASSES),
            nn.Softmax(dim=1) if probabilities else nn.Identity(),
        )

    def forward(self, X):
        return self.layers(X)


def network(module=Perceptron, **parameters):
    defaults = {
        "criterion": nn.CrossEntropyLoss,
        "lr": 0.5,
        "batch_size": 100,
        "max_epochs": 1,
    }
    return NeuralNetClassifier(module, **(defaults | parameters))


def make(estimator=None, **parameters):
    defaults = {"epsilon": None, "noise_multiplier": 1.0, "random_state": 0}
    estimator = network() if estimator is None else estimator
    return DPSGDClassifier(estimator, **(defaults | parameters))


@pytest.fixture(scope="module")
def rows(digits):
    X, y = digits
    return (X / 16).astype(np.float32), y


def weights(clf):
    module = clf.network_.module_
    return torch.cat([p.detach().flatten() for p in module.parameters()]).double()


# Accuracy


@pytest.mark.parametrize("probabilities", [False, True])
def test_digits_are_learnt_through_little_noise(rows, probabilities):
    X, y = rows
    criterion = nn.NLLLoss if probabilities else nn.CrossEntropyLoss
    net = network(
        module__probabilities=probabilities, criterion=criterion, max_epochs=20
    )
    clf = make(net, noise_multiplier=0.3).fit(X[:1400], y[:1400])
    assert clf.score(X[1400:], y[1400:]) > 0.8
    probabilities = clf.predict_proba(X[1400:])
    assert probabilities.shape == (len(X) - 1400, N_CLASSES)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


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


def test_the_optimizer_and_its_parameters_are_those_of_the_network(rows):
    X, y = rows
    net = network(optimizer=torch.optim.Adam, optimizer__betas=(0.8, 0.9), lr=0.003)
    clf = make(net).fit(X, y)
    (group,) = clf.network_.optimizer_.param_groups
    assert group["lr"] == 0.003
    assert group["betas"] == (0.8, 0.9)


@SEEDED
def test_without_a_bound_or_noise_a_full_batch_is_gradient_descent(rows):
    X, y = rows
    flat = nn.Linear(N_FEATURES, N_CLASSES)
    for p in flat.parameters():
        nn.init.zeros_(p)
    clf = make(
        network(flat, batch_size=5000),
        noise_multiplier=1e-15,
        max_grad_norm=1e6,
        noise_seed=0,
    ).fit(X, y)
    loss = nn.functional.cross_entropy(flat(torch.tensor(X)), torch.tensor(y))
    gradients = torch.autograd.grad(loss, list(flat.parameters()))
    expected = torch.cat([-0.5 * gradient.flatten() for gradient in gradients])
    torch.testing.assert_close(weights(clf), expected.double(), rtol=1e-4, atol=1e-6)


# The statement


def test_the_statement_names_every_number_and_assumption(rows):
    X, y = rows
    clf = make(epsilon=2.0, noise_multiplier=None, delta=1e-6).fit(X, y)
    spent = clf.privacy_spent_
    assert spent.epsilon <= 2.0 < 1.001 * spent.epsilon
    assert spent.epsilon < spent.curve.to_epsilon(1e-6)
    assert (spent.delta, spent.unit, spent.relation) == (1e-6, "row", "add-remove")
    assert "add or remove one row" in str(spent)
    assert f"noise_multiplier={clf.noise_multiplier_}" in spent.mechanism
    assert f"sampling_rate={100 / 1797}, n_steps=18" in spent.mechanism
    assert {N_ROWS, ROW_BY_ROW, FLOATING_POINT, LABEL_SET_READ} < {*spent.assumptions}


def test_the_moments_accountant_states_its_curve(rows):
    spent = make(accountant="rdp").fit(*rows).privacy_spent_
    assert spent.epsilon == spent.curve.to_epsilon(1e-5)


def test_the_plan_is_the_statement_of_the_fit(rows):
    clf = make(epsilon=1.0, noise_multiplier=None)
    planned = clf.plan_privacy(*rows)
    assert not hasattr(clf, "n_features_in_")
    assert planned == clf.fit(*rows).privacy_spent_


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


# The effect of one row


CRITERIA = {
    "logits": (False, {"criterion": nn.CrossEntropyLoss}),
    "probabilities": (True, {"criterion": nn.NLLLoss}),
    "class weights": (
        False,
        {
            "criterion": nn.CrossEntropyLoss,
            "criterion__weight": torch.arange(1.0, N_CLASSES + 1),
        },
    ),
}


@SEEDED
@pytest.mark.parametrize("case", CRITERIA)
@pytest.mark.parametrize("value", [1e6, -1e6, 3e38])
def test_one_row_moves_weights_by_no_more_than_its_clipped_gradient(rows, value, case):
    X, y = rows
    probabilities, criterion = CRITERIA[case]
    net = network(module__probabilities=probabilities, batch_size=5000, **criterion)
    clf = make(net, max_grad_norm=20.0, noise_seed=0, classes=range(N_CLASSES))
    X, y = X.copy(), y.copy()
    X[7] = value
    with_row = weights(clf.fit(X, y))
    y[7] = N_CLASSES  # unknown: left out, with the number of rows as before
    without = weights(clf.fit(X, y))
    assert torch.isfinite(with_row).all()
    distance = torch.linalg.norm(with_row - without)
    assert distance <= (1 + 1e-5) * 0.5 * 20 / len(X)
    assert clf.privacy_spent_.mechanism.count(f"sampling_rate={1.0}, n_steps=1") == 1


@SEEDED
def test_a_row_of_average_size_is_clipped_to_the_bound(rows):
    X, y = rows
    clf = make(
        network(batch_size=5000, module=nn.Linear(N_FEATURES, N_CLASSES)),
        max_grad_norm=0.01,
        noise_seed=0,
        classes=range(N_CLASSES),
    )
    with_row = weights(clf.fit(X, y))
    without = weights(clf.fit(X, np.where(np.arange(len(y)) == 7, 99, y)))
    distance = torch.linalg.norm(with_row - without).item()
    assert distance == pytest.approx(0.5 * 0.01 / len(X), rel=1e-2)


class Doubled(Perceptron):
    def __init__(self):
        super().__init__()
        self.double()

    def forward(self, X):
        return super().forward(X.double())


def plan_of(n_rows, **numbers):
    defaults = {"noise_multiplier": 1.0, "max_grad_norm": 1.0}
    return DPSGDSteps(
        **(defaults | numbers),
        sampling_rate=0.5,
        n_steps=1,
        expected_batch_size=n_rows / 2,
    )


def sums_of_gradients(net, rows, indices, plan):
    """Sums of clipped gradients before the noise."""
    X, y = (torch.from_numpy(one) for one in rows)
    with pytest.warns(PrivacyLeakWarning, match="seed"):
        noise = NoiseSource(0)
    with _dpsgd_training.one_thread_quietly():
        initialized = _dpsgd_training.initialized(net, N_CLASSES, 0)
        steps = NoisySteps(initialized, X, y.long(), plan, noise)
        steps.step(indices)
        sums = [p.summed_grad.flatten() for p in steps.optimizer.params]
    return torch.cat(sums).numpy(), steps


@pytest.mark.parametrize("module", [Perceptron, Doubled])
@pytest.mark.parametrize("value", [0.5, 1e30, 1e-42, np.nan])
def test_a_row_adds_its_own_gradient_to_the_sum_and_changes_no_bit_of_others(
    rows, module, value
):
    X, y = rows
    rows = X.copy(), y
    rows[0][0] = value
    net, plan = network(module), plan_of(len(y))
    for n_others in (0, 1, 37, 300):
        others = np.arange(1, 1 + n_others)
        of_all, of_others, of_one = (
            sums_of_gradients(net, rows, indices, plan)[0]
            for indices in (np.append(0, others), others, np.arange(1))
        )
        assert np.array_equal(of_all - of_others, of_one)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e12, 1e30])
@pytest.mark.parametrize("bound", [1e-6, 0.7, 1e6])
def test_no_clipped_gradient_is_longer_than_the_bound_by_a_bit(rows, scale, bound):
    X, y = rows
    net = network(nn.Linear(N_FEATURES, N_CLASSES))
    rows = (X * scale).astype(np.float32), y
    for row in range(5):
        sums, steps = sums_of_gradients(
            net, rows, np.array([row]), plan_of(len(y), max_grad_norm=bound)
        )
        longest = int(steps.optimizer.n_units)
        assert sum(int(one) ** 2 for one in sums) <= longest**2


def test_noisy_sums_are_whole_multiples_of_a_unit_whatever_the_rows_are(rows):
    net = network(nn.Linear(N_FEATURES, N_CLASSES))
    for noise_multiplier in (0.3, 1.0, 50.0):
        plan = plan_of(len(rows[0]), noise_multiplier=noise_multiplier)
        for indices in (np.arange(0), np.arange(7), np.arange(100)):
            _, steps = sums_of_gradients(net, rows, indices, plan)
            unit = 2.0 ** np.floor(np.log2(noise_multiplier)) / 2**20
            for p in steps.optimizer.params:
                # Opacus has divided the sum by the expected size.
                sums = (p.grad.double() * plan.expected_batch_size).numpy() / unit
                assert np.abs(sums - np.rint(sums)).max() <= 1e-7 * np.abs(sums).max()


def test_rows_of_unknown_labels_are_not_used_and_cost_the_same(rows):
    X, y = rows
    clf = make(classes=range(N_CLASSES))
    known = clf.fit(X, y).privacy_spent_
    unknown = clf.fit(X, np.full(len(y), 77)).privacy_spent_
    assert known == unknown


# Samples and noise


def test_every_step_has_a_sample_of_its_own(rows, monkeypatch):
    sizes = []
    step = NoisySteps.step

    def watched(self, indices):
        if self.optimizer.noise is not None:
            sizes.append(len(indices))
        step(self, indices)

    monkeypatch.setattr(NoisySteps, "step", watched)
    make(network(max_epochs=3)).fit(*rows)
    assert len(sizes) == 3 * 18
    low, high = binom.isf([1 - 1e-9, 1e-9], 1797, 100 / 1797)
    assert all(low <= size <= high for size in sizes)
    assert len(set(sizes)) > 5


def test_empty_samples_are_steps_too(rows):
    X, y = rows
    clf = make(network(batch_size=1)).fit(X[:60], y[:60])  # empty in one of three steps
    assert torch.isfinite(weights(clf)).all()
    assert "n_steps=60" in clf.privacy_spent_.mechanism


@pytest.mark.parametrize("rows_are_known", [False, True])
def test_noise_has_the_stated_standard_deviation(rows, rows_are_known):
    X, y = rows
    flat = nn.Linear(N_FEATURES, N_CLASSES)
    for p in flat.parameters():
        nn.init.zeros_(p)
    if rows_are_known:  # at the optimum of all-zero rows nothing is to be learnt
        X, flat.bias.requires_grad = np.zeros_like(X), False
        known = y
    else:
        known = np.full(len(y), 77)
    draws = []
    for _ in range(5):
        clf = make(
            network(flat), noise_multiplier=1.5, max_grad_norm=0.3, classes=range(10)
        ).fit(X, known)
        # 18 independent steps of length 0.5 along noisy sums over 100.
        sigma = 0.5 * 1.5 * 0.3 / 100 * np.sqrt(18)
        draws.append(weights(clf)[: N_FEATURES * N_CLASSES] / sigma)
    assert kstest(torch.cat(draws).numpy(), "norm").pvalue > 1e-6


@SEEDED
def test_large_samples_are_taken_in_parts(rows, monkeypatch):
    net = network(max_epochs=2, module=nn.Linear(N_FEATURES, N_CLASSES))
    whole = weights(make(net, noise_seed=0).fit(*rows))
    monkeypatch.setattr(_dpsgd_training, "_NUMBERS_AT_ONCE", 1)
    parts = weights(make(net, noise_seed=0).fit(*rows))
    torch.testing.assert_close(whole, parts, rtol=1e-4, atol=1e-6)


def test_random_state_fixes_the_first_weights_and_not_the_noise(rows):
    clf = make(noise_multiplier=1e-3, max_grad_norm=1e-6)
    one, other, another = (
        weights(clf.set_params(random_state=seed).fit(*rows)) for seed in (0, 0, 1)
    )
    assert not torch.equal(one, other)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-4)
    assert (one - another).abs().max() > 0.05


def test_dropout_is_as_secret_as_the_noise(rows):
    net = network(module__dropout=0.5, batch_size=5000)
    clf = make(net, noise_multiplier=1e-15)
    assert not torch.equal(*(weights(clf.fit(*rows)) for _ in range(2)))


def test_every_step_seeds_dropout_anew(rows, monkeypatch):
    X, y = rows
    seeds = []
    forward = Perceptron.forward

    def watched(self, X):
        seeds.append(torch.initial_seed() % 2**32)  # what torch keeps of it
        return forward(self, X)

    monkeypatch.setattr(Perceptron, "forward", watched)
    clf = make(network(module__dropout=0.5))
    clf.plan_privacy(X, y)
    made_up = set(seeds)
    clf.fit(X, y)
    assert len(set(seeds) - made_up) == 18


def test_a_seed_makes_noise_repeatable_and_voids_the_statement(rows):
    X, y = rows
    clf = make(network(module__dropout=0.5), noise_seed=3)
    fits = []
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning, match="noise_seed=3") as caught:
            fits.append(weights(clf.fit(X, y)))
        assert caught[0].filename == __file__
    assert torch.equal(*fits)
    assert clf.privacy_spent_.epsilon == np.inf
    assert "seeded" in str(clf.privacy_spent_)


def test_global_generators_are_restored(rows):
    state = torch.random.get_rng_state()
    np.random.seed(0)
    expected = np.random.random()
    np.random.seed(0)
    make().fit(*rows)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert np.random.random() == expected


# Fitted state


class Remembering(Perceptron):
    """Keeps the last rows it saw, as a careless module would."""

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


@pytest.mark.filterwarnings("ignore:noise_seed")
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
    fits = [
        DPSGDClassifier(
            net,
            epsilon=None,
            noise_multiplier=1.0,
            noise_seed=0,
            random_state=0,
        ).fit(one, y)
        for one in (rows, zero)
    ]
    one, other = (clf.predict_proba(rows) for clf in fits)
    np.testing.assert_array_equal(one, other)
    assert np.all(np.isfinite(one))

"""Influence of one row on DP-SGD, its samples and its noise."""

import numpy as np
import pytest
import torch
from scipy.stats import binom, kstest
from torch import nn

from tests.learners.networks import (
    N_CLASSES,
    N_FEATURES,
    Perceptron,
    make,
    network,
    weights,
)
from tests.private import DPSGDSteps, NoiseSource, NoisySteps, _dpsgd_training
from tests.seeding import equal_noise

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


@pytest.mark.parametrize("case", CRITERIA)
@pytest.mark.parametrize("value", [1e6, -1e6, 3e38])
def test_one_row_moves_weights_by_no_more_than_its_clipped_gradient(rows, value, case):
    X, y = rows
    probabilities, criterion = CRITERIA[case]
    net = network(module__probabilities=probabilities, batch_size=5000, **criterion)
    clf = make(net, max_grad_norm=20.0, classes=range(N_CLASSES))
    X, y = X.copy(), y.copy()
    X[7] = value
    fit = equal_noise()(clf.fit)
    with_row = weights(fit(X, y))
    y[7] = N_CLASSES  # unknown: left out, with the number of rows as before
    without = weights(fit(X, y))
    assert torch.isfinite(with_row).all()
    distance = torch.linalg.norm(with_row - without)
    assert distance <= (1 + 1e-5) * 0.5 * 20 / len(X)
    assert clf.privacy_spent_.mechanism.count(f"sampling_rate={1.0}, n_steps=1") == 1


def test_a_row_of_average_size_is_clipped_to_the_bound(rows):
    X, y = rows
    clf = make(
        network(batch_size=5000, module=nn.Linear(N_FEATURES, N_CLASSES)),
        max_grad_norm=0.01,
        classes=range(N_CLASSES),
    )
    fit = equal_noise()(clf.fit)
    with_row = weights(fit(X, y))
    without = weights(fit(X, np.where(np.arange(len(y)) == 7, 99, y)))
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
    with equal_noise():
        noise = NoiseSource()
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


@pytest.mark.slow
def test_rows_of_unknown_labels_are_not_used_and_cost_the_same(rows):
    X, y = rows
    clf = make(classes=range(N_CLASSES))
    known = clf.fit(X, y).privacy_spent_
    unknown = clf.fit(X, np.full(len(y), 77)).privacy_spent_
    assert known == unknown


# Samples and noise


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_large_samples_are_taken_in_parts(rows, monkeypatch):
    net = network(max_epochs=2, module=nn.Linear(N_FEATURES, N_CLASSES))
    fit = equal_noise()(make(net).fit)
    whole = weights(fit(*rows))
    monkeypatch.setattr(_dpsgd_training, "_NUMBERS_AT_ONCE", 1)
    parts = weights(fit(*rows))
    torch.testing.assert_close(whole, parts, rtol=1e-4, atol=1e-6)


@pytest.mark.thorough
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


@pytest.mark.slow
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

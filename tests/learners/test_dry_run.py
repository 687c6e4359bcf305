"""Networks in which a row could do more than its clipped gradient: none gets through.

A network is tried on made-up rows before it may cost anything.
"""

import numpy as np
import pytest
import torch
from opacus.layers import DPLSTM
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate import PrivacyLedger
from sklearn_pate.learners import DPSGDClassifier
from tests.private import (
    DPSGDSteps,
    NoiseSource,
    NoisySteps,
    check_trainable,
    one_thread_quietly,
)

N_CLASSES = 3
PLAN = DPSGDSteps(1.0, 0.1, n_steps=10, max_grad_norm=1.0, expected_batch_size=20)


class Module(nn.Module):
    """Layers, and a function of them and of rows."""

    def __init__(self, forward, **layers):
        super().__init__()
        self.apply_to = forward
        self.layers = nn.ModuleDict(layers)

    def forward(self, X):
        return self.apply_to(X, **self.layers)


class FrozenStatistics(nn.Module):
    """BatchNorm with nothing to learn, and nothing to keep."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4, affine=False, track_running_stats=False)

    def forward(self, X):
        with torch.no_grad():
            return self.norm(X)


class CountedLabels(nn.Module):
    """Weighs a row by how many of the batch have its label."""

    reduction = "mean"

    def forward(self, logits, y):
        losses = nn.functional.cross_entropy(logits, y, reduction="none")
        return losses / torch.bincount(y)[y]


def network(module, **parameters):
    defaults = {"criterion": nn.CrossEntropyLoss}
    return NeuralNetClassifier(module, **(defaults | parameters))


def last(n_inputs=4):
    return nn.Linear(n_inputs, 3)


def sequence(*layers):
    return network(nn.Sequential(*layers))


def function(forward, **layers):
    return network(Module(forward, **({"last": last()} | layers)))


def cut(X, last):
    return last(X.reshape(-1, 2)).view(len(X), 64, -1).sum(dim=1)


def side_by_side(X, last):
    return last(torch.cat([X] * 8)).view(8, len(X), -1).sum(dim=0)


def time_first(X, last):
    return last(X.transpose(0, 1)).sum(dim=0)


def scaled_by_the_batch(X, first, last):
    hidden = first(X)
    if hidden.requires_grad:
        hidden.register_hook(lambda gradient: gradient / gradient.norm())
    return last(hidden)


def tokens_of_rows_before(X, last, tokens):
    return last(tokens(X.long()).mean(dim=1).cumsum(dim=0))


SLICES = "gradients out of 3 rows, .*keep rows separate"
MIXES = "its module or its loss mixes the rows of a batch"

# Network, shape of a row, and error.
REFUSED = {
    "cut": (function(cut, last=last(2)), (64, 2), "makes 192 " + SLICES),
    "side by side": (function(side_by_side), (4,), "makes 24 " + SLICES),
    "time first": (function(time_first, last=last(2)), (64, 2), "makes 64 " + SLICES),
    "as many times as rows": (
        function(time_first, last=last(2)),
        (3, 2),
        MIXES,
    ),
    "gradients scaled by the batch": (
        function(scaled_by_the_batch, first=nn.Linear(4, 4)),
        (4,),
        MIXES,
    ),
    "rows before": (function(lambda X, last: last(X.cumsum(dim=0))), (4,), MIXES),
    "detached mean": (
        function(lambda X, last: last(X - X.mean(dim=0).detach())),
        (4,),
        MIXES,
    ),
    "BatchNorm without gradient": (sequence(FrozenStatistics(), last()), (4,), MIXES),
    "tokens of rows before": (
        function(tokens_of_rows_before, tokens=nn.Embedding(9, 4)),
        (2,),
        MIXES,
    ),
    "counted labels": (network(last(), criterion=CountedLabels), (4,), MIXES),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_row_that_could_do_more_is_refused_before_the_charge(
    case, tmp_path, monkeypatch
):
    net, row_shape, message = REFUSED[case]

    def draw(self, shape):
        pytest.fail("noise was drawn")

    monkeypatch.setattr(NoiseSource, "words", draw)
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)
    clf = DPSGDClassifier(net, ledger=ledger)
    X = np.random.default_rng(0).normal(size=(60, *row_shape))
    with pytest.raises(ValueError, match=f"estimator cannot be trained .*{message}"):
        clf.fit(X, np.arange(60) % N_CLASSES)
    assert ledger.entries() == []


def tied():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    return sequence(first, nn.Tanh(), second, nn.Tanh(), last())


def images(layer):
    return sequence(nn.Conv2d(1, 8, 3), layer, nn.ReLU(), nn.Flatten(), last(288))


SOUND = {
    "groups of a channel": (images(nn.GroupNorm(8, 8)), (1, 8, 8)),
    "dropped channels": (images(nn.Dropout2d()), (1, 8, 8)),
    "dropout": (sequence(nn.Linear(4, 4), nn.Dropout(), nn.ReLU(), last()), (4,)),
    "noise": (function(lambda X, last: last(X + torch.randn_like(X))), (4,)),
    "tokens": (
        function(
            lambda X, last, tokens: last(tokens(X.long()).mean(dim=1)),
            tokens=nn.Embedding(50, 4),
        ),
        (7,),
    ),
    "tied weights": (tied(), (4,)),
    "a layer called twice": (
        function(
            lambda X, last, first: last(first(first(X).tanh()).tanh()),
            first=nn.Linear(4, 4),
        ),
        (4,),
    ),
    "DPLSTM": (
        function(
            lambda X, last, times: last(times(X)[0][:, -1]),
            times=DPLSTM(2, 4, batch_first=True),
        ),
        (5, 2),
    ),
    "several groups": (
        network(
            nn.Sequential(nn.Linear(4, 4), last()),
            optimizer__param_groups=[("0.*", {"lr": 0.1})],
        ),
        (4,),
    ),
    "frozen layer": (
        sequence(nn.Linear(4, 4).requires_grad_(False), nn.ReLU(), last()),
        (4,),
    ),
    "class weights": (
        network(last(), criterion__weight=torch.arange(1.0, 4)),
        (4,),
    ),
}


@pytest.mark.parametrize("case", SOUND)
def test_sound_networks_go_through(case):
    net, row_shape = SOUND[case]
    check_trainable(net, row_shape, N_CLASSES, PLAN)


def test_rows_cut_into_slices_in_a_large_batch_only_are_refused_and_not_added():
    def halves_of_many(X, last):
        if len(X) <= 3:
            return last(X[:, :2]) + last(X[:, 2:])
        return last(X.reshape(-1, 2)).view(len(X), 2, -1).sum(dim=1)

    net = function(halves_of_many, last=last(2))
    with pytest.raises(ValueError, match="makes 32 gradients out of 16 rows"):
        check_trainable(net, (4,), N_CLASSES, PLAN)
    X, y = torch.rand(10, 4), torch.arange(10) % N_CLASSES
    steps = NoisySteps(net.initialize(), X, y, PLAN, noise=None)
    before = [p.clone() for p in net.module_.parameters()]
    with (
        one_thread_quietly(),
        pytest.raises(ValueError, match="makes 32 gradients out of 16 rows"),
    ):
        steps.step(np.arange(10))
    assert all(p.summed_grad is None for p in steps.optimizer.params)
    assert all(map(torch.equal, before, net.module_.parameters()))

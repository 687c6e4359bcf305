"""Many networks trained at once: as if each were alone, and bit for bit so."""

import numpy as np
import pytest
import torch
from torch import nn

from sklearn_pate._estimators._seeding import seeded_clone, seeded_globals
from sklearn_pate._teachers.batched._batched_training import fit_at_once
from tests._teachers.batched.networks import (
    N_CLASSES,
    SGD,
    SHUFFLE,
    Constants,
    Convolutional,
    Dense,
    Probabilities,
    Wanders,
    cuda,
    make_net,
)

SEEDS = [3, 1, 4, 1, 5]


def fit(net, shards):
    with seeded_globals(0):
        return fit_at_once(net, shards, SEEDS, row_shape=(64,))


ADAM = {"optimizer": torch.optim.Adam, "lr": 0.01, "optimizer__amsgrad": True}
ADAMW = {"optimizer": torch.optim.AdamW, "lr": 0.01}
RMSPROP = {"optimizer": torch.optim.RMSprop, "lr": 0.001, "optimizer__centered": True}
NLL = {"criterion": nn.NLLLoss}


@pytest.mark.slow
@pytest.mark.parametrize(
    "net",
    [
        make_net(),
        make_net(**SGD, **SHUFFLE),
        make_net(**ADAM, **SHUFFLE),
        make_net(**ADAMW),
        make_net(**RMSPROP),
        make_net(Probabilities, **NLL, **SHUFFLE),
        make_net(Constants, **SGD),
        make_net(Convolutional, **SGD, **SHUFFLE),
        make_net(Convolutional(), **ADAM),
    ],
    ids=lambda net: (
        f"{getattr(net.module, '__name__', 'object')}-{net.optimizer.__name__}"
    ),
)
def test_each_network_becomes_what_it_would_be_alone(net, images, shards):
    teachers = fit(net, shards)
    predicted = teachers.predict(images[0])
    for teacher, (shard, seed) in enumerate(zip(shards, SEEDS, strict=True)):
        if shard is None:
            continue
        with seeded_globals(seed):
            alone = seeded_clone(net, seed).fit(*shard)
        for name, value in alone.module_.state_dict().items():
            if name in teachers.state:  # shared weights are there once
                torch.testing.assert_close(
                    teachers.state[name][teacher], value, rtol=1e-3, atol=1e-4
                )
        agreement = np.mean(predicted[teacher] == alone.predict(images[0]))
        assert agreement > 0.995


# One changed row changes one teacher, bit for bit


def changed(shard, how):
    X, y = shard
    rows = {
        "a row more": [*range(len(y)), 0],
        "many rows more": [*range(len(y))] * 5,
        "a row less": range(1, len(y)),
        "one row left": [0],
    }
    X, y = (part[rows.get(how, slice(None))].copy() for part in (X, y))
    if how == "nothing left":
        return None
    if how == "another label":
        y[0] = (y[0] + 1) % N_CLASSES
    if how in ("nan", "inf", "1e30", "1e-42"):
        X[0] = float(how)
    return X, y


CHANGES = [
    "a row more",
    "many rows more",
    "a row less",
    "one row left",
    "nothing left",
    "another label",
    "nan",
    "inf",
    "1e30",
    "1e-42",
]


@pytest.mark.slow
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize(
    "net",
    [
        make_net(**SGD, **SHUFFLE),
        make_net(module__dropout=0.5, **ADAM, **SHUFFLE),
        make_net(Probabilities, **NLL, **RMSPROP),
        make_net(Convolutional, **ADAMW, **SHUFFLE),
        make_net(Wanders, **SGD),
    ],
    ids=lambda net: net.module.__name__,
)
def test_a_changed_shard_changes_one_teacher_and_no_bit_of_another(
    net, how, images, shards
):
    X_public = images[0][:100]
    before = fit(net, shards)
    votes_before = before.predict(X_public)
    for teacher in (0, 3):
        others = np.delete(np.arange(len(shards)), teacher)
        neighbour = list(shards)
        neighbour[teacher] = changed(shards[teacher], how)
        after = fit(net, neighbour)
        own = False
        for name, value in after.state.items():
            as_before = before.state[name]
            assert torch.equal(value[others], as_before[others])
            own |= not torch.equal(value[teacher], as_before[teacher])
        assert own, "the change was not seen at all"
        np.testing.assert_array_equal(
            after.predict(X_public)[others], votes_before[others]
        )


@cuda
@pytest.mark.parametrize("module", [Dense, Convolutional])
def test_cuda_trains_as_the_processor_does(module, images, shards):
    net = make_net(module, **SGD, **SHUFFLE)
    on_cuda = fit(seeded_clone(net, 0).set_params(device="cuda"), shards)
    for name, value in fit(net, shards).state.items():
        torch.testing.assert_close(
            on_cuda.state[name].cpu(), value, rtol=1e-2, atol=1e-3
        )


@cuda
@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("module", [Dense, Convolutional])
def test_on_cuda_too_a_changed_shard_changes_one_teacher(module, how, shards):
    net = make_net(module, device="cuda", **ADAM, **SHUFFLE)
    before = fit(net, shards)
    after = fit(net, [changed(shards[0], how), *shards[1:]])
    for name, value in after.state.items():
        assert torch.equal(value[1:], before.state[name][1:])

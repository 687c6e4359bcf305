"""Conditions for training teachers at once, and their messages."""

import itertools
import re

import numpy as np
import pytest
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping
from torch import nn

from sklearn_pate._teachers.batched._eligibility import (
    CPU_BLOCK_BYTES,
    OneByOne,
    block_teachers,
)
from tests._teachers.batched.networks import (
    N_CLASSES,
    Counts,
    Dense,
    Embeds,
    EmbedsDirectly,
    Looks,
    LooksUp,
    MixesRows,
    Normalized,
    OneDimensional,
    Peeks,
    Recurrent,
    Rejects,
    Remembers,
    cuda,
    make_net,
    one_by_one,
    poll,
)


def blocks(net, *, n_teachers=250, row_shape=(64,)):
    return block_teachers(
        net,
        np.zeros((1, *row_shape), np.float32),
        n_teachers=n_teachers,
        n_classes=N_CLASSES,
    )


@pytest.mark.parametrize("n_teachers", [1, 3, 10, 50, 250])
@pytest.mark.parametrize("n_hidden", [16, 2500])
def test_blocks_hold_every_teacher_once_and_keep_to_the_limit(n_teachers, n_hidden):
    found = blocks(make_net(module__n_hidden=n_hidden), n_teachers=n_teachers)
    assert list(itertools.chain(*found)) == list(range(n_teachers))
    # Values, gradients, and as much again for the optimizer: at the very least.
    bytes_a_teacher = 4 * 4 * n_hidden * (64 + N_CLASSES)
    assert max(map(len, found)) * bytes_a_teacher <= CPU_BLOCK_BYTES
    assert len(found) >= (2 if n_teachers >= 10 else 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("net", "reason"),
    [
        (one_by_one(make_net()), "OwnNet is not plain NeuralNetClassifier"),
        (NeuralNetClassifier(Dense), "train_split is set"),
        (make_net(callbacks=[EarlyStopping()]), "callbacks are set"),
        (make_net(callbacks__print_log=EarlyStopping()), "callbacks are set"),
        (make_net(warm_start=True), "warm_start is set"),
        (make_net(compile=True), "compile is set"),
        (make_net(predict_nonlinearity=None), "predict_nonlinearity is set"),
        (make_net(iterator_train__drop_last=True), "iterator_train is not"),
        (make_net(iterator_valid__batch_size=3), "iterator_valid is not"),
        (make_net(dataset=list), "dataset is not"),
        (make_net(batch_size=-1), "batch_size=-1 is not a positive number"),
        (make_net(max_epochs=0), "max_epochs=0 is not a positive number"),
        (make_net(criterion=nn.MultiMarginLoss), "the criterion is not plain"),
        (make_net(criterion__label_smoothing=0.1), "the criterion is not plain"),
        (make_net(optimizer=torch.optim.LBFGS), "the optimizer is none of SGD, Adam"),
        (make_net(optimizer__param_groups=[("*", {})]), "param_groups is not a number"),
        (make_net(module__n_outputs=3), "does not return 10 numbers"),
        (make_net(module__n_hidden=100_000), "MiB a teacher"),
        (make_net(module__wrong=1), "does not run for several teachers at once"),
        (make_net(Normalized), "batch_norm may mix teachers"),
        (make_net(Remembers), "its module changes itself"),
        (make_net(Counts), "its module changes itself"),
        (make_net(MixesRows), "its module predicts otherwise"),
        (make_net(Recurrent), "does not run for several teachers at once"),
        (make_net(OneDimensional), "conv1d .* faster for teachers one by one"),
        (make_net(Embeds), "embedding may mix teachers"),
        (make_net(EmbedsDirectly), "embedding may mix teachers"),
        (make_net(Peeks), "teachers learn from each other"),
        (make_net(Rejects), "poisson may mix teachers"),
        (make_net(LooksUp, module__n_rows=17), "index .* is out of bounds"),
        (make_net(Looks), "does not run for several teachers at once"),
    ],
    ids=lambda value: re.sub(r"\W+", "-", value) if isinstance(value, str) else "",
)
def test_teachers_of_other_kinds_are_trained_one_by_one(net, reason):
    with pytest.raises(OneByOne, match=reason):
        blocks(net)


def test_verbose_prints_how_teachers_are_trained(images, capfd):
    poll(make_net(), images, verbose=1)
    assert (
        "[sklearn_pate] Training 10 teachers up to 5 at once." in capfd.readouterr().err
    )
    poll(make_net(Normalized), images, verbose=1)
    assert (
        "Training 10 teachers one by one: its module does not" in capfd.readouterr().err
    )
    poll(make_net(), images)
    assert capfd.readouterr().err == ""


def test_the_printed_text_does_not_depend_on_private_rows(images, capfd):
    X, y = images
    heard = set()
    # Without any row that it takes, no teacher could vote.
    for value, n_rows in ((0.0, 1000), (np.nan, 900), (1e30, 1000)):
        private = X.copy()
        private[:n_rows] = value
        poll(make_net(), (private, y), verbose=1)
        heard.add(capfd.readouterr().err.partition("\n")[0])
    assert len(heard) == 1


def test_rows_that_networks_do_not_take_are_left_to_them(images, capfd):
    X, y = images
    with pytest.raises(ValueError, match="All teachers with data failed"):
        poll(make_net(), (X.astype(np.float64), y), verbose=1)
    assert "one by one: rows are not in arrays of float32" in capfd.readouterr().err


@cuda
def test_on_cuda_all_teachers_are_one_block():
    assert blocks(make_net(device="cuda")) == [list(range(250))]

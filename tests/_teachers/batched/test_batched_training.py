"""Many networks trained at once: as if each were alone, and bit for bit so."""

import itertools
import random
import re
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping
from torch import nn

from sklearn_pate._estimators._seeding import seeded_clone, seeded_globals
from sklearn_pate._teachers import poll_teachers, shard_rows
from sklearn_pate._teachers.batched._batched_training import fit_at_once
from sklearn_pate._teachers.batched._eligibility import (
    CPU_BLOCK_BYTES,
    OneByOne,
    block_teachers,
)

N_CLASSES = 10


class Dense(nn.Module):
    def __init__(self, n_hidden=16, dropout=0.0, n_outputs=N_CLASSES):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, n_hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(n_hidden, n_outputs),
        )

    def forward(self, X):
        return self.layers(X)


class Probabilities(Dense):
    def forward(self, X):
        return super().forward(X).softmax(dim=1)


class Convolutional(nn.Module):
    """Everything that has another way for several teachers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 8, 3, groups=2, stride=2, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Linear(8, N_CLASSES)

    def forward(self, X):
        images = X.view(-1, 1, 8, 8)
        identity = torch.eye(2, 3).expand(len(images), 2, 3)
        grid = nn.functional.affine_grid(identity, images.shape, align_corners=False)
        images = nn.functional.grid_sample(images, grid, align_corners=False)
        images = self.pool(self.first(images).relu())
        return self.last(self.second(images).relu().view(len(X), -1))


class Constants(Dense):
    """A constant of its own, frozen weights, and two layers that share theirs."""

    def __init__(self):
        super().__init__(n_hidden=N_CLASSES)
        self.register_buffer("scale", torch.rand(64))
        self.layers[0].weight.requires_grad_(False)
        self.again = nn.Linear(N_CLASSES, N_CLASSES)
        self.again.weight = self.layers[3].weight

    def forward(self, X):
        return self.again(super().forward(X * self.scale))


class Wanders(Dense):
    """Draws from all global generators while it is trained."""

    def forward(self, X):
        if self.training:
            X = X + 0.1 * random.random() + 0.1 * np.random.rand() + torch.rand(1)
        return super().forward(X)


class Normalized(Dense):
    def __init__(self):
        super().__init__()
        self.layers.append(nn.BatchNorm1d(N_CLASSES))


class Remembers(Dense):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, X):
        self.calls.add_(1)
        return super().forward(X)


class MixesRows(Dense):
    def forward(self, X):
        return super().forward(X - X.mean(0))


class Counts(Dense):
    calls = 0

    def forward(self, X):
        self.calls += 1
        return super().forward(X)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(8, N_CLASSES, batch_first=True)

    def forward(self, X):
        return self.layer(X.reshape(-1, 8, 8))[0][:, -1]


class OneDimensional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv1d(1, N_CLASSES, 64)

    def forward(self, X):
        return self.layer(X[:, None])[:, :, 0]


class Looks(Dense):
    def forward(self, X):
        return super().forward(X if X.sum() > 0 else -X)


class LooksUp(Dense):
    """Fails on a row whose first number is large."""

    def __init__(self, n_rows=200):
        super().__init__()
        self.table = nn.Parameter(torch.rand(n_rows, N_CLASSES))

    def forward(self, X):
        return super().forward(X) + self.table[X[:, 0].nan_to_num().long()]


class Embeds(Dense):
    """Would take another teacher's table for a number that is too large."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(17, N_CLASSES)

    def forward(self, X):
        return super().forward(X) + self.embedded(X[:, 0].nan_to_num().long())

    def embedded(self, at):
        return self.table(at)


class EmbedsDirectly(Embeds):
    def embedded(self, at):
        return torch.ops.aten.embedding(self.table.weight, at)


class Peeks(Dense):
    """Looks at the rows of all teachers, where there are several."""

    def forward(self, X):
        if torch._C._functorch.is_batchedtensor(X):
            X = X + 1e-6 * torch._C._functorch.get_unwrapped(X).mean()
        return super().forward(X)


class Rejects(Dense):
    """Draws more random numbers if its numbers are large."""

    def forward(self, X):
        return super().forward(torch.poisson(X))


class Warns(Dense):
    def forward(self, X):
        warnings.warn("look here", stacklevel=1)
        return super().forward(X)


def make_net(module=Dense, **parameters):
    defaults = {
        "criterion": nn.CrossEntropyLoss,
        "lr": 0.1,
        "max_epochs": 3,
        "batch_size": 16,
        "train_split": None,
        "verbose": 0,
    }
    return NeuralNetClassifier(module, **(defaults | parameters))


class OwnNet(NeuralNetClassifier):
    """Overrides nothing; trained one by one all the same."""


def one_by_one(net):
    return OwnNet(**net.get_params(deep=False))


@pytest.fixture(scope="module")
def images(digits):
    X, y = digits
    return (X / 16).astype(np.float32), y.astype(np.int64)


@pytest.fixture(scope="module")
def shards(images):
    """Five shards of different sizes; the third teacher has nothing to learn."""
    X, y = images
    starts = np.cumsum([0, 40, 5, 0, 64, 33])
    cut = [slice(*ends) for ends in itertools.pairwise(starts)]
    return [(X[rows], y[rows]) if len(y[rows]) else None for rows in cut]


SEEDS = [3, 1, 4, 1, 5]


def fit(net, shards):
    with seeded_globals(0):
        return fit_at_once(net, shards, SEEDS, row_shape=(64,))


SGD = {"optimizer__momentum": 0.9, "optimizer__weight_decay": 0.01}
ADAM = {"optimizer": torch.optim.Adam, "lr": 0.01, "optimizer__amsgrad": True}
ADAMW = {"optimizer": torch.optim.AdamW, "lr": 0.01}
RMSPROP = {"optimizer": torch.optim.RMSprop, "lr": 0.001, "optimizer__centered": True}
SHUFFLE = {"iterator_train__shuffle": True}
NLL = {"criterion": nn.NLLLoss}


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


def poll(net, images, *, shards=None, n_teachers=10, **parameters):
    X, y = images
    shards = shard_rows(1000, n_teachers, 0) if shards is None else shards
    votes, problems = poll_teachers(
        net,
        X[:1000],
        parameters.pop("codes", y[:1000]),
        shards,
        X[1000:],
        n_classes=N_CLASSES,
        seeds=list(range(len(shards))),
        **parameters,
    )
    return votes.counts(np.arange(len(X) - 1000)), problems


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("at_once", [True, False])
def test_rows_that_are_not_finite_are_left_out_of_their_shard(images, at_once, value):
    net = make_net(**SGD) if at_once else one_by_one(make_net(**SGD))
    shards = shard_rows(1000, 10, 0)
    X, y = images
    odd = X.copy()
    odd[shards[3][5], 0] = value
    rows, problems = poll(net, (odd, y), shards=shards)
    left_out = list(shards)
    left_out[3] = np.delete(shards[3], 5)
    without, _ = poll(net, images, shards=left_out)
    np.testing.assert_array_equal(rows, without)
    assert problems.dropped == [(3, 1)]
    assert not problems


@pytest.mark.parametrize("one_class_more", [False, True])
def test_a_shard_that_empties_moves_its_own_votes_only(images, one_class_more):
    y = images[1][:1000]
    shards = [*shard_rows(990, 9, 0), np.arange(990, 1000)]
    codes = y.copy()
    codes[990:] = 3 if one_class_more else -1
    net = make_net(**SHUFFLE)
    before, _ = poll(net, images, shards=shards)
    after, problems = poll(net, images, shards=shards, codes=codes)
    assert not problems
    moved = after - before
    if one_class_more:
        moved[:, 3] -= 1
    assert np.all(moved <= 0)
    assert np.all(moved.sum(axis=1) == -1)


# The poll


def test_votes_are_as_good_as_those_of_one_by_one(images):
    net = make_net(module__dropout=0.1, max_epochs=30, **SGD, **SHUFFLE)
    y_public = images[1][1000:]
    accuracy = [
        np.mean(poll(each, images)[0][np.arange(len(y_public)), y_public]) / 10
        for each in (net, one_by_one(net))
    ]
    assert accuracy[0] > 0.6
    assert accuracy[0] == pytest.approx(accuracy[1], abs=0.005)


def test_votes_do_not_depend_on_n_jobs_or_memory(images, tmp_path):
    net = make_net(module__dropout=0.3, **SGD, **SHUFFLE)
    expected, _ = poll(net, images, n_teachers=20)
    for options in ({"n_jobs": 2}, {"memory": str(tmp_path), "n_jobs": 2}):
        found, _ = poll(net, images, n_teachers=20, **options)
        np.testing.assert_array_equal(found, expected)


def test_memory_keeps_each_teacher_of_a_block(images, tmp_path):
    X, y = images
    net = make_net(**SHUFFLE)
    first, _ = poll(net, images, memory=str(tmp_path))
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("output.pkl")}
    assert len(kept) == 10
    changed = X.copy()
    changed[17] = 0
    poll(net, (changed, y), memory=str(tmp_path))
    now = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("output.pkl")}
    assert len(now) == 11
    assert kept.items() <= now.items()
    again, _ = poll(net, images, memory=str(tmp_path))
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_poll_of_networks_leaves_no_trace(images, n_jobs, capfd):
    states = random.getstate(), np.random.get_state()[1], torch.get_rng_state()
    n_threads, done = torch.get_num_threads(), []
    net = make_net(Wanders)
    poll(net, images, n_jobs=n_jobs, on_teacher_done=lambda: done.append(1))
    assert len(done) == 10
    assert random.getstate() == states[0]
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])
    assert torch.equal(torch.get_rng_state(), states[2])
    assert torch.get_num_threads() == n_threads
    assert "".join(capfd.readouterr()) == ""


def test_warnings_are_kept_for_each_teacher_and_not_shown(images):
    _, problems = poll(make_net(Warns), images)
    assert {teacher for teacher, _ in problems.warnings} == set(range(10))
    assert {text for _, text in problems.warnings} == {"UserWarning: look here"}


class Halves(TransformerMixin, BaseEstimator):
    """Fails on a shard with a row that starts with a large number."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if X[:, 0].max() > 1:
            raise RuntimeError("this shard is sick")
        return (X / 2).astype(np.float32)

    def __sklearn_is_fitted__(self):
        return True


def test_a_shard_that_has_no_representation_abstains_alone(images):
    X, y = images
    net = make_net(**SHUFFLE)
    halved, _ = poll(net, ((X / 2).astype(np.float32), y))
    seen = {"representation": Halves()}
    as_seen = np.concatenate([X[:1000], X[1000:] / 2]).astype(np.float32)
    found, problems = poll(net, (as_seen, y), **seen)
    np.testing.assert_array_equal(found, halved)
    assert not problems
    as_seen[17, 0] = 5
    after, problems = poll(net, (as_seen, y), **seen)
    assert [text for _, text in problems.failures] == [
        "RuntimeError: this shard is sick"
    ]
    assert np.all(found - after >= 0)
    assert np.all((found - after).sum(axis=1) == 1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_would_fail_a_whole_block_ends_the_poll(images, n_jobs):
    X, y = images
    X = X.copy()
    X[17, 0] = 300
    net = make_net(LooksUp)
    with pytest.raises(ValueError, match=r"nothing was answered.*index 300 is out of"):
        poll(net, (X, y), n_jobs=n_jobs)
    alone, problems = poll(one_by_one(net), (X, y), n_jobs=n_jobs)
    assert len(problems.failures) == 1
    assert np.all(alone.sum(axis=1) == 9)


# Which teachers are trained at once


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
    assert "[PATE] Training 10 teachers up to 5 at once." in capfd.readouterr().err
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


# On a graphics card

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


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


@cuda
def test_on_cuda_all_teachers_are_one_block():
    assert blocks(make_net(device="cuda")) == [list(range(250))]

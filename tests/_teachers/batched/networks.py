"""Networks for teachers: what can be trained at once, and what cannot."""

import random
import warnings

import numpy as np
import pytest
import torch
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate._teachers import poll_teachers, shard_rows

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


SGD = {"optimizer__momentum": 0.9, "optimizer__weight_decay": 0.01}
SHUFFLE = {"iterator_train__shuffle": True}


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


cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

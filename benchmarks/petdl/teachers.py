"""Teachers of the PETDL benchmark: outputs on the test rows, stored on disk."""

from functools import cache

import joblib
import numpy as np
import torch
from joblib import Parallel, delayed
from skorch import NeuralNetClassifier
from torch import nn

from benchmarks.images.models import Moved, discriminant
from benchmarks.images.pixels import DATA
from benchmarks.record import WORK
from sklearn_pate._estimators._isolation import seeded_globals
from sklearn_pate._teachers._shards import shard_rows
from sklearn_pate._teachers._training import read_outputs

KEPT = joblib.Memory(WORK / "petdl", verbose=0)
# Share of the main label in a biased shard, as in the paper.
MAIN_SHARE = 0.82
# Epochs on a shard, by the number of teachers; large shards take fewer.
EPOCHS = {2: 5, 4: 6, 10: 8, 50: 20, 100: 8, 250: 60}
N_CLASSES = 10


@cache
def load_images(name):
    """Load images by their short name."""
    return DATA[name](WORK)


def ensemble(name, kind, n_teachers, representation=None, public=None):
    """Return probabilities and hidden layer of each teacher on the test rows.

    `kind` is "network", "biased" (networks on shards of mostly one label) or
    "discriminant" (on the representation, without hidden layer). `public` are the
    indices of the queried test rows, None for all.
    """
    if kind == "discriminant":
        path = WORK / f"petdl-{name}-{kind}-{n_teachers}-{joblib.hash(public)}.npy"
        if not path.exists():
            np.save(path, _discriminants(name, n_teachers, representation, public))
        return [(one, None) for one in np.load(path)]
    outputs = Parallel(n_jobs=2)(
        delayed(network_outputs)(name, kind, n_teachers, i) for i in range(n_teachers)
    )
    rows = slice(None) if public is None else public
    return [(p[rows], h[rows]) for p, h in outputs]


def shards_of(images, kind, n_teachers):
    """Return the rows of each teacher."""
    y = images.private[1]
    if kind != "biased":
        return shard_rows(len(y), n_teachers, 0)
    return biased_shards(y, n_teachers)


def biased_shards(y, n_teachers):
    """Cut rows into disjoint shards of mostly one label.

    As in the paper (Section 4.3): 82 % of each shard have one label, the others are
    equally frequent. All shards have the same size, the largest possible one.
    """
    rng = np.random.RandomState(0)
    waiting = [rng.permutation(np.flatnonzero(y == label)) for label in range(10)]
    per_label = n_teachers // N_CLASSES
    of_others = (1 - MAIN_SHARE) / (N_CLASSES - 1)
    # A label is 82 % of a tenth of the shards, and 2 % of the others.
    taken = per_label * (MAIN_SHARE + (N_CLASSES - 1) * of_others)
    size = int(min(len(rows) for rows in waiting) / taken)
    shards = []
    for teacher in range(n_teachers):
        rows = []
        for label in range(N_CLASSES):
            main = label == teacher % N_CLASSES
            n_rows = int(size * (MAIN_SHARE if main else of_others))
            rows.append(waiting[label][:n_rows])
            waiting[label] = waiting[label][n_rows:]
        shards.append(np.concatenate(rows))
    return shards


@KEPT.cache
def network_outputs(name, kind, n_teachers, teacher, other_label=False):
    """Train one network, and return probabilities and hidden layer on all test rows.

    With `other_label`, the first row of its shard has another label: a neighbouring
    data set.
    """
    images = load_images(name)
    X, y = images.private
    rows = shards_of(images, kind, n_teachers)[teacher]
    if other_label:
        y = y.copy()
        y[rows[0]] = (y[rows[0]] + 1) % N_CLASSES
    if kind == "biased":
        rows = _oversampled(rows, y, teacher)
    with seeded_globals(teacher):
        torch.set_num_threads(1)
        net = middle_network(images, n_teachers)
        net.fit(np.array(X[rows, : images.n_pixels]), y[rows])
    X_test = np.array(images.test[0][:, : images.n_pixels])
    outputs = read_outputs(net, X_test, N_CLASSES, with_representation=True)
    return tuple(one.astype(np.float16) for one in outputs)


def _oversampled(rows, y, seed):
    """Resample rows to equally frequent labels, as in the paper."""
    rng = np.random.RandomState(seed)
    largest = np.bincount(y[rows]).max() // 4
    return np.concatenate(
        [rng.choice(rows[y[rows] == label], largest) for label in np.unique(y[rows])]
    )


def conv_middle(height, width):
    """Build a network of the size of the teachers of the paper.

    Its ConvMiddle has 157.1 thousand parameters for MNIST (Table 3), and its layers are
    not told. These have 156 thousand: strided convolutions, which are fast without a
    GPU, and no batch normalisation.
    """
    layers = [nn.Flatten(), nn.Unflatten(1, (1, height, width))]
    n_in = 1
    for n_out, size in ((32, 5), (64, 3), (64, 3)):
        layers += [nn.Conv2d(n_in, n_out, size, 2, size // 2), nn.ReLU()]
        n_in, height, width = n_out, -(-height // 2), -(-width // 2)
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(n_in * height * width, 96),
        nn.ReLU(),
        nn.Linear(96, N_CLASSES),
    )


def middle_network(images, n_teachers):
    """Return a teacher of the size of the paper's."""
    height, width = images.shape
    return NeuralNetClassifier(
        Moved,
        module__layers=conv_middle(height, width),
        module__side=height,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        lr=0.03,
        batch_size=24 if n_teachers > 50 else 64,
        max_epochs=EPOCHS[n_teachers],
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    )


def _discriminants(name, n_teachers, representation, public):
    images = load_images(name)
    X, y = images.private
    X_public = representation.transform(images.test[0][public])

    def outputs(rows):
        teacher = discriminant(images, n_teachers)
        teacher.fit(representation.transform(np.array(X[rows])), y[rows])
        of_teacher = read_outputs(
            teacher, X_public, N_CLASSES, with_representation=False
        )
        return of_teacher[0].astype(np.float16)

    shards = shards_of(images, "discriminant", n_teachers)
    return np.array(Parallel(n_jobs=2)(map(delayed(outputs), shards)))

"""Networks as teachers: trained at once, or one by one. Writes results/teachers.json.

Each of 10, 50 or 250 teachers has 240 rows of MNIST, as in the 2017 paper. One by one
means skorch with joblib, each fit with one thread. Both ways have
the same processes, epochs, batches, seeds and initial weights.

Run it with ``python benchmarks/teachers.py`` on an idle machine, or with
``--device cuda``, which writes a separate table; names of networks select some of them.
"""

import json
import time

import numpy as np
import skorch
import torch
from command import command
from joblib import Parallel, delayed
from record import save, summary
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate._estimators._seeding import seeded_globals
from sklearn_pate._teachers import poll_teachers
from sklearn_pate.datasets import fetch_mnist

N_JOBS = 2
N_ROWS = 240
N_PUBLIC = 2000
N_CLASSES = 10
# Number of teachers: number of repetitions.
SIZES = {10: 7, 50: 5, 250: 1}


class Dense(nn.Module):
    """One hidden layer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, N_CLASSES)
        )

    def forward(self, X):
        """Return logits."""
        return self.layers(X)


class Convolutional(nn.Module):
    """Two convolutions with max-pooling and one linear map, as in the 2017 paper."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Unflatten(1, (1, 28, 28)),
            nn.Conv2d(1, 8, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(256, N_CLASSES),
        )

    def forward(self, X):
        """Return logits."""
        return self.layers(X)


NETWORKS = {"dense": Dense, "convolutional": Convolutional}


def make_net(module, device):
    """Return the teacher."""
    return NeuralNetClassifier(
        module,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        lr=0.05,
        batch_size=24,
        max_epochs=15,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
        device=device,
    )


def mnist():
    """Return rows of pixels in [0, 1] and labels: private ones, then public ones."""
    X, y = fetch_mnist(subset="train", return_X_y=True)
    X_public, y_public = fetch_mnist(subset="test", return_X_y=True)
    order = np.random.RandomState(0).permutation(len(y))
    public = np.random.RandomState(0).permutation(len(y_public))[:N_PUBLIC]
    return (
        (X[order] / 255).astype(np.float32),
        y[order],
        (X_public[public] / 255).astype(np.float32),
        y_public[public],
    )


def at_once(net, X, y, shards, X_public):
    """Run a poll, and count its votes."""
    votes, _ = poll_teachers(
        net,
        X,
        y,
        shards,
        X_public,
        n_classes=N_CLASSES,
        seeds=list(range(len(shards))),
        n_jobs=N_JOBS,
        verbose=1,
    )
    return votes.counts(np.arange(len(X_public)))


def one_by_one(net, X, y, shards, X_public):
    """Train the same teachers with skorch and joblib only, and count their votes."""
    predicted = np.array(
        Parallel(n_jobs=N_JOBS)(
            delayed(fit_and_predict)(net, X[rows], y[rows], X_public, seed)
            for seed, rows in enumerate(shards)
        )
    )
    return np.stack([(predicted == k).sum(axis=0) for k in range(N_CLASSES)], axis=1)


def fit_and_predict(net, X, y, X_public, seed):
    """Train one teacher and predict the public rows."""
    torch.set_num_threads(1)
    with seeded_globals(seed):
        return net.fit(X, y).predict(X_public)


WAYS = {"at_once": at_once, "one_by_one": one_by_one}


def compare(name, n_teachers, n_turns, device, data):
    """Alternate between the two ways in one process with started workers."""
    X, y, X_public, y_public = data
    shards = np.arange(n_teachers * N_ROWS).reshape(n_teachers, N_ROWS)
    net = make_net(NETWORKS[name], device)
    for way in WAYS.values():
        way(net, X, y, shards[:4], X_public)
    times, counts = {way: [] for way in WAYS}, {}
    for turn in range(n_turns):
        for way in list(WAYS) if turn % 2 else list(WAYS)[::-1]:
            start = time.perf_counter()
            counts[way] = WAYS[way](net, X, y, shards, X_public)
            times[way].append(time.perf_counter() - start)
    row = {
        "network": name,
        "n_teachers": n_teachers,
        "n_rows_per_teacher": N_ROWS,
        "n_public": N_PUBLIC,
        "n_jobs": N_JOBS,
    }
    for way in WAYS:
        right = counts[way][np.arange(N_PUBLIC), y_public]
        row |= {
            way: float(np.median(times[way])),
            f"{way}_seconds": summary(times[way]),
            f"accuracy_{way}": float(right.mean() / n_teachers),
        }
    ratios = np.divide(times["one_by_one"], times["at_once"])
    return row | {"ratio": float(np.median(ratios)), "ratios": summary(ratios)}


def main():
    """Measure the named networks, or all."""
    parser = command(__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    options = parser.parse_args()
    data = mnist()
    rows = []
    for name in options.networks:
        for n_teachers in options.sizes:
            row = compare(name, n_teachers, SIZES[n_teachers], options.device, data)
            print(json.dumps(row, indent=1))
            rows.append(row)
    table = "teachers" if options.device == "cpu" else f"teachers_{options.device}"
    versions = {"torch": torch.__version__, "skorch": skorch.__version__}
    save("teachers", table, rows, seeds=[0], networks=versions)


if __name__ == "__main__":
    main()

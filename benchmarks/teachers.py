"""Networks many at once against one by one. Writes results/teachers.json.

Both ways are the same poll with two processes of one thread each: plain skorch networks
are trained many at once, those of a class of its own one by one. They take turns, after
a round that counts for neither. Each teacher has 240 rows of MNIST, and votes on 1000.

    python benchmarks/teachers.py              # some minutes
    python benchmarks/teachers.py cuda         # the networks on a graphics card
"""

import sys
import time

import numpy as np
import torch
from record import save
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate.datasets import fetch_mnist
from sklearn_pate.teachers import poll_teachers, shard_rows

N_TEACHERS = (10, 50, 250)
ROWS_A_TEACHER = 240
N_PUBLIC = 1000
N_ROUNDS = 3
EPOCHS = 5


class OneByOne(NeuralNetClassifier):
    """Not plain, so that the poll does not batch it."""


class Perceptron(nn.Sequential):
    """784 - 128 - 10."""

    def __init__(self):
        super().__init__(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


class Convolutional(nn.Sequential):
    """Two convolutions with max-pooling and one linear map, as in the 2017 paper."""

    def __init__(self):
        super().__init__(
            nn.Unflatten(1, (1, 28, 28)),
            nn.Conv2d(1, 8, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 10),
        )


def poll(kind, module, n_teachers, X, y, X_public, device):
    """Return seconds, and votes per class."""
    net = kind(
        module,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        lr=0.05,
        batch_size=24,
        max_epochs=EPOCHS,
        iterator_train__shuffle=True,
        train_split=None,
        device=device,
        verbose=0,
    )
    start = time.perf_counter()
    votes, _ = poll_teachers(
        net,
        X,
        y,
        shard_rows(len(X), n_teachers, 0),
        X_public,
        n_classes=10,
        seeds=range(n_teachers),
        n_jobs=2 if device == "cpu" else 1,
    )
    return time.perf_counter() - start, votes.counts(np.arange(len(X_public)))


def main():
    """Take turns, and write down the medians."""
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    X, y = fetch_mnist(subset="train", return_X_y=True)
    X_test, y_test = fetch_mnist(subset="test", return_X_y=True)
    X = X / np.float32(255)
    X_public, y_public = X_test[:N_PUBLIC] / np.float32(255), y_test[:N_PUBLIC]
    ways = {"one_by_one": OneByOne, "at_once": NeuralNetClassifier}
    rows = []
    for module in (Perceptron, Convolutional):
        for n_teachers in N_TEACHERS:
            n_rows = n_teachers * ROWS_A_TEACHER
            seconds = {way: [] for way in ways}
            # Where there are many teachers, a round is long and steady.
            for _ in range(1 + (N_ROUNDS if n_teachers < 250 else 1)):
                votes = {}
                for way, kind in ways.items():
                    taken, votes[way] = poll(
                        kind,
                        module,
                        n_teachers,
                        X[:n_rows],
                        y[:n_rows],
                        X_public,
                        device,
                    )
                    seconds[way].append(taken)
            medians = {
                way: float(np.median(taken[1:])) for way, taken in seconds.items()
            }
            rows.append(
                {
                    "network": f"{module.__name__.lower()}, {device}",
                    "n_teachers": n_teachers,
                    **medians,
                    "ratio": medians["one_by_one"] / medians["at_once"],
                    "seconds": seconds,
                    **{
                        f"accuracy_{way}": float(
                            counts[np.arange(N_PUBLIC), y_public].mean() / n_teachers
                        )
                        for way, counts in votes.items()
                    },
                }
            )
            print(rows[-1], flush=True)
    save("teachers", {"teachers" if device == "cpu" else f"teachers_{device}": rows})


if __name__ == "__main__":
    main()

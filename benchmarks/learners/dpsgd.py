"""DP-SGD on MNIST: accuracy against privacy. Writes results/dpsgd.json.

mnist        accuracy by epsilon, compared with other papers
ablations    one parameter varied at a time, as in figure 5 of Abadi et al. (2016)

There are 60000 private rows. The table mnist has no public rows, and is evaluated on
the 10000 test rows. The network, the
batch size, the learning rate, the momentum and the clipping norm are those that Tramer
and Boneh (2021, "Differentially private learning needs better features (or much more
data)") give for their end-to-end CNN at epsilon 3, with the tanh network of
Papernot et al. (2021, "Tempered sigmoid activations for deep learning with differential
privacy"). They train 40 epochs; here it is 20, so that a run takes minutes on one core.
All were fixed before the first run, and are the same for each epsilon: no setting was
chosen from the test or training rows.

The ablations have one hidden layer on principal components of 5000 test images, which
are public, and are evaluated on the other 5000. Their reference values are those of
Abadi et al., with fewer hidden units and epochs, and a constant learning rate. The
noise is calibrated to epsilon 2 in each run.

Every finished run is stored in ``benchmarks/work``: after an interruption, the same
command resumes. Weights are seeded; samples and noise are not, and differ in each run.
"""

import math
import time
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import torch
from sklearn.decomposition import PCA
from skorch import NeuralNetClassifier
from torch import nn

from benchmarks.record import WORK, Runs, command, save, summaries
from sklearn_pate.accounting.composition import (
    add_remove_to_replace_one,
    sampled_gaussian_curve,
)
from sklearn_pate.datasets import fetch_mnist
from sklearn_pate.learners import DPSGDClassifier

MNIST = SimpleNamespace(name="MNIST")
EPSILONS = (0.5, 1.0, 2.0, 8.0)
DELTA = 1e-5
SEEDS = (0, 1)
N_ROWS = 60_000
SETTING = {
    "batch_size": 512,
    "lr": 0.5,
    "momentum": 0.9,
    "max_grad_norm": 0.1,
    "max_epochs": 20,
}
N_PUBLIC = 5000
#: Rows of the files that are private, public and evaluated in the ablations.
PARTS = {
    "train": slice(None),
    "public": slice(N_PUBLIC),
    "test": slice(N_PUBLIC, None),
}
REFERENCE = {
    "epsilon": 2.0,
    "batch_size": 600,
    "lr": 0.1,
    "momentum": 0.0,
    "max_grad_norm": 4.0,
    "max_epochs": 2,
    "n_hidden": 100,
    "n_components": 60,
}
VARIED = {
    "lr": (0.01, 0.03, 0.05, 0.07, 0.1, 0.3, 1.0, 4.0, 16.0),
    "max_grad_norm": (1.0, 2.0, 4.0, 16.0),
    "batch_size": (120, 245, 600, 2400),
    "max_epochs": (1, 2, 5),
    "n_components": (20, 60, 200),
    "n_hidden": (100, 300, 1000),
}


def tanh_network():
    """Return the network of Papernot et al. (2021), for flat rows of 784 pixels."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 16, 8, stride=2, padding=2),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def hidden_layer(n_components, n_hidden):
    """Return a network with one hidden layer."""
    return nn.Sequential(
        nn.Linear(n_components, n_hidden), nn.ReLU(), nn.Linear(n_hidden, 10)
    )


def load_pixels(subset):
    """Return pixels in [0, 1], and digits."""
    X, y = fetch_mnist(subset=subset, return_X_y=True)
    return (X / 255).astype(np.float32), y


@cache
def load_components(subset, n_components):
    """Return principal components of public images, and digits."""
    X_test, _ = load_pixels("test")
    pca = PCA(n_components, random_state=0).fit(X_test[:N_PUBLIC])
    X, y = load_pixels("train" if subset == "train" else "test")
    rows = PARTS[subset]
    return pca.transform(X[rows]).astype(np.float32), y[rows]


def run(images, setting, seed, key):
    """Train once; return the key and the results."""
    module, load = tanh_network, load_pixels
    if "n_hidden" in setting:
        n_components = setting["n_components"]
        module = partial(hidden_layer, n_components, setting["n_hidden"])
        load = partial(load_components, n_components=n_components)
    net = NeuralNetClassifier(
        module,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        optimizer__momentum=setting["momentum"],
        lr=setting["lr"],
        batch_size=setting["batch_size"],
        max_epochs=setting["max_epochs"],
    )
    clf = DPSGDClassifier(
        net,
        epsilon=setting["epsilon"],
        delta=DELTA,
        max_grad_norm=setting["max_grad_norm"],
        classes=range(10),
        random_state=seed,
    )
    start = time.process_time()
    clf.fit(*load("train"))
    return key, {
        "accuracy": float(clf.score(*load("test"))),
        "epsilon": clf.privacy_spent_.epsilon,
        "rdp_epsilon": clf.privacy_spent_.curve.to_epsilon(DELTA),
        "noise_multiplier": clf.noise_multiplier_,
        "cpu_seconds": time.process_time() - start,
    }


def replace_one(noise_multiplier):
    """Return epsilon for the relation replace-one, by moments."""
    rate = SETTING["batch_size"] / N_ROWS
    n_steps = SETTING["max_epochs"] * math.ceil(1 / rate)
    one = sampled_gaussian_curve(noise_multiplier, rate) * n_steps
    return add_remove_to_replace_one(one).to_epsilon(DELTA)


def mnist(runs):
    """Return accuracy by epsilon."""
    settings = [{**SETTING, "epsilon": epsilon} for epsilon in EPSILONS]
    return [
        {
            "target": epsilon,
            "delta": DELTA,
            **SETTING,
            "replace_one_epsilon": replace_one(results[0]["noise_multiplier"]),
            **summaries(results),
        }
        for epsilon, results in zip(EPSILONS, runs(MNIST, settings, SEEDS), strict=True)
    ]


def ablations(runs):
    """Return accuracy with one parameter varied at a time."""
    return [
        {"varied": name, **setting, **summaries(results)}
        for name, values in VARIED.items()
        for setting in [REFERENCE | {name: value} for value in values]
        for results in runs(MNIST, [setting], SEEDS)
    ]


TABLES = {"mnist": mnist, "ablations": ablations}


def main():
    """Make the missing runs, and write the named tables, or all."""
    tables = command(__doc__, TABLES).parse_args().tables
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "dpsgd-runs.jsonl", run)
    packages = ("torch", "skorch", "opacus")
    for table in tables:
        save("dpsgd", table, TABLES[table](runs), packages=packages, seeds=list(SEEDS))

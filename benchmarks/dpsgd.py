"""DP-SGD on MNIST: accuracy against privacy. Writes results/dpsgd.json.

60000 private rows, no public ones, evaluated on the 10000 test rows. The network, the
batch size, the learning rate, the momentum and the clipping norm are those that Tramer
and Boneh (2021, "Differentially private learning needs better features (or much more
data)") give for their end-to-end CNN at epsilon 3, with the tanh network of
Papernot et al. (2021, "Tempered sigmoid activations for deep learning with differential
privacy"). They train 40 epochs; here it is 20, so that a run takes minutes on one core.
All were fixed before the first run, and are the same for each epsilon: no setting was
chosen from the test or training rows.

Every finished run is stored in ``benchmarks/work``: after an interruption, the same
command resumes. Weights are seeded; samples and noise are not, and differ in each run.
"""

import math
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from command import command
from record import save
from runs import Runs, summaries
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate.accounting.composition import (
    add_remove_to_replace_one,
    sampled_gaussian_curve,
)
from sklearn_pate.datasets import fetch_mnist
from sklearn_pate.learners import DPSGDClassifier

WORK = Path(__file__).parent / "work"
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


def load_pixels(subset):
    """Return pixels in [0, 1], and digits."""
    X, y = fetch_mnist(subset=subset, return_X_y=True)
    return (X / 255).astype(np.float32), y


def run(images, setting, seed, key):
    """Train once; return the key and the results."""
    net = NeuralNetClassifier(
        tanh_network,
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
    clf.fit(*load_pixels("train"))
    return key, {
        "accuracy": float(clf.score(*load_pixels("test"))),
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


def main():
    """Make the missing runs, and write the table."""
    command(__doc__).parse_args()
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "dpsgd-runs.jsonl", run)
    settings = [{**SETTING, "epsilon": epsilon} for epsilon in EPSILONS]
    rows = [
        {
            "target": epsilon,
            "delta": DELTA,
            **SETTING,
            "replace_one_epsilon": replace_one(results[0]["noise_multiplier"]),
            **summaries(results),
        }
        for epsilon, results in zip(EPSILONS, runs(MNIST, settings, SEEDS), strict=True)
    ]
    packages = ("torch", "skorch", "opacus")
    save("dpsgd", "mnist", rows, packages=packages, seeds=list(SEEDS))


if __name__ == "__main__":
    main()

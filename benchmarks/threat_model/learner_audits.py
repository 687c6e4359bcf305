"""Attacks on the other private learners. Adds a table to results/audits.json.

learners          many fits on two neighbouring data sets, the least favourable ones
                  known; the audit uses one published number

Each learner is audited without and with a planted defect. No noise is seeded; every
audit has confidence 1 - 1e-4.
"""

import os
import warnings
from contextlib import contextmanager, nullcontext

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from skorch import NeuralNetClassifier
from torch import nn

from benchmarks.learners.settings import Linear
from benchmarks.record import command, save
from benchmarks.threat_model.audits import measured
from sklearn_pate.inspection import audit_neighbours
from sklearn_pate.learners import (
    DPLinearSVC,
    DPLogisticRegression,
    DPSGDClassifier,
    PrivateKNNClassifier,
    _dpsgd_training,
)
from sklearn_pate.mechanisms import NoisyHistogram, _noisy_training
from sklearn_pate.mechanisms._noisy_training import PoissonSampler
from sklearn_pate.model_selection import PrivateSearchCV

N_AUDITS = 3
DELTA = 1e-3
N_ROWS = 12


def one_sided():
    """Return equal rows, half of each class, and the same with one changed label."""
    X, y = np.ones((N_ROWS, 1)), np.arange(N_ROWS) % 2
    turned = y.copy()
    turned[0] = 1
    return (X, y), (X, turned)


def one_more():
    """Return equal rows, and the same with one more row."""
    X, y = np.ones((N_ROWS, 1)), np.arange(N_ROWS) % 2
    return (X, y), (np.vstack([X, X[:1]]), np.append(y, 1))


def weight(fitted):
    """Return the only weight of a linear model."""
    return fitted.coef_[0, 0]


def probability(fitted):
    """Return the probability of class 1 predicted by a network."""
    return fitted.predict_proba(np.ones((1, 1), dtype=np.float32))[0, 1]


def one_near():
    """Return one row near all queries with rows far away, and the latter alone."""
    X, y = np.vstack([[[0.0]], np.full((60, 1), 10.0)]), np.array([1] + [0] * 60)
    return (X, y), (X[1:], y[1:])


def all_votes(fitted):
    """Return the noisy votes for the class of the audited row."""
    return fitted.histograms_[:, 1].sum()


def net(n_features=1, batch_size=N_ROWS, max_epochs=1):
    """Return one linear map, trained for a few noisy steps."""
    return NeuralNetClassifier(
        Linear,
        module__n_features=n_features,
        module__n_classes=2,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        lr=1.0,
        batch_size=batch_size,
        max_epochs=max_epochs,
        train_split=None,
        verbose=0,
    )


# With strong regularisation the shift is near the bound of the proof.
LINEAR = {"C": 0.01, "epsilon": 1.0, "data_norm": 1.0, "fit_intercept": False}
SEARCHED = DPLogisticRegression(method="output", **LINEAR)
#: Learner, neighbouring data sets, statistic, fits on each, other arguments of fit.
LEARNERS = {
    "output perturbation": (
        DPLogisticRegression(method="output", delta=DELTA, **LINEAR),
        one_sided,
        weight,
        10_000,
        {},
    ),
    "objective perturbation": (
        DPLogisticRegression(method="objective", delta=DELTA, **LINEAR),
        one_sided,
        weight,
        10_000,
        {},
    ),
    "Gaussian objective perturbation": (
        DPLinearSVC(method="gaussian", delta=DELTA, **LINEAR),
        one_more,
        weight,
        10_000,
        {},
    ),
    "DP-SGD": (
        DPSGDClassifier(
            net(),
            epsilon=None,
            noise_multiplier=3.0,
            accountant="rdp",
            delta=DELTA,
            random_state=0,
        ),
        one_more,
        probability,
        500,
        {},
    ),
    "Private-kNN": (
        PrivateKNNClassifier(
            LogisticRegression(),
            mechanism=NoisyHistogram(sigma=2),
            epsilon=None,
            n_neighbors=1,
            sampling_rate=0.005,
            n_queries=400,
            query_strategy="random",
            delta=0.01,
            classes=[0, 1],
            random_state=0,
        ),
        one_near,
        all_votes,
        200,
        {"X_public": np.linspace(-1, 1, 400)[:, np.newaxis]},
    ),
    "PrivateSearchCV": (
        PrivateSearchCV(
            SEARCHED, {"C": [0.1, 1.0]}, mean_n_trials=3, delta=DELTA, random_state=0
        ),
        one_sided,
        lambda fitted: weight(fitted.best_estimator_),
        2000,
        {},
    ),
}


@contextmanager
def replaced(owner, name, value):
    """Plant a defect within a block."""
    original = getattr(owner, name)
    setattr(owner, name, value(original))
    try:
        yield
    finally:
        setattr(owner, name, original)


def divided_by(factor):
    """Return a defect that divides the noise by a factor."""
    return lambda original: lambda *given: original(*given) / factor


def full_sample(original):
    """Return a sampler that puts all units in the sample."""
    return lambda self, n_units: np.ones(n_units, dtype=bool)


DEFECTS = {
    "output perturbation": (
        "a fifth of the noise",
        lambda: replaced(_noisy_training, "gamma_vector", divided_by(5)),
    ),
    "objective perturbation": (
        "a fifth of the noise",
        lambda: replaced(_noisy_training, "gamma_vector", divided_by(5)),
    ),
    "Gaussian objective perturbation": (
        "a fifth of the noise",
        lambda: replaced(_noisy_training, "standard_normal", divided_by(5)),
    ),
    "DP-SGD": (
        "a fifth of the noise",
        lambda: replaced(_dpsgd_training, "standard_normal", divided_by(5)),
    ),
    "Private-kNN": (
        "everybody is in the sample",
        lambda: replaced(PoissonSampler, "draw", full_sample),
    ),
}


def without_and_with_defects(attack, names, defects):
    """Return the results of every learner without a defect, then with one."""
    unchanged = dict.fromkeys(names, (None, nullcontext))
    rows = []
    for name, (defect, plant) in [*unchanged.items(), *defects.items()]:
        with plant():
            facts = attack(name)
        rows.append({"learner": name, "defect": defect, **facts})
        print(rows[-1], flush=True)
    return rows


def by_neighbours(name):
    """Attack a learner by many fits on two data sets."""
    estimator, neighbours, statistic, n_runs, public = LEARNERS[name]
    audits = [
        audit_neighbours(
            estimator, *neighbours(), statistic=statistic, n_runs=n_runs, **public
        )
        for _ in range(N_AUDITS)
    ]
    return {"n_runs": n_runs, **measured(audits)}


TABLES = {
    "learners": (by_neighbours, LEARNERS, DEFECTS),
}


def main():
    """Measure the named tables, or all."""
    warnings.simplefilter("ignore")
    for table in command(__doc__, TABLES).parse_args().tables:
        save("audits", table, without_and_with_defects(*TABLES[table]))

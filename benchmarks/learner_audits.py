"""Attacks on the other private learners. Adds two tables to results/audits.json.

learners          each is fitted many times on two neighbouring data sets that are as
                  bad for it as we know; one number of what it publishes is watched
learner_canaries  each is fitted once, on rows that coins decide about

Sound learners come first, then the same with a defect planted. Run one of them with
``python benchmarks/learner_audits.py learner_canaries``, both without a name: half an
hour on one core. No noise is seeded; every audit has confidence 1 - 1e-4.
"""

import os
import sys
import warnings
from contextlib import contextmanager, nullcontext
from functools import partial

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from audits import measured
from learners import Linear
from record import save
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate.baselines import (
    DPLinearSVC,
    DPLogisticRegression,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
    _petdl,
)
from sklearn_pate.baselines.dpsgd import _dpsgd_training
from sklearn_pate.baselines.linear import _perturbation
from sklearn_pate.inspection import audit_canaries, audit_neighbours
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.mechanisms._poisson_sampled import PoissonSampler
from sklearn_pate.model_selection import PrivateSearchCV

N_AUDITS = 3
DELTA = 1e-3
N_ROWS = 12


def one_sided():
    """Return rows on one line, half of each class, and the same with a label turned."""
    X, y = np.ones((N_ROWS, 1)), np.arange(N_ROWS) % 2
    turned = y.copy()
    turned[0] = 1
    return (X, y), (X, turned)


def one_more():
    """Return rows on one line, and the same with one more."""
    X, y = np.ones((N_ROWS, 1)), np.arange(N_ROWS) % 2
    return (X, y), (np.vstack([X, X[:1]]), np.append(y, 1))


def weight(fitted):
    """Return the one weight of a linear model."""
    return fitted.coef_[0, 0]


def lead(fitted):
    """Return how sure a network is of class 1 on the line."""
    return fitted.predict_proba(np.ones((1, 1), dtype=np.float32))[0, 1]


def one_near():
    """Return a row that is alone near all queries with rows far away, and these."""
    X, y = np.vstack([[[0.0]], np.full((60, 1), 10.0)]), np.array([1] + [0] * 60)
    return (X, y), (X[1:], y[1:])


def all_votes(fitted):
    """Return the noisy votes for the class of the row that may be there."""
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


# A strong regularisation: the shift is then near the bound that is paid for.
LINEAR = {"C": 0.01, "epsilon": 1.0, "data_norm": 1.0, "fit_intercept": False}
SEARCHED = DPLogisticRegression(method="output", **LINEAR)
#: Learner, worlds, statistic, fits on each world, what else a fit takes.
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
        lead,
        500,
        {},
    ),
    "Private-kNN": (
        PrivateKNNClassifier(
            LogisticRegression(),
            mechanism=GNMax(sigma=2),
            epsilon=None,
            n_neighbors=1,
            sampling_rate=0.005,
            n_queries=400,
            query_strategy="random",
            release="histogram",
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
    """Plant a defect for the length of a block."""
    sound = getattr(owner, name)
    setattr(owner, name, value(sound))
    try:
        yield
    finally:
        setattr(owner, name, sound)


def quieter(factor):
    """Return what makes noise smaller than it is paid for."""
    return lambda sound: lambda *given: sound(*given) / factor


def everybody(sound):
    """Return a sampler that puts everybody in the sample."""
    return lambda self, n_units: np.ones(n_units, dtype=bool)


def everything(sound):
    """Return a deal that gives every teacher all rows."""
    return lambda private, n_teachers, seed: [np.arange(private.n_rows)] * n_teachers


DEFECTS = {
    "output perturbation": (
        "a fifth of the noise",
        lambda: replaced(_perturbation, "gamma_vector", quieter(5)),
    ),
    "objective perturbation": (
        "a fifth of the noise",
        lambda: replaced(_perturbation, "gamma_vector", quieter(5)),
    ),
    "Gaussian objective perturbation": (
        "a fifth of the noise",
        lambda: replaced(_perturbation, "standard_normal", quieter(5)),
    ),
    "DP-SGD": (
        "a fifth of the noise",
        lambda: replaced(_dpsgd_training, "standard_normal", quieter(5)),
    ),
    "Private-kNN": (
        "everybody is in the sample",
        lambda: replaced(PoissonSampler, "draw", everybody),
    ),
}


def sound_and_not(attack, names, defects):
    """Return rows: every learner as it is, then with a defect."""
    sound = dict.fromkeys(names, (None, nullcontext))
    rows = []
    for name, (defect, plant) in [*sound.items(), *defects.items()]:
        with plant():
            facts = attack(name)
        rows.append({"learner": name, "defect": defect, **facts})
        print(rows[-1], flush=True)
    return rows


def by_two_worlds(name):
    """Attack a learner by many fits on two data sets."""
    estimator, worlds, statistic, n_runs, public = LEARNERS[name]
    audits = [
        audit_neighbours(
            estimator, *worlds(), statistic=statistic, n_runs=n_runs, **public
        )
        for _ in range(N_AUDITS)
    ]
    return {"n_runs": n_runs, **measured(audits)}


N_CANARIES = 300  # two thirds of the coins are guessed
SMALL_DELTA = 1e-6  # the bound has no use for one near one in the number of canaries


def at_right_angles():
    """Return rows that say nothing, and canaries that a linear model can tell."""
    others = np.full((N_CANARIES // 2, N_CANARIES), 1e-9, dtype=np.float32)
    y = np.zeros(len(others), dtype=int)
    y[0] = 1
    return others, y, np.eye(N_CANARIES, dtype=np.float32)


def in_the_plane(n_canaries=N_CANARIES):
    """Return rows of one class at random, and canaries among them."""
    rng = np.random.default_rng(0)
    X, X_canaries = np.split(rng.uniform(-1, 1, size=(8000 + n_canaries, 2)), [8000])
    return X, np.zeros(len(X), dtype=int), X_canaries


#: Learner, rows.
WITH_CANARIES = {
    "objective perturbation": (
        DPLogisticRegression(method="objective", delta=SMALL_DELTA, **LINEAR),
        at_right_angles,
    ),
    "Gaussian objective perturbation": (
        DPLinearSVC(method="gaussian", delta=SMALL_DELTA, **LINEAR),
        at_right_angles,
    ),
    "DP-SGD": (
        DPSGDClassifier(
            net(N_CANARIES, batch_size=30, max_epochs=5),
            epsilon=1.0,
            delta=SMALL_DELTA,
            classes=[0, 1],
        ),
        at_right_angles,
    ),
    "Private-kNN": (
        PrivateKNNClassifier(
            LogisticRegression(),
            mechanism=GNMax(sigma=2),
            epsilon=None,
            n_neighbors=1,
            sampling_rate=1e-4,
            query_strategy="random",
            release="histogram",
            delta=SMALL_DELTA,
            classes=[0, 1],
        ),
        partial(in_the_plane, 2000),
    ),
    "PETDL": (
        PETDLClassifier(
            KNeighborsClassifier(1),
            KNeighborsClassifier(1),
            n_teachers=1000,
            public_batch_size=1,
            epsilon=1.0,
            delta=SMALL_DELTA,
            classes=[0, 1],
        ),
        in_the_plane,
    ),
}
CANARY_DEFECTS = {
    "objective perturbation": (
        "a hundredth of the noise",
        lambda: replaced(_perturbation, "gamma_vector", quieter(100)),
    ),
    "Gaussian objective perturbation": (
        "a hundredth of the noise",
        lambda: replaced(_perturbation, "standard_normal", quieter(100)),
    ),
    "DP-SGD": (
        "a hundredth of the noise",
        lambda: replaced(_dpsgd_training, "standard_normal", quieter(100)),
    ),
    "Private-kNN": DEFECTS["Private-kNN"],
    "PETDL": (
        "all rows go to all teachers",
        lambda: replaced(_petdl, "assign_shards", everything),
    ),
}


def by_canaries(name):
    """Attack a learner by one fit on rows that coins decide about."""
    estimator, rows = WITH_CANARIES[name]
    X, y, X_canaries = rows()
    n_guesses = len(X_canaries) * 2 // 3
    audits = [
        audit_canaries(
            estimator, X, y, X_canaries=X_canaries, labels=(0, 1), n_guesses=n_guesses
        )
        for _ in range(N_AUDITS)
    ]
    return {
        "n_canaries": len(X_canaries),
        "n_guesses": n_guesses,
        "n_correct": [int(audit.evidence.split()[0]) for audit in audits],
        **measured(audits),
    }


TABLES = {
    "learners": (by_two_worlds, LEARNERS, DEFECTS),
    "learner_canaries": (by_canaries, WITH_CANARIES, CANARY_DEFECTS),
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for table in sys.argv[1:] or TABLES:
        save("audits", {table: sound_and_not(*TABLES[table])})

"""Settings with and without a warning of `fit`. Writes results/release_utility.json.

settings   answers to queries, by the number of teachers
small      noisy Newton steps, by the number of private rows

What became of the model on Adult and KDDCup99, and whether `fit` warned before the cost
was recorded. Shards, teachers and students are seeded; the noise is not. The same
teachers vote at all epsilons.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import warnings
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.learners.data import load
from benchmarks.learners.settings import newton, pate
from benchmarks.record import command, save, summary
from sklearn_pate import PrivacyUtilityWarning

DATA = ("adult", "kddcup99")
N_TEACHERS = (20, 60, 250)
N_ROWS = (600, 2000, 8000)
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
SEEDS = range(3)


def settings():
    """Fit each setting of answers to queries, with the default number of queries."""
    rows = []
    for name, n_teachers, epsilon in product(DATA, N_TEACHERS, EPSILONS):
        data = load(name)
        fitted, row = outcome(data, partial(pate, n_teachers=n_teachers), epsilon)
        rows.append(
            {
                "n_teachers": n_teachers,
                "n_queries": fitted.privacy_spent_.n_queries,
                "sigma": fitted.mechanism_.parts[1].sigma,
                **row,
            }
        )
        print(rows[-1], flush=True)
    return rows


def small():
    """Fit noisy Newton steps to few private rows."""
    rows = []
    for name, n_rows, epsilon in product(DATA, N_ROWS, EPSILONS):
        data = load(name)
        data = replace(
            data, frame_train=data.frame_train[:n_rows], y_train=data.y_train[:n_rows]
        )
        _, row = outcome(data, newton, epsilon)
        rows.append({"n_rows": n_rows, **row})
        print(rows[-1], flush=True)
    return rows


def outcome(data, learner, epsilon):
    """Return the last fit, and the warnings and scores of all seeds."""
    classes, counts = np.unique(data.y_test, return_counts=True)
    most = classes[counts.argmax()]
    accuracy, auc = [], []
    for seed in SEEDS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = learner(data, epsilon, seed)
        scores = fitted.predict_proba(data.frame_test)[:, 1]
        accuracy.append(fitted.score(data.frame_test, data.y_test))
        auc.append(roc_auc_score(data.y_test, scores))
    return fitted, {
        "data": data.name,
        "epsilon": epsilon,
        "warning": [
            str(one.message)
            for one in caught
            if issubclass(one.category, PrivacyUtilityWarning)
        ],
        "most_frequent": float(np.mean(data.y_test == most)),
        "accuracy": summary(accuracy),
        "auc": summary(auc),
    }


TABLES = {"settings": settings, "small": small}


def main():
    """Measure the named tables, or both."""
    for name in command(__doc__, TABLES).parse_args().tables:
        save("release_utility", name, TABLES[name](), seeds=[*SEEDS])

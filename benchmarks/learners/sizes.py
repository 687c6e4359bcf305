"""Learners against the number of private rows. Writes results/sizes.json.

nonlinear    500,000 rows of make_classification; half an hour of one core
adult        Adult, whose classes a line separates nearly; some minutes

Each learner's noise is set so that its epsilon for replacing one row is 1 at delta
1e-6. Finished runs are stored in ``benchmarks/work``; after an interruption, the same
command resumes. The first n private rows are used; public and evaluated rows are the
same at every size. Seeds are those of shards, learners and students; noise comes from
the operating system.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time
import warnings
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.learners.data import load
from benchmarks.learners.settings import (
    N_TEACHERS,
    default_teachers,
    dp_sgd,
    gaussian_svc,
    newton,
    not_private_boosting,
    not_private_logistic,
    own_epsilon,
)
from benchmarks.record import WORK, Runs, command, save, summaries

EPSILON = 1.0
DELTA = 1e-6
#: Numbers of private rows, the last one that of all private rows.
SIZES = {
    "nonlinear": (5_000, 16_000, 50_000, 160_000, 500_000),
    "adult": (300, 1_000, 3_000, 10_000, 32_561),
}
FEW_ROWS, MANY_ROWS = 3_000, 100_000  # ten seeds, or one seed and no DP-SGD
BOOSTING = HistGradientBoostingClassifier(max_iter=50, random_state=0)

boosting_teachers = partial(default_teachers, estimator=BOOSTING)
PRIVATE = {
    "DPNewton": newton,
    "PATE, mean scores of boosting": partial(boosting_teachers, mechanism="scores"),
    "PATE, votes of boosting": partial(boosting_teachers, mechanism="gnmax"),
    "Gaussian objective perturbation": gaussian_svc,
    "DP-SGD, linear": dp_sgd,
}


class Plurality:
    """Teachers of the votes, without noise and without a student."""

    def __init__(self, data, seed):
        order = np.random.RandomState(seed).permutation(len(data.y_train))
        self.teachers = [
            clone(BOOSTING).fit(data.frame_train[shard], data.y_train[shard])
            for shard in np.array_split(order, N_TEACHERS)
        ]

    def predict(self, X):
        """Predict the class of most teachers."""
        votes = sum(teacher.predict(X) for teacher in self.teachers)
        return (2 * votes > len(self.teachers)).astype(int)


#: Learners whose teachers take numbers only.
OF_BOOSTING = {
    "PATE, mean scores of boosting",
    "PATE, votes of boosting",
    "teachers' plurality, not private",
}
NOT_PRIVATE = {
    "teachers' plurality, not private": Plurality,
    "not private, logistic": not_private_logistic,
    "not private, boosting": not_private_boosting,
}


def rows_of(name, n_rows):
    """Return the first private rows, with rows of norm 1 for linear learners."""
    data = load(name)
    if name == "nonlinear":
        scale = StandardScaler().fit(data.frame_public).transform
        data = replace(
            data,
            X_train=of_norm_one(scale(data.frame_train)),
            X_public=of_norm_one(scale(data.frame_public)),
            X_test=of_norm_one(scale(data.frame_test)),
        )
    parts = ("X_train", "y_train", "frame_train")
    return replace(data, **{part: getattr(data, part)[:n_rows] for part in parts})


def of_norm_one(X):
    """Append a constant, which replaces an intercept, and divide rows by their norm."""
    return normalize(np.column_stack([X, np.ones(len(X))]))


def run(name, setting, seed, key):
    """Fit one learner; return the key, its accuracy and its own epsilon."""
    warnings.simplefilter("ignore")
    data = rows_of(name, setting["n_rows"])
    learner, epsilon = setting["learner"], None
    if learner in NOT_PRIVATE:
        fit = partial(NOT_PRIVATE[learner], data, seed)
    else:
        learn = partial(PRIVATE[learner], data, seed=seed, delta=DELTA)
        epsilon = own_epsilon(partial(learn, call="plan_privacy"), EPSILON)
        fit = partial(learn, epsilon)
    start = time.process_time()
    fitted = fit()
    seconds = time.process_time() - start
    on_frames = learner.startswith(("DPNewton", "PATE", "teachers"))
    X = data.frame_test if on_frames else data.X_test
    return key, {
        "accuracy": accuracy_score(data.y_test, fitted.predict(X)),
        "own_epsilon": epsilon,
        "seconds": seconds,
    }


def comparison(runs, name):
    """Return the rows of one data set: every learner at every size."""
    rows = []
    for n_rows in SIZES[name]:
        n_seeds = 10 if n_rows <= FEW_ROWS else 1 if n_rows >= MANY_ROWS else 3
        for learner in [*PRIVATE, *NOT_PRIVATE]:
            if n_rows >= MANY_ROWS and learner.startswith("DP-SGD"):
                continue
            if name == "adult" and learner in OF_BOOSTING:
                continue
            setting = {"n_rows": n_rows, "learner": learner}
            [results] = runs(SimpleNamespace(name=name), [setting], range(n_seeds))
            rows.append(setting | {"delta": DELTA} | summaries(results))
    return rows


def main():
    """Measure the named tables, or all."""
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "sizes.jsonl", run, n_jobs=1)
    for name in command(__doc__, SIZES).parse_args().tables:
        rows = comparison(runs, name)
        save("sizes", name, rows, packages=("torch", "skorch", "opacus"))

"""Figures 2 to 5 of Chaudhuri, Monteleoni and Sarwate (2011). Writes results/erm.json.

epsilon    error against epsilon, on Adult and KDDCup99 (figures 2 and 3)
size       error against the number of training rows, on KDDCup99 (figures 4 and 5,
           extended to all rows that are not evaluated)

Run one of them with ``python benchmarks/erm.py epsilon``, both without a name: half
an hour. The regularisation is the package's fixed rule. Noise comes from
the operating system.
"""

import numpy as np
from command import command
from joblib import Parallel, delayed
from learner_data import load
from record import save, summary
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sklearn_pate.learners import DPLinearSVC, DPLogisticRegression

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# The paper's figures end at 60,000.
SIZES = (2_000, 5_000, 10_000, 20_000, 40_000, 60_000, 120_000, 240_000, 440_000)
# Rows have norm 1: the models without privacy are weakly regularised.
LOSSES = {
    "logistic": (DPLogisticRegression, LogisticRegression(C=100.0, max_iter=2000)),
    "Huber SVM": (DPLinearSVC, LinearSVC(C=1.0, loss="hinge", max_iter=100_000)),
}
DELTA = 1e-6  # of "gaussian": below one in the number of rows
METHODS = ("output", "objective", "gaussian")


def errors(name, loss, method, epsilon, seeds, n_rows=None):
    """Return the test error for each seed, of a fit on `n_rows` random rows."""
    measured = Parallel(n_jobs=2)(
        delayed(_error)(name, loss, method, epsilon, seed, n_rows) for seed in seeds
    )
    print(name, loss, method, epsilon, n_rows, np.mean(measured), flush=True)
    return measured


def _error(name, loss, method, epsilon, seed, n_rows):
    data = load(name)
    order = np.random.RandomState(seed).permutation(len(data.y_train))[:n_rows]
    private, model = LOSSES[loss]
    if method is not None:
        model = private(
            method=method,
            epsilon=epsilon,
            delta=DELTA,
            data_norm=1.0,
            fit_intercept=False,
        )
    model.fit(data.X_train[order], data.y_train[order])
    return 1 - model.score(data.X_test, data.y_test)


def _row(name, loss, method, epsilon, seeds, n_rows=None):
    return {
        "data": load(name).name,
        "loss": loss,
        "method": method,
        "epsilon": epsilon,
        "n_rows": n_rows or len(load(name).y_train),
        "error": summary(errors(name, loss, method, epsilon, seeds, n_rows)),
    }


def by_epsilon(seeds):
    """Return rows of figures 2 and 3."""
    return [
        _row(name, loss, method, epsilon, seeds)
        for name in ("adult", "kddcup99")
        for loss in LOSSES
        for method, epsilon in [
            (None, None),
            *((method, epsilon) for method in METHODS for epsilon in EPSILONS),
        ]
    ]


def by_size(seeds):
    """Return rows of figures 4 and 5."""
    return [
        _row("kddcup99, all rows", loss, method, epsilon, seeds, n_rows)
        for loss in LOSSES
        for n_rows in SIZES
        for method, epsilon in [
            (None, None),
            *((method, epsilon) for method in METHODS for epsilon in (0.01, 0.05)),
        ]
    ]


# At small epsilon, repetitions differ more than methods.
TABLES = {"epsilon": (by_epsilon, range(20)), "size": (by_size, range(5))}

if __name__ == "__main__":
    for table in command(__doc__, TABLES).parse_args().tables:
        measure, seeds = TABLES[table]
        save("erm", table, measure(seeds), seeds=list(seeds))

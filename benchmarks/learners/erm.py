"""Experiments of Chaudhuri, Monteleoni and Sarwate (2011). Writes results/erm.json.

epsilon          error against epsilon, on Adult and KDDCup99 (figures 2 and 3)
size             error against the number of training rows, on KDDCup99 (figures 4 and
                 5, extended to all rows that are not evaluated)
regularisation   error against the regularisation, on Adult and KDDCup99 (tables 1 and
                 2), at epsilon 0.1
kernel           error with random features of a Gaussian kernel, compared with the
                 columns

Takes 40 minutes. The regularisation is the package's fixed rule, except in the table
regularisation. Noise comes from the operating system.
"""

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.learners.data import load
from benchmarks.record import command, save, summary
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
#: The paper's weight of half the squared norm, relative to the mean loss of a row.
REGULARISATIONS = (1e-4, 10**-3.5, 1e-3, 10**-2.5, 1e-2, 10**-1.5)
#: Gamma of the kernel, for rows of norm 1 or of 20 columns, and number of rows.
KERNELS = {
    "adult": (1.0, None),
    "kddcup99": (1.0, None),
    "nonlinear": (0.01, 60_000),
}
#: Random features by method: those of "objective" have noise in each.
N_FEATURES = {"objective": 100, "gaussian": 500}


def errors(name, loss, method, epsilon, seeds, n_rows=None, **options):
    """Return the test error for each seed, of a fit on `n_rows` random rows."""
    measured = Parallel(n_jobs=2)(
        delayed(_error)(name, loss, method, epsilon, seed, n_rows, **options)
        for seed in seeds
    )
    print(name, loss, method, epsilon, n_rows, options, np.mean(measured), flush=True)
    return measured


def _error(
    name, loss, method, epsilon, seed, n_rows, regularisation=None, n_features=None
):
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
    if regularisation is not None:
        model = clone(model).set_params(C=1 / (len(order) * regularisation))
    if n_features is not None:
        gamma, _ = KERNELS[name]
        features = RBFSampler(gamma=gamma, n_components=n_features, random_state=seed)
        model = make_pipeline(features, model)
    model.fit(data.X_train[order], data.y_train[order])
    return 1 - model.score(data.X_test, data.y_test)


def _row(name, loss, method, epsilon, seeds, n_rows=None, **options):
    return {
        "data": load(name).name,
        "loss": loss,
        "method": method,
        "epsilon": epsilon,
        "n_rows": n_rows or len(load(name).y_train),
        **options,
        "error": summary(errors(name, loss, method, epsilon, seeds, n_rows, **options)),
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


def by_regularisation(seeds):
    """Return rows of tables 1 and 2."""
    return [
        _row(name, loss, method, method and 0.1, seeds, regularisation=regularisation)
        for name in ("adult", "kddcup99")
        for loss in LOSSES
        for method in (None, "output", "objective")
        for regularisation in REGULARISATIONS
    ]


def kernel(seeds):
    """Return errors of logistic regression, with and without random features."""
    settings = [
        *((None, None, n_features) for n_features in (None, *N_FEATURES.values())),
        *((method, 1.0, n_features) for method, n_features in N_FEATURES.items()),
    ]
    return [
        _row(name, "logistic", method, epsilon, seeds, n_rows, n_features=n_features)
        for name, (_, n_rows) in KERNELS.items()
        for method, epsilon, n_features in settings
    ]


# At small epsilon, repetitions differ more than methods.
TABLES = {
    "epsilon": (by_epsilon, range(20)),
    "size": (by_size, range(5)),
    "regularisation": (by_regularisation, range(5)),
    "kernel": (kernel, range(3)),
}


def main():
    """Measure the named tables, or all."""
    for table in command(__doc__, TABLES).parse_args().tables:
        measure, seeds = TABLES[table]
        save("erm", table, measure(seeds), seeds=list(seeds))

"""Private explainable boosting (DP-EBM) of interpret-core, on rows from a file.

This script runs in an environment of its own, and imports nothing of this project::

    python -m venv .venv-ebm
    .venv-ebm/bin/python -m pip install interpret-core==0.7.8

A file holds ``X_train``, ``y_train``, ``X_test``, ``y_test`` and ``sizes``: a number of
categories for each column, 0 for a number between 0 and 1. These bounds are declared as
``privacy_bounds``, and each column as continuous or nominal, so that the library reads
neither from private rows. It does read the categories and the number of rows from them.

The library names no neighbour relation. Its noise is that of Algorithm 2 of Nori,
Caruana, Bu, Shen, Kulkarni (2021, arXiv 2106.09680) for sensitivity 1 of each histogram
and of each sum of residuals, which holds if one row is added or removed. Replacing a
row changes two cells of a histogram by one, sqrt(2) in L2, and a sum of residuals by
2 at most. So the Gaussian parameters mu of its two parts are multiplied by sqrt(2) and
2, and its two epsilons are added as in the library. Noise is set so that this sum is
the given epsilon. The noise is seeded, which is acceptable in a benchmark only.
"""

import argparse
import importlib.metadata
import json
import math
import time
from pathlib import Path

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier
from interpret.utils._privacy import calc_gdp_noise_multi, delta_eps_mu
from scipy.optimize import brentq
from sklearn.metrics import accuracy_score, roc_auc_score

PACKAGES = ("interpret-core", "scikit-learn", "numpy", "scipy")
DELTA = 1e-5
FOR_BINS = 0.1  # share of epsilon and delta, the library's default


def replace_one_epsilon(epsilon):
    """Add up the epsilons of bins and of boosting, for replacing one row."""
    total = 0.0
    for share, factor in ((FOR_BINS, math.sqrt(2)), (1 - FOR_BINS, 2)):
        mu = factor / calc_gdp_noise_multi(1, share * epsilon, share * DELTA)
        total += brentq(lambda e, m=mu, d=share * DELTA: delta_eps_mu(e, m) - d, 0, 99)
    return total


def own_epsilon(target):
    """Find the library's epsilon for an epsilon of replacing one row."""
    return brentq(lambda e: replace_one_epsilon(e) - target, target / 9, target)


def measure(rows, epsilon, seed):
    """Fit one model; return its scores and time."""
    continuous = rows["sizes"] == 0
    model = DPExplainableBoostingClassifier(
        feature_types=["continuous" if one else "nominal" for one in continuous],
        privacy_bounds={int(i): (0.0, 1.0) for i in np.flatnonzero(continuous)},
        bin_budget_frac=FOR_BINS,
        epsilon=epsilon,
        delta=DELTA,
        n_jobs=1,
        random_state=seed,
    )
    start = time.process_time()
    model.fit(rows["X_train"], rows["y_train"])
    seconds = time.process_time() - start
    X, y = rows["X_test"], rows["y_test"]
    return {
        "accuracy": accuracy_score(y, model.predict(X)),
        "roc_auc": roc_auc_score(y, model.predict_proba(X)[:, 1]),
        "seconds": seconds,
    }


def main():
    """Run the requested fits, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--seed", nargs="+", type=int, default=[0])
    given = parser.parse_args()
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    with np.load(given.file) as file:
        rows = {name: file[name] for name in file.files}
    epsilon = own_epsilon(given.epsilon)
    facts = {
        "epsilon": epsilon,
        "delta": DELTA,
        "replace_one_epsilon": replace_one_epsilon(epsilon),
        "versions": versions,
    }
    for seed in given.seed:
        line = {"seed": seed, **measure(rows, epsilon, seed), **facts}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

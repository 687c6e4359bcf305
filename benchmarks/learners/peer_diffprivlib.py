"""Private logistic regression of diffprivlib, on rows from a file.

diffprivlib 0.6.6 needs scikit-learn below 1.8, so this script runs in a separate
environment, and imports nothing of this project::

    python -m venv .venv-diffprivlib
    .venv-diffprivlib/bin/python -m pip install diffprivlib==0.6.6 "scikit-learn<1.8"

A file holds ``X_train``, ``y_train``, ``X_test`` and ``y_test``, with rows of L2 norm
at most 1. As in scikit-learn, the mean loss is regularised by 1 / (C n_rows).

The library minimises a loss with noise in it (Chaudhuri, Monteleoni and Sarwate 2011,
theorem 9). By default it fits an intercept too. It counts that as a feature 1, with
sqrt(data_norm^2 + 1) for the norm of a row, but leaves it without regularisation, and
bounds the curvature of the loss by this norm, while the theorem has its square. So the
theorem does not apply; and unless epsilon is so small that the library regularises
further, the densities of the models of neighbouring data sets have no bounded ratio.
With ``--no-intercept`` the theorem applies; only this epsilon is comparable.

The theorem is about the exact minimum, hence the small tolerance. With several classes
there is a fit for each, at an equal share of epsilon. The label set is read from the
labels. Noise is seeded, which is acceptable in a benchmark only.
"""

import argparse
import importlib.metadata
import itertools
import json
import time
import warnings
from pathlib import Path

import numpy as np
from diffprivlib.models import LogisticRegression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, roc_auc_score

PACKAGES = ("diffprivlib", "scikit-learn", "numpy", "scipy")


def measure(rows, epsilon, seed, C, fit_intercept):
    """Fit one model; return its scores, convergence and time."""
    model = LogisticRegression(
        epsilon=epsilon,
        data_norm=1.0,
        C=C,
        fit_intercept=fit_intercept,
        tol=1e-8,
        max_iter=1000,
        random_state=seed,
    )
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(rows["X_train"], rows["y_train"])
    seconds = time.perf_counter() - start
    X, y = rows["X_test"], rows["y_test"]
    roc_auc = None
    if len(model.classes_) == 2:
        roc_auc = float(roc_auc_score(y, model.decision_function(X)))
    return {
        "accuracy": float(accuracy_score(y, model.predict(X))),
        "roc_auc": roc_auc,
        "converged": not any(
            issubclass(one.category, ConvergenceWarning) for one in caught
        ),
        "seconds": seconds,
    }


def main():
    """Run the requested fits, and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--epsilon", nargs="+", type=float, required=True)
    parser.add_argument("--seed", nargs="+", type=int, default=[0])
    parser.add_argument("--C", nargs="+", type=float, default=[1.0])
    parser.add_argument(
        "--intercept", action=argparse.BooleanOptionalAction, default=True
    )
    given = parser.parse_args()
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    for path in given.files:
        with np.load(path) as file:
            rows = {name: file[name] for name in file.files}
        settings = itertools.product(given.epsilon, given.C, given.seed)
        for epsilon, C, seed in settings:
            setting = {"epsilon": epsilon, "seed": seed, "C": C}
            setting["fit_intercept"] = given.intercept
            line = {"data": path.stem, **setting, **measure(rows, **setting)}
            print(json.dumps(line | {"versions": versions}), flush=True)


if __name__ == "__main__":
    main()

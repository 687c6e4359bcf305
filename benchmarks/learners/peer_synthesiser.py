"""Boosting on synthetic rows of AIM, from dpmm, on rows from a file.

This script runs in an environment of its own, and imports nothing of this project::

    python -m venv .venv-synthesiser
    .venv-synthesiser/bin/python -m pip install dpmm==0.1.9

A file holds ``X_train``, ``y_train``, ``X_test``, ``y_test`` and ``sizes``: a number of
categories for each column, 0 for a number between 0 and 1, which is cut into 16 equal
bins. So the domain is declared, and the library's own preprocessing is not needed: it
would read categories and constant columns from private rows.

AIM (McKenna, Mullins, Sheldon, Miklau 2022) measures marginals of at most two columns
with Gaussian noise, and draws as many rows as there are private ones, whose number is
taken as public; the rows train ``HistGradientBoostingClassifier``. With the default of
16 rounds for each column and 1000 iterations for each, a fit takes hours. Here AIM has
30 rounds of 100 iterations, and a model of one mebibyte at most.

The library names no neighbour relation. Its noise is for sensitivity 1, which holds if
one row is added or removed. Replacing a row changes two cells of a marginal by one,
sqrt(2) in L2, and the scores that choose a marginal by 2. Of the budget rho of zero-
concentrated privacy, at most a tenth is for choices, so that rho is multiplied by at
most 0.9 * 2 + 0.1 * 4. Noise is set so that this costs at most the given epsilon. Rows
are drawn with a seed; the noise is not seeded.
"""

import argparse
import importlib.metadata
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.models.base.mechanisms.cdp2adp import cdp_eps, cdp_rho
from dpmm.pipelines import AIMPipeline
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, roc_auc_score

PACKAGES = ("dpmm", "opendp", "scikit-learn", "numpy", "scipy")
DELTA = 1e-5
N_BINS = 16
REPLACE_ONE = 0.9 * 2 + 0.1 * 4


def binned(X, sizes):
    """Return cells of the columns."""
    scaled = sizes == 0
    cells = X.copy()
    cells[:, scaled] = np.minimum(N_BINS * X[:, scaled], N_BINS - 1)
    return cells.astype(int)


def measure(rows, epsilon, seed):
    """Fit one model; return its scores and time."""
    X, X_test = (binned(rows[name], rows["sizes"]) for name in ("X_train", "X_test"))
    columns = [f"column {i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=columns).assign(label=rows["y_train"])
    sizes = np.where(rows["sizes"] == 0, N_BINS, rows["sizes"])
    pipeline = AIMPipeline(
        epsilon=epsilon,
        delta=DELTA,
        max_model_size=1,
        n_jobs=1,
        gen_kwargs={"n_iters": 100, "rounds": 30},
        disable_processing=True,
    )
    start = time.process_time()
    domain = dict(zip(frame, [*map(int, sizes), 2], strict=True))
    pipeline.fit(frame, domain=domain, random_state=seed)
    synthetic = pipeline.generate(n_records=len(frame), random_state=seed)
    model = HistGradientBoostingClassifier(random_state=seed)
    model.fit(synthetic[columns].to_numpy(), synthetic["label"].to_numpy())
    seconds = time.process_time() - start
    y = rows["y_test"]
    return {
        "accuracy": accuracy_score(y, model.predict(X_test)),
        "roc_auc": roc_auc_score(y, model.predict_proba(X_test)[:, 1]),
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
    epsilon = cdp_eps(cdp_rho(given.epsilon, DELTA) / REPLACE_ONE, DELTA)
    facts = {
        "epsilon": epsilon,
        "delta": DELTA,
        "replace_one_epsilon": given.epsilon,
        "versions": versions,
    }
    for seed in given.seed:
        line = {"seed": seed, **measure(rows, epsilon, seed), **facts}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

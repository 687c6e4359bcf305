"""Survival models without privacy, and rows of scikit-survival.

It runs in an environment of its own, and imports nothing of this project::

    python -m venv .venv-survival
    .venv-survival/bin/python -m pip install scikit-survival==0.28.0

``--write`` writes the rows of flchain, 7,874 persons whose free light chains were
measured (Dispenzieri and others 2012), without the cause of death. Else, a file holds
``X_train``, ``X_test``, events and times. Numbers are standardised.
"""

import argparse
import importlib.metadata
import json

import numpy as np
import pandas as pd
from sksurv.datasets import load_flchain
from sksurv.ensemble import GradientBoostingSurvivalAnalysis
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import concordance_index_censored
from sksurv.nonparametric import kaplan_meier_estimator
from sksurv.util import Surv

PACKAGES = ("scikit-survival", "scikit-learn", "numpy")
MODELS = {
    "Cox": CoxPHSurvivalAnalysis(alpha=1e-3),
    "boosting": GradientBoostingSurvivalAnalysis(random_state=0),
}


def write(path):
    """Write rows of numbers, events and times."""
    frame, y = load_flchain()
    frame = frame.drop(columns="chapter")
    frame = frame.assign(
        sex=frame["sex"] == "M",
        mgus=frame["mgus"] == "yes",
    ).astype(float)
    np.savez(
        path,
        X=frame.to_numpy(),
        columns=np.array(frame.columns, dtype=str),
        event=y["death"],
        time=y["futime"],
    )


def main():
    """Write rows, or print concordance of a model and survival of everybody."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--model", choices=[*MODELS])
    parser.add_argument("--times", nargs="+", type=float, default=[])
    parser.add_argument("--seed", nargs="+", type=int, default=[0])
    given = parser.parse_args()
    if given.write:
        write(given.rows)
        return
    rows = np.load(given.rows)
    train = pd.DataFrame(rows["X_train"])
    middle, mean, scale = train.median(), train.mean(), train.std()
    X, X_test = (
        ((pd.DataFrame(rows[name]).fillna(middle) - mean) / scale).to_numpy()
        for name in ("X_train", "X_test")
    )
    y = Surv.from_arrays(rows["event_train"], rows["time_train"])
    evaluated = rows["event_test"], rows["time_test"]
    times, survival = kaplan_meier_estimator(*evaluated)
    risk = MODELS[given.model].fit(X, y).predict(X_test)
    line = {
        "concordance": concordance_index_censored(*evaluated, risk)[0],
        "survival": np.interp(given.times, times, survival).tolist(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()

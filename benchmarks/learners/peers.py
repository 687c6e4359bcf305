"""Learners of other packages, each run by the Python of its own environment.

A learner is measured if its environment variable is the path of that Python; the
scripts ``peer_*.py`` tell how to create the environments.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.learners.data import adult_columns
from benchmarks.learners.settings import PRIVATE
from benchmarks.record import summary

DIFFPRIVLIB = "diffprivlib, logistic"
#: Learners on the columns of Adult: environment variable and script.
OF_COLUMNS = {
    "DP-EBM, interpret-core": ("DP_EBM_PYTHON", "peer_dp_ebm.py"),
    "AIM, boosting on its rows": ("SYNTHESISER_PYTHON", "peer_synthesiser.py"),
}


def diffprivlib(data, epsilon, seeds):
    """Measure diffprivlib, on the same rows at the same regularisation."""
    arrays = {
        name: getattr(data, name) for name in ("X_train", "y_train", "X_test", "y_test")
    }
    metric = getattr(data, "metric", "accuracy")
    ours = PRIVATE["objective perturbation"](data, epsilon, 0)
    # Its theorem covers no intercept.
    options = ["--no-intercept", "--epsilon", epsilon, "--C", ours.C_]
    fits = peer_fits(
        "DIFFPRIVLIB_PYTHON", "peer_diffprivlib.py", arrays, options, seeds
    )
    facts = {"epsilon": epsilon, "delta": 0.0, "replace_one_epsilon": epsilon}
    return _row(DIFFPRIVLIB, epsilon, "row", fits, facts, metric)


def of_columns(learner, epsilon, seeds):
    """Measure a learner on the columns of Adult, by the epsilon of replacing a row."""
    fits = peer_fits(
        *OF_COLUMNS[learner], adult_columns(), ["--epsilon", epsilon], seeds
    )
    names = ("epsilon", "delta", "replace_one_epsilon")
    facts = {name: fits[0][name] for name in names if fits}
    return _row(learner, epsilon, "row-add-remove", fits, facts, "accuracy")


def peer_fits(variable, script, arrays, options, seeds):
    """Run a script on rows; return what it prints for each fit, nothing without it."""
    python = os.environ.get(variable)
    if python is None:
        print(f"{variable} is not set: {script} is left out")
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.npz")
        np.savez(path, **arrays)
        command = [python, Path(__file__).with_name(script), path, *options]
        command += ["--seed", *seeds]
        lines = subprocess.run(
            [str(part) for part in command], check=True, capture_output=True, text=True
        ).stdout.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def _row(learner, target, unit, fits, facts, metric):
    """Return the row of one learner in a list, which is empty without fits."""
    if not fits:
        return []
    names = {"score": metric, "auc": "roc_auc", "cpu_seconds": "seconds"}
    return [
        {
            "learner": learner,
            "target": target,
            "unit": unit,
            **facts,
            **{
                ours: summary([fit[theirs] for fit in fits])
                for ours, theirs in names.items()
                if fits[0][theirs] is not None
            },
            "versions": fits[0]["versions"],
        }
    ]

"""Private learners, side by side. Writes results/private_learners.json.

adult, kddcup99, diabetes, mnist    accuracy against epsilon, all learners

Run some of them with ``python benchmarks/private_learners.py adult``, all of them
without a name: more than an hour on two cores. ``--learners Private-kNN`` measures
these again and keeps the rows of the others. Finished runs are kept in
``benchmarks/work``; after an interruption, the same command goes on. Seeds are those of
shards, teachers and students; noise is drawn from the operating system.

diffprivlib's logistic regression is measured too, where ``DIFFPRIVLIB_PYTHON`` names
the Python of its environment, see ``peer_diffprivlib.py``.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from learner_data import load
from learners import DELTA, NOT_PRIVATE, PRIVATE
from record import environment, save, summary
from record import load as load_results
from runs import Runs

from sklearn_pate.accounting.composition._replace_one import add_remove_to_replace_one

WORK = Path(__file__).parent / "work"
SEEDS = range(5)
# Fits that take less than a second are repeated, for the noise of a draw.
QUICK = range(25)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
PEER = "diffprivlib, logistic"
PACKAGES = ("torch", "skorch", "opacus")
#: What result files call the unit, by unit and relation of a statement.
UNITS = {
    ("row", "replace-one"): "row",
    ("party", "replace-one"): "party",
    ("group", "add-remove-or-change"): "group",
    ("row", "add-remove"): "row-add-remove",
    ("group", "add-remove"): "group-add-remove",
}


def run(name, setting, seed, key):
    """Fit one learner; return how good it is, and under which statement."""
    warnings.simplefilter("ignore")
    start = time.process_time()
    score, spent = RUNS[name](setting, seed)
    return key, {
        "score": float(score),
        "cpu_seconds": time.process_time() - start,
        **({} if spent is None else stated(spent)),
    }


def run_rows(name, setting, seed):
    """Fit one learner on rows; return its score, and its statement."""
    data = load(name)
    learner, epsilon = setting["learner"], setting["epsilon"]
    if epsilon is None:
        return data.score(predicted(NOT_PRIVATE[learner](data, seed), data)), None
    fitted = PRIVATE[learner](data, epsilon, seed)
    return data.score(predicted(fitted, data)), fitted.privacy_spent_


def run_images(setting, seed):
    """Fit one learner on MNIST; return its accuracy, and its statement."""
    from image_learners import run_mnist  # takes long to import
    from petdl_teachers import load_images

    return run_mnist(load_images("mnist"), setting, seed)


RUNS = {name: partial(run_rows, name) for name in ("adult", "kddcup99", "diabetes")} | {
    "mnist": run_images
}


def stated(spent):
    """Return the facts of a statement that a table shows."""
    epsilon = spent.epsilon
    if spent.relation != "replace-one":
        epsilon = add_remove_to_replace_one(spent.curve).quiet_epsilon(DELTA)
    return {
        "epsilon": spent.epsilon,
        "delta": spent.delta,
        "unit": UNITS[spent.unit, spent.relation],
        "replace_one_epsilon": epsilon,
    }


def predicted(fitted, data):
    """Return what a fitted classifier says about the evaluated rows."""
    takes_frames = hasattr(fitted, "feature_names_in_")
    X = data.frame_test if takes_frames else data.X_test
    if data.metric == "accuracy":
        return fitted.predict(X)
    if hasattr(fitted, "decision_function"):
        return fitted.decision_function(X)
    return fitted.predict_proba(X)[:, 1]


def comparison(name, runs, kept):
    """Return the rows of one data set: every learner at every epsilon.

    Rows in `kept`, by learner and target epsilon, are not measured again.
    """
    # Boosting on raw pixels is no ceiling of these learners.
    ceilings = [one for one in NOT_PRIVATE if name != "mnist" or "boosting" not in one]
    settings = [
        *({"learner": learner, "epsilon": None} for learner in ceilings),
        *(
            {"learner": learner, "epsilon": epsilon}
            for learner in PRIVATE
            for epsilon in EPSILONS
        ),
    ]
    many = QUICK if name in ("adult", "kddcup99") else SEEDS
    rows = []
    for one in settings:
        if (one["learner"], one["epsilon"]) in kept:
            rows.append(kept[one["learner"], one["epsilon"]])
            continue
        seeds = many if "perturbation" in one["learner"] else SEEDS
        [results] = runs(SimpleNamespace(name=name), [one], seeds)
        rows.append(_row(one, results))
    of_peer = [row for (learner, _), row in kept.items() if learner == PEER]
    return rows + (of_peer or peer(rows_of(name), many))


def rows_of(name):
    """Return rows of norm 1 at most, private and evaluated."""
    if name != "mnist":
        return load(name)
    from image_learners import Rows
    from petdl_teachers import load_images

    return Rows(load_images("mnist"), SEEDS[0])


def _row(setting, results):
    facts = ("epsilon", "delta", "unit", "replace_one_epsilon")
    return {
        "learner": setting["learner"],
        "target": setting["epsilon"],
        **{fact: results[0].get(fact) for fact in facts},
        **{
            name: summary([one[name] for one in results])
            for name in ("score", "cpu_seconds")
            if name in results[0]
        },
    }


def peer(data, seeds):
    """Return the rows of diffprivlib, on the same rows at the same regularisation."""
    python = os.environ.get("DIFFPRIVLIB_PYTHON")
    if python is None:
        print("DIFFPRIVLIB_PYTHON is not set: diffprivlib is left out")
        return []
    metric = getattr(data, "metric", "accuracy")

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.npz")
        np.savez(
            path,
            X_train=data.X_train,
            y_train=data.y_train,
            X_test=data.X_test,
            y_test=data.y_test,
        )
        for epsilon in EPSILONS:
            ours = PRIVATE["objective perturbation, logistic"](data, epsilon, 0)
            # Its theorem covers no intercept.
            command = [python, "benchmarks/peer_diffprivlib.py", path, "--no-intercept"]
            command += ["--epsilon", epsilon, "--C", ours.C_, "--seed", *seeds]
            lines = subprocess.run(
                [str(part) for part in command],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.splitlines()
            fits = [json.loads(line) for line in lines]
            rows.append(
                {
                    "learner": PEER,
                    "target": epsilon,
                    "epsilon": epsilon,
                    "delta": 0.0,
                    "unit": "row",
                    "replace_one_epsilon": epsilon,
                    "score": summary([fit[metric] for fit in fits]),
                    "cpu_seconds": summary([fit["seconds"] for fit in fits]),
                    "versions": fits[0]["versions"],
                }
            )
    return rows


def kept_rows(table, learners):
    """Return the rows of the result file that are not measured again."""
    if learners is None:
        return {}
    before = load_results("private_learners")[table]
    if before["versions"] != environment(PACKAGES)["versions"]:
        raise SystemExit(f"{table} was measured with other versions; measure it all.")
    return {
        (row["learner"], row["target"]): row
        for row in before["rows"]
        if row["learner"] not in learners
    }


TABLES = {name: partial(comparison, name) for name in RUNS}


def main():
    """Run the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], metavar="table")
    parser.add_argument("--learners", nargs="+", choices=[*PRIVATE, *NOT_PRIVATE])
    given = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "private-learners.jsonl", run, lambda *_: None)
    for table in given.tables or TABLES:
        rows = TABLES[table](runs, kept_rows(table, given.learners))
        save(
            "private_learners",
            {table: rows},
            packages=PACKAGES,
            seeds=list(SEEDS),
        )


if __name__ == "__main__":
    main()

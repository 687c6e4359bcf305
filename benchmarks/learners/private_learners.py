"""Comparison of private learners. Writes results/private_learners.json.

adult, kddcup99, diabetes, mnist    accuracy against epsilon, all learners
replace-one-adult, -kddcup99, -diabetes
                                    the same at one epsilon for replacing one row

Takes more than an hour on two cores. ``--learners Private-kNN`` measures these again
and keeps the rows of the others. Finished runs are stored in ``benchmarks/work``; after
an interruption, the same command resumes. Seeds are those of shards, teachers and
students; noise comes from the operating system.

Learners of other packages are measured too, if ``DIFFPRIVLIB_PYTHON``,
``DP_EBM_PYTHON`` or ``SYNTHESISER_PYTHON`` is the path of the Python of their
environment, see ``peers.py``.
"""

import time
import warnings
from functools import partial
from types import SimpleNamespace

from sklearn.metrics import accuracy_score, roc_auc_score

from benchmarks.learners import peers
from benchmarks.learners.data import load
from benchmarks.learners.settings import (
    NOT_PRIVATE,
    PRIVATE,
    newton,
    own_epsilon,
    replace_one_epsilon,
)
from benchmarks.record import WORK, Runs, command, environment, save, summary
from benchmarks.record import load as load_results

SEEDS = range(5)
# Fits that take less than a second have more repetitions.
QUICK = range(25)
EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
WITH_NEWTON = {"DPNewton": newton} | PRIVATE
#: Epsilons for replacing one row or patient, and seeds.
REPLACE_ONE = {
    "adult": ((0.5, 1.0, 2.0), range(3)),
    "kddcup99": ((1.0,), range(3)),
    "diabetes": ((1.0,), range(1)),
}
PACKAGES = ("torch", "skorch", "opacus")
#: Names of result files for the unit and relation of a statement.
UNITS = {
    ("row", "replace-one"): "row",
    ("party", "replace-one"): "party",
    ("group", "add-remove-or-change"): "group",
    ("row", "add-remove"): "row-add-remove",
    ("group", "add-remove"): "group-add-remove",
}


def run(name, setting, seed, key):
    """Fit one learner; return the key, its score and its statement."""
    warnings.simplefilter("ignore")
    start = time.process_time()
    scores, spent = RUNS[name](setting, seed)
    return key, {
        **scores,
        "cpu_seconds": time.process_time() - start,
        **({} if spent is None else stated(spent)),
    }


def run_rows(name, setting, seed):
    """Fit one learner on rows; return its scores, and its statement."""
    data = load(name)
    learner, epsilon = setting["learner"], setting["epsilon"]
    if epsilon is None:
        return scored(NOT_PRIVATE[learner](data, seed), data), None
    fitted = WITH_NEWTON[learner](data, epsilon, seed)
    return scored(fitted, data), fitted.privacy_spent_


def run_images(setting, seed):
    """Fit one learner on MNIST; return its accuracy, and its statement."""
    from benchmarks.learners.mnist import run_mnist  # slow to import
    from benchmarks.petdl.teachers import load_images

    accuracy, spent = run_mnist(load_images("mnist"), setting, seed)
    return {"score": accuracy}, spent


RUNS = {name: partial(run_rows, name) for name in ("adult", "kddcup99", "diabetes")} | {
    "mnist": run_images
}


def stated(spent):
    """Return the facts of a statement that a table shows."""
    return {
        "epsilon": spent.epsilon,
        "delta": spent.delta,
        "unit": UNITS[spent.unit, spent.relation],
        "replace_one_epsilon": replace_one_epsilon(spent),
    }


def scored(fitted, data):
    """Score a learner on the evaluated rows: the metric of the data, and the AUC."""
    takes_frames = hasattr(fitted, "feature_names_in_")
    X = data.frame_test if takes_frames else data.X_test
    if hasattr(fitted, "decision_function"):
        ranking = fitted.decision_function(X)
    else:
        ranking = fitted.predict_proba(X)[:, 1]
    auc = roc_auc_score(data.y_test, ranking)
    if data.metric == "roc_auc":
        return {"score": auc, "auc": auc}
    return {"score": accuracy_score(data.y_test, fitted.predict(X)), "auc": auc}


def comparison(name, runs, kept):
    """Return the rows of one data set: every learner at every epsilon.

    Rows in `kept`, by learner and target epsilon, are not measured again.
    """
    # Boosting on raw pixels is no ceiling of these learners.
    ceilings = [one for one in NOT_PRIVATE if name != "mnist" or "boosting" not in one]
    measure = partial(measured, name, runs, kept, seeds=SEEDS)
    rows = [measure(learner, None) for learner in ceilings]
    rows += [measure(learner, epsilon) for learner in PRIVATE for epsilon in EPSILONS]
    return rows + of_diffprivlib(name, kept, EPSILONS)


def at_replace_one(name, runs, kept):
    """Return the rows of one data set, at epsilons for replacing one row or patient."""
    epsilons, seeds = REPLACE_ONE[name]
    measure = partial(measured, name, runs, kept, seeds=seeds)
    rows = [measure(learner, None) for learner in NOT_PRIVATE]
    rows += [
        measure(learner, epsilon, replace_one=True)
        for learner in WITH_NEWTON
        for epsilon in epsilons
    ]
    rows += of_diffprivlib(name, kept, epsilons)
    return rows + (of_columns(kept) if name == "adult" else [])


def measured(name, runs, kept, learner, target, *, seeds, replace_one=False):
    """Return the row of one learner, measured unless it is kept."""
    if (learner, target) in kept:
        return kept[learner, target]
    epsilon = target
    if replace_one:
        fit = partial(WITH_NEWTON[learner], load(name), seed=0)
        epsilon = own_epsilon(partial(fit, call="plan_privacy"), target)
    quick = name in ("adult", "kddcup99") and "perturbation" in learner
    setting = {"learner": learner, "epsilon": epsilon}
    [results] = runs(SimpleNamespace(name=name), [setting], QUICK if quick else seeds)
    return _row(learner, target, results)


def of_columns(kept):
    """Return the rows of learners on the columns of Adult, measured unless kept."""
    epsilons, seeds = REPLACE_ONE["adult"]
    rows = []
    for learner in peers.OF_COLUMNS:
        for epsilon in epsilons:
            if (learner, epsilon) in kept:
                rows.append(kept[learner, epsilon])
            else:
                rows += peers.of_columns(learner, epsilon, seeds)
    return rows


def of_diffprivlib(name, kept, epsilons):
    """Return the rows of diffprivlib, measured unless they are kept."""
    seeds = QUICK if name in ("adult", "kddcup99") else SEEDS
    rows = []
    for epsilon in epsilons:
        if (peers.DIFFPRIVLIB, epsilon) in kept:
            rows.append(kept[peers.DIFFPRIVLIB, epsilon])
        else:
            rows += peers.diffprivlib(rows_of(name), epsilon, seeds)
    return rows


def rows_of(name):
    """Return rows of norm 1 at most, private and evaluated."""
    if name != "mnist":
        return load(name)
    from benchmarks.learners.mnist import Rows
    from benchmarks.petdl.teachers import load_images

    return Rows(load_images("mnist"), SEEDS[0])


def _row(learner, target, results):
    facts = ("epsilon", "delta", "unit", "replace_one_epsilon")
    return {
        "learner": learner,
        "target": target,
        **{fact: results[0].get(fact) for fact in facts},
        **{
            name: summary([one[name] for one in results])
            for name in ("score", "auc", "cpu_seconds")
            if name in results[0]
        },
    }


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


TABLES = {name: (partial(comparison, name), SEEDS) for name in RUNS} | {
    f"replace-one-{name}": (partial(at_replace_one, name), seeds)
    for name, (_, seeds) in REPLACE_ONE.items()
}


def main():
    """Measure the named tables, or all."""
    parser = command(__doc__, TABLES)
    names = [*WITH_NEWTON, *NOT_PRIVATE, peers.DIFFPRIVLIB, *peers.OF_COLUMNS]
    parser.add_argument("--learners", nargs="+", choices=names)
    parser.add_argument("--jobs", type=int, default=2, help="fits at a time")
    given = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    runs = Runs(WORK / "private-learners.jsonl", run, n_jobs=given.jobs)
    for table in given.tables:
        measure, seeds = TABLES[table]
        rows = measure(runs, kept_rows(table, given.learners))
        save(
            "private_learners",
            table,
            rows,
            packages=PACKAGES,
            seeds=list(seeds),
        )

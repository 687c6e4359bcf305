"""Noisy Newton steps and default teachers on tables. Writes results/defaults.json.

adult, kddcup99, nonlinear, diabetes    accuracy and AUC against epsilon
time                                    seconds of the release, and of the poll

Run some of them with ``python benchmarks/defaults.py adult``, all of them without a
name: more than an hour. A table is written after each fit, so that an interrupted run
has fewer seeds. Seeds are those of shards, learners and students; the noise is not
seeded. Times are processor times of one core; votes of teachers are stored, so that
only times of DPNewton are comparable.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time
import warnings
from functools import partial

import numpy as np
from command import command
from learner_data import load
from learners import (
    N_TEACHERS,
    default_teachers,
    newton,
    not_private_logistic,
    objective_logistic,
    pate,
)
from record import save, summary
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score

from sklearn_pate._teachers._forms import ScoreForm
from sklearn_pate._teachers._shards import shard_rows
from sklearn_pate._teachers._training import collect
from sklearn_pate._votes._sums import TeacherScores
from sklearn_pate.mechanisms import MeanScores
from sklearn_pate.students import TableRepresentation
from sklearn_pate.students._basis import ScoreBasis

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
SEEDS = range(5)
MORE_SEEDS = range(3)  # of the learners beside DPNewton
DELTA = 1e-6  # for 500,000 rows

LEARNERS = {
    "objective perturbation": objective_logistic,
    "DPNewton": newton,
    "PATE, mechanism auto": default_teachers,
    "PATE, votes": partial(default_teachers, mechanism="gnmax"),
    "PATE, votes, hand-picked": pate,
}


def measured(data, learner, epsilon, seed):
    """Fit one learner, and score it on the evaluated rows."""
    arguments = (data, seed) if epsilon is None else (data, epsilon, seed)
    fitted, seconds = timed(learner, *arguments)
    X = data.frame_test if hasattr(fitted, "feature_names_in_") else data.X_test
    if hasattr(fitted, "decision_function"):
        scores = fitted.decision_function(X)
    else:
        scores = fitted.predict_proba(X)[:, 1]
    has_mechanism = hasattr(fitted, "mechanism_")
    return {
        "mechanism": type(fitted.mechanism_).__name__ if has_mechanism else None,
        "accuracy": accuracy_score(data.y_test, fitted.predict(X)),
        "auc": roc_auc_score(data.y_test, scores),
        "seconds": seconds,
    }


def comparison(name, **parameters):
    """Measure all learners at every epsilon, seed by seed; `parameters` of DPNewton."""
    data = load(name)
    learners = LEARNERS if name != "nonlinear" else {"DPNewton": newton}
    settings = {("not private, logistic", None): not_private_logistic} | {
        (label, epsilon): partial(
            learner, **(parameters if label == "DPNewton" else {})
        )
        for label, learner in learners.items()
        for epsilon in EPSILONS
    }
    results = {}
    for seed in SEEDS:
        for (label, epsilon), learner in settings.items():
            if label != "DPNewton" and seed not in MORE_SEEDS:
                continue
            result = measured(data, learner, epsilon, seed)
            results.setdefault((label, epsilon), []).append(result)
            print(data.name, label, epsilon, seed, result, flush=True)
            rows = [_row(data.name, *one, found) for one, found in results.items()]
            save("defaults", name, rows)


def _row(name, label, epsilon, results):
    return {
        "data": name,
        "learner": label,
        "epsilon": epsilon,
        "mechanism": results[0]["mechanism"],
        "n_seeds": len(results),
        **{
            score: summary([one[score] for one in results])
            for score in ("accuracy", "auc", "seconds")
        },
    }


def times():
    """Measure the parts of a release of mean scores, and of the poll before it.

    On Adult, with 5,000 public rows and all coordinates, whatever the noise allows.
    """
    data = load("adult")
    representation = TableRepresentation().fit(data.frame_public)
    X_public = representation.transform(data.frame_public)
    codes = data.y_train.astype(np.intp)
    shards = shard_rows(len(codes), N_TEACHERS, 0)
    mechanism = MeanScores().prepared(epsilon=1.0)
    rows = []
    for n_coordinates in (400, 500):
        basis, of_basis = timed(ScoreBasis(n_coordinates, True, 0).fit, X_public)
        form = ScoreForm(2, basis.transform(X_public))
        found = partial(TeacherScores, shape=(basis.n_coordinates_, 1))
        (scores, _), of_poll = timed(
            collect,
            LogisticRegression(C=10, max_iter=1000),
            data.frame_train,
            codes,
            shards,
            X_public,
            form=form,
            aggregate=found,
            seeds=range(N_TEACHERS),
            representation=representation,
        )
        _, of_release = timed(mechanism.estimate, scores, [basis.n_coordinates_] * 2)
        rows.append(
            {
                "n_coordinates": basis.n_coordinates_,
                "n_public": len(X_public),
                "n_teachers": N_TEACHERS,
                "basis": of_basis,
                "poll": of_poll,
                "release": of_release,
                "kibibytes": 8 * N_TEACHERS * basis.n_coordinates_ / 1024,
            }
        )
        print(rows[-1], flush=True)
    save("defaults", "time", rows)


def timed(function, *arguments, **parameters):
    """Call a function; return its result, and the processor time."""
    start = time.process_time()
    result = function(*arguments, **parameters)
    return result, time.process_time() - start


TABLES = {
    "adult": partial(comparison, "adult"),
    "kddcup99": partial(comparison, "kddcup99"),
    "nonlinear": partial(comparison, "nonlinear", delta=DELTA),
    "diabetes": partial(comparison, "diabetes"),
    "time": times,
}


def main():
    """Measure the named tables, or all."""
    warnings.simplefilter("ignore")
    for name in command(__doc__, TABLES).parse_args().tables:
        TABLES[name]()


if __name__ == "__main__":
    main()

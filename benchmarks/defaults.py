"""PATE by its defaults on Adult and KDDCup99. Writes results/defaults.json.

adult, kddcup99    accuracy and AUC at epsilon 1
time               seconds of the release, and of the poll

Run some of them with ``python benchmarks/defaults.py adult``, all of them without a
name. A table is written after each fit, so that an interrupted run has fewer seeds.
Seeds are those of shards, learners and students; the noise is not seeded. Times are
processor times of one core.
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
from learners import N_TEACHERS, default_teachers
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

EPSILON = 1.0
SEEDS = range(3)

LEARNERS = {
    "PATE, mechanism auto": default_teachers,
    "PATE, votes": partial(default_teachers, mechanism="gnmax"),
}


def measured(data, learner, seed):
    """Fit one learner, and score it on the evaluated rows."""
    fitted, seconds = timed(learner, data, EPSILON, seed)
    scores = fitted.predict_proba(data.frame_test)[:, 1]
    return {
        "mechanism": type(fitted.mechanism_).__name__,
        "accuracy": accuracy_score(data.y_test, fitted.predict(data.frame_test)),
        "auc": roc_auc_score(data.y_test, scores),
        "seconds": seconds,
    }


def comparison(name):
    """Measure all learners, seed by seed."""
    data = load(name)
    results = {}
    for seed in SEEDS:
        for label, learner in LEARNERS.items():
            result = measured(data, learner, seed)
            results.setdefault(label, []).append(result)
            print(data.name, label, seed, result, flush=True)
            rows = [_row(data.name, *one) for one in results.items()]
            save("defaults", name, rows)


def _row(name, label, results):
    return {
        "data": name,
        "learner": label,
        "epsilon": EPSILON,
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
    "time": times,
}


def main():
    """Measure the named tables, or all."""
    warnings.simplefilter("ignore")
    for name in command(__doc__, TABLES).parse_args().tables:
        TABLES[name]()


if __name__ == "__main__":
    main()

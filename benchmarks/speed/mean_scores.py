"""Times of a release of mean scores. Writes results/mean_scores.json.

Times are processor times of one core.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.learners.data import load
from benchmarks.learners.settings import N_TEACHERS
from benchmarks.record import command, save
from sklearn_pate._teachers._shards import shard_rows
from sklearn_pate._teachers._training import ScoreForm, collect
from sklearn_pate._votes._votes import TeacherScores, sum_of_classes
from sklearn_pate.mechanisms import MeanScores
from sklearn_pate.students import TableRepresentation
from sklearn_pate.students._basis import ScoreBasis


def main():
    """Measure the parts of a release of mean scores, and of the poll before it.

    On Adult, with 5,000 public rows and all coordinates, whatever the noise allows.
    """
    command(__doc__).parse_args()
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
            LogisticRegression(max_iter=1000),
            data.frame_train,
            codes,
            shards,
            X_public,
            form=form,
            aggregate=found,
            seeds=range(N_TEACHERS),
            representation=representation,
        )
        n_functions = [basis.n_coordinates_] * 2
        class_sum = partial(sum_of_classes, codes, None, 1, 2)
        _, of_release = timed(mechanism.estimate, scores, class_sum, n_functions)
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
    save("mean_scores", "time", rows)


def timed(function, *arguments, **parameters):
    """Call a function; return its result, and the processor time."""
    start = time.process_time()
    result = function(*arguments, **parameters)
    return result, time.process_time() - start

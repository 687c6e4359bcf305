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
from sklearn_pate._aggregation._aggregation import score_rows
from sklearn_pate._aggregation._score_model import DirectionScores, RowValues
from sklearn_pate._teachers._shards import shard_rows
from sklearn_pate._teachers._training import ScoreForm, collect
from sklearn_pate._votes._votes import TeacherScores, sum_of_classes, sum_of_units
from sklearn_pate.mechanisms import MeanScores
from sklearn_pate.students import TableRepresentation


def main():
    """Measure the parts of a release of mean scores, and of the poll before it.

    On Adult, with 5,000 public rows and all coordinates, whatever the noise allows.
    """
    command(__doc__).parse_args()
    data = load("adult")
    codes = data.y_train.astype(np.intp)
    shards = shard_rows(len(codes), N_TEACHERS, 0)
    mechanism = MeanScores().prepared(epsilon=1.0)
    rows = []
    for n_coordinates in (400, 500):
        scored, of_basis = timed(
            score_rows,
            data.frame_public,
            TableRepresentation(),
            max_coordinates=1 + n_coordinates,
            rbf=True,
            seed=0,
        )
        values = np.ascontiguousarray(scored.values[:, 1:])
        (scores, _), of_poll = timed(
            collect,
            LogisticRegression(max_iter=1000),
            data.frame_train,
            codes,
            shards,
            scored.X_for_teachers,
            form=ScoreForm(2, values),
            aggregate=partial(TeacherScores, shape=(values.shape[1], 1)),
            seeds=range(N_TEACHERS),
            representation=scored.representation,
        )

        def value_sum(direction, shares, scored=scored, values=values):
            found = DirectionScores.of_public_rows(direction, shares, values)
            of_rows = RowValues(found, scored, by_group=False)
            return sum_of_units(of_rows(data.frame_train, codes), None)

        class_sum = partial(sum_of_classes, codes, None, 1, 2)
        _, of_release = timed(mechanism.estimate, scores, class_sum, value_sum)
        rows.append(
            {
                "n_coordinates": values.shape[1],
                "n_public": len(values),
                "n_teachers": N_TEACHERS,
                "basis": of_basis,
                "poll": of_poll,
                "release": of_release,
            }
        )
        print(rows[-1], flush=True)
    save("mean_scores", "time", rows)


def timed(function, *arguments, **parameters):
    """Call a function; return its result, and the processor time."""
    start = time.process_time()
    result = function(*arguments, **parameters)
    return result, time.process_time() - start

"""Processor time and memory of DPNewton by rows. Writes results/newton_speed.json.

rows      Adult, repeated up to 2,000,000 rows; beside boosting without privacy

Each fit has its own process. Memory is the peak of the process during the fit, less
that before it. Needs an idle machine.
"""

import json
import os
import resource
import subprocess
import sys
import time
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.record import command, save
from benchmarks.tables.six_tables import case
from sklearn_pate import DPNewtonClassifier, PublicData

N_ROWS = (30_000, 155_000, 500_000, 2_000_000)
LEARNERS = {
    "DPNewton": DPNewtonClassifier(random_state=0),
    'DPNewton, basis="linear"': DPNewtonClassifier(basis="linear", random_state=0),
    "boosting, not private": HistGradientBoostingClassifier(
        categorical_features="from_dtype", random_state=0
    ),
}


def memory():
    """Return the peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fit(label, n_rows):
    """Fit a learner in this process, and print its time and memory as JSON."""
    warnings.simplefilter("ignore")
    data, _ = case("adult")
    times = -(-n_rows // len(data.y_train))
    X = pd.concat([data.frame_train] * times, ignore_index=True)[:n_rows]
    y, clf = np.tile(data.y_train, times)[:n_rows], LEARNERS[label]
    public = {}
    if isinstance(clf, DPNewtonClassifier):
        public["X_public"] = PublicData(data.frame_public)
    before, start = memory(), time.process_time()
    clf.fit(X, y, **public)
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "memory": memory() - before}))


def rows():
    """Measure each learner at each number of rows."""
    found = []
    for n_rows in N_ROWS:
        for label in LEARNERS:
            code = f"from {__name__} import fit; fit({label!r}, {n_rows})"
            printed = subprocess.run(
                [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE
            ).stdout
            found.append({"learner": label, "n_rows": n_rows} | json.loads(printed))
            print(found[-1], flush=True)
    save("newton_speed", "rows", found)


TABLES = {"rows": rows}


def main():
    """Measure the named tables, or all."""
    for name in command(__doc__, TABLES).parse_args().tables:
        TABLES[name]()

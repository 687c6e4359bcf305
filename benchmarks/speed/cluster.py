"""Teachers on the workers of dask. Writes results/cluster.json.

logistic   2,000 logistic teachers on 1e6, 1e7 and 1e8 rows in Parquet files
boosting   2,000 boosting teachers on 1e7 rows, beside their training alone

Two local workers with one thread each. Every run has a process of its own, whose peak
memory is that of the client and of the scheduler. ``--rows 1e6`` runs one size; the
files of a size are written once, into benchmarks/work (4 GB for 1e8 rows).
"""

import json
import pickle
import resource
import shutil
import subprocess
import sys
import threading
import time

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from xgboost import XGBClassifier

from benchmarks.record import WORK, command, load, save
from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate._aggregation._rows import split_inputs
from sklearn_pate._teachers._dask_teachers import number_of_blocks, shuffled_blocks
from sklearn_pate.distributed import shard_of

N_FEATURES, N_PUBLIC, N_TEACHERS, N_FILES, N_WORKERS = 10, 5000, 2000, 1000, 2
COLUMNS = [f"x{k}" for k in range(N_FEATURES)]
TEACHERS = {
    "logistic": LogisticRegression(),
    "boosting": XGBClassifier(n_estimators=100, max_depth=4, n_jobs=1),
}
SIZES = {"logistic": (10**6, 10**7, 10**8), "boosting": (10**7,)}


def some_rows(n_rows, seed):
    """Make rows with a linear signal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES)).astype(np.float32)
    signal = X @ np.linspace(1, 0.1, N_FEATURES, dtype=np.float32)
    y = (signal + rng.normal(size=n_rows) > 0).astype(np.int8)
    return pd.DataFrame(X, columns=COLUMNS).assign(y=y)


def files(n_rows):
    """Return the folder of the private rows, written if they are not there."""
    folder = WORK / f"rows-{n_rows}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number in range(N_FILES):
            frame = some_rows(n_rows // N_FILES, number + 1)
            frame.to_parquet(folder / f"{number:04d}.parquet", index=False)
        (folder / "done").touch()
    return folder


def classifier(teacher):
    """Return the measured classifier."""
    return PATEClassifier(
        TEACHERS[teacher],
        LogisticRegression(),
        n_teachers=N_TEACHERS,
        mechanism="gnmax",
        vote="plain",
        representation=None,
        query_strategy="random",
        classes=[0, 1],
        delta=1e-9,
        random_state=0,
    )


def fit(teacher, ddf):
    """Fit the classifier, with teachers on the workers."""
    clf = classifier(teacher)
    X_public = PublicData(some_rows(N_PUBLIC, 0)[COLUMNS])
    clf.fit(ddf[COLUMNS], ddf["y"], X_public=X_public)
    return {"epsilon": clf.privacy_spent_.epsilon}


def votes_of_groups(frame, teacher, X_public):
    """Train a teacher on each shard of a partition."""
    return [
        teacher.fit(rows[COLUMNS], rows["y"]).predict(X_public).astype(np.int8)
        for _, rows in frame.groupby("shard")
    ]


def by_hand(teacher, ddf):
    """Write the same read, shuffle and training in dask alone."""
    X_public = some_rows(N_PUBLIC, 0)[COLUMNS]

    def with_shard(frame, partition_info=None):
        rng = np.random.default_rng(partition_info["number"] if partition_info else 0)
        return frame.assign(shard=rng.integers(N_TEACHERS, size=len(frame)))

    n_blocks = number_of_blocks(Blocks(ddf), N_WORKERS, N_TEACHERS)
    shuffled = ddf.map_partitions(with_shard).shuffle("shard", npartitions=n_blocks)
    parts = [
        dask.delayed(votes_of_groups)(part, TEACHERS[teacher], X_public)
        for part in shuffled.to_delayed()
    ]
    counts = np.zeros((N_PUBLIC, 2), dtype=int)
    for votes in dask.compute(*parts):
        for one in votes:
            counts[np.arange(N_PUBLIC), one] += 1
    return {"n_votes": int(counts[0].sum())}


class Blocks:
    """Rows and columns of a frame, for the number of blocks."""

    def __init__(self, ddf):
        self.n_rows = int(ddf["y"].map_partitions(len).compute().sum())
        self.like = ddf[COLUMNS]._meta


def read(teacher, ddf):
    """Read all files."""
    return {"sum": float(ddf.map_partitions(lambda frame: frame.sum()).compute().sum())}


def hashed(teacher, ddf):
    """Hash the position of each row."""
    n_rows = Blocks(ddf).n_rows
    each = n_rows // N_FILES

    def shards(first):
        return int(shard_of(np.arange(first, first + each), N_TEACHERS, 0).sum())

    dask.compute(*(dask.delayed(shards)(first) for first in range(0, n_rows, each)))
    return {}


def shuffled(teacher, ddf):
    """Read, hash and shuffle, without training."""
    X_public = some_rows(N_PUBLIC, 0)[COLUMNS]
    given = ddf[COLUMNS], ddf["y"], PublicData(X_public), None
    rows, _ = split_inputs(classifier(teacher), *given, seed=0, key=0)
    n_blocks = number_of_blocks(rows, N_WORKERS, N_TEACHERS)
    bounds = np.linspace(0, N_TEACHERS, n_blocks + 1).astype(int).tolist()
    blocks = shuffled_blocks(rows, bounds)
    sizes = dask.compute(*(dask.delayed(len)(one) for one in blocks))
    return {"n_pieces": sum(sizes)}


def alone(teacher, ddf):
    """Train teachers on shards that are in memory, in two processes."""
    n_rows = len(ddf) // N_TEACHERS
    X_public = some_rows(N_PUBLIC, 0)[COLUMNS]
    shards = [some_rows(n_rows, shard) for shard in range(N_TEACHERS)]

    def one(rows):
        return TEACHERS[teacher].fit(rows[COLUMNS], rows["y"]).predict(X_public)

    start = time.perf_counter()
    Parallel(n_jobs=N_WORKERS)(delayed(one)(rows) for rows in shards)
    return {"seconds": time.perf_counter() - start}


STEPS = {
    "fit": fit,
    "by hand": by_hand,
    "read": read,
    "hash": hashed,
    "shuffle": shuffled,
    "alone": alone,
}
STEPS_OF = {
    "logistic": ["fit", "by hand", "read", "hash", "shuffle"],
    "boosting": ["fit", "alone"],
}


def bytes_in(folder):
    """Return the size of the files in a folder that may change."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def run(step, teacher, n_rows):
    """Run one step in this process; print what was measured."""
    if step == "alone":
        print(json.dumps(alone(teacher, range(n_rows))))
        return
    folder, spill = files(n_rows), WORK / "spill"
    shutil.rmtree(spill, ignore_errors=True)
    received, peak, stop = [], [0], threading.Event()
    gather = Client._gather

    async def counted(self, *arguments, **options):
        result = await gather(self, *arguments, **options)
        received.append(len(pickle.dumps(result)))
        return result

    Client._gather = counted

    def watch():
        while not stop.wait(1):
            peak[0] = max(peak[0], bytes_in(spill))

    with (
        LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            memory_limit="6GB",
            local_directory=str(spill),
            dashboard_address=None,
        ) as cluster,
        Client(cluster),
    ):
        threading.Thread(target=watch, daemon=True).start()
        start = time.perf_counter()
        found = STEPS[step](teacher, dd.read_parquet(folder / "*.parquet"))
        found["seconds"] = time.perf_counter() - start
        stop.set()
    shutil.rmtree(spill, ignore_errors=True)
    found["peak_mebibytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found["bytes_received"] = sum(received)
    found["spilled_gigabytes"] = peak[0] / 1e9
    print(json.dumps(found))


def measured(step, teacher, n_rows):
    """Run one step in a process of its own."""
    script = [sys.executable, "-m", "benchmarks", "cluster"]
    given = [*script, "--step", step, "--rows", str(n_rows), teacher]
    done = subprocess.run(given, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print(teacher, n_rows, step, found, flush=True)
    return found


def main():
    """Measure the named tables, or all."""
    parser = command(__doc__, TEACHERS)
    parser.add_argument("--rows", type=lambda text: int(float(text)))
    parser.add_argument("--step", choices=STEPS, help="run one step, write no file")
    given = parser.parse_args()
    if given.step:
        run(given.step, given.tables[0], given.rows)
        return
    for table in given.tables:
        kept = load("cluster").get(table, {"rows": []})["rows"]
        for n_rows in [given.rows] if given.rows else SIZES[table]:
            files(n_rows)
            row = {"n_rows": n_rows, "n_teachers": N_TEACHERS, "n_public": N_PUBLIC}
            row |= {step: measured(step, table, n_rows) for step in STEPS_OF[table]}
            kept = sorted(
                [*(one for one in kept if one["n_rows"] != n_rows), row],
                key=lambda one: one["n_rows"],
            )
            packages = ("dask", "distributed", "pyarrow", "xgboost-cpu")
            save("cluster", table, kept, packages=packages, seeds=[0])

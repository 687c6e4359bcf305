"""What the poll costs beside its teachers. Writes results/overhead.json.

poll      250 forests on Adult, against a bare joblib loop of the same fits
memory    peak memory of all processes at 50, 250 and 1000 teachers
scaling   seconds against teachers, rows a teacher and public rows
counts    5000 teachers by 1,000,000 public rows, votes simulated

Run one of them with ``python benchmarks/overhead.py poll``, all of them without a name.
Leave the machine alone meanwhile.
"""

import json
import subprocess
import sys
import time

import numpy as np
import psutil
from joblib import Parallel, delayed
from record import save, summary
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier

from sklearn_pate._teachers import poll_teachers, shard_rows
from sklearn_pate.datasets import fetch_adult

N_JOBS = 2
N_ALTERNATIONS = 9
N_TREES = 20
N_PUBLIC = 5000
N_SIMULATED = 1_000_000
N_CLASSES_SIMULATED = 10
MEBIBYTE = 2**20


def adult():
    """Return private rows, class indices and public rows as float64 arrays."""
    X, y = fetch_adult(subset="train", return_X_y=True)
    X_public, _ = fetch_adult(subset="test", return_X_y=True)
    codes = np.unique(y, return_inverse=True)[1]
    return X.astype(np.float64), codes, X_public.astype(np.float64)


def poll(X, codes, shards, X_public, *, estimator=None, n_classes=2, n_jobs=N_JOBS):
    """Hold the poll that is measured."""
    return poll_teachers(
        RandomForestClassifier(N_TREES) if estimator is None else estimator,
        X,
        codes,
        shards,
        X_public,
        n_classes=n_classes,
        seeds=range(len(shards)),
        n_jobs=n_jobs,
    )


def fit_and_predict(X, codes, X_public, seed):
    """Do what a teacher has to do, and nothing else."""
    forest = RandomForestClassifier(N_TREES, random_state=seed)
    return forest.fit(X, codes).predict(X_public)


def bare_loop(X, codes, shards, X_public):
    """Train the same forests with joblib alone."""
    return Parallel(n_jobs=N_JOBS)(
        delayed(fit_and_predict)(X[rows], codes[rows], X_public, seed)
        for seed, rows in enumerate(shards)
    )


def seconds(function, *arguments):
    """Time one call."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def poll_against_bare_loop():
    """Alternate between the two in one process, whose workers are warm."""
    X, codes, X_public = adult()
    arguments = X, codes, shard_rows(len(X), 250, 0), X_public[:N_PUBLIC]
    votes, _ = poll(*arguments)
    plain = np.array(bare_loop(*arguments))
    by_hand = np.stack([(plain == k).sum(axis=0) for k in range(2)], axis=1)
    np.testing.assert_array_equal(votes.counts(range(N_PUBLIC)), by_hand)
    times = {"poll": [], "bare loop": []}
    for turn in range(N_ALTERNATIONS):
        order = [("poll", poll), ("bare loop", bare_loop)]
        for name, function in order if turn % 2 else order[::-1]:
            times[name].append(seconds(function, *arguments))
    medians = {name: float(np.median(values)) for name, values in times.items()}
    return [
        {
            "n_teachers": 250,
            "n_trees": N_TREES,
            "n_rows": len(X),
            "n_public": N_PUBLIC,
            "n_jobs": N_JOBS,
            "poll_seconds": summary(times["poll"]),
            "bare_loop_seconds": summary(times["bare loop"]),
            "median_poll_seconds": medians["poll"],
            "median_bare_loop_seconds": medians["bare loop"],
            "ratio_of_medians": medians["poll"] / medians["bare loop"],
            "ratios": summary(np.divide(times["poll"], times["bare loop"])),
        }
    ]


def poll_adult(n_teachers):
    """Run one poll on all public rows of Adult, to be watched from outside."""
    X, codes, X_public = adult()
    poll(X, codes, shard_rows(len(X), n_teachers, 0), X_public)


class Simulated(ClassifierMixin, BaseEstimator):
    """Votes at random, at once."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        """Learn nothing."""
        return self

    def predict(self, X):
        """Draw a class for each row."""
        rng = np.random.default_rng(self.random_state)
        return rng.integers(N_CLASSES_SIMULATED, size=len(X), dtype=np.int8)


def count_simulated(n_teachers):
    """Count votes of simulated teachers."""
    X = np.zeros((2 * n_teachers, 1))
    poll(
        X,
        np.arange(len(X)) % N_CLASSES_SIMULATED,
        shard_rows(len(X), n_teachers, 0),
        np.zeros((N_SIMULATED, 1)),
        estimator=Simulated(),
        n_classes=N_CLASSES_SIMULATED,
        n_jobs=1,
    )


WATCHED = {"adult": poll_adult, "simulated": count_simulated}


def watch(name, n_teachers):
    """Run WATCHED[name] in a process of its own and add up the memory of its tree.

    Memory shared between processes is divided among them (proportional set size), so
    that the sum is what the machine has to have.
    """
    command = [sys.executable, __file__, "--watched", name, str(n_teachers)]
    start = time.perf_counter()
    with subprocess.Popen(command) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory_of_tree(process.pid))
            time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return {
        "n_teachers": n_teachers,
        "peak_mebibytes": peak / MEBIBYTE,
        "seconds": time.perf_counter() - start,
    }


def memory_of_tree(pid):
    """Add up the proportional set sizes of a process and its children."""
    total = 0
    try:
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            total += process.memory_full_info().pss
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return 0  # a process ended meanwhile: the next sample is complete
    return total


def peak_memory():
    """Watch polls of Adult, three times each."""
    n_public = len(adult()[2])
    rows = []
    for n_teachers in (50, 250, 1000):
        peaks = [watch("adult", n_teachers)["peak_mebibytes"] for _ in range(3)]
        rows.append(
            {
                "n_teachers": n_teachers,
                "n_public": n_public,
                "n_classes": 2,
                "peak_mebibytes": summary(peaks),
            }
        )
    return rows


def counts():
    """Watch the counting of many votes."""
    run = watch("simulated", 5000)
    return [run | {"n_public": N_SIMULATED, "n_classes": N_CLASSES_SIMULATED}]


def scaling():
    """Vary one size at a time, with the others fixed."""
    X, codes, X_public = adult()
    base = {"teachers": 100, "rows": 100, "public rows": 4000}
    sweeps = {
        "teachers": (50, 100, 200, 300),
        "rows": (25, 50, 100, 200, 300),
        "public rows": (1000, 2000, 4000, 8000, 16000),
    }
    poll(X, codes, shard_rows(len(X), 250, 0), X_public[:100])  # start the workers
    rows = []
    for varied, sizes in sweeps.items():
        for size in sizes:
            sizes_now = base | {varied: size}
            n_rows = sizes_now["teachers"] * sizes_now["rows"]
            shards = shard_rows(n_rows, sizes_now["teachers"], 0)
            arguments = X, codes, shards, X_public[: sizes_now["public rows"]]
            times = [seconds(poll, *arguments) for _ in range(3)]
            rows.append(
                {
                    "varied": varied,
                    "n_teachers": sizes_now["teachers"],
                    "n_rows_a_teacher": sizes_now["rows"],
                    "n_public": sizes_now["public rows"],
                    "median_seconds": float(np.median(times)),
                    "seconds": summary(times),
                }
            )
    return rows


TABLES = {
    "poll": poll_against_bare_loop,
    "memory": peak_memory,
    "scaling": scaling,
    "counts": counts,
}


def main():
    """Measure what was asked for, or everything."""
    if sys.argv[1:2] == ["--watched"]:
        WATCHED[sys.argv[2]](int(sys.argv[3]))
        return
    for name in sys.argv[1:] or TABLES:
        rows = TABLES[name]()
        print(json.dumps(rows, indent=1))
        save("overhead", {name: rows}, seeds=[0])


if __name__ == "__main__":
    main()

"""Overhead of the poll. Writes results/overhead.json.

fits      fits with known noise, compared with a loop of clone, fit, predict and count
poll      250 forests on Adult, compared with a plain joblib loop of the same fits
memory    peak memory of all processes at 50, 250 and 1000 teachers
scaling   time against teachers, rows per teacher and public rows
counts    simulated votes of 5000 teachers on 1,000,000 public rows

Needs an idle machine.
"""

import json
import os
import subprocess
import sys
import time
from functools import partial

import numpy as np
import psutil
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from benchmarks.record import command, save, summary
from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate._teachers._shards import shard_rows
from sklearn_pate._teachers._training import VoteForm, collect
from sklearn_pate._votes._votes import Votes
from sklearn_pate.datasets import fetch_adult
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import TableRepresentation

N_JOBS = 2
N_ALTERNATIONS = 9
N_TREES = 20
N_QUERIES = 1000
# Name, teacher, whether it gets a representation by default, numbers of teachers and of
# private rows.
FITS = (
    ("forests", RandomForestClassifier(N_TREES), False, 250, 30_000),
    ("logistic regressions", LogisticRegression(), True, 100, 30_000),
    ("trees of depth 3", DecisionTreeClassifier(max_depth=3), False, 1000, 30_000),
)
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
    """Run the measured poll."""
    return collect(
        RandomForestClassifier(N_TREES) if estimator is None else estimator,
        X,
        codes,
        shards,
        X_public,
        form=VoteForm(n_classes),
        aggregate=partial(Votes, n_public=len(X_public), n_classes=n_classes),
        seeds=range(len(shards)),
        n_jobs=n_jobs,
    )


def fit_and_predict(X, codes, X_public, seed):
    """Train one teacher and predict the public rows."""
    forest = RandomForestClassifier(N_TREES, random_state=seed)
    return forest.fit(X, codes).predict(X_public)


def loop(X, codes, shards, X_public):
    """Train the same forests with joblib only."""
    return Parallel(n_jobs=N_JOBS)(
        delayed(fit_and_predict)(X[rows], codes[rows], X_public, seed)
        for seed, rows in enumerate(shards)
    )


def seconds(function, *arguments):
    """Time one call."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def poll_and_loop():
    """Alternate between poll and loop in one process with started workers."""
    X, codes, X_public = adult()
    arguments = X, codes, shard_rows(len(X), 250, 0), X_public[:N_PUBLIC]
    votes, _ = poll(*arguments)
    labels = np.array(loop(*arguments))
    expected = np.stack([(labels == k).sum(axis=0) for k in range(2)], axis=1)
    np.testing.assert_array_equal(votes.counts(range(N_PUBLIC)), expected)
    times, medians = in_turn({"poll": poll, "loop": loop}, seconds, arguments)
    return [
        {
            "n_teachers": 250,
            "n_trees": N_TREES,
            "n_rows": len(X),
            "n_public": N_PUBLIC,
            "n_jobs": N_JOBS,
            "poll_seconds": summary(times["poll"]),
            "loop_seconds": summary(times["loop"]),
            "median_poll_seconds": medians["poll"],
            "median_loop_seconds": medians["loop"],
            "ratio_of_medians": medians["poll"] / medians["loop"],
            "ratios": summary(np.divide(times["poll"], times["loop"])),
        }
    ]


def in_turn(functions, measure, arguments):
    """Measure functions in turn, the first one first in every second turn.

    Return their times and medians, by name.
    """
    times = {name: [] for name in functions}
    for turn in range(N_ALTERNATIONS):
        order = list(functions.items())
        for name, function in order if turn % 2 else order[::-1]:
            times[name].append(measure(function, *arguments))
    return times, {name: float(np.median(values)) for name, values in times.items()}


def count_in_loop(teacher, has_representation, n_teachers, X, codes, X_public):
    """Train the teachers of a fit one after the other, and count their votes."""
    if has_representation:
        represented = TableRepresentation(random_state=0).fit(X_public)
        X, X_public = represented.transform(X), represented.transform(X_public)
    counts = np.zeros((len(X_public), 2), dtype=int)
    for seed, rows in enumerate(shard_rows(len(X), n_teachers, 0)):
        one = clone(teacher).set_params(random_state=seed).fit(X[rows], codes[rows])
        counts[np.arange(len(X_public)), one.predict(X_public)] += 1


def fit(teacher, has_representation, n_teachers, X, codes, X_public):
    """Fit with noise that is given, so that none is calibrated."""
    PATEClassifier(
        teacher,
        student=make_pipeline(StandardScaler(), LogisticRegression()),
        n_teachers=n_teachers,
        mechanism=GNMax(sigma=n_teachers / 6),
        n_queries=N_QUERIES,
        epsilon=None,
        classes=[0, 1],
        random_state=0,
    ).fit(X, codes, X_public=PublicData(X_public))


def fits_and_loops():
    """Alternate between a fit and a loop; the first fit of each kind is apart.

    Time of the processor, which other processes change little: nothing runs in parallel
    here.
    """
    X, codes, X_public = adult()
    rows = []
    for name, teacher, has_representation, n_teachers, n_rows in FITS:
        arguments = (
            *(teacher, has_representation, n_teachers),
            *(X[:n_rows], codes[:n_rows], X_public[:N_PUBLIC]),
        )
        first = cpu_seconds(fit, *arguments)
        functions = {"fit": fit, "loop": count_in_loop}
        times, medians = in_turn(functions, cpu_seconds, arguments)
        rows.append(
            {
                "teachers": name,
                "n_teachers": n_teachers,
                "n_rows": n_rows,
                "n_public": N_PUBLIC,
                "n_queries": N_QUERIES,
                "first_fit_seconds": first,
                "fit_seconds": summary(times["fit"]),
                "loop_seconds": summary(times["loop"]),
                "median_fit_seconds": medians["fit"],
                "median_loop_seconds": medians["loop"],
                "ratio_of_medians": medians["fit"] / medians["loop"],
                "ratios": summary(np.divide(times["fit"], times["loop"])),
                "load": os.getloadavg()[1],
            }
        )
    return rows


def cpu_seconds(function, *arguments):
    """Time one call, by the processor's time of this process."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def poll_adult(n_teachers):
    """Run one poll on all public rows of Adult, in a monitored process."""
    X, codes, X_public = adult()
    poll(X, codes, shard_rows(len(X), n_teachers, 0), X_public)


class Simulated(ClassifierMixin, BaseEstimator):
    """Classifier with random predictions."""

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


MONITORED = {"adult": poll_adult, "simulated": count_simulated}


def monitor(name, n_teachers):
    """Run MONITORED[name] in a new process and measure the peak memory of its tree.

    Memory shared between processes is divided among them (proportional set size), so
    that the sum is the memory that the machine needs.
    """
    script = [sys.executable, "-m", "benchmarks", "overhead"]
    line = [*script, "--monitored", name, str(n_teachers)]
    start = time.perf_counter()
    with subprocess.Popen(line) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory_of_tree(process.pid))
            time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(line)} failed")
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
    """Measure the peak memory of polls on Adult, three times each."""
    n_public = len(adult()[2])
    rows = []
    for n_teachers in (50, 250, 1000):
        peaks = [monitor("adult", n_teachers)["peak_mebibytes"] for _ in range(3)]
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
    """Measure the peak memory of counting many votes."""
    run = monitor("simulated", 5000)
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
                    "n_rows_per_teacher": sizes_now["rows"],
                    "n_public": sizes_now["public rows"],
                    "median_seconds": float(np.median(times)),
                    "seconds": summary(times),
                }
            )
    return rows


TABLES = {
    "fits": fits_and_loops,
    "poll": poll_and_loop,
    "memory": peak_memory,
    "scaling": scaling,
    "counts": counts,
}


def main():
    """Measure the named tables, or all."""
    if sys.argv[1:2] == ["--monitored"]:
        MONITORED[sys.argv[2]](int(sys.argv[3]))
        return
    for name in command(__doc__, TABLES).parse_args().tables:
        rows = TABLES[name]()
        print(json.dumps(rows, indent=1))
        save("overhead", name, rows, seeds=[0])

"""Fits over several sites, beside fits of all rows. Writes results/sites.json.

adult, diabetes    scores of fits over five sites, and of fits in one place
costs              bytes, processor time and memory of five and of twenty sites

Takes about two hours. Finished fits are kept in files of lines, so that an interrupted
run resumes. Seeds are those of the sites' rows, shards and teachers; the noise is not
seeded. In `costs`, each site is a process of its own on made-up rows, and the collector
asks one site after the other. Memory is the peak of the process of a site. Run `costs`
on an idle machine.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import math
import multiprocessing
import time
import warnings
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, roc_auc_score

from benchmarks.record import command, kept_results, save, summary
from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
)
from sklearn_pate.accounting._calibrate import gdp_epsilon, largest_gdp_mu
from sklearn_pate.distributed import Collector, Site, Study

EPSILON, DELTA = 1.0, 1e-5
#: Shares of the rows, or patients, at five sites; and sites whose noise is not counted.
SHARES, N_COLLUDING = (0.4, 0.3, 0.15, 0.1, 0.05), 2
SEEDS = {"adult": range(10), "diabetes": range(2)}
LEARNERS = {
    "DPNewton": DPNewtonClassifier(classes=[0, 1]),
    "PATE, mean scores": PATEClassifier(mechanism="scores", classes=[0, 1]),
    "PATE, votes": PATEClassifier(mechanism="histogram", classes=[0, 1]),
}
# Of each learner by patient: by the rule for rows, in equal parts.
OF_PATIENTS = {
    "DPNewton": {"n_groups": 45_000},
    "PATE, mean scores": {"n_teachers": 635},
    "PATE, votes": {"n_teachers": 210},
}
WAYS = ("all rows", "all rows, noise of the sites", "five sites")
N_ROWS, N_PUBLIC, N_COLUMNS, N_QUERIES = 100_000, 5000, 20, 500
N_SITES = (5, 20)


def same_noise():
    """Return the epsilon of a fit on all rows with the noise of five sites."""
    mu = largest_gdp_mu(EPSILON, DELTA)
    return gdp_epsilon(mu * math.sqrt(1 - N_COLLUDING / len(SHARES)), DELTA)


def site_of_rows(data, seed):
    """Assign rows, or all rows of a patient, to sites at random."""
    units = np.arange(len(data.y_train))
    if data.groups_train is not None:
        _, units = np.unique(data.groups_train, return_inverse=True)
    rank = np.random.RandomState(seed).permutation(units.max() + 1)[units]
    bounds = np.cumsum(SHARES[:-1]) * (units.max() + 1)
    return np.searchsorted(bounds, rank, side="right")


def over_sites(clf, data, seed):
    """Fit over five sites, in this process."""
    X, y, groups = data.frame_train, data.y_train, data.groups_train
    names = [f"site {number}" for number in range(len(SHARES))]
    study = Study(
        clf,
        data.frame_public,
        sites=names,
        n_rows=len(y) if groups is None else None,
        n_colluding=N_COLLUDING,
    )
    site_of = site_of_rows(data, seed)
    with TemporaryDirectory() as folder:
        sites = {}
        for number, name in enumerate(names):
            rows = np.flatnonzero(site_of == number)
            path = Path(folder) / f"{name}.sqlite"
            sites[name] = Site(
                study,
                name,
                X.iloc[rows],
                y[rows],
                groups=None if groups is None else groups[rows],
                ledger=PrivacyLedger(path, epsilon=EPSILON, delta=DELTA),
            )
        keys = {name: site.public_key for name, site in sites.items()}
        collector = Collector(study, keys)
        while (request := collector.request()) is not None:
            fingerprint = collector.fingerprint
            collector.add([one.reply(request, fingerprint) for one in sites.values()])
    return collector.result()


def measured(name, label, way, seed):
    """Fit once, and score the classifier on the evaluated rows.

    Patients weigh the same, however many rows they have, as in the fits.
    """
    from benchmarks.tables.six_tables import case  # slow to import

    warnings.simplefilter("ignore")
    data, _ = case(name)
    epsilon = same_noise() if way == WAYS[1] else EPSILON
    clf = clone(LEARNERS[label]).set_params(epsilon=epsilon, random_state=seed)
    if name == "adult" and label == "DPNewton":
        clf.set_params(threshold="accuracy")
    groups, weights = {}, np.ones(len(data.y_test))
    if data.groups_train is not None:
        clf.set_params(privacy_unit="group", **OF_PATIENTS[label])
        groups["groups"] = data.groups_train
        _, group, sizes = np.unique(
            data.groups_test, return_inverse=True, return_counts=True
        )
        weights = 1 / sizes[group]
    start = time.process_time()
    if way == WAYS[2]:
        clf = over_sites(clf, data, seed)
    else:
        X_public = PublicData(data.frame_public)
        clf.fit(data.frame_train, data.y_train, X_public=X_public, **groups)
    seconds = time.process_time() - start
    X, y, weighted = data.frame_test, data.y_test, {"sample_weight": weights}
    return {
        "auc": roc_auc_score(y, clf.predict_proba(X)[:, 1], **weighted),
        "accuracy": accuracy_score(y, clf.predict(X), **weighted),
        "cpu_seconds": seconds,
        "mechanism": clf.privacy_spent_.mechanism,
    }


def scores(name):
    """Measure each learner in each way, and write the table of a data set."""
    keys = [
        (name, label, way, seed)
        for seed in SEEDS[name]
        for label in LEARNERS
        for way in WAYS
    ]
    rows = {}
    results = kept_results(f"sites {name}", keys, measured)
    for (_, label, way, _), result in zip(keys, results, strict=True):
        rows.setdefault((label, way), []).append(result)
    rows = [
        {
            "data": name,
            "learner": label,
            "way": way,
            "mechanism": found[0]["mechanism"],
            **{
                score: summary([one[score] for one in found])
                for score in ("auc", "accuracy", "cpu_seconds")
            },
        }
        for (label, way), found in rows.items()
    ]
    save("sites", name, rows, seeds=[*SEEDS[name]], epsilon_of_noise=same_noise())


def some_rows(n_rows, seed):
    """Make rows with a linear signal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_COLUMNS))
    signal = X @ np.linspace(1, 0.1, N_COLUMNS)
    return X, (signal + rng.logistic(size=n_rows) > 1).astype(int)


def made_up_study(label, names):
    """Return the study of made-up rows."""
    clf = clone(LEARNERS[label]).set_params(random_state=0)
    if label == "PATE, votes":
        clf.set_params(n_queries=N_QUERIES)
    X_public, _ = some_rows(N_PUBLIC, 0)
    return Study(clf, X_public, sites=names, n_rows=N_ROWS)


def answer(connection, label, names, number):
    """Answer the requests of the collector in the process of a site."""
    warnings.simplefilter("ignore")
    share = SHARES[number % len(SHARES)] * len(SHARES) / len(names)
    X, y = some_rows(round(share * N_ROWS), 1 + number)
    study, name = made_up_study(label, names), names[number]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        ledger = PrivacyLedger(path, epsilon=EPSILON, delta=DELTA)
        site = Site(study, name, X, y, ledger=ledger)
        connection.send((site.public_key, memory()))
        while asked := connection.recv():
            start = time.process_time()
            reply = site.reply(*asked)
            connection.send((reply, time.process_time() - start, memory()))


def memory():
    """Return the peak memory of this process, without that of its parent, in MiB."""
    [line] = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) / 1024


def costs_of(label, n_sites):
    """Return a row for each round of a study, and one for the model."""
    warnings.simplefilter("ignore")
    names = [f"site {number}" for number in range(n_sites)]
    spawn, connections, processes = multiprocessing.get_context("spawn"), {}, []
    for number, name in enumerate(names):
        connections[name], other = spawn.Pipe()
        given = (other, label, names, number)
        processes.append(spawn.Process(target=answer, args=given))
        processes[-1].start()
    joined = {name: one.recv() for name, one in connections.items()}
    study = made_up_study(label, names)
    collector = Collector(study, {name: key for name, (key, _) in joined.items()})
    head = {"learner": label, "n_sites": n_sites, "n_rows": N_ROWS}
    rows = [{"round": 0, "memory": max(peak for _, peak in joined.values())}]
    while (request := collector.request()) is not None:
        found = []
        for connection in connections.values():
            connection.send((request, collector.fingerprint))
            found.append(connection.recv())
        replies, seconds, peaks = zip(*found, strict=True)
        start = time.process_time()
        collector.add(replies)
        rows.append(
            {
                "round": len(rows),
                "request_bytes": len(request),
                "reply_bytes": max(map(len, replies)),
                "slowest_site": max(seconds),
                "all_sites": sum(seconds),
                "collector": time.process_time() - start,
                "memory": max(peaks),
            }
        )
    for connection, process in zip(connections.values(), processes, strict=True):
        connection.send(None)
        process.join()
    start = time.process_time()
    collector.result()
    seconds = time.process_time() - start
    rows.append({"round": None, "collector": seconds})
    return [head | row for row in rows]


def costs():
    """Measure DPNewton and votes over five sites and over twenty."""
    rows = []
    for label in ("DPNewton", "PATE, votes"):
        for n_sites in N_SITES:
            rows += costs_of(label, n_sites)
            print(*rows, sep="\n", flush=True)
    facts = {"n_public": N_PUBLIC, "n_columns": N_COLUMNS, "n_queries": N_QUERIES}
    save("sites", "costs", rows, packages=("cryptography",), **facts)


TABLES = {name: partial(scores, name) for name in SEEDS} | {"costs": costs}


def main():
    """Measure the named tables, or all."""
    for name in command(__doc__, TABLES).parse_args().tables:
        TABLES[name]()

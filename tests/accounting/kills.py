"""Fits of several processes on one ledger, killed at random instants, and a check.

Run as a script: ``python kills.py FOLDER KILLS`` prints what happened as JSON.
Processes are forked from one that has imported everything: a fit starts at once.
"""

import hashlib
import itertools
import json
import os
import random
import re
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import BudgetExceededError, PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.mechanisms import GumbelMax
from sklearn_pate.students import UncertaintyQueries

N_PROCESSES = 4
N_QUERIES = 12
# Chosen such that the budget is spent towards the end, whatever the speed.
CHARGES_A_KILL = 1.2
EPSILON, DELTA = 3.0, 1e-6

rng = np.random.default_rng(0)
Y = rng.integers(2, size=120)
X = rng.normal(size=(120, 2)) + 2 * Y[:, np.newaxis]
X_PUBLIC = rng.normal(size=(30, 2)) + 2 * rng.integers(2, size=(30, 1))


class WatchedGumbelMax(GumbelMax):
    """Writes to a log which fit is about to draw noise, and for how many queries."""

    def __init__(self, c=None, *, tag=0, log=""):
        super().__init__(c)
        self.tag = tag
        self.log = log

    def respond(self, counts, *args, **kwargs):
        write(self.log, "drawn", self.tag, len(counts))
        return super().respond(counts, *args, **kwargs)


def write(log, *words):
    """Append a line that a kill cannot cut."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())
    os.close(descriptor)


def fit(ledger, c, tag, log):
    """Fit one of the fits that a tag names; odd tags use several rounds of queries."""
    strategy = UncertaintyQueries(n_rounds=3) if tag % 2 else "random"
    clf = PATEClassifier(
        GaussianNB(),
        n_teachers=6,
        n_queries=N_QUERIES,
        query_strategy=strategy,
        mechanism=WatchedGumbelMax(c, tag=tag, log=str(log)),
        epsilon=None,
        ledger=ledger,
        random_state=tag,
    )
    clf.fit(X, Y, X_public=PublicData(X_PUBLIC))
    return hashlib.sha256(clf.queried_indices_.tobytes() + clf.answers_.tobytes())


def work(path, c, log, first):
    """Fit one tag after the other, now and then an old one again, until killed."""
    ledger = PrivacyLedger(path)
    for step in range(10**6):
        tag = first + step if random.random() < 0.7 else random.randrange(first + 1)
        try:
            write(log, "seen", tag, fit(ledger, c, tag, log).hexdigest())
        except BudgetExceededError:
            write(log, "refused", tag)
        except Exception:
            write(log, "failed", tag, repr(traceback.format_exc()))


def fork(*args):
    """Start a worker, and return its process id."""
    child = os.fork()
    if child == 0:
        random.seed()
        try:
            work(*args)
        finally:
            os._exit(1)
    return child


def wait_for_lines(log, n_lines):
    """Wait until fits have written as many lines to their log."""
    while log.read_bytes().count(b"\n") < n_lines:
        time.sleep(0.001)


def kill_one(children):
    """Kill any of the children, and wait until it is gone."""
    victim = children.pop(random.randrange(len(children)))
    os.kill(victim, signal.SIGKILL)
    os.waitpid(victim, 0)


def run(folder, n_kills, seed=0):
    """Kill fits, look at the ledger after each kill, and return what was found."""
    random.seed(seed)
    path, log = Path(folder, "patients.sqlite"), Path(folder, "log")
    log.touch()
    ledger = PrivacyLedger(path, epsilon=EPSILON, delta=DELTA)
    c = 1.0
    while ledger.budget_fractions(GumbelMax(c).cost(N_QUERIES, 2).curve)[0] > 1 / (
        CHARGES_A_KILL * n_kills
    ):
        c *= 0.97
    started = time.monotonic()
    fit(PrivacyLedger(Path(folder, "warm.sqlite"), epsilon=1e3, delta=0.05), c, 1, log)
    log.write_bytes(b"")
    next_tag = 0
    children = []
    try:
        for kill in itertools.count():
            written = log.read_bytes()
            if kill >= n_kills and b"refused" in written:
                break
            while len(children) < N_PROCESSES:
                children.append(fork(path, c, log, next_tag))
                next_tag += 2
            wait_for_lines(log, written.count(b"\n") + random.randrange(10))
            time.sleep(random.uniform(0, 0.02))
            kill_one(children)
            check(path, log, f"after kill {kill}")
    finally:
        while children:
            kill_one(children)
    return {
        "kills": kill + N_PROCESSES - 1,
        "processes": N_PROCESSES,
        **check(path, log, "at the end"),
        "seconds": time.monotonic() - started,
    }


def check(path, log, when):
    """Compare the log of all draws with the ledger; raise if an entry is missing."""
    lines = [line.split(" ", 2) for line in log.read_text().splitlines()]
    drawn, answers, kinds = Counter(), {}, Counter(kind for kind, *_ in lines)
    for kind, tag, *rest in lines:
        if kind == "drawn":
            drawn[tag] += int(rest[0])
        if kind == "seen":
            answers.setdefault(tag, set()).add(rest[0])
    ledger = PrivacyLedger(path)
    charges = ledger.entries()
    charged = Counter(
        re.search(r"tag=(\d+)|$", one.description)[1] or "0" for one in charges
    )
    uncharged = {tag: n for tag, n in drawn.items() if n > N_QUERIES * charged[tag]}
    assert not uncharged, f"{when}: draws without an entry: {uncharged}"
    two = {tag for tag, different in answers.items() if len(different) > 1}
    assert not two, f"{when}: fits with two sets of answers: {two}"
    assert ledger.spent <= 1, f"{when}: {ledger.spent} of the budget is spent"
    assert not kinds["failed"], [line for line in lines if line[0] == "failed"][:2]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    return {
        "fits finished": kinds["seen"],
        "fits refused": kinds["refused"],
        "charges": len(charges),
        "fits charged": len(charged),
        "fits uncharged": len(uncharged),
        "fits answered twice": len(two),
        "queries drawn": sum(drawn.values()),
        "queries charged": N_QUERIES * len(charges),
        "share spent": ledger.spent,
    }


if __name__ == "__main__":
    from kills import run  # what is defined in __main__ is never recognised

    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))

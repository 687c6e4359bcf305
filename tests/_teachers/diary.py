"""A teacher that can be counted. Light, as every process of a test imports it."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier

from tests._teachers.polls import poll_teachers

N_TEACHERS, N_WORKERS = 50, 2
SLOW = 0.05  # seconds a fit, so that a kill interrupts a teacher


class Diary(ClassifierMixin, BaseEstimator):
    """A tree that leaves a file behind for every fit that was begun.

    A fit after a number of others does not end, if an environment variable is set.
    """

    def __init__(self, folder, seconds=0.0, random_state=None):
        self.folder = folder
        self.seconds = seconds
        self.random_state = random_state

    def fit(self, X, y):
        Path(self.folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
        n_begun = len(os.listdir(self.folder))
        while n_begun > float(os.environ.get("FITS_THAT_END", "inf")):
            time.sleep(1)
        time.sleep(self.seconds)
        self.tree_ = DecisionTreeClassifier(random_state=self.random_state).fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X)


def poll(estimator, memory, *, n_jobs=1, n_teachers=N_TEACHERS, data=None):
    X, y = make_blobs(1000, centers=3, cluster_std=3, random_state=0)
    X, X_public = (X[:800], X[800:]) if data is None else data
    votes, _ = poll_teachers(
        estimator,
        X,
        y[:800],
        np.array_split(np.random.default_rng(0).permutation(800), n_teachers),
        X_public,
        n_classes=3,
        seeds=list(range(n_teachers)),
        memory=memory and str(memory),
        n_jobs=n_jobs,
    )
    return votes.counts(np.arange(200))


def poll_in_a_session_of_its_own(diary, memory, fits_that_end):
    os.setsid()  # so that a kill reaches the workers too
    os.environ["FITS_THAT_END"] = str(fits_that_end)  # however late the kill comes
    multiprocessing.set_start_method("fork", force=True)  # workers start at once
    with parallel_config(backend="multiprocessing"):
        poll(Diary(diary, seconds=SLOW), memory, n_jobs=N_WORKERS)
    os.killpg(0, signal.SIGKILL)  # or Python would wait for idle workers at exit

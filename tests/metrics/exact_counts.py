"""Exact counts of a measurement, as they are before the noise."""

import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.exceptions import ComplexWarning

from sklearn_pate.metrics import private_metrics
from tests.private import MarginalCounts

N_ROWS, REPLACED = 12, 7


class Touchy:
    """A fitted model of a row's first number, which fails on most odd values."""

    def __init__(self, n_classes=2):
        self.classes_ = np.arange(n_classes)

    def predict_proba(self, X):
        print("a row")
        warnings.warn("a row", UserWarning, stacklevel=1)
        first = np.asarray(X.todense() if sp.issparse(X) else X)[:, 0].astype(float)
        if not np.all(np.isfinite(first)):
            raise ValueError(f"{first} is odd")
        scores = np.arange(1.0, len(self.classes_) + 1) ** first[:, np.newaxis]
        return scores / scores.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class OfBatch(Touchy):
    """A model whose scores depend on the rows that it is given together."""

    def predict_proba(self, X):
        first = np.asarray(X)[:, 0].astype(float)
        score = 1 / (1 + np.exp(first.mean() - first))
        return np.column_stack([1 - score, score])


def columns(seed=0, n_rows=N_ROWS):
    """Return rows and labels of two classes, as lists of objects."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 2)).round(2)
    return X.astype(object), rng.integers(0, 2, n_rows).astype(object)


def in_container(X, container):
    """Put an array of objects into a container; None if it does not fit."""
    if container == "list":
        return [list(row) for row in X]
    if container == "object":
        return X
    if container == "pandas":
        return pd.DataFrame(X, columns=["a", "b"])
    try:
        numbers = X.astype(float)
    except (TypeError, ValueError, OverflowError, ComplexWarning):
        return None
    return sp.csr_array(numbers) if container == "sparse" else numbers


@contextmanager
def without_noise(monkeypatch, first=None):
    """Record the counts of both parts; release them as they are, or `first`."""
    drawn = []

    def release(self, counts, noise=None):
        counts = np.asarray(counts)
        drawn.append((self.n_tables, counts.ravel()))
        is_first = len(drawn) % 2 == 1
        return first.reshape(counts.shape) if is_first and first is not None else counts

    with monkeypatch.context() as patch:
        patch.setattr(MarginalCounts, "release", release)
        yield drawn


def exact_counts(monkeypatch, *args, model=None, first=None, **parameters):
    """Return number of tables and exact counts of each part of a measurement."""
    parameters = {"epsilon": 1.0, "random_state": 0} | parameters
    with without_noise(monkeypatch, first) as drawn, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private_metrics(model or Touchy(), *args, **parameters)
    return drawn


def squared_distances(monkeypatch, before, *args, **parameters):
    """Return squared distance and its bound, for each part of two measurements.

    `before` are the exact counts of the first. The second gets its first release, so
    that the edges are the same.
    """
    (_, first), _ = before
    after = exact_counts(monkeypatch, *args, first=first, **parameters)
    return [
        (int(np.sum((counts - changed) ** 2)), 2 * n_tables)
        for (n_tables, counts), (_, changed) in zip(before, after, strict=True)
    ]


def is_within(distances):
    """Check that no part moves by more than its bound."""
    return all(distance <= bound for distance, bound in distances)

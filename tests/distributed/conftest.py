"""Simulated rows of three sites."""

import pytest
from sklearn.datasets import make_blobs


@pytest.fixture(scope="session")
def rows():
    """Return private rows, labels, public rows, and evaluated rows of two classes."""
    X, y = make_blobs(3800, centers=2, cluster_std=3.0, random_state=0)
    return X[:3000], y[:3000], X[3000:3400], X[3400:], y[3400:]

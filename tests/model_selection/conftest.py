"""Rows that are easy to learn, and a count of fits that starts at none."""

import pytest
from sklearn.datasets import make_blobs

from tests.model_selection.learners import FITS


@pytest.fixture(autouse=True)
def _no_fits_yet():
    FITS.clear()


@pytest.fixture(scope="module")
def easy():
    X, y = make_blobs(3000, centers=3, cluster_std=1.0, random_state=3)
    return X[:2400], y[:2400], X[2400:], y[2400:]

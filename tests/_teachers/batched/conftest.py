"""Digits, whole and in shards."""

import itertools

import numpy as np
import pytest


@pytest.fixture(scope="module")
def images(digits):
    X, y = digits
    return (X / 16).astype(np.float32), y.astype(np.int64)


@pytest.fixture(scope="module")
def shards(images):
    """Five shards of different sizes; the third teacher has nothing to learn."""
    X, y = images
    starts = np.cumsum([0, 40, 5, 0, 64, 33])
    cut = [slice(*ends) for ends in itertools.pairwise(starts)]
    return [(X[rows], y[rows]) if len(y[rows]) else None for rows in cut]

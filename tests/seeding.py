"""Noise that is the same in each block."""

from contextlib import contextmanager

import pytest

from sklearn_pate import PrivacyLeakWarning
from sklearn_pate.testing import seeded_noise


@contextmanager
def equal_noise(seed=0):
    """Draw noise from a seed, and expect the warning of it."""
    with (
        pytest.warns(PrivacyLeakWarning, match="The noise is seeded"),
        seeded_noise(seed),
    ):
        yield

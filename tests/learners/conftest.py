"""Digits as DP-SGD takes them."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rows(digits):
    X, y = digits
    return (X / 16).astype(np.float32), y

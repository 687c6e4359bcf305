"""A ledger, and its file."""

import pytest

from sklearn_pate import PrivacyLedger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "patients.sqlite"


@pytest.fixture
def ledger(path):
    return PrivacyLedger(path, epsilon=3, delta=1e-6)

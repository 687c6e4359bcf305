"""A ledger, and noise that must not be drawn."""

import pytest

from sklearn_pate import PrivacyLedger
from tests.private import NoiseSource


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=300, delta=1e-6)


@pytest.fixture
def no_noise(monkeypatch):
    """Fail on every draw of noise from now on."""

    def forbid():
        def draw(self, shape):
            pytest.fail("noise was drawn")

        monkeypatch.setattr(NoiseSource, "words", draw)

    return forbid

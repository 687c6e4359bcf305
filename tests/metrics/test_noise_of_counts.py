"""Noise on every cell, empty ones too, of the scale that is stated."""

import numpy as np
import pytest

from sklearn_pate.metrics import private_metrics
from tests.metrics.exact_counts import Touchy, columns
from tests.private import MarginalCounts, gdp_epsilon
from tests.seeding import equal_noise

pytestmark = pytest.mark.filterwarnings("ignore:With 12 rows")

BY_SUBGROUP = {"subgroups": ["a", "b"] * 6, "subgroup_values": ["a", "b"]}
RELEASE = MarginalCounts.release


def noise_of(monkeypatch, release, n_releases=60):
    """Return the noise on each cell of the first part, and on all of the second."""
    first, second = [], []

    def spy(self, counts, noise=None):
        noisy = release(self, counts, noise)
        part = first if self.n_tables == 2 else second
        part.append((np.asarray(noisy) - counts).ravel())
        return noisy

    X, y = columns()
    with monkeypatch.context() as patch:
        patch.setattr(MarginalCounts, "release", spy)
        for _ in range(n_releases):
            metrics = private_metrics(Touchy(), X, y, epsilon=2, **BY_SUBGROUP)
    return np.array(first), np.concatenate(second), metrics


def has_noise_everywhere(noise):
    """Check that no cell was released without noise each time."""
    return bool(np.all(np.any(noise != 0, axis=0)))


@pytest.mark.slow
def test_every_cell_has_noise_of_the_stated_scale(monkeypatch):
    first, second, metrics = noise_of(monkeypatch, RELEASE)
    assert has_noise_everywhere(first)
    # Two subgroups and all others, each with five cells of the confusion matrix; 66
    # cells of scores.
    assert first.shape == (60, 81)
    assert len(np.unique(metrics.confusion_)) > 1
    for noise, sigma in zip((first, second), metrics.noise_scales_, strict=True):
        # Six standard deviations of a standard deviation.
        assert abs(noise.std() / sigma - 1) < 6 / np.sqrt(2 * noise.size)


@pytest.mark.slow
def test_noise_that_is_missing_on_empty_cells_is_found(monkeypatch):
    def leaves_empty(self, counts, noise=None):
        noisy = RELEASE(self, counts, noise)
        return np.where(np.asarray(counts) == 0, 0, noisy)

    first, _, _ = noise_of(monkeypatch, leaves_empty, 3)
    assert not has_noise_everywhere(first)


def test_the_noise_does_not_come_from_random_state():
    X, y = columns()
    one, other = (
        private_metrics(Touchy(), X, y, epsilon=2, random_state=0) for _ in range(2)
    )
    assert not np.array_equal(one.confusion_, other.confusion_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("bins", ["auto", [0.2, 0.6]])
def test_the_stated_epsilon_is_that_of_the_noise(n_classes, bins):
    X, y = columns()
    metrics = private_metrics(Touchy(n_classes), X, y, epsilon=0.7, bins=bins)
    n_scored = 1 if n_classes == 2 else 3
    mu = np.sqrt(
        sum(
            2 * n_tables / (sigma**2 - 2.25)
            for n_tables, sigma in zip(
                (1 + n_scored, n_scored), metrics.noise_scales_, strict=True
            )
        )
    )
    spent = metrics.privacy_spent_
    assert spent.mu == pytest.approx(mu)
    assert spent.epsilon == pytest.approx(gdp_epsilon(mu, 1e-5))
    assert 0.699 < spent.epsilon <= 0.7


def test_a_quarter_of_the_squared_mu_is_for_the_first_part():
    X, y = columns()
    first, second = private_metrics(Touchy(), X, y, epsilon=0.3).noise_scales_
    shares = 4 / (first**2 - 2.25), 2 / (second**2 - 2.25)
    assert shares[0] / sum(shares) == pytest.approx(0.25, rel=1e-4)


def test_seeded_noise_voids_the_statement():
    X, y = columns()
    with equal_noise():
        metrics = private_metrics(Touchy(), X, y, epsilon=2)
    assert np.isinf(metrics.privacy_spent_.epsilon)

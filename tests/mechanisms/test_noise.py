import numpy as np
import pytest
from scipy import stats

from sklearn_pate import PrivacyLeakWarning
from sklearn_pate.mechanisms.noise import NoiseSource

# A fair test fails below this: once in a million runs.
P_VALUE = 1e-6


@pytest.mark.parametrize("scale", [0.1, 40])
@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (NoiseSource.gaussian, stats.norm),
        (NoiseSource.laplace, stats.laplace),
    ],
)
def test_draws_follow_their_law(draw, law, scale):
    sample = draw(NoiseSource(), scale, (500, 400)).ravel()
    assert stats.kstest(sample, law(scale=scale).cdf).pvalue > P_VALUE


def test_two_sources_from_the_operating_system_differ():
    assert not np.array_equal(NoiseSource().uniform(8), NoiseSource().uniform(8))


def test_random_state_of_numpy_does_not_reach_the_noise():
    def draw():
        np.random.seed(0)
        return NoiseSource().gaussian(1, 8)

    assert not np.array_equal(draw(), draw())


def test_a_seeded_source_repeats_itself_moves_on_and_warns():
    with pytest.warns(PrivacyLeakWarning, match="noise_seed=7"):
        one = NoiseSource(7)
    with pytest.warns(PrivacyLeakWarning):
        other = NoiseSource(7)
    first = one.gaussian(1, 8)
    np.testing.assert_array_equal(first, other.gaussian(1, 8))
    assert not np.array_equal(first, one.gaussian(1, 8))


def test_extreme_bytes_give_finite_noise():
    source = NoiseSource()
    for byte in (b"\x00", b"\xff"):
        source._random_bytes = lambda n_bytes, byte=byte: byte * n_bytes
        assert np.all(np.isfinite(source.gaussian(1, 3)))
        assert np.all(np.isfinite(source.laplace(1, 3)))

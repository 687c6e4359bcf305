"""Continuous noise: its laws and its source of randomness."""

import numpy as np
import pytest
from scipy import stats

from tests.private import NoiseSource, gamma_vector, standard_normal
from tests.seeding import equal_noise

RARE = 1e-6


def test_standard_normal_draws_have_that_law():
    draws = standard_normal(NoiseSource(), 200_000)
    assert stats.kstest(draws, "norm").pvalue > RARE


def test_standard_normal_draws_are_independent():
    draws = standard_normal(NoiseSource(), (100_000, 2))
    quadrant = np.bincount((draws > 0) @ [1, 2], minlength=4)
    assert stats.chisquare(quadrant).pvalue > RARE
    _, pvalue = stats.pearsonr(*np.abs(draws).T)
    assert pvalue > RARE


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2, 40])
def test_norm_of_a_gamma_vector_is_gamma_distributed(dimension):
    source = NoiseSource()
    norms = [np.linalg.norm(gamma_vector(source, dimension, 0.3)) for _ in range(5000)]
    law = stats.gamma(dimension, scale=0.3)
    assert stats.kstest(norms, law.cdf).pvalue > RARE


@pytest.mark.slow
def test_direction_of_a_gamma_vector_is_uniform_and_independent_of_its_norm():
    source = NoiseSource()
    vectors = np.array([gamma_vector(source, 3, 1.0) for _ in range(5000)])
    norms = np.linalg.norm(vectors, axis=1)
    # Each coordinate of a uniform point on the sphere in three dimensions is uniform.
    for coordinate in (vectors / norms[:, None]).T:
        assert stats.kstest(coordinate, stats.uniform(-1, 2).cdf).pvalue > RARE
    assert stats.spearmanr(norms, vectors[:, 0] / norms).pvalue > RARE


@pytest.mark.thorough
def test_a_shift_changes_the_density_of_a_gamma_vector_by_its_share_of_the_scale():
    # In one dimension it is the Laplace law, whose ratio is known.
    source = NoiseSource()
    draws = np.array([gamma_vector(source, 1, 2.0)[0] for _ in range(20_000)])
    assert stats.kstest(draws, stats.laplace(scale=2.0).cdf).pvalue > RARE


def test_noise_differs_from_draw_to_draw_unless_it_is_seeded():
    assert not np.array_equal(
        standard_normal(NoiseSource(), 5), standard_normal(NoiseSource(), 5)
    )
    seeded = [gamma_vector(equal_noise()(NoiseSource)(), 5, 1.0) for _ in range(2)]
    np.testing.assert_array_equal(*seeded)

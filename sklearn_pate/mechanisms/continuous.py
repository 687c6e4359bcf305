"""Continuous noise on vectors, from the same source of randomness as all noise."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sklearn_pate.mechanisms.noise import NoiseSource

__all__ = ["FLOATING_POINT", "gamma_vector", "standard_normal"]

#: What every release with continuous noise assumes.
FLOATING_POINT = (
    "floating-point arithmetic is near enough to that of real numbers: nobody reads "
    "the last bits of the noise"
)


def standard_normal(noise: NoiseSource, shape: int | tuple[int, ...]) -> NDArray:
    """Draw independent standard normal numbers.

    Parameters
    ----------
    noise : NoiseSource
        Where the random bits come from.

    shape : int or tuple of int
        Shape of the draw.

    Returns
    -------
    draws : ndarray of float64, of the given shape
        By inversion of 63 random bits and a sign; at most 9.2 in size, and beyond that
        lies less than 1e-19 of the law. Rounded to floats: what is added to data of
        another size has gaps (Mironov 2012, "On significance of the least significant
        bits for differential privacy"), which `FLOATING_POINT` admits.
    """
    words = noise.words(shape)
    halves = np.ldexp((words >> np.uint64(1)) + 0.5, -64)  # in (0, 1/2]
    magnitudes = -ndtri(np.minimum(halves, 0.5))
    return np.where(words % np.uint64(2) == 1, -magnitudes, magnitudes)


def gamma_vector(
    noise: NoiseSource, dimension: int, scale: float
) -> NDArray[np.float64]:
    """Draw a vector with density proportional to exp(-norm / scale).

    Parameters
    ----------
    noise : NoiseSource
        Where the random bits come from.

    dimension : int
        Of the vector.

    scale : float
        A shift by s changes the density by a factor e^{s / scale} at most: for
        epsilon-DP, sensitivity over epsilon.

    Returns
    -------
    vector : ndarray of shape (dimension,)
        Of uniform direction and Gamma(dimension, scale) distributed L2 norm.

    Notes
    -----
    Chaudhuri, Monteleoni, Sarwate (2011), "Differentially private empirical risk
    minimization", Section 2. The norm is a sum of `dimension` exponential draws.
    """
    halves = np.ldexp((noise.words(dimension) >> np.uint64(1)) + 0.5, -63)
    norm = -scale * np.log(np.minimum(halves, 1.0)).sum()
    direction = standard_normal(noise, dimension)
    return norm * direction / np.linalg.norm(direction)

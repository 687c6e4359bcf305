"""Continuous noise on vectors, from the same source of randomness as all noise."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["gamma_vector", "on_lattice", "standard_normal"]

_BITS_OF_NOISE = 20


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
        bits for differential privacy"), which is why nothing is released but on a
        lattice, and `FLOATING_POINT` is stated.
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


def on_lattice(noisy: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Round noisy numbers to multiples of a unit far below their noise.

    Parameters
    ----------
    noisy : ndarray of float64, any shape
        Data with noise.

    scale : float
        Scale of the noise, positive.

    Returns
    -------
    rounded : ndarray of float64, of the same shape
        Multiples of a power of two, between `scale` / 2^20 and half of that. The last
        bits, in which floating-point noise shows what it was added to, are gone.
    """
    unit = 2.0 ** (math.frexp(scale)[1] - 1 - _BITS_OF_NOISE)
    return np.rint(noisy / unit) * unit

"""Continuous noise on vectors."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["gamma_vector", "on_lattice", "standard_normal"]

_BITS_OF_NOISE = 20


def standard_normal(noise: NoiseSource, shape: int | tuple[int, ...]) -> NDArray:
    """Draw independent standard normal numbers.

    By inversion of 63 random bits and a sign; at most 9.2 in size, beyond which lies
    less than 1e-19 of the probability. Sums of data and floats have gaps (Mironov 2012,
    "On significance of the least significant bits for differential privacy"): results
    are rounded to a lattice before release, and `FLOATING_POINT` is stated.
    """
    words = noise.words(shape)
    halves = np.ldexp((words >> np.uint64(1)) + 0.5, -64)  # in (0, 1/2]
    magnitudes = -ndtri(np.minimum(halves, 0.5))
    return np.where(words % np.uint64(2) == 1, -magnitudes, magnitudes)


def gamma_vector(
    noise: NoiseSource, dimension: int, scale: float
) -> NDArray[np.float64]:
    """Draw a vector with density proportional to exp(-norm / scale).

    A shift by s changes the density by a factor e^{s / scale} at most. The direction is
    uniform and the L2 norm Gamma(dimension, scale), a sum of `dimension` exponential
    draws (Chaudhuri, Monteleoni, Sarwate 2011, "Differentially private empirical risk
    minimization", Section 2).
    """
    halves = np.ldexp((noise.words(dimension) >> np.uint64(1)) + 0.5, -63)
    norm = -scale * np.log(np.minimum(halves, 1.0)).sum()
    direction = standard_normal(noise, dimension)
    return norm * direction / np.linalg.norm(direction)


def on_lattice(noisy: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Round noisy numbers to multiples of a unit far below their noise.

    The unit is a power of two between `scale` / 2^20 and half of that. Rounding removes
    the last bits, in which floating-point noise reveals the number it was added to.
    """
    unit = 2.0 ** (math.frexp(scale)[1] - 1 - _BITS_OF_NOISE)
    return np.rint(noisy / unit) * unit

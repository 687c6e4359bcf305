"""Noise from the operating system, or from a seed for research and tests."""

import secrets
import warnings

import numpy as np
from scipy.special import ndtri

from sklearn_pate.exceptions import PrivacyLeakWarning

__all__ = ["NoiseSource"]


class NoiseSource:
    """Independent noise draws.

    Parameters
    ----------
    noise_seed : int or None, default=None
        With None every bit comes from the operating system (`secrets`). With an integer
        the draws can be repeated, and so subtracted: no privacy is left.

    Warns
    -----
    PrivacyLeakWarning
        If a seed is given.

    Notes
    -----
    Draws are floating-point numbers, by inversion of 52 random bits: a tail of mass
    2^-53 on either side is cut off.
    """

    def __init__(self, noise_seed=None):
        if noise_seed is None:
            self._random_bytes = secrets.token_bytes
        else:
            warnings.warn(
                f"noise_seed={noise_seed!r} makes the noise reproducible: whoever "
                "knows the seed can subtract it, and nothing is private. Leave "
                "noise_seed=None for anything but research and tests.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
            self._random_bytes = np.random.default_rng(noise_seed).bytes

    def uniform(self, shape):
        """Draw from the open interval (0, 1).

        Parameters
        ----------
        shape : int or tuple of int
            Shape of the draw.

        Returns
        -------
        draws : ndarray of the given shape
            Never 0 and never 1.
        """
        n_bytes = 8 * int(np.prod(shape))
        bits = np.frombuffer(self._random_bytes(n_bytes), dtype="<u8")
        # 52 bits and a half are the most that stays exact, and below 1, in float64.
        return ((bits >> np.uint64(12)) + 0.5).reshape(shape) * 2.0**-52

    def gaussian(self, sigma, shape):
        """Draw from N(0, sigma^2).

        Parameters
        ----------
        sigma : float
            Standard deviation.

        shape : int or tuple of int
            Shape of the draw.

        Returns
        -------
        draws : ndarray of the given shape
            Finite.
        """
        return sigma * ndtri(self.uniform(shape))

    def laplace(self, scale, shape):
        """Draw from the Laplace distribution, density exp(-|x| / scale) / (2 scale).

        Parameters
        ----------
        scale : float
            Scale, the inverse of gamma.

        shape : int or tuple of int
            Shape of the draw.

        Returns
        -------
        draws : ndarray of the given shape
            Finite.
        """
        uniform = self.uniform(shape)
        # min(u, 1 - u) keeps both tails exact.
        magnitude = -np.log(2 * np.minimum(uniform, 1 - uniform))
        return scale * np.copysign(magnitude, uniform - 0.5)

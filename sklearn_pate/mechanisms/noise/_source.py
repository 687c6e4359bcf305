"""Exact integer noise, from the operating system, or a seed for research and tests."""

import math
import secrets
from fractions import Fraction
from numbers import Integral

import numpy as np

from sklearn_pate.accounting._calibrate import LARGEST_SCALE
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.mechanisms.noise._discrete import GaussianMagnitude, Geometric, invert

__all__ = ["NoiseSource", "check_noise_seed"]


def check_noise_seed(noise_seed):
    """Raise unless a seed can seed noise, or is None.

    Parameters
    ----------
    noise_seed : int or None
        The parameter.
    """
    if noise_seed is not None and (
        not isinstance(noise_seed, Integral) or noise_seed < 0
    ):
        raise ValueError(
            f"noise_seed={noise_seed!r} must be None or an integer that is not "
            "negative."
        )


class NoiseSource:
    """Independent, exact draws of integers.

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
    No floating-point number stands between the random bits and a draw: rounded noise
    has gaps that can tell two vote counts apart. The laws are the discrete ones of
    Canonne, Kamath and Steinke [1]_, with every parameter the exact rational number
    that its float is. They are not sampled by rejection as there but by inversion, for
    speed: 64 random bits are looked up in a table of integers, and more bits are drawn
    whenever these do not settle the outcome. No tail is cut off.

    References
    ----------
    .. [1] Canonne, C., Kamath, G. and Steinke, T. (2020), "The discrete Gaussian for
       differential privacy", NeurIPS. https://arxiv.org/abs/2004.00010
    """

    def __init__(self, noise_seed=None):
        if noise_seed is None:
            self._random_bytes = secrets.token_bytes
        else:
            warn_user(
                f"noise_seed={noise_seed!r} makes the noise reproducible: whoever "
                "knows the seed can subtract it, and nothing is private. Leave "
                "noise_seed=None for anything but research and tests.",
                PrivacyLeakWarning,
            )
            self._random_bytes = np.random.default_rng(noise_seed).bytes

    def words(self, shape):
        """Draw 64-bit words.

        Parameters
        ----------
        shape : int or tuple of int
            Shape of the draw.

        Returns
        -------
        words : ndarray of uint64, of the given shape
            Uniform in range(2^64). Read-only.
        """
        n_bytes = 8 * int(np.prod(shape))
        little_endian = np.frombuffer(self._random_bytes(n_bytes), dtype="<u8")
        return little_endian.astype(np.uint64, copy=False).reshape(shape)

    def discrete_gaussian(self, sigma, shape):
        """Draw from the discrete Gaussian.

        Parameters
        ----------
        sigma : float
            Scale, at most 2^20. The standard deviation is at most that.

        shape : int or tuple of int
            Shape of the draw.

        Returns
        -------
        draws : ndarray of int64, of the given shape
            Pr[z] is proportional to exp(-z^2 / (2 sigma^2)) over all integers z.

        Raises
        ------
        ValueError
            If `sigma` is not positive and finite, or more than 2^20.
        """
        law = GaussianMagnitude(_exact("sigma", sigma))
        if sigma > LARGEST_SCALE:
            raise ValueError(
                f"sigma={sigma!r} is more than {LARGEST_SCALE}, the widest noise that "
                "can be drawn; lower sigma."
            )
        magnitudes = self._invert(law, shape)
        # Zero has one sign in integers, and its mass is not doubled in the law.
        is_negative = self.words(shape) % 2 == 1
        return np.where(is_negative, -magnitudes, magnitudes)

    def discrete_laplace(self, gamma, shape):
        """Draw from the discrete Laplace distribution.

        Parameters
        ----------
        gamma : float
            Inverse scale, at least 2^-20.

        shape : int or tuple of int
            Shape of the draw.

        Returns
        -------
        draws : ndarray of int64, of the given shape
            Pr[z] is proportional to exp(-gamma |z|) over all integers z.

        Raises
        ------
        ValueError
            If `gamma` is not positive and finite, or less than 2^-20.
        """
        rate = _exact_rate("gamma", gamma)
        # Over the ways to write z as a difference, exp(-gamma (first + second)) sums to
        # a multiple of exp(-gamma |z|).
        return self._geometric(rate, shape) - self._geometric(rate, shape)

    def bernoulli_exp(self, rate, gaps):
        """Toss coins that succeed with probability exp(-rate gap).

        Parameters
        ----------
        rate : float
            At least 2^-20.

        gaps : ndarray of int, any shape
            Not negative. A gap of zero always succeeds.

        Returns
        -------
        successes : ndarray of bool, of the shape of `gaps`
            One independent toss per gap.

        Raises
        ------
        ValueError
            If `rate` is not positive and finite, or less than 2^-20, or if a gap is
            negative.
        """
        exact_rate = _exact_rate("rate", rate)
        if np.any(gaps < 0):
            raise ValueError(
                f"gaps must not be negative, but the smallest is {gaps.min()}; pass "
                "the distances below the maximum."
            )
        return self._geometric(exact_rate, gaps.shape) >= gaps

    def index(self, n, shape):
        """Draw uniformly from range(n).

        Parameters
        ----------
        n : int
            From 1 to 2^63.

        shape : int or tuple of int
            Shape of the draw.

        Returns
        -------
        draws : ndarray of int64, of the given shape
            Each of the n integers is equally likely.
        """
        words = self.words(shape).copy()
        # The words above the last multiple of n would favour the small remainders.
        last = np.uint64(2**64 - 2**64 % n - 1)
        while (is_above := words > last).any():
            words[is_above] = self.words(np.count_nonzero(is_above))
        return (words % np.uint64(n)).astype(np.int64)

    def argmax(self, values):
        """Find the largest value of each row, one of the largest at random on a tie.

        Parameters
        ----------
        values : ndarray of int, of shape (n_rows, n_classes)
            At least one class.

        Returns
        -------
        classes : ndarray of int64, of shape (n_rows,)
            Each class that reaches the maximum of its row is equally likely.
        """
        is_top = values == values.max(axis=1, keepdims=True)
        classes = is_top.argmax(axis=1)
        tied = np.flatnonzero(np.count_nonzero(is_top, axis=1) > 1)
        while tied.size:
            # The highest of random priorities wins, if it is the only highest.
            priorities = self.words((tied.size, values.shape[1])) * is_top[tied]
            classes[tied] = priorities.argmax(axis=1)
            is_highest = priorities == priorities.max(axis=1, keepdims=True)
            tied = tied[np.count_nonzero(is_highest, axis=1) > 1]
        return classes.astype(np.int64, copy=False)

    def _geometric(self, rate, shape):
        """Draw k = 0, 1, ... with Pr[k] proportional to exp(-rate k)."""
        # The quotient and the remainder of k by any base are independent: two small
        # tables instead of a large one.
        base = math.ceil(1 / rate)
        draws = base * self._invert(Geometric(base * rate), shape)
        if base > 1:
            draws += self._invert(Geometric(rate, size=base), shape)
        return draws

    def _invert(self, law, shape):
        return invert(law, self.words(shape), more=self.words)


def _exact(name, value):
    """Return the rational number that a positive, finite float is."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name}={value!r} must be a positive, finite number.")
    return Fraction(float(value))


def _exact_rate(name, value):
    rate = _exact(name, value)
    if rate * LARGEST_SCALE < 1:
        raise ValueError(
            f"{name}={value!r} is less than 1 / {LARGEST_SCALE}, the widest noise "
            f"that can be drawn; raise {name}."
        )
    return rate

"""Exact integer noise, from the operating system or from a seed for research."""

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._calibrate import LARGEST_SCALE
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.mechanisms.noise._discrete import (
    GaussianMagnitude,
    Geometric,
    Law,
    invert,
)

__all__ = ["NoiseSource", "check_noise_seed"]


def check_noise_seed(noise_seed: Any) -> None:
    """Raise ValueError unless a seed is None or a non-negative integer."""
    is_whole = isinstance(noise_seed, Integral) and not isinstance(noise_seed, bool)
    if noise_seed is not None and (not is_whole or noise_seed < 0):
        raise ValueError(
            f"noise_seed={noise_seed!r} must be None or an integer that is not "
            "negative."
        )


class NoiseSource:
    """Independent, exact draws of integers.

    Without a seed every bit comes from the operating system (`secrets`). With a seed
    the draws can be repeated and subtracted: no privacy is left, and a
    PrivacyLeakWarning is raised.

    Draws use no floating-point numbers: rounded noise has gaps that can distinguish two
    vote counts. The laws are the discrete ones of Canonne, Kamath, Steinke (2020), "The
    discrete Gaussian for differential privacy" (https://arxiv.org/abs/2004.00010), with
    every parameter the exact rational number of its float. They are sampled by
    inversion, not by rejection as there, for speed: 64 random bits are looked up in a
    table of integers, and more bits are drawn if these do not decide the outcome. No
    tail is cut off.
    """

    _random_bytes: Callable[[int], bytes]

    def __init__(self, noise_seed: Any = None) -> None:
        if noise_seed is None:
            self._random_bytes = secrets.token_bytes
        else:
            warn_user(
                f"noise_seed={noise_seed!r} makes the noise reproducible: an "
                "attacker with the seed can subtract it, and nothing is private. Leave "
                "noise_seed=None for anything but research and tests.",
                PrivacyLeakWarning,
            )
            self._random_bytes = np.random.default_rng(noise_seed).bytes

    def words(self, shape: int | tuple[int, ...]) -> NDArray[np.uint64]:
        """Draw read-only 64-bit words, uniform in range(2^64)."""
        n_bytes = 8 * int(np.prod(shape))
        little_endian = np.frombuffer(self._random_bytes(n_bytes), dtype="<u8")
        return little_endian.astype(np.uint64, copy=False).reshape(shape)

    def discrete_gaussian(
        self, sigma: float, shape: int | tuple[int, ...]
    ) -> NDArray[np.int64]:
        """Draw integers z with Pr[z] proportional to exp(-z^2 / (2 sigma^2)).

        `sigma` is at most 2^20; the standard deviation is at most `sigma`.
        """
        law = GaussianMagnitude(_exact("sigma", sigma))
        if sigma > LARGEST_SCALE:
            raise ValueError(
                f"sigma={sigma!r} is more than {LARGEST_SCALE}, the largest scale that "
                "can be drawn; lower sigma."
            )
        magnitudes = self._invert(law, shape)
        # -0 is 0 for integers, and the law does not double the mass of zero.
        is_negative = self.words(shape) % 2 == 1
        return np.where(is_negative, -magnitudes, magnitudes)

    def discrete_laplace(
        self, gamma: float, shape: int | tuple[int, ...]
    ) -> NDArray[np.int64]:
        """Draw integers z with Pr[z] proportional to exp(-gamma |z|).

        `gamma` is at least 2^-20.
        """
        rate = _exact_rate("gamma", gamma)
        # Summed over all pairs with the difference z, exp(-gamma (first + second)) is
        # a multiple of exp(-gamma |z|).
        return self._geometric(rate, shape) - self._geometric(rate, shape)

    def bernoulli_exp(
        self, rate: float, gaps: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Draw successes with probability exp(-rate gap), one for each gap.

        `rate` is at least 2^-20. Gaps are not negative; a gap of zero always succeeds.
        """
        exact_rate = _exact_rate("rate", rate)
        if np.any(gaps < 0):
            raise ValueError(
                f"gaps must not be negative, but the smallest is {gaps.min()}; pass "
                "distances to the maximum."
            )
        return self._geometric(exact_rate, gaps.shape) >= gaps

    def index(self, n: int, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Draw uniformly from range(n), for n from 1 to 2^63."""
        words = self.words(shape).copy()
        # Words above the last multiple of n would make small remainders more likely.
        last = np.uint64(2**64 - 2**64 % n - 1)
        while (is_above := words > last).any():
            words[is_above] = self.words(int(is_above.sum()))
        return (words % np.uint64(n)).astype(np.int64)

    def argmax(self, values: NDArray[np.integer]) -> NDArray[np.int64]:
        """Find the largest value of each row, ties broken uniformly at random."""
        is_top = values == values.max(axis=1, keepdims=True)
        classes = is_top.argmax(axis=1)
        tied = np.flatnonzero(np.count_nonzero(is_top, axis=1) > 1)
        while tied.size:
            # The highest random priority wins, unless it occurs twice.
            priorities = self.words((tied.size, values.shape[1])) * is_top[tied]
            classes[tied] = priorities.argmax(axis=1)
            is_highest = priorities == priorities.max(axis=1, keepdims=True)
            tied = tied[np.count_nonzero(is_highest, axis=1) > 1]
        return classes.astype(np.int64, copy=False)

    def _geometric(
        self, rate: Fraction, shape: int | tuple[int, ...]
    ) -> NDArray[np.int64]:
        """Draw k = 0, 1, ... with Pr[k] proportional to exp(-rate k)."""
        # The quotient and the remainder of k by any base are independent: two small
        # tables instead of a large one.
        base = math.ceil(1 / rate)
        draws = base * self._invert(Geometric(base * rate), shape)
        if base > 1:
            draws += self._invert(Geometric(rate, size=base), shape)
        return draws

    def _invert(self, law: Law, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        return invert(law, self.words(shape), more=self.words)


def _exact(name: str, value: float) -> Fraction:
    """Return the rational number of a positive, finite float."""
    if not 0 < value < math.inf:
        raise ValueError(f"{name}={value!r} must be a positive, finite number.")
    return Fraction(float(value))


def _exact_rate(name: str, value: float) -> Fraction:
    rate = _exact(name, value)
    if rate * LARGEST_SCALE < 1:
        raise ValueError(
            f"{name}={value!r} is less than 1 / {LARGEST_SCALE}, the smallest that can "
            f"be drawn; raise {name}."
        )
    return rate

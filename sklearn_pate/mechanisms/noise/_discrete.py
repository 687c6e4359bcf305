"""Exact draws of integers from random bits, by inversion.

A uniform number V in [0, 1) is read bit by bit. An integer with the distribution
function F is the number of k with F(k) <= V. The first word of V decides it, unless it
equals one of the F(k) to the precision of a word; then the next word is read.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["GaussianMagnitude", "Geometric", "invert"]


@dataclass(frozen=True)
class GaussianMagnitude:
    """Magnitude |z| of a discrete Gaussian, Pr[z] ~ exp(-z^2 / (2 sigma^2))."""

    sigma: Fraction

    #: Number of possible outcomes; None for infinitely many.
    size = None

    def thresholds(self, bits: int) -> Iterator[int]:
        """Yield F(0), F(1), ... in units of 2^-bits, up to F = 1 - 2^-(bits + 3).

        Never decreasing, with threshold <= 2^bits F <= threshold + 2.
        """
        # All z with |z| >= count are omitted. All weights sum to sqrt(2 pi) sigma or
        # more (Poisson summation), so these have at most the mass of a continuous
        # Gaussian beyond count - 1, which is below exp(-(count - 1)^2 / (2 sigma^2)).
        # That is 2^-(bits + 3) or less, as 7 / 5 > 2 ln 2: an eighth of a unit.
        count = 2 + math.isqrt(math.floor(self.sigma**2 * (bits + 3) * 7 / 5))
        # Weight m is wrong by m^2 + m at most (see _weights), twice their sum by less
        # than count^3, a ratio of such sums by 2 count^3 / 2^scale: another eighth.
        scale = bits + 3 * count.bit_length() + 4
        whole = 2 * sum(self._weights(count, scale)) - (1 << scale)
        part = -1 << scale  # zero is not doubled
        for weight in self._weights(count, scale):
            part += 2 * weight
            yield _threshold(part, whole, bits)

    def _weights(self, count: int, scale: int) -> Iterator[int]:
        """Yield exp(-m^2 / (2 sigma^2)) for m < count, in units of 2^-scale."""
        # A product of numbers in [0, 1] is wrong by the sum of their errors at most,
        # and by one for rounding: ratio m by 2 m + 1, weight m by m^2 + m.
        half = 1 / (2 * self.sigma**2)
        weight = 1 << scale
        ratio = _exponential(half, scale)
        factor = _exponential(2 * half, scale)
        for _ in range(count):
            yield weight
            weight = weight * ratio >> scale
            ratio = ratio * factor >> scale


@dataclass(frozen=True)
class Geometric:
    """Geometric law on 0, 1, 2, ..., Pr[k] proportional to exp(-rate k).

    With a `size`, only k < size are possible, and rate * size must be at least 1.
    """

    rate: Fraction
    size: int | None = None

    def thresholds(self, bits: int) -> Iterator[int]:
        """Yield F(0), F(1), ... < 1 in units of 2^-bits, up to F = 1 - 2^-bits.

        Never decreasing, with threshold <= 2^bits F <= threshold + 2.
        """
        if self.size is None:
            count = 1 + math.floor(bits * Fraction(7, 10) / self.rate)  # 7 / 10 > ln 2
        else:
            count = self.size - 1
        # A power is wrong by 2 count at most, as in GaussianMagnitude._weights, and
        # whole is at least 1 - 1 / e: F is wrong by 7 count / 2^scale, below a quarter.
        scale = bits + count.bit_length() + 5
        one = whole = power = 1 << scale
        if self.size is not None:
            whole -= _exponential(self.rate * self.size, scale)
        factor = _exponential(self.rate, scale)
        for _ in range(count):
            power = power * factor >> scale
            yield _threshold(one - power, whole, bits)


Law: TypeAlias = GaussianMagnitude | Geometric


def invert(
    law: Law,
    words: NDArray[np.uint64],
    more: Callable[[int], NDArray[np.uint64]],
    width: int = 64,
) -> NDArray[np.int64]:
    """Turn random words, uniform in range(2^width), into integers with that exact law.

    `more(1)` draws a further word. For K thresholds and 64 bits it is needed with
    probability below K / 2^63 a word.
    """
    table = _table(law, width)
    first = words.ravel()
    outcomes = np.searchsorted(table, first, side="right").astype(np.int64, copy=False)
    # The full number is in [word, word + 1), the exact threshold in [threshold,
    # threshold + 2]. So only the last threshold passed can be undecided.
    last_passed = table[np.maximum(outcomes, 1) - 1]
    settled = (outcomes == 0) | (first - last_passed >= 2)
    if law.size is None:
        settled &= outcomes < len(table)
    for row in np.flatnonzero(~settled):
        outcomes[row] = _refine(law, int(first[row]), more, width)
    return outcomes.reshape(words.shape)


@lru_cache(maxsize=4)  # 80 MB for the widest noise
def _table(law: Law, bits: int) -> NDArray[np.uint64]:
    return np.fromiter(law.thresholds(bits), dtype=np.uint64)


def _refine(
    law: Law, value: int, more: Callable[[int], NDArray[np.uint64]], width: int
) -> int:
    """Read further words after the first, `value`, until they decide the outcome."""
    bits = width
    while True:
        value = value << width | int(more(1)[0])
        bits += width
        for passed, threshold in enumerate(law.thresholds(bits)):
            if value < threshold:
                return passed
            if value < threshold + 2:
                break
        else:
            if law.size is not None:
                return law.size - 1


def _threshold(part: int, whole: int, bits: int) -> int:
    """Return t with t <= 2^bits F <= t + 2; part / whole is F to 2^-(bits + 2)."""
    # The nearest integer less one is in [2^bits F - 7/4, 2^bits F - 1/4].
    return max(((part << bits) - (whole >> 1)) // whole, 0)


def _exponential(exponent: Fraction, bits: int) -> int:
    """Return exp(-exponent) in units of 2^-bits, wrong by less than one."""
    # `decimal` rounds every operation correctly, exp included. A relative error of the
    # exponent is at most that absolute error of exp. So three roundings to these digits
    # add less than 10^-6 units, and the last, to an integer, half a unit.
    digits = bits // 3 + 9  # 1 / 3 > log10(2)
    context = Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    quotient = context.divide(Decimal(-exponent.numerator), exponent.denominator)
    scaled = context.multiply(context.exp(quotient), 1 << bits)
    return int(scaled.to_integral_value(context=context))

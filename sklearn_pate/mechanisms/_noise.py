"""Exact integer noise, from the operating system or from a seed for research."""

import math
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sklearn_pate.accounting._calibrate import LARGEST_SCALE
from sklearn_pate.accounting._cost import Cost
from sklearn_pate.accounting._sites import shared_release
from sklearn_pate.accounting._statement import SEEDED, Assumption
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user

_BITS_OF_NOISE = 20


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


def _place() -> tuple[int, int]:
    """Return the process and the thread."""
    return os.getpid(), threading.get_ident()


@dataclass(eq=False)
class _Block:
    """A block of `noise_from`; blocks may end in any order, and in other threads."""

    seeds: np.random.SeedSequence | None
    outer: "_Block | None"
    #: A forked process and a copied context have the block, too, but not its seeds.
    place: tuple[int, int] = field(default_factory=_place)
    is_open: bool = True


_BLOCK: ContextVar[_Block | None] = ContextVar("block of noise_from", default=None)


def _innermost() -> _Block | None:
    """Return the block that was entered last, of those that are open here."""
    block, here = _BLOCK.get(), _place()
    while block is not None and not (block.is_open and block.place == here):
        block = block.outer
    return block


@contextmanager
def noise_from(seeds: np.random.SeedSequence | None) -> Iterator[None]:
    """Seed all sources that are created in a block; None is the operating system."""
    block = _Block(seeds, _innermost())
    _BLOCK.set(block)
    try:
        yield
    finally:
        block.is_open = False


def _seeds() -> np.random.SeedSequence | None:
    block = _innermost()
    return None if block is None else block.seeds


def as_drawn(
    cost: Cost, assumptions: tuple[Assumption, ...] = ()
) -> tuple[Cost, tuple[Assumption, ...]]:
    """Return cost and assumptions of a release by sources that are created here.

    With seeds, the cost is infinite. Draw by a source that is `as_stated`.
    """
    if _seeds() is None:
        return cost, assumptions
    return cost.unbounded(), tuple(dict.fromkeys((*assumptions, SEEDED)))


class NoiseSource:
    """Independent, exact draws of integers.

    Every bit comes from the operating system (`secrets`), except within `noise_from`,
    where each source has a seed of its own. Seeded draws can be repeated and
    subtracted: no privacy is left, and the first source raises a PrivacyLeakWarning.

    Draws use no floating-point numbers: rounded noise has gaps that can distinguish two
    vote counts. The laws are the discrete ones of Canonne, Kamath, Steinke (2020), "The
    discrete Gaussian for differential privacy" (https://arxiv.org/abs/2004.00010), with
    every parameter the exact rational number of its float. They are sampled by
    inversion, not by rejection as there, for speed: 64 random bits are looked up in a
    table of integers, and more bits are drawn if these do not decide the outcome. No
    tail is cut off.

    Of a release that several sites compute together, a source draws the part of the
    Gaussian noise that this site adds, whose variance is the same at each site.
    """

    _random_bytes: Callable[[int], bytes]

    def __init__(self) -> None:
        seeds, shared = _seeds(), shared_release()
        self._n_sites = 1 if shared is None else shared.n_sites
        self.is_seeded = seeds is not None
        if seeds is None:
            self._random_bytes = secrets.token_bytes
            return
        if seeds.n_children_spawned == 0:
            warn_user(
                "The noise is seeded: an attacker who knows the seed can subtract the "
                "noise, and nothing is private. Use sklearn_pate.testing.seeded_noise "
                "for research and tests only.",
                PrivacyLeakWarning,
            )
        [own] = seeds.spawn(1)
        self._random_bytes = np.random.default_rng(own).bytes

    def as_stated(self, assumptions: tuple[Assumption, ...]) -> Self:
        """Return this source, or raise if a statement describes the other kind.

        A block of `noise_from` can begin or end between statement and draw: in code of
        the user, or where the garbage collector closes a generator.
        """
        if self.is_seeded == (SEEDED in assumptions):
            return self
        change = "began" if self.is_seeded else "ended"
        raise RuntimeError(
            f"A block of seeded_noise {change} between the privacy statement and the "
            "noise, which was not drawn; begin and end such blocks outside of this "
            "call."
        )

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
        of_site = sigma if self._n_sites == 1 else sigma / math.sqrt(self._n_sites)
        law = GaussianMagnitude(_exact("sigma", of_site))
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

"""Gaussian mechanisms on the votes of a fresh secret sample for each query."""

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import calibrate_noise
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.composition._poisson_sampling import (
    check_sampling_rate,
    sampled_gaussian_curve,
)
from sklearn_pate.exceptions import PrivacyLeakWarning
from sklearn_pate.mechanisms._confident import ConfidentGNMax
from sklearn_pate.mechanisms._gaussian import GNMax, NoisyHistogram
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts
from sklearn_pate.mechanisms._mechanism import (
    AccountedMechanism,
    Response,
    VoteIndependentMixin,
)
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.mechanisms._two_parts import curve_with_counts
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["PoissonSampler", "SampledMechanism"]

_N_WORDS = 2**64


class PoissonSampler:
    """Secret Poisson samples, of rate `sampling_rate` in (0, 1].

    A uniform 64-bit word is compared with floor(2^64 q), in exact arithmetic: the
    probability is q, or less by 2^-64 at most. A smaller one only lowers the cost, as
    D_a(P || (1-q) P + q Q) and its reverse are convex in q, and zero at q = 0.
    """

    def __init__(self, sampling_rate: float, noise: NoiseSource) -> None:
        self._last_word = np.uint64(math.floor(Fraction(sampling_rate) * _N_WORDS) - 1)
        self._noise = noise

    def draw(self, n_units: int) -> NDArray[np.bool_]:
        """Draw membership in a sample, of shape (n_units,). Sensitive."""
        return self._noise.words(n_units) <= self._last_word


class SampledMechanism(VoteIndependentMixin, AccountedMechanism):
    """A Gaussian mechanism that answers each query on a fresh secret sample.

    Each row (or group) is in the sample of a query with probability `sampling_rate`, in
    (0, 1]. The votes passed to it must come from samples drawn by its `sampler`, which
    it cannot check. Only Gaussian noise without a cap has this cost; other mechanisms
    are refused.

    A query releases votes n + Z about a sample, or a function of them. With one row
    more in the sample, one vote is added, and another one perhaps withdrawn: n moves by
    sqrt 2 at most, by whole numbers. So the noise multiplier is z = sigma / sqrt 2, and
    the cost that of
    :func:`~sklearn_pate.accounting.composition.sampled_gaussian_curve`, for neighbours
    that add or remove one row.

    :class:`~sklearn_pate.mechanisms.ConfidentGNMax` uses the same sample twice: for
    max_j n_j + Z', where the largest count moves by 1 at most, and for n + Z. Together
    they are one Gaussian release: in units of each coordinate's noise, neighbours are
    mu apart, mu^2 = 1 / sigma_threshold^2 + 2 / sigma^2, and z = 1 / mu. It is charged
    for every query, answered or not. (To charge the check for all and the answer for
    some would need the sample of the check to be unknown when the answer is drawn.)

    Zhu, Yu, Chandraker, Wang (2020), "Private-kNN: practical differential privacy for
    computer vision", Section 4; Mironov, Talwar, Zhang (2019), "Renyi differential
    privacy of the sampled Gaussian mechanism".
    """

    def __init__(self, mechanism: Mechanism, sampling_rate: float) -> None:
        self.mechanism = mechanism
        self.sampling_rate = sampling_rate

    @property
    def noise_seed(self) -> int | None:  # type: ignore[override]
        """Seed of the noise of `mechanism`."""
        return self.mechanism.noise_seed

    @property
    def releases_histograms(self) -> bool:  # type: ignore[override]
        """Whether `mechanism` releases noisy counts, and not their plurality alone."""
        return self.mechanism.releases_histograms

    @property
    def sigma(self) -> float:
        """Scale of the noise on every count of an answer, in votes."""
        return self.mechanism.sigma

    def sampler(self) -> PoissonSampler:
        """Return the source of samples; its bits are seeded if the noise is."""
        seed = self.noise_seed
        with warnings.catch_warnings():
            # The source of the noise warns of the seed already.
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            noise = NoiseSource(None if seed is None else [seed, 1])
        return PoissonSampler(self.sampling_rate, noise)

    def relation(self, unit: str) -> str:
        """Return the neighbour relation: a unit has one vote in each of its samples."""
        return "add-remove"

    def respond(
        self,
        counts: ArrayLike,
        noise: NoiseSource,
        max_answers: int,
        probabilities: ArrayLike | None = None,
    ) -> Response:
        self._check_ready()
        return self.mechanism.respond(counts, noise, max_answers, probabilities)

    def calibrated(
        self,
        *,
        n_queries: int,
        epsilon: float | None = None,
        delta: float = 1e-5,
        counts: MarginalCounts | None = None,
    ) -> Self:
        """Return a clone whose noise is set, or calibrated for a whole fit.

        Epsilon covers noisy `counts` that are released before, too.
        """
        self.check()
        ready = clone(self)
        if epsilon is None:
            ready._check_noise()
            return ready
        self.mechanism._check_noise_unset(epsilon)
        if counts is not None:
            counts.check_curve(epsilon, delta)

        def curve(scale: float, orders: ArrayLike) -> RdpCurve:
            cost = ready._with_scale(scale)._cost(n_queries, n_queries, 2, orders)
            return curve_with_counts(counts, cost)

        curve_at_scale: Callable[..., RdpCurve] = curve
        scale = calibrate_noise(curve_at_scale, epsilon=epsilon, delta=delta)
        return ready._with_scale(scale)

    def for_neighbors(self, n_neighbors: int) -> Self:
        """Return a clone that can answer, for `n_neighbors` votes a query at most."""
        self.check()
        inner = self.mechanism._for_teachers(n_neighbors)
        ready = clone(self).set_params(mechanism=inner)
        ready._check_ready()
        return ready

    def _with_scale(self, scale: float) -> Self:
        return clone(self).set_params(mechanism=self.mechanism._with_scale(scale))

    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        # A query costs the same with or without an answer.
        one = sampled_gaussian_curve(1 / self._distance(), self.sampling_rate, orders)
        return one * n_queries

    def _distance(self) -> float:
        """Return the distance of neighbouring votes, in units of the noise."""
        of_answer = math.sqrt(2) / self.sigma
        if isinstance(self.mechanism, ConfidentGNMax):
            return math.hypot(of_answer, 1 / self.mechanism.sigma_threshold)
        return of_answer

    def check(self) -> None:
        """Raise ValueError unless the mechanism has a cost on a sample."""
        # Exactly these: a subclass may add noise of another kind.
        if type(self.mechanism) not in (GNMax, NoisyHistogram, ConfidentGNMax):
            raise ValueError(
                f"mechanism={self.mechanism!r} has no cost on a secret sample, which "
                "supports Gaussian noise only; use 'gnmax', or 'confident'."
            )
        if self.mechanism.max_answers is not None:
            raise ValueError(
                f"max_answers={self.mechanism.max_answers!r} lowers no cost on a "
                "secret sample, where queries without an answer cost the same; leave "
                "max_answers=None, and lower n_queries."
            )
        if Fraction(check_sampling_rate(self.sampling_rate)) * _N_WORDS < 1:
            raise ValueError(
                f"sampling_rate={self.sampling_rate!r} is below 2^-64, so that all "
                "samples would be empty; raise it, for example to 0.01."
            )

    def _check_noise(self) -> None:
        self.check()
        self.mechanism._check_noise()

    def _check_ready(self) -> None:
        self.check()
        self.mechanism._check_ready()

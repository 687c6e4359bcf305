"""SampledMechanism: Gaussian noise on the votes of a fresh, secret sample."""

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

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
from sklearn_pate.mechanisms._mechanism import (
    AccountedMechanism,
    Response,
    VoteIndependentMixin,
)
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["PoissonSampler", "SampledMechanism"]

_N_WORDS = 2**64


class PoissonSampler:
    """Secret coins that say who takes part in one release.

    Parameters
    ----------
    sampling_rate : float
        Probability with which each takes part, in (0, 1].

    noise : NoiseSource
        Where the random bits come from.

    Notes
    -----
    A uniform 64-bit word is compared with floor(2^64 q), in exact arithmetic: the
    probability is q, or less by 2^-64 at most. A smaller one only lowers the cost, as
    D_a(P || (1-q) P + q Q) and its reverse are convex in q, and zero at q = 0.
    """

    def __init__(self, sampling_rate: float, noise: NoiseSource) -> None:
        self._last_word = np.uint64(math.floor(Fraction(sampling_rate) * _N_WORDS) - 1)
        self._noise = noise

    def draw(self, n_units: int) -> NDArray[np.bool_]:
        """Draw a fresh sample.

        Parameters
        ----------
        n_units : int
            How many may take part.

        Returns
        -------
        in_sample : ndarray of bool of shape (n_units,)
            Each True or False by a coin of its own. Sensitive: the cost is that of a
            release about a sample that nobody knows.
        """
        return self._noise.words(n_units) <= self._last_word


class SampledMechanism(VoteIndependentMixin, AccountedMechanism):
    """A Gaussian mechanism whose every query is put to a fresh, secret sample.

    It costs and prints what :class:`~sklearn_pate.baselines.PrivateKNNClassifier`
    does. It cannot see whether the votes that it is given are those of a sample: they
    must come from who draws them with its `sampler`.

    Parameters
    ----------
    mechanism : GNMax, NoisyHistogram or ConfidentGNMax
        What adds the noise. Only Gaussian noise gains by sampling as the cost here
        says: others are refused, and so is `max_answers`.

    sampling_rate : float
        Probability, in (0, 1], with which each row (or group) is in the sample of a
        query. Smaller is more private.

    Notes
    -----
    A query releases votes n + Z about a sample, or a function of them. With one row
    more in the sample, one vote is cast, and another one perhaps withdrawn: n moves by
    sqrt 2 at most, by whole numbers. So the noise multiplier is z = sigma / sqrt 2, and
    the cost that of
    :func:`~sklearn_pate.accounting.composition.sampled_gaussian_curve`, for neighbours
    that add or remove one row.

    :class:`~sklearn_pate.mechanisms.ConfidentGNMax` asks the same sample twice: for
    max_j n_j + Z', where the largest count moves by 1 at most, and for n + Z. Together
    they are one Gaussian release: in units of each coordinate's noise, neighbours are
    mu apart, mu^2 = 1 / sigma_threshold^2 + 2 / sigma^2, and z = 1 / mu. It is charged
    for every query, answered or not. (To charge the check for all and the answer for
    some would need the sample of the check to be unknown when the answer is drawn.)

    Zhu, Yu, Chandraker, Wang (2020), "Private-kNN: practical differential privacy for
    computer vision", Section 4; Mironov, Talwar, Zhang (2019), "Renyi differential
    privacy of the sampled Gaussian mechanism".

    Examples
    --------
    >>> from sklearn_pate.mechanisms import GNMax
    >>> from sklearn_pate.mechanisms._poisson_sampled import SampledMechanism
    >>> mechanism = SampledMechanism(GNMax(sigma=50), sampling_rate=0.15)
    >>> curve = mechanism.account_curve(n_queries=100, n_classes=10)
    >>> round(curve.to_epsilon(1e-5), 2)
    0.15
    """

    def __init__(self, mechanism: Mechanism, sampling_rate: float) -> None:
        self.mechanism = mechanism
        self.sampling_rate = sampling_rate

    @property
    def noise_seed(self) -> Any:  # type: ignore[override]
        """Seed of the noise, which voids privacy, or None.

        Returns
        -------
        noise_seed : int or None
            That of `mechanism`.
        """
        return self.mechanism.noise_seed

    @property
    def releases_histograms(self) -> bool:  # type: ignore[override]
        """Whether the noisy votes are released, and not their plurality alone.

        Returns
        -------
        releases : bool
            As for `mechanism`.
        """
        return self.mechanism.releases_histograms

    @property
    def sigma(self) -> float:
        """Scale of the noise on every count of an answer, in votes.

        Returns
        -------
        sigma : float
            That of `mechanism`.
        """
        return self.mechanism.sigma

    def sampler(self) -> PoissonSampler:
        """Return what draws the samples that the cost is about.

        Returns
        -------
        sampler : PoissonSampler
            Its bits come from the operating system. If the noise is seeded, so are
            they, by another stream.
        """
        seed = self.noise_seed
        with warnings.catch_warnings():
            # Who draws the noise warns of the seed.
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            noise = NoiseSource(None if seed is None else [seed, 1])
        return PoissonSampler(self.sampling_rate, noise)

    def relation(self, unit: str) -> str:
        """Name the neighbour relation that the cost is about.

        Parameters
        ----------
        unit : {"row", "group", "party"}
            Whom it protects.

        Returns
        -------
        relation : {"add-remove"}
            A unit more or less moves one vote of each sample that it is in.
        """
        return "add-remove"

    def respond(
        self, counts: ArrayLike, noise: NoiseSource, max_answers: int, **asked: Any
    ) -> Response:
        """Answer one batch of queries of a fit, for the `Oracle`.

        Parameters
        ----------
        counts : array-like of int of shape (n_queries, n_classes)
            Votes of a fresh sample for each query.

        noise : NoiseSource
            Where the noise comes from.

        max_answers : int
            Not less than the number of queries: there is no cap.

        **asked : Any
            Not used.

        Returns
        -------
        response : Response
            That of `mechanism`.
        """
        self._check_ready()
        return self.mechanism.respond(counts, noise, max_answers, **asked)

    def calibrated(
        self,
        *,
        n_queries: int,
        epsilon: float | None = None,
        delta: float = 1e-5,
    ) -> "SampledMechanism":
        """Return a clone whose noise is set.

        Parameters
        ----------
        n_queries : int
            Number of queries to be asked in all.

        epsilon : float, default=None
            Target for the cost of the whole fit. None keeps the noise as it is.

        delta : float, default=1e-5
            Goes with `epsilon`.

        Returns
        -------
        mechanism : SampledMechanism
            What is left to say is how many vote: see `for_neighbors`.

        Raises
        ------
        ValueError
            If `epsilon` and noise parameters are both given, or neither, or the
            mechanism has no cost on a sample.
        """
        self.check()
        ready = clone(self)
        if epsilon is None:
            ready._check_noise()
            return ready
        self.mechanism._check_open(epsilon)

        def curve(scale: float, orders: ArrayLike) -> RdpCurve:
            return ready._with_scale(scale)._cost(n_queries, n_queries, 2, orders)

        curve_at_scale: Callable[..., RdpCurve] = curve
        scale = calibrate_noise(curve_at_scale, epsilon=epsilon, delta=delta)
        return ready._with_scale(scale)

    def for_neighbors(self, n_neighbors: int) -> "SampledMechanism":
        """Return a clone that is ready to answer.

        Parameters
        ----------
        n_neighbors : int
            How many votes a query can get: a threshold may be a share of them.

        Returns
        -------
        mechanism : SampledMechanism
            With every number filled in; all of them may be published.

        Raises
        ------
        ValueError
            If the noise is not set, or a threshold cannot work.
        """
        self.check()
        inner = self.mechanism._for_teachers(n_neighbors)
        ready = clone(self).set_params(mechanism=inner)
        ready._check_ready()
        return ready

    def _with_scale(self, scale):
        return clone(self).set_params(mechanism=self.mechanism._with_scale(scale))

    def _cost(self, n_queries, n_answers, n_classes, orders):
        # What a query costs does not depend on whether it is answered.
        one = sampled_gaussian_curve(1 / self._distance(), self.sampling_rate, orders)
        return one * n_queries

    def _distance(self):
        """Return how far neighbours are apart, in standard deviations of the noise."""
        of_answer = math.sqrt(2) / self.sigma
        if isinstance(self.mechanism, ConfidentGNMax):
            return math.hypot(of_answer, 1 / self.mechanism.sigma_threshold)
        return of_answer

    def check(self) -> None:
        """Raise unless the mechanism has a cost on a sample, once its noise is set.

        Raises
        ------
        ValueError
            If it is of another kind, or has a cap, or nobody would ever be sampled.
        """
        # Exactly these: a subclass may add noise of another kind.
        if type(self.mechanism) not in (GNMax, NoisyHistogram, ConfidentGNMax):
            raise ValueError(
                f"mechanism={self.mechanism!r} has no cost on a secret sample, which "
                "is known for Gaussian noise only; use 'gnmax', or 'confident'."
            )
        if self.mechanism.max_answers is not None:
            raise ValueError(
                f"max_answers={self.mechanism.max_answers!r} saves nothing on a secret "
                "sample, where queries cost the same whether they are answered or "
                "not; leave max_answers=None, and lower n_queries."
            )
        if Fraction(check_sampling_rate(self.sampling_rate)) * _N_WORDS < 1:
            raise ValueError(
                f"sampling_rate={self.sampling_rate!r} is below 2^-64, and nobody "
                "would ever vote; raise it to 0.01, say."
            )

    def _check_noise(self):
        self.check()
        self.mechanism._check_noise()

    def _check_ready(self):
        self.check()
        self.mechanism._check_ready()

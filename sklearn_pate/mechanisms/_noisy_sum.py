"""Noisy sums of bounded vectors, noisy counts, and releases in two parts."""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate._votes._sums import STEPS
from sklearn_pate.accounting._calibrate import LARGEST_SCALE, six_digits
from sklearn_pate.accounting._cost import Cost, GaussianTest
from sklearn_pate.accounting._fit_entry import FitEntry
from sklearn_pate.accounting._gdp import ROUNDING_VARIANCE, gdp_mu, largest_gdp_mu
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count, check_not_masked, counted
from sklearn_pate.mechanisms._mechanism import Mechanism, Response, spends_all
from sklearn_pate.mechanisms._noise import NoiseSource


class MarginalCounts(Mechanism):
    """Counts of values in tables, one for each column, with Gaussian noise.

    A row, or one row of a group, counts in one cell of each table, or in none. So the
    counts of neighbouring data sets are at most sqrt(2 n_tables) apart if a unit is
    replaced, and sqrt(n_tables) if one is added or removed and no other change is to be
    hidden (`add_remove`). All cells get discrete Gaussian noise of scale `sigma`, empty
    ones too. The number of cells does not enter the cost.
    """

    released = "model"
    noise_parameters = ("sigma",)
    _has_exact_cost = True

    def __init__(
        self,
        sigma: float | None = None,
        *,
        n_tables: int = 1,
        add_remove: bool = False,
    ) -> None:
        self.sigma: Any = sigma
        self.n_tables = n_tables
        self.add_remove = add_remove

    def for_share(self, share: float, epsilon: float, delta: float) -> Self:
        """Return a clone with noise for a share of the squared mu of (epsilon, delta).

        Gaussian releases of shares that sum to 1 are together within (epsilon, delta).
        """
        self._check_noise_unset(epsilon)
        mu = math.sqrt(share) * largest_gdp_mu(epsilon, delta)
        sigma = math.hypot(
            math.sqrt(self._squared_distance) / mu, math.sqrt(ROUNDING_VARIANCE)
        )
        sigma = six_digits(sigma, np.ceil)
        if sigma > LARGEST_SCALE:
            raise ValueError(
                f"epsilon={epsilon!r} needs noise of {sigma:g} on each count of "
                f"{counted(self.n_tables, 'column')}, more than the {LARGEST_SCALE} "
                "that can be drawn; raise epsilon."
            )
        return clone(self).set_params(sigma=sigma)

    @property
    def mu(self) -> float:
        """Mu of the Gaussian test that the release of all tables is."""
        self._check_noise()
        return gdp_mu(self.sigma, self._squared_distance)

    def release(self, counts: ArrayLike, noise: NoiseSource) -> NDArray[np.int64]:
        """Release counts with noise, each once. The result may be published."""
        self._check_noise()
        check_not_masked("counts", counts)
        counts = np.asarray(counts, dtype=np.int64)
        return counts + noise.discrete_gaussian(self.sigma, counts.shape)

    def _relation(self, unit: str) -> str:
        return "add-remove" if self.add_remove else super()._relation(unit)

    @property
    def _squared_distance(self) -> int:
        return self.n_tables if self.add_remove else 2 * self.n_tables

    def _exact(self, n_queries: int, n_classes: int) -> GaussianTest:
        return GaussianTest(self.mu)

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        self._check_noise()
        orders = np.asarray(orders, dtype=np.float64)
        return RdpCurve(orders, orders * self._squared_distance / (2 * self.sigma**2))

    def _check_noise(self) -> None:
        super()._check_noise()
        check_count("n_tables", self.n_tables)


class GaussianSum(Mechanism):
    """Base class of sums of whole-number vectors of teachers with Gaussian noise.

    Noise is in units of a length that bounds vectors, 1/1024 of which is their unit.
    """

    released = "sum"

    noise_parameters = ("noise_scale",)
    largest_scale: ClassVar[float] = LARGEST_SCALE / STEPS

    noise_scale: Any

    @abstractmethod
    def _squared_distance(self, n_queries: int) -> float:
        """Bound how far one teacher moves all sums of a fit, squared."""

    def release(
        self, sums: ArrayLike, noise: NoiseSource | None = None
    ) -> NDArray[np.int64]:
        """Release sums with noise.

        Every call draws new noise and has a new privacy cost, so release each sum once.

        Parameters
        ----------
        sums : array-like of int of shape (n_queries, size)
            Sums of vectors, in units of 1/1024 of the clipping bound. Sensitive.

        noise : NoiseSource, default=None
            Source of the noise. With None, a new source is created.

        Returns
        -------
        noisy : ndarray of int of shape (n_queries, size)
            Noisy sums, in the units of `sums`. May be published, at the privacy cost
            that `cost` computes.

        Raises
        ------
        ValueError
            If `sums` are not whole numbers, or `noise_scale` is not set.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded. The sums are then not private.
        """
        self._check_noise()
        check_not_masked("sums", sums)
        sums = np.asarray(sums)
        if sums.ndim != 2 or sums.dtype.kind not in "iu":
            raise ValueError(
                f"sums has shape {sums.shape} and dtype {sums.dtype}; pass integers "
                "of shape (n_queries, size)."
            )
        noise = noise or NoiseSource()
        return sums + noise.discrete_gaussian(self._sigma, sums.shape)

    def _calibrated(
        self, epsilon: float | None, delta: float, before: Cost | None
    ) -> Self:
        """Return a clone with its noise set, for one fit, after another release."""
        self._check_before(before)
        ready = clone(self)
        if epsilon is not None:
            self._check_noise_unset(epsilon)
            mu = largest_gdp_mu(epsilon, delta)
            if before is not None:
                mu = _mu_left(mu, before, epsilon)
            scale = np.sqrt(self._squared_distance(1)) / mu
            # Discrete noise must be wider than continuous noise, by less than this.
            scale = six_digits(np.hypot(scale, 2 / STEPS), np.ceil)
            if scale > self.largest_scale:
                raise ValueError(
                    f"epsilon={epsilon!r} needs noise of {scale:g} clipping bounds, "
                    f"more than the {self.largest_scale:g} that can be drawn; "
                    f"{self._for_less_noise}."
                )
            ready.set_params(noise_scale=scale)
        ready._check_noise()
        return ready

    #: What a user can do about too much noise.
    _for_less_noise: ClassVar[str] = "raise epsilon"

    def _exact(self, n_queries: int, n_classes: int) -> GaussianTest:
        squared_distance = self._squared_distance(n_queries) * STEPS**2
        return GaussianTest(gdp_mu(self._sigma, squared_distance))

    @property
    def _sigma(self) -> float:
        return self.noise_scale * STEPS

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        self._check_noise()
        orders = np.asarray(orders, dtype=np.float64)
        squared_distance = self._squared_distance(n_queries)
        return RdpCurve(orders, orders * squared_distance / (2 * self.noise_scale**2))


class StoredSums:
    """Noisy sums of one fit, each drawn once, or read from its ledger entry."""

    def __init__(
        self, mechanism: GaussianSum, entry: FitEntry | None, noise: NoiseSource
    ) -> None:
        self._mechanism = mechanism
        self._entry = entry
        self._noise = noise
        self._stored: dict[int, Any] = {}
        if entry is not None:
            self._stored = {n: one.histogram for n, one in entry.stored().items()}

    def draw(
        self, number: int, total: Callable[[], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Record the cost, and return a noisy sum.

        `total` computes the exact sum, which is not needed where the entry has the
        noisy one. The noisy sum is stored before it is returned.
        """
        if number not in self._stored:
            if self._entry is not None:
                self._entry.open(1)
            drawn = self._mechanism.release([total()], self._noise)
            self._stored[number] = drawn[0]
            if self._entry is not None:
                response = Response(np.array([-1]), 1, drawn)
                kept = self._entry.keep(np.array([number]), response)
                self._stored[number] = kept[number].histogram
        return np.asarray(self._stored[number])


class NoisySum(GaussianSum):
    """Sum of the teachers' clipped vectors with Gaussian noise.

    The noisy sum may be published, at the privacy cost that `cost` computes.
    Post-processing of the noisy sum, such as labels and networks, has no privacy cost.

    Parameters
    ----------
    noise_scale : float, default=None
        Standard deviation of the noise on every coordinate of the sum, divided by the
        clipping bound. With None, :class:`~sklearn_pate.learners.PETDLClassifier`
        calibrates the noise to a target epsilon. More noise has a lower privacy cost.
        The scale must be chosen independently of private data.

    n_parts : int, default=1
        Number of parts of a vector, each of which is clipped to the clipping bound.
        More parts have a higher privacy cost.

    Notes
    -----
    The release is S = sum_i v_i + Z with independent discrete Gaussian noise Z. The
    entries of each vector v_i are not negative, and whole multiples of 1/1024 of the
    clipping bound C. The norm of v_i is at most sqrt(n_parts) C. Replacing one vector
    changes S by at most sqrt(2 n_parts) C (proof in the source of ``SoftVoteLayout``).
    The release is mu-Gaussian differentially private with mu = sqrt(2 n_parts) /
    noise_scale, up to the rounding in ``gdp_mu``, and the stated epsilon is exact. The
    Renyi curve is a n_parts / noise_scale^2 at order a.

    Sun, Zhou, Wang, Li, Socher, Yu, Xiong (2019), "Private deep learning with teacher
    ensembles", add noise to a loss. This noise gives no privacy, as the gradient of the
    noise is zero. The exact epsilon is from Balle and Wang (2018), "Improving the
    Gaussian mechanism for differential privacy". The proof for whole numbers is on the
    page :doc:`/accounting`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import NoisySum
    >>> mechanism = NoisySum(noise_scale=1)
    >>> mechanism.release([[1024, 0, 3]]).shape
    (1, 3)
    >>> round(mechanism.cost(n_queries=1, n_classes=10).epsilon(1e-5), 2)
    6.57
    """

    _for_less_noise: ClassVar[str] = "raise epsilon or batch_size"
    _has_exact_cost = True

    def __init__(
        self,
        noise_scale: float | None = None,
        *,
        n_parts: int = 1,
    ) -> None:
        self.noise_scale: Any = noise_scale
        self.n_parts = n_parts

    def prepared(
        self,
        *,
        n_parts: int,
        epsilon: float | None = None,
        delta: float = 1e-5,
        before: Cost | None = None,
    ) -> "NoisySum":
        """Return a clone with all parameters set, for the release of one sum.

        Parameters
        ----------
        n_parts : int
            Number of parts of a vector.

        epsilon : float, default=None
            Target epsilon of the release. With None, `noise_scale` is kept.

        delta : float, default=1e-5
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        before : Cost, default=None
            Privacy cost, for the same neighbours, of noisy counts that are released
            before the sum. `epsilon` includes this cost.

        Returns
        -------
        mechanism : NoisySum
            Clone with all parameters set. All parameters may be published.

        Raises
        ------
        ValueError
            If both or neither of `epsilon` and `noise_scale` are given, or if `epsilon`
            needs too much noise.
        """
        ready = clone(self).set_params(n_parts=n_parts)
        return ready._calibrated(epsilon, delta, before)

    def _squared_distance(self, n_queries: int) -> float:
        return 2 * self.n_parts * n_queries

    def _check_noise(self) -> None:
        super()._check_noise()
        check_count("n_parts", self.n_parts)


class TwoPartRelease(Mechanism):
    """Noisy counts of the private rows, then a mechanism on rows drawn from them.

    All that the mechanism is asked may depend on the released counts. Its cost bounds
    all such choices, so that costs add up.
    """

    def __init__(self, counts: MarginalCounts, mechanism: Mechanism) -> None:
        self.counts = counts
        self.mechanism = mechanism

    @property
    def released(self) -> str:  # type: ignore[override]
        """Name of what the second part releases."""
        return self.mechanism.released

    @property
    def parts(self) -> tuple[MarginalCounts, Mechanism]:
        """The counts and the mechanism."""
        return self.counts, self.mechanism

    def _relation(self, unit: str) -> str:
        return self.mechanism.relation(unit)

    def cost(
        self,
        n_queries: int = 0,
        n_classes: int = 2,
        *,
        unit: str = "row",
        orders: ArrayLike = DEFAULT_ORDERS,
    ) -> Cost:
        """Add the costs of both parts, which have one relation. May be published."""
        first = self.counts.cost(unit=unit, orders=orders)
        return first + self.mechanism.cost(
            n_queries, n_classes, unit=unit, orders=orders
        )

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        return self.cost(n_queries, n_classes, orders=orders).curve

    def _check_ready(self) -> None:
        self.counts._check_ready()
        self.mechanism._check_ready()


def _mu_left(mu: float, before: Cost, epsilon: float) -> float:
    """Return what a Gaussian release before leaves of the mu of both."""
    left = mu**2 - (np.inf if before.mu is None else before.mu) ** 2
    if left <= 0:
        raise ValueError(spends_all(epsilon))
    return math.sqrt(left)

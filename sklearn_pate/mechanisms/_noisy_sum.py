"""Noisy sums of bounded vectors, noisy counts, and releases in two parts."""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2
from sklearn.base import clone

from sklearn_pate._estimators._progress import phase
from sklearn_pate._votes._votes import (
    LONGEST_CLASS,
    LONGEST_VALUE,
    SCORE_SHARES,
    STEPS,
    TeacherScores,
    direction_units,
)
from sklearn_pate.accounting._calibrate import (
    LARGEST_SCALE,
    ROUNDING_VARIANCE,
    gdp_mu,
    largest_gdp_mu,
    six_digits,
)
from sklearn_pate.accounting._cost import Cost, GaussianTest
from sklearn_pate.accounting._ledger import FitEntry
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._sites import noise_ratio, shared_release
from sklearn_pate.accounting._statement import N_ROWS_OF_SITES, OF_SITES, Assumption
from sklearn_pate.accounting._value_checks import check_count, check_not_masked, counted
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_max import NoisyHistogram
from sklearn_pate.mechanisms._plurality import Mechanism, Response, spends_all

#: Squared length of equal directions over their noise, for each function and each class
#: but one; and fewest functions. Measured on tables.
SQUARED_SIGNAL, _FEWEST = 12, 4
# Prior variance of the j-th function of a direction is proportional to j to this power;
# least squared length of directions, relative to that of their noise.
_DECAY, _LEAST_SIGNAL = -1.5, 0.05
#: Most sites, and least variance of the noise of each. Then the logarithms of the
#: probabilities of up to `MOST_NUMBERS` noisy numbers differ by less than 2e-15 from
#: those of discrete Gaussian noise, which adds less than this to mu.
MOST_SITES, LEAST_VARIANCE, MOST_NUMBERS, OF_SHARED_NOISE = 1000, 5, 2**20, 1e-14
# Length that no direction is shorter than, unless all are zero.
_TINY = 1e-300
_BASES = ("linear", "rbf")
Threshold = Literal["auto", "balanced", "accuracy"]
# Beyond this, the rounding of vectors would take more than half of their length.
MOST_VALUES = 250_000
# Coefficients of noise alone pass each test with this probability. Measured on tables:
# with smaller ones, or without a test of two, models that predict well would be called
# noise.
_CHANCE, _FIRST_TESTED = 0.003, (2, 8)


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


class CodeCounts(MarginalCounts):
    """Counts of codes by class, one table for each column, with Gaussian noise."""


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

    def prepared(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-5,
        before: Cost | None = None,
        **parameters: Any,
    ) -> Self:
        """Return a clone with all parameters set, for one fit.

        Parameters
        ----------
        epsilon : float, default=None
            Target epsilon of the fit. With None, `noise_scale` is kept.

        delta : float, default=1e-5
            Delta of the (epsilon, delta) guarantee, in (0, 0.1).

        before : Cost, default=None
            Privacy cost, for the same neighbours, of noisy counts that are released
            before the sums. `epsilon` includes this cost.

        **parameters : Any
            Other parameters to set, such as `n_parts` of :class:`NoisySum`.

        Returns
        -------
        mechanism : Mechanism
            Clone with all parameters set. All parameters may be published.

        Raises
        ------
        ValueError
            If both or neither of `epsilon` and `noise_scale` are given, a parameter is
            invalid, or `epsilon` needs too much noise.
        """
        self._check_before(before)
        ready = clone(self).set_params(**parameters)
        if epsilon is not None:
            self._check_noise_unset(epsilon)
            mu = largest_gdp_mu(epsilon, delta)
            if before is not None:
                # What a Gaussian release before leaves of the mu of both.
                left = mu**2 - (np.inf if before.mu is None else before.mu) ** 2
                if left <= 0:
                    raise ValueError(spends_all(epsilon))
                mu = math.sqrt(left)
            scale = np.sqrt(ready._squared_distance(1)) / mu
            ready.set_params(noise_scale=self._as_discrete(scale, epsilon))
        ready._check_noise()
        return ready

    def for_share(self, share: float, epsilon: float, delta: float) -> Self:
        """Return a clone with noise for a share of the squared mu of (epsilon, delta).

        Gaussian releases of shares that sum to 1 are together within (epsilon, delta).

        Parameters
        ----------
        share : float
            Share of the squared mu, in (0, 1].

        epsilon, delta : float
            Target of all releases together.

        Returns
        -------
        mechanism : Mechanism
            Clone with its noise set. All parameters may be published.

        Raises
        ------
        ValueError
            If the share needs too much noise.
        """
        scale = math.sqrt(self._squared_distance(1) / share)
        scale = self._as_discrete(scale / largest_gdp_mu(epsilon, delta), epsilon)
        return clone(self).set_params(noise_scale=scale)

    def _as_discrete(self, scale: float, epsilon: float) -> float:
        """Return the scale of discrete noise for that of continuous noise."""
        # Discrete noise must be wider than continuous noise, by less than this.
        scale = six_digits(np.hypot(scale, 2 / STEPS), np.ceil)
        if scale > self.largest_scale:
            raise ValueError(
                f"epsilon={epsilon!r} needs noise of {scale:g} {self._unit_of_noise}, "
                f"more than the {self.largest_scale:g} that can be drawn; "
                f"{self._for_less_noise}."
            )
        return scale

    _unit_of_noise: ClassVar[str] = "clipping bounds"
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
    page :doc:`/proofs/sums`.

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

    def __init__(
        self,
        noise_scale: float | None = None,
        *,
        n_parts: int = 1,
    ) -> None:
        self.noise_scale: Any = noise_scale
        self.n_parts = n_parts

    def _squared_distance(self, n_queries: int) -> float:
        return 2 * self.n_parts * n_queries

    def _check_noise(self) -> None:
        super()._check_noise()
        check_count("n_parts", self.n_parts)


class ClassCounts(GaussianSum):
    """Number of rows of each class with Gaussian noise, or of groups.

    A row contributes the unit vector of its class, and a group the mean of its rows. So
    the counts of neighbouring data sets are at most sqrt(2) apart, as the numbers of a
    vector are not negative, and add up to 1 at most. `noise_scale` is the standard
    deviation of the noise, in rows or groups.
    """

    _unit_of_noise = "rows or groups"
    _for_less_noise = "raise epsilon, or set vote='plain'"

    def __init__(self, noise_scale: float | None = None) -> None:
        self.noise_scale: Any = noise_scale

    def shares(self, noisy: NDArray[np.integer]) -> NDArray[np.float64]:
        """Estimate the share of each class by noisy counts in units of 1 / STEPS."""
        counts = np.maximum(noisy / STEPS, self.noise_scale)
        return counts / counts.sum()

    def _squared_distance(self, n_queries: int) -> float:
        return 2


class MetricSums(GaussianSum):
    """Counts of rows in tables, and sums of numbers from 0 to 1, with Gaussian noise.

    A row, or one row of a group, counts in one cell of each table, or in none, and adds
    one value to each of `n_numbers` sums. So the vectors of two rows are at most
    sqrt(2 n_tables + n_numbers) apart. `noise_scale` is the standard deviation of the
    noise, in rows or groups.
    """

    released = "metrics"
    _unit_of_noise = "rows or groups"

    def __init__(
        self,
        noise_scale: float | None = None,
        *,
        n_tables: int = 1,
        n_numbers: int = 0,
    ) -> None:
        self.noise_scale: Any = noise_scale
        self.n_tables = n_tables
        self.n_numbers = n_numbers

    def _squared_distance(self, n_queries: int) -> float:
        return 2 * self.n_tables + self.n_numbers

    def _check_noise(self) -> None:
        super()._check_noise()
        check_count("n_tables", self.n_tables)
        check_count("n_numbers", self.n_numbers, 0)


def facts_of(counts: Mechanism | None) -> dict[str, Any]:
    """Return what a statement says of counts before a release."""
    n_tables = getattr(counts, "n_tables", None)
    of_codes = isinstance(counts, CodeCounts)
    return {
        "n_tables": None if of_codes else n_tables,
        "n_coded": n_tables if of_codes else None,
        "class_count": isinstance(counts, ClassCounts),
    }


class TwoPartRelease(Mechanism):
    """Noisy counts of the private rows, then a mechanism.

    All that the mechanism is asked may depend on the released counts, such as rows
    drawn from them. Its cost bounds all such choices, so that costs add up.
    """

    def __init__(
        self, counts: MarginalCounts | ClassCounts, mechanism: Mechanism
    ) -> None:
        self.counts = counts
        self.mechanism = mechanism

    @property
    def released(self) -> str:  # type: ignore[override]
        """Name of what the second part releases."""
        return self.mechanism.released

    @property
    def parts(self) -> tuple[MarginalCounts | ClassCounts, Mechanism]:
        """The counts and the mechanism."""
        return self.counts, self.mechanism

    def in_one_line(self) -> str:
        """Write both parts in one line, for statements.

        Returns
        -------
        text : str
            The mechanism, and what was counted before.
        """
        if not isinstance(self.counts, ClassCounts):
            return super().in_one_line()
        return (
            f"{self.mechanism.in_one_line()}, after a noisy count of each class by "
            f"{self.counts.in_one_line()}"
        )

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


class SharedNoise(Mechanism):
    """Release of sums over several sites, each of which draws a part of the noise.

    `mechanism` has the noise of all `n_sites` sites, of equal variance. The cost is
    that of the noise of `n_sites` - `n_colluding` sites: the others may tell their
    noise, or leave it out. Sums of discrete Gaussian noise are nearly discrete Gaussian
    (Kairouz, Liu, Steinke 2021, "The distributed discrete Gaussian mechanism for
    federated learning with secure aggregation"); proof: :doc:`/accounting`.
    """

    def __init__(self, mechanism: Mechanism, n_sites: int, n_colluding: int) -> None:
        self.mechanism = mechanism
        self.n_sites = n_sites
        self.n_colluding = n_colluding

    @classmethod
    def of(cls, mechanism: Mechanism, n_sites: int, n_colluding: int) -> Self:
        """Return the release whose mu is that of a mechanism with its noise."""
        cls(mechanism, n_sites, n_colluding)._summed()
        wider = noise_ratio(n_sites, n_colluding)
        whole = _with_noise(mechanism, lambda one: six_digits(one * wider, np.ceil))
        shared = cls(whole, n_sites, n_colluding)
        shared._check_ready()
        return shared

    @property
    def released(self) -> str:  # type: ignore[override]
        """Name of what is released."""
        return self.mechanism.released

    @property
    def parts(self) -> tuple[Any, Any]:
        """The counts and the mechanism, with the noise of all sites."""
        return self.mechanism.parts

    def in_one_line(self) -> str:
        """Write the mechanism and the numbers of sites in one line, for statements.

        Returns
        -------
        text : str
            The mechanism with the noise of all sites, and what of it is counted.
        """
        return (
            f"{self.mechanism.in_one_line()}, whose noise {self.n_sites} sites draw in "
            f"equal parts (not counted: {self.n_colluding})"
        )

    def _relation(self, unit: str) -> str:
        return str(self._summed()[-1].relation(unit))

    def _summed(self) -> tuple[Any, ...]:
        """Return the releases of sums, or raise ValueError if it is none."""
        own = self.mechanism
        parts = own.parts if isinstance(own, TwoPartRelease) else (own,)
        if not all(isinstance(one, _SUMS) for one in parts):
            raise ValueError(self._no_sum)
        return parts

    @property
    def _no_sum(self) -> str:
        return (
            f"mechanism={self.mechanism!r} is not a sum with Gaussian noise, which "
            "sites can draw together; use mechanism='histogram' or 'scores'."
        )

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        orders = np.asarray(orders, dtype=np.float64)
        mu = self._exact(n_queries, n_classes).mu
        return RdpCurve(orders, orders * mu**2 / 2)

    def _exact(self, n_queries: int, n_classes: int) -> GaussianTest:
        self._check_ready()
        wider = noise_ratio(self.n_sites, self.n_colluding)
        honest = _with_noise(self.mechanism, lambda one: one / wider)
        mu = honest.cost(n_queries, n_classes).mu
        if mu is None:  # a subclass that releases more
            raise ValueError(self._no_sum)
        return GaussianTest(mu + OF_SHARED_NOISE)

    def _check_ready(self) -> None:
        summed = self._summed()
        check_count("n_sites", self.n_sites, 2, MOST_SITES)
        check_count("n_colluding", self.n_colluding, 1, self.n_sites - 1)
        self.mechanism._check_ready()
        for part in summed:
            sigma = part._sigma if isinstance(part, GaussianSum) else part.sigma
            if sigma**2 < self.n_sites * LEAST_VARIANCE:
                raise ValueError(
                    f"Noise of standard deviation {sigma:g} is too little to be drawn "
                    f"by n_sites={self.n_sites}, as the variance of each part must be "
                    f"{LEAST_VARIANCE} or more; lower epsilon."
                )


#: Releases of sums with Gaussian noise.
_SUMS = (GaussianSum, MarginalCounts, NoisyHistogram)


def _with_noise(mechanism: Any, scaled: Callable[[float], float]) -> Any:
    """Return a clone whose noise parameters are scaled, also of both parts."""
    if isinstance(mechanism, TwoPartRelease):
        return TwoPartRelease(
            _with_noise(mechanism.counts, scaled),
            _with_noise(mechanism.mechanism, scaled),
        )
    scales = {name: getattr(mechanism, name) for name in mechanism.noise_parameters}
    return clone(mechanism).set_params(
        **{name: scaled(scale) for name, scale in scales.items()}
    )


def over_sites(
    mechanism: Mechanism, assumptions: tuple[Assumption, ...]
) -> tuple[Mechanism, tuple[Assumption, ...]]:
    """Return a release with its assumptions, as sites compute it if there are any."""
    shared = shared_release()
    if shared is None:
        return mechanism, assumptions
    mechanism = SharedNoise.of(mechanism, shared.n_sites, shared.n_colluding)
    of_rows = () if shared.n_rows is None else (N_ROWS_OF_SITES,)
    return mechanism, (*assumptions, *OF_SITES, *of_rows)


class Estimate(NamedTuple):
    """Released numbers of mean scores. May be published."""

    #: Noisy number of units of each class, and the shares that follow from it.
    classes: NDArray[np.float64]
    shares: NDArray[np.float64]
    #: Standard deviation of the noise on a share.
    share_noise: float
    #: Noisy sum of the teachers' directions, each of length 1, and the variance of the
    #: noise on each number; shape (n_coordinates, n_classes - 1).
    directions: NDArray[np.float64]
    variance: float
    #: Their sum without most of the noise, of length 1.
    direction: NDArray[np.float64]
    #: Noisy mean over units of the score of their own class, in [-1, 1] without noise,
    #: and the variance of its noise.
    mean_value: float
    mean_value_variance: float


class MeanScores(GaussianSum):
    """Mean direction of the teachers' class probabilities, as a model of classes.

    The model is released once, and no queries are answered. Up to 10,000 public rows
    get soft labels, which rank rows for a rare class, too. Public rows alone determine
    a basis of functions. The class probabilities of each teacher become coefficients of
    these functions, scaled to length one: the direction of the teacher. Three sums are
    released with noise. The first counts the rows of each class, and the second adds up
    the teachers' directions. The third is the mean score of the rows' own classes,
    which sets the scale of the model.

    Parameters
    ----------
    basis : {"linear", "rbf"}, default="rbf"
        Functions of the basis. "linear" is the principal components of the public rows
        after the representation. "rbf" adds functions of the distances to cluster means
        of these rows, in an order from smooth to rough, and the noise on all
        coefficients is shrunk.

    max_coordinates : int, default=500
        Largest number of functions in the basis. With more noise, fewer functions of
        "rbf" are used.

    noise_scale : float, default=None
        Standard deviation of the noise on every number of a sum, divided by the bound
        on the length of a teacher's vectors. With None,
        :class:`~sklearn_pate.PATEClassifier` calibrates the noise to `epsilon` of the
        fit. The scale must be chosen independently of private data.

    Notes
    -----
    In steps 1 and 3, each row or group contributes a vector of whole numbers, and in
    step 2 each teacher contributes one. Replacing a contributor changes the sum of step
    i by at most 2 sqrt(s_i) S, with s = (0.03, 0.92, 0.05) and S = 1024. The three
    adaptive Gaussian steps together are mu-Gaussian differentially private with mu = 2
    / noise_scale (Dong, Roth, Su 2022, "Gaussian differential privacy", Corollary 3.3),
    up to the rounding in ``gdp_mu``. The stated epsilon is exact, and does not depend
    on the numbers of public rows, classes and coordinates. The proof is on the page
    :doc:`/proofs/sums`.

    The functions are those that vary most over public rows: unlike the steps of
    :class:`~sklearn_pate.DPNewtonClassifier`, the release does not choose among more
    functions. Classes that depend on functions that vary little are hardly learned.

    Aggregation over disjoint shards is from Nissim, Raskhodnikova, Smith (2007),
    "Smooth sensitivity and sampling in private data analysis". The release of a
    function by noisy coefficients is from Hall, Rinaldo, Wasserman (2013),
    "Differential privacy for functions and functional data". A prior variance that
    falls with the number of a function makes the shrinkage of Pinsker (1980), "Optimal
    filtering of square-integrable signals in Gaussian noise".

    Examples
    --------
    >>> from sklearn_pate.mechanisms import MeanScores
    >>> mechanism = MeanScores(noise_scale=4)
    >>> round(mechanism.cost(n_queries=3, n_classes=2).epsilon(1e-5), 2)
    1.99
    """

    released = "scores"

    #: Number of steps.
    n_steps: ClassVar[int] = len(SCORE_SHARES)

    def __init__(
        self,
        basis: str = "rbf",
        max_coordinates: int = 500,
        *,
        noise_scale: float | None = None,
    ) -> None:
        self.basis = basis
        self.max_coordinates = max_coordinates
        self.noise_scale: Any = noise_scale

    def check(self) -> None:
        """Raise ValueError if a parameter other than the noise is out of range."""
        if self.basis not in _BASES:
            raise ValueError(
                f"basis={self.basis!r} of {type(self).__name__} is unknown; use one of "
                f"{[*_BASES]}."
            )
        check_count("max_coordinates", self.max_coordinates)

    def n_coordinates(self, n_teachers: int, n_classes: int) -> int:
        """Compute the number of coefficients per class that the noise allows.

        Parameters
        ----------
        n_teachers : int
            Number of teachers.

        n_classes : int
            Number of classes, at least 2.

        Returns
        -------
        n_coordinates : int
            Number of functions of the basis, from 4 to `max_coordinates`. Proportional
            to the square of the ratio of the number of teachers to the noise scale; the
            largest number for ``basis="linear"``.
        """
        check_count("n_teachers", n_teachers)
        check_count("n_classes", n_classes, 2)
        # Length of equal directions over the noise, if one step had all the cost.
        signal = n_teachers / self.noise_scale
        squared = SCORE_SHARES[1] * signal**2 / (SQUARED_SIGNAL * (n_classes - 1))
        most = min(self.max_coordinates, max(MOST_VALUES // (n_classes - 1), 1))
        if self.basis == "linear":
            return most
        return min(most, max(_FEWEST, round(squared)))

    _exact = GaussianSum._exact  # `estimate` draws this sum alone

    def estimate(
        self,
        scores: TeacherScores,
        class_sum: Callable[[int], NDArray[np.int64]],
        value_sum: Callable[[NDArray[np.float64], NDArray[np.float64]], int],
        entry: FitEntry | None = None,
        noise: NoiseSource | None = None,
    ) -> Estimate:
        """Release the three sums. Every call has a privacy cost.

        Parameters
        ----------
        scores : TeacherScores
            Sum of the teachers' directions. Sensitive.

        class_sum : callable
            Function that adds up the classes of rows, or of groups, as vectors of whole
            numbers with a given largest length. Sensitive.

        value_sum : callable
            Function of the released direction and shares that adds up a whole number of
            each row, or group, no larger than `LONGEST_VALUE`. Sensitive.

        entry : FitEntry, default=None
            Ledger entry. The privacy cost is recorded before any noise is drawn, and
            the result of each step is stored before the next step.

        noise : NoiseSource, default=None
            Source of the noise. With None, a new source is created.

        Returns
        -------
        estimate : Estimate
            The released numbers. May be published, at the privacy cost that `cost`
            computes.

        Raises
        ------
        LedgerError
            If the ledger cannot be written. Nothing is returned in this case.
        """
        sums = StoredSums(self, entry, noise or NoiseSource())
        with phase("summing scores", self.n_steps) as advance:
            drawn = sums.draw(0, partial(class_sum, LONGEST_CLASS))
            classes = drawn / LONGEST_CLASS
            counts = np.maximum(classes, self._sigma / LONGEST_CLASS)
            shares = counts / counts.sum()
            advance(1)
            units = direction_units(math.prod(scores.shape))
            directions = sums.draw(1, scores.sum).reshape(scores.shape) / units
            variance = (self._sigma / units) ** 2
            # Distances are many functions, from smooth to rough; components are few.
            shrinks = self.basis == "rbf"
            direction = _shrunk(directions, variance) if shrinks else directions
            direction = direction / max(float(np.linalg.norm(direction)), _TINY)
            advance(1)
            of_units = LONGEST_VALUE * counts.sum()
            values = sums.draw(2, lambda: np.array([value_sum(direction, shares)]))
            advance(1)
        return Estimate(
            classes,
            shares,
            self._sigma / LONGEST_CLASS / counts.sum(),
            directions,
            variance,
            direction,
            float(values[0] / of_units),
            (self._sigma / of_units) ** 2,
        )

    def _squared_distance(self, n_queries: int) -> float:
        # Vectors v and v' are at most |v| + |v'| apart. A part costs as much as a fit.
        n_fits = max(1, -(-n_queries // self.n_steps))
        return 4 * n_fits

    def _check_noise(self) -> None:
        self.check()
        super()._check_noise()


def _shrunk(directions: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Shrink a noisy sum of directions, by a prior variance of each function."""
    n_functions, n_contrasts = directions.shape
    noise = directions.size * variance
    signal = max(np.sum(directions**2) - noise, _LEAST_SIGNAL * noise)
    weights = np.arange(1.0, n_functions + 1) ** _DECAY
    prior = signal / n_contrasts * weights / weights.sum()
    return directions * (prior / (prior + variance))[:, np.newaxis]


def exceeds_noise(
    coefficients: NDArray[np.float64],
    variances: NDArray[np.float64],
    least: float = 0.0,
) -> bool:
    """Check that coefficients are larger than noise would be.

    By chi-squared tests of the first ones and of all, as few may hold all signal. One
    of the sums must also exceed its mean by at least `least`.
    """
    squared = coefficients**2 / variances[:, np.newaxis]
    parts = *(squared[:n] for n in _FIRST_TESTED), squared
    return any(
        chi2.sf(part.sum(), part.size) < _CHANCE and part.sum() - part.size >= least
        for part in parts
    )


def check_threshold(name: str, threshold: Any) -> None:
    """Raise ValueError unless a threshold is a probability, or the name of a rule."""
    if isinstance(threshold, str) and threshold in get_args(Threshold):
        return
    if (
        isinstance(threshold, bool)
        or not isinstance(threshold, Real)
        or not 0 < float(threshold) < 1
    ):
        raise ValueError(
            f"{name}={threshold!r} must be 'auto', 'balanced', 'accuracy' or a "
            "probability between 0 and 1, such as 0.3."
        )

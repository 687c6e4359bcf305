"""Counts of values by column and class, with Gaussian noise."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import LARGEST_SCALE, six_digits
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._gdp import ROUNDING_VARIANCE, gdp_mu, largest_gdp_mu
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._value_checks import check_count, check_not_masked
from sklearn_pate.mechanisms._mechanism import (
    AccountedMechanism,
    Response,
    VoteIndependentMixin,
)
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["MarginalCounts"]


class MarginalCounts(VoteIndependentMixin, AccountedMechanism):
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
        noise_seed: int | None = None,
    ) -> None:
        self.sigma: Any = sigma
        self.n_tables = n_tables
        self.add_remove = add_remove
        self.noise_seed = noise_seed

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

    def mu_left(self, mu: float) -> float:
        """Return what the counts leave of the mu of a Gaussian release in parts."""
        left = mu**2 - self.mu**2
        if left <= 0:
            raise self._spends_all()
        return math.sqrt(left)

    def check_curve(self, epsilon: float, delta: float) -> None:
        """Raise ValueError if the Renyi cost of the counts is all of (epsilon, delta).

        It is higher than that of `mu`, which the share is of.
        """
        if self.account_curve(1, 1).quiet_epsilon(delta) >= epsilon:
            raise self._spends_all()

    def _spends_all(self) -> ValueError:
        return ValueError(
            f"The counts of {counted(self.n_tables, 'column')} with noise of "
            f"{self.sigma:g} spend all of epsilon; use a smaller share for them."
        )

    def release(
        self, counts: ArrayLike, noise: NoiseSource | None = None
    ) -> NDArray[np.int64]:
        """Release counts with noise, each once. The result may be published."""
        self._check_noise()
        check_not_masked("counts", counts)
        counts = np.asarray(counts, dtype=np.int64)
        noise = noise or NoiseSource(self.noise_seed)
        return counts + noise.discrete_gaussian(self.sigma, counts.shape)

    def respond(
        self,
        counts: ArrayLike,
        noise: NoiseSource,
        max_answers: int,
        probabilities: ArrayLike | None = None,
    ) -> Response:
        released = self.release(counts, noise)
        # Counts are no answers: none of them counts against a cap.
        return Response(np.full(len(released), -1), 0, released)

    def relation(self, unit: str) -> str:
        """Return the neighbour relation of the privacy cost."""
        return "add-remove" if self.add_remove else super().relation(unit)

    @property
    def _squared_distance(self) -> int:
        return self.n_tables if self.add_remove else 2 * self.n_tables

    def _gaussian_mu(self, n_queries: int) -> float | None:
        return self.mu if type(self) is MarginalCounts else None

    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        orders = np.asarray(orders, dtype=np.float64)
        return RdpCurve(orders, orders * self._squared_distance / (2 * self.sigma**2))

    def _check_noise(self) -> None:
        super()._check_noise()
        check_count("n_tables", self.n_tables)

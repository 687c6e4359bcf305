"""Noisy sums of the steps of a private logistic regression."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts
from sklearn_pate.mechanisms._mechanism import Response
from sklearn_pate.mechanisms._noisy_sum import GaussianSum
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["NewtonSteps", "StoredSums"]


class NewtonSteps(GaussianSum):
    """Newton steps along noisy sums of clipped gradients.

    In step i a row, or a group, contributes a vector v of whole numbers with
    v.v <= s_i S^2, where s are the `shares` and S = 1024. `noise_scale` is the standard
    deviation of the noise on each number of a sum, in units of S. As the shares sum to
    1, all steps together are one Gaussian test with mu = 2 / noise_scale, up to the
    rounding in ``gdp_mu``; proof: :doc:`/accounting`.
    """

    released = "newton"

    #: Share of the squared length of a unit's vectors in each step: later ones matter
    #: more.
    shares: ClassVar[tuple[float, ...]] = (0.15, 0.25, 0.6)

    def __init__(
        self, noise_scale: float | None = None, *, noise_seed: int | None = None
    ) -> None:
        self.noise_scale: Any = noise_scale
        self.noise_seed = noise_seed

    def prepared(
        self, *, epsilon: float, delta: float, counts: MarginalCounts | None = None
    ) -> Self:
        """Return a clone with its noise set, for one fit, after noisy counts."""
        return self._calibrated(epsilon, delta, counts)

    def noisy_sum(
        self, total: NDArray[np.int64], noise: NoiseSource
    ) -> NDArray[np.int64]:
        """Add noise to the sum of one step. The result may be published."""
        return self.release(total[np.newaxis], noise)[0]

    def _squared_distance(self, n_queries: int) -> float:
        # Of a whole fit. Vectors v and v' are at most |v| + |v'| apart.
        return 4


class StoredSums:
    """Noisy sums of one fit, each drawn once, or read from its ledger entry."""

    def __init__(self, mechanism: NewtonSteps, entry: FitEntry | None) -> None:
        self._mechanism = mechanism
        self._entry = entry
        self._stored = {} if entry is None else entry.stored()
        self._noise = NoiseSource(mechanism.noise_seed)

    def draw(
        self, number: int, total: Callable[[], NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Record the cost, and return the noisy sum of a step.

        `total` computes the exact sum, which is not needed where the entry has the
        noisy one. The noisy sum is stored before it is returned.
        """
        if self._entry is None:
            return self._mechanism.noisy_sum(total(), self._noise)
        if number not in self._stored:
            self._entry.open(1)
            drawn = self._mechanism.noisy_sum(total(), self._noise)
            self._stored |= self._entry.keep(
                np.array([number]), Response(np.array([-1]), 1, drawn[np.newaxis])
            )
        return np.asarray(self._stored[number].histogram)

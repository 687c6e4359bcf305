"""A release in two parts about the same private rows: counts, then a mechanism."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts
from sklearn_pate.mechanisms._mechanism import AccountedMechanism, AccountedRelease

__all__ = ["TwoPartRelease", "curve_with_counts", "parts_of", "with_counts"]


class TwoPartRelease(AccountedRelease):
    """Noisy counts of the private rows, then a mechanism on rows drawn from them.

    All that the mechanism is asked may depend on the released counts. Its cost bounds
    all such choices, so that costs add up: Renyi costs by Proposition 1 of Mironov
    (2017), squares of mu by Corollary 3.3 of Dong, Roth, Su (2022), and the exact cost
    of answers by their own recursion, whose first move is the counts.
    """

    def __init__(self, counts: MarginalCounts, mechanism: AccountedMechanism) -> None:
        self.counts = counts
        self.mechanism = mechanism

    @property
    def noise_seed(self) -> int | None:  # type: ignore[override]
        """Seed of the noise of both parts."""
        return self.mechanism.noise_seed

    @property
    def released(self) -> str:  # type: ignore[override]
        """Name of what the second part releases."""
        return self.mechanism.released

    def relation(self, unit: str) -> str:
        """Return the neighbour relation, which both parts have."""
        relation = self.mechanism.relation(unit)
        if self.counts.relation(unit) != relation:
            raise ValueError(
                f"{self.in_one_line()} has counts with another neighbour relation than "
                f"{relation!r}"
            )
        return relation

    def account_curve(
        self, n_queries: int, n_classes: int, orders: ArrayLike = DEFAULT_ORDERS
    ) -> RdpCurve:
        """Privacy cost of both parts. May be published."""
        curve = self.mechanism.account_curve(n_queries, n_classes, orders)
        return curve_with_counts(self.counts, curve)

    def _gaussian_mu(self, n_queries: int) -> float | None:
        first = self.counts._gaussian_mu(n_queries)
        second = self.mechanism._gaussian_mu(n_queries)
        if first is None or second is None:
            return None
        return float(np.hypot(first, second))

    def _exact_profile(
        self, n_queries: int, n_classes: int, first_mu: float = 0.0
    ) -> PrivacyProfile | None:
        mu = self.counts._gaussian_mu(n_queries)
        if mu is None or not np.isfinite(mu):
            return None
        first_mu = float(np.hypot(first_mu, mu))
        return self.mechanism._exact_profile(n_queries, n_classes, first_mu)

    def _check_ready(self) -> None:
        self.counts._check_ready()
        self.mechanism._check_ready()


def with_counts(
    counts: MarginalCounts | None, mechanism: AccountedMechanism
) -> AccountedMechanism | TwoPartRelease:
    """Put counts before a mechanism, if there are any."""
    return mechanism if counts is None else TwoPartRelease(counts, mechanism)


def parts_of(release: AccountedRelease) -> tuple[MarginalCounts | None, Any]:
    """Return the counts of a release, if it has any, and its mechanism."""
    if isinstance(release, TwoPartRelease):
        return release.counts, release.mechanism
    return None, release


def curve_with_counts(counts: MarginalCounts | None, curve: RdpCurve) -> RdpCurve:
    """Add the cost of counts to the curve of a mechanism, if there are any."""
    return curve if counts is None else counts.account_curve(1, 1, curve.orders) + curve

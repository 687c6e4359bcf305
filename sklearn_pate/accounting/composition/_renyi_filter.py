"""Renyi privacy filter: adaptive composition of Renyi and pure costs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._calibrate import check_epsilon
from sklearn_pate.accounting._rdp import (
    DEFAULT_ORDERS,
    LARGEST_DELTA,
    RdpCurve,
    check_delta,
)

__all__ = ["RenyiFilter"]


@dataclass(frozen=True)
class RenyiFilter:
    """Privacy budget for releases that are chosen adaptively.

    Parameters
    ----------
    orders : tuple of float
        Renyi orders, fixed before the first release. At the infinite order pure
        epsilons add up.

    limits : tuple of float
        Largest sum of costs at each order.

    Notes
    -----
    If a release is chosen in view of earlier ones, the order of the composition must
    not be chosen afterwards. At one order fixed beforehand, stopping before the first
    cost that would exceed a limit bounds the divergence of all releases together by
    that limit (Feldman and Zrnic 2021, "Individual privacy
    accounting via a Renyi filter", Theorem 4.3; Lecuyer 2021, "Practical privacy
    filters and odometers with Renyi differential privacy"). The limit is the divergence
    that the conversion of Canonne, Kamath and Steinke (2020, Proposition 12) turns into
    epsilon. With m finite orders each limit is computed with delta / m, and a release
    is admitted while any limit holds: while limit i holds, the releases are those of a
    filter with this limit alone, so each order adds at most delta / m.

    At the infinite order the limit is epsilon itself. While all costs are pure and sum
    to at most epsilon, likelihood ratios are at most e^epsilon, without delta: this
    order takes nothing from the others. So the budget admits both what basic
    composition admits and what the Renyi filter admits. Adding the pure epsilons of
    some releases to the Renyi costs of the others would admit no more: at no order does
    the Renyi cost of a release exceed its pure epsilon. The proof is in :doc:`Privacy
    cost of an answer </accounting>`.
    """

    orders: tuple[float, ...]
    limits: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(limit > 0 for limit in self.limits):
            raise ValueError(f"limits={self.limits!r} must all be positive.")

    @classmethod
    def for_budget(
        cls, epsilon: float, delta: float, orders: ArrayLike | None = None
    ) -> Self:
        """Make the filter whose releases are (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : float
            Privacy budget.

        delta : float
            The probability mass that epsilon does not cover, in (0, 0.1).

        orders : array-like of shape (n_orders,), default=None
            Finite Renyi orders that share delta. None takes the one order that admits
            the most releases with Gaussian noise, whose curve is a straight line.

        Returns
        -------
        privacy_filter : RenyiFilter
            Filter with one limit per order, including the infinite order.

        Raises
        ------
        ValueError
            If a parameter is out of range, or an order is too small for this budget.
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta, LARGEST_DELTA)
        if orders is None:
            limits = _limits(DEFAULT_ORDERS, epsilon, delta)
            best = [int(np.argmax(limits / DEFAULT_ORDERS))]
            chosen, limits = DEFAULT_ORDERS[best], limits[best]
        else:
            chosen = np.unique(np.asarray(orders, dtype=np.float64))
            limits = _limits(chosen, epsilon, delta / max(chosen.size, 1))
        if np.any(limits <= 0):
            raise ValueError(
                f"epsilon={epsilon!r} and delta={delta!r} admit no release at order "
                f"{chosen[np.argmin(limits)]:g}; use larger orders, orders=None, or a "
                "larger epsilon."
            )
        return cls((*chosen.tolist(), np.inf), (*limits.tolist(), epsilon))

    @property
    def finite_orders(self) -> tuple[float, ...]:
        """Renyi orders without the infinite one.

        Returns
        -------
        orders : tuple of float
            The orders that share delta.
        """
        return tuple(order for order in self.orders if order < np.inf)

    def cost(self, curve: RdpCurve) -> tuple[float, ...]:
        """Read a curve at the orders of this filter.

        Parameters
        ----------
        curve : RdpCurve
            Privacy cost of a release.

        Returns
        -------
        cost : tuple of float
            One number per order; at an order that the curve lacks its value at the next
            larger one, as a divergence never decreases with its order. No value exceeds
            the pure epsilon of the curve, the divergence of infinite order.
        """
        next_larger = np.searchsorted(curve.orders, self.orders)
        values = np.minimum(np.append(curve.values, np.inf), curve.pure_epsilon)
        return tuple(values[next_larger].tolist())

    def budget_fractions(
        self, cost: Sequence[float], spent: Sequence[Sequence[float | Fraction]] = ()
    ) -> tuple[float, float]:
        """Return the fraction of the budget that a cost takes, and the fraction left.

        Parameters
        ----------
        cost : sequence of float
            Cost of a release, from `cost`.

        spent : sequence of sequence of float or Fraction, default=()
            Cost of each earlier release, or their sum as one.

        Returns
        -------
        taken : float
            Fraction at the order where this cost fits most often.

        left : float
            Fraction left at the same order, which may be negative. The cost is admitted
            if it is at least `taken`.
        """
        taken = (one / limit for one, limit in zip(cost, self.limits, strict=True))
        return max(zip(taken, self.left(spent), strict=True), key=_how_often)

    def left(
        self, spent: Sequence[Sequence[float | Fraction]] = ()
    ) -> tuple[float, ...]:
        """Return the fraction of the budget that is left at each order.

        Parameters
        ----------
        spent : sequence of sequence of float or Fraction, default=()
            Cost of each release, or their sum as one.

        Returns
        -------
        left : tuple of float
            Between 0 and 1, or negative if the limit is exceeded.
        """
        sums = [_sum(of_order) for of_order in zip(*spent, strict=True)]
        return tuple(
            1 - of_order / limit
            for of_order, limit in zip(
                sums or [0.0] * len(self.limits), self.limits, strict=True
            )
        )

    def admits(
        self, cost: Sequence[float], spent: Sequence[Sequence[float | Fraction]] = ()
    ) -> bool:
        """Check that a cost is within the budget.

        Parameters
        ----------
        cost : sequence of float
            Cost of a release, from `cost`.

        spent : sequence of sequence of float or Fraction, default=()
            Cost of each earlier release, or their sum as one.

        Returns
        -------
        admits : bool
            True if all costs together are within the limit at some order.
        """
        sums = (_sum(of_order) for of_order in zip(cost, *spent, strict=True))
        return any(
            total <= limit for total, limit in zip(sums, self.limits, strict=True)
        )


def _how_often(fractions: tuple[float, float]) -> tuple[float, float]:
    """Sort key for (taken, left): the number of times that the cost fits."""
    taken, left = fractions
    if np.isinf(taken):
        return -np.inf, -np.inf
    if left < 0:
        return -np.inf, left
    return (left / taken if taken else np.inf), left


def _sum(values: Iterable[float | Fraction]) -> float:
    """Return the exact sum, rounded once."""
    values = list(values)
    try:
        return (
            np.inf if np.inf in values else float(sum(Fraction(one) for one in values))
        )
    except OverflowError:
        return np.inf


def _limits(
    orders: NDArray[np.float64], epsilon: float, delta: float
) -> NDArray[np.float64]:
    """Return the limits at which a Renyi cost gives (epsilon, delta)."""
    free = RdpCurve(orders, np.zeros_like(orders))
    return epsilon - free.epsilons(delta)

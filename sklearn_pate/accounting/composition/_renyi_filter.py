"""Privacy filter: adaptive composition of Renyi and of pure costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate.accounting._calibrate import check_epsilon
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve, check_delta

__all__ = ["RenyiFilter"]


@dataclass(frozen=True)
class RenyiFilter:
    """A budget for charges that are chosen one after the other.

    Parameters
    ----------
    orders : tuple of float
        Renyi orders, fixed before the first charge. At the infinite order pure epsilons
        add up.

    limits : tuple of float
        How much the charges may add up to at each order.

    Notes
    -----
    A charge that is chosen by looking at earlier releases cannot be composed at the
    order that turns out to be best in the end. At one order fixed beforehand, stopping
    before the first charge that would exceed a limit bounds the divergence of
    everything released by that limit (Feldman and Zrnic 2021, "Individual privacy
    accounting via a Renyi filter", Theorem 4.3; Lecuyer 2021, "Practical privacy
    filters and odometers with Renyi differential privacy"). The limit is the divergence
    that the conversion of Canonne, Kamath and Steinke (2020, Proposition 12) turns into
    epsilon. With m finite orders each limit is that of delta / m, and charges go on
    while any limit holds: what is released while limit i holds is what a filter with
    this limit alone releases, so each order adds at most delta / m.

    At the infinite order the limit is epsilon itself. As long as only pure epsilons
    were charged, and add up to at most epsilon, likelihood ratios are at most
    e^epsilon, with no delta at all: this order takes nothing from the others. So the
    budget holds what plain addition holds, and what the Renyi filter holds. To add some
    charges plainly to the Renyi costs of the others would hold no more: at no order is
    the Renyi cost of a charge above its pure epsilon. The proof is in :doc:`What an
    answer costs </accounting>`.
    """

    orders: tuple[float, ...]
    limits: tuple[float, ...]

    def __post_init__(self) -> None:
        if not all(limit > 0 for limit in self.limits):
            raise ValueError(f"limits={self.limits} must all be positive.")

    @classmethod
    def for_budget(
        cls, epsilon: float, delta: float, orders: ArrayLike | None = None
    ) -> Self:
        """Make the filter whose releases are (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : float
            The budget.

        delta : float
            The probability mass that epsilon does not cover.

        orders : array-like of shape (n_orders,), default=None
            Finite Renyi orders that share delta. None takes the one order that holds
            the most Gaussian noise, whose curve is a straight line.

        Returns
        -------
        privacy_filter : RenyiFilter
            One limit an order, the infinite one included.

        Raises
        ------
        ValueError
            If a parameter is out of range, or an order is too small for this budget.
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        if orders is None:
            limits = _limits(DEFAULT_ORDERS, epsilon, delta)
            best = [int(np.argmax(limits / DEFAULT_ORDERS))]
            chosen, limits = DEFAULT_ORDERS[best], limits[best]
        else:
            chosen = np.unique(np.asarray(orders, dtype=np.float64))
            limits = _limits(chosen, epsilon, delta / max(chosen.size, 1))
        if np.any(limits <= 0):
            raise ValueError(
                f"epsilon={epsilon!r} and delta={delta!r} hold nothing at order "
                f"{chosen[np.argmin(limits)]:g}: the limit there is not positive. Use "
                "larger orders, or orders=None, or a larger epsilon."
            )
        return cls((*chosen.tolist(), np.inf), (*limits.tolist(), epsilon))

    @property
    def finite_orders(self) -> tuple[float, ...]:
        """Renyi orders without the infinite one.

        Returns
        -------
        orders : tuple of float
            Those that share delta.
        """
        return tuple(order for order in self.orders if order < np.inf)

    def cost(self, curve: RdpCurve) -> tuple[float, ...]:
        """Read a curve at the orders of this filter.

        Parameters
        ----------
        curve : RdpCurve
            A cost.

        Returns
        -------
        cost : tuple of float
            One number an order; at an order that the curve lacks its value at the next
            larger one, as a divergence never falls with its order. Nowhere is it more
            than the pure epsilon of the curve, the divergence of infinite order.
        """
        next_larger = np.searchsorted(curve.orders, self.orders)
        values = np.minimum(np.append(curve.values, np.inf), curve.pure_epsilon)
        return tuple(values[next_larger].tolist())

    def shares(
        self, cost: Sequence[float], spent: Sequence[Sequence[float]] = ()
    ) -> tuple[float, float]:
        """Tell what part of the budget a charge takes, and what part is left.

        Parameters
        ----------
        cost : sequence of float
            Of the charge, as `cost` gave it.

        spent : sequence of sequence of float, default=()
            What `cost` gave for each earlier charge.

        Returns
        -------
        share : float
            At the order that holds this charge most often.

        left : float
            At the same order, perhaps negative. The charge is admitted if it is at
            least `share`.
        """
        shares = (one / limit for one, limit in zip(cost, self.limits, strict=True))
        return max(zip(shares, self.left(spent), strict=True), key=_how_often)

    def left(self, spent: Sequence[Sequence[float]] = ()) -> tuple[float, ...]:
        """Tell what part of the budget is left at each order.

        Parameters
        ----------
        spent : sequence of sequence of float, default=()
            What `cost` gave for each charge.

        Returns
        -------
        left : tuple of float
            1 is all of the limit; perhaps negative.
        """
        sums = [_sum(of_order) for of_order in zip(*spent, strict=True)]
        return tuple(
            1 - of_order / limit
            for of_order, limit in zip(
                sums or [0.0] * len(self.limits), self.limits, strict=True
            )
        )

    def admits(
        self, cost: Sequence[float], spent: Sequence[Sequence[float]] = ()
    ) -> bool:
        """Tell whether a charge is within the budget.

        Parameters
        ----------
        cost : sequence of float
            Of the charge.

        spent : sequence of sequence of float, default=()
            Of each earlier charge.

        Returns
        -------
        admits : bool
            Whether all of them together are within the limit at some order.
        """
        sums = (_sum(of_order) for of_order in zip(cost, *spent, strict=True))
        return any(
            total <= limit for total, limit in zip(sums, self.limits, strict=True)
        )


def _how_often(share):
    """Order pairs of share and what is left by how often that holds the share."""
    one, left = share
    if np.isinf(one):
        return -np.inf, -np.inf
    if left < 0:
        return -np.inf, left
    return (left / one if one else np.inf), left


def _sum(values):
    try:
        return fsum(values)
    except OverflowError:
        return np.inf


def _limits(orders, epsilon, delta):
    free = RdpCurve(orders, np.zeros_like(orders))
    return epsilon - free.epsilons(delta)

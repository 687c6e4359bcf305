"""How much may still be spent when what was spent decides what is spent next."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate.accounting.calibrate import check_epsilon
from sklearn_pate.accounting.curve import DEFAULT_ORDERS, RdpCurve, check_delta

__all__ = ["RenyiFilter"]


@dataclass(frozen=True)
class RenyiFilter:
    """A budget for charges that are chosen one after the other.

    Parameters
    ----------
    orders : tuple of float
        Renyi orders, fixed before the first charge.

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
    epsilon. With m orders each limit is that of delta / m, and charges go on while any
    limit holds: what is released while limit i holds is what a filter with this limit
    alone releases, so each order adds at most delta / m.
    """

    orders: tuple[float, ...]
    limits: tuple[float, ...]

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
            Renyi orders that share delta. None takes the one order that holds the most
            Gaussian noise, whose curve is a straight line.

        Returns
        -------
        privacy_filter : RenyiFilter
            One limit an order.

        Raises
        ------
        ValueError
            If a parameter is out of range, or an order is too small for this budget.
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        if orders is None:
            limits = _limits(DEFAULT_ORDERS, epsilon, delta)
            best = int(np.argmax(limits / DEFAULT_ORDERS))
            return cls((float(DEFAULT_ORDERS[best]),), (float(limits[best]),))
        chosen = np.unique(np.asarray(orders, dtype=np.float64))
        limits = _limits(chosen, epsilon, delta / max(chosen.size, 1))
        if np.any(limits <= 0):
            raise ValueError(
                f"orders={chosen.tolist()} can hold nothing within epsilon={epsilon!r} "
                f"and delta={delta!r}: the limit of order "
                f"{chosen[np.argmin(limits)]:g} is not positive. Use larger orders, or "
                "orders=None."
            )
        return cls(tuple(chosen.tolist()), tuple(limits.tolist()))

    def cost(self, curve: RdpCurve) -> tuple[float, ...]:
        """Read a curve at the orders of this filter.

        Parameters
        ----------
        curve : RdpCurve
            A price.

        Returns
        -------
        cost : tuple of float
            One number an order; at an order that the curve lacks its value at the next
            larger one, as a divergence never falls with its order, and infinity where
            there is none.
        """
        next_larger = np.searchsorted(curve.orders, self.orders)
        values = np.append(curve.values, np.inf)
        return tuple(values[next_larger].tolist())

    def share(self, costs: Sequence[Sequence[float]]) -> float:
        """Tell how much of the budget some charges take.

        Parameters
        ----------
        costs : sequence of sequence of float
            What `cost` gave for each charge.

        Returns
        -------
        share : float
            At the order that has most left. The budget admits what is at most 1.
        """
        by_order = zip(*costs, strict=True) if costs else ((0.0,) for _ in self.orders)
        sums = (fsum(of_order) for of_order in by_order)
        return min(
            spent / limit for spent, limit in zip(sums, self.limits, strict=True)
        )


def _limits(orders, epsilon, delta):
    free = RdpCurve(orders, np.zeros_like(orders))
    return epsilon - free.epsilons(delta)

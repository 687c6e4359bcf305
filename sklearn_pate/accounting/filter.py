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
            At the order with most room for this charge.

        left : float
            At the same order, perhaps negative. The charge is admitted if it is at
            least `share`.
        """
        sums = [_sum(of_order) for of_order in zip(*spent, strict=True)]
        shares = [
            (one / limit, 1 - of_order / limit)
            for one, of_order, limit in zip(
                cost, sums or [0.0] * len(self.limits), self.limits, strict=True
            )
        ]
        return max(shares, key=lambda share: share[1] - share[0])

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


def _sum(values):
    try:
        return fsum(values)
    except OverflowError:
        return np.inf


def _limits(orders, epsilon, delta):
    free = RdpCurve(orders, np.zeros_like(orders))
    return epsilon - free.epsilons(delta)

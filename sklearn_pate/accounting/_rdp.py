"""Renyi differential privacy curves and their conversion to (epsilon, delta)."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._value_checks import (
    check_option,
    checked_pairs,
    counted,
    optional_module,
)
from sklearn_pate.exceptions import warn_user

#: Default Renyi orders: 385 of them, from 1.016 to 2^18 + 1, geometric in (order - 1).
#: They are dense near 1 for large budgets, and go far enough for very small ones.
#: Public, and read-only.
DEFAULT_ORDERS = 1.0 + 2.0 ** (np.arange(-96, 289) / 16)
DEFAULT_ORDERS.flags.writeable = False

#: With probability delta a fit may publish everything: from here on, no privacy.
LARGEST_DELTA = 0.1

# Largest order in an accountant of dp-accounting.
_LARGEST_ORDER = 1024
# Fraction of epsilon that a missing order may cost without a warning.
_NEGLIGIBLE = 0.01


def check_delta(delta: float, below: float = 1) -> float:
    """Return `delta` as a float, or raise if it is not strictly between 0 and 1.

    Targets and statements have a delta below `LARGEST_DELTA`.
    """
    if not isinstance(delta, Real) or isinstance(delta, bool) or not 0 < delta < below:
        raise ValueError(
            f"delta={delta!r} must be a number strictly between 0 and {below}; "
            "choose one well below 1 / n_rows, such as 1e-5."
        )
    return float(delta)


def check_orders(orders: NDArray[np.float64]) -> None:
    """Raise ValueError unless Renyi orders are finite numbers above 1."""
    if orders.ndim != 1 or not np.all((orders > 1) & np.isfinite(orders)):
        raise ValueError(
            f"orders={orders.tolist()} must all be finite and greater than 1; drop the "
            "others."
        )


@dataclass(frozen=True, eq=False, init=False)
class RdpCurve:
    """Renyi differential privacy guarantee at several orders.

    Curves of releases with independent noise about one data set add up (`+`). The cost
    of `k` releases with equal curves is ``curve * k``. Costs for different neighbour
    relations do not add up. A worst-case curve may be published. A curve computed from
    votes is as sensitive as the votes. A curve does not record whether it is a worst
    case.

    Parameters
    ----------
    orders : array-like of shape (n_orders,)
        Renyi orders, each greater than 1, increasing. Any set of orders gives a
        guarantee. More orders may give a smaller epsilon.

    values : array-like of shape (n_orders,)
        Bound on the Renyi divergence at each order, in nats, not negative. `inf` if no
        bound is known.

    pure_epsilon : float, default=inf
        Epsilon of a pure guarantee (delta is 0), if known: a bound on the Renyi
        divergence of infinite order. Sums and multiples of curves include this epsilon.

    Raises
    ------
    ValueError
        If a parameter is invalid, if curves with different orders are added, or if a
        curve is multiplied by a negative or infinite number.

    Notes
    -----
    A mechanism M satisfies (a, r)-RDP if D_a(M(d) || M(d')) <= r for all neighbours d,
    d'. Guarantees add up if each cost is a worst case that was fixed beforehand, even
    if a release depends on earlier results (Mironov 2017, "Renyi differential privacy",
    Definition 4 and Proposition 1). The curve of ``cost`` of a mechanism holds for all
    data sets. The curve of ``local_curve`` holds only for the given votes.

    Examples
    --------
    A count that one person changes by one, with Gaussian noise of standard deviation
    10:

    >>> from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
    >>> count = RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS / (2 * 10**2))
    >>> round(count.to_epsilon(1e-5), 2)
    0.38
    >>> round((100 * count).to_epsilon(1e-5), 2)  # of a hundred such counts
    4.73

    One answer of a different mechanism about the same people, at the same orders:

    >>> from sklearn_pate.accounting.bounds import gumbel_worst_case
    >>> round((count + gumbel_worst_case(c=0.2)).to_epsilon(1e-5), 2)
    0.68
    """

    __module__ = "sklearn_pate.accounting"  # its name in files

    orders: NDArray[np.float64]
    values: NDArray[np.float64]
    pure_epsilon: float

    def __init__(
        self, orders: ArrayLike, values: ArrayLike, pure_epsilon: float = np.inf
    ) -> None:
        orders, values = checked_pairs(orders=orders, values=values)
        check_orders(orders)
        if np.any(np.diff(orders) <= 0):
            raise ValueError(
                f"orders={orders.tolist()} must be strictly increasing; sort them and "
                "drop repeated ones."
            )
        if np.any(np.isnan(values)) or np.any(values < 0):
            raise ValueError(
                "values must be non-negative numbers; a Renyi divergence is never "
                "negative."
            )
        if not isinstance(pure_epsilon, Real) or not pure_epsilon >= 0:
            raise ValueError(
                f"pure_epsilon={pure_epsilon!r} must be a non-negative number; leave "
                "it out if no pure guarantee is known."
            )
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "pure_epsilon", float(pure_epsilon))

    def at(self, orders: ArrayLike) -> "RdpCurve":
        """Select some orders of the curve.

        Parameters
        ----------
        orders : array-like of shape (n_orders,)
            Orders of this curve, increasing.

        Returns
        -------
        curve : RdpCurve
            Curve with the given orders only.

        Raises
        ------
        ValueError
            If the curve has no value at one of `orders`.
        """
        orders = np.asarray(orders, dtype=np.float64)
        if not np.isin(orders, self.orders).all():
            raise ValueError(
                f"orders={orders.tolist()} must be among the orders of the curve; "
                "compute the curve at these orders first."
            )
        values = self.values[np.searchsorted(self.orders, orders)]
        return RdpCurve(orders, values, self.pure_epsilon)

    def __add__(self, other: "RdpCurve") -> "RdpCurve":
        if not isinstance(other, RdpCurve):
            return NotImplemented
        if not np.array_equal(self.orders, other.orders):
            raise ValueError(
                "The two curves have different Renyi orders; compute both at the same "
                "orders before adding them."
            )
        return RdpCurve(
            self.orders,
            self.values + other.values,
            self.pure_epsilon + other.pure_epsilon,
        )

    def __mul__(self, n_times: float) -> "RdpCurve":
        if not isinstance(n_times, Real):
            return NotImplemented
        if not 0 <= n_times < np.inf:
            raise ValueError(
                f"A curve cannot be composed {n_times!r} times; use a finite, "
                "non-negative number."
            )
        if n_times == 0:  # 0 * inf would be nan
            return RdpCurve(self.orders, np.zeros_like(self.values))
        return RdpCurve(self.orders, self.values * n_times, self.pure_epsilon * n_times)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RdpCurve):
            return NotImplemented
        return (
            np.array_equal(self.orders, other.orders)
            and np.array_equal(self.values, other.values)
            and self.pure_epsilon == other.pure_epsilon
        )

    __hash__ = None  # type: ignore[assignment] # arrays cannot be hashed

    def __repr__(self) -> str:
        return (
            f"RdpCurve({counted(self.orders.size, 'order')} from {self.orders[0]:g} to "
            f"{self.orders[-1]:g})"
        )

    def to_epsilon(self, delta: float, conversion: str = "cks") -> float:
        """Convert to the epsilon of an (epsilon, delta) guarantee.

        Parameters
        ----------
        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        conversion : {"cks", "classical"}, default="cks"
            Conversion formula, see the notes. "classical", used in the PATE papers,
            never gives a smaller epsilon than "cks".

        Returns
        -------
        epsilon : float
            Smallest epsilon over all orders, in nats, not negative.

        Raises
        ------
        ValueError
            If `delta` is out of range, or `conversion` is unknown.

        Warns
        -----
        UserWarning
            If the order with the smallest epsilon is the first or the last. Orders
            outside the range of the curve may then give a smaller epsilon.

        Notes
        -----
        "cks": epsilon = min over a of r(a) + ln(1 - 1/a) - (ln delta + ln a)/(a - 1)
        (Canonne, Kamath, Steinke 2020, Proposition 12). "classical":
        epsilon = min over a of r(a) + ln(1/delta)/(a - 1) (Mironov 2017,
        Proposition 3).
        """
        epsilons, gap = self._epsilons(delta, conversion)
        best = int(np.argmin(epsilons))
        epsilon = max(float(epsilons[best]), 0.0)
        at_end = epsilons.size > 1 and best in (0, epsilons.size - 1)
        # Pure guarantees are best at the last order; a larger one would gain nothing.
        if at_end and 0 < epsilon < np.inf and abs(gap[best]) > _NEGLIGIBLE * epsilon:
            warn_user(
                f"The best Renyi order, {self.orders[best]:g}, is at the end of the "
                "orders; a wider range would give a smaller epsilon."
            )
        return epsilon

    def quiet_epsilon(self, delta: float, conversion: str = "cks") -> float:
        """Convert to epsilon like `to_epsilon`, without a warning.

        Parameters
        ----------
        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        conversion : {"cks", "classical"}, default="cks"
            Conversion formula.

        Returns
        -------
        epsilon : float
            Equal to the result of `to_epsilon`.

        Raises
        ------
        ValueError
            If `delta` is out of range, or `conversion` is unknown.
        """
        epsilons, _ = self._epsilons(delta, conversion)
        return max(float(epsilons.min()), 0.0)

    def epsilons(self, delta: float) -> NDArray[np.float64]:
        """Convert the curve to an epsilon at each order.

        Parameters
        ----------
        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        Returns
        -------
        epsilons : ndarray of shape (n_orders,)
            Epsilons by Proposition 12 of Canonne, Kamath, Steinke (2020). A negative
            value means that the guarantee holds with epsilon 0.

        Raises
        ------
        ValueError
            If `delta` is out of range.
        """
        return self._epsilons(delta, "cks")[0]

    def unbounded(self) -> "RdpCurve":
        """Return a curve without a guarantee, for seeded noise.

        Returns
        -------
        curve : RdpCurve
            Curve with infinite values at the orders of this curve.
        """
        return RdpCurve(self.orders, np.full_like(self.values, np.inf))

    def to_dp_accounting(self, relation: str) -> Any:
        """Return an accountant of dp-accounting that has spent this cost.

        ``accountant.compose(event)`` adds the cost of other releases, such as the steps
        of a network that Opacus trained.

        Parameters
        ----------
        relation : {"replace-one", "add-remove", "add-remove-or-change"}
            Neighbour relation of the cost, such as ``privacy_spent_.relation``.

        Returns
        -------
        accountant : dp_accounting.rdp.RdpAccountant
            Accountant with relation REPLACE_ONE for "replace-one", and
            ADD_OR_REMOVE_ONE otherwise. The accountant refuses events without a cost
            for this relation. The orders end at 1024, as dp-accounting fails at larger
            orders for most events. ``accountant.ledger`` lists only events that are
            composed later, not this cost.

        Raises
        ------
        ImportError
            If dp-accounting is not installed.

        RuntimeError
            If the installed version of dp-accounting cannot represent the cost.

        ValueError
            If `relation` is unknown.

        Examples
        --------
        >>> from dp_accounting import GaussianDpEvent
        >>> from sklearn_pate.mechanisms import GNMax
        >>> curve = GNMax(sigma=40).cost(n_queries=100, n_classes=10).curve
        >>> accountant = curve.to_dp_accounting("replace-one")
        >>> accountant = accountant.compose(GaussianDpEvent(noise_multiplier=10))
        >>> round(float(accountant.get_epsilon(1e-5)), 2)
        1.24
        """
        relations = {
            "add-remove": "ADD_OR_REMOVE_ONE",
            "add-remove-or-change": "ADD_OR_REMOVE_ONE",
            "replace-one": "REPLACE_ONE",
        }
        check_option("relation", relation, relations)
        rdp = optional_module("dp_accounting.rdp", "dp-accounting")
        package = optional_module("dp_accounting", "dp-accounting")
        neighbours = package.NeighboringRelation[relations[relation]]
        used = self.orders <= _LARGEST_ORDER
        accountant = rdp.RdpAccountant(self.orders[used], neighbours)
        # There is no public way to set a cost, and no event that has one.
        accountant._rdp = self.values[used]
        if not np.array_equal(accountant.rdp, self.values[used]):
            raise RuntimeError(
                "The installed dp-accounting ignores the cost that is passed to it, "
                "and would count it as 0; install dp-accounting 0.6.0."
            )
        return accountant

    def best_order(self, delta: float) -> float:
        """Find the order that gives the smallest epsilon.

        Parameters
        ----------
        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        Returns
        -------
        order : float
            One of the orders of this curve.

        Raises
        ------
        ValueError
            If `delta` is out of range.
        """
        return float(self.orders[np.argmin(self.epsilons(delta))])

    def _epsilons(
        self, delta: float, conversion: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return epsilon at each order, and the part of it that depends on delta."""
        delta = check_delta(delta)
        orders = self.orders
        check_option("conversion", conversion, ("cks", "classical"))
        if conversion == "classical":
            gap = -np.log(delta) / (orders - 1)
        else:
            log = np.log(delta) + np.log(orders)
            gap = np.log1p(-1 / orders) - log / (orders - 1)
        return self.values + gap, gap

"""Privacy cost of the best of a secret, random number of private fits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._rdp import RdpCurve

__all__ = [
    "OnDisjointRows",
    "SelectionLaw",
    "TruncatedNegativeBinomial",
    "TruncatedPoisson",
    "upper_envelope",
]

# Covers round-off: costs are sums of a few terms.
_SAFETY = 1e-12


@dataclass(frozen=True)
class TruncatedNegativeBinomial:
    """Truncated negative binomial law of the number of trials of a private search.

    Parameters
    ----------
    eta : {0, 1}
        0 for the logarithmic law, 1 for the geometric law. The logarithmic law costs
        less and has a larger variance: often a single trial, sometimes very many.

    gamma : float
        Parameter in (0, 1). A smaller value gives more trials.

    Notes
    -----
    Pr[K = k] is proportional to (1 - gamma)^k times the product of (l + eta) / (l + 1)
    over l < k, at least one of them positive; k = 1, 2, ... (Papernot and Steinke 2022,
    "Hyperparameter tuning with Renyi differential privacy", Definition 1).
    """

    eta: int
    gamma: float

    @classmethod
    def of_mean(cls, eta: int, mean: float) -> Self:
        """Find the law with a given mean.

        Parameters
        ----------
        eta : {0, 1}
            0 for the logarithmic law, 1 for the geometric law.

        mean : float
            Expected number of trials, more than 1.

        Returns
        -------
        law : TruncatedNegativeBinomial
            The law with this mean, up to round-off.
        """
        check_mean(mean)
        if eta == 1:
            return cls(1, 1 / mean)
        log_inverse_gamma = brentq(
            # ln((e^x - 1) / x), between x / 2 and x.
            lambda x: x + np.log(-np.expm1(-x) / x) - np.log(mean),
            np.log(mean),
            2 * np.log(mean) + 2,
            xtol=1e-15,
        )
        return cls(0, float(np.exp(-log_inverse_gamma)))

    @property
    def mean(self) -> float:
        """Expected number of trials.

        Returns
        -------
        mean : float
            1 / gamma, or (1 / gamma - 1) / ln(1 / gamma).
        """
        if self.eta == 1:
            return 1 / self.gamma
        cost = -np.log(self.gamma)
        return float(np.expm1(cost) / cost)

    def probabilities(self) -> Iterator[Decimal]:
        """List Pr[K = 1], Pr[K = 2], ...

        Yields
        ------
        probability : Decimal
            To the precision of the current decimal context.
        """
        gamma = Decimal(self.gamma)
        probability = gamma if self.eta == 1 else (1 - gamma) / -gamma.ln()
        k = 1
        while True:
            yield probability
            probability *= (1 - gamma) * (k + self.eta) / (k + 1)
            k += 1

    def cost(self, curve: RdpCurve) -> RdpCurve:
        """Bound the cost of publishing the best of K trials only.

        Parameters
        ----------
        curve : RdpCurve
            Privacy cost of one trial: of its model and its score.

        Returns
        -------
        curve : RdpCurve
            Cost at the same orders.

        Notes
        -----
        e'(a) = e(a) + ln(E[K]) / (a - 1)
        + (1 + eta) min over b >= 1 of { (1 - 1/b) e(b) + ln(1 / gamma) / b } (Papernot
        and Steinke 2022, Theorem 2). At b = 1 the braces are ln(1 / gamma). K, and
        every trial but the best, must stay secret; ties are broken by a random number
        that is drawn with each trial.

        Proof. With f the generating function of K, the best is y with probability
        f(Q(<= y)) - f(Q(< y)) = Q(y) E f'(U), U uniform between the two, and likewise
        for a neighbour, Q'. Both sum over y to D_a(Q || Q') if f'(q)^a f'(q')^{1-a} is
        at most its supremum over q = E g(Q), q' = E g(Q'), for any g to [0, 1]. f'(q)
        is at most E[K], and f'(q) / f'(q') = (p' / p)^{1 + eta}, where
        p = gamma + (1 - gamma)(1 - q) is a probability under Q, and p' under Q'. Hence
        p'^b p^{1-b} <= e^{(b-1) e(b)}, so that p' / p <= e^{(1 - 1/b) e(b)} p^{-1/b},
        and p >= gamma.
        """
        orders, ratio = curve.orders, self._ratio(curve)
        return _sound(orders, curve.values + ratio + np.log(self.mean) / (orders - 1))

    def pure_cost(self, epsilon: float, curve: RdpCurve) -> float:
        """Bound the pure cost of the best of K trials.

        Parameters
        ----------
        epsilon : float
            Pure cost of one trial.

        curve : RdpCurve
            Renyi cost of one trial.

        Returns
        -------
        epsilon : float
            At most (2 + eta) times the cost of one trial, for any mean, and less if the
            mean is small.

        Notes
        -----
        The limit of `cost` at high orders. (2 + eta) is due to Liu and Talwar (2019),
        "Private selection from private candidates", for eta = 1.
        """
        return epsilon + min((1 + self.eta) * epsilon, self._ratio(curve))

    def _ratio(self, curve: RdpCurve) -> float:
        """Bound the log-ratio of the derivatives of the generating function."""
        cost = -float(np.log(self.gamma))
        braces = (1 - 1 / curve.orders) * curve.values + cost / curve.orders
        return (1 + self.eta) * min(cost, float(braces.min()))


@dataclass(frozen=True)
class TruncatedPoisson:
    """Poisson law of the number of trials of a private search, conditioned on K > 0.

    Parameters
    ----------
    rate : float
        Mean of the Poisson law without the condition; positive.

    Notes
    -----
    Papernot and Steinke 2022 use the law without the condition (Theorem 6), where
    there may be no trial and no model.
    """

    rate: float

    @classmethod
    def of_mean(cls, mean: float) -> Self:
        """Find the law with a given mean.

        Parameters
        ----------
        mean : float
            Expected number of trials, more than 1.

        Returns
        -------
        law : TruncatedPoisson
            The law with this mean, up to round-off.
        """
        check_mean(mean)
        # The rate is below the mean, and near 2 (mean - 1) where the mean is near 1.
        return cls(
            brentq(
                lambda rate: rate / -np.expm1(-rate) - mean,
                (mean - 1) / 2,
                2 * mean,
                xtol=1e-15,
            )
        )

    @property
    def mean(self) -> float:
        """Expected number of trials.

        Returns
        -------
        mean : float
            Equal to rate / (1 - e^-rate).
        """
        return float(self.rate / -np.expm1(-self.rate))

    def probabilities(self) -> Iterator[Decimal]:
        """List Pr[K = 1], Pr[K = 2], ...

        Yields
        ------
        probability : Decimal
            To the precision of the current decimal context.
        """
        rate = Decimal(self.rate)
        probability = rate / (rate.exp() - 1)
        k = 1
        while True:
            yield probability
            k += 1
            probability *= rate / k

    def cost(self, curve: RdpCurve) -> RdpCurve:
        """Bound the cost of publishing the best of K trials only.

        Parameters
        ----------
        curve : RdpCurve
            Privacy cost of one trial: of its model and its score.

        Returns
        -------
        curve : RdpCurve
            Cost at the same orders.

        Notes
        -----
        e'(a) = e(a) + m d + ln(E[K]) / (a - 1), with m the rate and d the delta of one
        trial at epsilon ln(1 + 1/(a-1)) (Papernot and Steinke 2022, Theorem 6, for the
        law without the condition, whose mean is m). The proof is that of
        :meth:`TruncatedNegativeBinomial.cost` up to f'(q)^a f'(q')^{1-a}, which here
        is E[K] exp(m [(a-1) p' - a p]) with p = 1 - q and p' = 1 - q'. As
        p' <= a / (a-1) p + d, the bracket is at most (a-1) d. The delta is that of the
        curve at its best order c: e^{(c-1)(e(c) - epsilon)} (1 - 1/c)^{c-1} / c
        (Canonne, Kamath, Steinke 2020, Proposition 12).
        """
        orders = curve.orders
        epsilons = -np.log1p(-1 / orders)
        d = self.rate * _deltas(curve, epsilons)
        return _sound(orders, curve.values + d + np.log(self.mean) / (orders - 1))

    def pure_cost(self, epsilon: float, curve: RdpCurve) -> None:
        """Return None: a pure cost would grow with the number of trials.

        Parameters
        ----------
        epsilon : float
            Pure cost of one trial.

        curve : RdpCurve
            Renyi cost of one trial.

        Returns
        -------
        pure_cost : None
            There is no useful pure guarantee.
        """
        return None


@dataclass(frozen=True)
class OnDisjointRows:
    """Cost of fits on disjoint rows, and of a choice between them on other rows.

    It is the largest of these costs: one changed row changes the law of one fit, or the
    law of the choice between given models (Chaudhuri, Monteleoni, Sarwate 2011,
    "Differentially private empirical risk minimization", Algorithm 3).
    """

    def cost(self, curve: RdpCurve) -> RdpCurve:
        """Return the largest Renyi cost of the fits and the choice, unchanged."""
        return curve

    def pure_cost(self, epsilon: float, curve: RdpCurve) -> float:
        """Return the largest pure cost of the fits and the choice, unchanged."""
        return epsilon


SelectionLaw = TruncatedNegativeBinomial | TruncatedPoisson | OnDisjointRows


def upper_envelope(curves: Iterable[RdpCurve]) -> RdpCurve:
    """Bound the cost of one of several releases: the largest value at each order.

    It is the cost of a random choice between them that does not depend on the data and
    is published: e^{(a-1) D_a} is then the mean of theirs. It is also the cost of all
    of them together on disjoint rows, as one changed row changes one release.
    """
    first, *others = curves
    values, pure_epsilon = first.values, first.pure_epsilon
    for other in others:
        if not np.array_equal(other.orders, first.orders):
            raise ValueError(
                "The candidates state their costs at different orders; compute all at "
                "DEFAULT_ORDERS."
            )
        values = np.maximum(values, other.values)
        pure_epsilon = max(pure_epsilon, other.pure_epsilon)
    return RdpCurve(first.orders, values, pure_epsilon)


def check_mean(mean: float) -> None:
    """Raise unless the expected number of trials is more than 1."""
    check_positive("mean_n_trials", mean)
    if mean <= 1:
        raise ValueError(
            f"mean_n_trials={mean!r} must be more than 1, such as 10: with a single "
            "trial, fit one candidate."
        )


def _deltas(curve: RdpCurve, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the delta of a curve at each epsilon, at its best order."""
    orders = curve.orders
    gap = (orders - 1) * np.log1p(-1 / orders) - np.log(orders)
    log_deltas = (orders - 1) * (curve.values - epsilons[:, np.newaxis]) + gap
    return np.exp(np.minimum(log_deltas.min(axis=1), 0.0))


def _sound(orders: NDArray[np.float64], values: NDArray[np.float64]) -> RdpCurve:
    """Make a curve of bounds: a bound at an order also holds at smaller orders."""
    lowest = np.minimum.accumulate(values[::-1])[::-1]
    return RdpCurve(orders, lowest * (1 + _SAFETY))

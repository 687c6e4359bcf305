"""Tightest Renyi cost of an answer, as a function of the probability q of losing.

q is the probability that a given most-voted class does not win. These bounds are as
sensitive as the votes behind q. As functions of q, they can be released with noise by
:func:`sklearn_pate.accounting.plurality.sanitize`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp

from sklearn_pate.accounting._gdp import gdp_mu
from sklearn_pate.accounting._value_checks import (
    check_not_masked,
    check_option,
    check_positive,
)
from sklearn_pate.accounting.plurality._closed_form import (
    gaussian_worst_case,
    pure_dp_curve,
)

_Array = NDArray[np.float64]
_Value = _Array | float
_Powers = Callable[[float], tuple[float, ...]]
# Largest error of the log-probability of any outcome by rounding a continuous Gaussian
# to a discrete one, where two counts change: 4.2 h in `gdp_mu`.
_ROUNDING_SLACK = 5e-19
# Number of cells for the fraction of q in the first of the two tails.
_N_CELLS = 24
# More values of q than this are first rounded to a grid of z with _STEPS_PER_Z.
_MAX_EXACT = 2048
_STEPS_PER_Z = 512
# Logarithm of the largest odds that are computed as a number.
_LARGEST_ODDS = 600
# Relative round-off of the terms that are added.
_ROUND_OFF = 8 * np.finfo(np.float64).eps


def pure_optimal_cost(
    log_q: ArrayLike, epsilon: float, orders: ArrayLike, direction: str = "both"
) -> _Array:
    """Compute the tightest Renyi cost of an epsilon-DP answer, given q. Sensitive.

    `log_q`, of shape (n_queries,), is the logarithm of q; any upper bound on it gives a
    larger, valid cost. `epsilon` is the pure guarantee of one answer: 2 gamma for
    LNMax, 2 c for GumbelMax and PermuteAndFlip. `direction` "forward" is D_a(M(n) ||
    M(n')), the only one that the PATE papers bound; "backward" is D_a(M(n') || M(n));
    "both" is their maximum, as in the definition. The costs, of shape (n_orders,
    n_queries), are at most those of `pure_dp_curve`, and do not decrease in q.

    Let r be the ratio of an outcome's probability under n' to that under n, and t = 1-a
    forward, t = a backward: (a-1) D_a = ln E[r^t] under n, where e^-eps <= r <= e^eps
    and E[r] = 1. E[r^t] is convex in the law of r, hence largest at an extreme point:
    all losers at r = e^eps or all at e^-eps, the winner at (1 - q r)/(1 - q). That is
    allowed while q <= 1/(1 + e^eps); beyond, randomised response is, and the cost is
    that of any epsilon-DP mechanism. Splitting the winner into outcomes of equal ratio
    changes nothing, so the cost grows with q.
    """
    log_q, orders, powers = _check(log_q, orders, direction)
    check_positive("epsilon", epsilon)
    caps = pure_dp_curve(epsilon, orders).values[:, np.newaxis]
    # Just below the end of its range the winner's ratio is ill-conditioned.
    closed = log_q >= -np.logaddexp(0, epsilon) - 1e-9
    log_q = np.where(closed, -np.inf, log_q)
    log_1_q = np.log1p(-np.exp(log_q))
    costs = np.zeros((orders.size, log_q.size))
    for signed in (epsilon, -epsilon):
        # q (r - 1) / (1 - q), r the ratio of the losers.
        moved = np.exp(log_q - log_1_q + max(signed, 0)) * np.expm1(-epsilon)
        log_winner = np.log1p(moved if signed > 0 else -moved)
        log_winner = np.clip(log_winner, -epsilon, epsilon)
        for row, order in zip(costs, orders, strict=True):
            for power in powers(order):
                scale = _scale(np.maximum(power * log_winner, power * signed))
                scale = np.maximum(scale, _scale(signed))
                excess = [
                    _bregman_of_ratio(log_ratio, power, scale)
                    for log_ratio in (np.full(log_q.shape, signed), log_winner)
                ]
                with np.errstate(divide="ignore"):
                    losers, winner = np.log(excess)
                log_excess = np.logaddexp(log_q + losers, log_1_q + winner) + scale
                np.maximum(row, np.logaddexp(0, log_excess) / (order - 1), out=row)
    return np.where(closed, caps, np.minimum(costs, caps))


def gaussian_optimal_cost(
    log_q: ArrayLike, sigma: float, orders: ArrayLike, direction: str = "both"
) -> _Array:
    """Compute the tightest Renyi cost of a GNMax answer, given q. Sensitive.

    `sigma` is the scale of the discrete Gaussian noise on every count. The costs are at
    most a / sigma^2, the classical worst case, and at most those of `theorem_6_cost`
    and `renyi_cost`, which alone are known for sigma up to 1.5. All else is as for
    `pure_optimal_cost`.

    An answer post-processes N(0, 1) against N(mu, 1), mu as in `gdp_mu`. Let r be the
    likelihood ratio of n' to n, and t = 1-a forward, t = a backward, so that (a-1) D_a
    = ln E[r^t] under n. Given q and the winner's ratio, E[r^t] is largest if the losers
    reveal r and lie where the convex r^t is farthest above a line: in two tails, of
    probability u and q - u. Subtracting t (r - 1), which has mean 0, leaves

    E[r^t] - 1 = H_-(u) + H_+(q-u) + (1-q) h(w), h(r) = r^t - 1 - t (r - 1) >= 0, with
    H_s(u) = e^{a(a-1) mu^2/2} Phi(s t mu - z) - t Phi(s mu - z) + (t-1) u, u = Phi(-z),
    and w the winner's ratio. The maximum over u is bounded cell by cell: H_- and H_+
    are concave, and lie below their tangents at the cell's centre; h is convex in w,
    below its chord, and dw/du, a difference of two increasing ratios, is known to
    within their growth over the cell. For q up to 0.7 this is within 0.4 % of the true
    maximum, or of a / sigma^2; mostly within 0.1 %.

    More than 2048 different values of q are rounded up, by rounding z = -Phi^-1(q) down
    to 1/512 (beyond z = 8, less finely). That adds about z/512 to a cost, relatively:
    under 0.5 % where q > 0.006, and an amount that is negligible in a sum below.
    """
    log_q, orders, powers = _check(log_q, orders, direction)
    mu = gdp_mu(sigma)
    caps = gaussian_worst_case(sigma, orders).values[:, np.newaxis]
    distinct, position = np.unique(log_q, return_inverse=True)
    if distinct.size > _MAX_EXACT:
        distinct, position = np.unique(
            _round_up(np.maximum(log_q, -1e6)), return_inverse=True
        )
    # Closer to certainty, round-off in q moves z too far.
    certain = distinct > -1e-6
    tails = None
    if np.isfinite(mu):
        # Below -1e6, z loses its digits.
        clipped = np.maximum(distinct, -1e6)
        tails = _Tails.split(np.where(certain, -1.0, clipped), mu)
    costs = np.empty((orders.size, log_q.size))
    for i, order in enumerate(orders):
        cost = np.zeros(distinct.size)
        for power in powers(order):
            one = renyi_cost if power > 0 else theorem_6_cost
            in_power = one(distinct, sigma, order)
            if tails is not None:
                slack = _ROUNDING_SLACK * (2 * order - 1) / (order - 1)
                in_power = np.minimum(in_power, tails.cost(order, power) + slack)
            cost = np.maximum(cost, in_power)
        cost = np.where(certain, caps[i], np.minimum(cost, caps[i]))
        # The maximum does not decrease in q; its bound by cells with round-off may.
        costs[i] = np.maximum.accumulate(cost)[position.reshape(-1)]
    return costs


def theorem_6_cost(log_q: _Array, sigma: float, order: float) -> _Array:
    """Bound the forward cost of GNMax by Theorem 6 of Papernot et al. 2018.

    At the choice of its Proposition 10, and a / sigma^2 where it does not apply or is
    larger. It holds for all noise with the Renyi curve a / sigma^2.
    """
    worst_case = order / sigma**2
    mu_2 = sigma * np.sqrt(-log_q)
    e_2 = mu_2 / sigma**2
    # The theorem requires order <= mu_1 = mu_2 + 1.
    possible = (mu_2 > 1) & (-log_q > e_2) & (order <= mu_2 + 1)
    m, e, lq = (np.where(possible, x, 2.0) for x in (mu_2, e_2, log_q))
    lq = np.where(possible, lq, -2 * e)
    # ln(1 + 1 / (mu_1 - 1)) = ln(1 + 1 / mu_2).
    possible &= lq <= (m - 1) * e - m * (np.log1p(1 / m) + np.log1p(1 / (m - 1)))
    log_1_q = np.log1p(-np.exp(lq))
    log_a = log_1_q - np.log1p(-np.exp((lq + e) * (1 - 1 / m)))
    log_b = (m + 1) / sigma**2 - lq / m
    bound = np.logaddexp(log_1_q + (order - 1) * log_a, lq + (order - 1) * log_b)
    # Round-off may make 1e-17 negative.
    bound = np.maximum(bound, 0) / (order - 1)
    return np.where(possible, np.minimum(bound, worst_case), worst_case)


def renyi_cost(log_q: _Array, sigma: float, order: float) -> _Array:
    """Bound the backward cost of GNMax by its Renyi curve, a / sigma^2.

    By Hoelder's inequality, for b > a, the losers have E[r^a; lost] <= E[r^b]^{a/b}
    q^{1 - a/b}, r the ratio of n' to n; the winner has at most (1 - q)^{1-a}. At the
    best b, m = sigma sqrt(-ln q), the first is e^{(2 a m - a - m^2) / sigma^2}.
    """
    m = sigma * np.sqrt(-log_q)
    with np.errstate(divide="ignore"):
        winner = (1 - order) * np.log1p(-np.exp(log_q))
    losers = order * (m - 1) / sigma**2 + log_q * (1 - order / np.maximum(m, order))
    bound = np.logaddexp(winner, losers) / (order - 1)
    worst_case = order / sigma**2
    return np.where(m > order, np.minimum(bound, worst_case), worst_case)


@dataclass(frozen=True)
class _Tails:
    """Splits of q into two tails, with all quantities that do not depend on the order.

    Arrays of shape (n_queries, n_cells), or n_cells + 1 for the edges of cells.
    """

    mu: float
    log_q: _Array
    share: _Array  # of q, in the first tail, at the centres
    left: _Array  # from the centre to the edges of the cell
    right: _Array
    # For each tail at the centres: where it starts, the logarithm of its probability,
    # and the logarithm of the ratio of its probabilities under n' and n.
    starts: tuple[_Array, _Array]
    log_tails: tuple[_Array, _Array]
    log_ratios: tuple[_Array, _Array]
    log_winner: _Array  # ratio of the winner, at the edges
    bend: _Array  # largest relative distance of that ratio from its chord

    @classmethod
    def split(cls, log_q: _Array, mu: float) -> Self:
        """Cut [0, q] into cells, narrow at both ends."""
        shares = np.sin(np.pi / 4 * np.linspace(0, 2, 2 * _N_CELLS + 1)) ** 2
        with np.errstate(divide="ignore"):
            log_shares = np.log(shares)
        z = -ndtri_exp(log_q[:, np.newaxis] + log_shares)
        # Outward, for the round-off of z and for the rounding of the noise.
        z[:, 1:] -= 1e-13 * (1 + np.abs(z[:, 1:]))
        both = (z, z[:, ::-1])
        log_tails = tuple(log_ndtr(-start) for start in both)
        with np.errstate(invalid="ignore", over="ignore"):
            log_ratios = tuple(
                log_ndtr(sign * mu - start) - log_tail
                for sign, start, log_tail in zip((-1, 1), both, log_tails, strict=True)
            )
            # The losers' gain under n', and the ratio at the inner end of each tail.
            gain = np.zeros_like(z[:, ::2])
            for part, log_ratio in zip((shares, shares[::-1]), log_ratios, strict=True):
                gained = part[::2] * np.expm1(log_ratio[:, ::2])
                gain += np.where(part[::2] > 0, gained, 0)
            ends = [
                np.exp(sign * mu * start[:, ::2] - mu**2 / 2)
                for sign, start in zip((-1, 1), both, strict=True)
            ]
            spread = sum(np.diff(end, axis=1) for end in ends)
            bend = spread * np.diff(shares[::2]) / (4 * -np.diff(gain, axis=1))
            bend = np.where(bend >= 0, bend, np.inf)
            loss = gain / np.expm1(-log_q)[:, np.newaxis]
            # Round-off dominates if the winner's probability under n' nearly vanishes:
            # the upper limit on the cost is used.
            log_winner = np.where(loss < 1 - 1e-6, np.log1p(-loss), -np.inf)
        centres = slice(1, None, 2)
        return cls(
            mu=mu,
            log_q=log_q,
            share=shares[centres],
            left=shares[centres] - shares[:-2:2],
            right=shares[2::2] - shares[centres],
            starts=tuple(start[:, centres] for start in both),
            log_tails=tuple(tail[:, centres] for tail in log_tails),
            log_ratios=tuple(ratio[:, centres] for ratio in log_ratios),
            log_winner=log_winner,
            bend=bend,
        )

    def cost(self, order: float, power: float) -> _Array:
        """Bound the divergence at one order, power being 1 - order or order."""
        constant = order * (order - 1) * self.mu**2 / 2
        exponents, slacks = [], []
        for sign, start, log_tail in zip(
            (-1, 1), self.starts, self.log_tails, strict=True
        ):
            moved = log_ndtr(sign * power * self.mu - start)
            exponents.append(constant + moved - log_tail)
            slacks.append(_ROUND_OFF * (1 + constant - moved - log_tail))
        scale = _scale(
            np.maximum.reduce([*exponents, *self.log_ratios]).max(axis=1, keepdims=True)
        )
        excess = np.zeros_like(exponents[0])
        slope = np.zeros_like(excess)
        # Where (1 - q) / q would overflow, the losers' part is divided instead.
        far = np.maximum(-self.log_q - _LARGEST_ODDS, 0)
        divisor = scale + far[:, np.newaxis]
        for sign, start, exponent, log_ratio, slack, share in zip(
            (-1, 1),
            self.starts,
            exponents,
            self.log_ratios,
            slacks,
            (self.share, 1 - self.share),
            strict=True,
        ):
            height = _bregman(exponent, log_ratio, power, divisor)
            error = slack * (
                np.exp(exponent - divisor) + abs(power) * np.exp(log_ratio - divisor)
            )
            excess += share * (np.maximum(height, 0) + error)
            log_end = sign * self.mu * start - self.mu**2 / 2
            slope -= sign * _bregman_of_ratio(log_end, power, divisor)
        with np.errstate(over="ignore", invalid="ignore"):
            odds = np.expm1(np.minimum(-self.log_q, _LARGEST_ODDS))[:, np.newaxis]
            winner = odds * _bregman_of_ratio(self.log_winner, power, scale)
            first, last = winner[:, :-1], winner[:, 1:]
            at_first, at_last = excess - slope * self.left, excess + slope * self.right
            by_chord = np.maximum(at_first + first, at_last + last)
            by_chord += np.abs(last - first) * self.bend
            by_ends = np.maximum(at_first, at_last) + np.maximum(first, last)
            bound = np.fmin(by_chord, by_ends).max(axis=1)
        with np.errstate(divide="ignore"):
            log_excess = self.log_q + divisor[:, 0] + np.log(bound)
        # Beyond, the divided losers' part may underflow: no bound.
        cost = np.logaddexp(0, log_excess) / (order - 1)
        return np.where(far > 0, np.inf, cost)


def _bregman(
    exponent: _Value, log_ratio: _Value, power: float, scale: _Value
) -> _Array:
    """Return e^-scale (e^exponent - 1 - power (e^log_ratio - 1))."""
    return np.where(
        np.asarray(scale) > 0,
        np.exp(exponent - scale)
        - power * np.exp(log_ratio - scale)
        + (power - 1) * np.exp(-np.asarray(scale)),
        np.expm1(np.where(scale > 0, 0, exponent))
        - power * np.expm1(np.where(scale > 0, 0, log_ratio)),
    )


def _bregman_of_ratio(log_ratio: _Value, power: float, scale: _Value) -> _Array:
    """Return e^-scale (r^power - 1 - power (r - 1)), never negative."""
    log_ratio = np.asarray(log_ratio)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = _bregman(power * log_ratio, log_ratio, power, scale)
    # Its Taylor series, where the exact form cancels.
    small = max(abs(power), 1) * np.abs(log_ratio) < 1e-3
    x = np.where(small, log_ratio, 0)
    series = (power + 1) * x / 3 + (power**2 + power + 1) * x**2 / 12
    series = power * (power - 1) / 2 * x**2 * (1 + series) * np.exp(-np.asarray(scale))
    return np.maximum(np.where(small, series, exact), 0)


def _scale(exponent: _Value) -> _Array:
    """Return the logarithm of a divisor of exponentials: 0 while they are moderate."""
    return np.where(np.asarray(exponent) > 30, exponent, 0)


def _round_up(log_q: _Array) -> _Array:
    """Round q up, to a grid that is even in z up to 8 and geometric beyond."""
    z = -ndtri_exp(log_q)
    far = z > 8
    z = np.where(far, 8 + 8 * np.log(np.where(far, z, 8) / 8), z)
    z = np.floor(z * _STEPS_PER_Z) / _STEPS_PER_Z
    far = z > 8
    return log_ndtr(-np.where(far, 8 * np.exp((np.where(far, z, 8) - 8) / 8), z))


def check_log_q(log_q: ArrayLike) -> _Array:
    """Return log-probabilities as an array, or raise."""
    check_not_masked("log_q", log_q)
    log_q = np.asarray(log_q, dtype=np.float64)
    if log_q.ndim != 1 or np.any(np.isnan(log_q)) or np.any(log_q > 0):
        raise ValueError(
            f"log_q, of shape {log_q.shape}, must be one-dimensional and hold "
            "logarithms of probabilities; pass numbers that are at most 0."
        )
    return log_q


def _check(
    log_q: ArrayLike, orders: ArrayLike, direction: str
) -> tuple[_Array, _Array, _Powers]:
    """Return log_q and orders as arrays, and the powers of a direction."""
    log_q = check_log_q(np.atleast_1d(log_q))
    orders = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if orders.ndim != 1 or not np.all((orders > 1) & np.isfinite(orders)):
        raise ValueError(
            f"orders={orders.tolist()} must all be finite and greater than 1; drop the "
            "others."
        )
    powers: dict[str, _Powers] = {
        "both": lambda order: (1 - order, order),
        "forward": lambda order: (1 - order,),
        "backward": lambda order: (order,),
    }
    check_option("direction", direction, powers)
    # Finite, also for q = 0.
    return np.maximum(log_q, -1e300), orders, powers[direction]

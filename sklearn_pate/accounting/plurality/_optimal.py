"""Tightest Renyi cost of an answer, as a function of the probability q of losing.

q is the probability that a given most-voted class does not win. These bounds are as
sensitive as the votes behind q. As functions of q, they can be released with noise by
:func:`sklearn_pate.accounting.plurality.sanitize`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Real
from random import SystemRandom
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri, ndtri_exp

from sklearn_pate.accounting._calibrate import gdp_mu
from sklearn_pate.accounting._rdp import RdpCurve, check_orders
from sklearn_pate.accounting._value_checks import (
    check_count,
    check_not_masked,
    check_number,
    check_option,
    check_positive,
    counted,
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
# Rows and cells of queries on the grid.
_Cells = tuple[NDArray[np.intp], NDArray[np.intp]]
# Factor on the move mu of z by one teacher, for the round-off of log_q and the rounding
# of continuous noise to discrete noise.
_OUTWARD = 1 + 1e-6
# Releases are rounded up to a multiple of 1 / _GRID: the last bits of a floating-point
# sum of private value and noise can reveal the value.
_GRID = 1000
# Candidates of release_parameters; smoothness in units of 1 / order.
_ORDERS = 2 ** np.arange(2, 6.5, 0.5)
_SMOOTHNESS = np.geomspace(0.01, 0.45, 16)
_NOISE_SCALES = np.geomspace(1, 200, 32)


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
    check_orders(orders)
    powers: dict[str, _Powers] = {
        "both": lambda order: (1 - order, order),
        "forward": lambda order: (1 - order,),
        "backward": lambda order: (order,),
    }
    check_option("direction", direction, powers)
    # Finite, also for q = 0.
    return np.maximum(log_q, -1e300), orders, powers[direction]


class VoteCosts:
    """Cost of a query at one Renyi order, on a grid of q and maybe largest counts.

    The cost on the grid is a step function, never below the cost itself; one teacher
    moves a query by at most one block of cells, and one row. Exactly one of `sigma`,
    the scale of GNMax, and `pure_epsilon`, the pure guarantee of one answer, is given.
    `log_pass` and `log_fail`, of shape (n_teachers + 1,), are the log-probabilities of
    a threshold step by largest count.

    Let o be a most-voted class under n, which is also one most likely to win, and z =
    -Phi^{-1}(Pr[o loses]). Under n' o loses with probability at most Phi(mu - z), since
    the answer post-processes a mu-Gaussian test, and the class most likely to win under
    n' loses no more often. So z falls by at most mu, and by symmetry rises by at most
    mu, whether or not the plurality changes. For a mechanism with a pure guarantee, ln
    q changes by at most epsilon for the same reason.
    """

    def __init__(
        self,
        order: float,
        n_teachers: int,
        sigma: float | None,
        pure_epsilon: float | None,
        *,
        log_pass: ArrayLike | None,
        log_fail: ArrayLike | None,
    ) -> None:
        check_order(order)
        check_count("n_teachers", n_teachers)
        if (log_pass is None) != (log_fail is None):
            raise ValueError("log_pass and log_fail must be passed together.")
        self.n_teachers = int(n_teachers)
        self.has_threshold = log_pass is not None
        self.is_gaussian = sigma is not None
        cost_of: Callable[[_Array], _Array]
        if sigma is not None and pure_epsilon is None:
            step = gdp_mu(sigma)
            if not np.isfinite(step):
                raise ValueError(
                    f"sigma={sigma!r} is at most 1.5, for which no data-dependent "
                    "cost is known; publish bounds.gaussian_worst_case."
                )
            self.low, high = -4.0, 10 + 2 * order * step
            cost_of = partial(gaussian_optimal_cost, sigma=sigma, orders=order)
        elif pure_epsilon is not None and sigma is None:
            check_positive("pure_epsilon", pure_epsilon)
            step = float(pure_epsilon)
            self.low, high = 0.0, 35 + (order + 1) * step
            cost_of = partial(pure_optimal_cost, epsilon=pure_epsilon, orders=order)
        else:
            raise ValueError(
                f"sigma={sigma!r} and pure_epsilon={pure_epsilon!r} describe the noise "
                "of the answers; pass exactly one of them."
            )
        step *= _OUTWARD
        # Finer cells round the cost up less, but a threshold squares their number.
        self.width = math.ceil(step * (100 if self.has_threshold else 256))
        self.cell = step / self.width
        n_cells = math.ceil((high - self.low) / step) * self.width
        positions = self.low + self.cell * np.arange(n_cells)
        log_q = log_ndtr(-positions) if self.is_gaussian else -positions
        log_q[0] = 0  # the first cell also covers all lower positions
        parts = np.array_split(log_q, math.ceil(log_q.size / 2000))
        costs = np.concatenate([cost_of(part)[0] for part in parts])
        # Never lower to the left, despite round-off.
        costs = np.maximum.accumulate(costs[::-1])[::-1]
        self.costs = costs[np.newaxis]
        if log_pass is not None and log_fail is not None:
            steps = _check_threshold(log_pass, log_fail, self.n_teachers)
            counts = np.arange(self.n_teachers + 1)
            near = np.clip([counts, counts - 1, counts + 1], 0, self.n_teachers)
            passes, fails = (step[near][:, :, np.newaxis] for step in steps)
            self.costs = joint_costs(costs, passes, fails, order)
        self.worst_case = float(self.costs.max())

    def locate(self, log_q: ArrayLike, largest_counts: ArrayLike | None) -> _Cells:
        """Find the row and the cell of each query.

        `log_q` holds the exact log-probabilities that the plurality does not win, and
        `largest_counts` the votes of the plurality.
        """
        if isinstance(log_q, RdpCurve):
            raise TypeError(
                "A curve of the exact local cost cannot be sanitized, because its "
                "smooth sensitivity is not known; pass log_q, the logarithm of q."
            )
        log_q = check_log_q(log_q)
        if self.has_threshold != (largest_counts is not None):
            raise ValueError(
                "largest_counts needs log_pass and log_fail; pass all three or none "
                "of them."
            )
        rows = np.zeros(log_q.size, dtype=np.intp)
        if self.has_threshold:
            counts = np.asarray(largest_counts)
            rows = counts.astype(np.intp)
            whole = counts.shape == log_q.shape and np.all(rows == counts)
            if not whole or np.any((rows < 0) | (rows > self.n_teachers)):
                raise ValueError(
                    f"largest_counts, of shape {counts.shape}, must be whole numbers "
                    f"from 0 to n_teachers={self.n_teachers}, one for each of the "
                    f"{counted(log_q.size, 'entry')} of log_q."
                )
        log_q = np.clip(log_q, -1e6, -1e-12)
        positions = -ndtri_exp(log_q) if self.is_gaussian else -log_q
        cells = np.floor((positions - self.low) / self.cell)
        return rows, np.clip(cells, 0, self.costs.shape[1] - 1).astype(np.intp)

    def total(self, queries: _Cells) -> float:
        """Sum the costs of the queries that `locate` found. Sensitive."""
        return float(self.costs[queries].sum())

    def local_sensitivities(self, queries: _Cells) -> Iterator[float]:
        """Bound the change by one more teacher after d = 0, 1, ... changes. Sensitive.

        The d-th value covers all votes that differ from these in d teachers, is at most
        the next value of any neighbour, and the last is the same for all votes.
        """
        rows, cells = queries
        costs, width = self.costs, self.width
        farther = np.pad(costs, ((0, 0), (width, width)), mode="edge")
        # Costs decrease along a row: the extremes are a whole block away.
        highest = _widen(farther[:, : -2 * width], np.maximum, axes=(0,))
        lowest = _widen(farther[:, 2 * width :], np.minimum, axes=(0,))
        changes = np.maximum(highest - costs, costs - lowest)
        changes = changes.reshape(costs.shape[0], -1, width).max(axis=2)
        largest = float(changes.max()) * rows.size
        for _ in range(self.n_teachers):
            yield float(changes[rows, cells // width].sum())
            changes = _widen(changes, np.maximum, axes=(0, 1))
        yield largest

    def smooth_sensitivity(self, queries: _Cells, smoothness: float) -> float:
        """Bound the change of the cost by one teacher, smoothly. Sensitive.

        One teacher changes the logarithm of this bound by at most b = `smoothness`. It
        is the maximum over d of e^{-b d} times the d-th local sensitivity (Nissim,
        Raskhodnikova, Smith 2007, Definition 2.2).
        """
        return max(
            math.exp(-smoothness * distance) * sensitivity
            for distance, sensitivity in enumerate(self.local_sensitivities(queries))
        )


def joint_costs(
    costs: _Array, log_pass: _Array, log_fail: _Array, order: float
) -> _Array:
    """Bound the cost of a threshold step and an answer together, in both directions.

    `costs` holds the Renyi cost of the answer alone at the order; `log_pass` and
    `log_fail`, of shape (3, ...), the log-probabilities of the step at the largest
    count, at one vote less and at one vote more.

    (a-1) D_a of {no answer: 1-p, class j: p P_j} is at most ln[(1-p)^a (1-p')^{1-a} +
    p^a p'^{1-a} e^{(a-1) B}], B the cost of the answer; it is maximised over both
    directions and the largest counts that a neighbour may have.
    """
    joint = np.zeros(np.broadcast_shapes(costs.shape, log_pass.shape[1:]))
    answered = (order - 1) * costs
    for first, second in ((0, 0), (0, 1), (1, 0), (0, 2), (2, 0)):
        failed = order * log_fail[first] + (1 - order) * log_fail[second]
        passed = order * log_pass[first] + (1 - order) * log_pass[second]
        moment = np.logaddexp(failed, passed + answered)
        joint = np.maximum(joint, moment / (order - 1))
    return joint


def _widen(table: _Array, extreme: np.ufunc, axes: tuple[int, ...]) -> _Array:
    """Replace each entry by the extreme value among the entry and its neighbours."""
    for axis in axes:
        table = np.moveaxis(table, axis, 0)
        wide = table.copy()
        extreme(wide[1:], table[:-1], out=wide[1:])
        extreme(wide[:-1], table[1:], out=wide[:-1])
        table = np.moveaxis(wide, 0, axis)
    return table


def _check_threshold(
    log_pass: ArrayLike, log_fail: ArrayLike, n_teachers: int
) -> tuple[_Array, _Array]:
    """Return the log-probabilities of the threshold step as arrays, or raise."""
    log_pass = np.asarray(log_pass, dtype=np.float64)
    log_fail = np.asarray(log_fail, dtype=np.float64)
    shape = (n_teachers + 1,)
    if log_pass.shape != shape or log_fail.shape != shape:
        raise ValueError(
            f"log_pass has shape {log_pass.shape} and log_fail has {log_fail.shape}; "
            f"pass one entry for each largest count from 0 to n_teachers={n_teachers}."
        )
    if not np.all(np.isfinite(log_pass) & np.isfinite(log_fail)):
        raise ValueError(
            "log_pass and log_fail must be finite: no outcome is impossible; compute "
            "the tails in log space."
        )
    if np.max(np.abs(np.logaddexp(log_pass, log_fail))) > 1e-6:
        raise ValueError(
            "log_pass and log_fail are logarithms of probabilities that do not sum to "
            "1; compute both from the same noise."
        )
    return log_pass, log_fail


def check_order(order: float) -> None:
    """Raise unless the order is a finite number greater than 1."""
    if not isinstance(order, Real) or not 1 < order < np.inf:
        raise ValueError(f"order={order!r} must be finite and greater than 1.")


def smooth_sensitivity_cost(
    order: float, smoothness: float, noise_scale: float, quantile: float = 0.0
) -> float:
    """Compute the exact Renyi cost of releasing f + s S (k + N(0, 1)).

    S is the smooth sensitivity of f, `order` is a, `smoothness` is b, the largest
    change of ln S by one teacher's data, `noise_scale` is s, and `quantile` is k. The
    cost covers any two neighbours, in both directions; `inf` unless a (1 - e^{-2b}) <
    1.

    Neighbours have S' = e^u S, |u| <= b, and |f - f'| <= min(S, S'), so that the means
    differ by at most S [min(1, e^u) + k s |e^u - 1|]. Put v = a e^{2u} + 1 - a. The
    divergence of the two Gaussians (Gil, Alajaji, Linder 2013) is at most [a u -
    ln(v)/2]/(a-1) + a [min(1, e^u) + k s |e^u - 1|]^2 / (2 s^2 v). Both terms are
    largest at u = -b. For the second: at u and -u its numerators, over min(1, e^{2u}),
    agree, and the denominators favour u < 0, where it grows with |u|. For the first:
    its slope is a (1 - x(u))/(a-1), x(u) = 1/(a - (a-1) e^{-2u}), so it falls, then
    rises, and x(u) + x(-u) >= 2 since x is convex in e^{-2u}: it is higher at -b than
    at b. Hence the cost [-a b - ln(1 - a (1 - e^{-2b}))/2]/(a-1) + a (1 + k s (e^b -
    1))^2 / (2 s^2 (a - (a-1) e^{2b})), attained at k = 0 by N(0, s^2) and N(e^{-b}, s^2
    e^{-2b}).
    """
    check_order(order)
    check_positive("smoothness", smoothness)
    check_positive("noise_scale", noise_scale)
    if not quantile >= 0:
        raise ValueError(f"quantile={quantile!r} is negative; use 0 or more.")
    growth = math.expm1(2 * smoothness) if smoothness < 350 else math.inf
    left = order * math.expm1(-2 * smoothness)
    if left <= -1 or (order - 1) * growth >= 1:
        return math.inf
    ratio = (-order * smoothness - math.log1p(left) / 2) / (order - 1)
    shift = 1 + quantile * noise_scale * math.expm1(smoothness)
    return ratio + order * shift**2 / (2 * noise_scale**2 * (1 - (order - 1) * growth))


@dataclass(frozen=True)
class SanitizedCost:
    """Data-dependent cost of a list of queries, released with noise. May be published.

    Attributes
    ----------
    epsilon : float
        Epsilon at `delta` of the released cost and the cost of the release together.

    delta : float
        Delta of the (epsilon, delta) guarantee.

    cost : float
        Released Renyi cost of the queries. With probability `confidence` over the
        noise, the released cost is at least the true cost.

    release_cost : float
        Renyi cost of the release itself, and of releases before the answers. Neither
        depends on the votes.

    order : float
        Renyi order of both costs.

    confidence : float
        Probability that `cost` is not too small.
    """

    epsilon: float
    delta: float
    cost: float
    release_cost: float
    order: float
    confidence: float


def sanitize(
    log_q: ArrayLike,
    *,
    n_teachers: int,
    order: float,
    smoothness: float,
    noise_scale: float,
    delta: float,
    sigma: float | None = None,
    pure_epsilon: float | None = None,
    largest_counts: ArrayLike | None = None,
    log_pass: ArrayLike | None = None,
    log_fail: ArrayLike | None = None,
    worst_case: float = np.inf,
    confidence: float = 0.975,
    before: float = 0.0,
    normal: float | None = None,
) -> SanitizedCost:
    """Release the data-dependent cost of a list of queries, with noise.

    Every call is a separate release: call the function once. `order`, `smoothness`,
    `noise_scale` and `confidence` must be chosen independently of votes, as by
    :func:`release_parameters`. A choice by repeated calls voids the guarantee.

    Parameters
    ----------
    log_q : array-like of shape (n_queries,)
        For each query, the logarithm of the exact probability that the most-voted class
        is not the answer. An upper bound is not enough, as one teacher may change the
        bound more. The list of queries must be fixed independently of answers.

    n_teachers : int
        Number of teachers, which is public.

    order : float
        Renyi order of all costs, greater than 1.

    smoothness : float
        Largest change of the logarithm of the smooth sensitivity by one teacher. A
        larger value means less noise and a larger cost.

    noise_scale : float
        Standard deviation of the noise, in units of the smooth sensitivity. A larger
        value means more noise and a smaller cost.

    delta : float
        Delta of the (epsilon, delta) guarantee, in (0, 1).

    sigma : float, default=None
        Scale of the noise of GNMax.

    pure_epsilon : float, default=None
        Pure epsilon of one answer, instead of `sigma`: 2 gamma for LNMax, 2 c for
        GumbelMax and PermuteAndFlip.

    largest_counts : array-like of shape (n_queries,), default=None
        Votes for the most-voted class, for a mechanism that checks the largest count
        against a threshold.

    log_pass, log_fail : array-like of shape (n_teachers + 1,), default=None
        Log-probabilities that this threshold check passes and fails, at each largest
        count.

    worst_case : float, default=inf
        Worst-case Renyi cost of all queries at `order`, an upper limit of the released
        cost.

    confidence : float, default=0.975
        Probability over the noise that the released cost is at least the true cost. At
        least 0.5.

    before : float, default=0.0
        Renyi cost at `order` of releases before the answers, such as noisy counts.

    normal : float, default=None
        Standard normal draw, for tests only: a known draw gives no privacy. With None,
        the draw comes from the operating system.

    Returns
    -------
    sanitized : SanitizedCost
        Released cost, which may be published.

    Notes
    -----
    The released value is f + s S (k + N(0, 1)). Here, f is the cost, S its smooth
    sensitivity, s is `noise_scale`, b is `smoothness`, and k is the normal quantile of
    `confidence`. S is private, too: one teacher changes the term k s S by up to k s
    (e^b - 1) S. `smooth_sensitivity_cost` includes the cost of this change. All other
    results are computed from the released cost and numbers that do not depend on
    private data. The released cost is clipped to between 0 and the worst case, and
    rounded up to 0.001. Epsilon (Canonne, Kamath, Steinke 2020, Proposition 12, at
    `order`) is also rounded up to 0.001. Low bits of a floating-point sum may reveal
    the cost. Rounding hides the low bits, but there is no proof.

    The guarantee is for the given votes only. The released epsilon bounds what the
    answers reveal about one teacher, plus the worst-case cost of the release of
    epsilon.
    """
    check_number("confidence", confidence, 0.5, 1, closed="left")
    quantile = float(ndtri(confidence))
    release_cost = smooth_sensitivity_cost(order, smoothness, noise_scale, quantile)
    if not release_cost < np.inf:
        raise ValueError(
            f"order={order!r} and smoothness={smoothness!r} give no guarantee; lower "
            "one of them, until order * (1 - exp(-2 * smoothness)) is well below 1."
        )
    release_cost += before
    table = VoteCosts(
        order, n_teachers, sigma, pure_epsilon, log_pass=log_pass, log_fail=log_fail
    )
    queries = table.locate(log_q, largest_counts)
    scale = noise_scale * table.smooth_sensitivity(queries, smoothness)
    if normal is None:
        normal = SystemRandom().gauss(0, 1)
    noisy = table.total(queries) + scale * (quantile + normal)
    worst = min(table.worst_case * queries[0].size, worst_case)
    cost = _rounded_up(min(max(noisy, 0.0), worst))
    curve = RdpCurve([order], [cost + release_cost])
    return SanitizedCost(
        epsilon=_rounded_up(curve.quiet_epsilon(delta)),
        delta=float(delta),
        cost=cost,
        release_cost=release_cost,
        order=float(order),
        confidence=float(confidence),
    )


def release_parameters(
    n_queries: int,
    n_teachers: int,
    delta: float,
    *,
    sigma: float | None = None,
    pure_epsilon: float | None = None,
    log_pass: ArrayLike | None = None,
    log_fail: ArrayLike | None = None,
    confidence: float = 0.975,
) -> dict[str, float]:
    """Choose parameters of `sanitize` that do not depend on private data.

    Parameters
    ----------
    n_queries : int
        Number of queries.

    n_teachers : int
        Number of teachers.

    delta : float
        Delta of the (epsilon, delta) guarantee, in (0, 1).

    sigma, pure_epsilon : float, default=None
        Noise of the answers, as in :func:`sanitize`. Pass exactly one of `sigma` and
        `pure_epsilon`.

    log_pass, log_fail : array-like of shape (n_teachers + 1,), default=None
        Log-probabilities of the threshold check, as in :func:`sanitize`.

    confidence : float, default=0.975
        Confidence, as in :func:`sanitize`.

    Returns
    -------
    parameters : dict
        Values of `order`, `smoothness`, `noise_scale` and `confidence`.

    Notes
    -----
    The parameters minimise the expected epsilon for artificial votes on two classes,
    whose leads are proportional to square roots of uniformly distributed numbers. The
    guarantee holds for all votes. For most votes, epsilon is close to the smallest
    possible epsilon.
    """
    check_count("n_queries", n_queries)
    check_count("n_teachers", n_teachers)
    leads = np.sqrt((np.arange(n_queries) + 0.5) / n_queries) * n_teachers
    if sigma is not None:
        log_q = log_ndtr(-leads / (np.sqrt(2) * sigma))
    else:
        check_positive("pure_epsilon", pure_epsilon)
        gaps = leads * float(pure_epsilon or 0) / 2
        log_q = np.log((2 + gaps) / 4) - gaps
    largest_counts = None
    if log_pass is not None:
        largest_counts = np.rint((n_teachers + leads) / 2)
    quantile = float(ndtri(confidence))
    best: tuple[float, dict[str, float]] = (np.inf, {})
    for order in _ORDERS:
        table = VoteCosts(
            order, n_teachers, sigma, pure_epsilon, log_pass=log_pass, log_fail=log_fail
        )
        queries = table.locate(log_q, largest_counts)
        cost = table.total(queries)
        sensitivities = np.array(list(table.local_sensitivities(queries)))
        for smoothness in _SMOOTHNESS / order:
            decay = np.exp(-smoothness * np.arange(sensitivities.size))
            sensitivity = float(np.max(decay * sensitivities))
            for noise_scale in _NOISE_SCALES:
                release_cost = smooth_sensitivity_cost(
                    order, smoothness, noise_scale, quantile
                )
                if not release_cost < np.inf:
                    continue
                expected = cost + quantile * noise_scale * sensitivity + release_cost
                epsilon = RdpCurve([order], [expected]).quiet_epsilon(delta)
                if epsilon < best[0]:
                    best = (
                        epsilon,
                        {
                            "order": float(order),
                            "smoothness": float(smoothness),
                            "noise_scale": float(noise_scale),
                            "confidence": float(confidence),
                        },
                    )
    return best[1]


def _rounded_up(value: float) -> float:
    """Round up to the grid of released numbers."""
    return math.ceil(value * _GRID) / _GRID

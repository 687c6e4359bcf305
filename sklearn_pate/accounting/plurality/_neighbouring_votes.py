"""Cost of queries on a grid, and its sensitivity to one teacher. Sensitive."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._gdp import gdp_mu
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.plurality._optimal import (
    check_log_q,
    gaussian_optimal_cost,
    pure_optimal_cost,
)

__all__ = ["VoteCosts", "check_order", "joint_costs"]

# Rows and cells of queries on the grid.
_Cells = tuple[NDArray[np.intp], NDArray[np.intp]]

# Factor on the move mu of z by one teacher, for the round-off of log_q and the rounding
# of continuous noise to discrete noise.
_OUTWARD = 1 + 1e-6


class VoteCosts:
    """Cost of a query at one order, on a grid of q and perhaps the largest count.

    The cost on the grid is a step function, never below the cost itself; one teacher
    moves a query by at most one block of cells, and one row. Exactly one of `sigma`,
    the scale of GNMax, and `pure_epsilon`, the pure guarantee of one answer, is given.
    `log_pass` and `log_fail`, of shape (n_teachers + 1,), are the log-probabilities of
    a threshold step by largest count.

    Let o be a most-voted class under n, which is also one most likely to win, and z =
    -Phi^{-1}(Pr[o loses]). Under n' o loses with probability at most Phi(mu - z), since
    the answer post-processes a mu-Gaussian test, and the class most likely to win under
    n' loses no more often. So z falls by at most mu, and by symmetry rises by at most
    mu, whether or not the plurality changes. With pure noise, ln q changes by at most
    epsilon for the same reason.
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
        cost_of: Callable[[NDArray[np.float64]], NDArray[np.float64]]
        if sigma is not None and pure_epsilon is None:
            step = gdp_mu(sigma)
            if not np.isfinite(step):
                raise ValueError(
                    f"sigma={sigma!r} is at most 1.5, where no cost that depends on "
                    "the votes is known; publish bounds.gaussian_worst_case."
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
                "A curve of the exact local cost cannot be sanitized, as its smooth "
                "sensitivity is not known; pass log_q, for the q-optimal cost."
            )
        log_q = check_log_q(log_q)
        if self.has_threshold != (largest_counts is not None):
            raise ValueError(
                "largest_counts goes with log_pass and log_fail; pass all three or "
                "none of them."
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
        """Bound the change by one teacher, smoothly. Sensitive.

        One teacher changes the logarithm of this bound by at most b = `smoothness`. It
        is the maximum over d of e^{-b d} times the d-th local sensitivity (Nissim,
        Raskhodnikova, Smith 2007, Definition 2.2).
        """
        return max(
            math.exp(-smoothness * distance) * sensitivity
            for distance, sensitivity in enumerate(self.local_sensitivities(queries))
        )


def joint_costs(
    costs: NDArray[np.float64],
    log_pass: NDArray[np.float64],
    log_fail: NDArray[np.float64],
    order: float,
) -> NDArray[np.float64]:
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


def _widen(
    table: NDArray[np.float64], extreme: np.ufunc, axes: tuple[int, ...]
) -> NDArray[np.float64]:
    """Replace each entry by the extreme one among it and its neighbours."""
    for axis in axes:
        table = np.moveaxis(table, axis, 0)
        wide = table.copy()
        extreme(wide[1:], table[:-1], out=wide[1:])
        extreme(wide[:-1], table[1:], out=wide[:-1])
        table = np.moveaxis(wide, 0, axis)
    return table


def _check_threshold(
    log_pass: ArrayLike, log_fail: ArrayLike, n_teachers: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log-probabilities of the threshold step as arrays, or raise."""
    log_pass = np.asarray(log_pass, dtype=np.float64)
    log_fail = np.asarray(log_fail, dtype=np.float64)
    shape = (n_teachers + 1,)
    if log_pass.shape != shape or log_fail.shape != shape:
        raise ValueError(
            f"log_pass has shape {log_pass.shape} and log_fail {log_fail.shape}; pass "
            f"one entry for each largest count from 0 to n_teachers={n_teachers}."
        )
    if not np.all(np.isfinite(log_pass) & np.isfinite(log_fail)):
        raise ValueError(
            "log_pass and log_fail must be finite: no outcome is impossible; compute "
            "the tails in log space."
        )
    if np.max(np.abs(np.logaddexp(log_pass, log_fail))) > 1e-6:
        raise ValueError(
            "log_pass and log_fail are of probabilities that do not sum to 1; compute "
            "both from the same noise."
        )
    return log_pass, log_fail


def check_order(order: float) -> None:
    """Raise unless the order is a finite number greater than 1."""
    if not isinstance(order, Real) or not 1 < order < np.inf:
        raise ValueError(f"order={order!r} must be finite and greater than 1.")

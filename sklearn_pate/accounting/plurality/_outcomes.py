"""Law of a noisy plurality, and its change when one vote moves."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

__all__ = [
    "DIRECT",
    "GumbelPlurality",
    "Moves",
    "PermuteAndFlipPlurality",
    "Plurality",
    "after_move",
    "log_p_by_move",
    "untouched",
]

_Array = NDArray[np.float64]
# Most points for the integral of permute-and-flip: exact for twice as many classes.
_N_FLIP_POINTS = 128
#: Where P' / P - 1 is below minus this, P' is summed directly.
DIRECT = 0.5
# Beyond, exponentials are not computed.
_LARGEST_EXPONENT = 300


@dataclass(frozen=True)
class Moves:
    """Laws of the answers to some queries, and of all their neighbours.

    Classes with equal counts form a level, as they have equal chances. A move takes a
    vote from a class of one level and gives it to another class; the last index stands
    for an abstention before or after. Outcomes are a partition of the classes such that
    each part changes by one factor; the last two are the class that loses the vote and
    the one that gains it.

    `log_p` holds ln P, -inf for an empty outcome, and `change` ln P' / P, both of shape
    (n_vectors, n_levels + 1, n_levels + 1, n_outcomes), by loser and gainer.
    """

    log_p: _Array
    change: _Array


def untouched(sizes: _Array) -> _Array:
    """Count the classes of each level that a move does not touch.

    From (n_vectors, n_levels) to (n_vectors, n_levels + 1, n_levels + 1, n_levels), by
    loser and gainer; -1 where a move would need one class twice.
    """
    n_levels = sizes.shape[1]
    taken = np.eye(n_levels + 1, n_levels)
    return sizes[:, None, None, :] - taken[:, None] - taken


def after_move(values: _Array, sizes: _Array) -> tuple[_Array, _Array]:
    """Return the counts after each move, and the number of classes that have them.

    `values` holds the count of each level, or another score that a vote raises by 1.
    Both results have shape (n_vectors, n_levels + 1, n_levels + 1, n_levels + 2), by
    loser and gainer: the untouched classes of each level, the loser and the gainer. An
    empty level has -inf, as it must not set the maximum.
    """
    n_vectors, n_levels = values.shape
    shape = (n_vectors, n_levels + 1, n_levels + 1, n_levels + 2)
    after, left = np.zeros(shape), np.zeros(shape)
    after[..., :n_levels] = values[:, None, None, :]
    after[:, :n_levels, :, n_levels] = values[:, :, None] - 1
    after[:, :, :n_levels, n_levels + 1] = values[:, None, :] + 1
    left[..., :n_levels] = np.maximum(untouched(sizes), 0)
    left[:, :n_levels, :, n_levels] = 1
    left[:, :, :n_levels, n_levels + 1] = 1
    return np.where(left > 0, after, -np.inf), left


def log_p_by_move(log_p: _Array, sizes: _Array) -> _Array:
    """Compute ln P of each outcome of each move, as in `Moves`.

    The outcomes are all untouched classes of each level together, the loser and the
    gainer.
    """
    spread = _of_outcome(log_p)
    with np.errstate(divide="ignore"):
        spread[..., :-2] += np.log(np.maximum(untouched(sizes), 0))
    return spread


def _of_outcome(log_p: _Array) -> _Array:
    """Return ln P of one class of each level, of the loser and of the gainer."""
    n_vectors, n_levels = log_p.shape
    spread = np.full((n_vectors, n_levels + 1, n_levels + 1, n_levels + 2), -np.inf)
    spread[..., :n_levels] = log_p[:, None, None, :]
    spread[:, :n_levels, :, n_levels] = log_p[:, :, None]
    spread[:, :, :n_levels, n_levels + 1] = log_p[:, None, :]
    return spread


class Plurality(ABC):
    """Law of the winner of a noisy vote.

    `values` and `sizes`, of shape (n_vectors, n_levels), are the vote count and the
    number of classes of each level.
    """

    #: Approximate number of floats for computing one move.
    points_per_move: int

    def reach(self, order: float) -> float:
        """Bound the leads that matter at Renyi orders up to this, in votes.

        Raising a class farther behind to this lead changes a moment by less than the
        smallest float. Infinite where no computation grows with the leads.
        """
        return np.inf

    @abstractmethod
    def log_probabilities(self, values: _Array, sizes: _Array) -> _Array:
        """Compute the log-probability that a given class of each level wins.

        Of shape (n_vectors, n_levels), in nats; exp(log_p) times sizes sums to 1.
        `values` may have more axes before the last, for the counts after a move.
        """

    def moves(self, values: _Array, sizes: _Array) -> Moves:
        """Compute the change of the law by each move, impossible ones included."""
        after, left = after_move(values, sizes)
        log_p_after = self.log_probabilities(after, left)
        log_p = self.log_probabilities(values, sizes)
        change = np.where(left > 0, log_p_after, 0) - np.where(
            left > 0, _of_outcome(log_p), 0
        )
        return Moves(log_p_by_move(log_p, sizes), change)


class GumbelPlurality(Plurality):
    """Exponential mechanism, Pr[j] proportional to exp(c n_j).

    It is argmax_j n_j + Gumbel(1 / c) (McSherry and Talwar 2007). A move changes ln P_j
    by -ln Z, less c for the class that loses the vote and plus c for the one that gains
    it, Z = 1 + P_c (e^-c - 1) + P_d (e^c - 1).
    """

    points_per_move = 120

    def __init__(self, c: float) -> None:
        self._c = c

    def log_probabilities(self, values: _Array, sizes: _Array) -> _Array:
        """Compute the log-probabilities of the winners, see `Plurality`."""
        scores = self._c * values
        return scores - logsumexp(scores, b=sizes, axis=1, keepdims=True)

    def moves(self, values: _Array, sizes: _Array) -> Moves:
        """Compute the change of the law by each move, see `Plurality`."""
        log_p = self.log_probabilities(values, sizes)
        p = np.concatenate([np.exp(log_p), np.zeros((len(values), 1))], axis=1)
        down, up = np.expm1(-self._c), np.expm1(min(self._c, _LARGEST_EXPONENT))
        # All classes that a move does not touch change by one factor.
        by_class = log_p_by_move(log_p, sizes)
        others = logsumexp(by_class[..., :-2], axis=-1, keepdims=True)
        excess = (p * down)[:, :, None] + (p * up)[:, None, :]
        # Far below 1, Z would lose its digits as 1 + excess, and e^c may overflow: sum
        # it directly.
        far = (excess < -DIRECT) | (self._c > _LARGEST_EXPONENT)
        log_z = np.log1p(np.where(far, 0, excess))
        log_z[far] = logsumexp(
            np.stack(
                [
                    others[..., 0][far],
                    by_class[..., -2][far] - self._c,
                    by_class[..., -1][far] + self._c,
                ]
            ),
            axis=0,
        )
        change = -log_z[..., None] + np.array([0, -self._c, self._c])
        return Moves(np.concatenate([others, by_class[..., -2:]], axis=-1), change)


class PermuteAndFlipPlurality(Plurality):
    """Permute-and-flip: argmax_j n_j + exponential noise of rate c.

    McKenna and Sheldon (2020). With w_k = exp(-c (max n - n_k)), Pr[j] = w_j int_0^1
    prod_{k != j} (1 - u w_k) du, a polynomial: Gauss-Legendre is exact for up to 256
    classes, and correct to 11 digits for a thousand.
    """

    points_per_move = 20 * _N_FLIP_POINTS

    def __init__(self, c: float) -> None:
        self._c = c

    def log_probabilities(self, values: _Array, sizes: _Array) -> _Array:
        """Compute the log-probabilities of the winners, see `Plurality`."""
        log_w = self._c * (values - values.max(axis=-1, keepdims=True))
        enough = ceil(sizes.sum(axis=-1).max() / 2)
        points, weights = _gauss_legendre(min(enough, _N_FLIP_POINTS))
        log_miss = np.log1p(-np.exp(log_w)[..., None] * (points + 1) / 2)
        all_miss = np.sum(sizes[..., None] * log_miss, axis=-2, keepdims=True)
        return log_w + logsumexp(all_miss - log_miss, b=weights / 2, axis=-1)


@lru_cache
def _gauss_legendre(n: int) -> tuple[_Array, _Array]:
    return np.polynomial.legendre.leggauss(n)

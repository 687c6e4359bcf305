"""The law of a noisy plurality, and how it changes when one vote moves."""

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

# Points at most for the integral of permute-and-flip: exact for twice as many classes.
_N_FLIP_POINTS = 128
#: Where P' / P - 1 is below minus this, P' is summed up itself.
DIRECT = 0.5


@dataclass(frozen=True)
class Moves:
    """Laws of the answers to some queries, and of all their neighbours.

    Classes are grouped: those of one group have equal counts, and so equal chances. A
    move takes a vote from a class of one group and gives it to another class; either
    may be nobody, the last index (the teacher abstains before or after). Outcomes are
    any partition of the classes whose parts change by one factor; the last two are the
    class that loses the vote and the one that gains it.

    Parameters
    ----------
    log_p : ndarray of shape (n_vectors, n_groups + 1, n_groups + 1, n_outcomes)
        The ln P of each outcome, by loser and gainer; -inf for an empty one.

    change : ndarray of shape (n_vectors, n_groups + 1, n_groups + 1, n_outcomes)
        The ln P' / P of each outcome.
    """

    log_p: NDArray[np.float64]
    change: NDArray[np.float64]


def untouched(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Count the classes that a move does not touch.

    Parameters
    ----------
    sizes : ndarray of shape (n_vectors, n_groups)
        Number of classes in each group.

    Returns
    -------
    left : ndarray of shape (n_vectors, n_groups + 1, n_groups + 1, n_groups)
        By loser and gainer; -1 where a move would need one class twice.
    """
    n_groups = sizes.shape[1]
    taken = np.eye(n_groups + 1, n_groups)
    return sizes[:, None, None, :] - taken[:, None] - taken


def after_move(
    values: NDArray[np.float64], sizes: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count the votes after each move.

    Parameters
    ----------
    values : ndarray of shape (n_vectors, n_groups)
        Vote count of each group, or what else a vote raises by 1.

    sizes : ndarray of shape (n_vectors, n_groups)
        Number of classes in each group.

    Returns
    -------
    after : ndarray of shape (n_vectors, n_groups + 1, n_groups + 1, n_groups + 2)
        Values by loser and gainer, of the untouched classes of each group, of the loser
        and of the gainer. An empty group has -inf, as it must not set the maximum.

    left : ndarray of the same shape
        Number of classes that have them.
    """
    n_vectors, n_groups = values.shape
    shape = (n_vectors, n_groups + 1, n_groups + 1, n_groups + 2)
    after, left = np.zeros(shape), np.zeros(shape)
    after[..., :n_groups] = values[:, None, None, :]
    after[:, :n_groups, :, n_groups] = values[:, :, None] - 1
    after[:, :, :n_groups, n_groups + 1] = values[:, None, :] + 1
    left[..., :n_groups] = np.maximum(untouched(sizes), 0)
    left[:, :n_groups, :, n_groups] = 1
    left[:, :, :n_groups, n_groups + 1] = 1
    return np.where(left > 0, after, -np.inf), left


def log_p_by_move(
    log_p: NDArray[np.float64], sizes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute ln P of each outcome of each move, as in `Moves`.

    Those are all untouched classes of each group together, the loser and the gainer.
    """
    spread = _of_outcome(log_p)
    with np.errstate(divide="ignore"):
        spread[..., :-2] += np.log(np.maximum(untouched(sizes), 0))
    return spread


def _of_outcome(log_p):
    """Return ln P of one class of each group, of the loser and of the gainer."""
    n_vectors, n_groups = log_p.shape
    spread = np.full((n_vectors, n_groups + 1, n_groups + 1, n_groups + 2), -np.inf)
    spread[..., :n_groups] = log_p[:, None, None, :]
    spread[:, :n_groups, :, n_groups] = log_p[:, :, None]
    spread[:, :, :n_groups, n_groups + 1] = log_p[:, None, :]
    return spread


class Plurality(ABC):
    """The law of the winner of a noisy vote."""

    #: About how many numbers it takes to compute one move.
    points_per_move: int

    def log_probabilities(
        self, values: NDArray[np.float64], sizes: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute the log-probability that a given class wins.

        Parameters
        ----------
        values : ndarray of shape (n_vectors, n_groups)
            Vote count of each group of classes.

        sizes : ndarray of shape (n_vectors, n_groups)
            Number of classes in each group.

        Returns
        -------
        log_p : ndarray of shape (n_vectors, n_groups)
            In nats; exp(log_p) times sizes sums to 1.
        """
        return self._log_probabilities(values, sizes)

    def moves(self, values: NDArray[np.float64], sizes: NDArray[np.float64]) -> Moves:
        """Compute how the law changes when one vote moves.

        Parameters
        ----------
        values : ndarray of shape (n_vectors, n_groups)
            Vote count of each group of classes.

        sizes : ndarray of shape (n_vectors, n_groups)
            Number of classes in each group.

        Returns
        -------
        moves : Moves
            Those that no vote can make are for the caller to leave out.
        """
        return self._moves(values, sizes)

    @abstractmethod
    def _log_probabilities(self, values, sizes):
        """Do what `log_probabilities` promises."""

    @abstractmethod
    def _moves(self, values, sizes):
        """Do what `moves` promises."""


class GumbelPlurality(Plurality):
    """The exponential mechanism, Pr[j] proportional to exp(c n_j).

    Parameters
    ----------
    c : float
        Inverse scale of the noise, in 1 / votes.

    Notes
    -----
    It is argmax_j n_j + Gumbel(1 / c) (McSherry and Talwar 2007). A move changes
    ln P_j by -ln Z, less c for the class that loses the vote and plus c for the one
    that gains it, Z = 1 + P_c (e^-c - 1) + P_d (e^c - 1).
    """

    points_per_move = 120

    def __init__(self, c: float) -> None:
        self._c = c

    def _log_probabilities(self, values, sizes):
        scores = self._c * values
        return scores - logsumexp(scores, b=sizes, axis=1, keepdims=True)

    def _moves(self, values, sizes):
        log_p = self._log_probabilities(values, sizes)
        p = np.concatenate([np.exp(log_p), np.zeros((len(values), 1))], axis=1)
        down, up = np.expm1(-self._c), np.expm1(self._c)
        # All classes that a move does not touch change alike.
        by_class = log_p_by_move(log_p, sizes)
        others = logsumexp(by_class[..., :-2], axis=-1, keepdims=True)
        excess = (p * down)[:, :, None] + (p * up)[:, None, :]
        # Far below 1, Z would lose its digits: sum it up itself.
        far = excess < -DIRECT
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

    Parameters
    ----------
    c : float
        Inverse scale of the noise, in 1 / votes.

    Notes
    -----
    McKenna and Sheldon (2020). With w_k = exp(-c (max n - n_k)),
    Pr[j] = w_j int_0^1 prod_{k != j} (1 - u w_k) du, a polynomial: Gauss-Legendre is
    exact for up to 256 classes, and right to 11 digits for a thousand.
    """

    points_per_move = 20 * _N_FLIP_POINTS

    def __init__(self, c: float) -> None:
        self._c = c

    def _log_probabilities(self, values, sizes):
        log_w = self._c * (values - values.max(axis=-1, keepdims=True))
        enough = ceil(sizes.sum(axis=-1).max() / 2)
        points, weights = _gauss_legendre(min(enough, _N_FLIP_POINTS))
        log_miss = np.log1p(-np.exp(log_w)[..., None] * (points + 1) / 2)
        all_miss = np.sum(sizes[..., None] * log_miss, axis=-2, keepdims=True)
        return log_w + logsumexp(all_miss - log_miss, b=weights / 2, axis=-1)

    def _moves(self, values, sizes):
        after, left = after_move(values, sizes)
        log_p_after = self._log_probabilities(after, left)
        log_p = self._log_probabilities(values, sizes)
        change = np.where(left > 0, log_p_after, 0) - np.where(
            left > 0, _of_outcome(log_p), 0
        )
        return Moves(log_p_by_move(log_p, sizes), change)


@lru_cache
def _gauss_legendre(n):
    return np.polynomial.legendre.leggauss(n)

"""The law of a noisy plurality, and how it changes when one vote moves."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from sklearn_pate.accounting.plurality._discrete_noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    tie_nodes,
)

__all__ = [
    "GaussianPlurality",
    "GumbelPlurality",
    "LaplacePlurality",
    "Moves",
    "PermuteAndFlipPlurality",
    "Plurality",
]

# Points at most for the integral of permute-and-flip: exact for twice as many classes.
_N_FLIP_POINTS = 128
# Where P' / P - 1 is below minus this, P' is summed up itself, unless ln P is so small
# that it does not matter.
_DIRECT = 0.5
_TINY = -700


@dataclass(frozen=True)
class Moves:
    """Laws of the answers to some questions, and of all their neighbours.

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


class _LatticePlurality(Plurality):
    """Plurality of counts with independent noise on whole votes, ties at random."""

    def __init__(self, noise, slope):
        self._noise = noise
        self._slope = slope

    def _grid(self, values, sizes):
        """Lay out the winner's noisy count (points), and its priority in a tie."""
        points, weights = self._noise.nodes(values, sizes)
        n_classes = int(sizes[0].sum())
        at, tie_weights = tie_nodes(self._slope(n_classes), n_classes)
        z = (points[:, None, :] - values[:, :, None])[..., None]
        log_pmf, log_cdf = self._noise.log_pmf(z), self._noise.log_cdf(z)
        # F(z - 1) + u p(z) = F(z) (1 - (1 - u) p(z) / F(z))
        share = np.exp(log_pmf - log_cdf)
        kept = 1 - (1 - at) * share
        log_h = log_cdf + np.log(kept)
        with np.errstate(divide="ignore"):  # padding weighs nothing
            log_weights = np.log(weights)[:, None, :, None] + np.log(tie_weights)
        all_below = np.sum(sizes[:, :, None, None] * log_h, axis=1, keepdims=True)
        log_f = log_pmf + all_below - log_h + log_weights
        return _Grid(z, at, share, kept, log_f.reshape(*values.shape, -1))

    def _log_probabilities(self, values, sizes):
        return logsumexp(self._grid(values, sizes).log_f, axis=2)

    def _moves(self, values, sizes):
        grid = self._grid(values, sizes)
        log_p = logsumexp(grid.log_f, axis=2)
        f = _padded(np.exp(grid.log_f - log_p[:, :, None]), 0)

        # A lost vote multiplies a factor by 1 + beaten, a gained one by 1 + unbeaten.
        at, rate = grid.at, grid.share / grid.kept
        log_up, log_down = (self._noise.log_pmf_step(grid.z, step) for step in (1, -1))
        beaten = _padded(rate * ((1 - at) + at * np.exp(log_up)), 0)
        unbeaten = _padded(-rate * (at + (1 - at) * np.exp(log_down)), 0)
        spread = np.zeros_like(at)
        wins = _padded(log_up + spread, 0)
        loses = _padded(log_down + spread, 0)
        change = _sums(f, beaten, 1 + unbeaten, np.expm1(wins), np.exp(loses))
        falls = f @ unbeaten.swapaxes(1, 2)
        change[..., :-2] += np.moveaxis(falls[:, :-1], 1, 2)[:, None]
        change[..., -2] += falls
        change[..., -1] += np.sum(f * np.expm1(loses), axis=2)[:, None, :]
        # Far below 1, P' / P would lose its digits: sum it up itself.
        by_move = _by_move(log_p, sizes)
        few = np.any((change < -_DIRECT) & (by_move > _TINY), axis=(1, 2, 3))
        change = np.log1p(np.maximum(change, -1 + 1e-15))
        if few.any():
            z = grid.z[few]
            before = np.exp(self._noise.log_pmf(z - 1) - self._noise.log_cdf(z - 1))
            step = self._noise.log_cdf(z - 1) - self._noise.log_cdf(z)
            left = np.exp(step) * (1 - (1 - at) * before) / grid.kept[few]
            ratio = _sums(
                f[few],
                1 + beaten[few],
                _padded(left, 1),
                np.exp(wins[few]),
                np.exp(loses[few]),
            )
            with np.errstate(divide="ignore"):
                change[few] = np.where(
                    change[few] < -_DIRECT, np.log(ratio), change[few]
                )
        return Moves(by_move, change)


def _padded(factors, nobody):
    """Flatten the grid, and add the factor of nobody as the last group."""
    flat = factors.reshape(*factors.shape[:2], -1)
    last = np.full((flat.shape[0], 1, flat.shape[2]), float(nobody))
    return np.concatenate([flat, last], axis=1)


def _sums(f, lost, gained, loser, gainer):
    """Sum f times the factors of a move, by loser, gainer and outcome."""
    n_vectors, n_parties, n_points = f.shape
    sums = np.empty((n_vectors, n_parties, n_parties, n_parties + 1))
    both = (lost[:, :, None] * gained[:, None]).reshape(n_vectors, -1, n_points)
    others = (f[:, :-1] @ both.swapaxes(1, 2)).reshape(
        n_vectors, n_parties - 1, n_parties, n_parties
    )
    sums[..., :-2] = np.moveaxis(others, 1, 3)
    sums[..., -2] = (f * loser) @ gained.swapaxes(1, 2)
    sums[..., -1] = lost @ (f * gainer).swapaxes(1, 2)
    return sums


@dataclass(frozen=True)
class _Grid:
    z: NDArray[np.float64]
    at: NDArray[np.float64]
    share: NDArray[np.float64]
    kept: NDArray[np.float64]
    log_f: NDArray[np.float64]


class GaussianPlurality(_LatticePlurality):
    """Plurality with discrete Gaussian noise, ties broken at random.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes.

    Notes
    -----
    argmax_j n_j + Z_j.
    Pr[j] = sum_t int_0^1 p(t - n_j) prod_{k != j} (F(t - 1 - n_k) + u p(t - n_k)) du:
    ties broken at random are noise Z + U, with U uniform in [0, 1).
    """

    points_per_move = 400

    def __init__(self, sigma: float) -> None:
        # Where a class wins, the others' slopes add up to its own, 38 / sigma at most
        # while its probability is above 1e-300.
        super().__init__(DiscreteGaussian(sigma), lambda n_classes: 38 / sigma)


class LaplacePlurality(_LatticePlurality):
    """Plurality with discrete Laplace noise, ties broken at random.

    Parameters
    ----------
    gamma : float
        Inverse scale of the noise, in 1 / votes.

    Notes
    -----
    As :class:`GaussianPlurality`, with another noise.
    """

    points_per_move = 2000

    def __init__(self, gamma: float) -> None:
        # Where the others' slopes add up to s, all of them lose with probability
        # e^{-s / gamma} at most.
        super().__init__(
            DiscreteLaplace(gamma), lambda n_classes: gamma * min(n_classes, 35)
        )


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
        by_class = _by_move(log_p, sizes)
        others = logsumexp(by_class[..., :-2], axis=-1, keepdims=True)
        excess = (p * down)[:, :, None] + (p * up)[:, None, :]
        # Far below 1, Z would lose its digits: sum it up itself.
        far = excess < -_DIRECT
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
        return Moves(_by_move(log_p, sizes), change)


@lru_cache
def _gauss_legendre(n):
    return np.polynomial.legendre.leggauss(n)


def _of_outcome(log_p):
    """Return ln P of one class of each group, of the loser and of the gainer."""
    n_vectors, n_groups = log_p.shape
    spread = np.full((n_vectors, n_groups + 1, n_groups + 1, n_groups + 2), -np.inf)
    spread[..., :n_groups] = log_p[:, None, None, :]
    spread[:, :n_groups, :, n_groups] = log_p[:, :, None]
    spread[:, :, :n_groups, n_groups + 1] = log_p[:, None, :]
    return spread


def _by_move(log_p, sizes):
    """Return the same, of all untouched classes of each group together."""
    spread = _of_outcome(log_p)
    with np.errstate(divide="ignore"):
        spread[..., :-2] += np.log(np.maximum(untouched(sizes), 0))
    return spread

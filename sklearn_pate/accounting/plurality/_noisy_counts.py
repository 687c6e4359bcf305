"""Distribution of a plurality of counts with independent noise on whole votes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from sklearn_pate.accounting.plurality._discrete_noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    tie_nodes,
)
from sklearn_pate.accounting.plurality._exact import (
    DIRECT,
    Moves,
    Plurality,
    log_p_by_move,
)

_Array = NDArray[np.float64]
# Larger factors of a term are added in logarithms.
_LARGEST_EXPONENT = 300
# Difference up to which a sum of factors less one has more digits than its logarithm.
_CLOSE = 1e-9


class _LatticePlurality(Plurality):
    """Plurality of counts with independent noise on whole votes, ties at random."""

    def __init__(
        self, noise: DiscreteGaussian | DiscreteLaplace, slope: Callable[[int], float]
    ) -> None:
        self._noise = noise
        self._slope = slope

    def _grid(self, values: _Array, sizes: _Array) -> "_Grid":
        """Return the integrand at the winner's noisy count and its tie priority."""
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

    def log_probabilities(self, values: _Array, sizes: _Array) -> _Array:
        """Compute the log-probabilities of the winners, see `Plurality`."""
        return logsumexp(self._grid(values, sizes).log_f, axis=2)

    def moves(self, values: _Array, sizes: _Array) -> Moves:
        """Compute the change of the distribution by each move, see `Plurality`."""
        grid = self._grid(values, sizes)
        log_p = logsumexp(grid.log_f, axis=2)
        f = _padded(np.exp(grid.log_f - log_p[:, :, None]), 0)

        # A lost vote multiplies a factor by 1 + beaten, a gained one by 1 + unbeaten.
        at, rate = grid.at, grid.share / grid.kept
        steps = [self._noise.log_pmf_step(grid.z, step) for step in (1, -1)]
        log_up, log_down = np.clip(steps, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
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
        # Far below 1, P' / P would lose its digits as 1 + change: sum it directly.
        by_move = log_p_by_move(log_p, sizes)
        few = np.any((change < -DIRECT) & (by_move > -np.inf), axis=(1, 2, 3))
        change = np.log1p(np.maximum(change, -1 + 1e-15))
        steep = np.any(np.abs(steps) > _LARGEST_EXPONENT, axis=(0, 2, 3, 4))
        few &= ~steep
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
                    change[few] < -DIRECT, np.log(ratio), change[few]
                )
        for i in np.flatnonzero(steep).tolist():
            exact = self._log_change(grid, i, log_p[i], steps[0][i], steps[1][i])
            close = np.abs(exact - change[i]) <= _CLOSE
            change[i] = np.where(close, change[i], exact)
        return Moves(by_move, change)

    def _log_change(
        self, grid: "_Grid", i: int, log_p: _Array, log_up: _Array, log_down: _Array
    ) -> _Array:
        """Compute ln P' / P of all moves of one vector, by sums of logarithms."""
        log_f = grid.log_f[i] - log_p[:, np.newaxis]
        n_levels, n_points = log_f.shape
        z, at, log_kept = grid.z[i], grid.at, np.log(grid.kept[i])
        log_cdf = self._noise.log_cdf(z)
        ends = []
        for step, log_step in ((1, log_up), (-1, log_down)):
            moved = self._noise.log_cdf(z + step)
            share = np.exp(self._noise.log_pmf(z + step) - moved)
            log_factor = moved - log_cdf + np.log1p(-(1 - at) * share) - log_kept
            factors = [log_factor, np.broadcast_to(log_step, log_factor.shape)]
            flat = [part.reshape(n_levels, n_points) for part in factors]
            ends.append([np.vstack([part, np.zeros(n_points)]) for part in flat])
        (lost, wins), (gained, loses) = ends
        log_f = np.vstack([log_f, np.full(n_points, -np.inf)])
        change = np.zeros((n_levels + 1, n_levels + 1, n_levels + 2))
        for loser, gainer in np.ndindex(n_levels + 1, n_levels + 1):
            others = log_f[:-1] + (lost[loser] + gained[gainer])
            change[loser, gainer, :-2] = logsumexp(others, axis=1)
            change[loser, gainer, -2] = logsumexp(
                log_f[loser] + wins[loser] + gained[gainer]
            )
            change[loser, gainer, -1] = logsumexp(
                log_f[gainer] + loses[gainer] + lost[loser]
            )
        return np.where(np.isneginf(change), 0.0, change)


def _padded(factors: _Array, factor: float) -> _Array:
    """Flatten the grid, and append the constant factor of the last level."""
    flat = factors.reshape(*factors.shape[:2], -1)
    last = np.full((flat.shape[0], 1, flat.shape[2]), float(factor))
    return np.concatenate([flat, last], axis=1)


def _sums(
    f: _Array, lost: _Array, gained: _Array, loser: _Array, gainer: _Array
) -> _Array:
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
    """Integrand for the winner: factors per level, point and tie priority."""

    z: _Array
    at: _Array
    share: _Array
    kept: _Array
    log_f: _Array


class GaussianPlurality(_LatticePlurality):
    """Plurality with discrete Gaussian noise of scale sigma, ties broken at random.

    argmax_j n_j + Z_j, with Pr[j] = sum_t int_0^1 p(t - n_j) prod_{k != j} (F(t - 1 -
    n_k) + u p(t - n_k)) du: breaking ties at random is noise Z + U, with U uniform in
    [0, 1).
    """

    points_per_move = 400

    def __init__(self, sigma: float) -> None:
        # Where a class wins, the others' slopes add up to its own, 38 / sigma at most
        # while its probability is above 1e-300.
        self._sigma = sigma
        super().__init__(DiscreteGaussian(sigma), lambda n_classes: 38 / sigma)

    def reach(self, order: float) -> float:
        """Bound the leads that matter, see `Plurality`.

        A class g behind adds at most e^{a (a - 1) / s^2 - (g - 2 a)^2 / (4 s^2)} to the
        moment of order a, s being sigma: less than e^{-800} from 4 a + 60 s on.
        """
        return float(np.ceil(4 * order + 60 * self._sigma))


class LaplacePlurality(_LatticePlurality):
    """Plurality with discrete Laplace noise of inverse scale gamma, as for Gaussian."""

    points_per_move = 2000

    def __init__(self, gamma: float) -> None:
        # Where the others' slopes add up to s, all of them lose with probability
        # at most e^{-s / gamma}.
        self._gamma = gamma
        super().__init__(
            DiscreteLaplace(gamma), lambda n_classes: gamma * min(n_classes, 35)
        )

    def reach(self, order: float) -> float:
        """Bound the leads that matter, see `Plurality`.

        A class g behind wins with probability at most (1 + gamma g) e^{-gamma g}, which
        a move changes by a factor e^{2 gamma} at most.
        """
        return float(np.ceil(2 * order + 2 + 900 / self._gamma))

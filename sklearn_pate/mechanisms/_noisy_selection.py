"""Noise on the scores of a private search, and its privacy cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from numpy.typing import ArrayLike

from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.plurality._closed_form import (
    gumbel_worst_case,
    permute_and_flip_worst_case,
    pure_dp_curve,
    threshold_worst_case,
)
from sklearn_pate.mechanisms import GumbelMax, PermuteAndFlip
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["DisjointChoice", "NoisyScores"]


@dataclass(frozen=True)
class NoisyScores:
    """Scores with noise, from which the best is chosen.

    `scale` is in units of the sensitivity of a score: sigma of the discrete Gaussian,
    or 1 / epsilon of the discrete Laplace distribution if `pure`.
    """

    scale: float
    pure: bool = False

    @classmethod
    def at(cls, epsilon: float) -> Self:
        """Return discrete Laplace noise for a given pure cost of one score."""
        return cls(1 / epsilon, pure=True)

    def curve(self, orders: ArrayLike) -> RdpCurve:
        """Compute the cost of one score."""
        if self.pure:
            return pure_dp_curve(1 / self.scale, orders)
        return threshold_worst_case(self.scale, orders)

    def draw(self, sensitivity: int, noise: NoiseSource) -> int:
        """Draw the noise of one score."""
        scale = self.scale * sensitivity
        if self.pure:
            return int(noise.discrete_laplace(1 / scale, 1)[0])
        return int(noise.discrete_gaussian(scale, 1)[0])

    def __str__(self) -> str:
        law = "Laplace" if self.pure else "Gaussian"
        return f"scores with discrete {law} noise of scale {self.scale:.6g}"


@dataclass(frozen=True)
class DisjointChoice:
    """The exponential mechanism on the scores of all candidates.

    `scale` is 1 / c in units of the sensitivity of a score. If `pure`, the choice is by
    permute-and-flip, which is more often correct at the same pure cost; otherwise by
    the exponential mechanism itself, whose Renyi cost is lower.

    Unlike votes, the scores of all candidates may change at once, by 1 each and in
    either direction. exp(c n_j) then changes by a factor in [e^-c, e^c], and the
    normaliser by one that is the same for all j: the log-ratio of probabilities lies in
    an interval of length 2c, the only assumption of
    :func:`~sklearn_pate.accounting.bounds.gumbel_worst_case`. Permute-and-flip
    is 2c-DP for any such scores (McKenna and Sheldon 2020, "Permute-and-flip: a new
    mechanism for differentially private selection").
    """

    scale: float
    pure: bool = False

    @classmethod
    def at(cls, epsilon: float) -> Self:
        """Return permute-and-flip with a given pure cost."""
        return cls(2 / epsilon, pure=True)

    def curve(self, orders: ArrayLike) -> RdpCurve:
        """Compute the cost of the choice."""
        if self.pure:
            return permute_and_flip_worst_case(1 / self.scale, orders)
        return gumbel_worst_case(1 / self.scale, orders)

    def choose(
        self, scores: Sequence[int], sensitivity: int, noise_seed: int | None
    ) -> int:
        """Choose the index of a candidate from its non-negative scores."""
        if len(scores) == 1:
            return 0
        mechanism = PermuteAndFlip if self.pure else GumbelMax
        c = 1 / (self.scale * sensitivity)
        return int(mechanism(c, noise_seed=noise_seed).answer([scores])[0])

    def __str__(self) -> str:
        name = "PermuteAndFlip" if self.pure else "GumbelMax"
        return f"a choice by {name}(c={1 / self.scale:.6g})"

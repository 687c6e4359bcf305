"""The noise between scores and a choice, and what it costs."""

from dataclasses import dataclass

from sklearn_pate.accounting.plurality._closed_form import (
    gumbel_worst_case,
    permute_and_flip_worst_case,
    pure_dp_curve,
    threshold_worst_case,
)
from sklearn_pate.mechanisms import GumbelMax, PermuteAndFlip

__all__ = ["DisjointChoice", "NoisyScores"]


@dataclass(frozen=True)
class NoisyScores:
    """Scores with noise, of which the best is looked for.

    Parameters
    ----------
    scale : float
        Of the noise, over what one unit of privacy can change: sigma of the discrete
        Gaussian, or 1 / epsilon of the discrete Laplace distribution.

    pure : bool, default=False
        Whether it is the latter.
    """

    scale: float
    pure: bool = False

    @classmethod
    def at(cls, epsilon):
        """Return pure noise of a given cost.

        Parameters
        ----------
        epsilon : float
            Of one score.

        Returns
        -------
        scoring : NoisyScores
            Its noise is discrete Laplace.
        """
        return cls(1 / epsilon, pure=True)

    def curve(self, orders):
        """Compute the cost of one score.

        Parameters
        ----------
        orders : ndarray of shape (n_orders,)
            Renyi orders.

        Returns
        -------
        curve : RdpCurve
            Data-independent.
        """
        if self.pure:
            return pure_dp_curve(1 / self.scale, orders)
        return threshold_worst_case(self.scale, orders)

    def draw(self, sensitivity, noise):
        """Draw the noise of one score.

        Parameters
        ----------
        sensitivity : int
            What one unit of privacy can change.

        noise : NoiseSource
            Where it comes from.

        Returns
        -------
        draw : int
            Exact.
        """
        scale = self.scale * sensitivity
        if self.pure:
            return int(noise.discrete_laplace(1 / scale, 1)[0])
        return int(noise.discrete_gaussian(scale, 1)[0])

    def __str__(self):
        law = "Laplace" if self.pure else "Gaussian"
        return f"scores with discrete {law} noise of scale {self.scale:.6g}"


@dataclass(frozen=True)
class DisjointChoice:
    """The exponential mechanism on the scores of all candidates.

    Parameters
    ----------
    scale : float
        1 / c of the mechanism, over what one unit of privacy can change.

    pure : bool, default=False
        Whether it is permute-and-flip, which is right more often at the same pure
        cost, or the exponential mechanism itself, whose Renyi cost is lower.

    Notes
    -----
    Unlike votes, the scores of all candidates may change at once, by 1 each and in
    either direction. exp(c n_j) then changes by a factor in [e^-c, e^c], and the
    normaliser by one that is the same for all j: the log-ratio of probabilities lies in
    an interval of length 2c, and that is all that
    :func:`~sklearn_pate.accounting.bounds.gumbel_worst_case` takes. Permute-and-flip
    is 2c-DP for any such scores (McKenna and Sheldon 2020, "Permute-and-flip: a new
    mechanism for differentially private selection").
    """

    scale: float
    pure: bool = False

    @classmethod
    def at(cls, epsilon):
        """Return the choice of a given pure cost.

        Parameters
        ----------
        epsilon : float
            Of the choice.

        Returns
        -------
        scoring : DisjointChoice
            It is permute-and-flip.
        """
        return cls(2 / epsilon, pure=True)

    def curve(self, orders):
        """Compute the cost of the choice.

        Parameters
        ----------
        orders : ndarray of shape (n_orders,)
            Renyi orders.

        Returns
        -------
        curve : RdpCurve
            Data-independent.
        """
        if self.pure:
            return permute_and_flip_worst_case(1 / self.scale, orders)
        return gumbel_worst_case(1 / self.scale, orders)

    def choose(self, scores, sensitivity, noise_seed):
        """Choose a candidate.

        Parameters
        ----------
        scores : list of int
            One a candidate, not negative.

        sensitivity : int
            What one unit of privacy can change.

        noise_seed : int or None
            None draws the noise from the operating system.

        Returns
        -------
        index : int
            Of the candidate.
        """
        if len(scores) == 1:
            return 0
        mechanism = PermuteAndFlip if self.pure else GumbelMax
        c = 1 / (self.scale * sensitivity)
        return int(mechanism(c, noise_seed=noise_seed).answer([scores])[0])

    def __str__(self):
        name = "PermuteAndFlip" if self.pure else "GumbelMax"
        return f"a choice by {name}(c={1 / self.scale:.6g})"

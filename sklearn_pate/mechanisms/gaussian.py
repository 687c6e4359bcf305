"""GNMax: plurality with Gaussian noise."""

from typing import Any

import numpy as np
from sklearn.base import clone

from sklearn_pate.accounting.bounds import gaussian_2018, gaussian_worst_case
from sklearn_pate.mechanisms.base import Mechanism

__all__ = ["GNMax", "gaussian_plurality"]


class GNMax(Mechanism):
    """Plurality of vote counts with Gaussian noise.

    Parameters
    ----------
    sigma : float, default=None
        Standard deviation of the noise on every count, in votes. None lets
        :class:`~sklearn_pate.PATEClassifier` calibrate it to a target epsilon. More
        noise, more privacy.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    argmax_j n_j + N(0, sigma^2) (Papernot et al. 2018, Section 4.1), priced by
    :func:`~sklearn_pate.accounting.bounds.gaussian_worst_case`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import GNMax
    >>> GNMax(sigma=1).answer([[100, 0, 0]])
    array([0])
    >>> curve = GNMax(sigma=40).account_curve(n_queries=100, n_classes=10)
    >>> round(curve.to_epsilon(1e-5), 3)
    1.478
    """

    noise_parameters = ("sigma",)

    def __init__(
        self, sigma: float | None = None, *, noise_seed: int | None = None
    ) -> None:
        self.sigma: Any = sigma
        self.noise_seed = noise_seed

    def _answer(self, counts, noise):
        return gaussian_plurality(counts, self.sigma, noise)

    def _with_scale(self, scale):
        return clone(self).set_params(sigma=float(scale))

    def _price(self, n_queries, n_answers, n_classes, orders):
        return gaussian_worst_case(self.sigma, orders) * n_answers

    def _paper_curve(self, counts):
        return gaussian_2018(counts, self.sigma)


def gaussian_plurality(counts, sigma, noise):
    """Return argmax_j n_j + N(0, sigma^2) for each row of counts.

    Parameters
    ----------
    counts : ndarray of shape (n_queries, n_classes)
        Votes per class.

    sigma : float
        Standard deviation of the noise, in votes.

    noise : NoiseSource
        Where the noise comes from.

    Returns
    -------
    answers : ndarray of int of shape (n_queries,)
        Class indices.
    """
    return np.argmax(counts + noise.gaussian(sigma, counts.shape), axis=1)

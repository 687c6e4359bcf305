"""GNMax: plurality with Gaussian noise."""

from typing import Any

from sklearn.base import clone

from sklearn_pate.accounting.bounds import gaussian_2018, gaussian_worst_case
from sklearn_pate.accounting.plurality._noisy_counts import GaussianPlurality
from sklearn_pate.accounting.plurality._tight_gaussian import tight_gaussian_worst_case
from sklearn_pate.mechanisms._plurality import Mechanism

__all__ = ["GNMax", "gaussian_plurality"]


class GNMax(Mechanism):
    """Plurality of vote counts with Gaussian noise.

    Its answers may be published, at the price of `account_curve`.

    Parameters
    ----------
    sigma : float, default=None
        Scale of the noise on every count, in votes: its standard deviation, but for
        noise below one vote. None lets
        :class:`~sklearn_pate.PATEClassifier` calibrate it to a target epsilon. More
        noise, more privacy. It is published, and must not be chosen by a look at votes.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    argmax_j n_j + Z_j (Papernot et al. 2018, Section 4.1) with discrete Gaussian noise,
    Pr[z] proportional to exp(-z^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020), and
    ties broken at random. Priced by
    :func:`~sklearn_pate.accounting.tight_gaussian_worst_case`, about 0.64 a / sigma^2
    an answer while the order a is far below sigma; the proof is in :doc:`What an answer
    costs </accounting>`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import GNMax
    >>> GNMax(sigma=1).answer([[100, 0, 0]])
    array([0])
    >>> curve = GNMax(sigma=40).account_curve(n_queries=100, n_classes=2)
    >>> round(curve.to_epsilon(1e-5), 3)  # of all hundred answers together
    1.158
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
        return tight_gaussian_worst_case(self.sigma, n_classes, orders) * n_answers

    def _plurality(self):
        return GaussianPlurality(self.sigma)

    def _ceiling(self, orders):
        return gaussian_worst_case(self.sigma, orders)

    def _guarantee(self):
        return {"sigma": self.sigma}

    def _paper_curve(self, counts):
        return gaussian_2018(counts, self.sigma)


def gaussian_plurality(counts, sigma, noise):
    """Return argmax_j n_j + Z_j for each row of counts, ties broken at random.

    Parameters
    ----------
    counts : ndarray of int of shape (n_queries, n_classes)
        Votes per class.

    sigma : float
        Scale of the discrete Gaussian noise, in votes.

    noise : NoiseSource
        Where the noise comes from.

    Returns
    -------
    answers : ndarray of int of shape (n_queries,)
        Class indices.
    """
    return noise.argmax(counts + noise.discrete_gaussian(sigma, counts.shape))

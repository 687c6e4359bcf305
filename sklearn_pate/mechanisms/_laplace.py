"""LNMax: plurality with Laplace noise."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import six_digits
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.bounds import (
    discrete_laplace_worst_case,
    laplace_2017,
)
from sklearn_pate.accounting.plurality._answer_tests import AnswerTests, laplace_tests
from sklearn_pate.accounting.plurality._noisy_counts import LaplacePlurality
from sklearn_pate.accounting.plurality._tight_laplace import tight_laplace_worst_case
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["LNMax"]

# The 2017 paper's moments l = 1..8 are the Renyi orders l + 1.
_PAPER_ORDERS = np.arange(2, 10)


class LNMax(Mechanism):
    """Plurality of vote counts with Laplace noise.

    Its answers may be published, at the cost of `account_curve`.

    Parameters
    ----------
    gamma : float, default=None
        Inverse scale of the noise on every count, in 1 / votes. None lets
        :class:`~sklearn_pate.PATEClassifier` calibrate it to a target epsilon. A
        smaller gamma gives more noise and more privacy. Public: it must be chosen
        independently of votes.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    argmax_j n_j + Z_j (Papernot et al. 2017, Section 3.1), with discrete Laplace noise,
    Pr[z] proportional to exp(-gamma abs(z)) (Canonne, Kamath, Steinke 2020), and ties
    broken at random. It is 2 gamma-DP. Privacy cost:
    :func:`~sklearn_pate.accounting.tight_laplace_worst_case`; proof:
    :doc:`/accounting`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import LNMax
    >>> LNMax(gamma=0.2).answer([[200, 0, 0]])
    array([0])
    >>> curve = LNMax(gamma=0.2).account_curve(n_queries=10, n_classes=2)
    >>> round(curve.to_epsilon(1e-5), 2)  # of all ten answers together
    2.4
    """

    noise_parameters = ("gamma",)
    _answers_are_known = True

    def __init__(
        self, gamma: float | None = None, *, noise_seed: int | None = None
    ) -> None:
        self.gamma: Any = gamma
        self.noise_seed = noise_seed

    def _answer(
        self, counts: NDArray[np.int64], noise: NoiseSource
    ) -> NDArray[np.intp]:
        return noise.argmax(counts + noise.discrete_laplace(self.gamma, counts.shape))

    def _with_scale(self, scale: float) -> Self:
        return clone(self).set_params(gamma=six_digits(1 / scale, np.floor))

    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        return tight_laplace_worst_case(self.gamma, n_classes, orders) * n_answers

    def _answer_tests(self, n_classes: int) -> AnswerTests | None:
        # No tests are proved to dominate those of three outcomes.
        return laplace_tests(self.gamma) if n_classes <= 2 else None

    def _plurality(self) -> LaplacePlurality:
        return LaplacePlurality(self.gamma)

    def _ceiling(self, orders: ArrayLike) -> RdpCurve:
        return discrete_laplace_worst_case(self.gamma, orders)

    def _guarantee(self) -> dict[str, float]:
        return {"pure_epsilon": 2 * self.gamma}

    def _paper_curve(self, counts: ArrayLike) -> RdpCurve:
        return laplace_2017(counts, self.gamma, _PAPER_ORDERS)

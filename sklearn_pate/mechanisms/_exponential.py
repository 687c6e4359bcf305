"""GumbelMax (the exponential mechanism) and PermuteAndFlip."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import six_digits
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.bounds import (
    gumbel_worst_case,
    permute_and_flip_worst_case,
)
from sklearn_pate.accounting.plurality._answer_tests import (
    AnswerTests,
    bounded_range_tests,
    randomised_response,
)
from sklearn_pate.accounting.plurality._outcomes import (
    GumbelPlurality,
    PermuteAndFlipPlurality,
)
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["GumbelMax", "PermuteAndFlip"]


class _AcceptedByGap(Mechanism):
    """Plurality that accepts class j with probability exp(-c (max n - n_j))."""

    noise_parameters = ("c",)

    def __init__(
        self, c: float | None = None, *, noise_seed: int | None = None
    ) -> None:
        self.c: Any = c
        self.noise_seed = noise_seed

    def _with_scale(self, scale: float) -> Self:
        return clone(self).set_params(c=six_digits(1 / scale, np.floor))

    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        return self._ceiling(orders) * n_answers

    def _guarantee(self) -> dict[str, float]:
        return {"pure_epsilon": 2 * self.c}


class GumbelMax(_AcceptedByGap):
    """Exponential mechanism on vote counts.

    Its answers may be published, at the cost of `account_curve`.

    Parameters
    ----------
    c : float, default=None
        Inverse scale of the noise, in 1 / votes. None lets
        :class:`~sklearn_pate.PATEClassifier` calibrate it to a target epsilon. A
        smaller c gives more noise and more privacy. Public: it must be chosen
        independently of votes.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    Pr[j] is proportional to exp(c n_j), which is argmax_j n_j + Gumbel(1 / c) (McSherry
    and Talwar 2007, with sensitivity 1 for each count). It is sampled exactly: a class
    is proposed at random, and accepted with probability exp(-c (max n - n_j)). Privacy
    cost: :func:`~sklearn_pate.accounting.bounds.gumbel_worst_case` (Dong, Durfee,
    Rogers 2020).

    Examples
    --------
    >>> from sklearn_pate.mechanisms import GumbelMax
    >>> GumbelMax(c=1).answer([[100, 0, 0]])
    array([0])
    >>> curve = GumbelMax(c=0.05).account_curve(n_queries=100, n_classes=10)
    >>> round(curve.to_epsilon(1e-5), 2)  # of all hundred answers together
    2.15
    """

    _answers_are_known = True

    def _answer(
        self, counts: NDArray[np.int64], noise: NoiseSource
    ) -> NDArray[np.intp]:
        n_classes = counts.shape[1]
        gaps = counts.max(axis=1, keepdims=True) - counts
        answers = np.empty(len(counts), dtype=np.intp)
        left = np.arange(len(counts))
        while left.size:
            proposed = noise.index(n_classes, left.size)
            accepted = noise.bernoulli_exp(self.c, gaps[left, proposed])
            answers[left[accepted]] = proposed[accepted]
            left = left[~accepted]
        return answers

    def _answer_tests(self, n_classes: int) -> AnswerTests | None:
        return bounded_range_tests(2 * self.c)

    def _ceiling(self, orders: ArrayLike) -> RdpCurve:
        return gumbel_worst_case(self.c, orders)

    def _plurality(self) -> GumbelPlurality:
        return GumbelPlurality(self.c)


class PermuteAndFlip(_AcceptedByGap):
    """Permute-and-flip on vote counts.

    Its answers may be published, at the cost of `account_curve`.

    Parameters
    ----------
    c : float, default=None
        Inverse scale of the noise, in 1 / votes, as in :class:`GumbelMax`.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    Classes are visited in random order, and the first that passes a trial with
    probability exp(-c (max n - n_j)) is the answer (McKenna and Sheldon 2020). This is
    argmax_j n_j + exponential noise of rate c (Ding et al. 2021). At the same c it is
    more often correct than :class:`GumbelMax` and costs more. Privacy cost:
    :func:`~sklearn_pate.accounting.bounds.permute_and_flip_worst_case`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import PermuteAndFlip
    >>> PermuteAndFlip(c=1).answer([[100, 0, 0]])
    array([0])
    >>> curve = PermuteAndFlip(c=0.05).account_curve(n_queries=100, n_classes=10)
    >>> round(curve.to_epsilon(1e-5), 2)  # of all hundred answers together
    4.62
    """

    _answers_are_known = True

    def _answer(
        self, counts: NDArray[np.int64], noise: NoiseSource
    ) -> NDArray[np.intp]:
        n_queries, n_classes = counts.shape
        gaps = counts.max(axis=1, keepdims=True) - counts
        unvisited = np.tile(np.arange(n_classes), (n_queries, 1))
        answers = np.empty(n_queries, dtype=np.intp)
        left = np.arange(n_queries)
        for n_unvisited in range(n_classes, 0, -1):
            place = noise.index(n_unvisited, left.size)
            visited = unvisited[left, place]
            # Replace the visited class by the last unvisited one.
            unvisited[left, place] = unvisited[left, n_unvisited - 1]
            passed = noise.bernoulli_exp(self.c, gaps[left, visited])
            answers[left[passed]] = visited[passed]
            left = left[~passed]
        return answers

    def _answer_tests(self, n_classes: int) -> AnswerTests | None:
        return randomised_response(2 * self.c)

    def _ceiling(self, orders: ArrayLike) -> RdpCurve:
        return permute_and_flip_worst_case(self.c, orders)

    def _plurality(self) -> PermuteAndFlipPlurality:
        return PermuteAndFlipPlurality(self.c)

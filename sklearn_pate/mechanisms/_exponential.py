"""GumbelMax and PermuteAndFlip: the exponential mechanism and its sharper sibling."""

from typing import Any

import numpy as np
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import six_digits
from sklearn_pate.accounting.bounds import (
    gumbel_worst_case,
    permute_and_flip_worst_case,
)
from sklearn_pate.accounting.plurality._outcomes import (
    GumbelPlurality,
    PermuteAndFlipPlurality,
)
from sklearn_pate.mechanisms._plurality import Mechanism

__all__ = ["GumbelMax", "PermuteAndFlip"]


class _AcceptedByGap(Mechanism):
    """A class is accepted with probability exp(-c (max n - n_j))."""

    noise_parameters = ("c",)

    def __init__(
        self, c: float | None = None, *, noise_seed: int | None = None
    ) -> None:
        self.c: Any = c
        self.noise_seed = noise_seed

    def _with_scale(self, scale):
        return clone(self).set_params(c=six_digits(1 / scale, np.floor))

    def _cost(self, n_queries, n_answers, n_classes, orders):
        return self._ceiling(orders) * n_answers

    def _guarantee(self):
        return {"pure_epsilon": 2 * self.c}


class GumbelMax(_AcceptedByGap):
    """The exponential mechanism on vote counts.

    Its answers may be published, at the cost of `account_curve`.

    Parameters
    ----------
    c : float, default=None
        Inverse scale of the noise, in 1 / votes. None lets
        :class:`~sklearn_pate.PATEClassifier` calibrate it to a target epsilon. A
        smaller c is more noise and more privacy. It is published, and must not be
        chosen by a look at votes.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    Pr[j] is proportional to exp(c n_j), which is argmax_j n_j + Gumbel(1 / c) (McSherry
    and Talwar 2007, with sensitivity 1 for each count). It is sampled exactly: a class
    is proposed at random, and accepted with probability exp(-c (max n - n_j)). Price:
    :func:`~sklearn_pate.accounting.bounds.gumbel_worst_case` (Dong, Durfee, Rogers
    2020).

    Examples
    --------
    >>> from sklearn_pate.mechanisms import GumbelMax
    >>> GumbelMax(c=1).answer([[100, 0, 0]])
    array([0])
    >>> curve = GumbelMax(c=0.05).account_curve(n_queries=100, n_classes=10)
    >>> round(curve.to_epsilon(1e-5), 2)  # of all hundred answers together
    2.15
    """

    def _answer(self, counts, noise):
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

    def _ceiling(self, orders):
        return gumbel_worst_case(self.c, orders)

    def _plurality(self):
        return GumbelPlurality(self.c)


class PermuteAndFlip(_AcceptedByGap):
    """Permute-and-flip on vote counts.

    Its answers may be published, at the cost of `account_curve`.

    Parameters
    ----------
    c : float, default=None
        Inverse scale of the noise, in 1 / votes. None lets
        :class:`~sklearn_pate.PATEClassifier` calibrate it to a target epsilon. A
        smaller c is more noise and more privacy. It is published, and must not be
        chosen by a look at votes.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    Classes are visited in random order, and the first that passes a trial with
    probability exp(-c (max n - n_j)) is the answer (McKenna and Sheldon 2020). This is
    argmax_j n_j + exponential noise of rate c (Ding et al. 2021). It is right more
    often than :class:`GumbelMax` at the same c, and costs more: accounted for by
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

    def _answer(self, counts, noise):
        n_queries, n_classes = counts.shape
        gaps = counts.max(axis=1, keepdims=True) - counts
        unvisited = np.tile(np.arange(n_classes), (n_queries, 1))
        answers = np.empty(n_queries, dtype=np.intp)
        left = np.arange(n_queries)
        for n_unvisited in range(n_classes, 0, -1):
            place = noise.index(n_unvisited, left.size)
            visited = unvisited[left, place]
            # The last one that is unvisited takes the place of the visited one.
            unvisited[left, place] = unvisited[left, n_unvisited - 1]
            passed = noise.bernoulli_exp(self.c, gaps[left, visited])
            answers[left[passed]] = visited[passed]
            left = left[~passed]
        return answers

    def _ceiling(self, orders):
        return permute_and_flip_worst_case(self.c, orders)

    def _plurality(self):
        return PermuteAndFlipPlurality(self.c)

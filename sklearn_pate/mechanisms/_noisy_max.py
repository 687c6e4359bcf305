"""GNMax, noisy histogram, LNMax, GumbelMax, PermuteAndFlip."""

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import six_digits
from sklearn_pate.accounting._cost import GaussianTest
from sklearn_pate.accounting._gdp import gdp_mu
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.bounds import (
    discrete_laplace_worst_case,
    gaussian_2018,
    gaussian_worst_case,
    gumbel_worst_case,
    laplace_2017,
    permute_and_flip_worst_case,
)
from sklearn_pate.accounting.plurality._adaptive_answers import (
    AnswerTests,
    bounded_range_tests,
    laplace_tests,
    plurality_tests,
    randomised_response,
)
from sklearn_pate.accounting.plurality._closed_form import check_counts
from sklearn_pate.accounting.plurality._exact import (
    LOCAL_ORDERS,
    GumbelPlurality,
    LocalCosts,
    PermuteAndFlipPlurality,
)
from sklearn_pate.accounting.plurality._noisy_counts import (
    GaussianPlurality,
    LaplacePlurality,
)
from sklearn_pate.accounting.plurality._tight import (
    tight_gaussian_worst_case,
    tight_laplace_worst_case,
)
from sklearn_pate.mechanisms._mechanism import Mechanism, Response
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._plurality import PluralityMechanism

# The 2017 paper's moments l = 1..8 are the Renyi orders l + 1.
_PAPER_ORDERS = np.arange(2, 10)


class GNMax(PluralityMechanism):
    """Most-voted class after Gaussian noise is added to vote counts.

    Answers may be published, at the privacy cost that `cost` computes.

    Parameters
    ----------
    sigma : float, default=None
        Scale of the noise on every count, in votes. For scales of at least one vote,
        the scale is about the standard deviation. With None,
        :class:`~sklearn_pate.PATEClassifier` calibrates the noise to a target epsilon.
        More noise has a lower privacy cost. The scale must be chosen independently of
        votes.

    Notes
    -----
    The answer is argmax_j n_j + Z_j (Papernot et al. 2018, Section 4.1) with discrete
    Gaussian noise, Pr[z] proportional to exp(-z^2 / (2 sigma^2)) (Canonne, Kamath,
    Steinke 2020). Ties are broken at random. The privacy cost of an answer is
    :func:`~sklearn_pate.accounting.tight_gaussian_worst_case`, about 0.64 a / sigma^2
    at Renyi orders a far below sigma. The stated epsilon is the exact epsilon of
    adaptive answers, which is 6 to 8 % smaller. Proofs are on the page
    :doc:`/accounting`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import GNMax
    >>> GNMax(sigma=1).answer([[100, 0, 0]])
    array([0])
    >>> curve = GNMax(sigma=40).cost(n_queries=100, n_classes=2).curve
    >>> round(curve.to_epsilon(1e-5), 3)  # of all hundred answers together
    1.158
    """

    noise_parameters = ("sigma",)
    _has_exact_cost = True

    def __init__(self, sigma: float | None = None) -> None:
        self.sigma: Any = sigma

    def _answer(
        self, counts: NDArray[np.int64], noise: NoiseSource
    ) -> NDArray[np.intp]:
        return gaussian_plurality(counts, self.sigma, noise)

    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        return tight_gaussian_worst_case(self.sigma, n_classes, orders) * n_answers

    def _answer_tests(self, n_classes: int) -> AnswerTests | None:
        return plurality_tests(self.sigma, n_classes)

    def _plurality(self) -> GaussianPlurality:
        return GaussianPlurality(self.sigma)

    def _ceiling(self, orders: ArrayLike) -> RdpCurve:
        return gaussian_worst_case(self.sigma, orders)

    def _guarantee(self) -> dict[str, float]:
        return {"sigma": self.sigma}

    def _paper_curve(self, counts: ArrayLike) -> RdpCurve | None:
        return gaussian_2018(counts, self.sigma)


class NoisyHistogram(GNMax):
    """Vote counts of all classes with Gaussian noise.

    A :class:`~sklearn_pate.PATEClassifier` with ``mechanism="histogram"`` uses this
    mechanism. Histograms may be published, at the privacy cost that `cost` computes.
    Post-processing of histograms, such as most-voted classes and soft labels, has no
    privacy cost.

    Parameters
    ----------
    sigma : float, default=None
        Scale of the noise on every count, as in :class:`GNMax`.

    Notes
    -----
    The histogram is n + Z, with independent discrete Gaussian noise, Pr[z] proportional
    to exp(-z^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020). A moved vote changes two
    counts by 1, so the privacy cost of a histogram is a / sigma^2 at Renyi order a
    (:func:`~sklearn_pate.accounting.bounds.gaussian_worst_case`). This cost is about
    1.6 times the cost of an answer of :class:`GNMax`. An added or withdrawn vote
    changes one count, and the privacy cost is half as large.

    Noise and privacy cost do not depend on counts. The cost is exactly a / sigma^2 at
    whole orders, and at most a / sigma^2 at other orders (Canonne, Kamath, Steinke
    2020, Proposition 5). The methods `local_curve`, `enumerated_curve` and
    `optimal_curve` thus have closed forms. The result of `local_curve` depends on votes
    through abstentions only. Proofs are on the page :doc:`/accounting`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import NoisyHistogram
    >>> NoisyHistogram(sigma=20).release([[100, 0, 0]]).shape
    (1, 3)
    >>> curve = NoisyHistogram(sigma=40).cost(n_queries=100, n_classes=10).curve
    >>> round(curve.to_epsilon(1e-5), 3)
    1.478
    """

    releases_histograms: ClassVar[bool] = True
    _has_exact_cost = True

    # Counts cost the same for all votes.
    sanitized_cost = Mechanism.sanitized_cost

    def release(
        self, counts: ArrayLike, noise: NoiseSource | None = None
    ) -> NDArray[np.int64]:
        """Release vote counts with noise.

        Every call draws new noise and has a new privacy cost, so release each query
        once.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class, whole numbers. Sensitive.

        noise : NoiseSource, default=None
            Source of the noise. With None, a new source is created.

        Returns
        -------
        histograms : ndarray of int of shape (n_queries, n_classes)
            Noisy counts, possibly negative. May be published, at the privacy cost that
            `cost` computes.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or `sigma` is not set.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded. The histograms are then not private.
        """
        counts = check_counts(counts).astype(np.int64)
        self._check_ready()
        noise = noise or NoiseSource()
        return counts + noise.discrete_gaussian(self.sigma, counts.shape)

    def respond(
        self,
        counts: ArrayLike,
        noise: NoiseSource,
        max_answers: int,
        probabilities: ArrayLike | None = None,
    ) -> Response:
        histograms = self.release(counts, noise)
        return Response(noise.argmax(histograms), len(histograms), histograms)

    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        return gaussian_worst_case(self.sigma, orders) * n_answers

    def _exact(self, n_queries: int, n_classes: int) -> GaussianTest:
        return GaussianTest(gdp_mu(self.sigma, squared_distance=2.0 * n_queries))

    def _local_costs(
        self,
        counts: ArrayLike,
        orders: ArrayLike = LOCAL_ORDERS,
        *,
        votes_by_teacher: ArrayLike | None = None,
        **options: Any,
    ) -> LocalCosts:
        self._check_ready()
        # A teacher changes two counts of a query, but one if it abstained.
        n_changed = 1 + check_counts(counts).any(axis=1)
        n_changed_in_all = n_changed.sum()
        if votes_by_teacher is not None:
            voted = np.asarray(votes_by_teacher) >= 0
            n_changed_in_all = np.max(np.sum(1 + voted, axis=1))
        orders = np.asarray(orders, dtype=np.float64)
        one_count = RdpCurve(orders, orders / (2 * self.sigma**2))
        return LocalCosts(
            one_count * n_changed_in_all, one_count * n_changed.max(initial=0)
        )

    def enumerated_curve(
        self,
        counts: ArrayLike,
        orders: ArrayLike = DEFAULT_ORDERS,
        *,
        probabilities: ArrayLike | None = None,
    ) -> RdpCurve:
        return self.local_curve(np.asarray(counts)[np.newaxis], orders)

    def optimal_curve(
        self,
        counts: ArrayLike,
        orders: ArrayLike = LOCAL_ORDERS,
        *,
        direction: Literal["both", "forward"] = "both",
    ) -> RdpCurve:
        self._check_ready()
        n_queries, n_classes = check_counts(counts).shape
        return self._curve(n_queries, n_classes, orders)

    def _paper_curve(self, counts: ArrayLike) -> None:
        # The paper's data-dependent bounds hold for a plurality only.
        return None


def gaussian_plurality(
    counts: NDArray[np.integer], sigma: float, noise: NoiseSource
) -> NDArray[np.intp]:
    """Compute argmax_j n_j + Z_j for each row of counts, ties broken at random."""
    return noise.argmax(counts + noise.discrete_gaussian(sigma, counts.shape))


class LNMax(PluralityMechanism):
    """Most-voted class after Laplace noise is added to vote counts.

    Answers may be published, at the privacy cost that `cost` computes.

    Parameters
    ----------
    gamma : float, default=None
        Inverse scale of the noise on every count, in 1 / votes. With None,
        :class:`~sklearn_pate.PATEClassifier` calibrates the noise to a target epsilon.
        A smaller gamma means more noise and a lower privacy cost. The scale must be
        chosen independently of votes.

    Notes
    -----
    The answer is argmax_j n_j + Z_j (Papernot et al. 2017, Section 3.1) with discrete
    Laplace noise, Pr[z] proportional to exp(-gamma abs(z)) (Canonne, Kamath, Steinke
    2020). Ties are broken at random. An answer is (2 gamma, 0)-differentially private.
    The privacy cost of an answer is
    :func:`~sklearn_pate.accounting.tight_laplace_worst_case`. The proof is on the page
    :doc:`/accounting`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import LNMax
    >>> LNMax(gamma=0.2).answer([[200, 0, 0]])
    array([0])
    >>> curve = LNMax(gamma=0.2).cost(n_queries=10, n_classes=2).curve
    >>> round(curve.to_epsilon(1e-5), 2)  # of all ten answers together
    2.4
    """

    noise_parameters = ("gamma",)
    _has_exact_cost = True

    def __init__(self, gamma: float | None = None) -> None:
        self.gamma: Any = gamma

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


class _AcceptedByGap(PluralityMechanism):
    """Plurality that accepts class j with probability exp(-c (max n - n_j))."""

    noise_parameters = ("c",)

    def __init__(self, c: float | None = None) -> None:
        self.c: Any = c

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

    Answers may be published, at the privacy cost that `cost` computes.

    Parameters
    ----------
    c : float, default=None
        Inverse scale of the noise, in 1 / votes. With None,
        :class:`~sklearn_pate.PATEClassifier` calibrates the noise to a target epsilon.
        A smaller c means more noise and a lower privacy cost. The scale must be chosen
        independently of votes.

    Notes
    -----
    Class j is the answer with a probability proportional to exp(c n_j), as for argmax_j
    n_j + Gumbel(1 / c) (McSherry and Talwar 2007). The sensitivity of each count is 1.
    The answer is sampled exactly. A class is proposed at random, and accepted with
    probability exp(-c (max n - n_j)). The privacy cost is
    :func:`~sklearn_pate.accounting.bounds.gumbel_worst_case` (Dong, Durfee, Rogers
    2020).

    Examples
    --------
    >>> from sklearn_pate.mechanisms import GumbelMax
    >>> GumbelMax(c=1).answer([[100, 0, 0]])
    array([0])
    >>> curve = GumbelMax(c=0.05).cost(n_queries=100, n_classes=10).curve
    >>> round(curve.to_epsilon(1e-5), 2)  # of all hundred answers together
    2.15
    """

    _has_exact_cost = True

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
    """Permute-and-flip mechanism on vote counts.

    Answers may be published, at the privacy cost that `cost` computes.

    Parameters
    ----------
    c : float, default=None
        Inverse scale of the noise, in 1 / votes, as in :class:`GumbelMax`.

    Notes
    -----
    Classes are visited in random order. Class j is accepted with probability exp(-c
    (max n - n_j)), and the first accepted class is the answer (McKenna and Sheldon
    2020). The distribution of the answer equals the distribution of argmax_j n_j + Z_j
    with exponential noise of rate c (Ding et al. 2021). For equal c, answers are more
    often correct than with :class:`GumbelMax`, at a higher privacy cost. The privacy
    cost is :func:`~sklearn_pate.accounting.bounds.permute_and_flip_worst_case`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import PermuteAndFlip
    >>> PermuteAndFlip(c=1).answer([[100, 0, 0]])
    array([0])
    >>> curve = PermuteAndFlip(c=0.05).cost(n_queries=100, n_classes=10).curve
    >>> round(curve.to_epsilon(1e-5), 2)  # of all hundred answers together
    4.62
    """

    _has_exact_cost = True

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

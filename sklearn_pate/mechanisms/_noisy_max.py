"""GNMax, noisy histogram, LNMax, GumbelMax, PermuteAndFlip; answers after a check."""

from numbers import Integral
from typing import Any, ClassVar, Literal, Never, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import gdp_mu, six_digits
from sklearn_pate.accounting._cost import AdaptiveAnswers, GaussianTest
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import (
    check_count,
    check_not_masked,
    is_positive,
)
from sklearn_pate.accounting.bounds import (
    confident_2018,
    discrete_laplace_worst_case,
    gaussian_2018,
    gaussian_worst_case,
    gumbel_worst_case,
    laplace_2017,
    permute_and_flip_worst_case,
    threshold_worst_case,
)
from sklearn_pate.accounting.plurality._adaptive_answers import (
    MOST_ANSWERS,
    AnswerTests,
    bounded_range_tests,
    check_mu,
    gaussian_tests,
    laplace_tests,
    plurality_tests,
    randomised_response,
)
from sklearn_pate.accounting.plurality._closed_form import check_counts
from sklearn_pate.accounting.plurality._discrete_noise import NoisyCheck
from sklearn_pate.accounting.plurality._exact import (
    LOCAL_ORDERS,
    GaussianPlurality,
    GumbelPlurality,
    LaplacePlurality,
    LocalCosts,
    PermuteAndFlipPlurality,
)
from sklearn_pate.accounting.plurality._tight import (
    tight_gaussian_worst_case,
    tight_laplace_worst_case,
    tight_threshold_worst_case,
)
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._plurality import (
    NO_ANSWER,
    PluralityMechanism,
    Response,
)

# The 2017 paper's moments l = 1..8 are the Renyi orders l + 1.
_PAPER_ORDERS = np.arange(2, 10)
# The ratio of the 2018 paper's MNIST run (150 and 40), kept when calibrating.
_THRESHOLD_NOISE_RATIO = 3.75


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
    adaptive answers, which is 6 to 8 % smaller. Proofs are on the pages
    :doc:`/proofs/votes` and :doc:`/proofs/adaptive-answers`.

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
    through abstentions only. Proofs are on the page :doc:`/proofs/votes`.

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
        counts = self._checked(counts)
        noise = noise or NoiseSource()
        return counts + noise.discrete_gaussian(self.sigma, counts.shape)

    def respond(
        self,
        counts: ArrayLike,
        noise: NoiseSource | None = None,
        max_answers: int | None = None,
    ) -> Response:
        noise = noise or NoiseSource()
        histograms = self.release(self._checked(counts, max_answers), noise)
        answers = self._capped(noise.argmax(histograms), max_answers)
        return Response(answers, len(histograms), histograms)

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
    :doc:`/proofs/votes`.

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

    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        return gumbel_worst_case(self.c, orders) * n_answers

    def _answer_tests(self, n_classes: int) -> AnswerTests | None:
        return bounded_range_tests(2 * self.c)

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

    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        return permute_and_flip_worst_case(self.c, orders) * n_answers

    def _answer_tests(self, n_classes: int) -> AnswerTests | None:
        return randomised_response(2 * self.c)

    def _plurality(self) -> PermuteAndFlipPlurality:
        return PermuteAndFlipPlurality(self.c)


class ConfidentGNMax(PluralityMechanism):
    """GNMax that answers only if a noisy check shows that enough teachers agree.

    All results, including "no answer", may be published, at the privacy cost that
    `cost` computes. The cost does not depend on the number of answers given.

    Parameters
    ----------
    threshold : int or float, default=0.8
        Smallest noisy value of the largest count at which a query is answered, chosen
        independently of the votes. A float of at most 1.0 is a share of the teachers;
        another number is a number of votes.

    sigma_threshold : float, default=None
        Scale of the noise on the largest count in the check, in votes. With None,
        :class:`~sklearn_pate.PATEClassifier` calibrates this noise, to 3.75 times
        `sigma`.

    sigma : float, default=None
        Scale of the noise on every count for an answer, in votes. With None,
        :class:`~sklearn_pate.PATEClassifier` calibrates the noise.

    max_answers : int, default=None
        Maximum number of answers. None is the number of queries. The privacy cost
        covers the check of every query and `max_answers` answers, even if fewer answers
        are given.

    Notes
    -----
    If max_j n_j + Z >= threshold, with discrete Gaussian noise of scale
    `sigma_threshold`, the answer is drawn as in :class:`GNMax`. Otherwise there is no
    answer (Papernot et al. 2018, Algorithm 1). The privacy cost of a check is
    :func:`~sklearn_pate.accounting.tight_threshold_worst_case`. The privacy cost of an
    answer is :func:`~sklearn_pate.accounting.tight_gaussian_worst_case`. If smaller
    than the epsilon of these costs, the stated epsilon is the exact epsilon of the
    worst sequence of checks and answers. Proofs are on the pages :doc:`/proofs/votes`
    and :doc:`/proofs/adaptive-answers`. The
    paper multiplies the cost of an answer by the probability of an answer, and the
    result is not an upper bound; see
    :func:`~sklearn_pate.accounting.bounds.confident_2018`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import ConfidentGNMax
    >>> mechanism = ConfidentGNMax(threshold=200, sigma_threshold=1, sigma=1)
    >>> mechanism.answer([[250, 0], [130, 120]])
    array([ 0, -1])
    >>> mechanism = ConfidentGNMax(200, sigma_threshold=150, sigma=40, max_answers=300)
    >>> curve = mechanism.cost(n_queries=640, n_classes=2).curve
    >>> round(curve.to_epsilon(1e-5), 3)  # of 640 checks and 300 answers
    2.201
    """

    noise_parameters = ("sigma_threshold", "sigma")

    def __init__(
        self,
        threshold: float = 0.8,
        sigma_threshold: float | None = None,
        sigma: float | None = None,
        *,
        max_answers: int | None = None,
    ) -> None:
        self.threshold = threshold
        self.sigma_threshold: Any = sigma_threshold
        self.sigma: Any = sigma
        self.max_answers = max_answers

    def _answer(
        self, counts: NDArray[np.int64], noise: NoiseSource
    ) -> NDArray[np.intp]:
        return self._answer_where(counts.max(axis=1), counts, noise)

    def _answer_where(
        self, scores: NDArray[np.int64], counts: NDArray[np.int64], noise: NoiseSource
    ) -> NDArray[np.intp]:
        """Answer the queries whose score passes the noisy check."""
        drawn = noise.discrete_gaussian(self.sigma_threshold, scores.shape)
        passed = drawn >= self._check().needed(scores)
        answers = gaussian_plurality(counts, self.sigma, noise)
        return np.where(passed, answers, NO_ANSWER)

    def _with_scale(self, scale: float) -> Self:
        return clone(self).set_params(
            sigma=float(scale), sigma_threshold=_THRESHOLD_NOISE_RATIO * float(scale)
        )

    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        checks = tight_threshold_worst_case(self.sigma_threshold, orders) * n_queries
        answers = tight_gaussian_worst_case(self.sigma, n_classes, orders) * n_answers
        return checks + answers

    def _exact(self, n_queries: int, n_classes: int) -> AdaptiveAnswers | None:
        n_answers = self.answer_cap(n_queries)
        if n_answers > MOST_ANSWERS:
            return None
        mu = check_mu(self.sigma_threshold)
        answers = plurality_tests(self.sigma, n_classes)
        if mu is None or answers is None:
            return None
        return AdaptiveAnswers(answers, n_answers, gaussian_tests(mu), n_queries)

    def _plurality(self) -> GaussianPlurality:
        return GaussianPlurality(self.sigma)

    def _ceiling(self, orders: ArrayLike) -> RdpCurve:
        check = threshold_worst_case(self.sigma_threshold, orders)
        return check + gaussian_worst_case(self.sigma, orders)

    def _guarantee(self) -> dict[str, float]:
        return {"sigma": self.sigma}

    def _check(self) -> NoisyCheck:
        return NoisyCheck(self.threshold, self.sigma_threshold)

    def _paper_curve(self, counts: ArrayLike) -> RdpCurve | None:
        return confident_2018(counts, self.threshold, self.sigma_threshold, self.sigma)

    def _for_teachers(self, n_teachers: int) -> Self:
        self._check_threshold()
        ready = clone(self)
        if _is_share(self.threshold):
            ready.set_params(threshold=max(1, round(self.threshold * n_teachers)))
        return ready

    def _check_threshold(self) -> None:
        """Raise ValueError unless the threshold and the cap are valid."""
        if not is_positive(self.threshold):
            raise ValueError(
                f"threshold={self.threshold!r} must be a positive number: a share of "
                "the teachers such as 0.8, or a number of votes such as 200."
            )
        check_count("max_answers", self.max_answers, also=(None,))

    def _check_ready(self) -> None:
        super()._check_ready()
        self._check_threshold()
        if _is_share(self.threshold):
            raise ValueError(
                f"threshold={self.threshold!r} is a share of an unknown number of "
                "teachers; pass a number of votes, such as 200."
            )


def _is_share(threshold: float) -> bool:
    return not isinstance(threshold, Integral) and threshold <= 1


class InteractiveGNMax(ConfidentGNMax):
    """GNMax that answers only if the teachers disagree with the student.

    Each query contains the student's class probabilities. If votes and probabilities do
    not differ enough, and the student is confident, the answer is the student's class.
    For such an answer, only the check has a privacy cost. All answers may be published,
    at the privacy cost that `cost` computes.

    Parameters
    ----------
    threshold : int or float, default=0.4
        Smallest noisy excess at which the teachers answer, chosen independently of the
        votes. The excess is the largest difference between a count and the student's
        prediction of the count. A float of at most 1.0 is a share of the teachers;
        another number is a number of votes.

    sigma_threshold : float, default=None
        Scale of the noise on the largest excess in the check, in votes. With None,
        :class:`~sklearn_pate.PATEClassifier` calibrates this noise, to 3.75 times
        `sigma`.

    sigma : float, default=None
        Scale of the noise on every count for an answer, in votes. With None,
        :class:`~sklearn_pate.PATEClassifier` calibrates the noise.

    confidence : float, default=0.9
        Probability above which the student's class may be the answer. Such an answer
        adds no privacy cost to the check, as the student is public.

    n_teachers : int, default=None
        Number of teachers, which is public. :class:`~sklearn_pate.PATEClassifier` sets
        this number.

    max_answers : int, default=None
        Maximum number of answers of the teachers, as in :class:`ConfidentGNMax`.

    Notes
    -----
    Papernot et al. 2018, Algorithm 2. If max_j (n_j - n_teachers p_j) + Z >= threshold,
    the answer is drawn as in :class:`GNMax`. Otherwise, if max_j p_j > `confidence`,
    the answer is argmax_j p_j. Otherwise there is no answer. If the student gives two
    classes equal probabilities, no count exceeds the predicted count by more than half
    of the teachers. The check uses exact arithmetic: the check passes if max_j (n_j -
    t_j) + Z >= 0 with t_j = ceil(threshold + n_teachers p_j). One moved vote changes
    the largest excess by at most one, so the privacy cost equals the cost of
    :class:`ConfidentGNMax`. The probabilities may depend on earlier answers. The bound
    `local_curve` holds for given probabilities only, not for a student trained on the
    answers. The proof is Lemma 4 on the page :doc:`/proofs/votes`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import InteractiveGNMax
    >>> mechanism = InteractiveGNMax(100, 1, 1, n_teachers=250)
    >>> counts = [[250, 0], [250, 0], [130, 120]]
    >>> mechanism.answer(counts, probabilities=[[0.1, 0.9], [0.95, 0.05], [0.5, 0.5]])
    array([ 0,  0, -1])
    """

    needs_probabilities: ClassVar[bool] = True

    # An answer of the student is post-processing of the check (Lemma 4).
    _exact = ConfidentGNMax._exact

    def __init__(
        self,
        threshold: float = 0.4,
        sigma_threshold: float | None = None,
        sigma: float | None = None,
        *,
        confidence: float = 0.9,
        n_teachers: int | None = None,
        max_answers: int | None = None,
    ) -> None:
        super().__init__(
            threshold,
            sigma_threshold,
            sigma,
            max_answers=max_answers,
        )
        self.confidence = confidence
        self.n_teachers: Any = n_teachers

    def answer(
        self,
        counts: ArrayLike,
        *,
        probabilities: ArrayLike | None = None,
        max_answers: int | None = None,
        noise: NoiseSource | None = None,
    ) -> NDArray[np.intp]:
        """Answer queries if the teachers disagree with the student.

        Every call draws new noise and has a new privacy cost, so answer each query
        once.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class, whole numbers. Sensitive.

        probabilities : array-like of shape (n_queries, n_classes)
            The student's class probabilities. The probabilities may depend on votes
            through earlier answers only.

        max_answers : int, default=None
            Maximum number of answers of the teachers.

        noise : NoiseSource, default=None
            Source of the noise. With None, a new source is created.

        Returns
        -------
        answers : ndarray of int of shape (n_queries,)
            Class index of each answer, by the teachers or by the student, or -1 for no
            answer. May be published, at the privacy cost that `cost` computes.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, `probabilities` are not probabilities of
            this shape, or the parameters are not set.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded. The answers are then not private.
        """
        return self.respond(counts, noise, max_answers, probabilities).answers

    def respond(
        self,
        counts: ArrayLike,
        noise: NoiseSource | None = None,
        max_answers: int | None = None,
        probabilities: ArrayLike | None = None,
    ) -> Response:
        """Answer one batch of queries of a fit, as called by `Oracle`.

        Parameters
        ----------
        counts : array-like of int of shape (n_queries, n_classes)
            Votes per class, over all teachers. Sensitive.

        noise : NoiseSource, default=None
            Source of the noise. With None, a new source is created.

        max_answers : int, default=None
            Number of answers that are still allowed. None is the limit of the
            mechanism.

        probabilities : array-like of shape (n_queries, n_classes)
            The student's class probabilities, from public rows and earlier answers.

        Returns
        -------
        response : Response
            Answers, whose privacy cost is part of the privacy cost of the fit.

        Raises
        ------
        ValueError
            If `counts` or `probabilities` are invalid, or a parameter is not set or
            out of range.
        """
        counts = self._checked(counts, max_answers)
        own = self.check_probabilities(probabilities, counts.shape)
        surplus = counts - self._expected(own)
        scores, noise = surplus.max(axis=1), noise or NoiseSource()
        given = self._answer_where(scores, counts, noise)
        given = self._capped(given, max_answers)
        sure = (given == NO_ANSWER) & (own.max(axis=1) > self.confidence)
        return Response(
            np.where(sure, own.argmax(axis=1), given),
            int(np.count_nonzero(given != NO_ANSWER)),
        )

    def local_curve(
        self,
        counts: ArrayLike,
        orders: ArrayLike = LOCAL_ORDERS,
        *,
        probabilities: ArrayLike | None = None,
        direction: Literal["both", "forward"] = "both",
        votes_by_teacher: ArrayLike | None = None,
    ) -> RdpCurve:
        """Compute the exact privacy cost of queries at the given votes. Sensitive.

        The result must not be published. The result bounds the privacy cost only if the
        probabilities did not depend on answers to these queries.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        probabilities : array-like of shape (n_queries, n_classes)
            The student's class probabilities.

        direction : {"both", "forward"}, default="both"
            As in :meth:`PluralityMechanism.local_curve`.

        votes_by_teacher : array-like of shape (n_teachers, n_queries), default=None
            As in :meth:`PluralityMechanism.local_curve`.

        Returns
        -------
        curve : RdpCurve
            Sum of the privacy costs of the queries, by
            :func:`~sklearn_pate.accounting.local_cost`.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, `probabilities` are not probabilities of
            this shape, or the parameters are not set.
        """
        return self._local_costs(
            counts,
            orders,
            probabilities=probabilities,
            votes_by_teacher=votes_by_teacher,
            direction=direction,
        ).total

    def _local_costs(
        self,
        counts: ArrayLike,
        orders: ArrayLike = LOCAL_ORDERS,
        *,
        probabilities: ArrayLike | None = None,
        **options: Any,
    ) -> LocalCosts:
        counts = check_counts(counts)
        self._check_ready()
        own = self.check_probabilities(probabilities, counts.shape)
        return super()._local_costs(
            counts, orders, expected=self._expected(own), **options
        )

    def _log_law(
        self, counts: NDArray[np.int64], probabilities: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        row: Any = [probabilities]
        own = self.check_probabilities(row, (1, counts.shape[1]))
        return self._log_checked_law(counts, counts - self._expected(own))

    def _expected(self, own: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the whole numbers of votes to subtract from the counts."""
        return self._check().whole_expectations(own, self.n_teachers)

    def _paper_curve(self, counts: ArrayLike) -> None:
        # The paper's figure depends on the student's probabilities.
        return None

    def _guarantee(self) -> Never:
        raise TypeError(
            "The privacy cost of InteractiveGNMax depends on the student's "
            "probabilities; pass them to local_curve, or use ConfidentGNMax."
        )

    def _for_teachers(self, n_teachers: int) -> Self:
        return super()._for_teachers(n_teachers).set_params(n_teachers=n_teachers)

    def _check_ready(self) -> None:
        super()._check_ready()
        check_count("n_teachers", self.n_teachers)
        if not is_positive(self.confidence) or self.confidence > 1:
            raise ValueError(
                f"confidence={self.confidence!r} must be a probability above 0, such "
                "as 0.9."
            )

    @staticmethod
    def check_probabilities(
        probabilities: ArrayLike | None, shape: tuple[int, ...]
    ) -> NDArray[np.float64]:
        """Return class probabilities as an array, or raise ValueError.

        Parameters
        ----------
        probabilities : array-like of shape (n_queries, n_classes)
            The student's class probabilities.

        shape : tuple of (int, int)
            Required shape.

        Returns
        -------
        probabilities : ndarray of shape (n_queries, n_classes)
            The probabilities as an array.

        Raises
        ------
        ValueError
            If `probabilities` have another shape, or are not between 0 and 1.
        """
        check_not_masked("probabilities", probabilities)
        own = np.asarray(probabilities, dtype=np.float64)
        # A NaN fails the comparison.
        if own.shape != shape or not np.all((own >= 0) & (own <= 1)):
            raise ValueError(
                f"probabilities has shape {own.shape}; pass the student's class "
                f"probabilities, between 0 and 1, of shape {shape}."
            )
        return own

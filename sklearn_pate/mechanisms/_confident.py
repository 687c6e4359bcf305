"""Confident GNMax and Interactive GNMax: answers after a noisy check."""

from numbers import Integral
from typing import Any, ClassVar, Literal, Never, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._cost import AdaptiveAnswers
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._value_checks import (
    check_count,
    check_not_masked,
    is_positive,
)
from sklearn_pate.accounting.bounds import (
    confident_2018,
    gaussian_worst_case,
    threshold_worst_case,
)
from sklearn_pate.accounting.plurality._adaptive_answers import (
    MOST_ANSWERS,
    check_mu,
    gaussian_tests,
    plurality_tests,
)
from sklearn_pate.accounting.plurality._closed_form import check_counts
from sklearn_pate.accounting.plurality._discrete_noise import NoisyCheck
from sklearn_pate.accounting.plurality._exact import LOCAL_ORDERS, LocalCosts
from sklearn_pate.accounting.plurality._noisy_counts import GaussianPlurality
from sklearn_pate.accounting.plurality._tight import (
    tight_gaussian_worst_case,
    tight_threshold_worst_case,
)
from sklearn_pate.mechanisms._mechanism import Response
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_max import gaussian_plurality
from sklearn_pate.mechanisms._plurality import NO_ANSWER, PluralityMechanism

# The ratio of the 2018 paper's MNIST run (150 and 40), kept when calibrating.
_THRESHOLD_NOISE_RATIO = 3.75


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
    worst sequence of checks and answers. Proofs are on the page :doc:`/accounting`. The
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
    _has_exact_cost = True

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
    answers. The proof is Lemma 4 on the page :doc:`/accounting`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import InteractiveGNMax
    >>> mechanism = InteractiveGNMax(100, 1, 1, n_teachers=250)
    >>> counts = [[250, 0], [250, 0], [130, 120]]
    >>> mechanism.answer(counts, probabilities=[[0.1, 0.9], [0.95, 0.05], [0.5, 0.5]])
    array([ 0,  0, -1])
    """

    needs_probabilities: ClassVar[bool] = True

    _has_exact_cost = True

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
        counts = check_counts(counts).astype(np.int64)
        check_count("max_answers", max_answers, 0, also=(None,))
        self._check_ready()
        noise = noise or NoiseSource()
        cap = len(counts) if max_answers is None else max_answers
        return self.respond(counts, noise, cap, probabilities=probabilities).answers

    def respond(
        self,
        counts: ArrayLike,
        noise: NoiseSource,
        max_answers: int,
        probabilities: ArrayLike | None = None,
    ) -> Response:
        counts = check_counts(counts).astype(np.int64)
        own = self.check_probabilities(probabilities, counts.shape)
        surplus = counts - self._expected(own)
        given = self._answer_where(surplus.max(axis=1), counts, noise)
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

"""ConfidentGNMax: answers only if enough teachers agree."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import is_positive
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.bounds import (
    confident_2018,
    gaussian_worst_case,
    threshold_worst_case,
)
from sklearn_pate.accounting.plurality._adaptive_answers import checked_profile
from sklearn_pate.accounting.plurality._answer_tests import check_mu, gaussian_tests
from sklearn_pate.accounting.plurality._noisy_check import NoisyCheck
from sklearn_pate.accounting.plurality._noisy_counts import GaussianPlurality
from sklearn_pate.accounting.plurality._plurality_tests import plurality_tests
from sklearn_pate.accounting.plurality._tight_gaussian import (
    tight_gaussian_worst_case,
    tight_threshold_worst_case,
)
from sklearn_pate.mechanisms._gaussian import gaussian_plurality
from sklearn_pate.mechanisms._plurality import NO_ANSWER, Mechanism
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["ConfidentGNMax"]

# The ratio of the 2018 paper's MNIST run (150 and 40), kept when calibrating.
_THRESHOLD_NOISE_RATIO = 3.75


class ConfidentGNMax(Mechanism):
    """GNMax that answers only if enough teachers agree, by a noisy check.

    Its answers may be published, "no answer" included, at the cost of `account_curve`.
    The cost does not depend on the number of answers given.

    Parameters
    ----------
    threshold : int or float, default=0.8
        Minimum of the largest count, up to noise: a share of the teachers if it is a
        float of at most 1.0, a number of votes otherwise. It must be chosen
        independently of the votes.

    sigma_threshold : float, default=None
        Scale of the noise on the largest count, in votes. None lets
        :class:`~sklearn_pate.PATEClassifier` calibrate it, to 3.75 times `sigma`.

    sigma : float, default=None
        Scale of the noise on every count of an answer, in votes. None lets
        :class:`~sklearn_pate.PATEClassifier` calibrate it.

    max_answers : int, default=None
        Maximum number of answers. The cost covers the check of every query and
        `max_answers` answers, even if fewer are given. None means the number of
        queries.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    If max_j n_j + Z >= threshold, with discrete Gaussian noise of scale
    `sigma_threshold`, the answer is that of :class:`GNMax`, else there is none
    (Papernot et al. 2018, Algorithm 1). Privacy cost of checks:
    :func:`~sklearn_pate.accounting.tight_threshold_worst_case`; of answers:
    :func:`~sklearn_pate.accounting.tight_gaussian_worst_case`. `stated_epsilon` is the
    exact cost of the worst order of checks and answers, if it is smaller; proofs:
    :doc:`/accounting`. The paper multiplies the cost of an answer by the probability
    that it is given, which is no upper bound; see
    :func:`~sklearn_pate.accounting.bounds.confident_2018`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import ConfidentGNMax
    >>> mechanism = ConfidentGNMax(threshold=200, sigma_threshold=1, sigma=1)
    >>> mechanism.answer([[250, 0], [130, 120]])
    array([ 0, -1])
    >>> mechanism = ConfidentGNMax(200, sigma_threshold=150, sigma=40, max_answers=300)
    >>> curve = mechanism.account_curve(n_queries=640, n_classes=2)
    >>> round(curve.to_epsilon(1e-5), 3)  # of 640 checks and 300 answers
    2.201
    """

    noise_parameters = ("sigma_threshold", "sigma")
    _answers_are_known = True

    def __init__(
        self,
        threshold: float = 0.8,
        sigma_threshold: float | None = None,
        sigma: float | None = None,
        *,
        max_answers: int | None = None,
        noise_seed: int | None = None,
    ) -> None:
        self.threshold = threshold
        self.sigma_threshold: Any = sigma_threshold
        self.sigma: Any = sigma
        self.max_answers = max_answers
        self.noise_seed = noise_seed

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

    def _profile_of_answers(
        self, n_queries: int, n_answers: int, n_classes: int, first_mu: float
    ) -> PrivacyProfile | None:
        mu = check_mu(self.sigma_threshold)
        answers = plurality_tests(self.sigma, n_classes)
        if mu is None or answers is None:
            return None
        checks = gaussian_tests(mu)
        return checked_profile(checks, answers, n_queries, n_answers, first_mu)

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

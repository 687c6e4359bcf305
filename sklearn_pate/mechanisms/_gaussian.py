"""GNMax and NoisyHistogram: vote counts with Gaussian noise."""

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._gdp import gdp_mu
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.bounds import gaussian_2018, gaussian_worst_case
from sklearn_pate.accounting.plurality._answer_tests import AnswerTests
from sklearn_pate.accounting.plurality._exact import LOCAL_ORDERS, LocalCosts
from sklearn_pate.accounting.plurality._noisy_counts import GaussianPlurality
from sklearn_pate.accounting.plurality._plurality_tests import plurality_tests
from sklearn_pate.accounting.plurality._tight_gaussian import tight_gaussian_worst_case
from sklearn_pate.accounting.plurality._unique_queries import check_counts
from sklearn_pate.mechanisms._mechanism import Response, VoteIndependentMixin
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["GNMax", "NoisyHistogram", "gaussian_plurality"]


class GNMax(Mechanism):
    """Plurality of vote counts with Gaussian noise.

    Its answers may be published, at the cost of `account_curve`.

    Parameters
    ----------
    sigma : float, default=None
        Scale of the noise on every count, in votes: its standard deviation, except for
        noise below one vote. None lets :class:`~sklearn_pate.PATEClassifier` calibrate
        it to a target epsilon. More noise gives more privacy. Public: it must be chosen
        independently of votes.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    argmax_j n_j + Z_j (Papernot et al. 2018, Section 4.1) with discrete Gaussian noise,
    Pr[z] proportional to exp(-z^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020), and
    ties broken at random. Privacy cost:
    :func:`~sklearn_pate.accounting.tight_gaussian_worst_case`, about 0.64 a / sigma^2
    an answer while the order a is far below sigma; proof: :doc:`/accounting`.

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
    _answers_are_known = True

    def __init__(
        self, sigma: float | None = None, *, noise_seed: int | None = None
    ) -> None:
        self.sigma: Any = sigma
        self.noise_seed = noise_seed

    def _answer(
        self, counts: NDArray[np.int64], noise: NoiseSource
    ) -> NDArray[np.intp]:
        return gaussian_plurality(counts, self.sigma, noise)

    def _with_scale(self, scale: float) -> Self:
        return clone(self).set_params(sigma=float(scale))

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


class NoisyHistogram(VoteIndependentMixin, GNMax):
    """All vote counts with Gaussian noise, not their plurality alone.

    Made from a :class:`GNMax` by ``release="histogram"`` of
    :class:`~sklearn_pate.PATEClassifier`. Histograms may be published, at the cost of
    `account_curve`. Their post-processing, such as pluralities and soft labels, has no
    privacy cost.

    Parameters
    ----------
    sigma : float, default=None
        Scale of the noise on every count, as in :class:`GNMax`.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    Notes
    -----
    n + Z, with independent discrete Gaussian noise, Pr[z] proportional to
    exp(-z^2 / (2 sigma^2)) (Canonne, Kamath, Steinke 2020). A vote that moves changes
    two counts by 1, which costs a / sigma^2 at order a
    (:func:`~sklearn_pate.accounting.bounds.gaussian_worst_case`), about 1.6 times the
    cost of an answer of :class:`GNMax`; a vote that is added or withdrawn changes one
    count, which costs half of that.

    The distribution of the noise is the same at all counts, and so is the cost, which
    is therefore not sensitive: at whole orders it is a / sigma^2 exactly, as a shift by
    a whole number maps whole numbers to themselves, and at other orders at most that
    (Proposition 5 there). So `local_curve`, `enumerated_curve` and `optimal_curve` have
    closed forms; `local_curve` depends on the votes through abstentions only. Proofs:
    :doc:`/accounting`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import NoisyHistogram
    >>> NoisyHistogram(sigma=20).release([[100, 0, 0]]).shape
    (1, 3)
    >>> curve = NoisyHistogram(sigma=40).account_curve(n_queries=100, n_classes=10)
    >>> round(curve.to_epsilon(1e-5), 3)
    1.478
    """

    releases_histograms: ClassVar[bool] = True

    def release(
        self, counts: ArrayLike, noise: NoiseSource | None = None
    ) -> NDArray[np.int64]:
        """Release vote counts with noise.

        Every call draws fresh noise and has a privacy cost: release each query once.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class, whole numbers. Sensitive.

        noise : NoiseSource, default=None
            Source of the noise; None makes one from `noise_seed`.

        Returns
        -------
        histograms : ndarray of int of shape (n_queries, n_classes)
            Noisy counts, possibly negative. To be published at the cost of
            `account_curve`.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or `sigma` is not set.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded: the histograms are then not private.
        """
        counts = check_counts(counts).astype(np.int64)
        self._check_ready()
        noise = noise or NoiseSource(self.noise_seed)
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

    def _gaussian_mu(self, n_queries: int) -> float | None:
        if type(self) is not NoisyHistogram:
            return None
        return gdp_mu(self.sigma, squared_distance=2.0 * n_queries)

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
        return self.account_curve(n_queries, n_classes, orders)

    def _paper_curve(self, counts: ArrayLike) -> None:
        # The paper's data-dependent bounds hold for a plurality only.
        return None


def gaussian_plurality(
    counts: NDArray[np.integer], sigma: float, noise: NoiseSource
) -> NDArray[np.intp]:
    """Compute argmax_j n_j + Z_j for each row of counts, ties broken at random."""
    return noise.argmax(counts + noise.discrete_gaussian(sigma, counts.shape))

"""Base class of mechanisms that answer with the plurality of noisy votes."""

from abc import abstractmethod
from functools import partial
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import calibrate_noise, least_noise
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.plurality._adaptive_answers import (
    MOST_ANSWERS,
    adaptive_profile,
)
from sklearn_pate.accounting.plurality._answer_tests import AnswerTests
from sklearn_pate.accounting.plurality._unique_queries import check_counts
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts
from sklearn_pate.mechanisms._mechanism import Response
from sklearn_pate.mechanisms._plurality_costs import AnalysedMechanism
from sklearn_pate.mechanisms._two_parts import curve_with_counts, with_counts
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["NO_ANSWER", "Mechanism"]

NO_ANSWER = -1
# Share of a target that a calibrated noise costs at least.
_CLOSE = 0.999


class Mechanism(AnalysedMechanism):
    """Noisy plurality vote: base class of all mechanisms that answer with a class.

    The results of `answer` may be published, at the cost of `account_curve`, which does
    not depend on the votes. The results of `local_curve`, `optimal_curve` and
    `paper_epsilon` depend on the votes and are as sensitive as they are;
    `sanitized_cost` releases such a figure, at an additional cost.

    A subclass lists its noise parameters in `noise_parameters`, and provides `_answer`,
    `_with_scale`, `_cost`, `_plurality`, `_guarantee` and `_ceiling`. The guarantee
    rests on `_cost`: it must bound the Renyi divergence of all answers between any two
    neighbouring data sets, for any votes.

    Notes
    -----
    Neighbouring data sets differ in the votes of one teacher: on each query one vote
    moves to another class, is added or is withdrawn. Costs of queries add up, even if
    the next query depends on earlier answers (Mironov 2017, "Renyi differential
    privacy", Proposition 1). Definitions and proofs: :doc:`/accounting`.

    Examples
    --------
    GNMax with the worst-case cost of the 2018 paper:

    >>> from sklearn_pate.accounting.bounds import gaussian_worst_case
    >>> from sklearn_pate.mechanisms import GNMax, Mechanism
    >>> class ClassicalGNMax(GNMax):
    ...     def _cost(self, n_queries, n_answers, n_classes, orders):
    ...         return gaussian_worst_case(self.sigma, orders) * n_answers
    >>> for mechanism in (GNMax(sigma=40), ClassicalGNMax(sigma=40)):
    ...     curve = mechanism.account_curve(n_queries=100, n_classes=2)
    ...     print(isinstance(mechanism, Mechanism), round(curve.to_epsilon(1e-5), 2))
    True 1.16
    True 1.48
    """

    #: Set in the body of a class whose answers have the law of `_answer_tests`.
    _answers_are_known: ClassVar[bool]

    _fewest_classes: ClassVar[int] = 2

    def answer(
        self,
        counts: ArrayLike,
        *,
        max_answers: int | None = None,
        noise: NoiseSource | None = None,
    ) -> NDArray[np.intp]:
        """Answer queries by noisy plurality votes.

        Every call draws fresh noise and has a privacy cost: answer each query once.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class, whole numbers. Sensitive.

        max_answers : int, default=None
            Maximum number of answers; further queries get no answer. None means the
            mechanism's own limit. It must be fixed independently of votes, and lowers
            no cost.

        noise : NoiseSource, default=None
            Source of the noise; None makes one from `noise_seed`.

        Returns
        -------
        answers : ndarray of int of shape (n_queries,)
            Class indices, -1 for no answer. To be published at the cost of
            `account_curve`.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or a parameter is not set or out of range.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded: the answers are then not private.
        """
        counts = check_counts(counts).astype(np.int64)
        check_count("max_answers", max_answers, 0, also=(None,))
        self._check_ready()
        noise = noise or NoiseSource(self.noise_seed)
        return self._capped(self._answer(counts, noise), max_answers)

    def respond(
        self,
        counts: ArrayLike,
        noise: NoiseSource,
        max_answers: int,
        probabilities: ArrayLike | None = None,
    ) -> Response:
        needed = {"probabilities": probabilities} if self.needs_probabilities else {}
        answers = self.answer(counts, max_answers=max_answers, noise=noise, **needed)
        return Response(answers, int(np.count_nonzero(answers != NO_ANSWER)))

    def _capped(
        self, answers: NDArray[np.intp], max_answers: int | None
    ) -> NDArray[np.intp]:
        """Withhold answers beyond the caps."""
        cap = self.answer_cap(len(answers))
        if max_answers is not None:
            cap = min(cap, max_answers)
        given = np.cumsum(answers != NO_ANSWER)
        return np.where(given <= cap, answers, NO_ANSWER)

    @abstractmethod
    def _answer(
        self, counts: NDArray[np.int64], noise: NoiseSource
    ) -> NDArray[np.intp]:
        """Answer without a cap; `counts` are checked and the noise is set."""

    def _answer_tests(self, n_classes: int) -> AnswerTests | None:
        """Return tests that dominate one answer, None if only its curve is known."""
        return None

    def _exact_profile(
        self, n_queries: int, n_classes: int, first_mu: float = 0.0
    ) -> PrivacyProfile | None:
        n_answers = self.answer_cap(n_queries)
        # Of the class itself: a subclass may release more, and state another cost.
        if "_answers_are_known" not in vars(type(self)) or n_answers > MOST_ANSWERS:
            return None
        return self._profile_of_answers(n_queries, n_answers, n_classes, first_mu)

    def _profile_of_answers(
        self, n_queries: int, n_answers: int, n_classes: int, first_mu: float
    ) -> PrivacyProfile | None:
        tests = self._answer_tests(n_classes)
        return None if tests is None else adaptive_profile(tests, n_answers, first_mu)

    @abstractmethod
    def _with_scale(self, scale: float) -> Self:
        """Return a clone with noise of that scale, in votes."""

    def prepared(
        self,
        *,
        n_teachers: int,
        n_queries: int,
        n_classes: int,
        epsilon: float | None = None,
        delta: float = 1e-5,
        counts: MarginalCounts | None = None,
    ) -> Self:
        """Return a clone with all parameters set.

        Parameters
        ----------
        n_teachers : int
            Number of teachers. Public: it must be chosen independently of private data.

        n_queries : int
            Number of queries of the fit. Public.

        n_classes : int
            Number of classes. Public.

        epsilon : float, default=None
            Target for the privacy cost of the whole fit. None keeps the noise
            parameters.

        delta : float, default=1e-5
            The probability mass that epsilon does not cover, in (0, 1).

        counts : MarginalCounts, default=None
            Noisy counts that are released before the queries, and that `epsilon`
            covers, too.

        Returns
        -------
        mechanism : Mechanism
            All its parameters may be published.

        Raises
        ------
        ValueError
            If `epsilon` and noise parameters are both given, or neither; if a parameter
            is out of range, or no noise that can be drawn reaches `epsilon`.
        """
        check_count("n_teachers", n_teachers)
        check_count("n_queries", n_queries)
        check_count("n_classes", n_classes, self._fewest_classes)
        ready = self._for_teachers(n_teachers)
        if epsilon is None:
            ready._check_ready()
            return ready
        self._check_noise_unset(epsilon)
        if counts is not None:
            counts.check_curve(epsilon, delta)
        n_answers = ready.answer_cap(n_queries)

        def exact_epsilon(scale: float, n_classes: int = n_classes) -> float:
            whole = with_counts(counts, ready._with_scale(scale))
            return whole._exact_epsilon(n_queries, n_classes, delta)

        def ceiling(scale: float, orders: ArrayLike) -> RdpCurve:
            cost = ready._with_scale(scale)._ceiling(orders) * n_answers
            return curve_with_counts(counts, cost)

        def curve(
            scale: float,
            orders: ArrayLike = DEFAULT_ORDERS,
            n_classes: int = n_classes,
        ) -> RdpCurve:
            scaled = ready._with_scale(scale)
            cost = scaled._cost(n_queries, n_answers, n_classes, orders)
            return curve_with_counts(counts, cost)

        # Two classes cost nearly the same as more, and are faster to compute.
        found = None
        start = calibrate_noise(ceiling, epsilon=epsilon, delta=delta)
        if np.isfinite(exact_epsilon(start, 2)):
            found = least_noise(
                exact_epsilon,
                epsilon=epsilon,
                start=start,
                rough_epsilon_at_scale=partial(exact_epsilon, n_classes=2),
            )
        # A few answers with little noise cost less by their curve.
        if found is None or curve(found).quiet_epsilon(delta) < epsilon * _CLOSE:
            found = calibrate_noise(
                curve,
                epsilon=epsilon,
                delta=delta,
                rough_curve_at_scale=partial(curve, n_classes=2),
            )
        return ready._with_scale(found)

    def _for_teachers(self, n_teachers: int) -> Self:
        """Return a clone with the parameters that depend on the number of teachers."""
        return clone(self)

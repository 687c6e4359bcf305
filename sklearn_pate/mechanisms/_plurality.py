"""What every mechanism offers: answers, and their cost."""

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting._calibrate import calibrate_noise
from sklearn_pate.accounting.plurality._unique_queries import check_counts
from sklearn_pate.mechanisms._mechanism import Response
from sklearn_pate.mechanisms._plurality_costs import AnalysedMechanism
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["NO_ANSWER", "Mechanism"]

NO_ANSWER = -1


class Mechanism(AnalysedMechanism):
    """A noisy plurality vote: the base of all mechanisms that answer with a class.

    What `answer` returns may be published, at the cost of `account_curve`, which
    depends on no vote. What `local_curve`, `optimal_curve` and `paper_epsilon` return
    depends on the votes, and is as sensitive as they are; `sanitized_cost` releases a
    figure of that kind, at a cost of its own.

    A subclass names its noise parameters in `noise_parameters`, and provides `_answer`,
    `_with_scale`, `_cost`, `_plurality`, `_guarantee` and `_ceiling`. The promise
    rests on `_cost`: it must bound the Renyi divergence of all answers between any two
    neighbours, whatever the votes.

    Notes
    -----
    Neighbours differ in the votes of one teacher: on each query one vote moves to
    another class, or is cast or withdrawn. Costs of queries add up, also where the
    next query depends on earlier answers (Mironov 2017, "Renyi differential
    privacy", Proposition 1). :doc:`What an answer costs </accounting>` has the
    definitions and the proofs.

    Examples
    --------
    GNMax, charged as the 2018 paper would charge it whatever the votes:

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

    def answer(
        self,
        counts: ArrayLike,
        *,
        max_answers: int | None = None,
        noise: NoiseSource | None = None,
    ) -> NDArray[np.intp]:
        """Answer queries by noisy plurality votes.

        Every call draws fresh noise and costs privacy anew: ask each query once.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class, whole numbers. Sensitive.

        max_answers : int, default=None
            Stop after this many answers; the queries that remain get no answer. None
            means no further limit than the mechanism's own. It must be fixed without a
            look at votes, and lowers no cost.

        noise : NoiseSource, default=None
            Where the noise comes from; None makes one from `noise_seed`.

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
            If the noise is seeded: the answers then protect nobody.
        """
        counts = check_counts(counts).astype(np.int64)
        self._check_ready()
        if noise is None:
            noise = NoiseSource(self.noise_seed)
        return self._capped(self._answer(counts, noise), max_answers)

    def respond(
        self, counts: ArrayLike, noise: NoiseSource, max_answers: int, **asked: Any
    ) -> Response:
        """Answer one batch of queries of a fit, for the `Oracle`.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class, whole numbers.

        noise : NoiseSource
            Where the noise comes from.

        max_answers : int
            Answers that are left of the cap.

        **asked : Any
            What else belongs to the queries.

        Returns
        -------
        response : Response
            All of it is paid for.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or a parameter is not set or out of range.
        """
        answers = self.answer(counts, max_answers=max_answers, noise=noise, **asked)
        return Response(answers, int(np.count_nonzero(answers != NO_ANSWER)))

    def _capped(self, answers, max_answers):
        """Withhold what goes beyond the caps."""
        cap = self.answer_cap(len(answers))
        if max_answers is not None:
            cap = min(cap, max_answers)
        given = np.cumsum(answers != NO_ANSWER)
        return np.where(given <= cap, answers, NO_ANSWER)

    @abstractmethod
    def _answer(self, counts, noise):
        """Answer without a cap; `counts` are checked, the noise parameters are set."""

    @abstractmethod
    def _with_scale(self, scale):
        """Return a clone with noise of that scale, in votes."""

    def prepared(
        self,
        *,
        n_teachers: int,
        n_queries: int,
        n_classes: int,
        epsilon: float | None = None,
        delta: float = 1e-5,
    ) -> "Mechanism":
        """Return a clone that is ready to answer.

        Parameters
        ----------
        n_teachers : int
            Number of teachers. Public, and so chosen without a look at private data.

        n_queries : int
            Number of queries to be asked in all. Public.

        n_classes : int
            Number of classes. Public.

        epsilon : float, default=None
            Target for the cost of the whole fit. None keeps the noise as it is.

        delta : float, default=1e-5
            The probability mass that epsilon does not cover, in (0, 1).

        Returns
        -------
        mechanism : Mechanism
            With every number filled in; all of them may be published.

        Raises
        ------
        ValueError
            If `epsilon` and noise parameters are both given, or neither; if a parameter
            is out of range, or no noise that can be drawn reaches `epsilon`.
        """
        ready = self._for_teachers(n_teachers)
        if epsilon is None:
            ready._check_ready()
            return ready
        self._check_open(epsilon)
        n_answers = ready.answer_cap(n_queries)

        def curve(scale, orders, n_classes=n_classes):
            scaled = ready._with_scale(scale)
            return scaled._cost(n_queries, n_answers, n_classes, orders)

        scale = calibrate_noise(
            curve,
            epsilon=epsilon,
            delta=delta,
            # Two classes cost nearly as much as many, and are faster to cost.
            rough_curve_at_scale=partial(curve, n_classes=2),
        )
        return ready._with_scale(scale)

    def _for_teachers(self, n_teachers):
        return clone(self)

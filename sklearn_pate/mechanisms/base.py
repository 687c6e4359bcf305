"""What every mechanism offers: answers, and their price."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from sklearn_pate.accounting.bounds import check_counts
from sklearn_pate.accounting.calibrate import (
    LARGEST_SCALE,
    calibrate_noise,
    is_positive,
)
from sklearn_pate.accounting.curve import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.mechanisms.analysis import VoteAnalysisMixin
from sklearn_pate.mechanisms.noise import NoiseSource

__all__ = ["NO_ANSWER", "Mechanism", "Response"]

NO_ANSWER = -1


@dataclass(frozen=True)
class Response:
    """What comes out of one batch of questions.

    Parameters
    ----------
    answers : ndarray of int of shape (n_queries,)
        Class indices, -1 for no answer.

    n_given : int
        How many of them came from the votes, and count against the cap.

    histograms : ndarray of int of shape (n_queries, n_classes), default=None
        Noisy votes, where they are released as well.
    """

    answers: NDArray[np.intp]
    n_given: int
    histograms: NDArray[np.int64] | None = None


class Mechanism(VoteAnalysisMixin, BaseEstimator, ABC):
    """A noisy plurality vote.

    Parameters are set and read as in scikit-learn (``get_params``, ``set_params``,
    ``clone``), so that a search reaches them as ``mechanism__sigma``.

    A subclass names its noise parameters in `noise_parameters`, and provides `_answer`,
    `_with_scale`, `_price`, `_plurality` and `_guarantee`.
    """

    #: Names of the parameters that set the amount of noise.
    noise_parameters: tuple[str, ...] = ()

    #: A cap on the answers of a whole fit, for mechanisms that may not answer.
    max_answers: int | None = None

    #: Whether questions come with the student's class probabilities.
    needs_probabilities: ClassVar[bool] = False

    #: Whether the noisy votes are released, and not their plurality alone.
    releases_histograms: ClassVar[bool] = False

    def answer(
        self,
        counts: ArrayLike,
        *,
        max_answers: int | None = None,
        noise: NoiseSource | None = None,
    ) -> NDArray[np.intp]:
        """Answer questions by noisy plurality votes.

        Every call draws fresh noise and costs privacy anew: ask each question once.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class, whole numbers.

        max_answers : int, default=None
            Stop after this many answers; the questions that remain get no answer. None
            means no further limit than the mechanism's own.

        noise : NoiseSource, default=None
            Where the noise comes from; None makes one from `noise_seed`.

        Returns
        -------
        answers : ndarray of int of shape (n_queries,)
            Class indices, -1 for no answer.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or the noise parameters are not set.
        """
        counts = check_counts(counts).astype(np.int64)
        self._check_ready()
        if noise is None:
            noise = NoiseSource(self.noise_seed)
        return self._capped(self._answer(counts, noise), max_answers)

    def respond(
        self, counts: ArrayLike, noise: NoiseSource, max_answers: int, **asked: Any
    ) -> Response:
        """Answer one batch of questions of a fit, for the :class:`Oracle`.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class, whole numbers.

        noise : NoiseSource
            Where the noise comes from.

        max_answers : int
            Answers that are left of the cap.

        **asked : Any
            What else belongs to the questions.

        Returns
        -------
        response : Response
            All of it is paid for.
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

    @abstractmethod
    def _price(self, n_queries, n_answers, n_classes, orders):
        """Worst-case curve of so many questions and answers; the noise is set."""

    def worst_case_curve(
        self, n_classes: int, orders: ArrayLike = DEFAULT_ORDERS
    ) -> RdpCurve:
        """Price of one question, whatever the votes. May be published.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        Returns
        -------
        curve : RdpCurve
            Data-independent.
        """
        self._check_noise()
        return self._price(1, 1, n_classes, orders)

    def answer_cap(self, n_queries: int) -> int:
        """Largest number of answers that so many questions can get.

        Parameters
        ----------
        n_queries : int
            Number of questions.

        Returns
        -------
        n_answers : int
            At most `n_queries`, and at most `max_answers`.
        """
        if self.max_answers is None:
            return n_queries
        return min(n_queries, self.max_answers)

    def account_curve(
        self, n_queries: int, n_classes: int, orders: ArrayLike = DEFAULT_ORDERS
    ) -> RdpCurve:
        """Price of a whole fit, whatever the votes. May be published.

        Parameters
        ----------
        n_queries : int
            Number of questions.

        n_classes : int
            Number of classes.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        Returns
        -------
        curve : RdpCurve
            Data-independent: that of as many answers as `answer_cap` allows, however
            many are given.
        """
        self._check_noise()
        return self._price(n_queries, self.answer_cap(n_queries), n_classes, orders)

    def in_one_line(self) -> str:
        """Write the mechanism with its parameters, for statements.

        Returns
        -------
        text : str
            What `repr` says, which wraps long lines.
        """
        return " ".join(repr(self).split())

    def charged_curve(self, n_queries: int, n_classes: int) -> RdpCurve:
        """Price of a whole fit as it is stated and charged. May be published.

        Parameters
        ----------
        n_queries : int
            Number of questions.

        n_classes : int
            Number of classes.

        Returns
        -------
        curve : RdpCurve
            That of `account_curve`; infinite for seeded noise, which gives no privacy.
        """
        curve = self.account_curve(n_queries, n_classes)
        if self.noise_seed is None:
            return curve
        return RdpCurve(curve.orders, np.full_like(curve.values, np.inf))

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
            Number of teachers.

        n_queries : int
            Number of questions to be asked in all.

        n_classes : int
            Number of classes.

        epsilon : float, default=None
            Target for the price of the whole fit. None keeps the noise as it is.

        delta : float, default=1e-5
            Goes with `epsilon`.

        Returns
        -------
        mechanism : Mechanism
            With every number filled in; all of them may be published.

        Raises
        ------
        ValueError
            If `epsilon` and noise parameters are both given, or neither.
        """
        ready = self._for_teachers(n_teachers)
        given = self._given_noise()
        if epsilon is None:
            ready._check_ready()
            return ready
        if given:
            raise ValueError(
                f"epsilon={epsilon!r} and {type(self).__name__}({given}) both fix the "
                "noise; leave the noise at None to calibrate it, or pass epsilon=None."
            )
        n_answers = ready.answer_cap(n_queries)

        def curve(scale, orders, n_classes=n_classes):
            scaled = ready._with_scale(scale)
            return scaled._price(n_queries, n_answers, n_classes, orders)

        scale = calibrate_noise(
            curve,
            epsilon=epsilon,
            delta=delta,
            # Two classes cost nearly as much as many, and are faster to price.
            rough_curve_at_scale=partial(curve, n_classes=2),
        )
        return ready._with_scale(scale)

    def _for_teachers(self, n_teachers):
        return clone(self)

    def _given_noise(self):
        values = ((name, getattr(self, name)) for name in self.noise_parameters)
        return ", ".join(
            f"{name}={value!r}" for name, value in values if value is not None
        )

    def _check_ready(self):
        """Raise unless the mechanism can answer."""
        self._check_noise()

    def _check_noise(self):
        """Raise unless every noise parameter is a positive, finite number."""
        for name in self.noise_parameters:
            value = getattr(self, name)
            if value is None:
                raise ValueError(
                    f"{type(self).__name__} has {name}=None; set it, or give "
                    "PATEClassifier an epsilon to calibrate it."
                )
            if not is_positive(value):
                raise ValueError(
                    f"{name}={value!r} of {type(self).__name__} must be a positive, "
                    "finite number."
                )
            if not 1 / LARGEST_SCALE <= value <= LARGEST_SCALE:
                raise ValueError(
                    f"{name}={value!r} of {type(self).__name__} is out of the range of "
                    f"noise that can be drawn; choose it between 1/{LARGEST_SCALE} and "
                    f"{LARGEST_SCALE}."
                )
        seed = self.noise_seed
        if seed is not None and (not isinstance(seed, Integral) or seed < 0):
            raise ValueError(
                f"noise_seed={seed!r} must be None or an integer that is not negative."
            )

"""What every mechanism offers: answers, and their price."""

from abc import ABC, abstractmethod
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from sklearn_pate.accounting.bounds import check_counts
from sklearn_pate.accounting.calibrate import calibrate_noise, is_positive
from sklearn_pate.accounting.curve import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.mechanisms.noise import NoiseSource

__all__ = ["NO_ANSWER", "Mechanism"]

NO_ANSWER = -1


class Mechanism(BaseEstimator, ABC):
    """A noisy plurality vote.

    Parameters are set and read as in scikit-learn (``get_params``, ``set_params``,
    ``clone``), so that a search reaches them as ``mechanism__sigma``.

    A subclass names its noise parameters in `noise_parameters`, and provides `_answer`,
    `_with_scale` and `_price`.
    """

    #: Names of the parameters that set the amount of noise.
    noise_parameters: tuple[str, ...] = ()

    #: A cap on the answers of a whole fit, for mechanisms that may not answer.
    max_answers: int | None = None

    #: Where `local_curve` comes from.
    local_bound = "classical worst case over all votes"

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
        counts = check_counts(counts)
        self._check_ready()
        if noise is None:
            noise = NoiseSource(self.noise_seed)
        answers = self._answer(counts, noise)
        cap = self.answer_cap(len(counts))
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

    def local_curve(
        self, counts: ArrayLike, orders: ArrayLike = DEFAULT_ORDERS
    ) -> RdpCurve:
        """Price of these questions at the votes that were cast. Sensitive.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        Returns
        -------
        curve : RdpCurve
            Summed over the rows of `counts`. Where nothing sharper is known it is the
            worst case, see the attribute `local_bound`.
        """
        self._check_noise()
        return self._local_price(check_counts(counts), orders)

    def _local_price(self, counts, orders):
        return self.account_curve(*counts.shape, orders)

    def paper_epsilon(self, counts: ArrayLike, delta: float) -> float | None:
        """Epsilon as the mechanism's paper computed it, or None. Sensitive.

        By :func:`~sklearn_pate.accounting.bounds.laplace_2017`,
        :func:`~sklearn_pate.accounting.bounds.gaussian_2018` or
        :func:`~sklearn_pate.accounting.bounds.confident_2018`, and by the papers'
        conversion.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        delta : float
            In (0, 1).

        Returns
        -------
        epsilon : float or None
            None where this package does not reproduce a paper's figure.
        """
        self._check_ready()
        curve = self._paper_curve(counts)
        if curve is None:
            return None
        return curve.quiet_epsilon(delta, conversion="classical")

    def _paper_curve(self, counts):
        """Return the curve of the mechanism's paper, or None; the noise is set."""
        return None

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
        scale = calibrate_noise(
            lambda scale: ready._with_scale(scale).account_curve(n_queries, n_classes),
            epsilon=epsilon,
            delta=delta,
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
        seed = self.noise_seed
        if seed is not None and (not isinstance(seed, Integral) or seed < 0):
            raise ValueError(
                f"noise_seed={seed!r} must be None or an integer that is not negative."
            )

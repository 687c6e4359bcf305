"""What every mechanism offers: answers, and their price."""

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from sklearn_pate.accounting.bounds import check_counts
from sklearn_pate.accounting.calibrate import calibrate_noise
from sklearn_pate.mechanisms.analysis import AnalysedMechanism
from sklearn_pate.mechanisms.noise import NoiseSource
from sklearn_pate.mechanisms.priced import Response

__all__ = ["NO_ANSWER", "Mechanism"]

NO_ANSWER = -1


class Mechanism(AnalysedMechanism):
    """A noisy plurality vote.

    A subclass names its noise parameters in `noise_parameters`, and provides `_answer`,
    `_with_scale`, `_price`, `_plurality` and `_guarantee`.
    """

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

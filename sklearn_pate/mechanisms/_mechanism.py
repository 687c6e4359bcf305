"""Base classes of releases with noise, whose privacy cost is known beforehand."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Never

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from sklearn_pate.accounting._calibrate import LARGEST_SCALE, is_positive
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.mechanisms.noise._source import NoiseSource, check_noise_seed

__all__ = ["AccountedMechanism", "AccountedRelease", "Response", "VoteIndependentMixin"]


@dataclass(frozen=True)
class Response:
    """What comes out of one batch of queries.

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


class AccountedRelease(BaseEstimator, ABC):
    """A release with noise whose privacy cost follows from its parameters alone.

    Parameters are set and read as in scikit-learn (``get_params``, ``set_params``,
    ``clone``). A privacy card holds them, and its reader computes the cost again.
    """

    noise_seed: int | None

    #: What statements say was released.
    released: ClassVar[str]

    @abstractmethod
    def account_curve(self, n_queries: int, n_classes: int) -> RdpCurve:
        """Privacy cost of a whole fit, whatever the data. May be published.

        Parameters
        ----------
        n_queries : int
            Number of queries; of no consequence where none is asked.

        n_classes : int
            Number of classes.

        Returns
        -------
        curve : RdpCurve
            Data-independent.
        """

    def stated_curve(self, n_queries: int, n_classes: int) -> RdpCurve:
        """Privacy cost of a whole fit as it is stated and charged. May be published.

        Parameters
        ----------
        n_queries : int
            Number of queries.

        n_classes : int
            Number of classes.

        Returns
        -------
        curve : RdpCurve
            That of `account_curve`; infinite for seeded noise, which gives no privacy.

        Raises
        ------
        ValueError
            If a noise parameter is not set or out of range.
        """
        curve = self.account_curve(n_queries, n_classes)
        if self.noise_seed is None:
            return curve
        return curve.unbounded()

    def stated_epsilon(self, n_queries: int, n_classes: int, delta: float) -> float:
        """Epsilon of a whole fit as it is stated. May be published.

        Parameters
        ----------
        n_queries : int
            Number of queries.

        n_classes : int
            Number of classes.

        delta : float
            The probability mass that epsilon does not cover, in (0, 1).

        Returns
        -------
        epsilon : float
            That of `stated_curve`, by Canonne, Kamath, Steinke (2020), Proposition 12.

        Raises
        ------
        ValueError
            If a noise parameter is not set or out of range, or `delta` is.
        """
        return self.stated_curve(n_queries, n_classes).to_epsilon(delta)

    def in_one_line(self) -> str:
        """Write the mechanism with its parameters, for statements.

        Returns
        -------
        text : str
            Parameters by name, without those at their default. It depends on them
            alone, where `repr` depends on the configuration of scikit-learn.
        """
        written = {
            name: _written(value) for name, value in self.get_params(deep=False).items()
        }
        by_default = {
            name: _written(parameter.default)
            for name, parameter in signature(type(self)).parameters.items()
        }
        changed = ", ".join(
            f"{name}={written[name]}"
            for name in sorted(written)
            if written[name] != by_default.get(name)
        )
        return f"{type(self).__name__}({changed})"

    @abstractmethod
    def relation(self, unit: str) -> str:
        """Name the neighbour relation that the cost is about.

        Parameters
        ----------
        unit : {"row", "group", "party"}
            Whom it protects.

        Returns
        -------
        relation : {"replace-one", "add-remove", "add-remove-or-change"}
            As statements name it.

        Raises
        ------
        ValueError
            If the cost is not about this unit.
        """

    @abstractmethod
    def _check_ready(self) -> None:
        """Raise unless every parameter is set, and in its range."""


class AccountedMechanism(AccountedRelease):
    """A release with noise, whose cost does not depend on the data.

    A search reaches its parameters as ``mechanism__sigma``. A subclass names its noise
    parameters in `noise_parameters`, and provides `respond`, `prepared` and `_cost`.
    """

    released = "answers"

    #: Names of the parameters that set the amount of noise.
    noise_parameters: tuple[str, ...] = ()

    #: A cap on the answers of a whole fit, for mechanisms that may not answer.
    max_answers: int | None = None

    #: Whether queries come with the student's class probabilities.
    needs_probabilities: ClassVar[bool] = False

    #: Widest noise that can be drawn, in units of its parameters.
    largest_scale: ClassVar[float] = LARGEST_SCALE

    #: Whether the noisy votes are released, and not their plurality alone.
    releases_histograms: ClassVar[bool] = False

    @abstractmethod
    def respond(
        self, counts: ArrayLike, noise: NoiseSource, max_answers: int, **asked: Any
    ) -> Response:
        """Answer one batch of queries of a fit, for the `Oracle`.

        Parameters
        ----------
        counts : array-like of int of shape (n_queries, n_values)
            What the teachers said in all.

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
        """

    @abstractmethod
    def _cost(self, n_queries, n_answers, n_classes, orders):
        """Worst-case curve of so many queries and answers; the noise is set."""

    def worst_case_curve(
        self, n_classes: int, orders: ArrayLike = DEFAULT_ORDERS
    ) -> RdpCurve:
        """Privacy cost of one query, whatever the votes. May be published.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        orders : array-like of shape (n_orders,)
            Renyi orders, increasing, above 1.

        Returns
        -------
        curve : RdpCurve
            Data-independent.

        Raises
        ------
        ValueError
            If a noise parameter is not set or out of range, or `orders` do
            not increase from above 1.
        """
        self._check_noise()
        return self._cost(1, 1, n_classes, orders)

    def answer_cap(self, n_queries: int) -> int:
        """Largest number of answers that so many queries can get.

        Parameters
        ----------
        n_queries : int
            Number of queries.

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
        """Privacy cost of a whole fit, whatever the votes. May be published.

        Parameters
        ----------
        n_queries : int
            Number of queries.

        n_classes : int
            Number of classes.

        orders : array-like of shape (n_orders,)
            Renyi orders, increasing, above 1.

        Returns
        -------
        curve : RdpCurve
            Data-independent: that of as many answers as `answer_cap` allows, however
            many are given.

        Raises
        ------
        ValueError
            If a noise parameter is not set or out of range, or `orders` do
            not increase from above 1.
        """
        self._check_noise()
        return self._cost(n_queries, self.answer_cap(n_queries), n_classes, orders)

    def relation(self, unit: str) -> str:
        """Name the neighbour relation that the cost is about.

        Parameters
        ----------
        unit : {"row", "group", "party"}
            Whom it protects. Each is in one shard, or is one.

        Returns
        -------
        relation : {"replace-one", "add-remove-or-change"}
            The number of groups is not public, those of rows and parties are.
        """
        return "add-remove-or-change" if unit == "group" else "replace-one"

    def _given_noise(self):
        values = ((name, getattr(self, name)) for name in self.noise_parameters)
        return ", ".join(
            f"{name}={value!r}" for name, value in values if value is not None
        )

    def _check_open(self, epsilon):
        """Raise if the noise is set already, and cannot be calibrated to `epsilon`."""
        given = self._given_noise()
        if given:
            raise ValueError(
                f"epsilon={epsilon!r} and {type(self).__name__}({given}) both fix the "
                "noise; leave the noise at None to calibrate it, or pass epsilon=None."
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
                    "the classifier an epsilon to calibrate it."
                )
            if not is_positive(value):
                raise ValueError(
                    f"{name}={value!r} of {type(self).__name__} must be a positive, "
                    "finite number."
                )
            if not 1 / LARGEST_SCALE <= value <= self.largest_scale:
                raise ValueError(
                    f"{name}={value!r} of {type(self).__name__} is out of the range of "
                    f"noise that can be drawn; choose it between 1/{LARGEST_SCALE} and "
                    f"{self.largest_scale}."
                )
        check_noise_seed(self.noise_seed)


def _written(value):
    """Write the value of a parameter, a number as Python writes it."""
    if isinstance(value, AccountedRelease):
        return value.in_one_line()
    return " ".join(
        repr(value.item() if isinstance(value, np.generic) else value).split()
    )


class VoteIndependentMixin:
    """A release whose cost is the same whatever teachers say."""

    def sanitized_cost(
        self,
        counts: ArrayLike,
        *,
        n_teachers: int,
        delta: float,
        confidence: float = 0.975,
        **release: float,
    ) -> Never:
        """Refuse: the cost depends on no votes, and may be published as it is.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        n_teachers : int
            Number of teachers.

        delta : float
            In (0, 1).

        confidence : float, default=0.975
            In (0, 1).

        **release : float
            As for other mechanisms.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            f"What {type(self).__name__} costs does not depend on the votes, and there "
            "is nothing to sanitize; publish account_curve, or privacy_spent_ of a fit."
        )

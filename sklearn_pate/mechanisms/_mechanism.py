"""Base class of mechanisms, whose privacy cost follows from their parameters."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from sklearn_pate.accounting._calibrate import LARGEST_SCALE
from sklearn_pate.accounting._cost import Cost, ExactCost
from sklearn_pate.accounting._neighbours import check_add_up, check_neighbours
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count, is_positive


@dataclass(frozen=True)
class Response:
    """Answers to one batch of queries.

    `answers`, of shape (n_queries,), are class indices, -1 for no answer; `n_given` of
    them came from the votes and count against the cap. `histograms`, of shape
    (n_queries, n_classes), are the noisy counts, if these are released too.
    """

    answers: NDArray[np.intp]
    n_given: int
    histograms: NDArray[np.int64] | None = None


class Mechanism(BaseEstimator, ABC):
    """Base class of mechanisms, which release results with noise.

    The privacy cost follows from the parameters alone, and holds for any data.
    Mechanisms have ``get_params``, ``set_params`` and ``clone`` as in scikit-learn, so
    a grid search may set ``mechanism__sigma``. A privacy card contains the parameters
    of the mechanism, so that readers can compute the privacy cost again.

    A subclass sets `noise_parameters` and provides `_curve`. A mechanism that answers
    queries on votes is a subclass of :class:`PluralityMechanism`.

    Examples
    --------
    >>> from sklearn_pate.mechanisms import GNMax, MeanScores, Mechanism
    >>> for one in (GNMax(sigma=40), MeanScores(noise_scale=4)):
    ...     print(isinstance(one, Mechanism), one.in_one_line())
    True GNMax(sigma=40)
    True MeanScores(noise_scale=4)
    """

    #: Name of the released thing in statements.
    released: ClassVar[str] = "answers"

    #: Names of the parameters that set the amount of noise.
    noise_parameters: ClassVar[tuple[str, ...]] = ()

    #: Largest scale of noise that can be drawn, in units of the noise parameters.
    largest_scale: ClassVar[float] = LARGEST_SCALE

    #: Largest number of answers of a whole fit, for mechanisms that may withhold some.
    max_answers: int | None = None

    #: Whether queries come with the student's class probabilities.
    needs_probabilities: ClassVar[bool] = False

    #: Whether noisy counts are released, and not their plurality alone.
    releases_histograms: ClassVar[bool] = False

    #: Set in the body of a class with an exact cost. Not inherited: a subclass may
    #: release more, and state another cost.
    _has_exact_cost: ClassVar[bool]

    def cost(
        self,
        n_queries: int = 0,
        n_classes: int = 2,
        *,
        unit: str = "row",
        orders: ArrayLike = DEFAULT_ORDERS,
    ) -> Cost:
        """Compute the privacy cost of a whole fit, which holds for any data.

        Parameters
        ----------
        n_queries : int, default=0
            Number of queries. Mechanisms that answer no queries do not use this number.

        n_classes : int, default=2
            Number of classes.

        unit : {"row", "group", "party"}, default="row"
            Unit of privacy.

        orders : array-like of shape (n_orders,)
            Renyi orders of the curve, increasing, above 1.

        Returns
        -------
        cost : Cost
            Privacy cost of noise that is not seeded. May be published.

        Raises
        ------
        ValueError
            If a parameter is not set or out of range, or the privacy cost does not hold
            for this unit of privacy.
        """
        check_count("n_queries", n_queries, 0, np.inf)  # has a cost, however many
        check_count("n_classes", n_classes)
        relation = self.relation(unit)
        curve = self._curve(n_queries, n_classes, orders)
        exact = self._known_exact(n_queries, n_classes)
        return Cost(unit, relation, curve, exact)

    @abstractmethod
    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        """Return the Renyi curve of a whole fit, for any data."""

    def _exact(self, n_queries: int, n_classes: int) -> ExactCost | None:
        """Return the exact cost of a whole fit, None if only a curve is known."""
        return None

    def _known_exact(self, n_queries: int, n_classes: int) -> ExactCost | None:
        """Return the exact cost, None for a subclass that does not claim it itself."""
        if "_has_exact_cost" not in vars(type(self)):
            return None
        return self._exact(n_queries, n_classes)

    def answer_cap(self, n_queries: int) -> int:
        """Compute the largest number of answers to a given number of queries.

        Parameters
        ----------
        n_queries : int
            Number of queries.

        Returns
        -------
        n_answers : int
            The smaller of `n_queries` and `max_answers`.
        """
        check_count("n_queries", n_queries, 0, np.inf)  # has a cost, however many
        check_count("max_answers", self.max_answers, also=(None,))
        if self.max_answers is None:
            return n_queries
        return min(n_queries, self.max_answers)

    def sanitized_cost(self, counts: ArrayLike, **release: Any) -> Any:
        """Raise TypeError, as this mechanism's privacy cost does not depend on votes.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        **release : Any
            Parameters of `PluralityMechanism.sanitized_cost`.

        Raises
        ------
        TypeError
            Always, as the result of `cost` may be published without noise.
        """
        raise TypeError(
            f"The privacy cost of {type(self).__name__} does not depend on the votes; "
            "publish cost, or privacy_spent_ of a fit, without sanitizing it."
        )

    def in_one_line(self) -> str:
        """Write the mechanism and its parameters in one line, for statements.

        Returns
        -------
        text : str
            Class name and all parameters that differ from their defaults. Unlike
            `repr`, the text does not depend on the configuration of scikit-learn.
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

    def relation(self, unit: str) -> str:
        """Return the neighbour relation of the privacy cost.

        Parameters
        ----------
        unit : {"row", "group", "party"}
            Unit of privacy. All data of a unit are in one shard.

        Returns
        -------
        relation : {"replace-one", "add-remove", "add-remove-or-change"}
            Neighbour relation. The relation treats the numbers of rows and of parties
            as public, but not the number of groups.

        Raises
        ------
        ValueError
            If the privacy cost does not hold for this unit of privacy.
        """
        relation = self._relation(unit)
        check_neighbours(unit, relation)
        return relation

    def _relation(self, unit: str) -> str:
        """Return the relation for a unit, which is checked afterwards."""
        return "add-remove-or-change" if unit == "group" else "replace-one"

    def _check_before(self, before: Cost | None) -> None:
        """Raise ValueError unless the cost of a release before this one adds up."""
        if before is None:
            return
        if not isinstance(before, Cost):
            raise ValueError(
                f"before={before!r} must be a Cost, such as the result of cost() of "
                "the mechanism that releases the counts."
            )
        own = before.unit, self.relation(before.unit)
        costs = f"Costs of `before` and {type(self).__name__}"
        check_add_up(costs, (before.unit, before.relation), own)

    @property
    def parts(self) -> "tuple[Any, Any]":
        """Mechanism of noisy counts, here None, and this mechanism.

        Returns
        -------
        parts : tuple of (MarginalCounts or None, Mechanism)
            Mechanism that releases noisy counts, or None, and this mechanism.
        """
        return None, self

    def _check_noise_unset(self, epsilon: float) -> None:
        """Raise ValueError if the noise is set and cannot be calibrated."""
        values = ((name, getattr(self, name)) for name in self.noise_parameters)
        given = ", ".join(
            f"{name}={value!r}" for name, value in values if value is not None
        )
        if given:
            raise ValueError(
                f"epsilon={epsilon!r} and {type(self).__name__}({given}) both set the "
                "noise; set the noise to None to calibrate it, or pass epsilon=None."
            )

    def _check_ready(self) -> None:
        """Raise ValueError unless every parameter is set and in its range."""
        self._check_noise()

    def _check_noise(self) -> None:
        """Raise ValueError unless every noise parameter is set and can be drawn."""
        for name in self.noise_parameters:
            value = getattr(self, name)
            if value is None:
                raise ValueError(
                    f"{type(self).__name__} has {name}=None; set {name}, or give the "
                    "classifier an epsilon that determines it."
                )
            if not is_positive(value):
                raise ValueError(
                    f"{name}={value!r} of {type(self).__name__} must be a positive, "
                    "finite number."
                )
            if not 1 / LARGEST_SCALE <= value <= self.largest_scale:
                raise ValueError(
                    f"{name}={value!r} of {type(self).__name__} is outside the range "
                    f"of noise that can be drawn; choose it between 1/{LARGEST_SCALE} "
                    f"and {self.largest_scale}."
                )


def spends_all(epsilon: float) -> str:
    """Describe that a release before spends all of epsilon, with the remedy."""
    return (
        f"epsilon={epsilon!r} is used up by the noisy counts alone; lower the share "
        "of PrivateMarginals, or raise epsilon."
    )


def _written(value: Any) -> str:
    """Write the value of a parameter, a number as Python writes it."""
    if isinstance(value, Mechanism):
        return value.in_one_line()
    return " ".join(
        repr(value.item() if isinstance(value, np.generic) else value).split()
    )

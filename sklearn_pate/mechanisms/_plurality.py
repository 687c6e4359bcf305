"""Base classes of mechanisms: any noise, and the plurality of noisy votes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if

from sklearn_pate.accounting._calibrate import (
    LARGEST_SCALE,
    calibrate_noise,
    gdp_mu,
    least_noise,
)
from sklearn_pate.accounting._cost import (
    AdaptiveAnswers,
    Cost,
    ExactCost,
    check_add_up,
    check_neighbours,
    curve_after,
    exact_after,
)
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count, is_positive
from sklearn_pate.accounting.plurality._adaptive_answers import (
    MOST_ANSWERS,
    AnswerTests,
)
from sklearn_pate.accounting.plurality._closed_form import check_counts
from sklearn_pate.accounting.plurality._discrete_noise import NoisyCheck
from sklearn_pate.accounting.plurality._exact import (
    LOCAL_ORDERS,
    LocalCosts,
    Plurality,
    enumerated_cost,
    local_costs,
    log_losing,
    more_than_claimed,
)
from sklearn_pate.accounting.plurality._optimal import (
    SanitizedCost,
    gaussian_optimal_cost,
    joint_costs,
    pure_optimal_cost,
    release_parameters,
    sanitize,
)
from sklearn_pate.mechanisms._noise import NoiseSource

NO_ANSWER = -1
# Methods of a release and of its cost, for which an exact cost holds.
_OF_EXACT = (
    *("answer", "_answer", "respond", "release", "estimate"),
    *("cost", "_curve", "_cost"),
)
# Share of a target that a calibrated noise costs at least.
_CLOSE = 0.999


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
            Number of queries, or of steps of all releases: mean scores have 3 steps a
            release. Mechanisms without queries or steps do not use this number.

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
        """Return the exact cost, None where a subclass overrides what it is about."""
        stated = self._origin("_exact")
        if stated is PluralityMechanism:  # which composes tests of one answer
            stated = self._origin("_answer_tests")
        # A class that releases more must state the exact cost of that, or none.
        if not all(issubclass(stated, self._origin(name)) for name in _OF_EXACT):
            return None
        return self._exact(n_queries, n_classes)

    def _origin(self, name: str) -> type:
        """Return the class that defines a method, `object` if there is none."""
        kinds = type(self).__mro__
        return next((kind for kind in kinds if name in vars(kind)), object)

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


class PluralityMechanism(Mechanism):
    """Base class of mechanisms that answer a query with the class of most noisy votes.

    The results of `answer` may be published, at the privacy cost that `cost` computes
    for any votes. The results of `local_curve`, `optimal_curve` and `paper_epsilon` are
    as sensitive as the votes. The method `sanitized_cost` releases a data-dependent
    cost with noise, at an additional privacy cost. Data-dependent costs hold only for
    queries that were chosen independently of answers.

    A subclass lists its noise parameters in `noise_parameters`, and provides `_answer`
    and `_cost`. For the guarantee, `_cost` must bound the Renyi divergence of all
    answers between any two neighbouring data sets, for any votes. A subclass that
    states the distribution of an answer, by `_plurality` and `_guarantee`, also has
    data-dependent costs. A subclass of a mechanism that overrides `_cost` or `_answer`
    does not inherit its exact epsilon, which may be too small for the subclass.

    Notes
    -----
    Neighbouring data sets differ in the votes of one teacher. On each query, one vote
    is moved, added or withdrawn. Privacy costs of queries add up, even if the next
    query depends on earlier answers (Mironov 2017, "Renyi differential privacy",
    Proposition 1). Definitions and proofs are on the page :doc:`/accounting`.

    Examples
    --------
    GNMax with the worst-case cost of the 2018 paper:

    >>> from sklearn_pate.accounting.bounds import gaussian_worst_case
    >>> from sklearn_pate.mechanisms import GNMax
    >>> class ClassicalGNMax(GNMax):
    ...     def _cost(self, n_queries, n_answers, n_classes, orders):
    ...         return gaussian_worst_case(self.sigma, orders) * n_answers
    >>> for mechanism in (GNMax(sigma=40), ClassicalGNMax(sigma=40)):
    ...     curve = mechanism.cost(n_queries=100, n_classes=2).curve
    ...     print(round(curve.to_epsilon(1e-5), 2))
    1.16
    1.48
    """

    #: Largest number of answers of a whole fit, for mechanisms that may withhold some.
    max_answers: int | None = None

    #: Whether queries come with the student's class probabilities.
    needs_probabilities: ClassVar[bool] = False

    #: Whether noisy counts are released, and not their plurality alone.
    releases_histograms: ClassVar[bool] = False

    def answer(
        self,
        counts: ArrayLike,
        *,
        max_answers: int | None = None,
        noise: NoiseSource | None = None,
    ) -> NDArray[np.intp]:
        """Answer each query with the class of most noisy votes.

        Every call draws new noise and has a new privacy cost, so answer each query
        once.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class, whole numbers. Sensitive.

        max_answers : int, default=None
            Maximum number of answers; further queries get no answer. None is the limit
            of the mechanism. The number must be chosen independently of votes, and does
            not lower the privacy cost.

        noise : NoiseSource, default=None
            Source of the noise. With None, a new source is created.

        Returns
        -------
        answers : ndarray of int of shape (n_queries,)
            Class index of each answer, or -1 for no answer. May be published, at the
            privacy cost that `cost` computes.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or a parameter is not set or out of range.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded. The answers are then not private.
        """
        return self.respond(counts, noise, max_answers).answers

    def respond(
        self,
        counts: ArrayLike,
        noise: NoiseSource | None = None,
        max_answers: int | None = None,
    ) -> Response:
        """Answer one batch of queries of a fit, as called by `Oracle`.

        Parameters
        ----------
        counts : array-like of int of shape (n_queries, n_classes)
            Votes per class, over all teachers. Sensitive.

        noise : NoiseSource, default=None
            Source of the noise. With None, a new source is created.

        max_answers : int, default=None
            Number of answers that are still allowed. None is the limit of the
            mechanism.

        Returns
        -------
        response : Response
            Answers, whose privacy cost is part of the privacy cost of the fit.

        Raises
        ------
        ValueError
            If `counts` are invalid, or a parameter is not set or out of range.
        """
        counts = self._checked(counts, max_answers)
        answers = self._answer(counts, noise or NoiseSource())
        answers = self._capped(answers, max_answers)
        return Response(answers, int(np.count_nonzero(answers != NO_ANSWER)))

    def _checked(
        self, counts: ArrayLike, max_answers: int | None = None
    ) -> NDArray[np.int64]:
        """Return vote counts, or raise ValueError unless they can be answered."""
        checked = check_counts(counts).astype(np.int64)
        check_count("max_answers", max_answers, 0, also=(None,))
        self._check_ready()
        return checked

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

    def _exact(self, n_queries: int, n_classes: int) -> ExactCost | None:
        n_answers = self.answer_cap(n_queries)
        if n_answers > MOST_ANSWERS:
            return None
        tests = self._answer_tests(n_classes)
        return None if tests is None else AdaptiveAnswers(tests, n_answers)

    @abstractmethod
    def _cost(
        self, n_queries: int, n_answers: int, n_classes: int, orders: ArrayLike
    ) -> RdpCurve:
        """Return the worst case of these queries and answers; the noise is set."""

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        self._check_noise()
        check_count("n_classes", n_classes, 2)
        # Of all answers that may be given, even if fewer are.
        return self._cost(n_queries, self.answer_cap(n_queries), n_classes, orders)

    def _ceiling(self, orders: ArrayLike) -> RdpCurve:
        """Return a worst case of one query in closed form; the noise is set."""
        return self._cost(1, 1, 2, orders)

    def _with_scale(self, scale: float) -> Self:
        """Return a clone with noise of that scale, in votes."""
        (name,) = self.noise_parameters
        return clone(self).set_params(**{name: float(scale)})

    def prepared(
        self,
        *,
        n_teachers: int,
        n_queries: int,
        n_classes: int,
        epsilon: float | None = None,
        delta: float = 1e-5,
        before: Cost | None = None,
    ) -> Self:
        """Return a clone with all parameters set.

        Parameters
        ----------
        n_teachers : int
            Number of teachers, chosen independently of private data.

        n_queries : int
            Public number of queries of the fit.

        n_classes : int
            Public number of classes.

        epsilon : float, default=None
            Target epsilon of the whole fit. With None, the noise parameters are kept.

        delta : float, default=1e-5
            Delta of the (epsilon, delta) guarantee, in (0, 0.1).

        before : Cost, default=None
            Privacy cost, for the same neighbours, of noisy counts that are released
            before the queries. `epsilon` includes this cost.

        Returns
        -------
        mechanism : Mechanism
            Clone with all parameters set. All parameters may be published.

        Raises
        ------
        ValueError
            If both or neither of `epsilon` and noise parameters are given, a parameter
            is out of range, or `epsilon` needs too much noise.
        """
        check_count("n_teachers", n_teachers)
        check_count("n_queries", n_queries)
        check_count("n_classes", n_classes, 2)
        self._check_before(before)
        ready = self._for_teachers(n_teachers)
        if epsilon is None:
            ready._check_ready()
            return ready
        self._check_noise_unset(epsilon)
        if before is not None and before.curve.quiet_epsilon(delta) >= epsilon:
            raise ValueError(spends_all(epsilon))
        at, n_answers = ready._with_scale, ready.answer_cap(n_queries)

        def exact_epsilon(n_classes: int, scale: float) -> float:
            exact = exact_after(before, at(scale)._known_exact(n_queries, n_classes))
            return np.inf if exact is None else exact.epsilon(delta)

        def ceiling(scale: float, orders: ArrayLike) -> RdpCurve:
            return curve_after(before, at(scale)._ceiling(orders) * n_answers)

        def curve(n_classes: int, scale: float, orders: ArrayLike) -> RdpCurve:
            cost = at(scale)._cost(n_queries, n_answers, n_classes, orders)
            return curve_after(before, cost)

        # Two classes cost nearly the same as more, and are faster to compute.
        found, of_all = None, partial(curve, n_classes)
        start = calibrate_noise(ceiling, epsilon=epsilon, delta=delta)
        if np.isfinite(exact_epsilon(2, start)):
            found = least_noise(
                partial(exact_epsilon, n_classes),
                epsilon=epsilon,
                start=start,
                rough_epsilon_at_scale=partial(exact_epsilon, 2),
            )
        # A few answers with little noise cost less by their curve. That of two classes,
        # which is not above that of more, is first, as it is faster to compute.
        if found is None or all(
            curve(n, found, DEFAULT_ORDERS).quiet_epsilon(delta) < epsilon * _CLOSE
            for n in (2, n_classes)
        ):
            found = calibrate_noise(
                of_all,
                epsilon=epsilon,
                delta=delta,
                rough_curve_at_scale=partial(curve, 2),
            )
        return at(found)

    def _for_teachers(self, n_teachers: int) -> Self:
        """Return a clone with the parameters that depend on the number of teachers."""
        return clone(self)

    def _plurality(self) -> Plurality | None:
        """Return the law of an answer, None if it cannot be computed; it is ready."""
        return None

    def _known_plurality(self) -> Plurality:
        """Return the distribution of an answer, or raise ValueError."""
        plurality = self._plurality()
        if plurality is None:
            raise ValueError(
                "This figure needs the distribution of the answers, which "
                f"{type(self).__name__} does not state; implement _plurality()."
            )
        return plurality

    def _guarantee(self) -> dict[str, float]:
        """Return the bound on any answer: `sigma` of GNMax noise, or `pure_epsilon`."""
        raise ValueError(
            "This figure needs a bound on the distribution of an answer, which "
            f"{type(self).__name__} does not state; implement _guarantee()."
        )

    def _check(self) -> NoisyCheck | None:
        """Return the check before each answer, if any; the mechanism is ready."""
        return None

    def _paper_curve(self, counts: ArrayLike) -> RdpCurve | None:
        """Return the curve of the mechanism's paper, if any; the noise is set."""
        return None

    def local_curve(
        self,
        counts: ArrayLike,
        orders: ArrayLike = LOCAL_ORDERS,
        *,
        votes_by_teacher: ArrayLike | None = None,
        direction: Literal["both", "forward"] = "both",
    ) -> RdpCurve:
        """Compute the exact privacy cost of queries at the given votes. Sensitive.

        The result must not be published, and must not decide when queries stop.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        votes_by_teacher : array-like of shape (n_teachers, n_queries), default=None
            The single votes in `counts`, -1 for an abstention. The result is then
            tighter.

        direction : {"both", "forward"}, default="both"
            "forward" is the divergence in the one direction that the PATE papers bound.

        Returns
        -------
        curve : RdpCurve
            Sum of the privacy costs of the queries, by
            :func:`~sklearn_pate.accounting.local_cost`. The method `sanitized_cost`
            cannot release this sum.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or a parameter is not set or out of range.
        """
        return self._local_costs(
            counts, orders, votes_by_teacher=votes_by_teacher, direction=direction
        ).total

    def _local_costs(
        self, counts: ArrayLike, orders: ArrayLike = LOCAL_ORDERS, **options: Any
    ) -> LocalCosts:
        """Return the costs behind `local_curve`, which has the same parameters."""
        self._check_ready()
        plurality = self._plurality()
        if plurality is None:  # the worst case of all votes
            n_queries, n_classes = check_counts(counts).shape
            return LocalCosts(
                self._cost(n_queries, self.answer_cap(n_queries), n_classes, orders),
                self._cost(1, 1, n_classes, orders),
            )
        return local_costs(
            plurality,
            counts,
            orders,
            ceiling=self._ceiling(orders),
            check=self._check(),
            **options,
        )

    def _exceeds_claim(self, costs: LocalCosts, n_queries: int, n_classes: int) -> bool:
        """Check for votes that cost more than the worst case. Sensitive.

        The worst case is that of one query, and of all queries if all are answered.
        """
        orders = costs.total.orders
        one, all_of_them = (self._cost_at(n, n_classes, orders) for n in (1, n_queries))
        return more_than_claimed(costs.largest, one) or more_than_claimed(
            costs.total, all_of_them
        )

    def _cost_at(self, n: int, n_classes: int, orders: NDArray[np.float64]) -> RdpCurve:
        """Return the worst case of n answered queries."""
        if not np.isin(orders, DEFAULT_ORDERS).all():
            return self._cost(n, n, n_classes, orders)
        # At the default orders, where the cost is cached.
        return self._cost(n, n, n_classes, DEFAULT_ORDERS).at(orders)

    def enumerated_curve(
        self,
        counts: ArrayLike,
        orders: ArrayLike = DEFAULT_ORDERS,
        *,
        probabilities: ArrayLike | None = None,
    ) -> RdpCurve:
        """Compute the exact cost of one query by enumeration of neighbours. Sensitive.

        The result equals `local_curve`, but is computed from the distributions of the
        answers alone. A claimed privacy cost below this result is wrong. For artificial
        counts, the result is not sensitive.

        Parameters
        ----------
        counts : array-like of shape (n_classes,)
            Votes per class.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        probabilities : array-like of shape (n_classes,), default=None
            The student's class probabilities, for a mechanism that needs probabilities.

        Returns
        -------
        curve : RdpCurve
            Privacy cost by :func:`~sklearn_pate.accounting.plurality.enumerated_cost`.
            Infinite if noise is far below one vote, so that a probability underflows in
            float64.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or a parameter is not set or out of range.
        """
        self._check_ready()
        return enumerated_cost(
            partial(self._log_law, probabilities=probabilities), counts, orders
        )

    def _log_law(
        self, counts: NDArray[np.int64], probabilities: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return log-probabilities of no answer (with a check) and of each class."""
        return self._log_checked_law(counts, counts)

    def _log_checked_law(
        self, counts: NDArray[np.int64], scores: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return these log-probabilities, with a check of the largest score."""
        votes = counts.astype(np.float64)
        law = self._known_plurality().log_probabilities(votes, np.ones_like(votes))
        check = self._check()
        if check is None:
            return law
        log_pass, log_fail = check.log_probabilities(scores.max(axis=1))
        return np.column_stack([log_fail, law + log_pass[:, np.newaxis]])

    def optimal_curve(
        self,
        counts: ArrayLike,
        orders: ArrayLike = LOCAL_ORDERS,
        *,
        direction: Literal["both", "forward"] = "both",
    ) -> RdpCurve:
        """Compute the tightest privacy cost bound that depends on q alone. Sensitive.

        Here, q is the probability that the most-voted class is not the answer. The
        bounds of the PATE papers (2017, Theorem 3; 2018, Theorem 6) also depend on q,
        and are never smaller than this bound.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        direction : {"both", "forward"}, default="both"
            "forward" is the divergence in the one direction that the PATE papers bound.

        Returns
        -------
        curve : RdpCurve
            Sum of the bounds of all queries. The method `sanitized_cost` releases this
            sum with noise.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or a parameter is not set or out of range.
        """
        self._check_ready()
        counts = check_counts(counts)
        orders = np.asarray(orders, dtype=np.float64)
        plurality = self._plurality()
        if plurality is None:  # the worst case of all votes
            n_queries, n_classes = counts.shape
            return self._curve(n_queries, n_classes, orders)
        log_q = log_losing(plurality, counts, orders.max())
        guarantee, check = self._guarantee(), self._check()
        ceiling = self._cost_at(1, counts.shape[1], orders).values[:, np.newaxis]
        if "sigma" in guarantee:
            costs = gaussian_optimal_cost(log_q, guarantee["sigma"], orders, direction)
        else:
            costs = pure_optimal_cost(
                log_q, guarantee["pure_epsilon"], orders, direction
            )
        if check is not None:
            largest = counts.max(axis=1)
            near = np.maximum([largest, largest - 1, largest + 1], 0)
            log_pass, log_fail = check.log_probabilities(near)
            costs = np.array(
                [
                    joint_costs(cost, log_pass, log_fail, order)
                    for cost, order in zip(costs, orders, strict=True)
                ]
            )
        return RdpCurve(orders, np.minimum(costs, ceiling).sum(axis=1))

    def paper_epsilon(self, counts: ArrayLike, delta: float) -> float | None:
        """Compute epsilon as in the mechanism's original PATE paper. Sensitive.

        The computation uses :func:`~sklearn_pate.accounting.bounds.laplace_2017`,
        :func:`~sklearn_pate.accounting.bounds.gaussian_2018` or
        :func:`~sklearn_pate.accounting.bounds.confident_2018`, and the conversion of
        the papers.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        Returns
        -------
        epsilon : float or None
            Epsilon, or None if no PATE paper bounds the cost of this mechanism.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, or a parameter or `delta` is not set or out
            of range.
        """
        self._check_ready()
        curve = self._paper_curve(counts)
        if curve is None:
            return None
        return curve.quiet_epsilon(delta, conversion="classical")

    # Noisy counts cost the same for all votes.
    @available_if(lambda mechanism: not mechanism.releases_histograms)
    def sanitized_cost(
        self,
        counts: ArrayLike,
        *,
        n_teachers: int,
        delta: float,
        confidence: float = 0.975,
        class_counts: Mechanism | None = None,
        **release: float,
    ) -> SanitizedCost:
        """Release `optimal_curve` at one Renyi order with noise. May be published.

        Every call has a new privacy cost, so call this method once. With strong noise
        or few queries, the released epsilon exceeds the epsilon of `cost`.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        n_teachers : int
            Number of teachers.

        delta : float
            Delta of the (epsilon, delta) guarantee, in (0, 1).

        confidence : float, default=0.975
            Probability that the released cost is at least the true cost.

        class_counts : Mechanism, default=None
            Release of noisy class counts before the answers, whose cost is included.

        **release : float
            Either all or none of `order`, `smoothness` and `noise_scale` of
            :func:`~sklearn_pate.accounting.plurality.sanitize`, chosen independently of
            the votes. By default,
            :func:`~sklearn_pate.accounting.plurality.release_parameters` chooses these
            parameters.

        Returns
        -------
        sanitized : SanitizedCost
            Released privacy cost, which includes the privacy cost of this release.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, a parameter is not set or out of range, or
            the parameters in `release` give no guarantee.

        Notes
        -----
        The method is from Papernot et al. 2018, Appendix B. The cost in the paper is
        not an upper bound. This method's cost is derived on the page
        :doc:`/proofs/local-cost`.
        """
        self._check_ready()
        counts = check_counts(counts)
        check_count("n_teachers", n_teachers)
        public: dict[str, Any] = self._guarantee()
        largest = None
        check = self._check()
        if check is not None:
            steps = check.log_probabilities(np.arange(n_teachers + 1.0))
            public |= dict(zip(("log_pass", "log_fail"), steps, strict=True))
            largest = counts.max(axis=1)
        release = release or release_parameters(
            len(counts), n_teachers, delta, confidence=confidence, **public
        )
        n_queries, n_classes = counts.shape
        worst_case = self._cost(
            n_queries, self.answer_cap(n_queries), n_classes, [release["order"]]
        )
        of_counts = 0.0
        if class_counts is not None:
            cost = class_counts.cost(orders=[release["order"]])
            of_counts = float(cost.curve.values[0])
        # Beyond the last cell of the grid, whose width may exceed that of the noise.
        farthest = float(release["order"])
        if "sigma" in public:
            farthest *= gdp_mu(public["sigma"]) * public["sigma"] / np.sqrt(2)
        return sanitize(
            log_losing(self._known_plurality(), counts, farthest),
            n_teachers=n_teachers,
            delta=delta,
            largest_counts=largest,
            worst_case=float(worst_case.values[0]),
            before=of_counts,
            **{"confidence": confidence, **release},
            **public,
        )

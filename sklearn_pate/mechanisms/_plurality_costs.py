"""Privacy costs of mechanisms at the votes that were cast. Sensitive."""

from abc import abstractmethod
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._gdp import gdp_mu
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.plurality._enumeration import enumerated_cost
from sklearn_pate.accounting.plurality._exact import (
    LOCAL_ORDERS,
    LocalCosts,
    local_costs,
    log_losing,
    more_than_claimed,
)
from sklearn_pate.accounting.plurality._neighbouring_votes import joint_costs
from sklearn_pate.accounting.plurality._noisy_check import NoisyCheck
from sklearn_pate.accounting.plurality._optimal import (
    gaussian_optimal_cost,
    pure_optimal_cost,
)
from sklearn_pate.accounting.plurality._outcomes import Plurality
from sklearn_pate.accounting.plurality._smooth_sensitivity import (
    SanitizedCost,
    release_parameters,
    sanitize,
)
from sklearn_pate.accounting.plurality._unique_queries import check_counts
from sklearn_pate.mechanisms._mechanism import AccountedMechanism

__all__ = ["AnalysedMechanism"]


class AnalysedMechanism(AccountedMechanism):
    """A mechanism that also has data-dependent privacy costs.

    All of them but `sanitized_cost` are as sensitive as the votes. They hold for a list
    of queries that was fixed independently of answers.
    """

    def _plurality(self) -> Plurality | None:
        """Return the distribution of an answer, None if it cannot be computed.

        The mechanism is ready.
        """
        return None

    def _known_plurality(self) -> Plurality:
        """Return the distribution of an answer, or raise ValueError."""
        plurality = self._plurality()
        if plurality is None:
            raise ValueError(
                f"{type(self).__name__} states no distribution of its answers, on "
                "which this figure depends; implement _plurality()."
            )
        return plurality

    @abstractmethod
    def _guarantee(self) -> dict[str, float]:
        """Return the bound on any answer: `sigma` of GNMax noise, or `pure_epsilon`."""

    @abstractmethod
    def _ceiling(self, orders: ArrayLike) -> RdpCurve:
        """Return a worst case of one query in closed form; the noise is set."""

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
        """Exact privacy cost of queries at the votes that were cast. Sensitive.

        It must not be published, and must not decide when to stop.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        votes_by_teacher : array-like of shape (n_teachers, n_queries), default=None
            The votes behind `counts`, -1 for an abstention, for a sharper result.

        direction : {"both", "forward"}, default="both"
            "forward" is the one-sided quantity that the PATE papers bound.

        Returns
        -------
        curve : RdpCurve
            By :func:`~sklearn_pate.accounting.local_cost`, summed over the queries.
            It cannot be sanitized.

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
        chosen = np.isin(DEFAULT_ORDERS, orders)
        if np.count_nonzero(chosen) < orders.size:
            return self._cost(n, n, n_classes, orders)
        # At the default orders, where the cost is cached.
        curve = self._cost(n, n, n_classes, DEFAULT_ORDERS)
        return RdpCurve(orders, curve.values[chosen])

    def enumerated_curve(
        self,
        counts: ArrayLike,
        orders: ArrayLike = DEFAULT_ORDERS,
        *,
        probabilities: ArrayLike | None = None,
    ) -> RdpCurve:
        """Exact privacy cost of one query by enumeration of its neighbours. Sensitive.

        The same quantity as `local_curve`, from the distributions of the answers alone:
        a claimed cost below it is wrong. Made-up counts reveal nothing.

        Parameters
        ----------
        counts : array-like of shape (n_classes,)
            Votes per class.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        probabilities : array-like of shape (n_classes,), default=None
            The student's class probabilities, for a mechanism that needs them.

        Returns
        -------
        curve : RdpCurve
            By :func:`~sklearn_pate.accounting.plurality.enumerated_cost`; infinite
            also where a probability underflows in float64, with noise far below a vote.

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
        """Sharpest bound on the cost of queries that depends on q alone. Sensitive.

        q is the probability that the plurality does not win. The bounds of the PATE
        papers (2017, Theorem 3; 2018, Theorem 6) are functions of q too, and never
        smaller.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        orders : array-like of shape (n_orders,)
            Renyi orders.

        direction : {"both", "forward"}, default="both"
            "forward" is the one-sided quantity that the PATE papers bound.

        Returns
        -------
        curve : RdpCurve
            Summed over the queries; `sanitized_cost` releases it.

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
            return self.account_curve(n_queries, n_classes, orders)
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
        """Epsilon by the mechanism's paper. Sensitive.

        By :func:`~sklearn_pate.accounting.bounds.laplace_2017`,
        :func:`~sklearn_pate.accounting.bounds.gaussian_2018` or
        :func:`~sklearn_pate.accounting.bounds.confident_2018`, with the papers'
        conversion.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        delta : float
            The probability mass that epsilon does not cover, in (0, 1).

        Returns
        -------
        epsilon : float or None
            None if this package reproduces no figure of a paper.

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

    def sanitized_cost(
        self,
        counts: ArrayLike,
        *,
        n_teachers: int,
        delta: float,
        confidence: float = 0.975,
        **release: float,
    ) -> SanitizedCost:
        """Release `optimal_curve` at one order with noise. May be published.

        Every call has a privacy cost: call it once. With strong noise or few queries
        the released epsilon exceeds that of `account_curve`, which is then the better
        statement, at no additional cost.

        Parameters
        ----------
        counts : array-like of shape (n_queries, n_classes)
            Votes per class.

        n_teachers : int
            Number of teachers.

        delta : float
            The probability mass that epsilon does not cover, in (0, 1).

        confidence : float, default=0.975
            Probability that the released cost is at least the true one.

        **release : float
            `order`, `smoothness` and `noise_scale` of
            :func:`~sklearn_pate.accounting.plurality.sanitize`, all or none, chosen
            independently of the votes. By default
            :func:`~sklearn_pate.accounting.plurality.release_parameters` chooses them
            from public numbers.

        Returns
        -------
        sanitized : SanitizedCost
            Includes the cost of its own release.

        Raises
        ------
        ValueError
            If `counts` are not vote counts, a parameter is not set or out of range, or
            `release` gives no guarantee.

        Notes
        -----
        Papernot et al. 2018, Appendix B, with the cost derived in :doc:`/accounting`:
        the published one is no upper bound.
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
            **{"confidence": confidence, **release},
            **public,
        )

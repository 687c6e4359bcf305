"""Plan of the queries, made before the first vote."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklearn_pate._aggregation._design import (
    as_query_strategy,
    prefers_representative,
    resolve_n_queries,
)
from sklearn_pate._estimators._isolation import MAX_SEED, seeded_clone, seeded_globals
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._features import cause_of, in_short, quotes_values, remedy_of
from sklearn_pate.exceptions import warn_user
from sklearn_pate.mechanisms import Mechanism, Oracle, Transcript
from sklearn_pate.students import (
    ClusterQueries,
    Clusters,
    QuerySession,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
)
from sklearn_pate.students._queries import (
    find_clusters,
    numeric_features,
    standardized_features,
)

# Seconds in which a transformer is expected to transform one row.
_SLOW = 0.005


@dataclass(frozen=True)
class Answers:
    """Released answers to queries."""

    #: Public rows, in the order of the queries.
    rows: NDArray[np.intp]
    #: Class indices, -1 for no answer.
    answers: NDArray[np.intp]
    #: All that was released, by rows of the votes.
    transcript: Transcript


@dataclass(frozen=True)
class QueryPlan:
    """Plan of the queries, which depends on public rows and parameters alone."""

    X_public: Table
    #: The public rows by the representation.
    X_for_teachers: Table
    n_queries: int
    strategy: QueryStrategy
    #: Fitted on public rows.
    representation: BaseEstimator | None
    #: Public rows as numbers, where the strategy compares them.
    features: NDArray[np.float64] | None
    #: Public rows with one vote together.
    clusters: Clusters | None

    def query(
        self,
        oracle: Oracle,
        student: BaseEstimator,
        n_classes: int,
        seed: int,
        on_answered: Callable[[int], None],
    ) -> Answers:
        """Query the teachers through the oracle, which adds the noise.

        An adaptive strategy trains `student` on the answers so far. `on_answered` gets
        numbers of queries.
        """
        by_public_row = self._by_public_row(oracle.answer)

        def answer(rows: Any, probabilities: Any = None) -> NDArray[np.intp]:
            answers = by_public_row(rows, probabilities)
            on_answered(len(rows))
            return answers

        session = QuerySession(
            answer,
            self.X_public,
            student,
            n_classes=n_classes,
            n_queries=self.n_queries,
            seed=seed,
            features=self.features,
            clusters=self.clusters,
        )
        self.strategy.query(session)
        return Answers(session.queried, session.answers, oracle.transcript())

    def _by_public_row(self, answer: Callable) -> Callable:
        """Make `answer` take public rows where the votes are on clusters."""
        if self.clusters is None:
            return answer
        of_row = self.clusters.of_row
        return lambda rows, probabilities=None: answer(of_row[rows], probabilities)


def plan_queries(
    X_public: Table,
    student: BaseEstimator,
    mechanism: Mechanism,
    *,
    n_queries: int | Literal["auto"],
    query_strategy: str | QueryStrategy,
    representation: BaseEstimator | None,
    seed: int,
) -> QueryPlan:
    """Plan the queries, or raise ValueError if the public rows do not allow them."""
    n_public = X_public.shape[0]
    n_queried = resolve_n_queries(n_queries, n_public, student)
    fitted, X_for_teachers = represent(representation, X_public, seed)

    def features() -> NDArray[np.float64] | None:
        return comparable(fitted, X_public, X_for_teachers, seed)

    strategy = as_query_strategy(query_strategy, mechanism)
    compared = None
    if strategy is None:
        few = prefers_representative(n_queried, n_public)
        compared = features() if few else None
        strategy = RandomQueries() if compared is None else RepresentativeQueries()
    elif strategy.needs_features:
        compared = features()
        if compared is None:
            raise ValueError(
                f"query_strategy={query_strategy!r} compares public rows, which "
                "are text, sparse or have missing values here; pass representation=, "
                "a transformer that makes dense numbers of them, or use 'random'."
            )
    clusters = None
    if compared is not None and isinstance(strategy, ClusterQueries):
        clusters = find_clusters(
            compared, n_queried, strategy.core, check_random_state(seed % MAX_SEED)
        )
        n_queried = len(clusters.medoids)
    return QueryPlan(
        X_public, X_for_teachers, n_queried, strategy, fitted, compared, clusters
    )


def represent(
    representation: BaseEstimator | None, X_public: Table, seed: int
) -> tuple[BaseEstimator | None, Table]:
    """Fit a clone of a representation on public rows, and apply it to them."""
    if representation is None:
        return None, X_public
    fitted = seeded_clone(representation, seed)
    try:
        with seeded_globals(seed):
            fitted.fit(deepcopy(X_public), None)  # some insist on a y
        return fitted, fitted.transform(deepcopy(X_public))
    except (TypeError, ValueError) as error:
        failure = f"{type(error).__name__}: {error}"
        chained = None if quotes_values(failure) else error
        remedy = remedy_of(failure, X_public, "representation", representation)
        raise ValueError(
            f"representation={in_short(representation)} fails on the public rows: "
            f"{cause_of(failure)}. {remedy}".rstrip()
        ) from chained


def warn_if_slow(representation: Any, seconds_a_row: float) -> None:
    """Warn, from public rows, of a transformer that is slow for one row at a time."""
    if seconds_a_row > _SLOW:
        warn_user(
            f"representation={type(representation).__name__}(...) transforms one "
            f"private row at a time, in {1000 * seconds_a_row:.0f} ms each: "
            f"{1000 * seconds_a_row:.0f} s for a thousand rows. A TableRepresentation "
            "is faster."
        )


def comparable(
    representation: BaseEstimator | None,
    X_public: Table,
    X_for_teachers: Table,
    seed: int,
) -> NDArray[np.float64] | None:
    """Return public rows as numbers that a query strategy can compare.

    None for text, missing values and sparse matrices.
    """
    if representation is None:
        return standardized_features(X_public, seed)
    return numeric_features(X_for_teachers)

"""Plan of the queries, as far as it is settled before the first vote."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklearn_pate._base._parameters import (
    as_query_strategy,
    prefers_representative,
    resolve_n_queries,
)
from sklearn_pate._estimators._seeding import MAX_SEED, seeded_clone, seeded_globals
from sklearn_pate._inputs._containers import Table
from sklearn_pate.mechanisms import Mechanism, Oracle, Transcript
from sklearn_pate.students import (
    ClusterQueries,
    Clusters,
    QuerySession,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
)
from sklearn_pate.students.queries._fixed import find_clusters
from sklearn_pate.students.queries._row_similarity import (
    numeric_features,
    standardized_features,
)

__all__ = ["Answers", "QueryPlan", "comparable", "plan_queries", "represent"]


@dataclass(frozen=True)
class Answers:
    """Released answers to queries, and where they were asked.

    Parameters
    ----------
    rows : ndarray of int of shape (n_asked,)
        Public rows, in the order of the queries.

    answers : ndarray of int of shape (n_asked,)
        Class indices, -1 for no answer.

    transcript : Transcript
        The same by rows of the votes, with what else was released.
    """

    rows: NDArray[np.intp]
    answers: NDArray[np.intp]
    transcript: Transcript


@dataclass(frozen=True)
class QueryPlan:
    """Everything about the queries that public rows and parameters alone decide.

    Parameters
    ----------
    X_public : table of shape (n_public, n_features)
        Public rows.

    X_for_teachers : table of shape (n_public, ...)
        Public rows as teachers see them.

    n_queries : int
        How many are paid for.

    strategy : QueryStrategy
        What chooses them.

    representation : transformer or None
        Fitted on public rows.

    features : ndarray of shape (n_public, n_dimensions) or None
        Public rows as numbers, where the strategy compares them.

    clusters : Clusters or None
        Public rows that are voted on together.
    """

    X_public: Table
    X_for_teachers: Table
    n_queries: int
    strategy: QueryStrategy
    representation: BaseEstimator | None
    features: NDArray[np.float64] | None
    clusters: Clusters | None

    def query(
        self, oracle: Oracle, student: BaseEstimator, n_classes: int, seed: int
    ) -> Answers:
        """Query the teachers, by way of the oracle that adds the noise.

        `student` is what an adaptive strategy trains on the answers so far.
        """
        session = QuerySession(
            self._by_public_row(oracle.ask),
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

    def _by_public_row(self, ask: Callable) -> Callable:
        """Let `ask` take public rows, where rows of the votes are clusters."""
        if self.clusters is None:
            return ask
        of_row = self.clusters.of_row
        return lambda rows, probabilities=None: ask(of_row[rows], probabilities)


def plan_queries(
    X_public: Table,
    student: BaseEstimator,
    mechanism: Mechanism,
    *,
    n_queries: int | str,
    query_strategy: str | QueryStrategy,
    representation: BaseEstimator | None,
    seed: int,
) -> QueryPlan:
    """Settle the number of queries, the strategy, and the features it compares.

    Raises
    ------
    ValueError
        If there are fewer public rows than queries, or the strategy cannot compare
        the public rows.
    """
    n_public = X_public.shape[0]
    n_asked = resolve_n_queries(n_queries, n_public, student)
    fitted, X_for_teachers = represent(representation, X_public, seed)

    def features() -> NDArray[np.float64] | None:
        return comparable(fitted, X_public, X_for_teachers, seed)

    strategy = as_query_strategy(query_strategy, mechanism)
    compared = None
    if strategy is None:
        few = prefers_representative(n_asked, n_public)
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
    if isinstance(strategy, ClusterQueries):
        clusters = find_clusters(
            compared, n_asked, strategy.core, check_random_state(seed % MAX_SEED)
        )
        n_asked = len(clusters.medoids)
    return QueryPlan(
        X_public, X_for_teachers, n_asked, strategy, fitted, compared, clusters
    )


def represent(
    representation: BaseEstimator | None, X_public: Table, seed: int
) -> tuple[BaseEstimator | None, Table]:
    """Fit a clone of a representation on public rows, and apply it to them."""
    if representation is None:
        return None, X_public
    representation = seeded_clone(representation, seed)
    with seeded_globals(seed):
        representation.fit(deepcopy(X_public), None)  # some insist on a y
    return representation, representation.transform(deepcopy(X_public))


def comparable(
    representation: BaseEstimator | None,
    X_public: Table,
    X_for_teachers: Table,
    seed: int,
) -> NDArray[np.float64] | None:
    """Return public rows as numbers, in which rows that look alike are near.

    None for text, missing values and sparse matrices.
    """
    if representation is None:
        return standardized_features(X_public, seed)
    return numeric_features(X_for_teachers)

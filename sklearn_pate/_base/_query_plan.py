"""Which questions a fit will ask, as far as that is settled before the first vote."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sklearn_pate._base._parameters import (
    as_mechanism,
    as_query_strategy,
    prefers_representative,
    resolve_n_queries,
)
from sklearn_pate._estimators._seeding import MAX_SEED, seeded_clone, seeded_globals
from sklearn_pate.students import (
    ClusterQueries,
    Clusters,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
    find_clusters,
    numeric_features,
    standardized_features,
)

__all__ = ["Questions", "comparable", "plan_questions", "represent"]


@dataclass(frozen=True)
class Questions:
    """Everything about the questions that public rows alone decide.

    Parameters
    ----------
    n_queries : int
        How many are paid for.

    strategy : QueryStrategy
        What chooses them.

    representation : transformer or None
        Fitted on public rows.

    X_for_teachers : {ndarray, sparse matrix, dataframe} of shape (n_public, ...)
        Public rows as teachers see them.

    features : ndarray of shape (n_public, n_dimensions) or None
        Public rows as numbers, where the strategy looks at them.

    clusters : Clusters or None
        Public rows that are voted on together.
    """

    n_queries: int
    strategy: QueryStrategy
    representation: Any
    X_for_teachers: Any
    features: np.ndarray | None
    clusters: Clusters | None

    def door(self, ask):
        """Return `ask` for public rows, where votes are perhaps on clusters.

        Parameters
        ----------
        ask : callable
            Takes rows of the votes, and probabilities.

        Returns
        -------
        ask : callable
            Takes public rows, and probabilities.
        """
        if self.clusters is None:
            return ask
        of_row = self.clusters.of_row
        return lambda rows, probabilities=None: ask(of_row[rows], probabilities)


def plan_questions(pate, public, seed):
    """Settle the number of questions, the strategy, and what it looks at.

    Parameters
    ----------
    pate : PATEClassifier or PrivateKNNClassifier
        Its parameters are read.

    public : PublicInputs
        The public rows.

    seed : int
        Seeds representation and clusters.

    Returns
    -------
    questions : Questions
        A function of public rows and parameters alone.

    Raises
    ------
    ValueError
        If there are fewer public rows than questions, or the strategy cannot compare
        the public rows.
    """
    X_public, n_public = public.X_public, public.n_public
    n_queries = resolve_n_queries(pate.n_queries, n_public, pate._unfitted_student())
    representation, X_for_teachers = represent(pate.representation, X_public, seed)

    def features():
        return comparable(representation, X_public, X_for_teachers, seed)

    strategy = as_query_strategy(
        pate.query_strategy, as_mechanism(pate.mechanism, pate.release)
    )
    compared = None
    if strategy is None:
        few = prefers_representative(n_queries, n_public)
        compared = features() if few else None
        strategy = RandomQueries() if compared is None else RepresentativeQueries()
    elif strategy.needs_features:
        compared = features()
        if compared is None:
            raise ValueError(
                f"query_strategy={pate.query_strategy!r} compares public rows, which "
                "are text, sparse or have missing values here; pass representation=, "
                "a transformer that makes dense numbers of them, or use 'random'."
            )
    clusters = None
    if isinstance(strategy, ClusterQueries):
        clusters = find_clusters(
            compared, n_queries, strategy.core, check_random_state(seed % MAX_SEED)
        )
        n_queries = len(clusters.medoids)
    return Questions(
        n_queries, strategy, representation, X_for_teachers, compared, clusters
    )


def represent(representation, X_public, seed):
    """Fit a representation on public rows, and apply it to them.

    Parameters
    ----------
    representation : transformer or None
        Cloned and seeded.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    seed : int
        Seed of the representation.

    Returns
    -------
    representation : transformer or None
        Fitted.

    X_for_teachers : {ndarray, sparse matrix, dataframe} of shape (n_public, ...)
        Public rows as teachers see them.
    """
    if representation is None:
        return None, X_public
    representation = seeded_clone(representation, seed)
    with seeded_globals(seed):
        representation.fit(deepcopy(X_public), None)  # some insist on a y
    return representation, representation.transform(deepcopy(X_public))


def comparable(representation, X_public, X_for_teachers, seed):
    """Return public rows as numbers, in which rows that look alike are near.

    Parameters
    ----------
    representation : transformer or None
        What made `X_for_teachers`.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    X_for_teachers : {ndarray, sparse matrix, dataframe} of shape (n_public, ...)
        Public rows as teachers see them.

    seed : int
        Seeds the principal components.

    Returns
    -------
    features : ndarray of shape (n_public, n_dimensions) or None
        None for text, missing values and sparse matrices.
    """
    if representation is None:
        return standardized_features(X_public, seed)
    return numeric_features(X_for_teachers)

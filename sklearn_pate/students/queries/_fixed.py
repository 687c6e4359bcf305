"""Query strategies that choose all public rows before the first answer."""

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._checks import check_number
from sklearn_pate.students.queries._query_session import Clusters, QuerySession

__all__ = [
    "ClusterQueries",
    "FixedQueries",
    "QueryStrategy",
    "RandomQueries",
    "RepresentativeQueries",
    "find_clusters",
]

# Largest number of rows that k-means learns centres from.
_MOST_ROWS_CLUSTERED = 50_000


class QueryStrategy(BaseEstimator, ABC):
    """Base class of strategies that choose the public rows to query.

    A strategy uses public rows and released answers, never votes, so that its choices
    have no privacy cost. A subclass provides `query`.

    Notes
    -----
    The privacy cost is that of ``session.n_queries`` queries, whichever they are and
    however they follow from answers (Mironov 2017, "Renyi differential privacy",
    Proposition 1). A strategy that used private rows or votes would void the statement.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.students import QueryStrategy
    >>> class FirstRows(QueryStrategy):
    ...     def query(self, session):
    ...         session.query(np.arange(session.n_queries))
    >>> X, y = make_blobs(1000, centers=3, random_state=0)
    >>> pate = PATEClassifier(
    ...     GaussianNB(), n_teachers=50, n_queries=30, query_strategy=FirstRows()
    ... )
    >>> pate = pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
    >>> pate.queried_indices_[-3:]
    array([27, 28, 29])
    """

    #: Whether later queries depend on earlier answers. The publishable cost is the
    #: same; a data-dependent cost then holds for the queries made only.
    adaptive: ClassVar[bool] = False

    #: Whether queries come with the student's probabilities, as InteractiveGNMax needs.
    interactive: ClassVar[bool] = False

    #: Whether `query` uses ``session.features``.
    needs_features: ClassVar[bool] = False

    def classifiers(self, student: Any) -> tuple[Any, ...]:
        """List the classifiers of which `query` uses `predict_proba`.

        Parameters
        ----------
        student : classifier
            The student of the fit.

        Returns
        -------
        classifiers : tuple of classifiers
            Empty unless a subclass overrides it.
        """
        return ()

    def check(self) -> None:
        """Raise ValueError if a parameter is invalid; called at the start of a fit."""
        return None

    @abstractmethod
    def query(self, session: QuerySession) -> None:
        """Make all queries within the privacy cost.

        Parameters
        ----------
        session : QuerySession
            Public rows and ``query``, for ``session.n_queries`` distinct rows.
        """


class FixedQueries(QueryStrategy):
    """Strategies that choose all rows before the first answer, by `choose`."""

    @abstractmethod
    def choose(self, session: QuerySession, n_rows: int) -> NDArray[np.intp]:
        """Choose distinct public rows, in random order.

        Parameters
        ----------
        session : QuerySession
            Public rows, before the first query.

        n_rows : int
            Number of rows.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            Public rows.
        """

    def query(self, session: QuerySession) -> None:
        """Query the rows of `choose`.

        Parameters
        ----------
        session : QuerySession
            Public rows and ``query``.
        """
        session.query(self.choose(session, session.n_queries))


class RandomQueries(FixedQueries):
    """Query random public rows. The choice has no privacy cost.

    Notes
    -----
    The queries of Papernot et al. 2017, Section 4.2, and the best choice where nothing
    is known about the similarity of public rows.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.students import RandomQueries
    >>> X, y = make_blobs(1000, centers=3, random_state=0)
    >>> pate = PATEClassifier(
    ...     GaussianNB(), n_teachers=50, n_queries=30, query_strategy=RandomQueries()
    ... )
    >>> pate = pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
    >>> len(set(pate.queried_indices_.tolist()))
    30
    >>> pate.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    """

    def choose(self, session: QuerySession, n_rows: int) -> NDArray[np.intp]:
        """Choose random rows.

        Parameters
        ----------
        session : QuerySession
            Public rows.

        n_rows : int
            Number of rows.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            Distinct public rows.
        """
        return session.new_rows()[:n_rows]


class RepresentativeQueries(FixedQueries):
    """Query the medoids of as many clusters of public rows as there are queries.

    Useful for few queries, as each medoid is similar to many rows. With many queries,
    clusters are small, and some medoids are outliers. Clusters depend on public rows
    alone and have no privacy cost.

    Notes
    -----
    k-means on ``session.features``; from each cluster, the row nearest to its centre
    (Kang, Ryu, Kwon 2004, "Using cluster-based sampling to select initial training set
    for active learning in text classification").

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.students import RepresentativeQueries
    >>> X, y = make_blobs(1000, centers=3, cluster_std=0.4, random_state=0)
    >>> pate = PATEClassifier(
    ...     GaussianNB(),
    ...     n_teachers=100,
    ...     n_queries=3,
    ...     query_strategy=RepresentativeQueries(),
    ...     random_state=0,
    ... )
    >>> pate = pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
    >>> sorted(y[800:][pate.queried_indices_].tolist())  # one row of each blob
    [0, 1, 2]
    """

    needs_features: ClassVar[bool] = True

    def choose(self, session: QuerySession, n_rows: int) -> NDArray[np.intp]:
        """Choose one row of each cluster.

        Parameters
        ----------
        session : QuerySession
            Public rows.

        n_rows : int
            Number of rows, and of clusters.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            Medoids in random order, then random rows if fewer than `n_rows` differ.
        """
        found = find_clusters(session.features, n_rows, 1.0, session.random_state)
        medoids = session.random_state.permutation(found.medoids)
        others = session.new_rows()
        others = others[~np.isin(others, medoids)]
        return np.concatenate([medoids, others[: n_rows - len(medoids)]])


class ClusterQueries(QueryStrategy):
    """Query clusters of public rows, each at the privacy cost of one row.

    Each teacher votes for the class that it predicts most often for the rows in the
    core of the cluster, and all of these rows get the answer. As far as rows in a
    cluster are of one class, the plurality is larger than for a single row, and the
    student gets more labelled rows.

    Parameters
    ----------
    core : float, default=0.5
        Share of each cluster's rows, in (0, 1] and nearest to its centre, that teachers
        vote on and that get the answer. The others stay unlabelled. It has no privacy
        cost: a teacher has one vote per cluster, whatever its size.

    Notes
    -----
    k-means on ``session.features``. Sun et al. 2019, Section 3.2, "batch loss
    optimization", also use one query for many rows; there, the rows are unrelated and
    the answer is a loss.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.students import ClusterQueries
    >>> X, y = make_blobs(1000, centers=3, cluster_std=0.4, random_state=0)
    >>> pate = PATEClassifier(
    ...     GaussianNB(),
    ...     n_teachers=100,
    ...     n_queries=3,
    ...     query_strategy=ClusterQueries(core=0.8),
    ...     random_state=0,
    ... )
    >>> pate = pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
    >>> bool(pate.score(X[800:], y[800:]) > 0.95)  # three answers
    True
    """

    def __init__(self, *, core: float = 0.5) -> None:
        self.core: Any = core

    needs_features: ClassVar[bool] = True

    def check(self) -> None:
        """Raise ValueError if `core` is not in (0, 1]."""
        check_number("core", self.core, 0, 1, closed="right")

    def query(self, session: QuerySession) -> None:
        """Query every cluster.

        Parameters
        ----------
        session : QuerySession
            Public rows, ``clusters`` and ``query``.
        """
        session.query(session.clusters.medoids)


def find_clusters(
    features: NDArray[np.float64],
    n_clusters: int,
    core: float,
    random_state: np.random.RandomState,
) -> Clusters:
    """Cluster public rows by k-means, on features whose columns are on one scale.

    `core` is the share of each cluster, nearest to its centre, that belongs to it;
    other rows are in no cluster. k-means: Lloyd (1982), "Least squares quantization in
    PCM", from the start of Arthur, Vassilvitskii (2007), "k-means++: the advantages of
    careful seeding". All rows must be public: clusters that depend on private rows
    would void the privacy statement.
    """
    from sklearn.cluster import KMeans  # slow to import

    n_public = len(features)
    sample = features
    if n_public > _MOST_ROWS_CLUSTERED:
        kept = random_state.choice(
            n_public, max(_MOST_ROWS_CLUSTERED, n_clusters), replace=False
        )
        sample = features[kept]
    k_means = KMeans(n_clusters, n_init=1, random_state=random_state.randint(MAX_SEED))
    with warnings.catch_warnings():  # fewer than n_clusters rows differ
        warnings.simplefilter("ignore", ConvergenceWarning)
        k_means.fit(sample)
    nearest = k_means.predict(features)
    distances = np.linalg.norm(features - k_means.cluster_centers_[nearest], axis=1)
    _, cluster_of_row = np.unique(nearest, return_inverse=True)  # without empty ones

    by_distance = np.lexsort((distances, cluster_of_row))
    sizes = np.bincount(cluster_of_row)
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(n_public, dtype=np.intp)
    rank[by_distance] = np.arange(n_public) - np.repeat(starts, sizes)
    in_core = rank < np.ceil(core * sizes)[cluster_of_row]
    return Clusters(
        of_row=np.where(in_core, cluster_of_row, -1), medoids=by_distance[starts]
    )

"""Which public rows to ask about: choices made before anything is asked."""

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate.students.queries._query_session import Clusters, QuerySession

__all__ = [
    "ClusterQueries",
    "FixedQueries",
    "QueryStrategy",
    "RandomQueries",
    "RepresentativeQueries",
    "find_clusters",
]

# k-means looks at so many rows at most; the rows that are asked about come from all.
_MOST_ROWS_CLUSTERED = 50_000


class QueryStrategy(BaseEstimator, ABC):
    """Chooses the public rows to ask about.

    It sees public rows and paid answers, never votes, so that its choices cost nothing.
    A subclass provides `query`; parameters are set and read as in scikit-learn.

    Notes
    -----
    The cost is that of ``session.n_queries`` queries, whichever they are and however
    they follow from answers (Mironov 2017, "Renyi differential privacy", Proposition
    1). A strategy that looked at private rows or votes would void the statement.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.students import QueryStrategy
    >>> class FirstRows(QueryStrategy):
    ...     def query(self, session):
    ...         session.ask(np.arange(session.n_queries))
    >>> X, y = make_blobs(1000, centers=3, random_state=0)
    >>> pate = PATEClassifier(
    ...     GaussianNB(), n_teachers=50, n_queries=30, query_strategy=FirstRows()
    ... )
    >>> pate = pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
    >>> pate.queried_indices_[-3:]
    array([27, 28, 29])
    """

    #: Whether later queries depend on earlier answers. The publishable cost does not
    #: mind; what the votes themselves say about the cost then holds along the
    #: queries that were asked only.
    adaptive: ClassVar[bool] = False

    #: Whether it asks with the student's probabilities, as InteractiveGNMax must be.
    interactive: ClassVar[bool] = False

    @property
    def needs_features(self) -> bool:
        """Whether it looks at ``session.features``.

        Returns
        -------
        needs_features : bool
            False unless a subclass says otherwise.
        """
        return False

    def classifiers(self, student: Any) -> tuple[Any, ...]:
        """List the classifiers whose `predict_proba` it will use.

        Parameters
        ----------
        student : classifier
            The student of the fit.

        Returns
        -------
        classifiers : tuple of classifiers
            Empty unless a subclass says otherwise.
        """
        return ()

    def check(self) -> None:
        """Raise ValueError if a parameter cannot work, before anything is done."""
        return None

    @abstractmethod
    def query(self, session: QuerySession) -> None:
        """Ask all queries that are paid for.

        Parameters
        ----------
        session : QuerySession
            Public rows, and ``ask``; ``session.n_queries`` queries are paid for, and
            each row may be asked about once.
        """


class FixedQueries(QueryStrategy):
    """Chooses all rows before the first answer. A subclass provides `choose`."""

    @abstractmethod
    def choose(self, session: QuerySession, n_rows: int) -> NDArray[np.intp]:
        """Choose public rows.

        Parameters
        ----------
        session : QuerySession
            Public rows; nothing was asked yet.

        n_rows : int
            How many.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            Distinct, in random order.
        """

    def query(self, session: QuerySession) -> None:
        """Ask about the rows of `choose`.

        Parameters
        ----------
        session : QuerySession
            Public rows, and ``ask``.
        """
        session.ask(self.choose(session, session.n_queries))


class RandomQueries(FixedQueries):
    """Public rows at random, chosen before any answer. It costs no privacy.

    Notes
    -----
    The queries of Papernot et al. 2017, Section 4.2, and the right ones to ask where
    nothing is known about what public rows have in common.

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
            How many.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            Distinct.
        """
        return session.new_rows()[:n_rows]


class RepresentativeQueries(FixedQueries):
    """The medoids of as many clusters of public rows as there are queries.

    Each typical row speaks for those around it: the better choice where queries are
    few. With many queries clusters are small, and outliers are among their medoids.
    Clusters are made of public rows alone, before any answer, and cost no privacy.

    Notes
    -----
    k-means in ``session.features``, see :func:`find_clusters`; of each cluster, the row
    nearest to its centre (Kang, Ryu, Kwon 2004, "Using cluster-based sampling to select
    initial training set for active learning in text classification").

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

    @property
    def needs_features(self) -> bool:
        """Whether it looks at ``session.features``.

        Returns
        -------
        needs_features : bool
            True.
        """
        return True

    def choose(self, session: QuerySession, n_rows: int) -> NDArray[np.intp]:
        """Choose one row of each cluster.

        Parameters
        ----------
        session : QuerySession
            Public rows.

        n_rows : int
            How many, and the number of clusters.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            Medoids in random order; random rows where fewer than `n_rows` rows differ.
        """
        found = find_clusters(session.features, n_rows, 1.0, session.random_state)
        medoids = session.random_state.permutation(found.medoids)
        others = session.new_rows()
        others = others[~np.isin(others, medoids)]
        return np.concatenate([medoids, others[: n_rows - len(medoids)]])


class ClusterQueries(QueryStrategy):
    """One query a cluster of public rows, at the cost of one row.

    Each teacher's vote is what it says most often about the rows in the core of the
    cluster, and all of them get the answer. That is a clearer vote than the one on a
    single row, and more labelled rows for the student, as far as rows in a cluster are
    of one class.

    Parameters
    ----------
    core : float, default=0.5
        The share of each cluster's rows, nearest to its centre, that are voted on and
        get the answer. The others stay unlabelled. It costs no privacy: a teacher has
        one vote a cluster, whatever its size.

    Notes
    -----
    k-means of public rows, see :func:`find_clusters`. One query for many rows is an
    idea of Sun et al. 2019, Section 3.2, "batch loss optimization", where the rows have
    nothing in common and the answer is a loss.

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

    @property
    def needs_features(self) -> bool:
        """Whether it looks at ``session.features``.

        Returns
        -------
        needs_features : bool
            True.
        """
        return True

    def check(self) -> None:
        """Raise ValueError if `core` is no share."""
        if not isinstance(self.core, (int, float)) or not 0 < self.core <= 1:
            raise ValueError(
                f"core={self.core!r} must be a share above 0 and at most 1, such as "
                "0.5."
            )

    def query(self, session: QuerySession) -> None:
        """Ask about every cluster.

        Parameters
        ----------
        session : QuerySession
            With clusters.
        """
        session.ask(session.clusters.medoids)


def find_clusters(features, n_clusters, core, random_state):
    """Cluster public rows by k-means.

    It costs no privacy, as it sees public rows alone. Clusters that private rows had a
    part in would void the statement.

    Parameters
    ----------
    features : ndarray of shape (n_public, n_dimensions)
        Public rows as numbers, columns on one scale.

    n_clusters : int
        Number of clusters; fewer are found where fewer rows differ.

    core : float
        The share of each cluster that belongs to its core, above 0 and at most 1.

    random_state : RandomState
        Seeds k-means. It may be known to anyone.

    Returns
    -------
    clusters : Clusters
        In the order of k-means. Rows outside the cores are in none.

    Raises
    ------
    ValueError
        If there are fewer rows than clusters, or features are not finite.

    Notes
    -----
    Lloyd (1982), "Least squares quantization in PCM", from the start of Arthur,
    Vassilvitskii (2007), "k-means++: the advantages of careful seeding". Beyond 50,000
    rows, centres are those of a random sample.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.students.queries._fixed import find_clusters
    >>> features = np.array([[0.0], [0.1], [0.3], [5.0], [5.1], [5.2], [5.6]])
    >>> clusters = find_clusters(features, 2, 0.5, np.random.RandomState(0))
    >>> clusters.of_row
    array([ 1,  1, -1, -1,  0,  0, -1])
    >>> clusters.medoids
    array([5, 1])
    """
    n_public = len(features)
    sample = features
    if n_public > _MOST_ROWS_CLUSTERED:
        kept = random_state.choice(
            n_public, max(_MOST_ROWS_CLUSTERED, n_clusters), replace=False
        )
        sample = features[kept]
    k_means = KMeans(n_clusters, n_init=1, random_state=random_state.randint(MAX_SEED))
    with warnings.catch_warnings():  # fewer rows differ than clusters were asked for
        warnings.simplefilter("ignore", ConvergenceWarning)
        k_means.fit(sample)
    nearest = k_means.predict(features)
    distances = np.linalg.norm(features - k_means.cluster_centers_[nearest], axis=1)
    _, cluster_of_row = np.unique(nearest, return_inverse=True)  # no empty ones

    by_distance = np.lexsort((distances, cluster_of_row))
    sizes = np.bincount(cluster_of_row)
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(n_public, dtype=np.intp)
    rank[by_distance] = np.arange(n_public) - np.repeat(starts, sizes)
    in_core = rank < np.ceil(core * sizes)[cluster_of_row]
    return Clusters(
        of_row=np.where(in_core, cluster_of_row, -1), medoids=by_distance[starts]
    )

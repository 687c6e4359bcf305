"""State of a query strategy: public rows, queries and answers so far."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_pate._estimators._class_codes import in_all_classes
from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._labels import UNLABELED
from sklearn_pate.students._train_student import train_student

__all__ = ["Clusters", "QuerySession"]


@dataclass(frozen=True)
class Clusters:
    """Clusters of public rows; teachers vote on each cluster as a whole.

    A vote on a cluster has the privacy cost of a vote on a row, see
    :class:`~sklearn_pate.Votes`, if the clusters depend on public rows alone.

    Parameters
    ----------
    of_row : ndarray of int of shape (n_public,)
        Cluster of each public row; -1 for none.

    medoids : ndarray of int of shape (n_clusters,)
        Public row that represents each cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.students import Clusters
    >>> clusters = Clusters(np.array([0, 0, 1, -1, 1]), medoids=np.array([0, 2]))
    >>> clusters.spread(rows=np.array([2]), answers=np.array([7]))
    (array([2, 4]), array([7, 7]))
    """

    of_row: NDArray[np.intp]
    medoids: NDArray[np.intp]

    def spread(
        self, rows: NDArray[np.intp], answers: NDArray[Any]
    ) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Give the answer to each queried cluster to all its rows.

        Parameters
        ----------
        rows : ndarray of int of shape (n_queried,)
            Queried public rows, one of each cluster.

        answers : ndarray of shape (n_queried,) or (n_queried, n_classes)
            Answers to them.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            All rows of these clusters.

        answers : ndarray of shape (n_rows,) or (n_rows, n_classes)
            Answer for each of these rows.
        """
        answer_of_cluster = np.full(len(self.medoids), -1)
        answer_of_cluster[self.of_row[rows]] = np.arange(len(rows))
        of_row = np.where(self.of_row < 0, -1, answer_of_cluster[self.of_row])
        rows = np.flatnonzero(of_row >= 0)
        return rows, answers[of_row[rows]]


class QuerySession:
    """Queries on public rows and their answers so far; nothing in it is sensitive.

    A query strategy gets this object only, so that its choices have no privacy cost.

    Parameters
    ----------
    answer : callable
        Takes public rows, an array of int of shape (n_rows,), and `probabilities` of
        shape (n_rows, n_classes) or None; returns class indices, -1 for no answer. Its
        privacy cost must be recorded: pass :meth:`Oracle.answer
        <sklearn_pate.mechanisms.Oracle.answer>`.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    student : classifier
        Student of the fit; cloned.

    n_classes : int
        Number of classes.

    n_queries : int
        Number of queries within the privacy cost. The Oracle refuses more.

    seed : int
        Seed of all choices. It may be public.

    features : ndarray of shape (n_public, n_dimensions) or None
        Numeric features in which similar public rows are near each other, learned from
        public rows alone. None if the strategy does not need them.

    clusters : Clusters or None
        Clusters of public rows.

    Attributes
    ----------
    random_state : RandomState
        Generator for the choices of a strategy.

    queried : ndarray of int of shape (n_queried,)
        Public rows queried so far, in this order.

    answers : ndarray of int of shape (n_queried,)
        Answers to them.

    Notes
    -----
    Queries may depend on earlier answers: worst-case Renyi costs add up all the same
    (Mironov 2017, "Renyi differential privacy", Proposition 1), and the ledger charges
    the cost of all `n_queries`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import Votes
    >>> from sklearn_pate.mechanisms import GNMax, Oracle
    >>> from sklearn_pate.students import QuerySession
    >>> X_public = np.arange(6.0)[:, np.newaxis]
    >>> votes = Votes(100 * [np.array([0, 0, 0, 1, 1, 1])], n_public=6, n_classes=2)
    >>> oracle = Oracle(votes, GNMax(sigma=5), n_queries=4)
    >>> session = QuerySession(
    ...     oracle.answer,
    ...     X_public,
    ...     LogisticRegression(),
    ...     n_classes=2,
    ...     n_queries=4,
    ...     seed=0,
    ... )
    >>> session.query([0, 5])
    array([0, 1])
    >>> confidence = session.probabilities().max(axis=1)
    >>> session.query(np.argsort(confidence)[:2])  # the least confident
    array([0, 1])
    >>> session.queried
    array([0, 5, 2, 3])
    """

    def __init__(
        self,
        answer: Callable[..., NDArray[np.intp]],
        X_public: Any,
        student: Any,
        *,
        n_classes: int,
        n_queries: int,
        seed: int,
        features: NDArray[np.float64] | None = None,
        clusters: Clusters | None = None,
    ) -> None:
        self._answer = answer
        # Not None for a strategy that needs them.
        self.features: Any = features
        self.clusters: Any = clusters
        self.X_public = X_public
        self.student = student
        self.n_classes = n_classes
        self.n_queries = n_queries
        self.random_state = check_random_state(seed)
        self.queried = np.empty(0, dtype=np.intp)
        self.answers = np.empty(0, dtype=np.intp)

    @property
    def n_public(self) -> int:
        """Number of public rows."""
        return self.X_public.shape[0]

    def query(
        self, rows: ArrayLike, probabilities: NDArray[np.floating] | None = None
    ) -> NDArray[np.intp]:
        """Query public rows that were not queried before.

        Parameters
        ----------
        rows : array-like of int of shape (n_rows,)
            Distinct public rows.

        probabilities : ndarray of shape (n_rows, n_classes), default=None
            Class probabilities by the student, for an interactive mechanism.

        Returns
        -------
        answers : ndarray of int of shape (n_rows,)
            Class indices, -1 for no answer.

        Raises
        ------
        ValueError
            If a row is repeated or was queried before; then no row is queried.

        Exception
            Any exception of `answer`, such as
            :class:`~sklearn_pate.BudgetExceededError`; then no answer is kept.
        """
        rows = np.asarray(rows, dtype=np.intp)
        queried = np.concatenate([self.queried, rows])
        if len(np.unique(queried)) < len(queried):
            raise ValueError(
                "A query strategy queried a public row twice, which gives no new "
                "information; query session.new_rows()."
            )
        answers = self._answer(rows, probabilities)
        self.queried = queried
        self.answers = np.concatenate([self.answers, answers])
        return answers

    def new_rows(self) -> NDArray[np.intp]:
        """Return the public rows that were not queried yet, in random order.

        Returns
        -------
        rows : ndarray of int of shape (n_new,)
            Public rows.
        """
        is_new = np.ones(self.n_public, dtype=bool)
        is_new[self.queried] = False
        return self.random_state.permutation(np.flatnonzero(is_new))

    def probabilities(self, student: Any = None) -> NDArray[np.floating]:
        """Predict class probabilities of the public rows from the answers so far.

        Parameters
        ----------
        student : classifier, default=None
            Classifier with `predict_proba`, cloned and trained on the answers so far.
            None means the student of the fit.

        Returns
        -------
        probabilities : ndarray of shape (n_public, n_classes)
            All equal while the answers hold fewer than two classes.
        """
        if len(np.unique(self.answers[self.answers != UNLABELED])) < 2:
            return np.full((self.n_public, self.n_classes), 1 / self.n_classes)
        trained = train_student(
            self.student if student is None else student,
            self.X_public,
            self.queried,
            self.answers,
            n_classes=self.n_classes,
            seed=self.random_state.randint(MAX_SEED),
        )
        return in_all_classes(
            trained.predict_proba(self.X_public), trained, self.n_classes, absent=0.0
        )

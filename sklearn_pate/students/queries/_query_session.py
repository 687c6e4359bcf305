"""What a query strategy has in hand: public rows, the door, and what it learned."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sklearn_pate._estimators._class_codes import in_all_classes
from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._labels import UNLABELED
from sklearn_pate.students._train_student import train_student

__all__ = ["Clusters", "QuerySession"]


@dataclass(frozen=True)
class Clusters:
    """Public rows that are voted on together.

    A cluster costs what a row costs, see :class:`~sklearn_pate.Votes`, as long as
    clusters are made of public rows alone.

    Parameters
    ----------
    of_row : ndarray of int of shape (n_public,)
        The cluster of each public row; -1 for none.

    medoids : ndarray of int of shape (n_clusters,)
        The row that stands for each cluster.

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

    def spread(self, rows, answers):
        """Hand the answers about clusters to all their rows.

        Parameters
        ----------
        rows : ndarray of int of shape (n_asked,)
            Public rows that were asked about, one a cluster.

        answers : ndarray of shape (n_asked,) or (n_asked, n_classes)
            What was answered.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            All rows of these clusters.

        answers : ndarray of shape (n_rows,) or (n_rows, n_classes)
            An answer to each.
        """
        place = np.full(len(self.medoids), -1)
        place[self.of_row[rows]] = np.arange(len(rows))
        place_of_row = np.where(self.of_row < 0, -1, place[self.of_row])
        rows = np.flatnonzero(place_of_row >= 0)
        return rows, answers[place_of_row[rows]]


class QuerySession:
    """Queries about public rows, and the answers so far. Holds nothing sensitive.

    A query strategy sees this and nothing else, so that its choices cost no privacy.

    Parameters
    ----------
    ask : callable
        Takes public rows, an array of int of shape (n_rows,), and `probabilities` of
        shape (n_rows, n_classes) or None; gives class indices, -1 for no answer.
        Everything it gives must be paid for: pass :meth:`Oracle.ask
        <sklearn_pate.mechanisms.Oracle.ask>`.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    student : classifier
        Whoever is to learn from the answers; cloned.

    n_classes : int
        Number of classes.

    n_queries : int
        How many queries are paid for. It is the Oracle that refuses more.

    seed : int
        Seed of all choices. It may be known to anyone.

    features : ndarray of shape (n_public, n_dimensions) or None
        Public rows as numbers, such that rows that look alike are near. Learned from
        public rows alone. None where nobody asked for them.

    clusters : Clusters or None
        Public rows that are voted on together.

    Attributes
    ----------
    random_state : RandomState
        For the choices of a strategy.

    queried : ndarray of int of shape (n_asked,)
        Rows that were asked about so far, in this order.

    answers : ndarray of int of shape (n_asked,)
        Answers to them.

    Notes
    -----
    Queries may follow from answers: worst-case Renyi costs add up all the same
    (Mironov 2017, "Renyi differential privacy", Proposition 1), and the cost of all
    `n_queries` is charged however they are chosen.

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
    ...     oracle.ask, X_public, LogisticRegression(), n_classes=2, n_queries=4, seed=0
    ... )
    >>> session.ask([0, 5])
    array([0, 1])
    >>> sureness = session.probabilities().max(axis=1)
    >>> session.ask(np.argsort(sureness)[:2])  # where the student is least sure
    array([0, 1])
    >>> session.queried
    array([0, 5, 2, 3])
    """

    def __init__(
        self,
        ask,
        X_public,
        student,
        *,
        n_classes,
        n_queries,
        seed,
        features=None,
        clusters=None,
    ):
        self._ask = ask
        self.features = features
        self.clusters = clusters
        self.X_public = X_public
        self.student = student
        self.n_classes = n_classes
        self.n_queries = n_queries
        self.random_state = check_random_state(seed)
        self.queried = np.empty(0, dtype=np.intp)
        self.answers = np.empty(0, dtype=np.intp)

    @property
    def n_public(self):
        """Number of public rows."""
        return self.X_public.shape[0]

    def ask(self, rows, probabilities=None):
        """Ask about public rows, each of which must be new.

        Parameters
        ----------
        rows : ndarray of int of shape (n_rows,)
            Distinct public rows.

        probabilities : ndarray of shape (n_rows, n_classes), default=None
            What the student thinks of them, for an interactive mechanism.

        Returns
        -------
        answers : ndarray of int of shape (n_rows,)
            Class indices, -1 for no answer.

        Raises
        ------
        ValueError
            If a row is repeated, or was asked about before; then none is asked.

        Exception
            Whatever `ask` raises, such as
            :class:`~sklearn_pate.BudgetExceededError`; then none is kept.
        """
        rows = np.asarray(rows, dtype=np.intp)
        if len(np.unique(np.concatenate([self.queried, rows]))) < len(
            self.queried
        ) + len(rows):
            raise ValueError(
                "A query strategy asked about a public row twice, which would tell "
                "nothing new; ask about session.new_rows()."
            )
        answers = self._ask(rows, probabilities)
        self.queried = np.concatenate([self.queried, rows])
        self.answers = np.concatenate([self.answers, answers])
        return answers

    def new_rows(self):
        """Return the public rows that were not asked about yet.

        Returns
        -------
        rows : ndarray of int of shape (n_new,)
            In random order.
        """
        asked = np.zeros(self.n_public, dtype=bool)
        asked[self.queried] = True
        return self.random_state.permutation(np.flatnonzero(~asked))

    def probabilities(self, student=None):
        """Predict the public rows by a student of the answers so far.

        Parameters
        ----------
        student : classifier, default=None
            Cloned, and trained on the answers so far; None means the session's own. It
            needs `predict_proba`.

        Returns
        -------
        probabilities : ndarray of shape (n_public, n_classes)
            All alike while the answers hold fewer than two classes.
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

"""Which public rows to ask about: choices that follow the answers so far."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from sklearn_pate.students.queries._fixed import (
    FixedQueries,
    QueryStrategy,
    RandomQueries,
)
from sklearn_pate.students.queries._query_session import QuerySession

__all__ = ["ExpertQueries", "InteractiveQueries", "UncertaintyQueries"]


class AdaptiveQueries(QueryStrategy):
    """Asks in rounds, and chooses each round by what was answered before."""

    adaptive: ClassVar[bool] = True

    first: Any
    n_rounds: Any

    @property
    def needs_features(self) -> bool:
        """Whether it looks at ``session.features``.

        Returns
        -------
        needs_features : bool
            That of `first`.
        """
        return self._first().needs_features

    def check(self) -> None:
        """Raise ValueError if a parameter cannot work."""
        if (
            isinstance(self.n_rounds, bool)
            or not isinstance(self.n_rounds, Integral)
            or self.n_rounds < 1
        ):
            raise ValueError(
                f"n_rounds={self.n_rounds!r} of {type(self).__name__} must be an "
                "integer of at least 1."
            )
        if not isinstance(self._first(), FixedQueries):
            raise ValueError(
                f"first={self.first!r} of {type(self).__name__} must choose its rows "
                "before any answer; use RandomQueries() or RepresentativeQueries()."
            )

    def _first(self):
        return RandomQueries() if self.first is None else self.first

    def _round_sizes(self, session):
        rounds = np.array_split(np.arange(session.n_queries), self.n_rounds)
        return [len(one) for one in rounds if len(one)]


class UncertaintyQueries(AdaptiveQueries):
    """Where the student of the answers so far is least sure: "unconfident first".

    It follows from paid answers and sees no vote: no parameter costs any privacy.

    Parameters
    ----------
    n_rounds : int, default=5
        The queries are asked in so many rounds of equal size; the student is trained
        anew before each but the first.

    first : RandomQueries or RepresentativeQueries, default=None
        Chooses the rows of the first round. None means RandomQueries().

    student : classifier, default=None
        Whose probabilities count. None means the student of the fit; a quicker one
        serves as well where that one is slow.

    Notes
    -----
    Papernot et al. 2017, Appendix B.2: rows in order of increasing maximum class
    probability.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.students import UncertaintyQueries
    >>> X, y = make_blobs(1000, centers=3, random_state=0)
    >>> pate = PATEClassifier(GaussianNB(), n_teachers=50, n_queries=30)
    >>> pate = pate.set_params(query_strategy=UncertaintyQueries(n_rounds=3))
    >>> pate = pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
    >>> pate.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    """

    def __init__(
        self,
        *,
        n_rounds: int = 5,
        first: FixedQueries | None = None,
        student: Any = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.first = first
        self.student = student

    def classifiers(self, student: Any) -> tuple[Any, ...]:
        """List the classifiers whose `predict_proba` it will use.

        Parameters
        ----------
        student : classifier
            The student of the fit.

        Returns
        -------
        classifiers : tuple of classifiers
            Whoever is asked how sure it is.
        """
        return (student if self.student is None else self.student,)

    def query(self, session: QuerySession) -> None:
        """Ask in rounds.

        Parameters
        ----------
        session : QuerySession
            Public rows, and ``ask``.
        """
        first, *later = self._round_sizes(session)
        session.ask(self._first().choose(session, first))
        for n_rows in later:
            sureness = session.probabilities(self.student).max(axis=1)
            session.ask(_smallest(sureness, session.new_rows(), n_rows))


class ExpertQueries(AdaptiveQueries):
    """Where binary experts, one a class, disagree: none is sure, several claim the row.

    Experts learn from paid answers and see no vote: no parameter costs any privacy.

    Parameters
    ----------
    n_rounds : int, default=5
        The queries are asked in so many rounds of equal size; the experts are trained
        anew before each but the first.

    first : RandomQueries or RepresentativeQueries, default=None
        Chooses the rows of the first round. None means RandomQueries().

    expert : classifier, default=None
        Cloned for each class, and trained to tell it from all others. None means the
        student of the fit. It is trained on answered rows only.

    confident : float, default=0.9
        No expert may give a row more than this probability.

    doubtful : float, default=0.1
        At least `n_doubtful` experts must give it more than this one.

    n_doubtful : int, default=2
        How many classes must be in query.

    Notes
    -----
    Papernot et al. 2017, Appendix B.2, where `n_doubtful` is 4 others besides the
    candidate. Rows that fulfil both conditions are asked about at random; where they
    are too few, those whose best expert is least sure follow.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.students import ExpertQueries
    >>> X, y = make_blobs(1000, centers=3, random_state=0)
    >>> pate = PATEClassifier(GaussianNB(), n_teachers=50, n_queries=30)
    >>> pate = pate.set_params(query_strategy=ExpertQueries(n_rounds=3))
    >>> pate = pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
    >>> pate.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    """

    def __init__(
        self,
        *,
        n_rounds: int = 5,
        first: FixedQueries | None = None,
        expert: Any = None,
        confident: float = 0.9,
        doubtful: float = 0.1,
        n_doubtful: int = 2,
    ) -> None:
        self.n_rounds = n_rounds
        self.first = first
        self.expert = expert
        self.confident = confident
        self.doubtful = doubtful
        self.n_doubtful = n_doubtful

    def check(self) -> None:
        """Raise ValueError if a parameter cannot work."""
        super().check()
        for name in ("confident", "doubtful"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise ValueError(
                    f"{name}={value!r} of ExpertQueries must be a probability."
                )

    def classifiers(self, student: Any) -> tuple[Any, ...]:
        """List the classifiers whose `predict_proba` it will use.

        Parameters
        ----------
        student : classifier
            The student of the fit.

        Returns
        -------
        classifiers : tuple of classifiers
            The expert.
        """
        return (student if self.expert is None else self.expert,)

    def query(self, session: QuerySession) -> None:
        """Ask in rounds.

        Parameters
        ----------
        session : QuerySession
            Public rows, and ``ask``.
        """
        first, *later = self._round_sizes(session)
        session.ask(self._first().choose(session, first))
        experts = OneExpertPerClass(
            session.student if self.expert is None else self.expert
        )
        for n_rows in later:
            scores = session.probabilities(experts)
            best = scores.max(axis=1)
            in_question = (best <= self.confident) & (
                np.count_nonzero(scores > self.doubtful, axis=1) >= self.n_doubtful
            )
            # Those in query first, in the random order of the new rows.
            session.ask(
                _smallest(np.where(in_question, -1.0, best), session.new_rows(), n_rows)
            )


class OneExpertPerClass(ClassifierMixin, BaseEstimator):
    """A binary classifier for each class, whose probabilities need not add up to one.

    scikit-learn's OneVsRestClassifier normalizes them, which hides that nobody is sure.

    Parameters
    ----------
    expert : classifier
        Cloned for each class.

    Attributes
    ----------
    classes_ : ndarray of int of shape (n_seen,)
        The class indices that were answered.

    experts_ : list of classifiers
        One for each.
    """

    def __init__(self, expert):
        self.expert = expert

    def fit(self, X, y):
        """Fit one expert a class.

        Parameters
        ----------
        X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
            Answered rows.

        y : ndarray of int of shape (n_rows,)
            Class indices, at least two.

        Returns
        -------
        self : OneExpertPerClass
            Fitted.
        """
        self.classes_ = np.unique(y)
        self.experts_ = [
            clone(self.expert).fit(X, (y == one).astype(np.int64))
            for one in self.classes_
        ]
        return self

    def predict_proba(self, X):
        """Return each expert's probability that a row is of its class.

        Parameters
        ----------
        X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_seen)
            Rows do not add up to one.
        """
        return np.column_stack(
            [expert.predict_proba(X)[:, 1] for expert in self.experts_]
        )


class InteractiveQueries(AdaptiveQueries):
    """With the student's own opinion, as the interactive mechanism is asked.

    It goes with :class:`~sklearn_pate.mechanisms.InteractiveGNMax`. Where the teachers
    do not contradict a student that is sure, its own opinion is the answer, which does
    not count against `max_answers`. In the first round the student has none, and all
    classes are alike to it. It has seen paid answers only: no parameter here costs any
    privacy.

    Parameters
    ----------
    n_rounds : int, default=5
        The queries are asked in so many rounds of equal size; the student is trained
        anew before each but the first.

    first : RandomQueries or RepresentativeQueries, default=None
        Chooses the rows of all rounds. None means RandomQueries().

    student : classifier, default=None
        Whose opinion it is. None means the student of the fit.

    Notes
    -----
    Papernot et al. 2018, Algorithm 2.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> from sklearn_pate.students import InteractiveQueries
    >>> X, y = make_blobs(1000, centers=3, random_state=0)
    >>> asks = {"mechanism": "interactive", "query_strategy": InteractiveQueries()}
    >>> pate = PATEClassifier(GaussianNB(), n_teachers=50, n_queries=30, **asks)
    >>> pate = pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
    >>> pate.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    """

    interactive: ClassVar[bool] = True

    def __init__(
        self,
        *,
        n_rounds: int = 5,
        first: FixedQueries | None = None,
        student: Any = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.first = first
        self.student = student

    def classifiers(self, student: Any) -> tuple[Any, ...]:
        """List the classifiers whose `predict_proba` it will use.

        Parameters
        ----------
        student : classifier
            The student of the fit.

        Returns
        -------
        classifiers : tuple of classifiers
            Whoever has the opinion.
        """
        return (student if self.student is None else self.student,)

    def query(self, session: QuerySession) -> None:
        """Ask in rounds.

        Parameters
        ----------
        session : QuerySession
            Public rows, and ``ask``.
        """
        rows = self._first().choose(session, session.n_queries)
        ends = np.cumsum(self._round_sizes(session))
        for some in np.split(rows, ends[:-1]):
            session.ask(some, session.probabilities(self.student)[some])


def _smallest(values, rows, n_rows):
    """Return the rows with the smallest values; equal ones in the order of `rows`."""
    return rows[np.argsort(values[rows], kind="stable")[:n_rows]]

"""Query strategies that choose public rows in rounds, by the answers so far."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from sklearn_pate._inputs._checks import check_number
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.students.queries._fixed import (
    FixedQueries,
    QueryStrategy,
    RandomQueries,
)
from sklearn_pate.students.queries._query_session import QuerySession

__all__ = ["ExpertQueries", "InteractiveQueries", "UncertaintyQueries"]


class AdaptiveQueries(QueryStrategy):
    """Strategies that query in rounds, each chosen by the answers before it."""

    adaptive: ClassVar[bool] = True

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

    @property
    def needs_features(self) -> bool:  # type: ignore[override]
        """Whether `first` uses ``session.features``."""
        return self._first().needs_features

    def classifiers(self, student: Any) -> tuple[Any, ...]:
        """List the classifiers of which `query` uses `predict_proba`.

        Parameters
        ----------
        student : classifier
            The student of the fit.

        Returns
        -------
        classifiers : tuple of classifiers
            One classifier.
        """
        return (student if self.student is None else self.student,)

    def check(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        check_count("n_rounds", self.n_rounds)
        if not isinstance(self._first(), FixedQueries):
            raise ValueError(
                f"first={self.first!r} of {type(self).__name__} must choose its rows "
                "before any answer; use RandomQueries() or RepresentativeQueries()."
            )

    def _first(self) -> Any:
        return RandomQueries() if self.first is None else self.first

    def _round_sizes(self, session: QuerySession) -> list[int]:
        rounds = np.array_split(np.arange(session.n_queries), self.n_rounds)
        return [len(one) for one in rounds if len(one)]


class UncertaintyQueries(AdaptiveQueries):
    """Query the rows on which the student of the answers so far is least confident.

    It uses released answers and no votes: no parameter has a privacy cost.

    Parameters
    ----------
    n_rounds : int, default=5
        Number of rounds of equal size; the student is trained before each round but
        the first.

    first : RandomQueries or RepresentativeQueries, default=None
        Chooses the rows of the first round. None means RandomQueries().

    student : classifier, default=None
        Classifier that predicts the class probabilities. None means the student of the
        fit; a faster one may replace it.

    Notes
    -----
    "Unconfident first" of Papernot et al. 2017, Appendix B.2: rows in order of
    increasing maximum class probability.

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

    def query(self, session: QuerySession) -> None:
        """Query in rounds.

        Parameters
        ----------
        session : QuerySession
            Public rows and ``query``.
        """
        first, *later = self._round_sizes(session)
        session.query(self._first().choose(session, first))
        for n_rows in later:
            confidence = session.probabilities(self.student).max(axis=1)
            session.query(_smallest(confidence, session.new_rows(), n_rows))


class ExpertQueries(AdaptiveQueries):
    """Query the rows on which binary experts, one for each class, disagree.

    No expert is confident, and several find their class possible. Experts learn from
    released answers and no votes: no parameter has a privacy cost.

    Parameters
    ----------
    n_rounds : int, default=5
        Number of rounds of equal size; the experts are trained before each round but
        the first.

    first : RandomQueries or RepresentativeQueries, default=None
        Chooses the rows of the first round. None means RandomQueries().

    expert : classifier, default=None
        Cloned for each class, and trained on answered rows to distinguish it from all
        others. None means the student of the fit.

    confident : float, default=0.9
        No expert may give a row more than this probability.

    doubtful : float, default=0.1
        At least `n_doubtful` experts must give the row more than this probability.

    n_doubtful : int, default=2
        Number of experts that must exceed `doubtful`.

    Notes
    -----
    Papernot et al. 2017, Appendix B.2, where `n_doubtful` is 4 others besides the
    candidate. Rows that fulfil both conditions are queried in random order; if they are
    too few, rows whose most confident expert is least confident follow.

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
        """Raise ValueError if a parameter is invalid."""
        super().check()
        check_number("confident", self.confident, 0, 1)
        check_number("doubtful", self.doubtful, 0, 1)
        check_count("n_doubtful", self.n_doubtful)

    def classifiers(self, student: Any) -> tuple[Any, ...]:
        """List the classifiers of which `query` uses `predict_proba`.

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
        """Query in rounds.

        Parameters
        ----------
        session : QuerySession
            Public rows and ``query``.
        """
        first, *later = self._round_sizes(session)
        session.query(self._first().choose(session, first))
        experts = OneExpertPerClass(
            session.student if self.expert is None else self.expert
        )
        for n_rows in later:
            scores = session.probabilities(experts)
            best = scores.max(axis=1)
            is_disputed = (best <= self.confident) & (
                np.count_nonzero(scores > self.doubtful, axis=1) >= self.n_doubtful
            )
            # Disputed rows first, in the random order of the new rows.
            session.query(
                _smallest(np.where(is_disputed, -1.0, best), session.new_rows(), n_rows)
            )


class OneExpertPerClass(ClassifierMixin, BaseEstimator):
    """A binary classifier for each class; probabilities of a row need not sum to 1.

    scikit-learn's OneVsRestClassifier normalises them, which hides that no expert is
    confident.
    """

    def __init__(self, expert: Any) -> None:
        self.expert = expert

    def fit(self, X: Any, y: NDArray[np.intp]) -> Self:
        """Fit one expert for each class index in y."""
        self.classes_ = np.unique(y)
        self.experts_ = [
            clone(self.expert).fit(X, (y == one).astype(np.int64))
            for one in self.classes_
        ]
        return self

    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Return each expert's probability that a row is of its class."""
        return np.column_stack(
            [expert.predict_proba(X)[:, 1] for expert in self.experts_]
        )


class InteractiveQueries(AdaptiveQueries):
    """Query with the student's class probabilities, for the interactive mechanism.

    For :class:`~sklearn_pate.mechanisms.InteractiveGNMax`. Where the teachers do not
    contradict a confident student, its prediction is the answer, which does not count
    against `max_answers`. In the first round, all classes have equal probabilities. The
    student is trained on released answers only: no parameter has a privacy cost.

    Parameters
    ----------
    n_rounds : int, default=5
        Number of rounds of equal size; the student is trained before each round but
        the first.

    first : RandomQueries or RepresentativeQueries, default=None
        Chooses the rows of all rounds. None means RandomQueries().

    student : classifier, default=None
        Classifier that predicts the class probabilities. None means the student of the
        fit.

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
    >>> both = {"mechanism": "interactive", "query_strategy": InteractiveQueries()}
    >>> pate = PATEClassifier(GaussianNB(), n_teachers=50, n_queries=30, **both)
    >>> pate = pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
    >>> pate.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    """

    interactive: ClassVar[bool] = True

    def query(self, session: QuerySession) -> None:
        """Query in rounds.

        Parameters
        ----------
        session : QuerySession
            Public rows and ``query``.
        """
        rows = self._first().choose(session, session.n_queries)
        ends = np.cumsum(self._round_sizes(session))
        for part in np.split(rows, ends[:-1]):
            session.query(part, session.probabilities(self.student)[part])


def _smallest(
    values: NDArray[np.floating], rows: NDArray[np.intp], n_rows: int
) -> NDArray[np.intp]:
    """Return the rows with the smallest values; equal ones in the order of `rows`."""
    return rows[np.argsort(values[rows], kind="stable")[:n_rows]]

"""Query strategies, and the session in which they query."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from sklearn_pate._estimators._class_codes import on_labels
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._estimators._predictions import in_all_classes
from sklearn_pate._inputs._labels import UNLABELED
from sklearn_pate.accounting._value_checks import Constraint, check_parameters
from sklearn_pate.students._train_student import train_student

_MOST_DIMENSIONS = 50
# Largest number of rows that k-means learns centres from.
_MOST_ROWS_CLUSTERED = 50_000


def numeric_features(X: Any) -> NDArray[np.float64] | None:
    """Convert rows to finite numbers of shape (n_rows, n_dimensions), or return None.

    Images are flattened. Text, missing values and sparse matrices give None. Each row
    is converted on its own, so that the result is exactly as sensitive as X.
    """
    if sp.issparse(X):
        return None
    try:
        features = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return (
        features.reshape(len(features), -1) if np.all(np.isfinite(features)) else None
    )


def standardized_features(X: Any, seed: int) -> NDArray[np.float64] | None:
    """Convert public rows to standardized features, or return None.

    Where rows and columns are both more than 50, they are the first 50 principal
    components (Pearson 1901, "On lines and planes of closest fit to systems of points
    in space"). All rows must be public: features that depend on private rows would
    reveal them.
    """
    features = numeric_features(X)
    if features is None:
        return None
    steps = [StandardScaler()]
    if min(features.shape) > _MOST_DIMENSIONS:
        from sklearn.decomposition import PCA  # slow to import

        steps.append(PCA(_MOST_DIMENSIONS, random_state=seed))
    # Arrays, even if scikit-learn is configured to return dataframes.
    pipeline = make_pipeline(*steps).set_output(transform="default")
    return pipeline.fit_transform(features)


class QuerySession:
    """Queries on public rows and their answers. Not sensitive.

    A query strategy reads this object only, so the choices of the strategy have no
    privacy cost.

    Parameters
    ----------
    answer : callable
        Function that answers queries. Its arguments are indices of public rows, and
        `probabilities` of shape (n_rows, n_classes) or None. It returns class indices,
        -1 for no answer. :meth:`Oracle.answer <sklearn_pate.mechanisms.Oracle.answer>`
        records the privacy cost.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    student : classifier
        Student of the fit. Clones of the student are trained.

    n_classes : int
        Number of classes.

    n_queries : int
        Number of queries that the privacy cost covers. The Oracle refuses further
        queries.

    seed : int
        Seed of all choices. The seed may be public.

    features : ndarray of shape (n_public, n_dimensions) or None
        Numeric features of public rows, learned from public rows alone, in which
        similar rows are near each other. None if the strategy needs no features.

    classes : ndarray of shape (n_classes,), default=None
        Labels of the classes, in which parameters of a classifier name them. None for
        class indices.

    on_answered : callable, default=int
        Called with the number of rows of each query, for a progress bar.

    Attributes
    ----------
    random_state : RandomState
        Random number generator for the choices of a strategy.

    queried : ndarray of int of shape (n_queried,)
        Indices of the public rows queried so far, in the order of the queries.

    answers : ndarray of int of shape (n_queried,)
        Answers to the queries so far, in the same order.

    Notes
    -----
    Worst-case Renyi costs add up even if queries depend on earlier answers (Mironov
    2017, "Renyi differential privacy", Proposition 1). The ledger charges the cost of
    all `n_queries`.

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
        classes: NDArray[Any] | None = None,
        on_answered: Callable[[int], object] = int,
    ) -> None:
        self._answer, self._on_answered = answer, on_answered
        # Not None for a strategy that needs them.
        self.features: Any = features
        self.X_public = X_public
        self.student = student
        self.n_classes = n_classes
        self.classes = classes
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
            Class probabilities that the student predicts, for an interactive mechanism.

        Returns
        -------
        answers : ndarray of int of shape (n_rows,)
            Class indices, -1 for no answer.

        Raises
        ------
        ValueError
            If a row is repeated or was queried before. No row is queried in this case.

        Exception
            Any exception of `answer`, such as
            :class:`~sklearn_pate.BudgetExceededError`. No answer is kept in this case.
        """
        rows = np.asarray(rows, dtype=np.intp)
        queried = np.concatenate([self.queried, rows])
        if len(np.unique(queried)) < len(queried):
            raise ValueError(
                "A query strategy queried a public row twice, which gives no new "
                "information; query session.new_rows()."
            )
        answers = self._answer(rows, probabilities)
        self._on_answered(len(rows))
        self.queried = queried
        self.answers = np.concatenate([self.answers, answers])
        return answers

    def new_rows(self) -> NDArray[np.intp]:
        """Return public rows that were not queried yet, in random order.

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
            Classifier with `predict_proba`, of which a clone is trained on the answers
            so far. None is the student of the fit.

        Returns
        -------
        probabilities : ndarray of shape (n_public, n_classes)
            Class probabilities. All are equal if the answers so far have fewer than two
            classes.
        """
        if len(np.unique(self.answers[self.answers != UNLABELED])) < 2:
            return np.full((self.n_public, self.n_classes), 1 / self.n_classes)
        if student is None:
            student = self.student
        elif self.classes is not None:
            student = on_labels("student", student, self.classes)
        trained = train_student(
            student,
            self.X_public,
            self.queried,
            self.answers,
            n_classes=self.n_classes,
            seed=self.random_state.randint(MAX_SEED),
        )
        return in_all_classes(
            trained.predict_proba(self.X_public), trained, self.n_classes, absent=0.0
        )


class QueryStrategy(BaseEstimator, ABC):
    """Base class of strategies that choose the public rows to query.

    A strategy uses public rows and released answers, never votes, so its choices have
    no privacy cost. A subclass provides the method `query`.

    Notes
    -----
    The privacy cost covers ``session.n_queries`` queries, even if queries depend on
    earlier answers (Mironov 2017, "Renyi differential privacy", Proposition 1). A
    strategy that used private rows or votes would void the privacy statement.

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
        """List the classifiers whose `predict_proba` the method `query` uses.

        Parameters
        ----------
        student : classifier
            The student of the fit.

        Returns
        -------
        classifiers : tuple of classifiers
            Empty unless a subclass overrides this method.
        """
        return ()

    def check(self) -> None:
        """Raise ValueError if a parameter is invalid, at the start of a fit."""
        check_parameters(self)

    @abstractmethod
    def query(self, session: QuerySession) -> None:
        """Query ``session.n_queries`` rows.

        Parameters
        ----------
        session : QuerySession
            Public rows, with a method ``query`` for distinct rows.
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
        """Query the rows that `choose` returns.

        Parameters
        ----------
        session : QuerySession
            Public rows, with a method ``query`` for distinct rows.
        """
        session.query(self.choose(session, session.n_queries))


class RandomQueries(FixedQueries):
    """Query random public rows. The choice has no privacy cost.

    Notes
    -----
    Papernot et al. (2017, Section 4.2) query random rows. This strategy is the best
    choice if nothing is known about the similarity of public rows.

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
    """Query the most central row of each cluster of public rows.

    The strategy is useful for few queries, as each queried row is similar to many rows.
    With many queries, clusters are small, and some queried rows are outliers. Clusters
    depend on public rows alone and have no privacy cost.

    Notes
    -----
    The k-means algorithm clusters ``session.features``. The queried row of a cluster is
    the row nearest to its centre (Kang, Ryu, Kwon 2004, "Using cluster-based sampling
    to select initial training set for active learning in text classification").

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
            Number of rows, which is also the number of clusters.

        Returns
        -------
        rows : ndarray of int of shape (n_rows,)
            Most central rows in random order, then random rows if fewer than `n_rows`
            central rows are distinct.
        """
        of_row, rank = find_clusters(session.features, n_rows, session.random_state)
        medoids = np.flatnonzero(rank == 0)
        medoids = medoids[np.argsort(of_row[medoids])]
        medoids = session.random_state.permutation(medoids)
        others = session.new_rows()
        others = others[~np.isin(others, medoids)]
        return np.concatenate([medoids, others[: n_rows - len(medoids)]])


def find_clusters(
    features: NDArray[np.float64], n_clusters: int, random_state: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Cluster public rows by k-means, on features whose columns are on one scale.

    Returns the cluster of each row, and its rank among the rows of its cluster by the
    distance from the centre. k-means: Lloyd (1982), "Least squares quantization in
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
    return cluster_of_row, rank


class AdaptiveQueries(QueryStrategy):
    """Strategies that query in rounds, each chosen by the answers before it."""

    adaptive: ClassVar[bool] = True

    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_rounds": Constraint.count(),
        "first": Constraint.instance(
            FixedQueries,
            "use RandomQueries() or RepresentativeQueries(), which choose rows "
            "before any answer",
        ),
    }

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
        """List the classifiers whose `predict_proba` the method `query` uses.

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

    def _first(self) -> Any:
        return RandomQueries() if self.first is None else self.first

    def _round_sizes(self, session: QuerySession) -> list[int]:
        rounds = np.array_split(np.arange(session.n_queries), self.n_rounds)
        return [len(one) for one in rounds if len(one)]


class UncertaintyQueries(AdaptiveQueries):
    """Query the rows for which the student is least certain of the class.

    The strategy uses released answers, never votes, so no parameter has a privacy cost.

    Parameters
    ----------
    n_rounds : int, default=5
        Number of rounds of equal size. The student is trained before each round except
        the first.

    first : RandomQueries or RepresentativeQueries, default=None
        Strategy of the first round. None is ``RandomQueries()``.

    student : classifier, default=None
        Classifier that predicts class probabilities, such as a faster classifier than
        the student. None is the student of the fit.

    Notes
    -----
    Rows are queried in order of increasing margin, the difference between the two
    largest class probabilities. Papernot et al. (2017, Appendix B.2) query rows in
    order of the largest probability, which needs more queries on MNIST. With two
    classes, both orders are the same.

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
            Public rows, with a method ``query`` for distinct rows.
        """
        first, *later = self._round_sizes(session)
        session.query(self._first().choose(session, first))
        for n_rows in later:
            ascending = np.sort(session.probabilities(self.student), axis=1)
            margins = ascending[:, -1] - ascending[:, -2]
            session.query(_smallest(margins, session.new_rows(), n_rows))


class ExpertQueries(AdaptiveQueries):
    """Query the rows for which binary experts, one for each class, disagree.

    For a queried row, no expert is confident, and several experts give their class more
    than a small probability. Experts learn from released answers, never votes, so no
    parameter has a privacy cost.

    Parameters
    ----------
    n_rounds : int, default=5
        Number of rounds of equal size. The experts are trained before each round except
        the first.

    first : RandomQueries or RepresentativeQueries, default=None
        Strategy of the first round. None is ``RandomQueries()``.

    expert : classifier, default=None
        Classifier that is cloned for each class, and trained on answered rows to
        distinguish this class from all other classes. None is the student of the fit.

    confident : float, default=0.9
        Largest probability that any expert may give a queried row.

    doubtful : float, default=0.1
        At least `n_doubtful` experts must give a queried row more than this
        probability.

    n_doubtful : int, default=2
        Number of experts that must exceed `doubtful`.

    Notes
    -----
    The strategy is from Papernot et al. (2017, Appendix B.2), where 4 other experts
    must exceed `doubtful`. Rows that satisfy both conditions are queried in random
    order. If such rows are too few, rows whose most confident expert is least confident
    follow.

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

    _constraints: ClassVar[dict[str, Constraint]] = {
        "confident": Constraint.number(0, 1),
        "doubtful": Constraint.number(0, 1),
        "n_doubtful": Constraint.count(),
    }

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

    def classifiers(self, student: Any) -> tuple[Any, ...]:
        """List the classifiers whose `predict_proba` the method `query` uses.

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
            Public rows, with a method ``query`` for distinct rows.
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

    The strategy is for :class:`~sklearn_pate.mechanisms.InteractiveGNMax`. If the
    teachers do not contradict a confident student, the student's prediction is the
    answer, and does not count in `max_answers`. In the first round, all classes have
    equal probabilities. The student learns from released answers only, so no parameter
    has a privacy cost.

    Parameters
    ----------
    n_rounds : int, default=5
        Number of rounds of equal size. The student is trained before each round except
        the first.

    first : RandomQueries or RepresentativeQueries, default=None
        Strategy that chooses the rows of all rounds. None is ``RandomQueries()``.

    student : classifier, default=None
        Classifier that predicts class probabilities. None is the student of the fit.

    Notes
    -----
    The strategy is from Papernot et al. (2018, Algorithm 2).

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
            Public rows, with a method ``query`` for distinct rows.
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

"""PrivateKNNClassifier: the nearest rows of a secret sample vote."""

import math
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import InputTags

from sklearn_pate._base._ledger_entry import open_entry
from sklearn_pate._base._parameter_checks import check_count_or_auto
from sklearn_pate._base._query_plan import QueryPlan, plan_queries
from sklearn_pate._base._release_plan import plan_release
from sklearn_pate._base._split_inputs import PublicInputs, split_inputs
from sklearn_pate._base._teacher_ensemble import FitSetup, QueryingClassifier, Seeds
from sklearn_pate._inputs._public_data import public_rows_by_name
from sklearn_pate.accounting._assumptions import N_ROWS_PUBLIC, ROW_ALONE, Assumption
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.baselines._knn_votes import Grid, NeighbourVotes
from sklearn_pate.baselines._row_features import RowFeatures
from sklearn_pate.mechanisms import Mechanism
from sklearn_pate.mechanisms._poisson_sampled import SampledMechanism
from sklearn_pate.students import GraphSelfTrainingClassifier
from sklearn_pate.students.queries._row_similarity import numeric_features

__all__ = ["PrivateKNNClassifier"]

MECHANISMS = ("gnmax", "confident")
METRICS = ("euclidean", "cosine")

# "auto": so many votes for each vote of noise. Fewer drown in it, and more come from
# rows that are farther away, which is worse for small data.
_VOTES_PER_SIGMA = 6
# Private rows whose features are in memory in full precision.
_N_ROWS = 2**12


class PrivateKNNClassifier(QueryingClassifier):
    """Private nearest neighbours: each query is put to a fresh, secret sample.

    For each query, every private row is in the sample with a small probability, by a
    coin of its own. Of those, the nearest to the public row in query vote with their
    labels; a mechanism answers with the noisy plurality; a student is trained on public
    rows and answers alone, and is what predicts. Nothing is trained on private rows.
    As nobody knows who was asked, each answer costs less than one of
    :class:`~sklearn_pate.PATEClassifier`. The student may be published, with
    ``privacy_spent_`` as its statement.

    The statement is about rows that are **added or removed**, not replaced: it neither
    compares nor adds up with that of :class:`~sklearn_pate.PATEClassifier` for rows. A
    row that is replaced is two such steps, see
    :func:`~sklearn_pate.accounting.composition.two_steps`.

    Parameters
    ----------
    student : classifier, default=None
        None is a :class:`~sklearn_pate.students.GraphSelfTrainingClassifier` with the
        same `representation`: it, too, takes rows that are near for alike, and learns
        from all public rows. One that accepts unlabelled rows gets all public rows,
        others the answered ones, as in :class:`~sklearn_pate.PATEClassifier`. It costs
        no privacy, however it is trained.

    n_neighbors : int or "auto", default="auto"
        How many rows (or groups) vote on a query. It costs no privacy. They should
        outvote the noise, of scale `sigma` votes, and be fewer than
        ``sampling_rate * n``, where n is the number of private rows of a class, or they
        are no longer near. "auto" is 6 sigma, rounded up, whatever the number of
        private rows, which is not public here: it suits thousands of rows a class.

    sampling_rate : float, default=0.15
        Probability with which each row (or group) is in the sample of a query, in
        (0, 1]. At a fixed epsilon, noise and votes shrink with it alike, and the
        distance of the voters hardly changes; below a few votes of noise there is
        nothing more to gain.

    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance of rows in the `representation`. Columns should be of one scale. It
        costs no privacy.

    mechanism : {"gnmax", "confident"}, GNMax or ConfidentGNMax, default="gnmax"
        How queries are answered. "confident" answers where most neighbours agree, and
        is charged for every query, answered or not. Others are refused, and so is
        `max_answers`: the cost of a sample is known for Gaussian noise only. Noise and
        samples come from the operating system and never from `random_state`.

    n_queries : int or "auto", default="auto"
        Number of public rows to ask about, each once. Each query costs privacy; at a
        fixed epsilon, more queries mean more noise in each answer. "auto" is 100 for
        a student that accepts unlabelled rows, 2000 for another; in either case at most
        the number of public rows.

    query_strategy : {"auto", "random", "representative", "uncertainty", "experts", \
            "cluster"} or QueryStrategy, default="auto"
        Which public rows to ask about, as in :class:`~sklearn_pate.PATEClassifier`; the
        choice itself costs no privacy. "cluster" asks about the row in the middle of
        each cluster, and teaches the answer for all of it.

    representation : transformer, default=None
        Fitted on public rows only, and applied to public and private rows, between
        which distances are then computed: what is near in it should be alike in class.
        Votes are as good as that. It costs no privacy, as long as it makes the same
        features of a row each time, from that row alone: private rows are transformed
        one at a time, arrays as float64, which takes much longer than all at once. One
        that takes no single row, or makes other features of a public row alone than
        among others, is refused. One that does not learn is as good. It is fitted again
        for the default student; one that takes long may be fitted on public rows
        beforehand, and passed in a ``FrozenEstimator``. None compares the rows as they
        are, which then must be dense numbers.

    release : {"answers", "histogram"}, default="answers"
        "histogram" releases all vote counts with noise. It costs no more than answers,
        which on a sample are charged like whole histograms. A student that takes soft
        labels learns from them, see
        :class:`~sklearn_pate.students.DistillationClassifier`.

    epsilon : float or None, default=1.0
        The publishable epsilon of this fit: noise is calibrated so that
        ``privacy_spent_.epsilon`` is at most this, before anything is asked. None uses
        the mechanism's own noise and reports what it costs.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover. It must be well below one over
        the number of rows.

    privacy_unit : {"row", "group"}, default="row"
        Whose presence the statement protects: one row's, or that of all rows of one
        group (a patient, say), given as ``fit(..., groups=patient_id)``. A group is
        sampled as a whole, and votes once, by its nearest row. With "row", a person
        with several rows is **not** protected as a whole.

    public_size : float, default=None
        Without an `X_public` in `fit`, use this share of the rows (of the groups, if
        they are the unit) as public. The people in them get **no protection**. With
        rows, their number is then taken to be public.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. None reads them from y, and states as an assumption
        that they are public. A private row with another label is dropped, and takes
        nobody's place among the neighbours.

    ledger : PrivacyLedger, default=None
        The account of the private data over all fits, see
        :class:`~sklearn_pate.PATEClassifier`. The cost is charged before a sample or
        any noise is drawn. The ledger must be one for rows (or groups) that are added
        or removed.

    noise_seed : int, default=None
        Seeds the noise, for research and tests only: the statement's epsilon is
        infinite. None draws the noise from the operating system.

    random_state : int, RandomState instance or None, default=None
        Seeds representation, queries and student. It may be known to anyone.

    Attributes
    ----------
    student_ : classifier
        The student, fitted on class indices. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published. Neighbours count as teachers.

    privacy_analysis_ : None
        There is no data-dependent analysis: what a sample costs does not depend on its
        votes.

    mechanism_ : SampledMechanism
        The mechanism with all its numbers.

    n_neighbors_ : int
        How many neighbours voted on a query.

    query_strategy_ : QueryStrategy
        The strategy that was used.

    representation_ : transformer or None
        Fitted on public rows. May be published.

    queried_indices_ : ndarray of int of shape (n_queries,)
        Public rows that were asked about; for "cluster", one of each cluster.

    answers_ : ndarray of int of shape (n_queries,)
        Answers to them: indices into ``classes_``, -1 for no answer.

    histograms_ : ndarray of int of shape (n_queries, n_classes) or None
        Noisy vote counts, for ``release="histogram"``. May be published.

    public_indices_ : ndarray of int of shape (n_public,) or None
        Rows of X that were used as public because of `public_size`. For the data
        holder: a pickled or copied estimator comes without it.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Zhu, Yu, Chandraker, Wang (2020), "Private-kNN: practical differential privacy for
    computer vision". One row (or group) more in a sample casts one vote and makes one
    other withdraw, at most; ``NeighbourVotes`` has the proof, and ``Grid`` why
    distances are those of whole numbers, made of features that are computed one row at
    a time. Each query is a Gaussian release about a Poisson sample, accounted for by
    :func:`~sklearn_pate.accounting.composition.sampled_gaussian_curve`, and costs of
    queries add up as each has a sample of its own.

    The paper's data-dependent bounds and its iterative refinement of the representation
    by earlier students are left out: the former are not publishable, and a student can
    be put into `representation` of a second fit, at the cost of both.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate import PublicData
    >>> from sklearn_pate.baselines import PrivateKNNClassifier
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> clf = PrivateKNNClassifier(n_queries=50)
    >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X[5500:], y[5500:]) > 0.8)
    True
    """

    def __init__(
        self,
        student: Any = None,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        sampling_rate: float = 0.15,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        mechanism: str | Mechanism = "gnmax",
        n_queries: int | Literal["auto"] = "auto",
        query_strategy: Any = "auto",
        representation: Any = None,
        release: Literal["answers", "histogram"] = "answers",
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        privacy_unit: Literal["row", "group"] = "row",
        public_size: float | None = None,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        noise_seed: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.student = student
        self.n_neighbors = n_neighbors
        self.sampling_rate = sampling_rate
        self.metric = metric
        self.mechanism = mechanism
        self.n_queries = n_queries
        self.query_strategy = query_strategy
        self.representation = representation
        self.release = release
        self.epsilon = epsilon
        self.delta = delta
        self.privacy_unit = privacy_unit
        self.public_size = public_size
        self.classes = classes
        self.ledger = ledger
        self.noise_seed = noise_seed
        self.random_state = random_state

    @public_rows_by_name
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Train a student on noisy answers of the nearest private rows.

        Every call is a new release with its own cost, unless a `ledger` knows it.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows. One of which no finite features can be computed takes those of
            the middle of the public rows' box, so that it neither stops the fit nor
            changes what other rows vote.

        y : array-like of shape (n_rows,)
            Their labels. With `classes`, a missing one (None, NaN) counts as a label
            that is not among them: the row is dropped.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows, without labels; nobody in them is protected. Wrap them in
            :class:`~sklearn_pate.PublicData`, or a search may cut them.

        groups : array-like of shape (n_rows,), default=None
            Whose row each is, for ``privacy_unit="group"``: whole numbers or strings. A
            row without an id is left out.

        Returns
        -------
        self : PrivateKNNClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data cannot work; nothing was asked and no privacy was
            spent. What the student raises comes after the queries were answered.

        BudgetExceededError
            If the cost does not fit the budget of the `ledger`; nothing was asked or
            charged.

        LedgerError
            If the file of the `ledger` cannot be read or written; no answer was seen.

        Warns
        -----
        PublicDataWarning
            If rows of X are used as public, or `X_public` may be cut by a search.

        PrivacyLeakWarning
            If the noise is seeded, or `delta` is too large for the number of rows.

        StudentWarning
            If the answers hold fewer than two classes.
        """
        plan = self._plan(X, y, X_public=X_public, groups=groups)
        private = plan.private
        entry = open_entry(self, plan.release, private.content(), plan.public_content)
        votes = self._neighbour_votes(plan)
        # The privacy is spent on the next line: noise is drawn, answers are released.
        answers = plan.query(votes, self._unfitted_student(), entry)
        student = self._train_student(plan, answers)
        self.n_neighbors_ = plan.release.n_teachers
        return self._set_fitted(plan, answers, student, None, private.public_indices)

    @property
    def _counts_rows(self):
        """Whether one unit more moves the places of other private rows."""
        return True

    def _plan(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> FitSetup:
        """Settle everything about a fit that comes before the first sample."""
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        private, public = split_inputs(self, X, y, X_public, groups, seed=seeds.shards)
        public = replace(public, assumptions=self._assumptions_of_samples(public))
        sampled = SampledMechanism(self._chosen_mechanism(), self.sampling_rate)
        queries = plan_queries(
            public.X_public,
            self._unfitted_student(),
            sampled.mechanism,
            n_queries=self.n_queries,
            query_strategy=self.query_strategy,
            representation=self.representation,
            seed=seeds.representation,
        )
        RowFeatures(queries.representation).check(
            public.X_public, _public_features(queries)
        )

        def calibrated(epsilon: float | None) -> SampledMechanism:
            mechanism = sampled.calibrated(
                n_queries=queries.n_queries, epsilon=epsilon, delta=self.delta
            )
            return mechanism.for_neighbors(self._count_neighbors(mechanism))

        mechanism = calibrated(self.epsilon)
        release = plan_release(
            mechanism,
            calibrated,
            delta=self.delta,
            unit=public.unit,
            assumptions=self._assumptions(public),
            n_teachers=self._count_neighbors(mechanism),
            n_queries=queries.n_queries,
            n_values=len(public.classes),
        )
        return FitSetup(public, release, seeds, queries, private)

    def _check_parameters(self):
        if isinstance(self.mechanism, str) and self.mechanism not in MECHANISMS:
            raise ValueError(
                f"mechanism={self.mechanism!r} has no cost on a secret sample, which "
                f"is known for Gaussian noise only; use one of {[*MECHANISMS]}."
            )
        super()._check_parameters()
        check_count_or_auto("n_neighbors", self.n_neighbors)
        if self.metric not in METRICS:
            raise ValueError(
                f"metric={self.metric!r} is unknown; use one of {[*METRICS]}."
            )
        SampledMechanism(self._chosen_mechanism(), self.sampling_rate).check()

    def _assumptions_of_samples(self, public: PublicInputs) -> tuple[Assumption, ...]:
        """Add what secret samples of single rows take for granted."""
        assumptions = public.assumptions
        if self.public_size is not None and self.privacy_unit == "row":
            assumptions = (*assumptions, N_ROWS_PUBLIC)
        if self.representation is not None:
            assumptions = (*assumptions, ROW_ALONE)
        return assumptions

    def _count_neighbors(self, mechanism: SampledMechanism) -> int:
        """Return the number of neighbours that vote."""
        if self.n_neighbors == "auto":
            return math.ceil(_VOTES_PER_SIGMA * mechanism.sigma)
        return self.n_neighbors

    def _neighbour_votes(self, plan: FitSetup) -> NeighbourVotes:
        """Bring private rows where distances are exact, for their votes."""
        private, queries = plan.private, plan.queries
        public = _public_features(queries)
        grid = Grid.around(public, angular=self.metric == "cosine")
        if queries.clusters is not None:
            public = public[queries.clusters.medoids]
        # Rows of an unknown label abstain: no other row may vote less because of them.
        rows = np.flatnonzero(private.codes >= 0)
        units = None
        if private.group_of_row is not None:
            _, units = np.unique(private.group_of_row[rows], return_inverse=True)
        return NeighbourVotes(
            _points(grid, private.X, rows, RowFeatures(queries.representation)),
            private.codes[rows],
            units,
            grid.points(public),
            n_neighbors=plan.release.n_teachers,
            n_classes=plan.n_classes,
            sampler=plan.release.mechanism.sampler(),
        )

    def _input_tags(self):
        return InputTags() if self.representation is None else super()._input_tags()

    def _unfitted_student(self):
        if self.student is None:
            return GraphSelfTrainingClassifier(representation=self.representation)
        return self.student


def _public_features(queries: QueryPlan) -> NDArray[np.float64]:
    """Return public rows as numbers, between which distances are computed."""
    features = numeric_features(queries.X_for_teachers)
    if features is None or features.shape[1] == 0:
        raise ValueError(
            "PrivateKNNClassifier compares rows as dense numbers, and the public "
            "ones are text, sparse, or have missing values; pass representation=, "
            "a transformer that makes dense numbers of each row."
        )
    return features


def _points(
    grid: Grid, X: Any, rows: NDArray[np.intp], features: RowFeatures
) -> NDArray[np.float32]:
    """Return private rows on the grid, some at a time."""
    points = np.empty((len(rows), len(grid.centre)), dtype=np.float32)
    for start in range(0, len(rows), _N_ROWS):
        part = rows[start : start + _N_ROWS]
        points[start : start + _N_ROWS] = grid.points(
            features.of_rows(X, part, grid.centre)
        )
    return points

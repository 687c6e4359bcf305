"""PATEClassifier: plan, ledger entry, teachers, queries, student, analysis."""

from typing import Any, Literal, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from sklearn_pate._base._ledger_entry import open_entry
from sklearn_pate._base._parameters import (
    as_mechanism,
    as_teacher,
    calibrated_mechanism,
    resolve_n_teachers,
)
from sklearn_pate._base._party_inputs import (
    check_parties,
    check_votes,
    read_public_inputs,
)
from sklearn_pate._base._query_plan import QueryPlan, plan_queries
from sklearn_pate._base._release_plan import ReleasePlan, plan_release
from sklearn_pate._base._split_inputs import PublicInputs, split_inputs
from sklearn_pate._base._teacher_ensemble import (
    AnswerPlan,
    FitSetup,
    QueryingClassifier,
    Seeds,
    TeacherEnsemble,
    assign_shards,
)
from sklearn_pate._estimators._callbacks import with_callbacks
from sklearn_pate._teachers import TeacherProblems, poll_teachers
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.mechanisms import Mechanism

__all__ = ["PATEClassifier"]


class PATEClassifier(QueryingClassifier, TeacherEnsemble):
    """Private Aggregation of Teacher Ensembles.

    Teachers are trained on disjoint shards of the private rows. They vote on public
    rows; a mechanism answers with noisy pluralities; a student is trained on public
    rows and answers alone, and is what predicts. The student may be published, with
    ``privacy_spent_`` as its statement.

    Parameters
    ----------
    estimator : classifier, default=None
        The teacher. None means ``RandomForestClassifier()``. Teachers are fitted on
        class indices 0..K-1, whatever the labels in y. Preprocessing that learns from
        data (scaling, imputation, encoding) belongs in here, as a Pipeline: a step in
        front of PATEClassifier would be fitted on private rows for all to see. It is
        cloned; do not fit this very object yourself, as this estimator prints with it.
        A teacher must not keep anything outside itself (in files, module or class
        variables), or teachers would learn from each other.

    student : classifier, default=None
        The student; None means a clone of the teacher. One that accepts unlabelled rows
        (y = -1) gets all public rows: SelfTrainingClassifier, LabelSpreading,
        LabelPropagation, and any estimator with an attribute
        ``accepts_unlabeled = True``. Other students get the answered rows. It costs no
        privacy, however it is trained.

    n_teachers : int or "auto", default="auto"
        Number of shards. More teachers outvote more noise, but learn from fewer rows
        each. "auto" is the square root of the number of private rows, rounded, and is
        refused for ``privacy_unit="group"``, where that number is not public.

    mechanism : {"gnmax", "lnmax", "gumbel", "permute-and-flip", "confident", \
            "interactive"} or Mechanism, default="gnmax"
        How queries are answered. A :class:`~sklearn_pate.mechanisms.Mechanism` object
        sets more, such as the threshold of ``ConfidentGNMax``. Its noise comes from the
        operating system and never from `random_state`.

    n_queries : int or "auto", default="auto"
        Number of public rows to ask about, each once. Each query costs privacy; at a
        fixed epsilon, more queries mean more noise in each answer. "auto" is 2000, or
        100 for a student that accepts unlabelled rows; in either case at most the
        number of public rows.

    query_strategy : {"auto", "random", "representative", "uncertainty", "experts", \
            "cluster", "interactive"} or QueryStrategy, default="auto"
        Which public rows to ask about; the choice itself costs no privacy.
        "representative" asks about typical rows, "cluster" holds one vote a cluster,
        "uncertainty" and "experts" ask in rounds where a student of the answers so far
        is unsure; "interactive" goes with that mechanism. "auto" is "representative" if
        `n_queries` is below a tenth of the public rows and they are numbers, "random"
        otherwise. The classes in ``sklearn_pate.students`` set more.

    representation : transformer, default=None
        Fitted on public rows only. Teachers are trained on what it makes of their
        shards, and query strategies look for similar rows in what it makes of the
        public rows; the student gets the rows as they are. Teachers with few rows each
        gain most. It costs no privacy, as long as it makes each row's features from
        that row alone. None means the rows themselves; to query strategies, their
        standardized columns.

    release : {"answers", "histogram"}, default="answers"
        "histogram" releases all vote counts with noise, at about 1.6 times the Renyi
        cost of the answers at the same noise, or with more noise at the same epsilon. A
        student that takes soft labels learns from them, see
        :class:`~sklearn_pate.students.DistillationClassifier`.

    epsilon : float or None, default=1.0
        The publishable epsilon of this fit: noise is calibrated so that
        ``privacy_spent_.epsilon`` is at most this, before anything is asked. None uses
        the mechanism's own noise and reports what it costs.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover. It must be well below one over
        the number of rows.

    privacy_unit : {"row", "group"}, default="row"
        Whom the statement protects: one row, or all rows of one group (a patient, say),
        given as ``fit(..., groups=patient_id)``. With "row", a person with several rows
        is **not** protected as a whole. `fit_from_votes` protects a party in any case.

    public_size : float, default=None
        Without an `X_public` in `fit`, use this share of the rows (of the groups, if
        they are the unit) as public. The people in them get **no protection**.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. None reads them from y, and states as an assumption
        that they are public; `fit_from_votes` needs them. A private row with another
        label is dropped; ``privacy_analysis_.data_problems`` tells the data holder.

    ledger : PrivacyLedger, default=None
        The account of the private data over all fits, see
        :class:`~sklearn_pate.PrivacyLedger`. The cost of each fit is charged before
        any noise is drawn; a fit that would exceed the budget raises
        BudgetExceededError and draws nothing. With an integer `random_state`, a fit
        that was killed goes on with the answers it had paid for, and the very same fit
        gets the very same answers, at no further charge; a change in the code of a
        teacher's classes and functions is not seen. **Rows or labels that were prepared
        in another way, however slightly, need another `random_state`**: equal answers
        would show that the preparation changed nothing. None keeps no account: whoever
        fits has to add up.

    memory : str, path-like or joblib.Memory, default=None
        A folder that keeps the votes of finished teachers, so that a fit that was
        killed goes on where it stopped, and another fit with the same shards, teacher
        and public rows (but another epsilon, mechanism, number of queries, or
        student) polls nobody again. Needs an integer `random_state`. **What it keeps is
        sensitive**: raw votes, and warnings that may quote private rows, in a folder
        that only this user can read. Remove it when you are done, and whenever the code
        of the teacher's classes and functions changes. A fit that uses it is a new
        release all the same, with its own cost, unless a `ledger` knows it.

    n_jobs : int, default=None
        Number of teachers trained at once, as in joblib; ``joblib.parallel_config``
        chooses where: on this machine, or on a cluster with dask or ray. The votes do
        not depend on it, unless the arithmetic of the machines does (and for torch
        networks in threads it is not promised). Processes train side by side; threads
        take turns, as they share the global random generators.

    verbose : int, default=0
        Verbosity of joblib over the teachers. With scikit-learn 1.9 or later,
        ``set_callbacks(ProgressBar())`` works too.

    random_state : int, RandomState instance or None, default=None
        Seeds shards, teachers, queries and student. It may be known to anyone.

    Attributes
    ----------
    student_ : classifier
        The student, fitted on class indices. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published.

    privacy_analysis_ : PrivacyAnalysis
        **Sensitive.** What the votes that were cast say, and what teachers warned of.
        Prints redacted; a pickled or copied estimator comes without it.

    mechanism_ : Mechanism
        The mechanism with all its numbers.

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
    Papernot, Abadi, Erlingsson, Goodfellow, Talwar (2017), "Semi-supervised knowledge
    transfer for deep learning from private training data"; Papernot, Song, Mironov,
    Raghunathan, Talwar, Erlingsson (2018), "Scalable private learning with PATE".

    A search around this estimator fits it many times: each statement covers its own fit
    only, and the scores that choose the winner are computed on private labels.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> clf = PATEClassifier(LogisticRegression(), n_teachers=200, n_queries=50)
    >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X[5500:], y[5500:]) > 0.8)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        student: Any = None,
        *,
        n_teachers: int | Literal["auto"] = "auto",
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
        memory: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.student = student
        self.n_teachers = n_teachers
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
        self.memory = memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Train teachers on private rows, and a student on their noisy answers.

        Every call is a new release with its own cost, unless a `ledger` knows it.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows. One with a missing or infinite value, or with text in a column
            of numbers, that the teacher does not take is dropped inside its shard:
            whether a fit fails must not tell about a row. ``privacy_analysis_`` counts
            them. Public rows with such values are refused.

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
        self : PATEClassifier
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

        TeacherWarning
            If teachers may have failed or warned; see ``privacy_analysis_``.

        StudentWarning
            If the answers hold fewer than two classes.
        """
        plan = self._plan(X, y, X_public=X_public, groups=groups)
        private = plan.private
        entry = open_entry(self, plan.release, private.content(), plan.public_content)
        votes, problems = self._train_teachers(
            poll_teachers,
            assign_shards(private, plan.release.n_teachers, plan.seeds.shards),
            private,
            plan.queries.X_for_teachers,
            plan.queries.representation,
            plan.seeds.teachers,
            n_classes=plan.n_classes,
            clusters=plan.queries.clusters,
        )
        # The privacy is spent on the next line: noise is drawn, answers are released.
        answers = plan.query(votes, self._unfitted_student(), entry)
        student = self._train_student(plan, answers)
        analysis = plan.analyse(votes, answers, problems, entry)
        return self._set_fitted(
            plan, answers, student, analysis, private.public_indices
        )

    def fit_from_votes(self, X_public: Any, votes: Any) -> Self:
        """Train a student on noisy answers from votes that were collected elsewhere.

        Each party trained what it liked on data of its own, labelled the public rows
        with it, and sent the labels: no row and no model ever left it. Set `classes` to
        all labels that count. The statement protects all votes of one party, whatever
        `privacy_unit` says; `estimator` is the student where `student` is None.

        Noise for an epsilon of 1 drowns a handful of votes: it takes a hundred parties
        or more. Five hospitals can cast a hundred votes if each trains twenty teachers
        on disjoint shards of its patients. Then an array is a party, and what is
        protected is one shard, with every patient in it, but not a hospital as a whole.

        Parameters
        ----------
        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features)
            The rows that were labelled, in the same order.

        votes : Votes or iterable of array-like of shape (n_public,)
            Vote counts, or one array of labels of the public rows from each party, as
            :meth:`Votes.from_labels` takes them.

        Returns
        -------
        self : PATEClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the votes cannot work; nothing was asked and no privacy
            was spent. What the student raises comes after the queries were answered.

        BudgetExceededError
            If the cost does not fit the budget of the `ledger`; nothing was asked or
            charged.

        LedgerError
            If the file of the `ledger` cannot be read or written; no answer was seen.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded, or `delta` is too large for the number of parties.

        TeacherWarning
            If labels may have been left out because they are not in `classes`.

        StudentWarning
            If the answers hold fewer than two classes.
        """
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        public = read_public_inputs(self, X_public, votes, method="fit_from_votes")
        queries = self._plan_queries(public, seeds)
        votes = check_votes(votes, public, queries.clusters)
        n_parties = votes.shape[0]
        check_parties(n_parties, self.n_teachers, self.delta, sent="voted")
        release = self._plan_release(public, queries, n_parties)
        plan = AnswerPlan(public, release, seeds, queries)
        entry = open_entry(self, release, votes.content(), plan.public_content)
        # The privacy is spent on the next line: noise is drawn, answers are released.
        answers = plan.query(votes, self._unfitted_student(), entry)
        student = self._train_student(plan, answers)
        analysis = plan.analyse(votes, answers, TeacherProblems(), entry)
        return self._set_fitted(plan, answers, student, analysis, None)

    def _plan(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> FitSetup:
        """Settle everything about a fit that comes before the first teacher."""
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        private, public = split_inputs(self, X, y, X_public, groups, seed=seeds.shards)
        queries = self._plan_queries(public, seeds)
        n_teachers = resolve_n_teachers(self.n_teachers, private.n_rows)
        release = self._plan_release(public, queries, n_teachers)
        return FitSetup(public, release, seeds, queries, private)

    def _plan_queries(self, public: PublicInputs, seeds: Seeds) -> QueryPlan:
        """Settle the queries, by public rows and parameters alone."""
        return plan_queries(
            public.X_public,
            self._unfitted_student(),
            as_mechanism(self.mechanism, self.release),
            n_queries=self.n_queries,
            query_strategy=self.query_strategy,
            representation=self.representation,
            seed=seeds.representation,
        )

    def _plan_release(
        self, public: PublicInputs, queries: QueryPlan, n_teachers: int
    ) -> ReleasePlan:
        """Calibrate the mechanism, and state what its answers cost."""
        n_classes = len(public.classes)

        def calibrated(epsilon: float | None) -> Mechanism:
            return calibrated_mechanism(
                self.mechanism,
                self.release,
                n_teachers=n_teachers,
                n_queries=queries.n_queries,
                n_classes=n_classes,
                epsilon=epsilon,
                delta=self.delta,
            )

        return plan_release(
            calibrated(self.epsilon),
            calibrated,
            delta=self.delta,
            unit=public.unit,
            assumptions=self._assumptions(public),
            n_teachers=n_teachers,
            n_queries=queries.n_queries,
            n_values=n_classes,
        )

    def _unfitted_student(self) -> BaseEstimator:
        return as_teacher(self.estimator) if self.student is None else self.student

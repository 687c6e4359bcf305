"""PATEClassifier: plan, ledger entry, teachers, queries, student, analysis."""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin

from sklearn_pate._aggregation._aggregation import (
    VoteAggregation,
    prepare_queries,
    train_teachers,
    with_shared_representation,
)
from sklearn_pate._aggregation._checks import (
    check_ensemble,
    check_scores,
    check_strategy,
    memory_location,
)
from sklearn_pate._aggregation._classifier import (
    PublicRowsClassifier,
    readers_of_teachers,
)
from sklearn_pate._aggregation._codes import check_codes
from sklearn_pate._aggregation._design import (
    Design,
    as_mechanism,
    default_representation,
    default_student,
    default_teacher,
    design_fit,
    design_of_votes,
    for_noise,
)
from sklearn_pate._aggregation._entry import ReleasePlan, open_entry
from sklearn_pate._aggregation._rows import (
    PublicInputs,
    check_parties,
    check_votes,
    read_public_inputs,
    split_inputs,
)
from sklearn_pate._aggregation._score_model import ScoreAggregation, prepare_scores
from sklearn_pate._estimators._isolation import Seeds
from sklearn_pate._estimators._kinds import check_classifier
from sklearn_pate._estimators._progress import (
    CallbackSupportMixin,
    announce,
    phase,
    progress_of,
    with_callbacks,
)
from sklearn_pate._inputs._labels import private_rows_by_position
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate._teachers._training import TeacherProblems
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._value_checks import Constraint
from sklearn_pate.mechanisms import MeanScores, PluralityMechanism
from sklearn_pate.mechanisms._noisy_sum import Threshold, check_threshold


class PATEClassifier(CallbackSupportMixin, MetaEstimatorMixin, PublicRowsClassifier):
    """Private Aggregation of Teacher Ensembles.

    Teachers are trained on disjoint shards of the private rows, and label public rows
    by votes or class probabilities. A mechanism adds noise to the sum over teachers. A
    student learns from the noisy results, and may be published.

    Parameters by purpose:

    - **Privacy**: `epsilon`, `delta`, `privacy_unit`, `classes`, `public_size`,
      `synthetic`, `ledger`.
    - **Quality**: `estimator`, `student`, `n_teachers`, `mechanism`, `n_queries`,
      `query_strategy`, `vote`, `threshold`, `representation`, `codes`. See "What is
      released in which case" in :doc:`/guide/pate`.
    - **Running**: `memory`, `n_jobs`, `verbose`, `random_state`.

    Parameters
    ----------
    estimator : classifier, default=None
        The teacher, with its preprocessing in a Pipeline, and without files of its own.
        None is ``LogisticRegression(max_iter=1000)``. Parameters that name labels, such
        as `class_weight`, use the labels in y.

    student : classifier, default=None
        The student. None is a clone of the teacher for networks, an
        :class:`~sklearn_pate.students.ImageStudent` for images, the released mean with
        "scores", and else a logistic regression. A student that accepts unlabelled rows
        (y = -1) is trained on all public rows.

    n_teachers : int or "auto", default="auto"
        Number of shards. "auto", not allowed with groups, is the square root of the
        number of private rows, and twice this root with "scores". Linear, nearest
        neighbour and discriminant teachers with a `representation` are three times this
        root with "scores", and up to four times for images.

    mechanism : {"auto", "scores", "gnmax", "lnmax", "gumbel", "permute-and-flip", \
            "confident", "interactive", "histogram"} or mechanism, default="auto"
        "scores" releases the noisy mean of the teachers' class probabilities; all other
        mechanisms answer queries on votes. "auto" is "scores", and "gnmax" for
        networks, for students that accept unlabelled rows, with plain votes or
        parameters of queries, and if `epsilon` is None.

    n_queries : int or "auto", default="auto"
        Number of public rows that the teachers label by votes; must be "auto" for
        "scores". At a fixed epsilon, more queries mean more noise in each. "auto" is at
        most 2000 and the number of public rows, and fewer for networks, students of
        images, and students that accept unlabelled rows.

    query_strategy : {"auto", "random", "representative", "uncertainty", "experts", \
            "interactive"} or QueryStrategy, default="auto"
        Rule that chooses the public rows to query, at no privacy cost. "auto" is
        "interactive" for that mechanism, "representative" if teachers see numbers alone
        and fewer than a tenth of the public rows are queried, and else "random".

    vote : {"balanced", "plain"}, default="balanced"
        Rule of a teacher's vote. "plain" is the most probable class, as in the papers.
        "balanced" is the class whose probability most exceeds its mean over the public
        rows, and the student's probabilities get the shares of the classes from a noisy
        count. Votes are plain if the student has no `predict_proba`, or `synthetic`
        does not count by class; see "Balanced and plain votes" in :doc:`/guide/pate`.

    threshold : {"auto", "balanced", "accuracy"} or float, default="auto"
        With two classes, the probability above which the second class is predicted.
        With "auto", the share of public rows predicted as the second class equals the
        mean probability of this class. "balanced" is this mean, and "accuracy" one
        half. Must be "auto" for plain votes, and for your own student with "scores".

    representation : transformer, "auto" or None, default="auto"
        Transformer of features for teachers with few rows, fitted on public rows.
        "auto" is a :class:`~sklearn_pate.students.TableRepresentation` or
        :class:`~sklearn_pate.students.ImageRepresentation` for linear,
        nearest-neighbour and discriminant classifiers, and None for other classifiers.
        The representation has no privacy cost if it transforms each row by itself.

    epsilon : float or None, default=1.0
        The publishable epsilon, to which the noise is calibrated. With None,
        `mechanism` fixes the noise, votes are plain, and the fit states the epsilon.

    delta : float, default=1e-5
        Delta of the guarantee; must be well below one over the number of rows.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy: one row, or all rows of one group, such as a patient, given as
        ``fit(..., groups=patient_id)``. With "row", a person with several rows is
        **not** protected as a whole.

    public_size : float, default=None
        Share of the rows, or of the groups, to use as public rows if `fit` gets no
        `X_public`. The people in these rows are **not protected**.

    synthetic : PrivateMarginals, default=None
        Replaces public rows by rows drawn from noisy counts of the private rows.
        `epsilon` includes the privacy cost of the counts. The domain must be declared
        **without a look at private rows**; see :class:`~sklearn_pate.PrivateMarginals`.

    codes : dict, "auto" or None, default="auto"
        Columns of many codes, such as diagnoses, whose noisy counts by class become
        features, for 0.3 of the privacy cost. A dict has, by column, the list of
        possible codes, a dict from codes to groups of them, or None for the codes of
        public rows. "auto" takes columns of text with many rare categories, if the
        public number of rows is large enough for the noise.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. With None, the labels are read from y; the privacy
        statement then assumes that the set of labels is public. A private row with
        another label is dropped, and counted in ``data_problems_``.

    ledger : PrivacyLedger, default=None
        The privacy budget of the private data over all fits. With an integer
        `random_state`, a repeated fit gets the same answers at no further cost. **If
        rows or labels are prepared in another way, use another** `random_state`.

    memory : str, path-like or joblib.Memory, default=None
        A **sensitive** folder for the votes of trained teachers, used by repeated fits,
        each at its own privacy cost. Requires an integer `random_state`.

    n_jobs : int, default=None
        Number of teachers trained at once, in processes of joblib or, by
        ``joblib.parallel_config``, on a cluster. With threads, teachers are trained one
        at a time.

    verbose : int or bool, default=0
        1 prints a line for each phase to standard error; 2 adds messages of joblib.

    random_state : int, RandomState instance or None, default=None
        Seed of shards, teachers, queries and student, never of noise. May be public.

    Attributes
    ----------
    student_ : classifier
        The student, which predicts class indices. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    class_shares_ : ndarray of shape (n_classes,)
        Shares by a noisy count; absent for plain votes. May be published.

    privacy_spent_ : PrivacySpent
        Privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be published.

    mechanism_ : Mechanism
        The mechanism with all parameters set. After noisy counts (balanced votes,
        `synthetic`, or counted codes), it has the parts ``counts`` and ``mechanism``.

    query_strategy_ : QueryStrategy
        The strategy that was used. Absent for "scores".

    representation_ : transformer
        The transformer, fitted on public rows; absent without one. May be published.

    queried_indices_, answers_ : ndarray of int of shape (n_queries,)
        Indices of the public rows that teachers labelled, or scored (at most 10,000).
        Answer to each query, or class of each scored row: an index into ``classes_``,
        or -1 for no answer.

    estimate_, soft_answers_ : Estimate, ndarray of shape (n_scored, n_classes)
        Only with "scores": the released numbers, and class probabilities of the scored
        rows. May be published.

    histograms_ : ndarray of int of shape (n_queries, n_classes)
        Only with ``mechanism="histogram"``: noisy vote counts. May be published.

    marginals_ : dict
        Only with `synthetic` or counted codes: the noisy counts of each column, of
        shape (n_classes, n_cells). The last cell counts missing values, or all values
        that are no code. May be published.

    codes_ : dict
        Only with counted codes: the codes of each column, in the order of its counts.

    privacy_analysis_, data_problems_, public_indices_ : object
        **Sensitive**, and lacking in a pickled or copied estimator: the
        :class:`~sklearn_pate.accounting.PrivacyAnalysis` at the actual votes, with the
        warnings of teachers; what `check_data` finds in the private rows; with
        `public_size`, the indices of the rows of X that became public.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Papernot, Abadi, Erlingsson, Goodfellow, Talwar (2017), "Semi-supervised knowledge
    transfer for deep learning from private training data"; Papernot, Song, Mironov,
    Raghunathan, Talwar, Erlingsson (2018), "Scalable private learning with PATE".

    A search such as GridSearchCV fits this estimator many times. Each privacy statement
    covers one fit only. No statement covers the scores, which are computed on private
    labels.

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

    _keeps_rows_apart = ("student_",)

    _constraints: ClassVar[dict[str, Constraint]] = {
        "codes": Constraint(check_codes),
        "student": Constraint(check_classifier),
        "n_queries": Constraint.count(also=("auto",)),
        "vote": Constraint.option(("balanced", "plain")),
        "threshold": Constraint(check_threshold),
    }

    def __init__(
        self,
        estimator: Any = None,
        student: Any = None,
        *,
        n_teachers: int | Literal["auto"] = "auto",
        mechanism: str | PluralityMechanism | MeanScores = "auto",
        n_queries: int | Literal["auto"] = "auto",
        query_strategy: Any = "auto",
        vote: Literal["balanced", "plain"] = "balanced",
        threshold: float | Threshold = "auto",
        representation: Any = "auto",
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        privacy_unit: Literal["row", "group"] = "row",
        public_size: float | None = None,
        synthetic: PrivateMarginals | None = None,
        codes: dict[Any, Any] | Literal["auto"] | None = "auto",
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
        self.vote = vote
        self.threshold = threshold
        self.representation = representation
        self.epsilon = epsilon
        self.delta = delta
        self.privacy_unit = privacy_unit
        self.public_size = public_size
        self.synthetic = synthetic
        self.codes = codes
        self.classes = classes
        self.ledger = ledger
        self.memory = memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @private_rows_by_position
    @with_callbacks
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Train teachers on private rows, and a student on the teachers' noisy answers.

        Every call of `fit` has its own privacy cost, unless the `ledger` already has an
        entry of an equal call.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, dask collection} of shape \
                (n_rows, n_features)
            Private rows. A row that a teacher does not accept is dropped from the shard
            of the teacher. Dask collections X, y and groups stay on the dask workers.

        y : array-like of shape (n_rows,)
            Labels of the private rows. With `classes`, a row without a label (None,
            NaN) is dropped; `check_data` lists dropped rows.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows, without labels. The people in these rows are not protected.
            Wrap the rows in :class:`~sklearn_pate.PublicData`, or a search may split
            the rows.

        groups : array-like of shape (n_rows,), default=None
            Group id of each row, for ``privacy_unit="group"``: integers or strings. A
            row without an id is left out. How rows of a group count: see "Rows per
            patient" in :doc:`/guide/data`.

        Returns
        -------
        self : PATEClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. Nothing was released or charged,
            except possibly the counts of `synthetic` or of codes. If all teachers
            failed, the message may quote private rows: do not publish it.

        BudgetExceededError, LedgerError
            If the cost exceeds the budget of the `ledger`, or if its file cannot be
            used. The latter also if its counts give other `synthetic` rows with the
            installed library versions. Nothing was charged, and no answer released.

        Warns
        -----
        PublicDataWarning, PrivacyLeakWarning, PrivacyUtilityWarning, TeacherWarning, \
                StudentWarning
            If public rows, noise, teachers or answers may not be as intended.
        """
        with progress_of(self):
            # Plan: public rows and public numbers alone; teacher and student are tried.
            aggregation = self._plan(X, y, X_public=X_public, groups=groups)
            # Record: the whole cost, before the first teacher.
            release, private = aggregation.release, aggregation.private
            dropped = private.problems if private.on_cluster else None
            if dropped is None:
                dropped = self._find_problems(X, y, X_public, groups, self.classes)
            announce(f"{release.accounted.in_one_line()}, {release.statement!r}")
            entry = open_entry(
                self,
                release,
                private.content(),
                aggregation.public_content,
                aggregation.features,
            )
            # Where counts are released, this line spends the first part of the privacy.
            aggregation, marginals = self._after_counts(aggregation, entry)
            # Teachers: each on its shard; what they send is summed in whole numbers.
            sums, problems = train_teachers(
                aggregation,
                memory=memory_location(self.memory),
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            # Spend: noise is drawn on this line or at the sites, and nowhere else.
            released = aggregation.draw(sums, entry)
            # Student: public rows and released numbers alone.
            student = aggregation.teach(released)
            analysis = aggregation.analyse(sums, released, problems, entry)
        return self._set_fitted(
            aggregation, released, student, analysis, marginals, dropped
        )

    @with_callbacks
    def fit_from_votes(
        self,
        X_public: Any,
        votes: Any,
        privacy_unit: Literal["row", "group"] | None = None,
    ) -> Self:
        """Train a student on noisy answers from the votes of several parties.

        Each party labels the public rows with a classifier trained on its own data, and
        sends the labels. The unit of privacy is a party, and `classes` is required. At
        epsilon 1, use the votes of a hundred parties or more. For few parties with many
        patients each, see :func:`~sklearn_pate.distributed.cast_votes`.

        Votes count as plain, and ``mechanism="auto"`` is "gnmax". With
        ``student=None``, `estimator` is the student if it predicts probabilities.

        Parameters
        ----------
        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features)
            The public rows that the parties labelled, in the order of the labels.

        votes : Votes or iterable of array-like of shape (n_public,)
            Vote counts, or one array of labels of public rows per party, as in
            :meth:`Votes.from_labels`.

        privacy_unit : {"row", "group"}, default=None
            Unit of privacy of votes that :meth:`Votes.from_shards` collected. With
            None, the unit is a party.

        Returns
        -------
        self : PATEClassifier
            Fitted.

        Raises
        ------
        ValueError, BudgetExceededError, LedgerError
            As in `fit`.
        """
        with progress_of(self):
            self._check_parameters()
            seeds = Seeds.drawn(self.random_state)
            public = read_public_inputs(
                self,
                X_public,
                votes,
                method="fit_from_votes",
                privacy_unit=privacy_unit,
            )
            design = design_of_votes(self, public.X_public)
            queries = prepare_queries(public.X_public, design, seeds.representation)
            votes = check_votes(votes, public)
            n_parties = votes.shape[0]
            units = "parties" if privacy_unit is None else "teachers"
            check_parties(n_parties, self.n_teachers, self.delta, units, sent="voted")
            n_classes = len(public.classes)
            design = replace(design, n_teachers=n_parties)
            design = for_noise(design, self, n_classes)
            release = self._plan_release(design, public)
            aggregation = VoteAggregation(
                public, design, release, seeds, None, (), queries
            )
            aggregation.warn_if_useless()
            aggregation.rehearse()
            entry = open_entry(
                self, aggregation.release, votes.content(), aggregation.public_content
            )
            # Spend: noise is drawn on this line, and nowhere else.
            released = aggregation.draw(votes, entry)
            student = aggregation.teach(released)
            analysis = aggregation.analyse(votes, released, TeacherProblems(), entry)
        return self._set_fitted(aggregation, released, student, analysis)

    def _plan(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> VoteAggregation | ScoreAggregation:
        """Check everything, make all choices, and calibrate the noise."""
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        with phase("reading the rows"):
            private, public = split_inputs(
                self, X, y, X_public, groups, seed=seeds.public_rows, key=seeds.key
            )
        representation = default_representation(
            self.estimator, self.representation, public.X_public
        )
        on_cluster = private.on_cluster
        public = self._with_codes(public, None if on_cluster else representation)
        design = design_fit(
            self,
            public.X_public,
            n_public=public.n_public,
            n_rows=private.n_rows if self.privacy_unit == "row" else None,
            n_classes=len(public.classes),
        )
        shards = private.shards(design.n_teachers, seeds.key)
        release = self._plan_release(design, public)
        planned = release, seeds, private, shards
        aggregation: VoteAggregation | ScoreAggregation
        if isinstance(design.mechanism, MeanScores):
            scored = prepare_scores(public.X_public, design, seeds.representation)
            design = with_shared_representation(design, scored.whole)
            aggregation = ScoreAggregation(public, design, *planned, scored)
        else:
            queries = prepare_queries(public.X_public, design, seeds.representation)
            design = with_shared_representation(design, queries.whole)
            aggregation = VoteAggregation(public, design, *planned, queries)
        self._warn_of_counts(private, public, release)
        aggregation.warn_if_useless()
        aggregation.rehearse()
        return aggregation

    @phase("calibrating the noise")
    def _plan_release(self, design: Design, public: PublicInputs) -> ReleasePlan:
        """Calibrate the mechanism of a design, and state its privacy cost."""
        return ReleasePlan.of_design(
            design,
            n_classes=len(public.classes),
            target=self.epsilon,
            delta=self.delta,
            unit=public.unit,
            assumptions=self._assumptions(
                public, of_rows=isinstance(design.mechanism, MeanScores)
            ),
            counts_for=partial(self._counts, public),
        )

    def _check_parameters(self) -> None:
        check_ensemble(self)
        super()._check_parameters()
        check_strategy(self.query_strategy, self.mechanism, self._unfitted_inner())
        if isinstance(as_mechanism(self.mechanism), MeanScores):
            check_scores(self)

    def _readers(self) -> dict[str, Any]:
        return readers_of_teachers(
            default_representation(self.estimator, self.representation, None),
            default_teacher(self.estimator),
            self._unfitted_inner(),
        )

    def _unfitted_inner(self) -> BaseEstimator:
        # A teacher that is the student has probabilities, as the default student has.
        if self.student is None:
            return default_student(self.estimator, None)
        return self.student

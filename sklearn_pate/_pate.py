"""PATEClassifier: plan, ledger entry, teachers, queries, student, analysis."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from sklearn_pate._aggregation._aggregation import train_teachers
from sklearn_pate._aggregation._checks import (
    check_ensemble,
    check_scores,
    check_strategy,
    memory_location,
)
from sklearn_pate._aggregation._classifier import StudentClassifier
from sklearn_pate._aggregation._design import (
    Design,
    as_mechanism,
    default_representation,
    default_student,
    default_teacher,
    design_fit,
    design_of_votes,
)
from sklearn_pate._aggregation._entry import open_entry, release_of_design
from sklearn_pate._aggregation._fit_plan import MARGINS, FitPlan, check_margins
from sklearn_pate._aggregation._rows import (
    PublicInputs,
    check_parties,
    check_votes,
    read_public_inputs,
    split_inputs,
)
from sklearn_pate._aggregation._score_aggregation import (
    ScoreAggregation,
    prepare_scores,
)
from sklearn_pate._aggregation._vote_aggregation import (
    Queries,
    VoteAggregation,
    prepare_queries,
)
from sklearn_pate._estimators._isolation import Seeds
from sklearn_pate._estimators._progress import (
    CallbackSupportMixin,
    announce,
    phase,
    progress_of,
    with_callbacks,
)
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._labels import private_rows_by_position
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate._teachers._training import TeacherProblems
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._value_checks import Constraint
from sklearn_pate.exceptions import PrivacyUtilityWarning
from sklearn_pate.mechanisms import MeanScores, PluralityMechanism


class PATEClassifier(CallbackSupportMixin, StudentClassifier):
    """Private Aggregation of Teacher Ensembles.

    Teachers are trained on disjoint shards of the private rows. They vote on public
    rows, or send class probabilities; a mechanism releases noisy pluralities, or the
    noisy mean of the probabilities; a student is the released mean, or is trained on
    public rows and the release alone. The student predicts, and may be
    published with the statement ``privacy_spent_``.

    Parameters by purpose:

    - **privacy**: `epsilon`, `delta`, `privacy_unit`, `classes`, `public_size`,
      `synthetic`, `ledger`;
    - **quality**: `estimator`, `student`, `n_teachers`, `mechanism`, `n_queries`,
      `query_strategy`, `representation`;
    - **running**: `memory`, `n_jobs`, `verbose`, `random_state`.

    Parameters
    ----------
    estimator : classifier, default=None
        The teacher. Teachers are fitted on class indices 0..K-1, whatever the labels in
        y. Preprocessing that learns from data (scaling, imputation, encoding) belongs
        inside it, as a Pipeline: a step in front of PATEClassifier is fitted on private
        rows without protection. It is cloned; do not fit this object yourself, as the
        classifier is printed with it. A teacher must not store anything outside itself
        (in files, module or class variables), or teachers would learn from each other.
        None means ``LogisticRegression(max_iter=1000)``.

    student : classifier, default=None
        The student. None means the released mean itself for "scores", a logistic
        regression on a public representation where queries are answered, and a clone of
        the teacher for networks and images. One that accepts
        unlabelled rows (y = -1) gets all public rows: SelfTrainingClassifier,
        LabelSpreading, LabelPropagation, and any estimator with an attribute
        ``accepts_unlabeled = True``. Other students get the answered rows, and soft
        labels of the mean by :class:`~sklearn_pate.students.DistillationClassifier`.
        The training of a student has no privacy cost.

    n_teachers : int or "auto", default="auto"
        Number of shards. The votes of more teachers exceed more noise, but each learns
        from fewer rows. "auto" is the square root of the number of private rows, twice
        that for mean scores of teachers that learn from a `representation`; with
        ``privacy_unit="group"``, a number must be given.

    mechanism : {"auto", "scores", "gnmax", "lnmax", "gumbel", "permute-and-flip", \
            "confident", "interactive", "histogram"} or mechanism, default="auto"
        "scores" releases the mean of the teachers' class probabilities
        (:class:`~sklearn_pate.mechanisms.MeanScores`). All others answer queries on
        votes; "histogram" releases all vote counts of a query, for a student that
        learns from soft labels. "auto" is "scores" if the noise of `epsilon` hides
        little of them. It is "gnmax" in all other cases: for a
        student that accepts unlabelled rows, for networks, for given teachers of
        images, and where `n_queries` or `query_strategy` is given. A mechanism object
        has further parameters, such as the threshold of ``ConfidentGNMax``. Its noise
        comes from the operating system, never from `random_state`.

    n_queries : int or "auto", default="auto"
        Number of queries: public rows that the teachers label, each once. At a fixed
        epsilon, more queries mean more noise in each answer. "auto" is 2000, 100 for a
        student that accepts unlabelled rows, and for networks and images the number
        whose answers are right where teachers agree. "scores" has no queries.

    query_strategy : {"auto", "random", "representative", "uncertainty", "experts", \
            "interactive"} or QueryStrategy, default="auto"
        Choice of the queries, which has no privacy cost. "representative" chooses
        typical rows; "uncertainty" and "experts" choose, in rounds, rows of which a
        student of the answers so far is uncertain; "interactive" goes with the
        mechanism of that name. "auto" is "representative" if `n_queries` is below a
        tenth of the public rows and they are numbers, "random" otherwise. Classes of
        ``sklearn_pate.students`` have further parameters.

    representation : transformer, "auto" or None, default="auto"
        Fitted on public rows only. It transforms the shards of the teachers and the
        public rows that query strategies compare and that "scores" are written in; a
        given student gets the rows themselves. Teachers with few rows
        gain most. It has no privacy cost if it transforms each row by itself. "auto" is
        a :class:`~sklearn_pate.students.TableRepresentation`, or an
        :class:`~sklearn_pate.students.ImageRepresentation` where X has the dimensions
        of images, for the default teacher and for linear, nearest-neighbour and
        discriminant classifiers, and None for all others, such as trees and a Pipeline
        with an encoder of its own. None means the rows themselves, standardized columns
        for query strategies, and a TableRepresentation for "scores".

    epsilon : float or None, default=1.0
        The publishable epsilon of this fit: noise is calibrated so that
        ``privacy_spent_.epsilon`` is at most this, before the first query. None uses
        the mechanism's own noise and states its epsilon.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover. It must be well below one over
        the number of rows.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy: one row, or all rows of one group, such as a patient, given as
        ``fit(..., groups=patient_id)``. With "row", a person with several rows is
        **not** protected as a whole. `fit_from_votes` protects a party in any case.

    public_size : float, default=None
        Without `X_public` in `fit`, hold out this share of the rows (of the groups, if
        they are the unit) as public. The people in them are **not protected**.

    synthetic : PrivateMarginals, default=None
        In place of public rows: draw rows from noisy counts of the private rows, which
        are within `epsilon`, too. It needs a domain that was declared **without a look
        at private rows**; see :class:`~sklearn_pate.PrivateMarginals`.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. None reads them from y, and states as an assumption
        that they are public; `fit_from_votes` needs them. A private row with another
        label is dropped, and counted in ``privacy_analysis_.data_problems``.

    ledger : PrivacyLedger, default=None
        The privacy budget of the private data over all fits. The cost of each fit is
        charged before any noise is drawn; a fit that would exceed the budget raises
        BudgetExceededError and draws nothing. With an integer `random_state`, a killed
        fit resumes with the answers that were charged, and a fit that is repeated gets
        the same answers at no further cost; a change in the code of a teacher's classes
        and functions is not noticed. **Rows or labels that were prepared in another
        way, however slightly, need another `random_state`**: equal answers would reveal
        that the preparation changed nothing. None records nothing, so that the costs of
        several fits must be added up by hand.

    memory : str, path-like or joblib.Memory, default=None
        A folder that stores the votes of finished teachers. A killed fit resumes there,
        and another fit with the same shards, teacher and public rows (but another
        epsilon, mechanism, number of queries or student) trains no teacher again. Needs
        an integer `random_state`. **Its content is sensitive**: votes, and warnings
        that may quote private rows, in a folder that only this user can read. Remove it
        after use, and when the code of the teacher's classes and functions changes. A
        fit that uses it is a new release with its own privacy cost, unless a `ledger`
        has its entry. `synthetic` rows are drawn anew by each fit, so that votes on
        them are found only by a fit whose entry a `ledger` has.

    n_jobs : int, default=None
        Number of teachers trained at once, as in joblib; ``joblib.parallel_config``
        chooses the backend: this machine, or a cluster with dask or ray. The votes do
        not depend on it, unless the arithmetic of the machines differs (torch networks
        in threads may differ, too). Processes train in parallel; threads train in turn,
        as they share the global random generators.

    verbose : int or "auto", default="auto"
        Progress on the standard error stream: phases of the fit, and how many teachers
        are trained, wherever they are. "auto" shows it in a line that disappears, in a
        terminal or a notebook only. 0 shows nothing. 1 keeps a line for each phase and
        for the mechanism that was chosen, also in a file. More adds the messages of
        joblib. With scikit-learn 1.9 or later, ``set_callbacks(ProgressBar())`` draws
        the same phases as bars; then "auto" shows nothing. The times at which lines
        appear depend on private rows.

    random_state : int, RandomState instance or None, default=None
        Seeds shards, teachers, queries and student. It may be public.

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
        **Sensitive.** The privacy cost of the votes, and the warnings of teachers. Its
        repr is redacted; a pickled or copied estimator comes without it.

    mechanism_ : Mechanism
        The mechanism with all its parameters; for `synthetic`, both parts of the
        release, ``counts`` and ``mechanism``.

    query_strategy_ : QueryStrategy or None
        The strategy that was used; None for "scores".

    representation_ : transformer or None
        Fitted on public rows. May be published.

    queried_indices_ : ndarray of int of shape (n_queries,)
        Public rows that were queried, or scored.

    answers_ : ndarray of int of shape (n_queries,)
        Answers to them: indices into ``classes_``, -1 for no answer.

    soft_answers_ : ndarray of shape (n_queries, n_classes) or None
        Class probabilities of the scored rows, by the released mean. May be
        published.

    estimate_ : Estimate or None
        Released numbers of "scores". May be published.

    histograms_ : ndarray of int of shape (n_queries, n_classes) or None
        Noisy vote counts, for ``mechanism="histogram"``. May be published.

    marginals_ : dict or None
        For `synthetic`, the noisy counts of each column, arrays of shape (n_classes,
        n_cells) in the order of the domain; missing values last. May be published.

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

    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_queries": Constraint.count(also=("auto",)),
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
        representation: Any = "auto",
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        privacy_unit: Literal["row", "group"] = "row",
        public_size: float | None = None,
        synthetic: PrivateMarginals | None = None,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        memory: Any = None,
        n_jobs: int | None = None,
        verbose: int | Literal["auto"] = "auto",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.student = student
        self.n_teachers = n_teachers
        self.mechanism = mechanism
        self.n_queries = n_queries
        self.query_strategy = query_strategy
        self.representation = representation
        self.epsilon = epsilon
        self.delta = delta
        self.privacy_unit = privacy_unit
        self.public_size = public_size
        self.synthetic = synthetic
        self.classes = classes
        self.ledger = ledger
        self.memory = memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @private_rows_by_position
    @with_callbacks
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Train teachers on private rows, and a student on their noisy answers.

        Every call is a new release with its own cost, unless a `ledger` has its entry.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, dask collection} of shape \
                (n_rows, n_features)
            Private rows. Those of a dask DataFrame or array stay on its workers, where
            the teachers are trained; then y and groups are dask collections with the
            same partitions, and a client of dask is running. A row with a missing or
            infinite value, or with text in a column of numbers, that the teacher does
            not accept is dropped inside its shard, as an error would reveal it;
            ``privacy_analysis_`` counts them.
            Public rows with such values are refused.

        y : array-like of shape (n_rows,)
            Their labels. With `classes`, a row without a label (None, NaN) is dropped.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows, without labels. The people in them are not protected. Wrap them
            in :class:`~sklearn_pate.PublicData`, or a search may split them.

        groups : array-like of shape (n_rows,), default=None
            Group id of each row, for ``privacy_unit="group"``: integers or strings. A
            row without an id is left out.

        Returns
        -------
        self : PATEClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. No query was answered and nothing
            was charged. Teacher and student were tried on public rows with made-up
            labels; only errors that the answers cause come after the release. With
            `synthetic`, teachers are trained after the release of the counts, and an
            error because all of them failed comes after it, too.

        BudgetExceededError
            If the cost exceeds the budget of the `ledger`. Nothing was charged.

        LedgerError
            If the file of the `ledger` cannot be read or written, or the counts in it
            give other `synthetic` rows in these versions of libraries. No answer was
            released.

        Warns
        -----
        PublicDataWarning
            If rows of X are used as public, a search may split `X_public`, or its text
            or images may be misread.

        PrivacyLeakWarning
            If the noise is seeded, or `delta` is too large for the number of rows.

        PrivacyUtilityWarning
            If no student can learn from answers with so much noise. Nothing was queried
            or charged.

        TeacherWarning
            If teachers may have failed or warned; see ``privacy_analysis_``.

        StudentWarning
            If the answers hold fewer than two classes.
        """
        with progress_of(self):
            # Plan: public rows and public numbers alone; teacher and student are tried.
            aggregation = self._plan(X, y, X_public=X_public, groups=groups)
            # Record: the whole cost, before the first teacher.
            release, private = aggregation.release, aggregation.private
            announce(f"{release.accounted.in_one_line()}, {release.statement!r}")
            entry = open_entry(
                self, release, private.content(), aggregation.public_content
            )
            # With synthetic rows, the first part of the privacy is spent on this line.
            aggregation, marginals = self._on_drawn_rows(aggregation, entry)
            # Teachers: each on its shard; what they send is summed in whole numbers.
            sums, problems = train_teachers(
                aggregation,
                memory=memory_location(self.memory),
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            # Spend: noise is drawn on this line, and nowhere else.
            released = aggregation.draw(sums, entry)
            # Student: public rows and released numbers alone.
            student = aggregation.teach(released)
            analysis = aggregation.analyse(sums, released, problems, entry)
        return self._set_fitted(aggregation, released, student, analysis, marginals)

    @with_callbacks
    def fit_from_votes(
        self,
        X_public: Any,
        votes: Any,
        privacy_unit: Literal["row", "group"] | None = None,
    ) -> Self:
        """Train a student on noisy answers from votes that were collected elsewhere.

        Each party trains a classifier on its own data, labels the public rows with it,
        and sends the labels; rows and models stay with the party. Set `classes` to all
        labels that count. The unit of privacy is a party, whatever the classifier's own
        `privacy_unit` is; `estimator` is the student where `student` is None.

        At epsilon 1 the noise needs a hundred votes or more. Five hospitals can send as
        many if each trains twenty teachers on disjoint shards of its patients, by
        :func:`~sklearn_pate.distributed.shard_of` and
        :func:`~sklearn_pate.distributed.cast_votes`. Then the statement can protect
        each patient: pass ``privacy_unit="group"``. A hospital as a whole is not
        protected.

        Parameters
        ----------
        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features)
            The rows that were labelled, in the same order.

        votes : Votes or iterable of array-like of shape (n_public,)
            Vote counts, or one array of labels of the public rows from each party, as
            :meth:`Votes.from_labels` takes them.

        privacy_unit : {"row", "group"}, default=None
            Unit of privacy of votes with a header, which
            :meth:`Votes.from_shards` and :meth:`Votes.load` return: what a shard holds
            whole. The statement lists what it then assumes: that rows were assigned to
            shards by their ids, that each teacher saw its own shard alone, and, with
            several sites, that each person has data at one of them. None protects a
            party: whatever an array of labels, or a teacher, was made from.

        Returns
        -------
        self : PATEClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the votes cannot be used. No query was answered and
            nothing was charged. The student was tried on public rows with made-up
            labels; only errors that the answers cause come after the release.

        BudgetExceededError
            If the cost exceeds the budget of the `ledger`. Nothing was charged.

        LedgerError
            If the file of the `ledger` cannot be read or written. No answer was
            released.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded, or `delta` is too large for the number of parties.

        PrivacyUtilityWarning
            If no student can learn from answers with so much noise.

        TeacherWarning
            If labels may have been left out because they are not in `classes`.

        StudentWarning
            If the answers hold fewer than two classes.
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
            design = replace(design, n_teachers=n_parties)
            aggregation = self._of_votes(design, public, seeds, queries)
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

    @private_rows_by_position
    def plan_fit(
        self,
        X: Any,
        y: Any,
        *,
        X_public: Any = None,
        groups: Any = None,
        margins: Sequence[float] = MARGINS,
    ) -> FitPlan:
        """Plan a fit: its noise, its privacy cost, and its label accuracy.

        Nothing is drawn or charged, and no teacher sees a private row; as in `fit`, a
        `representation` is fitted on the public rows, and teacher and student are tried
        on them with made-up labels. Numbers of rows, classes and
        queries are read from the data, the rest from the parameters.

        Parameters
        ----------
        X, y, X_public, groups : object
            As in `fit`.

        margins : sequence of float, default=(0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
            Leads of the most-voted class over every other class, as shares of the
            teachers, at which to compute the label accuracy.

        Returns
        -------
        plan : FitPlan
            To be printed, or read. It may be published if its `assumptions` hold.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used.

        See Also
        --------
        sklearn_pate.inspection.plan_fit : Plan from numbers alone, without data.
        """
        check_margins(margins)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyUtilityWarning)  # the plan has it
            aggregation = clone(self)._plan(X, y, X_public=X_public, groups=groups)
        planned = aggregation.fit_plan(margins)
        more = self._why_counts_useless(
            aggregation.private, aggregation.public, aggregation.release
        )
        if more is None:
            return planned
        return replace(planned, warnings=(*planned.warnings, more))

    def _plan(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> VoteAggregation | ScoreAggregation:
        """Check everything, make all choices, and calibrate the noise."""
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        private, public = self._read_inputs(X, y, X_public, groups, seeds)
        design = design_fit(
            self,
            public.X_public,
            n_public=public.n_public,
            n_rows=private.n_rows if self.privacy_unit == "row" else None,
            n_classes=len(public.classes),
        )
        shards = private.shards(design.n_teachers, seeds.key)
        aggregation: VoteAggregation | ScoreAggregation
        if isinstance(design.mechanism, MeanScores):
            aggregation = self._of_scores(design, public, seeds, private, shards)
        else:
            queries = prepare_queries(public.X_public, design, seeds.representation)
            aggregation = self._of_votes(
                design, public, seeds, queries, private, shards
            )
        self._warn_of_counts(private, public, aggregation.release)
        aggregation.warn_if_useless()
        aggregation.rehearse()
        return aggregation

    @phase("reading the rows")
    def _read_inputs(
        self, X: Any, y: Any, X_public: Any, groups: Any, seeds: Seeds
    ) -> tuple[Any, PublicInputs]:
        """Check the data; private rows stay where they are."""
        if not hasattr(X, "__dask_graph__"):
            return split_inputs(self, X, y, X_public, groups, seed=seeds.public_rows)
        # Imported here, as it imports dask.
        from sklearn_pate._aggregation._dask_inputs import read_dask_inputs

        return read_dask_inputs(self, X, y, X_public, groups, key=seeds.key)

    def _of_votes(
        self,
        design: Design,
        public: PublicInputs,
        seeds: Seeds,
        queries: Queries,
        private: Any = None,
        shards: Sequence[Any] = (),
    ) -> VoteAggregation:
        """Return the aggregation of votes, with its noise calibrated."""
        release = release_of_design(
            design,
            n_classes=len(public.classes),
            unit=public.unit,
            assumptions=self._assumptions(public),
            **self._budget(public),
        )
        return VoteAggregation(public, design, release, seeds, private, shards, queries)

    def _of_scores(
        self,
        design: Design,
        public: PublicInputs,
        seeds: Seeds,
        private: Any,
        shards: Sequence[Any],
    ) -> ScoreAggregation:
        """Return the aggregation of scores, with its noise calibrated."""
        mechanism, n_classes = design.mechanism, len(public.classes)
        if mechanism.threshold != "auto" and n_classes != 2:
            raise ValueError(
                f"threshold={mechanism.threshold!r} is for two classes, and there are "
                f"{n_classes}; leave threshold='auto'."
            )
        release = release_of_design(
            design,
            n_classes=n_classes,
            unit=public.unit,
            assumptions=self._assumptions(public),
            **self._budget(public),
        )
        scored = prepare_scores(public.X_public, design, seed=seeds.representation)
        return ScoreAggregation(public, design, release, seeds, private, shards, scored)

    def _budget(self, public: PublicInputs) -> dict[str, Any]:
        """Return the budget of a release, and the release of counts within it."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "counts_for": partial(self._counts, public),
        }

    def _check_parameters(self) -> None:
        check_ensemble(self)
        super()._check_parameters()
        check_strategy(self.query_strategy, self.mechanism, self._unfitted_student())
        if isinstance(as_mechanism(self.mechanism), MeanScores):
            check_scores(self)

    def _chosen_representation(self, X_public: Table | None = None) -> Any:
        return default_representation(self.estimator, self.representation, X_public)

    def _sees_rows_first(self) -> Any:
        # Teachers get the rows that the representation has transformed.
        representation = self._chosen_representation()
        teacher = default_teacher(self.estimator)
        return teacher if representation is None else representation

    def _unfitted_student(self, X_public: Table | None = None) -> BaseEstimator:
        if self.student is None:
            return default_student(self.estimator, X_public)
        return self.student

    def _possible_predictors(self) -> Sequence[Any]:
        # The teacher is the student of images, and of votes of parties.
        if self.student is None and self.estimator is not None:
            return [self.estimator, self._unfitted_student()]
        return [self._unfitted_student()]

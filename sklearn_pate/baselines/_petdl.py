"""PETDLClassifier: teachers send clipped knowledge, and its noisy sum is released."""

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from sklearn_pate._base._ledger_entry import open_entry
from sklearn_pate._base._parameters import resolve_n_teachers
from sklearn_pate._base._party_inputs import check_parties, read_public_inputs
from sklearn_pate._base._query_plan import represent
from sklearn_pate._base._release_plan import (
    ReleasePlan,
    analyse_release,
    plan_release,
)
from sklearn_pate._base._split_inputs import PublicInputs, split_inputs
from sklearn_pate._base._teacher_ensemble import (
    Seeds,
    TeacherEnsemble,
    assign_shards,
)
from sklearn_pate._estimators._callbacks import with_callbacks
from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers import OutputsForm, TeacherProblems, collect
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.baselines._petdl_batches import (
    PublicBatches,
    SumFitPlan,
    SumPlan,
    plan_batches,
)
from sklearn_pate.baselines._petdl_checks import (
    check_default_student,
    check_petdl_parameters,
    petdl_student,
    read_outputs,
)
from sklearn_pate.mechanisms import NoisySum

__all__ = ["PETDLClassifier"]


class PETDLClassifier(TeacherEnsemble):
    """Private Deep Learning with Teacher Ensembles, with a guarantee that holds.

    Teachers are trained on disjoint shards of the private rows. Each sends one vector:
    what it thinks of groups of public rows, class by class, and perhaps how alike these
    groups are in its hidden layer. The vectors are clipped, added up, and released once
    with Gaussian noise. A student network learns from that: the hint first, then the
    soft labels. It may be published, with ``privacy_spent_`` as its statement.

    Parameters
    ----------
    estimator : classifier, default=None
        The teacher, with `predict_proba`. None means ``RandomForestClassifier()``. See
        :class:`~sklearn_pate.PATEClassifier` for what belongs in here. The hint of a
        skorch network is what goes into its last ``torch.nn.Linear``; that of any other
        classifier are its probabilities.

    student : classifier, default=None
        None is a :class:`~sklearn_pate.students.FixMatchClassifier` with a
        :class:`~sklearn_pate.students.ConvSmall` network, which learns soft labels from
        the rows that have some, and agrees with itself on the others. It needs the
        extra ``deep``. Others get soft labels, unlabelled rows and the hint as far as
        they accept them. It costs no privacy, however it is trained.

    n_teachers : int or "auto", default="auto"
        Number of shards. Noise for an epsilon of 1 drowns what a handful of teachers
        say: it takes a hundred or more. "auto" is the square root of the number of
        private rows, rounded, and is refused for ``privacy_unit="group"``.

    batch_size : int, default=128
        Number of public rows that one group has, about: larger ones are fewer, and cost
        less privacy in all, but tell less of each row. It is also the number of rows in
        a batch of the default student.

    batches : {"cluster", "random"}, default="cluster"
        How public rows are grouped; it costs no privacy. "cluster" puts rows that look
        alike together, so that a label for all of them is mostly right for each.
        "random" is a batch as in the paper, which says how frequent classes are in it.

    core : float, default=0.5
        The share of each cluster's rows, nearest to its centre, that teachers are asked
        about and that get its label. The others stay unlabelled.

    temperature : float, default=1.0
        Softens the teachers' probabilities to p^(1/T) before they are averaged over
        a group. Targets are sharpened back for the student.

    clipping_bound : float, default=1.0
        L2 norm that the values of a group are scaled down to, at most 1: probabilities
        are never longer. The noise is proportional to it: a lower bound makes teachers
        that are sure count no more than others. For ``mode="paper"``, the bound of each
        teacher's loss; where the loss is larger, at first about ln(n_classes), its
        gradient is zero.

    weighted : bool, default=False
        Whether each row counts by the teacher's confidence in it. The weights are
        inside the clipped vector and cost nothing more; worth it where teachers know
        different classes.

    noise_scale : float, default=None
        Standard deviation of the noise on each number of the sum, in clipping bounds.
        None calibrates it to `epsilon`. More noise, more privacy.

    hint_epochs : int, default=0
        Number of passes in which the student learns the hint, before all else. 0 asks
        for no hint, and leaves all of the privacy to the labels.

    hint_share : float, default=0.2
        Share of the privacy that goes to the hint, if `hint_epochs` is not 0.

    distillation_epochs : int, default=20
        Number of passes in which the default student learns the labels. What was
        released is learnt from as often as you like.

    compression : float, default=1
        What the width of each layer of the default student is divided by.

    image_shape : tuple of int, default=None
        (height, width) or (channels, height, width) of images that come as flat rows,
        for the default student.

    augmentation : object, default=None
        Of the default student, see :class:`~sklearn_pate.students.FixMatchClassifier`.

    representation : transformer, default=None
        Fitted on public rows only. Teachers are trained on what it makes of their
        shards, and clusters are found in what it makes of public rows.

    mode : {"sound", "paper"}, default="sound"
        "paper" does what the paper wrote: noise is added to the scalar loss of the
        student. The gradient of that noise is zero, so that **nothing is private**;
        ``privacy_spent_.epsilon`` is infinite. For research only.

    epsilon : float or None, default=1.0
        The publishable epsilon of this fit. None uses `noise_scale` and reports what it
        costs.

    delta : float, default=1e-5
        The probability mass that epsilon does not cover. It must be well below one over
        the number of rows.

    privacy_unit : {"row", "group"}, default="row"
        Whom the statement protects, see :class:`~sklearn_pate.PATEClassifier`.

    public_size : float, default=None
        Without an `X_public` in `fit`, use this share of the rows (of the groups, if
        they are the unit) as public. The people in them get **no protection**.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. None reads them from y, and states as an assumption
        that they are public; `fit_from_outputs` needs them, in its columns' order.
        A private row with another label is dropped;
        ``privacy_analysis_.data_problems`` tells the data holder.

    ledger : PrivacyLedger, default=None
        The account of the private data over all fits, see
        :class:`~sklearn_pate.PATEClassifier`.

    noise_seed : int, default=None
        None draws the noise from the operating system. An integer makes it reproducible
        and **voids every guarantee**.

    memory : str, path-like or joblib.Memory, default=None
        A folder that keeps what finished teachers sent. **That is sensitive.** See
        :class:`~sklearn_pate.PATEClassifier`.

    n_jobs : int, default=None
        Number of teachers trained at once, as in joblib.

    verbose : int, default=0
        Verbosity of joblib over the teachers.

    random_state : int, RandomState instance or None, default=None
        Seeds shards, teachers, groups and student. It may be known to anyone.

    Attributes
    ----------
    student_ : classifier
        The student, fitted on class indices. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published. A group of public rows counts as a query, and the hint as several.

    privacy_analysis_ : PrivacyAnalysis or None
        **Sensitive.** The sum before the noise, and what teachers warned of. Prints
        redacted; a pickled or copied estimator comes without it. None for
        ``mode="paper"``.

    mechanism_ : NoisySum
        With all its numbers.

    group_of_row_ : ndarray of int of shape (n_public,)
        The group of each public row, -1 for none. May be published.

    released_ : ndarray of shape (n_groups, n_classes) or None
        The noisy sum over teachers for each group, in probabilities. May be published.

    similarities_ : ndarray of shape (n_groups, n_groups) or None
        The noisy sum of the hints. May be published.

    representation_ : transformer or None
        Fitted on public rows. May be published.

    public_indices_ : ndarray of int of shape (n_public,) or None
        Rows of X that were used as public because of `public_size`. For the data
        holder: a pickled or copied estimator comes without it.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Sun, Zhou, Wang, Li, Socher, Yu, Xiong (2019), "Private deep learning with teacher
    ensembles". What is kept of it: soft labels at a temperature, a hint before them,
    one query for a batch of public rows, teachers weighted by confidence. What is
    not: its noise, which is added to a loss, so that the student does not depend on it.

    The cost is that of one Gaussian release, exactly
    (:class:`~sklearn_pate.mechanisms.NoisySum`):
    ``SoftVoteLayout`` proves how far one teacher moves
    the sum.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PublicData
    >>> from sklearn_pate.baselines import PETDLClassifier
    >>> from sklearn_pate.students import DistillationClassifier
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> clf = PETDLClassifier(
    ...     LogisticRegression(),
    ...     DistillationClassifier(LogisticRegression()),
    ...     n_teachers=200,
    ...     batch_size=20,
    ... )
    >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X[5500:], y[5500:]) > 0.8)
    True
    """

    # None for mode="paper".
    mechanism_: NoisySum | None
    group_of_row_: NDArray[np.intp] | None
    released_: NDArray[np.floating] | None
    similarities_: NDArray[np.floating] | None
    privacy_analysis_: PrivacyAnalysis | None

    def __init__(
        self,
        estimator: Any = None,
        student: Any = None,
        *,
        n_teachers: int | Literal["auto"] = "auto",
        batch_size: int = 128,
        batches: Literal["cluster", "random"] = "cluster",
        core: float = 0.5,
        temperature: float = 1.0,
        clipping_bound: float = 1.0,
        weighted: bool = False,
        noise_scale: float | None = None,
        hint_epochs: int = 0,
        hint_share: float = 0.2,
        distillation_epochs: int = 20,
        compression: float = 1,
        image_shape: Any = None,
        augmentation: Any = None,
        representation: Any = None,
        mode: Literal["sound", "paper"] = "sound",
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        privacy_unit: Literal["row", "group"] = "row",
        public_size: float | None = None,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        noise_seed: int | None = None,
        memory: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.student = student
        self.n_teachers = n_teachers
        self.batch_size = batch_size
        self.batches = batches
        self.core = core
        self.temperature = temperature
        self.clipping_bound = clipping_bound
        self.weighted = weighted
        self.noise_scale = noise_scale
        self.hint_epochs = hint_epochs
        self.hint_share = hint_share
        self.distillation_epochs = distillation_epochs
        self.compression = compression
        self.image_shape = image_shape
        self.augmentation = augmentation
        self.representation = representation
        self.mode = mode
        self.epsilon = epsilon
        self.delta = delta
        self.privacy_unit = privacy_unit
        self.public_size = public_size
        self.classes = classes
        self.ledger = ledger
        self.noise_seed = noise_seed
        self.memory = memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Train teachers on private rows, and a student on their noisy knowledge.

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
        self : PETDLClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data cannot work; nothing was released and no privacy
            was spent. What the student raises comes after the release.

        BudgetExceededError
            If the cost does not fit the budget of the `ledger`; nothing was released
            or charged.

        LedgerError
            If the file of the `ledger` cannot be read or written; no release was seen.

        Warns
        -----
        PublicDataWarning
            If rows of X are used as public, or `X_public` may be cut by a search.

        PrivacyLeakWarning
            If the noise is seeded or that of the paper, or `delta` is too large for the
            number of rows.

        TeacherWarning
            If teachers may have failed or warned; see ``privacy_analysis_``.

        StudentWarning
            If the labels hold fewer than two classes.
        """
        self._check_parameters()
        if self.mode == "paper":
            return self._fit_by_noisy_loss(X, y, X_public, groups)
        plan = self._plan(X, y, X_public=X_public, groups=groups)
        private, batches = plan.private, plan.batches
        entry = open_entry(self, plan.release, private.content(), plan.public_content)
        knowledge, problems = self._train_teachers(
            collect,
            assign_shards(private, plan.release.n_teachers, plan.seeds.shards),
            private,
            batches.X_for_teachers,
            batches.representation,
            plan.seeds.teachers,
            form=batches.form,
            aggregate=batches.aggregate,
        )
        # The privacy is spent on the next line: noise is drawn, the sum is released.
        released, similarities = plan.query(knowledge, entry)
        student = self._train_student(plan, released, similarities)
        analysis = analyse_release(
            plan.release,
            batches.values(knowledge.counts([0])),
            problems,
            in_ledger=entry is not None,
        )
        return self._set_fitted(
            plan, released, similarities, student, analysis, private.public_indices
        )

    def fit_from_outputs(self, X_public: Any, outputs: Any) -> Self:
        """Train a student on the noisy knowledge of models that were trained elsewhere.

        Each party trained what it liked on data of its own, and sent its class
        probabilities for the public rows: no row and no model ever left it. They are
        clipped, added up and released here; whoever runs this sees them. The statement
        protects all outputs of one party, whatever `privacy_unit` says. `estimator` is
        not used, and `representation` for clusters only.

        Parameters
        ----------
        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features)
            The rows that the outputs are about, in the same order.

        outputs : iterable of array-like of shape (n_public, n_classes)
            One a party, with a column for each of the sorted `classes`; or pairs of
            such an array and one of shape (n_public, n_hidden), the hidden
            representation for the hint. Without one, the hint is that of the
            probabilities.

        Returns
        -------
        self : PETDLClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the outputs cannot work; nothing was released and no
            privacy was spent. What the student raises comes after the release.

        BudgetExceededError
            If the cost does not fit the budget of the `ledger`; nothing was released
            or charged.

        LedgerError
            If the file of the `ledger` cannot be read or written; no release was seen.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded or that of the paper, or `delta` is too large for the
            number of parties.

        StudentWarning
            If the labels hold fewer than two classes.
        """
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        public = read_public_inputs(self, X_public, outputs, method="fit_from_outputs")
        check_default_student(self, public.X_public)
        received = read_outputs(outputs, public)
        if self.mode == "paper":
            return self._follow_noisy_loss(
                SaidAloud(received), public, seeds, self._represent(public, seeds)[0]
            )
        batches = self._plan_batches(public, seeds)
        knowledge = batches.aggregate(batches.form.of_outputs(*one) for one in received)
        n_parties = knowledge.shape[0]
        check_parties(n_parties, self.n_teachers, self.delta, sent="sent outputs")
        release = self._plan_release(public, batches, n_parties)
        plan = SumPlan(public, release, seeds, batches)
        entry = open_entry(self, release, knowledge.content(), plan.public_content)
        # The privacy is spent on the next line: noise is drawn, the sum is released.
        released, similarities = plan.query(knowledge, entry)
        student = self._train_student(plan, released, similarities)
        analysis = analyse_release(
            release,
            batches.values(knowledge.counts([0])),
            TeacherProblems(),
            in_ledger=entry is not None,
        )
        return self._set_fitted(plan, released, similarities, student, analysis, None)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_petdl_parameters(self)

    def _plan(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> SumFitPlan:
        """Settle everything about a fit that comes before the first teacher."""
        self._check_parameters()
        if self.mode == "paper":
            raise ValueError(
                "mode='paper' gives no privacy, and has no cost; use mode='sound'."
            )
        seeds = Seeds.drawn(self.random_state)
        private, public = split_inputs(self, X, y, X_public, groups, seed=seeds.shards)
        check_default_student(self, public.X_public)
        batches = self._plan_batches(public, seeds)
        n_teachers = resolve_n_teachers(self.n_teachers, private.n_rows)
        release = self._plan_release(public, batches, n_teachers)
        return SumFitPlan(public, release, seeds, batches, private)

    def _represent(
        self, public: PublicInputs, seeds: Seeds
    ) -> tuple[BaseEstimator | None, Table]:
        """Fit the representation on public rows, and apply it to them."""
        return represent(self.representation, public.X_public, seeds.representation)

    def _plan_batches(self, public: PublicInputs, seeds: Seeds) -> PublicBatches:
        """Settle the public batches, and what teachers send about them."""
        representation, X_for_teachers = self._represent(public, seeds)
        return plan_batches(
            public.X_public,
            X_for_teachers,
            representation,
            n_classes=len(public.classes),
            batch_size=self.batch_size,
            by=self.batches,
            core=self.core,
            hint_share=self.hint_share if self.hint_epochs else 0.0,
            temperature=float(self.temperature),
            clipping_bound=float(self.clipping_bound),
            weighted=bool(self.weighted),
            seed=seeds.representation,
        )

    def _plan_release(
        self, public: PublicInputs, batches: PublicBatches, n_teachers: int
    ) -> ReleasePlan:
        """Calibrate the noise of the sum, and state what it costs."""
        layout = batches.layout

        def calibrated(epsilon: float | None) -> NoisySum:
            return NoisySum(self.noise_scale, noise_seed=self.noise_seed).prepared(
                n_parts=layout.n_parts, epsilon=epsilon, delta=self.delta
            )

        release = plan_release(
            calibrated(self.epsilon),
            calibrated,
            delta=self.delta,
            unit=public.unit,
            assumptions=self._assumptions(public),
            n_teachers=n_teachers,
            n_queries=1,
            n_values=layout.size,
        )
        # One release of a vector, which is stated by its parts.
        statement = replace(release.statement, n_queries=layout.n_parts)
        return replace(release, statement=statement)

    def _train_student(
        self,
        plan: SumPlan,
        released: NDArray[np.floating],
        similarities: NDArray[np.floating] | None,
    ) -> BaseEstimator:
        """Train the student on public rows and the released sum alone."""
        return plan.batches.teach(
            self._unfitted_student(),
            plan.public.X_public,
            released,
            similarities,
            seed=plan.seeds.student,
            hint_epochs=self.hint_epochs,
        )

    def _set_fitted(
        self,
        plan: SumPlan,
        released: NDArray[np.floating],
        similarities: NDArray[np.floating] | None,
        student: BaseEstimator,
        analysis: PrivacyAnalysis,
        public_indices: NDArray[np.intp] | None,
    ) -> Self:
        """Set the fitted attributes, all at once."""
        self.student_ = student
        self.classes_ = plan.public.classes
        self.representation_ = plan.batches.representation
        self.group_of_row_ = plan.batches.clusters.of_row
        self.released_ = released
        self.similarities_ = similarities
        self._set_release(plan.release.mechanism, plan.statement)
        self.privacy_analysis_ = analysis
        self.public_indices_ = public_indices
        return self

    def _fit_by_noisy_loss(self, X: Any, y: Any, X_public: Any, groups: Any) -> Self:
        """Do as the paper wrote: train teachers, and a student on their outputs."""
        seeds = Seeds.drawn(self.random_state)
        private, public = split_inputs(self, X, y, X_public, groups, seed=seeds.shards)
        check_default_student(self, public.X_public)
        n_teachers = resolve_n_teachers(self.n_teachers, private.n_rows)
        representation, X_for_teachers = self._represent(public, seeds)
        said, _ = self._train_teachers(
            collect,
            assign_shards(private, n_teachers, seeds.shards),
            private,
            X_for_teachers,
            representation,
            seeds.teachers,
            form=OutputsForm(len(public.classes), self.hint_epochs > 0),
            aggregate=SaidAloud,
        )
        self._follow_noisy_loss(said, public, seeds, representation)
        self.public_indices_ = private.public_indices
        return self

    def _follow_noisy_loss(
        self,
        said: "SaidAloud",
        public: PublicInputs,
        seeds: Seeds,
        representation: BaseEstimator | None,
    ) -> Self:
        """Train the student on the teachers' outputs, as the paper wrote."""
        # It imports torch.
        from sklearn_pate.baselines._noisy_loss import follow_noisy_loss

        if public.unit == "party":
            check_parties(
                len(said.by_teacher), self.n_teachers, self.delta, sent="sent outputs"
            )
        student, spent = follow_noisy_loss(self, said, public, seeds.student)
        self.student_ = student
        self.classes_ = public.classes
        self.representation_ = representation
        self.group_of_row_ = self.released_ = self.similarities_ = None
        self._set_release(None, spent)
        self.privacy_analysis_ = None
        self.public_indices_ = None
        return self

    def _unfitted_student(self):
        return petdl_student(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.noise_seed is None
        return tags


class SaidAloud:
    """What teachers said, one by one, for ``mode="paper"``. Sensitive.

    Parameters
    ----------
    said : iterable of (tuple of ndarray, or None)
        Probabilities and representation of each teacher, None for one that failed.
    """

    def __init__(self, said):
        # Teachers finish in any order, on which sums of floats depend.
        self.by_teacher = sorted(
            (one for one in said if one is not None),
            key=lambda one: [part.tobytes() for part in one if part is not None],
        )

    @property
    def any_cast(self):
        """Whether anybody said anything."""
        return bool(self.by_teacher)

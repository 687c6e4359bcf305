"""PETDLClassifier: teachers send clipped knowledge, and its noisy sum is released."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from sklearn_pate._base._ledger_entry import open_entry
from sklearn_pate._base._parameters import resolve_n_teachers
from sklearn_pate._base._party_inputs import check_parties, read_public_inputs
from sklearn_pate._base._release_plan import ReleasePlan
from sklearn_pate._base._split_inputs import PublicInputs, split_inputs
from sklearn_pate._base._teacher_ensemble import Seeds, TeacherEnsemble, assign_shards
from sklearn_pate._estimators._callbacks import with_callbacks
from sklearn_pate._inputs._public_data import public_rows_by_name
from sklearn_pate._teachers import TeacherProblems, collect
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.baselines._petdl_batches import (
    PublicBatches,
    ReleasedSum,
    SumFitPlan,
    SumPlan,
    plan_batches,
    plan_sum,
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
    its class probabilities for groups of public rows, and perhaps a hint: how alike the
    groups are in its hidden layer. The vectors are clipped, added up, and released once
    with Gaussian noise. A student learns from the sum, and may be published with
    ``privacy_spent_`` as its statement.

    Parameters
    ----------
    estimator : classifier, default=None
        The teacher, with `predict_proba`; None is ``RandomForestClassifier()``. See
        :class:`~sklearn_pate.PATEClassifier`. The hint of a skorch network is what goes
        into its last ``torch.nn.Linear``; that of others are their probabilities.

    student : classifier, default=None
        None is a :class:`~sklearn_pate.students.FixMatchClassifier` with a
        :class:`~sklearn_pate.students.ConvSmall` network; it needs the extra ``deep``.
        Any gets soft labels, unlabelled rows and the hint as far as it accepts them.

    n_teachers : int or "auto", default="auto"
        Number of shards; for an epsilon of 1, it takes a hundred or more. "auto" is the
        rounded root of the number of rows, refused for ``privacy_unit="group"``.

    batch_size : int, default=128
        Number of public rows that one group has, about: larger ones are fewer, and cost
        less privacy in all, but tell less of each row. It is also the number of rows in
        a batch of the default student.

    batches : {"cluster", "random"}, default="cluster"
        How public rows are grouped. "cluster" puts rows that look alike together, so
        that a label for all of them is mostly right for each. "random" is the paper's
        batch, which says how frequent classes are in it.

    core : float, default=0.5
        Share of a cluster's rows, nearest to its centre, that teachers are asked about
        and that get its label.

    temperature : float, default=1.0
        Softens the teachers' probabilities to p^(1/T) before they are averaged over a
        group. The student's targets are sharpened back.

    clipping_bound : float, default=1.0
        L2 norm, at most 1, that the values of a group are scaled down to. The noise is
        proportional to it; a lower bound makes sure teachers count as others do.

    weighted : bool, default=False
        Whether each row counts by the teacher's confidence in it, at no privacy cost;
        worth it where teachers know different classes.

    noise_scale : float, default=None
        Standard deviation of the noise on each number of the sum, in clipping bounds.
        None calibrates it to `epsilon`.

    hint_epochs : int, default=0
        Number of passes in which the student first learns the hint; 0 asks for none.

    hint_share : float, default=0.2
        Share of the privacy that goes to the hint, if there is one.

    distillation_epochs : int, default=20
        Number of passes in which the default student learns the labels.

    compression : float, default=1
        What the width of each layer of the default student is divided by.

    image_shape : tuple of int, default=None
        Of the default student: (height, width) or (channels, height, width).

    augmentation : object, default=None
        Of the default student, see :class:`~sklearn_pate.students.FixMatchClassifier`.

    representation : transformer, default=None
        Fitted on public rows only. Teachers are trained, and clusters found, in what it
        makes of rows.

    epsilon : float or None, default=1.0
        The publishable epsilon. None uses `noise_scale` and reports what it costs.

    delta : float, default=1e-5
        What epsilon does not cover; well below one over the number of rows.

    privacy_unit : {"row", "group"}, default="row"
        Whom the statement protects, see :class:`~sklearn_pate.PATEClassifier`.

    public_size : float, default=None
        Without an `X_public` in `fit`, share of the rows, or groups, to use as public.
        The people in them get **no protection**.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur; a private row with another one is dropped. None reads
        them from y, and states as an assumption that they are public;
        `fit_from_outputs` needs them, in its columns' order.

    ledger : PrivacyLedger, default=None
        Of all fits on these data, see :class:`~sklearn_pate.PATEClassifier`.

    noise_seed : int, default=None
        An integer repeats the noise and **voids every guarantee**.

    memory : str, path-like or joblib.Memory, default=None
        A folder for what teachers sent, **which is sensitive**, see
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

    privacy_analysis_ : PrivacyAnalysis
        **Sensitive.** The sum before the noise, and what teachers warned of; dropped by
        pickling.

    mechanism_ : NoisySum
        With all its numbers.

    group_of_row_ : ndarray of int of shape (n_public,)
        The group of each public row, -1 for none. May be published.

    released_ : ndarray of shape (n_groups, n_classes)
        The noisy sum over teachers for each group, in probabilities. May be published.

    similarities_ : ndarray of shape (n_groups, n_groups) or None
        The noisy sum of the hints. May be published.

    representation_ : transformer or None
        Fitted on public rows. May be published.

    public_indices_ : ndarray of int of shape (n_public,) or None
        **Sensitive.** Rows of X used as public because of `public_size`; dropped by
        pickling.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Sun, Zhou, Wang, Li, Socher, Yu, Xiong (2019), "Private deep learning with teacher
    ensembles", have soft labels at a temperature, a hint, a query for a batch of public
    rows, and weights. Their noise is on the student's loss, whose gradient it does not
    change, and **gives no privacy**; here it is on the sum that the student learns.

    The cost is that of one Gaussian release, exactly
    (:class:`~sklearn_pate.mechanisms.NoisySum`): ``SoftVoteLayout`` proves how far one
    teacher moves the sum.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PublicData
    >>> from sklearn_pate.baselines import PETDLClassifier
    >>> from sklearn_pate.students import DistillationClassifier
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> student = DistillationClassifier(LogisticRegression())
    >>> clf = PETDLClassifier(
    ...     LogisticRegression(), student, n_teachers=200, batch_size=20
    ... )
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

    @public_rows_by_name
    @with_callbacks
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Train teachers on private rows, and a student on their noisy knowledge.

        Every call is a new release with its own cost, unless a `ledger` knows it.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows. One with values that the teacher does not take is dropped
            inside its shard; public rows with such values are refused.

        y : array-like of shape (n_rows,)
            Their labels. With `classes`, a row without a label is dropped.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows, without labels; nobody in them is protected. Wrap them in
            :class:`~sklearn_pate.PublicData`, or a search may cut them.

        groups : array-like of shape (n_rows,), default=None
            Ids for ``privacy_unit="group"``: whole numbers or strings. A row without
            one is left out.

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
            If the cost exceeds the budget of the `ledger`; nothing was released.

        LedgerError
            If the file of the `ledger` cannot be read or written; no release was seen.

        Warns
        -----
        PublicDataWarning
            If rows of X are used as public, or `X_public` may be cut by a search.

        PrivacyLeakWarning
            If the noise is seeded, or `delta` is too large for the number of rows.

        TeacherWarning
            If teachers may have failed or warned; see ``privacy_analysis_``.

        StudentWarning
            If the labels hold fewer than two classes.
        """
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
        released = plan.query(knowledge, entry)
        student = plan.teach(self._unfitted_student(), released)
        analysis = plan.analyse(knowledge, problems, entry)
        return self._set_fitted(
            plan, released, student, analysis, private.public_indices
        )

    def fit_from_outputs(self, X_public: Any, outputs: Any) -> Self:
        """Train a student on the noisy knowledge of models that were trained elsewhere.

        Each party sent its model's class probabilities for the public rows, and neither
        rows nor model. They are clipped, added up and released here; whoever runs this
        sees them. The statement protects all outputs of one party, whatever
        `privacy_unit` is. `estimator` is not used, `representation` for clusters only.

        Parameters
        ----------
        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features)
            The rows that the outputs are about, in the same order.

        outputs : iterable of array-like of shape (n_public, n_classes)
            One a party, with a column for each of the sorted `classes`; or pairs of
            such an array and a hidden representation of shape (n_public, n_hidden) for
            the hint, which is otherwise that of the probabilities.

        Returns
        -------
        self : PETDLClassifier
            Fitted.

        Raises
        ------
        ValueError, BudgetExceededError, LedgerError
            As in :meth:`fit`.

        Warns
        -----
        PrivacyLeakWarning, StudentWarning
            As in :meth:`fit`, of parties instead of rows.
        """
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        public = read_public_inputs(self, X_public, outputs, method="fit_from_outputs")
        check_default_student(self, public.X_public)
        received = read_outputs(outputs, public)
        batches = self._plan_batches(public, seeds)
        knowledge = batches.aggregate(batches.form.of_outputs(*one) for one in received)
        n_parties = knowledge.shape[0]
        check_parties(n_parties, self.n_teachers, self.delta, sent="sent outputs")
        release = self._plan_release(public, batches, n_parties)
        plan = SumPlan(public, release, seeds, batches)
        entry = open_entry(self, release, knowledge.content(), plan.public_content)
        # The privacy is spent on the next line: noise is drawn, the sum is released.
        released = plan.query(knowledge, entry)
        student = plan.teach(self._unfitted_student(), released)
        analysis = plan.analyse(knowledge, TeacherProblems(), entry)
        return self._set_fitted(plan, released, student, analysis, None)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_petdl_parameters(self)

    def _plan(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> SumFitPlan:
        """Settle everything about a fit that comes before the first teacher."""
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        private, public = split_inputs(self, X, y, X_public, groups, seed=seeds.shards)
        check_default_student(self, public.X_public)
        batches = self._plan_batches(public, seeds)
        n_teachers = resolve_n_teachers(self.n_teachers, private.n_rows)
        release = self._plan_release(public, batches, n_teachers)
        return SumFitPlan(public, release, seeds, batches, private)

    def _plan_batches(self, public: PublicInputs, seeds: Seeds) -> PublicBatches:
        """Settle the public batches, and what teachers send about them."""
        return plan_batches(
            public.X_public,
            self.representation,
            n_classes=len(public.classes),
            batch_size=self.batch_size,
            by=self.batches,
            core=self.core,
            hint_epochs=self.hint_epochs,
            hint_share=self.hint_share,
            temperature=float(self.temperature),
            clipping_bound=float(self.clipping_bound),
            weighted=bool(self.weighted),
            seed=seeds.representation,
        )

    def _plan_release(
        self, public: PublicInputs, batches: PublicBatches, n_teachers: int
    ) -> ReleasePlan:
        """Calibrate the noise of the sum, and state what it costs."""
        return plan_sum(
            NoisySum(self.noise_scale, noise_seed=self.noise_seed),
            batches.layout,
            epsilon=self.epsilon,
            delta=self.delta,
            unit=public.unit,
            assumptions=self._assumptions(public),
            n_teachers=n_teachers,
        )

    def _set_fitted(
        self,
        plan: SumPlan,
        released: ReleasedSum,
        student: BaseEstimator,
        analysis: PrivacyAnalysis,
        public_indices: NDArray[np.intp] | None,
    ) -> Self:
        """Set the fitted attributes, all at once."""
        self.student_ = student
        self.classes_ = plan.public.classes
        self.representation_ = plan.batches.representation
        self.group_of_row_ = plan.batches.clusters.of_row
        self.released_ = released.values
        self.similarities_ = released.similarities
        self._set_release(plan.release.mechanism, plan.statement)
        self.privacy_analysis_ = analysis
        self.public_indices_ = public_indices
        return self

    def _unfitted_student(self):
        return petdl_student(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.noise_seed is None
        return tags

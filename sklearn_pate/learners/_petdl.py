"""PETDL: private deep learning with a public student."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import check_random_state

from sklearn_pate._aggregation._aggregation import (
    Aggregation,
    comparable,
    represent,
    train_teachers,
)
from sklearn_pate._aggregation._checks import check_ensemble, memory_location
from sklearn_pate._aggregation._classifier import (
    PublicRowsClassifier,
    readers_of_teachers,
)
from sklearn_pate._aggregation._design import Design
from sklearn_pate._aggregation._entry import ReleasePlan, analyse_release, open_entry
from sklearn_pate._aggregation._outlook import why_useless
from sklearn_pate._aggregation._rehearsal import rehearse_student
from sklearn_pate._aggregation._rows import (
    PublicInputs,
    check_parties,
    read_public_inputs,
    split_inputs,
)
from sklearn_pate._estimators._class_codes import on_labels
from sklearn_pate._estimators._isolation import MAX_SEED, Seeds
from sklearn_pate._estimators._kinds import check_classifier
from sklearn_pate._estimators._progress import (
    CallbackSupportMixin,
    phase,
    progress_of,
    with_callbacks,
)
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._labels import private_rows_by_position
from sklearn_pate._synthetic._marginals import PrivateMarginals, nearest_on_simplex
from sklearn_pate._teachers._training import SoftVoteForm, TeacherProblems
from sklearn_pate._votes._votes import STEPS, SoftVoteLayout, SoftVotes
from sklearn_pate.accounting._ledger import FitEntry, PrivacyLedger
from sklearn_pate.accounting._value_checks import Constraint, check_parameters, counted
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.mechanisms import NoisySum
from sklearn_pate.mechanisms._noisy_sum import StoredSums
from sklearn_pate.students._queries import find_clusters
from sklearn_pate.students._train_student import accepts_hints, soften, train_student

# Epochs in which the default student is trained on the labels.
_EPOCHS = 20


class Clusters(BaseEstimator):
    """Public batches of similar public rows, for :class:`PETDLClassifier`.

    One label is correct for most rows of such a batch.

    Parameters
    ----------
    size : int, default=128
        Approximate number of public rows in a cluster. Larger public batches have a
        lower total privacy cost, but give less information about each row.

    core : float, default=0.5
        Share of the rows of a cluster that form a public batch, nearest to the centre
        of the cluster.

    Examples
    --------
    >>> from sklearn_pate.learners import Clusters, PETDLClassifier
    >>> PETDLClassifier(batches=Clusters(20)).get_params()["batches__size"]
    20
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "size": Constraint.count(),
        "core": Constraint.number(0, 1, closed="right"),
    }

    def __init__(self, size: int = 128, *, core: float = 0.5) -> None:
        self.size = size
        self.core = core

    def _of_row(
        self,
        n_batches: int,
        features: Callable[[], NDArray[np.float64] | None],
        n_public: int,
        random_state: np.random.RandomState,
    ) -> NDArray[np.intp]:
        """Return the batch of each public row, -1 for rows in none."""
        compared = features()
        if compared is None:
            raise ValueError(
                "batches=Clusters() compares public rows, but X_public has text, "
                "sparse or missing values; pass representation=, a transformer to "
                "dense numbers, or use batches=RandomBatches()."
            )
        cluster_of_row, rank = find_clusters(compared, n_batches, random_state)
        in_core = (
            rank < np.ceil(self.core * np.bincount(cluster_of_row))[cluster_of_row]
        )
        return np.where(in_core, cluster_of_row, -1)


class RandomBatches(BaseEstimator):
    """Public batches of random public rows, for :class:`PETDLClassifier`.

    The batches are as in the paper; a batch label then estimates class frequencies.

    Parameters
    ----------
    size : int, default=128
        Approximate number of public rows in a batch.

    Examples
    --------
    >>> from sklearn_pate.learners import PETDLClassifier, RandomBatches
    >>> PETDLClassifier(batches=RandomBatches(20)).get_params()["batches__size"]
    20
    """

    _constraints: ClassVar[dict[str, Constraint]] = {"size": Constraint.count()}

    def __init__(self, size: int = 128) -> None:
        self.size = size

    def _of_row(
        self,
        n_batches: int,
        features: Callable[[], NDArray[np.float64] | None],
        n_public: int,
        random_state: np.random.RandomState,
    ) -> NDArray[np.intp]:
        """Return the batch of each public row."""
        return random_state.permutation(np.arange(n_public) % n_batches)


class Hint(BaseEstimator):
    """Hint of the teachers: similarities of batches, for :class:`PETDLClassifier`.

    The student learns the released similarities before the labels.

    Parameters
    ----------
    max_epochs : int, default=2
        Number of epochs of training on the hint.

    share : float, default=0.2
        Share of the privacy cost that the hint uses.

    See Also
    --------
    sklearn_pate.students.RelationalHint : Released similarities for a student.

    Examples
    --------
    >>> from sklearn_pate.learners import Hint, PETDLClassifier
    >>> PETDLClassifier(hint=Hint(share=0.1)).get_params()["hint__share"]
    0.1
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "max_epochs": Constraint.count(),
        "share": Constraint.number(0, 1, closed="neither"),
    }

    def __init__(self, max_epochs: int = 2, *, share: float = 0.2) -> None:
        self.max_epochs = max_epochs
        self.share = share


def _check_batches(name: str, batches: Any) -> None:
    """Raise ValueError unless this is a rule for public batches, or None."""
    if not isinstance(batches, Clusters | RandomBatches | None):
        raise ValueError(
            f"{name}={batches!r} must be Clusters() or RandomBatches(), with the size "
            "of a public batch."
        )
    check_parameters(batches)


def _check_hint(name: str, hint: Any) -> None:
    """Raise ValueError unless this is a hint, or None."""
    if not isinstance(hint, Hint | None):
        raise ValueError(f"{name}={hint!r} must be Hint(), or None for no hint.")
    check_parameters(hint)


@dataclass(frozen=True)
class ReleasedSum:
    """Noisy sum over teachers of softened probabilities, and of hints if there are.

    `values` has shape (n_batches, n_classes), `similarities` (n_batches, n_batches).
    """

    values: NDArray[np.floating]
    similarities: NDArray[np.floating] | None


@dataclass(frozen=True)
class PublicBatches:
    """Public batches, and the form of the vectors that teachers send about them.

    `X_for_teachers` are the public rows, transformed by the `representation`.
    """

    representation: BaseEstimator | None
    X_for_teachers: Table
    form: SoftVoteForm
    hint: Hint | None

    @property
    def of_row(self) -> NDArray[np.intp]:
        """Public batch of each public row, -1 for none."""
        return self.form.batch_of_row

    @property
    def layout(self) -> SoftVoteLayout:
        """Layout of a teacher's vector."""
        return self.form.layout

    def values(self, vector: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values of a vector by batch and class, in bounds over `STEPS`.

        `vector`, of shape (1, layout.size), is a sum with or without noise.
        """
        return self.layout.split(vector)[0][0]

    def read(self, vector: NDArray[np.int64]) -> ReleasedSum:
        """Read a released vector of shape (1, layout.size)."""
        values = self.values(vector) * (self.form.clipping_bound / STEPS)
        if not self.layout.n_hint_parts:
            return ReleasedSum(values, None)
        hint = self.layout.split(vector)[1][0]
        return ReleasedSum(values, self.layout.similarities(hint / STEPS))


@dataclass(frozen=True)
class SumAggregation(Aggregation[SoftVotes, ReleasedSum]):
    """Teachers send soft votes; their noisy sum leaves them; a student learns it."""

    batches: PublicBatches

    @property
    def representation(self) -> BaseEstimator | None:
        """Transformer of the rows of teachers, fitted on public rows."""
        return self.batches.representation

    @property
    def represented(self) -> Table:
        """Public rows that teachers predict, transformed by the representation."""
        return self.batches.X_for_teachers

    @property
    def form(self) -> SoftVoteForm:
        """Vector of soft votes of a teacher."""
        return self.batches.form

    @property
    def public_content(self) -> tuple[Any, ...]:
        """All public data that the sum depends on."""
        # Batches of drawn rows follow from the counts.
        of_row = self.batches.of_row if self.public.domain is None else None
        return *self.public.content, of_row

    @property
    def sums(self) -> Callable[[Iterable[Any]], SoftVotes]:
        """Sum of the vectors of teachers or parties."""
        return partial(SoftVotes, layout=self.batches.layout)

    @phase("releasing the sum")
    def draw(self, soft_votes: SoftVotes, entry: FitEntry | None) -> ReleasedSum:
        """Record the cost, draw the noise, and release the sum."""
        sums = StoredSums(self.release.mechanism, entry, self.release.noise())
        return self.batches.read(sums.draw(0, soft_votes.sum)[np.newaxis])

    @property
    def student(self) -> Any:
        """Student, which learns soft labels."""
        return on_labels("student", self.design.student, self.public.classes, soft=True)

    @phase("training the student")
    def teach(self, released: ReleasedSum) -> BaseEstimator:
        """Train a clone of a student on public rows and the released sum only."""
        batches, hint = self.batches, None
        soft = soften(without_noise(released.values), 1 / batches.form.temperature)
        # All rows of a batch get its labels.
        rows = np.flatnonzero(batches.of_row >= 0)
        of_row = batches.of_row[rows]
        if released.similarities is not None and batches.hint is not None:
            from sklearn_pate.students import RelationalHint  # imports torch

            hint = RelationalHint(
                batches.of_row, released.similarities, batches.hint.max_epochs
            )
        return train_student(
            self.student,
            self.public.X_public,
            rows,
            released.values.argmax(axis=1)[of_row],
            n_classes=batches.layout.n_classes,
            seed=self.seeds.student,
            histograms=soft[of_row],
            hint=hint,
        )

    def _why_useless(self) -> Iterator[str | None]:
        yield why_useless(
            self.release.mechanism,
            n_teachers=self.release.n_teachers,
            n_queries=self.batches.layout.n_batches,
            n_classes=self.batches.layout.n_classes,
            few_answers=False,  # soft labels, and their noise averages out
            n_rows=None,
            epsilon=self.release.target,
            delta=self.statement.delta,
            unit=self.public.unit,
            query="public batch",
        )

    def _rehearse_student(self) -> None:
        batches = self.batches
        of_row, n_batches = batches.of_row, batches.layout.n_batches

        def hint(rows: NDArray[np.intp]) -> Any:
            from sklearn_pate.students import RelationalHint  # imports torch

            similarities = np.random.RandomState(0).uniform(size=(n_batches, n_batches))
            return RelationalHint(of_row[rows], similarities, max_epochs=1)

        rehearse_student(
            self.student,
            self.public.X_public,
            n_labeled=int(np.sum(of_row >= 0)),
            n_classes=batches.layout.n_classes,
            soft=True,
            seed=self.seeds.student,
            hint=None if batches.hint is None else hint,
        )

    def attributes(self, released: ReleasedSum) -> dict[str, Any]:
        """Return what was released, as fitted attributes."""
        return {
            "representation_": self.batches.representation,
            "batch_of_row_": self.batches.of_row,
            "released_": released.values,
            "similarities_": released.similarities,
        }

    def analyse(
        self,
        soft_votes: SoftVotes,
        released: ReleasedSum,
        problems: TeacherProblems,
        entry: FitEntry | None,
    ) -> PrivacyAnalysis:
        """Keep the sum without noise, and the problems of teachers. Sensitive."""
        return analyse_release(
            self.release,
            self.batches.values(soft_votes.sum()[np.newaxis]),
            problems,
            in_ledger=entry is not None,
        )


def plan_batches(
    X_public: Table,
    representation: BaseEstimator | None,
    *,
    n_classes: int,
    batches: Clusters | RandomBatches,
    hint: Hint | None,
    temperature: float,
    clipping_bound: float,
    weighted: bool,
    seed: int,
) -> PublicBatches:
    """Assign public rows to public batches, and set the form of soft votes.

    Raises ValueError for fewer than two batches, or rows without distances.
    """
    n_public = X_public.shape[0]
    n_batches = n_public // batches.size
    if n_batches < 2:
        raise ValueError(
            f"batches={batches!r} makes fewer than two public batches of "
            f"{counted(n_public, 'row')}; lower its size, or pass more public rows."
        )
    representation, X_for_teachers = represent(representation, X_public, seed)
    random_state = check_random_state(seed % MAX_SEED)
    features = partial(comparable, representation, X_public, X_for_teachers, seed)
    of_row = batches._of_row(n_batches, features, n_public, random_state)
    form = SoftVoteForm(
        vector_layout(int(of_row.max()) + 1, n_classes, hint),
        of_row,
        temperature,
        clipping_bound,
        weighted,
    )
    return PublicBatches(representation, X_for_teachers, form, hint)


def vector_layout(n_batches: int, n_classes: int, hint: Hint | None) -> SoftVoteLayout:
    """Return the layout of a teacher's vector, with parts for the hint if used."""
    n_hint_parts = 0
    if hint is not None:
        n_hint_parts = math.ceil(n_batches * hint.share / (1 - hint.share))
    return SoftVoteLayout(n_batches, n_classes, n_hint_parts)


def without_noise(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Estimate sums of shape (n_batches, n_classes) from noisy ones.

    The nearest point of a simplex to each row, a post-processing. No result is
    negative, and all rows have the mean total: totals differ little, and their mean has
    less noise than each.
    """
    total = values.sum(axis=1).mean()
    if total <= 0:  # nothing but noise
        return np.maximum(values, 0)
    return nearest_on_simplex(values, total)


def read_outputs(
    outputs: Iterable, public: PublicInputs
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Check the outputs of parties one by one.

    Yields the probabilities of a party, of shape (n_public, n_classes), and its hidden
    representation, of shape (n_public, n_hidden), by default its probabilities.
    """
    if not isinstance(outputs, Iterable):
        raise ValueError(
            f"outputs={outputs!r} must hold an array of class probabilities per party."
        )
    for party, output in enumerate(outputs):
        pair = output if isinstance(output, tuple) else (output, output)
        try:
            probabilities, representation = map(_as_float32, pair)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"The outputs of party {party} are neither an array of numbers nor a "
                "pair of such arrays; pass the result of predict_proba."
            ) from error
        expected = public.n_public, len(public.classes)
        if probabilities.shape != expected:
            raise ValueError(
                f"The outputs of party {party} have shape {probabilities.shape}; pass "
                f"class probabilities of shape {expected}, a row for each public row "
                "and a column for each of the sorted classes."
            )
        if representation.ndim != 2 or len(representation) != public.n_public:
            raise ValueError(
                f"The representation of party {party} has shape "
                f"{representation.shape}; pass one row for each of the "
                f"{public.n_public} public rows."
            )
        if not (np.all(probabilities >= 0) and np.all(np.isfinite(probabilities))):
            raise ValueError(
                f"The outputs of party {party} are not probabilities; pass the result "
                "of predict_proba."
            )
        if not np.all(np.isfinite(representation)):
            raise ValueError(
                f"The representation of party {party} holds NaN or infinity; pass "
                "only the class probabilities."
            )
        yield probabilities, representation


def _as_float32(values: Any) -> NDArray[np.float32]:
    """Convert to float32, the type of outputs of teachers; large values overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(np.float32)


class PETDLClassifier(CallbackSupportMixin, MetaEstimatorMixin, PublicRowsClassifier):
    """Private deep learning with teacher ensembles (PETDL), with a valid guarantee.

    Teachers are trained on disjoint shards of the private rows. Each teacher computes
    class probabilities for batches of public rows. A teacher may add a hint, that is,
    similarities of batches in a hidden layer of the teacher. The vectors of all
    teachers are clipped and added up, and the sum is released once with Gaussian noise.
    A student learns from the noisy sum and may be published, with ``privacy_spent_`` as
    privacy statement.

    Parameters
    ----------
    estimator : classifier, default=None
        The teacher, which must have `predict_proba`. None is
        ``RandomForestClassifier()``. The hint of a skorch network uses the input of the
        last ``torch.nn.Linear``; the hint of another teacher uses class probabilities.

    student : classifier, default=None
        The student. None is a :class:`~sklearn_pate.students.FixMatchClassifier` with a
        :class:`~sklearn_pate.students.ConvSmall` network, which needs the extra
        ``deep``. The student is trained on soft labels, unlabelled rows and the hint,
        if `fit` of the student accepts these.

    n_teachers : int or "auto", default="auto"
        Number of shards. An epsilon of 1 needs a hundred shards or more. "auto" is the
        rounded square root of the number of rows. With groups, "auto" is not allowed.

    batches : Clusters or RandomBatches, default=None
        Assignment of public rows to public batches, and their size. The size is also
        the batch size of the default student. None is ``Clusters()``.

    temperature : float, default=1.0
        Temperature T that softens the probabilities of teachers to p^(1/T) before they
        are averaged over a batch. The labels on which the student is trained are
        sharpened by the inverse power.

    clipping_bound : float, default=1.0
        L2 norm, at most 1, to which longer probability vectors of a batch are scaled
        down. The noise is proportional to this norm. A lower norm changes the vectors
        of confident teachers most.

    weighted : bool, default=False
        Whether a teacher weights the rows of a batch by its confidence, at no privacy
        cost. Weights help if teachers know different classes.

    noise_scale : float, default=None
        Standard deviation of the noise on each coordinate of the sum, divided by
        `clipping_bound`. With None, the noise is calibrated to `epsilon`.

    hint : Hint, default=None
        Hint to release. With None, no hint is released.

    representation : transformer, default=None
        Transformer fitted on public rows only. Teachers and clusters use the
        transformed rows.

    epsilon : float or None, default=1.0
        Publishable epsilon, to which the noise is calibrated. With None, the fit uses
        `noise_scale` and states the resulting epsilon.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee. Must be well below one over the number
        of rows.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy, see :class:`~sklearn_pate.PATEClassifier`.

    public_size : float, default=None
        Share of the rows, or of the groups, to use as public rows if `fit` gets no
        `X_public`. The people in these rows are **not protected**.

    synthetic : PrivateMarginals, default=None
        Replaces public rows by rows drawn from noisy counts of the private rows; see
        :class:`~sklearn_pate.PrivateMarginals`. `epsilon` includes the privacy cost of
        the counts.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. A private row with another label is dropped. With
        None, the labels are read from y; the privacy statement then assumes that the
        set of labels is public. `fit_from_outputs` requires `classes`.

    ledger : PrivacyLedger, default=None
        Privacy budget of the private data over all fits, see
        :class:`~sklearn_pate.PATEClassifier`.

    memory : str, path-like or joblib.Memory, default=None
        A **sensitive** folder that stores the vectors of trained teachers, see
        :class:`~sklearn_pate.PATEClassifier`.

    n_jobs : int, default=None
        Number of teachers trained at once, as in joblib.

    verbose : int or bool, default=0
        Progress messages, as for :class:`~sklearn_pate.PATEClassifier`.

    random_state : int, RandomState instance or None, default=None
        Seed of shards, teachers, public batches and student. The seed may be public.

    Attributes
    ----------
    student_ : classifier
        The student, which predicts class indices. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published. The statement counts each public batch as one query, and a hint as
        several queries.

    privacy_analysis_ : PrivacyAnalysis
        **Sensitive**: the sum without noise, and problems of teachers. A pickled or
        copied estimator lacks this attribute.

    mechanism_ : NoisySum or TwoPartRelease
        The mechanism with all parameters set. With `synthetic`, the parts are
        ``counts`` and ``mechanism``.

    batch_of_row_ : ndarray of int of shape (n_public,)
        Public batch of each public row, or -1 if the row is in no batch. May be
        published.

    released_ : ndarray of shape (n_batches, n_classes)
        Noisy sum of the teachers' probabilities for each batch. May be published.

    similarities_ : ndarray of shape (n_batches, n_batches)
        Only with relational hints: the noisy sum of the hints of teachers. May be
        published.

    representation_ : transformer
        The transformer, fitted on public rows; absent without one. May be published.

    marginals_ : dict
        Only with `synthetic`: the noisy counts of each column. May be published.

    public_indices_ : ndarray of int of shape (n_public,)
        Only with `public_size`, and **sensitive**: indices of the rows of X that became
        public. A pickled or copied estimator lacks this attribute.

    data_problems_ : tuple of str
        **Sensitive**: what `check_data` finds in the private rows of this fit. A
        pickled or copied estimator lacks this attribute.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    Sun, Zhou, Wang, Li, Socher, Yu, Xiong (2019), "Private deep learning with teacher
    ensembles", introduce soft labels at a temperature, the hint, batches of public
    rows, and weights. The paper adds noise to the student's loss. This noise does not
    change the gradient and **gives no privacy**. This class adds noise to the released
    sum.

    The privacy cost is exactly the cost of one Gaussian mechanism, see
    :class:`~sklearn_pate.mechanisms.NoisySum`. The proof of the sensitivity is in the
    source of ``SoftVoteLayout``.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PublicData
    >>> from sklearn_pate.learners import Clusters, PETDLClassifier
    >>> from sklearn_pate.students import DistillationClassifier
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> student = DistillationClassifier(LogisticRegression())
    >>> clf = PETDLClassifier(
    ...     LogisticRegression(), student, n_teachers=200, batches=Clusters(20)
    ... )
    >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X[5500:], y[5500:]) > 0.8)
    True
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "student": Constraint(check_classifier),
        "temperature": Constraint.positive(),
        "clipping_bound": Constraint.positive(),
        "weighted": Constraint.boolean(),
        "batches": Constraint(_check_batches),
        "hint": Constraint(_check_hint),
    }

    def __init__(
        self,
        estimator: Any = None,
        student: Any = None,
        *,
        n_teachers: int | Literal["auto"] = "auto",
        batches: Clusters | RandomBatches | None = None,
        temperature: float = 1.0,
        clipping_bound: float = 1.0,
        weighted: bool = False,
        noise_scale: float | None = None,
        hint: Hint | None = None,
        representation: Any = None,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        privacy_unit: Literal["row", "group"] = "row",
        public_size: float | None = None,
        synthetic: PrivateMarginals | None = None,
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
        self.batches = batches
        self.temperature = temperature
        self.clipping_bound = clipping_bound
        self.weighted = weighted
        self.noise_scale = noise_scale
        self.hint = hint
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
        """Train teachers on private rows, and a student on noisy soft votes.

        See :meth:`PATEClassifier.fit <sklearn_pate.PATEClassifier.fit>` for further
        arguments, errors and warnings.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows.

        y : array-like of shape (n_rows,)
            Labels of the private rows. `check_data` lists labels that are no class.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows, without labels.

        groups : array-like of shape (n_rows,), default=None
            Group id of each row, for ``privacy_unit="group"``. A group with more rows
            counts more, except with `synthetic`: see :doc:`/guide/data`.

        Returns
        -------
        self : PETDLClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. Nothing was released or charged,
            except the counts of `synthetic` if all teachers failed.

        BudgetExceededError
            If the privacy cost exceeds the budget of the `ledger`. Nothing was released
            or charged.
        """
        with progress_of(self):
            aggregation = self._plan(X, y, X_public=X_public, groups=groups)
            release, private = aggregation.release, aggregation.private
            dropped = self._find_problems(X, y, X_public, groups, self.classes)
            entry = open_entry(
                self, release, private.content(), aggregation.public_content
            )
            # With synthetic rows, the first part of the privacy is spent on this line.
            aggregation, marginals = self._after_counts(aggregation, entry)
            soft_votes, problems = train_teachers(
                aggregation,
                memory=memory_location(self.memory),
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            # The privacy is spent on this line: noise is drawn, the sum is released.
            released = aggregation.draw(soft_votes, entry)
            student = aggregation.teach(released)
            analysis = aggregation.analyse(soft_votes, released, problems, entry)
        return self._set_fitted(
            aggregation, released, student, analysis, marginals, dropped
        )

    def fit_from_outputs(self, X_public: Any, outputs: Any) -> Self:
        """Train a student on the noisy outputs of models of several parties.

        Each party sends only the class probabilities that its model predicts for the
        public rows. This method reads, clips and adds up the probabilities, and
        releases the noisy sum. The privacy statement protects all outputs of one party,
        for any `privacy_unit`. The parameter `estimator` is not used, and
        `representation` is used for clusters only.

        Parameters
        ----------
        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features)
            Public rows, in the order of the outputs.

        outputs : iterable of array-like of shape (n_public, n_classes)
            One array per party, with one column per class in sorted `classes`. For a
            hint, each party sends a pair of this array and a hidden representation of
            shape (n_public, n_hidden).

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
            As in :meth:`fit`, for parties instead of rows.
        """
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        public = read_public_inputs(self, X_public, outputs, method="fit_from_outputs")
        batches = self._plan_batches(public, seeds)
        received = read_outputs(outputs, public)
        soft_votes = SoftVotes(
            (batches.form.of_outputs(*one) for one in received), layout=batches.layout
        )
        n_parties = soft_votes.n_teachers
        check_parties(n_parties, self.n_teachers, self.delta, sent="sent outputs")
        release = self._plan_release(public, batches, n_parties)
        aggregation = SumAggregation(
            public, self._design(n_parties), release, seeds, None, (), batches
        )
        aggregation.warn_if_useless()
        aggregation.rehearse()
        entry = open_entry(
            self, release, soft_votes.content(), aggregation.public_content
        )
        # The privacy is spent on the next line: noise is drawn, the sum is released.
        released = aggregation.draw(soft_votes, entry)
        student = aggregation.teach(released)
        analysis = aggregation.analyse(soft_votes, released, TeacherProblems(), entry)
        return self._set_fitted(aggregation, released, student, analysis)

    def _check_parameters(self) -> None:
        check_ensemble(self)
        super()._check_parameters()
        teacher = self._teacher()
        if not hasattr(teacher, "predict_proba"):
            raise ValueError(
                f"estimator={teacher!r} has no predict_proba, but teachers vote with "
                "class probabilities; use another classifier, or PATEClassifier."
            )
        if self.hint is not None and not accepts_hints(self._unfitted_inner()):
            raise ValueError(
                f"hint={self.hint!r} releases a hint, which {self.student!r} cannot "
                "use; set hint=None, or use a student such as FixMatchClassifier()."
            )
        if self.clipping_bound > 1:
            raise ValueError(
                f"clipping_bound={self.clipping_bound!r} adds noise without need, as "
                "the norm of probabilities is at most 1; pass 1.0 or less."
            )

    def _plan(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> SumAggregation:
        """Plan a fit: everything that comes before the first teacher."""
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        private, public = split_inputs(
            self, X, y, X_public, groups, seed=seeds.public_rows
        )
        batches = self._plan_batches(public, seeds)
        n_teachers = round(private.n_rows**0.5)
        if self.n_teachers != "auto":
            n_teachers = self.n_teachers
        shards = private.shards(n_teachers, seeds.key)
        release = self._plan_release(public, batches, n_teachers)
        self._warn_of_counts(private, public, release)
        aggregation = SumAggregation(
            public, self._design(n_teachers), release, seeds, private, shards, batches
        )
        aggregation.warn_if_useless()
        aggregation.rehearse()
        return aggregation

    def _design(self, n_teachers: int) -> Design:
        """Return the choices of a fit."""
        return Design(
            self._teacher(),
            self.representation,
            self._unfitted_inner(),
            self._mechanism(),
            n_teachers,
            0,
            "auto",
        )

    def _batches(self) -> Clusters | RandomBatches:
        return Clusters() if self.batches is None else self.batches

    def _mechanism(self) -> NoisySum:
        return NoisySum(self.noise_scale)

    def _with_public_rows(
        self, plan: SumAggregation, public: PublicInputs
    ) -> SumAggregation:
        batches = self._plan_batches(public, plan.seeds)
        return replace(plan, public=public, batches=batches)

    @phase("preparing public rows")
    def _plan_batches(self, public: PublicInputs, seeds: Seeds) -> PublicBatches:
        """Plan the public batches and the vectors of teachers."""
        return plan_batches(
            public.X_public,
            self.representation,
            n_classes=len(public.classes),
            batches=self._batches(),
            hint=self.hint,
            temperature=float(self.temperature),
            clipping_bound=float(self.clipping_bound),
            weighted=bool(self.weighted),
            seed=seeds.representation,
        )

    @phase("calibrating the noise")
    def _plan_release(
        self, public: PublicInputs, batches: PublicBatches, n_teachers: int
    ) -> ReleasePlan:
        """Calibrate the noise of the sum, and state its cost."""
        layout = batches.layout
        if public.domain is not None:
            # Rows that are drawn later may make more batches than uniform rows, of
            # which some may be equal.
            layout = vector_layout(
                public.n_public // self._batches().size, len(public.classes), self.hint
            )
        mechanism, n_parts = self._mechanism(), layout.n_parts
        return ReleasePlan(
            prepare=partial(mechanism.prepared, n_parts=n_parts, delta=self.delta),
            counts_for=partial(self._counts, public),
            target=self.epsilon,
            delta=self.delta,
            unit=public.unit,
            assumptions=self._assumptions(public),
            teachers=n_teachers,
            n_queries=1,
            n_parts=n_parts,
            n_values=layout.size,
        )

    def _teacher(self) -> Any:
        from sklearn.ensemble import RandomForestClassifier  # slow to import

        return RandomForestClassifier() if self.estimator is None else self.estimator

    def _unfitted_inner(self) -> Any:
        """Return the student, by default a small network."""
        if self.student is not None:
            return self.student
        from sklearn_pate.students import ConvSmall, FixMatchClassifier  # imports torch

        size = self._batches().size
        return FixMatchClassifier(
            ConvSmall(),
            max_epochs=_EPOCHS,
            batch_size=size,
            labeled_batch_size=min(64, size),
        )

    def _readers(self) -> dict[str, Any]:
        return readers_of_teachers(
            self.representation, self._teacher(), self._unfitted_inner()
        )

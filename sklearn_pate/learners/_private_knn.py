"""Private-kNN: noisy votes of the nearest private rows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin

from sklearn_pate._aggregation._aggregation import (
    Queries,
    VoteAggregation,
    prepare_queries,
)
from sklearn_pate._aggregation._checks import check_strategy
from sklearn_pate._aggregation._classifier import PublicRowsClassifier
from sklearn_pate._aggregation._design import Design, as_mechanism, resolve_n_queries
from sklearn_pate._aggregation._entry import ReleasePlan, open_entry
from sklearn_pate._aggregation._outlook import why_useless
from sklearn_pate._aggregation._rows import PublicInputs, split_inputs
from sklearn_pate._estimators._isolation import Seeds
from sklearn_pate._estimators._kinds import accepts_unlabeled, check_classifier
from sklearn_pate._estimators._progress import phase, progress_of
from sklearn_pate._inputs._labels import private_rows_by_position
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate._votes._votes import SensitiveSums
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._statement import N_ROWS_PUBLIC, ROW_ALONE, Assumption
from sklearn_pate.accounting._value_checks import Constraint
from sklearn_pate.learners._noisy_learner import RowFeatures
from sklearn_pate.mechanisms import PluralityMechanism
from sklearn_pate.mechanisms._noisy_training import PoissonSampler, SampledMechanism
from sklearn_pate.students import GraphSelfTrainingClassifier
from sklearn_pate.students._queries import numeric_features

# Largest whole numbers that are exact in float64 and in float32.
_EXACT, _EXACT_STORED = 2**53, 2**24
_LARGEST = float(np.finfo(np.float64).max)
# Distances computed at once, and rows with coordinates in memory as float64.
_N_DISTANCES, _N_POINTS = 2**22, 2**12
MECHANISMS = ("gnmax", "confident", "histogram")
METRICS = ("euclidean", "cosine")

# "auto": neighbours per vote of noise. Fewer are lost in the noise; more include rows
# that are farther away, which is worse for small data.
_VOTES_PER_SIGMA = 6
# Private rows with features in memory in full precision.
_N_ROWS = 2**12


@dataclass(frozen=True)
class Grid:
    """Whole numbers in place of features, for exact distances.

    `centre` and `reach` are the middle and half the side of a box, `largest` bounds the
    whole numbers; with `angular`, rows are projected on a sphere first, for the cosine.

    The proof of privacy needs distances that depend on two rows alone. Those of
    floating-point matrix products do not: the last bits of a row depend on the number
    of rows before it, so that adding one row could reorder others at nearly the same
    distance, and change more votes than the proof allows.

    Here, each coordinate becomes a whole number by operations on that number alone,
    rounded as IEEE 754 specifies. There are n_features of them, each at most c in size,
    with 4 n_features c^2 <= 2^53. So every product, sum and partial sum of a squared
    distance x.x - 2 x.p + p.p is a whole number that float64 holds exactly, in whatever
    order they are added.

    The box is twice as wide as the widest column of the public rows; rows beyond it are
    moved to its border. It depends on public rows, and has no privacy cost. For the
    cosine, each row is first divided by its own largest number, then rounded, then
    divided by its own length, the square root of a whole number.
    """

    centre: NDArray[np.float64]
    reach: float
    largest: int
    angular: bool

    @classmethod
    def around(cls, features: NDArray[np.float64], *, angular: bool = False) -> "Grid":
        """Choose a grid for finite public rows, as fine as exact sums allow.

        With a thousand features, the spacing is a millionth of the box.
        """
        n_features = features.shape[1]
        largest = min(math.isqrt(_EXACT // (4 * n_features)), _EXACT_STORED)
        if angular:
            return cls(np.zeros(n_features), 1.0, largest, angular)
        low, high = features.min(axis=0), features.max(axis=0)
        reach = 2 * min(float((high / 2 - low / 2).max()), _LARGEST / 2)
        # If all columns are constant, the range is 0.
        return cls(low / 2 + high / 2, reach or 1.0, largest, angular)

    def points(self, features: NDArray[np.float64]) -> NDArray[np.float32]:
        """Convert finite rows to whole numbers, each from that row alone."""
        if self.angular:
            longest = np.abs(features).max(axis=1, keepdims=True)
            points = self._round(features / np.where(longest > 0, longest, 1.0))
            # Their squares add up exactly, in any order.
            lengths = np.sqrt((points**2).sum(axis=1, keepdims=True))
            points = self._round(points / np.maximum(lengths, 1.0))
        else:
            with np.errstate(over="ignore"):  # overflow is clipped
                points = self._round((features - self.centre) / self.reach)
        return points.astype(np.float32)

    def _round(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Round numbers in units of the reach to the grid."""
        return np.rint(np.clip(shares, -1.0, 1.0) * self.largest)


class NeighbourVotes(SensitiveSums):
    """Votes of the nearest private rows on public rows. Sensitive.

    Each query draws a fresh sample. Like :class:`~sklearn_pate.Votes`, this is for a
    mechanism only, is not shown by `repr`, and cannot be pickled or copied.

    `points` are private rows on a :class:`Grid`, in the order of the private data,
    `queries` public rows on the same grid. `unit_of_row` has the group of each row, in
    an order of the groups that does not depend on which others there are; None makes
    each row a unit.

    **Sensitivity.** Let T be the rows in the sample of a query, ordered by their exact
    distance to it, equally distant ones by their position in the data. The order of two
    rows depends on these two alone, wherever a third one is added or removed. The first
    k of T vote. If x joins T, then either x is not among the first k, and nothing
    changes; or it is, and adds a vote, and the row that was k-th before (if T had k
    rows) loses its vote. So at most one vote is added and one removed: the counts move
    by 2 in the L1 and by sqrt 2 in the L2 norm, for every T.

    A group takes part as a whole, by the nearest of its rows, the first of them if
    several are; this depends on the group alone. Groups are ordered by the distance of
    that row, equally distant ones by their ids as strings. So the same holds for a
    group that is added or removed with all its rows.
    """

    __slots__ = (
        "_codes",
        "_n_classes",
        "_n_neighbors",
        "_norms",
        "_points",
        "_queries",
        "_sampler",
        "_starts",
        "_unit_of_row",
    )

    def __init__(
        self,
        points: NDArray[np.float32],
        codes: NDArray[np.intp],
        unit_of_row: NDArray[np.intp] | None,
        queries: NDArray[np.float32],
        *,
        n_neighbors: int,
        n_classes: int,
        sampler: PoissonSampler,
    ) -> None:
        if unit_of_row is not None:
            # Sorted by group, in the order of the data within each.
            order = np.argsort(unit_of_row, kind="stable")
            points, codes, unit_of_row = points[order], codes[order], unit_of_row[order]
            self._starts = np.flatnonzero(np.diff(unit_of_row, prepend=-1))
        else:
            self._starts = np.arange(len(points))
        self._points = points
        self._norms = np.concatenate([(part**2).sum(axis=1) for part in self._parts()])
        self._codes = codes
        self._unit_of_row = unit_of_row
        self._queries = queries
        self._n_neighbors = n_neighbors
        self._n_classes = n_classes
        self._sampler = sampler

    @property
    def shape(self) -> tuple[int, int]:
        """Largest number of votes on a query, and number of queries."""
        return self._n_neighbors, len(self._queries)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self._n_classes

    def counts(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Draw a fresh sample for each query, and count its votes.

        A repeated query draws another sample, at another cost. A row of counts sums to
        the number of neighbours, or to the size of a smaller sample.
        """
        indices = np.asarray(indices, dtype=np.intp)
        at_once = max(1, _N_DISTANCES // len(self._points))
        counts = [
            self._count(distances)
            for start in range(0, len(indices), at_once)
            for distances in self._distances(indices[start : start + at_once])
        ]
        return np.array(counts, dtype=np.int64).reshape(-1, self._n_classes)

    def _parts(self) -> Iterator[NDArray[np.float64]]:
        """Yield the coordinates, a block of rows at a time."""
        for start in range(0, len(self._points), _N_POINTS):
            yield self._points[start : start + _N_POINTS].astype(np.float64)

    def _distances(self, indices: NDArray[np.intp]) -> NDArray[np.float64]:
        """Compute squared distances of all rows, less the squared norm of the query."""
        queries = self._queries[indices].astype(np.float64)
        products = np.hstack([queries @ part.T for part in self._parts()])
        return self._norms - 2 * products

    def _count(self, distances: NDArray[np.float64]) -> NDArray[np.intp]:
        """Count the votes of a fresh sample on one query."""
        nearest, codes = distances, self._codes
        if self._unit_of_row is not None:
            nearest = np.minimum.reduceat(distances, self._starts)
            first = np.flatnonzero(distances == nearest[self._unit_of_row])
            _, of_unit = np.unique(self._unit_of_row[first], return_index=True)
            codes = self._codes[first[of_unit]]
        sample = np.flatnonzero(self._sampler.draw(len(nearest)))
        voters = sample[_first(nearest[sample], self._n_neighbors)]
        return np.bincount(codes[voters], minlength=self._n_classes)

    def __repr__(self) -> str:
        n_neighbors, n_queries = self.shape
        return f"NeighbourVotes(<private>, {n_neighbors=}, {n_queries=})"


def _first(distances: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Return the positions of the k smallest distances, ties in order of position."""
    if len(distances) <= k:
        return np.arange(len(distances))
    farthest = np.partition(distances, k - 1)[k - 1]
    nearer = np.flatnonzero(distances < farthest)
    equal = np.flatnonzero(distances == farthest)
    return np.concatenate([nearer, equal[: k - len(nearer)]])


class PrivateKNNClassifier(MetaEstimatorMixin, PublicRowsClassifier):
    """Private nearest-neighbour votes from secret random samples of the private rows.

    For each query, every private row is sampled independently with a small probability.
    The sampled rows nearest to the queried public row vote with their labels. A
    mechanism answers with the class that has the most votes after noise is added. A
    student is trained on public rows and answers. No model is trained on private rows.
    As samples are secret, an answer has a lower privacy cost than an answer of
    :class:`~sklearn_pate.PATEClassifier`. The student may be published, with
    ``privacy_spent_`` as privacy statement.

    The privacy statement is for rows that are **added or removed**, not replaced. The
    privacy cost can be neither compared with nor added to the cost of a
    :class:`~sklearn_pate.PATEClassifier` for rows. The function
    :func:`~sklearn_pate.accounting.composition.add_remove_to_replace_one` converts the
    cost to replaced rows.

    Parameters
    ----------
    student : classifier, default=None
        The student, whose training has no privacy cost. None is a
        :class:`~sklearn_pate.students.GraphSelfTrainingClassifier` with this
        `representation`. A student that accepts unlabelled rows is trained on all
        public rows; other students are trained on the answered rows.

    n_neighbors : int or "auto", default="auto"
        Number of rows (or groups) that vote on a query, at no privacy cost. This number
        should exceed the noise scale `sigma`, and be less than ``sampling_rate * n``
        for a class of n private rows. "auto" is 6 sigma, rounded up, and suits
        thousands of rows per class.

    sampling_rate : float, default=0.15
        Probability that a row (or group) is in the sample of a query, in (0, 1]. At a
        fixed epsilon, a lower probability needs less noise and fewer votes.

    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance between rows after `representation`. The metric does not change the
        privacy cost. Columns should have similar scales.

    mechanism : {"gnmax", "confident", "histogram"} or mechanism, default="gnmax"
        Mechanism that answers the queries. "confident" answers only if most neighbours
        agree, but every query has a privacy cost. "histogram" releases all noisy vote
        counts, for a student that learns from soft labels, at no higher privacy cost
        than answers.

    n_queries : int or "auto", default="auto"
        Number of public rows to query, each row once. At a fixed epsilon, more queries
        mean more noise in each answer. "auto" is at most 2000, or 100 for a student
        that accepts unlabelled rows.

    query_strategy : {"auto", "random", "representative", "uncertainty", "experts"} \
            or QueryStrategy, default="auto"
        Rule that chooses the public rows to query, as in
        :class:`~sklearn_pate.PATEClassifier`. The choice has no privacy cost.

    representation : transformer, default=None
        Transformer fitted on public rows, applied to all rows before distances are
        computed. The transformer must transform each row independently of other rows,
        and then has no privacy cost. With None, rows must be dense numbers.

    epsilon : float or None, default=1.0
        Publishable epsilon of this fit, to which the noise is calibrated. With None,
        `mechanism` fixes the noise, and the fit states the resulting epsilon.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee. Must be well below one over the number
        of rows.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy: one row, or all rows of one group, such as a patient, given as
        ``fit(..., groups=patient_id)``. A sample contains all rows or no row of a
        group, and the nearest row of a group votes. With "row", a person with several
        rows is **not** protected as a whole.

    public_size : float, default=None
        Share of the rows, or of the groups, to use as public rows if `fit` gets no
        `X_public`. The people in these rows are **not protected**. With
        ``privacy_unit="row"``, the privacy statement then assumes that the number of
        rows is public.

    synthetic : PrivateMarginals, default=None
        Replaces public rows by rows drawn from noisy counts of the private rows; see
        :class:`~sklearn_pate.PrivateMarginals`. `epsilon` includes the privacy cost of
        the counts.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. With None, the labels are read from y; the privacy
        statement then assumes that the set of labels is public. A private row with
        another label is dropped.

    ledger : PrivacyLedger, default=None
        Privacy budget of the private data over all fits, see
        :class:`~sklearn_pate.PATEClassifier`. The privacy cost is charged before any
        sample or noise is drawn. The neighbour relation of the ledger must be rows (or
        groups) that are added or removed.

    verbose : int or bool, default=0
        Progress messages, as for :class:`~sklearn_pate.PATEClassifier`.

    random_state : int, RandomState instance or None, default=None
        Seed of representation, query strategy and student. The seed may be public.

    Attributes
    ----------
    student_ : classifier
        The student, which predicts class indices. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published. In the statement, ``n_teachers`` is the number of neighbours.

    mechanism_ : SampledMechanism or TwoPartRelease
        The mechanism with all parameters set. With `synthetic`, the parts are
        ``counts`` and ``mechanism``.

    n_neighbors_ : int
        Number of neighbours that voted on a query.

    query_strategy_ : QueryStrategy
        The query strategy that was used.

    representation_ : transformer
        The transformer, fitted on public rows; absent without one. May be published.

    queried_indices_ : ndarray of int of shape (n_queries,)
        Indices of the public rows that were queried.

    answers_ : ndarray of int of shape (n_queries,)
        Answer to each query: an index into ``classes_``, or -1 for no answer.

    histograms_ : ndarray of int of shape (n_queries, n_classes)
        Only with ``mechanism="histogram"``: noisy vote counts. May be published.

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
    Zhu, Yu, Chandraker, Wang (2020), "Private-kNN: practical differential privacy for
    computer vision". A row (or group) added to a sample adds one vote and removes at
    most one other vote. The proof is in the source of ``NeighbourVotes`` and ``Grid``.
    The proof requires exact distances between whole numbers, and features that are
    computed one row at a time. Each query is a Gaussian mechanism on a Poisson sample,
    whose privacy cost is
    :func:`~sklearn_pate.accounting.composition.sampled_gaussian_curve`. The privacy
    costs of queries add up, as samples are independent. Mechanisms without Gaussian
    noise, and `max_answers`, are refused, as their privacy cost on samples is unknown.

    Private rows are transformed one at a time, arrays as float64. This transformation
    is slow, except for a :class:`~sklearn_pate.students.TableRepresentation`. A
    transformer is refused if it fails for a single row, or if features of a public row
    depend on other rows. The default student fits the transformer again. To avoid a
    second fit, fit the transformer on public rows, and pass it in a
    ``FrozenEstimator``.

    The data-dependent bounds of the paper are left out, as such bounds cannot be
    published. To refine the representation by a student, as in the paper, pass the
    student as `representation` of a second fit. The privacy costs of both fits add up.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate import PublicData
    >>> from sklearn_pate.learners import PrivateKNNClassifier
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> clf = PrivateKNNClassifier(n_queries=50)
    >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X[5500:], y[5500:]) > 0.8)
    True
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "student": Constraint(check_classifier),
        "n_neighbors": Constraint.count(also=("auto",)),
        "n_queries": Constraint.count(also=("auto",)),
        "metric": Constraint.option(METRICS),
    }

    def __init__(
        self,
        student: Any = None,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        sampling_rate: float = 0.15,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        mechanism: str | PluralityMechanism = "gnmax",
        n_queries: int | Literal["auto"] = "auto",
        query_strategy: Any = "auto",
        representation: Any = None,
        epsilon: float | None = 1.0,
        delta: float = 1e-5,
        privacy_unit: Literal["row", "group"] = "row",
        public_size: float | None = None,
        synthetic: PrivateMarginals | None = None,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
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
        self.epsilon = epsilon
        self.delta = delta
        self.privacy_unit = privacy_unit
        self.public_size = public_size
        self.synthetic = synthetic
        self.classes = classes
        self.ledger = ledger
        self.verbose = verbose
        self.random_state = random_state

    @private_rows_by_position
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Train a student on noisy votes of the nearest private rows.

        See :meth:`PATEClassifier.fit <sklearn_pate.PATEClassifier.fit>` for further
        arguments, errors and warnings.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows. A row with missing or infinite features, after
            `representation`, is moved to the middle of the range of the public rows, or
            to zero for "cosine". Such a row causes no error and changes no vote of
            another row.

        y : array-like of shape (n_rows,)
            Labels of the private rows. `check_data` lists labels that are no class.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows, without labels.

        groups : array-like of shape (n_rows,), default=None
            Group id of each row, for ``privacy_unit="group"``. Pass one row a group if
            the outcome decides how many rows a group has: see :doc:`/guide/data`.

        Returns
        -------
        self : PrivateKNNClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. Nothing was queried or charged,
            except possibly the counts of `synthetic`.

        BudgetExceededError
            If the privacy cost exceeds the budget of the `ledger`. Nothing was queried
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
            votes = self._neighbour_votes(aggregation)
            # The privacy is spent on this line: noise is drawn, answers are released.
            answers = aggregation.draw(votes, entry)
            student = aggregation.teach(answers)
        self.n_neighbors_ = release.n_teachers
        return self._set_fitted(aggregation, answers, student, None, marginals, dropped)

    # Samples are secret for units that are added or removed.
    _add_remove = True

    @property
    def _counts_rows(self) -> bool:
        """True: an added unit moves the positions of other private rows."""
        return True

    def _plan(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> "_NeighbourAggregation":
        """Plan a fit: everything that comes before the first sample."""
        self._check_parameters()
        seeds = Seeds.drawn(self.random_state)
        private, public = split_inputs(
            self, X, y, X_public, groups, seed=seeds.public_rows
        )
        public = replace(public, assumptions=self._assumptions_of_samples(public))
        student = self._unfitted_inner()
        design = Design(
            None,
            self.representation,
            student,
            as_mechanism(self.mechanism),
            0,
            resolve_n_queries(self.n_queries, public.n_public, student),
            self.query_strategy,
        )
        queries = prepare_queries(public.X_public, design, seeds.representation)
        RowFeatures(queries.representation).check(
            public.X_public, _public_features(queries)
        )
        sampled = SampledMechanism(design.mechanism, self.sampling_rate)

        def prepare(**target: Any) -> SampledMechanism:
            mechanism = sampled.prepared(
                n_queries=design.n_queries, delta=self.delta, **target
            )
            return mechanism.for_neighbors(self._count_neighbors(mechanism))

        release = ReleasePlan(
            prepare=prepare,
            counts_for=partial(self._counts, public),
            target=self.epsilon,
            delta=self.delta,
            unit=public.unit,
            assumptions=self._assumptions(public),
            teachers=self._count_neighbors,
            n_queries=design.n_queries,
            n_values=len(public.classes),
        )
        self._warn_of_counts(private, public, release)
        aggregation = _NeighbourAggregation(
            public, design, release, seeds, private, (), queries
        )
        aggregation.warn_if_useless()
        aggregation.rehearse()
        return aggregation

    def _check_parameters(self) -> None:
        if isinstance(self.mechanism, str) and self.mechanism not in MECHANISMS:
            raise ValueError(
                f"mechanism={self.mechanism!r} has no known cost on a secret sample; "
                f"use one of {[*MECHANISMS]}, which have Gaussian noise."
            )
        super()._check_parameters()
        check_strategy(self.query_strategy, self.mechanism, self._unfitted_inner())
        mechanism = as_mechanism(self.mechanism)
        SampledMechanism(mechanism, self.sampling_rate).check()

    def _assumptions_of_samples(self, public: PublicInputs) -> tuple[Assumption, ...]:
        """Add the assumptions of secret samples of single rows."""
        assumptions = public.assumptions
        if self.public_size is not None and self.privacy_unit == "row":
            assumptions = (*assumptions, N_ROWS_PUBLIC)
        if self.representation is not None:
            assumptions = (*assumptions, ROW_ALONE)
        return assumptions

    def _count_neighbors(self, mechanism: SampledMechanism) -> int:
        """Compute the number of neighbours that vote."""
        if self.n_neighbors == "auto":
            return math.ceil(_VOTES_PER_SIGMA * mechanism.sigma)
        return self.n_neighbors

    @phase("representing the rows")
    def _neighbour_votes(self, plan: VoteAggregation) -> NeighbourVotes:
        """Put private rows on the grid, for exact distances, and count their votes."""
        private, queries = plan.private, plan.queries
        public = _public_features(queries)
        grid = Grid.around(public, angular=self.metric == "cosine")
        # Rows of an unknown label are no neighbours: they displace no other vote.
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
            sampler=plan.release.mechanism.sampler(plan.release.noise()),
        )

    def _readers(self) -> dict[str, Any]:
        return {
            "representation": self.representation,
            "student": self._unfitted_inner(),
        }

    def _unfitted_inner(self) -> Any:
        if self.student is None:
            return GraphSelfTrainingClassifier(representation=self.representation)
        return self.student


class _NeighbourAggregation(VoteAggregation):
    """Aggregation of the votes of the nearest rows, which are no teachers."""

    def _why_useless(self) -> Iterator[str]:
        why = why_useless(
            self.release.mechanism,
            n_teachers=self.release.n_teachers,
            n_queries=self.release.n_queries,
            n_classes=self.n_classes,
            few_answers=accepts_unlabeled(self.design.student),
            n_rows=None,
            epsilon=None,  # neighbours cost nothing
            delta=self.statement.delta,
            unit=self.public.unit,
            voter="neighbour",
        )
        if why is not None:
            yield why


def _public_features(queries: Queries) -> NDArray[np.float64]:
    """Return public rows as numbers, for distances."""
    features = numeric_features(queries.X_for_teachers)
    if features is None or features.shape[1] == 0:
        raise ValueError(
            "PrivateKNNClassifier compares rows as dense numbers, but X_public has "
            "text, sparse or missing values; pass representation=, a transformer to "
            "dense numbers."
        )
    return features


def _points(
    grid: Grid, X: Any, rows: NDArray[np.intp], features: RowFeatures
) -> NDArray[np.float32]:
    """Compute private rows on the grid, a block at a time."""
    points = np.empty((len(rows), len(grid.centre)), dtype=np.float32)
    for start in range(0, len(rows), _N_ROWS):
        part = rows[start : start + _N_ROWS]
        points[start : start + _N_ROWS] = grid.points(
            features.of_rows(X, part, grid.centre)
        )
    return points

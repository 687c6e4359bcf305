"""Plan of PETDL: public batches, vectors of teachers, and their noisy sum."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklearn_pate._aggregation._aggregation import Aggregation
from sklearn_pate._aggregation._entry import (
    CountsFor,
    ReleasePlan,
    analyse_release,
    plan_release,
)
from sklearn_pate._aggregation._outlook import why_useless
from sklearn_pate._aggregation._prepared_rows import comparable, represent
from sklearn_pate._aggregation._rehearsal import rehearse_student
from sklearn_pate._estimators._class_codes import on_labels
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._estimators._progress import phase
from sklearn_pate._inputs._containers import Table
from sklearn_pate._synthetic._class_tables import nearest_on_simplex
from sklearn_pate._teachers._forms import SoftVoteForm
from sklearn_pate._teachers._training import TeacherProblems
from sklearn_pate._votes._sums import STEPS, SoftVoteLayout, SoftVotes
from sklearn_pate.accounting._assumptions import Assumption
from sklearn_pate.accounting._cost import Cost
from sklearn_pate.accounting._fit_entry import FitEntry
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.mechanisms import NoisySum
from sklearn_pate.mechanisms._noisy_sum import StoredSums
from sklearn_pate.students._queries import find_clusters
from sklearn_pate.students._train_student import soften, train_student


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
    hint_epochs: int

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
        if released.similarities is not None:
            from sklearn_pate.students import RelationalHint  # imports torch

            hint = RelationalHint(
                batches.of_row, released.similarities, batches.hint_epochs
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
            hint=hint if batches.hint_epochs else None,
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
    public_batch_size: int,
    by: str,
    core: float,
    hint_epochs: int,
    hint_share: float,
    temperature: float,
    clipping_bound: float,
    weighted: bool,
    seed: int,
) -> PublicBatches:
    """Assign public rows to public batches, and set the form of soft votes.

    Raises ValueError for fewer than two batches, or rows without distances.
    """
    n_public = X_public.shape[0]
    n_batches = n_public // public_batch_size
    if n_batches < 2:
        raise ValueError(
            f"public_batch_size={public_batch_size} makes fewer than two public "
            f"batches of {counted(n_public, 'row')}; lower public_batch_size, or pass "
            "more public rows."
        )
    representation, X_for_teachers = represent(representation, X_public, seed)
    random_state = check_random_state(seed % MAX_SEED)
    if by == "random":
        of_row = random_state.permutation(np.arange(n_public) % n_batches)
    else:
        features = comparable(representation, X_public, X_for_teachers, seed)
        if features is None:
            raise ValueError(
                "batches='cluster' compares public rows, but X_public has text, "
                "sparse or missing values; pass representation=, a transformer to "
                "dense numbers, or use batches='random'."
            )
        of_row = _cores(*find_clusters(features, n_batches, random_state), core)
    form = SoftVoteForm(
        vector_layout(int(of_row.max()) + 1, n_classes, hint_epochs, hint_share),
        of_row,
        temperature,
        clipping_bound,
        weighted,
    )
    return PublicBatches(representation, X_for_teachers, form, hint_epochs)


def vector_layout(
    n_batches: int, n_classes: int, hint_epochs: int, hint_share: float
) -> SoftVoteLayout:
    """Return the layout of a teacher's vector, with parts for the hint if used."""
    n_hint_parts = 0
    if hint_epochs:
        n_hint_parts = math.ceil(n_batches * hint_share / (1 - hint_share))
    return SoftVoteLayout(n_batches, n_classes, n_hint_parts)


def plan_sum(
    mechanism: NoisySum,
    layout: SoftVoteLayout,
    *,
    epsilon: float | None,
    delta: float,
    unit: str,
    assumptions: tuple[Assumption, ...],
    n_teachers: int,
    counts_for: CountsFor,
) -> ReleasePlan:
    """Calibrate the noise of the sum, and state its cost.

    `counts_for` returns what is released before, for an epsilon.
    """

    def prepare(epsilon: float | None, before: Cost | None) -> NoisySum:
        return mechanism.prepared(
            n_parts=layout.n_parts, epsilon=epsilon, delta=delta, before=before
        )

    release = plan_release(
        prepare,
        counts_for,
        epsilon,
        delta=delta,
        unit=unit,
        assumptions=assumptions,
        n_teachers=n_teachers,
        n_queries=1,
        n_values=layout.size,
    )
    # One release of a vector; the statement counts its parts.
    statement = replace(release.statement, n_queries=layout.n_parts)
    return replace(release, statement=statement)


def _cores(
    cluster_of_row: NDArray[np.intp], rank: NDArray[np.intp], core: float
) -> NDArray[np.intp]:
    """Keep a share of each cluster, nearest to its centre; -1 for other rows."""
    sizes = np.bincount(cluster_of_row)
    in_core = rank < np.ceil(core * sizes)[cluster_of_row]
    return np.where(in_core, cluster_of_row, -1)


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

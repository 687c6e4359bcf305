"""Aggregation: what teachers send, what leaves them, and what a student learns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_pate._aggregation._design import Design
from sklearn_pate._aggregation._entry import ReleasePlan
from sklearn_pate._aggregation._outlook import why_columns_are_lost
from sklearn_pate._aggregation._rehearsal import rehearse_teacher
from sklearn_pate._aggregation._rows import PublicInputs
from sklearn_pate._estimators._class_codes import on_labels
from sklearn_pate._estimators._isolation import Seeds
from sklearn_pate._estimators._progress import phase
from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers._forms import Form
from sklearn_pate._teachers._shards import teacher_seeds
from sklearn_pate._teachers._training import Aggregate, TeacherProblems, collect
from sklearn_pate.accounting._fit_entry import FitEntry
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.exceptions import PrivacyUtilityWarning, TeacherWarning, warn_user

Sums = TypeVar("Sums", bound=Aggregate)
Released = TypeVar("Released")


@dataclass(frozen=True)
class Aggregation(ABC, Generic[Sums, Released]):
    """What teachers send, what leaves them, and what a student learns.

    Everything but `private` follows from public rows and public numbers.
    """

    public: PublicInputs
    design: Design
    release: ReleasePlan
    seeds: Seeds
    #: Private rows; None where others trained the teachers.
    private: Any
    #: Private rows of each teacher; their numbers alone on a cluster. Empty where no
    #: teacher is trained here.
    shards: Sequence[Any]

    #: Whether synthetic rows are of all classes equally often: queries are for a
    #: student that learns each class. Otherwise, they are like the private rows.
    equal_classes: ClassVar[bool] = True

    @property
    def statement(self) -> PrivacySpent:
        """Privacy statement, which does not depend on what teachers send."""
        return self.release.statement

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.public.classes)

    @property
    def n_rows(self) -> int | None:
        """Number of private rows, None where it is not public."""
        is_public = self.private is not None and self.public.unit == "row"
        return self.private.n_rows if is_public else None

    @property
    def public_content(self) -> tuple[Any, ...]:
        """All public data that decide the release."""
        return self.public.content

    @property
    def teacher(self) -> Any:
        """Teacher, made to learn labels or class indices."""
        return on_labels("estimator", self.design.teacher, self.public.classes)

    @property
    @abstractmethod
    def representation(self) -> BaseEstimator | None:
        """Transformer of the rows of teachers, fitted on public rows."""

    @property
    @abstractmethod
    def represented(self) -> Table:
        """Public rows that teachers predict, transformed by the representation."""

    @property
    @abstractmethod
    def form(self) -> Form:
        """Form of what a teacher sends."""

    @abstractmethod
    def _why_useless(self) -> Iterable[str | None]:
        """Describe why a student can hardly learn from the release."""

    def warn_if_useless(self) -> None:
        """Warn if a student can hardly learn from the release, by public numbers."""
        for why in (*self._why_useless(), self.why_columns_are_lost):
            warn_user(why, PrivacyUtilityWarning)

    @property
    def why_columns_are_lost(self) -> str | None:
        """Description of columns that features hardly represent; None without any."""
        if self.public.domain is not None:
            return None  # rows of the domain are not like private ones
        return why_columns_are_lost(self.representation)

    def rehearse(self) -> None:
        """Raise ValueError if the student or a teacher fails on public rows."""
        self._rehearse_student()
        if self.shards:
            rehearse_teacher(
                self.teacher,
                self.public.X_public,
                self.represented,
                self.form,
                representation=self.representation,
                n_rows=None if self.n_rows is None else self.n_rows // len(self.shards),
                seed=self.seeds.key,
            )

    @abstractmethod
    def _rehearse_student(self) -> None:
        """Raise ValueError if the student fails on public rows."""

    @property
    @abstractmethod
    def sums(self) -> Callable[[Iterable[Any]], Sums]:
        """Container of what teachers send, made of it; None for one that failed."""

    @abstractmethod
    def draw(self, sums: Sums, entry: FitEntry | None) -> Released:
        """Record the cost, draw the noise, and release what a student learns."""

    @abstractmethod
    def teach(self, released: Released) -> BaseEstimator:
        """Return the student, from public rows and what was released alone."""

    @abstractmethod
    def attributes(self, released: Released) -> dict[str, Any]:
        """Return what was released, as fitted attributes."""

    @abstractmethod
    def analyse(
        self,
        sums: Sums,
        released: Released,
        problems: TeacherProblems,
        entry: FitEntry | None,
    ) -> PrivacyAnalysis:
        """Prepare the privacy cost of these sums, with problems. Sensitive."""


def train_teachers(
    aggregation: Aggregation[Sums, Any],
    *,
    memory: str | None,
    n_jobs: int | None,
    verbose: int | Literal["auto"],
) -> tuple[Sums, TeacherProblems]:
    """Train a teacher on each shard, and sum what they send. Sensitive."""
    private, n_teachers = aggregation.private, len(aggregation.shards)
    if private.on_cluster:
        # Imported here, as it imports dask.
        from sklearn_pate.distributed._dask_teachers import collect_on_dask

        train = partial(
            collect_on_dask, private=private, given=aggregation.public.X_public
        )
    else:
        train = partial(
            collect,
            X=private.X,
            codes=private.codes,
            memory=memory,
            n_jobs=n_jobs,
            verbose=0 if verbose == "auto" else verbose,
        )
    with phase("training teachers", n_teachers) as advance:
        sums, problems = train(
            aggregation.teacher,
            shards=aggregation.shards,
            X_public=aggregation.represented,
            form=aggregation.form,
            aggregate=aggregation.sums,
            seeds=teacher_seeds(aggregation.seeds.key, np.arange(n_teachers)),
            representation=aggregation.representation,
            on_teacher_done=partial(advance, 1),
        )
    if problems:
        warn_user(
            "Some teachers may have failed and abstained, or issued warnings. The "
            "details are sensitive: see teacher_failures and teacher_warnings of "
            "privacy_analysis_.",
            TeacherWarning,
        )
    return sums, problems

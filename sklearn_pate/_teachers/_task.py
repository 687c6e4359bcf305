"""Tasks and results of teachers, and teachers that need no training."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._callbacks import drop_callbacks
from sklearn_pate._estimators._hooks import autologging_off, muted
from sklearn_pate._estimators._seeding import seed_names
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._odd_rows import INFINITE, MISSING, odd_rows, takes_missing
from sklearn_pate._teachers._threads import one_thread, this_thread
from sklearn_pate._teachers._vote_form import Contribution, Form

__all__ = [
    "ON_PUBLIC_ROWS",
    "Outcome",
    "Poll",
    "PublicRowsError",
    "Shard",
    "TeacherResult",
    "result_without_training",
    "rows_of",
    "usable_rows",
    "warning_texts",
]

#: Contribution, texts of warnings and number of dropped rows of one teacher.
Outcome: TypeAlias = tuple[Any, tuple[str, ...], int]

#: Start of the failure text of a teacher that was trained.
ON_PUBLIC_ROWS = "on X_public, "


@dataclass(frozen=True)
class Poll:
    """Inputs that all teachers share, beside the public rows."""

    estimator: BaseEstimator
    #: Names of its parameters that are seeded, as each search for them takes time.
    seed_names: Sequence[str]
    form: Form
    representation: BaseEstimator | None
    config: dict[str, object]
    polling_thread: tuple[int, int]

    @classmethod
    def by_this_thread(
        cls,
        estimator: BaseEstimator,
        form: Form,
        representation: BaseEstimator | None = None,
    ) -> Self:
        """Collect the inputs in the thread that gets the results."""
        # A clone, so that the callbacks of the user's estimator stay.
        unwatched = drop_callbacks(clone(estimator))
        names = seed_names(unwatched)
        return cls(unwatched, names, form, representation, get_config(), this_thread())

    @property
    def first_step(self) -> Any:
        """First estimator that is applied to private rows."""
        return self.estimator if self.representation is None else self.representation

    @contextmanager
    def isolated(self) -> Iterator[list[warnings.WarningMessage]]:
        """Limit a teacher, catch its warnings, and suppress its output."""
        with (
            one_thread(this_thread() != self.polling_thread),
            autologging_off(),
            muted(),
            # Warnings may quote private rows, as errors may. Filters are global to the
            # process, as generators are: scikit-learn's Parallel, which would pass on
            # its configuration, sets them while other threads run.
            warnings.catch_warnings(record=True) as caught,
            config_context(**self.config),
            # Parallel code inside a teacher would compete with other teachers, and
            # wait for them on a cluster.
            parallel_config(backend="sequential"),
        ):
            warnings.simplefilter("always")
            yield caught


@dataclass(frozen=True)
class Shard:
    """Private rows and seed of one teacher, and the cache slot of its result."""

    teacher: int
    X: Table
    codes: NDArray[np.intp]
    seed: int
    slot: Callable[[Callable[[], Outcome]], Outcome] | None

    def without(self, is_odd: NDArray[np.bool_]) -> Self:
        """Drop odd rows; return the same shard if there are none."""
        if not np.any(is_odd):
            return self
        rows = np.flatnonzero(~is_odd)
        return replace(self, X=rows_of(self.X, rows), codes=self.codes[rows])


@dataclass
class TeacherResult:
    """Result of one teacher: its contribution or failure, and its warnings."""

    teacher: int
    contribution: Contribution | None = None
    failure: str | None = None
    warnings: tuple[str, ...] = ()
    n_dropped: int = 0


class PublicRowsError(Exception):
    """Failure of a trained teacher on public rows."""


def rows_of(X: Table, rows: Any) -> Any:
    """Return some rows, of an array in C order: a sum in another order rounds so."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X[rows])
    return _safe_indexing(X, rows)


def usable_rows(estimator: Any, shard: Shard) -> Shard:
    """Drop rows of an array with values that an estimator refuses."""
    X = shard.X
    is_array = isinstance(X, np.ndarray) or sp.issparse(X)
    if not is_array or takes_missing(estimator) is not False:
        return shard
    return shard.without(odd_rows(X) & (MISSING | INFINITE) > 0)


def result_without_training(
    poll: Poll, X_public: Any, shard: Shard
) -> TeacherResult | None:
    """Return the result for an empty shard or a single class, else None."""
    codes = shard.codes
    if codes.size == 0:
        return TeacherResult(shard.teacher)
    if np.all(codes == codes[0]):  # many classifiers refuse a single class
        return TeacherResult(
            shard.teacher, poll.form.constant(int(codes[0]), X_public.shape[0])
        )
    return None


def warning_texts(caught: Iterable[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return category and text of each warning."""
    return tuple(f"{one.category.__name__}: {one.message}" for one in caught)

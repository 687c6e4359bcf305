"""What a task is given, what comes back, and which teachers need no training."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._hooks import autologging_off, muted
from sklearn_pate._estimators._seeding import seeded_globals
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._odd_rows import INFINITE, MISSING, odd_rows, takes_missing
from sklearn_pate._teachers._threads import one_thread, this_thread
from sklearn_pate._teachers._vote_form import Contribution, Form

__all__ = [
    "ON_PUBLIC_ROWS",
    "BlockError",
    "Outcome",
    "Poll",
    "PublicRowsError",
    "Shard",
    "TeacherResult",
    "count_dropped",
    "result_of",
    "result_without_training",
    "usable_rows",
    "warning_texts",
]

#: Votes, texts of warnings, and how many rows were dropped, of one teacher.
Outcome: TypeAlias = tuple[Any, tuple[str, ...], int]

#: What the failure begins with of a teacher that had been trained.
ON_PUBLIC_ROWS = "on X_public, "


@dataclass(frozen=True)
class Poll:
    """What all tasks share, beside the public rows."""

    estimator: BaseEstimator
    form: Form
    representation: BaseEstimator | None
    config: dict[str, object]
    polling_thread: tuple[int, int]

    @property
    def sees_rows_first(self) -> Any:
        """The representation, or the teacher where there is none."""
        return self.estimator if self.representation is None else self.representation

    @contextmanager
    def alone(self, seed: int) -> Iterator[list[warnings.WarningMessage]]:
        """Seed and limit what runs within, catch its warnings, and let nothing out."""
        with (
            one_thread(this_thread() != self.polling_thread),
            autologging_off(),
            muted(),
            seeded_globals(seed),
            # Warnings may quote private rows, like errors. The filters belong to the
            # whole process, like the generators: scikit-learn's own Parallel, which
            # would carry its configuration along, sets them while other threads run.
            warnings.catch_warnings(record=True) as caught,
            config_context(**self.config),
            # What runs in parallel inside a teacher would compete with the other
            # teachers, and on a cluster wait for them.
            parallel_config(backend="sequential"),
        ):
            warnings.simplefilter("always")
            yield caught


@dataclass(frozen=True)
class Shard:
    """What one teacher learns from, and where its votes are kept."""

    teacher: int
    X: Table
    codes: NDArray[np.intp]
    seed: int
    place: Callable[[Callable[[], Outcome]], Outcome] | None

    def without(self, is_odd: NDArray[np.bool_]) -> Self:
        """Drop odd rows; return the same shard if there is none."""
        if not np.any(is_odd):
            return self
        rows = np.flatnonzero(~is_odd)
        return replace(self, X=_safe_indexing(self.X, rows), codes=self.codes[rows])


@dataclass
class TeacherResult:
    """What comes back from a teacher: what it said, what went wrong, its warnings."""

    teacher: int
    contribution: Contribution | None = None
    failure: str | None = None
    warnings: tuple[str, ...] = ()
    n_dropped: int = 0


class PublicRowsError(Exception):
    """Says what a trained teacher failed with when it was asked."""


class BlockError(ValueError):
    """Ends the poll: if a block abstained, one shard would change many votes."""


def usable_rows(estimator: Any, shard: Shard) -> Shard:
    """Drop rows of an array with values that an estimator is known to refuse."""
    X = shard.X
    is_array = isinstance(X, np.ndarray) or sp.issparse(X)
    if not is_array or takes_missing(estimator) is not False:
        return shard
    return shard.without(odd_rows(X) & (MISSING | INFINITE) > 0)


def count_dropped(
    results: list[TeacherResult], shards: list[Shard], usable: list[Shard]
) -> list[TeacherResult]:
    """Write down how many rows were dropped before a teacher saw them."""
    for result, shard, rest in zip(results, shards, usable, strict=True):
        result.n_dropped += shard.codes.size - rest.codes.size
    return results


def result_without_training(
    poll: Poll, X_public: Any, shard: Shard
) -> TeacherResult | None:
    """Return the result of a teacher that has nothing to learn, else None."""
    codes = shard.codes
    if codes.size == 0:
        return TeacherResult(shard.teacher)
    if np.all(codes == codes[0]):  # many classifiers refuse a single class
        return TeacherResult(
            shard.teacher, poll.form.constant(int(codes[0]), X_public.shape[0])
        )
    return None


def result_of(shard: Shard, train: Callable[[], Outcome]) -> TeacherResult:
    """Train a teacher, unless that was done before, and write its result."""
    result = TeacherResult(shard.teacher)
    try:
        result.contribution, result.warnings, result.n_dropped = (
            train() if shard.place is None else shard.place(train)
        )
    except BlockError:
        raise
    except PublicRowsError as error:
        result.failure = f"{ON_PUBLIC_ROWS}{error}"
    except Exception as error:
        result.failure = f"{type(error).__name__}: {error}"
    return result


def warning_texts(caught: Iterable[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return category and text of each warning."""
    return tuple(f"{one.category.__name__}: {one.message}" for one in caught)

"""Training of teachers, each on its shard, and collection of what they send."""

import os
import secrets
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from traceback import walk_tb
from typing import Any, NoReturn, Protocol, Self, TypeAlias, TypeVar

import joblib
import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from numpy.typing import NDArray
from scipy.linalg import helmert
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._class_codes import RelabeledClassifier, fit_class_indices
from sklearn_pate._estimators._fingerprints import estimator_hash
from sklearn_pate._estimators._isolation import (
    autologging_off,
    kept_globals,
    muted,
    one_thread,
    seed_names,
    seeded_clone,
    this_thread,
    with_seeds,
)
from sklearn_pate._estimators._predictions import (
    in_all_classes,
    read_codes,
    soften_probabilities,
)
from sklearn_pate._estimators._progress import drop_callbacks
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._features import takes_missing
from sklearn_pate._inputs._odd_values import HUGE, INFINITE, MISSING, odd_rows
from sklearn_pate._votes._votes import STEPS, SoftVoteLayout, direction_vector
from sklearn_pate.accounting._sites import shared_release
from sklearn_pate.accounting._value_checks import counted

Contribution: TypeAlias = NDArray[Any] | tuple[NDArray[Any] | None, ...]

# Units of probability that a vote is decided in.
_VOTE_UNITS = 2**20
# Largest probability, with round-off in half precision.
_LARGEST = 1.001
#: Start of the failure text of a teacher that was trained.
ON_PUBLIC_ROWS = "on X_public, "
_DROPPED = "dropped for missing or infinite values"
# Tasks for each worker: enough of them to share the work and to show progress, and few
# enough that a task of small teachers takes longer than to prepare it.
_TASKS_A_WORKER = 32


class Form(Protocol):
    """Form of a teacher's contribution."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def read(self, teacher: Any, X_public: Any) -> Contribution:
        """Return the contribution of a teacher, which may modify these rows."""

    def constant(self, code: int, n_public: int) -> Contribution:
        """Return the contribution of a teacher of a single class."""


@dataclass(frozen=True)
class VoteForm:
    """Votes: a class index for each public row, -1 for an abstention.

    A plain vote is the prediction. A balanced vote is the class whose probability most
    exceeds its mean over the public rows, by the same teacher; the first of equal ones,
    and none where no class exceeds it.
    """

    n_classes: int
    balanced: bool = False

    def read(self, teacher: Any, X_public: Any) -> NDArray[np.signedinteger]:
        """Return the votes of a fitted teacher; invalid predictions are abstentions."""
        if self.balanced:
            codes = self._above_means(*_scores_of_classes(teacher, X_public, self))
        else:
            codes = _predicted_codes(teacher, X_public, self)
        return codes.astype(self._dtype)

    def constant(self, code: int, n_public: int) -> NDArray[np.signedinteger]:
        """Return votes for one class, or for none if they are balanced."""
        return np.full(n_public, -1 if self.balanced else code, dtype=self._dtype)

    @staticmethod
    def _above_means(
        probabilities: NDArray[np.float64], known: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        means = probabilities[known].mean(axis=0) if known.any() else 0.0
        # Rounded, so that round-off decides no vote.
        excess = np.rint((probabilities - means) * _VOTE_UNITS)
        exceeds = known & (excess.max(axis=1) > 0)
        return np.where(exceeds, excess.argmax(axis=1), -1)

    @property
    def _dtype(self) -> np.dtype[Any]:
        # Signed, for -1 .. n_classes - 1.
        return np.min_scalar_type(-self.n_classes)


@dataclass(frozen=True)
class ScoreForm:
    """Direction of a teacher's score function in a public basis.

    That is its coefficients at one length, as whole numbers; zeros where it is
    constant. The score function is p(x) - 1/K for class probabilities p. `basis` has
    functions at public rows, of mean 0 and shape (n_public, n_coordinates), with basis'
    basis / n_public = I.
    """

    n_classes: int
    basis: NDArray[np.float64]

    def read(self, teacher: Any, X_public: Any) -> NDArray[np.int64]:
        """Return a vector of shape (n_coordinates, n_classes - 1)."""
        probabilities, known = _scores_of_classes(teacher, X_public, self)
        scores = (probabilities - 1 / self.n_classes) * known[:, np.newaxis]
        contrasts = scores @ helmert(self.n_classes).T
        return direction_vector(self.basis.T @ contrasts / len(self.basis))

    def constant(self, code: int, n_public: int) -> NDArray[np.int64]:
        """Return the vector of a teacher of a single class, which is zero."""
        shape = self.basis.shape[1], self.n_classes - 1
        return np.zeros(shape, dtype=np.int64)


def _scores_of_classes(
    teacher: Any, X_public: Any, form: Form
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return class probabilities, or the predictions of a teacher without them.

    With them, which rows have some: a prediction may be no class index.
    """
    if not hasattr(teacher, "predict_proba"):
        codes = _predicted_codes(teacher, X_public, form)
        return _one_hot(codes, form.n_classes), codes >= 0
    probabilities = _class_probabilities(
        teacher,
        X_public,
        form.n_classes,
        lambda values: bool(np.all(np.isfinite(values))),
        "not finite",
    )
    return probabilities.astype(np.float64), np.ones(len(probabilities), dtype=bool)


def _predicted_codes(teacher: Any, X_public: Any, form: Form) -> NDArray[np.intp]:
    return read_codes(teacher.predict(X_public), X_public.shape[0], form.n_classes)


def _one_hot(codes: NDArray[np.intp], n_classes: int) -> NDArray[np.float64]:
    return (codes[:, np.newaxis] == np.arange(n_classes)).astype(np.float64)


@dataclass(frozen=True)
class SoftVoteForm:
    """Soft votes: a clipped vector about public batches.

    The vector is sensitive. Its length is bounded for any teacher, so that the sum over
    teachers can be released with noise (:class:`~sklearn_pate.mechanisms.NoisySum`).
    `batch_of_row` is -1 for a row in no batch, and is made of public rows alone.
    `clipping_bound` is the L2 norm that the values of a batch are scaled down to, in
    probabilities; noise is in units of it. Softening by `temperature`, and weights by
    the teacher's confidence if `weighted`, come before the clipping.

    For a batch, the mean over its rows of the softened probabilities (Sun et al. 2019,
    Section 2.2), each multiplied by the confidence if `weighted` (Section 3.2). The sum
    of the weights need not be sent: the values of a batch add up to it.

    For the hint, the mean over each batch of the teacher's hidden representation,
    centred by the mean over all batches; the cosines between batches, and zero
    instead of negative ones; all scaled to the norm that the layout allows. It needs no
    correspondence between the hidden layers of teachers.

    All numbers are rounded down to multiples of 1/1024 of the bound. The squared norm
    of the result is a whole number, at most that of the vector before, which floating
    point puts above the bound's by less than one part in 10^12: it is within the bound.
    """

    layout: SoftVoteLayout
    batch_of_row: NDArray[np.intp]
    temperature: float
    clipping_bound: float
    weighted: bool

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.layout.n_classes

    def read(self, teacher: Any, X_public: Any) -> NDArray[np.int32]:
        """Return the soft votes of a fitted teacher."""
        has_hint = self.layout.n_hint_parts > 0
        return self.of_outputs(
            *read_outputs(
                teacher, X_public, self.n_classes, with_representation=has_hint
            )
        )

    def constant(self, code: int, n_public: int) -> NDArray[np.int32]:
        """Return the soft votes of a teacher of a single class, without a hint."""
        probabilities = np.zeros((n_public, self.n_classes), dtype=np.float32)
        probabilities[:, code] = 1
        return self.of_outputs(probabilities, probabilities)

    def of_outputs(
        self, probabilities: NDArray[Any], representation: NDArray[Any] | None
    ) -> NDArray[np.int32]:
        """Turn a teacher's outputs into a vector of shape (1, layout.size)."""
        probabilities = np.asarray(probabilities, dtype=np.float64)
        values = soften_probabilities(probabilities, self.temperature)
        if self.weighted:
            values *= probabilities.max(axis=1, keepdims=True)
        means = self._batch_means(values)
        norms = np.linalg.norm(means, axis=1, keepdims=True)
        clipped = means / np.maximum(norms, self.clipping_bound)
        parts = [np.floor(clipped * STEPS).ravel()]
        if self.layout.n_hint_parts:
            means = self._batch_means(np.asarray(representation, dtype=np.float64))
            parts.append(_hint(means, np.sqrt(self.layout.n_hint_parts)))
        return np.concatenate(parts).astype(np.int32)[np.newaxis]

    def _batch_means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.flatnonzero(self.batch_of_row >= 0)
        batches = self.batch_of_row[rows]
        sums = np.zeros((self.layout.n_batches, values.shape[1]))
        np.add.at(sums, batches, values[rows])
        sizes = np.bincount(batches, minlength=self.layout.n_batches)
        return sums / np.maximum(sizes, 1)[:, np.newaxis]


def read_outputs(
    teacher: Any, X_public: Any, n_classes: int, *, with_representation: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Return a teacher's class probabilities, and its hidden representation of rows.

    They are unclipped and sensitive: no mechanism releases them (Sun et al. 2019,
    Section 2.2). The representation, of shape (n_public, n_hidden), is the input of the
    last linear layer of a network; for any other teacher, its probabilities.
    """
    probabilities = _class_probabilities(
        teacher, X_public, n_classes, _are_probabilities, "no probabilities"
    ).astype(np.float32)
    if not with_representation:
        return probabilities, None
    representation = _representation(teacher, X_public, probabilities)
    if not np.all(np.isfinite(representation)):
        raise ValueError("the hidden representation is not finite")
    return probabilities, representation


def _class_probabilities(
    teacher: Any,
    X_public: Any,
    n_classes: int,
    are_valid: Callable[[NDArray[Any]], bool],
    otherwise: str,
) -> NDArray[Any]:
    """Return what `predict_proba` predicts, with a column for each class."""
    predicted = np.asarray(teacher.predict_proba(X_public))
    probabilities = in_all_classes(predicted, teacher, n_classes, absent=0.0)
    shape = X_public.shape[0], n_classes
    if probabilities.shape != shape or not are_valid(probabilities):
        raise ValueError(
            f"predict_proba returned shape {probabilities.shape} for "
            f"{counted(shape[0], 'row')} and {shape[1]} classes, or values that are "
            f"{otherwise}"
        )
    return probabilities


def _are_probabilities(values: NDArray[Any]) -> bool:
    # They need not add up to 1, as vectors are clipped.
    is_float = values.dtype.kind == "f"
    return is_float and bool(np.all((values >= 0) & (values <= _LARGEST)))


def _hint(means: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """Return the similarity of each pair of batches, in units of the norm / STEPS."""
    centred = means - means.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    # Batches at the mean, up to round-off, are similar to no other.
    negligible = 1e-9 * max(np.linalg.norm(means, axis=1).max(), 1e-300)
    directions = np.where(lengths > negligible, centred, 0) / np.maximum(
        lengths, negligible
    )
    pairs = (directions @ directions.T)[np.triu_indices(len(means), 1)].clip(min=0)
    total = np.linalg.norm(pairs)
    if total == 0:
        return pairs
    return np.floor(pairs * (norm / total) * STEPS)


def _representation(
    teacher: Any, X_public: Any, probabilities: NDArray[np.float32]
) -> NDArray[Any]:
    """Return a network's hidden representation of rows, else the probabilities."""
    steps = getattr(teacher, "steps", None)
    if steps is not None:  # a Pipeline
        if len(steps) > 1:
            X_public = teacher[:-1].transform(X_public)
        teacher = steps[-1][1]
    if isinstance(teacher, RelabeledClassifier):
        return _representation(teacher.estimator_, X_public, probabilities)
    if not hasattr(teacher, "module_"):
        return probabilities
    import torch  # optional

    from sklearn_pate._estimators._hidden_layer import hidden_representation

    inputs = torch.as_tensor(np.asarray(X_public))
    return hidden_representation(teacher.module_, inputs).numpy().astype(np.float32)


@dataclass(frozen=True)
class Shard:
    """Private rows and seed of one teacher, and the file that keeps its result."""

    teacher: int
    X: Table
    codes: NDArray[np.intp]
    seed: int
    file: Path | None = None
    #: Number of rows that were dropped for their values.
    n_dropped: int = 0

    def without(self, is_odd: NDArray[np.bool_]) -> Self:
        """Drop odd rows; return the same shard if there are none."""
        if not np.any(is_odd):
            return self
        rows = np.flatnonzero(~is_odd)
        return replace(
            self,
            X=rows_of(self.X, rows),
            codes=self.codes[rows],
            n_dropped=self.n_dropped + int(np.count_nonzero(is_odd)),
        )


@dataclass(frozen=True)
class TeacherResult:
    """Result of one teacher: its contribution or failure, and its warnings."""

    teacher: int
    #: None of a teacher that failed, or that had no rows.
    contribution: Contribution | None = None
    failure: str | None = None
    warnings: tuple[str, ...] = ()
    n_dropped: int = 0


@dataclass(frozen=True)
class Poll:
    """Inputs that all teachers share."""

    estimator: BaseEstimator
    #: Names of its parameters that are seeded, as each search for them takes time.
    seed_names: Sequence[str]
    form: Form
    X_public: Table
    representation: BaseEstimator | None
    config: dict[str, object]
    polling_thread: tuple[int, int]

    @classmethod
    def by_this_thread(
        cls,
        estimator: BaseEstimator,
        form: Form,
        X_public: Table,
        representation: BaseEstimator | None = None,
    ) -> Self:
        """Collect the inputs in the thread that gets the results."""
        # A clone, so that the callbacks of the user's estimator stay.
        unwatched = drop_callbacks(clone(estimator))
        names = seed_names(unwatched)
        thread = this_thread()
        return cls(
            unwatched, names, form, X_public, representation, get_config(), thread
        )

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

    def without_training(self, shard: Shard) -> TeacherResult | None:
        """Return the result for an empty shard or a single class, else None."""
        codes, contribution = shard.codes, None
        if codes.size:
            if np.any(codes != codes[0]):
                return None
            # Many classifiers refuse a single class.
            contribution = self.form.constant(int(codes[0]), self.X_public.shape[0])
        return TeacherResult(shard.teacher, contribution, n_dropped=shard.n_dropped)


def rows_of(X: Table, rows: Any) -> Any:
    """Return some rows, of an array in C order: a sum in another order rounds so."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X[rows])
    return _safe_indexing(X, rows)


def train_shards(poll: Poll, shards: Iterable[Shard]) -> list[TeacherResult]:
    """Train a teacher on each shard, unless its result is kept in a file."""
    results = []
    # Muted here, too, as the first of nested blocks takes longest.
    with kept_globals() as seed_globals, muted():
        for shard in shards:
            result = _read(shard)
            if result is None:
                result = _train_on_most(poll, shard, seed_globals)
                _keep(result, shard.file)
            results.append(result)
    return results


def _train_on_most(
    poll: Poll, given: Shard, seed_globals: Callable[[int], None]
) -> TeacherResult:
    """Train; if that fails or warns, drop rows whose values may be the reason."""
    first = poll.estimator if poll.representation is None else poll.representation
    shard = _usable_rows(first, given)
    result = poll.without_training(shard)
    if result is not None:
        return result
    failure: str | None = None
    n_rows = shard.codes.size
    try:
        for refused in (0, INFINITE | HUGE, INFINITE | HUGE | MISSING):
            rest = shard
            if refused:
                rest = shard.without(odd_rows(shard.X) & refused > 0)
                # Rows with missing values are dropped only if training fails.
                if rest.codes.size == n_rows or (result and refused & MISSING):
                    continue
                if result and rest.codes.size == 0:
                    break
            n_rows = rest.codes.size
            tried = poll.without_training(rest) or _train(poll, rest, seed_globals)
            if tried.failure is not None:
                failure = failure or tried.failure
                continue
            # Rows are not dropped for a warning that persists without them.
            if result is None or not tried.warnings:
                result = tried
            if refused or not tried.warnings:
                break
    except Exception as error:  # an object of a private row may raise any
        failure = failure or _text_of(error)
    dropped = shard.n_dropped
    return result or TeacherResult(given.teacher, failure=failure, n_dropped=dropped)


def _train(
    poll: Poll, shard: Shard, seed_globals: Callable[[int], None]
) -> TeacherResult:
    """Train a teacher in isolation, read its contribution, and drop it."""
    had_torch = "torch" in sys.modules
    stage = ""
    try:
        with poll.isolated() as caught:
            seed_globals(shard.seed)
            teacher = with_seeds(clone(poll.estimator), poll.seed_names, shard.seed)
            # Copies: a teacher that modifies its rows in place would otherwise pass
            # information from its shard on to later teachers, and fail on a memory map.
            X, codes, X_public = deepcopy((shard.X, shard.codes, poll.X_public))
            own, result = replace(shard, X=X, codes=codes), None
            if poll.representation is not None:
                X = own_copy(poll.representation).transform(X)
                own = _usable_rows(poll.estimator, replace(own, X=X))
                if own.n_dropped > shard.n_dropped:
                    result = poll.without_training(own)
            if result is None:
                teacher = fit_class_indices(teacher, own.X, own.codes)
                stage = ON_PUBLIC_ROWS
                sent = poll.form.read(teacher, X_public)
                result = TeacherResult(shard.teacher, sent, n_dropped=own.n_dropped)
    except Exception as error:
        return TeacherResult(shard.teacher, failure=stage + _text_of(error))
    if "torch" in sys.modules and not had_torch:
        # The teacher imported torch, too late to seed and limit it: train again.
        return _train(poll, shard, seed_globals)
    texts = tuple(f"{one.category.__name__}: {one.message}" for one in caught)
    return replace(result, warnings=texts)


def _text_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _usable_rows(estimator: Any, shard: Shard) -> Shard:
    """Drop rows of an array with values that an estimator refuses."""
    X = shard.X
    is_array = isinstance(X, np.ndarray) or sp.issparse(X)
    if not is_array or takes_missing(estimator) is not False:
        return shard
    return shard.without(odd_rows(X) & (MISSING | INFINITE) > 0)


def own_copy(representation: BaseEstimator) -> Any:
    """Copy a representation whose `transform` may keep something of a row."""
    # Not inherited: a subclass may compute anything.
    keeps_no_row = "_keeps_no_row" in vars(type(representation))
    return representation if keeps_no_row else deepcopy(representation)


def _key_of_results(poll: Poll, location: str) -> str:
    """Hash what the results of teachers depend on, beside their shards.

    That is the estimator's parameters (not its code), `X_public`, the form, the
    representation fitted on public rows, and the versions of packages.
    """
    teacher = seeded_clone(poll.estimator, 0), poll.representation
    try:
        of_teacher = estimator_hash(*teacher)
    except Exception as error:
        raise ValueError(
            f"memory={location!r} needs an estimator (and a representation) that can "
            f"be hashed ({error}); define their classes and functions in a module."
        ) from error
    parts = [*teacher, *teacher[0].get_params(deep=True).values()]
    packages = {type(part).__module__.partition(".")[0] for part in parts}
    versions = [
        (name, str(getattr(sys.modules.get(name), "__version__", None)))
        for name in sorted(packages | {"sklearn_pate", "sklearn", "numpy", "scipy"})
    ]
    return joblib.hash((of_teacher, poll.X_public, poll.form, versions))


def _read(shard: Shard) -> TeacherResult | None:
    """Read the kept result of a teacher, None if there is none."""
    if shard.file is not None:
        with suppress(Exception):  # no file, or of another version
            return replace(joblib.load(shard.file), teacher=shard.teacher)
    return None


def _keep(result: TeacherResult, file: Path | None) -> None:
    """Write the result of a teacher that was trained without failure."""
    if file is not None and result.failure is None:
        # Other workers may read it, or write the same.
        temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
        joblib.dump(result, temporary)
        os.replace(temporary, file)


@dataclass
class TeacherProblems:
    """Errors and warnings of teachers, each with the teacher's index. Sensitive.

    Texts may quote private rows, and which teachers failed, and how many, depends on
    them; `repr` shows everything. A failure starts with "on X_public, " if the teacher
    was trained. `dropped` has the number of rows a teacher dropped for missing or
    infinite values. True if a teacher failed or warned.
    """

    failures: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    dropped: list[tuple[int, int]] = field(default_factory=list)

    def add(self, result: TeacherResult) -> None:
        """Add the problems of a teacher."""
        if result.failure is not None:
            self.failures.append((result.teacher, result.failure))
        self.warnings.extend((result.teacher, text) for text in result.warnings)
        if result.n_dropped:
            self.dropped.append((result.teacher, result.n_dropped))

    def sort(self) -> None:
        """Sort all problems by teacher."""
        for problems in (self.failures, self.warnings, self.dropped):
            problems.sort()

    def texts(self) -> list[tuple[int, str]]:
        """List warnings and dropped rows as texts, with the teacher's index."""
        dropped = [
            (teacher, f"{counted(n_rows, 'row')} {_DROPPED}")
            for teacher, n_rows in self.dropped
        ]
        return sorted([*self.warnings, *dropped])

    def __bool__(self) -> bool:
        return bool(self.failures or self.warnings)


def check_any_sent(
    form: Form, problems: TeacherProblems, *, any_cast: bool, any_sent: bool
) -> None:
    """Raise an error if no teacher voted. It may quote private rows.

    All balanced votes may be abstentions: an error would tell that no shard has rows of
    two classes. A site among others sends a sum without votes, as its silence would
    tell others that.
    """
    if shared_release() is not None:
        return
    may_abstain = isinstance(form, VoteForm) and form.balanced
    if not (any_sent if may_abstain else any_cast):
        _raise_for_no_votes(problems)


def _raise_for_no_votes(problems: TeacherProblems) -> NoReturn:
    """Raise an error that explains why no teacher voted. It may quote private rows."""
    failures = problems.failures
    if not failures and problems.dropped:
        raise ValueError(
            f"No teacher had rows to train on: all rows were {_DROPPED}, which "
            "estimator does not accept. Put an imputer inside estimator= and student=, "
            "as in make_pipeline(SimpleImputer(), LogisticRegression()), or leave out "
            "the column with these values."
        )
    if not failures:
        raise ValueError(
            "No teacher cast a vote: no row of y has a label "
            "in classes, or every prediction was out of range. Compare classes with "
            "the labels in y."
        )
    first = failures[0][1]
    if first.startswith(ON_PUBLIC_ROWS):
        where, remedy = "in predict on X_public", ", and then predict on X_public"
    else:
        where, remedy = "in training", ""
    raise ValueError(
        f"All teachers with data failed, the first one {where}. Try estimator.fit on a "
        f"few hundred rows alone{remedy}. Its error (do not publish: it may quote "
        f"private rows): {first.removeprefix(ON_PUBLIC_ROWS)}"
    )


class Aggregate(Protocol):
    """Sum of the contributions of teachers. Sensitive."""

    @property
    def any_cast(self) -> bool:
        """Whether any teacher contributed."""


A = TypeVar("A", bound=Aggregate)


def collect(
    estimator: BaseEstimator,
    X: Table,
    codes: NDArray[np.intp],
    shards: Sequence[NDArray[np.intp]],
    X_public: Table,
    *,
    form: Form,
    aggregate: Callable[[Iterator[Contribution | None]], A],
    seeds: Sequence[int],
    representation: BaseEstimator | None = None,
    memory: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    on_teacher_done: Callable[[], object] | None = None,
) -> tuple[A, TeacherProblems]:
    """Train a teacher on each shard and aggregate the contributions. Sensitive.

    Shards of row indices must be disjoint, and chosen independently of X and y: then
    neighbouring data sets differ in one contribution (Papernot et al. 2017, Section
    2.1). A code of -1 drops a row. Contributions reach `aggregate` in any order, None
    for a failed teacher or an empty shard; fitted teachers are not kept, so that memory
    does not grow with their number. `representation` is fitted on public rows, and
    `X_public` already transformed by it. `seeds` may be public. The times at which
    `verbose` prints and `on_teacher_done` is called are sensitive.
    """
    problems, any_sent = TeacherProblems(), False
    # Here, as joblib dispatches tasks from other threads.
    poll = Poll.by_this_thread(estimator, form, X_public, representation)
    folder = None
    if memory is not None:
        key = _key_of_results(poll, memory)
        folder = Path(memory, "sklearn_pate")
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)

    def all_shards() -> Iterator[Shard]:
        for teacher, (rows, seed) in enumerate(zip(shards, seeds, strict=True)):
            rows = rows[codes[rows] >= 0]
            own = rows_of(X, rows), codes[rows]
            # Hashed here, as pickling changes the hashes of some objects.
            file = folder and folder / f"{joblib.hash((key, *own, seed))}.pkl"
            yield Shard(teacher, *own, seed, file)

    def tasks() -> Iterator[Any]:
        n_tasks = _TASKS_A_WORKER * effective_n_jobs(n_jobs)
        rest, n_at_once = all_shards(), max(len(shards) // n_tasks, 1)
        while some := list(islice(rest, n_at_once)):
            yield delayed(train_shards)(poll, some)

    def contributions() -> Iterator[Contribution | None]:
        nonlocal any_sent
        parallel = {"n_jobs": n_jobs, "verbose": max(verbose - 1, 0)}
        try:
            run = Parallel(return_as="generator_unordered", **parallel)
        except ValueError:  # ray and multiprocessing return all results at the end
            run = Parallel(**parallel)
        for some in run(tasks()):
            for result in some:
                problems.add(result)
                any_sent |= result.contribution is not None
                if on_teacher_done is not None:
                    on_teacher_done()
                yield result.contribution

    with one_thread(), _errors_of_backend():
        aggregated = aggregate(contributions())
    problems.sort()  # teachers finish in any order
    check_any_sent(form, problems, any_cast=aggregated.any_cast, any_sent=any_sent)
    return aggregated, problems


@contextmanager
def _errors_of_backend() -> Iterator[None]:
    """Raise the error of a task that a joblib backend returned as its result.

    joblib fails on such a result; joblibspark 0.6 returns it.
    """
    try:
        yield
    except TypeError as error:
        found = (
            value
            for frame, _ in walk_tb(error.__traceback__)
            for value in frame.f_locals.values()
            if type(value).__name__ == "_ExceptionWithTraceback"  # private to joblib
        )
        returned = next(found, None)
        if returned is None:
            raise
        raise RuntimeError(
            "joblib's backend could not run the teachers; install the Python and "
            "packages of this process for its workers (for Spark, set PYSPARK_PYTHON). "
            "Its error (do not publish: it may quote private rows): "
            f"{type(returned.exc).__name__}: {returned.exc}"
        ) from returned.exc

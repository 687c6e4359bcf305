"""Fit, vote, forget: one teacher per task; only its votes come back."""

import sys
import warnings
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn import config_context, get_config
from sklearn.utils import _safe_indexing

from sklearn_pate.contiguous import fit_class_indices
from sklearn_pate.seeding import seeded_clone, seeded_globals
from sklearn_pate.teachers.memory import TeacherMemory
from sklearn_pate.teachers.threads import one_thread, this_thread
from sklearn_pate.votes import Votes

__all__ = ["TeacherProblems", "poll_teachers"]

ABSTAIN = -1


@dataclass
class TeacherProblems:
    """Errors and warnings of teachers, each with the teacher's index. Sensitive."""

    failures: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)

    def __bool__(self):
        return bool(self.failures or self.warnings)


def poll_teachers(
    estimator,
    X,
    codes,
    shards,
    X_public,
    *,
    n_classes,
    seeds,
    representation=None,
    clusters=None,
    memory=None,
    n_jobs=None,
    verbose=0,
    on_teacher_done=None,
):
    """Fit one clone of `estimator` on each shard and collect its votes on `X_public`.

    A fitted teacher lives in its task only, and its votes are added to those of the
    others as soon as they are there: memory does not grow with the number of teachers.

    Parameters
    ----------
    estimator : classifier
        The teacher; cloned and seeded for every shard.

    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
        Private rows. Each task is sent its shard only.

    codes : ndarray of int of shape (n_rows,)
        Class index of each row; -1 drops the row inside its shard.

    shards : list of n_teachers ndarrays of int
        Row indices for each teacher; may be empty.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    n_classes : int
        Number of classes.

    seeds : sequence of n_teachers ints
        One seed a teacher.

    representation : transformer, default=None
        Fitted on public rows. Each task transforms its own shard; `X_public` is
        transformed already.

    clusters : Clusters, default=None
        Public rows that are voted on together.

    memory : str, default=None
        A folder that keeps what finished teachers returned. Sensitive.

    n_jobs : int, default=None
        Number of tasks at once, as in joblib.

    verbose : int, default=0
        Verbosity of joblib.

    on_teacher_done : callable, default=None
        Called without arguments in this process, once for each teacher.

    Returns
    -------
    votes : Votes
        Sealed. A teacher that failed, or whose shard is empty, abstains everywhere; one
        that saw a single class votes for it.

    problems : TeacherProblems
        Errors and warnings of teachers. Sensitive.

    Raises
    ------
    ValueError
        If no teacher could vote.
    """
    n_public = X_public.shape[0]
    problems = TeacherProblems()
    if memory is not None:
        memory = TeacherMemory(memory, estimator, X_public, n_classes, representation)
    polling_thread = this_thread()
    config = get_config()  # now: joblib asks for tasks from threads of its own

    def tasks():
        for teacher, (rows, seed) in enumerate(zip(shards, seeds, strict=True)):
            rows = rows[codes[rows] >= 0]
            shard = _safe_indexing(X, rows), codes[rows]
            place = memory and memory.of_teacher(*shard, seed)
            yield delayed(_vote)(
                teacher,
                estimator,
                *shard,
                X_public,
                n_classes,
                seed,
                representation,
                place,
                config,
                polling_thread,
            )

    def ballots():
        for ballot in _parallel(n_jobs=n_jobs, verbose=verbose)(tasks()):
            if ballot.failure is not None:
                problems.failures.append((ballot.teacher, ballot.failure))
            problems.warnings.extend((ballot.teacher, text) for text in ballot.warnings)
            if on_teacher_done is not None:
                on_teacher_done()
            yield ballot.votes

    with one_thread():
        votes = Votes(
            ballots(),
            n_public=n_public,
            n_classes=n_classes,
            clusters=None if clusters is None else clusters.of_row,
        )
    problems.failures.sort()  # teachers finish in any order
    problems.warnings.sort()
    if not votes.any_cast:
        _raise_for_no_votes(len(shards), problems.failures)
    return votes, problems


def _parallel(**parameters):
    try:
        return Parallel(return_as="generator_unordered", **parameters)
    except ValueError:  # ray and multiprocessing hand out all results at the end
        return Parallel(**parameters)


def _raise_for_no_votes(n_teachers, failures):
    if not failures:
        raise ValueError(
            f"None of the {n_teachers} teachers cast a vote: no row of y has a label "
            "in classes, or every prediction was out of range. Compare classes with "
            "the labels in y."
        )
    raise ValueError(
        "All teachers with data failed. Try estimator.fit on a few hundred rows alone, "
        "with y encoded as class indices. The first one said (do not publish: this may "
        f"quote private rows): {failures[0][1]}"
    )


@dataclass
class _Ballot:
    """What comes back from a teacher: its votes, what went wrong, what it warned of."""

    teacher: int
    votes: np.ndarray | None = None
    failure: str | None = None
    warnings: tuple[str, ...] = ()


def _vote(
    teacher,
    estimator,
    X,
    codes,
    X_public,
    n_classes,
    seed,
    representation,
    place,
    config,
    polling_thread,
):
    """Fit one teacher on its shard, and forget it."""
    ballot = _Ballot(teacher)
    if codes.size == 0:
        return ballot
    if np.all(codes == codes[0]):  # many classifiers refuse a single class
        ballot.votes = np.full(
            X_public.shape[0], codes[0], dtype=_vote_dtype(n_classes)
        )
        return ballot

    def train():
        return _train(
            estimator,
            X,
            codes,
            X_public,
            n_classes,
            seed,
            representation,
            config,
            polling_thread,
        )

    try:
        ballot.votes, ballot.warnings = train() if place is None else place(train)
    except Exception as error:
        ballot.failure = f"{type(error).__name__}: {error}"
    return ballot


def _train(
    estimator,
    X,
    codes,
    X_public,
    n_classes,
    seed,
    representation,
    config,
    polling_thread,
):
    """Return votes and warnings of a teacher that is fitted and forgotten."""
    had_torch = "torch" in sys.modules
    with (
        one_thread(this_thread() != polling_thread),
        seeded_globals(seed),
        # Warnings may quote private rows, like errors. The filters belong to the whole
        # process, like the generators: scikit-learn's own Parallel, which would carry
        # its configuration along, sets them while other threads run.
        warnings.catch_warnings(record=True) as caught,
        config_context(**config),
        # What runs in parallel inside a teacher would compete with the other teachers,
        # and on a cluster wait for them.
        parallel_config(backend="sequential"),
    ):
        warnings.simplefilter("always")
        teacher = seeded_clone(estimator, seed)
        # Copies: a teacher that scales in place, say, would otherwise hand what it
        # learnt from its shard to the teachers after it, and fail on a memory map.
        own_X, own_codes, own_X_public = deepcopy((X, codes, X_public))
        if representation is not None:
            own_X = deepcopy(representation).transform(own_X)
        predicted = fit_class_indices(teacher, own_X, own_codes).predict(own_X_public)
        votes = _as_votes(predicted, X_public.shape[0], n_classes)
    if "torch" in sys.modules and not had_torch:
        # The teacher imported it, too late to be seeded and limited: once more.
        return _train(
            estimator,
            X,
            codes,
            X_public,
            n_classes,
            seed,
            representation,
            config,
            polling_thread,
        )
    return votes, tuple(f"{one.category.__name__}: {one.message}" for one in caught)


def _as_votes(predicted, n_public, n_classes):
    """Return class indices; anything else is an abstention."""
    predicted = np.asarray(predicted)
    if predicted.shape != (n_public,) or predicted.dtype.kind not in "biuf":
        raise ValueError(
            f"predict returned shape {predicted.shape} and dtype {predicted.dtype} for "
            f"{n_public} rows, not a class index each"
        )
    with np.errstate(invalid="ignore"):
        valid = (predicted >= 0) & (predicted < n_classes)
    return np.where(valid, predicted, ABSTAIN).astype(_vote_dtype(n_classes))


def _vote_dtype(n_classes):
    return np.min_scalar_type(-n_classes)  # signed, and holds -1 .. n_classes - 1

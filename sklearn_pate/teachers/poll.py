"""Fit, vote, forget: one teacher per task; only its votes come back."""

import os
import sys
from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from sklearn_pate.seeding import seeded_clone, seeded_torch
from sklearn_pate.votes import Votes

__all__ = ["poll_teachers"]

ABSTAIN = -1


def poll_teachers(
    estimator,
    X,
    codes,
    shards,
    X_public,
    *,
    n_classes,
    seeds,
    n_jobs=None,
    verbose=0,
    on_teacher_done=None,
):
    """Fit one clone of `estimator` on each shard and collect its votes on `X_public`.

    A fitted teacher lives in its task only. Memory does not grow with the number of
    teachers, but for one small integer per teacher and public row.

    Parameters
    ----------
    estimator : classifier
        The teacher; cloned and seeded for every shard.

    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
        Private rows. A large array reaches worker processes by memory map, in
        joblib's temporary folder (readable by this user only, removed afterwards); of
        frames, sparse matrices and small arrays each task is sent its shard only.

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

    failures : list of (int, str)
        Index and error of every teacher that failed. Sensitive.

    Raises
    ------
    ValueError
        If no teacher could vote.
    """
    n_teachers = len(shards)
    send_whole = _reaches_workers_by_memory_map(X)
    own_process = os.getpid()

    def tasks():
        for rows, seed in zip(shards, seeds, strict=True):
            rows = rows[codes[rows] >= 0]
            shard = (X, rows) if send_whole else (_safe_indexing(X, rows), None)
            yield delayed(_vote)(
                estimator, *shard, codes[rows], X_public, n_classes, seed, own_process
            )

    dtype = np.min_scalar_type(-n_classes)  # signed, and holds -1 .. n_classes - 1
    votes_by_teacher = np.full((n_teachers, _n_rows(X_public)), ABSTAIN, dtype=dtype)
    failures = []
    with _one_thread():
        ballots = Parallel(n_jobs=n_jobs, verbose=verbose, return_as="generator")(
            tasks()
        )
        for teacher, (ballot, error) in enumerate(ballots):
            if ballot is not None:
                votes_by_teacher[teacher] = ballot
            if error is not None:
                failures.append((teacher, error))
            if on_teacher_done is not None:
                on_teacher_done()
    if np.all(votes_by_teacher == ABSTAIN):
        _raise_for_no_votes(n_teachers, failures)
    return Votes(votes_by_teacher, n_classes), failures


def _raise_for_no_votes(n_teachers, failures):
    if not failures:
        raise ValueError(
            f"None of the {n_teachers} teachers cast a vote: no row of y has a label "
            "in classes, or every prediction was out of range. Compare classes with "
            "the labels in y."
        )
    raise ValueError(
        f"All teachers with data failed ({len(failures)} of {n_teachers}). Try "
        "estimator.fit on a few hundred rows alone, with y encoded as class indices. "
        f"The first one said: {failures[0][1]}"
    )


def _vote(estimator, X, rows, codes, X_public, n_classes, seed, parent_process):
    """Fit one teacher on its shard; return its votes, or None and what went wrong."""
    if codes.size == 0:
        return None, None
    if np.all(codes == codes[0]):  # many classifiers refuse a single class
        return np.full(_n_rows(X_public), codes[0]), None
    try:
        with _one_thread(os.getpid() != parent_process), seeded_torch(seed):
            teacher = seeded_clone(estimator, seed)
            teacher.fit(X if rows is None else X[rows], codes)
            # A copy: a teacher that scales in place, say, would otherwise hand what it
            # learnt from its shard to the teachers after it.
            ballot = np.asarray(teacher.predict(deepcopy(X_public)))
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    if ballot.shape != (_n_rows(X_public),):
        return None, f"ValueError: predict returned shape {ballot.shape}"
    with np.errstate(invalid="ignore"):
        valid = (ballot >= 0) & (ballot < n_classes)
    return np.where(valid, ballot, ABSTAIN), None


@contextmanager
def _one_thread(limit=True):
    """Give BLAS, OpenMP and torch one thread each.

    Small shards gain nothing from threads and lose much when several teachers compete
    for the cores; and the number of threads would change the rounding, so that votes
    would depend on `n_jobs`. Set once in this process, and in each worker process.
    """
    if not limit:
        yield
        return
    torch = sys.modules.get("torch")
    n_threads = torch.get_num_threads() if torch is not None else None
    try:
        if torch is not None:
            torch.set_num_threads(1)
        with threadpool_limits(1):
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(n_threads)


def _reaches_workers_by_memory_map(X):
    # joblib maps arrays from 1 MB on and pickles the others, whole, for each task.
    return isinstance(X, np.ndarray) and not X.dtype.hasobject and X.nbytes > 1e6


def _n_rows(X):
    return X.shape[0] if hasattr(X, "shape") or sp.issparse(X) else len(X)

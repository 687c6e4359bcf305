"""Fit, vote, forget: teachers are trained in tasks; only their votes come back."""

import sys
from contextlib import contextmanager
from itertools import chain
from traceback import walk_tb

from joblib import Parallel, delayed
from sklearn import get_config
from sklearn.utils import _safe_indexing

from sklearn_pate._teachers._cache import TeacherMemory
from sklearn_pate._teachers._task import Poll, Shard
from sklearn_pate._teachers._teacher_problems import TeacherProblems, raise_for_no_votes
from sklearn_pate._teachers._threads import one_thread, this_thread
from sklearn_pate._teachers._vote_form import VoteForm
from sklearn_pate._teachers._worker import vote_one_by_one
from sklearn_pate._teachers.batched._batched_voting import are_like, vote_at_once
from sklearn_pate._votes._votes import Votes

__all__ = ["collect", "poll_teachers"]


def poll_teachers(
    estimator, X, codes, shards, X_public, *, n_classes, clusters=None, **parameters
):
    """Fit one clone of `estimator` on each shard and collect its votes on `X_public`.

    A fitted teacher lives in its task only, and its votes are added to those of the
    others as soon as they are there: memory does not grow with the number of teachers.
    Nothing of what comes back may be published. A
    :class:`~sklearn_pate.mechanisms.Oracle` answers from the votes, at a cost.

    Parameters
    ----------
    estimator, X, codes, shards, X_public : object
        As for :func:`collect`.

    n_classes : int
        Number of classes; public.

    clusters : Clusters, default=None
        Public rows that are voted on together. Made of public rows alone.

    **parameters : object
        As for :func:`collect`: seeds, and how it is done.

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
        If no teacher could vote. The message may quote private rows.

    Notes
    -----
    Papernot et al. 2017, Section 2.1. Shards must be disjoint, and chosen without a
    look at X and y, as :func:`shard_rows` and :func:`shard_groups` do: then a neighbour
    changes the votes of one teacher, which is all that costs rest on.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate.mechanisms import GNMax, Oracle
    >>> from sklearn_pate._teachers import poll_teachers, shard_rows
    >>> X, y = make_blobs(2003, centers=3, cluster_std=0.1, random_state=0)
    >>> X, codes, X_public, truth = X[:2000], y[:2000], X[2000:], y[2000:]
    >>> votes, problems = poll_teachers(
    ...     GaussianNB(),
    ...     X,
    ...     codes,
    ...     shard_rows(2000, 100, seed=0),
    ...     X_public,
    ...     n_classes=3,
    ...     seeds=range(100),
    ... )
    >>> votes
    Votes(<private>, n_teachers=100, n_public=3)
    >>> oracle = Oracle(votes, GNMax(sigma=5), n_queries=3)
    >>> bool((oracle.ask([0, 1, 2]) == truth).all())
    True
    """

    def count(votes_by_teacher):
        return Votes(
            votes_by_teacher,
            n_public=X_public.shape[0],
            n_classes=n_classes,
            clusters=None if clusters is None else clusters.of_row,
        )

    form = VoteForm(n_classes)
    return collect(
        estimator, X, codes, shards, X_public, form=form, aggregate=count, **parameters
    )


def collect(
    estimator,
    X,
    codes,
    shards,
    X_public,
    *,
    form,
    aggregate,
    seeds,
    representation=None,
    memory=None,
    n_jobs=None,
    verbose=0,
    on_teacher_done=None,
):
    """Fit one clone of `estimator` on each shard, and collect what it is asked for.

    What comes back is sensitive: a mechanism has to stand between it and the public.

    Parameters
    ----------
    estimator : classifier
        The teacher; cloned and seeded for every shard. It must keep nothing outside
        itself, from which another teacher could learn.

    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, n_features)
        Private rows. Each task is sent its shard only.

    codes : ndarray of int of shape (n_rows,)
        Class index of each row; -1 drops the row inside its shard.

    shards : list of n_teachers ndarrays of int
        Row indices for each teacher; may be empty. Disjoint, or one row is behind the
        votes of several teachers, which no cost covers.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    form : VoteForm or SoftVoteForm
        What each teacher is asked for.

    aggregate : callable
        Takes an iterator over what teachers say, in any order, None for one that failed
        or has no rows, and returns it sealed, with an attribute `any_cast`.

    seeds : sequence of n_teachers ints
        One seed a teacher. They may be known to anyone.

    representation : transformer, default=None
        Fitted on public rows. Each task transforms its own shard; `X_public` is
        transformed already.

    memory : str, default=None
        A folder that keeps what finished teachers returned. Sensitive.

    n_jobs : int, default=None
        Number of tasks at once, as in joblib.

    verbose : int, default=0
        Verbosity of joblib. It tells when each teacher was done, which is sensitive.

    on_teacher_done : callable, default=None
        Called without arguments in this process, once for each teacher. When it is
        called is sensitive, too.

    Returns
    -------
    aggregated : object
        What `aggregate` returned.

    problems : TeacherProblems
        Errors and warnings of teachers. Sensitive.

    Raises
    ------
    ValueError
        If no teacher said anything, or the estimator cannot be told from others for
        `memory`. The message may quote private rows.

    Notes
    -----
    Teachers on disjoint shards: Papernot et al. 2017, Section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn_pate._votes._soft_votes import SoftVotes, SoftVoteLayout
    >>> from sklearn_pate._teachers import SoftVoteForm, collect, shard_rows
    >>> X, codes = make_blobs(240, centers=3, random_state=0)
    >>> layout = SoftVoteLayout(n_groups=4, n_classes=3)
    >>> groups = np.arange(40) % 4  # of 40 public rows
    >>> knowledge, problems = collect(
    ...     GaussianNB(),
    ...     X[:200],
    ...     codes[:200],
    ...     shard_rows(200, 10, seed=0),
    ...     X[200:],
    ...     form=SoftVoteForm(layout, groups, 1.0, 1.0, False),
    ...     aggregate=lambda vectors: SoftVotes(vectors, layout=layout),
    ...     seeds=range(10),
    ... )
    >>> knowledge
    SoftVotes(<private>, n_teachers=10, n_queries=1)
    """
    problems = TeacherProblems()
    if memory is not None:
        memory = TeacherMemory(memory, estimator, X_public, form, representation)
    poll = Poll(
        estimator,
        form,
        representation,
        get_config(),  # now: joblib asks for tasks from threads of its own
        this_thread(),
    )

    def tasks(vote, blocks):
        for block in blocks:
            block_seeds = [seeds[teacher] for teacher in block]
            assigned = []
            for index, teacher in enumerate(block):
                rows, seed = shards[teacher], seeds[teacher]
                rows = rows[codes[rows] >= 0]
                shard = _safe_indexing(X, rows), codes[rows]
                company = (index, block_seeds) if vote is vote_at_once else ()
                place = memory and memory.of_teacher(*shard, seed, *company)
                assigned.append(Shard(teacher, *shard, seed, place))
            yield delayed(vote)(poll, X_public, assigned)

    def contributions():
        vote, blocks = _plan(poll, X, X_public, len(shards), verbose)
        parallel = _parallel(n_jobs=n_jobs, verbose=verbose)
        for result in chain.from_iterable(parallel(tasks(vote, blocks))):
            if result.failure is not None:
                problems.failures.append((result.teacher, result.failure))
            problems.warnings.extend((result.teacher, text) for text in result.warnings)
            if result.n_dropped:
                problems.dropped.append((result.teacher, result.n_dropped))
            if on_teacher_done is not None:
                on_teacher_done()
            yield result.contribution

    with one_thread(), _lost_errors_found():
        aggregated = aggregate(contributions())
    problems.failures.sort()  # teachers finish in any order
    problems.warnings.sort()
    problems.dropped.sort()
    if not aggregated.any_cast:
        raise_for_no_votes(len(shards), problems)
    return aggregated, problems


def _plan(poll, X, X_public, n_teachers, verbose):
    """Decide which teachers are trained at once, from public facts only."""
    vote, blocks = vote_one_by_one, [[teacher] for teacher in range(n_teachers)]
    skorch = sys.modules.get("skorch")
    is_network = skorch is not None and isinstance(poll.estimator, skorch.NeuralNet)
    if not is_network or not isinstance(poll.form, VoteForm):
        return vote, blocks
    # Not earlier, as it imports torch.
    from sklearn_pate._teachers.batched._eligibility import OneByOne, block_teachers

    try:
        # What the representation makes of a shard is seen in its task only.
        private = X if poll.representation is None else X_public
        if not are_like(private, X_public):
            raise OneByOne("rows are not in arrays of float32")
        blocks = block_teachers(
            poll.estimator,
            X_public,
            n_teachers=n_teachers,
            n_classes=poll.form.n_classes,
        )
        vote, how = vote_at_once, f"up to {len(blocks[0])} at once"
    except OneByOne as reason:
        how = f"one by one: {reason}"
    if verbose:
        print(f"[PATE] Training {n_teachers} teachers {how}.", file=sys.stderr)
    return vote, blocks


def _parallel(**parameters):
    try:
        return Parallel(return_as="generator_unordered", **parameters)
    except ValueError:  # ray and multiprocessing hand out all results at the end
        return Parallel(**parameters)


@contextmanager
def _lost_errors_found():
    """Raise the error of a task that a joblib backend returned as its result.

    joblib then fails on that result; joblibspark 0.6 makes it do so.
    """
    try:
        yield
    except TypeError as error:
        held = (
            value
            for frame, _ in walk_tb(error.__traceback__)
            for value in frame.f_locals.values()
            if type(value).__name__ == "_ExceptionWithTraceback"  # private to joblib
        )
        lost = next(held, None)
        if lost is None:
            raise
        raise RuntimeError(
            "joblib's backend could not run the teachers; give its workers the Python "
            "and the packages of this process (for Spark, by PYSPARK_PYTHON). It said "
            "(do not publish: this may quote private rows): "
            f"{type(lost.exc).__name__}: {lost.exc}"
        ) from lost.exc

"""What happens in a task: teachers are fitted, vote, and are forgotten."""

import sys
import warnings
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import parallel_config
from sklearn import config_context
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._callbacks import drop_callbacks
from sklearn_pate._estimators._class_codes import fit_class_indices, read_codes
from sklearn_pate._estimators._hooks import autologging_off, muted
from sklearn_pate._estimators._seeding import seeded_clone, seeded_globals
from sklearn_pate._inputs._odd_rows import (
    HUGE,
    INFINITE,
    MISSING,
    odd_rows,
    takes_missing,
)
from sklearn_pate._teachers._threads import one_thread, this_thread

__all__ = [
    "ASKED",
    "Ballot",
    "Poll",
    "Shard",
    "VoteForm",
    "are_like",
    "vote_at_once",
    "vote_one_by_one",
]

#: What the failure begins with of a teacher that had been trained.
ASKED = "on X_public, "


@dataclass(frozen=True)
class VoteForm:
    """What a teacher is asked for: a class index for each public row.

    Another form is another class with `n_classes`, `read` and `constant`.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    """

    n_classes: int

    def read(self, teacher, X_public):
        """Ask a fitted teacher.

        Parameters
        ----------
        teacher : classifier
            Fitted on class indices.

        X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
            Public rows, for this teacher to do with as it likes.

        Returns
        -------
        votes : ndarray of int of shape (n_public,)
            Class indices; anything else that it says is an abstention.
        """
        n_public = X_public.shape[0]
        return self.of_predictions(teacher.predict(X_public), n_public)

    def of_predictions(self, predicted, n_public):
        """Make votes of predictions.

        Parameters
        ----------
        predicted : array-like of shape (n_public,) or (n_public, 1)
            What a teacher predicted.

        n_public : int
            Number of public rows.

        Returns
        -------
        votes : ndarray of int of shape (n_public,)
            Class indices; anything else is an abstention.

        Raises
        ------
        ValueError
            If there is not one number a row.
        """
        codes = read_codes(predicted, n_public, self.n_classes)
        return codes.astype(self._dtype)

    def constant(self, code, n_public):
        """Return what a teacher says that knows one class only.

        Parameters
        ----------
        code : int
            Index of the class.

        n_public : int
            Number of public rows.

        Returns
        -------
        votes : ndarray of int of shape (n_public,)
            That class.
        """
        return np.full(n_public, code, dtype=self._dtype)

    @property
    def _dtype(self):
        # Signed, and holds -1 .. n_classes - 1.
        return np.min_scalar_type(-self.n_classes)


@dataclass(frozen=True)
class Poll:
    """What all tasks share, beside the public rows."""

    estimator: Any
    form: Any
    representation: Any
    config: dict
    polling_thread: tuple[int, int]

    @property
    def sees_rows_first(self):
        """Estimator that private rows are given to first.

        Returns
        -------
        estimator : estimator
            The representation, or the teacher where there is none.
        """
        return self.estimator if self.representation is None else self.representation

    @contextmanager
    def alone(self, seed):
        """Seed and limit what runs within, catch its warnings, and let nothing out.

        Parameters
        ----------
        seed : int
            Seed of the global generators.

        Yields
        ------
        caught : list of warnings.WarningMessage
            Grows as warnings come.
        """
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
    X: Any
    codes: np.ndarray
    seed: int
    place: Any

    def without(self, is_odd):
        """Drop rows.

        Parameters
        ----------
        is_odd : ndarray of bool of shape (n_rows,)
            Which.

        Returns
        -------
        shard : Shard
            With the others; the same if there is none to drop.
        """
        if not np.any(is_odd):
            return self
        rows = np.flatnonzero(~is_odd)
        return replace(self, X=_safe_indexing(self.X, rows), codes=self.codes[rows])


@dataclass
class Ballot:
    """What comes back from a teacher: what it said, what went wrong, its warnings."""

    teacher: int
    said: Any = None
    failure: str | None = None
    warnings: tuple[str, ...] = ()
    n_dropped: int = 0


class AskedError(Exception):
    """Says what a trained teacher failed with when it was asked."""


class BlockError(ValueError):
    """Ends the poll: if a block abstained, one shard would change many votes."""


def vote_one_by_one(poll, X_public, shards):
    """Train one teacher after the other.

    Parameters
    ----------
    poll : Poll
        What all teachers share.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    shards : list of Shard
        One a teacher.

    Returns
    -------
    ballots : list of Ballot
        One a teacher.
    """
    usable = [_usable(poll.sees_rows_first, shard) for shard in shards]
    ballots = [
        _foregone(poll, X_public, shard)
        or _ballot(shard, partial(_train_on_most, poll, X_public, shard))
        for shard in usable
    ]
    return _with_dropped(ballots, shards, usable)


def vote_at_once(poll, X_public, shards):
    """Train a block of teachers as one batched network.

    Parameters
    ----------
    poll : Poll
        What all teachers share.

    X_public : ndarray of float32 of shape (n_public, *row_shape)
        Public rows.

    shards : list of Shard
        One a teacher.

    Returns
    -------
    ballots : list of Ballot
        One a teacher.

    Raises
    ------
    BlockError
        If the block fails as a whole.
    """
    usable = [_usable(poll.sees_rows_first, shard) for shard in shards]
    foregone = [_foregone(poll, X_public, shard) for shard in usable]
    train = cache(
        partial(
            _train_at_once,
            poll,
            X_public,
            [
                None if ballot else shard
                for shard, ballot in zip(usable, foregone, strict=True)
            ],
            [shard.seed for shard in shards],
        )
    )

    def take(index):
        outcome = train()[index]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    ballots = [
        ballot or _ballot(shard, partial(take, index))
        for index, (shard, ballot) in enumerate(zip(usable, foregone, strict=True))
    ]
    return _with_dropped(ballots, shards, usable)


def are_like(rows, X_public):
    """Tell whether rows and public rows are arrays of float32 with rows of one shape.

    Parameters
    ----------
    rows : array-like of shape (n_rows, ...)
        Rows.

    X_public : array-like of shape (n_public, ...)
        Public rows.

    Returns
    -------
    like : bool
        False if either is anything else.
    """
    return all(
        isinstance(one, np.ndarray)
        and one.dtype == np.float32
        and one.shape[1:] == X_public.shape[1:]
        for one in (rows, X_public)
    )


def _usable(estimator, shard):
    """Drop rows of an array with values that an estimator is known to refuse."""
    X = shard.X
    is_array = isinstance(X, np.ndarray) or sp.issparse(X)
    if not is_array or takes_missing(estimator) is not False:
        return shard
    return shard.without(odd_rows(X) & (MISSING | INFINITE) > 0)


def _with_dropped(ballots, shards, usable):
    """Write down how many rows were dropped before a teacher saw them."""
    for ballot, shard, rest in zip(ballots, shards, usable, strict=True):
        ballot.n_dropped += shard.codes.size - rest.codes.size
    return ballots


def _foregone(poll, X_public, shard):
    """Return the ballot of a teacher that has nothing to learn, else None."""
    codes = shard.codes
    if codes.size == 0:
        return Ballot(shard.teacher)
    if np.all(codes == codes[0]):  # many classifiers refuse a single class
        return Ballot(
            shard.teacher, poll.form.constant(int(codes[0]), X_public.shape[0])
        )
    return None


def _ballot(shard, train):
    """Train a teacher, unless that was done before, and write its ballot."""
    ballot = Ballot(shard.teacher)
    try:
        ballot.said, ballot.warnings, ballot.n_dropped = (
            train() if shard.place is None else shard.place(train)
        )
    except BlockError:
        raise
    except AskedError as error:
        ballot.failure = f"{ASKED}{error}"
    except Exception as error:
        ballot.failure = f"{type(error).__name__}: {error}"
    return ballot


def _train_on_most(poll, X_public, shard):
    """Train; if that fails or warns, without rows whose values may be the reason."""
    outcome = error = None
    n_rows = shard.codes.size
    for refused in (0, INFINITE | HUGE, INFINITE | HUGE | MISSING):
        rest = shard
        if refused:
            rest = shard.without(odd_rows(shard.X) & refused > 0)
            # Those that miss values are dropped only where training fails.
            if rest.codes.size == n_rows or (outcome and refused & MISSING):
                continue
            if outcome and rest.codes.size == 0:
                break
        n_rows = rest.codes.size
        try:
            ballot = _foregone(poll, X_public, rest)
            said, texts, n_dropped = (
                (ballot.said, (), 0) if ballot else _train(poll, X_public, rest)
            )
        except Exception as failure:
            error = error or failure
            continue
        # Rows are not dropped for a warning that comes without them, too.
        if outcome is None or not texts:
            outcome = said, texts, n_dropped + shard.codes.size - n_rows
        if refused or not texts:
            break
    if outcome is None:
        raise error
    return outcome


def _train(poll, X_public, shard):
    """Return what a teacher says, its warnings, and how many rows it did not take."""
    had_torch = "torch" in sys.modules
    with poll.alone(shard.seed) as caught:
        teacher = drop_callbacks(seeded_clone(poll.estimator, shard.seed))
        # Copies: a teacher that scales in place, say, would otherwise hand what it
        # learnt from its shard to the teachers after it, and fail on a memory map.
        own_X, own_codes, own_X_public = deepcopy((shard.X, shard.codes, X_public))
        foregone = None
        if poll.representation is not None:
            own_X = deepcopy(poll.representation).transform(own_X)
            own = _usable(poll.estimator, replace(shard, X=own_X, codes=own_codes))
            if own.codes.size < own_codes.size:
                foregone = _foregone(poll, X_public, own)
            own_X, own_codes = own.X, own.codes
        if foregone is None:
            teacher = fit_class_indices(teacher, own_X, own_codes)
            try:
                said = poll.form.read(teacher, own_X_public)
            except Exception as error:
                raise AskedError(f"{type(error).__name__}: {error}") from error
        else:
            said = foregone.said
    if "torch" in sys.modules and not had_torch:
        # The teacher imported it, too late to be seeded and limited: once more.
        return _train(poll, X_public, shard)
    return said, _texts(caught), shard.codes.size - own_codes.size


def _train_at_once(poll, X_public, shards, seeds):
    """Return the votes, warnings and dropped rows, or the error, of each teacher."""
    from sklearn_pate._teachers.batched._batched_training import fit_at_once

    rows, errors, texts = [None] * len(shards), {}, {}
    for index, shard in enumerate(shards):
        if shard is not None:
            with poll.alone(shard.seed) as caught:
                try:
                    rows[index] = _represented(poll, X_public, shard)
                except Exception as error:  # of this shard alone
                    errors[index] = error
            texts[index] = _texts(caught)
    try:
        with poll.alone(seeds[0]) as caught:
            teachers = fit_at_once(
                poll.estimator, rows, seeds, row_shape=X_public.shape[1:]
            )
            predicted = teachers.predict(X_public)
    except Exception as error:
        raise BlockError(
            "Training several teachers at once failed, and nothing was answered. Try "
            "estimator.fit on a few hundred rows alone. (A subclass of "
            "NeuralNetClassifier is trained one by one, where a teacher that fails "
            "abstains.) The error was (do not publish: this may quote private rows): "
            f"{type(error).__name__}: {error}"
        ) from error
    n_rows = {
        index: 0 if rows[index] is None else len(rows[index][1]) for index in texts
    }
    return errors | {
        index: (
            poll.form.of_predictions(predicted[index], X_public.shape[0])
            if n_rows[index]
            else None,
            texts[index] + _texts(caught),
            shards[index].codes.size - n_rows[index],
        )
        for index in texts.keys() - errors.keys()
    }


def _represented(poll, X_public, shard):
    """Return rows and class indices as networks take them; None if no row is left."""
    X = shard.X
    if poll.representation is not None:
        X = deepcopy(poll.representation).transform(deepcopy(X))
        if not are_like(X, X_public):
            raise ValueError(
                "representation made rows of another kind than those of X_public"
            )
        shard = _usable(poll.estimator, replace(shard, X=X))
    return (shard.X, shard.codes.astype(np.int64)) if shard.codes.size else None


def _texts(caught):
    return tuple(f"{one.category.__name__}: {one.message}" for one in caught)

"""What happens in a task: teachers are fitted, vote, and are forgotten."""

import sys
import warnings
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn import config_context

from sklearn_pate._hooks import autologging_off, muted
from sklearn_pate.contiguous import fit_class_indices, read_codes
from sklearn_pate.progress import drop_callbacks
from sklearn_pate.seeding import seeded_clone, seeded_globals
from sklearn_pate.teachers.threads import one_thread, this_thread

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


@dataclass
class Ballot:
    """What comes back from a teacher: what it said, what went wrong, its warnings."""

    teacher: int
    said: Any = None
    failure: str | None = None
    warnings: tuple[str, ...] = ()


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
    return [
        _foregone(poll, X_public, shard)
        or _ballot(shard, partial(_train, poll, X_public, shard))
        for shard in shards
    ]


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
    foregone = [_foregone(poll, X_public, shard) for shard in shards]
    train = cache(
        partial(
            _train_at_once,
            poll,
            X_public,
            [
                None if ballot else shard
                for shard, ballot in zip(shards, foregone, strict=True)
            ],
            [shard.seed for shard in shards],
        )
    )

    def take(index):
        outcome = train()[index]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return [
        ballot or _ballot(shard, partial(take, index))
        for index, (shard, ballot) in enumerate(zip(shards, foregone, strict=True))
    ]


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
        ballot.said, ballot.warnings = (
            train() if shard.place is None else shard.place(train)
        )
    except BlockError:
        raise
    except AskedError as error:
        ballot.failure = f"{ASKED}{error}"
    except Exception as error:
        ballot.failure = f"{type(error).__name__}: {error}"
    return ballot


def _train(poll, X_public, shard):
    """Return what a teacher says, that is fitted and forgotten, and its warnings."""
    had_torch = "torch" in sys.modules
    with poll.alone(shard.seed) as caught:
        teacher = drop_callbacks(seeded_clone(poll.estimator, shard.seed))
        # Copies: a teacher that scales in place, say, would otherwise hand what it
        # learnt from its shard to the teachers after it, and fail on a memory map.
        own_X, own_codes, own_X_public = deepcopy((shard.X, shard.codes, X_public))
        if poll.representation is not None:
            own_X = deepcopy(poll.representation).transform(own_X)
        teacher = fit_class_indices(teacher, own_X, own_codes)
        try:
            said = poll.form.read(teacher, own_X_public)
        except Exception as error:
            raise AskedError(f"{type(error).__name__}: {error}") from error
    if "torch" in sys.modules and not had_torch:
        # The teacher imported it, too late to be seeded and limited: once more.
        return _train(poll, X_public, shard)
    return said, _texts(caught)


def _train_at_once(poll, X_public, shards, seeds):
    """Return votes and warnings, or the error, of each teacher that has a shard."""
    from sklearn_pate.teachers.batched import fit_at_once

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
    return errors | {
        index: (
            poll.form.of_predictions(predicted[index], X_public.shape[0]),
            texts[index] + _texts(caught),
        )
        for index in texts.keys() - errors.keys()
    }


def _represented(poll, X_public, shard):
    """Return rows and class indices as networks take them."""
    X = shard.X
    if poll.representation is not None:
        X = deepcopy(poll.representation).transform(deepcopy(X))
        if not are_like(X, X_public):
            raise ValueError(
                "representation made rows of another kind than those of X_public"
            )
    return X, shard.codes.astype(np.int64)


def _texts(caught):
    return tuple(f"{one.category.__name__}: {one.message}" for one in caught)

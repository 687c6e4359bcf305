"""Task that trains a block of networks as one and returns their results."""

from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._teachers._task import (
    BlockError,
    Outcome,
    Poll,
    Shard,
    TeacherResult,
    count_dropped,
    result_of,
    result_without_training,
    usable_rows,
    warning_texts,
)
from sklearn_pate._teachers._vote_form import VoteForm

if TYPE_CHECKING:  # it imports torch
    from sklearn_pate._teachers.batched._batched_training import Rows

__all__ = ["are_like", "vote_at_once"]


def vote_at_once(
    poll: Poll, X_public: NDArray[np.float32], shards: list[Shard]
) -> list[TeacherResult]:
    """Train a block of teachers as one batched network, or raise BlockError."""
    usable = [usable_rows(poll.first_step, shard) for shard in shards]
    untrained = [result_without_training(poll, X_public, shard) for shard in usable]
    train = cache(
        partial(
            _train_at_once,
            poll,
            X_public,
            {
                index: shard
                for index, shard in enumerate(usable)
                if untrained[index] is None
            },
            [shard.seed for shard in shards],
        )
    )

    def take(index: int) -> Outcome:
        outcome = train()[index]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    results = [
        result or result_of(shard, partial(take, index))
        for index, (shard, result) in enumerate(zip(usable, untrained, strict=True))
    ]
    return count_dropped(results, shards, usable)


def are_like(rows: Any, X_public: Any) -> bool:
    """Check for two arrays of float32 with rows of one shape."""
    return all(
        isinstance(one, np.ndarray)
        and one.dtype == np.float32
        and one.shape[1:] == X_public.shape[1:]
        for one in (rows, X_public)
    )


def _train_at_once(
    poll: Poll,
    X_public: NDArray[np.float32],
    shards: dict[int, Shard],
    seeds: list[int],
) -> dict[int, Exception | Outcome]:
    """Return the votes, warnings and dropped rows, or the error, of each teacher."""
    from sklearn_pate._teachers.batched._batched_training import fit_at_once

    rows: list[Rows | None] = [None] * len(seeds)
    errors, texts = {}, {}
    for index, shard in shards.items():
        with poll.isolated(shard.seed) as caught:
            try:
                rows[index] = _represented(poll, X_public, shard)
            except Exception as error:  # of this shard alone
                errors[index] = error
        texts[index] = warning_texts(caught)
    try:
        with poll.isolated(seeds[0]) as caught:
            teachers = fit_at_once(
                poll.estimator, rows, seeds, row_shape=X_public.shape[1:]
            )
            predicted = teachers.predict(X_public)
    except Exception as error:
        raise BlockError(
            "Training several teachers at once failed, and nothing was answered. Try "
            "estimator.fit on a few hundred rows alone. (Subclasses of "
            "NeuralNetClassifier are trained one by one, and a teacher that fails then "
            "abstains.) The error was (do not publish: it may quote private rows): "
            f"{type(error).__name__}: {error}"
        ) from error
    n_rows = [0 if own is None else len(own[1]) for own in rows]
    form = cast(VoteForm, poll.form)  # teachers with other forms train one by one
    return errors | {
        index: (
            form.of_predictions(predicted[index], X_public.shape[0])
            if n_rows[index]
            else None,
            texts[index] + warning_texts(caught),
            shards[index].codes.size - n_rows[index],
        )
        for index in texts.keys() - errors.keys()
    }


def _represented(
    poll: Poll, X_public: NDArray[np.float32], shard: Shard
) -> "Rows | None":
    """Return rows and class indices as networks accept them; None if no row is left."""
    X = shard.X
    if poll.representation is not None:
        X = deepcopy(poll.representation).transform(deepcopy(X))
        if not are_like(X, X_public):
            raise ValueError(
                "representation returned rows of another type than those of X_public"
            )
        shard = usable_rows(poll.estimator, replace(shard, X=X))
    if not shard.codes.size:
        return None
    return cast(NDArray[np.float32], shard.X), shard.codes.astype(np.int64)

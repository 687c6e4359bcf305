"""Task that trains teachers, one after the other, and returns their results."""

import sys
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator, clone

from sklearn_pate._estimators._class_codes import fit_class_indices
from sklearn_pate._estimators._hooks import muted
from sklearn_pate._estimators._seeding import kept_globals, with_seeds
from sklearn_pate._inputs._odd_rows import HUGE, INFINITE, MISSING, odd_rows
from sklearn_pate._teachers._task import (
    ON_PUBLIC_ROWS,
    Outcome,
    Poll,
    PublicRowsError,
    Shard,
    TeacherResult,
    result_without_training,
    usable_rows,
    warning_texts,
)
from sklearn_pate._teachers._vote_form import Contribution

__all__ = ["train_teachers"]


def train_teachers(
    poll: Poll, X_public: Any, shards: Iterable[Shard]
) -> list[TeacherResult]:
    """Train a teacher on each shard, unless its result is cached."""
    # Muted here, too, as the first of nested blocks takes longest.
    with kept_globals() as seed_globals, muted():
        return [_result(poll, X_public, shard, seed_globals) for shard in shards]


def _result(
    poll: Poll, X_public: Any, shard: Shard, seed_globals: Callable[[int], None]
) -> TeacherResult:
    """Train one teacher, or find out that there is nothing to train."""
    usable = usable_rows(poll.first_step, shard)
    result = result_without_training(poll, X_public, usable)
    if result is None:
        result = TeacherResult(shard.teacher)
        train = partial(_train_on_most, poll, X_public, usable, seed_globals)
        try:
            result.contribution, result.warnings, result.n_dropped = (
                train() if shard.slot is None else shard.slot(train)
            )
        except PublicRowsError as error:
            result.failure = f"{ON_PUBLIC_ROWS}{error}"
        except Exception as error:
            result.failure = f"{type(error).__name__}: {error}"
    result.n_dropped += shard.codes.size - usable.codes.size
    return result


def _train_on_most(
    poll: Poll, X_public: Any, shard: Shard, seed_globals: Callable[[int], None]
) -> Outcome:
    """Train; if that fails or warns, drop rows whose values may be the reason."""
    outcome: Outcome | None = None
    failures: list[Exception] = []
    n_rows = shard.codes.size
    for refused in (0, INFINITE | HUGE, INFINITE | HUGE | MISSING):
        rest = shard
        if refused:
            rest = shard.without(odd_rows(shard.X) & refused > 0)
            # Rows with missing values are dropped only if training fails.
            if rest.codes.size == n_rows or (outcome and refused & MISSING):
                continue
            if outcome and rest.codes.size == 0:
                break
        n_rows = rest.codes.size
        try:
            result = result_without_training(poll, X_public, rest)
            contribution, texts, n_dropped = (
                (result.contribution, (), 0)
                if result
                else _train(poll, X_public, rest, seed_globals)
            )
        except Exception as failure:
            failures.append(failure)
            continue
        # Rows are not dropped for a warning that persists without them.
        if outcome is None or not texts:
            outcome = contribution, texts, n_dropped + shard.codes.size - n_rows
        if refused or not texts:
            break
    if outcome is None:
        raise failures[0]
    return outcome


def _own(representation: BaseEstimator) -> Any:
    """Copy a representation whose `transform` may keep something of a row."""
    # Not inherited: a subclass may compute anything.
    keeps_no_row = "_keeps_no_row" in vars(type(representation))
    return representation if keeps_no_row else deepcopy(representation)


def _train(
    poll: Poll, X_public: Any, shard: Shard, seed_globals: Callable[[int], None]
) -> Outcome:
    """Return the contribution of a teacher, its warnings, and its dropped rows."""
    had_torch = "torch" in sys.modules
    with poll.isolated() as caught:
        seed_globals(shard.seed)
        teacher = with_seeds(clone(poll.estimator), poll.seed_names, shard.seed)
        # Copies: a teacher that modifies its rows in place would otherwise pass
        # information from its shard on to later teachers, and fail on a memory map.
        own_X, own_codes, own_X_public = deepcopy((shard.X, shard.codes, X_public))
        contribution: Contribution | None
        untrained = None
        if poll.representation is not None:
            own_X = _own(poll.representation).transform(own_X)
            own = usable_rows(poll.estimator, replace(shard, X=own_X, codes=own_codes))
            if own.codes.size < own_codes.size:
                untrained = result_without_training(poll, X_public, own)
            own_X, own_codes = own.X, own.codes
        if untrained is None:
            teacher = fit_class_indices(teacher, own_X, own_codes)
            try:
                contribution = poll.form.read(teacher, own_X_public)
            except Exception as error:
                raise PublicRowsError(f"{type(error).__name__}: {error}") from error
        else:
            contribution = untrained.contribution
    if "torch" in sys.modules and not had_torch:
        # The teacher imported torch, too late to seed and limit it: train again.
        return _train(poll, X_public, shard, seed_globals)
    return contribution, warning_texts(caught), shard.codes.size - own_codes.size

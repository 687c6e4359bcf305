"""Trials of a private search: fits, noisy scores, and the selection of one fit."""

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._delegation import last_step
from sklearn_pate._estimators._hooks import autologging_off
from sklearn_pate._estimators._progress import phase, steps_of
from sklearn_pate._estimators._seeding import MAX_SEED, seeded_clone
from sklearn_pate._inputs._labels import class_indices
from sklearn_pate.accounting.composition._private_selection import (
    TruncatedNegativeBinomial,
    TruncatedPoisson,
)
from sklearn_pate.mechanisms._noisy_selection import DisjointChoice, NoisyScores
from sklearn_pate.mechanisms.noise._source import NoiseSource
from sklearn_pate.model_selection._candidates import Candidate
from sklearn_pate.model_selection._split import PrivateRows, RowSplit

__all__ = [
    "SelectedTrial",
    "TrialSetup",
    "best_of_trials",
    "best_on_disjoint_rows",
    "draw_number_of_trials",
]

# Digits of the probabilities from which the number of trials is drawn.
_DIGITS = 60
# Lower than any score.
_FAILED = -(2**62)


class TrialSetup(NamedTuple):
    """Data, noise on scores, and the largest planned curve of each candidate."""

    rows: PrivateRows
    split: RowSplit
    classes: NDArray[Any]
    scoring: NoisyScores | DisjointChoice
    ceilings: list[NDArray[np.float64]]

    def fit_and_score(self, estimator: Any, index: int) -> tuple[Any, int]:
        """Fit the seeded clone of candidate `index`, and score it without noise.

        Returns None and 0 if the fit fails: a failure is an outcome of a trial.
        """
        parts = self.split.training
        training = self.rows.take(parts[index % len(parts)])
        try:
            fitted = estimator.fit(training.X, training.y, **training.params)
        except Exception:  # its message depends on private rows
            return None, 0
        curve = last_step(fitted).privacy_spent_.curve
        if not np.all(curve.values <= self.ceilings[index] * (1 + 1e-9)):
            raise RuntimeError(
                f"{type(last_step(fitted)).__name__} cost more than its plan_privacy "
                "stated, perhaps because its cost depends on its random_state; set "
                "parameters that it reads from the data, such as n_queries. Nothing "
                "was released."
            )
        if not len(self.split.validation):
            return fitted, 0
        validation = self.rows.take(self.split.validation)
        codes = _predicted_codes(fitted, validation.X, self.classes)
        is_right = (codes == validation.codes) & (codes >= 0)
        return fitted, self.split.score(is_right)


class SelectedTrial(NamedTuple):
    """The selected candidate and its fitted estimator, None if the fit failed."""

    candidate: Candidate
    fitted: BaseEstimator | None


def draw_number_of_trials(
    law: TruncatedNegativeBinomial | TruncatedPoisson, noise: NoiseSource
) -> int:
    """Draw the number of trials, at least 1. Secret.

    Inversion of 128 random bits: the probabilities are right to 2^-128.
    """
    high, low = (int(word) for word in noise.words(2))
    with localcontext(prec=_DIGITS):
        left = Decimal(high << 64 | low) / 2**128
        n_trials = 0
        for probability in law.probabilities():
            left -= probability
            n_trials += 1
            if left < 0:
                break
    return n_trials


@phase("fitting a secret number of candidates")
def best_of_trials(
    candidates: Sequence[Candidate],
    setup: TrialSetup,
    law: TruncatedNegativeBinomial | TruncatedPoisson,
    noise: NoiseSource,
) -> SelectedTrial:
    """Fit random candidates a random number of times, and select the best noisy score.

    Trials are independent and identically distributed, as their cost requires: each
    draws its candidate uniformly and its seed from secret bits. Public seeds would make
    them differ. Ties are broken uniformly.
    """
    assert isinstance(setup.scoring, NoisyScores)
    best: tuple[tuple[int, int], SelectedTrial] | None = None
    with _no_output():
        for _ in range(draw_number_of_trials(law, noise)):
            index = int(noise.index(len(candidates), 1)[0])
            fitted, score = setup.fit_and_score(
                seeded_clone(candidates[index].estimator, _seed(noise)), index
            )
            if fitted is None:
                score = _FAILED
            else:
                score += setup.scoring.draw(setup.split.sensitivity, noise)
            rank = score, int(noise.words(1)[0])
            if best is None or rank > best[0]:
                best = rank, SelectedTrial(candidates[index], fitted)
    assert best is not None  # there is at least one trial
    return best[1]


def best_on_disjoint_rows(
    candidates: Sequence[Candidate],
    setup: TrialSetup,
    noise: NoiseSource,
    noise_seed: int | None,
) -> SelectedTrial:
    """Fit each candidate on its own part of the rows, and select one by its score.

    Seeds come from `noise`; without a `noise_seed`, the noise of the choice comes from
    the operating system.
    """
    assert isinstance(setup.scoring, DisjointChoice)
    with _no_output():
        trials = [
            setup.fit_and_score(seeded_clone(candidate.estimator, _seed(noise)), index)
            for index, candidate in steps_of(
                "fitting candidates", list(enumerate(candidates))
            )
        ]
        scores = [score for _, score in trials]
        chosen = setup.scoring.choose(scores, setup.split.sensitivity, noise_seed)
    return SelectedTrial(candidates[chosen], trials[chosen][0])


def _seed(noise: NoiseSource) -> int:
    """Draw a secret seed."""
    return int(noise.index(MAX_SEED, 1)[0])


def _predicted_codes(fitted: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Predict one row at a time, so that no row changes the prediction of another.

    In a batch, the last bits of a matrix product depend on the number of rows and on
    the position of a row; and a row that cannot be predicted makes the others fail.
    """
    codes = (_predicted_code(fitted, X, row, classes) for row in range(X.shape[0]))
    return np.fromiter(codes, dtype=np.intp, count=X.shape[0])


def _predicted_code(fitted: Any, X: Any, row: int, classes: NDArray[Any]) -> int:
    """Predict the class index of a row; -1 if its prediction fails."""
    try:
        (code,) = class_indices(fitted.predict(_safe_indexing(X, [row])), classes)
    except Exception:
        return -1
    return code


@contextlib.contextmanager
def _no_output() -> Iterator[None]:
    """Suppress output, logs and warnings, which would reveal the number of trials."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
            warnings.catch_warnings(),
            autologging_off(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)

"""Fit, score with noise, and forget all but the best. Nothing else comes out."""

import contextlib
import logging
import os
import warnings
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._delegation import last_step
from sklearn_pate._estimators._hooks import autologging_off
from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._labels import class_indices
from sklearn_pate.mechanisms._noisy_selection import DisjointChoice, NoisyScores
from sklearn_pate.model_selection._candidates import Candidate
from sklearn_pate.model_selection._split import Cut, PrivateRows

__all__ = [
    "Contest",
    "Winner",
    "best_of_trials",
    "best_on_disjoint_rows",
    "draw_number_of_trials",
]

# Digits of the probabilities from which the number of trials is drawn.
_DIGITS = 60
# Lower than any score.
_FAILED = -(2**62)


class Contest(NamedTuple):
    """What candidates compete on.

    Parameters
    ----------
    rows : PrivateRows
        All of them.

    cut : Cut
        Which are for what.

    classes : ndarray of shape (n_classes,)
        Labels.

    scoring : NoisyScores or DisjointChoice
        Adds the noise.

    ceilings : list of ndarray of shape (n_orders,)
        What a fit of each candidate may cost.
    """

    rows: PrivateRows
    cut: Cut
    classes: NDArray[Any]
    scoring: NoisyScores | DisjointChoice
    ceilings: list[NDArray[np.float64]]

    def fit(self, estimator, place):
        """Fit one candidate, and score it without noise.

        Parameters
        ----------
        estimator : classifier
            Seeded; fitted in place.

        place : int
            Which candidate it is. It trains on the part of that place, if there is one
            for each.

        Returns
        -------
        fitted : classifier or None
            None if it failed, which is an outcome like any other.

        score : int
            0 if it failed.
        """
        parts = self.cut.training
        training = self.rows.at(parts[place % len(parts)])
        try:
            fitted = estimator.fit(training.X, training.y, **training.params)
        except Exception:  # what it says depends on private rows
            return None, 0
        curve = last_step(fitted).privacy_spent_.curve
        if not np.all(curve.values <= self.ceilings[place] * (1 + 1e-9)):
            raise RuntimeError(
                f"{type(last_step(fitted)).__name__} cost more than its plan_privacy "
                "said, perhaps because its cost depends on its random_state; set what "
                "it reads from the data, such as n_queries. Nothing was released."
            )
        if not len(self.cut.validation):
            return fitted, 0
        validation = self.rows.at(self.cut.validation)
        codes = _predicted_codes(fitted, validation.X, self.classes)
        is_right = (codes == validation.codes) & (codes >= 0)
        return fitted, self.cut.score(is_right)


class Winner(NamedTuple):
    """What a search releases.

    Parameters
    ----------
    candidate : Candidate
        The setting.

    fitted : classifier or None
        None if it failed.
    """

    candidate: Candidate
    fitted: BaseEstimator | None


def draw_number_of_trials(law, noise):
    """Draw how many trials there are. Secret.

    Parameters
    ----------
    law : TruncatedNegativeBinomial or TruncatedPoisson
        Its law.

    noise : NoiseSource
        Where the random bits come from.

    Returns
    -------
    n_trials : int
        At least 1. By inversion of 128 random bits: its law is right to 2^-128.
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


def best_of_trials(candidates, contest, law, noise):
    """Fit random candidates a random number of times, and keep the best.

    Parameters
    ----------
    candidates : list of Candidate
        Each trial draws one of them; all are equally likely.

    contest : Contest
        Its judge is NoisyScores.

    law : TruncatedNegativeBinomial or TruncatedPoisson
        Of the number of trials.

    noise : NoiseSource
        Where the noise comes from, and all that trials draw.

    Returns
    -------
    winner : Winner
        Of the highest score with noise; among equal ones, each is equally likely.

    Notes
    -----
    Trials are independent and alike, as their cost requires: each draws its seed anew
    from secret bits. Seeds that somebody could know would make them differ.
    """
    best = None
    with _silence():
        for _ in range(draw_number_of_trials(law, noise)):
            place = int(noise.index(len(candidates), 1)[0])
            fitted, score = contest.fit(candidates[place].seeded(_seed(noise)), place)
            if fitted is None:
                score = _FAILED
            else:
                score += contest.scoring.draw(contest.cut.sensitivity, noise)
            rank = score, int(noise.words(1)[0])
            if best is None or rank > best[0]:
                best = rank, Winner(candidates[place], fitted)
    return best[1]


def best_on_disjoint_rows(candidates, contest, noise, noise_seed):
    """Fit each candidate on rows of its own, and keep one that is good.

    Parameters
    ----------
    candidates : list of Candidate
        One for each part of the rows.

    contest : Contest
        Its judge is a DisjointChoice.

    noise : NoiseSource
        Where seeds come from.

    noise_seed : int or None
        None draws the noise of the choice from the operating system.

    Returns
    -------
    winner : Winner
        The choice of the judge.
    """
    with _silence():
        entries = [
            contest.fit(candidate.seeded(_seed(noise)), place)
            for place, candidate in enumerate(candidates)
        ]
        scores = [score for _, score in entries]
        chosen = contest.scoring.choose(scores, contest.cut.sensitivity, noise_seed)
    return Winner(candidates[chosen], entries[chosen][0])


def _seed(noise):
    return int(noise.index(MAX_SEED, 1)[0])


def _predicted_codes(fitted, X, classes):
    """Predict one row at a time: no row may change what others are predicted as.

    In a batch, the last bits of a matrix product depend on how many rows there are, and
    on which of them a row is; and a row that cannot be predicted fails the others.
    """
    codes = (_predicted_code(fitted, X, row, classes) for row in range(X.shape[0]))
    return np.fromiter(codes, dtype=np.intp, count=X.shape[0])


def _predicted_code(fitted, X, row, classes):
    """Return the class index that a row is predicted as, -1 if it cannot be."""
    try:
        (code,) = class_indices(fitted.predict(_safe_indexing(X, [row])), classes)
    except Exception:
        return -1
    return code


@contextlib.contextmanager
def _silence():
    """Let nothing out: whatever a trial says, it says how many there are."""
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

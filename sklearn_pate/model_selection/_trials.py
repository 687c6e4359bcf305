"""Candidates of a private search, and their scores on private rows."""

import contextlib
from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import process_routing

from sklearn_pate._aggregation._entry import accounted_elsewhere
from sklearn_pate._estimators._class_codes import last_step
from sklearn_pate._estimators._isolation import (
    MAX_SEED,
    autologging_off,
    no_output,
    seeded_clone,
)
from sklearn_pate._estimators._progress import drop_callbacks, phase, steps_of
from sklearn_pate._inputs._labels import class_indices
from sklearn_pate.accounting._assumptions import FROZEN_IS_PUBLIC, Assumption
from sklearn_pate.accounting._statement import PrivacySpent, plans_privacy
from sklearn_pate.accounting.composition import (
    TruncatedNegativeBinomial,
    TruncatedPoisson,
)
from sklearn_pate.inspection._leaks import ROWS_DEPEND, leaks_of_steps
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_training import DisjointChoice, NoisyScores
from sklearn_pate.model_selection._split import PrivateRows, RowSplit

# Parameters that a candidate must not set, and the reason.
_REFUSED = {
    "ledger": (
        "would be charged for every trial, which reveals their number; give the "
        "ledger to PrivateSearchCV, which charges it once for all trials."
    ),
    "memory": (
        "would keep results of every trial, which reveals their number; leave "
        "memory=None."
    ),
    "public_size": (
        "would make other rows public in every trial, until no row is protected; pass "
        "fit(..., X_public=PublicData(X_public))."
    ),
}
# Digits of the probabilities from which the number of trials is drawn.
_DIGITS = 60
# Lower than any score.
_FAILED = -(2**62)


class Candidate(NamedTuple):
    """Parameters of the grid, and an unfitted estimator that has them."""

    params: dict[str, object]
    estimator: BaseEstimator
    assumptions: tuple[Assumption, ...]


def list_candidates(
    estimator: Any, param_grid: Any, classes: NDArray[Any]
) -> list[Candidate]:
    """List the candidates of a grid, or raise ValueError if one cannot be searched.

    Their output is switched off, and their `classes` are set where these are None.
    """
    settings = list(ParameterGrid(param_grid))
    if not settings:
        raise ValueError(
            f"param_grid={param_grid!r} has no candidate; list at least one setting "
            "({} leaves the estimator unchanged)."
        )
    candidates = []
    for params in settings:
        candidate = clone(estimator).set_params(**clone(params, safe=False))
        _check(candidate)
        _check_seeds(candidate, params)
        _switch_off_output(candidate)
        set_classes(candidate, classes)
        is_frozen = any(
            isinstance(part, FrozenEstimator)
            for part in candidate.get_params().values()
        )
        assumptions = (FROZEN_IS_PUBLIC,) if is_frozen else ()
        candidates.append(Candidate(params, candidate, assumptions))
    return candidates


def set_classes(estimator: Any, classes: NDArray[Any]) -> None:
    """Set the classes of a learner that would read them from its part of the rows."""
    learner = last_step(estimator)
    if learner.get_params(deep=False).get("classes", classes) is None:
        learner.set_params(classes=classes.tolist())


def plan_fit(estimator: Any, rows: PrivateRows) -> PrivacySpent:
    """State the privacy cost of a fit by ``plan_privacy`` of the last step."""
    X, params = rows.X, rows.params
    while isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        if get_config()["enable_metadata_routing"]:
            params = process_routing(estimator, "fit", **params)[name].fit
        else:
            params = {key.removeprefix(f"{name}__"): one for key, one in params.items()}
        if len(estimator.steps) > 1:
            with autologging_off():
                X = clone(estimator[:-1]).fit_transform(X)
        estimator = last
    return estimator.plan_privacy(X, rows.y, **params)


def _check(estimator: Any) -> None:
    """Raise unless a trial releases nothing but its result, at a stated cost."""
    learner = last_step(estimator)
    if not plans_privacy(learner) or not is_classifier(learner):
        raise ValueError(
            f"estimator={estimator!r} cannot state its privacy cost before a fit; pass "
            "a private classifier that has plan_privacy, such as PATEClassifier, or a "
            "Pipeline that ends in one."
        )
    check_steps(estimator)
    for name, value in estimator.get_params().items():
        refused = _REFUSED.get(name.rpartition("__")[2])
        if refused is not None and value is not None:
            raise ValueError(f"{name}={value!r} of the estimator {refused}")


def _check_seeds(estimator: Any, params: dict[str, object]) -> None:
    """Raise if the grid sets a seed, as ``best_params_`` would report a wrong one."""
    for name, value in estimator.get_params().items():
        is_seed = name.rpartition("__")[2] == "random_state" and value is not None
        if is_seed and any(f"{name}__".startswith(f"{key}__") for key in params):
            raise ValueError(
                f"{name}={value!r} in param_grid would be replaced by a secret seed in "
                "each trial; leave it out, or set it to None."
            )


def check_steps(estimator: Any) -> None:
    """Raise if a step of a pipeline reads values of private rows."""
    if not isinstance(estimator, Pipeline):
        return
    *steps, (_, last) = estimator.steps
    for leak in leaks_of_steps(steps, last):
        remedy = (
            leak.remedy
            if leak.reason in ROWS_DEPEND
            else "Leave it out, or fit it on public rows: "
            "FrozenEstimator(step.fit(X_public))."
        )
        raise ValueError(f"{leak.name} ({leak.estimator}) {leak.reason} {remedy}")
    check_steps(last)


def _switch_off_output(estimator: Any) -> None:
    """Switch off `verbose` and callbacks, which would report on trials."""
    for name, value in estimator.get_params().items():
        is_verbose = name.rpartition("__")[2] == "verbose"
        if is_verbose and isinstance(value, (int, np.integer)) and value:
            estimator.set_params(**{name: type(value)(0)})
    drop_callbacks(estimator)


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
            with accounted_elsewhere():
                fitted = estimator.fit(training.X, training.y, **training.params)
        except Exception:  # its message depends on private rows
            return None, 0
        check_spent(last_step(fitted), self.ceilings[index])
        if not len(self.split.validation):
            return fitted, 0
        validation = self.rows.take(self.split.validation)
        codes = _predicted_codes(fitted, validation.X, self.classes)
        is_right = (codes == validation.codes) & (codes >= 0)
        return fitted, self.split.score(is_right)


def check_spent(fitted: Any, ceiling: NDArray[np.float64]) -> None:
    """Raise if a fit cost more than was stated before it."""
    curve = fitted.privacy_spent_.curve
    if not np.all(curve.values <= ceiling * (1 + 1e-9)):
        raise RuntimeError(
            f"{type(fitted).__name__} cost more than its plan_privacy stated, perhaps "
            "because its cost depends on its random_state; set parameters that it "
            "reads from the data, such as n_queries. Nothing was released."
        )


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
    with no_output():
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
    candidates: Sequence[Candidate], setup: TrialSetup, noise: NoiseSource
) -> SelectedTrial:
    """Fit each candidate on its own part of the rows, and select one by its score."""
    assert isinstance(setup.scoring, DisjointChoice)
    with no_output():
        trials = [
            setup.fit_and_score(seeded_clone(candidate.estimator, _seed(noise)), index)
            for index, candidate in steps_of(
                "fitting candidates", list(enumerate(candidates))
            )
        ]
        scores = [score for _, score in trials]
        chosen = setup.scoring.choose(scores, setup.split.sensitivity, noise)
    return SelectedTrial(candidates[chosen], trials[chosen][0])


def _seed(noise: NoiseSource) -> int:
    """Draw a secret seed."""
    return int(noise.index(MAX_SEED, 1)[0])


def _predicted_codes(fitted: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Predict one row at a time, so that no row changes the prediction of another.

    In a batch, the last bits of a matrix product depend on the number of rows and on
    the position of a row; and a row that cannot be predicted makes the others fail.
    """
    codes = np.full(X.shape[0], -1)  # where a prediction fails
    for row in range(len(codes)):
        with contextlib.suppress(Exception):
            predicted = fitted.predict(_safe_indexing(X, [row]))
            (codes[row],) = class_indices(predicted, classes)
    return codes

"""Scores and epsilons of fits, of predictions, and of a search."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring

from sklearn_pate.accounting._calibrate import is_positive
from sklearn_pate.inspection.displays._plotting import check_comparable, statement_of

__all__ = [
    "EpsilonScores",
    "check_sensitivity",
    "mean_scores",
    "scores_of_estimators",
    "scores_of_predictions",
    "scores_of_search",
]

# Fits for one target epsilon state slightly different values: those within one percent
# share a point.
_ONE_TARGET = 0.01


@dataclass(frozen=True)
class EpsilonScores:
    """Scores of private fits and their stated epsilons."""

    epsilons: ArrayLike
    scores: ArrayLike
    score_name: str
    delta: float | None = None
    unit: str | None = None
    relation: str | None = None


def scores_of_estimators(
    estimators: Sequence[Any], X: Any, y: ArrayLike, scoring: Any
) -> EpsilonScores:
    """Score fitted private estimators, after a check that they are comparable."""
    if hasattr(estimators, "fit"):  # a Pipeline is a sequence of its steps
        raise ValueError(
            f"estimators is a single {type(estimators).__name__}; pass a list of "
            "fitted estimators, such as [clf]."
        )
    statements = [statement_of(one) for one in estimators]
    check_comparable(statements)
    return EpsilonScores(
        epsilons=[spent.epsilon for spent in statements],
        scores=[check_scoring(one, scoring)(one, X, y) for one in estimators],
        score_name=_name_of(scoring),
        delta=max(spent.delta for spent in statements),
        unit=statements[0].unit,
        relation=statements[0].relation,
    )


def scores_of_predictions(
    y_true: ArrayLike,
    predictions: Iterable[ArrayLike],
    epsilons: ArrayLike,
    score_func: Callable[..., float],
) -> EpsilonScores:
    """Score the predictions of fits."""
    name = getattr(score_func, "__name__", "score").removesuffix("_score")
    return EpsilonScores(
        epsilons=epsilons,
        scores=[score_func(y_true, y_pred) for y_pred in predictions],
        score_name=_name_of(name),
    )


def scores_of_search(search: Any, metric: str | None) -> EpsilonScores:
    """Read the scores of a search over epsilon, or of its ``cv_results_``."""
    results = getattr(search, "cv_results_", search)
    if not isinstance(results, Mapping):
        is_search = hasattr(search, "refit")
        raise (NotFittedError if is_search else ValueError)(
            f"search has no cv_results_, as {type(search).__name__} is none or is "
            "not fitted; pass a fitted GridSearchCV, or its cv_results_."
        )
    scoring = getattr(search, "scoring", None) if metric is None else metric
    epsilons = _epsilons_of(results)
    splits = _scores_of_splits(results, "score" if metric is None else metric)
    spent = None
    if hasattr(search, "best_estimator_"):
        spent = statement_of(search.best_estimator_)
        check_comparable([spent])
    return EpsilonScores(
        epsilons=np.repeat(epsilons, len(splits)),
        scores=np.transpose(splits).ravel(),
        score_name=_name_of(scoring),
        delta=None if spent is None else spent.delta,
        unit=None if spent is None else spent.unit,
        relation=None if spent is None else spent.relation,
    )


def mean_scores(
    epsilons: ArrayLike, scores: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Average the fits of each target epsilon.

    Returns, for increasing targets, the largest epsilon, the mean score, and the
    standard deviation of the scores, which is NaN for a single fit.
    """
    epsilons = np.asarray(epsilons, dtype=np.float64)
    scores = np.asarray(scores, dtype=np.float64)
    if epsilons.ndim != 1 or not epsilons.size or epsilons.shape != scores.shape:
        raise ValueError(
            f"epsilons has shape {epsilons.shape} and scores {scores.shape}; pass one "
            "of each per fit."
        )
    if not np.all((epsilons > 0) & np.isfinite(epsilons)):
        raise ValueError(
            f"epsilons={epsilons.tolist()} must be positive and finite; leave out fits "
            "without a guarantee, or pass the score of one as baseline."
        )
    if not np.all(np.isfinite(scores)):
        raise ValueError(
            "scores has NaN or infinity, such as that of a failed fit; leave it out."
        )
    order = np.argsort(epsilons, kind="stable")
    epsilons, scores = epsilons[order], scores[order]
    starts = [0]
    for place, epsilon in enumerate(epsilons):
        if epsilon > (1 + _ONE_TARGET) * epsilons[starts[-1]]:
            starts.append(place)
    groups = np.split(scores, starts[1:])
    return (
        np.array([group[-1] for group in np.split(epsilons, starts[1:])]),
        np.array([group.mean() for group in groups]),
        # Unknown for one fit, and not drawn.
        np.array([group.std(ddof=1) if len(group) > 1 else np.nan for group in groups]),
    )


def _epsilons_of(results: Mapping[str, Any]) -> list[float]:
    """Read the epsilon of each candidate of a search, if nothing else differs."""
    names = [key.removeprefix("param_") for key in results if key.startswith("param_")]
    chosen = [name for name in names if name.rpartition("__")[2] == "epsilon"]
    if len(chosen) != 1:
        raise ValueError(
            f"The search is over {names}, which must include one epsilon; search over "
            "'epsilon', or 'pate__epsilon' for a step 'pate' of a Pipeline."
        )
    for name in names:
        values = {repr(value) for value in results[f"param_{name}"]}
        if name not in chosen and len(values) > 1:
            raise ValueError(
                f"The search is over {name} as well, so that an epsilon has several "
                f"scores; search over {chosen[0]} alone."
            )
    epsilons = list(results[f"param_{chosen[0]}"])
    for epsilon in epsilons:
        if not is_positive(epsilon):
            raise ValueError(
                f"{chosen[0]}={epsilon!r} is the target of a candidate, and cannot be "
                "drawn on an axis of epsilon; search over positive numbers."
            )
    return epsilons


def _scores_of_splits(
    results: Mapping[str, Any], metric: str
) -> list[NDArray[np.float64]]:
    """Read the scores of the candidates of a search, one array per split."""
    n_splits = 0
    while f"split{n_splits}_test_{metric}" in results:
        n_splits += 1
    if not n_splits:
        known = [
            key.removeprefix("mean_test_")
            for key in results
            if key.startswith("mean_test_")
        ]
        raise ValueError(
            f"metric={metric!r} is unknown to the search; use one of {known}."
        )
    return [results[f"split{split}_test_{metric}"] for split in range(n_splits)]


def _name_of(scoring: Any) -> str:
    return scoring.replace("_", " ") if isinstance(scoring, str) else "score"


def check_sensitivity(sensitive: Any, baseline: Any) -> None:
    """Raise ValueError unless sensitivity and baseline of a display are valid."""
    if not isinstance(sensitive, bool):
        raise ValueError(
            f"sensitive={sensitive!r} must be True or False; pass True unless all rows "
            "that scores or a baseline come from are public."
        )
    is_number = isinstance(baseline, Real) and not isinstance(baseline, bool)
    if baseline is not None and not (is_number and np.isfinite(baseline)):
        raise ValueError(
            f"baseline={baseline!r} must be a finite number, the score without "
            "privacy, or None."
        )

"""Scores against epsilon: from fits, and from the results of a search."""

import numpy as np

from sklearn_pate.accounting._calibrate import is_positive

__all__ = ["epsilons_of", "mean_scores", "scores_of_splits"]

# Fits for one target state epsilons that differ in their last digits: those within one
# part in a hundred share a point.
_ONE_TARGET = 0.01


def mean_scores(epsilons, scores):
    """Average the fits of each target.

    Parameters
    ----------
    epsilons : array-like of shape (n_fits,)
        What each fit states.

    scores : array-like of shape (n_fits,)
        What each fit reached. As sensitive as the rows they were computed on.

    Returns
    -------
    epsilons : ndarray of shape (n_targets,)
        Increasing; the largest of each target.

    means : ndarray of shape (n_targets,)
        Mean score.

    deviations : ndarray of shape (n_targets,)
        Standard deviation of the scores, NaN for a single fit.

    Raises
    ------
    ValueError
        If the shapes differ, or a number has no place on an axis.
    """
    epsilons, scores = (np.asarray(one, dtype=np.float64) for one in (epsilons, scores))
    if epsilons.ndim != 1 or not epsilons.size or epsilons.shape != scores.shape:
        raise ValueError(
            f"epsilons has shape {epsilons.shape} and scores {scores.shape}; pass one "
            "of each for every fit."
        )
    if not np.all((epsilons > 0) & np.isfinite(epsilons)):
        raise ValueError(
            f"epsilons={epsilons.tolist()} must be positive and finite; leave out fits "
            "without a guarantee, or pass the score of one as baseline."
        )
    if not np.all(np.isfinite(scores)):
        raise ValueError(
            "scores holds NaN or infinity, as that of a fit that failed; leave it out."
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
        # The spread of one fit is not known, and is not drawn.
        np.array([group.std(ddof=1) if len(group) > 1 else np.nan for group in groups]),
    )


def epsilons_of(results):
    """Read the epsilon of each candidate of a search.

    Parameters
    ----------
    results : Mapping
        ``cv_results_``.

    Returns
    -------
    epsilons : list of float
        In the order of the candidates.

    Raises
    ------
    ValueError
        If something else differs between candidates, or an epsilon is not positive.
    """
    names = [key.removeprefix("param_") for key in results if key.startswith("param_")]
    chosen = [name for name in names if name.rpartition("__")[2] == "epsilon"]
    if len(chosen) != 1:
        raise ValueError(
            f"The search is over {names}, which has to hold one epsilon; search over "
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
                f"{chosen[0]}={epsilon!r} is the target of a candidate, and has no "
                "place on an axis of epsilon; search over positive numbers."
            )
    return epsilons


def scores_of_splits(results, metric):
    """Read the scores of a search.

    Parameters
    ----------
    results : Mapping
        ``cv_results_``.

    metric : str
        Which of its scores.

    Returns
    -------
    scores : list of ndarray of shape (n_candidates,)
        One a split. As sensitive as the rows of the search.

    Raises
    ------
    ValueError
        If the search has no such metric.
    """
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

"""The estimator at the end of pipelines."""

from typing import Any

from sklearn.pipeline import Pipeline

__all__ = ["last_step", "with_last_step"]


def last_step(estimator: Any) -> Any:
    """Return the estimator at the end of pipelines.

    Parameters
    ----------
    estimator : estimator
        A Pipeline, or any other.

    Returns
    -------
    learner : estimator
        The last step, or the estimator itself.
    """
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def with_last_step(estimator: Any, last: Any) -> Any:
    """Return a pipeline with another last step, or that step for what is none."""
    if not isinstance(estimator, Pipeline):
        return last
    *front, (name, inner) = estimator.steps
    return Pipeline([*front, (name, with_last_step(inner, last))])

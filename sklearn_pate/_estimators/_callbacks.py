"""Callbacks over the teachers, where scikit-learn has them."""

from contextlib import contextmanager

from sklearn.frozen import FrozenEstimator

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9 there is `verbose` only

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in without callbacks."""

    def with_callbacks(method):
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "drop_callbacks", "each_teacher", "with_callbacks"]


def drop_callbacks(estimator):
    """Take the callbacks off an estimator and off those among its parameters.

    A clone shares them with the original, across processes too, and they may keep
    scores on the rows that it is fitted on.

    Parameters
    ----------
    estimator : estimator
        Changed in place. What is in a FrozenEstimator is the user's own, is not fitted,
        and keeps its callbacks.

    Returns
    -------
    estimator : estimator
        The same.
    """
    params = estimator.get_params().values()
    frozen = [one.estimator for one in params if isinstance(one, FrozenEstimator)]
    for part in (estimator, *params):
        is_users = isinstance(part, FrozenEstimator) or any(
            part is one for one in frozen
        )
        if hasattr(part, "_skl_callbacks") and not is_users:
            part.set_callbacks()
    return estimator


@contextmanager
def each_teacher(estimator, n_teachers):
    """Tell the estimator's callbacks about the fit, and about each finished teacher.

    Callbacks are told that a teacher is done and nothing else: no data, no votes.

    Parameters
    ----------
    estimator : PATEClassifier
        The estimator being fitted.

    n_teachers : int
        Number of teachers.

    Yields
    ------
    on_teacher_done : callable or None
        To be called once for each teacher.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    fit = estimator._init_callback_context(max_subtasks=n_teachers)
    fit.call_on_fit_task_begin(estimator=estimator)

    def on_teacher_done():
        teacher = fit.subcontext(task_name="teacher")
        teacher.call_on_fit_task_begin(estimator=estimator)
        teacher.call_on_fit_task_end(estimator=estimator)

    yield on_teacher_done
    fit.call_on_fit_task_end(estimator=estimator)

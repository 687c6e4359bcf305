"""Callbacks over the teachers, where scikit-learn has them."""

from contextlib import contextmanager

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9 there is `verbose` only

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in without callbacks."""

    def with_callbacks(method):
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "each_teacher", "with_callbacks"]


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

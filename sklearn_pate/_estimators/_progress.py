"""Progress of a fit: phases, lines on the error stream, callbacks."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeVar

from sklearn.frozen import FrozenEstimator

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9 there is `verbose` only

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in without callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged."""
        return method


T = TypeVar("T")


def check_verbose(name: str, verbose: Any) -> None:
    """Raise ValueError unless a parameter is a bool or a whole number."""
    if not isinstance(verbose, Integral) or int(verbose) < 0:
        raise ValueError(
            f"{name}={verbose!r} must be a bool or an integer of at least 0; 0 shows "
            "no progress."
        )


@contextmanager
def progress_of(estimator: Any) -> Iterator[None]:
    """Report the phases of a fit, which `phase` names while this block runs.

    They are reported to the callbacks of the estimator, and in lines of text if its
    `verbose` is positive. A fit inside another one writes no text: it is a teacher, a
    student or a trial, and part of a phase.
    """
    task = None
    if hasattr(estimator, "_init_callback_context"):  # scikit-learn 1.9
        task = estimator._init_callback_context(max_subtasks=None)
        task.call_on_fit_task_begin(estimator=estimator)
    is_shown = estimator.verbose and _FIT.get() is None
    fit = _Fit(estimator, task, sys.stderr if is_shown else None)
    token = _FIT.set(fit)
    try:
        yield
    finally:
        _FIT.reset(token)
    fit.end(task)


@contextmanager
def phase(name: str, n_steps: int | None = None) -> Iterator[Callable[[int], None]]:
    """Report a phase of the current fit, if there is one.

    Yields a function that takes a number of finished steps. `name` and `n_steps` must
    be public. A phase inside another one is not reported.
    """
    fit = _FIT.get()
    if fit is None or fit.in_phase:
        yield lambda n: None
        return
    n_done = 0

    def advance(n: int) -> None:
        nonlocal n_done
        n_done += n
        for _ in range(n):
            fit.end(fit.begin(name, parent=task))

    fit.in_phase = True
    task = fit.begin(name, n_steps)
    try:
        yield advance
    finally:
        fit.in_phase = False
    fit.end(task)
    fit.write(f"{name}: done" if n_steps is None else f"{name} {n_done}/{n_steps}")


def steps_of(name: str, items: Sequence[T]) -> Iterator[T]:
    """Yield items, and report them as the steps of a phase."""
    with phase(name, len(items)) as advance:
        for item in items:
            yield item
            advance(1)


def announce(text: str) -> None:
    """Write a line about the current fit, if `verbose` is 1 or more."""
    fit = _FIT.get()
    if fit is not None:
        fit.write(text)


@dataclass
class _Fit:
    """A fit whose phases are reported, to callbacks and in lines of text."""

    estimator: Any
    #: scikit-learn's context of the fit, None before version 1.9.
    task: Any
    #: Stream of lines, None without any.
    stream: Any
    in_phase: bool = False

    def begin(self, name: str, n_steps: int | None = 0, parent: Any = None) -> Any:
        """Tell the callbacks that a task begins."""
        if self.task is None:
            return None
        task = (parent or self.task).subcontext(name, max_subtasks=n_steps)
        task.call_on_fit_task_begin(estimator=self.estimator)
        return task

    def end(self, task: Any) -> None:
        """Tell the callbacks that a task is over."""
        if task is not None:
            task.call_on_fit_task_end(estimator=self.estimator)

    def write(self, text: str) -> None:
        """Write a line, if lines are written."""
        if self.stream is not None:
            # No fit whose cost is recorded may fail as its output is closed.
            with suppress(Exception):
                self.stream.write(f"[sklearn_pate] {text}\n")
                self.stream.flush()


#: The fit that runs in this thread.
_FIT: ContextVar[_Fit | None] = ContextVar("fit", default=None)


def drop_callbacks(estimator: Any) -> Any:
    """Remove the callbacks of an estimator and of its parameters, in place.

    A clone shares them with the original, across processes too, and they may keep
    scores on the rows that it is fitted on. An estimator in a FrozenEstimator is the
    user's original, is not fitted, and keeps its callbacks.
    """
    params = estimator.get_params().values()
    frozen = [part for part in params if isinstance(part, FrozenEstimator)]
    kept = [id(part) for one in frozen for part in (one, one.estimator)]
    for part in (estimator, *params):
        if hasattr(part, "_skl_callbacks") and id(part) not in kept:
            part.set_callbacks()
    return estimator

"""Progress of a fit: phases, lines on the error stream, callbacks."""

import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing import parent_process
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

# The most often that a phase is written.
_MOST_UPDATES = 200


def check_verbose(name: str, verbose: Any) -> None:
    """Raise ValueError unless a parameter is "auto" or a whole number."""
    if isinstance(verbose, str) and verbose == "auto":
        return
    if not isinstance(verbose, Integral) or int(verbose) < 0:
        raise ValueError(
            f"{name}={verbose!r} must be 'auto', or an integer of at least 0; 0 shows "
            "no progress."
        )


@contextmanager
def progress_of(estimator: Any) -> Iterator[None]:
    """Report the phases of a fit, which `phase` names while this block runs.

    They are reported to the callbacks of the estimator, and in lines of text if its
    `verbose` asks for them. A fit inside another one writes no text: it is a teacher, a
    student or a trial, and part of a phase.
    """
    task = None
    if hasattr(estimator, "_init_callback_context"):  # scikit-learn 1.9
        task = estimator._init_callback_context(max_subtasks=None)
        task.call_on_fit_task_begin(estimator=estimator)
    fit = _Fit(estimator, task, *_streams(estimator, _FIT.get() is not None))
    token = _FIT.set(fit)
    try:
        yield
    finally:
        _FIT.reset(token)
        fit.show("")
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

    def text() -> str:
        if n_steps is None:
            return f"{name} ..."
        return f"{name} {n_done:{len(str(n_steps))}}/{n_steps}"

    def advance(n: int) -> None:
        nonlocal n_done
        before, n_done = n_done, n_done + n
        for _ in range(n):
            fit.end(fit.begin(name, parent=task))
        per_update = -(-(n_steps or 1) // _MOST_UPDATES)
        if n_done // per_update > before // per_update or n_done == n_steps:
            fit.show(text())

    fit.in_phase = True
    task = fit.begin(name, n_steps)
    fit.show(text())
    try:
        yield advance
    finally:
        fit.in_phase = False
    fit.end(task)
    fit.write(text().replace(" ...", ": done"))


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


class _TerminalLine:
    """A line of a terminal.

    The carriage return is the last letter, so that a warning overwrites the line.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._width = 0

    def show(self, text: str) -> None:
        """Replace the text, cut to the width of the terminal."""
        text = text[: shutil.get_terminal_size().columns - 1]
        self._stream.write(f"{text:{self._width}}\r")
        self._stream.flush()
        self._width = len(text)


class _NotebookLine:
    """An output of a notebook's cell, of which only the last text is saved."""

    def __init__(self) -> None:
        self._output: Any = None

    def show(self, text: str) -> None:
        """Replace the text."""
        from IPython.display import display  # every kernel has it

        content = {"text/plain": text}
        if self._output is None:
            self._output = display(content, raw=True, display_id=True)
        else:
            self._output.update(content, raw=True)


_Line = _TerminalLine | _NotebookLine


def _streams(estimator: Any, inside_another: bool) -> tuple[Any, _Line | None]:
    """Return the stream of lines that are kept, and the line of the running phase.

    `verbose` and the standard error stream decide; None where nothing is written.
    """
    verbose, stream = estimator.verbose, sys.stderr
    if inside_another or stream is None:
        return None, None
    is_kept = isinstance(verbose, Integral) and int(verbose) > 0
    # A progress bar may be among the callbacks.
    is_auto = isinstance(verbose, str) and not hasattr(estimator, "_skl_callbacks")
    # Several threads or processes would write into each other's lines.
    is_alone = (
        parent_process() is None
        and threading.current_thread() is threading.main_thread()
    )
    line: _Line | None = None
    if is_alone and (is_kept or is_auto):
        with suppress(AttributeError, ValueError):  # not a whole stream, or closed
            if type(stream).__module__ == "ipykernel.iostream":
                line = _NotebookLine()
            elif stream.isatty():  # and no file or pipe
                line = _TerminalLine(stream)
    return stream if is_kept else None, line


@dataclass
class _Fit:
    """A fit whose phases are reported, to callbacks and in lines of text."""

    estimator: Any
    #: scikit-learn's context of the fit, None before version 1.9.
    task: Any
    stream: Any
    running: _Line | None
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

    # No fit whose cost is recorded may fail as its output is closed.

    def show(self, text: str) -> None:
        """Replace the line of the running phase; remove it if the text is empty."""
        if self.running is not None:
            with suppress(Exception):
                self.running.show(text and f"[sklearn_pate] {text}")

    def write(self, text: str) -> None:
        """Write a line that is kept, if lines are."""
        if self.stream is not None:
            self.show("")
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

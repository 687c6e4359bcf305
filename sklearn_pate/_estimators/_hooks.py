"""Keep fits on private rows from trackers, log handlers and standard streams."""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TextIO

from sklearn_pate._estimators._shared_change import SharedChange

__all__ = ["autologging_off", "muted"]


def autologging_off() -> AbstractContextManager[None]:
    """Turn mlflow's autologging off in the whole process for the length of a block.

    It replaces `fit`, `predict` and `transform` of the classes of scikit-learn, xgboost
    and others, and records parameters, metrics, pictures, models and a hash of the rows
    of every call. Blocks may overlap, also between threads. Enter a block in the
    process that fits private rows.
    """
    return _AUTOLOGGING.block()


def muted() -> AbstractContextManager[None]:
    """Drop the printed output and log records of the calling thread during a block.

    Not covered: threads that it starts, other processes, compiled code that writes to
    the terminal by itself, and warnings that are not printed inside the block.
    """
    return _OUTPUT.muted()


class _Autologging(SharedChange):
    """Autologging of this process, which is off during any block."""

    def __init__(self) -> None:
        super().__init__()
        self._flagged: Any = None
        self._configurations: list[dict[str, Any]] = []

    def _begin(self, *, is_first: bool) -> None:
        # By every block: autologging may have been turned on since the first one.
        mlflow: Any = sys.modules.get("mlflow.utils.autologging_utils")
        if mlflow is None:
            return
        # mlflow reads both. Its own disable_autologging resets the flag when it ends,
        # in any thread; mlflow.autolog() replaces a configuration.
        if not mlflow._AUTOLOGGING_GLOBALLY_DISABLED:
            mlflow._AUTOLOGGING_GLOBALLY_DISABLED = True
            self._flagged = mlflow
        for configuration in list(mlflow.AUTOLOGGING_INTEGRATIONS.values()):
            if not configuration.get("disable", True):
                configuration["disable"] = True
                self._configurations.append(configuration)

    def _undo(self) -> None:
        if self._flagged is not None:
            self._flagged._AUTOLOGGING_GLOBALLY_DISABLED = False
            self._flagged = None
        while self._configurations:
            self._configurations.pop()["disable"] = False


class _Output(SharedChange):
    """Streams and log records of this process, which drop those of muted threads."""

    def __init__(self) -> None:
        super().__init__()
        self._of_thread = threading.local()

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Drop the output of this thread."""
        with self.block():
            depth = getattr(self._of_thread, "depth", 0)
            self._of_thread.depth = depth + 1
            try:
                yield
            finally:
                self._of_thread.depth = depth

    @property
    def is_muted(self) -> bool:
        """Check whether the calling thread is muted."""
        return getattr(self._of_thread, "depth", 0) > 0

    def _begin(self, *, is_first: bool) -> None:
        if not is_first:
            return
        self.nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        self._streams: dict[str, tuple[TextIO, _Stream]] = {}
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            while isinstance(stream, _Stream):  # one of an earlier block was put back
                stream = stream._stream
            if stream is not None:
                self._streams[name] = stream, _Stream(stream, self)
                setattr(sys, name, self._streams[name][1])
        self._factory = logging.getLogRecordFactory()
        self._own_factory = self._make_factory(self._factory)
        logging.setLogRecordFactory(self._own_factory)

    def _undo(self) -> None:
        # A replacement made by other code in the meantime stays.
        for name, (stream, own) in self._streams.items():
            if getattr(sys, name) is own:
                setattr(sys, name, stream)
        if logging.getLogRecordFactory() is self._own_factory:
            logging.setLogRecordFactory(self._factory)
        self.nowhere.close()

    def _make_factory(
        self, factory: Callable[..., logging.LogRecord]
    ) -> Callable[..., logging.LogRecord]:
        def make_record(
            name: str, level: int, *arguments: Any, **named: Any
        ) -> logging.LogRecord:
            if not self.is_muted:
                return factory(name, level, *arguments, **named)
            # Below every handler's level, and empty for those that ignore levels.
            return factory("", -1, "", 0, "", (), None)

        return make_record


class _Stream:
    """A stream that drops the output of muted threads."""

    def __init__(self, stream: TextIO, output: _Output) -> None:
        self._stream = stream
        self._output = output

    def __getattr__(self, name: str) -> Any:
        is_muted = self._output.is_muted
        return getattr(self._output.nowhere if is_muted else self._stream, name)


_AUTOLOGGING = _Autologging()
_OUTPUT = _Output()

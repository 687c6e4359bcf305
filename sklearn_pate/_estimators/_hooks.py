"""Keep fits on private rows from trackers, log handlers and standard streams."""

import logging
import os
import sys
import threading
from contextlib import contextmanager

__all__ = ["autologging_off", "muted"]


def autologging_off():
    """Turn mlflow's autologging off for the whole process, as long as a block lasts.

    It replaces `fit`, `predict` and `transform` of the classes of scikit-learn, xgboost
    and others, and records parameters, metrics, pictures, models and a hash of the rows
    of every call. Blocks may overlap, also between threads: the last one to end turns
    on again what was on. Does nothing where mlflow is not imported.

    Returns
    -------
    block : context manager
        To be entered where private rows are fitted, in the process that fits them.
    """
    return _AUTOLOGGING.off()


def muted():
    """Drop what the calling thread prints and logs, as long as a block lasts.

    Threads that it starts, other processes and compiled code that writes to the
    terminal by itself are not covered. Warnings are not either, unless they are printed
    inside the block.

    Returns
    -------
    block : context manager
        Other threads print and log as before.
    """
    return _OUTPUT.muted()


class _Autologging:
    """Autologging of the process: the first one turns it off, the last one on."""

    def __init__(self):
        self._lock = threading.Lock()
        self._n_inside = 0
        self._flagged = None
        self._configurations = []

    @contextmanager
    def off(self):
        """Turn it off, as long as any block lasts."""
        with self._lock:
            self._n_inside += 1
            self._turn_off()
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0:
                    self._turn_on()

    def _turn_off(self):
        # By every block: autologging may have been turned on since the first one.
        mlflow = sys.modules.get("mlflow.utils.autologging_utils")
        if mlflow is None:
            return
        # Both of what mlflow looks at. Its own disable_autologging resets the flag when
        # it ends, in any thread; mlflow.autolog() replaces a configuration.
        if not mlflow._AUTOLOGGING_GLOBALLY_DISABLED:
            mlflow._AUTOLOGGING_GLOBALLY_DISABLED = True
            self._flagged = mlflow
        for configuration in list(mlflow.AUTOLOGGING_INTEGRATIONS.values()):
            if not configuration.get("disable", True):
                configuration["disable"] = True
                self._configurations.append(configuration)

    def _turn_on(self):
        if self._flagged is not None:
            self._flagged._AUTOLOGGING_GLOBALLY_DISABLED = False
            self._flagged = None
        while self._configurations:
            self._configurations.pop()["disable"] = False


class _Output:
    """Streams and log records: replaced by the first block, restored by the last."""

    def __init__(self):
        self._lock = threading.Lock()
        self._n_inside = 0
        self._of_thread = threading.local()

    @contextmanager
    def muted(self):
        """Drop the output of this thread."""
        with self._lock:
            if self._n_inside == 0:
                self._replace()
            self._n_inside += 1
        depth = getattr(self._of_thread, "depth", 0)
        self._of_thread.depth = depth + 1
        try:
            yield
        finally:
            self._of_thread.depth = depth
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0:
                    self._restore()

    @property
    def is_muted(self):
        """Tell whether the calling thread is."""
        return getattr(self._of_thread, "depth", 0) > 0

    def _replace(self):
        self.nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        self._streams = {}
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            while isinstance(stream, _Stream):  # somebody put an earlier one back
                stream = stream._stream
            if stream is not None:
                self._streams[name] = stream, _Stream(stream, self)
                setattr(sys, name, self._streams[name][1])
        self._factory = logging.getLogRecordFactory()
        self._own_factory = self._make_factory(self._factory)
        logging.setLogRecordFactory(self._own_factory)

    def _restore(self):
        # What somebody else has replaced meanwhile is theirs, and stays.
        for name, (stream, own) in self._streams.items():
            if getattr(sys, name) is own:
                setattr(sys, name, stream)
        if logging.getLogRecordFactory() is self._own_factory:
            logging.setLogRecordFactory(self._factory)
        self.nowhere.close()

    def _make_factory(self, factory):
        def make_record(name, level, *arguments, **named):
            if not self.is_muted:
                return factory(name, level, *arguments, **named)
            # Below every handler's level, and empty for those who look all the same.
            return factory("", -1, "", 0, "", (), None)

        return make_record


class _Stream:
    """A stream that drops what muted threads write."""

    def __init__(self, stream, output):
        self._stream = stream
        self._output = output

    def __getattr__(self, name):
        is_muted = self._output.is_muted
        return getattr(self._output.nowhere if is_muted else self._stream, name)


_AUTOLOGGING = _Autologging()
_OUTPUT = _Output()

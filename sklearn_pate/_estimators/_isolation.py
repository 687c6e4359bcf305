"""Isolation of fits: seeds, global state, hooks and threads."""

import logging
import os
import random
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import Any, Self, TextIO

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from sklearn_pate._inputs._features import cause_of, in_short

MAX_SEED = 2**31 - 1

# Held while the generators of the whole process are seeded for one teacher.
_GLOBAL_GENERATORS = threading.RLock()


@dataclass(frozen=True)
class Seeds:
    """Seeds of the parts of a fit, which may be public."""

    public_rows: int
    #: Key of the shards and of the teachers' seeds.
    key: int
    queries: int
    student: int
    representation: int
    synthetic: int

    @classmethod
    def drawn(cls, random_state: Any) -> Self:
        """Draw all seeds, in a fixed order, so that no seed depends on the data.

        An integer is the key itself, so that teachers can be trained elsewhere.
        """
        seeds = cls(
            *check_random_state(random_state).randint(MAX_SEED, size=6).tolist()
        )
        if isinstance(random_state, Integral):
            return replace(seeds, key=int(random_state))
        return seeds


def check_cloneable(name: str, parameter: Any) -> None:
    """Raise ValueError unless scikit-learn can clone an estimator, or None."""
    try:
        clone(parameter, safe=False)
    except Exception as error:
        raise ValueError(
            f"{name}={in_short(parameter)} cannot be cloned, but teachers and students "
            "must be. Its constructor must store each parameter unchanged, and its "
            f"get_params must return it ({cause_of(str(error))})."
        ) from error


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Return an unfitted clone in which every `random_state` is derived from `seed`.

    Integers are replaced too, so that two teachers do not share their random numbers.
    """
    return with_seeds(clone(estimator), seed_names(estimator), seed)


def seed_names(estimator: Any) -> list[str]:
    """List the names of all `random_state` of an estimator and its parts."""
    return sorted(
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    )


def with_seeds(estimator: Any, names: Sequence[str], seed: int) -> Any:
    """Set parameters of these names to seeds that are derived from `seed`."""
    seeds = {name: (seed + offset) % MAX_SEED for offset, name in enumerate(names)}
    if seeds:
        estimator.set_params(**seeds)
    return estimator  # not what set_params returns: of a FrozenEstimator, nothing


@contextmanager
def seeded_globals(seed: int) -> Iterator[None]:
    """Seed the global generators of Python, numpy and torch for the length of a block.

    Some estimators draw from them: skorch networks, a shuffling cross-validator inside
    a search. Otherwise, the random numbers of a teacher would depend on how many the
    earlier teachers drew, and so on their shards. Threads enter one at a time; the
    states from before are restored.
    """
    with kept_globals() as seed_globals:
        seed_globals(seed)
        yield


@contextmanager
def kept_globals() -> Iterator[Callable[[int], None]]:
    """Restore the global generators after a block that seeds them several times.

    Yields the function that seeds them. Their states are kept once, as that takes a
    tenth of the time of a small teacher.
    """
    with _GLOBAL_GENERATORS, ExitStack() as states:
        states.callback(random.setstate, random.getstate())
        states.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        is_torch_kept = False

        def seed_globals(seed: int) -> None:
            nonlocal is_torch_kept
            torch = sys.modules.get("torch")
            if torch is not None and not is_torch_kept:
                states.enter_context(torch.random.fork_rng())
                is_torch_kept = True
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            if torch is None:
                return
            if torch.accelerator.is_available():
                torch.manual_seed(seed)
            else:  # the same numbers, without notes of the seed for devices to come
                torch.default_generator.manual_seed(seed)

        yield seed_globals


class SharedChange(ABC):
    """A change to the whole process, made by the first block and undone by the last.

    Blocks may overlap, also between threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_blocks = 0

    @contextmanager
    def block(self) -> Iterator[None]:
        """Keep the change in place for the length of a block."""
        with self._lock:
            self._begin(is_first=self._n_blocks == 0)
            self._n_blocks += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_blocks -= 1
                if self._n_blocks == 0:
                    self._undo()

    @abstractmethod
    def _begin(self, *, is_first: bool) -> None:
        """Make the change; called by every block, under the lock."""

    @abstractmethod
    def _undo(self) -> None:
        """Undo the change after the last block, under the lock."""


class _Autologging(SharedChange):
    """mlflow's autologging in the whole process, which is off during any block.

    It replaces `fit`, `predict` and `transform` of the classes of scikit-learn, xgboost
    and others, and records parameters, metrics, pictures, models and a hash of the rows
    of every call. Enter a block in the process that fits private rows.
    """

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
        """Drop the printed output and log records of the calling thread.

        Not covered: threads that it starts, other processes, compiled code that writes
        to the terminal by itself, and warnings that are not printed inside the block.
        """
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


#: Blocks may overlap, also between threads.
autologging_off, muted = _Autologging().block, _Output().muted


def this_thread() -> tuple[int, int]:
    """Return the process and thread numbers of the calling thread."""
    return os.getpid(), threading.get_ident()


@contextmanager
def one_thread(limit: bool = True) -> Iterator[None]:
    """Give BLAS, OpenMP and torch one thread each, if `limit`.

    Small shards and networks gain nothing from threads, and several teachers would
    compete for the cores; the number of threads also changes the rounding, so that
    votes would depend on `n_jobs`. Set once in the thread that collects results, and
    for each teacher that is trained elsewhere.
    """
    if not limit:
        yield
        return
    controller = _controller(len(sys.modules))
    with (
        controller.select(user_api="openmp").limit(limits=1),  # of this thread only
        _ONE_THREAD.block(),
    ):
        yield


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    # The search takes milliseconds; new libraries come with new modules.
    return ThreadpoolController()


class _OneThread(SharedChange):
    """One thread of BLAS and torch, for all threads of this process."""

    def _begin(self, *, is_first: bool) -> None:
        if is_first:
            self._torch: Any = None
            blas = _controller(len(sys.modules)).select(user_api="blas")
            self._libraries = blas.lib_controllers
            self._let_any_thread_set()
            self._blas = blas.limit(limits=1)
        # By every block: torch may have been imported since the first one.
        if self._torch is None and "torch" in sys.modules:
            self._torch = sys.modules["torch"]
            self._torch_threads = self._torch.get_num_threads()
            self._torch.set_num_threads(1)

    def _undo(self) -> None:
        self._let_any_thread_set()
        self._blas.restore_original_limits()
        self._let_any_thread_set()
        if self._torch is not None:
            self._torch.set_num_threads(self._torch_threads)

    def _let_any_thread_set(self) -> None:
        # Since threadpoolctl 3.8 only the first thread that sets a limit can change it,
        # but here the last thread to leave restores it.
        for library in self._libraries:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


_ONE_THREAD = _OneThread()


@contextmanager
def quiet() -> Iterator[None]:
    """Compute with one thread, and without output, which may depend on a row."""
    with one_thread(), autologging_off(), muted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def no_output() -> Iterator[None]:
    """Suppress output, logs and warnings, which may depend on private rows."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            open(os.devnull, "w", encoding="utf-8") as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
            warnings.catch_warnings(),
            autologging_off(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)

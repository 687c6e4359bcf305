"""Limit of one thread a teacher."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

from sklearn_pate._estimators._shared_change import SharedChange

__all__ = ["one_thread", "this_thread"]


def this_thread() -> tuple[int, int]:
    """Return the process and thread numbers of the calling thread."""
    return os.getpid(), threading.get_ident()


@contextmanager
def one_thread(limit: bool = True) -> Iterator[None]:
    """Give BLAS, OpenMP and torch one thread each, if `limit`.

    Small shards gain nothing from threads, and several teachers would compete for the
    cores; the number of threads also changes the rounding, so that votes would depend
    on `n_jobs`. Set once in the thread that collects results, and for each teacher that
    is trained elsewhere.
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
        if not is_first:
            return
        self._torch: Any = sys.modules.get("torch")
        self._torch_threads = self._torch and self._torch.get_num_threads()
        blas = _controller(len(sys.modules)).select(user_api="blas")
        self._libraries = blas.lib_controllers
        self._let_any_thread_set()
        self._blas = blas.limit(limits=1)
        if self._torch is not None:
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

"""One thread a teacher."""

import os
import sys
import threading
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

from sklearn_pate._estimators._shared_change import SharedChange

__all__ = ["one_thread", "this_thread"]


def this_thread():
    """Identify the calling thread on this machine.

    Returns
    -------
    identity : tuple of (int, int)
        Process and thread.
    """
    return os.getpid(), threading.get_ident()


@contextmanager
def one_thread(limit=True):
    """Give BLAS, OpenMP and torch one thread each.

    Small shards gain nothing from threads and lose much when several teachers compete
    for the cores; and the number of threads would change the rounding, so that votes
    would depend on `n_jobs`. Set once in the thread that polls, and for each teacher
    that is trained elsewhere.

    Parameters
    ----------
    limit : bool, default=True
        False does nothing.
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
def _controller(n_modules):
    # Looking for the libraries takes milliseconds; new ones come with new modules.
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

    def _let_any_thread_set(self):
        # From threadpoolctl 3.8 on, the first thread that sets a limit is the only one
        # whose calls have an effect. Here the last one to leave restores.
        for library in self._libraries:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


_ONE_THREAD = _OneThread()

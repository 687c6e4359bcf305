"""Changes to the whole process that overlapping blocks share."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["SharedChange"]


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

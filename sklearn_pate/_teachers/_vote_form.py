"""Form of the contributions of teachers, and votes as such a form."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._estimators._class_codes import read_codes

__all__ = ["Contribution", "Form", "VoteForm"]


Contribution: TypeAlias = NDArray[Any] | tuple[NDArray[Any] | None, ...]


class Form(Protocol):
    """Form of a teacher's contribution."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def read(self, teacher: Any, X_public: Any) -> Contribution:
        """Return the contribution of a teacher, which may modify these rows."""

    def constant(self, code: int, n_public: int) -> Contribution:
        """Return the contribution of a teacher of a single class."""


@dataclass(frozen=True)
class VoteForm:
    """Votes: a class index for each public row, -1 for an abstention."""

    n_classes: int

    def read(self, teacher: Any, X_public: Any) -> NDArray[np.signedinteger]:
        """Return the predictions of a fitted teacher; invalid ones are abstentions."""
        codes = read_codes(teacher.predict(X_public), X_public.shape[0], self.n_classes)
        return codes.astype(self._dtype)

    def constant(self, code: int, n_public: int) -> NDArray[np.signedinteger]:
        """Return votes for one class."""
        return np.full(n_public, code, dtype=self._dtype)

    @property
    def _dtype(self) -> np.dtype[Any]:
        # Signed, for -1 .. n_classes - 1.
        return np.min_scalar_type(-self.n_classes)

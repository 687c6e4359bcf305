"""Scores of a teacher on public rows, as coefficients in a public basis."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from sklearn_pate._estimators._class_codes import in_all_classes, read_codes
from sklearn_pate.accounting._counted import counted

__all__ = ["ScoreForm"]


@dataclass(frozen=True)
class ScoreForm:
    """Coefficients of a teacher's score function in a public basis.

    The score function is p(x) - 1/K for class probabilities p. `basis` has its
    functions at public rows, shape (n_public, n_coordinates), with basis' basis /
    n_public = I.
    """

    n_classes: int
    basis: NDArray[np.float64]

    def read(self, teacher: Any, X_public: Any) -> NDArray[np.float64]:
        """Return coefficients of shape (n_coordinates, n_classes - 1)."""
        if not hasattr(teacher, "predict_proba"):
            codes = read_codes(
                teacher.predict(X_public), len(self.basis), self.n_classes
            )
            # A row without a class index has no scores.
            return self._project(self._one_hot(codes), codes >= 0)
        probabilities = in_all_classes(
            np.asarray(teacher.predict_proba(X_public), dtype=np.float64),
            teacher,
            self.n_classes,
            absent=0.0,
        )
        shape = len(self.basis), self.n_classes
        if probabilities.shape != shape or not np.all(np.isfinite(probabilities)):
            raise ValueError(
                f"predict_proba returned shape {probabilities.shape} for "
                f"{counted(shape[0], 'row')} and {shape[1]} classes, or values that "
                "are not finite"
            )
        return self._project(probabilities)

    def constant(self, code: int, n_public: int) -> NDArray[np.float64]:
        """Return the coefficients of a teacher of a single class."""
        return self._project(self._one_hot(np.full(n_public, code)))

    def _one_hot(self, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        return (codes[:, np.newaxis] == np.arange(self.n_classes)).astype(np.float64)

    def _project(
        self,
        probabilities: NDArray[Any],
        known: NDArray[np.bool_] | bool = True,
    ) -> NDArray[np.float64]:
        scores = (probabilities - 1 / self.n_classes) * np.reshape(known, (-1, 1))
        return self.basis.T @ scores @ helmert(self.n_classes).T / len(self.basis)

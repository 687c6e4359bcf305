"""Form of the answers of teachers: votes."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._estimators._class_codes import read_codes

__all__ = ["Contribution", "Form", "VoteForm"]


Contribution: TypeAlias = NDArray[Any] | tuple[NDArray[Any] | None, ...]


class Form(Protocol):
    """What teachers are asked for, and how it is read."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def read(self, teacher: Any, X_public: Any) -> Contribution:
        """Ask a fitted teacher, who may modify its copy of the public rows."""

    def constant(self, code: int, n_public: int) -> Contribution:
        """Return what a teacher of a single class answers."""


@dataclass(frozen=True)
class VoteForm:
    """What a teacher is asked for: a class index for each public row.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    """

    n_classes: int

    def read(self, teacher, X_public):
        """Ask a fitted teacher.

        Parameters
        ----------
        teacher : classifier
            Fitted on class indices.

        X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
            Public rows, for this teacher to do with as it likes.

        Returns
        -------
        votes : ndarray of int of shape (n_public,)
            Class indices; anything else that it says is an abstention.
        """
        n_public = X_public.shape[0]
        return self.of_predictions(teacher.predict(X_public), n_public)

    def of_predictions(self, predicted, n_public):
        """Make votes of predictions.

        Parameters
        ----------
        predicted : array-like of shape (n_public,) or (n_public, 1)
            What a teacher predicted.

        n_public : int
            Number of public rows.

        Returns
        -------
        votes : ndarray of int of shape (n_public,)
            Class indices; anything else is an abstention.

        Raises
        ------
        ValueError
            If there is not one number a row.
        """
        codes = read_codes(predicted, n_public, self.n_classes)
        return codes.astype(self._dtype)

    def constant(self, code, n_public):
        """Return what a teacher says that knows one class only.

        Parameters
        ----------
        code : int
            Index of the class.

        n_public : int
            Number of public rows.

        Returns
        -------
        votes : ndarray of int of shape (n_public,)
            That class.
        """
        return np.full(n_public, code, dtype=self._dtype)

    @property
    def _dtype(self):
        # Signed, and holds -1 .. n_classes - 1.
        return np.min_scalar_type(-self.n_classes)

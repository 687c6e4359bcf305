"""Public basis of score functions, computed from public rows only."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist, pdist
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_random_state

__all__ = ["ScoreBasis"]

# Singular values below this share of the largest one are round-off.
_NEGLIGIBLE = 1e-6
_MOST_LANDMARKS = 1000
# Rows that the median distance is computed from.
_ROWS_FOR_DISTANCE = 1000
_ROWS_AT_ONCE = 5000


class ScoreBasis(TransformerMixin, BaseEstimator):
    """Functions of a row, orthonormal over public rows, in a fixed order.

    The constant, the principal components of the rows, and with `rbf` functions of the
    distances to public rows, from smooth to rough; each without what earlier ones hold.
    Fitted on public rows only, so that it has no privacy cost.

    Parameters
    ----------
    max_coordinates : int
        Largest number of functions, the constant included.

    rbf : bool
        Whether functions of distances follow the principal components. They hold public
        rows as landmarks.

    random_state : int, default=None
        Seed of the choice of landmarks.

    rows_per_coordinate : int, default=1
        Smallest number of rows for each function.

    Attributes
    ----------
    n_coordinates_ : int
        Number of functions.

    landmarks_ : ndarray of shape (n_landmarks, n_features) or None
        Public rows that distances are computed to.

    Notes
    -----
    With B the matrix of the functions at m public rows, B'B / m = I. Functions of
    distances are those of Nystroem's method (Williams, Seeger 2001) for the kernel
    exp(-gamma d^2), with gamma three times the inverse of the median squared distance.
    """

    def __init__(
        self,
        max_coordinates: int,
        rbf: bool,
        random_state: Any = None,
        rows_per_coordinate: int = 1,
    ) -> None:
        self.max_coordinates = max_coordinates
        self.rbf = rbf
        self.random_state = random_state
        self.rows_per_coordinate = rows_per_coordinate

    def fit(self, X: Any, y: None = None) -> Self:
        """Compute the functions from public rows.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_public, n_features)
            Public rows as finite numbers.

        y : None
            Not used.

        Returns
        -------
        self : ScoreBasis
            Fitted.
        """
        X = _dense(X)
        self._most = min(self.max_coordinates, 1 + len(X) // self.rows_per_coordinate)
        self.mean_ = X.mean(axis=0)
        centred = X - self.mean_
        _, singular, directions = np.linalg.svd(centred, full_matrices=False)
        kept = singular > _NEGLIGIBLE * max(singular.max(initial=0), 1e-300)
        directions = directions[kept][: self._most - 1].T
        self.landmarks_: NDArray[np.float64] | None = None
        kernel_weights = np.zeros((0, 0))
        if self.rbf and kept.any() and kept.sum() + 1 < self._most:
            kernel_weights = self._choose_landmarks(X)
        self._orthogonalise(X, directions, kernel_weights)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Compute the functions of each row.

        The last bits of a row's values depend on its position and the number of rows.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_rows, n_features)
            Rows as finite numbers.

        Returns
        -------
        values : ndarray of shape (n_rows, n_coordinates_)
            The first column is 1.
        """
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        parts = [
            self._values(_dense(X[start : start + _ROWS_AT_ONCE]))
            for start in range(0, X.shape[0], _ROWS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.ones((0, self.n_coordinates_))

    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        values = self.intercept_ + (X - self.mean_) @ self.linear_weights_
        if self.landmarks_ is not None:
            values += self._kernel(X, self.landmarks_) @ self.landmark_weights_
        return values

    def _choose_landmarks(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Choose public rows, and the weights of their kernel's eigenvectors."""
        random_state = check_random_state(self.random_state)
        order = random_state.permutation(len(X))
        squared = pdist(X[order[:_ROWS_FOR_DISTANCE]], "sqeuclidean")
        median = float(np.median(squared[squared > 0])) if squared.any() else 1.0
        self.gamma_ = 3 / median
        landmarks = np.unique(X[order[:_MOST_LANDMARKS]], axis=0)
        kernel = self._kernel(landmarks, landmarks)
        values, vectors = np.linalg.eigh(kernel)
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > _NEGLIGIBLE * values[0]
        kept[self._most :] = False
        self.landmarks_ = landmarks
        return vectors[:, kept] / np.sqrt(values[kept])

    def _kernel(
        self, X: NDArray[np.float64], landmarks: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return np.exp(-self.gamma_ * cdist(X, landmarks, "sqeuclidean"))

    def _orthogonalise(
        self,
        X: NDArray[np.float64],
        directions: NDArray[np.float64],
        kernel_weights: NDArray[np.float64],
    ) -> None:
        """Make the functions orthonormal, each by those before it."""
        parts = [np.ones((len(X), 1)), (X - self.mean_) @ directions]
        if self.landmarks_ is not None:
            parts.append(self._kernel(X, self.landmarks_) @ kernel_weights)
        features = np.hstack(parts)
        scales = np.sqrt(np.mean(features**2, axis=0))
        scales[scales == 0] = 1
        # A function that earlier ones hold almost wholly would be mostly round-off.
        triangle = np.linalg.qr(features / scales, mode="r") / np.sqrt(len(X))
        own = np.abs(np.diag(triangle)) > np.sqrt(_NEGLIGIBLE)
        kept = np.flatnonzero(own)[: self._most]
        triangle = np.linalg.qr(features[:, kept] / scales[kept], mode="r")
        inverse = solve_triangular(triangle / np.sqrt(len(X)), np.eye(len(kept)))
        inverse *= np.sign(np.diag(triangle))
        weights = np.zeros((features.shape[1], len(kept)))
        weights[kept] = inverse / scales[kept, np.newaxis]
        n_linear = 1 + directions.shape[1]
        self.intercept_ = weights[0]
        self.linear_weights_ = directions @ weights[1:n_linear]
        self.landmark_weights_ = kernel_weights @ weights[n_linear:]
        self.n_coordinates_ = len(kept)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _dense(X: Any) -> NDArray[np.float64]:
    return X.toarray() if sp.issparse(X) else np.asarray(X)

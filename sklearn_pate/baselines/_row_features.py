"""Features of private rows, each of which is a function of that row alone."""

import contextlib
import warnings
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._hooks import autologging_off, muted
from sklearn_pate._inputs._odd_rows import finite_or_default, is_frame
from sklearn_pate._teachers._threads import one_thread
from sklearn_pate.students.queries._row_similarity import numeric_features

__all__ = ["RowFeatures"]

# Public rows on which a representation is tried, and how far their features may be from
# those of the rows together, as a share of the largest feature.
_N_TRIED, _TOLERANCE = 8, 1e-3


class RowFeatures:
    """Compute features one row at a time.

    Parameters
    ----------
    representation : transformer or None
        Fitted on public rows. It is copied, so that what is published has not seen a
        private row.

    Notes
    -----
    A matrix product of many rows is cut into blocks, and the last bits of a row's
    features depend on its place in them: with one row more, hundreds of other rows
    change, and votes that no proof counts. A single row has one place. Each array row
    is copied as float64 into the same memory and transformed there, by one thread; each
    row of a frame or sparse matrix is cut out with the types of its columns.

    Where no finite features of a private row can be computed, it takes the default in
    their place: an error would tell about that row.
    """

    def __init__(self, representation: Any) -> None:
        self._representation = deepcopy(representation)
        self._memory: NDArray[np.float64] | None = None

    def check(self, X_public: Any, features: NDArray[np.float64]) -> None:
        """Try the representation on single public rows.

        Parameters
        ----------
        X_public : {ndarray, csr matrix, dataframe} of shape (n_public, n_features)
            Public rows.

        features : ndarray of shape (n_public, n_dimensions)
            What the representation makes of them together.

        Raises
        ------
        ValueError
            If it takes no single row, makes other features of a row the next time, or
            makes others of a row alone than of a row among others.
        """
        if self._representation is None:
            return
        tried = np.unique(np.linspace(0, len(features) - 1, _N_TRIED).astype(int))
        try:
            with _quiet():
                first = np.array([self._of_row(X_public, row) for row in tried])
                again = np.array([self._of_row(X_public, row) for row in tried[::-1]])
        except Exception as error:
            raise ValueError(
                f"representation={self._representation!r} cannot transform one row of "
                "float64 alone, as each private row has to be; use one that can, or "
                "put a FunctionTransformer that casts the row in front of it. Its "
                f"error on a public row was {type(error).__name__}: {error}"
            ) from error
        together = features[tried]
        size = np.abs(features).max(initial=0.0)
        if (
            first.shape != together.shape
            or not np.array_equal(first, again[::-1])
            or not np.allclose(first, together, rtol=0, atol=_TOLERANCE * size)
        ):
            raise ValueError(
                f"representation={self._representation!r} makes features of a public "
                "row that depend on other rows or on earlier calls; use one that makes "
                "the same features of a row each time, whatever rows are beside it."
            )

    def of_rows(
        self, X: Any, rows: NDArray[np.intp], default: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute the features of private rows.

        Parameters
        ----------
        X : {ndarray, csr matrix, dataframe} of shape (n_rows, n_features)
            Private rows.

        rows : ndarray of int of shape (n_wanted,)
            Which of them.

        default : ndarray of shape (n_dimensions,)
            Public features, for rows of which no finite ones can be computed.

        Returns
        -------
        features : ndarray of float64 of shape (n_wanted, n_dimensions)
            As sensitive as the rows.
        """
        with _quiet():
            if self._representation is None:
                # Each number is converted alone, whichever others there are.
                with contextlib.suppress(Exception):
                    features = np.asarray(_safe_indexing(X, rows), dtype=np.float64)
                    return finite_or_default(features.reshape(len(rows), -1), default)
            return np.array([self._or_default(X, row, default) for row in rows])

    def _or_default(
        self, X: Any, row: int, default: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the features of a row, or the default."""
        try:
            features = self._of_row(X, row)
        except Exception:
            return default
        return features if features.shape == default.shape else default

    def _of_row(self, X: Any, row: int) -> NDArray[np.float64]:
        """Return the features of one row, finite."""
        alone = self._alone(X, row)
        if self._representation is not None:
            alone = self._representation.transform(alone)
        features = numeric_features(alone)
        if features is None or len(features) != 1:
            raise ValueError("the row has no finite numbers as features")
        # A transformer may return the memory that it was given.
        return features[0].copy()

    def _alone(self, X: Any, row: int) -> Any:
        """Return one row as a table of its own."""
        if is_frame(X) or not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
            return _safe_indexing(X, [int(row)])  # polars takes no other
        if self._memory is None:
            self._memory = np.empty((1, *X.shape[1:]))
        self._memory[0] = X[row]
        return self._memory


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Compute on one thread, and let nothing out that may tell of a row."""
    with (
        one_thread(),
        autologging_off(),
        muted(),
        np.errstate(all="ignore"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield

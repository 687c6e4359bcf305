"""Features of private rows, each computed from that row alone."""

import contextlib
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sklearn_pate._aggregation._prepared_rows import seconds_a_row, warn_if_slow
from sklearn_pate._estimators._class_codes import keeps_rows_apart
from sklearn_pate._estimators._isolation import quiet
from sklearn_pate._inputs._odd_values import finite_or_default, is_frame
from sklearn_pate.students._queries import numeric_features

# Number of public rows on which a representation is tried, and largest difference of
# features from those of all rows together, as a share of the largest feature.
_N_TRIED, _TOLERANCE = 8, 1e-3


class RowFeatures:
    """Features that a representation, fitted on public rows, computes row by row.

    The representation is copied, so that the published one has had no private row.

    A matrix product of many rows is computed in blocks, and the last bits of the
    features of a row depend on its place in them: an added row changes hundreds of
    other rows, and more votes than the proof allows. So each array row is copied as
    float64 into the same memory and transformed there, by one thread; each row of a
    frame or sparse matrix is taken with the types of its columns. Only where
    `keeps_rows_apart`, all are transformed at once.

    A private row without finite features gets default features: an error would depend
    on that row.
    """

    def __init__(self, representation: Any) -> None:
        self._representation = deepcopy(representation)
        self._memory: NDArray[np.float64] | None = None

    def check(self, X_public: Any, features: NDArray[np.float64]) -> None:
        """Raise ValueError if public rows alone have other features than together.

        `features` are those of all rows of `X_public` together.
        """
        if self._representation is None or keeps_rows_apart(self._representation):
            return
        tried = np.unique(np.linspace(0, len(features) - 1, _N_TRIED).astype(int))
        try:
            with quiet(), np.errstate(all="ignore"):
                first = np.array([self._of_row(X_public, row) for row in tried])
                again = np.array([self._of_row(X_public, row) for row in tried[::-1]])
                seconds = seconds_a_row(partial(self._of_row, X_public), tried)
        except Exception as error:
            raise ValueError(
                f"representation={self._representation!r} cannot transform a single "
                "row of float64, as private rows require. Use another, or put a "
                "FunctionTransformer that casts the row in front of it. Its error on "
                f"a public row was {type(error).__name__}: {error}"
            ) from error
        together = features[tried]
        size = np.abs(features).max(initial=0.0)
        if (
            first.shape != together.shape
            or not np.array_equal(first, again[::-1])
            or not np.allclose(first, together, rtol=0, atol=_TOLERANCE * size)
        ):
            raise ValueError(
                f"representation={self._representation!r} computes features of a "
                "public row that depend on other rows or earlier calls; use one that "
                "computes the same features of a row each time, from that row alone."
            )
        warn_if_slow(self._representation, seconds)

    def of_rows(
        self, X: Any, rows: NDArray[np.intp], default: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute the features of private rows, or `default` where they are not finite.

        `rows` are indices; `default` has shape (n_dimensions,). Sensitive.
        """
        with quiet(), np.errstate(all="ignore"):
            if self._representation is None:
                # Each number is converted independently of others.
                with contextlib.suppress(Exception):
                    features = np.asarray(_safe_indexing(X, rows), dtype=np.float64)
                    return finite_or_default(features.reshape(len(rows), -1), default)
            if keeps_rows_apart(self._representation):
                return self._representation.transform(_safe_indexing(X, rows))
            return np.array([self._or_default(X, row, default) for row in rows])

    def _or_default(
        self, X: Any, row: int, default: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute the features of a row, or return the default."""
        try:
            features = self._of_row(X, row)
        except Exception:
            return default
        return features if features.shape == default.shape else default

    def _of_row(self, X: Any, row: int) -> NDArray[np.float64]:
        """Compute the finite features of one row."""
        alone = self._alone(X, row)
        if self._representation is not None:
            alone = self._representation.transform(alone)
        features = numeric_features(alone)
        if features is None or len(features) != 1:
            raise ValueError("the row has no finite numbers as features")
        # A transformer may return the memory that it was given.
        return features[0].copy()

    def _alone(self, X: Any, row: int) -> Any:
        """Return one row as a table."""
        if is_frame(X) or not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
            return _safe_indexing(X, [int(row)])  # polars takes no other
        if self._memory is None:
            self._memory = np.empty((1, *X.shape[1:]))
        self._memory[0] = X[row]
        return self._memory

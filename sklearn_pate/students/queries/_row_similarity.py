"""Public rows as numeric features, in which similar rows are near each other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["numeric_features", "standardized_features"]

_MOST_DIMENSIONS = 50


def numeric_features(X: Any) -> NDArray[np.float64] | None:
    """Convert rows to finite numbers of shape (n_rows, n_dimensions), or return None.

    Images are flattened. Text, missing values and sparse matrices give None. Each row
    is converted on its own, so that the result is exactly as sensitive as X.
    """
    if sp.issparse(X):
        return None
    try:
        features = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return (
        features.reshape(len(features), -1) if np.all(np.isfinite(features)) else None
    )


def standardized_features(X: Any, seed: int) -> NDArray[np.float64] | None:
    """Convert public rows to standardized features, or return None.

    Where rows and columns are both more than 50, they are the first 50 principal
    components (Pearson 1901, "On lines and planes of closest fit to systems of points
    in space"). All rows must be public: features that depend on private rows would
    reveal them.
    """
    features = numeric_features(X)
    if features is None:
        return None
    steps = [StandardScaler()]
    if min(features.shape) > _MOST_DIMENSIONS:
        from sklearn.decomposition import PCA  # slow to import

        steps.append(PCA(_MOST_DIMENSIONS, random_state=seed))
    # Arrays, even if scikit-learn is configured to return dataframes.
    pipeline = make_pipeline(*steps).set_output(transform="default")
    return pipeline.fit_transform(features)

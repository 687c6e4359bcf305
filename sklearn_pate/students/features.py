"""Public rows as numbers, in which rows that look alike are near."""

import numpy as np
from scipy import sparse as sp
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["numeric_features", "standardized_features"]

_MOST_DIMENSIONS = 50


def numeric_features(X):
    """Return rows as finite numbers, or None.

    Parameters
    ----------
    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, ...)
        Rows.

    Returns
    -------
    features : ndarray of shape (n_rows, n_dimensions) or None
        None for text, missing values and sparse matrices.
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


def standardized_features(X, seed):
    """Return rows as numbers whose columns are on one scale, or None.

    Parameters
    ----------
    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, ...)
        Rows, all public.

    seed : int
        Seeds the principal components.

    Returns
    -------
    features : ndarray of shape (n_rows, n_dimensions) or None
        Standardized columns; where they are more than 50, their first 50 principal
        components. None for text, missing values and sparse matrices.
    """
    features = numeric_features(X)
    if features is None:
        return None
    steps = [StandardScaler()]
    if min(features.shape) > _MOST_DIMENSIONS:
        steps.append(PCA(_MOST_DIMENSIONS, random_state=seed))
    return make_pipeline(*steps).fit_transform(features)

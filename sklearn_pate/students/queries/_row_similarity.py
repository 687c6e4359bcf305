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

    Each row is read on its own, and nothing is learned from X: what comes back is
    exactly as sensitive as X.

    Parameters
    ----------
    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, ...)
        Rows. Images are flattened.

    Returns
    -------
    features : ndarray of float64 of shape (n_rows, n_dimensions) or None
        None for text, missing values and sparse matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.students.queries._row_similarity import numeric_features
    >>> numeric_features(np.zeros((5, 28, 28), dtype=np.uint8)).shape
    (5, 784)
    >>> numeric_features([["a"], ["b"]]) is None
    True
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

    Queries are chosen by these features. They cost no privacy, as they are learned
    from public rows alone; learned from private rows, too, they would tell about those
    in a way that no cost covers.

    Parameters
    ----------
    X : {ndarray, sparse matrix, dataframe} of shape (n_rows, ...)
        Rows, all public. Means, standard deviations and components are theirs.

    seed : int
        Seeds the principal components. It may be known to anyone.

    Returns
    -------
    features : ndarray of float64 of shape (n_rows, n_dimensions) or None
        Standardized columns, in units of their standard deviations; where rows and
        columns are both more than 50, the first 50 principal components of these. None
        for text, missing values and sparse matrices.

    Notes
    -----
    Principal components: Pearson (1901), "On lines and planes of closest fit to systems
    of points in space". Of large arrays scikit-learn finds them from random directions
    (Halko, Martinsson, Tropp 2011, "Finding structure with randomness").

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.students.queries._row_similarity import standardized_features
    >>> standardized_features(np.array([[20, 10_000], [40, 50_000]]), seed=0)
    array([[-1., -1.],
           [ 1.,  1.]])
    >>> images = np.random.RandomState(0).uniform(size=(100, 28, 28))
    >>> standardized_features(images, seed=0).shape
    (100, 50)
    """
    features = numeric_features(X)
    if features is None:
        return None
    steps = [StandardScaler()]
    if min(features.shape) > _MOST_DIMENSIONS:
        steps.append(PCA(_MOST_DIMENSIONS, random_state=seed))
    # Arrays, whatever scikit-learn is configured to return.
    pipeline = make_pipeline(*steps).set_output(transform="default")
    return pipeline.fit_transform(features)

"""The wrapper that keeps public rows whole."""

from typing import Any

__all__ = ["PublicData"]


class PublicData:
    """Public rows, protected from being cut by cross-validation.

    ``GridSearchCV``, ``cross_validate``, ``CalibratedClassifierCV`` and others cut
    every array-like fit parameter that has as many rows as ``X``, so that a raw
    ``X_public`` may silently lose rows. A `PublicData` has no length and no shape:
    nobody cuts it.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_public, n_features)
        Rows that need no protection: the people in them are not covered by the privacy
        statement. Labels are not needed.

    Attributes
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_public, n_features)
        The rows as given, not copied.

    Examples
    --------
    >>> from sklearn_pate import PublicData
    >>> PublicData([[0.0, 1.0], [1.0, 0.0]])
    PublicData(<list>)
    """

    __slots__ = ("X",)

    X: Any

    def __init__(self, X: Any) -> None:
        if X is None:
            raise ValueError("PublicData(None) holds no rows; pass the public rows.")
        self.X = X.X if isinstance(X, PublicData) else X

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self  # clone() and searches would copy every public row otherwise

    def __repr__(self):
        shape = getattr(self.X, "shape", None)
        of_shape = f" of shape {tuple(shape)}" if shape is not None else ""
        return f"PublicData(<{type(self.X).__name__}{of_shape}>)"

"""Wrapper that protects public rows from being cut."""

from typing import Any, Self

__all__ = ["PublicData"]


class PublicData:
    """Container of public rows that cross-validation does not cut.

    ``GridSearchCV``, ``cross_validate``, ``CalibratedClassifierCV`` and others cut
    every array-like fit parameter that has as many rows as ``X``, so that an
    ``X_public`` passed as an array may lose rows without a warning. A `PublicData` has
    neither length nor shape, so that it stays whole.

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

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # clone() and searches would copy every public row otherwise

    def __repr__(self) -> str:
        shape = getattr(self.X, "shape", None)
        of_shape = f" of shape {tuple(shape)}" if shape is not None else ""
        return f"PublicData(<{type(self.X).__name__}{of_shape}>)"

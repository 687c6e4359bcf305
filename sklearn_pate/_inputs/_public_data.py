"""Public rows that cross-validation does not split."""

from collections.abc import Callable, Container
from functools import wraps
from inspect import signature
from typing import Any, Self, TypeVar, cast

__all__ = ["PublicData", "private_rows_by_position"]

Method = TypeVar("Method", bound=Callable[..., Any])


class PublicData:
    """Public rows that cross-validation does not split.

    ``GridSearchCV``, ``cross_validate``, ``CalibratedClassifierCV`` and others split
    every array-like fit parameter that has as many rows as ``X``, so that a plain
    ``X_public`` may lose rows without a warning. A `PublicData` has no length and no
    shape, and is passed on whole.

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


def private_rows_by_position(method: Method) -> Method:
    """Refuse weights of private rows, and other positional arguments than X and y."""

    @wraps(method)
    def checked(self: Any, X: Any, y: Any, *others: Any, **named: Any) -> Any:
        if others:
            name = method.__name__
            raise TypeError(
                f"{name} takes X and y by position and all else by name; write "
                f"{name}(X, y{_by_name(signature(self.fit).parameters)})."
            )
        if "sample_weight" in named:
            raise TypeError(
                f"{type(self).__name__} takes no sample_weight, as one private row "
                "must not count more than another; leave it out."
            )
        return method(self, X, y, **named)

    return cast(Method, checked)


def _by_name(parameters: Container[str]) -> str:
    """Write an argument of a `fit` with these parameters; all go to a search."""
    if "X_public" in parameters or "fit_params" in parameters:
        return ", X_public=PublicData(X_public)"
    return ", groups=groups" if "groups" in parameters else ""

"""Public rows that are private ones, in the same memory."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._column_types import numeric_columns
from sklearn_pate._inputs._odd_rows import is_frame

__all__ = ["check_not_private"]

# An exact answer may be slow for arrays with unusual strides; then it is not known.
_MOST_WORK = 10_000


def check_not_private(X_public: Any, X: Any) -> None:
    """Raise if public rows are the private ones: the same object, or the same memory.

    No value decides. Copies are not detected.
    """
    parts = zip(_parts(X), _parts(X_public), strict=False)
    if X_public is X or any(_share_memory(*both) for both in parts):
        raise ValueError(
            "X_public is X, or shares rows with it in memory: the people in these rows "
            "would not be protected, although the statement would say so. Pass rows of "
            "other people; or leave X_public out, and set "
            "synthetic=PrivateMarginals(domain), which protects all rows, or "
            "public_size=0.2, which leaves a random fifth of them unprotected."
        )


def _parts(X: Any) -> list[NDArray[Any]]:
    """List arrays in the memory of X, of a dataframe one for each column of numbers."""
    if sp.issparse(X):
        X = getattr(X, "data", None)
    elif is_frame(X):
        return [
            np.asarray(_safe_indexing(X, column, axis=1))
            for column in np.flatnonzero(numeric_columns(X)).tolist()
        ]
    return [X] if isinstance(X, np.ndarray) else []


def _share_memory(one: NDArray[Any], other: NDArray[Any]) -> bool:
    try:
        # numpy's stubs know -1 and 0 alone.
        return np.shares_memory(one, other, max_work=_MOST_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return False

"""What leaves the house with a pickle holds no estimator that somebody has fitted."""

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone

__all__ = ["with_unfitted"]


def with_unfitted(state: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Take a state with clones of what was passed to an estimator.

    Somebody may have fitted it since, on private rows and without a guarantee.

    Parameters
    ----------
    state : dict
        What is about to be pickled. Not changed.

    names : iterable of str
        Entries that may be, or hold, estimators. Missing ones are passed over.

    Returns
    -------
    state : dict
        With clones in their place, and copies of what is no estimator.
    """
    clones = {name: clone(state[name], safe=False) for name in names if name in state}
    return state | clones

"""Callbacks of scikit-learn, if the installed version has them."""

from collections.abc import Callable
from typing import Any

from sklearn.frozen import FrozenEstimator

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9 there is `verbose` only

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in without callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged."""
        return method


__all__ = ["CallbackSupportMixin", "drop_callbacks", "with_callbacks"]


def drop_callbacks(estimator: Any) -> Any:
    """Remove the callbacks of an estimator and of its parameters, in place.

    A clone shares them with the original, across processes too, and they may keep
    scores on the rows that it is fitted on. An estimator in a FrozenEstimator is the
    user's original, is not fitted, and keeps its callbacks.
    """
    params = estimator.get_params().values()
    frozen = [part for part in params if isinstance(part, FrozenEstimator)]
    kept = [id(part) for one in frozen for part in (one, one.estimator)]
    for part in (estimator, *params):
        if hasattr(part, "_skl_callbacks") and id(part) not in kept:
            part.set_callbacks()
    return estimator

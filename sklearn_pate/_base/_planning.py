"""The protocol of private estimators: to state a fit's price before it is made."""

from typing import Any

__all__ = ["plans_privacy"]


def plans_privacy(estimator: Any) -> bool:
    """Tell whether an estimator is private, and can say at what price.

    Parameters
    ----------
    estimator : object
        Anything.

    Returns
    -------
    plans : bool
        Whether it has ``plan_privacy(X, y, **fit_params)``, which returns the
        :class:`~sklearn_pate.PrivacySpent` that ``fit`` on the same would set.
        Whatever estimator has it keeps that promise: nothing else of its fit depends
        on private rows.
    """
    return callable(getattr(type(estimator), "plan_privacy", None))

"""Fits for audits, which charge no ledger."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from sklearn_pate._estimators._hooks import autologging_off
from sklearn_pate.accounting._statement import PrivacySpent, plans_privacy
from sklearn_pate.exceptions import StudentWarning

__all__ = ["cost_of_fit", "dense", "fit_without_ledger"]


def cost_of_fit(estimator: Any, **data: Any) -> PrivacySpent:
    """State the privacy cost of a fit on these data; raise if it cannot be stated."""
    if not plans_privacy(estimator):
        raise ValueError(
            f"estimator={estimator!r} cannot state its cost beforehand; pass one with "
            "plan_privacy, such as a PATEClassifier."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit repeats them
        return estimator.plan_privacy(**data)


def fit_without_ledger(estimator: Any, **data: Any) -> Any:
    """Fit a clone that charges no ledger; the result is as sensitive as the data.

    A ledger would recognise repeated fits, and the fits of an audit are not released.
    """
    with warnings.catch_warnings(), autologging_off():
        # The quality of the student does not matter here.
        warnings.simplefilter("ignore", StudentWarning)
        return clone(estimator).set_params(ledger=None).fit(**data)


def dense(X: Any) -> NDArray[Any]:
    """Return rows as a dense array, to count or compare them."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)

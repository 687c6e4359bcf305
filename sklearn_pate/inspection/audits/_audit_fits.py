"""Fits that are made to be attacked: they charge no ledger, and are thrown away."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from sklearn_pate._base._private_classifier import plans_privacy
from sklearn_pate._estimators._hooks import autologging_off
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.exceptions import StudentWarning

__all__ = ["dense", "fit_uncharged", "price_of_fit"]


def price_of_fit(estimator: Any, **data: Any) -> PrivacySpent:
    """State the price of a fit that may be attacked.

    Parameters
    ----------
    estimator : classifier
        That is to be fitted.

    **data : object
        Arguments of its ``fit``.

    Returns
    -------
    spent : PrivacySpent
        What the fit will claim.

    Raises
    ------
    ValueError
        If the estimator claims nothing, or cannot be fitted on the data.
    """
    if not plans_privacy(estimator):
        raise ValueError(
            f"estimator={estimator!r} cannot state its price beforehand; pass one with "
            "plan_privacy, such as a PATEClassifier."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit repeats them
        return estimator.plan_privacy(**data)


def fit_uncharged(estimator: Any, **data: Any) -> Any:
    """Fit a clone that charges no ledger.

    A ledger would recognise a fit that is repeated, and what an audit fits is not
    released.

    Parameters
    ----------
    estimator : classifier
        With a `ledger`, or None for it.

    **data : object
        Arguments of its ``fit``.

    Returns
    -------
    fitted : classifier
        As sensitive as the data, until its claim is known to hold.
    """
    # Its public part too: no price was charged for the answers.
    with warnings.catch_warnings(), autologging_off():
        # What the student makes of the answers does not matter here.
        warnings.simplefilter("ignore", StudentWarning)
        return clone(estimator).set_params(ledger=None).fit(**data)


def dense(X: Any) -> NDArray[Any]:
    """Return rows as a dense array, to count or compare them.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Rows.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
        The same.
    """
    return X.toarray() if sp.issparse(X) else np.asarray(X)

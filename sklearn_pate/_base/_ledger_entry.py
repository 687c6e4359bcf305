"""The ledger entry of a fit, and how the same fit is recognised."""

import math
import secrets
import sys
from numbers import Integral
from typing import Any, Protocol

import joblib
import numpy as np
from sklearn.base import clone

from sklearn_pate._base._release_plan import ReleasePlan
from sklearn_pate._estimators._hashing import estimator_hash, fingerprint
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting.ledger._entries import PrivacyCost
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger

__all__ = ["open_entry", "record_release"]

# They change how a fit is run, and nothing of what it releases.
WITHOUT_CONSEQUENCE = ("ledger", "memory", "n_jobs", "verbose")
# What is left is not suggested below this part of the epsilon that was wanted.
_SMALLEST_OF_USE = 0.1


class Releaser(Protocol):
    """A classifier whose release goes into a ledger."""

    ledger: PrivacyLedger | None
    epsilon: float | None
    random_state: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor parameters."""


def open_entry(
    estimator: Releaser, release: ReleasePlan, private: object, public: object
) -> FitEntry | None:
    """Open the ledger entry of a fit, and check that its cost fits the budget.

    Nothing is recorded before the first noise is drawn.

    Parameters
    ----------
    estimator : classifier
        Its `ledger` is charged; its parameters name the fit.

    release : ReleasePlan
        What the fit costs.

    private : object
        The private data, to recognise them by a keyed fingerprint.

    public : object
        All public data that decide the answers.

    Returns
    -------
    entry : FitEntry or None
        None without a ledger.

    Raises
    ------
    BudgetExceededError
        If the cost does not fit the budget; nothing was recorded.
    """
    ledger, spent = estimator.ledger, release.statement
    if ledger is None:
        return None
    description = (
        f"{spent.n_queries} queries to {spent.n_teachers} teachers, {spent.mechanism}"
    )
    data = joblib.hash(private)
    cost = PrivacyCost(
        spent.curve,
        spent.delta,
        spent.unit,
        spent.relation,
        description,
        fingerprint(ledger.key, "data", data),
        _name_of_fit(estimator, ledger.key, data, public, spent),
    )
    entry = FitEntry(
        ledger,
        cost,
        release.n_queries,
        remedy=lambda: _what_fits(ledger, estimator.epsilon, release),
    )
    entry.check()
    return entry


def record_release(
    ledger: PrivacyLedger | None, spent: PrivacySpent, private: object
) -> None:
    """Record the cost of a release that is drawn at once, before any noise is drawn.

    Every release is a new one, the same fit run again included. Without a ledger
    nothing is recorded.

    Raises
    ------
    BudgetExceededError
        If the cost does not fit the budget; nothing was recorded.
    """
    if ledger is not None:
        ledger.charge(
            spent.curve,
            delta=spent.delta or ledger.delta,
            unit=spent.unit,
            relation=spent.relation,
            description=spent.mechanism,
            dataset=fingerprint(ledger.key, "data", joblib.hash(private)),
            fit=secrets.token_hex(32),
        )


def _name_of_fit(
    estimator: Releaser, key: bytes, data: str, public: object, spent: PrivacySpent
) -> str:
    """Name everything that decides the answers, by a keyed fingerprint."""
    # None or a RandomState would draw other shards and teachers the next time.
    if isinstance(estimator.random_state, Integral):
        parameters = clone(estimator).get_params(deep=False)
        for name in WITHOUT_CONSEQUENCE:
            parameters.pop(name, None)
        parameters["random_state"] = int(estimator.random_state)
        try:
            of_parameters = estimator_hash(type(estimator), parameters)
        except Exception:  # it cannot be told from another: every run is a new one
            pass
        else:
            version = sys.modules["sklearn_pate"].__version__
            of_cost = joblib.hash((spent.curve, spent.to_dict(), version))
            of_public = joblib.hash(public)
            return fingerprint(key, "fit", data, of_public, of_parameters, of_cost)
    return secrets.token_hex(32)


def _what_fits(
    ledger: PrivacyLedger, epsilon: float | None, release: ReleasePlan
) -> str:
    """Say which change of a parameter would bring the cost within the budget."""
    spent, n_queries, n_values = release.statement, release.n_queries, release.n_values
    share, left = ledger.shares(spent.curve)
    if not np.isfinite(share):
        return ""
    affordable = max(left, 0.0) / share
    if epsilon is None:
        # Costs add up over queries; a cap on the answers makes each of fewer cost more.
        n_affordable = math.floor(n_queries * affordable)
        while n_affordable > 0 and not ledger.fits(
            release.mechanism.account_curve(n_affordable, n_values)
        ):
            n_affordable -= max(n_affordable // 50, 1)
        if n_affordable == 0:
            return "With this noise not one query would fit; use more noise."
        return f"n_queries={n_affordable} would fit, or more noise."
    # More noise makes the curve lower at all orders, nearly alike.
    fitting = (spent.curve * min(affordable, 1.0)).quiet_epsilon(spent.delta)
    while fitting > _SMALLEST_OF_USE * epsilon:
        digits = 2 - math.floor(math.log10(fitting))
        fitting = math.floor(fitting * 10**digits) / 10**digits
        curve = release.calibrated(fitting).account_curve(n_queries, n_values)
        if ledger.fits(curve):
            return f"epsilon={fitting:g} would fit."
        share, left = ledger.shares(curve)
        fitting *= 0.999 * math.sqrt(max(left, 0.0) / share)  # as for Gaussian noise
    return "Next to nothing is left, and no fit of use would be within it."

"""Ledger entry of a fit, and the fingerprint that identifies the fit."""

import secrets
import sys
from bisect import bisect_left
from numbers import Integral
from typing import Any, Protocol

import joblib
import numpy as np
from sklearn.base import clone

from sklearn_pate._base._release_plan import ReleasePlan
from sklearn_pate._estimators._hashing import estimator_hash, fingerprint
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting.ledger._entries import PrivacyCost
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.accounting.ledger._fitting_epsilon import (
    fitting_epsilon,
    least_useful,
)
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger

__all__ = ["open_entry", "record_release"]

# Parameters without an effect on the release.
WITHOUT_CONSEQUENCE = ("ledger", "memory", "n_jobs", "verbose")


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
    """Open the ledger entry of a fit, None without a ledger.

    Nothing is recorded before the first noise is drawn. Raises BudgetExceededError if
    the cost exceeds the budget. `private` is identified by a keyed fingerprint;
    `public` is all public data that decide the answers.
    """
    ledger, spent = estimator.ledger, release.statement
    if ledger is None:
        return None
    queries = counted(spent.n_queries, "query")
    teachers = counted(spent.n_teachers, "teacher")
    released = {
        "scores": f"mean scores of {teachers}",
        "newton": f"logistic regression from {spent.unit}s",
    }.get(spent.release, f"{queries} to {teachers}")
    if spent.n_tables is not None:
        released = (
            f"noisy counts of {counted(spent.n_tables, 'column')}, then {released}"
        )
    description = f"{released}, {spent.mechanism}"
    data = joblib.hash(private)
    cost = PrivacyCost(
        spent.curve,
        spent.delta,
        spent.unit,
        spent.relation,
        description,
        fingerprint(ledger.key, "data", data),
        _name_of_fit(estimator, ledger.key, data, public, spent),
        spent.profile,
    )
    entry = FitEntry(
        ledger,
        cost,
        release.n_draws,
        remedy=lambda: _remedy(ledger, estimator.epsilon, release),
    )
    entry.check()
    return entry


def record_release(
    ledger: PrivacyLedger | None, spent: PrivacySpent, private: object
) -> None:
    """Record the cost of a release before its noise, or raise BudgetExceededError.

    Every release is a new one, also when the same fit runs again.
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
            profile=spent.profile,
        )


def _name_of_fit(
    estimator: Releaser, key: bytes, data: str, public: object, spent: PrivacySpent
) -> str:
    """Compute a keyed fingerprint of everything that decides the answers."""
    # None or a RandomState draws other shards and teachers in the next fit.
    if isinstance(estimator.random_state, Integral):
        parameters = clone(estimator).get_params(deep=False)
        for name in WITHOUT_CONSEQUENCE:
            parameters.pop(name, None)
        parameters["random_state"] = int(estimator.random_state)
        try:
            of_parameters = estimator_hash(type(estimator), parameters)
        except Exception:  # no hash, so that every fit is a new one
            pass
        else:
            version = sys.modules["sklearn_pate"].__version__
            of_cost = joblib.hash((spent.curve, spent.to_dict(), version))
            of_public = joblib.hash(public)
            return fingerprint(key, "fit", data, of_public, of_parameters, of_cost)
    return secrets.token_hex(32)


def _remedy(ledger: PrivacyLedger, epsilon: float | None, release: ReleasePlan) -> str:
    """Return advice for a fit that exceeds the budget."""
    of_search = (
        "Each fit of a search is charged; sklearn_pate.inspection.plan_search(search, "
        "X, y, X_public=...) compares all of them with the budget before the first, "
        "and names an epsilon that fits."
    )
    advice = [_what_fits(ledger, epsilon, release)]
    return " ".join([*advice, of_search] if ledger.entries() else advice).strip()


def _what_fits(
    ledger: PrivacyLedger, epsilon: float | None, release: ReleasePlan
) -> str:
    """Suggest a parameter whose cost is within the budget."""
    spent, n_queries = release.statement, release.n_queries
    share, left = ledger.budget_fractions(spent.curve)
    if not 0 < share < np.inf:
        return ""
    if left <= 0:
        return "Nothing is left in this ledger."
    if epsilon is None:

        def exceeds(n_queries: int) -> bool:
            other = release.restated(release.accounted, n_queries)
            return not ledger.fits(other.curve, other.profile)

        n_affordable = bisect_left(range(1, n_queries), True, key=exceeds)
        if n_affordable == 0:
            return "With this noise no query would fit; use more noise."
        return f"n_queries={n_affordable} would fit, or more noise."
    if ledger.entries():
        # More noise makes the curve lower at all orders, nearly alike.
        scale = min(max(left, 0.0) / share, 1.0)
        first = (spent.curve * scale).quiet_epsilon(spent.delta)
    else:
        first = min(ledger.epsilon, epsilon)

    def excess(epsilon: float) -> float:
        other = release.restated(release.calibrated(epsilon), n_queries)
        if ledger.fits(other.curve, other.profile):
            return 0.0
        share, left = ledger.budget_fractions(other.curve)
        return share / left if left > 0 else np.inf

    least = least_useful(epsilon, ledger.epsilon)
    affordable = fitting_epsilon(first, least, excess)
    if affordable is None:
        return f"Almost nothing is left; an epsilon below {least:g} may fit."
    return f"epsilon={affordable:g} would fit."

"""What a fit owes to its ledger, and how it is recognised when it is run again."""

import math
import secrets
import sys
from numbers import Integral

import joblib
import numpy as np
from sklearn.base import clone

from sklearn_pate._estimators._hashing import estimator_hash, fingerprint
from sklearn_pate.accounting.ledger._entries import Price
from sklearn_pate.accounting.ledger._fit_entry import FitAccount

__all__ = ["charge_release", "open_account"]

# They change how a fit is run, and nothing of what it releases.
WITHOUT_CONSEQUENCE = ("ledger", "memory", "n_jobs", "verbose")
# What is left is not suggested below this part of the epsilon that was wanted.
_SMALLEST_OF_USE = 0.1


def open_account(
    pate,
    mechanism,
    private,
    public,
    *,
    n_queries,
    n_values,
    clusters,
    n_teachers,
    prepare,
):
    """Open the account of one fit at its ledger, and see that its price fits.

    Parameters
    ----------
    pate : TaughtClassifier
        Its parameters are read.

    mechanism : PricedMechanism
        With all its numbers.

    private : PrivateInputs, Votes or Knowledge
        What the fit is about.

    public : PublicInputs
        Public rows and classes.

    n_queries : int
        How many questions are asked.

    n_values : int
        How many values a question has: the number of classes.

    clusters : Clusters or None
        Public rows that a question is about.

    n_teachers : int
        How many teachers are asked.

    prepare : callable
        Makes the mechanism that another epsilon would take.

    Returns
    -------
    account : FitAccount or None
        None without a ledger.

    Raises
    ------
    BudgetExceededError
        If the price does not fit the budget; nothing was charged.
    """
    if pate.ledger is None:
        return None
    curve = mechanism.charged_curve(n_queries, n_values)
    description = (
        f"{n_queries} questions to {n_teachers} teachers, {mechanism.in_one_line()}"
    )
    key = pate.ledger.key
    data = joblib.hash(private.content())
    price = Price(
        curve,
        float(pate.delta),
        public.unit,
        public.relation,
        description,
        fingerprint(key, "data", data),
        _name_of_fit(key, pate, data, public, clusters, (curve, description)),
    )
    account = FitAccount(
        pate.ledger,
        price,
        n_queries,
        remedy=lambda: _what_fits(pate, mechanism, n_queries, n_values, prepare),
    )
    account.check()
    return account


def charge_release(ledger, spent, content):
    """Charge a release that is drawn at once, before any noise is.

    Parameters
    ----------
    ledger : PrivacyLedger or None
        None charges nothing.

    spent : PrivacySpent
        Its price. Every release is a new one, the same fit run again included.

    content : object
        The private data, to name them by a keyed fingerprint.

    Raises
    ------
    BudgetExceededError
        If it does not fit the budget; nothing was charged.
    """
    if ledger is not None:
        ledger.charge(
            spent.curve,
            delta=spent.delta or ledger.delta,
            unit=spent.unit,
            relation=spent.relation,
            description=spent.mechanism,
            dataset=fingerprint(ledger.key, "data", joblib.hash(content)),
            fit=secrets.token_hex(32),
        )


def _name_of_fit(key, pate, data, public, clusters, paid):
    """Name everything that decides the answers, for nobody else to understand."""
    # None or a RandomState would draw other shards and teachers the next time.
    if isinstance(pate.random_state, Integral):
        parameters = clone(pate).get_params(deep=False)
        for name in WITHOUT_CONSEQUENCE:
            parameters.pop(name, None)
        parameters["random_state"] = int(pate.random_state)
        try:
            of_parameters = estimator_hash(type(pate), parameters)
        except Exception:  # it cannot be told from another: every run is a new one
            pass
        else:
            version = sys.modules["sklearn_pate"].__version__
            of_public = joblib.hash(
                (
                    public.X_public,
                    public.classes,
                    public.unit,
                    public.relation,
                    clusters,
                )
            )
            of_price = joblib.hash((paid, version))
            return fingerprint(key, "fit", data, of_public, of_parameters, of_price)
    return secrets.token_hex(32)


def _what_fits(pate, mechanism, n_queries, n_values, prepare):
    """Say which change of a parameter would bring the price within the budget."""
    curve = mechanism.charged_curve(n_queries, n_values)
    share, left = pate.ledger.shares(curve)
    if not np.isfinite(share):
        return ""
    affordable = max(left, 0.0) / share
    if pate.epsilon is None:
        # Prices add up over questions; a cap on the answers makes fewer of them dearer.
        n_affordable = math.floor(n_queries * affordable)
        while n_affordable > 0 and not pate.ledger.fits(
            mechanism.account_curve(n_affordable, n_values)
        ):
            n_affordable -= max(n_affordable // 50, 1)
        if n_affordable == 0:
            return "With this noise not one question would fit; use more noise."
        return f"n_queries={n_affordable} would fit, or more noise."
    # More noise makes the curve lower at all orders, nearly alike.
    epsilon = (curve * min(affordable, 1.0)).quiet_epsilon(pate.delta)
    while epsilon > _SMALLEST_OF_USE * pate.epsilon:
        digits = 2 - math.floor(math.log10(epsilon))
        epsilon = math.floor(epsilon * 10**digits) / 10**digits
        curve = prepare(epsilon).account_curve(n_queries, n_values)
        if pate.ledger.fits(curve):
            return f"epsilon={epsilon:g} would fit."
        share, left = pate.ledger.shares(curve)
        epsilon *= 0.999 * math.sqrt(max(left, 0.0) / share)  # as for Gaussian noise
    return "Next to nothing is left, and no fit of use would be within it."

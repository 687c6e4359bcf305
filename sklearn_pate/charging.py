"""What a fit owes to its ledger, and how it is recognised when it is run again."""

import math
import secrets
from numbers import Integral

import joblib
from sklearn.base import clone

from sklearn_pate.accounting.entries import Price
from sklearn_pate.accounting.fit_account import FitAccount
from sklearn_pate.fingerprint import estimator_hash, fingerprint
from sklearn_pate.parameters import as_mechanism

__all__ = ["open_account"]

# They change how a fit is run, and nothing of what it releases.
WITHOUT_CONSEQUENCE = ("ledger", "memory", "n_jobs", "verbose")
# Suggested epsilons and numbers of questions are found to this relative precision.
_PRECISION = 1e-3


def open_account(pate, mechanism, private, public, questions, *, n_teachers):
    """Open the account of one fit at its ledger, and see that its price fits.

    Parameters
    ----------
    pate : PATEClassifier
        Its parameters are read.

    mechanism : Mechanism
        With all its numbers.

    private : PrivateInputs or Votes
        What the fit is about.

    public : PublicInputs
        Public rows and classes.

    questions : Questions
        How many are asked.

    n_teachers : int
        How many teachers vote.

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
    n_classes = len(public.classes)
    price = Price(
        mechanism.charged_curve(questions.n_queries, n_classes),
        float(pate.delta),
        public.unit,
        f"{questions.n_queries} questions to {n_teachers} teachers, "
        f"{' '.join(repr(mechanism).split())}",
        *_names(pate, private, public),
        remedy=lambda: _what_fits(pate, mechanism, questions, n_classes, n_teachers),
    )
    account = FitAccount(pate.ledger, price, questions.n_queries)
    account.check()
    return account


def _names(pate, private, public):
    """Name the data and the fit, for nobody else to understand."""
    key = pate.ledger.key
    data = joblib.hash(private.content())
    dataset = fingerprint(key, "data", data)
    # None or a RandomState would draw other shards and teachers the next time.
    if isinstance(pate.random_state, Integral):
        parameters = clone(pate).get_params(deep=False)
        for name in WITHOUT_CONSEQUENCE:
            parameters.pop(name)
        try:
            of_parameters = estimator_hash(parameters)
        except Exception:  # it cannot be told from another: every run is a new one
            pass
        else:
            of_public = joblib.hash((public.X_public, public.classes, public.unit))
            return dataset, fingerprint(key, "fit", data, of_public, of_parameters)
    return dataset, secrets.token_hex(32)


def _what_fits(pate, mechanism, questions, n_classes, n_teachers):
    """Say which change of a parameter would bring the price within the budget."""

    def fits_with(mechanism, n_queries):
        return pate.ledger.fits(mechanism.charged_curve(n_queries, n_classes))

    if pate.epsilon is None:
        n_queries = int(
            _largest(
                lambda n: n >= 1 and fits_with(mechanism, int(n)), questions.n_queries
            )
        )
        if n_queries < 1:
            return "With this noise not one question would fit; use more noise."
        return f"n_queries={n_queries} would fit, or more noise."

    def fits_at(epsilon):
        prepared = as_mechanism(pate.mechanism, pate.release).prepared(
            n_teachers=n_teachers,
            n_queries=questions.n_queries,
            n_classes=n_classes,
            epsilon=epsilon,
            delta=pate.delta,
        )
        return fits_with(prepared, questions.n_queries)

    epsilon = _largest(fits_at, pate.epsilon)
    if epsilon == 0:
        return "Next to nothing is left, and no fit of use would be within it."
    return f"epsilon={_round_down(epsilon)} would fit."


def _largest(fits, too_much):
    """Find the largest number that fits, by bisection; 0 if there is none."""
    low, high = 0.0, float(too_much)
    while high - low > _PRECISION * high and high > _PRECISION * too_much:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _round_down(value):
    digits = 2 - math.floor(math.log10(value))
    return math.floor(value * 10**digits) / 10**digits

"""Does a fit leak more than it claims? Secret bits in one fit."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing, check_random_state

from sklearn_pate._base._teacher_ensemble import QueryingClassifier, TaughtClassifier
from sklearn_pate._inputs._checks import check_count
from sklearn_pate._inputs._public_data import PublicData
from sklearn_pate.inspection.audits._audit_fits import (
    cost_of_fit,
    dense,
    fit_without_ledger,
)
from sklearn_pate.inspection.audits._audit_result import AuditResult, check_confidence
from sklearn_pate.inspection.audits._statistics import (
    bound_from_guesses,
)

__all__ = ["audit_canaries"]


def audit_canaries(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    X_canaries: Any,
    labels: Sequence[Any],
    X_public: Any = None,
    n_guesses: int | None = None,
    confidence: float = 1 - 1e-4,
    random_state: Any = None,
) -> AuditResult:
    """Try to read secret bits out of one fit.

    Every canary is a private row that the toss of a fair coin decides about: which of
    two labels it carries, or, where the statement is about rows that are added or
    removed, whether it is there. An attacker who sees what the fit publishes guesses
    the coins. The better the guesses, the larger epsilon must be.

    A claim that is not contradicted is not proved, and one fit shows little: as each
    canary reaches one teacher only, or moves one gradient among many, most of what an
    honest fit pays for cannot be seen in one coin. What is seen plainly is a row that
    reaches many teachers, or noise that is missing. A claim that is contradicted is
    wrong, but for one audit in ``1 / (1 - confidence)``. What was fitted learned wrong
    labels and is thrown away; the result is as sensitive as X.

    Parameters
    ----------
    estimator : classifier
        Any that can state its cost and protects single rows: a
        :class:`~sklearn_pate.PATEClassifier`, or one of ``sklearn_pate.baselines``. Its
        clone is fitted, and charges no ledger. A teacher should memorise its rows, as
        ``KNeighborsClassifier(1)`` does, and all public rows should be asked about.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Other private rows.

    y : array-like of shape (n_rows,)
        Their labels; both `labels` occur in it, or in ``estimator.classes``.

    X_canaries : {array-like, sparse matrix, dataframe} of shape \
            (n_canaries, n_features)
        Rows far from each other: at right angles for a linear model. The attack is
        sharpest where all else is undecided between the two labels. An estimator that
        asks about public rows is given them as public rows, too.

    labels : pair of labels
        What a canary may carry. Where it may be missing, it carries the second.

    X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
            (n_public, n_features), default=None
        Further public rows, for estimators that ask about any.

    n_guesses : int, default=None
        How many coins the attacker guesses: those that it is most certain of. The
        theorem wants this number fixed beforehand. None means all.

    confidence : float, default=0.9999
        Probability that a true claim is not contradicted.

    random_state : int, RandomState instance or None, default=None
        Seeds the coins. The noise of the mechanism cannot be seeded.

    Returns
    -------
    result : AuditResult
        A lower bound of epsilon beside ``privacy_spent_.epsilon`` of the fit. As
        sensitive as X.

    Raises
    ------
    ValueError
        If a parameter cannot work; nothing was fitted.

    Notes
    -----
    Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run",
    Theorem 5.2. There a coin decides whether a row is in the data or not, and
    neighbours add or remove a row. Where neighbours replace a row, it decides which of
    two versions is in the data: either way, data sets that differ in one coin are
    neighbours in the sense of the claim, which is all that the proof uses.

    Of answers, the guess is the label that is answered, or, where noisy histograms are
    released, the label with more votes; its certainty is the difference of their votes.
    A canary that is answered by another label, or by none, is guessed by a coin. Of a
    model that publishes no answers, the guess is whether it leans to the second label
    by more than on the mean over canaries, and its certainty is by how much.

    A recipe: 250 teachers ``KNeighborsClassifier(1)``, 1000 other rows at random with
    random labels, 100 canaries at random among them, ``epsilon=1.0``. If every teacher
    got every row, all 100 guesses would be right, and epsilon at least 1.8.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn_pate import PATEClassifier
    >>> from sklearn_pate.inspection import audit_canaries
    >>> from sklearn_pate.mechanisms import GNMax
    >>> pate = PATEClassifier(
    ...     KNeighborsClassifier(1),
    ...     n_teachers=10,
    ...     mechanism=GNMax(sigma=10),
    ...     epsilon=None,
    ... )
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> result = audit_canaries(
    ...     pate, X[:100], X[:100, 0] > 0, X_canaries=X[100:], labels=(False, True)
    ... )
    >>> result.contradicted
    False
    """
    if getattr(estimator, "privacy_unit", "row") != "row":
        raise ValueError(
            f"privacy_unit={estimator.privacy_unit!r} protects more than one row, and "
            "a canary is one; set privacy_unit='row', or use audit_neighbours."
        )
    n_canaries = len(dense(X_canaries))
    if n_guesses is None:
        n_guesses = n_canaries
    check_count("n_guesses", n_guesses, 1)
    if n_guesses > n_canaries:
        raise ValueError(
            f"n_guesses={n_guesses} is more than the {n_canaries} rows of X_canaries; "
            "lower it, or leave n_guesses=None."
        )
    y, classes = np.asarray(y), getattr(estimator, "classes", None)
    known = y if classes is None else np.asarray(classes)
    if len(labels) != 2 or labels[0] == labels[1] or not np.all(np.isin(labels, known)):
        raise ValueError(
            f"labels={labels!r} must be two different labels out of those in y, or in "
            "classes of the estimator."
        )
    rng = check_random_state(random_state)
    coins = rng.randint(2, size=n_canaries)
    data = {
        "X": _stack([X, X_canaries]),
        "y": np.concatenate([y, np.asarray(labels)[coins]]),
        **_public(estimator, X_canaries, X_public),
    }
    relation = cost_of_fit(estimator, **data).relation
    check_confidence(confidence, estimator.delta)
    if relation == "add-remove":
        there = np.flatnonzero(coins)
        data["X"] = _stack([X, _safe_indexing(X_canaries, there)])
        data["y"] = np.concatenate([y, np.asarray(labels)[coins[there]]])
    fitted = fit_without_ledger(estimator, **data)

    if isinstance(estimator, QueryingClassifier):
        lead = _read_answers(fitted, n_canaries, labels)
    else:
        lead = _read_model(fitted, X_canaries, labels)
    tosses = rng.randint(2, size=n_canaries)
    guesses = np.where(lead == 0, tosses, lead > 0)
    # Between equals at random, not by their place.
    order = rng.permutation(n_canaries)
    order = order[np.argsort(-np.abs(lead[order]), kind="stable")][:n_guesses]
    n_correct = int(np.count_nonzero(guesses[order] == coins[order]))
    epsilon, delta = fitted.privacy_spent_
    epsilon_lower = bound_from_guesses(
        n_correct,
        n_guesses=n_guesses,
        n_canaries=n_canaries,
        delta=delta,
        confidence=confidence,
    )
    evidence = f"{n_correct} of {n_guesses} guesses of {n_canaries} coins were right"
    return AuditResult(epsilon_lower, epsilon, delta, confidence, evidence)


def _public(estimator, X_canaries, X_public):
    """Return the public rows of a fit, canaries first."""
    if not isinstance(estimator, TaughtClassifier):
        if X_public is not None:
            raise ValueError(
                f"X_public is for estimators that ask about public rows, and "
                f"{type(estimator).__name__} asks about none; leave it out."
            )
        return {}
    public = [X_canaries]
    if X_public is not None:
        public.append(X_public.X if isinstance(X_public, PublicData) else X_public)
    return {"X_public": PublicData(_stack(public))}


def _read_answers(fitted, n_canaries, labels):
    """Return by how much the answers about each canary favour the second label."""
    first, second = np.searchsorted(fitted.classes_, np.asarray(labels))
    lead = np.zeros(n_canaries, dtype=np.int64)
    about_canaries = np.flatnonzero(fitted.queried_indices_ < n_canaries)
    canaries = fitted.queried_indices_[about_canaries]
    if fitted.histograms_ is not None:
        histograms = fitted.histograms_[about_canaries]
        lead[canaries] = histograms[:, second] - histograms[:, first]
    else:
        answers = fitted.answers_[about_canaries]
        lead[canaries] = (answers == second).astype(int) - (answers == first)
    return lead


def _read_model(fitted, X_canaries, labels):
    """Return by how much a model favours the second label, beyond the mean canary.

    What it thinks of all of them alike tells nothing of one.
    """
    if hasattr(fitted, "decision_function"):
        scores = fitted.decision_function(X_canaries)
    else:
        scores = fitted.predict_proba(X_canaries)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    first, second = np.searchsorted(fitted.classes_, np.asarray(labels))
    lead = scores[:, second] - scores[:, first]
    return lead - lead.mean()


def _stack(parts):
    """Put rows under each other, in the container that they came in."""
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        # pandas or polars, whichever made them: it is imported, and has a `concat`.
        library = sys.modules[type(parts[0]).__module__.partition(".")[0]]
        return library.concat(parts)
    return np.concatenate([np.asarray(part) for part in parts])

"""Audit of one fit by secret bits in its private rows."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_random_state

from sklearn_pate._base._public_rows import PublicRowsClassifier
from sklearn_pate._base._teacher_ensemble import QueryingClassifier
from sklearn_pate._inputs._public_data import PublicData
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.inspection.audits._audit_fits import (
    cost_of_fit,
    dense,
    fit_without_ledger,
)
from sklearn_pate.inspection.audits._audit_result import AuditResult, check_confidence
from sklearn_pate.inspection.audits._statistics import bound_from_guesses

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
    """Audit one fit: guess secret bits from what it publishes.

    Each canary is a private row with a secret bit, drawn by a fair coin: which of two
    labels it has, or, where neighbouring data sets add or remove a row, whether it is
    in the data. An attacker guesses the bits from what the fit publishes. The more
    guesses are correct, the larger epsilon must be.

    A claim that is not contradicted is not proved, and one fit shows little: each
    canary reaches one teacher, or changes one gradient among many. The audit finds rows
    that reach many teachers, and missing noise. A contradicted claim is wrong, except
    for one audit in ``1 / (1 - confidence)``. The fitted model has wrong labels and is
    discarded; the result is as sensitive as X.

    Parameters
    ----------
    estimator : classifier
        Classifier that can state its cost and protects single rows: a
        :class:`~sklearn_pate.PATEClassifier`, or one of ``sklearn_pate.baselines``. Its
        clone is fitted, and charges no ledger. Teachers should memorise their rows, as
        ``KNeighborsClassifier(1)`` does, and all public rows should be queries.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Other private rows.

    y : array-like of shape (n_rows,)
        Their labels; both `labels` occur in it, or in ``estimator.classes``.

    X_canaries : {array-like, sparse matrix, dataframe} of shape \
            (n_canaries, n_features)
        Rows far from each other (orthogonal for a linear model), where all other rows
        favour neither label. Estimators with public rows also get them as public rows.

    labels : pair of labels
        Labels of canaries. One that may be missing has the second.

    X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
            (n_public, n_features), default=None
        Further public rows, for estimators that take any.

    n_guesses : int, default=None
        Number of bits that the attacker guesses, those of largest certainty; the
        theorem requires it to be fixed beforehand. None means all.

    confidence : float, default=0.9999
        Probability that a true claim is not contradicted.

    random_state : int, RandomState instance or None, default=None
        Seed of the secret bits. The noise of the mechanism cannot be seeded.

    Returns
    -------
    result : AuditResult
        Lower bound of epsilon, and ``privacy_spent_.epsilon`` of the fit. As sensitive
        as X.

    Raises
    ------
    ValueError
        If a parameter is invalid; nothing was fitted.

    Notes
    -----
    Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run",
    Theorem 5.2. There, a bit decides whether a row is in the data. Where neighbours
    replace a row, it decides between two versions of the row: data sets that differ in
    one bit are neighbours in both cases, which is all that the proof uses.

    The guess from answers is the answered label or, from noisy histograms, the label
    with more votes; its certainty is the difference of their votes. The guess for a
    canary with another label as answer, or without an answer, is random. The guess from
    a model without answers is whether it favours the second label by more than the mean
    over all canaries; its certainty is the distance from that mean.

    A recipe: 250 teachers ``KNeighborsClassifier(1)``, 1000 other rows at random with
    random labels, 100 canaries at random among them, ``epsilon=1.0``. If every teacher
    got every row, all 100 guesses would be correct, and epsilon at least 1.8.

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
            f"privacy_unit={estimator.privacy_unit!r} protects groups, and a canary "
            "is one row; set privacy_unit='row', or use audit_neighbours."
        )
    n_canaries = len(dense(X_canaries))
    if n_guesses is None:
        n_guesses = n_canaries
    check_count("n_guesses", n_guesses, 1)
    if n_guesses > n_canaries:
        raise ValueError(
            f"n_guesses={n_guesses} is more than the {counted(n_canaries, 'row')} of "
            "X_canaries; lower it, or leave n_guesses=None."
        )
    y, classes = np.asarray(y), getattr(estimator, "classes", None)
    known = y if classes is None else np.asarray(classes)
    if len(labels) != 2 or labels[0] == labels[1] or not np.all(np.isin(labels, known)):
        raise ValueError(
            f"labels={labels!r} must be two different labels out of those in y, or in "
            "classes of the estimator."
        )
    rng = check_random_state(random_state)
    bits = rng.randint(2, size=n_canaries)
    data = {
        "X": _stack([X, X_canaries]),
        "y": np.concatenate([y, np.asarray(labels)[bits]]),
        **_public(estimator, X_canaries, X_public),
    }
    relation = cost_of_fit(estimator, **data).relation
    check_confidence(confidence, estimator.delta)
    if relation == "add-remove":
        present = np.flatnonzero(bits)
        data["X"] = _stack([X, _safe_indexing(X_canaries, present)])
        data["y"] = np.concatenate([y, np.asarray(labels)[bits[present]]])
    fitted = fit_without_ledger(estimator, **data)

    if isinstance(estimator, QueryingClassifier):
        lead = _read_answers(fitted, n_canaries, labels)
    else:
        lead = _read_model(fitted, X_canaries, labels)
    random_bits = rng.randint(2, size=n_canaries)
    guesses = np.where(lead == 0, random_bits, lead > 0)
    # Equal certainty is ordered at random.
    order = rng.permutation(n_canaries)
    order = order[np.argsort(-np.abs(lead[order]), kind="stable")][:n_guesses]
    n_correct = int(np.count_nonzero(guesses[order] == bits[order]))
    epsilon, delta = fitted.privacy_spent_
    epsilon_lower = bound_from_guesses(
        n_correct,
        n_guesses=n_guesses,
        n_canaries=n_canaries,
        delta=delta,
        confidence=confidence,
    )
    evidence = (
        f"{n_correct} of {counted(n_guesses, 'guess')} of {counted(n_canaries, 'bit')} "
        "were correct"
    )
    return AuditResult(epsilon_lower, epsilon, delta, confidence, evidence)


def _public(estimator: Any, X_canaries: Any, X_public: Any) -> dict[str, PublicData]:
    """Return the public rows of a fit, canaries first."""
    if not isinstance(estimator, PublicRowsClassifier):
        if X_public is not None:
            raise ValueError(
                f"X_public is for estimators with public rows, and "
                f"{type(estimator).__name__} has none; leave it out."
            )
        return {}
    public = [X_canaries]
    if X_public is not None:
        public.append(X_public.X if isinstance(X_public, PublicData) else X_public)
    return {"X_public": PublicData(_stack(public))}


def _read_answers(fitted: Any, n_canaries: int, labels: Sequence[Any]) -> NDArray[Any]:
    """Return the excess of the second label in the answers for each canary."""
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


def _read_model(fitted: Any, X_canaries: Any, labels: Sequence[Any]) -> NDArray[Any]:
    """Return the excess of a model's score for the second label over its mean.

    A score that is common to all canaries is independent of any one bit.
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


def _stack(parts: Sequence[Any]) -> Any:
    """Concatenate rows, in their own container."""
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        # pandas or polars, which is imported already.
        library = sys.modules[type(parts[0]).__module__.partition(".")[0]]
        return library.concat(parts)
    return np.concatenate([np.asarray(part) for part in parts])

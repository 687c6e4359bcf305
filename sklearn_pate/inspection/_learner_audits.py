"""Audit of learners by fits on neighbouring data sets."""

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from sklearn_pate._aggregation._checks import check_n_jobs
from sklearn_pate._estimators._isolation import autologging_off
from sklearn_pate._inputs._labels import PublicData
from sklearn_pate._pate import PATEClassifier
from sklearn_pate.accounting._statement import PrivacySpent, plans_privacy
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.exceptions import StudentWarning
from sklearn_pate.inspection._audit_result import (
    AuditResult,
    check_confidence,
    epsilon_lower_bound,
    log_ratio_scores,
)
from sklearn_pate.learners._private_knn import PrivateKNNClassifier

# Classifiers that answer queries about public rows.
_WITH_ANSWERS = (PATEClassifier, PrivateKNNClassifier)
# In place of an answer, for public rows that were no query.
_NO_QUERY = -2


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


def audit_neighbours(
    estimator: Any,
    data: Sequence[Any],
    neighbouring_data: Sequence[Any],
    *,
    X_public: Any = None,
    statistic: Callable[[Any], float] | None = None,
    n_runs: int = 200,
    confidence: float = 1 - 1e-4,
    n_jobs: int | None = None,
) -> AuditResult:
    """Audit an estimator by many fits on two neighbouring data sets.

    The audit looks for an event in what the fits publish that is more probable on one
    data set than the claim allows. It also finds effects of one row
    on other rows, such as moving them to other teachers.

    A claim that is not contradicted is not proved: other data sets may show more, and
    events rarer than one in `n_runs` are not observed. A contradicted claim is wrong,
    except for one audit in ``1 / (1 - confidence)``. The result is as sensitive as the
    data.

    Parameters
    ----------
    estimator : classifier
        PATEClassifier or PrivateKNNClassifier; with a `statistic`, any classifier that
        can state its cost, such as those of ``sklearn_pate.learners``. Its clones are
        fitted, and charge no ledger. With an integer `random_state`, only the noise
        differs between runs, and the audit is most sensitive.

    data : tuple (X, y) or (X, y, groups)
        Private rows, as for ``fit``.

    neighbouring_data : tuple (X, y) or (X, y, groups)
        Data set that differs in one unit, as the estimator's statement defines it: one
        row replaced, added or removed; one group added, removed or, if the statement
        covers it, changed.

    X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
            (n_public, n_features), default=None
        Public rows, for estimators that take any.

    statistic : callable, default=None
        Function of a fitted estimator that returns a number, computed from what is
        published; NaN is above all numbers. None means the log-likelihood ratio of all
        answers, estimated from the first half of the runs.

    n_runs : int, default=200
        Number of fits on each data set. Half of them choose the event, half measure it.

    confidence : float, default=0.9999
        Probability that a true claim is not contradicted.

    n_jobs : int, default=None
        Number of parallel fits, as in joblib.

    Returns
    -------
    result : AuditResult
        Lower bound of epsilon, and ``privacy_spent_.epsilon`` of the fits. As sensitive
        as the data.

    Raises
    ------
    ValueError
        If the data sets are no neighbours, or a parameter is invalid; nothing was
        fitted.

    Notes
    -----
    An event with probability P on one data set and Q on the other shows that epsilon is
    at least ln((P - delta) / Q) (Jagielski, Ullman, Oprea 2020, "Auditing
    differentially private machine learning: how private is private SGD?").

    Examples
    --------
    One label of twelve is changed. (Use hundreds of runs, or more.)

    >>> import numpy as np
    >>> from sklearn_pate.learners import DPLogisticRegression
    >>> from sklearn_pate.inspection import audit_neighbours
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> y, changed = np.repeat([0, 1], 6), np.repeat([0, 1], [5, 7])
    >>> result = audit_neighbours(
    ...     DPLogisticRegression(epsilon=1.0, feature_bounds=([0.0], [11.0])),
    ...     (X, y),
    ...     (X, changed),
    ...     statistic=lambda fitted: fitted.coef_[0, 0],
    ...     n_runs=20,
    ... )
    >>> result.contradicted
    False
    >>> result.epsilon_lower < result.epsilon_claimed <= 1
    True
    """
    check_count("n_runs", n_runs, 2)
    check_n_jobs(n_jobs)
    if statistic is None:
        _check_answers(estimator, X_public)
    data_sets = [_arguments(one, X_public) for one in (data, neighbouring_data)]
    spent = cost_of_fit(estimator, **data_sets[0])
    check_confidence(confidence, estimator.delta)
    _check_neighbours(spent, [data, neighbouring_data])
    runs = Parallel(n_jobs=n_jobs)(
        delayed(_run)(estimator, arguments, statistic)
        for arguments in data_sets
        for _ in range(n_runs)
    )
    observed = np.array([published for published, _ in runs])
    scores, neighbour_scores = np.split(observed, 2)
    if statistic is None:
        scores, neighbour_scores = log_ratio_scores(
            scores, neighbour_scores, n_runs // 2, pooled=False
        )
    epsilon, evidence = epsilon_lower_bound(
        scores, neighbour_scores, delta=spent.delta, confidence=confidence
    )
    claim = max(claimed for _, claimed in runs)
    return AuditResult(epsilon, claim, spent.delta, confidence, evidence)


def _check_answers(estimator: Any, X_public: Any) -> None:
    """Raise unless the fits will have answers."""
    if not isinstance(estimator, _WITH_ANSWERS):
        raise ValueError(
            f"statistic=None needs answers, and estimator={estimator!r} publishes "
            "none; pass a statistic, or a PATEClassifier."
        )
    if X_public is None:
        raise ValueError(
            "X_public=None, and statistic=None needs answers about the same public "
            "rows in all fits; pass X_public, or a statistic."
        )


def _arguments(data: Sequence[Any], X_public: Any) -> dict[str, Any]:
    """Return the arguments of a fit on one data set."""
    arguments = dict(zip(("X", "y", "groups"), data, strict=False))
    if X_public is not None:
        arguments["X_public"] = PublicData(X_public)
    return arguments


def _run(
    estimator: Any,
    arguments: dict[str, Any],
    statistic: Callable[[Any], float] | None,
) -> tuple[Any, float]:
    """Fit once; return the observation and the claim."""
    fitted = fit_without_ledger(estimator, **arguments)
    if statistic is not None:
        return float(statistic(fitted)), fitted.privacy_spent_.epsilon
    answers = np.full(len(dense(arguments["X_public"].X)), _NO_QUERY)
    answers[fitted.queried_indices_] = fitted.answers_
    return answers, fitted.privacy_spent_.epsilon


def _check_neighbours(spent: PrivacySpent, data_sets: list[Sequence[Any]]) -> None:
    """Raise unless one unit differs, by a change that the statement covers."""
    unit, relation = spent.unit, spent.relation
    n_given = 3 if unit == "group" else 2
    if any(len(data) != n_given for data in data_sets):
        raise ValueError(
            f"data and neighbouring_data must be {n_given} arrays each, (X, y"
            f"{', groups' if n_given == 3 else ''}), for privacy_unit={unit!r}."
        )
    by_row = (unit, relation) == ("row", "add-remove")
    units: Callable[..., Any] = _by_row if by_row else _by_unit
    one, other = (units(*data) for data in data_sets)
    changed = [name for name in one.keys() | other.keys() if one[name] != other[name]]
    stays = any(one[name] and other[name] for name in changed)
    is_allowed = {
        "replace-one": stays,
        "add-remove-or-change": True,
        "add-remove": (
            abs(len(data_sets[0][1]) - len(data_sets[1][1])) == 1
            if by_row
            else not stays
        ),
    }
    if len(changed) != 1 or not is_allowed[relation]:
        raise ValueError(
            f"data and neighbouring_data differ in {len(changed)} {unit}s; neighbours "
            f"{spent.neighbours}."
        )


def _by_unit(X: Any, y: ArrayLike, groups: Any = None) -> dict[Any, list[str]]:
    """Return the rows of each unit, in order, as texts, so that NaN equals NaN."""
    X = dense(X)
    ids = range(len(X)) if groups is None else np.asarray(groups).tolist()
    units: dict[Any, list[str]] = defaultdict(list)
    for one, row, label in zip(ids, X.tolist(), np.asarray(y).tolist(), strict=True):
        units[one].append(repr((row, label)))
    return units


def _by_row(X: Any, y: ArrayLike) -> Counter[str]:
    """Count equal rows, in whatever order."""
    return Counter(
        repr((row, label))
        for row, label in zip(dense(X).tolist(), np.asarray(y).tolist(), strict=True)
    )

"""Does a fit leak more than it claims? Many fits on two neighbouring data sets."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from sklearn_pate._base._teacher_ensemble import QueryingClassifier
from sklearn_pate._inputs._checks import check_count
from sklearn_pate._inputs._public_data import PublicData
from sklearn_pate.inspection.audits._audit_fits import (
    cost_of_fit,
    dense,
    fit_without_ledger,
)
from sklearn_pate.inspection.audits._audit_result import AuditResult, check_confidence
from sklearn_pate.inspection.audits._statistics import (
    bound_from_two_worlds,
    log_ratio_scores,
)

__all__ = ["audit_neighbours"]

# What stands for the answer about a public row that was not asked about.
_NOT_ASKED = -2


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
    """Try to tell two neighbouring data sets apart by fitting each many times.

    The estimator is a black box, from rows to what it publishes. An event is looked for
    that is likelier on one of the two data sets than the claim allows. Unlike
    :func:`audit_canaries` this also sees what one row does to other rows, such as
    moving them to other teachers.

    A claim that is not contradicted is not proved: this pair of data sets may be a
    harmless one, and no event rarer than one in `n_runs` can be seen. A claim that is
    contradicted is wrong, but for one audit in ``1 / (1 - confidence)``. The result is
    as sensitive as the data; made-up data reveal nothing.

    Parameters
    ----------
    estimator : classifier
        Clones of it are fitted, and charge no ledger. An integer `random_state` makes
        for the sharpest audit: the guarantee holds for any that the attacker may know,
        and with it only the noise differs between runs. A PATEClassifier or a
        PrivateKNNClassifier; with a `statistic`, any classifier that can state its
        cost, such as those of ``sklearn_pate.baselines``.

    data : tuple (X, y) or (X, y, groups)
        Private rows, as for ``fit``.

    neighbouring_data : tuple (X, y) or (X, y, groups)
        The same but for one unit, as the estimator's statement has it: with one row
        replaced, or one added or removed; with one group added, removed or, where the
        statement covers that, changed.

    X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
            (n_public, n_features), default=None
        Public rows, for estimators that take any.

    statistic : callable, default=None
        Makes a number of a fitted estimator, out of what is published; NaN is a value
        of its own, higher than any number. None means all answers, weighted by what the
        first half of the runs says of them.

    n_runs : int, default=200
        Fits on each data set. Half of them choose the event, half measure it.

    confidence : float, default=0.9999
        Probability that a true claim is not contradicted.

    n_jobs : int, default=None
        Fits at once, as in joblib.

    Returns
    -------
    result : AuditResult
        A lower bound of epsilon beside ``privacy_spent_.epsilon`` of the fits. As
        sensitive as the data.

    Raises
    ------
    ValueError
        If the data sets are no neighbours, or a parameter cannot work; nothing was
        fitted.

    Notes
    -----
    An event that has probability P in one world and Q in the other shows that epsilon
    is at least ln((P - delta) / Q) (Jagielski, Ullman, Oprea 2020, "Auditing
    differentially private machine learning: how private is private SGD?"). See
    ``bound_from_two_worlds``.

    Examples
    --------
    One label of a dozen is changed. (Use hundreds of runs, or more.)

    >>> import numpy as np
    >>> from sklearn_pate.baselines import DPLogisticRegression
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
    if statistic is None:
        _check_asks(estimator, X_public)
    worlds = [_arguments(world, X_public) for world in (data, neighbouring_data)]
    spent = cost_of_fit(estimator, **worlds[0])
    check_confidence(confidence, estimator.delta)
    check_count("n_runs", n_runs, 2)
    _check_neighbours(spent, [data, neighbouring_data])
    runs = Parallel(n_jobs=n_jobs)(
        delayed(_run)(estimator, world, statistic)
        for world in worlds
        for _ in range(n_runs)
    )
    seen = np.array([published for published, _ in runs])
    seen, neighbour_seen = np.split(seen, 2)
    if statistic is None:
        seen, neighbour_seen = log_ratio_scores(
            seen, neighbour_seen, n_runs // 2, pooled=False
        )
    epsilon, evidence = bound_from_two_worlds(
        seen, neighbour_seen, delta=spent.delta, confidence=confidence
    )
    claim = max(claimed for _, claimed in runs)
    return AuditResult(epsilon, claim, spent.delta, confidence, evidence)


def _check_asks(estimator, X_public):
    """Raise unless there will be answers to look at."""
    if not isinstance(estimator, QueryingClassifier):
        raise ValueError(
            f"statistic=None looks at answers, and estimator={estimator!r} publishes "
            "none; pass a statistic, or a PATEClassifier."
        )
    if X_public is None:
        raise ValueError(
            "X_public=None, and answers about the same rows in both data sets are "
            "looked at; pass X_public, or a statistic."
        )


def _arguments(world, X_public):
    """Return the arguments of a fit on one world."""
    arguments = dict(zip(("X", "y", "groups"), world, strict=False))
    if X_public is not None:
        arguments["X_public"] = PublicData(X_public)
    return arguments


def _run(estimator, world, statistic):
    """Fit once; return what is looked at, and the claim."""
    fitted = fit_without_ledger(estimator, **world)
    if statistic is not None:
        return float(statistic(fitted)), fitted.privacy_spent_.epsilon
    answers = np.full(len(dense(world["X_public"].X)), _NOT_ASKED)
    answers[fitted.queried_indices_] = fitted.answers_
    return answers, fitted.privacy_spent_.epsilon


def _check_neighbours(spent, worlds):
    """Raise unless exactly one unit differs, by a change that the statement hides."""
    unit, relation = spent.unit, spent.relation
    n_given = 3 if unit == "group" else 2
    if any(len(world) != n_given for world in worlds):
        raise ValueError(
            f"data and neighbouring_data must be {n_given} arrays each, (X, y"
            f"{', groups' if n_given == 3 else ''}), for privacy_unit={unit!r}."
        )
    by_row = (unit, relation) == ("row", "add-remove")
    units = _by_row if by_row else _by_unit
    one, other = (units(*world) for world in worlds)
    changed = [name for name in one.keys() | other.keys() if one[name] != other[name]]
    stays = any(one[name] and other[name] for name in changed)
    is_allowed = {
        "replace-one": stays,
        "add-remove-or-change": True,
        "add-remove": (
            abs(len(worlds[0][1]) - len(worlds[1][1])) == 1 if by_row else not stays
        ),
    }
    if len(changed) != 1 or not is_allowed[relation]:
        raise ValueError(
            f"data and neighbouring_data differ in {len(changed)} {unit}s; neighbours "
            f"{spent.neighbours}."
        )


def _by_unit(X, y, groups=None):
    """Return the rows of each unit, in their order, such that NaN equals NaN."""
    X = dense(X)
    ids = range(len(X)) if groups is None else np.asarray(groups).tolist()
    units = defaultdict(list)
    for one, row, label in zip(ids, X.tolist(), np.asarray(y).tolist(), strict=True):
        units[one].append(repr((row, label)))
    return units


def _by_row(X, y):
    """Count equal rows: an added row may stand anywhere among the others."""
    return Counter(
        repr((row, label))
        for row, label in zip(dense(X).tolist(), np.asarray(y).tolist(), strict=True)
    )

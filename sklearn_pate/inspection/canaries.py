"""Does a fit leak more than it claims? Secret bits in one fit; fits in two worlds."""

import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from sklearn_pate.accounting.statement import NEIGHBOURS
from sklearn_pate.classifier import PATEClassifier
from sklearn_pate.exceptions import StudentWarning
from sklearn_pate.inspection.evidence import (
    AuditResult,
    bound_from_guesses,
    bound_from_two_worlds,
    check_confidence,
    check_count,
    log_ratio_scores,
)
from sklearn_pate.planning import plans_privacy
from sklearn_pate.public_data import PublicData

__all__ = ["audit_canaries", "audit_neighbours"]

# What stands for the answer about a public row that was not asked about.
_NOT_ASKED = -2


def audit_canaries(
    estimator: PATEClassifier,
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

    Every canary is added to the private rows with one of two labels, by the toss of a
    fair coin, and to the public rows. An attacker who sees what the fit publishes about
    them, ``answers_`` and ``histograms_``, guesses the coins. The better the guesses,
    the larger epsilon must be.

    A claim that is not contradicted is not proved, and one fit shows little: as each
    canary reaches one teacher only, most of what an honest fit pays for its questions
    cannot be seen in one coin. What is seen plainly is a row that reaches many
    teachers. A claim that is contradicted is wrong, but for one audit in ``1 / (1 -
    confidence)``. The fitted student learned wrong labels and is thrown away; the
    result is as sensitive as X.

    Parameters
    ----------
    estimator : PATEClassifier
        Its clone is fitted, with ``privacy_unit="row"``, and charges no ledger. The
        teacher should memorise its rows, as ``KNeighborsClassifier(1)`` does, and all
        public rows should be asked about.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Other private rows.

    y : array-like of shape (n_rows,)
        Their labels; both `labels` occur in it, or in ``estimator.classes``.

    X_canaries : {array-like, sparse matrix, dataframe} of shape \
            (n_canaries, n_features)
        Rows far from each other. The attack is sharpest where the other teachers are
        divided between the two labels.

    labels : pair of labels
        What a canary may carry.

    X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
            (n_public, n_features), default=None
        Further public rows.

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
    neighbours add or remove a row. Here it decides which of two versions of a row is in
    the data, and neighbours replace a row: either way, data sets that differ in one
    coin are neighbours in the sense of the claim, which is all that the proof uses.

    The guess is the label that is answered, or, where noisy histograms are released,
    the label with more votes; its certainty is the difference of their votes. A canary
    that is answered by another label, or by none, is guessed by a coin.

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
    _check_pate(estimator)
    if estimator.privacy_unit != "row":
        raise ValueError(
            f"privacy_unit={estimator.privacy_unit!r} protects more than one row, and "
            "a canary is one; set privacy_unit='row', or use audit_neighbours."
        )
    check_confidence(confidence, estimator.delta)
    n_canaries = len(_bare(X_canaries))
    if n_guesses is None:
        n_guesses = n_canaries
    check_count("n_guesses", n_guesses, 1)
    if n_guesses > n_canaries:
        raise ValueError(
            f"n_guesses={n_guesses} is more than the {n_canaries} rows of X_canaries; "
            "lower it, or leave n_guesses=None."
        )
    y = np.asarray(y)
    known = y if estimator.classes is None else np.asarray(estimator.classes)
    if len(labels) != 2 or labels[0] == labels[1] or not np.all(np.isin(labels, known)):
        raise ValueError(
            f"labels={labels!r} must be two different labels out of those in y, or in "
            "classes of the estimator."
        )
    rng = check_random_state(random_state)
    coins = rng.randint(2, size=n_canaries)
    public = [X_canaries]
    if X_public is not None:
        public.append(X_public.X if isinstance(X_public, PublicData) else X_public)
    pate = _fit(
        estimator,
        _stack([X, X_canaries]),
        np.concatenate([y, np.asarray(labels)[coins]]),
        X_public=PublicData(_stack(public)),
    )

    lead, certainty = _read(pate, n_canaries, labels)
    tosses = rng.randint(2, size=n_canaries)
    guesses = np.where(lead == 0, tosses, lead > 0)
    # Between equals at random, not by their place.
    order = rng.permutation(n_canaries)
    order = order[np.argsort(-certainty[order], kind="stable")][:n_guesses]
    n_correct = int(np.count_nonzero(guesses[order] == coins[order]))
    epsilon, delta = pate.privacy_spent_
    epsilon_lower = bound_from_guesses(
        n_correct,
        n_guesses=n_guesses,
        n_canaries=n_canaries,
        delta=delta,
        confidence=confidence,
    )
    evidence = f"{n_correct} of {n_guesses} guesses of {n_canaries} coins were right"
    return AuditResult(epsilon_lower, epsilon, delta, confidence, evidence)


def _read(pate, n_canaries, labels):
    """Return by how much the second label leads at each canary, and how surely."""
    first, second = np.searchsorted(pate.classes_, np.asarray(labels))
    lead = np.zeros(n_canaries, dtype=np.int64)
    about_canaries = np.flatnonzero(pate.queried_indices_ < n_canaries)
    canaries = pate.queried_indices_[about_canaries]
    if pate.histograms_ is not None:
        histograms = pate.histograms_[about_canaries]
        lead[canaries] = histograms[:, second] - histograms[:, first]
    else:
        answers = pate.answers_[about_canaries]
        lead[canaries] = (answers == second).astype(int) - (answers == first)
    return lead, np.abs(lead)


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
        and with it only the noise differs between runs. A PATEClassifier; with a
        `statistic`, any classifier that can state its price, such as those of
        ``sklearn_pate.baselines``.

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
        Makes a number of a fitted estimator, out of what is published. None means all
        answers, weighted by what the first half of the runs says of them.

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
    :func:`~sklearn_pate.inspection.evidence.bound_from_two_worlds`.

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
        _check_pate(estimator)
    elif not plans_privacy(estimator):
        raise ValueError(
            f"estimator={estimator!r} cannot state its price beforehand; pass one with "
            "plan_privacy, such as a PATEClassifier."
        )
    check_confidence(confidence, estimator.delta)
    check_count("n_runs", n_runs, 2)
    worlds = [_arguments(world, X_public) for world in (data, neighbouring_data)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # every fit repeats them
        spent = estimator.plan_privacy(**worlds[0])
    _check_neighbours(spent.unit, [data, neighbouring_data])
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


def _arguments(world, X_public):
    """Return the arguments of a fit on one world."""
    arguments = dict(zip(("X", "y", "groups"), world, strict=False))
    if X_public is not None:
        arguments["X_public"] = PublicData(X_public)
    return arguments


def _run(estimator, world, statistic):
    """Fit once; return what is looked at, and the claim."""
    fitted = _fit(estimator, **world)
    if statistic is not None:
        return float(statistic(fitted)), fitted.privacy_spent_.epsilon
    answers = np.full(len(_bare(world["X_public"].X)), _NOT_ASKED)
    answers[fitted.queried_indices_] = fitted.answers_
    return answers, fitted.privacy_spent_.epsilon


def _fit(estimator, X, y, **data):
    with warnings.catch_warnings():
        # What the student makes of the answers does not matter here.
        warnings.simplefilter("ignore", StudentWarning)
        # A ledger would recognise a fit that is repeated, and what an audit fits is
        # not released.
        return clone(estimator).set_params(ledger=None).fit(X, y, **data)


def _check_pate(estimator):
    if not isinstance(estimator, PATEClassifier):
        raise ValueError(
            f"estimator={estimator!r} is not a PATEClassifier, and publishes no "
            "answers; pass one."
        )


def _check_neighbours(unit, worlds):
    """Raise unless exactly one unit differs."""
    kind = unit.partition("-")[0]
    n_given = 3 if kind == "group" else 2
    if any(len(world) != n_given for world in worlds):
        raise ValueError(
            f"data and neighbouring_data must be {n_given} arrays each, (X, y"
            f"{', groups' if n_given == 3 else ''}), for privacy_unit={kind!r}."
        )
    units = _by_row if unit == "row-add-remove" else _by_unit
    one, other = (units(*world) for world in worlds)
    changed = [name for name in one.keys() | other.keys() if one[name] != other[name]]
    stays = any(one[name] and other[name] for name in changed)
    is_allowed = {
        "row": stays,
        "group": True,
        "row-add-remove": abs(len(worlds[0][1]) - len(worlds[1][1])) == 1,
        "group-add-remove": not stays,
    }
    if len(changed) != 1 or not is_allowed[unit]:
        raise ValueError(
            f"data and neighbouring_data differ in {len(changed)} {kind}s; neighbours "
            f"{NEIGHBOURS[unit]}."
        )


def _by_unit(X, y, groups=None):
    """Return the rows of each unit, in their order, such that NaN equals NaN."""
    X = _bare(X)
    ids = range(len(X)) if groups is None else np.asarray(groups).tolist()
    units = defaultdict(list)
    for one, row, label in zip(ids, X.tolist(), np.asarray(y).tolist(), strict=True):
        units[one].append(repr((row, label)))
    return units


def _by_row(X, y):
    """Count equal rows: an added row may stand anywhere among the others."""
    return Counter(
        repr((row, label))
        for row, label in zip(_bare(X).tolist(), np.asarray(y).tolist(), strict=True)
    )


def _bare(X):
    """Return rows as a dense array, to count or compare them."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def _stack(parts):
    """Put rows under each other, in the container that they came in."""
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        # pandas or polars, whichever made them: it is imported, and has a `concat`.
        library = sys.modules[type(parts[0]).__module__.partition(".")[0]]
        return library.concat(parts)
    return np.concatenate([np.asarray(part) for part in parts])

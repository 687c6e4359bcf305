"""Audits of learners: canaries, membership, neighbouring data sets."""

import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.base import clone, is_classifier
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._aggregation._checks import check_n_jobs
from sklearn_pate._aggregation._classifier import PublicRowsClassifier
from sklearn_pate._estimators._isolation import MAX_SEED, autologging_off, seeded_clone
from sklearn_pate._estimators._progress import check_verbose, phase, progress_of
from sklearn_pate._inputs._labels import PublicData
from sklearn_pate._pate import PATEClassifier
from sklearn_pate.accounting._statement import PrivacySpent, plans_privacy
from sklearn_pate.accounting._value_checks import check_count, counted
from sklearn_pate.exceptions import StudentWarning
from sklearn_pate.inspection._audit_result import (
    AuditResult,
    bound_from_guesses,
    check_confidence,
    epsilon_lower_bound,
    log_ratio_scores,
)
from sklearn_pate.learners._private_knn import PrivateKNNClassifier

# Smallest and largest distance to 0 and 1, which forests often predict.
_CLIP = 1e-3
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
        :class:`~sklearn_pate.PATEClassifier`, or one of ``sklearn_pate.learners``. Its
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

    if isinstance(estimator, _WITH_ANSWERS):
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


@dataclass(frozen=True)
class MembershipResult:
    """Result of a membership attack. Sensitive on sensitive data.

    Parameters
    ----------
    auc : float
        Area under the ROC curve, mean over the attacked models. 0.5 for random guesses.

    auc_std : float
        Standard deviation over the models. It is no standard error, as models share
        rows and shadow models.

    true_positive_rate : float
        Share of training rows that are recognised while at most `false_positive_rate`
        of the other rows are mistaken for training rows, mean over the models.

    false_positive_rate : float
        Allowed share of other rows that are mistaken for training rows.

    n_models : int
        Number of attacked models.

    Notes
    -----
    The attack is that of Carlini, Chien, Nasr, Song, Terzis, Tramer (2022), see
    :func:`audit_membership`. An (epsilon, delta) statement for each row bounds the
    probability that any attack recognises a row by e^epsilon times the probability of a
    false positive, plus delta. The rates here estimate means of both.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sklearn_pate.inspection import audit_membership
    >>> X, y = make_classification(400, flip_y=0.3, random_state=0)
    >>> result = audit_membership(
    ...     DecisionTreeClassifier(), X, y, n_models=6, random_state=0
    ... )
    >>> bool(result.auc > 0.6)  # trees memorise rows
    True
    >>> result.n_models, result.false_positive_rate
    (6, 0.01)
    """

    auc: float
    auc_std: float
    true_positive_rate: float
    false_positive_rate: float
    n_models: int

    def __str__(self) -> str:
        return (
            f"Over {self.n_models} models, the attack distinguishes training rows from "
            f"others with an AUC of {self.auc:.3f} ± {self.auc_std:.3f}, and finds "
            f"{self.true_positive_rate:.2%} of them at {self.false_positive_rate:.2%} "
            "false positives."
        )


def audit_membership(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    fit_params: Mapping[str, Any] | None = None,
    n_models: int = 16,
    false_positive_rate: float = 0.01,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: Any = "auto",
) -> MembershipResult:
    """Attack a classifier to find the rows that it was trained on.

    Models are trained on random halves of the rows. Each is attacked with knowledge of
    all rows and all other models: a row is taken for a training row if the model's
    probability of its label is more like that of models trained on the row than that of
    the others.

    The result is the mean success of this attack: an AUC of 0.5 is no proof of privacy.
    The rate at few false positives shows single unusual rows that are found without
    changing the mean. The result is as sensitive as the data.

    Parameters
    ----------
    estimator : classifier
        Classifier whose clones are fitted with different seeds; they charge no ledger.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Rows, each a training row of half of the models.

    y : array-like of shape (n_rows,)
        Their labels.

    fit_params : dict, default=None
        Further arguments of every fit: ``{"X_public": PublicData(X_public)}`` for a
        :class:`~sklearn_pate.PATEClassifier`.

    n_models : int, default=16
        Number of models; even, and at least 6. They come in pairs trained on
        complementary halves, so that each row is in half of the models.

    false_positive_rate : float, default=0.01
        False positive rate at which the rate of recognised rows is reported.

    random_state : int, RandomState instance or None, default=None
        Seed of the halves and the models.

    n_jobs : int, default=None
        Number of models trained in parallel, as in joblib.

    verbose : int or "auto", default="auto"
        Number of trained models on the standard error stream. "auto" shows it in a
        terminal or a notebook only, 1 also keeps a line, 0 shows nothing.

    Returns
    -------
    result : MembershipResult
        Means over the models. As sensitive as the data.

    Raises
    ------
    ValueError
        If a parameter is invalid; nothing was fitted.

    Notes
    -----
    Carlini, Chien, Nasr, Song, Terzis, Tramer (2022), "Membership inference attacks
    from first principles": the score of a row is the ratio of two normal densities of
    the logit of the probability of its label. Their means are estimated for each row
    from the models trained on it and from the others, their variances over all rows, as
    the paper advises for few models. Without `predict_proba`, the logit is 1 for a
    correct prediction and -1 for a wrong one.

    The other model of the attacked model's pair is left out: each row then has equally
    many shadow models with and without it, and their number does not reveal its
    membership.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sklearn_pate.inspection import audit_membership
    >>> X, y = make_classification(400, flip_y=0.3, random_state=0)
    >>> tree = DecisionTreeClassifier()
    >>> bool(audit_membership(tree, X, y, random_state=0).auc > 0.6)
    True
    """
    if not (hasattr(estimator, "fit") and is_classifier(estimator)):
        raise ValueError(f"estimator={estimator!r} is not a classifier; pass one.")
    check_count("n_models", n_models, 6)
    check_n_jobs(n_jobs)
    if n_models % 2:
        raise ValueError(
            f"n_models={n_models} is odd, and models come in pairs; add one."
        )
    if not 0 < false_positive_rate < 1:
        raise ValueError(
            f"false_positive_rate={false_positive_rate!r} must lie between 0 and 1; "
            "0.01 is usual."
        )
    check_verbose(verbose)
    check_consistent_length(X, y)
    y = np.asarray(y)
    rng = check_random_state(random_state)
    first_halves = np.array(
        [rng.permutation(len(y)) < len(y) // 2 for _ in range(n_models // 2)]
    )
    is_member = np.concatenate([first_halves, ~first_halves])
    seeds = rng.randint(MAX_SEED, size=n_models).tolist()
    logits = np.empty((n_models, len(y)))
    audit = SimpleNamespace(verbose=verbose)
    with progress_of(audit), phase("training models", n_models) as advance:
        trained = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_logits)(estimator, X, y, members, fit_params or {}, seed)
            for members, seed in zip(is_member, seeds, strict=True)
        )
        for model, own in enumerate(trained):
            logits[model] = own
            advance(1)
    aucs, rates = [], []
    for target in range(n_models):
        partner = (target + n_models // 2) % n_models
        shadows = np.delete(np.arange(n_models), [target, partner])
        scores = _log_ratios(logits[target], logits[shadows], is_member[shadows])
        aucs.append(roc_auc_score(is_member[target], scores))
        false, true, _ = roc_curve(is_member[target], scores, drop_intermediate=False)
        rates.append(true[false <= false_positive_rate].max())
    return MembershipResult(
        float(np.mean(aucs)),
        float(np.std(aucs, ddof=1)),
        float(np.mean(rates)),
        float(false_positive_rate),
        int(n_models),
    )


def _logits(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    members: NDArray[np.bool_],
    fit_params: Mapping[str, Any],
    seed: int,
) -> NDArray[np.float64]:
    """Train on the members; return the logit of every row's own label."""
    rows = np.flatnonzero(members)
    model = seeded_clone(estimator, seed)
    if "ledger" in model.get_params(deep=False):
        model.set_params(ledger=None)  # audits release nothing
    with autologging_off():
        model.fit(_safe_indexing(X, rows), y[rows], **fit_params)
        if not hasattr(model, "predict_proba"):
            return np.where(model.predict(X) == y, 1.0, -1.0)
        probabilities = model.predict_proba(X)
    own = np.zeros(len(y))  # 0 for labels that the model has not seen
    for column, label in zip(probabilities.T, model.classes_, strict=True):
        own = np.where(y == label, column, own)
    return logit(np.clip(own, _CLIP, 1 - _CLIP))


def _log_ratios(
    logits: NDArray[np.float64],
    shadow_logits: NDArray[np.float64],
    is_member: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the log ratio of the densities of models with and without each row."""
    log_densities = []
    for chosen in (is_member, ~is_member):
        n_models = chosen.sum(axis=0)
        means = np.sum(shadow_logits * chosen, axis=0) / n_models
        squares = np.sum((shadow_logits - means) ** 2 * chosen)
        # Not zero if all models agree on all rows.
        variance = squares / np.sum(n_models - 1) + 1e-12
        log_densities.append(
            -((logits - means) ** 2) / (2 * variance) - np.log(variance) / 2
        )
    return log_densities[0] - log_densities[1]


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
    data set than the claim allows. Unlike :func:`audit_canaries`, it also finds effects
    of one row on other rows, such as moving them to other teachers.

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

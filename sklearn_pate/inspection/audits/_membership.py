"""Audit by a membership attack: the likelihood-ratio attack."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._base._parameter_checks import check_n_jobs
from sklearn_pate._estimators._hooks import autologging_off
from sklearn_pate._estimators._progress import check_verbose, phase, progress_of
from sklearn_pate._estimators._seeding import MAX_SEED, seeded_clone
from sklearn_pate.accounting._value_checks import check_count

__all__ = ["MembershipResult", "audit_membership"]

# Smallest and largest distance to 0 and 1, which forests often predict.
_CLIP = 1e-3


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

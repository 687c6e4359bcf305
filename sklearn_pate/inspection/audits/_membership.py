"""Can anybody tell who was in the training data? The likelihood-ratio attack."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._estimators._hooks import autologging_off
from sklearn_pate._estimators._seeding import MAX_SEED, seeded_clone
from sklearn_pate._inputs._checks import check_count

__all__ = ["MembershipResult", "audit_membership"]

# Probabilities beyond this are no surer: forests say 0 and 1 often.
_SUREST = 1e-3


@dataclass(frozen=True)
class MembershipResult:
    """How well an attack tells training rows from others. Sensitive on sensitive data.

    Parameters
    ----------
    auc : float
        Area under the curve of true against false positives, mean over the attacked
        models. 0.5 is a coin.

    auc_std : float
        Standard deviation over the models. They share rows and shadow models, so that
        it is no standard error.

    true_positive_rate : float
        Share of the training rows that are recognised while the false positives are at
        most `false_positive_rate`, mean over the models.

    false_positive_rate : float
        Share of the other rows that may be taken for training rows.

    n_models : int
        Models that were attacked.

    Notes
    -----
    The attack is that of Carlini, Chien, Nasr, Song, Terzis, Tramer (2022), see
    :func:`audit_membership`. Where an (epsilon, delta) statement covers each row, the
    chance that any attack recognises a row is, by definition, at most e^epsilon times
    the chance that it takes the row for a training row when it was none, plus delta.
    What is measured here estimates means of both.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sklearn_pate.inspection import audit_membership
    >>> X, y = make_classification(400, flip_y=0.3, random_state=0)
    >>> result = audit_membership(
    ...     DecisionTreeClassifier(), X, y, n_models=6, random_state=0
    ... )
    >>> bool(result.auc > 0.6)  # the tree knows its rows by heart
    True
    >>> result.n_models, result.false_positive_rate
    (6, 0.01)
    """

    auc: float
    auc_std: float
    true_positive_rate: float
    false_positive_rate: float
    n_models: int

    def __str__(self):
        return (
            f"Over {self.n_models} models, the attack tells training rows from others "
            f"with an AUC of {self.auc:.3f} ± {self.auc_std:.3f}, and finds "
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
) -> MembershipResult:
    """Attack a classifier to find out which rows it was trained on.

    Models are trained on random halves of the rows. Each is then attacked by somebody
    who has all rows, all other models, and knows which rows these saw: is a row's own
    label as likely to the model as to models that saw the row, or as to models that did
    not?

    It measures what this attack finds, on average over rows, and nothing else: an AUC
    of 0.5 is no proof of privacy. A single odd row may be found without moving any mean
    much, which is what the rate at few false positives is for. The result is as
    sensitive as the data.

    Parameters
    ----------
    estimator : classifier
        Any. Clones of it are fitted, each with seeds of its own; they charge no ledger.

    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
        Rows, each private in half of the models.

    y : array-like of shape (n_rows,)
        Their labels.

    fit_params : dict, default=None
        Handed to every fit as it is: ``{"X_public": PublicData(X_public)}`` for a
        :class:`~sklearn_pate.PATEClassifier`.

    n_models : int, default=16
        Models; an even number of at least 6. They come in pairs that share the rows
        among them, so that each row is in half of the models.

    false_positive_rate : float, default=0.01
        At which the rate of recognised rows is reported.

    random_state : int, RandomState instance or None, default=None
        Seeds the halves and the models.

    n_jobs : int, default=None
        Models trained at once, as in joblib.

    Returns
    -------
    result : MembershipResult
        Means over the models. As sensitive as the data.

    Raises
    ------
    ValueError
        If a parameter cannot work; nothing was fitted.

    Notes
    -----
    Carlini, Chien, Nasr, Song, Terzis, Tramer (2022), "Membership inference attacks
    from first principles": a row's score is the ratio of two normal densities of the
    logit of the probability of its label, with means of its own, from the models that
    saw it and from those that did not, and with two variances shared by all rows, as
    the paper advises for few models. Without `predict_proba`, the logit is 1 where the
    prediction is right and -1 where it is wrong.

    The other half of the model under attack is left out of its shadow models: every row
    then has as many of them on either side, whether it was in the training data or not.
    Otherwise the number alone would move the score.

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
    if n_models % 2:
        raise ValueError(
            f"n_models={n_models} is odd, but models come in pairs; add one."
        )
    if not 0 < false_positive_rate < 1:
        raise ValueError(
            f"false_positive_rate={false_positive_rate!r} must lie between 0 and 1; "
            "0.01 is usual."
        )
    check_consistent_length(X, y)
    y = np.asarray(y)
    rng = check_random_state(random_state)
    first_halves = np.array(
        [rng.permutation(len(y)) < len(y) // 2 for _ in range(n_models // 2)]
    )
    is_member = np.concatenate([first_halves, ~first_halves])
    seeds = rng.randint(MAX_SEED, size=n_models).tolist()
    logits = np.array(
        Parallel(n_jobs=n_jobs)(
            delayed(_logits)(estimator, X, y, members, fit_params or {}, seed)
            for members, seed in zip(is_member, seeds, strict=True)
        )
    )
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


def _logits(estimator, X, y, members, fit_params, seed):
    """Train on the members; return the logit of every row's own label."""
    rows = np.flatnonzero(members)
    model = seeded_clone(estimator, seed)
    if "ledger" in model.get_params(deep=False):
        model.set_params(ledger=None)  # what an audit fits is not released
    with autologging_off():
        model.fit(_safe_indexing(X, rows), y[rows], **fit_params)
        if not hasattr(model, "predict_proba"):
            return np.where(model.predict(X) == y, 1.0, -1.0)
        probabilities = model.predict_proba(X)
    own = np.zeros(len(y))  # of a label that the model never saw
    for column, label in zip(probabilities.T, model.classes_, strict=True):
        own = np.where(y == label, column, own)
    return logit(np.clip(own, _SUREST, 1 - _SUREST))


def _log_ratios(
    logits: NDArray[np.float64],
    shadow_logits: NDArray[np.float64],
    is_member: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return ln of the density among models that saw a row over the other's."""
    log_densities = []
    for side in (is_member, ~is_member):
        n_models = side.sum(axis=0)
        means = np.sum(shadow_logits * side, axis=0) / n_models
        squares = np.sum((shadow_logits - means) ** 2 * side)
        # Not zero, where all models agree on all rows.
        variance = squares / np.sum(n_models - 1) + 1e-12
        log_densities.append(
            -((logits - means) ** 2) / (2 * variance) - np.log(variance) / 2
        )
    return log_densities[0] - log_densities[1]

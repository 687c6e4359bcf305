"""Checks of parameters shared by several private classifiers."""

from numbers import Integral, Real
from typing import Any

from sklearn.base import is_classifier
from sklearn.utils import get_tags

from sklearn_pate._base._parameters import (
    as_mechanism,
    as_query_strategy,
    memory_location,
)
from sklearn_pate._estimators._seeding import check_cloneable
from sklearn_pate._marginals._private_marginals import PrivateMarginals
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.mechanisms import MeanScores
from sklearn_pate.students._train_student import (
    accepts_soft_labels,
    accepts_unlabeled,
)

__all__ = [
    "check_classifier",
    "check_ledger",
    "check_memory",
    "check_n_jobs",
    "check_privacy_unit",
    "check_public_size",
    "check_scores",
    "check_strategy",
    "check_synthetic",
    "check_threshold",
    "check_transformer",
]


def check_classifier(name: str, estimator: Any) -> None:
    """Raise ValueError unless an estimator is a classifier, or None."""
    if estimator is None:
        return
    if isinstance(estimator, type):
        raise ValueError(
            f"{name}={estimator.__name__} is a class; pass an instance, "
            f"{estimator.__name__}()."
        )
    if hasattr(estimator, "fit"):
        _check_tags(name, estimator, "ClassifierMixin")
    # Some classifiers have `predict` only once they are fitted.
    if not (hasattr(estimator, "fit") and is_classifier(estimator)):
        raise ValueError(
            f"{name}={estimator!r} is not a classifier; pass one, such as "
            "RandomForestClassifier()."
        )
    check_cloneable(name, estimator)


def check_transformer(representation: Any) -> None:
    """Raise ValueError unless a representation is a transformer, or None."""
    if representation is None:
        return
    if isinstance(representation, type) or not (
        hasattr(representation, "fit") and hasattr(representation, "transform")
    ):
        raise ValueError(
            f"representation={representation!r} is not a transformer; pass one "
            "with fit and transform, such as PCA(50)."
        )
    _check_tags("representation", representation, "TransformerMixin")
    check_cloneable("representation", representation)


def _check_tags(name: str, estimator: Any, mixin: str) -> None:
    """Raise ValueError unless scikit-learn can read the tags of an estimator."""
    try:
        get_tags(estimator)
    except AttributeError as error:
        raise ValueError(
            f"{name}={estimator!r} has no __sklearn_tags__, or holds something that "
            f"has none; derive its class from {mixin} and BaseEstimator of "
            "sklearn.base, in this order."
        ) from error


def check_strategy(
    query_strategy: Any, mechanism: Any, release: str, student: Any
) -> None:
    """Raise ValueError unless a query strategy fits the mechanism and the student."""
    check_cloneable("mechanism", mechanism)
    ready = as_mechanism(mechanism, release)
    if isinstance(ready, MeanScores):
        ready.check()
        return
    check_cloneable("query_strategy", query_strategy)
    strategy = as_query_strategy(query_strategy, ready)
    if strategy is None:
        return
    strategy.check()
    if strategy.interactive != ready.needs_probabilities:
        raise ValueError(
            f"query_strategy={query_strategy!r} and mechanism={mechanism!r} do not go "
            "together: "
            + (
                "the mechanism needs probabilities of a student; use "
                "query_strategy='interactive'."
                if ready.needs_probabilities
                else "the strategy sends probabilities of a student; use "
                "mechanism='interactive'."
            )
        )
    for classifier in strategy.classifiers(student):
        if not hasattr(classifier, "predict_proba"):
            raise ValueError(
                f"query_strategy={query_strategy!r} needs predict_proba, which "
                f"{classifier!r} does not have; use another student, or give the "
                "strategy a classifier of its own."
            )


def check_scores(classifier: Any) -> None:
    """Raise ValueError for a parameter that the release of scores does not use."""
    mechanism = classifier.mechanism
    for name in ("n_queries", "query_strategy"):
        value = getattr(classifier, name)
        if not (isinstance(value, str) and value == "auto"):
            raise ValueError(
                f"{name}={value!r} and mechanism={mechanism!r} do not go together, as "
                f"no queries are answered; leave {name}='auto', or use "
                "mechanism='gnmax'."
            )
    student = classifier.student
    takes_labels_only = accepts_unlabeled(student) and not accepts_soft_labels(student)
    if student is not None and takes_labels_only:
        raise ValueError(
            f"student={student!r} learns from unlabelled rows and labels only, and "
            f"mechanism={mechanism!r} labels all; use another student, or "
            "mechanism='gnmax'."
        )


def check_synthetic(synthetic: Any) -> None:
    """Raise ValueError unless synthetic rows are described by PrivateMarginals."""
    if synthetic is None:
        return
    if not isinstance(synthetic, PrivateMarginals):
        raise ValueError(
            f"synthetic is of type {type(synthetic).__name__}; pass "
            "PrivateMarginals(domain), or None."
        )
    synthetic._check()


def check_threshold(threshold: Any) -> None:
    """Raise ValueError unless a threshold is a probability, or "auto"."""
    if isinstance(threshold, str) and threshold == "auto":
        return
    if (
        isinstance(threshold, bool)
        or not isinstance(threshold, Real)
        or not 0 < float(threshold) < 1
    ):
        raise ValueError(
            f"threshold={threshold!r} must be 'auto' or a probability between 0 and 1, "
            "such as 0.3. The number of votes from which a query is answered is "
            "threshold of a mechanism: mechanism=ConfidentGNMax(threshold=200)."
        )


def check_ledger(ledger: Any) -> None:
    """Raise ValueError unless a parameter is a ledger, or None."""
    if ledger is not None and not isinstance(ledger, PrivacyLedger):
        raise ValueError(
            f"ledger={ledger!r} is not a PrivacyLedger; pass PrivacyLedger(path, "
            "epsilon=3, delta=1e-6), or PrivacyLedger(path) to open one."
        )


def check_memory(memory: Any, random_state: Any) -> None:
    """Raise ValueError unless the folder and the random state allow its reuse."""
    if memory_location(memory) is None:
        return
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise ValueError(
            f"memory={memory!r} needs an integer random_state, and has "
            f"{random_state!r}: the next fit would draw other shards and teachers, and "
            "reuse nothing."
        )


def check_n_jobs(n_jobs: Any) -> None:
    """Raise ValueError unless a number of jobs is one that joblib accepts."""
    is_whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and not (is_whole and 0 < abs(n_jobs) < 2**31):
        raise ValueError(
            f"n_jobs={n_jobs!r} must be None, a positive integer, or -1 for all cores."
        )


def check_privacy_unit(privacy_unit: Any) -> None:
    """Raise ValueError unless a unit is known."""
    if privacy_unit not in ("row", "group"):
        raise ValueError(
            f"privacy_unit={privacy_unit!r} is unknown; use 'row' if each person "
            "has one row, or 'group' (with groups=) if a person may have several."
        )


def check_public_size(size: Any) -> None:
    """Raise ValueError unless a share of public rows is one, or None."""
    if size is not None and (
        isinstance(size, bool) or not isinstance(size, Real) or not 0 < float(size) < 1
    ):
        raise ValueError(
            f"public_size={size!r} must be None or a share strictly between 0 and 1, "
            "such as 0.2."
        )

"""Parameters of ensembles of teachers, checked before any work."""

from numbers import Integral, Real

from sklearn.base import is_classifier
from sklearn.utils import get_tags

from sklearn_pate._base._parameters import (
    as_mechanism,
    as_query_strategy,
    memory_location,
)
from sklearn_pate._inputs._labels import check_classes
from sklearn_pate.accounting._calibrate import check_epsilon
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger

__all__ = [
    "check_count_or_auto",
    "check_ensemble_parameters",
    "check_ledger",
    "check_parameters",
    "check_questions",
    "check_taught_parameters",
]

PRIVACY_UNITS = ("row", "group")


def check_parameters(pate):
    """Raise ValueError for the first parameter that cannot work, whatever the data.

    Parameters
    ----------
    pate : PATEClassifier
        Its parameters are read, not changed.
    """
    check_ensemble_parameters(pate)
    check_questions(pate)


def check_questions(pate):
    """Raise ValueError for the first parameter about questions that cannot work.

    Parameters
    ----------
    pate : PATEClassifier or PrivateKNNClassifier
        Its parameters are read, not changed.
    """
    check_count_or_auto("n_queries", pate.n_queries)
    mechanism = as_mechanism(pate.mechanism, pate.release)
    strategy = as_query_strategy(pate.query_strategy, mechanism)
    if strategy is not None:
        _check_strategy(strategy, mechanism, pate)


def check_ensemble_parameters(pate):
    """Raise ValueError for the first parameter that no ensemble of teachers can have.

    Parameters
    ----------
    pate : TeacherEnsemble
        Its parameters are read, not changed.
    """
    _check_classifier("estimator", pate.estimator)
    check_count_or_auto("n_teachers", pate.n_teachers)
    check_taught_parameters(pate)
    _check_memory(pate.memory, pate.random_state)
    if pate.n_jobs is not None and (
        isinstance(pate.n_jobs, bool)
        or not isinstance(pate.n_jobs, Integral)
        or pate.n_jobs == 0
    ):
        raise ValueError(
            f"n_jobs={pate.n_jobs!r} must be None, a positive integer, or -1 for all "
            "cores."
        )


def check_taught_parameters(pate):
    """Raise ValueError for the first parameter that no student can be taught with.

    Parameters
    ----------
    pate : TaughtClassifier
        Its parameters are read, not changed.
    """
    _check_classifier("student", pate.student)
    _check_transformer(pate.representation)
    if pate.epsilon is not None:
        check_epsilon(pate.epsilon)
    check_delta(pate.delta)
    if pate.privacy_unit not in PRIVACY_UNITS:
        raise ValueError(
            f"privacy_unit={pate.privacy_unit!r} is unknown; use 'row' if each person "
            "has one row, 'group' (and groups=) if a person may have several."
        )
    size = pate.public_size
    if size is not None and (
        isinstance(size, bool) or not isinstance(size, Real) or not 0 < size < 1
    ):
        raise ValueError(
            f"public_size={size!r} must be None or a share strictly between 0 and 1, "
            "such as 0.2."
        )
    if pate.classes is not None:
        check_classes(pate.classes)
    check_ledger(pate.ledger)


def _check_classifier(name, estimator):
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


def _check_transformer(representation):
    if representation is None:
        return
    if isinstance(representation, type) or not (
        hasattr(representation, "fit") and hasattr(representation, "transform")
    ):
        raise ValueError(
            f"representation={representation!r} is no transformer; pass one that has "
            "fit and transform, such as PCA(50)."
        )
    _check_tags("representation", representation, "TransformerMixin")


def _check_tags(name, estimator, mixin):
    """Raise unless scikit-learn can ask for the tags of an estimator."""
    try:
        get_tags(estimator)
    except AttributeError as error:
        raise ValueError(
            f"{name}={estimator!r} has no __sklearn_tags__, or holds something that "
            f"has none; derive its class from {mixin} and BaseEstimator of "
            "sklearn.base, in this order."
        ) from error


def _check_strategy(strategy, mechanism, pate):
    strategy.check()
    if strategy.interactive != mechanism.needs_probabilities:
        raise ValueError(
            f"query_strategy={pate.query_strategy!r} and "
            f"mechanism={pate.mechanism!r} do not go together: "
            + (
                "the mechanism is asked with a student's probabilities; use "
                "query_strategy='interactive'."
                if mechanism.needs_probabilities
                else "the strategy asks with a student's probabilities; use "
                "mechanism='interactive'."
            )
        )
    for classifier in strategy.classifiers(pate._unfitted_student()):
        if not hasattr(classifier, "predict_proba"):
            raise ValueError(
                f"query_strategy={pate.query_strategy!r} needs predict_proba, which "
                f"{classifier!r} does not have; use another student, or give the "
                "strategy a classifier of its own."
            )


def check_ledger(ledger):
    """Raise unless a parameter is a ledger, or None.

    Parameters
    ----------
    ledger : PrivacyLedger or None
        The parameter.
    """
    if ledger is not None and not isinstance(ledger, PrivacyLedger):
        raise ValueError(
            f"ledger={ledger!r} is no account; pass PrivacyLedger(path, epsilon=3, "
            "delta=1e-6), or PrivacyLedger(path) to open one."
        )


def _check_memory(memory, random_state):
    if memory_location(memory) is None:
        return
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise ValueError(
            f"memory={memory!r} needs an integer random_state, and has "
            f"{random_state!r}: the next fit would have other shards and teachers, and "
            "find nothing."
        )


def check_count_or_auto(name, value):
    """Raise unless a parameter is a positive whole number, or "auto".

    Parameters
    ----------
    name : str
        Its name.

    value : int or "auto"
        Its value.
    """
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(
            f"{name}={value!r} must be 'auto' or an integer of at least 1."
        )

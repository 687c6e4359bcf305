"""Parameters of PATEClassifier: checked before any work, and made into numbers."""

import os
from numbers import Integral, Real

from joblib import Memory
from sklearn.base import is_classifier
from sklearn.ensemble import RandomForestClassifier

from sklearn_pate.accounting.calibrate import check_epsilon
from sklearn_pate.accounting.curve import check_delta
from sklearn_pate.accounting.ledger import PrivacyLedger
from sklearn_pate.labels import check_classes
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    Mechanism,
    NoisyHistogram,
    PermuteAndFlip,
)
from sklearn_pate.students import (
    ClusterQueries,
    ExpertQueries,
    InteractiveQueries,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
    UncertaintyQueries,
    accepts_unlabeled,
)

__all__ = [
    "as_mechanism",
    "as_query_strategy",
    "as_teacher",
    "check_parameters",
    "memory_location",
    "prefers_representative",
    "prepared_mechanism",
    "resolve_n_queries",
    "resolve_n_teachers",
    "unfitted_student",
]

MECHANISMS = {
    "gnmax": GNMax,
    "lnmax": LNMax,
    "gumbel": GumbelMax,
    "permute-and-flip": PermuteAndFlip,
    "confident": ConfidentGNMax,
    "interactive": InteractiveGNMax,
}
QUERY_STRATEGIES = {
    "random": RandomQueries,
    "representative": RepresentativeQueries,
    "uncertainty": UncertaintyQueries,
    "experts": ExpertQueries,
    "cluster": ClusterQueries,
    "interactive": InteractiveQueries,
}
RELEASES = ("answers", "histogram")
PRIVACY_UNITS = ("row", "group")

# "auto": as many answers as still help a student on labelled rows, few for one that
# also learns from unlabelled rows.
_AUTO_QUERIES, _AUTO_QUERIES_SEMI_SUPERVISED = 2000, 100
# "auto": below this share of the public rows, typical rows are asked about. With more
# questions they cover the public rows in any case, and random ones are quicker to find.
_FEW_QUERIES = 0.1


def check_parameters(pate):
    """Raise ValueError for the first parameter that cannot work, whatever the data.

    Parameters
    ----------
    pate : PATEClassifier
        Its parameters are read, not changed.
    """
    _check_classifier("estimator", pate.estimator)
    _check_classifier("student", pate.student)
    _check_count("n_teachers", pate.n_teachers)
    _check_count("n_queries", pate.n_queries)
    _check_transformer(pate.representation)
    mechanism = as_mechanism(pate.mechanism, pate.release)
    strategy = as_query_strategy(pate.query_strategy, mechanism)
    if strategy is not None:
        _check_strategy(strategy, mechanism, pate)
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
    _check_ledger(pate.ledger)
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


def as_teacher(estimator):
    """Return the teacher to be cloned.

    Parameters
    ----------
    estimator : classifier or None
        The parameter of PATEClassifier.

    Returns
    -------
    teacher : classifier
        A random forest for None.
    """
    return RandomForestClassifier() if estimator is None else estimator


def unfitted_student(pate):
    """Return the student to be cloned.

    Parameters
    ----------
    pate : PATEClassifier
        Its parameters are read.

    Returns
    -------
    student : classifier
        The teacher where no student is named.
    """
    return as_teacher(pate.estimator) if pate.student is None else pate.student


def as_mechanism(mechanism, release):
    """Return the mechanism that a name stands for, or the mechanism itself.

    Parameters
    ----------
    mechanism : str or Mechanism
        The parameter of PATEClassifier.

    release : {"answers", "histogram"}
        The parameter of PATEClassifier.

    Returns
    -------
    mechanism : Mechanism
        Perhaps with noise parameters that are not set yet.

    Raises
    ------
    ValueError
        If it is neither, or does not go with `release`.
    """
    if release not in RELEASES:
        raise ValueError(
            f"release={release!r} is unknown; use 'answers' or 'histogram'."
        )
    known = isinstance(mechanism, str) and mechanism in MECHANISMS
    if not known and not isinstance(mechanism, Mechanism):
        raise ValueError(
            f"mechanism={mechanism!r} is unknown; use one of {sorted(MECHANISMS)}, or "
            "a mechanism such as GNMax(sigma=40)."
        )
    chosen = MECHANISMS[mechanism]() if known else mechanism
    if release == "histogram":
        if type(chosen) not in (GNMax, NoisyHistogram):
            raise ValueError(
                f"release='histogram' publishes votes with Gaussian noise, and "
                f"mechanism={mechanism!r} is another; use 'gnmax'."
            )
        return NoisyHistogram(chosen.sigma, noise_seed=chosen.noise_seed)
    if chosen.releases_histograms:
        raise ValueError(
            f"mechanism={mechanism!r} charges for whole histograms; set "
            "release='histogram' to use them, or use GNMax."
        )
    return chosen


def prepared_mechanism(pate, epsilon, *, n_teachers, n_queries, n_classes):
    """Return the mechanism of a fit with all its numbers.

    Parameters
    ----------
    pate : PATEClassifier
        Its mechanism, release and delta are read.

    epsilon : float or None
        Target for the price of the whole fit. None keeps the noise as it is.

    n_teachers : int
        Number of teachers.

    n_queries : int
        Number of questions.

    n_classes : int
        Number of classes.

    Returns
    -------
    mechanism : Mechanism
        Ready to answer.

    Raises
    ------
    ValueError
        If `epsilon` and noise parameters are both given, or neither.
    """
    return as_mechanism(pate.mechanism, pate.release).prepared(
        n_teachers=n_teachers,
        n_queries=n_queries,
        n_classes=n_classes,
        epsilon=epsilon,
        delta=pate.delta,
    )


def as_query_strategy(query_strategy, mechanism):
    """Return the query strategy that a name stands for, or the strategy itself.

    Parameters
    ----------
    query_strategy : str or QueryStrategy
        The parameter of PATEClassifier.

    mechanism : Mechanism
        How questions are answered.

    Returns
    -------
    strategy : QueryStrategy or None
        None for "auto", unless the mechanism leaves one only.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if isinstance(query_strategy, QueryStrategy):
        return query_strategy
    if isinstance(query_strategy, str):
        if query_strategy == "auto":
            return InteractiveQueries() if mechanism.needs_probabilities else None
        if query_strategy in QUERY_STRATEGIES:
            return QUERY_STRATEGIES[query_strategy]()
    raise ValueError(
        f"query_strategy={query_strategy!r} is unknown; use 'auto', one of "
        f"{sorted(QUERY_STRATEGIES)}, or a strategy such as UncertaintyQueries()."
    )


def prefers_representative(n_queries, n_public):
    """Tell whether "auto" asks about representative rows.

    Parameters
    ----------
    n_queries : int
        Number of questions.

    n_public : int
        Number of public rows.

    Returns
    -------
    prefers : bool
        Whether questions are few; whether the rows are numbers is another matter.
    """
    return n_queries < _FEW_QUERIES * n_public


def memory_location(memory):
    """Return the folder in which finished teachers' votes are kept.

    Parameters
    ----------
    memory : str, path-like, joblib.Memory or None
        The parameter of PATEClassifier.

    Returns
    -------
    location : str or None
        None keeps nothing.

    Raises
    ------
    ValueError
        If it is none of these, or a Memory that does not write files.
    """
    if isinstance(memory, Memory) and memory.backend == "local":
        memory = memory.location
    if memory is None:
        return None
    if not isinstance(memory, (str, os.PathLike)):
        raise ValueError(
            f"memory={memory!r} must be None, a folder, or a joblib.Memory in a folder."
        )
    return os.path.abspath(memory)  # workers may have another working directory


def resolve_n_teachers(n_teachers, n_rows):
    """Return the number of teachers.

    Parameters
    ----------
    n_teachers : int or "auto"
        The parameter of PATEClassifier.

    n_rows : int
        Number of private rows; it must be public if `n_teachers` is "auto".

    Returns
    -------
    n_teachers : int
        The square root of the number of rows for "auto".
    """
    return round(n_rows**0.5) if n_teachers == "auto" else n_teachers


def resolve_n_queries(n_queries, n_public, student):
    """Return the number of questions.

    Parameters
    ----------
    n_queries : int or "auto"
        The parameter of PATEClassifier.

    n_public : int
        Number of public rows.

    student : classifier
        Whoever learns from the answers.

    Returns
    -------
    n_queries : int
        At most `n_public`.

    Raises
    ------
    ValueError
        If there are fewer public rows than questions.
    """
    if n_queries == "auto":
        semi_supervised = accepts_unlabeled(student)
        few = _AUTO_QUERIES_SEMI_SUPERVISED if semi_supervised else _AUTO_QUERIES
        return min(n_public, few)
    if n_queries > n_public:
        raise ValueError(
            f"n_queries={n_queries} is more than the {n_public} public rows, and each "
            "is asked at most once; lower n_queries or bring more public rows."
        )
    return n_queries


def _check_classifier(name, estimator):
    if estimator is None:
        return
    if isinstance(estimator, type):
        raise ValueError(
            f"{name}={estimator.__name__} is a class; pass an instance, "
            f"{estimator.__name__}()."
        )
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
    for classifier in strategy.classifiers(unfitted_student(pate)):
        if not hasattr(classifier, "predict_proba"):
            raise ValueError(
                f"query_strategy={pate.query_strategy!r} needs predict_proba, which "
                f"{classifier!r} does not have; use another student, or give the "
                "strategy a classifier of its own."
            )


def _check_ledger(ledger):
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


def _check_count(name, value):
    if isinstance(value, str) and value == "auto":
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(
            f"{name}={value!r} must be 'auto' or an integer of at least 1."
        )

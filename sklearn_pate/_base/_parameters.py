"""Parameters of PATEClassifier, made into objects and numbers."""

import os

from joblib import Memory
from sklearn.ensemble import RandomForestClassifier

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
)
from sklearn_pate.students._train_student import accepts_unlabeled

__all__ = [
    "as_mechanism",
    "as_query_strategy",
    "as_teacher",
    "calibrated_mechanism",
    "memory_location",
    "prefers_representative",
    "resolve_n_queries",
    "resolve_n_teachers",
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

# "auto": as many answers as still help a student on labelled rows, few for one that
# also learns from unlabelled rows.
_AUTO_QUERIES, _AUTO_QUERIES_SEMI_SUPERVISED = 2000, 100
# "auto": below this share of the public rows, typical rows are asked about. With more
# queries they cover the public rows in any case, and random ones are quicker to find.
_FEW_QUERIES = 0.1


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


def calibrated_mechanism(
    mechanism: str | Mechanism,
    release: str,
    *,
    n_teachers: int,
    n_queries: int,
    n_classes: int,
    epsilon: float | None,
    delta: float,
) -> Mechanism:
    """Return the mechanism of a fit with all its numbers.

    With an epsilon, noise is calibrated to it; with None, it stays as it is.

    Raises
    ------
    ValueError
        If `epsilon` and noise parameters are both given, or neither.
    """
    return as_mechanism(mechanism, release).prepared(
        n_teachers=n_teachers,
        n_queries=n_queries,
        n_classes=n_classes,
        epsilon=epsilon,
        delta=delta,
    )


def as_query_strategy(query_strategy, mechanism):
    """Return the query strategy that a name stands for, or the strategy itself.

    Parameters
    ----------
    query_strategy : str or QueryStrategy
        The parameter of PATEClassifier.

    mechanism : Mechanism
        How queries are answered.

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
        Number of queries.

    n_public : int
        Number of public rows.

    Returns
    -------
    prefers : bool
        Whether queries are few; whether the rows are numbers is another matter.
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
    """Return the number of queries.

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
        If there are fewer public rows than queries.
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

"""Default choices, as rules of numbers that do not depend on private data."""

import os
import re
from typing import Any, Literal

from joblib import Memory
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import make_pipeline

from sklearn_pate._inputs._containers import Table
from sklearn_pate.accounting._gdp import largest_gdp_mu
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    MeanScores,
    Mechanism,
    NoisyHistogram,
    PermuteAndFlip,
)
from sklearn_pate.publication._student_state import is_of
from sklearn_pate.students import (
    ClusterQueries,
    ExpertQueries,
    ImageRepresentation,
    InteractiveQueries,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
    TableRepresentation,
    UncertaintyQueries,
)
from sklearn_pate.students._basis import ScoreBasis
from sklearn_pate.students._train_student import accepts_unlabeled

# Coordinates of a score function that the noise must allow.
_FEWEST_COORDINATES = 32
# Functions of a row that the default student learns from, and answers for each.
_OF_STUDENT, _ROWS_OF_STUDENT = 100, 10
MECHANISMS: dict[str, type[Mechanism | MeanScores]] = {
    "auto": GNMax,  # unless mean scores are released
    "gnmax": GNMax,
    "lnmax": LNMax,
    "gumbel": GumbelMax,
    "permute-and-flip": PermuteAndFlip,
    "confident": ConfidentGNMax,
    "interactive": InteractiveGNMax,
    "scores": MeanScores,
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

# "auto": more answers hardly improve a student on labelled rows; a student that learns
# from unlabelled rows, too, needs few.
_AUTO_QUERIES, _AUTO_QUERIES_SEMI_SUPERVISED = 2000, 100
# "auto": below this fraction of the public rows, representative rows are queried. More
# queries cover the public rows in any case, and random rows are found faster.
_FEW_QUERIES = 0.1


def default_teacher(estimator: Any) -> Any:
    """Return the teacher to be cloned."""
    return LogisticRegression(C=10, max_iter=1000) if estimator is None else estimator


def default_representation(
    estimator: Any, representation: Any, X_public: Table | None
) -> Any:
    """Return the representation that teachers see, None for the columns.

    A teacher with an encoder of its own gets the columns, and so do trees and networks.
    """
    if representation is None or _is_given(representation):
        return representation
    if estimator is None or _gains_from_representation(estimator):
        return _of_rows_or_images(X_public)
    return None


def _gains_from_representation(teacher: Any) -> bool:
    """Return whether a teacher gains from similar scales and no redundant columns."""
    # Slow to import.
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.neighbors import (
        KNeighborsClassifier,
        NearestCentroid,
        RadiusNeighborsClassifier,
    )

    return isinstance(
        teacher,
        LinearClassifierMixin
        | QuadraticDiscriminantAnalysis
        | KNeighborsClassifier
        | RadiusNeighborsClassifier
        | NearestCentroid,
    )


def _is_given(representation: Any) -> bool:
    """Return whether a representation is neither None nor left to a rule."""
    is_auto = isinstance(representation, str) and representation == "auto"
    return representation is not None and not is_auto


def _of_rows_or_images(X_public: Table | None) -> BaseEstimator:
    if X_public is None or is_table(X_public):
        return TableRepresentation()
    return ImageRepresentation()


def default_student(estimator: Any, X_public: Table | None) -> Any:
    """Return the student of noisy answers; it averages over them.

    Networks, and teachers of images, are students themselves.
    """
    of_images = X_public is not None and not is_table(X_public)
    if is_of(estimator, "skorch") or (estimator is not None and of_images):
        return estimator
    return make_pipeline(
        _of_rows_or_images(X_public),
        ScoreBasis(
            _OF_STUDENT, rbf=True, random_state=0, rows_per_coordinate=_ROWS_OF_STUDENT
        ),
        LogisticRegression(max_iter=1000),
    )


def is_table(X: Table) -> bool:
    """Check that rows have columns: images have more dimensions."""
    return len(X.shape) == 2


def releases_function(classifier: Any, X_public: Table | None, n_classes: int) -> bool:
    """Return whether "auto" may release mean scores instead of answers.

    Where the teachers, the student and the public rows allow it, and no parameter of
    answers is given. Without public rows, these are taken for a table.
    """
    student = classifier.student
    return (
        classifier.mechanism == "auto"
        and classifier.n_queries == classifier.query_strategy == "auto"
        and classifier.release == "answers"
        and n_classes > 1
        and (classifier.estimator is None or X_public is None or is_table(X_public))
        and not is_of(classifier.estimator, "skorch")
        and not (student is not None and accepts_unlabeled(student))
    )


def allows_scores(
    n_teachers: int, n_classes: int, epsilon: float, delta: float
) -> bool:
    """Return whether the noise on mean scores allows enough coordinates."""
    # Radius of a ball over the noise on the mean of score functions in it.
    signal = n_teachers * largest_gdp_mu(epsilon, delta) / 2
    return signal**2 / (n_classes - 1) >= _FEWEST_COORDINATES


def as_teacher(estimator: Any) -> BaseEstimator:
    """Return the teacher to be cloned: a random forest for None."""
    from sklearn.ensemble import RandomForestClassifier  # slow to import

    return RandomForestClassifier() if estimator is None else estimator


def as_mechanism(
    mechanism: str | Mechanism | MeanScores,
    release: str,
    noise_seed: int | None = None,
) -> Mechanism | MeanScores:
    """Return the mechanism of these parameters of PATEClassifier, or raise ValueError.

    Its noise parameters may be None.
    """
    if release not in RELEASES:
        raise ValueError(
            f"release={release!r} is unknown; use 'answers' or 'histogram'."
        )
    if isinstance(mechanism, Mechanism | MeanScores):
        chosen = mechanism
        if chosen.noise_seed is not None:
            raise ValueError(
                f"mechanism={mechanism!r} has a noise_seed; set noise_seed="
                f"{chosen.noise_seed!r} on the classifier instead."
            )
    elif isinstance(mechanism, str) and mechanism in MECHANISMS:
        chosen = MECHANISMS[mechanism]()
    else:
        meant = _meant(mechanism)
        raise ValueError(
            f"mechanism={mechanism!r} is unknown; use "
            + (f"{meant!r}, or " if meant else "")
            + f"one of {sorted(MECHANISMS)}, or a mechanism such as GNMax(sigma=40)."
        )
    if noise_seed is not None:
        chosen = clone(chosen).set_params(noise_seed=noise_seed)
    if release == "histogram":
        if type(chosen) not in (GNMax, NoisyHistogram):
            raise ValueError(
                "release='histogram' supports only mechanism='gnmax', got "
                f"mechanism={mechanism!r}."
            )
        return NoisyHistogram(**chosen.get_params())
    if chosen.releases_histograms and not isinstance(chosen, MeanScores):
        raise ValueError(
            f"mechanism={mechanism!r} releases histograms; set release='histogram', or "
            "use GNMax."
        )
    return chosen


def _meant(mechanism: Any) -> str | None:
    """Return the name of a mechanism that is written as in the papers."""
    written = re.sub("[^a-z]", "", str(mechanism).lower())
    for name, kind in MECHANISMS.items():
        same = (name.replace("-", ""), kind.__name__.lower())
        if name != "auto" and written in same:
            return name
    return None


def as_query_strategy(
    query_strategy: str | QueryStrategy, mechanism: Mechanism
) -> QueryStrategy | None:
    """Return the query strategy of this parameter, or raise ValueError.

    None stands for "auto", unless the mechanism allows one strategy only.
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


def prefers_representative(n_queries: int, n_public: int) -> bool:
    """Return whether "auto" chooses representative rows, as queries are few."""
    return n_queries < _FEW_QUERIES * n_public


def memory_location(memory: Any) -> str | None:
    """Return the folder that keeps the votes of finished teachers, None without one."""
    if isinstance(memory, Memory) and memory.backend == "local":
        memory = memory.location
    if memory is None:
        return None
    if not isinstance(memory, (str, os.PathLike)):
        raise ValueError(
            f"memory={memory!r} must be None, a folder, or a joblib.Memory in a folder."
        )
    return os.path.abspath(memory)  # workers may have another working directory


def resolve_n_teachers(n_teachers: int | Literal["auto"], n_rows: int) -> int:
    """Return the number of teachers: for "auto", the square root of the number of rows.

    The number of rows must be public for "auto".
    """
    return round(n_rows**0.5) if n_teachers == "auto" else n_teachers


def resolve_n_queries(
    n_queries: int | Literal["auto"], n_public: int, student: BaseEstimator
) -> int:
    """Return the number of queries, or raise ValueError if public rows are fewer."""
    if n_queries == "auto":
        semi_supervised = accepts_unlabeled(student)
        few = _AUTO_QUERIES_SEMI_SUPERVISED if semi_supervised else _AUTO_QUERIES
        return min(n_public, few)
    if n_queries > n_public:
        raise ValueError(
            f"n_queries={n_queries} is more than the "
            f"{counted(n_public, 'public row')}, each of "
            "which is queried at most once; lower n_queries or bring more public rows."
        )
    return n_queries

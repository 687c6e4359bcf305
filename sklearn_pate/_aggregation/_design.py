"""Default choices, as rules of numbers that do not depend on private data."""

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Protocol, cast

from scipy.stats import norm
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import make_pipeline

from sklearn_pate._estimators._kinds import accepts_unlabeled, has_after_fit, is_of
from sklearn_pate._inputs._containers import Table
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate.accounting._calibrate import largest_gdp_mu
from sklearn_pate.accounting._sites import shared_release
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    MeanScores,
    NoisyHistogram,
    PermuteAndFlip,
    PluralityMechanism,
)
from sklearn_pate.mechanisms._noisy_sum import Threshold
from sklearn_pate.students import (
    ExpertQueries,
    ImageRepresentation,
    ImageStudent,
    InteractiveQueries,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
    TableRepresentation,
    UncertaintyQueries,
)
from sklearn_pate.students._image_student import FEW_COMPONENTS

# Teachers of mean scores, in square roots of the number of rows: those that learn from
# a representation, and others. Measured on tables.
_TIMES_FROM_FEW, _TIMES = 3, 2
# Teachers of images, and rows of each class that each of them has at least. Measured on
# MNIST, SVHN and CIFAR-10.
_TIMES_OF_IMAGES, _ROWS_OF_CLASS = 4, 2
# Prior variance of the log-odds of votes, over the sum of the variances of the rows
# that the default student learns from. Measured on tables.
_VARIANCE = 0.64 / 5
MECHANISMS: dict[str, type[PluralityMechanism | MeanScores]] = {
    "auto": GNMax,  # unless mean scores are released
    "gnmax": GNMax,
    "lnmax": LNMax,
    "gumbel": GumbelMax,
    "permute-and-flip": PermuteAndFlip,
    "confident": ConfidentGNMax,
    "interactive": InteractiveGNMax,
    "histogram": NoisyHistogram,
    "scores": MeanScores,
}
QUERY_STRATEGIES = {
    "random": RandomQueries,
    "representative": RepresentativeQueries,
    "uncertainty": UncertaintyQueries,
    "experts": ExpertQueries,
    "interactive": InteractiveQueries,
}

# "auto": more answers hardly improve a student that averages over them; one that learns
# from unlabelled rows, too, needs few; networks and other students of images need right
# ones.
_AUTO_QUERIES, _AUTO_QUERIES_SEMI_SUPERVISED = 2000, 100
_RIGHT, _FEWEST_QUERIES = 0.9, 20


@dataclass(frozen=True)
class Design:
    """Choices of a fit, without "auto" and without private data."""

    #: The teacher to be cloned.
    teacher: Any
    #: Transformer of the rows that teachers see; None for the columns.
    representation: Any
    #: The student to be cloned; None for the released score model itself.
    student: Any
    #: Its noise may be set later.
    mechanism: Any
    n_teachers: int
    #: 0 for a release without queries.
    n_queries: int
    #: "auto" chooses by the public rows.
    query_strategy: str | QueryStrategy
    #: Number of answers that a student needs right, None if it averages.
    right_answers: int | None = None
    #: Whether votes are balanced, so that shares of classes are released, too.
    balanced: bool = False
    #: Slope of the student's log-odds, as noise flattens those of votes; None for one
    #: that released labels suggest.
    slope: float | None = 1.0
    threshold: Any = "auto"
    #: Number of components of the representation that teachers see; None for all.
    n_components: int | None = None


class PATEParameters(Protocol):
    """Parameters of PATEClassifier that its choices depend on."""

    estimator: Any
    student: Any
    n_teachers: int | Literal["auto"]
    mechanism: str | PluralityMechanism | MeanScores
    n_queries: int | Literal["auto"]
    query_strategy: Any
    representation: Any
    vote: Literal["balanced", "plain"]
    threshold: float | Threshold
    epsilon: float | None
    delta: float
    synthetic: PrivateMarginals | None


def design_fit(
    pate: PATEParameters,
    X_public: Table | None,
    *,
    n_public: int,
    n_rows: int | None,
    n_classes: int,
) -> Design:
    """Make all choices of a fit of PATEClassifier that its parameters leave open.

    `X_public` tells a table from images; None is a table. `n_rows` is the number of
    private rows, None where it is not public.
    """
    mechanism = as_mechanism(pate.mechanism)
    if _may_release_scores(pate, n_classes):
        mechanism = MeanScores()
    if isinstance(pate.mechanism, str) and isinstance(mechanism, MeanScores):
        few = _n_components(pate, X_public) is not None
        mechanism = MeanScores("linear" if few else "rbf")
    is_of_votes = isinstance(mechanism, PluralityMechanism)
    n_teachers = _n_teachers(pate, X_public, n_rows, n_classes, scores=not is_of_votes)
    if (shared := shared_release()) is not None:
        n_teachers = shared.in_equal_parts(n_teachers, exact=pate.n_teachers != "auto")
    student, n_queries, right, balanced = pate.student, 0, None, False
    if student is None and (is_of_votes or _has_image_student(pate, X_public)):
        student = default_student(pate.estimator, X_public)
    if is_of_votes:
        right = _n_right_answers(pate, X_public, student, n_teachers, n_classes)
        n_queries = resolve_n_queries(pate.n_queries, n_public, student, right)
        balanced = _may_be_balanced(pate, student, n_classes)
    check_two_classes(pate.threshold, n_classes)
    if is_of_votes and not balanced:
        _check_no_threshold(pate, "plain votes are counted here")
    if not (is_of_votes or student is None or isinstance(student, ImageStudent)):
        _check_no_threshold(pate, "a student of your own predicts by its own rule")
    design = Design(
        default_teacher(pate.estimator),
        default_representation(pate.estimator, pate.representation, X_public),
        student,
        mechanism,
        n_teachers,
        n_queries,
        pate.query_strategy,
        right,
        balanced,
        None if isinstance(student, ImageStudent) else 1.0,
        pate.threshold,
        _n_components(pate, X_public),
    )
    return for_noise(design, pate, n_classes)


def _check_no_threshold(pate: PATEParameters, why: str) -> None:
    """Raise ValueError for a threshold of probabilities without released shares."""
    if pate.threshold != "auto":
        raise ValueError(
            f"threshold={pate.threshold!r} is for probabilities with the shares of the "
            f"private classes, but {why}; set threshold='auto'."
        )


def for_noise(design: Design, pate: PATEParameters, n_classes: int) -> Design:
    """Set the penalty of the default student of a table by the noise of its answers."""
    is_own = design.student is default_student(None, None)
    if not is_own or pate.epsilon is None or n_classes < 2:
        return design
    slope = _slope(pate, design.n_teachers, design.n_queries, n_classes)
    student = clone(design.student)
    student.set_params(logisticregression__C=_VARIANCE / slope**2)
    return replace(design, student=student, slope=slope)


def _slope(
    pate: PATEParameters, n_teachers: int, n_queries: int, n_classes: int
) -> float:
    """Return the ratio of the log-odds of votes to those of noisy answers, nearly.

    For votes that are nearly equal, and normal noise on each count. The mean of the
    largest of normal numbers is that of Blom (1958), "Statistical estimates and
    transformed beta-variables".
    """
    sigma = n_queries**0.5 / _mu_of_noise(pate)
    largest = norm.ppf((n_classes - 0.375) / (n_classes + 0.25))
    return float((n_classes - 1) * sigma / (n_teachers * largest))


def _mu_of_noise(pate: PATEParameters) -> float:
    """Return mu of a release with the noise that is drawn, by the public epsilon."""
    mu = largest_gdp_mu(cast(float, pate.epsilon), pate.delta)
    # Sites together draw more noise than is counted.
    return mu if (shared := shared_release()) is None else mu / shared.wider


def _may_be_balanced(pate: PATEParameters, student: Any, n_classes: int) -> bool:
    """Return whether votes can be balanced, with probabilities of released shares."""
    synthetic = pate.synthetic
    return (
        pate.vote == "balanced"
        and pate.epsilon is not None
        and n_classes > 1
        and has_after_fit(student, "predict_proba")
        and (synthetic is None or synthetic.by_class)
    )


def check_two_classes(threshold: Any, n_classes: int) -> None:
    """Raise ValueError for a threshold of more than two classes."""
    if threshold != "auto" and n_classes != 2:
        raise ValueError(
            f"threshold={threshold!r} is for two classes, but there are {n_classes}; "
            "set threshold='auto'."
        )


def design_of_votes(pate: PATEParameters, X_public: Table) -> Design:
    """Make all choices of a fit on the votes of parties, but for their number.

    No teacher is trained there, so that `estimator` may be the student, if it has
    probabilities.
    """
    mechanism = as_mechanism(pate.mechanism)
    if not isinstance(mechanism, PluralityMechanism):
        raise ValueError(
            f"mechanism={pate.mechanism!r} releases mean class probabilities, but "
            "there are only votes; use mechanism='gnmax'."
        )
    _check_no_threshold(pate, "plain votes are counted here")
    student = pate.student
    if student is None and _has_probabilities(pate.estimator):
        student = pate.estimator
    if student is None:
        student = default_student(None, X_public)
    return Design(
        None,
        default_representation(pate.estimator, pate.representation, X_public),
        student,
        mechanism,
        0,
        resolve_n_queries(pate.n_queries, X_public.shape[0], student),
        pate.query_strategy,
    )


def _n_teachers(
    pate: PATEParameters,
    X_public: Table | None,
    n_rows: int | None,
    n_classes: int,
    *,
    scores: bool,
) -> int:
    """Return the number of teachers, or raise ValueError.

    Teachers that learn from a representation need few rows for useful scores.
    """
    if pate.n_teachers != "auto":
        return pate.n_teachers
    if n_rows is None:
        raise ValueError(
            "n_teachers='auto' is the square root of the number of rows, which is not "
            "known; pass n_rows, or n_teachers."
        )
    learns_from_few = pate.representation is not None and (
        _learns_from_representation(pate.estimator)
    )
    if learns_from_few and _is_of_images(X_public):
        most = n_rows // (_ROWS_OF_CLASS * n_classes)
        return max(1, min(round(_TIMES_OF_IMAGES * n_rows**0.5), most))
    times = 1
    if scores:
        times = _TIMES_FROM_FEW if learns_from_few else _TIMES
    return max(1, min(round(times * n_rows**0.5), n_rows))


def _may_release_scores(pate: PATEParameters, n_classes: int) -> bool:
    """Return whether "auto" may release mean scores instead of answers.

    Where the teachers and the student allow it, and no parameter of answers is given.
    """
    student = pate.student
    return (
        isinstance(pate.mechanism, str)
        and pate.mechanism == "auto"
        and pate.epsilon is not None
        and isinstance(pate.query_strategy, str)
        and pate.n_queries == pate.query_strategy == "auto"
        and pate.vote == "balanced"
        and n_classes > 1
        and not is_of(pate.estimator, "skorch")
        and not (student is not None and accepts_unlabeled(student))
    )


def default_teacher(estimator: Any) -> Any:
    """Return the teacher to be cloned."""
    return LogisticRegression(max_iter=1000) if estimator is None else estimator


def default_representation(
    estimator: Any, representation: Any, X_public: Table | None
) -> Any:
    """Return the representation that teachers see, None for the columns.

    A teacher with an encoder of its own gets the columns, and so do trees and networks.
    """
    if representation is None or is_given(representation):
        return representation
    if not _learns_from_representation(estimator):
        return None
    return ImageRepresentation() if _is_of_images(X_public) else TableRepresentation()


def _n_components(pate: PATEParameters, X_public: Table | None) -> int | None:
    """Return the number of components that teachers of images see; None for all."""
    is_own = isinstance(pate.representation, str) and _is_of_images(X_public)
    return FEW_COMPONENTS if is_own else None


def _learns_from_representation(teacher: Any) -> bool:
    """Return whether a teacher gains from similar scales and no redundant columns."""
    if teacher is None:
        return True
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


def is_given(representation: Any) -> bool:
    """Return whether a representation is neither None nor left to a rule."""
    is_auto = isinstance(representation, str) and representation == "auto"
    return representation is not None and not is_auto


def default_student(estimator: Any, X_public: Table | None) -> Any:
    """Return the student of noisy answers; that of a table averages over them.

    Networks are students themselves.
    """
    if is_of(estimator, "skorch"):
        return estimator
    return ImageStudent() if _is_of_images(X_public) else _averaging_student()


def _has_image_student(pate: PATEParameters, X_public: Table | None) -> bool:
    """Return whether images get a student where mean scores are released."""
    return pate.student is None and _is_of_images(X_public)


@cache
def _averaging_student() -> BaseEstimator:
    """Return a student that averages over answers; only its clones are fitted."""
    # The variances of these columns fall, so that rough functions are shrunk most.
    return make_pipeline(
        TableRepresentation(basis="rbf", random_state=0),
        LogisticRegression(max_iter=1000),
    )


def _has_probabilities(estimator: Any) -> bool:
    return estimator is not None and has_after_fit(estimator, "predict_proba")


def _is_of_images(X_public: Table | None) -> bool:
    return X_public is not None and not is_table(X_public)


def is_table(X: Table) -> bool:
    """Check that rows have columns: images have more dimensions."""
    return len(X.shape) == 2


def as_mechanism(
    mechanism: str | PluralityMechanism | MeanScores,
) -> PluralityMechanism | MeanScores:
    """Return the mechanism of these parameters of PATEClassifier, or raise ValueError.

    Its noise parameters may be None.
    """
    if isinstance(mechanism, PluralityMechanism | MeanScores):
        return mechanism
    if isinstance(mechanism, str) and mechanism in MECHANISMS:
        return MECHANISMS[mechanism]()
    meant = _meant(mechanism)
    raise ValueError(
        f"mechanism={mechanism!r} is unknown; use "
        + (f"{meant!r}, or " if meant else "")
        + f"one of {sorted(MECHANISMS)}, or a mechanism such as GNMax(sigma=40)."
    )


def _meant(mechanism: Any) -> str | None:
    """Return the name of a mechanism that is written as in the papers."""
    written = re.sub("[^a-z]", "", str(mechanism).lower())
    for name, kind in MECHANISMS.items():
        same = (name.replace("-", ""), kind.__name__.lower())
        if name != "auto" and written in same:
            return name
    return None


def as_query_strategy(
    query_strategy: str | QueryStrategy, mechanism: PluralityMechanism
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


def _n_right_answers(
    pate: PATEParameters,
    X_public: Table | None,
    student: Any,
    n_teachers: int,
    n_classes: int,
) -> int | None:
    """Compute the number of queries that a network or student of images learns from.

    As many as get noise with which nine of ten answers or more are right where all
    teachers agree: by the cost of noisy counts, which bounds that of answers. None for
    other students, and where the noise is given.
    """
    of_images = _is_of_images(X_public) or is_of(student, "skorch")
    needs_right = of_images and not accepts_unlabeled(student)
    if not needs_right or pate.epsilon is None or n_classes < 2:
        return None
    # The difference of two counts exceeds its noise, for each of the other classes.
    exceeded = norm.isf((1 - _RIGHT) / (n_classes - 1))
    signal = n_teachers * _mu_of_noise(pate)
    return max(_FEWEST_QUERIES, int((signal / (2 * exceeded)) ** 2))


def resolve_n_queries(
    n_queries: int | Literal["auto"],
    n_public: int,
    student: BaseEstimator,
    right: int | None = None,
) -> int:
    """Return the number of queries, or raise ValueError if public rows are fewer.

    `right` is the number of answers that a student needs right, None if it averages.
    """
    if n_queries == "auto":
        semi_supervised = accepts_unlabeled(student)
        few = _AUTO_QUERIES_SEMI_SUPERVISED if semi_supervised else _AUTO_QUERIES
        return min(n_public, few, few if right is None else right)
    if n_queries > n_public:
        raise ValueError(
            f"n_queries={n_queries} is more than the "
            f"{counted(n_public, 'public row')}, and each row is queried at most once; "
            "lower n_queries or pass more public rows."
        )
    return n_queries

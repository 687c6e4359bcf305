"""Defaults of PATEClassifier, as rules of public numbers: one rule for all data."""

from typing import Any

import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.neighbors import (
    KNeighborsClassifier,
    NearestCentroid,
    RadiusNeighborsClassifier,
)
from sklearn.pipeline import make_pipeline

from sklearn_pate._inputs._containers import Table
from sklearn_pate.accounting._gdp import largest_gdp_mu
from sklearn_pate.mechanisms import ScoreSteps
from sklearn_pate.publication._student_state import is_of
from sklearn_pate.students import ImageRepresentation, TableRepresentation
from sklearn_pate.students._score_basis import ScoreBasis
from sklearn_pate.students._train_student import accepts_unlabeled

__all__ = [
    "allows_scores",
    "default_representation",
    "default_steps",
    "default_student",
    "default_teacher",
    "has_landmarks_of_synthetic_rows",
    "in_order_of_importance",
    "releases_function",
    "representation_for_steps",
    "takes_steps",
]

# Teachers that gain from numbers of similar scale, without redundant columns.
_GAIN_FROM_REPRESENTATION = (
    LinearClassifierMixin,
    QuadraticDiscriminantAnalysis,
    KNeighborsClassifier,
    RadiusNeighborsClassifier,
    NearestCentroid,
)
# Between the 46,000 patients of Diabetes, which lose, and 500,000 rows, which gain.
_MANY_UNITS = 100_000
# Coordinates of a score function that the noise must allow.
_FEWEST_COORDINATES = 32
# Functions of a row that the default student learns from, and answers for each.
_OF_STUDENT, _ROWS_OF_STUDENT = 100, 10
# Components of sparse rows.
_OF_SPARSE = 200
# Components of images; noise and public images usually allow fewer.
_OF_IMAGES = 1000


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
    if estimator is None or isinstance(estimator, _GAIN_FROM_REPRESENTATION):
        return _of_rows_or_images(X_public)
    return None


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
    """Return whether "auto" releases a function of a row instead of answers.

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


def representation_for_steps(representation: Any, X_public: Table) -> BaseEstimator:
    """Return the input of the basis.

    By default, components of images, all columns of a table, or components of sparse
    ones.
    """
    if _is_given(representation):
        return representation
    if not is_table(X_public):
        return ImageRepresentation(n_components=_OF_IMAGES)
    return TableRepresentation(_OF_SPARSE if sp.issparse(X_public) else None)


def default_steps(X_public: Table, noise_seed: int | None) -> ScoreSteps:
    """Return the release in steps; images have more components that matter."""
    if is_table(X_public):
        return ScoreSteps(noise_seed=noise_seed)
    return ScoreSteps(max_coordinates=_OF_IMAGES, noise_seed=noise_seed)


def in_order_of_importance(representation: Any, X_public: Table) -> bool:
    """Return whether the first columns of the basis' input matter most.

    So do the components of images, and those of a representation that is given.
    """
    return _is_given(representation) or not is_table(X_public)


def has_landmarks_of_synthetic_rows(n_units: int) -> bool:
    """Return whether steps gain from distances to synthetic rows.

    Their columns are independent, unlike those of private rows, so that with fewer rows
    or groups the principal components alone are better.
    """
    return n_units >= _MANY_UNITS


def takes_steps(classifier: Any) -> bool:
    """Return whether a released function is found in steps, without teachers."""
    return (
        classifier.estimator is None
        and classifier.n_teachers == "auto"
        and isinstance(classifier.representation, str)
    )


def allows_scores(
    n_teachers: int, n_classes: int, epsilon: float, delta: float
) -> bool:
    """Return whether the noise on mean scores allows enough coordinates."""
    # Radius of a ball over the noise on the mean of score functions in it.
    signal = n_teachers * largest_gdp_mu(epsilon, delta) / 2
    return signal**2 / (n_classes - 1) >= _FEWEST_COORDINATES

"""Defaults of PATEClassifier, as rules of public numbers: one rule for all data."""

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.pipeline import make_pipeline

from sklearn_pate._inputs._containers import Table
from sklearn_pate.accounting._gdp import largest_gdp_mu
from sklearn_pate.publication._student_state import is_of
from sklearn_pate.students import ImageRepresentation, TableRepresentation
from sklearn_pate.students._score_basis import ScoreBasis
from sklearn_pate.students._train_student import accepts_unlabeled

__all__ = [
    "allows_scores",
    "default_representation",
    "default_student",
    "default_teacher",
    "releases_function",
]

# Coordinates of a score function that the noise must allow.
_FEWEST_COORDINATES = 32
# Functions of a row that the default student learns from, and answers for each.
_OF_STUDENT, _ROWS_OF_STUDENT = 100, 10


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

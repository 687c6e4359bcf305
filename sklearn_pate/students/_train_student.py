"""Training of a student on public rows and released answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from sklearn_pate._estimators._class_codes import fit_class_indices
from sklearn_pate._estimators._delegation import last_step
from sklearn_pate._estimators._seeding import seeded_clone, seeded_globals
from sklearn_pate._inputs._labels import UNLABELED
from sklearn_pate.exceptions import StudentWarning, warn_user
from sklearn_pate.students._distillation import soften

if TYPE_CHECKING:
    from sklearn_pate.students.networks._relational_hint import RelationalHint
    from sklearn_pate.students.queries._query_session import Clusters

__all__ = [
    "accepts_hints",
    "accepts_soft_labels",
    "accepts_unlabeled",
    "train_student",
]


def accepts_unlabeled(student: Any) -> bool:
    """Check whether a student takes rows with y = -1, and so gets all public rows.

    True for scikit-learn's semi-supervised classifiers, for any estimator with an
    attribute ``accepts_unlabeled = True``, and for a Pipeline that ends in one.
    """
    declared = _declares(student, "accepts_unlabeled")
    if declared is not None:
        return declared
    from sklearn.semi_supervised import (  # slow to import
        LabelPropagation,
        LabelSpreading,
        SelfTrainingClassifier,
    )

    return isinstance(
        last_step(student), (SelfTrainingClassifier, LabelSpreading, LabelPropagation)
    )


def accepts_soft_labels(student: Any) -> bool:
    """Check whether each row of y may be a histogram, or probabilities.

    True for any estimator with an attribute ``accepts_soft_labels = True``, and for a
    Pipeline that ends in one.
    """
    return bool(_declares(student, "accepts_soft_labels"))


def accepts_hints(student: Any) -> bool:
    """Check whether the `fit` of a student takes a `RelationalHint` as `hint`.

    True for any estimator that accepts unlabelled rows and has an attribute
    ``accepts_hints = True``, and for a Pipeline that ends in one.
    """
    return bool(_declares(student, "accepts_hints")) and accepts_unlabeled(student)


def _declares(student: Any, attribute: str) -> bool | None:
    """Read an attribute of the last step of a student; None without it."""
    declared = getattr(last_step(student), attribute, None)
    return None if declared is None else bool(declared)


def _name_in_fit(student: Any, name: str) -> str:
    """Return the name, in the `fit` of a Pipeline, of a parameter of its last step."""
    prefix = ""
    while isinstance(student, Pipeline):
        step, student = student.steps[-1]
        prefix += f"{step}__"
    return prefix + name


def train_student(
    student: Any,
    X_public: Any,
    queried: NDArray[np.intp],
    answers: NDArray[np.integer],
    *,
    n_classes: int,
    seed: int,
    histograms: NDArray[Any] | None = None,
    clusters: "Clusters | None" = None,
    hint: "RelationalHint | None" = None,
) -> Any:
    """Train a clone of the student on public rows and released answers only.

    `answers` are class indices of the `queried` rows, -1 for no answer; `histograms`
    have shape (n_queries, n_classes). Both and `hint` must have been released by a
    mechanism: training is then post-processing and has no privacy cost. As most
    classifiers need two classes, the student is constant, with a StudentWarning, if the
    answers hold fewer.
    """
    answered = answers != UNLABELED
    rows, labels = queried[answered], answers[answered].astype(np.int64)
    if len(np.unique(labels)) < 2:
        return _constant_student(labels, n_classes)
    student = seeded_clone(student, seed)
    unlabeled = np.full(X_public.shape[0], UNLABELED, dtype=np.int64)
    if histograms is not None and accepts_soft_labels(student):
        labels = soften(histograms[answered])
        unlabeled = np.zeros((X_public.shape[0], n_classes))
    if clusters is not None:
        rows, labels = clusters.spread(rows, labels)
    with seeded_globals(seed), _explained_errors():
        if accepts_unlabeled(student):
            unlabeled[rows] = labels
            hints = {} if hint is None else {_name_in_fit(student, "hint"): hint}
            # A copy, as the other fits of a search share the public rows.
            X_public = deepcopy(X_public)
            if not hints:
                return student.fit(X_public, unlabeled)
            # With metadata routing, a Pipeline refuses a parameter of its step.
            with config_context(enable_metadata_routing=False):
                return student.fit(X_public, unlabeled, **hints)
        X_rows = _safe_indexing(X_public, rows)
        if labels.ndim == 2:
            return student.fit(X_rows, labels)
        return fit_class_indices(student, X_rows, labels)


@contextmanager
def _explained_errors() -> Iterator[None]:
    """Add to an error of the student's `fit` that the privacy has been spent."""
    try:
        yield
    except Exception as error:
        error.add_note(
            "The student could not be trained on the public rows and the released "
            "answers, whose privacy cost is spent. Before another fit, try student.fit "
            "on X_public with these answers."
        )
        raise


def _constant_student(labels: NDArray[np.int64], n_classes: int) -> DummyClassifier:
    """Predict the one class in `labels`, or without labels all classes; warn."""
    if labels.size:
        problem = (
            f"All answers ({labels.size}) name one class; the student always predicts "
            "it"
        )
        targets = labels[:1]
    else:
        problem = "No query was answered; the student predicts equal probabilities"
        targets = np.arange(n_classes)
    warn_user(
        f"{problem}. The privacy cost is spent nevertheless. Before another fit, "
        "consider more queries, a lower threshold, more teachers or a larger epsilon.",
        StudentWarning,
    )
    return DummyClassifier(strategy="prior").fit(np.zeros((len(targets), 1)), targets)

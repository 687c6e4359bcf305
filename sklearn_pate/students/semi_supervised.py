"""How a student is trained on the answers."""

import warnings
from copy import deepcopy

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import (
    LabelPropagation,
    LabelSpreading,
    SelfTrainingClassifier,
)
from sklearn.utils import _safe_indexing

from sklearn_pate.contiguous import fit_class_indices
from sklearn_pate.exceptions import StudentWarning
from sklearn_pate.seeding import seeded_clone, seeded_globals

__all__ = ["accepts_unlabeled", "train_student"]

UNLABELED = -1


def accepts_unlabeled(student):
    """Tell whether a student takes rows with y = -1, as scikit-learn's own do.

    True for scikit-learn's semi-supervised classifiers, for any estimator with an
    attribute ``accepts_unlabeled = True``, and for a Pipeline that ends in one.

    Parameters
    ----------
    student : estimator
        The student.

    Returns
    -------
    accepts : bool
        Whether it gets all public rows instead of the answered ones.
    """
    if isinstance(student, Pipeline):
        return accepts_unlabeled(student.steps[-1][1])
    declared = getattr(student, "accepts_unlabeled", None)
    if declared is not None:
        return bool(declared)
    return isinstance(
        student, (SelfTrainingClassifier, LabelSpreading, LabelPropagation)
    )


def train_student(student, X_public, queried, answers, *, n_classes, seed):
    """Train a clone of the student on public rows and released answers only.

    Parameters
    ----------
    student : classifier
        Cloned and seeded.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    queried : ndarray of int of shape (n_queries,)
        Rows that were asked about.

    answers : ndarray of int of shape (n_queries,)
        Class indices, -1 for no answer.

    n_classes : int
        Number of classes.

    seed : int
        Seed of the student.

    Returns
    -------
    student : classifier
        Fitted on class indices. A constant one if the answers hold fewer than two
        classes, as most classifiers refuse those.

    Warns
    -----
    StudentWarning
        If the student is constant.
    """
    answered = answers != UNLABELED
    rows, labels = queried[answered], answers[answered]
    if len(np.unique(labels)) < 2:
        return _constant_student(labels, n_classes)
    student = seeded_clone(student, seed)
    with seeded_globals(seed):
        if accepts_unlabeled(student):
            targets = np.full(X_public.shape[0], UNLABELED, dtype=np.int64)
            targets[rows] = labels
            # A copy: other fits of a search share the public rows.
            return student.fit(deepcopy(X_public), targets)
        return fit_class_indices(
            student, _safe_indexing(X_public, rows), labels.astype(np.int64)
        )


def _constant_student(labels, n_classes):
    """Predict the one class in `labels`, or no class in particular without labels."""
    if labels.size:
        what = (
            f"All {labels.size} answers name one class; the student always predicts it"
        )
        targets = labels[:1]
    else:
        what = "No question was answered; the student predicts all classes alike"
        targets = np.arange(n_classes)
    warnings.warn(
        f"{what}. The privacy was spent all the same. Before another fit, consider "
        "more questions, a lower threshold, more teachers or a larger epsilon.",
        StudentWarning,
        stacklevel=6,
    )
    return DummyClassifier(strategy="prior").fit(np.zeros((len(targets), 1)), targets)

"""How a student is trained on the answers."""

from contextlib import contextmanager
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

from sklearn_pate._estimators._class_codes import fit_class_indices
from sklearn_pate._estimators._delegation import last_step
from sklearn_pate._estimators._seeding import seeded_clone, seeded_globals
from sklearn_pate._inputs._labels import UNLABELED, read_classes
from sklearn_pate.exceptions import StudentWarning, warn_user
from sklearn_pate.students._distillation import soften

__all__ = [
    "accepts_hints",
    "accepts_unlabeled",
    "encode_semi_supervised",
    "train_student",
]


def accepts_unlabeled(student):
    """Tell whether a student takes rows with y = -1, as scikit-learn's own do.

    True for scikit-learn's semi-supervised classifiers, for any estimator with an
    attribute ``accepts_unlabeled = True``, and for a Pipeline that ends in one. It
    looks at no data. Public rows without an answer cost no privacy.

    Parameters
    ----------
    student : estimator
        The student.

    Returns
    -------
    accepts : bool
        Whether it gets all public rows instead of the answered ones.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.semi_supervised import SelfTrainingClassifier
    >>> from sklearn_pate.students._train_student import accepts_unlabeled
    >>> accepts_unlabeled(LogisticRegression())
    False
    >>> student = SelfTrainingClassifier(LogisticRegression())
    >>> accepts_unlabeled(make_pipeline(StandardScaler(), student))
    True
    """
    declared = _declares(student, "accepts_unlabeled")
    if declared is not None:
        return declared
    return isinstance(
        last_step(student), (SelfTrainingClassifier, LabelSpreading, LabelPropagation)
    )


def accepts_hints(student):
    """Tell whether a student learns from a hint about all public rows.

    True for any estimator with an attribute ``accepts_hints = True`` that also accepts
    unlabelled rows, and for a Pipeline that ends in one. Its `fit` takes a parameter
    `hint`, a :class:`~sklearn_pate.students.RelationalHint`. It looks at no data; a
    hint was paid for when it was released, and costs no more privacy whoever learns it.

    Parameters
    ----------
    student : estimator
        The student.

    Returns
    -------
    accepts : bool
        Whether it can be given one.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate.students import FixMatchClassifier
    >>> from sklearn_pate.students._train_student import accepts_hints
    >>> accepts_hints(FixMatchClassifier()), accepts_hints(LogisticRegression())
    (True, False)
    """
    return bool(_declares(student, "accepts_hints")) and accepts_unlabeled(student)


def _declares(student, attribute):
    """Read an attribute of a student, or of the end of a Pipeline; None without it."""
    declared = getattr(last_step(student), attribute, None)
    return None if declared is None else bool(declared)


def _name_in_fit(student, name):
    """Name a parameter of the fit of a student, or of the end of a Pipeline."""
    prefix = ""
    while isinstance(student, Pipeline):
        step, student = student.steps[-1]
        prefix += f"{step}__"
    return prefix + name


def encode_semi_supervised(y):
    """Read classes and unlabelled rows from y.

    A row with y = -1 is unlabelled. Where y holds only one label beside -1, as in
    {-1, 1}, -1 counts as a class. Among labels that are text, none means unlabelled.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted; at least two.

    codes : ndarray of int of shape (n_rows,)
        Class index of each row, -1 for an unlabelled one.

    Raises
    ------
    ValueError
        If y holds missing labels, numbers that are no classes, or one class only.
    """
    classes, codes = read_classes(y)
    if classes.dtype.kind not in "if" or len(classes) == 2 or -1 not in classes:
        return classes, codes
    unlabeled = int(np.searchsorted(classes, -1))
    codes = np.where(codes == unlabeled, UNLABELED, codes - (codes > unlabeled))
    return np.delete(classes, unlabeled), codes


def train_student(
    student,
    X_public,
    queried,
    answers,
    *,
    n_classes,
    seed,
    histograms=None,
    clusters=None,
    hint=None,
):
    """Train a clone of the student on public rows and released answers only.

    The student may be published: nothing that it learns from is sensitive, or all of it
    was paid for.

    Parameters
    ----------
    student : classifier
        Cloned and seeded. Whatever it does in its fit, a search or early stopping
        included, costs no privacy.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    queried : ndarray of int of shape (n_queries,)
        Rows that were asked about.

    answers : ndarray of int of shape (n_queries,)
        Class indices, -1 for no answer. Released by a mechanism: the teachers' own
        plurality here would make the student as sensitive as they are.

    n_classes : int
        Number of classes.

    seed : int
        Seed of the student. It may be known to anyone.

    histograms : ndarray of int of shape (n_queries, n_classes), default=None
        Released, noisy vote counts. Soft labels for a student that accepts them;
        others learn from the answers.

    clusters : Clusters, default=None
        Public rows that were voted on together, and are all taught alike.

    hint : RelationalHint, default=None
        Which groups of public rows are alike, for a student that :func:`accepts_hints`.

    Returns
    -------
    student : classifier
        Fitted on class indices. A constant one if the answers hold fewer than two
        classes, as most classifiers refuse those.

    Raises
    ------
    Exception
        Whatever the student's `fit` raises, with a note that the answers are paid for.
        It has seen nothing sensitive.

    Warns
    -----
    StudentWarning
        If the student is constant.

    Notes
    -----
    Papernot et al. 2017, Section 2.2. Differential privacy is closed under
    post-processing (Dwork, McSherry, Nissim, Smith 2006, "Calibrating noise to
    sensitivity in private data analysis").

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.semi_supervised import LabelSpreading
    >>> from sklearn_pate.students._train_student import train_student
    >>> X_public = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> queried, answers = np.array([0, 5, 2]), np.array([0, 1, -1])
    >>> asked = {"queried": queried, "answers": answers, "n_classes": 2, "seed": 0}
    >>> student = train_student(LogisticRegression(), X_public, **asked)
    >>> student.predict(X_public)  # learned from rows 0 and 5
    array([0, 0, 0, 1, 1, 1])
    >>> student = train_student(LabelSpreading(), X_public, **asked)
    >>> student.transduction_  # got all rows
    array([0, 0, 0, 1, 1, 1])
    """
    answered = answers != UNLABELED
    rows, labels = queried[answered], answers[answered].astype(np.int64)
    if len(np.unique(labels)) < 2:
        return _constant_student(labels, n_classes)
    student = seeded_clone(student, seed)
    unlabeled = np.full(X_public.shape[0], UNLABELED, dtype=np.int64)
    if histograms is not None and _declares(student, "accepts_soft_labels"):
        labels = soften(histograms[answered])
        unlabeled = np.zeros((X_public.shape[0], n_classes))
    if clusters is not None:
        rows, labels = clusters.spread(rows, labels)
    with seeded_globals(seed), _blaming_the_student():
        if accepts_unlabeled(student):
            unlabeled[rows] = labels
            hints = {} if hint is None else {_name_in_fit(student, "hint"): hint}
            # A copy: other fits of a search share the public rows.
            return student.fit(deepcopy(X_public), unlabeled, **hints)
        X_rows = _safe_indexing(X_public, rows)
        if labels.ndim == 2:
            return student.fit(X_rows, labels)
        return fit_class_indices(student, X_rows, labels)


@contextmanager
def _blaming_the_student():
    """Say of an error what it means for the privacy that was spent."""
    try:
        yield
    except Exception as error:
        error.add_note(
            "The student could not learn from public rows and the released answers, "
            "which are paid for. Before another fit, try student.fit on X_public with "
            "made-up labels."
        )
        raise


def _constant_student(labels, n_classes):
    """Predict the one class in `labels`, or no class in particular without labels."""
    if labels.size:
        what = (
            f"All {labels.size} answers name one class; the student always predicts it"
        )
        targets = labels[:1]
    else:
        what = "No query was answered; the student predicts all classes alike"
        targets = np.arange(n_classes)
    warn_user(
        f"{what}. The privacy was spent all the same. Before another fit, consider "
        "more queries, a lower threshold, more teachers or a larger epsilon.",
        StudentWarning,
    )
    return DummyClassifier(strategy="prior").fit(np.zeros((len(targets), 1)), targets)

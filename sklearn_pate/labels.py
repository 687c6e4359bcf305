"""Labels and class indices."""

from collections.abc import Hashable
from numbers import Real

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

__all__ = ["check_classes", "class_indices", "is_abstention", "read_classes"]


def check_classes(classes):
    """Check a list of all labels.

    Parameters
    ----------
    classes : array-like of shape (n_classes,)
        The labels.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted.

    Raises
    ------
    ValueError
        If there are fewer than two, one twice, one that is missing, or text beside
        numbers.
    """
    if np.ndim(classes) == 1:
        given = np.asarray(classes).tolist()
        n_texts = sum(isinstance(label, str) for label in classes)
        if (
            not any(_is_missing(label) for label in classes)
            and n_texts in (0, len(given))
            and len(set(given)) == len(given) >= 2
        ):
            return np.unique(given)
    raise ValueError(
        f"classes={classes!r} must list at least two distinct labels, each once, all "
        "text or none of them, and none missing."
    )


def read_classes(y):
    """Read the set of labels from y.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels, at least two of them distinct.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted.

    codes : ndarray of int of shape (n_rows,)
        Class index of each row.

    Raises
    ------
    ValueError
        If y holds missing labels, numbers that are no classes, or one class only.
    """
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "T":  # numpy's StringDType, which scikit-learn does not know
        y = y.astype(object)
    if y.dtype.kind == "O":
        if any(_is_missing(label) for label in y.tolist()):
            raise ValueError(
                "y holds missing labels (None or NaN); drop those rows, or give them a "
                "label of their own."
            )
    elif y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {classes.tolist()[0]!r}; classifiers need two. "
            "Pass classes= if others are possible."
        )
    return classes, codes


def class_indices(labels, classes):
    """Look labels up in a list of classes.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        Anything; one label of another type does not change how the others are read.

    classes : ndarray of shape (n_classes,)
        The labels that count.

    Returns
    -------
    codes : ndarray of int of shape (n_rows,)
        Class index of each row, -1 for a label that is not in `classes`.
    """
    index = {label: k for k, label in enumerate(classes.tolist())}
    labels = labels if hasattr(labels, "dtype") else np.array(labels, dtype=object)
    codes = [_index(label, index) for label in column_or_1d(labels).tolist()]
    return np.array(codes, dtype=np.intp)


def is_abstention(label):
    """Tell whether a label says that there is none.

    Parameters
    ----------
    label : object
        A label that is not a class.

    Returns
    -------
    abstains : bool
        True for -1, None and NaN, of any library.
    """
    return (isinstance(label, Real) and label == -1) or _is_missing(label)


def _index(label, index):
    try:
        return index.get(label, -1)
    except TypeError:  # unhashable, so no label of ours
        return -1


def _is_missing(label):
    # pandas' own missing value refuses to be compared, and arrays compare to arrays.
    return (
        label is None
        or type(label).__name__ == "NAType"
        or (isinstance(label, Hashable) and bool(label != label))
    )

"""Labels and class indices."""

from collections.abc import Hashable
from numbers import Real

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sklearn_pate._inputs._containers import check_container

__all__ = [
    "check_classes",
    "class_indices",
    "is_abstention",
    "is_missing",
    "read_classes",
]

# Whole numbers beyond this are no longer exact in float64.
_LARGEST_EXACT_FLOAT = 2**53


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
        If there are fewer than two, one twice, one that is missing or bytes, text
        beside numbers, or numbers that no numpy array holds side by side.
    """
    check_container("classes", classes)
    if np.ndim(classes) == 1:
        given = list(classes)
        n_texts = sum(isinstance(label, str) for label in given)
        array = np.asarray(classes)
        if array.dtype.kind in "OT":
            array = np.asarray(array.tolist())
        if (
            not any(is_missing(label) or isinstance(label, bytes) for label in given)
            and n_texts in (0, len(given))
            and len(set(given)) == len(given) >= 2
            # Beside a smaller number, 2^63 becomes a float; text may lose its end.
            and array.tolist() == given
        ):
            return np.unique(array)
    raise ValueError(
        f"classes={classes!r} must list at least two distinct labels, each once, all "
        "text or none of them, none missing or bytes, and numbers that one numpy array "
        "holds exactly."
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
        If y holds missing labels, bytes, numbers that are no classes, or one class
        only.
    """
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "S" or any(isinstance(label, bytes) for label in y.tolist()):
        raise ValueError("y holds bytes, which are no labels; make strings of them.")
    if y.dtype.kind == "T":  # numpy's StringDType, which scikit-learn does not know
        y = y.astype(object)
    if y.dtype.kind == "O":
        if any(is_missing(label) for label in y.tolist()):
            raise ValueError(
                "y holds missing labels (None or NaN); drop those rows, or give them a "
                "label of their own."
            )
    elif y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
        if np.abs(y).max(initial=0) >= _LARGEST_EXACT_FLOAT:
            raise ValueError(
                "y holds labels of 2^53 or more as floats, which do not tell all whole "
                "numbers of that size apart; pass them as one integer type, or as text."
            )
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
    check_container("labels", labels)
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
    return (isinstance(label, Real) and label == -1) or is_missing(label)


def is_missing(label):
    """Tell whether a value stands for none.

    Parameters
    ----------
    label : object
        A label, or a group id.

    Returns
    -------
    missing : bool
        True for None, NaN and NaT, of any library.
    """
    # pandas' own missing value refuses to be compared, and arrays compare to arrays.
    return (
        label is None
        or type(label).__name__ == "NAType"
        or (isinstance(label, Hashable) and bool(label != label))
    )


def _index(label, index):
    try:
        return index.get(label, -1)
    except TypeError:  # unhashable, so no label of ours
        return -1

"""Labels with gaps: what a semi-supervised student is told."""

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

__all__ = ["read_targets"]

UNLABELED = -1


def read_targets(y):
    """Read labels, some of them missing, as one distribution over classes a row.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or (n_rows, n_classes)
        Labels, -1 for an unlabelled row. Where only one label occurs beside -1, -1 is a
        class like any other: nothing could be learnt from a single class. With two or
        more columns, probabilities (or counts, which are normalised) of classes 0, 1,
        ...; a row of zeros or with a NaN is unlabelled.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted labels.

    targets : ndarray of float32 of shape (n_rows, n_classes)
        Rows sum to one, or to zero where the row is unlabelled.

    Raises
    ------
    ValueError
        If no row is labelled, y holds one class only, or something else than classes.
    """
    if y is None:
        raise ValueError(
            "A student requires y to be passed, but the target y is None; mark "
            "unlabelled rows with -1."
        )
    if not hasattr(y, "shape"):
        y = np.asarray(y)
    if len(y.shape) == 2 and y.shape[1] > 1:
        return _read_distributions(y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {classes.tolist()[0]!r}; a student needs "
            "labelled rows of at least two classes."
        )
    if classes.dtype.kind in "if" and len(classes) > 2 and UNLABELED in classes:
        marker = int(np.flatnonzero(classes == UNLABELED)[0])
        every_class = np.eye(len(classes), dtype=np.float32)
        return np.delete(classes, marker), np.delete(every_class, marker, 1)[codes]
    return classes, np.eye(len(classes), dtype=np.float32)[codes]


def _read_distributions(y):
    y = np.array(y, dtype=np.float64)
    y[np.isnan(y).any(axis=1)] = 0
    if not np.isfinite(y).all() or y.min() < 0:
        raise ValueError(
            "y with several columns must hold probabilities; clip negative and "
            "infinite values first."
        )
    totals = y.sum(axis=1, keepdims=True)
    if not totals.any():
        raise ValueError("No row of y is labelled; a student needs some labelled rows.")
    return np.arange(y.shape[1]), (y / np.where(totals > 0, totals, 1)).astype("f4")

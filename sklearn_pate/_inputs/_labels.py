"""Labels and classes, and the container of public rows."""

from collections.abc import Callable, Container, Hashable
from functools import wraps
from inspect import signature
from numbers import Number, Real
from operator import itemgetter
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sklearn_pate._inputs._containers import as_objects, check_container, is_frame
from sklearn_pate._inputs._odd_values import is_a

# Whole numbers beyond this are no longer exact in float64.
_LARGEST_EXACT_FLOAT = 2**53
# Mark of a row without a label, as in scikit-learn.
UNLABELED = -1


def check_classes(classes: Any) -> NDArray[Any]:
    """Check a list of all labels, and return it sorted."""
    check_container("classes", classes)
    if isinstance(classes, set | frozenset):
        raise ValueError(
            f"classes={classes!r} is a set, which has no order; pass a list."
        )
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
        f"classes={classes!r} must list at least two distinct labels, each once. Pass "
        "text only, or numbers that one numpy array holds exactly, without bytes or "
        "missing labels."
    )


def known_classes(classes: Any) -> NDArray[Any] | None:
    """Return a label set sorted, None if there is none: then labels are read."""
    return None if classes is None else check_classes(classes)


def read_classes(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Read from y the sorted classes, at least two, and the class index of each row."""
    if not hasattr(y, "dtype"):
        _check_plain(as_objects(y).ravel().tolist())
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "S" or any(is_a(label, bytes) for label in y.tolist()):
        raise ValueError(
            "y holds bytes, which cannot be labels; convert them to strings."
        )
    if y.dtype.kind == "T":  # numpy's StringDType, which scikit-learn does not know
        y = y.astype(object)
    if y.dtype.kind == "O":
        if any(is_missing(label) for label in y.tolist()):
            raise ValueError(
                "y holds missing labels (None or NaN); drop those rows, or give them a "
                "separate label."
            )
        _check_plain(y.tolist())
    elif y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
        if np.abs(y.astype(np.float64)).max(initial=0) >= _LARGEST_EXACT_FLOAT:
            raise ValueError(
                "y holds labels of 2^53 or more as floats, which are not exact at that "
                "size; pass them as one integer type, or as text."
            )
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y holds one class only; pass rows of two or more classes, or list all "
            "labels in classes= of a private classifier."
        )
    return classes, codes


def encode_semi_supervised(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Read from y the sorted classes and class indices, -1 for unlabelled rows.

    A row with y = -1 is unlabelled. If y has only one label beside -1, as in {-1, 1},
    -1 is a class. Among labels that are text, no row is unlabelled.
    """
    classes, codes = read_classes(y)
    if classes.dtype.kind not in "if" or len(classes) == 2 or -1 not in classes:
        return classes, codes
    unlabeled = int(np.searchsorted(classes, -1))
    codes = np.where(codes == unlabeled, UNLABELED, codes - (codes > unlabeled))
    return np.delete(classes, unlabeled), codes


def class_indices(labels: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of each label in a list of classes, -1 for labels not in it.

    A label of another type does not change how the others are read.
    """
    check_container("labels", labels)
    labels = labels if hasattr(labels, "dtype") else as_objects(labels)
    # Predictions of one row at a time come here; checks take as long as they do.
    if not isinstance(labels, np.ndarray) or labels.ndim != 1:
        labels = column_or_1d(labels)
    if labels.dtype.kind in "bi" and classes.dtype.kind in "bi":  # compared exactly
        order = np.argsort(classes)
        place = np.searchsorted(classes, labels, sorter=order)
        found = order[np.minimum(place, len(classes) - 1)]
        return np.where(classes[found] == labels, found, -1)
    index = {label: k for k, label in enumerate(classes.tolist())}
    codes = [_index(label, index) for label in labels.tolist()]
    return np.array(codes, dtype=np.intp)


def check_label_type(
    labels: Any, classes: NDArray[Any], name: str = "y", among: str = "classes"
) -> None:
    """Raise if no label of the type that a container declares can be a class.

    No value of a label decides. Labels in a list, or in an array of objects, have no
    declared type. `name` and `among` stand for labels and classes in the message.
    """
    declared = _declared_type(labels)
    if declared is None or issubclass(declared, (np.object_, type(None))):
        return
    known = classes.tolist()
    numbers = [one for one in known if isinstance(one, Real)]
    if issubclass(declared, str):
        what, can_match = "text", any(isinstance(one, str) for one in known)
    elif issubclass(declared, (bool, np.bool_)):
        what, can_match = "booleans", any(one in (0, 1) for one in numbers)
    elif issubclass(declared, (int, np.integer)):
        what, can_match = "whole numbers", any(one % 1 == 0 for one in numbers)
    elif issubclass(declared, (Number, np.number)):
        what, can_match = "numbers", bool(numbers)
    else:
        what, can_match = f"of type {declared.__name__}", declared is object
    if not can_match:
        raise ValueError(
            f"No label of {name} can be in {among}={known}, as {name} is declared to "
            f"be {what}; give both the same type."
        )


def _declared_type(labels: Any) -> type | None:
    """Return the type of labels that a container declares, None if there is none."""
    if is_frame(labels):
        labels = _safe_indexing(labels, 0, axis=1)
    dtype: Any = getattr(labels, "dtype", getattr(labels, "type", None))
    categories = getattr(dtype, "categories", None)
    if hasattr(dtype, "to_python"):  # polars, whose categories are text
        return cast(type, dtype.to_python())
    if categories is not None:  # pandas; dask may not know them
        is_known = "__UNKNOWN_CATEGORIES__" not in categories
        return _declared_type(categories) if is_known else None
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    dtype = getattr(dtype, "value_type", dtype)  # of a dictionary
    if hasattr(dtype, "to_pandas_dtype"):
        return str if "string" in str(dtype) else np.dtype(dtype.to_pandas_dtype()).type
    if dtype is not None and not isinstance(getattr(dtype, "type", None), type):
        dtype = np.asarray(labels).dtype  # of torch and others
    return getattr(dtype, "type", None)


def plain_label(label: Any) -> bool | int | float | str:
    """Return a class label as a JSON value, or as text."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, (bool, int, str)):
        return label
    return label if isinstance(label, float) and np.isfinite(label) else str(label)


def is_abstention(label: Any) -> bool:
    """Check whether a label that is no class means no vote: -1, None or NaN."""
    return is_missing(label) or (isinstance(label, Real) and label == -1)


def is_missing(label: Any) -> bool:
    """Check whether a label or a group id is None, NaN or NaT of any library."""
    # pandas.NA cannot be compared, and a comparison of arrays is an array.
    if label is None or type(label).__name__ == "NAType":
        return True
    try:
        return isinstance(label, Hashable) and bool(label != label)
    except Exception:  # an object of a private row may raise any
        return True


def read_targets(y: Any) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Read labels, of which some may be missing, as distributions over classes.

    A column of labels is read by `encode_semi_supervised`. Two or more columns are
    probabilities (or counts, which are normalised) of classes 0, 1, ...; a row of zeros
    or with a NaN is unlabelled. Returns the sorted classes, and rows that sum to 1, or
    to 0 where the row is unlabelled.
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
    classes, codes = encode_semi_supervised(y)
    is_labeled = (codes != UNLABELED)[:, np.newaxis]
    return classes, is_labeled * np.eye(len(classes), dtype=np.float32)[codes]


def _read_distributions(y: Any) -> tuple[NDArray[Any], NDArray[np.float32]]:
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


def _index(label: Any, index: dict[Any, int]) -> int:
    try:
        return index.get(label, -1)
    except Exception:  # unhashable, or any object: not one of the classes
        return -1


def _check_plain(labels: list[Any]) -> None:
    """Raise for a label with methods of its own, before any of them is called."""
    plain = (str, bytes, Number, np.generic, list, tuple)
    if not all(label is None or is_a(label, plain) for label in labels):
        raise ValueError(
            "y holds labels that are neither numbers nor text; convert them."
        )


Method = TypeVar("Method", bound=Callable[..., Any])


class PublicData(tuple[Any]):
    """Public rows that cross-validation does not split.

    Cross-validation in scikit-learn splits every array-like fit parameter with as many
    rows as ``X``. A plain ``X_public`` would thus lose rows. A `PublicData` is a tuple
    that holds one table. Its length is 1, so all rows are passed to ``fit``. A Pipeline
    with ``transform_input=["X_public"]`` transforms the table inside the tuple.

    Parameters
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows, without labels. The people in these rows are not protected.

    *others : object
        Not taken: no label of a public row is used.

    Attributes
    ----------
    X : {array-like, sparse matrix, dataframe} of shape (n_public, n_features)
        The rows as given, not copied.

    Examples
    --------
    >>> from sklearn_pate import PublicData
    >>> PublicData([[0.0, 1.0], [1.0, 0.0]])
    PublicData(<list>)
    """

    __slots__ = ()

    def __new__(cls, X: Any, *others: Any) -> Self:
        if others:
            raise TypeError(
                "PublicData takes rows only: no label of a public row is used; write "
                "PublicData(X_public)."
            )
        if X is None:
            raise ValueError("PublicData(None) holds no rows; pass the public rows.")
        return super().__new__(cls, (public_table(X),))

    X = property(itemgetter(0))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # clone() and searches would copy every public row otherwise

    def __repr__(self) -> str:
        shape = getattr(self.X, "shape", None)
        of_shape = f" of shape {tuple(shape)}" if shape is not None else ""
        return f"PublicData(<{type(self.X).__name__}{of_shape}>)"


def is_wrapped(X_public: Any) -> bool:
    """Check for public rows in a tuple: PublicData, or what a Pipeline makes of it."""
    return isinstance(X_public, tuple) and len(X_public) == 1


def public_table(X_public: Any) -> Any:
    """Return public rows without their tuple."""
    return X_public[0] if is_wrapped(X_public) else X_public


def private_rows_by_position(method: Method) -> Method:
    """Refuse weights of private rows, and other positional arguments than X and y."""

    @wraps(method)
    def checked(self: Any, X: Any, y: Any, *others: Any, **named: Any) -> Any:
        if others or isinstance(y, PublicData):
            name = method.__name__
            raise TypeError(
                f"{name} takes only X and y by position; write {name}(X, "
                f"y{_by_name(signature(self.fit).parameters)})."
            )
        if "sample_weight" in named:
            raise TypeError(
                f"{type(self).__name__} takes no sample_weight, as no private row may "
                "count more than another; leave it out."
            )
        return method(self, X, y, **named)

    return cast(Method, checked)


def _by_name(parameters: Container[str]) -> str:
    """Write an argument of a `fit` with these parameters; all go to a search."""
    if "X_public" in parameters or "fit_params" in parameters:
        return ", X_public=PublicData(X_public)"
    return ", groups=groups" if "groups" in parameters else ""

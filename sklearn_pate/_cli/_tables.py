"""Tables and estimators in files that commands read."""

import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sklearn_pate._inputs._odd_values import as_words, read_numbers, without_words
from sklearn_pate.accounting._value_checks import counted, optional_module, printable
from sklearn_pate.publication import PublishedClassifier
from sklearn_pate.publication._model_file import (
    LARGEST_MODEL,
    import_skops,
    read_file,
    unpack,
    untrusted_types,
    with_plain_members,
)
from sklearn_pate.stored_types import OF_MODELS

_WHOLE_NUMBER = r"[+-]?\d{1,18}"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_BOOLEANS = {"True": 1.0, "False": 0.0}
# For a missing number; in a column of text they are text, perhaps a class or an id.
_MISSING = ["NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>"]


def read_public(path: Path) -> Any:
    """Read public rows as a dataframe of pandas."""
    frame = _read(path)
    if 0 in frame.shape:
        raise ValueError(f"{path} has no rows; pass the public rows.")
    if path.suffix == ".csv":
        # Not by pandas, whose versions read some digits as different bits.
        for name in frame.columns:
            frame[name] = _typed(frame[name])
    return frame


def read_private(
    path: Path, X_public: Any, others: Sequence[str]
) -> tuple[Any, dict[str, list[Any]]]:
    """Read the columns of the public rows as their types, and some other columns.

    Each value is read on its own: a column whose type was guessed would be read in
    another way if one row held an odd value.
    """
    pandas = optional_module("pandas", "pandas")
    frame = _read(path)
    missing = [one for one in (*X_public.columns, *others) if one not in frame.columns]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(map(repr, missing))}; it needs the "
            "columns of the public rows and the columns that options name."
        )
    if len(frame) == 0:
        raise ValueError(f"{path} has no rows; pass the rows of this site.")
    columns = {}
    for name, kind in X_public.dtypes.items():
        column = frame[name]
        try:
            if kind.kind == "b":
                values = [_BOOLEANS.get(value, value) for value in column.tolist()]
                column = pandas.Series(values, dtype=object, name=name)
            if kind.kind in "biuf":
                column = read_numbers(column.to_frame())[:, 0]
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {printable(error)}") from None
        columns[name] = column
    return pandas.DataFrame(columns), {name: frame[name].tolist() for name in others}


def read_rows(
    path: Path, model: PublishedClassifier, others: Sequence[str]
) -> tuple[Any, dict[str, list[Any]]]:
    """Read the features of a model, and some other columns.

    Each cell of a CSV file is read on its own: as a number if it is one, else as text.
    """
    frame = _read(path)
    columns = getattr(model, "feature_names_in_", None)
    names = [one for one in frame.columns if one not in others]
    if columns is not None:
        names = columns.tolist()
    missing = [one for one in (*names, *others) if one not in frame.columns]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(map(repr, missing))}; it needs the "
            "features of the model and the columns that options name."
        )
    if len(names) != model.n_features_in_ or len(frame) == 0:
        raise ValueError(
            f"{path} has {counted(len(frame), 'row')} of "
            f"{counted(len(names), 'feature')}, but the model has "
            f"{model.n_features_in_}; pass only the features of the model, in the "
            "order of the fit."
        )
    X = frame[names]
    if path.suffix == ".csv":
        X = X.apply(lambda column: column.map(_cell).astype(object))
    read = {name: frame[name].tolist() for name in others}
    return (X if columns is not None else X.to_numpy()), read


def _cell(text: Any) -> Any:
    """Read a cell of a CSV file as a number if it is one, NaN if it is missing."""
    if not isinstance(text, str) or text in _MISSING:
        return np.nan
    if re.fullmatch(_NUMBER, text):
        return float(text)
    return _BOOLEANS.get(text, text)


def labels_like(labels: list[Any], classes: list[Any]) -> NDArray[np.object_]:
    """Read each label as the type of the classes, text or number."""
    return as_words(labels) if isinstance(classes[0], str) else without_words(labels)


def _typed(column: Any) -> Any:
    """Convert a column of text to whole numbers, numbers or booleans, if all are."""
    texts = column[column.notna() & ~column.isin(_MISSING)]
    if texts.isin([*_BOOLEANS]).all() and len(texts) == len(column):
        return column.map(_BOOLEANS).astype(bool)
    if not texts.str.fullmatch(_NUMBER).all():
        return column
    if len(texts) == len(column) and texts.str.fullmatch(_WHOLE_NUMBER).all():
        return column.map(int).astype(np.int64)
    return read_numbers(column.to_frame())[:, 0]


def _read(path: Path) -> Any:
    """Read a file as a dataframe; all of a CSV file is text, or missing if empty."""
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(
            f"{path} must end in .csv or .parquet, the format of the file."
        )
    pandas = optional_module("pandas", "pandas")
    try:
        if path.suffix == ".parquet":
            parquet = optional_module("pyarrow.parquet", "pyarrow")
            return parquet.read_table(path).to_pandas(ignore_metadata=True)
        frame = pandas.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read: {printable(error).rstrip('.')}."
        ) from None
    if not isinstance(frame.index, pandas.RangeIndex):
        raise ValueError(
            f"{path} has rows with more values than the first line has names; give "
            "each column a name."
        )
    return frame


def read_estimator(path: Path, name: str) -> Any:
    """Read a classifier: the variable `name` of a Python file, or a skops file.

    The Python file is executed.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; correct the path of --{name}.")
    if path.suffix == ".py":
        found = _executed(path, name)
    elif path.suffix == ".skops":
        found = _unpacked(path)
    else:
        raise ValueError(f"{path} must end in .py or .skops, the format of the file.")
    if isinstance(found, type) or not hasattr(found, "fit") or not is_classifier(found):
        raise ValueError(
            f"{name} in {path} is a {type(found).__name__}, not a classifier; define "
            f"an unfitted classifier, such as {name} = LogisticRegression()."
        )
    return found


def _executed(path: Path, name: str) -> Any:
    """Execute a Python file, as Python does, and return one of its variables."""
    folder = str(path.resolve().parent)  # it may import files beside it
    sys.path.insert(0, folder)
    try:
        variables = runpy.run_path(str(path))
    except (
        Exception,
        SystemExit,
    ) as error:  # an exit code would be that of the command
        raise ValueError(
            f"{path} failed with {type(error).__name__}: {printable(str(error))}."
        ) from error
    finally:
        sys.path.remove(folder)
    if name not in variables:
        raise ValueError(
            f"{path} defines no {name}; add a line such as {name} = "
            "LogisticRegression()."
        )
    return variables[name]


def _unpacked(path: Path) -> Any:
    """Load a skops file, if skops trusts all its types."""
    skops_io = import_skops()
    packed = with_plain_members(read_file(path, "an estimator", LARGEST_MODEL), path)
    unknown = untrusted_types(skops_io, packed, path) - OF_MODELS
    if unknown:
        raise ValueError(
            f"{path} holds types that skops does not trust: "
            f"{printable(', '.join(sorted(unknown)))}; pass a Python file that defines "
            "this estimator."
        )
    try:
        return unpack(skops_io, packed, OF_MODELS)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be loaded ({type(error).__name__}: {printable(error)})."
        ) from error

"""Tables and estimators in files that commands read."""

import argparse
import re
import runpy
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sklearn_pate._inputs._known_columns import CATEGORIES
from sklearn_pate._inputs._labels import check_classes, class_indices
from sklearn_pate._inputs._odd_values import as_words, read_numbers, without_words
from sklearn_pate.accounting._value_checks import counted, optional_module, printable
from sklearn_pate.publication import PublishedClassifier
from sklearn_pate.publication._model_file import (
    LARGEST_MODEL,
    import_skops,
    reachable,
    read_file,
    unpack,
    untrusted_types,
    with_plain_members,
)
from sklearn_pate.stored_types import OF_MODELS

_WHOLE_NUMBER = r"[+-]?\d{1,18}"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
# What a file that defines no estimator could define.
_EXAMPLES = {
    "estimator": "DPNewtonClassifier(classes=..., random_state=0)",
    "student": "LogisticRegression()",
    "teacher": "LogisticRegression()",
}
# Options that name a column beside the features.
_NAMING = ("label", "group", "subgroup")
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
    A column that the model knows as text stays text, so that "05" is no 5.
    """
    frame = _read(path)
    if len(frame) == 0:
        raise ValueError(f"{path} has no rows; pass rows with labels.")
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
    if len(names) != model.n_features_in_:
        raise ValueError(
            f"{path} has {counted(len(frame), 'row')} of "
            f"{counted(len(names), 'feature')}, but the model has "
            f"{model.n_features_in_}; pass only the features of the model, in the "
            "order of the fit."
        )
    X = frame[names].copy()
    if path.suffix == ".csv":
        known = getattr(model, "_known_columns", None)
        kinds = ["number"] * len(names) if known is None else known.kinds
        words = {} if known is None else known.words
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            read_cell = _cell
            if kind in CATEGORIES:
                absent = set(_MISSING) - set(words.get(place, ()))
                read_cell = partial(_text_cell, absent=absent)
            X[name] = X[name].map(read_cell).astype(object)
    read = {name: frame[name].tolist() for name in others}
    return (X if columns is not None else X.to_numpy()), read


def _cell(text: Any) -> Any:
    """Read a cell of a CSV file as a number if it is one, NaN if it is missing."""
    if not isinstance(text, str) or text in _MISSING:
        return np.nan
    if re.fullmatch(_NUMBER, text):
        return float(text)
    return _BOOLEANS.get(text, text)


def _text_cell(text: Any, absent: Collection[str]) -> Any:
    """Read a cell of a column of text, NaN if it is missing."""
    return text if isinstance(text, str) and text not in absent else np.nan


def named_columns(given: argparse.Namespace, features: Iterable[str]) -> list[str]:
    """List the columns that --label, --group and --subgroup name.

    Raises ValueError if two of them name one, or if a label or group is a feature.
    """
    options = {name: getattr(given, name, None) for name in _NAMING}
    named = {option: name for option, name in options.items() if name is not None}
    features = {*features}
    for option, name in named.items():
        if [*named.values()].count(name) > 1:
            raise ValueError(
                f"Two options name column {name!r}; choose different columns for "
                f"{', '.join(f'--{one}' for one in named)}."
            )
        if option != "subgroup" and name in features:
            raise ValueError(
                f"Column {name!r} is a feature; choose a label and a group id that "
                "are not features."
            )
    return [*named.values()]


def check_labels(
    y: NDArray[np.object_], classes: Any, path: Path, label: str
) -> NDArray[np.intp]:
    """Return the index of each label, or raise if no label is a class."""
    codes = class_indices(y, check_classes(classes))
    if np.all(codes < 0):
        raise ValueError(
            f"No label in column {label!r} of {path} is one of the classes "
            f"{np.asarray(classes).tolist()}; compare their spelling."
        )
    return codes


def subgroups_like(
    columns: dict[str, list[Any]], name: str | None, values: list[Any] | None
) -> Any:
    """Return the column of --subgroup, read as the type of declared values."""
    if name is None:
        return None
    return columns[name] if values is None else labels_like(columns[name], values)


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
    if path.suffix == ".parquet":
        parquet = optional_module("pyarrow.parquet", "pyarrow")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; correct the path.")
    as_text = {"dtype": str, "keep_default_na": False}
    try:
        if path.suffix == ".parquet":
            return parquet.read_table(path).to_pandas(ignore_metadata=True)
        # pandas would rename a second column of a name, and name one without.
        names = pandas.read_csv(path, header=None, nrows=1, **as_text).iloc[0].tolist()
        _check_names(names, path)
        frame = pandas.read_csv(path, na_values=[""], **as_text)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not in UTF-8; save it in UTF-8.") from None
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


def _check_names(names: list[str], path: Path) -> None:
    """Raise unless the first line of a CSV file names each column once."""
    if len(names) == 1 and ";" in names[0]:
        raise ValueError(
            f"{path} is separated by semicolons; save it with commas, and with points "
            "in numbers."
        )
    for name, n_columns in Counter(names).items():
        if not name.strip():
            raise ValueError(
                f"{path} has a column without a name; name it, or leave it out if it "
                "has numbers of rows."
            )
        if n_columns > 1:
            raise ValueError(
                f"{path} names column {name!r} twice; give each column its own name."
            )


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
            f"an unfitted classifier, such as {name} = {_EXAMPLES[name]}."
        )
    if name != "teacher":
        _check_can_be_saved(getattr(found, "student", found), path)
    return found


def _check_can_be_saved(student: Any, path: Path) -> None:
    """Raise if a student has a class or function that the file of a command defines."""
    own = {
        getattr(part, "__name__", type(part).__name__)
        for one in reachable(student)
        for part in (type(one), *getattr(one, "__dict__", {}).values())
        if getattr(part, "__module__", None) == "<run_path>"
    }
    if own:
        raise ValueError(
            f"The student in {path} has {', '.join(sorted(own))}, which this file "
            "defines: the model could not be saved. Define it in an installed module."
        )


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
            f"{path} defines no {name}; add a line such as {name} = {_EXAMPLES[name]}."
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

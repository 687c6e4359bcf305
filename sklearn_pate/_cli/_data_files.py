"""Public and private rows in CSV and Parquet files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._inputs._odd_rows import as_words, read_numbers, without_words
from sklearn_pate.accounting._optional_module import optional_module
from sklearn_pate.publication._bounded_files import printable

__all__ = ["labels_like", "read_private", "read_public"]

_WHOLE_NUMBER = r"[+-]?\d{1,18}"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_BOOLEANS = {"True": 1.0, "False": 0.0}
# For a missing number; in a column of text they are text, perhaps a class or an id.
_MISSING = ["NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>"]


def read_public(path: Path) -> Any:
    """Read public rows as a dataframe of pandas."""
    frame = _read(path)
    if 0 in frame.shape:
        raise ValueError(f"{path} holds no row; pass the public rows.")
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
            "columns of the public rows and those that options name."
        )
    if len(frame) == 0:
        raise ValueError(f"{path} holds no row; pass the rows of this site.")
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

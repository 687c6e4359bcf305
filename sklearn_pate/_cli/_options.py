"""Options of commands, files of data and of estimators."""

import argparse
import re
import runpy
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sklearn_pate._inputs._odd_values import as_words, read_numbers, without_words
from sklearn_pate.accounting._value_checks import optional_module
from sklearn_pate.mechanisms import ConfidentGNMax
from sklearn_pate.publication._model_file import (
    LARGEST_MODEL,
    TRUSTED,
    import_skops,
    printable,
    read_file,
    unpack,
    untrusted_types,
    with_plain_members,
)

#: Mechanisms that answer without a student.
MECHANISMS = ("gnmax", "lnmax", "gumbel", "permute-and-flip", "confident")
_WHOLE_NUMBER = r"[+-]?\d{1,18}"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_BOOLEANS = {"True": 1.0, "False": 0.0}
# For a missing number; in a column of text they are text, perhaps a class or an id.
_MISSING = ["NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>"]


class Parser(argparse.ArgumentParser):
    """Argument parser that keeps line breaks, and whose errors are one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **options,
        )

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 for arguments that cannot be parsed."""
        # argparse reads "-1,3" as another option, not as the value of --classes.
        message = re.sub(
            r"(--[\w-]+): expected one argument$",
            r"\g<0>; one that starts with a minus is written \1=...",
            message.removesuffix("."),
        )
        self.exit(2, f'{self.prog}: {message}; see "{self.prog} --help"\n')

    def refuse(self, error: Exception, names: Mapping[str, str]) -> NoReturn:
        """Exit with code 2 for values that the library refuses.

        `names` has the option of each parameter: ``n_queries=0 must be ...`` becomes
        ``--queries 0 must be ...``.
        """
        message = " ".join(str(error).split())
        for name, option in names.items():
            message = re.sub(rf"\b{name}=True\b", option, message)
            message = re.sub(rf"\b{name}='([^\s',;]+)'", rf"{option} \1", message)
            message = re.sub(rf"\b{name}=", f"{option} ", message)
            if "_" in name:  # otherwise it may be a word of the sentence
                message = re.sub(rf"\b{name}\b", option, message)
        self.exit(2, f"{self.prog}: {message}\n")


def whole_number(text: str) -> int:
    """Parse a whole number of any size."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number; write 100, for example"
        ) from None


def auto_or_whole_number(text: str) -> int | str:
    """Parse the number of teachers or of queries."""
    return text if text == "auto" else whole_number(text)


def list_of_texts(text: str) -> list[str]:
    """Parse texts that are separated by commas."""
    return [one.strip() for one in text.split(",")]


def number(text: str) -> float:
    """Parse a number; the library checks its range."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number; write 0.5, for example"
        ) from None


def votes_or_share(text: str) -> float:
    """Parse a threshold: a whole number of votes, or a share of the teachers."""
    return int(text) if text.isdecimal() else number(text)


def add_mechanism(
    parser: argparse.ArgumentParser,
    others: Sequence[str] = (),
    about_others: str = "",
) -> None:
    """Add the options that choose a mechanism; the first of others is the default."""
    by_default = "" if others else ", the default"
    parser.add_argument(
        "--mechanism",
        choices=(*others, *MECHANISMS),
        default=others[0] if others else "gnmax",
        metavar="NAME",
        help=f"{about_others}gnmax (Gaussian noise{by_default}), "
        "lnmax (Laplace), gumbel (the exponential mechanism), permute-and-flip, or "
        "confident (gnmax, after a noisy check that teachers agree)",
    )
    parser.add_argument(
        "--threshold",
        type=votes_or_share,
        metavar="VOTES",
        help="for confident: votes that the largest count must reach, before noise; a "
        "number with a decimal point, at most 1.0, is a share of the teachers "
        "(default: 0.8)",
    )


def chosen_mechanism(given: argparse.Namespace) -> str | ConfidentGNMax:
    """Return the mechanism that the options of `add_mechanism` choose."""
    if given.threshold is None:
        return given.mechanism
    if given.mechanism != "confident":
        raise ValueError(
            f"threshold={given.threshold!r} applies to mechanism=confident only, "
            f"not to mechanism={given.mechanism}; leave it out."
        )
    return ConfidentGNMax(threshold=given.threshold)


def check_outputs(paths: Sequence[Path], *, overwrite: bool | None) -> None:
    """Check that files can be written, before work is done for them.

    None refuses files that exist without a way to replace them.
    """
    for path in paths:
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"There is no folder {path.parent} for {path}; create it first."
            )
        if path.exists() and not overwrite:
            advice = "" if overwrite is None else ", or add --overwrite to replace it"
            raise FileExistsError(
                f"{path} exists already; choose another path{advice}."
            )


@contextmanager
def plain_warnings(parser: argparse.ArgumentParser) -> Iterator[None]:
    """Write warnings to stderr as the command's own words, without a line of code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        print(f"{parser.prog}: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


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


def read_estimator(path: Path, name: str) -> Any:
    """Read a classifier: the variable `name` of a Python file, or a skops file.

    The Python file is executed.
    """
    _check_is_file(path, name)
    if path.suffix == ".py":
        found = _executed(path, name, f"{name} = LogisticRegression()")
    elif path.suffix == ".skops":
        found = _unpacked(path)
    else:
        raise ValueError(f"{path} must end in .py or .skops, the format of the file.")
    if isinstance(found, type) or not hasattr(found, "fit") or not is_classifier(found):
        raise ValueError(
            f"{path} has no classifier as {name}, but a {type(found).__name__}; make "
            f"it an unfitted one, such as {name} = LogisticRegression()."
        )
    return found


def _check_is_file(path: Path, option: str) -> None:
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not a file; correct the path of --{option}."
        )


def _executed(path: Path, name: str, example: str) -> Any:
    """Execute a Python file, as Python does, and return one of its variables."""
    folder = str(path.resolve().parent)  # it may import files beside it
    sys.path.insert(0, folder)
    try:
        variables = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:  # exit codes are those of the audit
        raise ValueError(
            f"{path} failed with {type(error).__name__}: {printable(str(error))}."
        ) from error
    finally:
        sys.path.remove(folder)
    if name not in variables:
        raise ValueError(f"{path} defines no {name}; add a line such as {example}.")
    return variables[name]


def _unpacked(path: Path) -> Any:
    """Load a skops file, if skops trusts all its types."""
    skops_io = import_skops()
    packed = with_plain_members(read_file(path, "an estimator", LARGEST_MODEL), path)
    unknown = untrusted_types(skops_io, packed, path) - TRUSTED
    if unknown:
        raise ValueError(
            f"{path} holds types that skops does not trust: "
            f"{printable(', '.join(sorted(unknown)))}; pass a Python file that makes "
            "this estimator."
        )
    try:
        return unpack(skops_io, packed, TRUSTED)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be loaded ({type(error).__name__}: {printable(error)})."
        ) from error

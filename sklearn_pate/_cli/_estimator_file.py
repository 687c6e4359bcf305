"""Unfitted classifiers and mechanisms in files: Python, or skops."""

import runpy
import sys
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier

from sklearn_pate.mechanisms import Mechanism
from sklearn_pate.publication._bounded_files import (
    LARGEST_MODEL,
    printable,
    read_file,
    with_plain_members,
)
from sklearn_pate.publication._model_file import (
    TRUSTED,
    import_skops,
    unpack,
    untrusted_types,
)

__all__ = ["read_estimator", "read_mechanism"]


def read_mechanism(path: Path) -> Mechanism:
    """Read the variable `mechanism` of a Python file, which is executed."""
    _check_is_file(path, "file")
    if path.suffix != ".py":
        raise ValueError(f"{path} must end in .py.")
    example = "mechanism = MyMechanism()"
    found = _executed(path, "mechanism", example)
    if not isinstance(found, Mechanism):
        raise ValueError(
            f"{path} assigns {printable(repr(found))} to mechanism, which is no "
            f"instance of a subclass of Mechanism; assign one, such as {example}."
        )
    return found


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

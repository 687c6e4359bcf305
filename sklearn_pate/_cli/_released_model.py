"""What a released model says of itself, read without loading the model."""

import json
import zipfile
from io import BytesIO
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_pate.publication import PublishedClassifier
from sklearn_pate.publication._bounded_files import (
    printable,
    read_index,
    read_member,
)
from sklearn_pate.publication._model_file import read_pair

__all__ = ["read_released"]

# Two arrays of some hundred numbers each.
_LARGEST_CURVE = 2**20


class _NotLoaded(ClassifierMixin, BaseEstimator):
    """Stands for a student that nobody needs here, under its name."""

    def predict(self, X: Any) -> NoReturn:
        raise TypeError("Only the statement was read, and not the student.")


def read_released(path: str) -> PublishedClassifier:
    """Read the statement of a released model, and nothing that could run code.

    Parameters
    ----------
    path : str
        The model file; its card is beside it.

    Returns
    -------
    released : PublishedClassifier
        With its card, statement and Renyi curve, and no student: it cannot predict.

    Raises
    ------
    FileNotFoundError
        If the model or its card is missing.

    ValueError
        If a file is damaged, edited, swapped or of an unknown format, states less than
        its mechanism costs, or has a mechanism that is none of this package.

    Notes
    -----
    The hashes, the copy of the card and the price are checked as in
    :meth:`PublishedClassifier.load`. Of the model file, which is a zip archive, only
    the card and two arrays of plain numbers are read, by their names in the index that
    skops wrote. No type that the file names is looked up, so that nobody has to trust
    any, and skops is not needed.
    """
    model, card, (model_path, card_path) = read_pair(path)
    try:
        (name, module), stated = _stated(model)
        parts = {
            "student": type(name, (_NotLoaded,), {"__module__": module})(),
            "classes": np.array(card["classes"], dtype=object),
        }
        released = PublishedClassifier._from_parts(parts, card)
    except Exception as error:
        raise ValueError(
            f"{model_path} or {card_path} is damaged: its statement cannot be read "
            f"({type(error).__name__}: {printable(error)})."
        ) from error
    released._take_statement(card_path, *stated)
    return released


def _stated(model):
    """Read the names of the student's class, the curve and what else is stated."""
    with zipfile.ZipFile(BytesIO(model)) as archive:
        index = json.loads(read_index(archive, len(model)))["content"]
        curve = [
            np.lib.format.read_array(  # refuses arrays of objects, and archives
                BytesIO(read_member(archive, index[name]["file"], _LARGEST_CURVE))
            )
            for name in ("orders", "divergences")
        ]
        names = ("n_classes", "statement")
        stated = *curve, *(json.loads(index[name]["content"]) for name in names)
        student = index["student"]
        return (student["__class__"], student["__module__"]), stated

"""What a released model says of itself, read without loading the model."""

import json
import zipfile
from io import BytesIO
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_pate.publication import PublishedClassifier
from sklearn_pate.publication.model_file import read_pair

__all__ = ["read_released"]


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
        If a file is damaged, edited, swapped or of an unknown format.

    Notes
    -----
    The hashes and the copy of the card are compared as in
    :meth:`PublishedClassifier.load`. Of the model file, which is a zip archive, only
    the card and two arrays of plain numbers are read, by their names in the index that
    skops wrote. No type that the file names is looked up, so that nobody has to trust
    any, and skops is not needed.
    """
    model, card, (model_path, card_path) = read_pair(path)
    try:
        name = card["student"].rpartition(".")[2]
        parts = _curve(model) | {
            "student": type(name, (_NotLoaded,), {})(),
            "classes": np.array(card["classes"], dtype=object),
        }
        released = PublishedClassifier._from_parts(parts, card)
        str(released.privacy_spent_)  # are its numbers numbers?
    except Exception as error:
        raise ValueError(
            f"{model_path} or {card_path} is damaged: its statement cannot be read "
            f"({type(error).__name__}: {error})."
        ) from error
    return released


def _curve(model):
    """Read the orders and values of the Renyi curve."""
    with zipfile.ZipFile(BytesIO(model)) as archive:
        index = json.loads(archive.read("schema.json"))["content"]
        return {
            name: np.load(BytesIO(archive.read(index[name]["file"])))  # no pickles
            for name in ("orders", "divergences")
        }

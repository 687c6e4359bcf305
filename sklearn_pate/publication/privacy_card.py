"""The privacy card: what a reader of a published model should know, in plain JSON."""

import json
import platform
import sys
from datetime import UTC, datetime

import numpy as np

from sklearn_pate.publication.belongings import reachable

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "canonical_text",
    "make_card",
    "parse_card",
    "plain_label",
    "versions_of",
]

FORMAT = "sklearn_pate privacy card"
FORMAT_VERSION = 1


def make_card(published):
    """Write a card.

    Parameters
    ----------
    published : PublishedClassifier
        Complete but for the card.

    Returns
    -------
    card : dict
        Plain values, of which none depends on private data beyond the statement.
    """
    spent = published.privacy_spent_
    private = bool(np.isfinite(spent.epsilon))
    names = getattr(published, "feature_names_in_", None)
    student = type(published.student_)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "statement": str(spent),
        "private": private,
        "epsilon": float(spent.epsilon) if private else None,
        "delta": float(spent.delta),
        "unit": spent.unit,
        "neighbours": spent.neighbours,
        "mechanism": spent.mechanism,
        "n_teachers": int(spent.n_teachers),
        "n_queries": int(spent.n_queries),
        "assumptions": list(spent.assumptions),
        "student": f"{student.__module__}.{student.__qualname__}",
        "classes": [plain_label(label) for label in published.classes_.tolist()],
        "n_features": published.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions_of(published.student_),
    }


def plain_label(label):
    """Return a class label as JSON can write it.

    Parameters
    ----------
    label : object
        One of ``classes_.tolist()``.

    Returns
    -------
    label : bool, int, float or str
        The same, or how it prints.
    """
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, (bool, int, str)):
        return label
    return label if isinstance(label, float) and np.isfinite(label) else str(label)


def canonical_text(card):
    """Write a card as the one text that tells 1 from 1.0 and from true.

    Parameters
    ----------
    card : dict
        Without the sha256 of the model file.

    Returns
    -------
    text : bytes
        Strict JSON.
    """
    return json.dumps(card, sort_keys=True, allow_nan=False).encode()


def parse_card(content, path):
    """Read the text of a card, with the sha256 of the model file.

    Parameters
    ----------
    content : bytes
        What the file holds.

    path : Path
        Where it is, for errors.

    Returns
    -------
    card : dict
        Of the known format; its other fields are not checked.

    Raises
    ------
    ValueError
        If it is no such card.
    """
    try:
        card = json.loads(
            content, parse_constant=_refuse, object_pairs_hook=_without_duplicates
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged: it is not strict JSON ({error})."
        ) from None
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise ValueError(f"{path} is no {FORMAT}.")
    if card.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format_version={card.get('format_version')!r}, and this "
            f"version of sklearn_pate reads {FORMAT_VERSION}; a later one may read it."
        )
    for name, kind in (("sha256", str), ("versions", dict)):
        if not isinstance(card.get(name), kind):
            raise ValueError(f"{path} is damaged: it has no {name}.")
    return card


def versions_of(model):
    """Name the versions of Python and of every package that a model is made of.

    Parameters
    ----------
    model : estimator
        Fitted.

    Returns
    -------
    versions : dict of str to str
        By package.
    """
    packages = {"numpy", "sklearn", "sklearn_pate"}
    for one in reachable(model):
        packages.update(kind.__module__.partition(".")[0] for kind in type(one).__mro__)
    found = {
        name: getattr(sys.modules.get(name), "__version__", None) for name in packages
    }
    found["scikit-learn"] = found.pop("sklearn")
    # Some packages call a module so, which prints with its path.
    named = {
        name: found[name] for name in sorted(found) if isinstance(found[name], str)
    }
    return {"python": platform.python_version()} | named


def _refuse(constant):
    raise ValueError(f"{constant} is no JSON number")


def _without_duplicates(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found

"""Facts about a published model: its card and its file."""

import hashlib
import os
from typing import Any

from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.publication._deployment import Deployment, checked_deployment
from sklearn_pate.publication._model_file import paths_of, read_pair
from sklearn_pate.publication._privacy_card import canonical_text

__all__ = ["deployment_of", "has_card", "name_file"]


def has_card(learner: Any) -> bool:
    """Check whether an estimator is a PublishedClassifier, also before its fit."""
    return hasattr(type(learner), "card")


def deployment_of(
    learner: Any, deployment: Deployment | None, spent: PrivacySpent
) -> dict[str, Any]:
    """Return the description of a model: that on its card, or a given one."""
    given = checked_deployment(deployment, spent).to_dict()
    on_card = learner.card["deployment"] if has_card(learner) else {}
    if on_card and deployment is not None and on_card != given:
        raise ValueError(
            "deployment differs from that on the card of the model; leave it out to "
            "use the card, or publish the model again with the new one."
        )
    return on_card or given


def name_file(learner: Any, model_file: str | os.PathLike[str]) -> dict[str, str]:
    """Return name and sha256 of a published model's file, without loading the model.

    The folder is left out: its name may be private. ValueError is raised if the file is
    damaged or has another card than `learner`.
    """
    try:
        path, _ = paths_of(model_file)
    except ValueError as error:
        raise ValueError(str(error).replace("path=", "model_file=")) from None
    if not has_card(learner):
        raise ValueError(
            f"model_file={str(path)!r} is the file of a PublishedClassifier, and clf "
            f"is a {type(learner).__name__}; pass clf.publish(), as it was saved."
        )
    model, card, _ = read_pair(path)
    if canonical_text(card) != canonical_text(learner.card):
        raise ValueError(
            f"model_file={str(path)!r} has another privacy card than clf; pass the "
            "file that clf was saved to or read from."
        )
    name = " ".join(path.name.split())
    return {"name": name, "sha256": hashlib.sha256(model).hexdigest()}

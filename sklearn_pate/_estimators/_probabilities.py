"""Check of the class probabilities that a trained classifier predicts."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from sklearn_pate._estimators._class_codes import (
    RelabeledClassifier,
    WrappingClassifier,
    in_all_classes,
    is_binary_network,
    is_network,
)

#: What is in the errors below, whose reason is not a number of rows.
OF_OUTPUTS = re.compile("no class probabilities|needs logits")
# Largest difference of a sum of probabilities from 1, in half precision.
_ROUND_OFF = 0.01


def check_probabilities(classifier: Any, X: Any, n_classes: int) -> None:
    """Raise ValueError if a classifier has class probabilities that are none.

    `classifier` was fitted on class indices, and on nothing sensitive.
    """
    try:
        predicted = np.asarray(classifier.predict_proba(X))
    except Exception:  # it has none, or some that only predictions do without
        return
    network, inputs = _network(classifier, X)
    if network is not None:
        _check_outputs(network, inputs)
    predicted = in_all_classes(predicted, classifier, n_classes, absent=0.0)
    problem = _why_none(predicted)
    if predicted.shape != (X.shape[0], n_classes):
        problem = f"shape {predicted.shape}"
    if problem is not None:
        raise ValueError(
            f"predict_proba returned {problem} for {X.shape[0]} rows and {n_classes} "
            "classes, which are no class probabilities; use a classifier whose "
            "probabilities of each row sum to 1 (of a skorch network, set "
            "predict_nonlinearity)"
        )


def _check_outputs(network: Any, X: Any) -> None:
    """Raise ValueError if outputs of a skorch network do not suit its loss."""
    from torch import nn  # skorch has imported it

    loss, outputs = network.criterion_, np.asarray(network.forward(X))
    if isinstance(loss, nn.NLLLoss):
        problem = _why_none(outputs)
        if problem is not None:
            raise ValueError(
                f"its module returned {problem}, which are no class probabilities, but "
                "NLLLoss needs these; add a last softmax layer, or for logits set "
                "criterion=torch.nn.CrossEntropyLoss"
            )
        return
    if is_binary_network(network):
        # After few steps of training, outputs may be within 0 and 1 by chance.
        layers = [one for one in network.module_.modules() if not list(one.children())]
        twice = isinstance(loss, nn.BCEWithLogitsLoss) and isinstance(
            layers[-1], nn.Sigmoid
        )
    else:
        twice = isinstance(loss, nn.CrossEntropyLoss) and _why_none(outputs) is None
    if twice:
        raise ValueError(
            f"its module returned probabilities, but {type(loss).__name__} needs "
            "logits; remove the last layer, which computes probabilities"
        )


def _why_none(values: NDArray[Any]) -> str | None:
    """Describe values that are no class probabilities; None if they are.

    Most rows decide: of naive Bayes with tiny variances, a few have others by rounding.
    """
    sums = values.sum(axis=-1, dtype=np.float64)
    problems = {
        "NaN or infinity": ~np.isfinite(values).all(axis=-1),
        "negative values": (values < 0).any(axis=-1),
        "rows that do not sum to 1": np.abs(sums - 1) > _ROUND_OFF,
    }
    found = (name for name, of_rows in problems.items() if np.mean(of_rows) > 0.5)
    return next(found, None)


def _network(classifier: Any, X: Any) -> tuple[Any, Any]:
    """Return the skorch network in a fitted classifier, and its inputs; None without.

    It may be in a wrapper of this package, or the last step of a Pipeline.
    """
    while True:
        if isinstance(classifier, (RelabeledClassifier, WrappingClassifier)):
            classifier = classifier.estimator_
        elif isinstance(classifier, Pipeline):
            # Steps of imbalanced-learn that resample have no transform.
            front: Any = classifier[:-1] if len(classifier.steps) > 1 else None
            X = front.transform(X) if hasattr(front, "transform") else X
            classifier = classifier.steps[-1][1]
        else:
            break
    return (classifier if is_network(classifier) else None), X

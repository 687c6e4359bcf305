"""Query strategies and students, which use public rows and noisy answers only."""

from importlib import import_module
from typing import Any

from sklearn_pate.students._basis import ReweightedClassifier, ScoreFunction
from sklearn_pate.students._graph import GraphSelfTrainingClassifier
from sklearn_pate.students._image_student import ImageStudent
from sklearn_pate.students._queries import (
    ExpertQueries,
    InteractiveQueries,
    QuerySession,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
    UncertaintyQueries,
)
from sklearn_pate.students._representations import (
    ImageRepresentation,
    TableRepresentation,
)
from sklearn_pate.students._train_student import DistillationClassifier

__all__ = [
    "ContrastiveEncoder",
    "ConvSmall",
    "DistillationClassifier",
    "ExpertQueries",
    "FixMatchClassifier",
    "GANClassifier",
    "GraphSelfTrainingClassifier",
    "ImageAugmentation",
    "ImageRepresentation",
    "ImageStudent",
    "InteractiveQueries",
    "QuerySession",
    "QueryStrategy",
    "RandomQueries",
    "RelationalHint",
    "RepresentativeQueries",
    "ReweightedClassifier",
    "ScoreFunction",
    "TableRepresentation",
    "UncertaintyQueries",
]

# These need torch, which is optional and takes seconds to import.
_NETWORKS = {
    "ContrastiveEncoder": "_consistency",
    "ConvSmall": "_images",
    "FixMatchClassifier": "_consistency",
    "GANClassifier": "_gan",
    "ImageAugmentation": "_images",
    "RelationalHint": "_network_classifier",
}


def __getattr__(name: str) -> Any:
    if name not in _NETWORKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.networks.{_NETWORKS[name]}")
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "skorch"):
            raise
        raise ImportError(
            f"{name} needs torch and skorch; pip install torch skorch."
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__

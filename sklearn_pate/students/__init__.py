"""Query strategies and students, which use public rows and answers only."""

from importlib import import_module
from typing import Any

from sklearn_pate.students._distillation import DistillationClassifier
from sklearn_pate.students._graph import GraphSelfTrainingClassifier
from sklearn_pate.students._image_representation import ImageRepresentation
from sklearn_pate.students._score_function import ScoreFunction
from sklearn_pate.students._table_representation import TableRepresentation
from sklearn_pate.students.queries._adaptive import (
    ExpertQueries,
    InteractiveQueries,
    UncertaintyQueries,
)
from sklearn_pate.students.queries._fixed import (
    ClusterQueries,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
)
from sklearn_pate.students.queries._query_session import Clusters, QuerySession

__all__ = [
    "ClusterQueries",
    "Clusters",
    "ContrastiveEncoder",
    "ConvSmall",
    "DistillationClassifier",
    "ExpertQueries",
    "FixMatchClassifier",
    "GANClassifier",
    "GraphSelfTrainingClassifier",
    "ImageAugmentation",
    "ImageRepresentation",
    "InteractiveQueries",
    "QuerySession",
    "QueryStrategy",
    "RandomQueries",
    "RelationalHint",
    "RepresentativeQueries",
    "ScoreFunction",
    "TableRepresentation",
    "TabularAugmentation",
    "UncertaintyQueries",
    "VATClassifier",
]

# These need torch, which is optional and takes seconds to import.
_NETWORKS = {
    "ContrastiveEncoder": "_contrastive",
    "ConvSmall": "_modules",
    "FixMatchClassifier": "_fixmatch",
    "GANClassifier": "_gan",
    "ImageAugmentation": "_augmentation",
    "RelationalHint": "_relational_hint",
    "TabularAugmentation": "_augmentation",
    "VATClassifier": "_vat",
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
            f"{name} needs torch and skorch; pip install 'sklearn-pate[deep]'."
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__

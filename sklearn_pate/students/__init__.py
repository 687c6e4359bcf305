"""The public side: questions and students. Sees public rows and answers only."""

from sklearn_pate.students.active import (
    ExpertQueries,
    InteractiveQueries,
    UncertaintyQueries,
)
from sklearn_pate.students.distillation import DistillationClassifier, soften
from sklearn_pate.students.features import numeric_features, standardized_features
from sklearn_pate.students.graph import GraphSelfTrainingClassifier
from sklearn_pate.students.inquiry import Clusters, Inquiry
from sklearn_pate.students.queries import (
    ClusterQueries,
    QueryStrategy,
    RandomQueries,
    RepresentativeQueries,
    find_clusters,
)
from sklearn_pate.students.semi_supervised import accepts_unlabeled, train_student

__all__ = [
    "ClusterQueries",
    "Clusters",
    "DistillationClassifier",
    "ExpertQueries",
    "GraphSelfTrainingClassifier",
    "Inquiry",
    "InteractiveQueries",
    "QueryStrategy",
    "RandomQueries",
    "RepresentativeQueries",
    "UncertaintyQueries",
    "accepts_unlabeled",
    "find_clusters",
    "numeric_features",
    "soften",
    "standardized_features",
    "train_student",
]

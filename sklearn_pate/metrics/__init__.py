"""Metrics of a model on private rows, released with noise."""

from sklearn_pate.metrics._outcome_metrics import OutcomeMetrics
from sklearn_pate.metrics._private_metrics import private_metrics
from sklearn_pate.metrics._results import (
    Estimate,
    PrivateMetrics,
    RecalibratedClassifier,
)

__all__ = [
    "Estimate",
    "OutcomeMetrics",
    "PrivateMetrics",
    "RecalibratedClassifier",
    "private_metrics",
]

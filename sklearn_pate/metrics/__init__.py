"""Metrics of a classifier on private rows, released with noise."""

from sklearn_pate.metrics._private_metrics import private_metrics
from sklearn_pate.metrics._results import (
    Estimate,
    PrivateMetrics,
    RecalibratedClassifier,
)

__all__ = ["Estimate", "PrivateMetrics", "RecalibratedClassifier", "private_metrics"]

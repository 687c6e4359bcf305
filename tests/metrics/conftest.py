"""Metrics of a published model, measured once."""

import numpy as np
import pytest

from sklearn_pate.exceptions import PrivacyUtilityWarning
from sklearn_pate.metrics import private_metrics
from tests.metrics.scores import (
    FirstColumn,
    scored_rows,
    scored_rows_of_three_classes,
)


@pytest.fixture(scope="session")
def measured():
    """Rows, labels and metrics of two classes, with subgroups; slope 0.5 is right."""
    X, y = scored_rows(4000, slope=0.5)
    subgroups = np.where(np.arange(4000) % 3, "young", "old")
    by_age = {"subgroups": subgroups, "subgroup_values": ["old", "young"]}
    metrics = private_metrics(FirstColumn(), X, y, epsilon=2.0, **by_age)
    return X, y, metrics


@pytest.fixture(scope="session")
def of_three_classes():
    """Rows, labels and metrics of three classes."""
    X, y = scored_rows_of_three_classes(2000)
    return X, y, private_metrics(FirstColumn(3), X, y, epsilon=2.0)


@pytest.fixture(scope="session")
def hidden():
    """Metrics of so few rows that the noise hides all."""
    X, y = scored_rows(100)
    with pytest.warns(PrivacyUtilityWarning, match="the interval of the AUC"):
        return private_metrics(FirstColumn(), X, y, epsilon=0.05, bins=[0.25, 0.5])

"""Private Aggregation of Teacher Ensembles (PATE) as one scikit-learn estimator."""

from typing import Any

from sklearn_pate._inputs._labels import PublicData
from sklearn_pate._pate import PATEClassifier
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.exceptions import (
    BudgetExceededError,
    LedgerError,
    PrivacyLeakWarning,
    PrivacyUtilityWarning,
    PublicDataWarning,
    StudentWarning,
    TeacherWarning,
)
from sklearn_pate.learners._newton import DPNewtonClassifier
from sklearn_pate.publication import PublishedClassifier

__version__ = "0.1.0.dev0"

__all__ = [
    "BudgetExceededError",
    "DPNewtonClassifier",
    "LedgerError",
    "PATEClassifier",
    "PrivacyLeakWarning",
    "PrivacyLedger",
    "PrivacySpent",
    "PrivacyUtilityWarning",
    "PrivateMarginals",
    "PublicData",
    "PublicDataWarning",
    "PublishedClassifier",
    "StudentWarning",
    "TeacherWarning",
    "Votes",
    "privacy_leaks",
]


def __getattr__(name: str) -> Any:
    if name != "privacy_leaks":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imported here, as inspection takes a while to import.
    from sklearn_pate.inspection import privacy_leaks

    return privacy_leaks


def __dir__() -> list[str]:
    return __all__

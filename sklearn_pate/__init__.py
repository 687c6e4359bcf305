"""Private Aggregation of Teacher Ensembles (PATE) as one scikit-learn estimator."""

from sklearn_pate.accounting.ledger import PrivacyLedger
from sklearn_pate.accounting.statement import PrivacySpent
from sklearn_pate.classifier import PATEClassifier
from sklearn_pate.exceptions import (
    BudgetExceededError,
    LedgerError,
    PrivacyLeakWarning,
    PublicDataWarning,
    StudentWarning,
    TeacherWarning,
)
from sklearn_pate.inspection import privacy_leaks
from sklearn_pate.public_data import PublicData
from sklearn_pate.publication import PublishedClassifier
from sklearn_pate.votes import Votes

__version__ = "0.1.0.dev0"

__all__ = [
    "BudgetExceededError",
    "LedgerError",
    "PATEClassifier",
    "PrivacyLeakWarning",
    "PrivacyLedger",
    "PrivacySpent",
    "PublicData",
    "PublicDataWarning",
    "PublishedClassifier",
    "StudentWarning",
    "TeacherWarning",
    "Votes",
    "privacy_leaks",
]

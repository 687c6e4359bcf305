"""Looking at what surrounds a private estimator, and at what it promises."""

from sklearn_pate.inspection.audit import audit_mechanism
from sklearn_pate.inspection.canaries import audit_canaries
from sklearn_pate.inspection.displays import (
    AnswerCostDisplay,
    EpsilonDeltaDisplay,
    PrivacyUtilityDisplay,
    VoteMarginsDisplay,
)
from sklearn_pate.inspection.evidence import AuditResult
from sklearn_pate.inspection.fit_forecast import Forecast, forecast
from sklearn_pate.inspection.label_accuracy import LabelAccuracy
from sklearn_pate.inspection.leaks import PrivacyLeak, privacy_leaks
from sklearn_pate.inspection.membership import MembershipResult, audit_membership
from sklearn_pate.inspection.privacy_report import PrivacyReport
from sklearn_pate.inspection.searches import SearchPrice, search_price
from sklearn_pate.inspection.two_worlds import audit_neighbours

__all__ = [
    "AnswerCostDisplay",
    "AuditResult",
    "EpsilonDeltaDisplay",
    "Forecast",
    "LabelAccuracy",
    "MembershipResult",
    "PrivacyLeak",
    "PrivacyReport",
    "PrivacyUtilityDisplay",
    "SearchPrice",
    "VoteMarginsDisplay",
    "audit_canaries",
    "audit_mechanism",
    "audit_membership",
    "audit_neighbours",
    "forecast",
    "privacy_leaks",
    "search_price",
]

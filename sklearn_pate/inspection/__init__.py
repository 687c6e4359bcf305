"""Inspection of private estimators: plans, reports, displays, leaks, audits."""

from sklearn_pate.inspection._label_accuracy import LabelAccuracy
from sklearn_pate.inspection._leaks import PrivacyLeak, privacy_leaks
from sklearn_pate.inspection._plan_fit import Forecast, forecast
from sklearn_pate.inspection._plan_search import SearchPrice, search_price
from sklearn_pate.inspection.audits._audit_result import AuditResult
from sklearn_pate.inspection.audits._canaries import audit_canaries
from sklearn_pate.inspection.audits._mechanism_audit import audit_mechanism
from sklearn_pate.inspection.audits._membership import (
    MembershipResult,
    audit_membership,
)
from sklearn_pate.inspection.audits._neighbours import audit_neighbours
from sklearn_pate.inspection.displays import (
    AnswerCostDisplay,
    EpsilonDeltaDisplay,
    PrivacyUtilityDisplay,
    VoteMarginsDisplay,
)
from sklearn_pate.inspection.privacy_report import PrivacyReport

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

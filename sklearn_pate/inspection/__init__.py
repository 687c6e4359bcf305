"""Inspection of private estimators: plans, reports, displays, leaks, audits."""

from sklearn_pate._aggregation._outlook import LabelAccuracy
from sklearn_pate.inspection._audits import (
    AuditResult,
    audit_mechanism,
    audit_neighbours,
)
from sklearn_pate.inspection._displays import (
    AnswerCostDisplay,
    EpsilonDeltaDisplay,
    PrivacyUtilityDisplay,
)
from sklearn_pate.inspection._leaks import PrivacyLeak, privacy_leaks
from sklearn_pate.inspection._plans import Fact, Plan, plan
from sklearn_pate.inspection.report import PrivacyReport

__all__ = [
    "AnswerCostDisplay",
    "AuditResult",
    "EpsilonDeltaDisplay",
    "Fact",
    "LabelAccuracy",
    "Plan",
    "PrivacyLeak",
    "PrivacyReport",
    "PrivacyUtilityDisplay",
    "audit_mechanism",
    "audit_neighbours",
    "plan",
    "privacy_leaks",
]

"""Inspection of private estimators: plans, reports, displays, leaks, audits."""

from sklearn_pate._base._fit_plan import FitPlan
from sklearn_pate._base._label_accuracy import LabelAccuracy
from sklearn_pate.inspection._leaks import PrivacyLeak, privacy_leaks
from sklearn_pate.inspection._plan_fit import plan_fit, plan_newton_fit
from sklearn_pate.inspection._plan_search import SearchPlan, plan_search
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
    "FitPlan",
    "LabelAccuracy",
    "MembershipResult",
    "PrivacyLeak",
    "PrivacyReport",
    "PrivacyUtilityDisplay",
    "SearchPlan",
    "VoteMarginsDisplay",
    "audit_canaries",
    "audit_mechanism",
    "audit_membership",
    "audit_neighbours",
    "plan_fit",
    "plan_newton_fit",
    "plan_search",
    "privacy_leaks",
]

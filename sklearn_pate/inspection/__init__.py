"""Inspection of private estimators: plans, reports, displays, leaks, audits."""

from sklearn_pate._aggregation._fit_plan import FitPlan
from sklearn_pate._aggregation._outlook import LabelAccuracy
from sklearn_pate.inspection._audits import AuditResult, audit_neighbours
from sklearn_pate.inspection._epsilon_displays import (
    EpsilonDeltaDisplay,
    PrivacyUtilityDisplay,
)
from sklearn_pate.inspection._leaks import PrivacyLeak, privacy_leaks
from sklearn_pate.inspection._mechanism_audit import audit_mechanism
from sklearn_pate.inspection._plans import (
    SearchPlan,
    plan_fit,
    plan_newton_fit,
    plan_search,
)
from sklearn_pate.inspection._vote_displays import AnswerCostDisplay, VoteMarginsDisplay
from sklearn_pate.inspection.report import PrivacyReport

__all__ = [
    "AnswerCostDisplay",
    "AuditResult",
    "EpsilonDeltaDisplay",
    "FitPlan",
    "LabelAccuracy",
    "PrivacyLeak",
    "PrivacyReport",
    "PrivacyUtilityDisplay",
    "SearchPlan",
    "VoteMarginsDisplay",
    "audit_mechanism",
    "audit_neighbours",
    "plan_fit",
    "plan_newton_fit",
    "plan_search",
    "privacy_leaks",
]

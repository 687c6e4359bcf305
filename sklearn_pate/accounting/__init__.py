"""Privacy cost: Renyi curves, bounds, calibration, statement and ledger."""

from sklearn_pate.accounting import bounds
from sklearn_pate.accounting._calibrate import calibrate_n_queries, calibrate_noise
from sklearn_pate.accounting._cost import Cost
from sklearn_pate.accounting._ledger import LedgerEntry, PrivacyLedger
from sklearn_pate.accounting._other_releases import OtherRelease
from sklearn_pate.accounting._profile import PrivacyProfile, compose_profiles
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._statement import Assumption, PrivacySpent, StatementFacts
from sklearn_pate.accounting._vote_analysis import PrivacyAnalysis
from sklearn_pate.accounting.plurality._exact import local_cost
from sklearn_pate.accounting.plurality._tight import (
    tight_gaussian_worst_case,
    tight_laplace_worst_case,
    tight_threshold_worst_case,
)

__all__ = [
    "DEFAULT_ORDERS",
    "Assumption",
    "Cost",
    "LedgerEntry",
    "OtherRelease",
    "PrivacyAnalysis",
    "PrivacyLedger",
    "PrivacyProfile",
    "PrivacySpent",
    "RdpCurve",
    "StatementFacts",
    "bounds",
    "calibrate_n_queries",
    "calibrate_noise",
    "compose_profiles",
    "local_cost",
    "tight_gaussian_worst_case",
    "tight_laplace_worst_case",
    "tight_threshold_worst_case",
]

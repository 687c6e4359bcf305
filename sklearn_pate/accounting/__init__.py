"""The price: Renyi curves, bounds, calibration and the privacy statement."""

from sklearn_pate.accounting import bounds
from sklearn_pate.accounting.calibrate import calibrate_n_queries, calibrate_noise
from sklearn_pate.accounting.curve import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.exact import local_cost
from sklearn_pate.accounting.ledger import PrivacyLedger
from sklearn_pate.accounting.ledger_report import Charge
from sklearn_pate.accounting.statement import PrivacyAnalysis, PrivacySpent
from sklearn_pate.accounting.worst_case import (
    tight_gaussian_worst_case,
    tight_threshold_worst_case,
)
from sklearn_pate.accounting.worst_case_laplace import tight_laplace_worst_case

__all__ = [
    "DEFAULT_ORDERS",
    "Charge",
    "PrivacyAnalysis",
    "PrivacyLedger",
    "PrivacySpent",
    "RdpCurve",
    "bounds",
    "calibrate_n_queries",
    "calibrate_noise",
    "local_cost",
    "tight_gaussian_worst_case",
    "tight_laplace_worst_case",
    "tight_threshold_worst_case",
]

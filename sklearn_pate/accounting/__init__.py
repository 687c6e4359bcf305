"""The price: Renyi curves, bounds, calibration and the privacy statement."""

from sklearn_pate.accounting import bounds
from sklearn_pate.accounting.calibrate import calibrate_n_queries, calibrate_noise
from sklearn_pate.accounting.curve import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.statement import PrivacyAnalysis, PrivacySpent

__all__ = [
    "DEFAULT_ORDERS",
    "PrivacyAnalysis",
    "PrivacySpent",
    "RdpCurve",
    "bounds",
    "calibrate_n_queries",
    "calibrate_noise",
]

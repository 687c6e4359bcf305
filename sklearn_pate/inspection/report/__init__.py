"""Privacy report of a fit, for the people responsible for the data."""

from sklearn_pate.inspection.report._privacy_report import PrivacyReport

__all__ = ["PrivacyReport"]

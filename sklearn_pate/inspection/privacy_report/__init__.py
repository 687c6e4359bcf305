"""The privacy report: a page that a data holder hands to who has to sign."""

from sklearn_pate.inspection.privacy_report._privacy_report import PrivacyReport

__all__ = ["PrivacyReport"]

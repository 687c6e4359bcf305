"""Looking at what surrounds a private estimator, and at what it promises."""

from sklearn_pate.inspection.leaks import PrivacyLeak, privacy_leaks

__all__ = ["PrivacyLeak", "privacy_leaks"]

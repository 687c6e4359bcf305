"""Choosing between private estimators, privately."""

from sklearn_pate.model_selection._search import PrivateSearchCV

__all__ = ["PrivateSearchCV"]

"""Private hyper-parameter search."""

from sklearn_pate.model_selection._search import PrivateSearchCV

__all__ = ["PrivateSearchCV"]

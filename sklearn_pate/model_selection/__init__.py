"""Private hyper-parameter search, and splits that move no other group."""

from sklearn_pate.model_selection._search import PrivateSearchCV
from sklearn_pate.model_selection._split import GroupHashSplit

__all__ = ["GroupHashSplit", "PrivateSearchCV"]

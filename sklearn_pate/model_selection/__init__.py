"""Private hyper-parameter search, and splits that move no other group."""

from sklearn_pate.model_selection._group_hash_split import GroupHashSplit
from sklearn_pate.model_selection._search import PrivateSearchCV

__all__ = ["GroupHashSplit", "PrivateSearchCV"]

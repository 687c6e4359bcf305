"""Private hyper-parameter search, a fit with its metrics, and splits by group."""

from sklearn_pate.model_selection._search import PrivateSearchCV
from sklearn_pate.model_selection._split import GroupHashSplit
from sklearn_pate.model_selection._trials import MeasuredFit, fit_and_measure

__all__ = ["GroupHashSplit", "MeasuredFit", "PrivateSearchCV", "fit_and_measure"]

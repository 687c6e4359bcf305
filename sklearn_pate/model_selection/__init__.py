"""Private hyper-parameter search, a fit with its metrics, and splits by group."""

from sklearn_pate.model_selection._fit_and_measure import MeasuredFit, fit_and_measure
from sklearn_pate.model_selection._search import PrivateSearchCV
from sklearn_pate.model_selection._split import GroupHashSplit

__all__ = ["GroupHashSplit", "MeasuredFit", "PrivateSearchCV", "fit_and_measure"]

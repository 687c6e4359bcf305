"""Numbers, times and several outcomes, learned by private classifiers."""

from sklearn_pate.outcomes._regressor import BinnedRegressor, PublishedRegressor
from sklearn_pate.outcomes._several import PrivateMultiOutput, PublishedMultiOutput
from sklearn_pate.outcomes._survival import DiscreteSurvival, PublishedSurvival

__all__ = [
    "BinnedRegressor",
    "DiscreteSurvival",
    "PrivateMultiOutput",
    "PublishedMultiOutput",
    "PublishedRegressor",
    "PublishedSurvival",
]

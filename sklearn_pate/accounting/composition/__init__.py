"""Privacy cost of releases under composition, sampling or selection."""

from sklearn_pate.accounting.composition._objective_perturbation import (
    curvature_cost,
    gaussian_objective_curve,
)
from sklearn_pate.accounting.composition._poisson_sampling import sampled_gaussian_curve
from sklearn_pate.accounting.composition._private_selection import (
    TruncatedNegativeBinomial,
    TruncatedPoisson,
)
from sklearn_pate.accounting.composition._renyi_filter import RenyiFilter
from sklearn_pate.accounting.composition._replace_one import add_remove_to_replace_one

__all__ = [
    "RenyiFilter",
    "TruncatedNegativeBinomial",
    "TruncatedPoisson",
    "add_remove_to_replace_one",
    "curvature_cost",
    "gaussian_objective_curve",
    "sampled_gaussian_curve",
]

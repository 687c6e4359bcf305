"""Privacy cost of noisy plurality votes."""

from sklearn_pate.accounting.plurality._divergence import log_moment
from sklearn_pate.accounting.plurality._enumeration import enumerated_cost
from sklearn_pate.accounting.plurality._smooth_sensitivity import (
    release_parameters,
    sanitize,
)

__all__ = [
    "enumerated_cost",
    "log_moment",
    "release_parameters",
    "sanitize",
]

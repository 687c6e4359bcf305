"""Privacy cost of noisy plurality votes."""

from sklearn_pate.accounting.plurality._closed_form import log_moment
from sklearn_pate.accounting.plurality._exact import enumerated_cost
from sklearn_pate.accounting.plurality._optimal import (
    release_parameters,
    sanitize,
)

__all__ = ["enumerated_cost", "log_moment", "release_parameters", "sanitize"]

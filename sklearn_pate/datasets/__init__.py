"""Data sets of the papers: original files, checked by their hash."""

from sklearn_pate.datasets._images import fetch_cifar10, fetch_mnist, fetch_svhn
from sklearn_pate.datasets._tabular import fetch_adult, fetch_diabetes130

__all__ = [
    "fetch_adult",
    "fetch_cifar10",
    "fetch_diabetes130",
    "fetch_mnist",
    "fetch_svhn",
]

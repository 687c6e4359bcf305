"""Data sets of the papers: original files, checked by their hash."""

from sklearn_pate.datasets._fetch import (
    fetch_adult,
    fetch_cifar10,
    fetch_diabetes130,
    fetch_mnist,
    fetch_svhn,
)

__all__ = [
    "fetch_adult",
    "fetch_cifar10",
    "fetch_diabetes130",
    "fetch_mnist",
    "fetch_svhn",
]

"""Data sets of the papers: original files, checked by their hash."""

from sklearn_pate.datasets._adult import fetch_adult
from sklearn_pate.datasets._cifar10 import fetch_cifar10
from sklearn_pate.datasets._diabetes130 import fetch_diabetes130
from sklearn_pate.datasets._mnist import fetch_mnist
from sklearn_pate.datasets._svhn import fetch_svhn

__all__ = [
    "fetch_adult",
    "fetch_cifar10",
    "fetch_diabetes130",
    "fetch_mnist",
    "fetch_svhn",
]

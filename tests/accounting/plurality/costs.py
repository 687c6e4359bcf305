"""Exact costs by kind of noise, and plain formulas to compare with."""

import numpy as np
import pytest

from sklearn_pate.accounting import local_cost
from tests.private import (
    GaussianPlurality,
    GumbelPlurality,
    LaplacePlurality,
    PermuteAndFlipPlurality,
)

PLURALITIES = {
    "gaussian": GaussianPlurality,
    "laplace": LaplacePlurality,
    "gumbel": GumbelPlurality,
    "flip": PermuteAndFlipPlurality,
}
by_kind = pytest.mark.parametrize("kind", PLURALITIES)
ORDERS = np.array([1.05, 1.5, 2, 3.7, 8, 16, 33, 64])


def cost(kind, scale, counts, orders=ORDERS, **options):
    return local_cost(PLURALITIES[kind](scale), counts, orders, **options).values


# Against every neighbour of every vote of a few teachers


def divergence(p, q, order):
    """D_a(p || q) along the last axis, in float64, without cancellation."""
    r = np.log(p) - np.log(q)
    moment = np.sum(q * (np.expm1(order * r) - order * np.expm1(r)), axis=-1)
    return np.log1p(moment) / (order - 1)


def noisy_check_law(margin, sigma):
    """Pr[Z < margin] and Pr[Z >= margin] for whole margins, as a plain sum."""
    z = np.arange(-int(40 * sigma), int(40 * sigma) + 1)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    mass /= mass.sum()
    return mass[z < margin].sum(), mass[z >= margin].sum()

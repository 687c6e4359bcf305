"""Tests that dominate one GNMax answer."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from sklearn_pate.accounting._gdp import gdp_mu
from sklearn_pate.accounting.plurality._answer_tests import (
    AnswerTests,
    gaussian_tests,
    two_class_mu,
)
from sklearn_pate.accounting.plurality._tight_gaussian import coarse_lattice, log_law

__all__ = ["plurality_tests"]

_Array = NDArray[np.float64]

# Points of the lattice of leads per standard deviation: finer costs less epsilon and
# more time. The size of the ripple of its noise.
_RESOLUTION = 10
_RIPPLE = 1e-9
# Two-outcome tests are taken this much further out: fewer tests of three are left.
_SLACK = 0.0035
# An outcome with a smaller probability is merged with another.
_NEGLIGIBLE = 1e-17
# Standard deviations at which an outcome is negligible.
_REACH = 8.6
# Error of the logarithm of a computed probability.
_ROUNDING = 1e-9
# Relative margin of mu for the rounding of probabilities.
_MARGIN = 1e-4
_BISECTIONS = 24


def plurality_tests(sigma: float, n_classes: int) -> AnswerTests | None:
    """Return tests that dominate one answer, None where sigma is not resolved."""
    mu = two_class_mu(sigma)
    if mu is None:
        return None
    if n_classes <= 2:
        return gaussian_tests(mu)
    return _tests_of_three_outcomes(sigma)


@lru_cache(maxsize=64)
def _tests_of_three_outcomes(sigma: float) -> AnswerTests | None:
    """Return tests that dominate one answer on any number of classes.

    Given the order of ties and the best of all other classes, an answer has three
    outcomes: c, d or that class (Lemma 1 of :doc:`Privacy cost of an answer
    </accounting>`). Noise of scale sigma is a mixture of slightly less noise around the
    points of a lattice (Lemma 2), so that whole leads on the lattice are enough. At
    most of them the answer post-processes a coin and one of two tests of two outcomes
    (Lemma 9), which lie within a polygon; the others are tests of their own.
    """
    noise, step, error = coarse_lattice(sigma, _RESOLUTION, _RIPPLE)
    mu = gdp_mu(noise.sigma)
    if not np.isfinite(mu):
        return None
    mu = max(mu, (1 + _SLACK) * np.sqrt(2) / noise.sigma)
    reach = int(_REACH * noise.sigma) // step + 1
    lead = step * np.arange(-reach, reach + 1)
    everywhere = np.ones((lead.size, lead.size), dtype=bool)
    log_p = log_law(noise, lead, lead, everywhere)
    log_q = log_law(noise, lead - 1, lead + 1, everywhere)
    likely = np.all(np.maximum(log_p, log_q) > np.log(_NEGLIGIBLE), axis=1)
    log_p, log_q = log_p[likely], log_q[likely]
    left = ~_is_coin_and_test(log_p, log_q, mu)
    log_p, log_q = log_p[left], log_q[left]
    return gaussian_tests(mu).joined(
        np.exp(np.concatenate([log_p, log_q])),
        np.concatenate([log_q - log_p, log_p - log_q]),
        rest=4 * _NEGLIGIBLE,
        error=error + _ROUNDING,
    )


def _is_coin_and_test(log_p: _Array, log_q: _Array, mu: float) -> NDArray[np.bool_]:
    """Check that laws of three outcomes post-process a coin and one of two tests.

    With a coin of probability w, and outcomes i and j: heads tests i against the rest,
    with probabilities p_i / w and q_i / w, tails tests j against the rest, with p_j /
    (1 - w) and q_j / (1 - w). Merging both rests gives back the law of three outcomes.
    Both tests have to lie within that of N(0, 1) against N(mu, 1).
    """
    least = np.stack([_least_coin(log_p[:, i], log_q[:, i], mu) for i in range(3)])
    found = np.zeros(len(log_p), dtype=bool)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        rows = np.flatnonzero(np.exp(least[i]) + np.exp(least[j]) <= 1)
        log_w = least[i, rows]
        heads = _test_mu(log_p[rows, i], log_q[rows, i], log_w)
        with np.errstate(divide="ignore"):  # of a coin that always shows heads
            log_rest = np.log(-np.expm1(log_w))
        tails = _test_mu(log_p[rows, j], log_q[rows, j], log_rest)
        found[rows] |= np.maximum(heads, tails) <= mu * (1 - _MARGIN)
    return found


def _least_coin(log_p: _Array, log_q: _Array, mu: float) -> _Array:
    """Return ln of about the smallest w with a test of (p / w, q / w) within mu."""
    low, high = np.maximum(log_p, log_q), np.zeros(len(log_p))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        within = _test_mu(log_p, log_q, middle) <= mu * (1 - _MARGIN)
        low, high = np.where(within, low, middle), np.where(within, middle, high)
    return high


def _test_mu(log_p: _Array, log_q: _Array, log_w: _Array) -> _Array:
    """Return mu of a test of two outcomes, the first with p / w and q / w."""
    with np.errstate(invalid="ignore"):
        normal = ndtri_exp(np.minimum(np.stack([log_p, log_q]) - log_w, 0.0))
        found = np.abs(normal[0] - normal[1])
    return np.where(np.isnan(found), np.inf, found)

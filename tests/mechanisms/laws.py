"""Discrete Gaussian noise by enumeration, and a test of draws against their law."""

import numpy as np
from scipy import stats
from scipy.special import logsumexp


def log_law(sigma, reach, shift=0):
    """Log-probabilities of a discrete Gaussian around `shift`."""
    weights = -((np.arange(-reach, reach + 1) - shift) ** 2) / (2 * sigma**2)
    return weights - logsumexp(weights)


def goodness_of_fit(draws, log_weight, scale):
    """p-value of the chi-square test, on groups of neighbours, tails joined."""
    reach = int(60 * scale) + 2
    support = np.arange(-reach, reach + 1)
    probabilities = np.exp(log_weight(support.astype(float)))
    probabilities /= probabilities.sum()
    width = 1 + int(scale / 50)
    groups = np.bincount((support + reach) // width, weights=probabilities)
    enough = np.flatnonzero(groups * draws.size >= 10)
    first, last = enough[0], enough[-1]
    if first == last:
        return 1.0

    def join_tails(per_group):
        joined = per_group[first : last + 1].copy()
        joined[0] += per_group[:first].sum()
        joined[-1] += per_group[last + 1 :].sum()
        return joined

    assert np.abs(draws).max() <= reach
    observed = np.bincount((draws + reach) // width, minlength=groups.size)
    expected = join_tails(groups) * draws.size
    return float(stats.chisquare(join_tails(observed), expected).pvalue)
